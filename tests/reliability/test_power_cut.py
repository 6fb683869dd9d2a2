"""The power goes: what was acknowledged is there afterwards, whole and found, whatever the disk had not written yet."""

from __future__ import annotations

from contextlib import closing

import pytest

from scrubjay.stores.sqlite.store import SqliteStore
from tests.reliability.processes import Child
from tests.reliability.rounds import short_and_long
from tests.reliability.wholeness import checked, everything, unfindable

pytestmark = pytest.mark.process


@short_and_long("rounds", 6, 300)
def test_after_a_power_cut_everything_acknowledged_is_there_and_the_store_opens(quick_path, chance, rounds):
    """kill -9 proves nothing here: what a process has written survives it, synced or not."""
    lost, acknowledged = 0, 0
    for number in range(rounds):
        folder = quick_path / str(number)
        folder.mkdir()
        with Child("lose_power", folder, chance.randrange(10**9), chance.randrange(100, 4_000)) as child:
            said = child.rest()
            assert child.process.wait() == 0, child.errors.decode()
        kept = {line["id"]: line["text"] for line in said if "id" in line}
        gone = {line["erased"] for line in said if "erased" in line}
        image = folder / "image" / "memories.db"
        if not image.exists():  # cut before the store was complete: nothing was acknowledged
            assert not kept
            continue
        checked(image, pending=True)
        with closing(SqliteStore(image)) as store:
            there = {id: memory.content for id, memory in everything(store).items()}
            under_way = {line.get("changing") or line.get("erasing") for line in said[-1:]}  # either state is right
            expected = {id: text for id, text in kept.items() if id not in gone | under_way}
            lost += sum(there.get(id) != text for id, text in expected.items())
            assert gone.isdisjoint(there)
            assert unfindable(store, expected.items(), by_meaning=False) == []
        acknowledged += len(expected)

    assert acknowledged > 0
    print(f"{rounds} power cuts: {acknowledged} memories acknowledged, {lost} lost")
    assert lost == 0
