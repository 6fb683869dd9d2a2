"""The SQLite store keeps the contract, and what it promises of its file and of other processes."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import apsw
import pytest

from scrubjay.errors import (
    InvalidInput,
    StorageBusy,
    StorageDamaged,
    StorageError,
    StorageFull,
    StorageTooNew,
)
from scrubjay.stores.promises.memories import Position
from scrubjay.stores.promises.statistics import Of, Part
from scrubjay.stores.scripts import SCHEMA_VERSION
from scrubjay.stores.sqlite import file as sqlite_file
from scrubjay.stores.sqlite import sql as sqlite_sql
from scrubjay.stores.sqlite.errors import translated_errors
from scrubjay.stores.sqlite.filters import FEW_ROWS
from scrubjay.stores.sqlite.reads import INDEXES, MAX_ARMS
from scrubjay.stores.sqlite.sql import COLUMNS, TABLES, snapshot
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.text.words import SMALL_ROWS
from scrubjay.values.callers import Audience, Scope, Sight
from scrubjay.values.memory import AccessLevel, Category, Context, Memory, Source, State, Status
from scrubjay.values.search import Filter, Order
from tests.conftest import sqlite_store
from tests.reliability.rounds import short_and_long
from tests.stores.contract.suite import (
    DIMENSION,
    EVERYTHING,
    NOW,
    QUERY,
    StoreContract,
    a_link,
    a_request,
    an_event,
    at_cosine,
    create_spaces,
    got,
    ids,
    keep,
    listed,
    matched,
    nearest,
    put,
    put_all,
    put_in,
    relate,
    scores,
    some,
)

pytestmark = pytest.mark.process

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions and signals")

# What other processes do. Each says "ready" and waits for a line, so that all begin at the same instant.
CHILD = """
import sys, threading
from datetime import UTC, datetime
from pathlib import Path
from scrubjay.values.memory import Category, Memory
from scrubjay.stores.promises.memories import Change
from scrubjay.stores.sqlite.store import SqliteStore

NOW = datetime(2026, 1, 2, tzinfo=UTC)

def put(store, id, vectors=()):
    memory = Memory(id=id, space="default", content=f"text of {id}", title="t", path=id, category=Category.FACT,
                    importance=0.5, created_at=NOW, updated_at=NOW, accessed_at=NOW)
    with store.writing() as tx:
        tx.put(memory, fingerprint=id.encode(), vectors=vectors, parts=1, change=Change(user="ann", at=NOW))

def say(text):
    sys.stdout.write(text + "\\n")
    sys.stdout.flush()

def wait():
    say("ready")
    sys.stdin.readline()

path, name = Path(sys.argv[1]), sys.argv[2]
"""
OPENING = CHILD + "wait(); store = SqliteStore(path); say(store.origin); store.close()"
HOLDING = CHILD + "store = SqliteStore(path)\nwith store.writing() as tx: wait()\nsay('done')"
WRITING = (
    CHILD
    + """
store = SqliteStore(path)
def work(thread):
    for step in range(12):
        put(store, f"{name}x{thread}x{step}")
        say(f"{name}x{thread}x{step}")
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
wait()
for thread in threads: thread.start()
for thread in threads: thread.join()
store.close()
"""
)
STREAMING = (
    CHILD
    + """
import numpy as np
store = SqliteStore(path)
wait()
for step in range(100_000):
    put(store, f"{name}x{step}", [np.ones(16, np.float32) / 4])
    say(f"{name}x{step}")
"""
)
ASKING_TWICE = (
    CHILD
    + """
from scrubjay.stores.promises.memories import Request
store = SqliteStore(path)
request = Request(caller="ann", key="once", operation="store_memory", arguments=b"x" * 32)
wait()
with store.writing() as tx:
    kept = tx.history.result_of(request, now=NOW)
    if kept is None:
        memory = Memory(id=f"mem_{name}", space="default", content="text", title="t", path=name, importance=0.5,
                        category=Category.FACT, created_at=NOW, updated_at=NOW, accessed_at=NOW)
        tx.put(memory, fingerprint=b"x", vectors=(), parts=0, change=Change(user="ann", at=NOW))
        tx.history.keep_result(request, memory.id, memories=[memory.id], at=NOW)
        kept = memory.id
say(kept)
store.close()
"""
)
FORKING = (
    CHILD
    + """
import os
from scrubjay.errors import StorageError
store = SqliteStore(path)
if os.fork() == 0:
    try:
        store.spaces.list()
    except StorageError as error:
        say(str(error))
    os._exit(0)
