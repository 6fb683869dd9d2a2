"""kill -9 at random moments: what was acknowledged is there afterwards, whole, and found by text and by meaning.

The page cache survives a kill, so this says nothing about power cuts; it says that no moment of ours is a bad one.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random

import httpx
import pytest

import scrubjay
from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.values.memory import LinkKind
from tests.reliability.processes import Child
from tests.reliability.rounds import end_leases, short_and_long, wait_until
from tests.reliability.texts import Texts
from tests.reliability.wholeness import checked, everything, unfindable
from tests.servers.peer import HANDSHAKE, SECONDS, Peer
from tests.servers.test_http import modern, real_server

pytestmark = pytest.mark.process

WRITERS = 8
BULK = 64  # of the engine: memories of a bulk load in one transaction
BATCHES = {"take_in_later": 512}  # of jobs that have another number


@dataclass
class Known:
    """What the client of a server that is killed again and again knows for sure, and what it tried."""

    stored: dict[str, str] = field(default_factory=dict)  # id: text; the answer was read
    tried: set[str] = field(default_factory=set)  # every text ever sent
    superseded: dict[str, str] = field(default_factory=dict)  # old: new; the answer was read
    answered: threading.Event = field(default_factory=threading.Event)  # in this round

    def note(self, created: dict) -> None:
        self.stored[created["id"]] = created["content"]
        self.answered.set()


# --- the server under eight writers ----------------------------------------------------------------------------------


@short_and_long("rounds", 3, 30)
def test_what_eight_writers_were_told_is_stored_survives_kill_9(tmp_path, chance, rounds):
    """One store lives through all rounds, served by two processes. In every fourth round they die while they start."""
    known = Known()

    for number in range(rounds):
        with Peer(tmp_path) as first, Peer(tmp_path) as second:
            peers = [first, second]
            if number % 4 == 1:
                for peer in peers:
                    introduce(peer)
                known.answered.set()  # nobody waits for the first answer
                seconds = chance.uniform(0, 2)
            else:
                for peer in peers:
                    peer.greet()
                    assert not peer.call("list_recent_memories")["isError"]
                    assert_alone(peer)
                known.answered.clear()
                seconds = chance.uniform(0, 0.8)
            kills = killed(seconds, first.process.kill, second.process.kill, after=known.answered)
            with kills, ThreadPoolExecutor() as clients:
                writing = [
                    clients.submit(write_until_dead, peer, known, chance, Texts(chance, prefix(place, number)),
                                   writers=WRITERS // 2)
                    for peer, place in zip(peers, "np", strict=True)
                ]  # fmt: skip
            for one in writing:
                one.result()
        assert_nothing_lost(tmp_path / "memories.db", known)

    assert_found_by_a_new_server(tmp_path, known, chance)
    report("stdio", rounds, known)


@short_and_long("rounds", 2, 30)
def test_what_eight_clients_of_an_http_server_were_told_is_stored_survives_kill_9(tmp_path, chance, rounds):
    known = Known()

    for number in range(rounds):
        with real_server(tmp_path) as (address, process), ThreadPoolExecutor() as clients:
            all_texts = [Texts(chance, prefix("bcdfghjk"[client], number)) for client in range(WRITERS)]
            assert httpx.get(f"{address}/readyz", timeout=60).json() == {"status": "ok"}
            known.answered.clear()
            with killed(chance.uniform(0, 0.8), process.kill, after=known.answered):
                list(clients.map(lambda texts: post_until_dead(address, known, texts), all_texts))
        assert_nothing_lost(tmp_path / "memories.db", known)

    assert_found_by_a_new_server(tmp_path, known, chance)
    report("http", rounds, known)


@short_and_long("rounds", 4, 30)
def test_a_server_killed_while_it_makes_its_store_leaves_a_home_for_the_next_one(tmp_path, chance, rounds):
    made = 0
    for number in range(rounds):
        home, known = tmp_path / str(number), Known()
        with Peer(home) as peer, killed(chance.uniform(0.15, 0.9), peer.process.kill):
            introduce(peer)
            write_until_dead(peer, known, chance, Texts(chance))
        made += (home / "memories.db").exists()

        assert_nothing_lost(home / "memories.db", known)

    print(f"killed while starting on an empty home: {rounds} rounds, a store was already there in {made}")


@short_and_long(("rounds", "patient"), (2, False), (30, True))
def test_a_kill_while_long_texts_wait_for_their_vectors_loses_none_of_them(tmp_path, chance, rounds, patient):
    """The next process finishes what waits once the dead one's lease has run out, after 15 s in the long version."""
    all_known: dict[Path, Known] = {}
    waiting = 0
    while len(all_known) < rounds or (not waiting and len(all_known) < 50):  # a kill may find nothing left to do
        home, known = tmp_path / str(len(all_known)), Known()
        with Peer(home) as peer:
            peer.greet()
            assert not peer.call("list_recent_memories")["isError"]
            with killed(chance.uniform(0, 0.6), peer.process.kill, after=known.answered):
                write_until_dead(peer, known, chance, Texts(chance), length=40_000)
        all_known[home] = known
        waiting += checked(home / "memories.db", pending=True).pending

    assert waiting, "nothing was left to finish"
    for home, known in all_known.items():
        if not patient:
            end_leases(home / "memories.db")
        finish_backlog(home / "memories.db")
        assert_nothing_lost(home / "memories.db", known)


