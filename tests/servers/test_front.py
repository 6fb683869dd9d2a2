"""The parts of the fast start: its command line, and its end of the pipes."""

from __future__ import annotations

import os
import threading

import pytest

from scrubjay.servers.stdio.frames import MAX_LINE, BadFrame
from scrubjay.servers.stdio.front import Wire
from scrubjay.servers.stdio.options import UsageError, parse


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
