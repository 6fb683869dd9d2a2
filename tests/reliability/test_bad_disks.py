"""Disks that fail, fill up or cannot be written: an error with a name, and what was acknowledged stays."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.parts import engine_on
from scrubjay.errors import StorageError, StorageFull
from scrubjay.stores.sqlite import backup as sqlite_backup
from scrubjay.stores.sqlite.store import SqliteStore
from tests.reliability.processes import Child
from tests.reliability.rounds import short_and_long
from tests.reliability.texts import Texts, word_of
from tests.reliability.wholeness import checked, everything, unfindable
from tests.servers.peer import Peer

pytestmark = pytest.mark.process

EXPECTED = {
    "full": {None, "storage_full", "storage_failed"},
    "broken": {None, "storage_failed", "storage_full"},
    "unreadable": {None, "storage_failed"},
}


# --- the Nth call fails ----------------------------------------------------------------------------------------------


@short_and_long("step", 41, 1)
@pytest.mark.parametrize("for_good", ["once", "for good"])
@pytest.mark.parametrize("error", EXPECTED)
def test_whichever_call_fails_every_memory_is_as_before_or_as_changed(quick_path, chance, error, for_good, step):
    """SQLite's own calls of write, sync and truncate, or of read, counted; each of them fails in the long version."""
    first = chance.randint(1, step)
    with Child("fail", quick_path, error, for_good, first, step) as child:
        runs = child.rest()
        assert child.process.wait() == 0, child.errors.decode()

    assert {run["n"]: run["wrong"] for run in runs if run["wrong"]} == {}
    codes = {code for run in runs for code in run["outcome"].values()}
    assert codes <= EXPECTED[error]
    assert set(runs[-1]["outcome"].values()) == {None}  # past the last call nothing fails
    assert any(set(run["outcome"].values()) != {None} for run in runs[:-1]), "no failure was ever noticed"
    silent = [run["n"] for run in runs[:-1] if set(run["outcome"].values()) == {None}]
    print(
        f"{error} {for_good}: {len(runs) - 1} of {runs[-1]['calls']} calls failed; codes {codes - {None}}; in "
        f"{len(silent)} of them every step succeeded all the same"
    )


def test_a_change_after_a_failed_read_succeeds(quick_path):
    with Child("fail_once_then_change", quick_path) as child:
        runs = child.rest()
        assert child.process.wait() == 0, child.errors.decode()

    assert {run["stored"] for run in runs} == {None, "storage_failed"}
    assert {run["changed"] for run in runs} == {None}


