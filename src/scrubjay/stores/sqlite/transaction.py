"""Writing: memories, and all that hangs on them (words, tags, vectors, former versions), in one transaction."""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

import apsw

from scrubjay.errors import Conflict, NotFound, SpaceNotFound
from scrubjay.stores.promises.memories import ONLY_TO_JUDGE, Addition, Change, List, Transaction
from scrubjay.stores.promises.sync import Replica
from scrubjay.stores.sqlite import additions, replication, vec1
from scrubjay.stores.sqlite.filters import SMALL, Found, Members, audience_of, space_number
from scrubjay.stores.sqlite.reads import SqliteReads
from scrubjay.stores.sqlite.sql import COLUMNS, PENDING, TABLES, TAGS, WORDS, SqliteSql, insert, row_of, tags_of
from scrubjay.stores.sqlite.words import add_passages, count_passages, words_of
from scrubjay.stores.tables.parts import with_table_writers
from scrubjay.stores.tables.rows import (
    EMPTY,
    FIELDS,
    Row,
    as_json,
    check_next,
    empty_row,
    first_columns,
    memory_of,
    snapshot_of,
    without_asides,
)
from scrubjay.stores.tables.tally import Tally
from scrubjay.text.words import found_by
from scrubjay.values import codec
from scrubjay.values.frozen import replace
from scrubjay.values.memory import AT_HAND, Archive, FormerPhrases, Memory, State, Version, random_suffix
from scrubjay.values.times import milliseconds

if TYPE_CHECKING:
    from scrubjay.embedders.base import Vector

OF_THIS_TEXT = """
    SELECT seq
    FROM memories
    WHERE id = ? AND state < 4 AND text_version <= ? AND version >= ? AND also = coalesce(?, also)
"""
DELETE_WORDS = "DELETE FROM words WHERE rowid BETWEEN ?1 * 256 AND ?1 * 256 + 255"
# Deleted and written again in one go, a row with a word 128 times or more is taken for a new one by FTS5 (3.54). Its
# former words stay in the index, and once it is gone, a search for them says that the file is damaged.
FLUSH_WORDS = "INSERT INTO words (words) VALUES ('flush')"

AWAY = ("content", "title", "path", "metadata", "detail")  # fields of a memory that `put_away` takes out of its row
_VERSION = FIELDS.index("version")


