"""A store of 465e9b5 is brought up to date with all it holds, also by a program that is killed meanwhile.

`earlier/` has such a store of each backend: its program ran `grow` and wrote them. Two vectors of the file are in the
form of before, which took twice the space.
"""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest

from scrubjay.errors import StorageBusy, StorageError, StorageTooNew
from scrubjay.stores import scripts
from scrubjay.stores.postgres import schema as postgres_schema
from scrubjay.stores.postgres.schema import statements_in
from scrubjay.stores.postgres.store import PostgresStore
from scrubjay.stores.promises.memories import FURTHER_MODELS, OWN_MODEL, Store
from scrubjay.stores.promises.statistics import Part
from scrubjay.stores.promises.sync import Aside, Endpoint, Heard, SyncConflict
from scrubjay.stores.scripts import SCHEMA_VERSION, UPGRADED, script_for
from scrubjay.stores.sqlite import backup
from scrubjay.stores.sqlite import file as sqlite_file
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.values.callers import (
    Act,
    ActFilter,
    Audience,
    Credential,
    CredentialKind,
    Grant,
    Role,
    Scope,
    Session,
    Sight,
)
from scrubjay.values.memory import AccessLevel, Context, Kind, LinkKind, Status
from scrubjay.values.search import Filter, Match
from scrubjay.values.store import BulkOperation, Conversation, Injection, JobStatus, Message, Recall, Speaker
from tests.postgres import Stores, server_url
from tests.reliability.rounds import short_and_long
from tests.stores.contract.suite import (
    EVERY_STATE,
    EVERYTHING,
    NOW,
    a_job,
    a_link,
    a_request,
    an_event,
    at_cosine,
    create_spaces,
    keep,
    later,
    purge,
    put,
    put_away,
    relate,
    scores,
    some,
    totals,
)

pytestmark = pytest.mark.process

FOLDER = Path(__file__).parent / "earlier"
SECONDS = 240
EVE = Audience("eve", (Scope("default", Sight.OWN), Scope("work", Sight.OWN)))  # bob's is hidden from her
OTHER = "second-1"
KEY = Credential(
    id="k", kind=CredentialKind.KEY, user="bob", role=Role.MEMBER, name="n", created_at=NOW, created_by="ann"
)


