"""An embedder that is missing, slow or wrong is never in a write's way."""

from __future__ import annotations

import queue
import threading
from contextlib import suppress

import numpy as np
import pytest

from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.store import embedding
from scrubjay.engine.store.backlog import GIVE_UP, Backlog
from scrubjay.engine.store.loading import BATCH
from scrubjay.errors import EmbeddingError, ModelMissing, StorageError
from scrubjay.values.callers import Caller, Role
from scrubjay.values.memory import AccessLevel
from scrubjay.values.search import Verdict

BOTH = pytest.mark.parametrize("open_store", ["sqlite", "postgres"], indirect=True)


class Faulty(HashingEmbedder):
    """The tests' embedder with a fault that can be switched off."""

    in_process = False  # it may keep a caller waiting for ever

    def __init__(self, fault=None):
        super().__init__()
        self.fault = fault
        self.calls = 0
        self.questions = 0

    def embed(self, texts):
        self._misbehave()
        return super().embed(texts)

    def embed_query(self, text):
        self.questions += 1
        self._misbehave()
        return super().embed_query(text)

    def _misbehave(self):
        self.calls += 1
        if self.fault is not None:
            self.fault()


def failing():
    raise EmbeddingError("The model returned unusable numbers.")


class Missing(HashingEmbedder):
    """A model whose files arrive later."""

    def __init__(self):
        super().__init__()
        self.there = False

    def load(self, progress=None):
        if not self.there:
            raise ModelMissing


def contents(hits):
    return [hit.memory.content for hit in hits]


def test_a_failing_embedder_does_not_refuse_a_write(open_engine):
    jay = open_engine(Faulty(failing))

    stored = jay.store("The spare key hangs behind the boiler")

    assert stored.degraded == "The model returned unusable numbers."
    assert contents(jay.search("boiler")) == ["The spare key hangs behind the boiler"]
    assert jay.search("boiler").degraded


def test_a_slow_embedder_is_waited_for_once_and_then_known_to_be_down(open_engine, monkeypatch):
    monkeypatch.setattr(embedding, "monotonic", lambda: 0.0)  # after a while it would be asked once more
    never = threading.Event()
    embedder = Faulty(lambda: never.wait(60))
    jay = open_engine(embedder, wait_seconds=0.05)
    try:
        assert jay.store("first").degraded == "The embedding model did not answer in time."

        assert jay.search("first").degraded == "The embedding model did not answer in time."

        assert embedder.questions == 0, "what is known to time out must not be asked again"
    finally:
        never.set()


def test_a_model_that_was_late_because_it_was_loading_is_asked_again(open_engine):
    """Else a session that begins on a busy machine would search by words alone for its first quarter of a minute."""
    late, wait_seconds = threading.Event(), 2.0

    class Loading(Faulty):
        def load(self, progress=None):
            late.wait(wait_seconds / 2)  # nothing sets it yet: half of the time is gone

    embedder = Loading(lambda: late.wait(60))
    jay = open_engine(embedder, wait_seconds=wait_seconds)
    assert jay.search("boiler").degraded == "The embedding model did not answer in time."
    late.set()

    stored = jay.store("The spare key hangs behind the boiler")

    assert stored.degraded is None


@pytest.mark.parametrize("call", ["store", "search"])
def test_the_first_call_waits_for_the_model_to_be_loaded(open_engine, call):
    """It used to answer by words only, because loading counted against the time that a call waits for a vector."""
    wait_seconds, never = 1.0, threading.Event()

    class Loading(Faulty):
        def load(self, progress=None):
            never.wait(1.5 * wait_seconds)

    jay = open_engine(Loading(), wait_seconds=wait_seconds)

    answer = jay.store("boiler") if call == "store" else jay.search("boiler")

    assert answer.degraded is None


def test_a_model_that_takes_too_long_to_load_is_said_to_be_loading(open_engine, monkeypatch):
    monkeypatch.setattr(embedding, "LOADING_SECONDS", 0.0)
    loaded = threading.Event()

    class Loading(Faulty):
        def load(self, progress=None):
            loaded.wait(60)

    jay = open_engine(Loading(), wait_seconds=0.05)
    try:
        assert jay.search("boiler").degraded == "The embedding model is still loading."
    finally:
        loaded.set()


class Watched(HashingEmbedder):
    """Says in which thread each question was embedded, and may take its time."""

    def __init__(self):
        super().__init__()
        self.threads = []
        self.begun = threading.Semaphore(0)
        self.enough = threading.Event()
        self.enough.set()

    def embed_query(self, text):
        self.threads.append(threading.current_thread())
        self.begun.release()
        self.enough.wait(60)
        return super().embed_query(text)

    def in_the_callers_own(self):
        return [thread is threading.current_thread() for thread in self.threads]


