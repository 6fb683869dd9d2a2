"""What all tests share: a clock that stands still until it is moved, and engines on temporary files."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import hypothesis
import numpy as np
import pytest

from scrubjay.embedders.base import Vector
from scrubjay.embedders.catalogue import find
from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.embedders.local import LocalEmbedder, normalise_vector
from scrubjay.engine.engine import Engine
from scrubjay.engine.parts import engine_on
from scrubjay.folders.registry import Registry
from scrubjay.settings import load
from scrubjay.stores.promises.memories import Store
from scrubjay.stores.sqlite import file as sqlite_file
from scrubjay.stores.sqlite.store import SqliteStore
from tests import closing as closing_lines
from tests import quick

pytest_unconfigure = closing_lines.pytest_unconfigure
pytest_addoption = quick.pytest_addoption
pytest_ignore_collect = quick.pytest_ignore_collect
pytest_sessionstart = quick.pytest_sessionstart
pytest_runtest_protocol = quick.pytest_runtest_protocol

pytest.register_assert_rewrite(
    "tests.stores.contract", "tests.embedders.embedder_contract"
)  # so that a broken promise shows its values


# A busy machine is no failure: by default an example that takes 0.2 s is one, and so is making them slowly. Every run
# draws the same examples, so that a run says something about the change; --hypothesis-profile=drawn looks for others.
PATIENT = hypothesis.settings(deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.register_profile("patient", PATIENT, derandomize=True)
hypothesis.settings.register_profile("drawn", PATIENT)
hypothesis.settings.load_profile("patient")
sqlite_file.CHECK_SECONDS = 60.0  # what damage is found on opening does not depend on who else uses the processor

MEMORY_DISK = Path("/dev/shm")
ENOUGH_BYTES = 4 * 2**30  # a run of all tests holds a tenth of it at a time


def heed_signals() -> None:
    """Where a shell runs the tests in the background, interrupts are ignored, and what they start would inherit that. A
    handler is not inherited."""
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_IGN:
                signal.signal(number, lambda _number, _frame: None)


def pytest_configure() -> None:
    """Temporary files lie in memory where there is room for them: half the tests wait for a disk otherwise.

    What survives a power cut is tested on a disk of our own making, which counts what was synced.
    """
    heed_signals()
    if "TMPDIR" in os.environ or not hasattr(os, "statvfs") or not os.access(MEMORY_DISK, os.W_OK):
        return
    disk = os.statvfs(MEMORY_DISK)
    if disk.f_bavail * disk.f_frsize >= ENOUGH_BYTES and not disk.f_flag & os.ST_NOEXEC:
        os.environ["TMPDIR"] = str(MEMORY_DISK)  # for children, too
        tempfile.tempdir = None


LONG_FILES = ("stores", "page", "reliability", "sync", "servers", "tests")


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Folders whose files take long go first, so that nobody waits for one of them alone in the end."""
    for item in items:
        quick.mark_by_needs(item)
    if config.getoption("quick"):
        items[:] = filter(quick.is_quick, items)
    items.sort(key=lambda item: item.path.parent.name not in LONG_FILES)


NOISE = float(os.environ.get("SCRUBJAY_TEST_NOISE", "0"))  # what another processor's rounding may do to the model


def shaken(vector_of: Callable[[LocalEmbedder, str], Vector]) -> Callable[[LocalEmbedder, str], Vector]:
    """The same vectors, each moved by NOISE of its length in a direction of its own; the same for the same vector."""

    def moved(embedder: LocalEmbedder, text: str) -> Vector:
        vector = vector_of(embedder, text)
        chance = np.random.default_rng(zlib.crc32(vector.tobytes()))
        direction = chance.standard_normal(len(vector))
        return normalise_vector(
            vector + NOISE * (direction / np.linalg.norm(direction)).astype(np.float32), len(vector)
        )

    return moved


if NOISE:
    LocalEmbedder._vector = shaken(LocalEmbedder._vector)


class Clock:
    """Time under the test's control."""

    def __init__(self) -> None:
        self.time = datetime(2026, 11, 15, 10, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time

    def move(self, **by: float) -> None:
        self.time += timedelta(**by)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def sqlite_store(path: Path) -> SqliteStore:
    """The store in this file; a new one is a copy."""
    new = not path.exists()
    place_store(path)
    store = SqliteStore(path)
    if new:
        with store.writing() as tx:
            tx.sync.renew_origin()  # what a copy shares with the others, and a store does not
    return store


def place_store(path: Path) -> Path:
    """Put an empty store there unless there is one: a copy, for making it takes ten times as long."""
    if not path.exists():
        path.touch(mode=0o600)
        path.write_bytes(empty_store())
    return path


@cache
def empty_store() -> bytes:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "memories.db"
        SqliteStore(file).close()
        return file.read_bytes()


@pytest.fixture
def open_store(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[[str], Store]:
    """Opens this test's stores: files, or with SCRUBJAY_TEST_STORE=postgres schemas of a real server."""
    chosen = getattr(request, "param", os.environ.get("SCRUBJAY_TEST_STORE"))
    if chosen != "postgres":
        return lambda file: sqlite_store(tmp_path / file)
    from scrubjay.stores.postgres.store import PostgresStore

    emptied: Callable[[str], str] = cache(request.getfixturevalue("postgres_store"))
    return lambda file: PostgresStore(emptied(file))


@pytest.fixture(scope="session")
def postgres_store() -> Iterator[Callable[[str], str]]:
    """Gives the address of an empty store, the same for every test; another for another name."""
    from tests.postgres import Stores, server_url

    with ExitStack() as opened:

        @cache
        def stores(name: str) -> Stores:
            schema = "engine_" + "".join(letter for letter in name.lower() if letter.isalnum())
            return opened.enter_context(closing(Stores(server_url(), schema)))

        yield lambda name: stores(name).empty()


@pytest.fixture
def open_engine(open_store: Callable[[str], Store], tmp_path: Path, clock: Clock) -> Iterator[Callable[..., Engine]]:
    """Engines on one store, closed after the test."""
    opened: list[Engine] = []

    def open_one(embedder: object = "hashing", file: str = "memories.db", **options: object) -> Engine:
        chosen = HashingEmbedder() if embedder == "hashing" else embedder
        usual = {"wait_seconds": 60.0, "clock": clock, "registry": Registry(tmp_path, tmp_path, walk_seconds=0)}
        engine = engine_on(open_store(file), chosen, **{**usual, **options})
        opened.append(engine)
        return engine

    yield open_one
    for engine in opened:
        engine.close()


@pytest.fixture
def jay(open_engine: Callable[..., Engine]) -> Engine:
    """An engine with the embedder that only tests use."""
    return open_engine()


@pytest.fixture(scope="session")
def model() -> Iterator[LocalEmbedder]:
    """The real model; `make test` has fetched it."""
    embedder = LocalEmbedder(find("arctic-embed-s"), load().models)
    embedder.load()
    yield embedder
    embedder.close()


class Shared:
    """The real model for one engine: closing the engine leaves it loaded for the next test."""

    def __init__(self, embedder: LocalEmbedder) -> None:
        self._embedder = embedder

    def __getattr__(self, name: str) -> object:
        return getattr(self._embedder, name)

    def close(self) -> None:
        pass


@pytest.fixture
def real_jay(open_engine: Callable[..., Engine], model: LocalEmbedder) -> Engine:
    """An engine with the real model."""
    return open_engine(Shared(model))
