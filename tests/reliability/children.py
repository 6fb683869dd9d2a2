"""What processes beside the test do: `python -m tests.reliability.children JOB ARGUMENT…`."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random

import scrubjay
from scrubjay.embedders.base import Vector
from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.engine import Engine
from scrubjay.engine.parts import engine_on
from scrubjay.errors import Error
from scrubjay.folders.registry import Registry
from scrubjay.machine.local_sockets import LENDS
from scrubjay.machine.locks import try_lock
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.values.times import iso
from tests.conftest import Clock
from tests.reliability import failing_disk, unsynced_disk
from tests.reliability.texts import Texts, word

JOBS: dict[str, Callable[..., None]] = {}
talking = threading.Lock()


def job(work: Callable[..., None]) -> Callable[..., None]:
    JOBS[work.__name__] = work
    return work


def say(**said: object) -> None:
    with talking:
        print(json.dumps(said), flush=True)


def heard() -> str:
    return sys.stdin.readline()


def opened(path: str) -> Engine:
    return scrubjay.open(path, embedder=HashingEmbedder())


@job
def load(path: str, count: str) -> None:
    """Store many memories, in batches; says how many are acknowledged."""
    with opened(path) as jay:
        jay.store_many(({"content": f"text {n}"} for n in range(int(count))), progress=lambda done: say(done=done))
    say(finished=True)


@job
def take_in(path: str, count: str) -> None:
    """Import lines with ids of their own; says how many are acknowledged."""
    _take_in(opened(path), int(count))


@job
def take_in_later(path: str, count: str) -> None:
    """The same without a model."""
    _take_in(engine_on(SqliteStore(Path(path)), None), int(count))


def _take_in(engine: Engine, count: int) -> None:
    lines = ({"type": "memory", "id": f"mem_{n:012}", "content": f"text {n}"} for n in range(count))
    with engine as jay:
        jay.transfer.import_from(lines, progress=lambda done: say(done=done))
    say(finished=True)


@job
def reembed(path: str) -> None:
    """Let a wider model take over, slowly enough to be killed at it; says how far it is."""

    class Wider(HashingEmbedder):
        dimension = 768
        fingerprint = "wider-1"

        def embed(self, texts: Sequence[str]) -> list[Vector]:
            time.sleep(0.05)
            return super().embed(texts)

    with engine_on(SqliteStore(Path(path)), Wider()) as jay:
        result = jay.upkeep.reembed(progress=lambda done, total: say(done=done, total=total))
    say(finished=result.memories)


@job
def write(path: str, name: str, threads: str, stores: str) -> None:
    """Open the store, wait for a word, and store from several threads at once; says what and how long each took."""
    with opened(path) as jay:
        say(ready=True)
        heard()
        workers = [
            threading.Thread(target=write_some, args=(jay, f"{name}{'xyzv'[number]}", int(stores)))
            for number in range(int(threads))
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    say(finished=True)


def write_some(jay: Engine, prefix: str, stores: int) -> None:
    texts = Texts(Random(prefix), prefix)
    for _ in range(stores):
        text, begun = texts.next(), time.monotonic()
        try:
            id = jay.store(text).memory.id
        except Error as error:
            say(refused=error.code)
        else:
            say(id=id, text=text, milliseconds=1000 * (time.monotonic() - begun))


def opened_at(home: str) -> Engine:
    """With folders, under a home."""
    place = Path(home)
    registry = Registry(place, place, walk_seconds=0)
    return engine_on(SqliteStore(place / "memories.db"), HashingEmbedder(), registry=registry)


@job
def add_by_path(home: str, name: str, count: str) -> None:
    """Wait for a word, then add memories into one category; says each when it is acknowledged."""
    with opened_at(home) as jay:
        say(ready=True)
        heard()
        for number in range(int(count)):
            path = f"project/{name}{number}"
            jay.paths.add("default", path, f"Text of {path}")
            say(added=path)
    say(finished=True)


@job
def change_by_path(home: str, name: str) -> None:
    """Add, change, move and remove memories for ever; says where each is, and what it says, when acknowledged."""
    chance = Random(name)
    paths: list[str] = []
    with opened_at(home) as jay:
        for number in range(1_000_000):
            verb = chance.choice(["add", "add", "update", "move", "remove"]) if paths else "add"
            path = f"a/{name}{number}" if verb == "add" else paths.pop(chance.randrange(len(paths)))
            target, text = f"b/{name}{number}", f"Text {number}"
            say(trying=path, target=target)
            if verb == "add":
                jay.paths.add("default", path, text)
            elif verb == "update":
                jay.paths.update("default", path, {"content": text})
            elif verb == "move":
                text = jay.paths.move("default", path, target).memory.content
                path = target
            else:
                jay.paths.remove("default", path)
            paths += [path] if verb != "remove" else []
            say(done=verb, path=path, text=None if verb == "remove" else text)


@job
def hold(path: str) -> None:
    """Keep a write transaction open, with something in it, until told; then undo it."""
    store = SqliteStore(Path(path))
    try:
        with store.writing() as tx:
            tx.history.set_fact("held", "yes")
            say(held=True)
            heard()
            raise Undo
    except Undo:
        say(undone=True)
    store.close()


@job
def abandon(path: str) -> None:
    """Store something and die with the store open."""
    jay = opened(path)
    jay.store("Ships wait outside.")
    os._exit(0)


class Undo(Exception):
    pass


@job
def live_through_a_day(path: str) -> None:
    """A fixed script of library calls under a clock of its own; says everything that could depend on the place."""
    clock = Clock()
    with engine_on(SqliteStore(Path(path)), HashingEmbedder(), clock=clock) as jay:
        old = jay.store("User lives in Zürich since März 🏔", expires_at=clock().replace(year=2027)).memory
        clock.move(hours=14)
        new = jay.store("User lives in 東京 now", tags=("home",)).memory
        jay.supersede(old=old.id, new=new.id)
        clock.move(hours=-1)
        jay.update(new.id, content="User lives in 大阪 now", reason="moved again")
        clock.move(hours=20)
        found = [hit.memory for hit in jay.search("大阪")]
        shown = [*jay.list(limit=10), *found, *(version.memory for version in jay.history(new.id))]
        names = {old.id: "old", new.id: "new"}
        for memory in shown:
            times = (memory.created_at, memory.updated_at, memory.valid_until, memory.expires_at)
            say(
                memory=names[memory.id],
                content=memory.content,
                version=memory.version,
                times=[iso(at) if at else None for at in times],
            )


@job
def read_as_nobody(path: str, id: str) -> None:
    """Read, then try to write, as a user to whom the store does not belong."""
    become_nobody()
    with engine_on(SqliteStore(Path(path)), HashingEmbedder()) as jay:
        say(found=len(jay.search("harbour")), listed=len(jay.list()), got=jay.get(id).content)
        try:
            jay.store("one more")
        except Error as error:
            say(refused=error.code)


@job
def read_again_as_nobody(path: str) -> None:
    """Search, wait for a word and search again, as a user to whom the store does not belong."""
    become_nobody()
    with engine_on(SqliteStore(Path(path)), HashingEmbedder()) as jay:
        say(found=[hit.memory.content for hit in jay.search("harbour").hits])
        heard()
        try:
            say(found=[hit.memory.content for hit in jay.search("harbour").hits])
        except Error as error:
            say(refused=error.message)


@job
def lock(folder: str) -> None:
    """Hold a lock until the end, as who loads a model does."""
    assert try_lock(os.open(folder, os.O_RDONLY))
    say(locked=True)
    heard()


@job
def lend_to_anyone(home: str) -> None:
    """As another user ask the lender of a home, then listen there as one, and say how many ask for a vector."""
    heard()
    os.chdir(Path(home, "run"))  # the folders around it keep others out
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    [place] = Path().iterdir()
    with socket.socket(socket.AF_UNIX) as asker:
        asker.connect(str(place))
        told = b""
        with suppress(ConnectionError):
            asker.sendall(b'{"lend": ""}\n')
            told = asker.recv(1_000)
        say(told=told.decode())
    heard()
    with socket.socket(socket.AF_UNIX) as line:
        place = place.with_name(f"1{LENDS}")
        line.bind(str(place))
        place.chmod(0o777)
        line.listen(128)
        say(lends=place.name)
        heard()
        line.setblocking(False)
        asked = 0
        with suppress(BlockingIOError):
            while True:
                asker, _ = line.accept()
                asker.setblocking(True)
                asked += bool(asker.recv(1))
        say(asked=asked)


def become_nobody() -> None:
    """A user who may not even read Python."""
    with tempfile.TemporaryDirectory() as folder, opened(f"{folder}/memories.db") as jay:
        jay.store("everything that is imported late is imported now")
        jay.search("imported")
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)


@job
def lose_power(folder: str, seed: str, call: str) -> None:
    """Store, change and erase until the power goes at the Nth call to the disk; says what was acknowledged."""
    chance = Random(int(seed))
    disk = unsynced_disk.Disk(chance)
    home = Path(folder, "home")

    def cut() -> None:
        disk.lay_down(home, Path(folder, "image"))
        os._exit(0)

    disk.on_cut = cut
    disk.cut_at = lambda calls: calls >= int(call)
    home.mkdir()
    texts = Texts(chance)
    with opened(str(home / "memories.db")) as jay:
        ids: list[str] = []
        while True:
            text = texts.next()
            ids.append(jay.store(text).memory.id)
            say(id=ids[-1], text=text)
            if chance.random() < 0.2:
                text = texts.next()
                place = chance.randrange(len(ids))
                say(changing=ids[place])
                jay.update(ids[place], content=text)
                say(id=ids[place], text=text)
            if chance.random() < 0.1:
                gone = ids.pop(chance.randrange(len(ids)))
                say(erasing=gone)
                jay.forget(gone, hard=True)
                say(erased=gone)
                if not ids:
                    ids.append(jay.store("never without one").memory.id)


@job
def tend_and_write(path: str, seed: str) -> None:
    """Make the index of a store step by step and write between the steps; says what was acknowledged. The words of its
    texts are those of no other seed."""
    texts = Texts(Random(int(seed)), word("", int(seed)) + "v")
    with engine_on(SqliteStore(Path(path), index_from=1_000), HashingEmbedder()) as jay:
        while True:
            jay.records.tend()
            text = texts.next()
            say(id=jay.store(text).memory.id, text=text)


@job
def fail(folder: str, error: str, for_good: str, first: str, step: str) -> None:
    """Run a script of changes on a disk that fails at the Nth call, for every so many N until it fails no more."""
    disk = failing_disk.Disk()
    template = Path(folder, "template")
    ids = failing_disk.prepare(template / "memories.db")
    n = int(first)
    while True:
        copy = Path(folder, str(n))
        shutil.copytree(template, copy)
        disk.arm(n, error, for_good=for_good == "for good")
        outcome = failing_disk.change_everything(copy / "memories.db", ids)
        calls = disk.calls
        disk.disarm()
        say(n=n, calls=calls, outcome=outcome, wrong=failing_disk.wrong(copy / "memories.db", ids, outcome))
        shutil.rmtree(copy)
        if calls < n:
            break
        n += int(step)


@job
def fail_once_then_change(folder: str) -> None:
    """Store on a disk that fails at the Nth read, then change another memory; for every N until nothing fails."""
    disk = failing_disk.Disk()
    path = Path(folder, "memories.db")
    ids = failing_disk.prepare(path)
    calls = n = 0
    while calls >= n:
        n += 1
        with opened(str(path)) as jay:
            disk.arm(n, "unreadable", for_good=False)
            stored = failing_disk.attempted(lambda: jay.store("new"))
            calls = disk.calls
            disk.disarm()
            changed = failing_disk.attempted(partial(jay.update, ids["changed"], content=f"changed {n} times"))
        say(stored=stored, changed=changed)


if __name__ == "__main__":
    JOBS[sys.argv[1]](*sys.argv[2:])