def test_a_quick_model_of_this_process_is_asked_in_the_callers_thread(open_engine):
    """To wake another thread for it, and to be woken, costs as much as a fifth of a search."""
    embedder = Watched()
    jay = open_engine(embedder, wait_seconds=600)  # quick is whatever takes less than a tenth of it

    for _ in range(3):
        jay.search("boiler")

    assert embedder.in_the_callers_own() == [False, True, True], "how quick it is shows the first time"


@pytest.mark.parametrize("why", ["it is behind an endpoint", "it was slow"])
def test_a_model_that_may_keep_one_waiting_is_asked_in_a_thread_that_can_be_left_behind(open_engine, monkeypatch, why):
    embedder, clock = Watched(), iter(range(0, 100_000, 3))
    if why == "it was slow":  # every look at the clock is three seconds later: each answer comes in time, none quickly
        monkeypatch.setattr(embedding, "monotonic", lambda: float(next(clock)))
    embedder.in_process = why == "it was slow"
    jay = open_engine(embedder, wait_seconds=20 if why == "it was slow" else 600)

    for _ in range(3):
        jay.search("boiler")

    assert embedder.in_the_callers_own() == [False, False, False]


def test_no_more_callers_embed_by_themselves_than_there_are_threads_for_it(open_engine):
    embedder = Watched()
    jay = open_engine(embedder, wait_seconds=600)
    jay.search("boiler")
    embedder.begun.acquire()
    embedder.threads.clear()
    embedder.enough.clear()
    callers = [threading.Thread(target=jay.search, args=("boiler",)) for _ in range(5)]

    for caller in callers:
        caller.start()
    for _ in range(2 * embedding.THREADS):  # the last of them waits for its turn
        assert embedder.begun.acquire(timeout=60)
    by_themselves = len({*callers} & {*embedder.threads})
    embedder.enough.set()
    for caller in callers:
        caller.join()

    assert by_themselves == embedding.THREADS
    assert len(embedder.threads) == len(callers)


def test_who_waits_for_a_vector_while_the_store_is_closed_is_told_so(open_engine):
    embedder = Watched()
    embedder.in_process = False
    jay = open_engine(embedder, wait_seconds=600)
    jay.search("boiler")
    embedder.enough.clear()
    said = queue.Queue()

    def ask():
        try:
            jay.parts.embedding.query("boiler")
            said.put("a vector")
        except StorageError as error:
            said.put(error.message)

    callers = [threading.Thread(target=ask) for _ in range(embedding.THREADS + 1)]  # the last one for its turn
    for caller in callers:
        caller.start()
    for _ in range(1 + embedding.THREADS):
        assert embedder.begun.acquire(timeout=60)
    while jay.parts.embedding._pool._work_queue.empty():
        pass
    jay.parts.embedding.close()
    embedder.enough.set()

    assert sorted(said.get(timeout=60) for _ in callers) == ["The store is closed.", "a vector", "a vector"]
    for caller in callers:
        caller.join()


def test_what_was_stored_without_a_vector_gets_one_when_the_embedder_is_back(open_engine):
    embedder = Faulty(failing)
    jay = open_engine(embedder)
    stored = jay.store("User lives in Seattle").memory
    assert jay.upkeep.check().pending == 1

    embedder.fault = None
    jay.parts.backlog.drain()

    assert jay.upkeep.check().pending == 0
    hit = jay.search("user lives in seattle", explain=True)[0]
    assert hit.memory.id == stored.id
    assert hit.explanation.cosine is not None


def test_what_was_stored_without_a_vector_is_judged_when_it_has_one(open_engine, model):
    jay = open_engine(None)
    old = jay.store("User lives in Seattle").memory
    new = jay.store("User moved to Austin").memory
    jay.close()

    jay = open_engine(model_shared(model))
    jay.parts.backlog.drain()

    assert [(link.source, link.target) for link in jay.links(new.id)] == [(new.id, old.id)]


def model_shared(model):
    from tests.conftest import Shared

    return Shared(model)


def test_a_missing_model_is_fetched_in_the_background_where_allowed(open_engine):
    embedder = Missing()

    def fetch():
        embedder.there = True

    jay = open_engine(embedder, fetch=fetch)
    jay.parts.embedding.warm().result(timeout=60)

    assert jay.store("now with a vector").degraded is None


def test_a_missing_model_without_leave_to_fetch_means_words_only(open_engine):
    jay = open_engine(Missing())

    assert jay.store("no vector yet").degraded == ModelMissing().message
    assert contents(jay.search("vector")) == ["no vector yet"]


