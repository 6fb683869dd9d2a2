"""Clocks of other stores: far ahead is refused, a little ahead gains nothing, what was lifted can be mended."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

import pytest

from scrubjay.dialects.table import find
from scrubjay.engine.access import EVERYTHING
from scrubjay.engine.engine import Engine
from scrubjay.engine.parts import engine_on
from scrubjay.engine.sync.merge import WinnerPolicy
from scrubjay.engine.sync.peer import SyncBatch, TakeOptions
from scrubjay.errors import ClockAhead
from scrubjay.servers.http.app import build_app
from scrubjay.stores.promises.memories import clock_at
from tests.servers.sites import client_of
from tests.sync.test_syncing import both_changed, run

pytestmark = pytest.mark.process

BOTH = pytest.mark.parametrize("backend", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
FAR = 2**62


def lift(engine: Engine, to: int = FAR) -> None:
    """As a peer with a wrong clock lifted the store's clock before such stamps were refused."""
    with engine.records.writing() as tx:
        tx.clock.observe(to)


@pytest.fixture
def chosen(backend, open_engine, request):
    """An engine on either backend."""
    engine = open_engine("chosen.db")
    if backend == "sqlite":
        yield engine
        return
    from scrubjay.stores.postgres.store import PostgresStore

    store = PostgresStore(request.getfixturevalue("postgres_store")("clocks"))
    with engine_on(store, None, clock=engine.now, connect=engine.parts.connect) as chosen:
        yield chosen


@contextmanager
def site(engine):
    with client_of(build_app(engine, [find("memento")], only_rest=[find("native")])) as client:
        yield str(client.base_url)


# --- far ahead -------------------------------------------------------------------------------------------------------


def test_a_stamp_further_ahead_than_an_hour_is_refused_and_nothing_is_written(jay, drive):
    lift(drive)
    wrong = drive.store("From the far future").memory
    before = jay.records.sync.clock()

    with pytest.raises(ClockAhead, match=f"Sync with drive is refused: a change to {wrong.id} was stamped") as refused:
        run(jay)

    assert "years ahead of this machine's clock" in refused.value.message
    assert "scrubjay sync mend-clock" in refused.value.hint
    assert jay.records.sync.clock() == before
    assert not list(jay.list())


def test_what_another_change_has_seen_and_links_are_looked_at_too(jay, drive, clock):
    ours, other = drive.store("Tea").memory, drive.store("Coffee").memory
    run(jay)
    drive.supersede(old=ours.id, new=other.id)
    late = clock_at(clock() + timedelta(hours=2))
    host = jay.sync.host._peer
    [replica] = drive.records.sync.replicas([ours.id], EVERYTHING)
    [link] = [one for one in drive.records.history.links([ours.id]) if one.kind == "supersedes"]

    for parcel in (
        SyncBatch(replicas=(replace(replica, seen={"x": late}),)),
        SyncBatch(links=(replace(link, hlc=late),)),
    ):
        with pytest.raises(ClockAhead):
            host.take(parcel, TakeOptions(policy=WinnerPolicy.NEWEST, named="newest_wins", sender="drive"))


def test_stamps_in_our_own_name_do_not_lift_the_clock_hour_by_hour(jay, clock):
    memory = jay.store("Tea").memory
    [replica] = jay.records.sync.replicas([memory.id], EVERYTHING)
    peer, options = jay.sync.host._peer, TakeOptions(policy=WinnerPolicy.NEWEST, named="newest_wins", sender="liar")

    def told(minutes):
        forged = replace(memory, content=f"Tea, {minutes}", hlc=clock_at(clock() + timedelta(minutes=minutes)))
        peer.take(SyncBatch(replicas=(replace(replica, memory=forged),)), options)

    told(55)
    with pytest.raises(ClockAhead, match="by this store"):
        told(110)
    jay.update(memory.id, content="Coffee")
    assert jay.records.sync.clock() < clock_at(clock() + timedelta(hours=1))


def test_over_http_both_ways_the_clock_is_named_and_not_the_address(jay, open_engine):
    far = open_engine("far.db")
    with site(far) as url:
        jay.sync.add("far", url)
        lift(jay)
        jay.store("From the far future")
        with pytest.raises(ClockAhead, match="Endpoint far refuses changes with timestamps more than an hour ahead"):
            run(jay, destination="far")
        assert not list(far.list())

        jay.sync.mend_clock()
        run(jay, destination="far")
        lift(far)
        far.store("From the far future too")
        with pytest.raises(ClockAhead, match="Sync with far is refused"):
            run(jay, destination="far")


def test_a_store_whose_own_clock_was_wrong_is_still_written_to(jay, clock):
    clock.move(days=400)
    first = jay.store("Written next year").memory
    clock.move(days=-400)

    second = jay.store("Written now").memory
    third = jay.update(first.id, tags=["changed"])

    assert first.hlc < second.hlc < third.hlc