os.wait()
put(store, "after")
say("parent goes on")
store.close()
"""
)


@contextmanager
def child(code: str, path: Path, name: str = "x") -> Iterator[subprocess.Popen[str]]:
    """A process that has said it is ready, and is gone when the block ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(path), name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def children(code: str, path: Path, count: int) -> Iterator[list[subprocess.Popen[str]]]:
    with ExitStack() as stack:
        processes = [stack.enter_context(child(code, path, str(number))) for number in range(count)]
        assert {said(process) for process in processes} == {"ready"}
        yield processes


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def tell(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memories.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    store = sqlite_store(path)
    yield store
    store.close()


class TestSqliteStore(StoreContract):
    vector_size = 2 * DIMENSION + 5

    @pytest.fixture
    def store(self, path: Path) -> Iterator[SqliteStore]:
        store = sqlite_store(path)
        yield store
        store.close()

    @pytest.fixture
    def reopen(self, store: SqliteStore, path: Path) -> Iterator[Callable[[], SqliteStore]]:
        opened = [store]

        def again() -> SqliteStore:
            opened[-1].close()
            opened.append(SqliteStore(path))
            return opened[-1]

        yield again
        opened[-1].close()


# --- several processes ---


def test_ten_processes_that_open_an_empty_folder_at_once_make_one_store(tmp_path: Path) -> None:
    path = tmp_path / "new" / "memories.db"
    with children(OPENING, path, 10) as processes:
        for process in processes:
            tell(process)
        origins = [said(process) for process in processes]
        ends = [process.wait() for process in processes]

    assert ends == [0] * 10
    assert len(set(origins)) == 1
    with closing(SqliteStore(path)) as store:
        assert store.check(deep=True).problems == ()
    assert sorted(file.name for file in path.parent.iterdir()) == [
        "memories.db",
        "memories.db.lock",
        "memories.db.turn",
    ]


def test_sixteen_writers_in_four_processes_lose_nothing_and_are_read_at_once(store: SqliteStore, path: Path) -> None:
    """Each write is looked for by this process as soon as the other has acknowledged it."""
    with children(WRITING, path, 4) as processes:
        for process in processes:
            tell(process)
        acknowledged = []
        for process in processes:
            while line := said(process):
                acknowledged.append(line)
                assert ids(store.get([line], EVERYTHING)) == matched(store, line, limit=1) == [line]
        ends = [process.wait() for process in processes]

    assert ends == [0] * 4
    assert len(set(acknowledged)) == 4 * 4 * 12
    assert sorted(listed(store, limit=999)) == sorted(acknowledged)
    assert store.check(deep=True).problems == ()


def test_of_processes_that_send_one_request_at_once_one_stores_and_all_are_given_its_result(path: Path) -> None:
    with children(ASKING_TWICE, path, 4) as processes:
        for process in processes:
            tell(process)
        results = {said(process) for process in processes}
        ends = [process.wait() for process in processes]

    assert ends == [0] * 4
    with closing(SqliteStore(path)) as store:
        assert listed(store) == list(results)


def test_readers_answer_while_another_process_holds_a_transaction(store: SqliteStore, path: Path) -> None:
    memory = put(store, some())
    store.tally.count({memory.id: 1}, at=NOW)

    with child(HOLDING, path) as holder:
        assert said(holder) == "ready"

        assert listed(store) == matched(store, "seattle") == nearest(store) == [memory.id]
        assert got(store, memory.id).access_count == 1
        with closing(SqliteStore(path)) as other:
            assert listed(other) == [memory.id]


def all_that_is_known(store: SqliteStore) -> tuple[list[str], list[str], list[str], int]:
    """Of three memories of which one is in a space and of a user that there may not be yet."""
    audience = Audience("zoe", (Scope("default", Sight.OWN), Scope("later", Sight.OWN)))
    found = store.candidates("tea", QUERY, Filter(), audience, now=NOW, limit=10)
    talk = store.candidates("tea", QUERY, Filter(conversation_id="talk"), audience, now=NOW, limit=10)
    return sorted(found.memories), list(talk.memories), ids(store.get(["a", "b", "c"], audience)), len(links(store))


def links(store: SqliteStore) -> list[Any]:
    return store.history.links(["a", "b", "c"])


def stored_later(store: SqliteStore) -> None:
    create_spaces(store, "later")
    talk = Context(user_id="zoe", conversation_id="talk")
    put(store, some("Tea is for Zoe", id="c", space="later", context=talk, access_level=AccessLevel.PRIVATE))
    relate(store, a_link("c", "a"))


LATER = (["a", "b", "c"], ["c"], ["a", "b", "c"], 1)


def test_what_others_commit_is_seen_by_the_next_who_keep_a_reader(store: SqliteStore, path: Path) -> None:
    put_all(store, [some("Ann drinks tea", id="a"), some("Bob drinks tea", id="b")])
    with closing(SqliteStore(path)) as other:
        for _ in range(2):
            with store.one_reader():
                assert all_that_is_known(store) == (["a", "b"], [], ["a", "b"], 0)
        stored_later(other)
        with store.one_reader():
            assert all_that_is_known(store) == LATER
        put(other, replace(got(other, "c"), version=2, status=Status.DELETED, deleted_at=NOW))
        with store.one_reader():
            assert all_that_is_known(store)[0] == ["a", "b"]


def test_what_a_thread_writes_while_it_keeps_a_reader_is_seen_there(store: SqliteStore) -> None:
    put_all(store, [some("Ann drinks tea", id="a"), some("Bob drinks tea", id="b")])
    with store.one_reader():
        assert all_that_is_known(store) == (["a", "b"], [], ["a", "b"], 0)
        stored_later(store)
        assert all_that_is_known(store) == LATER


def test_a_link_that_was_undone_hides_no_other(store: SqliteStore, path: Path) -> None:
    put_all(store, [some(id="a"), some(id="b"), some(id="c")])
    with suppress(InterruptedError), store.writing() as tx:
        tx.history.relate(a_link("a", "b"))
        with store.one_reader():
            assert links(store) == []
        raise InterruptedError
    relate(store, a_link("c", "d"))
    with store.one_reader():
        assert ids_of_links(store) == [("c", "d")]
    with closing(SqliteStore(path)) as other:
        relate(other, a_link("a", "d"), a_link("e", "b"))
    with store.one_reader():
        assert ids_of_links(store) == [("c", "d"), ("a", "d"), ("e", "b")]


def test_no_link_is_missed_where_there_are_more_than_a_reader_takes_in_at_once(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_sql, "MOST_LINKS", 4)
    relate(store, a_link("a", "b"), a_link("b", "a"), a_link("a", "c"), a_link("c", "a"), a_link("d", "a"))
    for _ in range(3):
        with store.one_reader():
            assert [link.source for link in store.history.links(["d"])] == ["d"]


def ids_of_links(store: SqliteStore) -> list[tuple[str, str]]:
    return [(link.source, link.target) for link in links(store)]


@pytest.mark.parametrize("error", [GeneratorExit(), InterruptedError(), apsw.SQLError()])
def test_a_read_that_is_given_up_leaves_no_old_view_behind(store: SqliteStore, error: BaseException) -> None:
    put_all(store, [some(id="a"), some(id="b")])

    def rows() -> Iterator[object]:
        with store._reading() as con:
            found = con.execute("SELECT id FROM memories")
            while row := found.fetchone():
                yield row

    gc.disable()  # which would close it sooner or later
    try:
        reading = rows()
        next(reading)
        with suppress(type(error), StorageError):
            reading.throw(type(error)())
        del reading
        put(store, some(id="c"))
        assert sorted(ids(store.get(["a", "b", "c"], EVERYTHING))) == ["a", "b", "c"]
    finally:
        gc.enable()


def test_a_writer_that_waits_too_long_is_told_to_try_again(store: SqliteStore, path: Path) -> None:
    with closing(SqliteStore(path, timeout_seconds=0.05)) as hasty, child(HOLDING, path) as holder:
        assert said(holder) == "ready"
        with pytest.raises(StorageBusy), hasty.writing():
            pass

        tell(holder)
        assert said(holder) == "done"
        put(hasty, some())


def test_a_thread_that_waits_too_long_is_told_to_try_again(path: Path) -> None:
    with closing(SqliteStore(path, timeout_seconds=0.05)) as store:
        refused = []

        def write() -> None:
            with pytest.raises(StorageBusy), store.writing():
                pass
            refused.append(True)

        thread = threading.Thread(target=write)
        with store.writing():
            thread.start()
            thread.join()

    assert refused


def test_a_transaction_inside_a_transaction_is_a_mistake_and_not_a_wait(store: SqliteStore) -> None:
    with store.writing(), pytest.raises(RuntimeError), store.writing():
        pass


def test_a_writer_without_the_lock_file_is_waited_for(store: SqliteStore, path: Path) -> None:
    """Somebody with the sqlite3 command, for example."""
    with closing(apsw.Connection(str(path))) as stranger, closing(SqliteStore(path, timeout_seconds=0.05)) as hasty:
        stranger.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageBusy), hasty.writing():
            pass
        stranger.execute("ROLLBACK")

        put(hasty, some())