@BOTH
@pytest.mark.parametrize(
    ("ready", "waiting", "told"),
    [
        (9, 1, "1 of the 10 memories that were searched has no vectors yet: it is found by its words only."),
        (3, 9, "9 of the 12 memories that were searched have no vectors yet: they are found by their words only."),
        (0, 2, "None of the 2 memories that were searched has vectors yet: they are found by their words only."),
        (0, 1, "The only memory that was searched has no vectors yet: it is found by its words only."),
        (10, 1, None),  # a server that is a little behind
        (3, 0, None),
    ],
)
def test_a_search_tells_that_many_memories_wait_for_vectors(open_engine, ready, waiting, told):
    """What waits is found by its words alone, and one that has other words is not found at all."""
    with open_engine() as jay:
        jay.store_many({"content": f"The harbour office closes at {number}"} for number in range(ready))
    open_engine(None).store_many({"content": f"The harbour office opens at {number}"} for number in range(waiting))
    jay = open_engine()

    found = jay.search("harbour office")

    assert len(found) > 0
    assert (found.degraded, found.partly) == (told, told is not None)
    assert jay.search("harbour office", words_only=True).degraded is None


@BOTH
def test_what_another_process_has_just_stored_without_vectors_is_told_of_at_once(open_engine):
    """That nothing waits is remembered for some seconds: until then its hits would be hidden without a word."""
    jay = open_engine()
    jay.store("The office closes at five")
    assert jay.search("office").degraded is None

    open_engine(None).store_many({"content": f"Anna drinks green tea {number}"} for number in range(30))

    assert jay.search("green tea").degraded.startswith("30 of the 31 memories")


def test_words_alone_do_not_say_that_what_has_no_vector_is_no_answer(open_engine, model):
    jay = open_engine(model_shared(model))
    jay.store_many({"content": f"Client {number} keeps item {number} in drawer {number}"} for number in range(20))
    open_engine(None).store("Carla uses Kubernetes for the batch jobs")

    found = jay.search("Kubernetes")

    assert contents(found)[0] == "Carla uses Kubernetes for the batch jobs"
    assert found.verdict is not Verdict.NONE
    assert jay.search("What colour is the bicycle?").verdict is Verdict.NONE


def test_what_others_may_not_see_does_not_wait_for_them(open_engine):
    ann, bob = (Caller(user=name, role=Role.MEMBER, spaces=frozenset({"default"})) for name in ("ann", "bob"))
    jay = open_engine()
    jay.store("The spare key hangs behind the boiler")
    without = open_engine(None).bound_to(caller=ann)
    without.store_many({"content": f"Ann's key {n}", "access_level": AccessLevel.PRIVATE} for n in range(5))

    assert jay.bound_to(caller=bob).search("key").degraded is None
    assert "5 of the 6 memories" in jay.bound_to(caller=ann).search("key").degraded


def test_two_models_never_mix(open_engine):
    jay = open_engine()
    jay.store("made by the first model")
    jay.close()

    class Other(HashingEmbedder):
        fingerprint = "another-model"

        def embed(self, texts):
            return [np.ones(8, dtype=np.float32)] * len(texts)

    jay = open_engine(Other())
    assert "another embedding model" in jay.store("made by the second model").degraded
    hits = jay.search("made by model")

    assert "another embedding model" in hits.degraded
    assert sorted(contents(hits)) == ["made by the first model", "made by the second model"]
    assert jay.upkeep.check().pending == 1


class Picky(Faulty):
    """Cannot embed one text, and embeds all others."""

    def embed(self, texts):
        if "poison" in texts:
            self.fault, fault = failing, self.fault
            try:
                return super().embed(texts)
            finally:
                self.fault = fault
        return super().embed(texts)


def test_a_text_that_fails_again_and_again_is_left_alone(open_engine):
    embedder = Picky()
    jay = open_engine(embedder)
    jay.store("poison")
    while jay.records.upkeep.pending(limit=1)[0].attempts < GIVE_UP:
        with suppress(EmbeddingError):
            jay.parts.backlog.drain()

    jay.close()  # and its thread, which may just be trying once more
    jay, calls = open_engine(embedder), embedder.calls
    jay.parts.backlog.drain()

    assert embedder.calls == calls
    assert jay.upkeep.check().pending == 1


def test_a_model_that_is_away_for_long_is_no_texts_fault(open_engine):
    """However often it is asked in vain: what waits gets its vector once it is back."""
    embedder = Faulty(failing)
    jay = open_engine(embedder)
    jay.store("User lives in Seattle")
    for _ in range(2 * GIVE_UP):
        with suppress(EmbeddingError):
            jay.parts.backlog.drain()

    embedder.fault = None
    jay.parts.backlog.drain()

    assert jay.upkeep.check().pending == 0