def grow(store: Store) -> None:
    """A store's worth of everything; 465e9b5 ran this to make what is in `earlier/`."""
    create_spaces(store, "work")
    first = put(store, some("User lives in Seattle", id="a", tags=("home",)), [at_cosine(0.9)])
    put(store, replace(first, content="User lives in Austin", version=2), [at_cosine(0.8)])
    bobs = Context(user_id="bob", session_id="s1")
    put(
        store,
        some("東京都に住む", id="b", space="work", access_level=AccessLevel.PRIVATE, context=bobs),
        [at_cosine(0.7)],
    )
    put(store, some("waits", id="c", context=Context(user_id="eve", conversation_id="c1")), (), parts=2)
    put(store, some("gone", id="d", status=Status.DELETED, recoverable_until=later(9)))
    purge(store, put(store, some("erased", id="e", tags=("secret",))).id)
    chosen = {"reasoning": "It is small", "name": "decision_sqlite"}
    decision = some("We use SQLite", id="f", kind=Kind.DECISION, topic="storage_engine", detail=chosen)
    put(store, decision, [at_cosine(0.5), at_cosine(0.4)])
    again = replace(decision, id="g", content="We use Postgres", detail={"name": "decision_postgres"}, path="inbox/g")
    put(store, again)
    away = put(store, some("Universities generalised packed packed", id="h", status=Status.ARCHIVED, tags=("kept",)))
    put_away(store, away, keep_vectors=True)
    relate(store, a_link("a", "b", score=0.5, reason="why"), a_link("f", "g", kind=LinkKind.SUPERSEDES))
    keep(store, a_request(), '{"a": 1}', memories=["a"])
    with store.writing() as tx:
        for one, cosine in (("a", 0.3), ("b", 0.9)):
            version = 2 if one == "a" else 1
            tx.add_vectors(one, version=version, first_part=0, vectors=[at_cosine(cosine)], parts=1, model=OTHER)
        tx.sync.point("a", supersedes=None, superseded_by=None, valid_until=None, asides=[Aside("supersedes", "d", 3)])
        tx.history.alias("another", "a")
        tx.history.record(an_event(memory="a", fields=("tags",)))
        tx.history.record(an_event(space="work", reason="because"))
        tx.history.set_fact(OWN_MODEL, "m")  # `model` then
        tx.history.set_fact(FURTHER_MODELS, f'["{OTHER}"]')  # `second_model`, one then
        tx.history.note_operation(BulkOperation(id="deed_1", action="forget", user="ann", at=NOW, memories=("a", "d")))
        tx.judge_category("a", agreed=True)
        tx.statistics.count_consolidation("a", sources=2, at=NOW)
        tx.spaces.number_checkpoint("work", 7)
        tx.spaces.describe("work", title="Work", description="what is done")
        tx.callers.add(KEY, b"\0secret")
        tx.callers.grant([Grant(user="bob", space="work", at=NOW, by="ann")])
        tx.callers.open_session(Session(credential="k", guard="g", created_at=NOW, expires_at=later(9)), b"\xff")
        tx.callers.note(Act(at=NOW, user="ann", action="granted", space="work", subject="bob"))
        tx.conversations.put(Conversation(id="c1", space="work", title="t", created_at=NOW, updated_at=NOW))
        tx.conversations.add_message("work", "c1", Message(id="m1", role=Speaker.USER, content="hello", created_at=NOW))
        tx.conversations.inject("work", "c1", Injection(memory="b", active=True, injected_at=NOW))
        hers = {"user_id": "ann", "access_level": AccessLevel.PRIVATE}
        tx.conversations.put(Conversation(id="c1", space="default", created_at=NOW, updated_at=NOW, **hers))
        tx.sync.put_endpoint(Endpoint(name="laptop", url="sqlite:///x", added_at=NOW))
        tx.sync.hear("a", "b", "default", Heard(3, "p"))
        tx.sync.note_conflict(SyncConflict(memory="a", endpoint="laptop", policy="manual", at=NOW, ours="{}"))
        tx.files.put_section("work", "notes", description="what is written")
        tx.files.keep(["a", "b"])
        tx.files.in_sync("a", name="inbox/a.md", hash=b"\1" * 32, stamp="1", version=2)
        tx.files.mirror("work", on=True)
        tx.jobs.put(a_job(id="job_1", result={"done": 3}, finished_at=later(1), status=JobStatus.COMPLETED))
        tx.jobs.put(a_job(id="job_2", cancelling=True))
        tx.archives.announce_objects(["object"], due=later(5))
    recall = Recall(at=NOW, space="default", user="ann", client="editor", memories=("a",))
    store.tally.count({"a": 3}, at=later(70), recall=recall)
    store.flush_reads()


