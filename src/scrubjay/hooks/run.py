"""`scrubjay hook MOMENT`: what a client runs at the start of a session, for a prompt, before it compacts, at the end.

    stdin: JSON of the client ──> ask a server that is running ──> else by words, here ──> stdout: JSON for the client
                                              └──── 0.3 seconds for all of it, 2 at the start ────┘

A hook must never hold up or break someone's session: whatever happens it ends in time, with status 0, and has written
either a complete answer or nothing; at a session's start, where nothing would pass for an empty memory, that it was
late. It starts no model, no server and no process. `scrubjay hooks log` shows what it
gave.

Every prompt pays for what is imported here, so that is little.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

DEADLINE_SECONDS = 0.3
SESSION_SECONDS = 2.0  # for a session's start, which happens once
SERVER_SHARE = 0.5  # of these; enough is left to look by words
GRACE_SECONDS = 0.05  # beyond these, for writing the answer and the log: a disk or a client may stall
LARGEST = 1_000_000  # bytes of input
LATE = "Memory did not answer in time, so nothing of it is shown here. The brief tool of scrubjay gives it."
MOMENTS = ("session-start", "prompt", "pre-compact", "session-end")
HELP = """\
Usage: scrubjay hook session-start|prompt|pre-compact|session-end [OPTIONS]

  What a client's hooks run; `scrubjay install CLIENT --hooks` adds them.

  Reads the client's JSON on standard input and answers within 0.3 seconds (at
  the start of a session within 2), or says nothing; at the start it says that
  it was late. Always exits with 0.

Options:
  --client NAME       The client's name, for the log.
  --space NAME        The current space. Default: auto, the repository's.
  --only              Read that space only, not every space.
  --home FOLDER       Where memories are kept. Default: your data folder.
  --deadline SECONDS  Most time to take. Default: 0.3; 2 for session-start.
  --help              Show this message.

Examples:
  echo '{"prompt": "Where do backups go?"}' | scrubjay hook prompt
"""


class Hook:
    """One call."""

    def __init__(self, arguments: list[str], began: float) -> None:
        self.began = began
        self.moment = arguments[0] if arguments else ""
        options = options_in(arguments)
        self.client = options.get("--client", "")
        self.space = options.get("--space", "auto")
        self.only = "--only" in options
        self.home = options.get("--home")
        usual = SESSION_SECONDS if self.moment == "session-start" else DEADLINE_SECONDS
        self.seconds = seconds_of(options.get("--deadline", ""), usual)
        self.given: dict[str, Any] = {}
        self.gave: dict[str, Any] = {"how": "nothing"}
        self.log: str | None = None  # the file, as soon as it is known
        self._end = threading.Lock()

    def left(self) -> float:
        return self.began + self.seconds - time.monotonic()

    def watch(self) -> None:
        """End in time, whatever the other thread is waiting for; if it is writing, that gets a moment more."""
        time.sleep(max(0.0, self.left()))
        self.leave(shape_answer(self, LATE) if self.moment == "session-start" else "", gave={"how": "late"})

    def leave(self, answer: str, gave: dict[str, Any] | None = None) -> NoReturn:
        """Write and end. Only one thread writes; the other one ends the process if that takes too long."""
        try:
            if not self._end.acquire(timeout=max(0.0, self.left()) + GRACE_SECONDS):
                os._exit(0)
            self.gave = gave or self.gave
            if answer:
                os.write(1, answer.encode())
            if self.log is not None:
                from scrubjay.hooks.log import write

                writer = threading.Thread(target=write, args=(self.log, self), daemon=True)
                writer.start()
                writer.join(max(0.0, self.left()) + GRACE_SECONDS)
        finally:
            os._exit(0)


def options_in(arguments: list[str]) -> dict[str, str]:
    """Names and values, as `--name value` or `--name=value`; anything else is passed over."""
    found = {}
    for place, word in enumerate(arguments):
        name, equals, value = word.partition("=")
        if name.startswith("--"):
            found[name] = value if equals else next(iter(arguments[place + 1 :]), "")
    return found


def seconds_of(text: str, usual: float) -> float:
    try:
        return min(600.0, max(0.0, float(text)))
    except ValueError:
        return usual


def main(arguments: list[str]) -> NoReturn:
    hook = Hook(arguments, time.monotonic())
    if hook.moment not in MOMENTS or "--help" in arguments:
        os.write(1 if "--help" in arguments or "-h" in arguments else 2, HELP.encode())
        os._exit(0)  # to some clients any other status means that the prompt is refused
    gc.disable()  # there is hardly any garbage, and it ends soon
    threading.Thread(target=hook.watch, daemon=True).start()
    answer = ""
    try:
        sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - for what is imported later
        answer = ask_for_answer(hook)
    except BaseException as error:  # noqa: BLE001 - whatever it is, the session goes on
        hook.gave = {"how": "failed", "why": f"{type(error).__name__}: {error}"[:200]}
    hook.leave(answer)


def ask_for_answer(hook: Hook) -> str:
    hook.given = json.loads(read_input() or b"{}")
    from scrubjay.settings import load

    folder = hook.given.get("cwd") or next(iter(hook.given.get("workspace_roots") or ()), None) or os.getcwd()
    settings = load(home=hook.home, embedder="none", model_pull="never")
    hook.log = str(settings.home / "hooks.log") if settings.home.exists() else None
    if hook.moment in ("pre-compact", "session-end"):
        from scrubjay.hooks.checkpoint import suggest

        hook.gave = suggest(hook, settings, folder)
        return ""
    if hook.given.get("source") == "resume":  # it got its brief when the session began
        return ""
    text = typed_prompt(hook.given) if hook.moment == "prompt" else ""
    if hook.moment == "prompt" and len(text.split()) < 2:
        return ""
    asked = {"moment": hook.moment, "text": text, "space": hook.space, "folder": folder, "store": settings.store}
    asked["only"] = hook.only or settings.only
    from scrubjay.hooks.asking import ask

    reply = ask(settings.home, asked, seconds=min(SERVER_SHARE * hook.seconds, hook.left()))
    if reply is None:
        from scrubjay.hooks.answers import answer_by_words

        reply = answer_by_words(settings, asked)
    hook.gave = {key: value for key, value in reply.items() if key != "text"}
    return shape_answer(hook, reply["text"]) if reply["text"] else ""


def typed_prompt(given: dict[str, Any]) -> str:
    """What the user typed, also for the log: Gemini CLI puts what the hook before this one gave in front of it."""
    text = given.get("prompt")
    if not isinstance(text, str):
        return ""
    before, opened, rest = text.partition("<hook_context>")
    given["prompt"] = before + rest.rpartition("</hook_context>")[2].lstrip() if opened else text
    return str(given["prompt"])


def read_input() -> bytes:
    """Everything on standard input, up to a limit: a client that never closes it is ended by the deadline."""
    pieces, size = [], 0
    while size < LARGEST and (piece := os.read(0, 65536)):
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces)


def shape_answer(hook: Hook, text: str) -> str:
    """As the client takes it: Claude Code, Codex and Gemini CLI alike, Cursor in its own way."""
    if hook.client == "cursor":
        return json.dumps({"additional_context": text})
    usual = {"session-start": "SessionStart", "prompt": "UserPromptSubmit"}[hook.moment]
    event = hook.given.get("hook_event_name") or usual
    return json.dumps({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}})
