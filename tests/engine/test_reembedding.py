"""Another model takes over: whatever happens meanwhile, vectors of two models never meet and nothing is lost."""

from __future__ import annotations

from contextlib import closing
from time import monotonic, sleep

import pytest

from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.engine import Engine
from scrubjay.engine.parts import engine_on
from scrubjay.engine.upkeep import tasks
from scrubjay.errors import EmbeddingError, Locked, ModelMissing
from scrubjay.stores.promises.memories import OWN_MODEL
from scrubjay.stores.sqlite.filters import dimension_of
from scrubjay.stores.sqlite.store import SqliteStore
from tests.reliability.processes import Child
from tests.reliability.rounds import end_leases

pytestmark = pytest.mark.process


class Wider(HashingEmbedder):
    """Another model: twice as many numbers."""

    dimension = 768

    @property
    def fingerprint(self) -> str:
        return "wider-1"


class Picky(Wider):
    """Cannot embed one text."""

    def embed(self, texts):
        if any("poison" in text for text in texts):
            raise EmbeddingError("The text could not be embedded.")
        return super().embed(texts)


class Dying(Wider):
    """Stops the process' work after some batches, as a kill would."""

    def __init__(self, batches: int) -> None:
        self.left = batches

    def embed(self, texts):
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return super().embed(texts)


def fill(jay: Engine, count: int = 150) -> list[str]:
    stored = list(jay.store_many({"content": f"fact {number} about harbours"} for number in range(count)))
    jay.parts.backlog.finish()  # what came in bulk is judged in the background
    return stored


def dimensions(jay: Engine) -> set[int]:
    with jay.records._reading() as con:
        return {dimension_of(size) for (size,) in con.execute("SELECT DISTINCT length(vector) FROM vectors")}


def test_every_memory_gets_the_new_models_vector(open_engine):
    ids = fill(open_engine())
    jay = open_engine(Wider())
    assert jay.search("harbours").degraded

    told: list[tuple[int, int]] = []
    result = jay.upkeep.reembed(progress=lambda *now: told.append(now))

    assert (result.memories, result.failed, result.model) == (150, 0, "wider-1")
    assert told[-1] == (150, 150)
    assert dimensions(jay) == {768}
    assert not jay.search("harbours").degraded
    assert jay.upkeep.check().with_vectors == len(ids)


def test_a_decisions_topic_is_in_its_new_vector_too(open_engine):
    """As it was in the first: what is embedded does not depend on when."""
    decision = open_engine().decisions.save("harbour_fees", "Raise them", reasoning="Dredging costs more").memory
    jay = open_engine(Wider())

    jay.upkeep.reembed()

    [expected] = Wider().embed([decision.embeddable])
    assert jay.records.vectors([decision.id])[decision.id] == pytest.approx(expected, abs=1e-4)


def test_a_store_that_is_this_models_already_is_left_alone(open_engine):
    jay = open_engine()
    fill(jay, 10)
    before = [memory.version for memory in jay.list(limit=10)]

    assert jay.upkeep.reembed().memories == 0
    assert [memory.version for memory in jay.list(limit=10)] == before


def test_without_a_model_nothing_is_thrown_away(open_engine):
    fill(open_engine(), 10)

    with pytest.raises(ModelMissing):
        open_engine(None).upkeep.reembed()

    assert dimensions(open_engine()) == {384}


def test_a_model_that_fails_at_the_first_text_throws_nothing_away(open_engine):
    fill(open_engine(), 10)

    class Broken(Wider):
        def embed(self, texts):
            raise EmbeddingError("It is broken.")

    with pytest.raises(EmbeddingError):
        open_engine(Broken()).upkeep.reembed()

    assert not open_engine().search("harbours").degraded


@pytest.mark.parametrize("batches", [1, 2, 3])
def test_broken_off_anywhere_it_goes_on_where_it_was(open_engine, monkeypatch, batches):
    monkeypatch.setattr(tasks, "PAGE", 40)
    old = open_engine()
    fill(old)
    with pytest.raises(KeyboardInterrupt):
        open_engine(Dying(batches)).upkeep.reembed()

    # nobody mixes: neither the old model nor the new one searches by meaning or embeds meanwhile
    for embedder in (HashingEmbedder(), Wider()):
        meanwhile = open_engine(embedder)
        found = meanwhile.search("fact 7")
        assert "reembed" in found.degraded
        assert found.hits
        assert meanwhile.store("stored meanwhile").degraded

    result = open_engine(Wider()).upkeep.reembed()

    jay = open_engine(Wider())
    assert result.memories <= 152 - 64 * (batches - 1)
    assert dimensions(jay) == {768}
    assert jay.upkeep.check().with_vectors == 152


