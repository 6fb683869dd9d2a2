"""Two versions of the program at work on one store: the one before the schema was updated, built from history, and this
one. What the earlier one acknowledges is kept; what it can no longer do it refuses.
"""

from __future__ import annotations

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

from scrubjay.stores.postgres.store import PostgresStore
from scrubjay.stores.scripts import SCHEMA_VERSION
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.values.search import Filter
from scrubjay.values.times import utc_now
from tests.postgres import Stores, server_url
from tests.servers.peer import environment
from tests.stores.contract.suite import EVERYTHING

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]
BEFORE = ("465e9b5", "857dda2f")  # whose stores are brought up to date
PATIENCE = 60.0


@pytest.fixture(scope="module", params=BEFORE)
def before(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources of a version before."""
    command = ["git", "archive", request.param, "src", "tests", "pyproject.toml"]
    try:
        found = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip(f"needs the history of the repository, as far back as {request.param}")
    folder = tmp_path_factory.mktemp("before")
    with tarfile.open(fileobj=BytesIO(found.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"


class Server:
    """A server of some version over HTTP, and a client that knows four verbs. It asks one thing at a time: of two calls
    that end together, the version before may fail one for the reads it has counted.
    """

    def __init__(self, http: httpx.Client) -> None:
        self._http = http
        self._turn = threading.Lock()

    def store(self, content: str) -> str:
        return self._asked("POST", "/memories", json={"content": content})["memory"]["id"]

    def rewrite(self, id: str, content: str) -> None:
        self._asked("PATCH", f"/memories/{id}", json={"content": content})

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


@pytest.mark.postgres
def test_what_a_server_of_the_version_before_acknowledges_is_kept_while_the_schema_is_updated_and_afterwards(
    before: Path, tmp_path: Path
) -> None:
    with closing(Stores(server_url(), "rolling")) as stores, serving(tmp_path, stores.url, before) as old:
        writer = Writer(old)
        writer.start()
        try:
            writer.wait_for(10)  # so that its statements are prepared
            with serving(tmp_path, stores.url) as new:
                writer.wait_for(5)
                mine = new.store("The new one works in Austin")
                writer.end()

                listed = new.listed("Note")
                assert writer.kept.items() <= listed.items()
                assert "The new one works in Austin" in new.found("Austin")
                new.rewrite(mine, "The new one works in Oslo")
        finally:
            writer.end()

        with (
            pytest.raises(AssertionError, match="Update scrubjay on this machine"),
            serving(tmp_path, stores.url, before),
        ):
            pass
        with closing(PostgresStore(stores.url)) as store:
            checkup = store.check(deep=True)
        assert (checkup.schema, checkup.problems, checkup.wrong_hashes) == (SCHEMA_VERSION, (), ())


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
    for work in (
        lambda: jay.update(kept.id, content="User lives in Austin"),
        lambda: jay.store("Written later").memory,
    ):
        try:
            print(work().content, flush=True)
        except scrubjay.Error:
            print("refused", flush=True)
"""


def test_what_a_window_of_the_version_before_acknowledges_is_kept_when_its_file_was_updated(
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
            said, _ = window.communicate("go\n", timeout=PATIENCE)
            assert window.returncode == 0
            texts = {memory.content for memory in store.list(Filter(), EVERYTHING, now=utc_now())}
            assert store.check(deep=True).problems == ()

    assert len(texts) >= 10
    assert set(said.splitlines()) - {"refused"} <= texts
