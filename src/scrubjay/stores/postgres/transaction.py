"""Writing: memories, and all that hangs on them (words, tags, vectors, former versions), in one transaction.

A new memory is one statement, so that storing costs few trips to a database that may be far away. What many changes of
one transaction would write to the same row again and again (clock, feed numbers, vocabulary) is kept in the process and
written once, before the next read and at the end.
"""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

import psycopg

from scrubjay.errors import Conflict, NotFound
from scrubjay.stores.postgres import additions, replication
from scrubjay.stores.postgres import checkup as postgres_checkup
from scrubjay.stores.postgres import signatures as postgres_signatures
from scrubjay.stores.postgres import words as postgres_words
from scrubjay.stores.postgres.connections import Connection
from scrubjay.stores.postgres.filters import CARRIED
from scrubjay.stores.postgres.reads import PostgresReads
from scrubjay.stores.postgres.sql import PostgresSql, memory_of_columns, row_of
from scrubjay.stores.postgres.stored import Known, await_file, find, inserting, look_up
from scrubjay.stores.postgres.values import all_vectors
from scrubjay.stores.postgres.words import Passage, Vocabulary, passages_of, stems_of
from scrubjay.stores.promises.memories import ONLY_TO_JUDGE, Addition, Change, List, Transaction
from scrubjay.stores.promises.sync import Replica
from scrubjay.stores.tables.parts import with_table_writers
from scrubjay.stores.tables.rows import (
    EMPTY,
    as_json,
    empty_row,
    first_columns,
    snapshot_of,
    without_asides,
)
from scrubjay.stores.tables.tally import Tally
from scrubjay.text.words import found_by
from scrubjay.values import codec
from scrubjay.values.frozen import replace
from scrubjay.values.memory import Archive, FormerPhrases, Memory, State, Version, random_suffix
from scrubjay.values.times import milliseconds

if TYPE_CHECKING:
    from scrubjay.embedders.base import Vector

HANGING = (  # tables with rows of a memory
    "aliases", "tags", "versions", "vectors", "signatures", "pending", "words", "archives",
)  # fmt: skip
AWAY = ("content", "title", "path", "metadata", "detail")  # fields of a memory that `put_away` takes out of its row
OF_THIS_TEXT = """
    SELECT space, seq
    FROM memories
    WHERE id = %s AND state < 4 AND text_version <= %s AND version >= %s AND also = coalesce(%s, also)
"""
FOLLOWED = frozenset({*CARRIED, "space", "parts"})  # columns that words or signatures follow


