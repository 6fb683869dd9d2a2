"""Syncing two stores, as a library user does it."""

from __future__ import annotations

import shutil
from dataclasses import fields, replace
from datetime import timedelta

import pytest

from scrubjay.engine.access import EVERYTHING
from scrubjay.engine.lifecycle.consolidation import ConsolidationPlan, Strategy
from scrubjay.engine.sync.merge import WinnerPolicy
from scrubjay.engine.sync.peer import SyncBatch, TakeOptions
from scrubjay.engine.sync.run import KIND, Keep, Resolution, SyncFilter, SyncRequest, SyncType
from scrubjay.engine.sync.syncing import LEASE
from scrubjay.errors import (
    EndpointNotFound,
    EndpointUnreachable,
    Forbidden,
    InvalidInput,
    Locked,
    NotFound,
    StorageError,
    StorageTooNew,
    SyncFailed,
    Undecided,
)
from scrubjay.stores.promises.memories import OWN_MODEL, Change, clock_at
from scrubjay.stores.promises.sync import Erased
from scrubjay.stores.scripts import SCHEMA_VERSION
from scrubjay.values.callers import Caller, Provenance, Role
from scrubjay.values.memory import AccessLevel, Category, LinkKind, Memory, Source, Status
from scrubjay.values.store import Event, JobStatus
from tests.conftest import Shared


def run(jay, **options):
    return jay.sync.run(**{"destination": "drive", **options})


def both_changed(jay, drive, clock, *, here="User lives in Rome", there="User lives in Paris"):
    """A memory known to both, then changed here and, later, there."""
    memory = jay.store("User lives in Austin").memory
    run(jay)
    clock.move(seconds=1)
    jay.update(memory.id, content=here, tags=("here",), metadata={"a": 1})
    clock.move(seconds=1)
    drive.update(memory.id, content=there, tags=("there",), metadata={"b": 2})
    clock.move(seconds=1)
    return memory.id


# --- what is refused -------------------------------------------------------------------------------------------------


def test_an_endpoint_that_nobody_named_is_not_found_and_told_how_to_add(jay):
    with pytest.raises(EndpointNotFound, match="scrubjay sync add cloud FILE"):
        jay.sync.run()


@pytest.mark.parametrize("name", ["", "local", "a b", "../x", "x" * 65, "-x"])
def test_a_name_that_is_none_is_refused(jay, tmp_path, name):
    with pytest.raises(InvalidInput):
        jay.sync.add(name, tmp_path / "x.db")


def test_a_folder_that_is_not_there_is_unreachable_and_nothing_is_made(jay, tmp_path):
    with pytest.raises(EndpointUnreachable):
        jay.sync.add("usb", tmp_path / "unmounted" / "memories.db")

    assert not (tmp_path / "unmounted").exists()
    assert [one.name for one in jay.sync.endpoints()] == ["drive"]


def test_a_store_that_went_away_is_unreachable_and_not_made_anew(jay, drive, tmp_path):
    drive.close()
    (tmp_path / "drive.db").rename(tmp_path / "elsewhere.db")

    with pytest.raises(EndpointUnreachable):
        run(jay)

    assert not (tmp_path / "drive.db").exists()


def test_something_else_than_a_store_is_unreachable(jay, tmp_path):
    (tmp_path / "letter.txt").write_text("Dear Sir")

    with pytest.raises(EndpointUnreachable):
        jay.sync.add("letter", tmp_path / "letter.txt")

    assert (tmp_path / "letter.txt").read_text() == "Dear Sir"


def test_a_store_of_a_newer_scrubjay_is_refused_and_left_alone(jay, drive, tmp_path):
    import apsw

    drive.close()
    con = apsw.Connection(str(tmp_path / "drive.db"))
    con.pragma("user_version", SCHEMA_VERSION + 1)
    con.close()

    with pytest.raises(StorageTooNew, match="Endpoint drive"):
        run(jay)


def test_an_address_that_nobody_understands_is_refused(jay):
    with pytest.raises(InvalidInput):
        jay.sync.add("far", "gopher://example.com/1")


def test_a_store_is_not_synced_with_itself(jay, tmp_path):
    (tmp_path / "alias.db").symlink_to(tmp_path / "memories.db")

    with pytest.raises(InvalidInput, match="itself"):
        jay.sync.add("me", tmp_path / "memories.db")
    with pytest.raises(InvalidInput, match="itself"):
        jay.sync.add("me", tmp_path / "alias.db")
    with pytest.raises(InvalidInput, match="same"):
        jay.sync.run(source="drive", destination="drive")


