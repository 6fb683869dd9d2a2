"""What a store promises about cold storage, as tests. Part of `suite.py`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scrubjay.errors import Conflict, NotFound
from scrubjay.stores.promises.memories import Store
from scrubjay.stores.promises.statistics import Part
from scrubjay.values.memory import Kind, State, Status, Tier
from scrubjay.values.search import Filter
from tests.stores.contract.samples import (
    EVERY_STATE,
    EVERYTHING,
    NOW,
    QUERY,
    Reopen,
    changed,
    got,
    ids,
    later,
    listed,
    matched,
    put,
    put_away,
    some,
)


class ArchivesContract:
    vector_size: int

    def test_what_is_put_away_leaves_an_empty_row_and_an_archive(self, store: Store, reopen: Reopen) -> None:
        memory = put(store, some("User lives in Seattle", metadata={"a": 1}, tags=("home",)))
        archived = changed(store, memory, status=Status.ARCHIVED)
        archive = put_away(store, archived, packed=b"packed")

        left = got(reopen(), memory.id)

        assert (left.content, left.title, left.path, left.metadata) == ("", "", "", {})
        assert (left.version, left.status, left.tags) == (2, Status.ARCHIVED, ("home",))
        assert reopen().archives.get([memory.id, "mem_unknown"]) == {memory.id: archive}
        assert reopen().history.versions(memory.id) == []

    def test_what_is_put_away_is_matched_by_words_where_archived_ones_are_asked_for(self, store: Store) -> None:
        memory, other = put(store, some("User lives in Seattle")), put(store, some("Seattle is rainy"))
        put_away(store, changed(store, memory, status=Status.ARCHIVED))
        both = Filter(states=frozenset({State.ACTIVE, State.ARCHIVED}))

        assert matched(store, "Seattle") == [other.id]
        assert set(matched(store, "Seattle", both)) == {memory.id, other.id}
        assert matched(store, "lives", both) == [memory.id]
        assert store.matched_words("lives Seattle", [memory.id]) == {memory.id: ("lives", "Seattle")}

    def test_its_vectors_go_unless_they_are_kept(self, store: Store) -> None:
        dropped, kept = put(store, some("one")), put(store, some("two"))
        put_away(store, changed(store, dropped, status=Status.ARCHIVED))
        put_away(store, changed(store, kept, status=Status.ARCHIVED), keep_vectors=True)
        archived = Filter(states=frozenset({State.ARCHIVED}))

        assert ids(store.nearest(QUERY, archived, EVERYTHING, now=NOW, limit=9)) == [kept.id]
        assert set(store.vectors([dropped.id, kept.id])) == {kept.id}
        assert store.upkeep.pending(limit=9) == []

    def test_what_is_put_away_can_still_be_changed_but_not_its_text(self, store: Store) -> None:
        memory = put(store, some("User lives in Seattle"))
        put_away(store, changed(store, memory, status=Status.ARCHIVED))
        row = got(store, memory.id)

        deleted = changed(store, row, status=Status.DELETED, importance=0.9)
        with pytest.raises(Conflict):
            put(store, replace(deleted, version=4, content="other"), [QUERY])

        assert (got(store, memory.id).status, got(store, memory.id).importance) == (Status.DELETED, 0.9)
        assert store.history.same_text(memory.content.encode()[:32], EVERYTHING) == []

    def test_the_fingerprint_of_what_is_put_away_stays(self, store: Store) -> None:
        memory = put(store, some("User lives in Seattle"))
        put_away(store, changed(store, memory, status=Status.ARCHIVED))

        assert ids(store.history.same_text(memory.content.encode()[:32], EVERYTHING)) == [memory.id]

    def test_the_name_of_what_is_put_away_stays(self, store: Store) -> None:
        memory = put(store, some(kind=Kind.DECISION, detail={"name": "decision_x_1_abcd", "reasoning": "because"}))
        put_away(store, changed(store, memory, status=Status.ARCHIVED))

        assert got(store, memory.id).detail == {"name": "decision_x_1_abcd"}

    def test_putting_away_twice_is_a_conflict(self, store: Store) -> None:
        memory = changed(store, put(store, some()), status=Status.ARCHIVED)
        put_away(store, memory)

        with pytest.raises(Conflict):
            put_away(store, memory)

    def test_what_is_brought_back_is_as_before(self, store: Store) -> None:
        first = put(store, some("User lives in Seattle", metadata={"a": 1}))
        second = changed(store, first, importance=0.7)
        versions = store.history.versions(first.id)
        archived = changed(store, second, status=Status.ARCHIVED)
        put_away(store, archived, keep_vectors=True)
        with store.writing() as tx:
            back = tx.bring_back(second, versions, at=NOW)

        assert back == got(store, first.id) == replace(archived, seq=first.seq)
        assert store.history.versions(first.id) == versions
        assert store.archives.get([first.id]) == {}
        assert matched(store, "Seattle", Filter(states=EVERY_STATE)) == [first.id]
        assert store.check(deep=True).problems == store.check(deep=True).wrong_hashes == ()

    def test_what_was_not_put_away_is_not_brought_back(self, store: Store) -> None:
        memory = put(store, some())

        with pytest.raises(NotFound), store.writing() as tx:
            tx.bring_back(memory, [], at=NOW)

    def test_a_description_comes_back_alone(self, store: Store) -> None:
        memory, active = put(store, some("User lives in Seattle", metadata={"a": 1})), put(store, some())
        put_away(store, changed(store, memory, status=Status.ARCHIVED))
        with store.writing() as tx:
            tx.describe(memory)
            tx.describe(replace(active, title="another"))

        described = got(store, memory.id)
        assert (described.title, described.metadata, described.content) == (memory.title, {"a": 1}, "")
        assert memory.id in store.archives.get([memory.id])
        assert got(store, active.id) == active

    def test_purging_what_was_put_away_erases_it_and_removes_its_object(self, store: Store) -> None:
        memory = put(store, some("User lives in Seattle"))
        put_away(store, changed(store, memory, status=Status.ARCHIVED), object="glacier/arch_1")
        with store.writing() as tx:
            tx.purge(memory.id, at=NOW)

        assert store.archives.get([memory.id]) == {}
        assert store.archives.objects_due(NOW, 9) == ["glacier/arch_1"]
        assert matched(store, "Seattle", Filter(states=EVERY_STATE)) == []

    def test_objects_are_due_unless_a_memory_claims_them(self, store: Store) -> None:
        memory = put(store, some())
        with store.writing() as tx:
            tx.archives.announce_objects(["glacier/arch_1", "glacier/arch_2"], due=later(60))
        put_away(store, changed(store, memory, status=Status.ARCHIVED), object="glacier/arch_1")

        assert store.archives.objects_due(later(59), 9) == []
        assert store.archives.objects_due(later(60), 9) == ["glacier/arch_2"]
        with store.writing() as tx:
            tx.archives.objects_removed(["glacier/arch_2"])
        assert store.archives.objects_due(later(60), 9) == []

    def test_objects_of_a_tier_are_named_longest_there_first(self, store: Store) -> None:
        for minutes, name in enumerate(["glacier/b", "glacier/a", "deep_archive/c", None]):
            memory = changed(store, put(store, some()), status=Status.ARCHIVED)
            tier = Tier.GLACIER if name is None else Tier(name.partition("/")[0])
            put_away(store, memory, object=name, tier=tier, at=later(minutes))

        assert store.archives.objects("glacier", 9) == ["glacier/b", "glacier/a"]
        assert store.archives.objects("glacier", 1) == ["glacier/b"]
        assert store.archives.objects("deep_archive", 9) == ["deep_archive/c"]
        assert store.archives.objects("cold", 9) == []

    def test_what_is_packed_moves_between_the_store_and_an_object(self, store: Store) -> None:
        memory = changed(store, put(store, some("User lives in Seattle")), status=Status.ARCHIVED)
        away = put_away(store, memory, object="glacier/arch_1")
        inside = replace(away, object=None, packed=b"packed")
        with store.writing() as tx:
            tx.archives.move(memory.id, inside, at=later(1))
        assert store.archives.get([memory.id]) == {memory.id: inside}
        assert store.archives.objects_due(later(1), 9) == ["glacier/arch_1"]

        with store.writing() as tx:
            tx.archives.move(memory.id, away, at=later(2))
        assert store.archives.get([memory.id]) == {memory.id: away}
        assert store.archives.objects_due(later(9), 9) == []  # it is claimed again
        assert matched(store, "Seattle", Filter(states=EVERY_STATE)) == [memory.id]
        assert store.archives.bytes() == away.size

    def test_what_was_brought_back_meanwhile_is_not_moved(self, store: Store) -> None:
        memory = changed(store, put(store, some()), status=Status.ARCHIVED)
        away = put_away(store, memory, object="glacier/arch_1")
        with store.writing() as tx:
            tx.bring_back(memory, [], at=NOW)
        again = put_away(store, memory, object="glacier/arch_2")
        with store.writing() as tx:
            tx.archives.move(memory.id, replace(away, object=None, packed=b"packed"), at=NOW)
            tx.archives.move("nobody", away, at=NOW)

        assert store.archives.get([memory.id]) == {memory.id: again}
        assert store.archives.objects_due(NOW, 9) == ["glacier/arch_1"]

    def test_what_is_brought_back_leaves_its_object_to_be_removed(self, store: Store) -> None:
        memory = put(store, some())
        put_away(store, changed(store, memory, status=Status.ARCHIVED), object="glacier/arch_1")
        with store.writing() as tx:
            tx.bring_back(memory, [], at=later(1))

        assert store.archives.objects_due(later(1), 9) == ["glacier/arch_1"]

    def test_hot_bytes_are_what_putting_away_frees(self, store: Store) -> None:
        memory = put(store, some("x" * 1000))
        with_vectors = store.archives.hot_bytes([memory.id], vectors=True)[memory.id]
        without = store.archives.hot_bytes([memory.id], vectors=False)[memory.id]
        put_away(store, changed(store, memory, status=Status.ARCHIVED))

        assert with_vectors == without + self.vector_size
        assert without >= 1000
        assert store.archives.hot_bytes([memory.id], vectors=True)[memory.id] <= 4  # two times an empty JSON object

    def test_totals_count_what_is_packed(self, store: Store) -> None:
        memory = put(store, some("x" * 1000))
        put_away(store, changed(store, memory, status=Status.ARCHIVED), packed=b"12345")
        away = store.statistics.totals(Part(), EVERYTHING, now=NOW)
        with store.writing() as tx:
            tx.bring_back(memory, [], at=NOW)
        back = store.statistics.totals(Part(), EVERYTHING, now=NOW)

        assert (dict(away.text_bytes), dict(away.vector_bytes)) == ({State.ARCHIVED: 5}, {State.ARCHIVED: 0})
        assert dict(back.text_bytes) == {State.ARCHIVED: 1000}
        assert store.archives.bytes() == 0

    def test_rebuilding_leaves_what_was_put_away(self, store: Store) -> None:
        memory = put(store, some("User lives in Seattle"))
        put_away(store, changed(store, memory, status=Status.ARCHIVED), packed=b"12345")
        totals = store.statistics.totals(Part(), EVERYTHING, now=NOW)

        store.rebuild()

        assert matched(store, "Seattle", Filter(states=EVERY_STATE)) == [memory.id]
        assert store.upkeep.pending(limit=9) == []
        assert store.statistics.totals(Part(), EVERYTHING, now=NOW) == totals

    def test_dropping_vectors_lets_what_was_put_away_wait_for_nothing(self, store: Store) -> None:
        memory = put(store, some())
        put_away(store, changed(store, memory, status=Status.ARCHIVED), keep_vectors=True)
        with store.writing() as tx:
            tx.drop_vectors()

        assert store.upkeep.pending(limit=9) == []
        assert store.vectors([memory.id]) == {}
        assert store.check().with_vectors == 1

    def test_bit_rot_of_what_is_packed_is_found(self, store: Store) -> None:
        memory = put(store, some())
        put_away(store, changed(store, memory, status=Status.ARCHIVED), packed=b"packed", checksum=b"other")

        assert store.check(deep=True).wrong_hashes == (memory.id,)

    def test_memories_are_filtered_by_when_they_were_last_handed_out(self, store: Store) -> None:
        old, young = put(store, some(accessed_at=later(1))), put(store, some(accessed_at=later(3)))

        assert listed(store, Filter(accessed_until=later(1))) == [old.id]
        assert set(listed(store, Filter(accessed_until=later(3)))) == {old.id, young.id}
