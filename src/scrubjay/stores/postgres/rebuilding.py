"""Rebuilds what follows from memories: words, signatures, totals; and drops vectors for another model's."""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

from scrubjay.stores.postgres import counts as postgres_counts
from scrubjay.stores.postgres import signatures as postgres_signatures
from scrubjay.stores.postgres import vectors as postgres_vectors
from scrubjay.stores.postgres.counts import Counted
from scrubjay.stores.postgres.memories import PostgresMemories, stems_of
from scrubjay.stores.postgres.rows import COLUMNS, COUNTED, memory_of
from scrubjay.stores.postgres.words import passages_of

REBUILT_AT_ONCE = 500


class PostgresRebuilding(PostgresMemories):
    """The part of a transaction that rebuilds things."""

    def drop_vectors(self, *, after: int = 0, limit: int | None = None) -> int | None:
        self.write_gathered()
        postgres_vectors.drop_indexes(self._con)
        [(last,)] = self._con.execute(
            "SELECT max(seq) FROM (SELECT seq FROM memories WHERE seq > %s ORDER BY seq LIMIT %s) AS some_of_them",
            (after, limit),
        )
        if last is None:
            return None
        those = "memory > %s AND memory <= %s"
        for table in ("vectors", "signatures"):
            self._con.execute(f"DELETE FROM {table} WHERE {those}", (after, last))
        self._con.execute(f"UPDATE pending SET next_part = 0, attempts = 0 WHERE {those}", (after, last))
        self._con.execute(
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
        self._con.execute(
            # Archived memories get new vectors when they are restored.
            "UPDATE memories SET parts = 0 WHERE seq > %s AND seq <= %s AND packed_bytes IS NOT NULL",
            (after, last),
        )
        rows = self._con.execute(
            f"""
            UPDATE memories SET vector_bytes = 0
            FROM (SELECT seq, vector_bytes AS size FROM memories WHERE vector_bytes > 0) AS former
            WHERE memories.seq = former.seq
            AND memories.seq > %s
            AND memories.seq <= %s
            RETURNING {COUNTED}, former.size
            """,
            (after, last),
        )
        for *row, size in rows:
            now = Counted(*row)
            self._counts.replaced(now._replace(vector_bytes=size), now)
        return int(last)

    def rebuild(self) -> None:
        self.write_gathered()
        postgres_vectors.drop_indexes(self._con)
        self._rebuild_words()
        postgres_signatures.sign_all(self._con)
        self.count_anew()
        self._con.execute(
            # The first part without a vector is where embedding goes on; what had all its vectors was judged.
            """
            INSERT INTO pending (space, memory, next_part, judged)
            SELECT memories.space, memories.seq, count(vectors.memory), TRUE
            FROM memories
            LEFT JOIN vectors ON vectors.space = memories.space AND vectors.memory = memories.seq
            WHERE memories.state < 4
            AND memories.packed_bytes IS NULL
            GROUP BY memories.space, memories.seq
            HAVING count(vectors.memory) < greatest(memories.parts, 1)
            ON CONFLICT (space, memory) DO NOTHING
            """
        )

    def count_anew(self) -> None:
        """Totals from the memories as they are."""
        self.write_gathered()
        self._con.execute(
            """
            UPDATE memories SET vector_bytes = kept.size
            FROM (
                SELECT memories.space, memories.seq, coalesce(sum(4 * vector_dims(vectors.vector)), 0) AS size
                FROM memories
                LEFT JOIN vectors ON vectors.space = memories.space AND vectors.memory = memories.seq
                GROUP BY memories.space, memories.seq
            ) AS kept
            WHERE kept.space = memories.space
            AND kept.seq = memories.seq
            AND kept.size <> memories.vector_bytes
            """
        )
        postgres_counts.count_anew(self._con)

    def _rebuild_words(self) -> None:
        # Archived memories have no text to make words from: the words they have are counted again.
        self._con.execute(
            """
            DELETE FROM words
            USING memories
            WHERE memories.space = words.space AND memories.seq = words.memory AND memories.packed_bytes IS NULL
            """
        )
        self._con.execute("DELETE FROM vocabulary")
        self._con.execute("UPDATE spaces SET passages = 0, passage_words = 0")
        for space, length, terms in self._con.execute("SELECT space, length, tsvector_to_array(terms) FROM words"):
            self._counts.words(space, stems_of(terms), length)
        space, seq = "", -1
        while rows := self._con.execute(
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
                self.write_words(space, seq, passages_of(memory))