@pytest.mark.parametrize("role", [Role.MEMBER, Role.READER])
def test_only_owners_sync(jay, role, tmp_path):
    ann = jay.bound_to(caller=Caller(user="ann", role=role))

    for act in (
        lambda: run(ann),
        lambda: ann.sync.add("x", tmp_path / "x.db"),
        ann.sync.endpoints,
        lambda: ann.sync.remove("drive"),
        ann.sync.conflicts,
        lambda: ann.sync.resolve(1, "ours"),
        lambda: ann.sync.start(SyncRequest(destination="drive")),
    ):
        with pytest.raises(Forbidden):
            act()


def test_an_owner_of_some_spaces_syncs_those(jay, drive):
    work = jay.bound_to(spaces=("work",))
    private, shared = jay.store("Not for you").memory.id, work.store("For the team").memory.id
    owner = jay.bound_to(caller=Caller(user="ann", spaces=frozenset({"work"})))

    run(owner)

    assert drive.get(shared).space == "work"
    with pytest.raises(NotFound):
        drive.get(private)


@pytest.mark.parametrize("erased", [Erased.NO, Erased.FINAL])
def test_a_store_of_some_spaces_cannot_reach_into_others(jay, drive, tmp_path, clock, erased):
    """Whatever it calls its memories."""
    mine = jay.bound_to(spaces=("home",)).store("The safe is behind the picture").memory
    drive.bound_to(spaces=("team",)).store("Lunch at noon")
    [replica] = jay.records.sync.replicas([mine.id], EVERYTHING)
    forged = replace(replica.memory, space="team", content="" if erased else "Mine", hlc=clock_at(clock()), origin="x")
    with drive.records.writing() as tx:
        tx.replicate(
            replace(replica, memory=forged, erased=erased), fingerprint=None if erased else b"x" * 32, vectors=(),
            change=Change(user="x", at=clock(), reason="x"),
        )  # fmt: skip
        tx.history.record(Event(space="team", at=clock(), action="stored", memory=mine.id, user="x"))
    jay.sync.add("team", tmp_path / "drive.db", spaces=["team"])

    synced = run(jay, destination="team")

    assert (synced.created, synced.errors) == (1, 1)
    assert jay.get(mine.id).content == "The safe is behind the picture"


def test_a_second_sync_is_locked_out_while_one_runs(jay):
    jay.records.upkeep.lease(LEASE, holder="another process", seconds=60)

    with pytest.raises(Locked):
        run(jay)
    with pytest.raises(Locked):
        jay.sync.start(SyncRequest(destination="drive"))


def test_a_sync_lets_go_when_it_fails(jay, drive, tmp_path):
    drive.close()
    (tmp_path / "drive.db").rename(tmp_path / "away.db")
    with pytest.raises(EndpointUnreachable):
        run(jay)
    (tmp_path / "away.db").rename(tmp_path / "drive.db")

    run(jay)


def test_conflicts_of_two_other_stores_cannot_be_left_here(jay, tmp_path):
    jay.sync.add("stick", tmp_path / "stick.db")

    with pytest.raises(InvalidInput, match="resolved manually here"):
        jay.sync.run(source="drive", destination="stick", resolution=Resolution.MANUAL)


def test_a_memory_that_long_work_holds_stops_the_sync_until_it_is_free(jay, drive):
    memory = jay.store("User lives in Austin").memory
    run(jay)
    drive.update(memory.id, content="User lives in Paris")
    with jay.records.writing() as tx:
        tx.jobs.hold([memory.id], holder="archiving", seconds=60)

    with pytest.raises(Locked):
        run(jay)
    with jay.records.writing() as tx:
        tx.jobs.let_go("archiving")
    run(jay)

    assert jay.get(memory.id).content == "User lives in Paris"


def test_a_disk_that_fails_on_the_way_is_a_failed_sync(open_engine, tmp_path):
    class Broken:
        origin = "elsewhere"

        def __getattr__(self, name):
            raise StorageError("The disk does not answer.")

        def close(self):
            pass

    jay = open_engine(connect=lambda _url, _create: Broken(), endpoints={"drive": "broken"})

    with pytest.raises(SyncFailed, match="The disk does not answer"):
        run(jay)


# --- what travels ----------------------------------------------------------------------------------------------------


def test_what_one_store_has_the_other_finds_by_meaning_and_by_words(jay, drive):
    here, there = jay.store("User moved to Austin").memory.id, drive.store("User plays the cello").memory.id

    synced = run(jay)

    assert (synced.created, synced.updated, synced.deleted) == (2, 0, 0)
    assert drive.search("User moved to Austin")[0].memory.id == here
    assert [hit.memory.id for hit in jay.search("cello", words_only=True)] == [there]
    assert drive.records.vectors([here])


