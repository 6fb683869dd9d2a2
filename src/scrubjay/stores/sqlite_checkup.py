"""What `doctor` asks: is the file whole, and does every memory have its words and vectors?"""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw

from scrubjay.stores import sqlite_file
from scrubjay.stores.base import Checkup
from scrubjay.stores.sqlite_rows import COLUMNS, FIELDS, TABLES, content_hash, memory_of
from scrubjay.stores.sqlite_words import found_by, scope_token
from scrubjay.stores.words import indexed

UNREADABLE = "The file cannot be read to its end."


def check(con: apsw.Connection, path: Path, *, deep: bool, damaged: bool) -> Checkup:
    problems = list(dict.fromkeys(_problems(con, path, deep=deep, damaged=damaged)))
    wrong: tuple[str, ...] = ()
    try:
        memories = _count(con, "SELECT count(*) FROM memories WHERE state < 4")
        with_words = _count(
            con, "SELECT count(*) FROM memories WHERE state < 4 AND seq IN (SELECT id FROM words_docsize)"
        )
        with_vectors = _count(
            con,
            """
            SELECT count(*)
            FROM memories
            WHERE state < 4
            AND parts > 0
            AND parts = (SELECT count(*) FROM vectors WHERE vectors.memory = memories.seq)
            """,
        )
        pending = _count(
            con, "SELECT count(*) FROM pending JOIN memories ON memories.seq = pending.memory WHERE state < 3"
        )
        wrong = tuple(_wrong_hashes(con)) if deep else ()
    except apsw.CorruptError:
        problems.append(UNREADABLE)
        memories = with_words = with_vectors = pending = 0
    return Checkup(
        problems=tuple(problems),
        memories=memories,
        with_words=with_words,
        with_vectors=with_vectors,
        pending=pending,
        wrong_hashes=wrong,
        bytes_on_disk=sqlite_file.bytes_on_disk(path),
        schema=int(con.pragma("user_version")),
        facts={
            "sqlite": apsw.sqlite_lib_version(),
            "journal": str(con.pragma("journal_mode")),
            "permissions": sqlite_file.permissions(path),
        },
    )


def rebuild(con: apsw.Connection) -> None:
    """Make the words anew, and let memories without all their vectors wait for them."""
    [(definition,)] = con.execute("SELECT sql FROM sqlite_schema WHERE name = 'words'")
    con.execute("DROP TABLE words")  # what is damaged cannot be deleted row by row
    con.execute(definition)
    con.execute("INSERT INTO words (words, rank) VALUES ('secure-delete', 1)")
    for row in con.execute(f"SELECT {COLUMNS}, memories.space FROM {TABLES} WHERE memories.state < 4"):
        memory = memory_of(row[: len(FIELDS)])
        con.execute(
            "INSERT INTO words (rowid, text, scope) VALUES (?, ?, ?)",
            (memory.seq, indexed(found_by(memory)), scope_token(row[-1])),
        )
    con.execute(
        # The first part without a vector is where embedding goes on.
        """
        INSERT INTO pending (memory, next_part, judged)
        SELECT seq, (SELECT count(*) FROM vectors WHERE vectors.memory = memories.seq) AS done, 1
        FROM memories
        WHERE state < 4
        AND done < max(parts, 1)
        ON CONFLICT (memory) DO NOTHING
        """
    )


def _problems(con: apsw.Connection, path: Path, *, deep: bool, damaged: bool) -> Iterator[str]:
    if damaged:
        yield "The file was found damaged when it was opened."
    try:
        # Both also check the full-text index against its own text.
        for (line,) in con.execute("PRAGMA integrity_check(20)" if deep else "PRAGMA quick_check(20)"):
            if line != "ok":
                yield str(line)
    except apsw.CorruptError:
        yield UNREADABLE
    if sqlite_file.others_may_read(path):
        yield "Other users of this machine may read the file."


def _wrong_hashes(con: apsw.Connection) -> Iterator[str]:
    rows = con.execute(f"SELECT {COLUMNS}, memories.content_hash FROM {TABLES} WHERE memories.state < 4")
    for row in rows:
        memory = memory_of(row[: len(FIELDS)])
        if content_hash(memory) != row[-1]:
            yield memory.id


def _count(con: apsw.Connection, sql: str, values: tuple[Any, ...] = ()) -> int:
    [(count,)] = con.execute(sql, values)
    return int(count)