@with_table_writers
class SqliteTransaction(SqliteReads, Transaction):
    def __init__(self, con: apsw.Connection, tally: Tally) -> None:
        super().__init__(tally)
        self._con = con
        self._as_given = nullcontext(con)
        self._change: int | None = None
        self.erased = False  # whether something was purged or archived: space to give back
        self.deferred_writes: List[Callable[[], None]] = []
        self.sql = SqliteSql(self._reading, tally, self._note_erasure)

    def _note_erasure(self) -> None:
        self.erased = True

    def _reading(self) -> AbstractContextManager[apsw.Connection]:
        self.write_deferred()
        return self._as_given

    def write_deferred(self) -> None:
        while self.deferred_writes:
            self.deferred_writes.pop(0)()

    def _nearest(self, members: Members, vector: Vector, limit: int, model: str | None) -> List[Found]:
        from scrubjay.stores.sqlite.vectors import scoring

        score = scoring(members.con, vector, model or "")  # an index sees committed rows only
        return members.find_best(limit, score, few_at_most=SMALL)

    def _cosines(
        self, con: apsw.Connection, vector: Vector, memories: Sequence[int], model: str | None
    ) -> dict[int, float]:
        from scrubjay.stores.sqlite.vectors import cosines_in_file

        return cosines_in_file(con, vector, model or "", memories)

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
        stored = self._stored(memory.id)
        self._check_version(memory, stored, same=former_phrases is not None)
        space = self._known_space(memory.space)
        columns = self._columns(memory, space)
        if stored is not None:
            self._check_path(memory, space)
        columns |= {"fingerprint": fingerprint, "change": self._changed()}
        if former_phrases is not None:
            columns["former_also"] = codec.write_json(former_phrases)
        if stored is None:
            new = first_columns(memory) | {"parts": parts, "category_agreed": agreed}
            self._insert_new([memory], [columns | new])
            seq = self._con.last_insert_rowid()
            self._mark_repeats(fingerprint)
            self._add_words(seq, memory, space)
            add_passages(self._con, seq)
            self._add_tags(seq, memory)
            self._add_vectors(seq, vectors or (), parts)
        elif self._is_put_away(stored[0]):
            seq = stored[0]
            if vectors is not None:
                raise Conflict(f"Memory {memory.id} is archived.", hint="Restore it first.", memory_id=memory.id)
            self._keep_version(seq, stored, change)
            away = {*EMPTY, "content_length", "fingerprint"}
            self._update(seq, {name: value for name, value in columns.items() if name not in away})
            self._mark_repeats(self._fingerprint(seq))
        else:
            seq = stored[0]
            if former_phrases is None:
                self._keep_version(seq, stored, change)
            fingerprints = {self._fingerprint(seq), fingerprint}
            self._update(seq, columns)
            self._mark_repeats(*fingerprints)
            former = memory_of(stored)
            if found_by(former) != found_by(memory) or former.space != memory.space:
                self._write_words(seq, memory, space)
            if (former.tags, former.auto_tags) != (memory.tags, memory.auto_tags):
                self._write_tags(seq, memory)
        if vectors is not None and stored is not None:
            self._replace_vectors(seq, memory.version, vectors, parts)
        return self._written(seq)

    def put_new(self, new: Sequence[Addition]) -> None:
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
        [seq] = row
        if model is not None:
            self._con.execute("DELETE FROM vectors WHERE memory = ? AND model = ?", (seq, model))
            self._write_vectors(seq, 0, vectors, model)
            self._con.execute("UPDATE memories SET change = ? WHERE seq = ?", (self._changed(), seq))
            return True
        self._write_vectors(seq, first_part, vectors)
        self._con.execute("UPDATE memories SET parts = ?, change = ? WHERE seq = ?", (parts, self._changed(), seq))
        self._con.execute(
            "UPDATE pending SET next_part = max(next_part, ?) WHERE memory = ? AND next_part >= ?",
            (first_part + len(vectors), seq, first_part),
        )
        self._con.execute(
            "DELETE FROM pending WHERE memory = ? AND next_part BETWEEN ? AND ?", (seq, parts, ONLY_TO_JUDGE - 1)
        )
        return True

    def purge(self, id: str, *, at: datetime, final: bool = True) -> None:
        row = self._con.execute("SELECT seq FROM memories WHERE id = ? AND state <> 4", (id,)).fetchone()
        if row is None:
            return
        [seq] = row
        fingerprint = self._fingerprint(seq)
        if self._is_put_away(seq):
            self._take_out(seq, id, at=at)
            self._con.execute("INSERT INTO archived_words (archived_words) VALUES ('optimize')")
        for table in ("versions", "vectors", "pending", "tags", "aliases"):
            self._con.execute(f"DELETE FROM {table} WHERE memory = ?", (seq,))
        self._con.execute(DELETE_WORDS, (seq,))
        count_passages(self._con, seq)
        self._con.execute("UPDATE links SET reason = NULL WHERE source = ?1 OR target = ?1", (id,))
        self._con.execute("DELETE FROM asides WHERE memory = ?1 OR other = ?1", (id,))
        self.history.forget_results(id)
        self.history.forget_reasons(id)
        self.history.end_owing(id)
        self._con.execute("UPDATE memories SET repeat = 0 WHERE seq = ? AND repeat = 1", (seq,))
        self._con.execute(
            """
            UPDATE memories SET
                content = '', content_length = 0, title = '', path = '', topic = NULL, topic_key = NULL,
                tags = '[]', auto_tags = '[]', session_id = NULL, metadata = '{}', detail = '{}', flags = '[]',
                also = '[]', former_also = '[]',
                client = '', caller = '', transport = '', dialect = NULL,
                fingerprint = NULL, content_hash = NULL, supersedes = NULL, superseded_by = NULL, parts = 0,
                status = 'deleted', state = 4, deleted_at = coalesce(deleted_at, :at), recoverable_until = NULL,
                change = :change, final = :final
            WHERE seq = :seq
            """,
            {"at": milliseconds(at), "change": self._changed(), "final": int(final), "seq": seq},
        )
        if final:
            self._con.execute(
                """
                UPDATE memories SET
                    updated_at = :at, version = version + 1, hlc = :hlc,
                    origin = (SELECT value FROM facts WHERE key = 'origin')
                WHERE seq = :seq
                """,
                {"at": milliseconds(at), "hlc": self.clock.tick(at), "seq": seq},
            )
        self._mark_repeats(fingerprint)
        self.erased = True

    def put_away(self, id: str, archive: Archive, *, keep_vectors: bool) -> None:
        stored = self._stored(id)
        if stored is None:
            raise NotFound(f"No memory {id!r}.")
        memory, seq = memory_of(stored), stored[0]
        if self._is_put_away(seq):
            raise Conflict(f"Memory {id} is already archived.", memory_id=id)
        space = space_number(self._con, memory.space)
        assert space is not None
        self.erased = True
        if not keep_vectors:
            self._con.execute("DELETE FROM vectors WHERE memory = ?", (seq,))
            self._con.execute("UPDATE memories SET parts = 0 WHERE seq = ?", (seq,))
        for table in ("versions", "pending"):
            self._con.execute(f"DELETE FROM {table} WHERE memory = ?", (seq,))
        self._con.execute(DELETE_WORDS, (seq,))
        self._con.executemany(
            "INSERT INTO archived_words (rowid, text, scope) VALUES (?, ?, ?)",
            words_of(seq, memory, space),
        )
        # What is being embedded just now belongs to a text that is no longer here.
        self._update(seq, empty_row(memory) | {"text_version": memory.version, "change": self._changed()})
        self.archives.keep(id, archive)
        count_passages(self._con, seq)

    def bring_back(self, memory: Memory, versions: Sequence[Version], *, at: datetime) -> Memory:
        stored = self._stored(memory.id)
        if stored is None or not self._is_put_away(stored[0]):
            raise NotFound(f"Memory {memory.id} is not archived.")
        seq, now = stored[0], memory_of(stored)
        restored = replace(now, **{name: getattr(memory, name) for name in AWAY})
        space = space_number(self._con, now.space)
        assert space is not None
        self._take_out(seq, memory.id, at=at)
        columns = row_of(restored, space=space, user=0, conversation=None)
        self._update(seq, {name: columns[name] for name in EMPTY} | {"change": self._changed()})
        self._write_words(seq, restored, space)
        self.history.keep_versions(memory.id, versions)
        return self._written(seq)

    def replicate(
        self, replica: Replica, *, fingerprint: bytes | None, vectors: Sequence[Vector] | None, change: Change
    ) -> None:
        replication.replicate(self, replica, fingerprint=fingerprint, vectors=vectors, change=change)

    def amend(self, id: str, columns: Mapping[str, Any]) -> None:
        # The version as it is, so that its file, if it has one, is written again (trigger
        # a_changed_memory_waits_for_its_file).
        again = ", version = version" if "state" in columns else ""
        assignments = ", ".join(f"{name} = :{name}" for name in columns)
        self._con.execute(
            f"UPDATE memories SET {assignments}, change = :change{again} WHERE id = :id AND state < 4",
            {**columns, "change": self._changed(), "id": id},
        )
        if "state" in columns and self._con.changes():
            [(fingerprint,)] = self._con.execute("SELECT fingerprint FROM memories WHERE id = ?", (id,))
            self._mark_repeats(bytes(fingerprint))

    @property
    def change(self) -> int | None:
        """The number that it has given to what it changed; None if it has changed no memory."""
        return self._change

    def drop_vectors(self, *, after: int = 0, limit: int | None = None) -> int | None:
        vec1.retire_all(self._con)
        [(last,)] = self._con.execute(
            "SELECT max(seq) FROM (SELECT seq FROM memories WHERE seq > ? ORDER BY seq LIMIT ?)",
            (after, -1 if limit is None else limit),
        )
        if last is None:
            return None
        self._con.execute("DELETE FROM vectors WHERE memory > ? AND memory <= ? AND model = ''", (after, last))
        self._con.execute(
            "UPDATE pending SET next_part = 0, attempts = 0 WHERE memory > ? AND memory <= ?", (after, last)
        )
        self._con.execute(
            # Archived memories get new vectors when they are restored.
            "UPDATE memories SET parts = 0 WHERE seq > ? AND seq <= ? AND seq IN (SELECT memory FROM archives)",
            (after, last),
        )
        self._con.execute(
            # What does not wait has been judged already.
            """
            INSERT INTO pending (memory, next_part, judged)
            SELECT seq, 0, 1
            FROM memories
            WHERE state < 4
            AND seq > ?
            AND seq <= ?
            AND seq NOT IN (SELECT memory FROM archives)
            ON CONFLICT (memory) DO NOTHING
            """,
            (after, last),
        )
        self._con.execute(
            "UPDATE memories SET change = ? WHERE state < 4 AND seq > ? AND seq <= ?", (self._changed(), after, last)
        )
        return int(last)

    def drop_unusable_vectors(self) -> int:
        from scrubjay.stores.sqlite.vectors import unusable

        dropped = unusable(self._con)
        for model, memories in dropped.items():
            these = [(memory, model) for memory in memories]
            self._con.executemany("DELETE FROM vectors WHERE memory = ? AND model = ?", these)
        self._con.executemany(
            """
            INSERT INTO pending (memory, next_part, judged)
            SELECT seq, 0, 1
            FROM memories
            WHERE seq = ?
            AND state < 4
            AND seq NOT IN (SELECT memory FROM archives)
            ON CONFLICT (memory) DO UPDATE SET next_part = 0, attempts = 0
            """,
            [(memory,) for memory in dropped.get("", ())],
        )
        return len(set().union(*dropped.values()))

    def _is_put_away(self, seq: int) -> bool:
        return self._con.execute("SELECT 1 FROM archives WHERE memory = ?", (seq,)).fetchone() is not None

    def _take_out(self, seq: int, id: str, *, at: datetime) -> None:
        """Forget what is packed of a memory, and the words by which it was found."""
        self._con.execute("DELETE FROM archived_words WHERE rowid BETWEEN ?1 * 256 AND ?1 * 256 + 255", (seq,))
        self.archives.forget(id, at=at)

    def _without_asides(self, memory: Memory) -> Memory:
        """As its row is to have it: what it says of others to some only is kept elsewhere."""
        if memory.supersedes is None and memory.superseded_by is None:
            return memory
        return without_asides(memory, self.sync.asides(memory.id))

    def _stored(self, id: str) -> Row | None:
        return self._con.execute(f"SELECT {COLUMNS} FROM {TABLES} WHERE memories.id = ?", (id,)).fetchone()

    def _check_version(self, memory: Memory, stored: Row | None, *, same: bool) -> None:
        if stored is None:
            if self._con.execute("SELECT 1 FROM aliases WHERE alias = ?", (memory.id,)).fetchone():
                raise Conflict(f"The id {memory.id!r} is taken.")
            return
        check_next(memory, stored[_VERSION], purged=self._purged(stored[0]), same=same)

    def _purged(self, seq: int) -> bool:
        return self._con.execute("SELECT state FROM memories WHERE seq = ?", (seq,)).fetchone() == (State.PURGED,)

    def _check_path(self, memory: Memory, space: int) -> None:
        if memory.state not in AT_HAND:
            return
        taken = self._con.execute(
            # memories_by_place
            """
            SELECT 1
            FROM memories
            WHERE space = ?
            AND path = ?
            AND max(audience, 1) = max(?, 1)
            AND state IN (0, 1)
            AND id <> ?
            """,
            (space, memory.path, audience_of(memory.access_level, self._number(memory.context.user_id)), memory.id),
        ).fetchone()
        if taken:
            raise Conflict(f"The path {memory.path!r} is taken.", hint="Choose another path.", path=memory.path)

    def _known_space(self, name: str) -> int:
        space = space_number(self._con, name)
        if space is None:
            raise SpaceNotFound(f"No space {name!r}.", hint="Create it first.")
        return space

    def _columns(self, memory: Memory, space: int) -> dict[str, Any]:
        user, conversation = self._number(memory.context.user_id), memory.context.conversation_id
        number = None if conversation is None else self._number(conversation)
        return row_of(memory, space=space, user=user, conversation=number)

    def _number(self, name: str) -> int:
        """The number of a user or conversation, given on first sight."""
        number = self._con.execute("SELECT number FROM names WHERE name = ?", (name,)).get
        if number is None:
            self._con.execute("INSERT INTO names (name) VALUES (?)", (name,))
            return self._con.last_insert_rowid()
        return int(number)

    def _changed(self) -> int:
        """This transaction's number in the order of changes; caches ask for what has a higher one than they saw."""
        if self._change is None:
            [(self._change,)] = self._con.execute("UPDATE counters SET change = change + 1 RETURNING change")
        return self._change

    def _insert(self, columns: dict[str, Any]) -> int:
        insert(self._con, "memories", tuple(columns), [columns.values()])
        return self._con.last_insert_rowid()

    def _insert_new(self, memories: Sequence[Memory], rows: Sequence[dict[str, Any]]) -> None:
        """:raises Conflict: if a path is taken"""
        try:
            insert(self._con, "memories", tuple(rows[0]), [columns.values() for columns in rows])
        except apsw.ConstraintError:  # looking before each of them would take longer
            for memory, columns in zip(memories, rows, strict=True):  # one by one: two of them may want the same path
                self._check_path(memory, columns["space"])
                with suppress(apsw.ConstraintError):  # a statement before the one that failed has written it
                    self._insert(columns)
            raise

    def _update(self, seq: int, columns: dict[str, Any]) -> None:
        assignments = ", ".join(f"{name} = :{name}" for name in columns)
        self._con.execute(f"UPDATE memories SET {assignments} WHERE seq = :seq", columns | {"seq": seq})

    def _fingerprint(self, seq: int) -> bytes:
        [(fingerprint,)] = self._con.execute("SELECT fingerprint FROM memories WHERE seq = ?", (seq,))
        return bytes(fingerprint)

    def _mark_repeats(self, *fingerprints: bytes) -> None:
        """Of the active and archived memories with the same text all but the first are repeats."""
        self._con.executemany(
            # memories_by_fingerprint
            """
            UPDATE memories
            SET repeat = NOT repeat
            WHERE fingerprint = ?1
            AND repeat <> (
                state IN (0, 2)
                AND seq > (SELECT min(seq) FROM memories WHERE fingerprint = ?1 AND state IN (0, 2))
            )
            """,
            [(fingerprint,) for fingerprint in fingerprints],
        )

    def _keep_version(self, seq: int, stored: Row, change: Change) -> None:
        self._con.execute(
            """
            INSERT INTO versions (memory, version, id, snapshot, replaced_at, replaced_by, reason)
            VALUES (?, ?, ?, ?, ?, ?, ?)
            """,
            (
                seq,
                stored[_VERSION],
                f"ver_{random_suffix()}",
                snapshot_of(stored),
                milliseconds(change.at),
                change.user,
                change.reason,
            ),
        )

    def _write_words(self, seq: int, memory: Memory, space: int) -> None:
        self._con.execute(DELETE_WORDS, (seq,))
        if self._con.changes():
            self._con.execute(FLUSH_WORDS)
        self._add_words(seq, memory, space)
        count_passages(self._con, seq)

    def _add_words(self, seq: int, memory: Memory, space: int) -> None:
        insert(self._con, "words", WORDS, words_of(seq, memory, space))

    def _write_tags(self, seq: int, memory: Memory) -> None:
        self._con.execute("DELETE FROM tags WHERE memory = ?", (seq,))
        self._add_tags(seq, memory)

    def _add_tags(self, seq: int, memory: Memory) -> None:
        insert(self._con, "tags", TAGS, tags_of(seq, memory))

    def _replace_vectors(self, seq: int, version: int, vectors: Sequence[Vector], parts: int) -> None:
        self._con.execute("UPDATE memories SET text_version = ?, parts = ? WHERE seq = ?", (version, parts, seq))
        self._con.execute("DELETE FROM vectors WHERE memory = ? AND model = ''", (seq,))
        self._con.execute("DELETE FROM pending WHERE memory = ?", (seq,))
        self._add_vectors(seq, vectors, parts)

    def _add_vectors(self, seq: int, vectors: Sequence[Vector], parts: int) -> None:
        self._write_vectors(seq, 0, vectors)
        if len(vectors) < parts:
            insert(self._con, "pending", PENDING, [(seq, len(vectors))])

    def _write_vectors(self, seq: int, first_part: int, vectors: Sequence[Vector], model: str = "") -> None:
        self._put_vectors([(seq, part, vector) for part, vector in enumerate(vectors, first_part)], model)

    def _put_vectors(self, rows: Sequence[tuple[int, int, Vector]], model: str = "") -> None:
        if not rows:
            return
        from scrubjay.stores.sqlite.vectors import to_blob

        self._con.executemany(
            """
            INSERT INTO vectors (memory, part, model, vector)
            VALUES (?, ?, ?, ?)
            ON CONFLICT (memory, model, part) DO UPDATE SET vector = excluded.vector
            """,
            [(seq, part, model, to_blob(vector)) for seq, part, vector in rows],
        )

    def _written(self, seq: int) -> Memory:
        [row] = self._con.execute(f"SELECT {COLUMNS} FROM {TABLES} WHERE memories.seq = ?", (seq,))
        return self.tally.memory_of(row)