def told(store: Store) -> dict[str, Any]:
    """What a caller gets to know of it, but for ids that are drawn."""
    everything = Filter(states=EVERY_STATE)
    words = ("austin", "東京", "sqlite", "universities", "erased", "gone")
    history, files, talks, sync, callers = store.history, store.files, store.conversations, store.sync, store.callers
    with store.writing() as tx:
        result = tx.history.result_of(a_request(), now=NOW)
    return {
        "memories": [replace(one, origin="") for one in store.get(["another", *"bcdefgh"], EVERYTHING)],
        "listed": [one.id for one in store.list(everything, EVERYTHING, now=NOW)],
        "tagged": [one.id for one in store.list(Filter(tags=frozenset({"home"})), EVERYTHING, now=NOW)],
        "in a conversation": [one.id for one in store.list(Filter(belongs_to="c1"), EVERYTHING, now=NOW)],
        "on a topic": [one.id for one in store.list(Filter(topic="Storage Engine"), EVERYTHING, now=NOW)],
        "words": [store.match(word, everything, EVERYTHING, now=NOW, limit=9) for word in words],
        "words as eve sees them": scores(store, "User lives waits 東京", EVE),
        "meaning": [rounded(store.nearest(at_cosine(1.0), everything, EVERYTHING, now=NOW, limit=9, model=model))
                    for model in (None, OTHER)],
        "lacking": store.upkeep.count_lacking(OTHER),
        "waiting": store.upkeep.pending(limit=9),
        "versions": [replace(one, id="", memory=replace(one.memory, origin="")) for one in history.versions("a")],
        "links": [replace(one, origin="") for one in history.links(["a", "f"])],
        "asides": sync.asides("a"),
        "events": [history.events(space) for space in ("default", "work")],
        "recalls": history.recalls("a"),
        "undone at once": history.bulk_operation("deed_1"),
        "result": result,
        "models": (history.fact(OWN_MODEL), history.fact(FURTHER_MODELS)),
        "totals": replace(totals(store), vector_bytes={}),
        "activity": store.statistics.activity(Part(), EVERYTHING, since=NOW, until=later(90)),
        "spaces": [replace(space, created_at=NOW) for space in store.spaces.list()],
        "callers": (callers.credential("k"), callers.grants(), callers.session(b"\xff"), callers.locked()),
        "acts": callers.acts(ActFilter(), limit=9),
        "conversations": [(talks.list(space, EVERYTHING), talks.messages(space, "c1", limit=9),
                           talks.injections(space, "c1")) for space in ("default", "work")],
        "sync": (sync.endpoints(), sync.heard("a", "b", "default"), sync.conflicts()),
        "files": [files.list(space) for space in ("default", "work")],
        "sections": (files.sections("work"), files.waiting(), files.mirrored("work")),
        "jobs": [store.jobs.get(id) for id in ("job_1", "job_2")],
        "archives": [replace(one, id="") for one in store.archives.get(["h"]).values()],
        "objects": store.archives.objects_due(later(9), 9),
        "problems": store.check(deep=True).problems,
    }  # fmt: skip


def rounded(found: Iterable[Match]) -> list[tuple[str, float]]:
    return [(one.memory, round(one.score, 3)) for one in found]


def goes_on(store: Store) -> None:
    """It is changed as any other."""
    assert put(store, some("written later")).seq == 9
    [known] = store.get(["a"], EVERYTHING)
    put(store, replace(known, content="User lives in Oslo", version=3, path="inbox/oslo"), [at_cosine(0.9)])
    purge(store, "b")
    assert store.check(deep=True).problems == ()


def killed(work: str, *arguments: object) -> bool:
    """Whether a process that does this was killed; if not, it has done it."""
    done = subprocess.run(
        [sys.executable, "-c", work, *map(str, arguments)], capture_output=True, timeout=SECONDS, check=False
    )
    assert done.returncode in (0, -9), done.stderr.decode()
    return done.returncode == -9


# --- SQLite ---


def put_earlier_file(path: Path) -> Path:
    for left in path.parent.glob(f"{path.name}*"):
        left.unlink()
    path.touch(0o600)
    path.write_bytes(gzip.decompress((FOLDER / "store.db.gz").read_bytes()))
    return path


@pytest.fixture
def earlier_file(tmp_path: Path) -> Path:
    return put_earlier_file(tmp_path / "earlier.db")