def test_every_field_arrives(jay, drive, clock):
    """A field of `Memory` that sync forgets fails here."""
    first = jay.store("Older").memory
    memory = (
        jay.bound_to(provenance=Provenance(client="editor", transport="stdio", dialect="memento"))
        .store(
            "User lives in Austin",
            title="Home",
            path="people/user/home",
            topic="home",
            category=Category.GOAL,
            tags=("a", "b"),
            also=("where the user lives",),
            importance=0.25,
            confidence=0.5,
            source=Source.EXPLICIT,
            access_level=AccessLevel.PRIVATE,
            user_id="ann",
            conversation_id="c1",
            session_id="s1",
            metadata={"deep": {"er": [1, None, "ä"]}},
            detail={"outcome": "fine"},
            expires_at=clock() + timedelta(days=400),
            valid_from=clock() - timedelta(days=3),
            valid_until=clock() + timedelta(days=3),
        )
        .memory
    )
    jay.supersede(old=first.id, new=memory.id)
    with jay.records.writing() as tx:
        more = {"verified_at": clock(), "flags": ("secret",), "auto_tags": ("found",)}
        jay.ledger.change(tx, replace(tx.get([memory.id], EVERYTHING)[0], **more), "verified")
    jay.forget(memory.id)

    run(jay)

    for id in (first.id, memory.id):
        here, there = jay.get(id, deleted=True), drive.get(id, deleted=True)
        for entry in fields(Memory):
            if entry.name != "seq":
                assert getattr(here, entry.name) == getattr(there, entry.name), entry.name
    usual = Memory(
        id="", space="", content="", title="", path="", category=Category.FACT, importance=0.5,
        created_at=clock(), updated_at=clock(), accessed_at=clock(),
    )  # fmt: skip
    untold = {"kind", "superseded_by", "access_count", "seq"}  # as they usually are; the first memory has a successor
    gone = jay.get(memory.id, deleted=True)
    same = {entry.name for entry in fields(Memory) if getattr(gone, entry.name) == getattr(usual, entry.name)}
    assert same - {"created_at", "updated_at", "accessed_at"} <= untold


def test_changes_links_and_deletions_travel(jay, drive, clock):
    old, new, gone, erased = (jay.store(text).memory.id for text in ("Tea", "Coffee", "Milk", "Secret"))
    run(jay)
    clock.move(minutes=1)
    jay.supersede(old=old, new=new)
    jay.forget(gone)
    jay.forget(erased, hard=True)
    jay.store("Cocoa", related=(new,))

    synced = run(jay)

    assert (synced.created, synced.deleted) == (1, 2)
    assert drive.get(old).superseded_by == new
    assert drive.get(gone, deleted=True).status is Status.DELETED
    assert drive.records.sync.replicas([erased], EVERYTHING)[0].erased is Erased.FINAL
    assert drive.history(new)
    assert {link.kind for link in drive.links(new)} == {LinkKind.SUPERSEDES, LinkKind.RELATED}


def test_what_was_erased_leaves_no_text_on_the_other_side(jay, drive, tmp_path):
    memory = jay.store("The password is swordfish").memory.id
    run(jay)
    drive.update(memory, content="The password is sturgeon")
    jay.forget(memory, hard=True)

    run(jay)

    drive.close()
    jay.close()
    for file in tmp_path.iterdir():
        assert b"swordfish" not in file.read_bytes(), file.name
        assert b"sturgeon" not in file.read_bytes(), file.name


def test_an_erasure_wins_over_a_later_edit_and_says_so(jay, drive, clock):
    memory = jay.store("Secret").memory.id
    run(jay)
    jay.forget(memory, hard=True)
    clock.move(hours=1)
    drive.update(memory, content="Secret, improved")

    synced = run(jay)

    assert len(synced.conflicts) == 1
    for engine in (jay, drive):
        with pytest.raises(NotFound):
            engine.get(memory, deleted=True)


def test_a_recovery_is_not_undone_by_an_old_deletion(jay, drive, clock):
    memory = jay.store("Tea").memory.id
    jay.forget(memory)
    run(jay)
    clock.move(days=29)
    drive.recover(memory)
    clock.move(days=2)
    jay.parts.housekeeper.purge()

    run(jay)

    assert jay.get(memory).content == "Tea"
    assert drive.get(memory).content == "Tea"
    assert [hit.memory.id for hit in jay.search("Tea")] == [memory]


def test_a_clock_that_was_set_back_does_not_make_a_change_old(jay, drive, clock):
    memory = jay.store("First").memory.id
    run(jay)
    clock.move(hours=-5)
    drive.update(memory, content="Second")

    run(jay)

    assert jay.get(memory).content == "Second"


