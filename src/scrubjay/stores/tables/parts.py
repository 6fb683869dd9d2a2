"""The parts that every store and every transaction holds: what stands beside memories, over the port of its backend."""

from __future__ import annotations

from scrubjay.stores.promises.memories import Store, Transaction
from scrubjay.stores.tables.archives import ArchiveChanges, Archives
from scrubjay.stores.tables.callers import CallerChanges, Callers
from scrubjay.stores.tables.conversations import ConversationChanges, Conversations
from scrubjay.stores.tables.files import FileChanges, Files
from scrubjay.stores.tables.jobs import JobChanges, Jobs
from scrubjay.stores.tables.sql import Sql


def hold(store: Store, sql: Sql) -> None:
    """Give a store its parts, which read."""
    store.callers = Callers(sql)
    store.jobs = Jobs(sql)
    store.conversations = Conversations(sql)
    store.files = Files(sql)
    store.archives = Archives(sql)


def hold_changes(transaction: Transaction, sql: Sql) -> None:
    """Give a transaction its parts, which read and change."""
    transaction.callers = CallerChanges(sql)
    transaction.jobs = JobChanges(sql)
    transaction.conversations = ConversationChanges(sql)
    transaction.files = FileChanges(sql)
    transaction.archives = ArchiveChanges(sql)
