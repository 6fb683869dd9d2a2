import itertools
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from scrubjay.embedders import catalogue
from scrubjay.embedders.local import LocalEmbedder, normalise_vector, pool_rows
from scrubjay.embedders.wordpiece import WordPiece
from scrubjay.errors import EmbeddingError, ModelMissing
from scrubjay.settings import load
from tests.embedders.embedder_contract import FILLER, EmbedderContract

pytestmark = pytest.mark.process

ARCTIC = catalogue.find("arctic-embed-s")

# Each question shares few words with its answer, and its neighbours are about the same people and things.
ANSWERS = {
    "Where does Jonas live now?": "Jonas: we finally unpacked the last box in the flat in Utrecht.",
    "What job does Jonas have?": "Jonas: another night shift on the cardiac ward, my feet are killing me.",
    "Does Jonas have any pets?": "Jonas: Pepper chewed through the lead again, that puppy is a menace.",
    "What can't Petra eat?": "Petra: one bite of that cashew curry and I was in the emergency room.",
    "How does Petra get to work?": "Petra: the tram was late, so I missed the stand-up.",
    "Which instrument is Petra learning?": "Petra: my cello teacher says I should hold the bow lower.",
    "When is the release planned?": "We ship version four on the second Tuesday of October.",
    "Which database was chosen?": "After the benchmarks the team settled on PostgreSQL.",
    "Why did the build break?": "The pipeline failed because the certificate had expired overnight.",
    "What is Petra's favourite food?": "Petra: nothing beats my grandmother's mushroom dumplings.",
    "Where did Jonas go on holiday?": "Jonas: two weeks of hiking in the Dolomites, I am a new man.",
    "How old is Jonas?": "Jonas: I blew out thirty-four candles yesterday.",
}


@pytest.fixture
def homeless(tmp_path):
    """An embedder whose model is not on this machine."""
    return LocalEmbedder(ARCTIC, tmp_path)


@pytest.fixture(scope="module")
def vocabulary(models):
    return WordPiece(models / ARCTIC.name / "vocab.txt")


class TestLocalEmbedder(EmbedderContract):
    @pytest.fixture
    def embedder(self, arctic):
        return arctic

    @pytest.fixture
    def another(self, models):
        return LocalEmbedder(ARCTIC, models)


# --- Without a usable model -----------------------------------------------------------------------------------------


def test_a_missing_model_says_how_to_get_it(homeless, tmp_path):
    for attempt in (homeless.load, lambda: homeless.embed(["a", "b"]), lambda: homeless.embed_query("a")):
        with pytest.raises(ModelMissing) as missing:
            attempt()

        assert "vocab.txt is missing." in missing.value.message
        assert "scrubjay model pull" in missing.value.message
        assert str(tmp_path) not in missing.value.message


def test_a_model_that_arrives_later_is_used(homeless, tmp_path, models):
    with pytest.raises(ModelMissing):
        homeless.embed_query("a")
    (tmp_path / ARCTIC.name).symlink_to(models / ARCTIC.name)

    assert homeless.embed_query("a").shape == (384,)


def test_a_file_that_is_not_the_published_one_is_never_used(homeless, tmp_path, models):
    """Its vectors would lie under the right fingerprint."""
    (tmp_path / ARCTIC.name).mkdir()
    (tmp_path / ARCTIC.name / "vocab.txt").symlink_to(models / ARCTIC.name / "vocab.txt")
    (tmp_path / ARCTIC.name / ARCTIC.network).write_bytes(b"something else")

    with pytest.raises(ModelMissing, match=ARCTIC.network):
        homeless.embed_query("a")


def test_a_network_that_cannot_be_read_is_our_error(tmp_path, models):
    (tmp_path / "model.onnx").write_bytes(b"no network at all")
    (tmp_path / "vocab.txt").symlink_to(models / ARCTIC.name / "vocab.txt")
    embedder = LocalEmbedder(catalogue.find(f"folder:{tmp_path}"), tmp_path)

    with pytest.raises(EmbeddingError) as failed:
        embedder.embed(["a"])

    assert str(tmp_path) not in failed.value.message