# --- a little ahead --------------------------------------------------------------------------------------------------


@pytest.fixture
def liar(open_engine, clock):
    """A store whose clock is fifty minutes ahead."""
    return open_engine("liar.db", clock=lambda: clock() + timedelta(minutes=50))


def test_a_clock_that_is_a_little_ahead_does_not_win_a_conflict(jay, liar, clock, tmp_path):
    jay.sync.add("liar", tmp_path / "liar.db")
    id = jay.store("User lives in Oslo").memory.id
    run(jay, destination="liar")
    liar.update(id, content="User lives in Paris")
    clock.move(minutes=1)
    jay.update(id, content="User lives in Rome")

    run(jay, destination="liar")
    run(jay, destination="liar")

    assert jay.get(id).content == liar.get(id).content == "User lives in Rome"
    assert [one.outcome for one in jay.sync.conflicts(settled=True)] == ["current"]


def test_nor_after_it_was_seen_before(jay, liar, clock, tmp_path):
    """Our clock is not carried along: then we would all stand in its future, where it is always first."""
    jay.sync.add("liar", tmp_path / "liar.db")
    first = liar.store("User likes tea").memory.id
    run(jay, destination="liar")
    edited = jay.update(first, content="User likes coffee")
    run(jay, destination="liar")
    assert edited.hlc <= clock_at(clock() + timedelta(minutes=2))
    assert liar.get(first).content == "User likes coffee"  # it was made on top of the other

    liar.update(first, content="User likes milk")
    clock.move(minutes=5)
    jay.update(first, content="User likes water")
    run(jay, destination="liar")
    run(jay, destination="liar")

    assert jay.get(first).content == liar.get(first).content == "User likes water"


def test_where_it_is_no_longer_ahead_the_later_change_wins(jay, liar, clock, tmp_path):
    jay.sync.add("liar", tmp_path / "liar.db")
    id = jay.store("User lives in Oslo").memory.id
    run(jay, destination="liar")
    jay.update(id, content="User lives in Rome")
    liar.update(id, content="User lives in Paris")
    clock.move(hours=1)

    run(jay, destination="liar")

    assert jay.get(id).content == "User lives in Paris"


# --- mending ---------------------------------------------------------------------------------------------------------


@BOTH
def test_a_lifted_clock_is_mended_and_the_order_of_changes_stays(chosen, clock):
    early = chosen.store("early").memory
    lift(chosen)
    ids = [early.id, *(chosen.store(text).memory.id for text in ("second", "third"))]
    chosen.update(ids[1], tags=["changed"])
    chosen.supersede(old=ids[0], new=ids[2])
    before = order(chosen, ids)

    mended = chosen.sync.mend_clock()

    assert mended
    assert order(chosen, ids) == before
    assert max(chosen.get(id).hlc for id in ids) < clock_at(clock() + timedelta(minutes=1))
    after = chosen.store("after").memory
    assert max(chosen.get(id).hlc for id in ids) < after.hlc <= chosen.records.sync.clock() < clock_at(clock()) + 100
    assert chosen.sync.mend_clock() == 0


def order(engine, ids):
    stamps = [(engine.get(id).hlc, id) for id in ids]
    stamps += [(link.hlc, link.target) for link in engine.records.history.links(ids)]
    return [name for _, name in sorted(stamps)]


@BOTH
def test_a_mended_store_syncs_and_its_changes_reach_the_other(chosen, open_engine, tmp_path):
    lift(chosen)
    id = chosen.store("User lives in Oslo").memory.id
    open_engine("other.db")
    chosen.sync.add("other", tmp_path / "other.db")
    with pytest.raises(ClockAhead):
        run(chosen, destination="other")

    chosen.sync.mend_clock()
    run(chosen, destination="other")
    chosen.update(id, content="User lives in Rome")
    run(chosen, destination="other")

    assert open_engine("other.db").get(id).content == "User lives in Rome"


def test_two_stores_that_both_hold_the_wrong_stamps_agree_after_both_were_mended(jay, drive, clock):
    id = both_changed(jay, drive, clock)
    run(jay)
    lift(jay)
    changed = jay.update(id, content="User lives in Bergen")
    [replica] = jay.records.sync.replicas([id], EVERYTHING)
    with drive.records.writing() as tx:  # as before such stamps were refused
        drive_peer = drive.sync.host._peer
        drive_peer._write(tx, None, replica, carried=False)
        tx.clock.observe(changed.hlc)
    drive.update(id, tags=["seen"])

    for engine in (jay, drive):
        engine.sync.mend_clock()
    for _ in range(2):
        run(jay)

    assert jay.get(id).content == drive.get(id).content == "User lives in Bergen"
    assert jay.get(id).tags == drive.get(id).tags