@pytest.mark.parametrize("first_here", [True, False])
def test_two_memories_on_one_path_both_stay_and_the_younger_moves(jay, drive, clock, first_here):
    first, second = (jay, drive) if first_here else (drive, jay)
    older = first.store("Here", path="notes/a").memory.id
    clock.move(seconds=1)
    younger = second.store("There", path="notes/a").memory.id

    run(jay)
    run(jay)

    for engine in (jay, drive):
        assert engine.get(older).path == "notes/a"
        assert engine.get(younger).path == f"notes/a-{younger[-6:]}"


def test_a_memory_of_another_model_is_found_by_words_at_once_and_waits_for_its_vector(jay, open_engine, tmp_path):
    jay.store("User plays the cello")
    with jay.records.writing() as tx:
        tx.history.set_fact(OWN_MODEL, "another-model")
    other = open_engine("other.db")
    other.store("So that it has a model")
    jay.sync.add("other", tmp_path / "other.db")

    jay.sync.run(destination="other")

    [hit] = other.search("cello", words_only=True)
    assert not other.records.vectors([hit.memory.id])
    assert hit.memory.id in [one.memory.id for one in other.records.upkeep.pending(limit=9)]


# --- which way, what and how much ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("type", "here", "there"), [(SyncType.PUSH, 1, 2), (SyncType.PULL, 2, 1)])
def test_one_way_is_one_way(jay, drive, type, here, there):
    jay.store("Mine")
    drive.store("Theirs")

    run(jay, type=type)

    assert len(jay.list()) == here
    assert len(drive.list()) == there


def test_the_source_may_be_the_other_store(jay, drive):
    drive.store("Theirs")

    jay.sync.run(source="drive", destination="local", type=SyncType.PUSH)

    assert len(jay.list()) == 1


def test_two_other_stores_are_synced_with_each_other(jay, drive, open_engine, tmp_path):
    drive.store("Theirs")
    jay.sync.add("stick", tmp_path / "stick.db")

    jay.sync.run(source="drive", destination="stick")

    assert [memory.content for memory in open_engine("stick.db").list()] == ["Theirs"]
    assert len(jay.list()) == 0


def test_a_dry_run_tells_what_a_run_does_and_writes_nothing(jay, drive, clock):
    both_changed(jay, drive, clock)
    jay.store("Mine")
    before = [list(engine.list()) for engine in (jay, drive)]
    feed = jay.records.history.events("default", limit=10_000)

    told = run(jay, dry_run=True)

    assert [list(engine.list()) for engine in (jay, drive)] == before
    assert jay.records.history.events("default", limit=10_000) == feed
    assert not jay.sync.conflicts(settled=True)
    done = run(jay)
    assert (told.created, told.updated, told.deleted, len(told.conflicts)) == (
        done.created, done.updated, done.deleted, len(done.conflicts),
    )  # fmt: skip


def test_an_incremental_run_looks_only_at_what_changed(jay, clock):
    for number in range(20):
        jay.store(f"Fact {number}")
    run(jay)
    run(jay)  # hears what the first run itself wrote
    jay.store("One more")

    assert run(jay).checked == 1
    assert run(jay, type=SyncType.FULL).checked == 21


def test_a_store_put_back_from_an_old_copy_gets_back_what_it_lost(jay, drive, tmp_path, open_engine):
    jay.store("Before")
    drive.close()
    shutil.copy(tmp_path / "drive.db", tmp_path / "backup.db")
    run(jay)
    run(jay)
    shutil.copy(tmp_path / "backup.db", tmp_path / "drive.db")

    run(jay)

    assert [memory.content for memory in open_engine("drive.db").list()] == ["Before"]