def test_a_folder_with_a_foreign_vocabulary_still_splits_but_does_not_embed(tmp_path, models):
    (tmp_path / "model.onnx").symlink_to(models / ARCTIC.name / ARCTIC.network)
    (tmp_path / "vocab.txt").write_text("just\nwords\n")
    embedder = LocalEmbedder(catalogue.find(f"folder:{tmp_path}"), tmp_path)

    assert len(embedder.split(FILLER * 20)) > 1
    with pytest.raises(EmbeddingError, match="vocabulary"):
        embedder.embed(["a"])


@pytest.mark.parametrize(
    "numbers",
    [[1, np.nan, 0], [1, np.inf, 0], [-np.inf, np.inf, 0], [0, 0, 0], [1, 0], [1, 0, 0, 0], [[1, 0, 0]], []],
    ids=str,
)
def test_numbers_that_are_no_direction_are_refused(numbers):
    with pytest.raises(EmbeddingError):
        normalise_vector(np.array(numbers, dtype=np.float32), 3)


@pytest.mark.parametrize("numbers", [[3, 4, 0], [1e30, 1e30, 0], [1e-30, 0, 0]], ids=str)
def test_numbers_large_and_small_are_brought_to_length_one(numbers):
    vector = normalise_vector(np.array(numbers, dtype=np.float32), 3)

    assert np.linalg.norm(vector) == pytest.approx(1)


def test_name_fingerprint_and_dimension_need_no_files(homeless, arctic):
    assert (homeless.name, homeless.dimension) == ("arctic-embed-s", 384)
    assert homeless.fingerprint == arctic.fingerprint


def test_making_an_embedder_loads_no_runtime():
    program = (
        "import sys, pathlib\n"
        "from scrubjay.embedders import catalogue, local\n"
        "local.LocalEmbedder(catalogue.find('arctic-embed-s'), pathlib.Path('nowhere')).split('short')\n"
        "print(sorted({'onnxruntime', 'urllib.request', 'subprocess'} & set(sys.modules)))"
    )

    elsewhere = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert elsewhere.stdout.strip() == "[]"


# --- Meaning --------------------------------------------------------------------------------------------------------


def test_a_question_is_embedded_with_the_published_prefix_and_a_stored_text_without(arctic):
    """Without it recall@10 on real conversations falls from 72 to 42, and nothing else would tell."""
    question = "Where does Jonas live now?"
    [spelt_out] = arctic.embed([f"Represent this sentence for searching relevant passages: {question}"])

    assert np.array_equal(arctic.embed_query(question), spelt_out)


def test_the_query_prefix_sets_answers_further_apart_from_their_neighbours(arctic):
    """On average over a dozen questions; too few to count who comes first (9 with the prefix, 10 without)."""
    answers = np.array(arctic.embed(list(ANSWERS.values())))
    own = np.eye(len(ANSWERS), dtype=bool)

    def mean_margin(questions):
        cosines = np.array(questions) @ answers.T
        return (cosines[own] - np.where(own, -1, cosines).max(axis=1)).mean()

    with_prefix = mean_margin([arctic.embed_query(question) for question in ANSWERS])

    assert with_prefix > mean_margin(arctic.embed(list(ANSWERS)))


def test_a_question_and_a_stored_text_of_the_same_words_differ(arctic):
    [text] = arctic.embed(["Where does Jonas live?"])

    assert text @ arctic.embed_query("Where does Jonas live?") < 0.99


def test_unrelated_texts_are_shown_near_0_and_answers_clearly_above(arctic):
    answers = np.array(arctic.embed(list(ANSWERS.values())))
    question = arctic.embed_query("Which database was chosen?")
    shown = [arctic.calibrate(float(cosine)) for cosine in answers @ question]

    assert max(shown) == shown[list(ANSWERS).index("Which database was chosen?")] > 0.35
    assert np.median(shown) < 0.1


@pytest.mark.parametrize(
    ("cosine", "low", "high"),
    [(-1, 0, 0), (0.43, 0, 0.1), (0.53, 0, 0.1), (0.60, 0.35, 0.5), (0.75, 0.85, 0.95), (1, 1, 1)],
)
def test_the_default_models_cosines_are_spread_over_the_scale(homeless, cosine, low, high):
    assert low <= homeless.calibrate(cosine) <= high