def test_memories_are_stored_changed_and_erased_meanwhile(open_engine):
    ids = fill(open_engine())
    with pytest.raises(KeyboardInterrupt):
        open_engine(Dying(2)).upkeep.reembed()
    meanwhile = open_engine()

    meanwhile.forget(ids[0], hard=True)
    meanwhile.forget(ids[149], hard=True)
    meanwhile.update(ids[1], content="changed early")
    meanwhile.update(ids[148], content="changed late")
    open_engine(Wider()).upkeep.reembed()

    jay = open_engine(Wider())
    assert jay.upkeep.check().memories == jay.upkeep.check().with_vectors == 148
    assert [hit.memory.id for hit in jay.search("changed late", limit=1)] == [ids[148]]


def test_a_third_model_that_takes_over_half_way_begins_anew(open_engine):
    fill(open_engine())
    with pytest.raises(KeyboardInterrupt):
        open_engine(Dying(2)).upkeep.reembed()

    assert open_engine().upkeep.reembed().memories == 150
    assert dimensions(open_engine()) == {384}


def test_a_text_that_cannot_be_embedded_does_not_keep_the_others(open_engine):
    jay = open_engine()
    fill(jay, 70)
    jay.store("poison in the well")

    result = open_engine(Picky()).upkeep.reembed()

    assert (result.memories, result.failed) == (70, 1)
    assert open_engine(Picky()).search("well").hits[0].memory.content == "poison in the well"


def test_two_at_once_do_not_work_against_each_other(open_engine, monkeypatch):
    monkeypatch.setattr(tasks, "PATIENCE_SECONDS", 0.3)
    fill(open_engine(), 10)
    jay = open_engine(Wider())
    patience = monotonic() + 60  # the first engine may just be looking whether anything waits
    while not jay.records.upkeep.lease("embedding", holder="another", seconds=60):
        assert monotonic() < patience
        sleep(0.05)

    with pytest.raises(Locked):
        jay.upkeep.reembed()


def test_killed_at_any_moment_it_goes_on(tmp_path):
    path = tmp_path / "memories.db"
    with engine_on(SqliteStore(path), HashingEmbedder()) as jay:
        jay.store_many({"content": f"fact {number}"} for number in range(400))
    with Child("reembed", path) as child:
        for _ in range(2):
            assert child.hear()["done"] > 0
        child.kill()
        child.process.wait()
    end_leases(path)

    with closing(SqliteStore(path)) as store:
        assert store.history.fact(OWN_MODEL).startswith("becoming ")
    with Child("reembed", path) as child:
        told = child.rest()
        assert child.process.wait() == 0, child.errors.decode()

    assert told[-1]["finished"] <= 400 - 2 * 64 + 64
    with engine_on(SqliteStore(path), Wider()) as jay:
        assert jay.upkeep.check().with_vectors == 400
        assert dimensions(jay) == {768}
        assert [hit.memory.content for hit in jay.search("fact 7", limit=1)] == ["fact 7"]


@pytest.mark.parametrize("written", [float("nan"), float("inf"), 3e38])
@pytest.mark.parametrize("model", ["", "further-1"])
@pytest.mark.parametrize("repair", ["reembed", "rebuild"])
def test_a_vector_that_is_not_made_of_numbers_is_found_by_words_and_replaced(tmp_path, written, model, repair):
    """As it may be written by hand, or was by a program that did not look."""
    import numpy as np

    with closing(SqliteStore(tmp_path / "memory.db")) as store, closing(engine_on(store, HashingEmbedder())) as jay:
        poisoned, *others = [jay.store(f"fact {number} about harbours").memory for number in range(12)]
        numbers = np.full(HashingEmbedder.dimension, written, np.float32).tobytes()
        with store._changing() as tx:
            seq = next(tx._con.execute("SELECT seq FROM memories WHERE id = ?", (poisoned.id,)))[0]
            if not model:
                tx._con.execute("UPDATE vectors SET vector = ? WHERE memory = ?", (numbers, seq))
            else:
                tx._con.execute(
                    "INSERT INTO vectors (memory, part, model, vector) VALUES (?, 0, ?, ?)", (seq, model, numbers)
                )
            tx._con.execute("UPDATE counters SET change = change + 1")
            tx._con.execute("UPDATE memories SET change = (SELECT change FROM counters)")
    with closing(SqliteStore(tmp_path / "memory.db")) as store, closing(engine_on(store, HashingEmbedder())) as jay:
        hits = jay.search("fact about harbours", limit=20)
        assert all(0 <= hit.score <= 1 for hit in hits)
        assert {hit.memory.id for hit in hits} == {poisoned.id, *(one.id for one in others)}
        jay.store("fact 13 about harbours")
        assert store.check().unusable_vectors == 1
        assert store.check().with_vectors == (13 if model else 12)

        assert getattr(jay.upkeep, repair)() is None or repair == "reembed"

        assert (store.check().unusable_vectors, store.check().with_vectors) == (0, 13)
