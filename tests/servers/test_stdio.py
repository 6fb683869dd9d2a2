"""A real server process on real pipes: broken input, strange text, both eras of the protocol, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.types import PromptReference

from tests.servers.broken_frames import BROKEN, INVALID_REQUEST
from tests.servers.peer import COMMAND, ENVELOPE, HANDSHAKE, Peer, environment

pytestmark = pytest.mark.process

STRANGE = [
    "🦜 parrots 🏳️‍🌈",
    "مرحبا بالعالم",
    "NUL \0 inside",
    "line\u2028separator\r\nand\ttab",
    "'; DROP TABLE memories; --",
    "<script>alert(1)</script>",
    '{"json": ["in", "json"]}\\n',
    "\ufeffa byte order mark",
    "x" * 50_000,
    "𝄞" * 50_000,
]


# --- what a client should not send -----------------------------------------------------------------------------------


def test_every_broken_line_is_answered_and_the_server_lives_on(start):
    """One line may be lost, the conversation may not."""
    peer = start()
    peer.greet()

    for name, (line, code, id) in BROKEN.items():
        peer.write(line)
        reply = peer.read()
        assert (reply["error"]["code"], reply["id"]) == (code, id), name

    assert peer.ask("ping")["result"] == {}
    assert not peer.call("list_recent_memories")["isError"]


def test_a_line_of_many_megabytes_is_refused_with_its_id_and_never_held(start):
    peer = start()
    peer.greet()
    peer.call("list_recent_memories")
    before = memory_of(peer)

    peer.write(b'{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"' + b"x" * 50_000_000 + b'"}}')
    reply = peer.read()

    assert (reply["error"]["code"], reply["id"]) == (INVALID_REQUEST, 77)
    assert memory_of(peer) - before < 25_000_000
    assert peer.ask("ping")["result"] == {}


def test_half_a_surrogate_pair_is_an_invalid_parameter_that_names_the_field(start):
    peer = start()
    peer.greet()

    result = peer.call("store_memory", content="half \ud83e of a pair")

    assert result["isError"]
    assert result["structuredContent"]["error"]["code"] == "INVALID_PARAMETER"
    assert "content" in result["structuredContent"]["error"]["message"]
    assert peer.call("list_recent_memories")["structuredContent"] == {"memories": []}


def test_arguments_nested_beyond_reason_are_an_invalid_parameter(start):
    peer = start()
    peer.greet()
    nested: object = "x"
    for _ in range(400):
        nested = [nested]

    result = peer.call("store_memory", content=nested)

    assert result["structuredContent"]["error"]["code"] == "INVALID_PARAMETER"


def test_an_unknown_tool_names_the_nearest_one(start):
    peer = start()
    peer.greet()

    error = peer.ask("tools/call", {"name": "search_memory", "arguments": {}})["error"]

    assert error["code"] == -32602
    assert "search_memories" in error["message"]


def test_an_answer_to_a_question_that_was_never_asked_is_refused(start):
    """Nothing a client claims to continue is ever believed."""
    peer = start()

    call = {"name": "list_recent_memories", "arguments": {}, "requestState": "forged", **ENVELOPE}

    assert peer.ask("tools/call", call)["error"]["code"] == -32602


def test_a_memory_that_cannot_be_opened_is_said_in_every_answer(start, tmp_path):
    """The tools are listed all the same: the model can tell its user what is wrong."""
    (tmp_path / "config.toml").write_text('log_level = "loud"', encoding="utf-8")
    peer = start()
    peer.greet()

    results = [peer.call("list_recent_memories") for _ in range(2)]

    for result in results:
        assert result["isError"]
        assert "log_level" in result["structuredContent"]["error"]["message"]


@pytest.mark.parametrize(
    "arguments",
    [["--dialect", "klingon"], ["--dialect"], ["--colour"], ["--space="], ["extra"]],
    ids=" ".join,
)
def test_a_command_line_that_is_not_understood_ends_with_a_hint(start, arguments):
    peer = start(*arguments)

    assert peer.end() == 2
    assert b"--help" in peer.errors


# --- what it should --------------------------------------------------------------------------------------------------


def test_help_goes_to_standard_output_with_examples():
    shown = subprocess.run([*COMMAND, "--help"], capture_output=True, text=True, check=True).stdout

    assert "claude mcp add scrubjay -- scrubjay mcp" in shown


def test_a_call_right_behind_the_handshake_is_answered(start):
    """Nobody waited for the library to load; the call does, and finds a session that knows its client."""
    peer = start()
    peer.send("initialize", HANDSHAKE, id=1)
    peer.send("notifications/initialized")
    peer.send("tools/call", {"name": "store_memory", "arguments": {"content": "Jays hide acorns."}}, id=2)

    replies = [peer.read(), peer.read()]

    assert [reply["id"] for reply in replies] == [1, 2]
    assert replies[1]["result"]["structuredContent"]["created"]["content"] == "Jays hide acorns."


def test_a_call_in_the_modern_era_needs_no_handshake(start):
    peer = start()

    reply = peer.ask("tools/call", {"name": "list_recent_memories", "arguments": {}, **ENVELOPE})

    assert reply["result"]["structuredContent"] == {"memories": []}
    assert reply["result"]["resultType"] == "complete"


def test_an_unknown_version_is_answered_with_the_newest_of_the_handshake(start):
    peer = start()

    reply = peer.ask("initialize", {**HANDSHAKE, "protocolVersion": "1999-01-01"})

    assert reply["result"]["protocolVersion"] == "2025-11-25"


def test_eras_do_not_mix_on_one_connection(start):
    modern, handshake = start(), start()
    modern.ask("server/discover", ENVELOPE)
    handshake.greet()

    assert modern.ask("initialize", HANDSHAKE)["error"]["code"] == -32022
    assert handshake.ask("tools/list", ENVELOPE)["error"]["code"] == INVALID_REQUEST


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_real_client_stores_and_finds(tmp_path, mode):
    async def conversation():
        server = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:], env=environment(tmp_path))
        async with Client(server, mode=mode) as client:
            tools = (await client.list_tools()).tools
            fact = {"content": "The harbour is called Vik.", "tags": ["harbour"]}
            await client.call_tool("remember", {"facts": [fact]})
            found = await client.call_tool("recall", {"question": "harbour"})
            prompt = await client.get_prompt("brief")
            read = await client.read_resource("memory://brief")
            known = await client.complete(PromptReference(name="remember"), {"name": "tag", "value": "har"})
            texts = [prompt.messages[0].content.text, read.contents[0].text, found.content[0].text]
            return [tool.name for tool in tools], found.structured_content, texts, known.completion.values

    names, found, texts, tags = anyio.run(conversation)

    assert names == ["remember", "recall", "recent", "brief", "settle", "revise", "forget", "undo"]
    assert [memory["text"] for memory in found["memories"]] == ["The harbour is called Vik."]
    assert all("The harbour is called Vik." in text for text in texts)
    assert tags == ["harbour"]


@pytest.mark.parametrize("calls", [20, 300], ids=["20", "300: more than are let wait"])
def test_calls_made_at_once_get_their_own_answers(start, calls):
    peer = start()
    peer.greet()
    numbers = range(1000, 1000 + calls)
    for number in numbers:
        peer.send("tools/call", {"name": "store_memory", "arguments": {"content": f"fact {number}"}}, id=number)

    replies = [peer.read() for _ in numbers]

    stored = {reply["id"]: reply["result"]["structuredContent"]["created"]["content"] for reply in replies}
    assert stored == {number: f"fact {number}" for number in numbers}


def test_strange_text_comes_back_as_it_was_whatever_the_locale(start):
    peer = start(LC_ALL="C", PYTHONIOENCODING="cp1252", PYTHONUTF8="0")
    peer.greet()

    for text in STRANGE:
        result = peer.call("store_memory", content=text)
        assert result["structuredContent"]["created"]["content"] == text
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]

    listed = peer.call("list_recent_memories", limit=50)["structuredContent"]["memories"]
    assert [memory["content"] for memory in reversed(listed)] == STRANGE


def test_a_space_of_its_own_is_not_seen_from_another_that_is_kept_to_its_own(start):
    secluded, other = start("--space", "garden"), start("--space=default", "--only")
    secluded.greet()
    other.greet()

    secluded.call("store_memory", content="Beans are planted in May.")

    assert len(secluded.call("list_recent_memories")["structuredContent"]["memories"]) == 1
    assert other.call("list_recent_memories")["structuredContent"]["memories"] == []


def test_nothing_but_the_protocol_is_on_stdout_though_libraries_print(start, tmp_path):
    """Here every import of the library prints, through Python and past it."""
    noise = tmp_path / "noise"
    noise.mkdir()
    (noise / "sitecustomize.py").write_text(NOISE, encoding="utf-8")
    peer = start(PYTHONPATH=os.pathsep.join([str(noise), os.environ.get("PYTHONPATH", "")]), PYTHONUNBUFFERED="1")
    peer.greet()

    assert not peer.call("list_recent_memories")["isError"]
    assert "error" in peer.ask("tools/call", {"name": "no_such_tool"})  # only this needs the protocol's library

    peer.close_input()
    assert peer.end() == 0
    assert b"printed by mcp" in peer.errors
    assert b"written by mcp" in peer.errors
    assert peer.received.get_nowait() is None


NOISE = """
import os, sys

