"""What every embedder promises, as tests: subclass, and give the fixture `embedder`."""

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

ODD_TEXTS = [
    "",
    " \n\t ",
    "\0",
    "\ud800 half a character",
    "日本語のテキスト、そして中文。",
    "한국어 문장",
    "👩‍👩‍👧‍👦 family 🏳️‍🌈",
    "e" + "\u0301" * 5_000,
    "a" * 50_000,
    "[CLS] [SEP] [UNK]",
    "العربية \u200fright to left",
]

FILLER = (
    "The committee met in the old hall and went through the list of repairs. "
    "Nobody minded the rain, for the roof had been mended in spring. "
)
FACT = "The password hint for Ottilie's greenhouse is the colour of her first bicycle."
QUESTION = "What is the password hint for Ottilie's greenhouse?"


class EmbedderContract:
    @pytest.mark.parametrize("text", ODD_TEXTS, ids=lambda text: ascii(text[:12]))
    def test_odd_texts_get_unit_vectors_of_the_promised_dimension(self, embedder, text):
        for vector in [*embedder.embed([text]), embedder.embed_query(text)]:
            assert vector.shape == (embedder.dimension,)
            assert vector.dtype == np.float32
            assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)

    def test_no_texts_give_no_vectors(self, embedder):
        assert embedder.embed([]) == []

    def test_a_text_has_the_same_vector_whatever_its_neighbours(self, embedder):
        texts = ["Mira lives in Lisbon.", "Word " * 200, "Ted sold his boat.", ""]

        together = embedder.embed(texts)
        alone = [embedder.embed([text])[0] for text in texts]

        for one, other in zip(together, alone, strict=True):
            assert np.array_equal(one, other)

    def test_threads_do_not_disturb_each_other(self, embedder):
        texts = [f"Mira has {number} cats." for number in range(20)]
        expected = [embedder.embed_query(text) for text in texts]

        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(embedder.embed_query, texts))

        assert all(np.array_equal(one, other) for one, other in zip(expected, found, strict=True))

    def test_a_short_text_is_one_part_unchanged(self, embedder):
        assert embedder.split("  Mira lives in Lisbon.\n") == ["  Mira lives in Lisbon.\n"]

    def test_an_empty_text_is_one_part(self, embedder):
        assert embedder.split("") == [""]

    @pytest.mark.parametrize(
        "text",
        [FILLER * 300, "x" * 9_000, "世界" * 3_000, "한국어" * 2_000, "!" * 3_000, "\n" * 3_000, "a\0 " * 3_000],
        ids=["prose", "one word", "ideographs", "syllables", "punctuation", "empty lines", "control characters"],
    )
    def test_parts_cover_every_character(self, embedder, text):
        numbered = embedder.split(text)

        reached = 0
        for part in numbered:
            start = max(place for place in range(reached + 1) if text.startswith(part, place))
            reached = start + len(part)

        assert reached == len(text)

    def test_a_fact_at_the_end_of_a_long_text_is_nearest_to_its_question(self, embedder):
        """The last sentence of 50,000 characters is embedded like any other."""
        text = (FILLER * 400)[:50_000] + " " + FACT
        question = embedder.embed_query(QUESTION)

        parts = embedder.split(text)
        *others, last = embedder.embed([*dict.fromkeys(parts[:-1][-3:]), parts[-1]])

        assert FACT in parts[-1]
        assert all(question @ last > question @ other for other in others)

    def test_calibrated_values_lie_between_0_and_1_and_never_fall(self, embedder):
        values = [embedder.calibrate(cosine / 100) for cosine in range(-100, 101)]

        assert all(0 <= value <= 1 for value in values)
        assert all(lower <= higher for lower, higher in itertools.pairwise(values))

    def test_loading_twice_and_closing_twice_is_not_an_error(self, another):
        another.load()
        another.load()
        another.close()
        another.close()

    def test_two_instances_have_one_fingerprint_and_the_same_vectors(self, embedder, another):
        assert embedder.fingerprint == another.fingerprint
        assert np.array_equal(embedder.embed_query("Mira"), another.embed_query("Mira"))
