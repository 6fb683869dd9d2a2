"""Three stores, a bad line, wrong clocks: in the end all are equal, nothing deleted lives, no edit is lost unrecorded.

`make simulate` runs ten thousand sequences; SCRUBJAY_SIMULATIONS says another number.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from scrubjay.engine.syncing import Resolution, SyncType
from scrubjay.memory import Status
from scrubjay.stores.sqlite import SqliteStore
from tests.sync.world import World

SEQUENCES = int(os.environ.get("SCRUBJAY_SIMULATIONS") or 100)
STEPS = 16
MEMORY = Path("/dev/shm")

sites = st.integers(0, 2)
which = st.integers(0, 5)
faults = st.lists(st.sampled_from(["ok", "ok", "ok", "lost", "twice", "cut", "late"]), max_size=12)


@pytest.fixture(scope="module")
def template() -> Iterator[Path]:
    """An empty store to copy, in memory where there is such a place: making one takes longer than using it."""
    folder = Path(tempfile.mkdtemp(dir=MEMORY if MEMORY.is_dir() else None))
    store = SqliteStore(folder / "empty.db")
    store.close()
    yield folder / "empty.db"
    shutil.rmtree(folder)


def machine(template: Path, line=None) -> type[RuleBasedStateMachine]:
    class Simulation(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.folder = Path(tempfile.mkdtemp(dir=template.parent))
            self.world = World(self.folder, template, **({"line": line} if line else {}))
            # A world that is already worth syncing.
            self.world.store(self.world.sites[0], path="notes/a")
            self.world.store(self.world.sites[1])
            self.world.sync(self.world.sites[0], self.world.sites[1], SyncType.FULL, Resolution.NEWEST_WINS, [])

        def memory(self, number: int) -> str:
            return self.world.ids[number % len(self.world.ids)]

        @rule(site=sites, path=st.sampled_from([None, "notes/a", "notes/b"]))
        def store(self, site, path):
            self.world.store(self.world.sites[site], path)

        @rule(site=sites, memory=which)
        def edit(self, site, memory):
            self.world.edit(self.world.sites[site], self.memory(memory))

        @rule(site=sites, memory=which, tag=st.sampled_from("xyz"))
        def tag(self, site, memory, tag):
            self.world.tag(self.world.sites[site], self.memory(memory), tag)

        @rule(site=sites, memory=which)
        def forget(self, site, memory):
            self.world.forget(self.world.sites[site], self.memory(memory))

        @rule(site=sites, memory=which)
        def erase(self, site, memory):
            self.world.erase(self.world.sites[site], self.memory(memory))

        @rule(site=sites, memory=which)
        def recover(self, site, memory):
            self.world.recover(self.world.sites[site], self.memory(memory))

        @rule(site=sites, memory=which, status=st.sampled_from([Status.ACTIVE, Status.ARCHIVED]))
        def archive(self, site, memory, status):
            self.world.archive(self.world.sites[site], self.memory(memory), status)

        @rule(site=sites, old=which, new=which)
        def supersede(self, site, old, new):
            self.world.supersede(self.world.sites[site], self.memory(old), self.memory(new))

        @rule(site=sites)
        def purge(self, site):
            self.world.purge(self.world.sites[site])

        @rule(site=sites, minutes=st.integers(-60, 60))
        def set_clock(self, site, minutes):
            self.world.sites[site].skew = timedelta(minutes=minutes)

        @rule(site=sites)
        def back_up(self, site):
            self.world.back_up(self.world.sites[site])

        @rule(site=sites)
        def put_back(self, site):
            self.world.put_back(self.world.sites[site])

        @rule(
            site=sites,
            step=st.integers(1, 2),
            type=st.sampled_from(SyncType),
            resolution=st.sampled_from(Resolution),
            faults=faults,
        )
        def sync(self, site, step, type, resolution, faults):
            other = self.world.sites[(site + step) % 3]
            self.world.sync(self.world.sites[site], other, type, resolution, faults)

        @rule()
        def deliver(self):
            self.world.deliver()

        def teardown(self) -> None:
            try:
                self.world.settle()
                self.world.check()
            finally:
                self.world.close()
                shutil.rmtree(self.folder)

    return Simulation


def simulate(template: Path, sequences: int, line=None) -> None:
    run_state_machine_as_test(
        machine(template, line),
        settings=settings(
            max_examples=sequences,
            stateful_step_count=STEPS,
            deadline=None,
            database=None,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_stores_agree_whatever_happens_on_the_way(template):
    simulate(template, SEQUENCES)
