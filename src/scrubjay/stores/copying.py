"""A whole store from one backend to another: rows of plain values, table by table, in batches.

Both sides read and write the same rows: spaces, users and conversations by name, a memory by its arrival number, times
in milliseconds, vectors as float32 or as SQLite keeps them. What follows from them (words, tags) is made by the
side that takes them; of archived memories, whose text is in no row, the words' stems are copied.
Every batch is a transaction that also notes how far the copy has come, so a copy that was cut off goes on from there.
The note is made with the target itself, empty, and removed after the last check; until then nothing else opens it.
At the end both sides are read once more, and a sum over the hashes of all rows must be the same; the order in which a
backend keeps its rows does not matter to a sum. Vectors are compared as SQLite keeps them, which is less exact.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from itertools import islice
from typing import Any, TypeVar

from scrubjay.errors import Conflict, StorageDamaged, StorageError
from scrubjay.values.frozen import dataclass

BATCH = 1_000
FINISHED = "totals"  # in the progress: everything is there but the last check

Row = tuple[Any, ...]
T = TypeVar("T")
Progress = Callable[[str, int, int], None]  # a table, how many of its rows are done, how many there are


@dataclass(frozen=True, slots=True)
class Table:
    """What is copied under one name. Rows are read in the order of the source's own key."""

    name: str
    columns: tuple[str, ...]


MEMORY = (
    "seq", "id", "space", "state", "user_id", "conversation_id", "session_id", "kind", "category", "importance",
    "confidence", "created_at", "updated_at", "accessed_at", "access_count", "expires_at", "valid_from",
    "valid_until", "verified_at", "deleted_at", "recoverable_until", "version", "text_version", "parts",
    "category_agreed", "repeat", "hlc", "origin", "final", "status", "source", "access_level", "supersedes",
    "superseded_by", "client", "caller", "transport", "dialect", "fingerprint", "content_hash", "content_length",
    "topic", "topic_key", "path", "title", "flags", "tags", "auto_tags", "also", "former_also", "metadata", "detail",
    "content",
)  # fmt: skip

CLOCK = Table("clock", ("clock",))
VECTORS = Table("vectors", ("space", "memory", "part", "model", "vector"))
TABLES = (
    # Who may call comes first: whatever happens later, no copy of ours has memories and no locks.
    Table(
        "credentials",
        (
            "id",
            "kind",
            "user_id",
            "role",
            "spaces",
            "name",
            "secret",
            "created_at",
            "created_by",
            "expires_at",
            "revoked_at",
        ),
    ),
    Table("grants", ("user_id", "space", "at", "by")),
    Table("sessions", ("secret", "credential", "guard", "created_at", "expires_at")),
    Table("spaces", ("name", "description", "created_at", "events", "checkpoints", "mirrored", "title", "deleted_at")),
    Table("memories", MEMORY),
    Table("aliases", ("space", "memory", "alias")),
    Table("versions", ("space", "memory", "version", "id", "snapshot", "replaced_at", "replaced_by", "reason")),
    Table("ancestry", ("space", "memory", "origin", "hlc")),
    VECTORS,
    Table("pending", ("space", "memory", "next_part", "attempts", "judged")),
    Table("owed", ("memory", "user_id", "client")),
    Table(
        "links",
        ("number", "kind", "source", "target", "score", "state", "given", "reason", "created_at", "hlc", "origin"),
    ),
    Table("asides", ("memory", "role", "other", "hlc")),
    Table(
        "events",
        (
            "space",
            "number",
            "at",
            "action",
            "memory",
            "fields",
            "user_id",
            "client",
            "caller",
            "transport",
            "dialect",
            "reason",
            "credential",
        ),
    ),
    Table("recalls", ("number", "at", "space", "user_id", "client", "memories")),
    Table("recall_counts", ("space", "user_id", "hour", "recalls", "memories")),
    Table(
        "activity",
        ("space", "part", "at", "audience", "reads", "consolidations", "consolidated"),
    ),
    Table("results", ("caller", "key", "operation", "arguments", "result", "at")),
    Table("result_memories", ("memory", "caller", "key")),
    Table(
        "acts", ("number", "at", "user_id", "action", "space", "subject", "client", "transport", "reason", "credential")
    ),
    Table("files", ("space", "memory", "name", "path", "version", "hash", "stamp")),
    Table("outbox", ("space", "memory", "version")),
    Table("sections", ("space", "path", "description")),
    Table(
        "jobs",
        (
            "number",
            "id",
            "kind",
            "user_id",
            "role",
            "granted",
            "spaces",
            "client",
            "transport",
            "dialect",
            "arguments",
            "state",
            "outcome",
            "done",
            "total",
            "note",
            "cancelling",
            "attempts",
            "result",
            "error",
            "created_at",
            "started_at",
            "finished_at",
        ),
    ),
    Table("archives", ("space", "memory", "id", "tier", "at", "bytes", "checksum", "object", "packed")),
    Table("archived_words", ("space", "memory", "place", "length", "stems")),  # see stems_as_text
    Table("objects_to_remove", ("object", "due")),
    Table(
        "conversations",
        ("number", "space", "id", "title", "system_prompt", "created_at", "updated_at", "user_id", "access_level"),
    ),
    Table("messages", ("number", "space", "conversation", "id", "role", "content", "reply_to", "created_at")),
    Table("injections", ("number", "space", "conversation", "memory", "active", "injected_at")),
    Table("deeds", ("id", "action", "user_id", "at", "reason")),
    Table("deed_memories", ("deed", "memory")),
    Table("endpoints", ("name", "url", "spaces", "added_at", "synced_at")),
    Table("heard", ("speaker", "listener", "space", "number", "proof")),
    Table(
        "sync_conflicts",
        ("number", "memory", "endpoint", "policy", "at", "outcome", "settled_at", "ours", "theirs"),
    ),
    Table("facts", ("key", "value")),
    CLOCK,
)


