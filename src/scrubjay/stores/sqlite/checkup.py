"""What `doctor` asks, and writes nothing: is the file whole, and does every memory have its words and vectors? And what
is rebuilt where it is not."""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw

from scrubjay.stores.promises.memories import ONLY_TO_JUDGE, Checkup
from scrubjay.stores.sqlite import file as sqlite_file
from scrubjay.stores.sqlite import vec1
from scrubjay.stores.sqlite.sql import COLUMNS, TABLES, snapshot
from scrubjay.stores.sqlite.words import count_all_passages
from scrubjay.stores.tables.rows import FIELDS, content_hash, memory_of

if TYPE_CHECKING:
    from scrubjay.stores.sqlite.transaction import SqliteTransaction

UNREADABLE_ERRORS = (apsw.CorruptError, apsw.NotADBError, apsw.IOError)
UNREADABLE = "The file cannot be read completely."
READABLE = "Other users of this machine can read the file."
BEHIND = "The last changes are missing: its -wal file was deleted, or the file was replaced by an older copy."
WORDS = "The word index is damaged; texts and everything else are intact."
INDEX = "The vector index is damaged; searches compare exactly until it is rebuilt."


def check(con: apsw.Connection, path: Path, *, deep: bool, damaged: bool, behind: bool = False) -> Checkup:
    problems = list(dict.fromkeys(_problems(con, path, deep=deep, damaged=damaged)))
    if behind:
        problems.append(BEHIND)
    with snapshot(con):  # others may write or drop it meanwhile
        index = _index(con)
    if index.get("vector index") == "damaged":
        problems.append(INDEX)
    try:
        with snapshot(con):
            counts = _counts(con, deep=deep)
    except UNREADABLE_ERRORS:
        problems.append(UNREADABLE)
        counts = {"memories": 0, "with_words": 0, "with_vectors": 0, "pending": 0}
    return Checkup(
        problems=tuple(problems),
        **counts,
        bytes_on_disk=sqlite_file.bytes_on_disk(path),
        schema=int(con.pragma("user_version")),
        facts={
            "sqlite": apsw.sqlite_lib_version(),
            "journal": str(con.pragma("journal_mode")),
            "permissions": sqlite_file.permissions(path),
            **index,
        },
    )


def _counts(con: apsw.Connection, *, deep: bool) -> dict[str, Any]:
    """What is counted, all of it at one moment."""
    from scrubjay.stores.sqlite.vectors import unusable  # numpy is not for a search by words

    of_vectors = unusable(con)
    return {
        "memories": _count(con, "SELECT count(*) FROM memories WHERE state < 4"),
        "with_words": _count(
            con,
            """
            SELECT count(*)
            FROM memories
            WHERE state < 4
            AND seq IN (SELECT id / 256 FROM words_docsize UNION ALL SELECT id / 256 FROM archived_words_docsize)
            """,
        ),
        "with_vectors": _count(
            con,
            """
            SELECT count(*)
            FROM memories
            WHERE state < 4
            AND (
                (state = 3 AND seq IN (SELECT memory FROM pending))  -- forgotten ones wait until they come back
                OR (
                    (parts > 0 OR seq IN (SELECT memory FROM archives))  -- archived memories need none
                    AND parts = (SELECT count(*) FROM vectors WHERE memory = memories.seq AND model = '')
                    AND seq NOT IN (SELECT value FROM json_each(?))
                )
            )
            """,
            (json.dumps(list(of_vectors.get("", ()))),),
        ),
        "pending": _count(
            con,
            "SELECT count(*) FROM pending JOIN memories ON memories.seq = pending.memory WHERE state < 3 "
            f"AND next_part < {ONLY_TO_JUDGE}",
        ),
        "unusable_vectors": len(set().union(*of_vectors.values())),
        "wrong_hashes": tuple(_wrong_hashes(con)) if deep else (),
    }


def _index(con: apsw.Connection) -> dict[str, str]:
    """The state of the index of vectors, if there is one.

    Looked at by itself, after the file: whoever has the extension loaded cannot check the file if the index is damaged.
    """
    try:
        tables = vec1.tables(con, "filling", "ready", "retired")
    except (apsw.SQLError, *UNREADABLE_ERRORS):  # an older schema, or damage that others report
        return {}
    if not tables:
        return {}
    if not vec1.able(con):
        return {"vector index": "not usable here"}
    try:
        sound = all(vec1.complete(con, table) for table in tables if table.state != "retired")
    except vec1.BROKEN:
        return {"vector index": "damaged"}
    return {"vector index": tables[-1].state if sound else "damaged"}