# --- the library in bulk ---------------------------------------------------------------------------------------------


@short_and_long("rounds", 2, 30)
def test_a_kill_during_a_bulk_load_leaves_whole_batches_from_its_beginning(tmp_path, chance, rounds):
    for number in range(rounds):
        path = tmp_path / str(number) / "memories.db"
        acknowledged = killed_at_random("load", path, chance)

        texts = [memory.content for memory in sorted(contents(path), key=lambda memory: memory.seq)]

        assert texts == [f"text {n}" for n in range(len(texts))]
        assert len(texts) >= acknowledged
        assert len(texts) % BULK == 0
        checked(path)


@pytest.mark.parametrize("job", ["take_in", "take_in_later"])
@short_and_long("rounds", 1, 30)
def test_a_killed_import_goes_on_where_it_stopped(tmp_path, chance, rounds, job):
    for number in range(rounds):
        path = tmp_path / str(number) / "memories.db"
        acknowledged = killed_at_random(job, path, chance)
        lines = [{"type": "memory", "id": f"mem_{n:012}", "content": f"text {n}"} for n in range(1_000)]

        with scrubjay.open(path, embedder=HashingEmbedder()) as jay:
            result = jay.transfer.import_from(lines)

        assert result.already_here >= min(acknowledged, 1_000)
        assert result.already_here + result.stored == 1_000
        assert {memory.id: memory.content for memory in contents(path) if memory.id < "mem_000000001000"} == {
            line["id"]: line["content"] for line in lines
        }
        checked(path, pending=job == "take_in_later")


# --- steps -----------------------------------------------------------------------------------------------------------


@contextmanager
def killed(seconds: float, *kills: Callable[[], object], after: threading.Event | None = None) -> Iterator[None]:
    """Kill some time into the block, or after an event in it; the block lasts until all are dead."""
    print(f"killed after {seconds:.3f} s")

    def wait_and_kill() -> None:
        if after:
            after.wait(SECONDS)
        never.wait(seconds)
        for kill in kills:
            kill()

    never = threading.Event()
    killer = threading.Thread(target=wait_and_kill)
    killer.start()
    yield
    killer.join()