@pytest.fixture(scope="module")
def of_todays_file(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    with closing(SqliteStore(tmp_path_factory.mktemp("today") / "today.db")) as store:
        grow(store)
        return told(store)


def tables_of(path: Path) -> dict[str, list[Any]]:
    """Columns, indexes and triggers, and what the planner is told of them."""
    with closing(apsw.Connection(str(path))) as con:
        rows = con.execute("SELECT name, type, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_stat%'").fetchall()
        known: dict[str, list[Any]] = {}
        for name, kind, sql in rows:
            plain = " ".join(re.sub(r"--[^\n]*", "", sql or "").replace('"', "").split())
            columns = con.execute("SELECT name, type, [notnull], dflt_value, pk FROM pragma_table_info(?)", (name,))
            known[name] = columns.fetchall() if kind == "table" else [plain]
        known["statistics"] = con.execute("SELECT tbl, idx, stat FROM sqlite_stat1 ORDER BY 1, 2").fetchall()
        return known


def test_a_file_is_brought_up_to_date(earlier_file: Path, of_todays_file: dict[str, Any]) -> None:
    with closing(SqliteStore(earlier_file)) as store:
        assert told(store) == of_todays_file
        assert store.check().schema == SCHEMA_VERSION
        goes_on(store)


def stop_at(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let stores of 465e9b5 be brought to this schema only."""
    for module in (sqlite_file, postgres_schema):
        monkeypatch.setattr(module, "SCHEMA_VERSION", version)
    steps = {name: tuple(step for step in known if step < version) for name, known in UPGRADED.items()}
    monkeypatch.setattr(scripts, "UPGRADED", steps)


def test_a_file_of_a_schema_between_is_brought_up_to_date(
    earlier_file: Path, of_todays_file: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in UPGRADED["sqlite"][1:]:
        with monkeypatch.context() as patched:
            stop_at(version, patched)
            SqliteStore(earlier_file).close()

        with closing(SqliteStore(earlier_file)) as store:
            assert told(store) == of_todays_file


def test_a_file_has_the_same_tables_as_a_new_one(earlier_file: Path, tmp_path: Path) -> None:
    SqliteStore(earlier_file).close()
    SqliteStore(tmp_path / "new.db").close()

    assert tables_of(earlier_file) == tables_of(tmp_path / "new.db")


def test_a_backup_is_restored_and_brought_up_to_date(
    earlier_file: Path, tmp_path: Path, of_todays_file: dict[str, Any]
) -> None:
    backup.restore(earlier_file, tmp_path / "memories.db")

    with closing(SqliteStore(tmp_path / "memories.db")) as store:
        assert told(store) == of_todays_file


@pytest.mark.parametrize("version", [1, 18, 20, 26])
def test_a_file_of_another_schema_is_left_alone_and_says_what_to_do(earlier_file: Path, version: int) -> None:
    with closing(apsw.Connection(str(earlier_file))) as con:
        con.pragma("user_version", version)
    before = earlier_file.read_bytes()

    with pytest.raises(StorageError, match=f"schema {version}") as raised:
        SqliteStore(earlier_file)

    # Only a server of 465e9b5 repairs what still earlier versions left in titles and paths.
    assert ("scrubjay serve" if version < UPGRADED["sqlite"][0] else "scrubjay export") in str(raised.value.hint)
    assert earlier_file.read_bytes() == before


def test_a_program_that_has_a_file_open_is_told_that_a_newer_one_has_changed_it(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "memories.db")) as store:
        with closing(apsw.Connection(str(tmp_path / "memories.db"))) as con:
            con.execute("ALTER TABLE memories RENAME COLUMN title TO heading")
            con.pragma("user_version", SCHEMA_VERSION + 1)

        with pytest.raises(StorageTooNew):
            store.get(["a"], EVERYTHING)


OPEN_FILE = """
import os, sys
from scrubjay.stores.sqlite import file as sqlite_file
from scrubjay.stores.sqlite.store import SqliteStore

left = int(sys.argv[2])

def count(*_):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), 9)
    return True

connect = sqlite_file.connect

def counted(*args, **options):
    con = connect(*args, **options)
    con.exec_trace = count
    return con

sqlite_file.connect = counted
SqliteStore(sys.argv[1]).close()
"""


@short_and_long("points", 3, 20)
def test_a_program_that_is_killed_while_it_updates_a_file_loses_nothing(
    points: int, tmp_path: Path, of_todays_file: dict[str, Any]
) -> None:
    statements = script_for("sqlite", UPGRADED["sqlite"][0]).count(";\n")

    kills = 0
    for point in range(points):
        path = put_earlier_file(tmp_path / "earlier.db")
        kills += killed(OPEN_FILE, path, (point + 1) * statements // (points + 1))
        with closing(SqliteStore(path)) as store:
            assert told(store) == of_todays_file, point

    assert kills == points


# --- PostgreSQL ---


def address(schema: str) -> str:
    return f"{server_url()}{'&' if '?' in server_url() else '?'}schema={schema}"


@pytest.fixture
def admin() -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    with psycopg.connect(server_url(), autocommit=True) as con:
        yield con


@pytest.fixture
def make_earlier(admin: psycopg.Connection[tuple[Any, ...]]) -> Iterator[Callable[[], str]]:
    """Puts the dump back, and gives the store's address."""
    dump = gzip.decompress((FOLDER / "schema.sql.gz").read_bytes()).decode()

    def make() -> str:
        admin.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public; DROP SCHEMA IF EXISTS earlier CASCADE")
        with psycopg.connect(server_url()) as con:
            con.execute(dump.encode())
        return address("earlier")

    yield make
    admin.execute("DROP SCHEMA IF EXISTS earlier CASCADE")