def test_a_used_copy_of_this_store_gets_an_origin_of_its_own_and_no_edit_is_lost(jay, tmp_path, open_engine, clock):
    memory, untouched = jay.store("Original").memory.id, jay.store("Untouched").memory.id
    jay.records.flush_reads()
    jay.records._connections._writable().wal_checkpoint()
    shutil.copy(tmp_path / "memories.db", tmp_path / "copy.db")
    copy = open_engine("copy.db")
    clock.move(seconds=1)
    jay.update(memory, content="Changed here")
    clock.move(seconds=1)
    copy.update(memory, content="Changed there")
    copy.update(memory, content="Changed there twice")
    assert copy.records.origin == jay.records.origin
    jay.sync.add("copy", tmp_path / "copy.db")

    synced = jay.sync.run(destination="copy")

    assert copy.records.origin != jay.records.origin
    assert [one.memory for one in synced.conflicts] == [memory]
    assert jay.get(memory).content == copy.get(memory).content == "Changed there twice"
    assert "Changed here" in [version.memory.content for version in jay.history(memory)]
    assert jay.get(untouched) is not None


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        (SyncFilter(categories=(Category.GOAL,)), {"goal"}),
        (SyncFilter(user_id="ann"), {"ann"}),
        (SyncFilter(conversation_id="c1"), {"c1"}),
        (SyncFilter(categories=(Category.GOAL,), user_id="ann"), set()),
    ],
)
def test_filters_narrow_and_the_rest_is_not_skipped_later(jay, drive, filter, expected):
    jay.store("goal", category=Category.GOAL)
    jay.store("ann", user_id="ann", category=Category.FACT)
    jay.store("c1", conversation_id="c1", category=Category.FACT)

    run(jay, filter=filter)

    assert {memory.content for memory in drive.list()} == expected
    run(jay)
    assert {memory.content for memory in drive.list()} == {"goal", "ann", "c1"}


def test_only_what_changed_since_a_time(jay, drive, clock):
    jay.store("old")
    clock.move(days=1)
    jay.store("new")

    run(jay, filter=SyncFilter(modified_since=clock()))

    assert [memory.content for memory in drive.list()] == ["new"]


def test_an_endpoint_of_one_space_leaves_the_others_alone(jay, open_engine, tmp_path):
    jay.store("At home")
    jay.bound_to(spaces=("work",)).store("At work")
    jay.sync.add("team", tmp_path / "team.db", spaces=("work",))

    jay.sync.run(destination="team")

    team = open_engine("team.db", spaces=("default", "work"))
    assert [memory.content for memory in team.list()] == ["At work"]


# --- conflicts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("resolution", "text", "winner"),
    [
        (Resolution.SOURCE_WINS, "User lives in Rome", "source"),
        (Resolution.DESTINATION_WINS, "User lives in Paris", "destination"),
        (Resolution.NEWEST_WINS, "User lives in Paris", "destination"),
        (Resolution.MERGE, "User lives in Paris", "both"),
    ],
)
@pytest.mark.parametrize("type", [SyncType.INCREMENTAL, SyncType.FULL, SyncType.BIDIRECTIONAL])
def test_the_named_side_wins_on_both_sides(jay, drive, clock, resolution, text, winner, type):
    id = both_changed(jay, drive, clock)

    synced = run(jay, resolution=resolution, type=type)

    assert [(one.memory, one.winner) for one in synced.conflicts] == [(id, winner)]
    assert jay.get(id).content == drive.get(id).content == text
    assert jay.records.sync.stamps([id], EVERYTHING) == drive.records.sync.stamps([id], EVERYTHING)
    assert run(jay, resolution=resolution).conflicts == ()


@pytest.mark.parametrize(
    ("resolution", "type", "here", "there"),
    [
        (Resolution.SOURCE_WINS, SyncType.PUSH, "Rome", "Rome"),
        (Resolution.DESTINATION_WINS, SyncType.PUSH, "Rome", "Paris"),
        (Resolution.SOURCE_WINS, SyncType.PULL, "Rome", "Paris"),
        (Resolution.DESTINATION_WINS, SyncType.PULL, "Paris", "Paris"),
    ],
)
def test_one_way_only_the_listener_changes(jay, drive, clock, resolution, type, here, there):
    id = both_changed(jay, drive, clock)

    run(jay, resolution=resolution, type=type)

    assert jay.get(id).content.endswith(here)
    assert drive.get(id).content.endswith(there)


def test_merging_unites_tags_and_metadata_and_takes_the_higher_count_of_reads(jay, drive, clock):
    id = both_changed(jay, drive, clock)
    for _ in range(3):
        jay.search("Rome")

    run(jay, resolution=Resolution.MERGE)

    for engine in (jay, drive):
        merged = engine.get(id)
        assert set(merged.tags) == {"here", "there"}
        assert merged.metadata == {"a": 1, "b": 2}
        assert merged.access_count == 3


def test_the_state_that_lost_stays_readable(jay, drive, clock):
    id = both_changed(jay, drive, clock)

    run(jay)

    assert "User lives in Rome" in [version.memory.content for version in jay.history(id)]
    [record] = jay.sync.conflicts(settled=True)
    assert (record.memory, record.endpoint, record.outcome) == (id, "drive", "incoming")
    assert "Rome" in record.ours
    assert "Paris" in record.theirs


