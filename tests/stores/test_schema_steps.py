"""Updates of PostgreSQL's schema leave the servers of the version before at work: files only add, they wait for nobody
while others wait behind them, and a program that knows less than a store holds uses it all the same.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from scrubjay import stores
from scrubjay.errors import StorageBusy, StorageTooNew
from scrubjay.stores.postgres import schema as postgres_schema
from scrubjay.stores.postgres.store import PostgresStore
from tests.postgres import Stores, server_url
from tests.stores.contract.suite import EVERYTHING, put, some

FOLDER = Path(stores.__file__).parent / "schema" / "postgres"
ADVICE = (
    "Servers of the version before go on serving after this file: only add to the schema (docs/howto/postgresql.md), "
    "or, once no supported version uses what goes, name the file in CONTRACTIONS."
)
# Indexes that may go, because no program of the version before relies on them for what it does, only on how quickly.
MAY_GO: dict[str, str] = {
    "memories_by_path": "they look for a memory at a path before they write, under the writers' lock",
    "signatures_by_category": "signatures_of_category has the same columns first",
}
# Unique indexes on tables of theirs that refuse nothing they write.
MAY_BE_UNIQUE: dict[str, str] = {
    "memories_by_place": "memories_by_path, in whose place it comes, was unique on fewer columns",
}
# Triggers that servers of the version before set off unawares: they write to tables of our own and refuse nothing.
MAY_FIRE = {
    "signatures_without_levels": "adds what they do not know of",
    "second_vectors_outdated": "forgets vectors of a text that has changed",
    "second_vectors_rephrased": "forgets vectors of phrases that have changed",
    "words_came": "counts what is not shared by audience",
    "words_went": "counts what is not shared by audience",
    "words_changed_hands": "counts what is not shared by audience",
    "signatures_came": "notes that a memory has changed",
    "signatures_changed": "notes that a memory has changed",
    "signatures_went": "notes that a memory has changed",
    "tags_came": "notes that a memory has changed",
    "tags_changed": "notes that a memory has changed",
    "tags_went": "notes that a memory has changed",
    "words_noted_new": "notes that a memory has changed",
    "words_noted_changed": "notes that a memory has changed",
    "words_noted_gone": "notes that a memory has changed",
}

NAME = r"(?:IF NOT EXISTS )?(\w+)"


def statements(script: str) -> list[str]:
    """A script's statements, each as one line without comments."""
    bare = re.sub(r"\$\$.*?\$\$", "$$", re.sub(r"--[^\n]*", "", script), flags=re.DOTALL)
    return [" ".join(part.split()) for part in bare.split(";") if part.strip()]


def refused(script: str) -> list[str]:
    """The statements that a server of the version before may stumble over."""
    made = {found[1] for line in statements(script) if (found := re.match(rf"CREATE TABLE {NAME}", line))}
    return [line for line in statements(script) if not _only_adds(line, made)]


def _only_adds(line: str, made: set[str]) -> bool:
    if re.match(r"CREATE (TABLE|INDEX|SEQUENCE|FUNCTION) |INSERT INTO |UPDATE ", line):
        return True
    if trigger := re.match(r"CREATE TRIGGER (\w+) AFTER ", line):
        return trigger[1] in MAY_FIRE
    if unique := re.match(rf"CREATE UNIQUE INDEX {NAME} ON (\w+)", line):
        return unique[2] in made or unique[1] in MAY_BE_UNIQUE  # on a table of theirs it would refuse what they write
    if gone := re.fullmatch(r"DROP INDEX (?:IF EXISTS )?(\w+)", line):
        return gone[1] in MAY_GO
    if altered := re.match(r"ALTER TABLE (?:ONLY )?(\w+) (.*)", line):
        actions = re.split(r",(?![^(]*\))", altered[2])
        return altered[1] in made or all(_adds_a_column(action.strip()) for action in actions)
    return False


def _adds_a_column(action: str) -> bool:
    """With nothing that a row without it could break."""
    if not re.match(r"ADD COLUMN ", action):
        return bool(re.fullmatch(r"SET \([^)]*\)|ALTER COLUMN \w+ SET DEFAULT .*", action))
    strict = re.search(r"\b(UNIQUE|PRIMARY KEY|CHECK|REFERENCES)\b", action)
    return not strict and ("NOT NULL" not in action or " DEFAULT " in action)


def expanding() -> list[Path]:
    return [
        file
        for file in sorted(FOLDER.glob("*.sql"))
        if int(file.name[:4]) > postgres_schema.COUNTED_BY_FACT
        and int(file.name[:4]) not in postgres_schema.CONTRACTIONS
    ]