@pytest.fixture
def earlier(make_earlier: Callable[[], str]) -> str:
    return make_earlier()


@pytest.fixture(scope="module")
def of_todays_schema() -> Iterator[dict[str, Any]]:
    with closing(Stores(server_url(), "today")) as stores, closing(PostgresStore(stores.empty())) as store:
        grow(store)
        yield told(store)


def shape_of(con: psycopg.Connection[tuple[Any, ...]], schema: str) -> set[str]:
    """Columns, indexes, triggers, functions and sequences."""
    found = con.execute(
        """
        SELECT concat_ws(' ', attrelid::REGCLASS, attname, format_type(atttypid, atttypmod), attnotnull, attstorage,
            attidentity, pg_get_expr(adbin, adrelid), collname)
        FROM pg_attribute
        JOIN pg_class ON pg_class.oid = attrelid AND relkind IN ('r', 'S')
        LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
        LEFT JOIN pg_collation ON pg_collation.oid = attcollation
        WHERE attnum > 0 AND NOT attisdropped AND relnamespace = %(schema)s::REGNAMESPACE
        UNION ALL SELECT concat_ws(' ', relname, reloptions::TEXT, relpersistence)
        FROM pg_class WHERE relnamespace = %(schema)s::REGNAMESPACE
        UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = %(name)s
        UNION ALL SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = %(schema)s::REGNAMESPACE
        UNION ALL SELECT translate(pg_get_triggerdef(pg_trigger.oid), '()', '')
        FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
        WHERE NOT tgisinternal AND relnamespace = %(schema)s::REGNAMESPACE
        UNION ALL SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = %(schema)s::REGNAMESPACE
        """,
        {"schema": schema, "name": schema},
    )
    return {line.replace(f"{schema}.", "").replace(f"'{schema}'", "") for (line,) in found}


@pytest.mark.postgres
def test_a_database_is_brought_up_to_date(earlier: str, of_todays_schema: dict[str, Any]) -> None:
    with closing(PostgresStore(earlier)) as store:
        assert told(store) == of_todays_schema
        assert store.check().schema == SCHEMA_VERSION
        goes_on(store)


