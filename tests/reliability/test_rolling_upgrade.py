"""Two versions of the program at work on one store: the one before the schema was updated, built from history, and this
one. Servers are updated one after the other; those that still wait for their turn must go on serving.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from io import BytesIO
from pathlib import Path
from queue import Queue
from typing import Any

import httpx
import pytest

import scrubjay
from scrubjay.stores.postgres import schema as postgres_schema
from scrubjay.stores.postgres.store import PostgresStore
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.values.memory import Filter
from scrubjay.values.times import utc_now
from tests.postgres import Stores, server_url
from tests.servers.peer import environment
from tests.stores.contract.suite import EVERYTHING

ROOT = Path(__file__).parents[2]
BEFORE = "29ae7b2"  # the last commit whose program knows PostgreSQL's schema up to 11, and SQLite's up to 9
PATIENCE = 60.0


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources of the version before."""
    command = ["git", "archive", BEFORE, "src", "tests", "pyproject.toml"]
    try:
        found = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip(f"needs the history of the repository, as far back as {BEFORE}")
    folder = tmp_path_factory.mktemp("before")
    with tarfile.open(fileobj=BytesIO(found.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"


class Server:
    """A server of some version over HTTP, and a client that knows five verbs. It asks one thing at a time: of two calls
    that end together, the version before may fail one for the reads it has counted.
    """

    def __init__(self, http: httpx.Client) -> None:
        self._http = http
        self._turn = threading.Lock()

    def store(self, content: str) -> str:
        return self._asked("POST", "/memories", json={"content": content})["memory"]["id"]

    def rewrite(self, id: str, content: str) -> None:
        self._asked("PATCH", f"/memories/{id}", json={"content": content})

    def forget(self, id: str) -> None:
        self._asked("DELETE", f"/memories/{id}")

    def found(self, words: str) -> list[str]:
        hits = self._asked("POST", "/search", json={"query": words})["hits"]
        return [hit["memory"]["content"] for hit in hits]

    def listed(self, about: str) -> dict[str, str]:
        memories: dict[str, str] = {}
        page: dict[str, Any] = {"limit": 100}
        while True:
            reply = self._asked("GET", "/memories", params=page)
            memories |= {memory["id"]: memory["content"] for memory in reply["memories"]}
            if "cursor" not in reply:
                return {id: content for id, content in memories.items() if about in content}
            page["cursor"] = reply["cursor"]

    def _asked(self, method: str, path: str, **request: Any) -> dict[str, Any]:
        with self._turn:
            reply = self._http.request(method, f"/api/v1{path}", **request)
        assert reply.is_success, (reply.status_code, reply.text)
        return reply.json() if reply.content else {}


@contextmanager
def serving(home: Path, store: str, sources: Path | None = None) -> Iterator[Server]:
    """`scrubjay serve` of this version, or of that whose sources these are."""
    chosen = {} if sources is None else {"PYTHONPATH": str(sources)}
    process = subprocess.Popen(
        [sys.executable, "-m", "scrubjay", "serve", "--port", "0"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd=home,
        env=environment(home, SCRUBJAY_STORE=store, **chosen),
    )
    said: Queue[str | None] = Queue()
    listener = threading.Thread(target=_listen, args=(process.stderr, said))
    listener.start()
    try:
        headers = {"content-type": "application/json"}
        with httpx.Client(base_url=_address(said), headers=headers, timeout=PATIENCE) as http:
            yield Server(http)
    finally:
        process.kill()
        process.wait()
        listener.join()
        process.stderr.close()


def _listen(lines: Any, said: Queue[str | None]) -> None:
    for line in lines:
        said.put(line.decode())
    said.put(None)


def _address(said: Queue[str | None]) -> str:
    lines = []
    while (line := said.get(timeout=PATIENCE)) is not None:
        lines.append(line)
        if address := re.search(r"http://127\.0\.0\.1:\d+", line):
            return address[0]
    raise AssertionError(f"it ended: {''.join(lines)}")


class Writer(threading.Thread):
    """Stores, searches and rewrites without a pause, and keeps what it was told."""

    def __init__(self, server: Server) -> None:
        super().__init__()
        self.kept: dict[str, str] = {}
        self.failed: list[BaseException] = []
        self._server = server
        self._enough = threading.Event()
        self._stored = threading.Condition()

    def run(self) -> None:
        number = 0
        while not self._enough.is_set() and not self.failed:
            number += 1
            try:
                id = self._server.store(f"Note {number} of the writer")
                self._server.found("a note of the writer")
                self._server.rewrite(id, f"Note {number}, rewritten")
            except BaseException as error:
                self.failed.append(error)
            else:
                self.kept[id] = f"Note {number}, rewritten"
            with self._stored:
                self._stored.notify_all()

    def wait_for(self, more: int) -> None:
        """That many more notes, or a failure."""
        wanted = len(self.kept) + more
        with self._stored:
            assert self._stored.wait_for(lambda: self.failed or len(self.kept) >= wanted, timeout=PATIENCE)

    def end(self) -> None:
        self._enough.set()
        self.join()


def understand_each_other(one: Server, other: Server, who: str) -> None:
    """Whatever the one writes, the other reads and changes."""
    street, city = one.store(f"{who} lives in Elm Street"), one.store(f"{who} works in Austin")
    assert f"{who} lives in Elm Street" in other.found(f"{who} Elm Street")
    other.rewrite(street, f"{who} lives in Oak Street")
    other.forget(city)
    assert f"{who} lives in Oak Street" in one.found(f"{who} Oak Street")
    assert one.listed(who) == other.listed(who) == {street: f"{who} lives in Oak Street"}


@pytest.mark.postgres
def test_servers_of_the_version_before_go_on_serving_while_the_schema_is_updated_and_afterwards(
    before: Path, tmp_path: Path
) -> None:
    with closing(Stores(server_url(), "rolling")) as stores, serving(tmp_path, stores.url, before) as old:
        understand_each_other(old, old, "Ann")
        writer = Writer(old)
        writer.start()
        try:
            writer.wait_for(10)  # so that its statements are prepared
            with serving(tmp_path, stores.url) as new:
                writer.wait_for(5)
                understand_each_other(old, new, "Bob")
                understand_each_other(new, old, "Cid")
                writer.end()
                assert writer.failed == []
                assert new.listed("Note") == writer.kept
                with serving(tmp_path, stores.url, before) as restarted:
                    understand_each_other(restarted, new, "Dee")
        finally:
            writer.end()
        understand_each_other(old, old, "Eve")

        assert writer.failed == []
        with closing(PostgresStore(stores.url)) as store:
            checkup = store.check(deep=True)
        assert checkup.schema == postgres_schema.SCHEMA_VERSION
        assert (checkup.problems, checkup.wrong_hashes) == ((), ())


# A plugin for the tests of the version before: each store that they make is expanded at once by the program of today.
EXPANDED = """
import os, subprocess, sys
from urllib.parse import urlencode
from scrubjay.stores import postgres_schema

made = postgres_schema._migrate
OPEN = "import sys; from scrubjay.stores.postgres.store import PostgresStore; PostgresStore(sys.argv[1]).close()"

def made_and_expanded(con, schema):
    made(con, schema)
    parts = {**con.info.get_parameters(), "password": con.info.password, "host": con.info.host, "schema": schema}
    asked = ("password", "host", "port", "schema")
    options = urlencode({name: parts[name] for name in asked if parts.get(name)})
    url = f"postgresql://{con.info.user}@/{con.info.dbname}?{options}"
    env = {**os.environ, "PYTHONPATH": os.environ["SOURCES_OF_TODAY"]}
    subprocess.run([sys.executable, "-c", OPEN, url], check=True, env=env)

postgres_schema._migrate = made_and_expanded
"""


@pytest.mark.long
@pytest.mark.postgres
def test_the_version_before_keeps_all_its_promises_on_the_schema_of_today(before: Path, tmp_path: Path) -> None:
    """Its own tests of what a store promises, with its own program."""
    (tmp_path / "expanded.py").write_text(EXPANDED)
    env = {
        **os.environ,
        "PYTHONPATH": f"{before}{os.pathsep}{tmp_path}",
        "SOURCES_OF_TODAY": str(Path(scrubjay.__file__).parents[1]),
    }
    tests = ["-p", "expanded", "-p", "no:cacheprovider", "-m", "not long", "tests/stores/test_postgres.py"]

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", *tests],
        cwd=before.parent,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout[-4000:]


EARLIER_WINDOW = """
import sys
import scrubjay

with scrubjay.open(sys.argv[1]) as jay:
    kept = jay.store("User lives in Seattle").memory
    for number in range(9):  # so that its statements are prepared
        jay.store(f"Note {number}")
        jay.search("Seattle")
    print("ready", flush=True)
    sys.stdin.readline()
    jay.update(kept.id, content="User lives in Austin")
    jay.store("Written later")
    print(*(hit.memory.content for hit in jay.search("Austin")), sep="\\n", flush=True)
"""


def test_a_window_of_the_version_before_that_has_a_file_open_goes_on_while_the_file_is_updated(
    before: Path, tmp_path: Path
) -> None:
    path = tmp_path / "memories.db"
    window = subprocess.Popen(
        [sys.executable, "-c", EARLIER_WINDOW, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(tmp_path, PYTHONPATH=str(before)),
    )
    with window:
        assert window.stdout.readline() == "ready\n"
        with closing(SqliteStore(path)) as store:  # which updates it
            seen, _ = window.communicate("go\n", timeout=PATIENCE)
            assert window.returncode == 0
            assert "User lives in Austin" in seen
            texts = {memory.content for memory in store.list(Filter(), EVERYTHING, now=utc_now())}

    assert {"User lives in Austin", "Written later"} <= texts