@posix
@pytest.mark.parametrize("stop_after", [1, 7, 40])
def test_what_was_acknowledged_survives_kill_9(path: Path, stop_after: int) -> None:
    acknowledged: list[str] = []
    for attempt in range(2):
        with child(STREAMING, path, f"try{attempt}") as writer:
            assert said(writer) == "ready"
            tell(writer)
            acknowledged += [said(writer) for _ in range(stop_after)]
            writer.send_signal(signal.SIGKILL)
            assert writer.stdout is not None
            acknowledged += writer.stdout.read().split()

        with closing(SqliteStore(path)) as store:
            assert {memory.id for memory in store.get(acknowledged, EVERYTHING)} == set(acknowledged)
            assert set(acknowledged) <= set(matched(store, "text", limit=9999))
            assert set(acknowledged) <= set(nearest(store, limit=9999))
            checkup = store.check(deep=True)
            assert checkup.problems == checkup.wrong_hashes == ()
            assert checkup.memories == checkup.with_words == checkup.with_vectors


@posix
def test_a_forked_child_is_told_to_open_its_own(path: Path) -> None:
    with child(FORKING, path) as process:
        assert "opened in another process" in said(process)
        assert said(process) == "parent goes on"


# --- the file ---


@posix
def test_a_new_store_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "memories.db"
    with closing(SqliteStore(path)) as store:
        put(store, some())
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}

        assert modes == dict.fromkeys(
            ["memories.db", "memories.db-wal", "memories.db-shm", "memories.db.lock", "memories.db.turn"], 0o600
        )
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert store.check().facts["permissions"] == "0600"


@posix
def test_a_file_that_others_may_read_is_a_problem(store: SqliteStore, path: Path) -> None:
    path.chmod(0o644)

    assert store.check().problems == ("Other users of this machine can read the file.",)


@pytest.mark.parametrize("name", ["a b.db", "50%20.db", "what?#.db", "büro-東京.db", "no_suffix"])
def test_a_store_may_have_any_name(tmp_path: Path, name: str) -> None:
    for _ in range(2):
        with closing(SqliteStore(tmp_path / name)) as store:
            put(store, some())

    assert len(list(tmp_path.iterdir())) == 3


def _garbage(path: Path) -> None:
    path.write_bytes(b"not a database, but long enough to look like one\n" * 100)


def _empty(path: Path) -> None:
    path.touch()


def _folder(path: Path) -> None:
    path.mkdir()