class Loud:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("mcp", "apsw", "jsonschema_rs"):
            print("printed by", name)
            os.write(1, f"written by {name}\\n".encode())

sys.meta_path.insert(0, Loud())
"""


# --- how it ends -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("busy", [False, True], ids=["at once", "after a call"])
def test_the_end_of_input_ends_the_server(start, busy):
    peer = start()
    peer.greet()
    if busy:
        peer.call("list_recent_memories")

    peer.close_input()

    assert peer.end() == 0


def test_a_call_before_the_end_of_input_is_still_answered(start):
    """So that a line can be piped in by hand."""
    peer = start()
    peer.send("initialize", HANDSHAKE, id=1)
    peer.send("tools/call", {"name": "store_memory", "arguments": {"content": "Piped in."}}, id=2)
    peer.close_input()

    assert [peer.read()["id"], peer.read()["id"]] == [1, 2]
    assert peer.end() == 0


def test_half_a_line_at_the_end_is_answered_too(start):
    peer = start()
    peer.process.stdin.write(b'{"jsonrpc":"2.0","id":1,"meth')
    peer.close_input()

    assert peer.read()["error"]["code"] == -32700
    assert peer.end() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda number: number.name)
@pytest.mark.parametrize("when", ["loading", "serving"])
def test_a_signal_ends_the_server_without_a_word(start, number, when):
    peer = start()
    peer.greet()
    if when == "serving":
        peer.call("list_recent_memories")

    peer.process.send_signal(number)

    assert peer.end() == 0
    assert peer.errors == b""


IGNORING = """
import os, signal, sys