@with_table_writers
class PostgresTransaction(PostgresReads, Transaction):
    def __init__(self, con: Connection, tally: Tally) -> None:
        super().__init__(tally)
        self._con = con
        self._raw = psycopg.RawCursor(con)  # takes $1 as it stands; psycopg would read a long statement every time
        self.vocabulary = Vocabulary()
        self.arrived = 0  # memories that came many at once
        self._ahead: set[tuple[str, int]] = set()  # memories that words and signatures are to follow
        self.deferred_writes: List[Callable[[], None]] = []
        self.sql = PostgresSql(self._reading, tally)

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        self.write_deferred()
        yield self._con

    def _extent(self, *_: object) -> tuple[float, int]:
        return 0.0, 0  # a transaction looks at few memories, and nothing must be missing

    def write_deferred(self) -> None:
        while self.deferred_writes:
            self.deferred_writes.pop(0)()
        self.vocabulary.write(self._con)
        if self._ahead:
            postgres_words.carry(self._con, self._ahead)
            postgres_signatures.sign(self._con, self._ahead)
            self._ahead.clear()

    def put(
        self,
        memory: Memory,
        *,
        fingerprint: bytes,
        vectors: Sequence[Vector] | None,
        parts: int,
        change: Change,
        agreed: bool | None = None,
        former_phrases: Sequence[FormerPhrases] | None = None,
    ) -> Memory:
        memory = self._without_asides(memory)
        rephrased = former_phrases is not None
        known, repeated, mirrored = look_up(self._con, memory, fingerprint, same=rephrased)
        columns = row_of(memory) | {"fingerprint": fingerprint}
        if rephrased:
            columns["former_also"] = codec.write_json(former_phrases)
        if known is None:
            new = self._insert(memory, columns, vectors or (), parts=parts, repeated=repeated, mirrored=mirrored)
            if agreed is not None:
                self.judge_category(memory.id, agreed=agreed)
            return new
        if known.packed_bytes is not None:
            return self._replace_put_away(known, memory, columns, vectors, change)
        return self._replace(known, memory, columns, vectors, parts=parts, change=None if rephrased else change)

    def put_new(self, new: Sequence[Addition]) -> None:
        if new:
            additions.put_new(self, new)

    def add_vectors(
        self,
        id: str,
        *,
        version: int,
        first_part: int,
        vectors: Sequence[Vector],
        parts: int,
        also: Sequence[str] | None = None,
        model: str | None = None,
    ) -> bool:
        row = self._con.execute(
            OF_THIS_TEXT, (id, version, version, None if also is None else as_json(also))
        ).fetchone()
        if row is None:
            return False
        space, seq = row
        if model is not None:
            self._con.execute("DELETE FROM vectors WHERE space = %s AND memory = %s AND model = %s", (*row, model))
            self._write_vectors(space, seq, 0, vectors, model)
            return True
        self._write_vectors(space, seq, first_part, vectors)
        self._con.execute(
            """
            UPDATE memories
            SET parts = %s, vector_bytes = (
                SELECT coalesce(sum(4 * vector_dims(vector)), 0)
                FROM vectors
                WHERE space = %s AND memory = %s AND model = ''
            )
            WHERE space = %s AND seq = %s
            """,
            (parts, space, seq, space, seq),
        )
        self._con.execute(
            """
            UPDATE pending SET next_part = greatest(next_part, %s)
            WHERE space = %s AND memory = %s AND next_part >= %s
            """,
            (first_part + len(vectors), space, seq, first_part),
        )
        self._con.execute(
            "DELETE FROM pending WHERE space = %s AND memory = %s AND next_part BETWEEN %s AND %s",
            (space, seq, parts, ONLY_TO_JUDGE - 1),
        )
        return True

    def purge(self, id: str, *, at: datetime, final: bool = True) -> None:
        known = find(self._con, id)
        if known is None or known.state == State.PURGED:
            return
        space, seq = known.space, known.seq
        if known.packed_bytes is not None:
            self.archives.forget(id, at=at)
            self._update(space, seq, {"packed_bytes": None})
        self._remove_words(space, seq)
        for table in HANGING:
            self._con.execute(f"DELETE FROM {table} WHERE space = %s AND memory = %s", (space, seq))
        self._con.execute("UPDATE links SET reason = NULL WHERE source = %s OR target = %s", (id, id))
        self._con.execute("DELETE FROM asides WHERE memory = %s OR other = %s", (id, id))
        self.history.forget_results(id)
        self.history.forget_reasons(id)
        self.history.end_owing(id)
        self._con.execute(
            """
            UPDATE memories SET
                content = '', content_length = 0, title = '', path = '', topic = NULL, topic_key = NULL,
                tags = '[]', auto_tags = '[]', session_id = NULL, metadata = '{}', detail = '{}', flags = '[]',
                also = '[]', former_also = '[]',
                client = '', caller = '', transport = '', dialect = NULL,
                fingerprint = NULL, content_hash = NULL, supersedes = NULL, superseded_by = NULL, parts = 0,
                vector_bytes = 0, repeat = 0,
                status = 'deleted', state = 4, deleted_at = coalesce(deleted_at, %(at)s), recoverable_until = NULL,
                final = %(final)s
            WHERE space = %(space)s AND seq = %(seq)s
            """,
            {"at": milliseconds(at), "final": int(final), "space": space, "seq": seq},
        )
        version = known.memory.version
        if final:
            version += 1
            stamped = replace(known.memory, origin=self.origin)
            stamp = {
                "updated_at": milliseconds(at),
                "hlc": self.clock.tick(at),
                "origin": stamped.origin,
                "version": version,
            }
            self._update(space, seq, stamp)
            self._remember(known, stamped)
        self._con.execute(
            """
            UPDATE sync_conflicts
            SET ours = NULL, theirs = NULL, outcome = coalesce(outcome, 'erased'),
                settled_at = coalesce(settled_at, %s)
            WHERE memory = %s
            """,
            (milliseconds(at), id),
        )
        self._con.execute("DELETE FROM injections WHERE space = %s AND memory = %s", (space, id))
        self._mark_repeats(known.fingerprint)
        if final:
            await_file(self._con, id, space=space, version=version, state=int(State.PURGED), moved=True)

    def put_away(self, id: str, archive: Archive, *, keep_vectors: bool) -> None:
        known = find(self._con, id)
        if known is None:
            raise NotFound(f"No memory {id!r}.")
        if known.packed_bytes is not None:
            raise Conflict(f"Memory {id} is already archived.", memory_id=id)
        memory, place = known.memory, (known.space, known.seq)
        # What is being embedded just now belongs to a text that is no longer here.
        left = empty_row(memory) | {"packed_bytes": archive.size, "text_version": memory.version}
        if not keep_vectors:
            left |= {"parts": 0, "vector_bytes": 0}
        for table in ("versions", "pending", *(() if keep_vectors else ("vectors", "signatures"))):
            self._con.execute(f"DELETE FROM {table} WHERE space = %s AND memory = %s", place)
        self._update(*place, left)
        self.archives.keep(id, archive)

    def bring_back(self, memory: Memory, versions: Sequence[Version], *, at: datetime) -> Memory:
        known = find(self._con, memory.id)
        if known is None or known.packed_bytes is None:
            raise NotFound(f"Memory {memory.id} is not archived.")
        space, seq = known.space, known.seq
        restored = replace(known.memory, **{name: getattr(memory, name) for name in AWAY})
        self.archives.forget(memory.id, at=at)
        columns = row_of(restored) | {"packed_bytes": None}
        left = {name: columns[name] for name in (*EMPTY, "packed_bytes")}
        self._update(space, seq, left)
        self.history.keep_versions(memory.id, versions)
        return self._written(memory.id)

    def replicate(
        self, replica: Replica, *, fingerprint: bytes | None, vectors: Sequence[Vector] | None, change: Change
    ) -> None:
        replication.replicate(self, replica, fingerprint=fingerprint, vectors=vectors, change=change)

    def drop_vectors(self, *, after: int = 0, limit: int | None = None) -> int | None:
        return postgres_checkup.drop_vectors(self, after=after, limit=limit)

    def rebuild(self, progress: Callable[[int, int], None] | None) -> None:
        """What follows from memories, made again from them."""
        postgres_checkup.rebuild(self, progress)

    def amend(self, id: str, columns: Mapping[str, Any]) -> None:
        known = find(self._con, id)
        if known is None or known.state == State.PURGED:
            return
        self._update(known.space, known.seq, dict(columns))
        if "state" in columns:
            self._mark_repeats(known.fingerprint)
            version = known.memory.version
            await_file(self._con, id, space=known.space, version=version, state=known.state, moved=False)

    def _update(self, space: str, seq: int, columns: dict[str, Any]) -> None:
        """Change columns of a row. What is deleted by it, or moves away, is in no conversation any more."""
        assignments = ", ".join(f"{name} = %({name})s" for name in columns)
        [(memory, now, state)] = self._con.execute(
            f"""
            UPDATE memories SET {assignments}
            WHERE space = %(former_space)s AND seq = %(seq)s
            RETURNING id, space, state
            """,
            columns | {"former_space": space, "seq": seq},
        )
        if not FOLLOWED.isdisjoint(columns):
            self._ahead.add((now, seq))
        if ("state" in columns and state >= State.DELETED) or now != space:
            self._con.execute("DELETE FROM injections WHERE space = %s AND memory = %s", (space, memory))

    def _written(self, id: str) -> Memory:
        """The memory as its row is now, with the reads that are not written yet."""
        now = find(self._con, id)
        assert now is not None
        return self.tally.memory_of(now.row)

    def _without_asides(self, memory: Memory) -> Memory:
        """As its row is to have it: what it says of others to some only is kept elsewhere."""
        if memory.supersedes is None and memory.superseded_by is None:
            return memory
        return without_asides(memory, self.sync.asides(memory.id))

    def _replace_put_away(
        self, known: Known, memory: Memory, columns: dict[str, Any], vectors: Sequence[Vector] | None, change: Change
    ) -> Memory:
        """What the row still holds is changed; the rest is packed."""
        if vectors is not None:
            raise Conflict(f"Memory {memory.id} is archived.", hint="Restore it first.", memory_id=memory.id)
        self._keep_version(known, change)
        away = {*EMPTY, "content_length", "fingerprint"}
        self._update(known.space, known.seq, {key: one for key, one in columns.items() if key not in away})
        self._remember(known, memory)
        self._mark_repeats(known.fingerprint)
        state = columns["state"]
        await_file(self._con, memory.id, space=memory.space, version=memory.version, state=state, moved=False)
        return self._written(memory.id)

    def _insert(
        self,
        memory: Memory,
        columns: dict[str, Any],
        vectors: Sequence[Vector],
        *,
        parts: int,
        repeated: bool,
        mirrored: bool,
    ) -> Memory:
        erased = columns["state"] == State.PURGED
        placed, passages = all_vectors(vectors), [] if erased else passages_of(memory)
        columns |= first_columns(memory) | {"parts": parts, "vector_bytes": placed.size}
        [(seq,)] = self._raw.execute(
            inserting(tuple(columns)),
            [
                [] if erased else sorted({*memory.tags, *memory.auto_tags}),
                [passage.place for passage in passages],
                [passage.length for passage in passages],
                [passage.terms(memory.space) for passage in passages],
                placed,
                len(placed),
                parts,
                *columns.values(),
            ],
        )
        self._count_words(memory.space, passages)
        if repeated:
            self._mark_repeats(columns["fingerprint"])
        if mirrored:
            await_file(
                self._con, memory.id, space=memory.space, version=memory.version, state=columns["state"], moved=False
            )
        return self.tally.add_reads_to(memory_of_columns(columns | {"seq": seq}))

    def _replace(
        self,
        known: Known,
        memory: Memory,
        columns: dict[str, Any],
        vectors: Sequence[Vector] | None,
        *,
        parts: int,
        change: Change | None,
    ) -> Memory:
        former, seq = known.memory, known.seq
        if vectors is not None:
            columns |= {"text_version": memory.version, "parts": parts, "vector_bytes": all_vectors(vectors).size}
        if change is not None:
            self._keep_version(known, change)
        if former.space != memory.space:
            self._remove_words(former.space, seq)
            self._move(former.space, memory.space, seq)
        self._update(former.space, seq, columns)
        self._remember(known, memory)
        if (known.fingerprint, known.state) != (columns["fingerprint"], columns["state"]):
            self._mark_repeats(*{known.fingerprint, columns["fingerprint"]})
        if found_by(former) != found_by(memory) or former.space != memory.space:
            self._remove_words(former.space, seq)
            self.write_words(memory.space, seq, passages_of(memory))
        if (former.tags, former.auto_tags) != (memory.tags, memory.auto_tags):
            self._write_tags(seq, memory)
        if vectors is not None:
            self._replace_vectors(memory.space, seq, vectors, parts)
        await_file(
            self._con,
            memory.id,
            space=memory.space,
            version=memory.version,
            state=columns["state"],
            moved=former.path != memory.path,
        )
        reads = {"seq": seq, "access_count": former.access_count, "accessed_at": milliseconds(former.accessed_at)}
        return self.tally.add_reads_to(memory_of_columns(columns | reads))

    def _move(self, former: str, space: str, seq: int) -> None:
        """What hangs on a memory goes with it into another space."""
        for table in (*HANGING, "ancestry") if former != space else ():
            self._con.execute(f"UPDATE {table} SET space = %s WHERE space = %s AND memory = %s", (space, former, seq))

    def _remember(self, known: Known, memory: Memory) -> None:
        """Another store's change goes into what this one has seen."""
        former = known.memory
        if former.origin != memory.origin:
            self.sync.note_seen(memory.id, {former.origin: former.hlc})

    def _mark_repeats(self, *fingerprints: bytes | None) -> None:
        """Of the active and archived memories with the same text all but the first are repeats."""
        for fingerprint in fingerprints:
            self._con.execute(
                # memories_by_fingerprint
                """
                UPDATE memories
                SET repeat = 1 - repeat
                WHERE fingerprint = %(fingerprint)s
                AND repeat <> CASE
                    WHEN state IN (0, 2)
                    AND seq > (SELECT min(seq) FROM memories WHERE fingerprint = %(fingerprint)s AND state IN (0, 2))
                    THEN 1 ELSE 0 END
                """,
                {"fingerprint": fingerprint},
            )

    def _keep_version(self, known: Known, change: Change) -> None:
        self._con.execute(
            """
            INSERT INTO versions (space, memory, version, id, snapshot, replaced_at, replaced_by, reason)
            VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
            ON CONFLICT (space, memory, version) DO NOTHING
            """,
            (
                known.space,
                known.seq,
                known.memory.version,
                f"ver_{random_suffix()}",
                snapshot_of(known.row),
                milliseconds(change.at),
                change.user,
                change.reason,
            ),
        )

    def write_words(self, space: str, seq: int, passages: Sequence[Passage]) -> None:
        self._con.execute(
            f"""
            INSERT INTO words (space, memory, place, length, terms, {", ".join(CARRIED)})
            SELECT space, seq, place, length, terms::TSVECTOR, {", ".join(CARRIED)}
            FROM memories
            CROSS JOIN unnest(%s::SMALLINT[], %s::INTEGER[], %s::TEXT[]) AS each (place, length, terms)
            WHERE space = %s AND seq = %s
            """,
            (
                [passage.place for passage in passages],
                [passage.length for passage in passages],
                [passage.terms(space) for passage in passages],
                space,
                seq,
            ),
        )
        self._count_words(space, passages)

    def _count_words(self, space: str, passages: Sequence[Passage]) -> None:
        for passage in passages:
            self.vocabulary.count(space, passage.stems, passage.length)

    def _remove_words(self, space: str, seq: int) -> None:
        rows = self._con.execute(
            "DELETE FROM words WHERE space = %s AND memory = %s RETURNING length, tsvector_to_array(terms)",
            (space, seq),
        )
        for length, terms in rows:
            self.vocabulary.count(space, stems_of(terms), length, -1)

    def _write_tags(self, seq: int, memory: Memory) -> None:
        self._con.execute("DELETE FROM tags WHERE space = %s AND memory = %s", (memory.space, seq))
        self._con.execute(
            "INSERT INTO tags (space, memory, tag) SELECT %s, %s, unnest(%s::TEXT[])",
            (memory.space, seq, sorted({*memory.tags, *memory.auto_tags})),
        )

    def _replace_vectors(self, space: str, seq: int, vectors: Sequence[Vector], parts: int) -> None:
        self._con.execute("DELETE FROM vectors WHERE space = %s AND memory = %s AND model = ''", (space, seq))
        self._con.execute("DELETE FROM pending WHERE space = %s AND memory = %s", (space, seq))
        self._write_vectors(space, seq, 0, vectors)
        if len(vectors) < parts:
            self._con.execute(
                "INSERT INTO pending (space, memory, next_part) VALUES (%s, %s, %s)", (space, seq, len(vectors))
            )

    def _write_vectors(self, space: str, seq: int, first_part: int, vectors: Sequence[Vector], model: str = "") -> None:
        if not vectors:
            return
        self._con.execute(
            """
            INSERT INTO vectors (space, memory, part, model, vector)
            SELECT %s, %s, %s + number - 1, %s, vector
            FROM unnest(%s) WITH ORDINALITY AS each (vector, number)
            ON CONFLICT (space, memory, model, part) DO UPDATE SET vector = excluded.vector
            """,
            (space, seq, first_part, model, all_vectors(vectors)),
        )
        if not model:
            self._ahead.add((space, seq))
