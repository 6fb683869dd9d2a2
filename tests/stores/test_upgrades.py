"""A store of every earlier schema is brought up to date with all it holds, also by a program that is killed meanwhile.

An earlier store is made by the scripts of its time (released ones are never edited) and given the rows of a store of
today, as far as it has a place for them.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import apsw
import psycopg
import pytest
from psycopg import sql

from scrubjay import stores
from scrubjay.errors import Conflict
from scrubjay.stores.postgres import schema as postgres_schema
from scrubjay.stores.postgres import signatures as postgres_signatures
from scrubjay.stores.postgres.store import PostgresStore
from scrubjay.stores.promises.memories import Store
from scrubjay.stores.sqlite import file as sqlite_file
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.values.memory import AccessLevel, Audience, Context, Filter, Scope, Sight, Status
from tests.postgres import Stores, server_url
from tests.reliability.rounds import short_and_long
from tests.stores.contract.suite import (
    EVERYTHING,
    NOW,
    a_link,
    an_event,
    at_cosine,
    create_spaces,
    later,
    purge,
    put,
    relate,
    scores,
    some,
    totals,
)

SCRIPTS = Path(stores.__file__).parent / "schema"
SECONDS = 240
PATHS_PER_SPACE = {"sqlite": 9, "postgres": 12}  # the last schemas in which a path was one memory's, whoever sees it
TALKS_OF_NOBODY = {"sqlite": 10, "postgres": 13}  # the last schemas in which conversations had no user
REASONS_STAYED = {"sqlite": 16, "postgres": 19}  # of memories that had been erased
WITHOUT_LEVELS = 18  # the last schema of PostgreSQL whose signatures had one bit for each number
FIRST_DATABASE = 9  # the schema of the first program that could use PostgreSQL

# Tables of the first schema that hold what cannot be made from the others.
KEPT = (
    "names", "spaces", "facts", "counters", "memories", "aliases", "tags", "versions", "vectors", "pending", "words",
    "links", "events",
)  # fmt: skip
EVE = Audience("eve", (Scope("default", Sight.OWN), Scope("work", Sight.OWN)))  # bob's is hidden from her
FACTS = "key IN ('origin', 'model')"


def grow(store: Store) -> None:
    """What every store could hold from the first one on."""
    create_spaces(store, "work")
    first = put(store, some("User lives in Seattle", id="a", tags=("home",)), [at_cosine(0.9)])
    put(store, replace(first, content="User lives in Austin", version=2), [at_cosine(0.8)])
    bobs = Context(user_id="bob")
    put(store, some("東京都に住む", id="b", space="work", access_level=AccessLevel.PRIVATE, context=bobs))
    put(store, some("waits", id="c", context=Context(user_id="eve", conversation_id="c1")), (), parts=2)
    put(store, some("gone", id="d", status=Status.DELETED, recoverable_until=later(9)))
    purge(store, put(store, some("erased", id="e", tags=("secret",))).id)
    relate(store, a_link("a", "b", score=0.5, reason="why"))
    with store.writing() as tx:
        tx.history.alias("another", "a")
        tx.history.record(an_event(memory="a", fields=("tags",)))
        tx.history.record(an_event(space="work"))
        tx.history.set_fact("model", "m")


def told(store: Store) -> dict[str, object]:
    """What a caller gets to know of it."""
    return {
        "memories": store.get(["another", "b", "c", "d", "e"], EVERYTHING),
        "words": [store.match(word, Filter(), EVERYTHING, now=NOW, limit=9) for word in ("austin", "東京", "seattle")],
        "words as eve sees them": scores(store, "User lives waits 東京", EVE),
        "meaning": store.nearest(at_cosine(1.0), Filter(), EVERYTHING, now=NOW, limit=9),
        "versions": store.history.versions("a"),
        "links": store.history.links(["a"]),
        "events": [store.history.events(space) for space in ("default", "work")],
        "totals": totals(store),
        "waiting": store.upkeep.pending(limit=9),
        "model": store.history.fact("model"),
        "tagged": store.list(Filter(tags=frozenset({"home"})), EVERYTHING, now=NOW),
        "problems": store.check(deep=True).problems,
        "schema": store.check().schema,
    }


def check_paths_per_audience(store: Store) -> None:
    [known] = store.get(["a"], EVERYTHING)
    mine = put(store, some("mine", path=known.path, access_level=AccessLevel.PRIVATE))
    with pytest.raises(Conflict):
        put(store, some("another", path=known.path))

    assert store.get([mine.id], EVERYTHING)[0].path == known.path
    assert store.check(deep=True).problems == ()


def check_shared_and_nobodys(store: Store) -> None:
    [talk] = store.conversations.list("default", EVERYTHING)

    assert (talk.id, talk.user_id, talk.access_level) == ("c1", None, AccessLevel.SHARED)


def scripts(backend: str, schema: int) -> list[str]:
    """Those that a program of then knew."""
    return [script.read_text("utf-8") for script in sorted((SCRIPTS / backend).glob("*.sql"))[:schema]]


def killed(work: str, *arguments: object) -> bool:
    """Whether a process that does this was killed; if not, it has done it."""
    done = subprocess.run(
        [sys.executable, "-c", work, *map(str, arguments)], capture_output=True, timeout=SECONDS, check=False
    )
    assert done.returncode in (0, -9), done.stderr.decode()
    return done.returncode == -9


# --- SQLite ---


@pytest.fixture(scope="module")
def today(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("today") / "memories.db"
    with closing(SqliteStore(path)) as store:
        grow(store)
    return path


def earlier_file(path: Path, today: Path, schema: int) -> None:
    path.touch(0o600)
    with closing(sqlite_file.connect(path)) as con:
        con.pragma("journal_mode", "WAL")
        for script in scripts("sqlite", schema):
            for _ in con.execute(script):
                pass
        con.execute("ATTACH ? AS today", (str(today),))
        for table in (*KEPT, *(["passages"] if _columns(con, "main", "passages") else [])):
            known = _columns(con, "today", table)
            shared = ", ".join(f'"{name}"' for name in _columns(con, "main", table) if name in known)
            rowid = "rowid, " if table == "words" else ""
            which = FACTS if table == "facts" else "TRUE"
            con.execute(f"DELETE FROM main.{table} WHERE {which}")
            con.execute(
                f"INSERT INTO main.{table} ({rowid}{shared}) SELECT {rowid}{shared} FROM today.{table} WHERE {which}"
            )
        con.pragma("application_id", sqlite_file.APPLICATION_ID)
        con.pragma("user_version", schema)


def _columns(con: apsw.Connection, database: str, table: str) -> list[str]:
    return [row[1] for row in con.execute(f"PRAGMA {database}.table_info('{table}')")]


@pytest.mark.parametrize("schema", range(1, sqlite_file.SCHEMA_VERSION))
def test_a_file_of_an_earlier_schema_is_brought_up_to_date(schema: int, today: Path, tmp_path: Path) -> None:
    earlier_file(tmp_path / "memories.db", today, schema)

    with closing(SqliteStore(tmp_path / "memories.db")) as store, closing(SqliteStore(today)) as expected:
        assert told(store) == told(expected)
        assert put(store, some("written later")).seq == 6


def test_a_file_of_before_lets_go_of_paths_that_are_unique_per_space(today: Path, tmp_path: Path) -> None:
    earlier_file(tmp_path / "memories.db", today, PATHS_PER_SPACE["sqlite"])

    with closing(SqliteStore(tmp_path / "memories.db")) as store:
        check_paths_per_audience(store)


def test_a_conversation_in_a_file_of_before_is_shared_and_nobodys(today: Path, tmp_path: Path) -> None:
    path = tmp_path / "memories.db"
    earlier_file(path, today, TALKS_OF_NOBODY["sqlite"])
    with closing(sqlite_file.connect(path)) as con:
        con.execute("INSERT INTO conversations (space, id, created_at, updated_at) VALUES (1, 'c1', 0, 0)")

    with closing(SqliteStore(path)) as store:
        check_shared_and_nobodys(store)


QUOTING = "UPDATE events SET memory = 'e', action = 'updated', reason = 'it said so' WHERE memory = 'a'"
TOLD_WHY = "UPDATE events SET memory = 'e', action = 'purged', reason = 'on request' WHERE memory IS NULL"


def reasons(store: Store) -> list[str | None]:
    return [event.reason for space in ("default", "work") for event in store.history.events(space)]


def test_a_file_of_before_loses_the_reasons_of_what_was_erased(today: Path, tmp_path: Path) -> None:
    path = tmp_path / "memories.db"
    earlier_file(path, today, REASONS_STAYED["sqlite"])
    with closing(sqlite_file.connect(path)) as con:
        con.execute(QUOTING)
        con.execute(TOLD_WHY)

    with closing(SqliteStore(path)) as store:
        assert reasons(store) == [None, "on request"]


OPEN_FILE = """
import apsw, os, sys
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
    points: int, today: Path, tmp_path: Path
) -> None:
    path = tmp_path / "memories.db"
    statements = sum(script.count(";\n") for script in scripts("sqlite", sqlite_file.SCHEMA_VERSION)[1:])
    with closing(SqliteStore(today)) as expected:
        expected_of_it = told(expected)

    kills = 0
    for point in range(points):
        for left in tmp_path.glob("memories.db*"):
            left.unlink()
        earlier_file(path, today, 1)
        kills += killed(OPEN_FILE, path, (point + 1) * statements // (points + 1))
        with closing(SqliteStore(path)) as store:
            assert told(store) == expected_of_it, point

    assert kills == points


# --- PostgreSQL ---


@pytest.fixture(scope="module")
def todays() -> Iterator[str]:
    with closing(Stores(server_url(), "today")) as stores:
        url = stores.empty()
        with closing(PostgresStore(url)) as store:
            grow(store)
        yield url


@pytest.fixture
def earlier(todays: str) -> Iterator[Callable[[int], str]]:
    """Makes the schema `earlier` as it was once, 0: not at all; gives its address."""
    with psycopg.connect(server_url(), autocommit=True) as con:

        def make(schema: int) -> str:
            url = todays.replace("schema=today", "schema=earlier")
            con.execute("DROP SCHEMA IF EXISTS earlier CASCADE")
            if not schema:
                return url
            con.execute("CREATE SCHEMA earlier")
            con.execute("SET search_path = earlier, public")
            for script in scripts("postgres", schema):
                con.execute(script)
            con.execute("SET session_replication_role = replica")  # what triggers write is taken over, too
            for (table,) in con.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'earlier'").fetchall():
                if table not in ("schema_steps", "changed_memories"):  # the server numbers changes itself
                    _take_over(con, table)
            con.execute("SET session_replication_role = origin")
            con.execute("SELECT setval('earlier.arrivals', (SELECT last_value FROM today.arrivals))")
            _say_the_schema(con, schema)
            return url

        yield make
        con.execute("DROP SCHEMA IF EXISTS earlier CASCADE")


def _say_the_schema(con: psycopg.Connection[tuple[object, ...]], schema: int) -> None:
    needed = min(schema, postgres_schema.COUNTED_BY_FACT)
    con.execute("INSERT INTO facts (key, value) VALUES ('schema', %s)", (str(needed),))
    for number in range(needed + 1, schema + 1):
        con.execute("INSERT INTO schema_steps (number) VALUES (%s)", (number,))


def _take_over(con: psycopg.Connection[tuple[object, ...]], table: str) -> None:
    shared = con.execute(
        """
        SELECT attname FROM pg_attribute WHERE attrelid = %s::REGCLASS AND attnum > 0 AND NOT attisdropped
        INTERSECT
        SELECT attname FROM pg_attribute WHERE attrelid = %s::REGCLASS AND attnum > 0 AND NOT attisdropped
        """,
        (f"earlier.{table}", f"today.{table}"),
    )
    columns = sql.SQL(", ").join(sql.Identifier(str(name)) for (name,) in shared)
    here, there = sql.Identifier("earlier", table), sql.Identifier("today", table)
    which = sql.SQL(FACTS if table == "facts" else "TRUE")
    con.execute(sql.SQL("DELETE FROM {} WHERE {}").format(here, which))
    con.execute(sql.SQL("INSERT INTO {} ({}) SELECT {} FROM {} WHERE {}").format(here, columns, columns, there, which))


@pytest.mark.postgres
@pytest.mark.parametrize("schema", range(FIRST_DATABASE, postgres_schema.SCHEMA_VERSION))
def test_a_database_of_an_earlier_schema_is_brought_up_to_date(
    schema: int, todays: str, earlier: Callable[[int], str]
) -> None:
    url = earlier(schema)

    with closing(PostgresStore(url)) as store, closing(PostgresStore(todays)) as expected:
        assert told(store) == told(expected)
        assert put(store, some("written later")).seq == 6


@pytest.mark.postgres
def test_a_database_of_before_gets_the_levels_of_its_vectors(earlier: Callable[[int], str]) -> None:
    with closing(PostgresStore(earlier(WITHOUT_LEVELS))) as store, store._reading() as con:
        assert con.execute("SELECT count(levels) FROM signatures").fetchone() == (3,)
        assert postgres_signatures.wrong(con) == 0


@pytest.mark.postgres
def test_a_database_of_before_loses_the_reasons_of_what_was_erased(earlier: Callable[[int], str]) -> None:
    url = earlier(REASONS_STAYED["postgres"])
    with psycopg.connect(server_url(), autocommit=True) as con:
        con.execute("SET search_path TO earlier")
        con.execute(QUOTING)
        con.execute(TOLD_WHY)

    with closing(PostgresStore(url)) as store:
        assert reasons(store) == [None, "on request"]


@pytest.mark.postgres
def test_a_database_of_before_lets_go_of_paths_that_are_unique_per_space(earlier: Callable[[int], str]) -> None:
    with closing(PostgresStore(earlier(PATHS_PER_SPACE["postgres"]))) as store:
        check_paths_per_audience(store)


@pytest.mark.postgres
def test_a_conversation_in_a_database_of_before_is_shared_and_nobodys(earlier: Callable[[int], str]) -> None:
    url = earlier(TALKS_OF_NOBODY["postgres"])
    with psycopg.connect(server_url(), autocommit=True) as con:
        con.execute(
            "INSERT INTO earlier.conversations (space, id, created_at, updated_at) VALUES ('default', 'c1', 0, 0)"
        )

    with closing(PostgresStore(url)) as store:
        check_shared_and_nobodys(store)


OPEN_DATABASE = """
import os, sys
import psycopg
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
BEFORE = 8  # statements that come before the first script


@pytest.mark.postgres
@short_and_long("points", 2, 10)
def test_a_program_that_is_killed_while_it_updates_a_database_loses_nothing(
    points: int, todays: str, earlier: Callable[[int], str]
) -> None:
    with closing(PostgresStore(todays)) as expected:
        expected_of_it = told(expected)

    kills = 0
    for point in range(points):
        url = earlier(FIRST_DATABASE)
        kills += killed(OPEN_DATABASE, url, BEFORE + point % 4)
        with closing(PostgresStore(url)) as store:
            assert told(store) == expected_of_it, point

    assert kills == points


@pytest.mark.postgres
@short_and_long("points", 3, 20)
def test_a_program_that_is_killed_while_it_makes_a_database_leaves_one_that_can_be_used(
    points: int, earlier: Callable[[int], str]
) -> None:
    statements = BEFORE + 4 * postgres_schema.SCHEMA_VERSION

    for point in range(points):
        url = earlier(0)
        assert killed(OPEN_DATABASE, url, point * statements // points)
        with closing(PostgresStore(url)) as store:
            grow(store)
            assert store.check(deep=True).problems == ()
