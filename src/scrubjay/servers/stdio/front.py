"""A stdio server that answers at once: the part that runs before, and in front of, the protocol's library.

    stdin ──> read a line ──> broken? ─────────────> an error
                              known from the manifest? ──> the answer, from here
                              anything else ──> inbox ──> `plain.py`, in a thread ──> stdout
                                                          └─> the library, once it is needed

Importing what answers takes a while, and the library most of a second; until then the client has its tools. The
client's own opening request is replayed into the library, whose answer to it is dropped, so that its session is a
genuine one. The main thread reads: signals arrive there and can interrupt it.

Only cheap parts of the standard library may be imported here; `tests/servers/test_manifest.py` counts them.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from queue import SimpleQueue

from scrubjay import __version__
from scrubjay.servers.stdio.frames import MAX_LINE, BadFrame, decode, encode, too_long
from scrubjay.servers.stdio.options import HELP, Options, UsageError, parse
from scrubjay.servers.stdio.profile import compose, offers_also, shipped_dialects, shipped_sheet, without_also

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn

    from scrubjay.servers.stdio.frames import Id, Message
    from scrubjay.servers.stdio.profile import Profile

HEAD_START_SECONDS = 0.1  # the client's first requests are answered before the library competes for the processor
STOP_SECONDS = 1.2  # what running calls get after a signal or the parent's death; we promise two seconds in all
ANSWER_SECONDS = 60.0  # what they get after the end of input, if their answers are still read; includes loading
PARENT_SECONDS = 0.5  # how often we check that our parent is alive
MAX_WAITING = 100  # requests; beyond them we stop reading, and the client's pipe fills instead of our memory
REPLAYED = 2**63  # the id under which the library hears of what was answered here; no client's is beyond 64 bits

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSIONS = ("2026-07-28",)
CAPABILITIES = {"tools": {"listChanged": False}}
PROMPTS = {"prompts": {"listChanged": False}}
RESOURCES = {"resources": {"subscribe": False, "listChanged": False}, "completions": {}}
FRESH_MS = 300_000  # how long a client may cache the list of tools; it cannot change while the process runs

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
CLIENT_KEY = "io.modelcontextprotocol/clientInfo"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"


def run_stdio(arguments: Sequence[str], incoming: int, outgoing: int) -> int:
    """Serve one client on two file descriptors; the result is the exit status."""
    try:
        options = parse(arguments)
        if options.help:
            os.write(outgoing, HELP.encode())
            return 0
        unknown = [name for name in options.dialects if name not in shipped_dialects()]
        if unknown:
            raise UsageError(f"Unknown dialect {unknown[0]!r}. Known: {', '.join(shipped_dialects())}.")
    except UsageError as error:
        sys.stderr.write(f"scrubjay mcp: {error}\nTry `scrubjay mcp --help`.\n")
        return 2
    Front(options, Wire(incoming, outgoing)).run()


class Stop(Exception):
    """A signal ended the wait for the client's next line."""