def _header_only(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\0" + bytes(40))


def _foreign(path: Path) -> None:
    with closing(apsw.Connection(str(path))) as con:
        con.execute("CREATE TABLE memories (a)")


def _foreign_in_wal_mode(path: Path) -> None:
    """With a log that nobody has written back yet, which opening it carelessly would do."""
    source = path.with_name("source")
    with closing(apsw.Connection(str(source))) as con:
        con.pragma("journal_mode", "wal")
        con.execute("CREATE TABLE memories (a)")
        shutil.copy(source, path)
        shutil.copy(f"{source}-wal", f"{path}-wal")


@pytest.mark.parametrize("make", [_garbage, _empty, _folder, _header_only, _foreign, _foreign_in_wal_mode])
def test_what_is_not_a_store_is_refused_and_left_as_it_is(path: Path, make: Callable[[Path], None]) -> None:
    make(path)
    before = _contents(path.parent)

    with pytest.raises(StorageDamaged) as raised:
        SqliteStore(path)

    assert "scrubjay doctor" in str(raised.value.hint)
    assert str(path) not in raised.value.message
    assert _contents(path.parent) == before


def test_a_store_of_a_newer_scrubjay_is_refused_and_left_as_it_is(store: SqliteStore, path: Path) -> None:
    put(store, some())
    store.close()
    with closing(apsw.Connection(str(path))) as con:
        con.pragma("user_version", SCHEMA_VERSION + 1)
    before = path.read_bytes()

    with pytest.raises(StorageTooNew):
        SqliteStore(path)

    assert path.read_bytes() == before


def test_a_folder_that_cannot_be_made_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(StorageError):
        SqliteStore(tmp_path / "file" / "memories.db")


def test_a_half_made_store_of_a_killed_process_does_not_stand_in_the_way(path: Path) -> None:
    path.with_name("memories.db.abc.new").write_bytes(b"half")
    path.with_name("memories.db.abc.new-wal").write_bytes(b"half")

    with closing(SqliteStore(path)):
        assert not list(path.parent.glob("*.new*"))


def test_a_failed_migration_leaves_nothing_behind(path: Path) -> None:
    with closing(apsw.Connection(str(path))) as con:
        con.execute("CREATE TABLE pending (in_the_way)")
        with pytest.raises(apsw.SQLError):
            sqlite_file.migrate(con)

        assert con.execute("SELECT name FROM sqlite_schema").fetchall() == [("pending",)]
        assert con.pragma("user_version") == con.pragma("application_id") == 0


def test_the_settings_that_durability_rests_on_are_in_force(store: SqliteStore) -> None:
    with store.writing() as tx:
        con = tx._con  # type: ignore[attr-defined]
        settings = {name: con.pragma(name) for name in ("journal_mode", "synchronous", "secure_delete", "mmap_size")}

    assert settings == {"journal_mode": "wal", "synchronous": 2, "secure_delete": 1, "mmap_size": 0}


def test_a_statement_is_planned_once_whatever_values_it_is_given(store: SqliteStore, path: Path) -> None:
    planned = list[object]()

    def note(*what: object) -> int:  # SQLite asks whenever it plans a statement
        planned.append(what)
        return apsw.SQLITE_OK

    with closing(sqlite_file.connect(path)) as con:
        con.authorizer = note
        con.execute(f"SELECT {COLUMNS} FROM {TABLES} WHERE memories.id = ?", ("one",)).fetchall()
        before = len(planned)
        con.execute(f"SELECT {COLUMNS} FROM {TABLES} WHERE memories.id = ?", ("another",)).fetchall()

    assert len(planned) == before > 0


def test_numpy_is_not_needed_to_open_store_and_search_by_words(path: Path) -> None:
    code = CHILD + (
        "store = SqliteStore(path); put(store, 'a')\n"
        "from scrubjay.values.callers import Audience, Scope, Sight; from scrubjay.values.search import Filter\n"
        "store.match('text', Filter(), Audience('x', (Scope(None, Sight.ALL),)), now=NOW, limit=5)\n"
        "store.close(); say(str('numpy' in sys.modules))"
    )
    with child(code, path) as process:
        assert said(process) == "False"


def test_no_search_imports_the_masked_arrays_of_numpy(path: Path) -> None:
    """10 ms of every server, for the first search after a change."""
    code = CHILD + (
        "import numpy as np\n"
        "from scrubjay.values.callers import Audience, Scope, Sight; from scrubjay.values.search import Filter\n"
        "store, everyone = SqliteStore(path), Audience('x', (Scope(None, Sight.ALL),))\n"
        "for name in 'abc':\n"
        "    put(store, name, (np.ones(3, np.float32),))\n"
        "    store.candidates('text', np.ones(3, np.float32), Filter(), everyone, now=NOW, limit=5)\n"
        "store.close(); say(str('numpy.ma' in sys.modules))"
    )
    with child(code, path) as process:
        assert said(process) == "False"


# --- erasing ---


def test_no_byte_of_a_purged_memory_is_left(store: SqliteStore, path: Path) -> None:
    put_all(store, (some(f"neighbour number {n}") for n in range(30)))
    secret = some("Zanzibar password", title="Xylophone", path="quokka/1", tags=("wombat",), topic="yttrium")
    secret = put(store, secret)
    secret = put(store, _next(secret, content="Kilimanjaro password", metadata={"k": "okapi"}))
    relate(store, a_link(secret.id, "other", reason="mentions narwhal"))
    keep(store, a_request(), '{"content": "pangolin"}', memories=[secret.id])
    words = [b"anzibar", b"ilimanjaro", b"ylophone", b"quokka", b"wombat", b"yttrium", b"okapi", b"narwhal", b"angolin"]
    assert all(word in _bytes(path) for word in words)

    with store.writing() as tx:
        tx.purge(secret.id, at=NOW)

    assert [word for word in words if word in _bytes(path)] == []


def test_erasing_gives_most_of_the_room_back(store: SqliteStore, path: Path) -> None:
    def churn() -> int:
        memories = put_all(store, (some(f"text number {n} " * 20) for n in range(500)))
        with store.writing() as tx:
            for memory in memories:
                tx.purge(memory.id, at=NOW)
        return store.check().bytes_on_disk

    first = churn()
    for _ in range(3):
        last = churn()

    assert last < 3 * first  # four times as many were written; tombstones stay


# --- damage ---


def test_after_a_crash_damage_is_found_and_the_store_can_only_be_read(store: SqliteStore, path: Path) -> None:
    with store.writing() as tx:
        tx.history.record(an_event())
    store.close()
    store = SqliteStore(path)
    memory = put(store, some())
    crashed = path.with_name("crashed.db")
    _copy_as_crashed(path, crashed)
    store.close()
    _overwrite_page_of(crashed, "events")

    with closing(SqliteStore(crashed)) as damaged:
        assert listed(damaged) == [memory.id]
        with pytest.raises(StorageDamaged), damaged.writing():
            pass
        assert damaged.check().problems


def test_damage_that_a_read_comes_upon_is_remembered_and_nothing_is_written_any_more(
    store: SqliteStore, path: Path
) -> None:
    put_all(store, (some(f"text number {n} " * 50) for n in range(100)))
    store.close()
    _overwrite_page_of(path, "memories_by_created")

    with closing(SqliteStore(path)) as store:
        assert not store.damaged
        with pytest.raises(StorageDamaged):
            listed(store)

        assert store.damaged
        before = sha256(path.read_bytes()).digest()
        with pytest.raises(StorageDamaged), store.writing():
            pass
        assert store.history.fact("origin")
    assert sha256(path.read_bytes()).digest() == before


def test_damaged_words_keep_nobody_from_writing(store: SqliteStore, path: Path) -> None:
    put(store, some())
    _tamper(store, "DELETE FROM words_data WHERE id > 10")
    store.close()

    with closing(SqliteStore(path)) as store:
        with suppress(StorageDamaged):
            matched(store, "seattle")

        assert not store.damaged
        with store.writing() as tx:
            tx.history.record(an_event())


def test_after_a_crash_without_damage_everything_goes_on(store: SqliteStore, path: Path) -> None:
    memory = put(store, some())
    crashed = path.with_name("crashed.db")
    _copy_as_crashed(path, crashed)

    with closing(SqliteStore(crashed)) as whole:
        assert listed(whole) == [memory.id]
        put(whole, some())
        assert whole.check(deep=True).problems == ()


def removed(path: Path) -> None:
    path.unlink()


def replaced(path: Path) -> None:
    SqliteStore(path.with_name("other.db")).close()
    path.with_name("other.db").replace(path)


@pytest.mark.parametrize("lost", [removed, replaced])
def test_a_store_whose_file_was_taken_away_acknowledges_nothing_until_it_is_back(
    store: SqliteStore, path: Path, lost: Callable[[Path], None]
) -> None:
    kept = put(store, some("before"))
    os.link(path, path.with_name("kept.db"))
    lost(path)
    with pytest.raises(StorageError, match="removed or replaced"):
        put(store, some("after"))
    with pytest.raises(StorageError, match="removed or replaced"):
        got(store, kept.id)
    path.with_name("kept.db").replace(path)
    after = put(store, some("after"))
    assert sorted(listed(store)) == sorted([kept.id, after.id])


def test_of_a_disk_that_fails_within_a_snapshot_its_own_error_is_told(store: SqliteStore) -> None:
    def fail(con: apsw.Connection) -> None:
        with snapshot(con):
            con.execute("ROLLBACK")  # as SQLite does by itself then
            raise apsw.IOError

    with store._reading() as con, pytest.raises(apsw.IOError):
        fail(con)


def test_a_file_that_was_cut_off_is_not_written(store: SqliteStore, path: Path) -> None:
    put_all(store, (some(f"text number {n} " * 50) for n in range(400)))  # so that the schema lies in the first half
    store.close()
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)

    with closing(SqliteStore(path)) as cut:
        assert cut.history.fact("origin")
        assert cut.check().problems
        with pytest.raises(StorageDamaged), cut.writing():
            pass