def test_manual_leaves_both_and_syncs_all_else(jay, drive, clock):
    id = both_changed(jay, drive, clock)
    other = drive.store("All else").memory.id

    with pytest.raises(Undecided) as caught:
        run(jay, resolution=Resolution.MANUAL)

    assert [one["memory_id"] for one in caught.value.details["conflicts"]] == [id]
    assert jay.get(id).content == "User lives in Rome"
    assert drive.get(id).content == "User lives in Paris"
    assert jay.get(other)
    [waiting] = jay.sync.conflicts()
    assert (waiting.memory, waiting.endpoint, waiting.outcome) == (id, "drive", None)


def test_a_conflict_that_waits_is_said_again_and_queued_once(jay, drive, clock):
    both_changed(jay, drive, clock)

    for type in (SyncType.INCREMENTAL, SyncType.PUSH, SyncType.PULL):
        with pytest.raises(Undecided):
            run(jay, resolution=Resolution.MANUAL, type=type)

    [waiting] = jay.sync.conflicts()
    assert "Rome" in waiting.ours
    assert "Paris" in waiting.theirs


@pytest.mark.parametrize(
    ("keep", "text"),
    [
        (Keep.OURS, "User lives in Rome"),
        (Keep.THEIRS, "User lives in Paris"),
        (Keep.NEWEST, "User lives in Paris"),
        (Keep.MERGED, "User lives in Paris"),
    ],
)
def test_somebodys_decision_reaches_the_other_side(jay, drive, clock, keep, text):
    id = both_changed(jay, drive, clock)
    with pytest.raises(Undecided):
        run(jay, resolution=Resolution.MANUAL)

    decided = jay.sync.resolve(jay.sync.conflicts()[0].number, keep)
    run(jay, resolution=Resolution.MANUAL)

    assert decided.content == text
    assert jay.get(id).content == drive.get(id).content == text
    assert not jay.sync.conflicts()
    assert [hit.memory.id for hit in jay.search(text)] == [id]


def test_a_conflict_is_decided_once(jay, drive, clock):
    both_changed(jay, drive, clock)
    with pytest.raises(Undecided):
        run(jay, resolution=Resolution.MANUAL)
    number = jay.sync.conflicts()[0].number
    jay.sync.resolve(number, "ours")

    with pytest.raises(NotFound):
        jay.sync.resolve(number, "theirs")
    with pytest.raises(NotFound):
        jay.sync.resolve(999, "theirs")


def test_another_policy_decides_what_waits(jay, drive, clock):
    id = both_changed(jay, drive, clock)
    with pytest.raises(Undecided):
        run(jay, resolution=Resolution.MANUAL)

    run(jay)

    assert jay.get(id).content == drive.get(id).content == "User lives in Paris"
    assert not jay.sync.conflicts()


def test_erasing_a_memory_erases_its_conflicts(jay, drive, clock):
    id = both_changed(jay, drive, clock)
    with pytest.raises(Undecided):
        run(jay, resolution=Resolution.MANUAL)

    jay.forget(id, hard=True)

    assert not jay.sync.conflicts()
    [record] = jay.sync.conflicts(settled=True)
    assert (record.ours, record.theirs, record.outcome) == (None, None, "erased")


def test_a_chain_whose_ends_two_stores_forget_is_the_same_in_both(jay, drive):
    first, second, third = (jay.store(text).memory.id for text in ("Tea", "Coffee", "Cocoa"))
    jay.supersede(old=first, new=second)
    jay.supersede(old=second, new=third)
    run(jay)

    jay.forget(second)
    run(jay)
    assert [engine.get(first).superseded_by for engine in (jay, drive)] == [third, third]

    drive.forget(third)
    run(jay)
    assert [engine.get(first).superseded_by for engine in (jay, drive)] == [None, None]


def test_an_edit_does_not_lose_to_what_merely_follows_from_a_deletion(jay, drive, clock):
    """Forgetting a successor brings its predecessor back; somebody edits that one elsewhere meanwhile."""
    old, new = jay.store("Tea").memory.id, jay.store("Coffee").memory.id
    jay.supersede(old=old, new=new)
    run(jay)
    drive.update(old, content="Green tea")
    clock.move(seconds=1)
    jay.forget(new)

    synced = run(jay)

    assert synced.conflicts == ()
    for engine in (jay, drive):
        assert engine.get(old).content == "Green tea"
        assert engine.get(old).superseded_by is None


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("since", [None, timedelta(days=400)])
def test_what_comes_back_has_no_end_in_either_store(jay, drive, clock, hard, since):
    old = jay.store("Tea").memory.id
    new = jay.store("Coffee", valid_from=None if since is None else clock() - since).memory.id
    jay.supersede(old=old, new=new)
    ended = jay.get(old).valid_until
    run(jay)
    clock.move(days=1)

    drive.forget(new, hard=hard)
    synced = run(jay)

    assert synced.conflicts == ()
    assert [engine.get(old).valid_until for engine in (jay, drive)] == [None, None]
    if not hard:
        jay.recover(new)
        run(jay)
        assert [engine.get(old).valid_until for engine in (jay, drive)] == [ended, ended]


