"""The second model reads a hundred languages; its network is built here from the published weights."""

import struct

import numpy as np
import pytest

import scrubjay
from scrubjay.embedders.catalogue import find
from scrubjay.embedders.e5 import BLOCK, E5File, encoder, repack
from scrubjay.embedders.local import LocalEmbedder
from scrubjay.embedders.networks import open_network
from scrubjay.errors import EmbeddingError
from tests.embedders.embedder_contract import EmbedderContract

pytestmark = pytest.mark.model

E5 = find("multilingual-e5-small")

# What ten memories say, and a question about each in another language.
MEMORIES = {
    "We moved to Porto in March.": "Wo wohnen wir jetzt?",
    "Yuki is allergic to peanuts.": "ユキさんが食べてはいけないものは？",
    "The backup runs every night at three.": "À quelle heure se fait la sauvegarde ?",
    "Our daughter started playing the violin.": "¿Qué instrumento toca la niña?",
    "The car failed its inspection because of the brakes.": "차가 검사에서 떨어진 이유가 뭐야?",
    "Payments are handled by Adyen.": "我们用哪家公司处理付款？",
    "The dog's name is Biscuit.": "Как зовут собаку?",
    "Reports are due on the last Friday of the month.": "Bis wann müssen die Berichte abgegeben werden?",
    "Grandma takes her pills after breakfast.": "Quando a avó toma os remédios?",
    "The spare key hangs in the garage.": "Var finns reservnyckeln?",
}


class TestMultilingualEmbedder(EmbedderContract):
    @pytest.fixture
    def embedder(self, multilingual):
        return multilingual

    @pytest.fixture
    def another(self, models, multilingual):
        return LocalEmbedder(E5, models)


def test_questions_find_what_was_said_in_another_language(multilingual):
    texts = np.array(multilingual.embed(list(MEMORIES)))

    found = [int(np.argmax(texts @ multilingual.embed_query(question))) for question in MEMORIES.values()]

    assert sum(place == number for number, place in enumerate(found)) >= 7


def test_a_search_finds_what_was_said_in_another_language(multilingual, tmp_path):
    with scrubjay.open(tmp_path / "memories.db", embedder=multilingual) as jay:
        jay.store_many({"content": text} for text in MEMORIES)
        found = {text: [hit.memory.content for hit in jay.search(question)] for text, question in MEMORIES.items()}

    assert sum(hits[:1] == [text] for text, hits in found.items()) >= 6


def test_answers_are_calibrated_above_other_memories(multilingual):
    texts = np.array(multilingual.embed(list(MEMORIES)))
    shown = np.array(
        [[multilingual.calibrate(cosine) for cosine in texts @ multilingual.embed_query(q)] for q in MEMORIES.values()]
    )
    own = np.eye(len(MEMORIES), dtype=bool)

    assert np.median(shown[own]) > 2 * np.percentile(shown[~own], 75)


def test_repacked_weights_are_the_same_weights():
    chance = np.random.default_rng(5)
    weights, scales = chance.integers(0, 16, (3, 2, BLOCK), dtype=np.uint8), chance.random((3, 2)).astype(np.float16)
    halves = weights[:, :, :16] | weights[:, :, 16:] << np.uint8(4)
    blocks = np.concatenate([scales[:, :, None].view(np.uint8), halves], axis=2)

    packed, kept = repack(blocks)

    assert np.array_equal(packed & 15, weights[:, :, 0::2])
    assert np.array_equal(packed >> 4, weights[:, :, 1::2])
    assert np.array_equal(kept, scales.astype(np.float32).ravel())


def test_the_encoder_computes_what_the_weights_say(multilingual, models):
    """One layer by hand, in plain numpy, against the first layer of the network."""
    file = E5File(models / E5.name / E5.network)
    file.sizes = file.sizes._replace(layers=1)
    rows = np.random.default_rng(1).normal(size=(1, 7, file.sizes.width)).astype(np.float32)

    [hidden] = session_of(encoder(file)).run(None, {"tokens": rows})

    expected = one_layer(file, rows[0].astype(np.float64))
    cosines = (hidden[0] * expected).sum(1) / np.linalg.norm(hidden[0], axis=1) / np.linalg.norm(expected, axis=1)
    assert cosines.min() > 0.999


@pytest.mark.parametrize("content", [b"", b"E5S1", b"no weights at all", b"E5S1" + struct.pack("<I", 1) + b"\0" * 40])
def test_a_file_that_is_not_one_is_our_error(tmp_path, content):
    (tmp_path / "weights.bin").write_bytes(content)

    with pytest.raises(EmbeddingError):
        open_network(tmp_path / "weights.bin")


def test_a_file_that_is_cut_off_is_our_error(tmp_path, models, multilingual):
    whole = (models / E5.name / E5.network).read_bytes()
    for length in (5_000_000, len(whole) - 1):
        (tmp_path / f"{length}.bin").write_bytes(whole[:length])

        with pytest.raises(EmbeddingError):
            open_network(tmp_path / f"{length}.bin")


# --- the same in numpy -----------------------------------------------------------------------------------------------


def session_of(model):
    import onnxruntime

    return onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])


def one_layer(file, rows):
    width, heads = file.sizes.width, file.sizes.heads

    def weights(name, count, columns):
        blocks = file.blocks(f"l0.{name}.w", count, columns)
        scales = np.ascontiguousarray(blocks[:, :, :2]).view(np.float16).astype(np.float64)
        whole = np.concatenate([blocks[:, :, 2:] & 15, blocks[:, :, 2:] >> 4], axis=2).astype(np.float64) - 8
        return (whole * scales).reshape(count, columns), file.numbers(f"l0.{name}.b").astype(np.float64)

    def linear(x, name, count, columns):
        matrix, bias = weights(name, count, columns)
        return x @ matrix.T + bias

    def normal(x, name):
        centred = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + file.sizes.epsilon)
        return centred * file.numbers(f"{name}.w") + file.numbers(f"{name}.b")

    def erf(x):
        import math

        return np.vectorize(math.erf)(x)

    x = normal(rows, "emb.ln")
    q, k, v = (linear(x, name, width, width).reshape(len(x), heads, -1).transpose(1, 0, 2) for name in "qkv")
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(width // heads)
    shares = np.exp(scores - scores.max(2, keepdims=True))
    context = (shares / shares.sum(2, keepdims=True) @ v).transpose(1, 0, 2).reshape(len(x), width)
    x = normal(x + linear(context, "ao", width, width), "l0.aln")
    inner = linear(x, "fi", file.sizes.inner, width)
    inner = 0.5 * inner * (1 + erf(inner / np.sqrt(2)))
    return normal(x + linear(inner, "fo", width, file.sizes.inner), "l0.oln")
