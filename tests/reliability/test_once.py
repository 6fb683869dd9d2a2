"""A request with a key is done once: however many send it, to whichever of two servers, whoever is killed meanwhile."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.parts import engine_on
from scrubjay.stores.sqlite.store import SqliteStore
from tests.reliability.rounds import PATIENCE, short_and_long
from tests.reliability.wholeness import checked
from tests.servers.test_http import real_server

pytestmark = pytest.mark.process


class Pair:
    """Two servers of one memory; one is killed now and then, and another takes its place."""

    def __init__(self, home: Path, stack: ExitStack) -> None:
        self._home, self._stack = home, stack
        self.kills = 0
        self._servers = [self._server() for _ in range(2)]
        self._one_asks = threading.Lock()

    def _server(self) -> tuple[str, subprocess.Popen]:
        return self._stack.enter_context(real_server(self._home, PYTHONFAULTHANDLER="1"))

    def address(self, number: int) -> str:
        return self._servers[number % 2][0]

    def kill_one(self) -> None:
        place = self.kills % 2
        self.kills += 1
        self._servers[place][1].kill()
        self._servers[place] = self._server()

    def end_and_tell(self, number: int) -> str:
        """Whether this server still ran, what it logged, and where each of its threads was."""
        process = self._servers[number % 2][1]
        with self._one_asks:
            ended = process.poll()
            process.send_signal(signal.SIGABRT)
            return f"its exit status: {ended}\n{process.communicate()[1].decode()}"


@contextmanager
def pair(home: Path) -> Iterator[Pair]:
    with ExitStack() as stack:
        yield Pair(home, stack)


def sent_until_answered(http: httpx.Client, servers: Pair, key: int, copy: int) -> dict:
    """As a client does: nobody there, or too busy, means once more, with the same key."""
    deadline, why = time.monotonic() + PATIENCE, Counter[str]()
    while time.monotonic() < deadline:
        try:
            reply = http.post(
                f"{servers.address(copy)}/api/system/store_memory",
                json={"content": f"Fact number {key}"},
                headers={"idempotency-key": f"key {key}"},
            )
        except httpx.TransportError as error:
            why[repr(error)] += 1
            time.sleep(0.02)
            continue
        if reply.status_code != 503:
            assert reply.status_code == 200, reply.text
            return reply.json()
        why[reply.text] += 1
        time.sleep(0.02)
    raise AssertionError(f"never answered: {why}\n{servers.end_and_tell(copy)}")


@short_and_long(("keys", "copies", "kills"), (3, 8, 1), (200, 50, 20))
def test_a_key_makes_one_memory_and_one_answer_through_two_servers_and_kills(tmp_path, keys, copies, kills):
    answers: dict[int, list[dict]] = {}
    with pair(tmp_path) as servers, ExitStack() as stack, ThreadPoolExecutor(copies) as threads:
        # Each has its own: one that many threads share now and then closes a connection that another has just begun to
        # use, and that one hears nothing before its timeout.
        clients = [stack.enter_context(httpx.Client(timeout=PATIENCE)) for _ in range(copies)]
        for key in range(keys):
            sending = [threads.submit(sent_until_answered, clients[copy], servers, key, copy) for copy in range(copies)]
            if (key + 1) * kills // keys > key * kills // keys:
                threading.Event().wait(0.01 * (key % 7))  # somewhere in the middle of them
                servers.kill_one()
            answers[key] = [one.result() for one in sending]

    different = {key: len({str(answer) for answer in of_key}) for key, of_key in answers.items()}
    assert {key: number for key, number in different.items() if number != 1} == {}
    with engine_on(SqliteStore(tmp_path / "memories.db"), HashingEmbedder()) as jay:
        there = sorted(memory.content for memory in jay.list(limit=keys + 10))
    assert there == sorted(f"Fact number {key}" for key in range(keys))
    checked(tmp_path / "memories.db", pending=True)
    print(f"{keys} keys x {copies} at once through two servers, {servers.kills} killed: {len(there)} memories")