def test_two_stores_that_superseded_it_apart_agree_on_its_end(jay, drive, clock):
    old, new, other = (jay.store(text).memory.id for text in ("Tea", "Coffee", "Cocoa"))
    run(jay)
    drive.supersede(old=old, new=other)
    clock.move(days=1)
    jay.supersede(old=old, new=new)

    run(jay)

    assert len({(one.get(old).superseded_by, one.get(old).valid_until) for one in (jay, drive)}) == 1
    jay.forget(new)
    drive.forget(other)
    run(jay)
    assert [engine.get(old).valid_until for engine in (jay, drive)] == [None, None]


def test_stores_agree_on_an_end_after_its_successor_begins_at_another_time(jay, drive, clock):
    first, later = clock() - timedelta(days=9), clock() - timedelta(days=4)
    old = jay.store("Tea").memory.id
    new = jay.store("Coffee", valid_from=first).memory.id
    jay.supersede(old=old, new=new)
    clock.move(minutes=1)
    jay.forget(new)
    run(jay)
    clock.move(minutes=1)
    jay.recover(new)
    jay.update(new, valid_from=later)
    run(jay)

    assert [engine.get(old).valid_until for engine in (jay, drive)] == [later, later]
    jay.forget(new)
    run(jay)
    assert [engine.get(old).valid_until for engine in (jay, drive)] == [None, None]


@pytest.mark.parametrize("there", [False, True])
def test_stores_agree_on_an_end_that_someone_took_away_or_gave(jay, drive, clock, there):
    begins = clock() + timedelta(days=5)
    old = jay.store("Tea").memory.id
    new = jay.store("Coffee", valid_from=begins).memory.id
    jay.supersede(old=old, new=new)
    run(jay)
    clock.move(minutes=1)
    engine = drive if there else jay

    engine.update(old, valid_until=None)
    run(jay)
    assert [one.get(old).valid_until for one in (jay, drive)] == [begins, begins]

    engine.update(old, valid_until=begins + timedelta(days=1))
    clock.move(minutes=1)
    engine.update(old, valid_until=begins)
    run(jay)
    clock.move(minutes=1)
    jay.forget(new)
    run(jay)
    assert [one.get(old).valid_until for one in (jay, drive)] == [begins, begins]


# --- endpoints and jobs ----------------------------------------------------------------------------------------------


def test_endpoints_are_listed_and_removed(jay, drive, tmp_path):
    run(jay)
    [endpoint] = jay.sync.endpoints()

    assert endpoint.url == f"sqlite:///{tmp_path / 'drive.db'}"
    assert endpoint.synced_at is not None
    jay.sync.remove("drive")
    assert jay.sync.endpoints() == []
    with pytest.raises(EndpointNotFound):
        jay.sync.remove("drive")


def test_endpoints_may_be_named_in_the_settings(open_engine, drive, tmp_path):
    jay = open_engine(endpoints={"drive": f"sqlite:///{tmp_path / 'drive.db'}"})
    jay.store("Mine")

    run(jay)

    assert len(drive.list()) == 1
    with pytest.raises(InvalidInput):
        jay.sync.remove("drive")


def test_a_job_syncs_in_the_background(jay, drive):
    jay.store("Mine")

    job = jay.sync.start(SyncRequest(destination="drive"))
    assert job.id.startswith("sync_")
    assert len(drive.list()) == 0
    with pytest.raises(Locked):
        jay.sync.start(SyncRequest(destination="drive"))
    done = jay.jobs.run(job.id)

    assert done.status is JobStatus.COMPLETED
    assert done.kind == KIND
    assert done.result["created"] == 1
    assert len(drive.list()) == 1


def test_what_could_not_run_is_refused_before_a_job_is_made(jay):
    with pytest.raises(EndpointNotFound):
        jay.sync.start(SyncRequest(destination="nowhere"))

    assert jay.jobs.list() == []


def test_two_checkpoints_of_one_number_both_stay_and_the_younger_is_numbered_anew(jay, drive, clock):
    older = jay.decisions.checkpoint("Left the tests", next_steps="Write them").memory
    clock.move(seconds=1)
    younger = drive.decisions.checkpoint("Left the docs", next_steps="Read them").memory
    assert older.name == younger.name == "checkpoint_1"

    run(jay)
    run(jay)

    for engine in (jay, drive):
        assert engine.get("checkpoint_1").id == older.id
        assert engine.get("checkpoint_2").id == younger.id
    assert jay.decisions.checkpoint("Left").memory.name == "checkpoint_3"


