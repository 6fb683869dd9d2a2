"""Whatever is wrong with a database, the message says what it is and what to do, and nothing is lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from psycopg import sql

from scrubjay.errors import Error, InvalidInput, StorageBusy, StorageDamaged, StorageError, StorageTooNew
from scrubjay.stores.postgres.store import PostgresStore
from scrubjay.values.search import Filter
from tests.postgres import Stores, server_url
from tests.stores.contract.suite import EVERYTHING, NOW, QUERY, an_event, listed, matched, put, put_in, some

pytestmark = [pytest.mark.postgres, pytest.mark.process]

SECRET = "hunter2"


@pytest.fixture(scope="module")
def stores() -> Iterator[Stores]:
    with closing(Stores(server_url(), "faults")) as stores:
        yield stores


@pytest.fixture
def url(stores: Stores) -> str:
    return stores.empty()


@pytest.fixture
def admin() -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with psycopg.connect(server_url(), autocommit=True) as con:
        yield con


@pytest.fixture(scope="module")
def database() -> Iterator[Callable[..., str]]:
    """Makes a database of one's own, with settings and without an extension; gives its address."""
    with psycopg.connect(server_url(), autocommit=True) as con, ExitStack() as made:

        def database(name: str, *statements: str, user: str = "postgres") -> str:
            con.execute(f"DROP DATABASE IF EXISTS {name}")
            con.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")
            made.callback(con.execute, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
            with psycopg.connect(elsewhere(name), autocommit=True) as there:
                for statement in statements:
                    there.execute(statement)
            return elsewhere(name, user)

        yield database


def elsewhere(database: str, user: str | None = None) -> str:
    """An address on the tests' server: of another database, as another user."""
    parts = urlsplit(server_url())
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(path=f"/{database}", netloc=f"{user}@{host}" if user else parts.netloc))


def said(url: str, **options: object) -> Error:
    with pytest.raises(Error) as refused:
        PostgresStore(url, **options).close()
    assert refused.value.hint
    assert SECRET not in f"{refused.value} {refused.value.hint}"
    return refused.value


# --- addresses ---


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://jay:{SECRET}@host:port/x",
        f"postgresql://jay:{SECRET}@[::1/x",
        f"postgresql://jay:{SECRET}@host/x?colour=green",
        f"postgresql://jay:{SECRET}@host/x?schema=a;drop",
    ],
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        PostgresStore(url)

    assert SECRET not in f"{refused.value} {refused.value.hint} {refused.value.__context__!r}"[:500]


def test_an_address_may_leave_the_host_to_its_options(tmp_path) -> None:
    error = said(f"postgresql:///x?host={tmp_path}&user=jay&password={SECRET}&schema=team")

    assert isinstance(error, StorageBusy), "there is no server, but the address was understood"


def test_a_server_that_is_not_there_may_come_back() -> None:
    error = said(f"postgresql://jay:{SECRET}@127.0.0.1:9/x")

    assert isinstance(error, StorageBusy)
    assert error.retryable


def test_a_server_without_a_free_connection_says_so(admin: psycopg.Connection[tuple[object, ...]]) -> None:
    admin.execute("DROP ROLE IF EXISTS crowded; CREATE ROLE crowded LOGIN CONNECTION LIMIT 0")
    error = said(elsewhere("postgres", "crowded"))
    admin.execute("DROP ROLE crowded")

    assert isinstance(error, StorageBusy)
    assert "no free connections" in str(error)


def test_an_unknown_user_or_database_is_named() -> None:
    assert "no such user" in str(said(elsewhere("postgres", f"nobody:{SECRET}")))
    assert "no such database" in str(said(elsewhere("nowhere")))


# --- pgvector ---


def test_a_server_without_pgvector_says_what_to_install(database: Callable[..., str]) -> None:
    url = database("bare", "ALTER DATABASE bare SET extension_control_path = '/nowhere'")

    error = said(url)

    assert "no pgvector" in str(error)
    assert "CREATE EXTENSION vector" in str(error.hint)


