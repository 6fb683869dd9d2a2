"""Three stores, a bad line, wrong clocks: in the end all are equal, nothing deleted lives, no edit is lost unrecorded.

`make test` runs a hundred sequences, `make test-long` a thousand, `make simulate` ten thousand; SCRUBJAY_SIMULATIONS
says another number.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from scrubjay.engine.sync.local import StorePeer
from scrubjay.engine.sync.peer import Peer, SyncBatch, Taken, TakeOptions
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.values import codec
from tests.sync.lines import inside, over_http
from tests.sync.simulation import simulate
from tests.sync.world import Site, World

pytestmark = pytest.mark.process

SEQUENCES = int(os.environ.get("SCRUBJAY_SIMULATIONS") or 100)
MEMORY = Path("/dev/shm")


@pytest.fixture(scope="module")
def template() -> Iterator[Path]:
    """An empty store to copy, in memory where there is such a place: making one takes longer than using it."""
    folder = Path(tempfile.mkdtemp(dir=MEMORY if MEMORY.is_dir() else None))
    store = SqliteStore(folder / "empty.db")
    store.close()
    yield folder / "empty.db"
    shutil.rmtree(folder)


class ByLetter(StorePeer):
    """A store at the other end of a line that carries text only."""

    def parcel(self, ids: list[str], *, vectors: bool) -> SyncBatch:
        return codec.read(SyncBatch, codec.write_json(super().parcel(ids, vectors=vectors)))

    def take(self, parcel: SyncBatch, options: TakeOptions) -> list[Taken]:
        return super().take(
            codec.read(SyncBatch, codec.write_json(parcel)), codec.read(TakeOptions, codec.write_json(options))
        )


def by_letter(_world: World, site: Site) -> Peer:
    return ByLetter(site.jay.records, now=site.jay.now, user="local", owned=False)


def test_stores_agree_whatever_happens_on_the_way(template):
    simulate(template, SEQUENCES)


@pytest.mark.long
def test_stores_agree_whatever_happens_on_a_longer_way(template):
    simulate(template, 10 * SEQUENCES)


def test_what_travels_survives_as_text(template):
    """A remote store is reached in JSON; nothing that is sent may depend on being the same object."""
    simulate(template, max(SEQUENCES // 10, 20), by_letter)


def test_stores_agree_by_way_of_our_own_site(template):
    with inside() as line:
        simulate(template, max(SEQUENCES // 100, 10), line)


@pytest.mark.long
def test_stores_agree_over_http(template):
    with over_http() as line:
        simulate(template, max(SEQUENCES // 20, 50), line)


@pytest.mark.postgres
@pytest.mark.parametrize("names", [("two",), ("one", "three")], ids=str)
def test_stores_agree_when_some_of_them_are_postgresql(template, postgres_store, names):
    """The second one is synced with from both sides; the first and the third begin syncs themselves."""
    from scrubjay.stores.postgres.store import PostgresStore

    stores = {name: lambda name=name: PostgresStore(postgres_store(f"simulated {name}"), pool_size=2) for name in names}
    simulate(template, max(SEQUENCES // 50, 20), stores=stores)