OFTEN = 4  # how often a stem occurs in a passage is kept up to here


def stems_as_text(counts: Mapping[str, int]) -> str:
    """The stems of a passage, with how often each stands there."""
    return json.dumps(sorted((stem, min(count, OFTEN)) for stem, count in counts.items()), ensure_ascii=False)


def stems_of_text(text: str, length: int) -> Counter[str]:
    """The stems of a passage of that many words; the most frequent one fills in for those that are not known."""
    counts = Counter({str(stem): int(count) for stem, count in json.loads(text)})
    for stem, count in counts.items():
        if count == OFTEN:
            counts[stem] += length - counts.total()
            break
    return counts


def put_away(content: str, content_length: int) -> bool:
    """Whether a memory's text is packed elsewhere."""
    return not content and bool(content_length)


class Copyable(ABC):
    """One side of a copy."""

    _store: Any  # of the backend: what is done here is beneath its promise
    origin: str
    shortened: Callable[[bytes], bytes]  # a vector as SQLite keeps it

    @abstractmethod
    def count(self, table: Table) -> int:
        """How many rows there are."""

    @abstractmethod
    def rows(self, table: Table, after: Sequence[Any] | None = None) -> Iterator[tuple[list[Any], Row]]:
        """Every row after a position, with its own position, in a fixed order."""

    @abstractmethod
    def take_in(self, table: Table, rows: Sequence[Row], progress: str) -> None:
        """Write rows and what follows from them, and keep the progress, in one transaction.

        That may go on while the next rows are read; what went wrong is then raised by whatever is called next.
        """

    def settle(self) -> None:  # noqa: B027 -- nothing to wait for where `take_in` returns when it is done
        """Wait until all that was taken in is written."""

    def expect(self, vector: bytes) -> None:
        """Learn one of the other side's vectors, before any row is written."""
        del vector  # of use to who counts the bytes of rows before they come

    def progress(self) -> str | None:
        """What was kept of a copy that is not finished; empty if nothing was copied yet."""
        kept: str | None = self._store.history.fact("copy")
        return kept

    def is_new(self) -> bool:
        """Whether nothing was ever stored here."""
        with self._store._reading() as con:
            return con.execute("SELECT 1 FROM memories UNION ALL SELECT 1 FROM events LIMIT 1").fetchone() is None

    def keep(self, progress: str) -> None:
        """Keep the progress by itself."""
        with self._store._changing() as transaction:
            transaction.history.set_fact("copy", progress)

    @abstractmethod
    def finish(self, progress: str) -> None:
        """Make what is made at the end, and keep the progress, in one transaction."""

    def release(self) -> None:
        """Forget the progress: the copy is a store like any other from now on."""
        with self._store._changing() as transaction:
            transaction._con.execute("DELETE FROM facts WHERE key = 'copy'")


def copy(source: Copyable, target: Copyable, report: Progress) -> dict[str, int]:
    """Copy everything, or go on where an earlier attempt was cut off; how many rows of each table there are.

    A copy that is complete is only compared.

    :raises Conflict: if the target holds memories of its own, the source was written to since the copy began, or one of
        the two changed since it was finished
    :raises StorageDamaged: if the two sides differ at the end
    """
    if is_complete(source, target):
        return _still_the_same(source, target, report)
    clock = _clock(source)
    done = _progress(source, target, clock)
    target.keep(done.text(source.origin, clock))
    for _, (*_, vector) in source.rows(VECTORS):
        target.expect(vector)
        break
    try:
        done = _taken_in(source, target, report, clock, done)
    except BaseException:
        with suppress(StorageError):  # what was raised first matters
            target.settle()
        raise
    if FINISHED not in done.finished:
        target.finish(done.past(FINISHED).text(source.origin, clock))
    counts = _verify(source, target, report)
    target.release()
    return counts


