"""What a store promises about writing, reading and erasing memories, as tests. Part of `suite.py`."""

from __future__ import annotations

import threading
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import pytest

from scrubjay.embedders.base import Vector
from scrubjay.errors import Conflict, SpaceNotFound, StorageError
from scrubjay.stores.promises.memories import OWN_MODEL, Addition, Change, Store
from scrubjay.stores.promises.statistics import Part
from scrubjay.values.callers import Audience, Provenance, Scope, Sight
from scrubjay.values.memory import AccessLevel, Category, Context, Kind, Memory, Source, State, Status
from scrubjay.values.search import Filter
from scrubjay.values.times import milliseconds
from tests.stores.contract.samples import (
    EVERY_STATE,
    EVERYTHING,
    HOSTILE,
    NOW,
    QUERY,
    Reopen,
    a_link,
    an_event,
    changed,
    create_spaces,
    got,
    ids,
    later,
    listed,
    matched,
    nearest,
    purge,
    put,
    put_all,
    put_away,
    put_in,
    relate,
    some,
    totals,
    unit,
)

CHANGE = Change(user="ann", at=NOW)
VECTORS: list[list[Vector]] = [[QUERY, unit(1)], [unit(2)], [], [unit(3), unit(4)], [unit(5), unit(6)]]


def various() -> list[Memory]:
    ann = Context(user_id="ann", conversation_id="talk")
    return [
        some("User lives in Seattle", tags=("city", "home"), auto_tags=("place", "city"), context=ann),
        some("User lived in Austin " * 300, access_level=AccessLevel.PRIVATE, context=ann),
        some("ann ROWS", access_count=3, importance=0.9, category=Category.PREFERENCE),
        some("Ann rows", flags=("secret",), metadata={"a": [1]}, superseded_by="other", version=4),
        some("Ann rows", status=Status.DELETED, deleted_at=NOW, recoverable_until=later(9)),
    ]


def print_of(memory: Memory) -> bytes:
    return f"{memory.space} {memory.content.lower()}".encode()[:32]


def in_space(store: Store, space: str, new: list[str]) -> dict[str, object]:
    """What can be told of new memories, whatever they and their space are called."""
    sight = Audience("local", (Scope(space, Sight.ALL),))
    filter = Filter(states=EVERY_STATE, expired=None)
    place = {id: number for number, id in enumerate(new)}
    read = store.get(new, sight)
    plain = [replace(one, id="", path="", space="", seq=0) for one in read]
    found = [
        [(place.get(one.memory), round(one.score, 6)) for one in ones]
        for ones in (
            store.match("ann city seattle austin", filter, sight, now=NOW, limit=100),
            store.nearest(QUERY, filter, sight, now=NOW, limit=100),
        )
    ]
    pending = [(one.memory.id, one.next_part) for one in store.upkeep.pending(limit=99)]
    vectors = store.vectors(new)
    return {
        "read": plain,
        "in order": read == sorted(read, key=lambda one: one.seq),
        "found": found,
        "vectors": [vectors[id].tobytes() if id in vectors else None for id in new],
        "waiting": sorted((place[one], part) for one, part in pending if one in place),
        "listed": [place.get(one.id) for one in store.list(filter, sight, now=NOW, limit=99)],
        "tagged": [place[one.id] for one in store.list(replace(filter, tags=("city",)), sight, now=NOW, limit=99)],
        "totals": store.statistics.totals(Part(), sight, now=NOW),
        "rarity": store.rarity(["ann", "seattle"], sight),
    }