for name in sys.argv[1].split(","):
    signal.signal(getattr(signal, name), signal.SIG_IGN)
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""


@pytest.mark.parametrize("ignored", ["SIGINT", "SIGHUP,SIGINT", "SIGTERM,SIGINT,SIGHUP"])
def test_a_signal_that_the_parent_ignores_is_ignored_by_the_server(tmp_path, ignored):
    with subprocess.Popen(
        [sys.executable, "-c", IGNORING, ignored, *COMMAND[1:]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(tmp_path),
    ) as process:
        for turn in range(3):  # before it serves, and while it does
            write(process, "initialize" if turn == 0 else "tools/list", HANDSHAKE if turn == 0 else None)
            assert json.loads(process.stdout.readline())["id"] == 1
            for name in ignored.split(","):
                process.send_signal(getattr(signal, name))
        process.stdin.close()
        assert process.wait(timeout=60) == 0


SIGNALLED_WHILE_IMPORTING = """
import os, signal, sys

signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where a shell runs the tests in the background
module, number = sys.argv[2:]
del sys.argv[2:]

class Signal:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            os.kill(os.getpid(), int(number))

sys.meta_path.insert(0, Signal())
from scrubjay.__main__ import main
main()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda number: number.name)
@pytest.mark.parametrize("module", ["scrubjay.servers.stdio.front", "scrubjay.servers.stdio.frames"])
def test_a_signal_before_the_server_is_ready_ends_it_without_a_word(tmp_path, module, number):
    done = start_and_signal(tmp_path, "mcp", module, number)

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_an_interrupt_while_a_command_is_being_imported_shows_no_traceback(tmp_path):
    done = start_and_signal(tmp_path, "list", "click", signal.SIGINT)

    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


def start_and_signal(home, command, module, number):
    return subprocess.run(
        [sys.executable, "-c", SIGNALLED_WHILE_IMPORTING, command, module, str(int(number))],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=environment(home),
        timeout=60,
        check=False,
    )


def test_a_signal_ends_the_server_though_its_client_never_reads(tmp_path):
    """Its pipe is full, so every thread that wants to answer is stuck."""
    with bare_server(tmp_path) as process:
        write(process, "initialize", HANDSHAKE)
        for _ in range(40):
            write(process, "tools/list")
        assert process.stdout.read(1) == b"{"

        process.send_signal(signal.SIGTERM)

        assert process.wait(timeout=60) == 0


def test_a_client_that_stops_reading_ends_the_server_though_input_stays_open(tmp_path):
    with bare_server(tmp_path) as process:
        write(process, "initialize", HANDSHAKE)
        write(process, "tools/call", {"name": "list_recent_memories", "arguments": {}})
        process.stdout.readline()
        process.stdout.readline()

        process.stdout.close()
        write(process, "tools/call", {"name": "list_recent_memories", "arguments": {}})

        assert process.wait(timeout=60) == 0


def test_a_signal_just_before_waiting_for_input_ends_the_server(tmp_path):
    """Python runs a handler only between two steps of its own: this signal arrives after the last one before read()."""
    with subprocess.Popen(
        [sys.executable, "-c", SIGNALLED_BEFORE_READING],
        stdin=subprocess.PIPE,
        env=environment(tmp_path),
        start_new_session=True,
    ) as process:
        assert process.wait(timeout=60) == 0


SIGNALLED_BEFORE_READING = """
import os, signal
from functools import partial
from operator import call
from scrubjay.servers.stdio.front import Wire, run_stdio

steps = [partial(os.killpg, os.getpgrp(), signal.SIGTERM), partial(os.read, 0, 1)]
Wire.read = lambda self: list(map(call, steps)) and b""
run_stdio([], 0, 1)
"""


def test_a_dead_parent_ends_the_server_though_its_pipes_stay_open(tmp_path):
    """The pipes are held by somebody else, so there is no end of input: only the parent's death tells."""
    to_server, from_us = os.pipe()
    from_server, to_us = os.pipe()
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, *COMMAND],
        stdin=to_server,
        stdout=to_us,
        env=environment(tmp_path),
    )
    os.close(to_server)
    os.close(to_us)
    with os.fdopen(from_us, "wb", buffering=0) as writer, os.fdopen(from_server, "rb") as reader:
        writer.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HANDSHAKE}).encode())
        writer.write(b"\n")
        assert json.loads(reader.readline())["id"] == 1

        parent.kill()
        parent.wait()
        rest = reader.read()  # until the server, too, has let go of its end

        assert rest == b""


PARENT = "import subprocess, sys; subprocess.Popen(sys.argv[1:]).wait()"


def bare_server(home: Path) -> subprocess.Popen[bytes]:
    """A server that nobody reads from unless the test does."""
    return subprocess.Popen(
        COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment(home)
    )


def write(process: subprocess.Popen[bytes], method: str, params: dict | None = None) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
    process.stdin.write(json.dumps(message).encode() + b"\n")
    process.stdin.flush()


def memory_of(peer: Peer) -> int:
    """The most memory that the process ever held, in bytes."""
    status = Path(f"/proc/{peer.process.pid}/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) * 1024