def is_complete(source: Copyable, target: Copyable) -> bool:
    """Whether one was copied into the other before, to the end."""
    return target.progress() is None and target.origin == source.origin


def _taken_in(source: Copyable, target: Copyable, report: Progress, clock: int, done: Done) -> Done:
    """Copy the rows of all tables that are not done."""
    for table in TABLES:
        if table.name in done.finished:
            continue
        total = source.count(table)
        count, after = done.within(table)
        report(table.name, count, total)
        for batch in in_batches(source.rows(table, after), BATCH):
            count += len(batch)
            done = done.up_to(table, count, batch[-1][0])
            with _check_unchanged(source, clock):
                target.take_in(table, [row for _, row in batch], done.text(source.origin, clock))
            report(table.name, count, total)
        with _check_unchanged(source, clock):
            target.settle()
        done = done.past(table.name)
    return done


@contextmanager
def _check_unchanged(source: Copyable, clock: int) -> Iterator[None]:
    """Rows may refer to some that were written behind us: then that is what went wrong."""
    try:
        yield
    except StorageError:
        if _clock(source) != clock:
            raise _changed_error() from None
        raise


@dataclass(frozen=True, slots=True)
class Done:
    """How far a copy has come."""

    finished: tuple[str, ...] = ()
    table: str | None = None
    count: int = 0
    after: list[Any] | None = None

    def within(self, table: Table) -> tuple[int, list[Any] | None]:
        return (self.count, self.after) if self.table == table.name else (0, None)

    def up_to(self, table: Table, count: int, after: list[Any]) -> Done:
        return Done(self.finished, table.name, count, after)

    def past(self, name: str) -> Done:
        return Done((*self.finished, name))

    def text(self, origin: str, clock: int) -> str:
        return json.dumps([origin, clock, self.finished, self.table, self.count, self.after])


def _clock(source: Copyable) -> int:
    """Every change of a memory moves it on."""
    [(_, (clock,))] = source.rows(CLOCK)
    return int(clock)


def _changed_error() -> Conflict:
    return Conflict(
        "The source has changed since this copy began.",
        hint="Stop whatever writes to it, delete the target, and copy again.",
    )


def _progress(source: Copyable, target: Copyable, clock: int) -> Done:
    kept = target.progress()
    if kept:
        origin, began_at, finished, table, count, after = json.loads(kept)
        if origin != source.origin:
            raise Conflict("The target is an unfinished copy of another store.", hint="Copy into a new one.")
        if began_at != clock:
            raise _changed_error()
        return Done(tuple(finished), table, count, after)
    if not target.is_new():
        raise Conflict("The target already has its own memories.", hint="Copy into a new store.")
    return Done()


def _still_the_same(source: Copyable, target: Copyable, report: Progress) -> dict[str, int]:
    try:
        return _verify(source, target, report)
    except StorageDamaged:
        raise Conflict(
            "The target is a finished copy of this store, and one of the two has changed since.",
            hint="Copy into a new store.",
        ) from None


def _verify(source: Copyable, target: Copyable, report: Progress) -> dict[str, int]:
    counts = {}
    for number, table in enumerate(TABLES):
        report("verifying", number, len(TABLES))
        here, there = _sum(source, table), _sum(target, table)
        if here != there:
            raise StorageDamaged(
                f"The copy differs from its source in {table.name}: {there[0]} rows of {here[0]}.",
                hint="Stop everything that writes to either, and copy into a new store again.",
            )
        counts[table.name] = here[0]
    report("verifying", len(TABLES), len(TABLES))
    return counts


def in_batches(rows: Iterator[T], size: int) -> Iterator[list[T]]:
    while batch := list(islice(rows, size)):
        yield batch


def _sum(side: Copyable, table: Table) -> tuple[int, int]:
    rows: Iterator[Row] = (row for _, row in side.rows(table))
    if table.columns[-1] == "vector":
        rows = ((*row[:-1], side.shortened(row[-1])) for row in rows)
    count = total = 0
    for row in rows:
        count += 1
        total += int.from_bytes(sha256(repr(row).encode("utf-8", "surrogatepass")).digest())
    return count, total % 2**256