def taking_the_name(engine, name):
    """As an import could do once."""
    engine.transfer.add_all([engine.transfer.build_memory({"content": f"Took {name}"}, id=name)])


def test_a_checkpoint_that_is_numbered_anew_passes_over_names_that_were_taken(jay, drive, clock):
    older = jay.decisions.checkpoint("Left the tests").memory
    clock.move(seconds=1)
    younger = drive.decisions.checkpoint("Left the docs").memory
    for engine in (jay, drive):
        taking_the_name(engine, "default/checkpoint_2")

    run(jay)
    run(jay)

    for engine in (jay, drive):
        assert engine.get("checkpoint_1").id == older.id
        assert engine.get("checkpoint_3").id == younger.id


def test_a_checkpoint_that_comes_by_sync_is_found_by_its_name_though_a_memory_took_it(jay, drive):
    taking_the_name(jay, "default/checkpoint_1")
    real = drive.decisions.checkpoint("Left the docs").memory

    run(jay)

    assert jay.get("checkpoint_1").id == real.id


def test_a_number_without_measure_from_elsewhere_does_not_hide_later_checkpoints(jay, drive):
    strange = drive.decisions.checkpoint("Left the docs").memory
    with drive.records.writing() as tx:
        drive.ledger.change(tx, replace(strange, detail={"name": "checkpoint_" + "9" * 16}), "updated", "detail")

    run(jay)
    made = jay.decisions.checkpoint("Left the tests").memory

    assert jay.get(strange.id).name == "checkpoint_9999999999999999"
    assert jay.get(made.name).id == made.id


def test_what_follows_from_links_survives_the_same_change_made_on_both_sides(jay, drive, clock):
    """The later stamp of two that came to the same stays; whom it supersedes, only one side knew."""
    new, old = jay.store("Tea").memory.id, jay.store("Coffee").memory.id
    run(jay)
    clock.move(seconds=1)
    jay.cold_storage.archive([new])
    jay.supersede(old=old, new=new)
    clock.move(seconds=1)
    drive.cold_storage.archive([new])

    synced = run(jay)

    assert not synced.conflicts
    for engine in (jay, drive):
        [kept] = engine.records.get([new], EVERYTHING)
        assert kept.supersedes == old


def test_what_a_consolidation_did_to_links_travels(jay, drive):
    """A link that says something else is a change like any other, and carries a stamp of its own."""
    notes = [jay.store(f"User is learning Spanish {how}").memory for how in ("alone", "with a teacher")]
    jay.store("The teacher is called Inés", related=(notes[1].id,))
    jay.sync.run(destination="drive")

    jay.consolidation.merge(ConsolidationPlan(ids=tuple(one.id for one in notes), strategy=Strategy.MERGE_ALL))
    jay.sync.run(destination="drive")

    def states(engine):
        return {(one.kind, one.source, one.target): one.state for one in engine.records.history.links([notes[1].id])}

    assert "replaced" in states(jay).values()
    assert states(drive) == states(jay)


def test_an_older_state_of_a_link_that_comes_late_changes_nothing(jay, clock):
    old, new = jay.store("Tea").memory.id, jay.store("Coffee").memory.id
    jay.supersede(old=old, new=new)
    [former] = jay.links(old)
    clock.move(seconds=1)
    jay.curation.release(old)
    [released] = jay.links(old)

    jay.sync._local().take(
        SyncBatch(links=(former,)), TakeOptions(policy=WinnerPolicy.NEWEST, named="newest_wins", sender="drive")
    )

    assert released.state != former.state
    assert list(jay.links(old)) == [released]
    assert jay.get(old).superseded_by is None


def test_of_two_unknown_endpoints_the_source_is_named(jay):
    for number in range(20):
        with pytest.raises(EndpointNotFound, match=f"'from-{number}'"):
            run(jay, source=f"from-{number}", destination=f"to-{number}")


def test_what_arrives_is_judged_in_the_background(open_engine, model, tmp_path, clock):
    drive, here = open_engine("drive.db", Shared(model)), open_engine("here.db", Shared(model))
    here.sync.add("drive", tmp_path / "drive.db")
    old = here.store("User lives in Seattle").memory.id
    clock.move(seconds=1)
    new = drive.store("User moved to Austin").memory.id

    run(here)
    here.parts.backlog.finish()

    assert [(one.old.id, one.new.id) for one in here.conflicts.list()] == [(old, new)]
