"""A further model reads other languages. Its vectors stand beside the store's own; without it everything else works."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.engine import Engine
from scrubjay.engine.parts import engine_on
from scrubjay.engine.store.enrichment import auto_tags
from scrubjay.engine.store.models import FurtherModel, models_of
from scrubjay.engine.sync import wire
from scrubjay.engine.sync.local import StorePeer
from scrubjay.engine.sync.merge import WinnerPolicy
from scrubjay.engine.sync.peer import TakeOptions
from scrubjay.errors import ModelMissing
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.text.languages import in_another_language
from scrubjay.values.search import Match
from scrubjay.values.times import utc_now
from tests.engine import columns

GERMAN = "Der Nutzer wohnt seit März in Augsburg und arbeitet dort."


class Other(HashingEmbedder):
    """Another embedder than the store's own: vectors of the two must not be compared."""

    name = "other"

    @property
    def fingerprint(self) -> str:
        return "other-1"

    def embed_query(self, text):
        return -super().embed_query(text)


class Missing(Other):
    def load(self, progress=None):
        raise ModelMissing("The model is not installed.")

    def embed_query(self, text):
        raise ModelMissing("The model is not installed.")


def open_with(path: Path, *further: HashingEmbedder, always: bool = False) -> Engine:
    models = [FurtherModel(embedder=one, always=always) for one in further]
    return engine_on(SqliteStore(path), HashingEmbedder(), wait_seconds=60, further=models)


def fill(engine: Engine) -> None:
    for model in engine.parts.models.each:
        engine.parts.backlog.fill(model)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memories.db"


@pytest.fixture
def engine(path: Path) -> Iterator[Engine]:
    with open_with(path, Other()) as engine:
        yield engine


def lacking(engine: Engine) -> int:
    return engine.records.upkeep.count_lacking("other-1")


# --- which texts are in another language ---


@pytest.mark.parametrize(
    "text",
    [
        GERMAN,
        "Nous avons déménagé à Lyon pour être plus près de la famille.",
        "El equipo usa Postgres para las colas y no Redis.",
        "用户叫沈嘉禾，在成都做室内设计师。",
        "공방은 월요일에 쉰다.",
        "Мастерская теперь открыта по вторникам.",
        "يعمل المستخدم في دبي.",
        "मेरी बहन दिल्ली में रहती है।",
        "本番環境のポートは5000番です。",
    ],
)
def test_another_language_is_told_by_letters_or_small_words(text):
    assert in_another_language(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1234",
        "User lives in Rio de la Plata with Ludwig van der Rohe.",
        "Rio de la Plata",
        "Café Zürich serves crème brûlée on Sundays.",
        "The greeting 你好 is on the door of the office in Taipei.",
        "Rate limit /v1/readings: 60 requests per minute per key.",
        "def main() -> None: print('und')",
        "α = 0.05 is the level that we use",
    ],
)
def test_names_loan_words_and_code_are_not_another_language(text):
    assert not in_another_language(text)


@pytest.mark.parametrize(
    "text", [GERMAN, "Мастерская теперь открыта по вторникам.", "يعمل المستخدم في دبي ويفضل القهوة."]
)
def test_no_phrases_are_made_of_small_words_that_are_not_known(text):
    assert auto_tags(text) == ()


# --- when it is used ---


def test_english_texts_alone_get_no_further_vectors(engine):
    engine.store("The user lives in Augsburg.")

    assert models_of(engine.records) == []
    assert lacking(engine) == 1
    assert engine.search("Where does the user live?").degraded is None


def test_the_first_text_in_another_language_lets_all_texts_have_them(engine):
    engine.store("The user lives in Augsburg.")
    engine.store(GERMAN)
    engine.store("The user plays the cello.")
    fill(engine)

    assert models_of(engine.records) == ["other-1"]
    assert lacking(engine) == 0


def test_a_text_has_them_when_it_is_stored(engine):
    engine.store(GERMAN)
    engine.store("The user plays the cello.")
    changed = engine.store("The user has a cat.").memory
    engine.update(changed.id, content="The user has a dog.")
    engine.store_many([{"content": "The dog is called Biscuit."}])

    assert lacking(engine) == 0


def test_always_on_does_not_wait_for_another_language(path):
    with open_with(path, Other(), always=True) as engine:
        engine.store("The user lives in Augsburg.")

        assert lacking(engine) == 0


def test_a_long_text_gets_them_in_the_background(engine):
    engine.store(GERMAN + " " + "Das ist ein langer Text, und er hat viele Wörter. " * 200)
    fill(engine)

    assert lacking(engine) == 0


