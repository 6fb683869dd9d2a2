"""What `doctor` asks: has every memory its words and vectors, do texts still fit their hashes? Writes nothing.

Whether pages are whole is the server's business: it keeps checksums, and `pg_amcheck` looks into indexes.
"""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

from collections.abc import Iterator

from scrubjay.stores.postgres import schema as postgres_schema
from scrubjay.stores.postgres import signatures as postgres_signatures
from scrubjay.stores.postgres import words as postgres_words
from scrubjay.stores.postgres.connections import Connection
from scrubjay.stores.postgres.rows import COLUMNS, FIELDS, memory_of
from scrubjay.stores.promises.memories import Checkup
from scrubjay.stores.tables.rows import content_hash


def check(con: Connection, schema: str, *, deep: bool) -> Checkup:
    [(memories, with_words, with_vectors, pending, size, vector, journal)] = con.execute(
        """
        SELECT
            (SELECT count(*) FROM memories WHERE state < 4),
            (
                SELECT count(*)
                FROM memories
                WHERE state < 4
                AND EXISTS (SELECT 1 FROM words WHERE words.space = memories.space AND words.memory = memories.seq)
            ),
            (
                SELECT count(*)
                FROM memories
                WHERE state < 4
                AND (parts > 0 OR packed_bytes IS NOT NULL)  -- archived memories need none
                AND parts = (
                    SELECT count(*)
                    FROM vectors
                    WHERE vectors.space = memories.space AND vectors.memory = memories.seq
                )
            ),
            (
                SELECT count(*)
                FROM pending
                JOIN memories ON memories.space = pending.space AND memories.seq = pending.memory
                WHERE memories.state < 3
            ),
            (
                SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::BIGINT
                FROM pg_class
                WHERE relnamespace = %s::REGNAMESPACE AND relkind = 'r'
            ),
            (SELECT extversion FROM pg_extension WHERE extname = 'vector'),
            current_setting('synchronous_commit')
        """,
        (schema,),
    )
    return Checkup(
        problems=tuple(_problems(con, deep=deep)),
        memories=memories,
        with_words=with_words,
        with_vectors=with_vectors,
        pending=pending,
        wrong_hashes=tuple(_wrong_hashes(con)) if deep else (),
        bytes_on_disk=size,
        schema=postgres_schema.version(con),
        facts={
            "postgresql": ".".join(map(str, divmod(con.info.server_version, 10_000))),
            "pgvector": vector,
            "synchronous_commit": journal,
        },
    )


def _problems(con: Connection, *, deep: bool) -> Iterator[str]:
    [(fsync, invalid)] = con.execute(
        """
        SELECT
            current_setting('fsync'),
            (
                SELECT string_agg(indexrelid::REGCLASS::TEXT, ', ')
                FROM pg_index
                JOIN pg_class ON pg_class.oid = pg_index.indrelid
                WHERE NOT pg_index.indisvalid
                AND pg_class.relnamespace = to_regnamespace(current_schema())
            )
        """
    )
    if fsync == "off":
        yield "The server runs with fsync = off: a power cut may damage it."
    if invalid:
        yield f"Unfinished indexes: {invalid}."
    if deep:
        [(counted, there)] = con.execute(
            """
            SELECT
                (SELECT coalesce(sum(memories), 0)::BIGINT FROM totals WHERE part = ''),
                (SELECT count(*) FROM memories)
            """
        )
        if counted != there:
            yield f"The totals count {counted} memories where there are {there}."
        if wrong := postgres_words.wrong(con):
            yield f"Words of {wrong} passages belong to another state of their memory: some searches may not find them."
        if wrong := postgres_signatures.wrong(con):
            yield f"Signatures of {wrong} vectors are missing or wrong: some searches may not find them."


def _wrong_hashes(con: Connection) -> Iterator[str]:
    with con.transaction(), con.cursor(name="hashes") as rows:
        rows.execute(f"SELECT {COLUMNS}, memories.content_hash FROM memories WHERE memories.state < 4")
        for row in rows:
            memory = memory_of(row[: len(FIELDS)])
            if row[-1] is not None and content_hash(memory) != row[-1]:
                yield memory.id
    packed = con.execute(
        """
        SELECT memories.id
        FROM archives
        JOIN memories ON memories.space = archives.space AND memories.seq = archives.memory
        WHERE archives.checksum <> sha256(archives.packed)
        """
    )
    for (memory_id,) in packed:
        yield memory_id
