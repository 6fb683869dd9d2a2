"""What a store promises about finding by words and by meaning, as tests. Part of `suite.py`."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from math import nan

import numpy as np
import pytest

from scrubjay.stores.promises.memories import Store
from scrubjay.values.callers import Audience, Scope, Sight
from scrubjay.values.memory import AccessLevel, Category, Context, Sketch, Status
from scrubjay.values.search import Filter
from scrubjay.values.times import milliseconds
from tests.stores.contract.samples import (
    CLOSE,
    DIMENSION,
    EVERY_STATE,
    EVERYTHING,
    HOSTILE,
    NOW,
    QUERY,
    SCRIPTS,
    at_cosine,
    changed,
    create_spaces,
    got,
    ids,
    ids_of,
    later,
    matched,
    nearest,
    purge,
    put,
    put_all,
    put_away,
    scores,
    some,
    unit,
)


class SearchContract:
    # --- words ---

    @pytest.mark.parametrize(("text", "word"), SCRIPTS)
    def test_a_memory_is_found_by_a_word_of_it(self, store: Store, text: str, word: str) -> None:
        put(store, some("Something else entirely"))
        memory = put(store, some(text))

        assert matched(store, word) == [memory.id]
        assert got(store, memory.id).content == text

    def test_more_of_the_words_is_a_higher_score(self, store: Store) -> None:
        for name, text in {"all": "red green blue", "two": "red green grey", "one": "red grey white"}.items():
            put(store, some(text, id=name))

        found = store.match("red green blue", Filter(), EVERYTHING, now=NOW, limit=9)

        assert ids(found) == ["all", "two", "one"]
        assert 0 < found[2].score < found[1].score < found[0].score <= 1

    def test_all_words_in_a_memory_of_average_length_score_one(self, store: Store) -> None:
        put_all(store, (some(f"grey white black number{n}") for n in range(60)))
        memory = put(store, some("red green blue yellow"))

        [match] = store.match("yellow green red blue", Filter(), EVERYTHING, now=NOW, limit=9)

        assert match.memory == memory.id
        assert match.score == pytest.approx(1.0, abs=0.05)

    def test_of_those_that_hold_all_words_the_better_comes_first_not_the_newer(self, store: Store) -> None:
        put_all(store, (some(f"grey white black ochre teal navy number{n}") for n in range(60)))
        better = put(store, some("red tea red tea"))
        newer = put(store, some("red tea on Monday"))

        found = store.match("red tea", Filter(), EVERYTHING, now=NOW, limit=9)

        assert ids(found) == [better.id, newer.id]
        assert found[0].score == 1

    def test_half_of_the_words_score_about_half(self, store: Store) -> None:
        put_all(store, (some(f"grey white black number{n}") for n in range(60)))
        put(store, some("red green ochre yellow"))

        [match] = store.match("red green navy teal", Filter(), EVERYTHING, now=NOW, limit=9)

        assert 0.35 < match.score < 0.65

    @pytest.mark.parametrize("where", [0.0, 0.5, 1.0])
    def test_a_word_counts_as_much_wherever_it_stands_in_a_very_long_memory(self, store: Store, where: float) -> None:
        put_all(store, (some(f"grey white black number{n}") for n in range(60)))
        filler = "nothing much happened on this day. " * 1_400
        at = int(len(filler) * where)
        memory = put(store, some(f"{filler[:at]} crimson walrus {filler[at:]}"))

        [match] = store.match("crimson walrus", Filter(), EVERYTHING, now=NOW, limit=9)

        assert match.memory == memory.id
        assert match.score > 0.15
        assert store.matched_words("crimson walrus", [memory.id]) == {memory.id: ("crimson", "walrus")}

    def test_long_memories_do_not_push_others_off_the_page(self, store: Store) -> None:
        long = put_all(store, (some("the walrus swims. " * 2_500, id=f"long{n}") for n in range(5)))
        short = put_all(store, (some("walrus", id=f"short{n}") for n in range(5)))

        found = store.match("walrus", Filter(), EVERYTHING, now=NOW, limit=10)

        assert sorted(ids(found)) == sorted(ids_of(long + short))

    def test_a_long_text_that_becomes_short_leaves_no_words_behind(self, store: Store) -> None:
        memory = put(store, some("filler " * 2_000 + "crimson walrus"))

        put(store, replace(memory, content="short now", title="short now", version=2), [QUERY])

        assert matched(store, "walrus") == []
        assert matched(store, "short") == [memory.id]

    def test_words_are_found_in_a_store_of_one_memory(self, store: Store) -> None:
        """A word that stands in every row still counts while there are few rows."""
        put(store, some("User lives in Seattle"))

        [match] = store.match("Where does the user live?", Filter(), EVERYTHING, now=NOW, limit=9)

        assert match.score > 0.5

    def test_equal_matches_come_newest_first(self, store: Store) -> None:
        for name, minutes in {"old": 1, "new": 3, "middle": 2}.items():
            put(store, some("red", id=name, created_at=later(minutes)))

        assert matched(store, "red") == ["new", "middle", "old"]

    def test_a_decision_is_found_by_its_reasoning_and_a_memory_by_its_title(self, store: Store) -> None:
        memory = put(store, some("Use JWT", title="Login", detail={"reasoning": "sessions do not scale"}))

        assert matched(store, "scale") == matched(store, "login") == matched(store, "jwt") == [memory.id]

    def test_a_new_title_or_reasoning_is_found_though_the_vectors_stay(self, store: Store) -> None:
        memory = put(store, some("Use JWT", title="Login"))

        changed(store, memory, title="Authentication")

        assert matched(store, "authentication") == [memory.id]
        assert matched(store, "login") == []

    def test_stop_words_find_nothing_beside_other_words(self, store: Store) -> None:
        put(store, some("what is the matter"))

        assert matched(store, "what is the weather") == []

    def test_stop_words_alone_are_words(self, store: Store) -> None:
        memory = put(store, some("to be or not to be"))

        assert matched(store, "to be") == [memory.id]

    @pytest.mark.parametrize("text", HOSTILE)
    def test_a_query_is_data(self, store: Store, text: str) -> None:
        memory = put(store, some("User lives in Seattle"))

        found = matched(store, text)

        assert found == ([memory.id] if "seattle" in text or "user" in text else [])
        assert store.matched_words(text, [memory.id]).keys() == set(found)

    @pytest.mark.parametrize("text", ["", "   ", "?!", "…"])
    def test_text_without_a_word_matches_nothing(self, store: Store, text: str) -> None:
        put(store, some())

        assert matched(store, text) == []

    def test_matching_in_an_empty_store_finds_nothing(self, store: Store) -> None:
        assert matched(store, "anything") == []

    def test_matched_words_are_spelt_as_in_the_text(self, store: Store) -> None:
        one = put(store, some("User lives in Seattle"))
        two = put(store, some("the max_retry_count"))

        held = store.matched_words("Living near SEATTLE with max_retry_count", [one.id, two.id, "unknown"])

        assert held[one.id] == ("Living", "SEATTLE")
        assert held[two.id] == ("max_retry_count", "max", "retry", "count")
        assert held.keys() == {one.id, two.id}

    def test_a_word_tells_more_the_fewer_texts_hold_it(self, store: Store) -> None:
        put_all(store, (some(f"the walrus swims {word}", id=word) for word in ("here", "there", "somewhere")))
        put(store, some("the octopus swims", id="other"))

        rarity = store.rarity(["swims", "walrus", "octopus", "dolphin", "…"], EVERYTHING)

        assert 0 < rarity["swims"] < rarity["walrus"] < rarity["octopus"] < rarity["dolphin"] <= 1
        assert "…" not in rarity
        assert store.rarity([], EVERYTHING) == {}

    @pytest.mark.parametrize("sight", [Sight.PUBLIC, Sight.SHARED, Sight.OWN, Sight.ALL])
    def test_what_the_audience_may_not_see_changes_no_score(self, store: Store, sight: Sight) -> None:
        create_spaces(store, "elsewhere")
        audience = Audience("ann", (Scope("default", sight),))
        ann, bob = Context(user_id="ann"), Context(user_id="bob")
        for number, level in enumerate(AccessLevel):
            put(store, some(f"the walrus swims in water {number}", access_level=level, context=ann))
            slept = some(f"the walrus slept {number}", status=Status.ARCHIVED, access_level=level, context=ann)
            put_away(store, put(store, slept))
        asked = "walrus tusks swims"
        before = scores(store, asked, audience)

        for _ in range(30):
            texts = ("tusks", "walrus walrus walrus tusks swims " * 9, "long " * 900)
            hidden = [some(text, space="elsewhere", context=bob) for text in texts]
            if sight < Sight.ALL:
                hidden += [some(text, access_level=AccessLevel.PRIVATE, context=bob) for text in texts]
            if sight < Sight.SHARED:
                hidden += [some(text, context=ann) for text in texts]
            put_all(store, hidden)
            put_away(store, changed(store, hidden[0], status=Status.ARCHIVED))
            purge(store, hidden[1].id)

        assert scores(store, asked, audience) == before

    def test_frequencies_follow_a_memory_that_changes_hands(self, store: Store) -> None:
        create_spaces(store, "elsewhere")
        audience = Audience("ann", (Scope("default", Sight.OWN),))
        bob = Context(user_id="bob")
        put_all(store, (some(f"the walrus swims {number}") for number in range(5)))
        before = scores(store, "walrus tusks", audience)

        memory = put(store, some("tusks of a walrus", access_level=AccessLevel.PRIVATE, context=bob))
        assert scores(store, "walrus tusks", audience) == before
        memory = changed(store, memory, access_level=AccessLevel.SHARED)
        assert scores(store, "walrus tusks", audience) != before
        memory = changed(store, memory, access_level=AccessLevel.PRIVATE)
        assert scores(store, "walrus tusks", audience) == before
        memory = changed(store, memory, access_level=AccessLevel.SHARED, space="elsewhere")
        assert scores(store, "walrus tusks", audience) == before
        memory = changed(store, memory, access_level=AccessLevel.PUBLIC, space="default")
        public = scores(store, "walrus tusks", audience)
        assert public != before
        store.rebuild()
        assert scores(store, "walrus tusks", audience) == public
        purge(store, memory.id)
        assert scores(store, "walrus tusks", audience) == before

    def test_in_an_empty_store_every_word_tells_something(self, store: Store) -> None:
        assert store.rarity(["walrus"], EVERYTHING)["walrus"] > 0.5

    def test_a_glimpse_shows_when_where_how_long_and_how_it_begins(self, store: Store) -> None:
        talk, tomorrow = Context(conversation_id="talk"), NOW + timedelta(days=1)
        put(store, some("x" * 2_000, id="long", created_at=NOW, valid_until=tomorrow, context=talk))
        put(store, some("short", id="short", also=("a few words", "何か")))

        seen = store.glimpses(["long", "short", "unknown"])

        assert set(seen.memories) == {"long", "short"}
        rows = {name: row for name, *row in zip(*seen, strict=True)}
        created, valid_from, valid_until, conversation, length, opening, also = rows["long"]
        assert (created, valid_from, valid_until) == (milliseconds(NOW), None, milliseconds(tomorrow))
        assert conversation
        assert length == 2_000
        assert 0 < len(opening) < 2_000
        assert not rows["short"][3]
        assert rows["short"][5:] == ["short", '["a few words","何か"]']
        assert also == "[]"
        assert [*zip(*store.glimpses([]), strict=True)] == []

    def test_a_search_gives_ids_and_texts_as_they_were_stored(self, store: Store) -> None:
        """PostgreSQL cannot keep U+0000, and writes it as something else."""
        name, text = "a\0b\ufdd0c", "tea with milk\ufdd0"  # how SQLite begins a text ends at U+0000
        put(store, some(text, id=name), [QUERY])

        found = store.candidates("tea", QUERY, Filter(), EVERYTHING, now=NOW, limit=5)
        assert list(found.memories) == [name]
        assert (found.near, list(found.by_words)) == (1, [0])
        assert [match.memory for match in store.match("tea", Filter(), EVERYTHING, now=NOW, limit=5)] == [name]
        assert [match.memory for match in store.nearest(QUERY, Filter(), EVERYTHING, now=NOW, limit=5)] == [name]
        glimpses = store.glimpses([name])
        assert (list(glimpses.memories), list(glimpses.opening)) == ([name], [text])

    def test_memories_are_told_apart_by_their_spaces(self, store: Store) -> None:
        with store.writing() as tx:
            for space in ("a", "b"):
                tx.spaces.create(space, at=NOW)
        for name, space in {"one": "a", "two": "b", "three\0": "a"}.items():
            put(store, some(id=name, space=space))

        assert store.in_space(["one", "three\0", "two", "unknown"], "a") == {"one", "three\0"}
        assert store.in_space(["one"], "b") == store.in_space(["one"], "unknown") == store.in_space([], "a") == set()

    def test_glimpses_tell_conversations_apart(self, store: Store) -> None:
        for name, talk in {"one": "a", "two": "a", "three": "b"}.items():
            put(store, some(id=name, context=Context(conversation_id=talk)))

        seen = store.glimpses(["one", "two", "three"])
        talks = dict(zip(seen.memories, seen.conversation, strict=True))

        assert talks["one"] == talks["two"] != talks["three"]

    def test_candidates_are_what_words_and_meaning_find_each_with_both_scores(self, store: Store) -> None:
        put(store, some("tea at four", id="both"), [at_cosine(0.2), at_cosine(0.4)])
        put(store, some("coffee at five", id="near"), [at_cosine(0.9)])
        put(store, some("green tea", id="bare"), (), parts=1)
        for number in range(3):
            put(store, some(f"water {number}"), [at_cosine(0.5)])
        put(store, some("black tea and white tea", id="far"), [at_cosine(-0.3), at_cosine(0.1)])

        found = store.candidates("tea", QUERY, Filter(), EVERYTHING, now=NOW, limit=4)

        scored = dict(store.match("tea", Filter(), EVERYTHING, now=NOW, limit=4))
        near = store.nearest(QUERY, Filter(), EVERYTHING, now=NOW, limit=4)
        assert [*found.memories[: found.near]] == ids(near)
        assert {*found.memories} == {*ids(near), "both", "bare", "far"}
        assert [found.memories[row] for row in found.by_words] == [*scored]
        for memory, words, cosine in zip(found.memories, found.word_scores, found.cosines, strict=True):
            assert words == pytest.approx(scored.get(memory, 0.0))
            expected = {"both": 0.4, "near": 0.9, "far": 0.1, "bare": nan}.get(memory, 0.5)
            assert cosine == pytest.approx(expected, abs=CLOSE, nan_ok=True)

    def test_a_sketch_shows_what_a_memory_says_and_when_it_came_to_those_who_see_it(self, store: Store) -> None:
        first = put(
            store, some("what", id="first", detail={"reasoning": "why"}, category=Category.GOAL, created_at=NOW)
        )
        put(store, some("mine", id="mine", access_level=AccessLevel.PRIVATE, context=Context(user_id="ann")))
        put(store, some("old", id="old", superseded_by="first"))
        purge(store, put(store, some("gone", id="gone")).id)

        ben = Audience("ben", (Scope("default", Sight.OWN),))
        seen = store.sketches(["old", "mine", "gone", "unknown", "first", "old"], ben)

        assert [sketch.id for sketch in seen] == ["old", "first"]
        assert [sketch.superseded_by for sketch in seen] == ["first", None]
        assert seen[1] == Sketch("first", "what\n\nwhy", Category.GOAL, NOW, first.seq, None)
        assert store.sketches([], EVERYTHING) == []

    # --- vectors ---

    def test_the_nearest_come_first_with_their_cosine(self, store: Store) -> None:
        for name, cosine in {"far": -0.2, "near": 0.9, "middle": 0.4}.items():
            put(store, some(id=name), [at_cosine(cosine)])

        found = store.nearest(QUERY, Filter(), EVERYTHING, now=NOW, limit=2)

        assert ids(found) == ["near", "middle"]
        assert [match.score for match in found] == pytest.approx([0.9, 0.4], abs=CLOSE)

    def test_a_memory_counts_once_and_by_its_best_part(self, store: Store) -> None:
        put(store, some(id="long"), [at_cosine(c) for c in (0.1, 0.8, 0.7, 0.6, 0.5)])
        put(store, some(id="short"), [at_cosine(0.65)])
        put(store, some(id="other"), [at_cosine(0.2)])

        found = store.nearest(QUERY, Filter(), EVERYTHING, now=NOW, limit=3)

        assert ids(found) == ["long", "short", "other"]
        assert found[0].score == pytest.approx(0.8, abs=CLOSE)

    def test_equally_near_ones_come_newest_first(self, store: Store) -> None:
        for name, minutes in {"old": 1, "new": 3, "middle": 2}.items():
            put(store, some(id=name, created_at=later(minutes)))

        assert nearest(store) == ["new", "middle", "old"]
        assert nearest(store, limit=1) == ["new"]

    def test_memories_without_vectors_are_not_near_anything(self, store: Store) -> None:
        put(store, some(), (), parts=1)

        assert nearest(store) == []

    def test_vectors_of_another_length_are_passed_over(self, store: Store) -> None:
        memory = put(store, some())
        other = np.ones(DIMENSION // 2, np.float32) / (DIMENSION / 2) ** 0.5

        assert store.nearest(other, Filter(), EVERYTHING, now=NOW, limit=9) == []
        assert store.cosines(other, [memory.id]) == {}
        assert nearest(store) == [memory.id]

    def test_cosines_and_vectors_are_given_by_id(self, store: Store) -> None:
        memory = put(store, some(), [at_cosine(0.3), at_cosine(0.6)])
        bare = put(store, some(), (), parts=1)

        assert store.cosines(QUERY, [memory.id, bare.id, "unknown"]) == {memory.id: pytest.approx(0.6, abs=CLOSE)}
        vectors = store.vectors([memory.id, bare.id, "unknown"])
        assert vectors.keys() == {memory.id}
        np.testing.assert_allclose(vectors[memory.id], at_cosine(0.3), atol=CLOSE)
        assert store.cosines(QUERY, []) == store.vectors([]) == {}

    def test_both_ways_at_once_find_what_each_finds_alone(self, store: Store) -> None:
        put(store, some("tea at four"), [at_cosine(0.2)])
        put(store, some("coffee at five"), [at_cosine(0.9)])

        found = store.match_and_nearest("tea", QUERY, Filter(), EVERYTHING, now=NOW, limit=10)

        assert found == (
            store.match("tea", Filter(), EVERYTHING, now=NOW, limit=10),
            store.nearest(QUERY, Filter(), EVERYTHING, now=NOW, limit=10),
        )
        assert [len(one) for one in found] == [1, 2]

    def test_changes_of_every_kind_are_seen_by_the_next_search(self, store: Store) -> None:
        memory = put(store, some(), [at_cosine(0.9)])
        assert nearest(store) == [memory.id]

        memory = changed(store, memory, status=Status.ARCHIVED)
        assert nearest(store) == []

        memory = changed(store, memory, status=Status.ACTIVE)
        assert nearest(store) == [memory.id]

        with store.writing() as tx:
            tx.purge(memory.id, at=NOW)
        assert nearest(store, Filter(states=EVERY_STATE)) == []

    # --- waiting for vectors ---

    def test_what_has_not_all_its_vectors_waits(self, store: Store) -> None:
        whole = put(store, some(), [unit(1)], parts=1)
        half = put(store, some(), [unit(1), unit(2)], parts=5)
        bare = put(store, some(), (), parts=1)

        waiting = {one.memory.id: (one.next_part, one.attempts, one.judged) for one in store.upkeep.pending(limit=9)}

        assert waiting == {half.id: (2, 0, False), bare.id: (0, 0, False)}
        assert whole.id not in waiting

    def test_those_without_any_vector_are_counted_for_who_may_see_them(self, store: Store) -> None:
        put(store, some(), [unit(1)], parts=1)
        assert not store.upkeep.any_waits()

        judged = put(store, some(), [unit(1)], parts=1)
        with store.writing() as tx:
            tx.upkeep.await_judgement(judged.id)
        put(store, some(), [unit(1), unit(2)], parts=5)
        assert not store.upkeep.any_waits()

        own = {"access_level": AccessLevel.PRIVATE, "context": Context(user_id="ann")}
        for fields in ({}, {"category": Category.SKILL}, {"status": Status.DELETED}, own):
            put(store, some(**fields), (), parts=1)
        shared = Audience("bob", (Scope("default", Sight.OWN),))

        assert store.upkeep.any_waits()
        assert store.count_waiting(Filter(), EVERYTHING, now=NOW) == 3
        assert store.count_waiting(Filter(), shared, now=NOW) == 2
        assert store.count_waiting(Filter(categories=frozenset({Category.SKILL})), shared, now=NOW) == 1
        assert store.count_waiting(Filter(), Audience("bob", ()), now=NOW) == 0

    def test_those_with_fewest_attempts_wait_in_front_then_the_oldest(self, store: Store) -> None:
        for name in ("a", "b", "c"):
            put(store, some(id=name), (), parts=1)
        with store.writing() as tx:
            tx.upkeep.put_off("a", failed=True)
            tx.upkeep.put_off("b", judged=True)

        assert [(one.memory.id, one.attempts, one.judged) for one in store.upkeep.pending(limit=9)] == [
            ("b", 0, True),
            ("c", 0, False),
            ("a", 1, False),
        ]
        assert len(store.upkeep.pending(limit=2)) == 2

    def test_deleted_memories_do_not_wait(self, store: Store) -> None:
        memory = put(store, some(), (), parts=1)

        memory = changed(store, memory, status=Status.DELETED)
        assert store.upkeep.pending(limit=9) == []

        changed(store, memory, status=Status.ACTIVE)
        assert ids(one.memory for one in store.upkeep.pending(limit=9)) == [memory.id]

    def test_further_vectors_end_the_waiting(self, store: Store) -> None:
        memory = put(store, some(), [at_cosine(0.1)], parts=3)

        with store.writing() as tx:
            assert tx.add_vectors(memory.id, version=1, first_part=1, vectors=[at_cosine(0.2)], parts=3)
        assert [one.next_part for one in store.upkeep.pending(limit=9)] == [2]

        with store.writing() as tx:
            assert tx.add_vectors(memory.id, version=1, first_part=2, vectors=[at_cosine(0.9)], parts=3)
        assert store.upkeep.pending(limit=9) == []
        assert store.cosines(QUERY, [memory.id])[memory.id] == pytest.approx(0.9, abs=CLOSE)
        assert nearest(store) == [memory.id]

    def test_vectors_of_an_earlier_text_are_refused(self, store: Store) -> None:
        memory = put(store, some(), (), parts=1)
        put(store, replace(memory, content="other", version=2), (), parts=1)

        with store.writing() as tx:
            assert not tx.add_vectors(memory.id, version=1, first_part=0, vectors=[QUERY], parts=1)

        assert nearest(store) == []
        assert [one.next_part for one in store.upkeep.pending(limit=9)] == [0]

    def test_vectors_are_taken_though_something_else_has_changed(self, store: Store) -> None:
        memory = put(store, some(), (), parts=1)
        changed(store, memory, importance=0.9)

        with store.writing() as tx:
            assert tx.add_vectors(memory.id, version=1, first_part=0, vectors=[QUERY], parts=1)

        assert nearest(store) == [memory.id]

    def test_vectors_of_no_memory_are_refused(self, store: Store) -> None:
        with store.writing() as tx:
            assert not tx.add_vectors("unknown", version=1, first_part=0, vectors=[QUERY], parts=1)

    def test_dropping_the_vectors_lets_everything_wait(self, store: Store) -> None:
        memory = put(store, some())
        fresh = put(store, some(), (), parts=1)

        with store.writing() as tx:
            tx.drop_vectors()

        assert nearest(store) == []
        assert {one.memory.id: one.judged for one in store.upkeep.pending(limit=9)} == {
            memory.id: True,
            fresh.id: False,
        }