class MemoriesContract:
    # --- many at once ---

    def test_many_new_memories_are_written_as_one_after_the_other(self, store: Store) -> None:
        create_spaces(store, "single", "many")
        with store.writing() as tx:
            for one in (some("Ann rows", space="single"), some("Ann rows", space="many")):
                tx.put(one, fingerprint=print_of(one), vectors=(), parts=0, change=CHANGE)
        single = [replace(one, space="single") for one in various()]
        many = [replace(one, space="many") for one in various()]

        with store.writing() as tx:
            for memory, vectors in zip(single, VECTORS, strict=True):
                tx.put(memory, fingerprint=print_of(memory), vectors=vectors, parts=2, change=CHANGE)
            tx.put_new(
                [
                    Addition(memory=memory, fingerprint=print_of(memory), vectors=vectors, parts=2)
                    for memory, vectors in zip(many, VECTORS, strict=True)
                ]
            )

        told = [
            in_space(store, space, [one.id for one in news]) for space, news in (("single", single), ("many", many))
        ]
        assert told[0] == told[1]
        assert totals(store).repeats == 2

    def test_a_taken_id_or_path_among_many_is_a_conflict_and_nothing_is_written(self, store: Store) -> None:
        known = put(store, some("The first"))
        with store.writing() as tx:
            tx.history.alias("another", known.id)
        new = some("The second")

        for taken in (
            some("Third", id=known.id),
            some("Third", id="another"),
            some("Third", path=known.path),
            some("Third", path=new.path),
        ):
            added = [Addition(memory=one, fingerprint=print_of(one), vectors=(), parts=0) for one in (new, taken)]
            with pytest.raises(Conflict, match="taken"), store.writing() as tx:
                tx.put_new(added)

        assert listed(store) == [known.id]

    def test_many_new_memories_go_into_spaces_that_exist(self, store: Store) -> None:
        lost = some(space="nowhere")
        with pytest.raises(SpaceNotFound), store.writing() as tx:
            tx.put_new([Addition(memory=lost, fingerprint=b"f", vectors=(), parts=0)])

    def test_nothing_new_is_no_error(self, store: Store) -> None:
        with store.writing() as tx:
            tx.put_new([])

    # --- transactions ---

    def test_what_a_transaction_wrote_is_seen_when_it_ends(self, store: Store) -> None:
        memory = put(store, some())

        assert store.get([memory.id], EVERYTHING) == [memory]

    def test_nothing_of_a_transaction_that_raises_remains(self, store: Store) -> None:
        with pytest.raises(ZeroDivisionError), store.writing() as tx:  # noqa: PT012 -- what came before it is the point
            memory = put_in(tx, some())
            tx.history.relate(a_link(memory.id, "other"))
            tx.history.record(an_event(memory=memory.id))
            tx.spaces.create("new", at=NOW)
            tx.history.set_fact(OWN_MODEL, "m")
            tx.history.alias("another", memory.id)
            raise ZeroDivisionError

        assert store.get([memory.id, "another"], EVERYTHING) == []
        assert matched(store, "seattle") == nearest(store) == listed(store) == []
        assert [
            *store.history.links([memory.id]),
            *store.history.events("default"),
            *store.upkeep.pending(limit=9),
        ] == []
        assert [space.name for space in store.spaces.list()] == ["default"]
        assert store.history.fact(OWN_MODEL) is None

    def test_a_store_goes_on_after_a_transaction_that_raised(self, store: Store) -> None:
        with pytest.raises(ZeroDivisionError), store.writing():
            raise ZeroDivisionError

        assert put(store, some()).seq

    def test_a_transaction_reads_its_own_writes(self, store: Store) -> None:
        with store.writing() as tx:
            memory = put_in(tx, some())
            tx.history.set_fact(OWN_MODEL, "m")

            assert tx.get([memory.id], EVERYTHING) == [memory]
            assert ids(tx.match("seattle", Filter(), EVERYTHING, now=NOW, limit=5)) == [memory.id]
            assert ids(tx.nearest(QUERY, Filter(), EVERYTHING, now=NOW, limit=5)) == [memory.id]
            assert tx.history.fact(OWN_MODEL) == "m"

    def test_nobody_else_sees_a_transaction_before_it_ends(self, store: Store) -> None:
        before = put(store, some())

        with store.writing() as tx:
            put_in(tx, some())

            assert listed(store) == matched(store, "seattle") == nearest(store) == [before.id]

    def test_what_was_written_is_there_after_reopening(self, store: Store, reopen: Reopen) -> None:
        memory = put(store, some())
        origin = store.origin

        store = reopen()

        assert listed(store) == matched(store, "seattle") == nearest(store) == [memory.id]
        assert store.origin == origin != ""

    def test_threads_write_and_read_at_once(self, store: Store) -> None:
        seen: list[bool] = []

        def work(number: int) -> None:
            for step in range(10):
                memory = put(store, some(f"thread{number} step{step}"))
                seen.append(memory.id in matched(store, f"thread{number}"))
                seen.append(memory.id in nearest(store))
                seen.append(store.get([memory.id], EVERYTHING) == [memory])

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert all(seen)
        assert len(seen) == 120
        assert store.count(Filter(), EVERYTHING, now=NOW) == 40

    def test_closing_twice_is_no_error(self, store: Store) -> None:
        store.close()
        store.close()

    def test_a_closed_store_says_so(self, store: Store) -> None:
        store.close()

        with pytest.raises(StorageError, match="closed"):
            store.get(["x"], EVERYTHING)
        with pytest.raises(StorageError, match="closed"), store.writing():
            pass

    # --- put and get ---

    def test_every_field_comes_back_as_it_was(self, store: Store) -> None:
        memory = some(
            "text",
            kind=Kind.DECISION,
            title="a title",
            topic="auth",
            tags=("b", "a"),
            auto_tags=("z",),
            also=("what is it?", "Wort"),
            confidence=0.25,
            source=Source.EXPLICIT,
            access_level=AccessLevel.PRIVATE,
            context=Context(user_id="bob", conversation_id="c", session_id="s"),
            metadata={"n": 2**70, "deep": [{"é": None, "x": 1.5}], "t": True},
            detail={"reasoning": "why"},
            flags=("secret",),
            provenance=Provenance(client="c", caller="k", transport="http", dialect="mama"),
            status=Status.ARCHIVED,
            supersedes="old",
            superseded_by="new",
            expires_at=later(1),
            valid_from=later(-9),
            valid_until=later(9),
            verified_at=later(2),
            deleted_at=later(3),
            recoverable_until=later(4),
            updated_at=later(5),
            accessed_at=later(6),
            access_count=7,
            hlc=8,
            origin="elsewhere",
        )
        unset = {field.name for field in fields(Memory) if getattr(memory, field.name) == field.default}

        stored = put(store, memory)

        assert unset <= {"seq", "version"}, "a field of Memory is not tried here"
        assert stored == replace(memory, seq=stored.seq)
        assert store.get([memory.id], EVERYTHING) == [stored]

    def test_times_are_kept_in_milliseconds(self, store: Store) -> None:
        at = NOW + timedelta(microseconds=999)

        assert put(store, some(created_at=at)).created_at == NOW

    def test_times_long_ago_and_far_off_are_kept(self, store: Store) -> None:
        early, late = datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 30, tzinfo=UTC)

        memory = put(store, some(valid_from=early, valid_until=late))

        assert (got(store, memory.id).valid_from, got(store, memory.id).valid_until) == (early, late)

    def test_arrival_numbers_grow(self, store: Store) -> None:
        memories = put_all(store, (some() for _ in range(20)))

        assert [memory.seq for memory in memories] == sorted({memory.seq for memory in memories})

    def test_a_frozen_clock_makes_no_two_ids_alike(self, store: Store) -> None:
        memories = put_all(store, (some(f"text {n}") for n in range(500)), ())

        assert len({memory.id for memory in memories}) == 500
        assert listed(store, limit=500) == ids(reversed(memories))

    def test_get_keeps_the_order_asked_and_leaves_unknown_ids_out(self, store: Store) -> None:
        first, second = put_all(store, [some(), some()])

        assert ids(store.get([second.id, "unknown", first.id], EVERYTHING)) == [second.id, first.id]

    def test_getting_nothing_is_no_error(self, store: Store) -> None:
        assert store.get([], EVERYTHING) == []

    def test_get_shows_deleted_and_archived_memories(self, store: Store) -> None:
        gone = put(store, some(status=Status.DELETED))
        kept = put(store, some(status=Status.ARCHIVED))

        assert ids(store.get([gone.id, kept.id], EVERYTHING)) == [gone.id, kept.id]

    def test_a_new_memory_with_a_taken_id_is_a_conflict(self, store: Store) -> None:
        memory = put(store, some())

        with pytest.raises(Conflict):
            put(store, some(id=memory.id, path="elsewhere"))

    def test_a_memory_goes_into_a_space_that_exists(self, store: Store) -> None:
        with pytest.raises(SpaceNotFound):
            put(store, some(space="nowhere"))

    @pytest.mark.parametrize("text", HOSTILE)
    def test_text_is_data_wherever_it_stands(self, store: Store, text: str) -> None:
        if "\ud800" in text:
            pytest.skip("refused at the door")
        context = Context(user_id=text, conversation_id=text, session_id=text)
        memory = some(text, title=text, path=f"p/{text}", topic=text, tags=(text,), flags=(text,), context=context)
        memory = replace(memory, metadata={text: text})

        stored = put(store, memory)

        assert store.get([memory.id], EVERYTHING) == [stored]
        assert replace(stored, seq=0) == memory
        every = Filter(
            tags=frozenset({text}), topic=text, flag=text, user_id=text, conversation_id=text, session_id=text
        )
        assert listed(store, every) == [memory.id]
        assert listed(store, replace(every, tags=frozenset({text + "'"}))) == []

    def test_half_a_surrogate_pair_is_refused_and_harms_nothing(self, store: Store) -> None:
        with pytest.raises(Exception, match="surrogate"):
            put(store, some("\ud800"))

        assert listed(store) == []

    # --- paths ---

    def test_two_active_memories_of_a_space_cannot_share_a_path(self, store: Store) -> None:
        put(store, some(path="a/b"))

        with pytest.raises(Conflict):
            put(store, some(path="a/b"))

    def test_a_superseded_memory_keeps_its_path(self, store: Store) -> None:
        put(store, some(path="a/b", superseded_by="other"))

        with pytest.raises(Conflict):
            put(store, some(path="a/b"))

    @pytest.mark.parametrize("status", [Status.ARCHIVED, Status.DELETED])
    def test_what_is_archived_or_deleted_leaves_its_path_free(self, store: Store, status: Status) -> None:
        gone = put(store, some(path="a/b", status=status))
        put(store, some(path="a/b"))

        with pytest.raises(Conflict):
            changed(store, gone, status=Status.ACTIVE)

    def test_spaces_do_not_share_paths(self, store: Store) -> None:
        create_spaces(store, "work")

        put(store, some(path="a/b"))
        put(store, some(path="a/b", space="work"))

    def test_taken_paths_are_the_path_and_its_numbered_ones(self, store: Store) -> None:
        create_spaces(store, "work")
        put_all(store, [some(path=path) for path in ("a/b", "a/b-2", "a/b-x", "a/bc", "a/b/c", "a")])
        put(store, some(path="a/b-3", space="work"))
        put(store, some(path="a/b-4", status=Status.DELETED))

        assert store.files.taken_paths(some(path="a/b")) == {"a/b", "a/b-2", "a/b-x"}
        assert store.files.taken_paths(some(path="a/b", space="nowhere")) == set()

    def test_used_paths_are_those_of_active_memories_whoever_sees_them(self, store: Store) -> None:
        create_spaces(store, "elsewhere")
        put_all(
            store,
            [
                some(path="a"),
                some(path="b", access_level=AccessLevel.PRIVATE, context=Context(user_id="ann")),
                some(path="c", status=Status.DELETED),
                some(path="d", space="elsewhere"),
                some(path="e"),
            ],
        )

        assert store.files.used_paths("default", ["a", "b", "c", "d"]) == {"a", "b"}
        assert store.files.used_paths("default", []) == set()

    def test_a_memory_does_not_take_its_own_path(self, store: Store) -> None:
        memory = put(store, some(path="a/b"))

        assert store.files.taken_paths(memory) == set()

    def test_private_paths_are_their_users_own(self, store: Store) -> None:
        ann, bob = Context(user_id="ann"), Context(user_id="bob")
        put(store, some(path="a/b"))
        put(store, some(path="a/b", access_level=AccessLevel.PRIVATE, context=ann))
        put(store, some(path="a/b", access_level=AccessLevel.PRIVATE, context=bob))

        for taken in ({}, {"access_level": AccessLevel.PUBLIC}, {"access_level": AccessLevel.PRIVATE, "context": ann}):
            with pytest.raises(Conflict):
                put(store, some(path="a/b", **taken))
            assert store.files.taken_paths(some(path="a/b", **taken)) == {"a/b"}
        eve = some(path="a/b", access_level=AccessLevel.PRIVATE, context=Context(user_id="eve"))
        assert store.files.taken_paths(eve) == set()

    def test_publishing_onto_a_taken_path_is_refused(self, store: Store) -> None:
        put(store, some(path="a/b"))
        private = put(store, some(path="a/b", access_level=AccessLevel.PRIVATE))

        with pytest.raises(Conflict):
            changed(store, private, access_level=AccessLevel.SHARED)

    # --- twins ---

    def test_twins_are_active_or_archived_and_come_oldest_first(self, store: Store) -> None:
        for name, minutes, change in (
            ("new", 3, {}),
            ("old", 1, {"status": Status.ARCHIVED}),
            ("superseded", 2, {"superseded_by": "new"}),
            ("deleted", 2, {"status": Status.DELETED}),
        ):
            put(store, some("the same", id=name, created_at=later(minutes), **change))
        put(store, some("another"))

        assert ids(store.history.same_text(b"the same", EVERYTHING)) == ["old", "new"]

    def test_many_texts_are_looked_up_at_once_and_deleted_ones_are_not_here(self, store: Store) -> None:
        for name, content, change in (
            ("superseded", "one", {"superseded_by": "new"}),
            ("new", "one", {"access_level": AccessLevel.PRIVATE}),
            ("deleted", "two", {"status": Status.DELETED}),
            ("public", "three", {"topic": "count"}),
        ):
            put(store, some(content, id=name, created_at=later(len(name)), **change))
        put_away(store, changed(store, put(store, some("four", id="archived")), status=Status.ARCHIVED))
        wanted = [name.encode() for name in ("one", "two", "three", "four", *map(str, range(1_000)))]

        def found(audience: Audience) -> set[tuple[object, ...]]:
            return {
                (
                    text.fingerprint,
                    text.hash == sha256(text.fingerprint).digest(),
                    text.created_at,
                    text.kind,
                    text.topic,
                )
                for text in store.history.texts(wanted, audience)
            }

        seen = {(b"one", True, milliseconds(later(10)), "memory", None)} | {
            (b"three", True, milliseconds(later(6)), "memory", "count"),
            (b"four", False, milliseconds(NOW), "memory", None),
        }
        mine = {(b"one", True, milliseconds(later(3)), "memory", None)}
        assert found(EVERYTHING) == seen | mine
        assert found(Audience("eve", (Scope("default", Sight.OWN),))) == seen
        assert store.history.texts([], EVERYTHING) == []
        with store.writing() as tx:
            assert len(tx.history.texts(wanted, EVERYTHING)) == 4

    # --- erasing ---

    def test_a_purged_memory_is_found_by_nothing(self, store: Store) -> None:
        memory = put(store, some(path="a/b", tags=("secret",)))
        put(store, replace(memory, content="User lives in Seattle, secretly", version=2))
        with store.writing() as tx:
            tx.history.alias("another", memory.id)
            tx.purge(memory.id, at=later(1))

        every = Filter(states=EVERY_STATE, expired=None)
        assert store.get([memory.id, "another"], EVERYTHING) == []
        assert listed(store, every) == matched(store, "seattle", every) == nearest(store, every) == []
        assert listed(store, Filter(states=frozenset({State.PURGED}))) == []
        assert [*store.history.versions(memory.id), *store.upkeep.pending(limit=9)] == []
        assert store.matched_words("seattle", [memory.id]) == store.vectors([memory.id]) == {}
        assert store.history.same_text(memory.content.encode()[:32], EVERYTHING) == []
        assert store.files.taken_paths(some(path="a/b")) == set()

    def test_a_tombstone_still_counts(self, store: Store) -> None:
        memory = put(store, some(category=Category.GOAL, importance=0.9))
        with store.writing() as tx:
            tx.purge(memory.id, at=NOW)

        purged = Filter(states=frozenset({State.PURGED}), categories=frozenset({Category.GOAL}), min_importance=0.9)
        assert store.count(purged, EVERYTHING, now=NOW) == 1
        assert store.count(Filter(), EVERYTHING, now=NOW) == 0

    def test_the_id_of_a_purged_memory_is_not_used_again(self, store: Store) -> None:
        memory = put(store, some())
        with store.writing() as tx:
            tx.purge(memory.id, at=NOW)

        for version in (1, 2, 3):
            with pytest.raises(Conflict):
                put(store, replace(memory, version=version))

    def test_purging_erases_the_reasons_of_links(self, store: Store) -> None:
        memory, other = put_all(store, [some(), some()])
        relate(store, a_link(memory.id, other.id, reason="both say Seattle"))

        with store.writing() as tx:
            tx.purge(memory.id, at=NOW)

        assert [link.reason for link in store.history.links([other.id])] == [None]

    def test_purging_erases_the_reasons_of_events(self, store: Store) -> None:
        memory, other = put_all(store, [some(), some()])
        with store.writing() as tx:
            for one in (memory, other):
                tx.history.record(an_event(memory=one.id, action="updated", reason="she lives in Seattle"))

        with store.writing() as tx:
            tx.history.record(an_event(memory=memory.id, action="forgotten", reason="not in Seattle any more"))
            tx.purge(memory.id, at=NOW)
            tx.history.record(an_event(memory=memory.id, action="purged", reason="she asked for it"))

        told = [(event.memory, event.action, event.reason) for event in store.history.events("default")]
        assert told == [
            (memory.id, "updated", None),
            (other.id, "updated", "she lives in Seattle"),
            (memory.id, "forgotten", None),
            (memory.id, "purged", "she asked for it"),
        ]

    def test_purging_twice_or_nothing_is_no_error(self, store: Store) -> None:
        memory = put(store, some())

        for name in (memory.id, memory.id, "unknown"):
            with store.writing() as tx:
                tx.purge(name, at=NOW)

    # --- due for purge ---

    def test_what_is_softly_deleted_is_due_when_its_date_has_come(self, store: Store) -> None:
        for name, minutes in (("late", 3), ("soon", 1), ("early", -1), ("now", 0)):
            put(store, some(id=name, status=Status.DELETED, recoverable_until=later(minutes)))
        put(store, some(status=Status.DELETED))
        put(store, some(recoverable_until=later(-9)))
        put(store, some(status=Status.ARCHIVED, recoverable_until=later(-9)))

        assert store.upkeep.due_for_purge(NOW, 9) == ["early", "now"]
        assert store.upkeep.due_for_purge(later(1), 2) == ["early", "now"]
        assert store.upkeep.due_for_purge(later(9), 9) == ["early", "now", "soon", "late"]

    def test_a_purged_memory_is_not_due_again(self, store: Store) -> None:
        memory = put(store, some(status=Status.DELETED, recoverable_until=NOW))

        purge(store, memory.id)

        assert store.upkeep.due_for_purge(NOW, 9) == []
