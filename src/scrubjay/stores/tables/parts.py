"""What every store and every transaction holds: the parts that stand beside memories, over the port of its backend, and
the clock.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from scrubjay.errors import CopyUnfinished
from scrubjay.stores.tables.archives import ArchiveChanges, Archives
from scrubjay.stores.tables.callers import CallerChanges, Callers
from scrubjay.stores.tables.conversations import ConversationChanges, Conversations
from scrubjay.stores.tables.files import FileChanges, Files
from scrubjay.stores.tables.history import History, HistoryChanges
from scrubjay.stores.tables.jobs import JobChanges, Jobs
from scrubjay.stores.tables.spaces import SpaceChanges, Spaces
from scrubjay.stores.tables.sql import Sql
from scrubjay.stores.tables.statistics import Statistics, StatisticsChanges
from scrubjay.stores.tables.sync import Sync, SyncChanges
from scrubjay.stores.tables.upkeep import Upkeep, UpkeepChanges
from scrubjay.values.times import milliseconds

if TYPE_CHECKING:
    from scrubjay.stores.promises.memories import Store, Transaction

Kind = TypeVar("Kind", bound="type[Transaction]")


def attach_tables(store: Store, sql: Sql, alone: Sql) -> None:
    """Give a store its tables as parts that read; `alone` changes something outside of any transaction."""
    store.callers = Callers(sql)
    store.jobs = Jobs(sql)
    store.conversations = Conversations(sql)
    store.files = Files(sql)
    store.archives = Archives(sql)
    store.history = History(sql, store.tally)
    store.spaces = Spaces(sql)
    store.sync = Sync(sql)
    store.statistics = Statistics(sql, store.tally)
    store.upkeep = Upkeep(sql, alone)


# Of a transaction, which has the port as `sql` and calls `deferred_writes` before its next statement.
CHANGES: dict[str, Callable[[Any], object]] = {
    "callers": lambda tx: CallerChanges(tx.sql),
    "jobs": lambda tx: JobChanges(tx.sql),
    "conversations": lambda tx: ConversationChanges(tx.sql),
    "files": lambda tx: FileChanges(tx.sql),
    "archives": lambda tx: ArchiveChanges(tx.sql),
    "history": lambda tx: HistoryChanges(tx.sql, tx.tally, tx.deferred_writes),
    "spaces": lambda tx: SpaceChanges(tx.sql),
    "statistics": lambda tx: StatisticsChanges(tx.sql, tx.tally),
    "sync": lambda tx: SyncChanges(tx.sql, tx.history, tx.clock, tx.amend),
    "upkeep": lambda tx: UpkeepChanges(tx.sql),
    "clock": lambda tx: Clock(tx.sql, tx.history, tx.deferred_writes),
}


def with_table_writers(kind: Kind) -> Kind:
    """Give transactions their tables as parts that read and change. A part is made at its first use: most need
    three."""
    for name, make in CHANGES.items():
        part = cached_property(make)
        part.__set_name__(kind, name)
        setattr(kind, name, part)
    return kind


class Clock:
    """The store's hybrid logical clock, in a transaction: read once, and written before the next statement.

    Milliseconds in the upper bits, a count in the lower 16: sorts like time, and never stands still.
    """

    def __init__(self, sql: Sql, history: HistoryChanges, deferred_writes: list[Callable[[], None]]) -> None:
        self._sql = sql
        self._history = history
        self._deferred_writes = deferred_writes
        self._value: int | None = None

    def stamp(self, now: datetime) -> dict[str, Any]:
        """When and where a change is made: `hlc` and `origin` of whatever it changes."""
        return {"hlc": self.tick(now), "origin": self._history.fact("origin") or ""}

    def tick(self, now: datetime) -> int:
        """The next value: past every earlier one, whatever the wall clock says."""
        if self._value is None:
            # In the same question: whether a copy into this store was begun while this process had it open.
            [(self._value, copied)] = self._sql.all(
                "SELECT clock, (SELECT value FROM facts WHERE key = 'copy') FROM counters"
            )
            if copied is not None:
                raise CopyUnfinished
        return self._set(max(int(self._value or 0) + 1, milliseconds(now) << 16))

    def observe(self, hlc: int) -> None:
        """Let the clock be past this value of another's, so that a change here is later than what it saw."""
        if self._value is None:
            [(self._value,)] = self._sql.all("SELECT clock FROM counters")
        if hlc > int(self._value or 0):
            self._set(hlc)

    def forget(self) -> None:
        """It was written by someone else: read it again."""
        self._value = None

    def _set(self, value: int) -> int:
        if self._write not in self._deferred_writes:
            self._deferred_writes.append(self._write)
        self._value = value
        return value

    def _write(self) -> None:
        self._sql.run("UPDATE counters SET clock = :clock", clock=self._value)
