"""`scrubjay import`"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

import click

from scrubjay.cli.command import Command
from scrubjay.cli.output import announce_new_space, count_of, note, print_json
from scrubjay.cli.progress import progress
from scrubjay.cli.session import CommandSession
from scrubjay.engine.store.embedding import embed_query
from scrubjay.errors import Error, InvalidInput

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine
    from scrubjay.engine.transfer import Imported

LONGEST_LINE = 4 * 1024 * 1024  # bytes; more than the longest memory with all its fields, escaped
LOOKED_UP = 1_000
NOTHING = {"type": "scrubjay", "format": 1}  # a line without effect, so that line numbers match the file's
EACH = "import one object per line"
KINDS = (  # how the first line begins or reads, what the file looks like, and what to do
    (rb"SQLite format 3\0", "a SQLite database", "`scrubjay restore` takes a backup, `scrubjay copy` a whole store."),
    (rb"PK\x03\x04|\x1f\x8b|BZh|\xfd7zXZ|\x28\xb5\x2f\xfd", "a compressed file", "Unpack it first."),
    (rb"\[", "one JSON list", f"To {EACH}: jq -c '.[]' FILE | scrubjay import -"),
    (
        rb'\{.*"type": *"(entity|relation)".*\}$',
        "a knowledge graph of server-memory",
        "To import what it says of each: jq -c '.name as $name | .observations[]? | {content: \"\\($name): \\(.)\"}' "
        "FILE | scrubjay import -",
    ),
    (rb"\{(?!.*\}$)", "one JSON document over several lines", f"To {EACH}: jq -c . FILE | scrubjay import -"),
    (rb"(---|#+ .*|[-*] .*)$", "Markdown", "`scrubjay folders add NAME FOLDER` reads a folder of it."),
    (rb"[^,;\t]+([,;\t][^,;\t. ]+)+$", "a table", f'To {EACH}, write {{"content": "…"}} for every row.'),
    (rb"[^{\x00-\x08]*$", "plain text", "`scrubjay store - < FILE` keeps it as one memory."),
)


@click.command(
    "import",
    cls=Command,
    examples="""
    scrubjay import memories.jsonl
    scrubjay import memories.jsonl --space work
    scrubjay import memories.jsonl --embed later
    echo '{"content": "User likes tea", "tags": ["taste"]}' | scrubjay import -
    """,
)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option("--from-line", type=click.IntRange(1), default=1, metavar="N", help="Skip the lines before this one.")
@click.option(
    "--embed",
    type=click.Choice(["now", "later"]),
    default="now",
    help="Embed each text before it is stored, or leave that to a running server: many times faster.",
)
@click.pass_obj
def import_(session: CommandSession, file: str, from_line: int, embed: str) -> None:
    """Import JSON lines: an export, or your own list.

    Each line is an object with at least "content". A line is imported once, so an import can simply be repeated: what
    is already here by its id or, without an id, by its text (and time, if the line has one) is left unchanged.

    With --embed later, memories are found by words at once and by meaning once they are embedded. A running server
    does that in the background; without one, `scrubjay doctor --rebuild` does.
    """
    now = embed == "now"
    done = from_line - 1  # lines that are safely stored

    def advance(line: int) -> None:
        nonlocal done
        done = max(done, line)
        report(reader.bytes_read, None, done)

    try:
        with session.engine(meaning=now) as engine, open_lines(file) as stream, announce_new_space(engine, session):
            reader = Lines(stream, from_line)
            with progress(
                "Importing",
                shown=not session.as_json,
                total=reader.size,
                in_bytes=True,
                unit="lines",
                embedding=lambda: engine.parts.embedding.busy_seconds,
            ) as report:
                result = engine.transfer.import_from(reader.lines(), progress=advance)
            elsewhere = (
                sorted(engine.transfer.spaces_of(reader.ids) - {engine.spaces[0]}) if result.already_here else []
            )
            wanted = now and engine.parts.embedding.embedder is not None
            beyond = 1 < from_line > reader.number
            missing = why_without_vectors(engine) if wanted and result.without_vectors else ""
    except Error as error:
        look = "" if done or "line" not in error.details else describe_foreign(file)
        error.hint = resume_hint(done, f"{error.hint or ''} {look}".strip())
        raise
    except KeyboardInterrupt as interrupt:  # also while all that is imported waits for the store to be closed
        interrupt.add_note(resume_hint(done, None))
        raise
    if session.as_json:
        print_json(as_json(result, elsewhere) | ({"lines_in_file": reader.number} if beyond else {}))
        return
    click.echo(describe_import(result, elsewhere))
    if result.forgotten:
        stay = "was forgotten and stays" if result.forgotten == 1 else "were forgotten and stay"
        note(f"Of these, {result.forgotten:,} {stay} so: `scrubjay list --deleted`, `scrubjay undo ID`.", session)
    if beyond:
        note(f"The file has only {count_of(reader.number, 'line', 'lines')}.", session)
    if result.stored and not now:
        note(
            "Found by words now, and by meaning once a server, or `scrubjay doctor --rebuild`, has embedded them.",
            session,
        )
    elif missing:
        which = count_of(result.without_vectors, "memory has", "memories have")
        words = "it is" if result.without_vectors == 1 else "they are"
        note(f"{which} no vectors yet: {words} found by words only. {missing}", session)


def as_json(result: Imported, elsewhere: Sequence[str]) -> dict[str, Any]:
    return {
        "stored": result.stored,
        "already_here": result.already_here,
        **({"forgotten": result.forgotten} if result.forgotten else {}),
        **({"in_other_spaces": elsewhere} if elsewhere else {}),
        "links": result.links,
        "links_left_out": result.links_left_out,
        **({"without_vectors": result.without_vectors} if result.without_vectors else {}),
    }


def describe_import(result: Imported, elsewhere: Sequence[str]) -> str:
    where = f"in the space{'s' * (len(elsewhere) > 1)} {', '.join(elsewhere)}" if elsewhere else "there"
    already = f"; {count_of(result.already_here, 'was', 'were')} already {where}" if result.already_here else ""
    left_out = f"; {count_of(result.links_left_out, 'link', 'links')} skipped" if result.links_left_out else ""
    memories, links = count_of(result.stored, "memory", "memories"), count_of(result.links, "link", "links")
    return f"{memories} and {links} imported{already}{left_out}."


def why_without_vectors(engine: Engine) -> str:
    """What keeps the model from embedding, which it says when it is asked for something."""
    _, reason = embed_query(engine, "anything")
    return f"{reason or ''} Then a running server, or `scrubjay doctor --rebuild`, makes them.".strip()


def resume_hint(done: int, hint: str | None) -> str:
    resume = f"Lines 1 to {done:,} are imported; to resume, repeat the command with --from-line {done + 1}."
    place = resume if done else "Nothing was imported."
    return f"{hint} {place}" if hint else place


@contextmanager
def open_lines(file: str) -> Iterator[IO[bytes]]:
    if file == "-":
        yield sys.stdin.buffer
    else:
        with open(file, "rb") as stream:
            yield stream


class Lines:
    """The objects of a stream, one per line, and the position in it."""

    def __init__(self, stream: IO[bytes], from_line: int) -> None:
        self.bytes_read = 0
        self.number = 0  # of the last line that was read
        self.ids: list[str] = []  # the first ones, to say where they were already
        self._stream = stream
        self._from_line = from_line

    @property
    def size(self) -> int | None:
        try:
            return os.fstat(self._stream.fileno()).st_size or None
        except OSError:
            return None

    def lines(self) -> Iterator[Mapping[str, Any]]:
        """:raises InvalidInput: naming the first line that is not JSON"""
        while line := self._stream.readline(LONGEST_LINE + 1):
            self.number = number = self.number + 1
            self.bytes_read += len(line)
            if len(line) > LONGEST_LINE:
                raise InvalidInput(f"Line {number} is longer than any memory can be.", line=number)
            given = parse_line(line, number) if line.strip() and number >= self._from_line else NOTHING
            known = given.get("id") if isinstance(given, dict) and len(self.ids) < LOOKED_UP else None
            self.ids += [known] if isinstance(known, str) else []
            yield given


def parse_line(line: bytes, number: int) -> Mapping[str, Any]:
    try:
        value: Mapping[str, Any] = json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise InvalidInput(f"Line {number} is not UTF-8.", line=number) from None
    except (ValueError, RecursionError):
        raise InvalidInput(
            f"Line {number} is not JSON.", hint="Each line must be a JSON object.", line=number
        ) from None
    return value


def describe_foreign(file: str) -> str:
    """Two sentences about a file; empty if nothing is known of it, or if it cannot be read twice."""
    if not os.path.isfile(file):
        return ""
    with open(file, "rb") as stream:
        line = stream.read(65_536).removeprefix(b"\xef\xbb\xbf").lstrip().partition(b"\n")[0].rstrip()
    for pattern, kind, do in KINDS:
        if re.match(pattern, line):
            return f"It looks like {kind}. {do}"
    try:
        texts = {name: text for name, text in json.loads(line).items() if isinstance(text, str) and name.isidentifier()}
    except (ValueError, AttributeError, RecursionError):
        return ""
    if not texts or "content" in texts or texts.get("type") in ("memory", "link", "scrubjay"):
        return ""
    longest = max(texts, key=lambda name: (name in ("text", "memory"), len(texts[name])))
    return (
        f"It looks like another program's list. If {longest} is its text: jq -c '{{content: .{longest}}}' FILE | "
        "scrubjay import -"
    )