# --- no room ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path) -> Iterator[Path]:
    """A file system of 16 MiB of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk_refuses_writes_answers_reads_and_recovers_by_itself(small_disk, chance):
    home, ballast = small_disk / "home", small_disk / "ballast"
    texts = Texts(chance)
    stored: dict[str, str] = {}
    with Peer(home) as peer:
        peer.greet()
        keep(peer, texts, stored)
        ballast.write_bytes(bytes(10 * 1024 * 1024))

        assert_refused(kept_until_refused(peer, texts, stored), small_disk)
        assert_reads(peer, stored)
        with Peer(home) as another:  # it starts on the full disk
            another.greet()
            assert_refused(kept_until_refused(another, texts, stored), small_disk)  # a checkpoint may have made room
            assert_reads(another, stored)
        ballast.unlink()
        assert keep(peer, texts, stored) is None
        assert_reads(peer, stored)
        peer.close_input()
        assert peer.end() == 0

    assert_whole(home / "memories.db", stored)
    print(f"full disk: {len(stored)} memories acknowledged, 0 lost")


def test_a_file_that_may_not_grow_refuses_writes_answers_reads_and_recovers_by_itself(tmp_path, chance):
    """The same through a limit on the size of files, which needs no rights."""
    texts = Texts(chance)
    stored: dict[str, str] = {}
    with Peer(tmp_path) as peer:
        peer.greet()
        keep(peer, texts, stored)
        limit_file_size(peer, 2 * 1024 * 1024)

        assert_refused(kept_until_refused(peer, texts, stored), tmp_path)
        assert_reads(peer, stored)
        limit_file_size(peer, resource.RLIM_INFINITY)
        assert keep(peer, texts, stored) is None
        assert_reads(peer, stored)

    assert_whole(tmp_path / "memories.db", stored)


def test_a_full_disk_gets_no_store_no_backup_and_no_restored_memory_and_nothing_half_made(small_disk, tmp_path):
    """What was there before is there afterwards, byte for byte, and works."""
    path, copy = small_disk / "home" / "memories.db", small_disk / "copy.db"
    with engine_on(SqliteStore(path), HashingEmbedder()) as jay:
        jay.store_many({"content": f"The harbour has pier {number}"} for number in range(200))
        jay.parts.backlog.finish()  # what came in bulk is judged in the background
        jay.upkeep.backup(tmp_path / "copy.db")
        fill_up(small_disk)
        before = files_of(small_disk)

        for attempt in (
            lambda: SqliteStore(small_disk / "new" / "memories.db"),
            lambda: jay.upkeep.backup(copy),
            lambda: sqlite_backup.restore(tmp_path / "copy.db", small_disk / "restored.db"),
        ):
            with pytest.raises(StorageFull) as caught:
                attempt()
            assert str(small_disk) not in f"{caught.value.message} {caught.value.hint}"

        assert files_of(small_disk) == before
        assert len(jay.search("harbour")) == 10


def fill_up(disk: Path) -> None:
    with (disk / "ballast").open("wb", buffering=0) as ballast, suppress(OSError):
        while True:
            ballast.write(bytes(4096))


def files_of(folder: Path) -> dict[str, int]:
    """Files that hold something; a lock file never does."""
    return {str(file): file.stat().st_size for file in folder.rglob("*") if file.is_file() and file.stat().st_size}


def limit_file_size(peer: Peer, size: int) -> None:
    _, hard = resource.prlimit(peer.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(peer.process.pid, resource.RLIMIT_FSIZE, (size, hard))


def keep(peer: Peer, texts: Texts, stored: dict[str, str]) -> dict | None:
    """Store a text; the error if it was refused."""
    body = peer.call("store_memory", content=texts.next(length=10_000))["structuredContent"]
    if "error" in body:
        return body["error"]
    stored[body["created"]["id"]] = body["created"]["content"]
    return None


def kept_until_refused(peer: Peer, texts: Texts, stored: dict[str, str]) -> dict:
    while (refused := keep(peer, texts, stored)) is None:
        pass
    return refused


def assert_refused(error: dict, folder: Path) -> None:
    assert error["code"] == "STORAGE_ERROR"
    assert str(folder) not in error["message"]


def assert_reads(peer: Peer, stored: dict[str, str]) -> None:
    id, text = list(stored.items())[-1]
    listed = peer.call("list_recent_memories", limit=50)["structuredContent"]["memories"]
    assert [memory["content"] for memory in listed if memory["id"] == id] == [text]
    assert not peer.call("search_memories", query=word_of(text))["isError"]


def assert_whole(path: Path, stored: dict[str, str]) -> None:
    checked(path, pending=True)
    with closing(SqliteStore(path)) as store:
        there = {id: memory.content for id, memory in everything(store).items()}
        assert {id: there.get(id) for id in stored} == stored
        assert unfindable(store, stored.items(), by_meaning=False) == []


# --- no right to write -----------------------------------------------------------------------------------------------

as_another_user = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs to become another user"
)


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "left by a crash"])
def test_a_store_on_a_read_only_file_system_can_be_read_and_says_that_it_cannot_be_written(small_disk, closed):
    path = small_disk / "home" / "memories.db"
    with engine_on(SqliteStore(path), HashingEmbedder()) as jay:
        id = jay.store("The harbour is called Vik.").memory.id
    if not closed:
        with Child("abandon", path) as child:
            assert child.process.wait() == 0, child.errors.decode()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)

    with engine_on(SqliteStore(path), HashingEmbedder()) as jay:
        assert jay.get(id).content == "The harbour is called Vik."
        assert jay.search("harbour").hits[0].memory.id == id
        assert len(jay.list()) == (1 if closed else 2)
        with pytest.raises(StorageError) as caught:
            jay.store("one more")
        assert str(path.parent) not in f"{caught.value.message} {caught.value.hint}"


@as_another_user
def test_a_store_of_somebody_else_can_be_read_and_says_that_it_cannot_be_written(quick_path):
    """Run as a user who may read the file and its folder, and write neither. Not below pytest's own folder, which
    other runs of tests close to all others whenever they begin.
    """
    path = quick_path / "memories.db"
    with engine_on(SqliteStore(path), HashingEmbedder()) as jay:
        id = jay.store("The harbour is called Vik.").memory.id
    for file in (path, path.with_name("memories.db.lock")):
        file.chmod(0o444)
    quick_path.chmod(0o755)

    with Child("read_as_nobody", path, id) as child:
        said = child.rest()
        assert child.process.wait() == 0, child.errors.decode()

    assert said == [{"found": 1, "listed": 1, "got": "The harbour is called Vik."}, {"refused": "storage_failed"}]


@as_another_user
def test_a_store_of_somebody_else_that_was_replaced_is_not_answered_from_what_was_there(quick_path):
    """Both files have come equally far, so their numbers of changes tell nothing."""
    path, other = quick_path / "memories.db", quick_path / "other.db"
    for file, text in ((path, "The harbour is called Vik."), (other, "The harbour is called Bo.")):
        with engine_on(SqliteStore(file), HashingEmbedder()) as jay:
            jay.store(text)
        file.chmod(0o444)
    path.with_name("memories.db.lock").chmod(0o444)
    quick_path.chmod(0o755)

    with Child("read_again_as_nobody", path) as child:
        assert child.hear() == {"found": ["The harbour is called Vik."]}
        other.replace(path)
        child.tell()
        said = child.rest()

    assert [list(one) for one in said] == [["refused"]], said
    assert "removed or replaced" in said[0]["refused"]
