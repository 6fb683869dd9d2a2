"""The words of archived memories, as they are copied: their text is not in the file, only its stems are.

They are read out of the index itself. Written they are on a connection whose tokenizer takes them as they stand: a stem
of a stem may be another.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import apsw

from scrubjay.errors import StorageDamaged
from scrubjay.stores.copying import Row, stems_as_text, stems_of_text
from scrubjay.stores.sqlite import file as sqlite_file
from scrubjay.stores.sqlite.connections import Connections
from scrubjay.stores.sqlite.errors import translated_errors
from scrubjay.stores.sqlite.filters import space_number
from scrubjay.stores.sqlite.words import count_passages, scope_token
from scrubjay.stores.words.words import MAX_PASSAGES

BUSY_SECONDS = 10.0


def count(connections: Connections) -> int:
    with _instances(connections) as con:
        [(passages,)] = con.execute("SELECT count(DISTINCT doc) FROM temp.instances WHERE col = 'text'")
        return int(passages)


def rows(connections: Connections, after: int) -> Iterator[tuple[list[Any], Row]]:
    """Passages behind a row of the index, each with its space, memory, place, length and stems."""
    with _instances(connections) as con:
        found = con.execute(
            """
            SELECT doc, spaces.name, memories.seq, sum(often), json_group_object(term, often)
            FROM (
                SELECT doc, term, count(*) AS often
                FROM temp.instances
                WHERE col = 'text' AND doc > ?
                GROUP BY doc, term
            )
            CROSS JOIN memories ON memories.seq = doc / 256
            CROSS JOIN spaces ON spaces.number = memories.space
            GROUP BY doc
            ORDER BY doc
            """,
            (after,),
        )
        for row, space, memory, length, stems in found:
            yield [row], (space, memory, row % MAX_PASSAGES, length, stems_as_text(json.loads(stems)))


def take_in(connections: Connections, passages: Sequence[Row], progress: str) -> None:
    with (
        connections._lock.held(BUSY_SECONDS),
        translated_errors(),
        closing(sqlite_file.connect(connections.path)) as con,
    ):
        con.register_fts5_tokenizer("porter", _AsTheyStand)
        con.execute("BEGIN IMMEDIATE")
        con.executemany(
            "INSERT INTO archived_words (rowid, text, scope) VALUES (?, ?, ?)",
            [
                (memory * MAX_PASSAGES + place, " ".join(stems_of_text(stems, length).elements()), _scope(con, space))
                for space, memory, place, length, stems in passages
            ],
        )
        for memory in {row[1] for row in passages}:
            count_passages(con, memory)
        con.execute(
            """
            INSERT INTO facts (key, value) VALUES ('copy', ?)
            ON CONFLICT (key) DO UPDATE SET value = excluded.value
            """,
            (progress,),
        )
        con.execute("COMMIT")


@contextmanager
def _instances(connections: Connections) -> Iterator[apsw.Connection]:
    """A connection that shows every place of every stem."""
    with connections.fresh() as con:
        con.pragma("query_only", "OFF")
        con.execute("CREATE VIRTUAL TABLE temp.instances USING fts5vocab (main, archived_words, instance)")
        con.pragma("query_only", "ON")
        yield con


def _scope(con: apsw.Connection, name: str) -> str:
    number = space_number(con, name)
    if number is None:
        raise StorageDamaged(f"The copy has no space {name!r}.", hint="Copy into a new store again.")
    return scope_token(number)


class _AsTheyStand:
    """A tokenizer: words separated by spaces, none of them changed."""

    def __init__(self, _con: apsw.Connection, _arguments: list[str]) -> None:
        pass

    def __call__(self, text: bytes, _reason: int, _locale: str | None) -> Iterable[str]:
        return text.decode().split(" ")