class Wire:
    """The client's end: lines in, lines out."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        if hasattr(os, "set_blocking"):  # some clients hand over their own, non-blocking end
            os.set_blocking(incoming, True)
            os.set_blocking(outgoing, True)
        self._reader = open(incoming, "rb", buffering=65536)  # noqa: SIM115 - open as long as we live
        self._outgoing = outgoing
        self._lock = threading.Lock()

    def read(self) -> bytes | BadFrame:
        """The next line, empty at the end of input. A line past the limit is skipped, never held."""
        try:
            line = self._reader.readline(MAX_LINE + 1)
            if len(line) <= MAX_LINE or line.endswith(b"\n"):
                return line
            start, end = line[:1000], line[-1000:]
            while not end.endswith(b"\n") and (piece := self._reader.readline(65536)):
                end = (end + piece)[-1000:]
            return too_long(start, end)
        except OSError:  # the other end went away in an unusual way, such as a closed terminal
            return b""

    def send(self, line: bytes) -> None:
        with self._lock:
            rest = memoryview(line)
            while rest:
                rest = rest[os.write(self._outgoing, rest) :]

    def is_read(self) -> bool:
        """Whether our output still has a reader."""
        import select  # only needed at the end

        if not hasattr(select, "poll"):
            return True
        poll = select.poll()
        poll.register(self._outgoing, 0)
        return not poll.poll(0)


class Front:
    """One client, from its first line to its last."""

    def __init__(self, options: Options, wire: Wire) -> None:
        self._options = options
        self._wire = wire
        sheets = [shipped_sheet(name) for name in options.dialects]
        sheets = sheets if offers_also(os.environ) else without_also(sheets)
        self._answers = Answers(compose(sheets, extras=options.extras))
        self._inbox: SimpleQueue[Message | None] = SimpleQueue()
        self._unanswered: list[Id] = []  # a client may use an id twice, and is answered twice
        self._reading = False
        self._needed = threading.Event()  # the library, now
        self._serving = threading.Event()
        self._closed = threading.Event()
        self._stopping = False
        self._heeded: signal.Signals | None = None  # one that wakes the reader
        self._bell, self._rope = os.pipe()  # rung by every signal as it arrives, whatever the main thread is doing

    def run(self) -> NoReturn:
        for name in ("SIGTERM", "SIGINT", "SIGHUP"):
            # What the parent has set to be ignored stays so.
            if (number := getattr(signal, name, None)) and signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._on_signal)
                self._heeded = self._heeded or number
        if hasattr(os, "set_blocking"):
            os.set_blocking(self._rope, False)
        signal.set_wakeup_fd(self._rope, warn_on_full_buffer=False)
        threading.Thread(target=self._watch, args=(os.getppid(),), daemon=True).start()
        threading.Thread(target=self._serve, daemon=True).start()
        try:
            while not self._stopping and (line := self._next_line()):
                self._take(line)
        except (Stop, OSError):  # stopped, or the reader is gone
            pass
        self._finish()

    def _next_line(self) -> bytes | BadFrame:
        self._reading = True
        try:
            return self._wire.read()
        finally:
            self._reading = False

    def _take(self, line: bytes | BadFrame) -> None:
        try:
            if isinstance(line, BadFrame):
                raise line
            message = decode(line)
        except BadFrame as bad:
            self._wire.send(encode(bad.reply()))
            return
        if "method" not in message:  # a reply to something that the library asked
            if self._serving.is_set():
                self._inbox.put(message)
            return
        if "id" in message:
            self._take_request(message)
            return
        if message["method"] == "notifications/cancelled":
            self._take_back(message)
        else:
            self._inbox.put(message)

    def _take_back(self, message: Message) -> None:
        """Pass on which request is cancelled, by its exact id: whoever runs it must mean the one forgotten here.

        Clients may write the id of what they cancel as text, though it was a number.
        """
        params = message.get("params") or {}
        said, waiting = params.get("requestId"), list(self._unanswered)
        if not isinstance(said, int | str) or isinstance(said, bool):
            return
        meant = said if said in waiting else next((one for one in waiting if str(one) == str(said)), None)
        if meant is not None:  # or else it is answered, or was never asked
            self._forget(meant)
            self._inbox.put({**message, "params": {**params, "requestId": meant}})

    def _take_request(self, request: Message) -> None:
        result, heard = self._answers.answer(request)
        if result is not None:
            self._wire.send(encode({"jsonrpc": "2.0", "id": request["id"], "result": result}))
            if heard:
                self._inbox.put({**request, "id": REPLAYED})
            return
        while len(self._unanswered) >= MAX_WAITING and not self._stopping:
            time.sleep(0.01)
        self._unanswered.append(request["id"])
        self._inbox.put(request)
        self._needed.set()

    # --- the library, in its own thread ------------------------------------------------------------------------------

    def _serve(self) -> None:
        try:
            self._needed.wait(HEAD_START_SECONDS)
            from scrubjay.servers.stdio.serve import serve

            serve(self._options, self._inbox, self._deliver, self._serving)
            self._closed.set()
        finally:
            if not self._closed.is_set():  # nothing can be answered any more: no server is better than a silent one
                sys.excepthook(*sys.exc_info())
                os._exit(1)

    def _deliver(self, id: Id, line: bytes) -> None:
        """Send what the library says: an answer or, without an id, a notification."""
        if id == REPLAYED:
            return
        try:
            self._wire.send(line)
        except OSError:
            self._interrupt()
        self._forget(id)

    def _forget(self, id: Id) -> None:
        try:  # noqa: SIM105 - nothing else here imports contextlib
            self._unanswered.remove(id)
        except ValueError:  # a notification, or the answer to what was taken back meanwhile
            pass

    # --- the end -----------------------------------------------------------------------------------------------------

    def _on_signal(self, _number: int, _frame: object) -> None:
        self._stopping = True
        if self._reading:  # raising anywhere else could cut off a line that is being written
            raise Stop

    def _watch(self, parent: int) -> None:
        """Stop on a signal or when the parent is gone, even if others hold our pipes open; and make sure that stopping
        ends.

        A signal that arrives after the main thread last looked and before it waits for input would not be noticed until
        the next line, so it is repeated.
        """
        while not self._rung() and os.getppid() == parent:
            pass
        self._stopping = True
        deadline = time.monotonic() + STOP_SECONDS + 0.2
        while time.monotonic() < deadline:
            self._wake_reader()
            time.sleep(0.1)
        os._exit(0)

    def _rung(self) -> bool:
        """Whether the bell rings before it is time to look after the parent."""
        if sys.platform != "win32":  # there a pipe cannot be waited for with a limit, and a parent's id never changes
            import select

            if not select.select([self._bell], [], [], PARENT_SECONDS)[0]:
                return False
        return bool(os.read(self._bell, 1))

    def _interrupt(self) -> None:
        self._stopping = True
        os.write(self._rope, b"\0")

    def _wake_reader(self) -> None:
        if hasattr(signal, "pthread_kill") and self._heeded is not None:
            main = threading.main_thread().ident
            assert main is not None
            signal.pthread_kill(main, self._heeded)

    def _finish(self) -> NoReturn:
        """Let running calls finish, close the store and exit.

        Skips the interpreter's own cleanup: it would wait for threads that may be deep in a model. Whatever is cut off
        was not acknowledged, and the store keeps all of a change or nothing.
        """
        self._reading = False  # a second signal must not interrupt this
        patience = STOP_SECONDS if self._stopping else ANSWER_SECONDS
        deadline = time.monotonic() + patience
        while self._unanswered and time.monotonic() < deadline and self._wire.is_read():
            time.sleep(0.01)
        self._inbox.put(None)
        if self._serving.is_set():
            self._closed.wait(1.0)
        os._exit(0)


# --- who we are, and which tools we have -----------------------------------------------------------------------------


class Answers:
    """The answers to one client. Remembers what its first request decided: two eras of the protocol are in use.

        handshake   initialize, then requests            2024-11-05 … 2025-11-25
        modern      every request carries its version    2026-07-28; server/discover instead of initialize

    Anything unusual (an unknown version, a cursor, a missing member, a change of era) is left to the library, which
    knows every rule.
    """

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._modern: bool | None = None  # None: no request yet
        self._greeted = False

    def answer(self, request: Message) -> tuple[dict[str, Any] | None, bool]:
        """The result, or None to leave the request to the library; and whether the library must hear of it as well.

        It must hear of what sets up its state: the opening request, and `initialize`.
        """
        method, params = request["method"], request.get("params") or {}
        enveloped = isinstance(params.get("_meta"), dict) and VERSION_KEY in params["_meta"]
        opening = self._modern is None
        if self._modern is None:
            self._modern = enveloped and method != "initialize"
        if self._modern:
            result = self._modern_answer(method, params)
        else:
            result = None if enveloped else self._handshake_answer(method, params)
        return result, opening or method == "initialize"

    def _handshake_answer(self, method: str, params: Message) -> dict[str, Any] | None:
        if method == "initialize" and not self._greeted and _is_greeting(params):
            self._greeted = True
            asked = params["protocolVersion"]
            return {
                "protocolVersion": asked if asked in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1],
                "capabilities": self._capabilities,
                "serverInfo": self._server_info,
                "instructions": self._profile["instructions"],
            }
        if method == "ping" and _is_bare(params):
            return {}
        if method == "tools/list" and self._greeted and _is_bare(params):
            return {"tools": self._profile["tools"]}
        return None

    def _modern_answer(self, method: str, params: Message) -> dict[str, Any] | None:
        if not (_is_bare(params) and _is_envelope(params.get("_meta", {}))):
            return None
        if method == "server/discover":
            said: dict[str, Any] = {
                "supportedVersions": list(MODERN_VERSIONS),
                "capabilities": self._capabilities,
                "instructions": self._profile["instructions"],
            }
        elif method == "tools/list":
            said = {"tools": self._profile["tools"]}
        else:
            return None
        about = {"resultType": "complete", "ttlMs": FRESH_MS, "cacheScope": "public"}
        return {**said, **about, "_meta": {SERVER_KEY: self._server_info}}

    @property
    def _capabilities(self) -> dict[str, Any]:
        prompts = PROMPTS if self._profile["prompts"] else {}
        return {**CAPABILITIES, **prompts, **(RESOURCES if self._profile["resources"] else {})}

    @property
    def _server_info(self) -> dict[str, str]:
        return {"name": self._profile["name"], "version": __version__}


def _is_greeting(params: Message) -> bool:
    capabilities = params.get("capabilities")
    return (
        isinstance(params.get("protocolVersion"), str)
        and isinstance(capabilities, dict)
        and all(isinstance(capability, dict) for capability in capabilities.values())
        and _is_client(params.get("clientInfo"))
    )


def _is_bare(params: Message) -> bool:
    """Whether nothing is asked beyond the request itself."""
    meta = params.get("_meta", {})
    token = meta.get("progressToken", "") if isinstance(meta, dict) else None
    return not params.keys() - {"_meta"} and isinstance(token, str | int) and not isinstance(token, bool)


def _is_envelope(meta: Message) -> bool:
    return (
        meta.get(VERSION_KEY) in MODERN_VERSIONS
        and isinstance(meta.get(CAPABILITIES_KEY), dict)
        and (CLIENT_KEY not in meta or _is_client(meta[CLIENT_KEY]))
    )


def _is_client(info: Any) -> bool:
    return isinstance(info, dict) and isinstance(info.get("name"), str) and isinstance(info.get("version"), str)