@pytest.mark.parametrize("file", expanding(), ids=lambda file: file.stem)
def test_a_file_only_adds_to_the_schema(file: Path) -> None:
    assert refused(file.read_text("utf-8")) == [], ADVICE


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE words;",
        "DROP INDEX memories_by_id;",
        "ALTER TABLE words DROP COLUMN id;",
        "ALTER TABLE words RENAME COLUMN id TO name;",
        "ALTER TABLE words RENAME TO terms;",
        "ALTER TABLE words ALTER COLUMN place TYPE BIGINT;",
        "ALTER TABLE words ALTER COLUMN place SET NOT NULL;",
        "ALTER TABLE words ADD COLUMN a TEXT, DROP COLUMN b;",
        "ALTER TABLE words\n    ADD COLUMN a TEXT NOT NULL;",
        "ALTER TABLE words ADD COLUMN a NUMERIC(3, 2) DEFAULT 0, ADD COLUMN b TEXT NOT NULL;",
        "ALTER TABLE words ADD COLUMN a TEXT UNIQUE;",
        "ALTER TABLE words ADD CONSTRAINT short CHECK (length < 9);",
        "CREATE UNIQUE INDEX once ON words (id);",
        "CREATE TABLE other (a INTEGER); CREATE UNIQUE INDEX once ON words (id);",
        "CREATE TRIGGER t AFTER INSERT ON words EXECUTE FUNCTION f();",
        "TRUNCATE words;",
        "DELETE FROM words;",
        "INSERT INTO facts (key, value) VALUES ('a', 'b'); DROP VIEW v;",
    ],
)
def test_a_file_that_would_break_the_version_before_is_noticed(statement: str) -> None:
    assert len(refused(statement)) == 1


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE other (a TEXT); CREATE UNIQUE INDEX once ON other (a); ALTER TABLE other ALTER a SET NOT NULL;",
        'ALTER TABLE words -- why\n  ADD COLUMN a TEXT COLLATE "C",\n  ADD COLUMN b BOOLEAN NOT NULL DEFAULT FALSE;',
        "CREATE INDEX quick ON words (id) WHERE state = 0;",
        "UPDATE words SET place = place;",
    ],
)
def test_a_file_that_adds_is_let_pass(statement: str) -> None:
    assert refused(statement) == []


def test_what_a_contraction_asks_of_a_program_is_a_schema_before_it() -> None:
    for number, needed in postgres_schema.CONTRACTIONS.items():
        assert postgres_schema.COUNTED_BY_FACT <= needed < number <= postgres_schema.SCHEMA_VERSION


# --- on a server ---


@pytest.fixture
def url() -> Iterator[str]:
    with closing(Stores(server_url(), "steps")) as stores:
        yield stores.empty()


@pytest.fixture
def admin(url: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with psycopg.connect(server_url(), autocommit=True) as con:
        con.execute("SET search_path = steps, public")
        yield con


def the_next(script: str, *, patience: float = 60.0) -> None:
    """What a program does that knows one file more."""
    with psycopg.connect(server_url(), autocommit=True) as con, pytest.MonkeyPatch.context() as patch:
        patch.setattr(postgres_schema, "PATIENCE_SECONDS", patience)
        con.execute("SET search_path = steps, public")
        postgres_schema.run(con, "steps", postgres_schema.SCHEMA_VERSION + 1, script)


@pytest.mark.postgres
def test_a_store_says_what_a_program_must_know_at_least(
    url: str, admin: psycopg.Connection[tuple[object, ...]]
) -> None:
    [(needed,)] = admin.execute("SELECT value FROM facts WHERE key = 'schema'")

    assert int(str(needed)) == max([postgres_schema.COUNTED_BY_FACT, *postgres_schema.CONTRACTIONS.values()])


@pytest.mark.postgres
def test_a_program_uses_a_store_that_a_newer_one_has_expanded(url: str) -> None:
    the_next("ALTER TABLE memories ADD COLUMN shade TEXT; CREATE TABLE shades (shade TEXT PRIMARY KEY);")

    with closing(PostgresStore(url)) as store:
        kept = put(store, some("written by a program that knows nothing of shades"))
        assert store.get([kept.id], EVERYTHING) == [kept]
        assert store.check().schema == postgres_schema.SCHEMA_VERSION + 1


@pytest.mark.postgres
def test_a_program_refuses_a_store_that_a_newer_one_has_contracted(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    number = postgres_schema.SCHEMA_VERSION + 1
    with monkeypatch.context() as newer:
        newer.setattr(postgres_schema, "CONTRACTIONS", {number: number})
        the_next("ALTER TABLE memories DROP COLUMN title;")

    with pytest.raises(StorageTooNew):
        PostgresStore(url)


@pytest.mark.postgres
def test_an_update_keeps_nobody_waiting_behind_a_long_read(
    url: str, admin: psycopg.Connection[tuple[object, ...]]
) -> None:
    """A backup reads every table in one long transaction; who stores and searches meanwhile must not wait for it."""
    tried = threading.Event()
    updating = threading.Thread(target=the_next, args=("ALTER TABLE memories ADD COLUMN shade TEXT;",))
    with closing(PostgresStore(url)) as store, psycopg.connect(server_url()) as backup:
        backup.execute("SELECT count(*) FROM steps.memories")
        updating.start()
        while not tried.is_set():  # until it was seen to wait
            waiting = admin.execute(
                "SELECT 1 FROM pg_locks WHERE relation = 'memories'::REGCLASS AND NOT granted"
            ).fetchone()
            if waiting:
                tried.set()
        kept = [put(store, some(f"note {number}")) for number in range(3)]
        assert store.get([memory.id for memory in kept], EVERYTHING) == kept
        assert updating.is_alive()
        backup.rollback()
        updating.join()
        assert store.get([memory.id for memory in kept], EVERYTHING) == kept
        assert store.check().schema == postgres_schema.SCHEMA_VERSION + 1


@pytest.mark.postgres
def test_an_update_that_never_gets_its_turn_says_so(url: str, admin: psycopg.Connection[tuple[object, ...]]) -> None:
    with psycopg.connect(server_url()) as backup:
        backup.execute("SELECT count(*) FROM steps.memories")
        with pytest.raises(StorageBusy, match="something holds the store's tables"):
            the_next("ALTER TABLE memories ADD COLUMN shade TEXT;", patience=0)

    assert admin.execute("SELECT max(number) FROM schema_steps").fetchone() == (postgres_schema.SCHEMA_VERSION,)
