"""What is derived is rebuilt here: words, the index of vectors; and the file gives its free space back."""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from scrubjay.stores.sqlite import file as sqlite_file
from scrubjay.stores.sqlite.sql import COLUMNS, TABLES
from scrubjay.stores.sqlite.vectors import vec1
from scrubjay.stores.sqlite.words import count_all_passages
from scrubjay.stores.tables.rows import FIELDS, memory_of

if TYPE_CHECKING:
    from scrubjay.stores.sqlite.transaction import SqliteTransaction

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
