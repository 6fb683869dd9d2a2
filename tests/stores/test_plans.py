"""Statements that are written once lean on an index in both backends: their plans name it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from scrubjay.stores.postgres.sql import PostgresSql, rewritten
from scrubjay.stores.postgres.store import PostgresStore
from scrubjay.stores.sqlite.sql import SqliteSql
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.stores.tables.archives import ArchiveChanges
from scrubjay.stores.tables.callers import CallerChanges
from scrubjay.stores.tables.conversations import ConversationChanges
from scrubjay.stores.tables.files import FileChanges
from scrubjay.stores.tables.history import HistoryChanges
from scrubjay.stores.tables.jobs import JobChanges
from scrubjay.stores.tables.sql import Row, Sql
from scrubjay.stores.tables.sync import Sync
from scrubjay.stores.tables.tally import Tally
from scrubjay.stores.tables.upkeep import Upkeep
from tests.postgres import Stores, server_url
from tests.stores.contract.suite import EVERYTHING, NOW, a_request, some

pytestmark = pytest.mark.process

Ask = Callable[[Sql], object]
TALLY = Tally(lambda **_: None)
MAY_BE_SCANNED = r" USING |VIRTUAL TABLE INDEX|CONSTANT ROW|outbox$"  # what may be read from end to end

# What is asked, and the index in SQLite's plan and in PostgreSQL's. `autoindex` and `pkey` are keys of their tables.
PLANS: dict[str, tuple[Ask, str, str]] = {
    "a user's credentials": (
        lambda sql: CallerChanges(sql).credentials(user="ann"),
        "credentials_by_user",
        "credentials_by_user",
    ),
    "a session": (lambda sql: CallerChanges(sql).session(b"s"), "sessions USING PRIMARY KEY", "sessions_pkey"),
    "a user's jobs": (lambda sql: JobChanges(sql).list(user="ann"), "jobs_by_user", "jobs_by_user"),
    "unfinished jobs": (lambda sql: JobChanges(sql).list(unfinished=True), "jobs_unfinished", "jobs_unfinished"),
    "old jobs": (lambda sql: JobChanges(sql).drop(finished_before=NOW), "jobs_by_end", "jobs_by_end"),
    "what a holder holds": (lambda sql: JobChanges(sql).let_go("job"), "holds_by_holder", "holds_by_holder"),
    "a conversation": (
        lambda sql: ConversationChanges(sql).get("default", "c"),
        "sqlite_autoindex_conversations",
        "conversations_pkey",
    ),
    "conversations, latest first": (
        lambda sql: ConversationChanges(sql).list("default", EVERYTHING),
        "conversations_by_update",
        "conversations_by_update",
    ),
    "the spaces of a conversation": (
        lambda sql: ConversationChanges(sql).spaces_of("c"),
        "conversations_by_id",
        "conversations_by_id",
    ),
    "the last messages": (
        lambda sql: ConversationChanges(sql).messages("default", "c", limit=9),
        "messages_by_conversation",
        "messages_pkey",
    ),
    "the answer to a message": (
        lambda sql: ConversationChanges(sql).answer_to("default", "c", "m"),
        "messages_by_question",
        "messages_by_question",
    ),
    "the memories in a conversation": (
        lambda sql: ConversationChanges(sql).injections("default", "c"),
        "sqlite_autoindex_injections",
        "injections_pkey",
    ),
    "the memory at a path": (
        lambda sql: FileChanges(sql).at_path("default", "a", EVERYTHING),
        "memories_by_place (space=? AND path=?)",
        "memories_by_place",
    ),
    "taken paths": (
        lambda sql: FileChanges(sql).taken_paths(some(path="x")),
        "memories_by_place (space=? AND path>? AND path<?)",
        "memories_by_place",
    ),
    "the paths of a section": (
        lambda sql: FileChanges(sql).entries("default", "a", EVERYTHING),
        "memories_by_place (space=? AND path>? AND path<?)",
        "memories_by_place",
    ),
    "the files of a space": (lambda sql: FileChanges(sql).list("default"), "files_by_name", "files_by_name"),
    "files that wait": (
        lambda sql: FileChanges(sql).list("default", waiting=True),
        "outbox USING PRIMARY KEY",
        "outbox_pkey",
    ),
    "the file with a name": (
        lambda sql: FileChanges(sql).find_by_name("default", "a"),
        "files_by_name (space=? AND name=?)",
        "files_by_name",
    ),
    "the file of a memory": (
        lambda sql: FileChanges(sql).of("m"),
        "files_by_memory",
        "files_by_memory",
    ),
    "how many files wait": (lambda sql: FileChanges(sql).waiting(), "SCAN outbox", "outbox"),
    "taking a file away": (
        lambda sql: FileChanges(sql).withdraw("m", version=1),
        "outbox_by_memory",
        "outbox_by_memory",
    ),
    "archives of memories": (
        lambda sql: ArchiveChanges(sql).get(["m"]),
        "archives USING INTEGER PRIMARY KEY",
        "archives_pkey",
    ),
    "what putting memories away would free": (
        lambda sql: ArchiveChanges(sql).hot_bytes(["m"], vectors=True),
        "sqlite_autoindex_versions_2",
        "versions_pkey",
    ),
    "objects to remove": (
        lambda sql: ArchiveChanges(sql).objects_due(NOW, 9),
        "objects_to_remove_by_due",
        "objects_to_remove_by_due",
    ),
    "links of memories": (
        lambda sql: HistoryChanges(sql, TALLY, []).links(["m"]),
        "links_by_target",
        "links_by_target",
    ),
    "open conflicts": (
        lambda sql: HistoryChanges(sql, TALLY, []).open_conflicts(EVERYTHING, now=NOW, limit=9),
        "links_open",
        "links_open",
    ),
    "equal texts": (
        lambda sql: HistoryChanges(sql, TALLY, []).same_text(b"x", EVERYTHING),
        "memories_by_fingerprint",
        "memories_by_fingerprint",
    ),
    "what a client is owed": (
        lambda sql: HistoryChanges(sql, TALLY, []).owed(user="ann", client="editor"),
        "owed_by_client",
        "owed_by_client",
    ),
    "former versions": (
        lambda sql: HistoryChanges(sql, TALLY, []).versions("m"),
        "sqlite_autoindex_versions_2",
        "versions_pkey",
    ),
    "the events of a space": (
        lambda sql: HistoryChanges(sql, TALLY, []).events("default"),
        "events USING PRIMARY KEY",
        "events_pkey",
    ),
    "why a memory was changed": (
        lambda sql: HistoryChanges(sql, TALLY, []).forget_reasons("m"),
        "events_by_reason",
        "events_by_reason",
    ),
    "a kept result": (
        lambda sql: HistoryChanges(sql, TALLY, []).result_of(a_request(), now=NOW),
        "sqlite_autoindex_results_1",
        "results_pkey",
    ),
    "results past their time": (
        lambda sql: HistoryChanges(sql, TALLY, []).keep_result(a_request(), "{}", memories=[], at=NOW),
        "results_by_time",
        "results_by_time",
    ),
    "memories that wait for vectors": (
        lambda sql: Upkeep(sql, sql).pending(limit=9),
        "pending_by_attempts",
        "pending_by_attempts",
    ),
    "memories due for purge": (
        lambda sql: Upkeep(sql, sql).due_for_purge(NOW, 9),
        "memories_by_recovery",
        "memories_by_recovery",
    ),
    "sync conflicts of a memory": (
        lambda sql: Sync(sql).conflicts(memory="m"),
        "sync_conflicts_by_memory",
        "sync_conflicts_by_memory",
    ),
    "how far a feed was heard": (
        lambda sql: Sync(sql).heard("a", "b", "default"),
        "heard USING PRIMARY KEY",
        "heard_pkey",
    ),
    "stamps of memories": (
        lambda sql: Sync(sql).stamps(["m"], EVERYTHING),
        "aliases_by_memory",
        "aliases_by_memory",
    ),
    "what memories say to some": (
        lambda sql: Sync(sql).asides("m"),
        "asides USING PRIMARY KEY",
        "asides_pkey",
    ),
}

IN_ORDER = {"memories that wait for vectors"}  # an index gives the order, and nothing needs to be sorted


class SqlitePlans(SqliteSql):
    """Explains what it is asked, and does nothing else."""

    def all(self, statement: str, /, **values: object) -> list[Row]:
        plan = super().all(f"EXPLAIN QUERY PLAN {statement}", **values)
        self.plan = [*getattr(self, "plan", []), *(row[-1] for row in plan)]
        return []

    def run(self, statement: str, /, **values: object) -> int:
        self.all(statement, **values)
        return 1


class PostgresPlans(PostgresSql):
    without: tuple[str, ...] = ("seqscan",)  # the tables are empty, so that other ways look as cheap as an index

    def all(self, statement: str, /, **values: object) -> list[Row]:
        with self._connection() as con, con.transaction():
            for way in self.without:
                con.execute(f"SET LOCAL enable_{way} = off")
            plan = con.execute(b"EXPLAIN " + rewritten(statement), {"instant": NOW, **values}).fetchall()
        self.plan = [*getattr(self, "plan", []), *(line for (line,) in plan)]
        return []

    def run(self, statement: str, /, **values: object) -> int:
        self.all(statement, **values)
        return 1


def _plan_of(sql: Any, ask: Ask) -> str:
    ask(sql)
    return "\n".join(sql.plan)


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[SqlitePlans]:
    with closing(SqliteStore(tmp_path / "memories.db")) as store:
        yield SqlitePlans(store._reading, store.tally)


@pytest.fixture(scope="module")
def postgres_store() -> Iterator[PostgresStore]:
    with closing(Stores(server_url(), "plans")) as stores, closing(PostgresStore(stores.empty())) as store:
        yield store


@pytest.mark.parametrize("what", PLANS)
def test_sqlite_reads_by_an_index(sqlite: SqlitePlans, what: str) -> None:
    ask, index, _ = PLANS[what]

    plan = _plan_of(sqlite, ask)

    assert index in plan
    assert [line for line in plan.splitlines() if line.startswith("SCAN") and not re.search(MAY_BE_SCANNED, line)] == []


@pytest.mark.postgres
@pytest.mark.parametrize("what", PLANS)
def test_postgres_reads_by_an_index(postgres_store: PostgresStore, what: str) -> None:
    ask, _, index = PLANS[what]

    plans = PostgresPlans(postgres_store._reading, postgres_store.tally)
    if what in IN_ORDER:
        plans.without = ("seqscan", "sort", "hashjoin", "mergejoin")

    plan = _plan_of(plans, ask)

    assert index in plan
    assert "Seq Scan" not in plan