def prefix(place: str, number: int) -> str:
    """Words that are used in no other place and round."""
    return place + "qrtvxz"[number % 6] * (1 + number // 6)


def introduce(peer: Peer) -> None:
    """Greet a server without waiting for its answer."""
    with suppress(BrokenPipeError):
        peer.send("initialize", HANDSHAKE, id=1)
        peer.send("notifications/initialized")


def write_until_dead(
    peer: Peer, known: Known, chance: Random, texts: Texts, *, writers: int = WRITERS, length: int = 0
) -> None:
    """Keep several requests in flight: mostly stores, some supersessions; note every answer that could be read."""
    ids = count(1000)
    waiting: dict[int, Callable[[dict], None]] = {}
    fresh: list[str] = []  # stored here, and not superseded

    def submit() -> None:
        request = next(ids)
        if len(fresh) >= 2 and chance.random() < 0.25:
            old = fresh.pop(chance.randrange(len(fresh) - 1))
            arguments = {"old_memory_id": old, "new_memory_id": (new := fresh.pop())}
            waiting[request] = lambda body: known.superseded.update({old: new} if body["success"] else {})
            call = {"name": "supersede_memory", "arguments": arguments}
        else:
            text = texts.next(length=length)
            known.tried.add(text)
            waiting[request] = lambda body: note(body["created"])
            call = {"name": "store_memory", "arguments": {"content": text}}
        with suppress(BrokenPipeError):
            peer.send("tools/call", call, id=request)

    def note(created: dict) -> None:
        known.note(created)
        fresh.append(created["id"])

    for _ in range(writers):
        submit()
    while (message := peer.received.get(timeout=SECONDS)) is not None:
        if message.get("id") in waiting:
            result = message["result"]
            assert not result["isError"], result
            waiting.pop(message["id"])(result["structuredContent"])
            submit()


def post_until_dead(address: str, known: Known, texts: Texts) -> None:
    """One client: a store, the next store, a supersession of one by the other, and so on."""
    with httpx.Client(timeout=SECONDS) as http, suppress(httpx.TransportError):
        while True:
            ids = []
            for _ in range(2):
                text = texts.next()
                known.tried.add(text)
                created = call(http, address, "store_memory", content=text)["created"]
                known.note(created)
                ids.append(created["id"])
            call(http, address, "supersede_memory", old_memory_id=ids[0], new_memory_id=ids[1])
            known.superseded[ids[0]] = ids[1]


def call(http: httpx.Client, address: str, tool: str, **arguments: object) -> dict:
    request = modern(tool, **arguments)
    reply = http.post(f"{address}/mcp/memento", content=json.dumps(request["json"]), headers=request["headers"])
    result = reply.json()["result"]
    assert not result["isError"], result
    return result["structuredContent"]


def report(transport: str, rounds: int, known: Known) -> None:
    assert known.stored, "no round got as far as one answer"
    print(
        f"kill -9 under {WRITERS} writers over {transport}: {rounds} rounds, {len(known.tried)} stores tried, "
        f"{len(known.stored)} acknowledged, {len(known.superseded)} supersessions: "
        "0 lost, 0 torn, 0 unfindable, 0 failed starts"
    )


def assert_alone(peer: Peer) -> None:
    """The server is one process: to kill it is to kill its whole group."""
    with suppress(FileNotFoundError):
        children = Path(f"/proc/{peer.process.pid}/task/{peer.process.pid}/children").read_text(encoding="ascii")
        assert children == ""


def assert_nothing_lost(path: Path, known: Known) -> None:
    checkup = checked(path)
    with closing(SqliteStore(path)) as store:
        there = everything(store)
        assert len(there) == checkup.memories
        lost = {id for id, text in known.stored.items() if id not in there or there[id].content != text}
        assert lost == set()
        torn = {memory.id for memory in there.values() if memory.content not in known.tried}
        assert torn == set()
        assert unfindable(store, known.stored.items()) == []
        for old, new in known.superseded.items():
            assert there[old].superseded_by == new
        for memory in there.values():  # both ends, the link and the history, or none of them; told or not
            if memory.superseded_by:
                assert there[memory.superseded_by].supersedes == memory.id
                links = store.history.links([memory.id], kinds=frozenset({LinkKind.SUPERSEDES}))
                assert [link.source for link in links] == [memory.superseded_by]
            assert len(store.history.versions(memory.id)) == memory.version - 1


def assert_found_by_a_new_server(home: Path, known: Known, chance: Random) -> None:
    with closing(SqliteStore(home / "memories.db")) as store:
        there = everything(store)
    current = [id for id in known.stored if not there[id].superseded_by]
    with Peer(home) as peer:
        peer.greet()
        for id in chance.sample(current, min(10, len(current))):
            found = peer.call("search_memories", query=known.stored[id].split(" ")[-1])["structuredContent"]
            assert "degraded" not in found
            assert (id, known.stored[id]) in [(memory["id"], memory["content"]) for memory in found["memories"]]


def finish_backlog(path: Path) -> None:
    """What a server does by itself, without one."""
    with scrubjay.open(path, embedder=HashingEmbedder()) as jay, closing(SqliteStore(path)) as store:
        jay.warm()
        wait_until(lambda: not store.upkeep.pending(limit=1))


def killed_at_random(job: str, path: Path, chance: Random) -> int:
    """How many memories a bulk load had acknowledged when it was killed."""
    with Child(job, path, 100_000) as child:
        first = child.hear().get("done")
        assert first == BATCHES.get(job, BULK), child.errors
        seconds = chance.uniform(0, 0.5)
        print(f"killed after {seconds:.3f} s")
        timer = threading.Timer(seconds, child.kill)
        timer.start()
        said = child.rest()
        timer.join()
    assert {"finished": True} not in said
    return max([first, *(line["done"] for line in said)])


def contents(path: Path) -> list:
    with closing(SqliteStore(path)) as store:
        return list(everything(store).values())
