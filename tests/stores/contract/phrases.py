"""What a store promises about the phrases under which a memory may be looked for, as tests. Part of `suite.py`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scrubjay.errors import Conflict
from scrubjay.stores.promises.memories import Change, Store
from scrubjay.stores.promises.sync import Replica
from scrubjay.text.words import PASSAGE
from scrubjay.values.memory import FormerPhrases, Memory
from scrubjay.values.search import Filter
from tests.stores.contract.samples import (
    EVERYTHING,
    NOW,
    QUERY,
    at_cosine,
    changed,
    got,
    later,
    matched,
    nearest,
    purge,
    put,
    put_away,
    some,
)

BOAT = "The Ottilie is moored at pier four"


def rephrased(store: Store, memory: Memory, *also: str, hlc: int = 7) -> Memory:
    """Only its phrases changed."""
    change = Change(user="ann", at=later(1), reason="because")
    with store.writing() as tx:
        former = FormerPhrases(also=memory.also, replaced_at=change.at, replaced_by="ann", reason="because", hlc=hlc)
        return tx.put(
            replace(memory, also=also, updated_at=change.at, hlc=hlc),
            fingerprint=memory.content.encode()[:32],
            vectors=[at_cosine(0.4)],
            parts=1,
            change=change,
            former_phrases=[*tx.history.former_phrases(memory.id), former],
        )


class PhrasesContract:
    def test_phrases_are_kept_beside_the_text_and_found_by_their_words(self, store: Store) -> None:
        memory = put(store, some(BOAT, also=("berth of the yacht", "Liegeplatz")))

        assert got(store, memory.id).also == ("berth of the yacht", "Liegeplatz")
        assert got(store, memory.id).content == BOAT
        assert matched(store, "yacht") == matched(store, "Liegeplatz") == [memory.id]
        assert store.matched_words("which yacht is it?", [memory.id]) == {memory.id: ("yacht",)}

    def test_every_passage_of_a_long_text_is_found_by_them(self, store: Store) -> None:
        long = "\n".join(f"Entry {number} of the log says nothing new." for number in range(PASSAGE // 10))
        memory = put(store, some(f"{long} The anchor was lost.", also=("yacht diary",)))

        [both] = store.match("anchor yacht", Filter(), EVERYTHING, now=NOW, limit=10)

        assert (both.memory, both.score > 0.6) == (memory.id, True)  # though the anchor is in the last passage

    def test_a_change_of_phrases_alone_leaves_text_and_version(self, store: Store) -> None:
        memory = put(store, some(BOAT, also=("yacht",)))

        now = rephrased(store, memory, "vessel")

        assert (now.version, now.content, now.also) == (1, BOAT, ("vessel",))
        assert got(store, memory.id) == now
        assert matched(store, "yacht") == []
        assert matched(store, "vessel") == [memory.id]
        assert store.cosines(QUERY, [memory.id])[memory.id] == pytest.approx(0.4, abs=1e-3)
        assert store.history.versions(memory.id) == []
        [former] = store.history.former_phrases(memory.id)
        assert former == FormerPhrases(
            also=("yacht",), replaced_at=later(1), replaced_by="ann", reason="because", hlc=7
        )

    def test_a_change_of_phrases_needs_the_version_that_is_stored(self, store: Store) -> None:
        memory = put(store, some(BOAT))
        changed(store, memory, importance=0.9)

        with pytest.raises(Conflict):
            rephrased(store, memory, "yacht")

    def test_the_next_version_follows_a_change_of_phrases(self, store: Store) -> None:
        memory = rephrased(store, put(store, some(BOAT)), "yacht")

        changed(store, memory, importance=0.9)

        [former] = store.history.versions(memory.id)
        assert former.memory.also == ("yacht",)
        assert got(store, memory.id).also == ("yacht",)

    def test_vectors_made_of_other_phrases_are_not_written(self, store: Store) -> None:
        memory = put(store, some(BOAT), [], parts=1)
        rephrased(store, memory, "yacht")

        with store.writing() as tx:
            late = tx.add_vectors(memory.id, version=1, first_part=0, vectors=[QUERY], parts=1, also=memory.also)
            further = tx.add_vectors(
                memory.id, version=1, first_part=0, vectors=[QUERY], parts=1, also=memory.also, model="further-1"
            )
            right = tx.add_vectors(
                memory.id, version=1, first_part=0, vectors=[QUERY], parts=1, also=("yacht",), model="further-1"
            )

        assert (late, further, right) == (False, False, True)
        assert store.cosines(QUERY, [memory.id])[memory.id] == pytest.approx(0.4, abs=1e-3)

    def test_a_further_models_vectors_go_with_the_phrases(self, store: Store) -> None:
        memory = put(store, some(BOAT))
        with store.writing() as tx:
            tx.add_vectors(memory.id, version=1, first_part=0, vectors=[QUERY], parts=1, model="further-1")

        rephrased(store, memory, "yacht")

        assert store.cosines(QUERY, [memory.id], model="further-1") == {}

    def test_nothing_of_them_is_left_by_a_purge(self, store: Store) -> None:
        memory = rephrased(store, put(store, some(BOAT, also=("yacht",))), "vessel")

        purge(store, memory.id)

        assert store.history.former_phrases(memory.id) == ()
        assert matched(store, "vessel") == nearest(store) == []

    def test_they_come_back_with_an_archived_text(self, store: Store) -> None:
        memory = put(store, some(BOAT, also=("yacht",)))
        put_away(store, memory)

        with store.writing() as tx:
            restored = tx.bring_back(memory, (), at=NOW)

        assert restored.also == ("yacht",)
        assert matched(store, "yacht") == [memory.id]

    def test_another_stores_change_of_phrases_makes_no_version_either(self, store: Store) -> None:
        memory = put(store, some(BOAT, also=("yacht",)))
        theirs = replace(memory, also=("vessel",), hlc=99, origin="elsewhere")

        with store.writing() as tx:
            tx.replicate(
                Replica(memory=theirs, parts=1),
                fingerprint=BOAT.encode()[:32],
                vectors=[at_cosine(0.4)],
                change=Change(user="ann", at=later(1), reason="sync"),
            )

        assert (got(store, memory.id).version, got(store, memory.id).also) == (1, ("vessel",))
        assert matched(store, "vessel") == [memory.id]
        assert store.history.versions(memory.id) == []
        [former] = store.history.former_phrases(memory.id)
        assert (former.also, former.hlc) == (("yacht",), 99)