def test_a_file_that_was_cut_off_before_its_tables_says_that_it_is_damaged(store: SqliteStore, path: Path) -> None:
    kept = put(store, some())
    store.close()
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 3)

    with closing(SqliteStore(path)) as cut:
        with pytest.raises(StorageDamaged, match="damaged"):
            got(cut, kept.id)
        with pytest.raises(StorageDamaged, match="damaged"):
            cut.check()


def test_bit_rot_in_a_text_is_found(store: SqliteStore) -> None:
    put(store, some())
    rotten = put(store, some("User lives in Seattle"))
    _tamper(store, "UPDATE memories SET content = 'User lives in Austin' WHERE id = ?", rotten.id)

    assert store.check(deep=True).wrong_hashes == (rotten.id,)
    assert store.check().wrong_hashes == ()


@pytest.mark.parametrize(
    "damage",
    ["DELETE FROM words_data WHERE id > 10", "UPDATE words_content SET c0 = 'other'", "DELETE FROM words"],
)
def test_damaged_words_are_found_and_made_anew(store: SqliteStore, path: Path, damage: str) -> None:
    memory = put(store, some())
    _tamper(store, damage)
    store.close()

    with closing(SqliteStore(path)) as store:
        checkup = store.check(deep=True)
        assert checkup.problems or checkup.with_words < checkup.memories

        store.rebuild()
        assert store.check(deep=True).problems == ()
        assert matched(store, "seattle") == [memory.id]


@pytest.mark.parametrize("times", [128, 150, 300, 500])
def test_a_text_that_repeats_a_word_of_its_former_one_leaves_nothing_in_the_index(
    store: SqliteStore, times: int
) -> None:
    """FTS5 forgets to take the former one out where a word is written so often in the same transaction."""
    memory = put(store, some("ok so far", title="log"))
    put(store, replace(memory, content="ok " * times, title="log", version=2))
    assert store.check(deep=True).problems == ()

    with store.writing() as tx:
        tx.purge(memory.id, at=NOW)
    assert store.check(deep=True).problems == ()
    assert matched(store, "ok") == []


def test_lost_vectors_are_found_and_waited_for_after_rebuilding(store: SqliteStore) -> None:
    memory = put(store, some(), [at_cosine(0.1), at_cosine(0.2)])
    put(store, some())
    _tamper(store, "DELETE FROM vectors WHERE part = 1")
    assert (store.check().memories, store.check().with_vectors, store.check().pending) == (2, 1, 0)

    store.rebuild()

    assert [(one.memory.id, one.next_part) for one in store.upkeep.pending(limit=9)] == [(memory.id, 1)]