def test_another_process_goes_on_with_it(path):
    """Once one process has seen another language, all of them use the model."""
    with open_with(path, Other()) as first, open_with(path, Other()) as other:
        other.search("anything")
        first.store(GERMAN)
        other.parts.models.each[0]._look_at = 0.0
        other.store("The user plays the cello.")

        assert lacking(first) == 0


class Third(Other):
    @property
    def fingerprint(self) -> str:
        return "third-1"


@pytest.mark.parametrize("always", [False, True])
def test_the_store_says_which_further_models_it_has_vectors_of(path, always):
    with open_with(path, Other(), always=always) as engine:
        engine.store("The user lives in Augsburg." if always else GERMAN)
    for model in (Other(), Third()):
        with open_with(path, model, always=always) as engine:
            fill(engine)

            assert models_of(engine.records) == [model.fingerprint]
            assert engine.records.upkeep.count_lacking(model.fingerprint) == 0


def test_a_third_model_is_one_more_entry(path):
    with open_with(path, Other(), Third()) as engine:
        engine.store("The user lives in Augsburg.")
        engine.store(GERMAN)
        fill(engine)

        assert sorted(models_of(engine.records)) == ["other-1", "third-1"]
        assert [engine.records.upkeep.count_lacking(model) for model in models_of(engine.records)] == [0, 0]
        assert engine.search("Wo wohnt der Nutzer und seit wann?").hits[0].memory.content == GERMAN
        assert engine.upkeep.reembed().further == 0
    with open_with(path, Other()) as engine:  # one entry less
        fill(engine)

        assert models_of(engine.records) == ["other-1"]
        assert engine.records.upkeep.count_lacking("third-1") == 2


# --- without it ---


def test_without_the_model_texts_are_stored_and_found_and_wait(path):
    with open_with(path, Missing()) as engine:
        stored = engine.store(GERMAN)
        found = engine.search("Wo wohnt der Nutzer und seit wann?")

        assert stored.degraded is None
        assert [hit.memory.id for hit in found] == [stored.memory.id]
        assert "other languages" in str(found.degraded)
        assert engine.search("user Augsburg").degraded is None
        assert lacking(engine) == 1
    with open_with(path, Other()) as engine:
        fill(engine)

        assert lacking(engine) == 0


def test_reembed_fills_in_what_is_missing(path):
    with open_with(path) as engine:
        engine.store(GERMAN)
        engine.store("The user plays the cello.")
    with open_with(path, Other()) as engine:
        assert engine.upkeep.reembed().further == 2
        assert engine.upkeep.reembed().further == 0
        assert lacking(engine) == 0


def test_reembed_says_that_the_model_is_not_there(path):
    with open_with(path, Missing()) as engine:
        engine.store(GERMAN)

        assert engine.upkeep.reembed().further is None


def test_a_backup_holds_them(engine, tmp_path):
    engine.store(GERMAN)
    engine.records.backup(tmp_path / "copy.db")

    with closing(SqliteStore(tmp_path / "copy.db")) as copy:
        assert copy.upkeep.count_lacking("other-1") == 0


def test_a_sync_carries_them(path, tmp_path):
    with open_with(path, Other()) as here, closing(SqliteStore(tmp_path / "drive.db")) as drive:
        here.store(GERMAN)
        memory = here.store("The user plays the cello.").memory
        there = StorePeer(drive, now=utc_now, user="local", owned=False)
        ours = StorePeer(here.records, now=utc_now, user="local", owned=False)
        parcel = ours.parcel([hit.memory.id for hit in here.search("user Nutzer", limit=9)], vectors=True)
        there.take(
            wire.read(wire.write_value(parcel)), TakeOptions(sender="here", policy=WinnerPolicy.NEWEST, named="newest")
        )

        assert memory.id in {one.memory.id for one in parcel.replicas}
        assert models_of(drive) == ["other-1"]
        assert drive.upkeep.count_lacking("other-1") == 0


# --- what it says ---


def test_both_similarities_are_added_and_a_missing_one_is_left_out():
    near = [Match("a", 0.6), Match("b", 0.6), Match("c", 0.6)]

    found = columns.fuse((), near, {}, ({"a": 0.9, "b": 0.3}, 0.5))

    assert {one.memory: round(one.similarity, 2) for one in found} == {"a": 0.75, "c": 0.6, "b": 0.45}


def test_what_only_the_further_model_finds_is_a_candidate(engine):
    """More than DEPTH memories are nearer to the store's own model."""
    wanted = engine.store(GERMAN).memory
    found = engine.search(GERMAN)

    assert found.hits[0].memory.id == wanted.id
    assert found.hits[0].score > 0.5