@pytest.mark.postgres
def test_a_database_of_a_schema_between_is_brought_up_to_date(
    earlier: str, of_todays_schema: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in UPGRADED["postgres"][1:]:
        with monkeypatch.context() as patched:
            stop_at(version, patched)
            PostgresStore(earlier).close()

        with closing(PostgresStore(earlier)) as store:
            assert told(store) == of_todays_schema


@pytest.mark.postgres
def test_a_database_has_the_same_tables_as_a_new_one(earlier: str, admin: psycopg.Connection[tuple[Any, ...]]) -> None:
    PostgresStore(earlier).close()
    with closing(Stores(server_url(), "today")) as stores:
        stores.empty()

        assert shape_of(admin, "earlier") == shape_of(admin, "today")


@pytest.mark.postgres
@pytest.mark.parametrize("version", [10, 21, 23, 26])
def test_a_database_of_another_schema_says_what_to_do(
    earlier: str, version: int, admin: psycopg.Connection[tuple[Any, ...]]
) -> None:
    admin.execute("DELETE FROM earlier.schema_steps WHERE number > %s", (version,))
    admin.execute("INSERT INTO earlier.schema_steps (number) VALUES (%s) ON CONFLICT DO NOTHING", (version,))

    with pytest.raises(StorageError, match=f"schema {version}"):
        PostgresStore(earlier)

    assert admin.execute("SELECT max(number) FROM earlier.schema_steps").fetchone() == (version,)


@pytest.mark.postgres
def test_a_database_of_a_newer_scrubjay_is_refused(earlier: str, admin: psycopg.Connection[tuple[Any, ...]]) -> None:
    PostgresStore(earlier).close()
    admin.execute("UPDATE earlier.facts SET value = %s WHERE key = 'schema'", (str(SCHEMA_VERSION + 1),))

    with pytest.raises(StorageTooNew):
        PostgresStore(earlier)


@pytest.mark.postgres
def test_of_several_servers_that_start_at_once_one_updates_the_database(
    earlier: str, of_todays_schema: dict[str, Any]
) -> None:
    opened: list[PostgresStore] = []
    starting = [threading.Thread(target=lambda: opened.append(PostgresStore(earlier))) for _ in range(4)]
    for thread in starting:
        thread.start()
    for thread in starting:
        thread.join()

    assert len(opened) == len(starting)
    assert told(opened[0]) == of_todays_schema
    for store in opened:
        store.close()


@pytest.mark.postgres
def test_an_update_keeps_nobody_waiting_behind_a_long_read(
    earlier: str, admin: psycopg.Connection[tuple[Any, ...]], of_todays_schema: dict[str, Any]
) -> None:
    """A backup reads every table in one long transaction; who reads meanwhile must not wait for it."""
    updating = threading.Thread(target=lambda: PostgresStore(earlier).close())
    with psycopg.connect(server_url()) as backup:
        backup.execute("SELECT count(*) FROM earlier.memories")
        updating.start()
        while not admin.execute("SELECT 1 FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND NOT granted").fetchone():
            assert updating.is_alive()
        for _ in range(3):
            assert admin.execute("SELECT count(*) FROM earlier.memories").fetchone() == (8,)
        assert updating.is_alive()
        backup.rollback()
        updating.join()

    with closing(PostgresStore(earlier)) as store:
        assert told(store) == of_todays_schema


@pytest.mark.postgres
def test_an_update_that_never_gets_its_turn_says_so(
    earlier: str, admin: psycopg.Connection[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_schema, "PATIENCE_SECONDS", 0)
    with psycopg.connect(server_url()) as backup:
        backup.execute("SELECT count(*) FROM earlier.memories")
        with pytest.raises(StorageBusy, match="something holds the store's tables"):
            PostgresStore(earlier)

    assert admin.execute("SELECT max(number) FROM earlier.schema_steps").fetchone() == (UPGRADED["postgres"][0],)


OPEN_DATABASE = """
import os, sys
import psycopg
from scrubjay.stores.postgres.schema import statements_in
from scrubjay.stores.postgres.store import PostgresStore

left = int(sys.argv[2])
execute = psycopg.Connection.execute

def counted(*args, **options):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), 9)
    return execute(*args, **options)

psycopg.Connection.execute = counted
PostgresStore(sys.argv[1]).close()
"""
BEFORE = 14  # statements that come before the script


@pytest.mark.postgres
@short_and_long("points", 2, 10)
def test_a_program_that_is_killed_while_it_updates_a_database_loses_nothing(
    points: int, make_earlier: Callable[[], str], of_todays_schema: dict[str, Any]
) -> None:
    statements = len(statements_in(script_for("postgres", UPGRADED["postgres"][0])))

    kills = 0
    for point in range(points):
        url = make_earlier()
        kills += killed(OPEN_DATABASE, url, BEFORE + point * statements // points)
        with closing(PostgresStore(url)) as store:
            assert told(store) == of_todays_schema, point

    assert kills == points


@pytest.mark.postgres
@short_and_long("points", 3, 20)
def test_a_program_that_is_killed_while_it_makes_a_database_leaves_one_that_can_be_used(
    points: int, admin: psycopg.Connection[tuple[Any, ...]]
) -> None:
    statements = BEFORE + len(statements_in(script_for("postgres", 0)))

    for point in range(points):
        admin.execute("DROP SCHEMA IF EXISTS earlier CASCADE")
        assert killed(OPEN_DATABASE, address("earlier"), point * statements // points)
        with closing(PostgresStore(address("earlier"))) as store:
            grow(store)
            assert store.check(deep=True).problems == ()
    admin.execute("DROP SCHEMA IF EXISTS earlier CASCADE")