def _problems(con: apsw.Connection, path: Path, *, deep: bool, damaged: bool) -> Iterator[str]:
    if damaged:
        yield "The file was found damaged when it was opened."
    try:
        # Both also check the full-text index against its own text.
        for (line,) in con.execute("PRAGMA integrity_check(20)" if deep else "PRAGMA quick_check(20)"):
            if line != "ok":
                yield WORDS if str(line).startswith("fts5:") else str(line)
        if con.execute("SELECT 1 FROM facts WHERE key = 'copy'").fetchone() is not None:
            yield "It is an unfinished copy."
    except UNREADABLE_ERRORS:
        yield UNREADABLE
    if sqlite_file.others_may_read(path):
        yield READABLE


def _wrong_hashes(con: apsw.Connection) -> Iterator[str]:
    rows = con.execute(f"SELECT {COLUMNS}, memories.content_hash FROM {TABLES} WHERE memories.state < 4")
    for row in rows:
        memory = memory_of(row[: len(FIELDS)])
        if row[-1] is not None and content_hash(memory) != row[-1]:
            yield memory.id
    packed = con.execute(
        """
        SELECT memories.id, archives.checksum, archives.packed
        FROM archives
        JOIN memories ON memories.seq = archives.memory
        WHERE archives.packed IS NOT NULL
        """
    )
    for name, checksum, data in packed:
        if sha256(data).digest() != checksum:
            yield name


def _count(con: apsw.Connection, sql: str, values: tuple[Any, ...] = ()) -> int:
    [(count,)] = con.execute(sql, values)
    return int(count)


# What is derived is rebuilt: words, the index of vectors; and the file gives its free space back.


HAS_TEXT = "memories.state < 4 AND memories.seq NOT IN (SELECT memory FROM archives)"
TOLD_EACH = 100  # memories that are made searchable again


def rebuild(tx: SqliteTransaction, progress: Callable[[int, int], None] | None) -> None:
    tx.drop_unusable_vectors()
    [(definition,)] = tx._con.execute("SELECT sql FROM sqlite_schema WHERE name = 'words'")
    tx._con.execute("DROP TABLE words")  # what is damaged cannot be deleted row by row
    tx._con.execute(definition)
    tx._con.execute("INSERT INTO words (words, rank) VALUES ('secure-delete', 1)")
    rows = tx._con.execute(
        # Archived memories have their words elsewhere, and no text here to make them from.
        f"""
        SELECT {COLUMNS}, memories.space
        FROM {TABLES}
        WHERE {HAS_TEXT}
        """
    )
    total = _count_texts(tx) if progress else 0
    for done, row in enumerate(rows, 1):
        memory = memory_of(row[: len(FIELDS)])
        tx._write_words(memory.seq, memory, row[-1])
        if progress and (done % TOLD_EACH == 0 or done == total):
            progress(done, total)
    tx._con.execute(
        # The first part without a vector is where embedding goes on; what had all its vectors was judged.
        """
        INSERT INTO pending (memory, next_part, judged)
        SELECT seq, (SELECT count(*) FROM vectors WHERE memory = memories.seq AND model = '') AS done, 1
        FROM memories
        WHERE state < 4
        AND seq NOT IN (SELECT memory FROM archives)
        AND done < max(parts, 1)
        ON CONFLICT (memory) DO NOTHING
        """
    )
    count_all_passages(tx._con)
    vec1.retire_all(tx._con)


def _count_texts(tx: SqliteTransaction) -> int:
    [(count,)] = tx._con.execute(f"SELECT count(*) FROM memories WHERE {HAS_TEXT}")
    return int(count)


def tend(tx: SqliteTransaction, plan: vec1.Plan | None, model: bytes | None) -> bool:
    """One step towards the index that there should be, or towards a file without much free space; False if nothing
    more can be done here."""
    return _tend_index(tx, plan, model) or _give_back_space(tx)


def _tend_index(tx: SqliteTransaction, plan: vec1.Plan | None, model: bytes | None) -> bool:
    if not vec1.able(tx._con):
        return False
    for table in vec1.tables(tx._con, "retired")[:1]:
        vec1.empty(tx._con, table)
        return True
    for table in vec1.tables(tx._con, "filling")[:1]:
        vec1.fill(tx._con, table)
        return True
    if plan is not None and model is not None:
        vec1.begin(tx._con, plan, model)
        return True
    return False


def _give_back_space(tx: SqliteTransaction) -> bool:
    much = sqlite_file.much_is_free(tx._con)
    sqlite_file.give_back_space(tx._con)
    return much
