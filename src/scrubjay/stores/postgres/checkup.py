"""What `doctor` asks: has every memory its words and vectors, do texts still fit their hashes? Writes nothing.

Whether pages are whole is the server's business: it keeps checksums, and `pg_amcheck` looks into indexes.
"""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from scrubjay.stores.postgres import schema as postgres_schema
from scrubjay.stores.postgres import signatures as postgres_signatures
from scrubjay.stores.postgres import vectors as postgres_vectors
from scrubjay.stores.postgres import words as postgres_words
from scrubjay.stores.postgres.connections import Connection
from scrubjay.stores.postgres.sql import COLUMNS
from scrubjay.stores.postgres.words import passages_of, stems_of
from scrubjay.stores.promises.memories import Checkup
from scrubjay.stores.tables.rows import FIELDS, content_hash, memory_of

if TYPE_CHECKING:
    from scrubjay.stores.postgres.transaction import PostgresTransaction


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
                AND (
                    (  -- forgotten ones wait until they come back
                        state = 3
                        AND EXISTS (
                            SELECT 1
                            FROM pending
                            WHERE pending.space = memories.space AND pending.memory = memories.seq
                        )
                    )
                    OR (
                        (parts > 0 OR packed_bytes IS NOT NULL)  -- archived memories need none
                        AND parts = (
                            SELECT count(*)
                            FROM vectors
                            WHERE vectors.space = memories.space AND vectors.memory = memories.seq
                            AND vectors.model = ''
                        )
                    )
                )
            ),
            (
                SELECT count(*)
                FROM pending
                JOIN memories ON memories.space = pending.space AND memories.seq = pending.memory
                WHERE memories.state < 3 AND pending.next_part < 2147483647
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
    nodes, spread = _nodes(con, schema)
    return Checkup(
        problems=tuple(_problems(con, deep=deep)),
        memories=memories,
        with_words=with_words,
        with_vectors=with_vectors,
        pending=pending,
        wrong_hashes=tuple(_wrong_hashes(con)) if deep else (),
        bytes_on_disk=spread or size,
        schema=postgres_schema.version(con),
        facts={
            "postgresql": ".".join(map(str, divmod(con.info.server_version, 10_000))),
            "pgvector": vector,
            "synchronous_commit": journal,
            **({"on node": nodes} if nodes else {}),
        },
    )


def _nodes(con: Connection, schema: str) -> tuple[str | None, int]:
    """Where Citus keeps the store, and how large it is there; none in a database without Citus."""
    if con.execute("SELECT to_regclass('citus_shards')").fetchone() == (None,):
        return None, 0
    [(nodes, size)] = con.execute(
        """
        SELECT string_agg(DISTINCT nodename || ':' || nodeport, ', '), coalesce(sum(shard_size), 0)::BIGINT
        FROM citus_shards
        WHERE table_name IN (SELECT oid FROM pg_class WHERE relnamespace = to_regnamespace(%s))
        """,
        (schema,),
    )
    return nodes, size


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


# What follows from memories rebuilt: words, signatures, sizes; and vectors given up for another model's.


REBUILT_AT_ONCE = 500


def drop_vectors(tx: PostgresTransaction, *, after: int = 0, limit: int | None = None) -> int | None:
    tx.write_deferred()
    postgres_vectors.drop_indexes(tx._con)
    [(last,)] = tx._con.execute(
        "SELECT max(seq) FROM (SELECT seq FROM memories WHERE seq > %s ORDER BY seq LIMIT %s) AS some_of_them",
        (after, limit),
    )
    if last is None:
        return None
    those = "memory > %s AND memory <= %s"
    tx._con.execute(f"DELETE FROM vectors WHERE {those} AND model = ''", (after, last))
    tx._con.execute(f"DELETE FROM signatures WHERE {those}", (after, last))
    tx._con.execute(f"UPDATE pending SET next_part = 0, attempts = 0 WHERE {those}", (after, last))
    tx._con.execute(
        # What does not wait has been judged already.
        """
        INSERT INTO pending (space, memory, next_part, judged)
        SELECT space, seq, 0, TRUE
        FROM memories
        WHERE state < 4
        AND packed_bytes IS NULL
        AND seq > %s
        AND seq <= %s
        ON CONFLICT (space, memory) DO NOTHING
        """,
        (after, last),
    )
    tx._con.execute(
        # Archived memories get new vectors when they are restored.
        "UPDATE memories SET parts = 0 WHERE seq > %s AND seq <= %s AND packed_bytes IS NOT NULL",
        (after, last),
    )
    tx._con.execute("UPDATE memories SET vector_bytes = 0 WHERE seq > %s AND seq <= %s", (after, last))
    return int(last)


def rebuild(tx: PostgresTransaction, progress: Callable[[int, int], None] | None) -> None:
    tx.write_deferred()
    postgres_vectors.drop_indexes(tx._con)
    _rebuild_words(tx, progress)
    postgres_signatures.sign_all(tx._con)
    measure_vectors(tx)
    tx._con.execute(
        # The first part without a vector is where embedding goes on; what had all its vectors was judged.
        """
        INSERT INTO pending (space, memory, next_part, judged)
        SELECT memories.space, memories.seq, count(vectors.memory), TRUE
        FROM memories
        LEFT JOIN vectors
        ON vectors.space = memories.space AND vectors.memory = memories.seq AND vectors.model = ''
        WHERE memories.state < 4
        AND memories.packed_bytes IS NULL
        GROUP BY memories.space, memories.seq
        HAVING count(vectors.memory) < greatest(memories.parts, 1)
        ON CONFLICT (space, memory) DO NOTHING
        """
    )


def measure_vectors(tx: PostgresTransaction) -> None:
    """Write beside each memory how many bytes its vectors take."""
    tx.write_deferred()
    tx._con.execute(
        """
        UPDATE memories SET vector_bytes = kept.size
        FROM (
            SELECT memories.space, memories.seq, coalesce(sum(4 * vector_dims(vectors.vector)), 0) AS size
            FROM memories
            LEFT JOIN vectors
            ON vectors.space = memories.space AND vectors.memory = memories.seq AND vectors.model = ''
            GROUP BY memories.space, memories.seq
        ) AS kept
        WHERE kept.space = memories.space
        AND kept.seq = memories.seq
        AND kept.size <> memories.vector_bytes
        """
    )


def _rebuild_words(tx: PostgresTransaction, progress: Callable[[int, int], None] | None) -> None:
    # Archived memories have no text to make words from: the words they have are counted again.
    tx._con.execute(
        """
        DELETE FROM words
        USING memories
        WHERE memories.space = words.space AND memories.seq = words.memory AND memories.packed_bytes IS NULL
        """
    )
    tx._con.execute("DELETE FROM vocabulary")
    tx._con.execute("UPDATE spaces SET passages = 0, passage_words = 0")
    for space, length, terms in tx._con.execute("SELECT space, length, tsvector_to_array(terms) FROM words"):
        tx.vocabulary.count(space, stems_of(terms), length)
    [(total,)] = tx._con.execute("SELECT count(*) FROM memories WHERE state < 4 AND packed_bytes IS NULL")
    space, seq, done = "", -1, 0
    while rows := tx._con.execute(
        f"""
        SELECT {COLUMNS}
        FROM memories
        WHERE (space, seq) > (%s, %s)
        AND state < 4
        AND packed_bytes IS NULL
        ORDER BY space, seq
        LIMIT %s
        """,
        (space, seq, REBUILT_AT_ONCE),
    ).fetchall():
        for row in rows:
            memory = memory_of(row)
            space, seq = memory.space, memory.seq
            tx.write_words(space, seq, passages_of(memory))
        done += len(rows)
        if progress:
            progress(done, total)
