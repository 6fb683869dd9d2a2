"""The parts that every store and every transaction holds: what stands beside memories, over the port of its backend."""

from __future__ import annotations

from scrubjay.stores.promises.memories import Store, Transaction
from scrubjay.stores.tables.archives import ArchiveChanges, Archives
from scrubjay.stores.tables.callers import CallerChanges, Callers
from scrubjay.stores.tables.conversations import ConversationChanges, Conversations
from scrubjay.stores.tables.files import FileChanges, Files
from scrubjay.stores.tables.history import History, HistoryChanges
from scrubjay.stores.tables.jobs import JobChanges, Jobs
from scrubjay.stores.tables.spaces import SpaceChanges, Spaces
from scrubjay.stores.tables.sql import Sql
from scrubjay.stores.tables.sync import Sync, SyncChanges
from scrubjay.stores.tables.tally import Tally
from scrubjay.stores.tables.upkeep import Upkeep, UpkeepChanges


def hold(store: Store, sql: Sql, alone: Sql, tally: Tally) -> None:
    """Give a store its parts, which read; `alone` changes something outside of any transaction."""
    store.callers = Callers(sql)
    store.jobs = Jobs(sql)
    store.conversations = Conversations(sql)
    store.files = Files(sql)
    store.archives = Archives(sql)
    store.history = History(sql, tally)
    store.spaces = Spaces(sql)
    store.sync = Sync(sql)
    store.upkeep = Upkeep(sql, alone)


def hold_changes(transaction: Transaction, sql: Sql, tally: Tally) -> None:
    """Give a transaction its parts, which read and change. Each is made when it is first used: most need three."""
    transaction.makers = {
        "callers": lambda: CallerChanges(sql),
        "jobs": lambda: JobChanges(sql),
        "conversations": lambda: ConversationChanges(sql),
        "files": lambda: FileChanges(sql),
        "archives": lambda: ArchiveChanges(sql),
        "history": lambda: HistoryChanges(sql, tally),
        "spaces": lambda: SpaceChanges(sql),
        "sync": lambda: SyncChanges(sql, transaction.history, transaction.amend),
        "upkeep": lambda: UpkeepChanges(sql),
    }
