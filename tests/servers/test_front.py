"""The parts of the fast start: its command line, and its end of the pipes."""

from __future__ import annotations

import json
import os
import threading

import pytest

from scrubjay.servers.stdio.frames import MAX_LINE, BadFrame
from scrubjay.servers.stdio.front import Front, Wire
from scrubjay.servers.stdio.options import UsageError, parse
from tests.servers.peer import HANDSHAKE

pytestmark = pytest.mark.process


@pytest.fixture
def pipes():
    """A wire, what its client writes to, and what its client reads from."""
    incoming, client_writes = os.pipe()
    client_reads, outgoing = os.pipe()
    with os.fdopen(client_writes, "wb") as writer, os.fdopen(client_reads, "rb") as reader:
        wire = Wire(incoming, outgoing)
        yield wire, writer, reader
        wire._reader.close()
        os.close(outgoing)


@pytest.mark.parametrize(
    "arguments", [["--space"], ["--space", "--extras"], ["--home="], ["--extras=yes"], ["--verbose"], ["memento"]]
)
def test_what_is_not_understood_is_refused(arguments):
    with pytest.raises(UsageError):
        parse(arguments)


def test_the_last_word_counts_and_dialects_add_up():
    options = parse(["--space", "a", "--space=b", "--dialect", "memento", "--dialect=small", "--dialect", "memento"])

    assert options.space == "b"
    assert options.dialects == ["memento", "small"]


def test_without_a_word_the_tools_for_agents_are_served():
    options = parse([])

    assert (options.dialects, options.space, options.home, options.extras) == (["scrubjay"], None, None, False)


def test_the_line_behind_one_that_was_too_long_is_read_as_usual(pipes):
    wire, writer, _ = pipes

    def write():
        writer.write(b'{"id":5,"x":"' + b"x" * (2 * MAX_LINE) + b'"}\nnext\n')
        writer.close()

    threading.Thread(target=write).start()

    refused = wire.read()
    assert isinstance(refused, BadFrame)
    assert refused.id == 5
    assert wire.read() == b"next\n"
    assert wire.read() == b""


def test_a_line_of_exactly_the_limit_is_read(pipes):
    wire, writer, _ = pipes
    line = b"x" * MAX_LINE + b"\n"

    threading.Thread(target=lambda: (writer.write(line), writer.close())).start()

    assert wire.read() == line


def test_a_wire_knows_whether_somebody_reads(pipes):
    wire, _, reader = pipes
    assert wire.is_read()

    reader.close()

    assert not wire.is_read()
    with pytest.raises(BrokenPipeError):
        wire.send(b"anybody?\n")


def test_lines_of_several_threads_do_not_mix(pipes):
    wire, _, reader = pipes
    lines = [bytes([65 + number]) * 100_000 + b"\n" for number in range(8)]

    threads = [threading.Thread(target=wire.send, args=(line,)) for line in lines]
    for thread in threads:
        thread.start()

    assert sorted(reader.readline() for _ in lines) == lines
    for thread in threads:
        thread.join()


# --- which requests wait for their answers ---------------------------------------------------------------------------


@pytest.fixture
def front(pipes):
    """A front whose lines the test hands in itself, and behind which nobody answers."""
    wire, _, _ = pipes
    front = Front(parse([]), wire)
    yield front
    os.close(front._bell)
    os.close(front._rope)


def take(front, **message):
    front._take(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def passed_on(front):
    return [front._inbox.get() for _ in range(front._inbox.qsize())]


@pytest.mark.parametrize(
    ("running", "cancelled", "meant"),
    [
        ([30001], 30001, 30001),
        ([30001], "30001", 30001),
        (["30001"], 30001, "30001"),
        ([-5], "-5", -5),
        ([2, "2"], 2, 2),
        ([2, "2"], "2", "2"),
        (["2", 2], 2, 2),
        ([2, 2], 2, 2),
    ],
)
def test_a_call_that_is_taken_back_is_not_waited_for(front, running, cancelled, meant):
    for id in running:
        take(front, id=id, method="tools/call", params={"name": "recent"})
    take(front, method="notifications/cancelled", params={"requestId": cancelled, "reason": "late"})

    assert passed_on(front)[len(running) :] == [
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": meant, "reason": "late"}}
    ]
    kept = list(running)
    kept.remove(meant)
    assert list(front._unanswered) == kept


@pytest.mark.parametrize("cancelled", ["007", "1_0", " 7 ", "+7", 7.0, True, 8, "9" * 5000, None, [7], {"7": 7}])
def test_taking_back_what_does_not_run_takes_nothing_back(front, cancelled):
    for id in (7, 10, 1):
        take(front, id=id, method="tools/call", params={"name": "recent"})
    passed_on(front)
    take(front, method="notifications/cancelled", params={"requestId": cancelled})
    take(front, method="notifications/cancelled")

    assert set(front._unanswered) == {7, 10, 1}
    assert passed_on(front) == []


def test_two_requests_of_one_id_wait_for_two_answers(front, pipes):
    _, _, reader = pipes
    for _ in range(2):
        take(front, id=2, method="tools/call", params={"name": "recent"})

    front._deliver(2, b"first\n")
    assert list(front._unanswered) == [2]
    front._deliver(2, b"second\n")
    front._deliver(2, b"one too many\n")

    assert not front._unanswered
    assert [reader.readline() for _ in range(2)] == [b"first\n", b"second\n"]


def test_no_request_of_a_client_is_taken_for_the_one_that_is_replayed(front, pipes):
    _, _, reader = pipes
    take(front, id=1, method="initialize", params=HANDSHAKE)
    reader.readline()
    [replayed] = passed_on(front)
    take(front, id=replayed["id"], method="initialize")

    assert passed_on(front) == []
    assert "error" in json.loads(reader.readline())