@pytest.fixture
def poor(admin: psycopg.Connection[tuple[object, ...]]) -> str:
    """A user without rights."""
    admin.execute("DO $$ BEGIN CREATE ROLE poor LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
    return "poor"


def test_a_user_that_may_not_install_pgvector_is_told_who_may(database: Callable[..., str], poor: str) -> None:
    url = database("poorly", "CREATE SCHEMA scrubjay AUTHORIZATION poor", user=poor)

    error = said(url)

    assert "is not allowed to install pgvector" in str(error)
    assert "administrator" in str(error.hint)


def test_a_user_that_may_not_make_a_schema_is_told_who_may(database: Callable[..., str], poor: str) -> None:
    error = said(database("poorer", "CREATE EXTENSION vector", user=poor))

    assert "is not allowed to create the schema" in str(error)
    assert "AUTHORIZATION" in str(error.hint)


def test_an_older_pgvector_is_refused(database: Callable[..., str]) -> None:
    url = database(
        "older", "CREATE EXTENSION vector", "UPDATE pg_extension SET extversion = '0.7.4' WHERE extname = 'vector'"
    )

    error = said(url)

    assert "0.7.4 is too old" in str(error)
    assert "ALTER EXTENSION vector UPDATE" in str(error.hint)


# --- schemas ---


def test_a_newer_store_is_refused_and_stays_as_it_is(url: str) -> None:
    with psycopg.connect(server_url(), autocommit=True) as con:
        con.execute("UPDATE faults.facts SET value = '99' WHERE key = 'schema'")

        with pytest.raises(StorageTooNew):
            PostgresStore(url)

        assert con.execute("SELECT value FROM faults.facts WHERE key = 'schema'").fetchone() == ("99",)


def test_a_schema_that_holds_something_else_is_left_alone(database: Callable[..., str]) -> None:
    url = database("other", "CREATE SCHEMA scrubjay", "CREATE TABLE scrubjay.facts (key TEXT, value TEXT)")

    with pytest.raises(StorageDamaged, match="Something else"):
        PostgresStore(url)


def test_a_store_that_lost_a_table_says_so(database: Callable[..., str]) -> None:
    url = database("lost")
    with closing(PostgresStore(url)) as store, psycopg.connect(url, autocommit=True) as con:
        con.execute("DROP TABLE scrubjay.words")

        with pytest.raises(StorageDamaged, match="no complete"):
            put(store, some())


def test_processes_that_find_no_store_make_one(database: Callable[..., str]) -> None:
    """Eight at once: one makes it, the others wait and use it."""
    url = database("race")
    origins: list[object] = []

    def open_one() -> None:
        try:
            with closing(PostgresStore(url)) as store:
                origins.append(store.origin)
        except Error as error:
            origins.append(error.__cause__ or error)

    threads = [threading.Thread(target=open_one) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(origins) == 8
    assert len(set(origins)) == 1, origins


# --- replicas ---


def test_a_read_only_database_is_read_and_says_why_it_is_not_written(database: Callable[..., str]) -> None:
    url = database("replica")
    with closing(PostgresStore(url)) as store:
        memory = put(store, some())
    with psycopg.connect(url, autocommit=True) as con:
        con.execute("ALTER DATABASE replica SET default_transaction_read_only = on")

    with closing(PostgresStore(url)) as store:
        assert listed(store) == matched(store, "seattle") == [memory.id]
        store.tally.count({memory.id: 1}, at=memory.created_at)
        with pytest.raises(StorageError, match="read-only") as refused:
            put(store, some())

    assert "primary" in str(refused.value.hint)


def test_a_read_only_database_without_a_store_says_where_to_start(database: Callable[..., str]) -> None:
    error = said(database("empty", "ALTER DATABASE empty SET default_transaction_read_only = on"))

    assert "read-only" in str(error)
    assert "primary" in str(error.hint)


# --- load ---


def test_when_all_connections_are_in_use_the_next_is_told(url: str) -> None:
    with closing(PostgresStore(url, pool_size=1, timeout_seconds=0.1)) as store:
        with store.writing(), pytest.raises(StorageBusy, match="All 1 connections") as refused:
            store.get(["x"], EVERYTHING)

        assert "SCRUBJAY_POOL_SIZE" in str(refused.value.hint)
        assert store.get(["x"], EVERYTHING) == []


def test_with_one_connection_a_search_goes_both_ways_one_after_the_other(url: str) -> None:
    with closing(PostgresStore(url, pool_size=1)) as store:
        kept = put(store, some("the harbour"))

        found = store.candidates("harbour", QUERY, Filter(), EVERYTHING, now=NOW, limit=100)

    assert ([*found.memories], found.near, [*found.by_words]) == ([kept.id], 1, [0])


def test_fifty_callers_share_four_connections_of_which_one_sleeps(
    url: str, admin: psycopg.Connection[tuple[object, ...]]
) -> None:
    with closing(PostgresStore(url, pool_size=4)) as store:
        kept = put(store, some("the harbour"))

        def sleep() -> None:
            with store._reading() as con:
                con.execute("SELECT pg_sleep(1)")

        def ask(number: int) -> set[str]:
            if number % 2:
                return both_ways(store)
            return {put(store, some(f"writer {number}")).id}

        with ThreadPoolExecutor(51) as callers:
            sleeping = callers.submit(sleep)
            answers = [one.result(timeout=60) for one in [callers.submit(ask, number) for number in range(50)]]
            sleeping.result(timeout=60)
        [(connections,)] = admin.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'scrubjay' AND pid = ANY(%s)",
            ([con.info.backend_pid for con in store._connections._idle],),
        ).fetchall()

        assert all(kept.id in answer for answer in answers[1::2])
        there = {memory.id for memory in store.list(Filter(), EVERYTHING, now=NOW, limit=100)}
        assert {id for answer in answers[::2] for id in answer} <= there
        assert connections == len(store._connections._idle) <= 4


def both_ways(store: PostgresStore) -> set[str]:
    """What is found on two connections at once."""
    return {*store.candidates("harbour", QUERY, Filter(), EVERYTHING, now=NOW, limit=100).memories}


def test_a_statement_that_takes_too_long_is_given_up(url: str, admin: psycopg.Connection[tuple[object, ...]]) -> None:
    with closing(PostgresStore(url, statement_seconds=2.0)) as store:  # ample for all else
        with admin.transaction():
            admin.execute("LOCK TABLE faults.memories")
            with pytest.raises(StorageBusy, match="too long") as refused:
                store.get(["x"], EVERYTHING)

        assert "SCRUBJAY_STATEMENT_TIMEOUT" in str(refused.value.hint)
        assert store.get(["x"], EVERYTHING) == []


def test_a_writer_of_another_process_is_waited_for_a_while(url: str) -> None:
    with closing(PostgresStore(url)) as one, closing(PostgresStore(url, timeout_seconds=0.2)) as other:
        with one.writing() as tx:
            put_in(tx, some("mine"))
            with pytest.raises(StorageBusy):
                put(other, some("yours"))

        assert put(other, some("yours")).seq
        assert len(listed(one)) == 2


# --- connections that break ---


def hang_up(admin: psycopg.Connection[tuple[object, ...]]) -> None:
    admin.execute(
        """
        SELECT pg_terminate_backend(pid, 60000)
        FROM pg_stat_activity
        WHERE application_name = 'scrubjay' AND datname = current_database()
        """
    )


def test_connections_that_were_cut_are_replaced(url: str, admin: psycopg.Connection[tuple[object, ...]]) -> None:
    with closing(PostgresStore(url)) as store:
        memory = put(store, some())
        hang_up(admin)

        assert listed(store) == [memory.id]

        hang_up(admin)
        assert put(store, some()).seq > memory.seq


def test_a_transaction_whose_connection_breaks_leaves_nothing(
    url: str, admin: psycopg.Connection[tuple[object, ...]]
) -> None:
    with closing(PostgresStore(url)) as store:
        with pytest.raises(StorageBusy), store.writing() as tx:  # noqa: PT012 -- what came before it is the point
            put_in(tx, some())
            tx.history.record(an_event())
            hang_up(admin)
            tx.get(["x"], EVERYTHING)

        assert listed(store) == []
        assert store.history.events("default") == []
        assert put(store, some()).seq


def test_no_connection_is_left_behind(url: str, admin: psycopg.Connection[tuple[object, ...]]) -> None:
    store = PostgresStore(url)
    put(store, some())
    with pytest.raises(ZeroDivisionError), store.writing():
        raise ZeroDivisionError
    hang_up(admin)
    listed(store)
    store.close()

    left = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'scrubjay' AND datname = current_database()"
    deadline = time.monotonic() + 60  # a server takes a moment to see that somebody has left
    while admin.execute(left).fetchone() != (0,):
        assert time.monotonic() < deadline


# --- what the schema does by itself ---


def test_nothing_in_the_schema_counts_by_itself(url: str, admin: psycopg.Connection[tuple[object, ...]]) -> None:
    """No triggers but those that count words, and one that drops an earlier text's vectors; no foreign key but one."""
    [(triggers,)] = admin.execute(
        sql.SQL(
            """
            SELECT count(*) FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
            WHERE relnamespace = 'faults'::REGNAMESPACE AND NOT tgisinternal
            """
        )
    )
    bound = admin.execute(
        """
        SELECT conrelid::REGCLASS::TEXT
        FROM pg_constraint
        WHERE contype = 'f'
        AND connamespace = 'faults'::REGNAMESPACE
        """
    )

    assert triggers == 4  # three on `words`, one on `memories`
    assert {str(table).removeprefix("faults.") for (table,) in bound} == {"result_memories"}
