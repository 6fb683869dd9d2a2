"""What the store sends to PostgreSQL is what Citus takes in a schema that it distributes. Every statement that the
contract sends is checked while it is tested (`only_what_citus_takes` in test_postgres.py)."""

from __future__ import annotations

import re
from contextlib import closing

import psycopg
import pytest

from scrubjay.stores.postgres.schema import statements_in
from scrubjay.stores.postgres.store import PostgresStore
from scrubjay.stores.scripts import UPGRADED, script_for
from tests.postgres import Stores, server_url
from tests.stores.citus_rules import Names, breaches

pytestmark = [pytest.mark.postgres, pytest.mark.process]

REFUSED = {
    "INSERT INTO events (space) VALUES ('a') RETURNING number, pg_notify('a', 'b')": "pg_notify in RETURNING",
    "INSERT INTO rates (key) VALUES ('a') RETURNING until - statement_timestamp()": "statement_timestamp in RETURNING",
    "INSERT INTO leases (name) VALUES ('a') ON CONFLICT (name) DO UPDATE SET holder = excluded.holder"
    " WHERE leases.until < clock_timestamp()": "clock_timestamp in ON CONFLICT",
    "INSERT INTO rates (key) VALUES ('a') ON CONFLICT (key) DO UPDATE SET until = excluded.until - INTERVAL '1 day'": (
        "interval in ON CONFLICT"
    ),
    "DELETE FROM holds WHERE until < clock_timestamp()": "clock_timestamp in UPDATE, DELETE or WITH",
    "WITH one AS (SELECT random()) SELECT 1 FROM one; DELETE FROM holds": "random in UPDATE, DELETE or WITH",
    "INSERT INTO pending (memory) VALUES ((SELECT seq FROM memories))": "a subquery within VALUES",
    "CREATE TEMPORARY TABLE lifted (old BIGINT)": "a temporary table",
    "SELECT * FROM public.memories": "names the schema public",
    "SELECT setval('arrivals', (SELECT max(seq) FROM memories))": "a sequence beside a table",
    "SELECT word FROM ts_stat('SELECT terms FROM words')": "a query in a text, which a worker would run",
    "WITH former AS (SELECT state FROM links), written AS (INSERT INTO links (state) VALUES ('open') RETURNING state)"
    " INSERT INTO outbox (space) SELECT state FROM written WHERE state <> (SELECT state FROM former)": (
        "former is not MATERIALIZED before what is written"
    ),
}
TAKEN = (
    "INSERT INTO memories (seq) VALUES (nextval('arrivals')) ON CONFLICT DO NOTHING RETURNING seq",
    "INSERT INTO rates (key, until) VALUES ('a', clock_timestamp() + INTERVAL '1 day')",
    "SELECT * FROM holds WHERE until < clock_timestamp()",
    "SELECT pg_notify(current_schema(), 'default')",
    "UPDATE words SET terms = memories.terms FROM memories WHERE memories.seq = words.memory",
)


@pytest.fixture(scope="module")
def names() -> Names:
    with psycopg.connect(server_url()) as con:
        return Names.of(con)


@pytest.mark.parametrize(("statement", "reason"), REFUSED.items())
def test_a_statement_that_citus_refuses_is_found(names: Names, statement: str, reason: str) -> None:
    assert [*breaches(statement, names)] == [reason]


@pytest.mark.parametrize("statement", TAKEN)
def test_a_statement_that_citus_takes_is_let_through(names: Names, statement: str) -> None:
    assert [*breaches(statement, names)] == []


def test_the_statements_of_a_script_are_sent_one_by_one() -> None:
    script = """
        CREATE TABLE one (a TEXT DEFAULT 'x;y');  -- first; it's small
        CREATE FUNCTION f() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END; $$;
        -- nothing; more
    """

    table, function = statements_in(script)

    assert table.strip().startswith("CREATE TABLE")
    assert table.endswith("'x;y')")
    assert function.strip().endswith("$$")


def test_every_statement_of_every_script_is_whole() -> None:
    for version in (0, UPGRADED["postgres"][0]):
        for statement in statements_in(script_for("postgres", version)):
            assert statement.count("$$") % 2 == 0
            assert statement.count("(") == statement.count(")"), statement


def test_doctor_says_on_which_node_a_store_lies() -> None:
    """A table in place of Citus's view of the same name, for Citus itself is not at hand here."""
    with (
        closing(Stores(server_url(), "citus")) as stores,
        psycopg.connect(server_url(), autocommit=True) as con,
        closing(PostgresStore(stores.empty())) as store,
    ):
        assert "on node" not in store.check().facts
        con.execute("CREATE TABLE citus.citus_shards (table_name OID, nodename TEXT, nodeport INT, shard_size INT)")
        con.execute("INSERT INTO citus.citus_shards SELECT 'citus.memories'::REGCLASS, 'worker-1', 5432, 4096")

        checkup = store.check()

    assert checkup.facts["on node"] == "worker-1:5432"
    assert checkup.bytes_on_disk == 4096


def test_what_the_schemas_functions_do_is_what_citus_takes(names: Names) -> None:
    """Triggers run on the workers, where the statements of their bodies are distributed ones, too."""
    bodies = [
        body
        for version in (0, *UPGRADED["postgres"])
        for statement in statements_in(script_for("postgres", version))
        for body in statement.split("$$")[1::2]
    ]
    steps = [step for body in bodies for step in re.split(r";|\bBEGIN\b|\bTHEN\b|\bELSE\b|\bDECLARE\b", body)]
    found = {step.strip(): [*breaches(step, names)] for step in steps}

    assert sum(step.startswith(("INSERT", "UPDATE", "DELETE", "SELECT")) for step in found) >= 5
    assert {step: wrong for step, wrong in found.items() if wrong} == {}
