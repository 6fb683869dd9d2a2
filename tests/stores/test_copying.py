"""A whole store moves from SQLite to PostgreSQL and back: nothing is lost, a copy that was cut off goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scrubjay.errors import Conflict, EmbeddingError, StorageDamaged, StorageError
from scrubjay.stores.copying import TABLES, Copyable, copy
from scrubjay.stores.postgres.copying import PostgresCopy, _send_vectors
from scrubjay.stores.postgres.store import PostgresStore
from scrubjay.stores.postgres.values import copied_lines, vector_bytes
from scrubjay.stores.promises.memories import OWN_MODEL, Store
from scrubjay.stores.promises.statistics import Part
from scrubjay.stores.promises.sync import Aside, Endpoint, Heard, SyncConflict
from scrubjay.stores.sqlite.copying import SqliteCopy
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.stores.sqlite.vectors import from_blob, to_blob, to_floats
from scrubjay.values.callers import Credential, CredentialKind, Grant, Role, Session
from scrubjay.values.memory import AccessLevel, Context, State, Status
from scrubjay.values.search import Filter
from scrubjay.values.store import BulkOperation, Conversation, Injection, Message, Recall, Speaker
from tests.postgres import Stores, server_url
from tests.stores import citus_rules
from tests.stores.contract.further_vectors import both, further_nearest
from tests.stores.contract.suite import (
    DIMENSION,
    EVERYTHING,
    NOW,
    a_job,
    a_link,
    a_request,
    an_event,
    at_cosine,
    changed,
    create_spaces,
    ids,
    keep,
    later,
    matched,
    nearest,
    purge,
    put,
    put_away,
    relate,
    some,
    totals,
    unit,
)

pytestmark = [pytest.mark.postgres, pytest.mark.process]


@pytest.fixture(autouse=True)
def only_what_citus_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    citus_rules.watch(monkeypatch)


@pytest.fixture(scope="module")
def stores() -> Iterator[Stores]:
    with closing(Stores(server_url(), "copying")) as stores:
        yield stores


@pytest.fixture
def postgres(stores: Stores) -> Iterator[PostgresStore]:
    with closing(PostgresStore(stores.empty())) as store:
        yield store


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(tmp_path / "one.db")) as store:
        yield store


@pytest.fixture
def other(tmp_path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(tmp_path / "other.db")) as store:
        yield store


# Words whose stems have other stems, one that stands there often, and a script without spaces.
PACKED = "Conspiracy, universities generalised generously: packed packed packed packed packed. 京都"
ARCHIVED = Filter(states=frozenset({State.ARCHIVED}))


def fill(store: Store) -> None:
    """Something of everything that a store keeps."""
    create_spaces(store, "work")
    marks = {"tags": ("home",), "auto_tags": ("seattle",), "also": ("hometown",)}
    first = put(store, some("User lives in Seattle", **marks), [at_cosine(0.9)])
    put(store, replace(first, content="User lives in Austin", title="é\0", version=2), [at_cosine(0.8)])
    both(store, content="東京都に住む", space="work", access_level=AccessLevel.PRIVATE, context=Context(user_id="bob"))
    put(store, some("waits", context=Context(user_id="eve", conversation_id="c1", session_id="s")), (), parts=2)
    gone = put(store, some("gone", space="work", status=Status.DELETED, recoverable_until=later(9)))
    changed(store, gone, importance=0.9)
    purge(store, put(store, some("erased", tags=("secret",))).id)
    relate(store, a_link(first.id, gone.id, score=0.5, reason="why"), a_link("a", "b", given=False))
    with store.writing() as tx:
        tx.sync.point(
            first.id, supersedes=None, superseded_by=None, valid_until=None, asides=[Aside("supersedes", gone.id, 3)]
        )
        tx.history.alias("another", first.id)
        tx.history.owe(first.id, user="ann", client="editor")
        tx.history.record(an_event(memory=first.id, fields=("tags",)))
        tx.history.record(an_event(space="work"))
        tx.history.set_fact(OWN_MODEL, "m")
        tx.clock.tick(later(9_999))
        tx.judge_category(first.id, agreed=True)
        tx.statistics.count_consolidation(first.id, sources=2, at=NOW)
        tx.spaces.number_checkpoint("work", 7)
        tx.callers.add(
            Credential(id="k", kind=CredentialKind.KEY, user="bob", role=Role.MEMBER, name="n", created_at=NOW,
                       created_by="ann"),
            b"\0secret",
        )  # fmt: skip
        tx.callers.grant([Grant(user="bob", space="work", at=NOW, by="ann")])
        tx.callers.open_session(Session(credential="k", guard="g", created_at=NOW, expires_at=later(9)), b"\xff")
        tx.conversations.put(Conversation(id="c1", space="work", title="t", created_at=NOW, updated_at=NOW))
        tx.conversations.add_message("work", "c1", Message(id="m1", role=Speaker.USER, content="hello", created_at=NOW))
        hers = {"user_id": "ann", "access_level": AccessLevel.PRIVATE}
        tx.conversations.put(Conversation(id="c1", space="default", created_at=NOW, updated_at=NOW, **hers))
        tx.conversations.inject("default", "c1", Injection(memory=first.id, active=True, injected_at=NOW))
        tx.spaces.describe("work", title="Work", description=None)
        tx.history.note_operation(BulkOperation(id="deed", action="forget", user="ann", at=NOW, memories=(first.id,)))
        tx.sync.put_endpoint(Endpoint(name="laptop", url="sqlite:///x", added_at=NOW))
        tx.sync.hear("a", "b", "default", Heard(3, "p"))
        tx.sync.note_conflict(SyncConflict(memory=first.id, endpoint="laptop", policy="manual", at=NOW, ours="{}"))
        tx.files.put_section("work", "notes", description="what is written")
        tx.files.keep([first.id, gone.id])
        tx.files.in_sync(first.id, name="inbox/a.md", hash=b"\1" * 32, stamp="1", version=2)
        tx.files.mirror("work", on=True)
        tx.jobs.put(a_job(cancelling=True))
        tx.archives.announce_objects(["object"], due=later(5))
    put_away(store, put(store, some(PACKED, status=Status.ARCHIVED, tags=("kept",))))
    keep(store, a_request(), '{"a": 1}', memories=[first.id])
    recall = Recall(at=NOW, space="default", user="ann", client="editor", memories=(first.id,))
    store.tally.count({first.id: 3}, at=later(70), recall=recall)
    store.flush_reads()


def quiet(*_: Any) -> None:
    pass


def blobs(store: SqliteStore) -> list[tuple[Any, ...]]:
    with store._reading() as con:
        return con.execute(
            """
            SELECT memory, part, vector FROM vectors ORDER BY 1, 2, 3
            """
        ).fetchall()


def test_vectors_that_go_out_and_come_back_are_the_same_bytes(
    sqlite: SqliteStore, postgres: PostgresStore, other: SqliteStore
) -> None:
    fill(sqlite)
    for seed in range(200):
        put(sqlite, some(), [unit(seed)])

    copy(SqliteCopy(sqlite), PostgresCopy(postgres), quiet)
    copy(PostgresCopy(postgres), SqliteCopy(other), quiet)

    assert blobs(other) == blobs(sqlite) != []


def test_vectors_of_an_earlier_version_arrive_short_and_count_as_the_same(
    sqlite: SqliteStore, other: SqliteStore
) -> None:
    memory = put(sqlite, some(), [unit(5)])
    with sqlite._changing() as tx:
        tx._con.execute("UPDATE vectors SET vector = ?", (unit(5).tobytes(),))

    copy(SqliteCopy(sqlite), SqliteCopy(other), quiet)

    assert blobs(other) == [(memory.seq, 0, to_blob(unit(5)))] != blobs(sqlite)


@pytest.mark.parametrize("way", ["out", "back"])
def test_everything_moves_and_is_found_again(
    way: str, sqlite: SqliteStore, postgres: PostgresStore, other: SqliteStore
) -> None:
    source: Store = sqlite if way == "out" else postgres
    fill(source)
    sides: list[Copyable] = [SqliteCopy(sqlite), PostgresCopy(postgres)]
    target: Store = postgres if way == "out" else other
    if way == "back":
        sides = [PostgresCopy(postgres), SqliteCopy(other)]

    counts = copy(sides[0], sides[1], quiet)

    assert min(counts[table.name] for table in TABLES if table.name != "acts") > 0, "a table is not tried here"
    assert further_nearest(target) == further_nearest(source) != []
    assert matched(target, "austin") == matched(source, "austin") != []
    assert matched(target, "東京") == matched(source, "東京") != []
    for word in ("conspiracies", "universities", "general", "packing", "京都"):
        assert matched(target, word, ARCHIVED) == matched(source, word, ARCHIVED) != [], word
    assert matched(target, "conspiraci", ARCHIVED) == matched(source, "conspiraci", ARCHIVED)
    assert nearest(target) == nearest(source) != []
    assert replace(totals(target), vector_bytes={}) == replace(totals(source), vector_bytes={})  # not the same form
    assert target.statistics.activity(Part(), EVERYTHING, since=NOW, until=later(90)) == source.statistics.activity(
        Part(), EVERYTHING, since=NOW, until=later(90)
    )
    known = source.get(["another"], EVERYTHING)
    assert target.get(["another"], EVERYTHING) == known != []
    assert target.history.versions(known[0].id) == source.history.versions(known[0].id) != []
    assert target.check(deep=True).problems == () or way == "back"
    assert target.check(deep=True).wrong_hashes == ()


def test_a_store_that_moved_goes_on(sqlite: SqliteStore, postgres: PostgresStore) -> None:
    fill(sqlite)
    last = sqlite.history.events("default")[-1].number
    copy(SqliteCopy(sqlite), PostgresCopy(postgres), quiet)

    memory = put(postgres, some("written later"))
    with postgres.writing() as tx:
        assert tx.history.record(an_event()).number == last + 1
        assert tx.clock.tick(NOW) > 0
    relate(postgres, a_link("x", "y"))

    assert memory.seq == 7
    assert matched(postgres, "later") == [memory.id]


def test_vectors_are_sent_together_as_one_by_one() -> None:
    vectors = [unit(number) for number in range(5)]
    longer = np.ones(2 * DIMENSION, np.float32)
    short, whole = [to_blob(vector) for vector in vectors], [to_floats(vector) for vector in vectors]
    for blobs in (short, whole, [*short, *whole], [*whole, to_floats(longer)], [to_floats(np.zeros_like(longer))]):
        assert [*_send_vectors(blobs)] == [vector_bytes(from_blob(blob)) for blob in blobs]
    for unusable in (np.float32(np.nan), np.float32(np.inf)):
        with pytest.raises(EmbeddingError):
            _send_vectors([*whole, np.full(DIMENSION, unusable, "<f4").tobytes()])


BY_NAME = {table.name: table for table in TABLES}


class CutOff(Exception):
    pass


@pytest.mark.parametrize("at", range(1, 19, 3))
def test_a_copy_that_was_cut_off_goes_on(at: int, sqlite: SqliteStore, postgres: PostgresStore) -> None:
    fill(sqlite)
    before = indexes(postgres)
    target = PostgresCopy(postgres)
    taken: list[str] = []
    take_in: Callable[..., None] = target.take_in

    def failing(table: Any, rows: Any, progress: str) -> None:
        if len(taken) == at:
            raise CutOff
        taken.append(table.name)
        take_in(table, rows, progress)

    target.take_in = failing  # type: ignore[method-assign]
    with pytest.raises(CutOff):
        copy(SqliteCopy(sqlite), target, quiet)

    counts = copy(SqliteCopy(sqlite), PostgresCopy(postgres), quiet)

    assert counts["memories"] == 6
    assert ids(postgres.get(["another"], EVERYTHING)) == ids(sqlite.get(["another"], EVERYTHING))
    assert indexes(postgres) == before
    assert postgres.history.fact("copy_indexes") is None
    counted = vocabulary(postgres)
    postgres.rebuild()
    assert vocabulary(postgres) == counted


def test_an_end_that_failed_is_made_again(sqlite: SqliteStore, postgres: PostgresStore) -> None:
    """Words are counted and indexed on a connection of their own, and stay if the rest fails."""
    fill(sqlite)
    before = indexes(postgres)
    with postgres._connections.apart() as con:

        def in_the_way(table: str, *_: object) -> None:
            if table == "clock":  # the last of all; the index of this name is put aside
                con.execute("CREATE TABLE IF NOT EXISTS memories_by_id ()")

        with pytest.raises(StorageError):
            copy(SqliteCopy(sqlite), PostgresCopy(postgres), in_the_way)
        assert PostgresCopy(postgres).progress()
        con.execute("DROP TABLE memories_by_id")

    copy(SqliteCopy(sqlite), PostgresCopy(postgres), quiet)

    assert indexes(postgres) == before
    assert postgres.history.fact("copy_indexes") is None
    counted = vocabulary(postgres)
    postgres.rebuild()
    assert vocabulary(postgres) == counted


def test_a_batch_that_could_not_be_written_is_told_by_what_comes_next(postgres: PostgresStore) -> None:
    """It is written while the next one is made ready."""
    target = PostgresCopy(postgres)
    target.take_in(BY_NAME["grants"], [("ann", "default", 1, "ann")], "[1]")
    target.take_in(BY_NAME["grants"], [("bob", "default", 1, "ann"), ("ann", "default", 1, "ann")], "[2]")

    with pytest.raises(StorageError):
        target.take_in(BY_NAME["grants"], [("cleo", "default", 1, "ann")], "[3]")

    assert target.count(BY_NAME["grants"]) == 1
    assert target.progress() == "[1]"
    target.take_in(BY_NAME["grants"], [("bob", "default", 1, "ann")], "[2]")
    target.settle()
    assert target.count(BY_NAME["grants"]) == 2


def test_private_words_are_counted_at_the_end_of_a_copy_and_by_themselves_again_after_it(
    sqlite: SqliteStore, postgres: PostgresStore
) -> None:
    put(sqlite, some("Ann keeps a secret garden", access_level=AccessLevel.PRIVATE, context=Context(user_id="ann")))
    copy(SqliteCopy(sqlite), PostgresCopy(postgres), quiet)
    put(postgres, some("Ann keeps another secret", access_level=AccessLevel.PRIVATE, context=Context(user_id="ann")))

    with postgres._reading() as con:
        counted = dict(con.execute("SELECT term, passages FROM audience_vocabulary WHERE audience = 'private:ann'"))

    assert (counted["secret"], counted["garden"]) == (2, 1)


def test_lines_for_copy_say_what_is_in_them_and_nothing_else() -> None:
    rows = [("a\tb\\c\nd\re", 1, None, 0.5, b"\x01\xff"), ("\0\ufdd0ß", -2, "x", None, None), ("", 3, "", 1.0, b"")]

    assert (
        copied_lines(rows)
        == (
            "a\\tb\\\\c\\nd\\re\t1\t\\N\t0.5\t\\\\x01ff\n\ufdd00\ufdd01ß\t-2\tx\t\\N\t\\N\n\t3\t\t1.0\t\\\\x\n"
        ).encode()
    )
    assert copied_lines([]) == b""


def indexes(store: PostgresStore) -> set[str]:
    with store._reading() as con:
        return {name for (name,) in con.execute("SELECT indexdef FROM pg_indexes WHERE schemaname = current_schema()")}


def vocabulary(store: PostgresStore) -> list[Any]:
    with store._reading() as con:
        words = con.execute("SELECT space, term, passages FROM vocabulary ORDER BY 1, 2").fetchall()
        return [*words, *con.execute("SELECT name, passages, passage_words FROM spaces ORDER BY 1")]


def test_a_store_with_memories_is_no_target(sqlite: SqliteStore, postgres: PostgresStore) -> None:
    fill(sqlite)
    put(postgres, some("mine"))

    with pytest.raises(Conflict, match="its own memories"):
        copy(SqliteCopy(sqlite), PostgresCopy(postgres), quiet)

    assert matched(postgres, "mine") != []
    assert matched(postgres, "austin") == []


def test_an_unfinished_copy_of_another_store_is_no_target(
    sqlite: SqliteStore, other: SqliteStore, postgres: PostgresStore
) -> None:
    PostgresCopy(postgres).keep('["elsewhere", 0, [], null, 0, null]')

    with pytest.raises(Conflict, match="another store"):
        copy(SqliteCopy(sqlite), PostgresCopy(postgres), quiet)


def test_a_copy_does_not_go_on_from_a_source_that_has_changed(sqlite: SqliteStore, other: SqliteStore) -> None:
    fill(sqlite)

    def cut_off(table: str, done: int, of: int) -> None:
        if table == "vectors":
            raise CutOff

    with pytest.raises(CutOff):
        copy(SqliteCopy(sqlite), SqliteCopy(other), cut_off)
    with sqlite.writing() as tx:
        tx.clock.tick(NOW)

    with pytest.raises(Conflict, match="changed since this copy began"):
        copy(SqliteCopy(sqlite), SqliteCopy(other), quiet)


def test_rows_that_refer_to_what_was_written_meanwhile_are_told_as_that(
    sqlite: SqliteStore, other: SqliteStore
) -> None:
    fill(sqlite)

    def report(table: str, done: int, of: int) -> None:
        if (table, done) == ("vectors", 0):
            put(sqlite, some("meanwhile"))
            with sqlite.writing() as tx:
                tx.clock.tick(NOW)

    with pytest.raises(Conflict, match="changed since this copy began"):
        copy(SqliteCopy(sqlite), SqliteCopy(other), report)


def test_a_source_that_changes_meanwhile_is_noticed(sqlite: SqliteStore, postgres: PostgresStore) -> None:
    fill(sqlite)

    def report(table: str, done: int, of: int) -> None:
        if (table, done) == ("facts", 0):
            put(sqlite, some("meanwhile"))

    with pytest.raises(StorageDamaged, match="differs from its source in memories"):
        copy(SqliteCopy(sqlite), PostgresCopy(postgres), report)