# --- errors ---


@pytest.mark.parametrize(
    ("raised", "ours"),
    [
        (apsw.FullError, StorageFull),
        (apsw.BusyError, StorageBusy),
        (apsw.LockedError, StorageBusy),
        (apsw.CorruptError, StorageDamaged),
        (apsw.NotADBError, StorageDamaged),
        (apsw.IOError, StorageError),
        (apsw.CantOpenError, StorageError),
        (apsw.ReadOnlyError, StorageError),
        (apsw.SQLError, StorageError),
    ],
)
def test_each_error_of_sqlite_is_one_of_ours(raised: type[Exception], ours: type[StorageError]) -> None:
    with pytest.raises(StorageError) as caught, translated_errors():
        raise raised("/home/ann/memories.db: something")

    assert type(caught.value) is ours
    assert "/home" not in f"{caught.value.message} {caught.value.hint}"


def test_other_errors_pass_and_half_surrogates_are_the_callers() -> None:
    with pytest.raises(KeyError), translated_errors():
        raise KeyError
    with pytest.raises(InvalidInput), translated_errors():
        "\ud800".encode()


def test_a_full_disk_changes_nothing_and_is_recovered_from(store: SqliteStore) -> None:
    memory = put(store, some())
    with store.writing() as tx:
        con = tx._con  # type: ignore[attr-defined]
        pages, most = con.pragma("page_count"), con.pragma("max_page_count")
    con.pragma("max_page_count", pages)

    with pytest.raises(StorageFull):
        put_all(store, (some("x" * 10_000) for _ in range(50)))
    assert listed(store) == matched(store, "seattle") == [memory.id]

    con.pragma("max_page_count", most)
    put(store, some("x" * 10_000))
    assert store.check(deep=True).problems == ()


BASE_VFS = apsw.vfs_names()[0]