def test_a_fault_at_one_memory_keeps_no_other_waiting(open_engine, caplog):
    """Whatever goes wrong with it: the background worker goes on, and leaves that one alone after a while."""
    open_engine(None).store_many([{"content": "poison"}, {"content": "The pier opens at nine"}])
    jay, judged = open_engine(), queue.SimpleQueue()

    def judge(memory, _vector):
        judged.put(memory.content) if memory.content != "poison" else 1 / 0

    backlog = Backlog(jay.records, jay.parts.embedding, jay.parts.models, judge)
    backlog.start()
    assert judged.get(timeout=60) == "The pier opens at nine"
    open_engine(None).store("The ferry is late")
    backlog.wake()
    assert judged.get(timeout=60) == "The ferry is late"
    backlog.close()

    [left] = jay.records.upkeep.pending(limit=10)
    assert (left.memory.content, left.attempts) == ("poison", GIVE_UP)
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.parametrize("end", ["drained", "closed"])
def test_the_parts_past_the_first_two_follow_in_the_background_and_before_closing(open_engine, end):
    jay = open_engine()
    jay.store("\n".join(f"On day {number} the ferry was late." for number in range(1_500))[:49_000])

    jay.parts.backlog.drain() if end == "drained" else jay.close()

    check = (jay if end == "drained" else open_engine()).upkeep.check()
    assert (check.pending, check.with_vectors) == (0, 1)


@pytest.mark.parametrize("kind", [list, tuple])
def test_vectors_may_be_plain_lists_of_numbers(open_engine, kind):
    class Plain(HashingEmbedder):
        def embed(self, texts):
            return kind(kind(float(number) for number in one) for one in super().embed(texts))

        def embed_query(self, text):
            return kind(float(number) for number in super().embed_query(text))

    jay = open_engine(Plain())

    one = jay.store("Ada tends the lighthouse")
    [other] = jay.store_many([{"content": "The tide is high"}])

    assert one.degraded is None
    assert {*jay.records.vectors([one.memory.id, other])} == {one.memory.id, other}
    hits = jay.search("Ada tends the lighthouse")
    assert (hits.degraded, hits[0].memory.id) == (None, one.memory.id)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda made: [one[:10] for one in made],
        lambda made: [one[:0] for one in made],
        lambda made: made[1:],
        lambda made: made + made,
        lambda made: [["a"] * len(one) for one in made],
        lambda made: [[one] for one in made],
        lambda made: [None for _ in made],
        lambda made: None,
    ],
)
def test_vectors_of_another_length_or_number_are_refused_and_the_text_is_kept(open_engine, wrong):
    class Odd(HashingEmbedder):
        def embed(self, texts):
            return wrong(super().embed(texts))

    jay = open_engine(Odd())

    stored = jay.store("Ada tends the lighthouse")
    many = jay.store_many([{"content": f"The tide of day {day}"} for day in range(3)])

    assert "did not return one vector" in (stored.degraded or "")
    assert {memory.id for memory in jay.list()} == {stored.memory.id, *many}
    assert jay.records.vectors([stored.memory.id, *many]) == {}


def test_what_is_not_a_number_is_refused_where_it_comes_from(open_engine):
    class Broken(HashingEmbedder):
        def embed_query(self, text):
            vector = super().embed_query(text)
            vector[-1] = np.nan
            return vector

    jay = open_engine(Broken())

    stored = jay.store("The crane is red")
    hits = jay.search("crane")

    assert "unusable numbers" in (stored.degraded or "")
    assert "unusable numbers" in (hits.degraded or "")
    assert contents(hits) == ["The crane is red"]
    assert jay.records.check().with_vectors == 0


def test_a_batch_is_embedded_while_the_one_before_it_still_is_and_they_are_kept_in_order(open_engine):
    both = threading.Barrier(2)

    class Meeting(HashingEmbedder):
        """Ends no batch before the next has begun."""

        def embed(self, texts):
            if len(texts) == BATCH:
                both.wait(timeout=30)
            return super().embed(texts)

    jay = open_engine(Meeting())
    texts = [f"Text number {number}" for number in range(4 * BATCH)]

    kept = jay.store_many({"content": text} for text in texts)

    assert [jay.get(id).content for id in kept] == texts
    assert jay.records.check().with_vectors == len(texts)


def test_a_bulk_load_gives_way_only_while_texts_are_embedded():
    """What it goes through comes in order either way; after a failure nobody is waited for."""
    faulty = Faulty()
    shared = embedding.Embedding(faulty, wait_seconds=60)
    given = []
    faulty.fault = lambda: given.extend((shared._at_work, *shared.yielding_gil("abc")))

    shared.at_leisure(["A text"])
    faulty.fault = failing
    with pytest.raises(EmbeddingError):
        shared.at_leisure(["A text"])

    assert given[:4] == [1, "a", "b", "c"]
    assert shared._at_work == 0
    shared.close()