def test_a_query_past_the_window_is_cut(arctic):
    long = "Where does Jonas live? " * 500

    assert np.array_equal(arctic.embed_query(long), arctic.embed_query(long + "And who is Petra?"))


def test_many_threads_load_the_model_once(models):
    embedder = LocalEmbedder(ARCTIC, models)
    said = []

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: embedder.load(said.append), range(8)))

    assert said == ["Loading arctic-embed-s."]


def test_a_folder_of_ones_own_gives_what_its_model_gives(tmp_path, models, arctic):
    (tmp_path / "model.onnx").symlink_to(models / ARCTIC.name / ARCTIC.network)
    (tmp_path / "vocab.txt").symlink_to(models / ARCTIC.name / "vocab.txt")
    (tmp_path / "model.toml").write_text(f"pooling = 'cls'\nquery_prefix = {ARCTIC.query_prefix!r}\n")
    own = LocalEmbedder(catalogue.find(f"folder:{tmp_path}"), models)

    assert np.array_equal(own.embed_query("Mira"), arctic.embed_query("Mira"))
    assert own.fingerprint != arctic.fingerprint


def test_pooling_takes_the_first_row_the_mean_or_what_the_network_pooled():
    hidden = np.array([[[1, 2], [3, 4]]], dtype=np.float32)

    assert pool_rows(hidden, "cls").tolist() == [1, 2]
    assert pool_rows(hidden, "mean").tolist() == [2, 3]
    assert pool_rows(hidden[:, 0], "mean").tolist() == [1, 2]


# --- Parts ----------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    unit=st.text(min_size=1, max_size=30),
    text=st.lists(st.text(max_size=40), max_size=8),
    times=st.integers(min_value=100, max_value=900),
)
@example(unit="한국어", text=[], times=900)
@example(unit="世", text=["."], times=900)
@example(unit="$", text=[], times=900)
@example(unit="qzx", text=["a"], times=900)
def test_every_part_fits_the_window_with_or_without_a_vocabulary(
    tmp_path_factory, arctic, vocabulary, unit, text, times
):
    """Otherwise its end would be cut off in silence."""
    long = " ".join([unit * times, *text, f"{unit} " * times])
    homeless = LocalEmbedder(ARCTIC, tmp_path_factory.getbasetemp() / "nowhere")

    for part in [*arctic.split(long), *homeless.split(long)]:
        assert len(vocabulary(part)) <= 510


def test_every_sentence_is_whole_in_some_part(arctic):
    sentences = [
        f"In year {number} the guild of bell founders cast {number} bells for Saint Ann." for number in range(400)
    ]

    parts = arctic.split(" ".join(sentences))

    assert all(any(sentence in part for part in parts) for sentence in sentences)


def test_a_sentence_longer_than_a_part_is_cut_between_words_with_an_overlap(arctic):
    text = " ".join(f"word{number}" for number in range(1_000))

    parts = arctic.split(text)

    assert all(set(part.split()) <= set(text.split()) for part in parts)
    for one, following in itertools.pairwise(parts):
        assert following.split()[0] in one.split()[-32:]


def test_parts_are_not_needlessly_small(arctic, vocabulary):
    sizes = [len(vocabulary(part)) for part in arctic.split(FILLER * 100)]

    assert min(sizes[:-1]) > 400


@pytest.mark.timeout(120)
@pytest.mark.parametrize("text", ["a\0 ", ". ", '."', "\n", "\0 "], ids=ascii)
def test_splitting_hostile_text_takes_linear_time(homeless, text):
    assert homeless.split(text * 200_000)


REPORTS = """
import os, sys
from pathlib import Path
from scrubjay.embedders.catalogue import find
from scrubjay.embedders.local import LocalEmbedder

LocalEmbedder(find("arctic-embed-s"), Path(sys.argv[1])).embed(["User lives in Bergen"])
assert "onnxruntime" in sys.modules
"""


def test_the_library_that_runs_the_model_leaves_no_identity_and_reports_nothing(arctic, tmp_path):
    """Its official builds write an id of the machine into the user's cache, and what they would report beside it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "ORT_"))}
    environment["HOME"] = str(tmp_path)
    subprocess.run([sys.executable, "-c", REPORTS, str(load().models)], env=environment, check=True)
    assert list(tmp_path.rglob("*")) == []