class Failing(apsw.VFS):
    """A file system whose Nth write, sync or truncation fails."""

    def __init__(self, error: type[Exception]) -> None:
        self.error, self.left = error, sys.maxsize
        super().__init__("failing", BASE_VFS, makedefault=True)

    def xOpen(self, name: object, flags: list[int]) -> apsw.VFSFile:
        return FailingFile(self, name, flags)

    def count(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise self.error("as arranged")


class FailingFile(apsw.VFSFile):
    def __init__(self, vfs: Failing, name: object, flags: list[int]) -> None:
        self.vfs = vfs
        super().__init__(BASE_VFS, name, flags)  # type: ignore[arg-type]

    def xWrite(self, data: bytes, offset: int) -> None:
        self.vfs.count()
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:
        self.vfs.count()
        super().xSync(flags)

    def xTruncate(self, size: int) -> None:
        self.vfs.count()
        super().xTruncate(size)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@short_and_long("step", 7, 1)
@pytest.mark.parametrize("error", [apsw.FullError, apsw.IOError])
def test_whichever_write_fails_the_store_is_as_before_or_as_after(
    path: Path, error: type[Exception], step: int
) -> None:
    """Store, change, erase: the Nth write or sync fails, for every N in the long version; then the file is opened as
    usual and is whole.
    """
    before = path.with_name("before.db")
    with closing(SqliteStore(before)) as store:
        kept = put(store, some("User lives in Seattle"))
    failures = 0
    for nth in range(1, 200, step):
        shutil.copy(before, path)
        path.with_name(f"{path.name}.lock").unlink(missing_ok=True)  # knows of changes that the copy lacks
        vfs = Failing(error)
        try:
            store = SqliteStore(path)
            vfs.left = nth
            done = _store_change_erase(store, kept.id)
            left, vfs.left = vfs.left, sys.maxsize
            store.close()
        finally:
            vfs.unregister()
        with closing(SqliteStore(path)) as store:
            assert store.check(deep=True).problems == ()
            present = {memory.content for memory in store.list(Filter(), EVERYTHING, now=NOW)}
            assert present in _AFTER[done : done + 2], (nth, done, present)
            assert set(matched(store, "seattle austin")) == set(listed(store)) == set(nearest(store))
        if left > 0:
            break
        failures += 1

    assert failures > 5


_AFTER = [
    {"User lives in Seattle"},
    {"User lives in Seattle", "User moved to Austin"},
    {"User lives in Seattle", "User moved to Austin, Texas"},
    {"User moved to Austin, Texas"},
]


def _store_change_erase(store: SqliteStore, old: str) -> int:
    """How many of the three steps were acknowledged."""
    done = 0
    try:
        memory = put(store, some("User moved to Austin"))
        done = 1
        put(store, _next(memory, content="User moved to Austin, Texas"))
        done = 2
        with store.writing() as tx:
            tx.purge(old, at=NOW)
        done = 3
    except StorageError:
        pass
    return done


def test_a_checkpoint_that_was_cut_short_is_finished(store: SqliteStore, path: Path) -> None:
    """The header already says how long the file will be, and the rest is still in the log."""
    store.close()
    size = path.stat().st_size
    store = SqliteStore(path)
    memories = put_all(store, (some(f"text number {n} " * 50) for n in range(100)))
    crashed = path.with_name("crashed.db")
    shutil.copy(f"{path}-wal", f"{crashed}-wal")
    store.close()
    shutil.copy(path, crashed)
    os.truncate(crashed, size)

    with closing(SqliteStore(crashed)) as whole:
        assert sorted(listed(whole, limit=999)) == sorted(ids(memories))
        put(whole, some())
        assert whole.check(deep=True).problems == ()


# --- results of requests ---


def test_results_past_their_time_go_little_by_little(store: SqliteStore) -> None:
    with store.writing() as tx:
        for n in range(250):
            tx.history.keep_result(a_request(key=str(n)), "{}", memories=["a", "b"], at=NOW)

    left = []
    for day in range(1, 5):
        keep(store, a_request(key=f"day {day}"), at=NOW + timedelta(days=day))
        left.append([_rows(store, "results"), _rows(store, "result_memories")])

    assert left == [[151, 300], [52, 100], [1, 0], [1, 0]]


# --- words in a large index ---


def test_a_word_is_counted_again_once_the_store_has_grown(store: SqliteStore) -> None:
    put_all(store, [some(f"harbour {number}") for number in range(10)])
    first = store.rarity(["harbour"], EVERYTHING)
    put_all(store, [some(f"quay {number}") for number in range(40)])
    assert store.rarity(["harbour"], EVERYTHING) != first
    with closing(SqliteStore(store._connections.path)) as fresh:
        assert store.rarity(["harbour"], EVERYTHING) == fresh.rarity(["harbour"], EVERYTHING)


def test_a_word_is_counted_again_once_texts_have_changed_though_there_are_as_many(store: SqliteStore) -> None:
    memories = put_all(store, [some(f"harbour {number}") for number in range(10)])
    first = store.rarity(["harbour"], EVERYTHING)
    for memory in memories[:5]:
        put(store, replace(memory, content="quay", title="quay", version=2))
    assert store.rarity(["harbour"], EVERYTHING)["harbour"] > first["harbour"]
    with closing(SqliteStore(store._connections.path)) as fresh:
        assert store.rarity(["harbour"], EVERYTHING) == fresh.rarity(["harbour"], EVERYTHING)


def test_scores_in_a_large_store_stay_when_something_hidden_comes(store: SqliteStore) -> None:
    """From then on frequencies are counted here, no longer by FTS5."""
    member = Audience("ann", (Scope("default", Sight.OWN),))
    with store.writing() as tx:
        for number in range(SMALL_ROWS + 100):
            words = [f"w{factor}" for factor in range(2, 12) if number % factor == 0]
            put_in(tx, some(f"harbour {number} {' '.join(words * (1 + number % 3))}"), ())
    before = scores(store, "w2 w7 w11 12 w5 absent", member)

    put(store, some("w11 absent " * 50, access_level=AccessLevel.PRIVATE, context=Context(user_id="bob")))

    assert scores(store, "w2 w7 w11 12 w5 absent", member) == before


def test_in_a_large_store_common_words_are_left_out_unless_there_is_nothing_else(store: SqliteStore) -> None:
    with store.writing() as tx:
        for n in range(5_100):
            put_in(tx, some(f"User note{n} grey white"), ())
        seattle = put_in(tx, some("User lives in Seattle"), ())

    [match] = store.match("Does the user live in Seattle?", Filter(), EVERYTHING, now=NOW, limit=10)

    assert match.memory == seattle.id
    assert match.score > 0.8
    assert len(matched(store, "user", limit=10)) == 10
    assert len(matched(store, "user unheard", limit=10)) == 10


# --- the planner ---

LOOKUPS: dict[str, tuple[str, Callable[[SqliteStore], object]]] = {
    "list": ("memories_by_created (space=? AND state=?)", lambda store: store.list(Filter(), HERE, now=NOW)),
    "count": ("memories_by_created (space=? AND state=?)", lambda store: store.count(Filter(), HERE, now=NOW)),
    "topic": ("memories_by_topic", lambda store: store.list(Filter(topic="x"), HERE, now=NOW)),
    "ids": ("sqlite_autoindex_memories_1 (id=?)", lambda store: store.list(Filter(ids=frozenset("x")), HERE, now=NOW)),
    "expired": ("memories_by_expiry", lambda store: store.list(Filter(expired=True), HERE, now=NOW)),
    "tags": ("tags_by_tag", lambda store: store.list(Filter(tags=frozenset("x")), HERE, now=NOW)),
    "get": ("sqlite_autoindex_memories_1 (id=?)", lambda store: store.get(["x"], HERE)),
    "twins": ("memories_by_fingerprint", lambda store: store.history.same_text(b"x", HERE)),
    "paths": (
        "memories_by_place (space=? AND path>? AND path<?)",
        lambda store: store.files.taken_paths(some(path="x")),
    ),
    "path": ("memories_by_place (space=? AND path=?)", lambda store: store.files.at_path("default", "x", HERE)),
    "links": ("links_by_target", lambda store: store.history.links(["x"])),
    "versions": ("sqlite_autoindex_memories_1 (id=?)", lambda store: store.history.versions("x")),
    "pending": ("pending_by_attempts", lambda store: store.upkeep.pending(limit=9)),
    "new vectors": ("memories_by_change (change>?)", lambda store: nearest(store)),
    "conversation": (
        "memories_by_conversation",
        lambda store: store.list(Filter(conversation_id="local"), HERE, now=NOW, order=Order.LENGTH),
    ),
    "due": ("memories_by_recovery", lambda store: store.upkeep.due_for_purge(NOW, 9)),
    "a user's number": (
        "COVERING INDEX memories_by_user (user_id=? AND space=?",
        lambda store: store.statistics.count_of_user("local", Audience("", (Scope("default", Sight.ALL),))),
    ),
    "hours": (
        "COVERING INDEX memories_by_created (space=?)",
        lambda store: store.statistics.created_before(Part(), HERE, [NOW]),
    ),
    "what is at hand": (
        "COVERING INDEX memories_by_created (space=? AND state=?)",
        lambda store: store.statistics.at_hand(Part(), HERE, now=NOW),
    ),
    "activity": (
        "activity USING PRIMARY KEY (part=? AND at>? AND at<?)",
        lambda store: store.statistics.activity(Part(), HERE, since=NOW, until=NOW),
    ),
    "deletions": (
        "COVERING INDEX memories_by_deletion (space=? AND deleted_at>? AND deleted_at<?)",
        lambda store: store.statistics.activity(Part(Of.CONVERSATION, "local"), HERE, since=NOW, until=NOW),
    ),
}
HERE = Audience("local", (Scope("default", Sight.OWN),))


@pytest.mark.parametrize("name", LOOKUPS)
def test_nothing_reads_the_whole_store(store: SqliteStore, name: str) -> None:
    index, look = LOOKUPS[name]
    put(store, some())

    plan = _plan(store, look)

    assert any(index in step for step in plan), plan
    assert not any(step.startswith("SCAN memories") for step in plan), plan
    assert name != "list" or not any("TEMP B-TREE" in step for step in plan), plan


FILTERED = {
    "everything": Filter(),
    "usual filters": Filter(
        categories=frozenset({Category.FACT}),
        created_since=NOW,
        created_until=NOW,
        min_importance=0.1,
        max_importance=0.9,
        user_id="local",
        access_levels=frozenset({AccessLevel.SHARED, AccessLevel.PRIVATE}),
    ),
    "rows themselves": Filter(session_id="s", source=Source.EXPLICIT),
}


@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("descending", [True, False])
@pytest.mark.parametrize("name", FILTERED)
@pytest.mark.parametrize("sight", [Sight.ALL, Sight.OWN])
def test_a_list_comes_from_the_index_of_its_order(
    store: SqliteStore, order: Order, descending: bool, name: str, sight: Sight
) -> None:
    """Active and superseded ones merged, from the start and behind a position; nothing is sorted."""
    put(store, some())
    filter = replace(FILTERED[name], states=frozenset({State.ACTIVE, State.SUPERSEDED}))
    audience = Audience("local", (Scope("default", sight),))
    index = INDEXES[order] if name == "rows themselves" else f"COVERING INDEX {INDEXES[order]}"
    for after in (None, Position(value=1, seq=1)):
        plan = _plan(
            store,
            lambda store, after=after: store.list(
                filter, audience, now=NOW, order=order, descending=descending, after=after
            ),
        )

        steps = [step for step in plan if INDEXES[order] in step]
        assert len(steps) == 2, plan
        assert all(index in step and "(space=? AND state=?" in step for step in steps), plan
        assert after is None or all("<?" in step or ">?" in step for step in steps), plan
        assert any("MERGE" in step for step in plan), plan
        assert not any("TEMP B-TREE" in step or step.startswith("SCAN memories") for step in plan), plan


def test_a_tag_or_conversation_of_many_is_read_in_order_too(store: SqliteStore) -> None:
    memories = put_all(
        store,
        (some(tags=("t",), importance=n / 10, context=Context(conversation_id="c")) for n in range(FEW_ROWS + 1)),
        (),
    )
    for many in (Filter(tags=frozenset({"t"})), Filter(conversation_id="c")):
        plan = _plan(store, lambda store, many=many: store.list(many, HERE, now=NOW, order=Order.IMPORTANCE))

        assert listed(store, many, order=Order.IMPORTANCE, limit=9) == ids(memories[:-10:-1])
        assert any("INDEX memories_by_importance" in step for step in plan), plan
        assert not any("TEMP B-TREE" in step for step in plan), plan


def test_more_spaces_than_can_be_merged_are_sorted(store: SqliteStore) -> None:
    names = [f"space-{n}" for n in range(MAX_ARMS + 1)]
    create_spaces(store, *names)
    memories = put_all(store, (some(space=name, importance=n % 7 / 10) for n, name in enumerate(names)))

    found = listed(store, order=Order.IMPORTANCE, limit=999)

    assert found == ids(sorted(memories, key=lambda memory: (-memory.importance, -memory.seq)))
    assert store.count(Filter(), EVERYTHING, now=NOW) == len(memories)


def _plan(store: SqliteStore, look: Callable[[SqliteStore], object]) -> list[str]:
    """The planner's words on every statement of a call."""
    statements: list[tuple[str, Any]] = []

    def remember(_: apsw.Cursor, sql: str, values: Any) -> bool:
        statements.append((sql, values))
        return True

    with store._connections.reading() as con:
        con.exec_trace = remember
    look(store)
    con.exec_trace = None
    explained = [con.execute(f"EXPLAIN QUERY PLAN {sql}", values).fetchall() for sql, values in statements]
    return [step for steps in explained for *_, step in steps]


# --- small helpers ---


def _next(memory: Memory, **fields: Any) -> Memory:
    return replace(memory, version=memory.version + 1, **fields)


def _rows(store: SqliteStore, table: str) -> int:
    with store._connections.reading() as con:
        [(rows,)] = con.execute(f"SELECT count(*) FROM {table}")
    return int(rows)


def _contents(folder: Path) -> dict[str, bytes | None]:
    return {file.name: file.read_bytes() if file.is_file() else None for file in folder.iterdir()}


def _bytes(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in path.parent.iterdir() if file.name.startswith(path.name))


def _copy_as_crashed(path: Path, copy: Path) -> None:
    """The files of an open store, as a power cut would leave them."""
    shutil.copy(path, copy)
    shutil.copy(f"{path}-wal", f"{copy}-wal")


def _overwrite_page_of(path: Path, table: str) -> None:
    with closing(apsw.Connection(str(path))) as con:
        con.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        [(page,)] = con.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,))
        size = con.pragma("page_size")
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)


def _tamper(store: SqliteStore, sql: str, *values: str) -> None:
    with store.writing() as tx:
        tx._con.execute(sql, values)  # type: ignore[attr-defined]
