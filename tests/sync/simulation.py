"""What may happen to three stores: hypothesis chooses, `World` does it and says what must be true in the end.

    simulate(template, sequences, line, stores)

The line is how a store is reached: another transport is another line. `stores` are those of the three that are no file.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from datetime import timedelta
from pathlib import Path

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from scrubjay.engine.sync.run import Resolution, SyncType
from tests.sync.world import Line, Stores, World, direct

STEPS = 16
# Shrinking takes many minutes; the failing sequence is printed as it was found. SCRUBJAY_SHRINK=1 to wait for it.
PHASES = [Phase.generate, *([Phase.shrink] if os.environ.get("SCRUBJAY_SHRINK") else [])]

sites = st.integers(0, 2)
which = st.integers(0, 2)
faults = st.lists(st.sampled_from(["ok", "ok", "ok", "lost", "twice", "cut", "late"]), max_size=12)


def machine(template: Path, line: Line, stores: Stores | None) -> type[RuleBasedStateMachine]:
    class Simulation(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.folder = Path(tempfile.mkdtemp(dir=template.parent))
            self.world = World(self.folder, template, line, stores)
            # A world that is already worth syncing.
            self.world.store(self.world.sites[0], path="notes/a")
            self.world.store(self.world.sites[1])
            self.world.sync(self.world.sites[0], self.world.sites[1], SyncType.FULL, Resolution.NEWEST_WINS, [])

        @initialize(only=st.sampled_from([None, Resolution.NEWEST_WINS, Resolution.MERGE]))
        def choose(self, only):
            self.world.only = only

        def memory(self, number: int) -> str:
            return self.world.ids[number % len(self.world.ids)]

        @rule(site=sites, path=st.sampled_from([None, "notes/a", "notes/b"]))
        def store(self, site, path):
            self.world.store(self.world.sites[site], path)

        @rule(site=sites, memory=which, act=st.sampled_from(["edit", "edit", "tag", "tag"]))
        def change(self, site, memory, act):
            if act == "edit":
                self.world.edit(self.world.sites[site], self.memory(memory))
            else:
                self.world.tag(self.world.sites[site], self.memory(memory), f"tag{site}")

        @rule(site=sites, memory=which, act=st.sampled_from(["forget", "forget", "recover", "recover", "erase"]))
        def delete(self, site, memory, act):
            getattr(self.world, act)(self.world.sites[site], self.memory(memory))

        @rule(site=sites, memory=which, act=st.sampled_from(["archive", "restore"]))
        def put_away(self, site, memory, act):
            getattr(self.world, act)(self.world.sites[site], self.memory(memory))

        @rule(site=sites, old=which, new=which)
        def supersede(self, site, old, new):
            self.world.supersede(self.world.sites[site], self.memory(old), self.memory(new))

        @rule(site=sites, skew=st.integers(-30, 30) | st.none())
        def pass_time(self, site, skew):
            """Clocks are up to an hour apart; where exactly the newest must win, so little that none is mistrusted."""
            if skew is None:
                self.world.purge(self.world.sites[site])
            elif self.world.only is Resolution.NEWEST_WINS:
                self.world.sites[site].skew = timedelta(seconds=skew)
            else:
                self.world.sites[site].skew = timedelta(minutes=skew)

        @rule(site=sites, act=st.sampled_from(["back_up", "back_up", "put_back"]))
        def disk(self, site, act):
            getattr(self.world, act)(self.world.sites[site])

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

        @rule(site=sites, step=st.integers(1, 2), resolution=st.sampled_from(Resolution))
        def sync_well(self, site, step, resolution):
            other = self.world.sites[(site + step) % 3]
            self.world.sync(self.world.sites[site], other, SyncType.INCREMENTAL, resolution, [])

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


def simulate(template: Path, sequences: int, line: Line = direct, stores: Stores | None = None) -> None:
    run_state_machine_as_test(
        machine(template, line, stores),
        settings=settings(
            max_examples=sequences,
            stateful_step_count=STEPS,
            deadline=None,
            database=None,
            # `make test` runs the same sequences each time: a rare find belongs to `make simulate`, not to whoever
            # happens to change something else that day.
            derandomize=not os.environ.get("SCRUBJAY_SIMULATIONS"),
            print_blob=True,
            phases=PHASES,
            suppress_health_check=list(HealthCheck),
        ),
    )
