"""A server of several processes, as tests and benches see it: who its workers are, and callers who try again."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import httpx

from scrubjay.wiring import open_store
from tests.reliability.rounds import wait_until
from tests.servers.peer import HANDSHAKE, environment
from tests.servers.sites import AS_JSON, authorities
from tests.servers.test_http import JSON, modern
from tests.stores.contract.suite import EVERYTHING

PATIENCE = 120


class Site:
    """A server of several processes."""

    def __init__(self, process: subprocess.Popen, log: list[bytes], address: str) -> None:
        self.process = process
        self.log = log
        self.address = address

    def workers(self) -> list[int]:
        """Those that are alive: a killed one has no command left."""
        pid = self.process.pid
        children = map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        return [one for one in children if Path(f"/proc/{one}/cmdline").read_bytes()]

    @cached_property
    def folder(self) -> Path:
        """What they share."""
        environ = Path(f"/proc/{self.workers()[0]}/environ").read_bytes().split(b"\0")
        return Path(next(one for one in environ if one.startswith(b"PROMETHEUS")).partition(b"=")[2].decode())

    def client(self, **options) -> httpx.Client:
        return httpx.Client(base_url=self.address, timeout=PATIENCE, verify=authorities(), headers=AS_JSON, **options)

    def ask(self, method: str, path: str, **options) -> httpx.Response:
        """Over a connection of its own, which the system gives to any worker."""
        with self.client() as http:
            return http.request(method, path, **options)

    def listen(self, workers: int = 2) -> bool:
        """Whether all of them do."""
        if len(self.workers()) < workers:
            return False
        with ExitStack() as stack:
            lines = [stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(workers)]
            return not any(line.connect_ex(f"{self.folder}/{number}.sock") for number, line in enumerate(lines))

    def open_session(self) -> httpx.Headers:
        body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HANDSHAKE}
        reply = self.ask("POST", "/mcp/memento", json=body, headers=JSON)
        assert reply.status_code == 200, reply.text
        return httpx.Headers({**JSON, "mcp-session-id": reply.headers["mcp-session-id"]})

    def sessions_in_each(self, workers: int) -> dict[str, httpx.Headers]:
        """One in each worker, by its number."""
        found: dict[str, httpx.Headers] = {}
        while len(found) < workers:
            headers = self.open_session()
            found[headers["mcp-session-id"].partition("-")[0]] = headers
        return found

    def list_tools(self, headers: httpx.Headers) -> int:
        body = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        return self.ask("POST", "/mcp/memento", json=body, headers=headers).status_code


@contextmanager
def site(home: Path, workers: str = "2", *arguments: str, **env: str) -> Iterator[Site]:
    process = subprocess.Popen(
        [sys.executable, "-m", "scrubjay", "serve", "--port", "0", "--workers", workers, *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environment(home, **env),
    )
    log: list[bytes] = []  # what it said
    with ExitStack() as stack:
        stack.callback(process.stderr.close)
        try:
            line = process.stderr.readline()
            thread = threading.Thread(target=lambda: log.extend(process.stderr))  # else a talkative server would wait
            thread.start()
            stack.callback(thread.join)
            found = Site(process, log, re.search(rb"http://\S+", line)[0].decode())
            wait_until(lambda: workers == "1" or found.listen(int(workers)), seconds=PATIENCE)
            yield found
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE)


class Caller(threading.Thread):
    """Stores and searches in turn, over REST and MCP, and tries again what may be tried again."""

    def __init__(self, ours: Site, number: int, left: Iterator[int]) -> None:
        super().__init__(name=f"caller {number}")
        self.stored: dict[str, str] = {}
        self.again = Counter[str]()
        self.unexpected: list[object] = []
        self.calls = 0
        self._ours = ours
        self._number = number
        self._left = left

    def run(self) -> None:
        with self._ours.client() as http:
            for number in self._left:
                self.calls += 1
                try:
                    self._call(http, number)
                except Exception as error:  # it is told with the others
                    self.unexpected.append(repr(error))

    def _call(self, http: httpx.Client, number: int) -> None:
        text, key = f"caller {self._number} stored number {number}", {"idempotency-key": f"k{number}"}
        search = {"query": text, "limit": 3}
        match number % 4:
            case 0:
                body = self._tried(http, "POST", "/api/v1/memories", json={"content": text}, headers=key)
                self.stored[body["memory"]["id"]] = text
            case 1:
                body = self._tried(http, "POST", "/mcp/memento", **modern("store_memory", content=text))
                self.stored[body["result"]["structuredContent"]["created"]["id"]] = text
            case 2:
                self._tried(http, "POST", "/api/memento/search_memories", json=search)
            case _:
                self._tried(http, "POST", "/mcp/memento", **modern("search_memories", **search))

    def _tried(self, http: httpx.Client, method: str, path: str, **options) -> dict:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            try:
                reply = http.request(method, path, **options)
            except httpx.TransportError as error:
                self.again[type(error).__name__] += 1
            else:
                if reply.is_success and not reply.json().get("result", {}).get("isError"):
                    return reply.json()
                told = "retry-after" in reply.headers if reply.is_error else "try again" in reply.text  # as MCP says it
                if not told or reply.status_code not in (200, 429, 503):
                    raise AssertionError((reply.status_code, reply.text))
                self.again[str(reply.status_code)] += 1
            time.sleep(0.05)
        raise AssertionError("never answered")


class Numbers:
    """Each once, to several threads."""

    def __init__(self, count: int) -> None:
        self.given = 0
        self._count = count
        self._lock = threading.Lock()

    def __iter__(self) -> Numbers:
        return self

    def __next__(self) -> int:
        with self._lock:
            if self.given >= self._count:
                raise StopIteration
            self.given += 1
            return self.given


@dataclass
class Outcome:
    """What became of many calls while workers were killed."""

    calls: int = 0
    kills: int = 0
    acknowledged: int = 0
    lost: int = 0
    again: Counter = field(default_factory=Counter)  # what was tried again, and why
    unexpected: list = field(default_factory=list)
    problems: tuple = ()
    log: str = ""  # of all workers, where something unexpected was answered


def killed_under_calls(home: Path, calls: int, callers: int, seconds: float, **env: str) -> Outcome:
    """Mixed calls to two workers, of which one is killed every so many seconds; then what was acknowledged is looked
    for in the store."""
    outcome = Outcome()
    with site(home, **env) as ours:
        numbers = Numbers(calls)
        threads = [Caller(ours, number, numbers) for number in range(callers)]
        for thread in threads:
            thread.start()
        while alive := [thread for thread in threads if thread.is_alive()]:
            alive[0].join(seconds if outcome.kills else 0.05)  # the first before a quick machine has made all calls
            if ours.listen() and numbers.given < calls:
                os.kill(ours.workers()[outcome.kills % 2], signal.SIGKILL)
                outcome.kills += 1
    stored = {}
    for thread in threads:
        stored |= thread.stored
        outcome.calls += thread.calls
        outcome.again += thread.again
        outcome.unexpected += thread.unexpected
    outcome.log = b"".join(ours.log).decode() if outcome.unexpected else ""
    outcome.acknowledged = len(stored)
    with closing(open_store(env.get("SCRUBJAY_STORE", f"sqlite:///{home / 'memories.db'}"))) as opened:
        ids = sorted(stored)
        for start in range(0, len(ids), 500):
            for memory in opened.get(ids[start : start + 500], EVERYTHING):
                if stored[memory.id] == memory.content:
                    del stored[memory.id]
        outcome.problems = opened.check(deep=True).problems
    outcome.lost = len(stored)
    return outcome
