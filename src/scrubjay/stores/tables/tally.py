"""Reads that were counted and not yet written.

Handing a memory out must not wait for a durable write, so counts gather here, are laid over what is read, and are
written with the next transaction, or after a few seconds by a thread of their own.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any

from scrubjay.errors import StorageError
from scrubjay.stores.tables.rows import FIELDS, memory_of
from scrubjay.values.frozen import dataclass, replace
from scrubjay.values.memory import Memory
from scrubjay.values.store import Recall
from scrubjay.values.times import milliseconds, moment

KEPT_RECALLS = 10_000
FLUSH_SECONDS = 5.0  # counted reads wait so long for a write to go along with …
FLUSH_WAITING = 1_000  # … and no more of them than this: whoever counts the last one writes them
PATIENCE_SECONDS = 1.0  # with another writer; whoever closes the store may have to wait as long
HOUR = 3_600_000
KEY, ACCESSED, COUNT = map(FIELDS.index, ("id", "accessed_at", "access_count"))  # the last two are neighbours


@dataclass(frozen=True, slots=True)
class Reading:
    count: int
    at: int
    hours: Mapping[int, int]  # since 1970, with how many of the reads were in each


@dataclass(frozen=True, slots=True)
class Batch:
    """Counted reads that one transaction writes."""

    readings: Mapping[str, Reading]
    recalls: tuple[Recall, ...]


NOTHING = Batch({}, ())


class Tally:
    """Counted reads of this process. Safe to use from several threads."""

    def __init__(self, flush: Callable[..., None]) -> None:
        """`flush` is `Store.flush_reads`."""
        self._flush = flush
        self._lock = threading.Lock()
        self._readings: dict[str, Reading] = {}
        self._recalls: deque[Recall] = deque(maxlen=KEPT_RECALLS)
        self._later: threading.Timer | None = None
        self._claimed = threading.Lock()

    def count(self, reads: Mapping[str, int], *, at: datetime, recall: Recall | None = None) -> None:
        """Note that memories were handed out. Cheap: kept in the process, written in batches, seen by the next call.

        Changes neither version nor updated_at nor any clock; what is not yet flushed may be lost in a crash.
        """
        then = milliseconds(at)
        with self._lock:
            for memory, count in reads.items():
                self._merge(memory, count, then)
            if recall is not None:
                self._recalls.append(recall)
            waiting = len(self._readings) + len(self._recalls)
            at_once = waiting >= FLUSH_WAITING or not self._ensure_writer()
        if at_once:
            with suppress(StorageError):  # a full disk or a busy writer must not keep anyone from reading
                self._flush(timeout_seconds=0.0)

    def _ensure_writer(self) -> bool:
        """Start a thread that writes what waits, unless one runs; False if none can be started: too many, or at the
        end."""
        if self._later is None:
            later = threading.Timer(FLUSH_SECONDS, self._write_in_time)
            later.daemon = True
            try:
                later.start()
            except RuntimeError:
                return False
            self._later = later
        return True

    def _write_in_time(self) -> None:
        with self._lock:
            self._later = None
        with suppress(StorageError):  # the next read that is counted sees to it again
            self._flush(timeout_seconds=PATIENCE_SECONDS)

    def close(self) -> None:
        """Stop the thread that waits; writing what is not written yet is up to the caller."""
        with self._lock:
            if self._later is not None:
                self._later.cancel()

    @property
    def has_unwritten(self) -> bool:
        """Whether counted reads wait to be written."""
        return self.batch() != NOTHING

    def memory_of(self, row: Sequence[Any]) -> Memory:
        """Read a memory from its row, with the reads that are not written yet: quicker than `add_reads_to`."""
        reading = self._readings.get(row[KEY])
        if reading is None:
            return memory_of(row)
        count, at = row[COUNT] + reading.count, max(row[ACCESSED], reading.at)
        return memory_of([*row[:ACCESSED], at, count, *row[COUNT + 1 :]])

    def add_reads_to(self, memory: Memory) -> Memory:
        """Add the reads that are not written yet to a memory."""
        reading = self._readings.get(memory.id)
        if reading is None:
            return memory
        return replace(
            memory,
            access_count=memory.access_count + reading.count,
            accessed_at=max(memory.accessed_at, moment(reading.at)),
        )

    def batch(self) -> Batch:
        with self._lock:
            return Batch(dict(self._readings), tuple(self._recalls))

    @contextmanager
    def claim_batch(self) -> Iterator[Batch]:
        """Counts to write in this transaction, until it is committed or undone. Another transaction that ends meanwhile
        gets none: it would write the same reads once more.
        """
        if not self._claimed.acquire(blocking=False):
            yield NOTHING
            return
        try:
            yield (batch := self.batch())
            self.drop_written(batch)
        finally:
            self._claimed.release()

    def drop_written(self, batch: Batch) -> None:
        """Drop the counts that are written now; what was counted meanwhile stays."""
        with self._lock:
            for memory, reading in batch.readings.items():
                now = self._readings[memory]
                hours = {hour: count - reading.hours.get(hour, 0) for hour, count in now.hours.items()}
                if now.count > reading.count:
                    left = {hour: count for hour, count in hours.items() if count}
                    self._readings[memory] = Reading(now.count - reading.count, now.at, left)
                else:
                    del self._readings[memory]
            for _ in range(min(len(batch.recalls), len(self._recalls))):
                self._recalls.popleft()

    def as_rows(self) -> str:
        """The readings as JSON rows `[id, count, at]`, for lists that are sorted by them."""
        return json.dumps([[memory, reading.count, reading.at] for memory, reading in self.batch().readings.items()])

    def recalls_of(self, memory: str) -> list[Recall]:
        return [recall for recall in reversed(self.batch().recalls) if memory in recall.memories]

    def _merge(self, memory: str, count: int, at: int) -> None:
        known, hour = self._readings.get(memory), at // HOUR
        if known is None:
            self._readings[memory] = Reading(count, at, {hour: count})
        else:
            hours = {**known.hours, hour: known.hours.get(hour, 0) + count}
            self._readings[memory] = Reading(known.count + count, max(known.at, at), hours)
