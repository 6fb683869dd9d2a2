"""Vectors in half the bytes: what is lost, that it is lost only once, and files in which an earlier version wrote them
whole."""

from __future__ import annotations

import numpy as np
import pytest

from scrubjay.embedders.base import Vector
from scrubjay.errors import EmbeddingError
from scrubjay.stores.sqlite.filters import sizes_of
from scrubjay.stores.sqlite.vectors import from_blob, matrix, shorten, to_blob
from tests.stores.contract.samples import CLOSE, DIMENSION, unit

# --- the form --------------------------------------------------------------------------------------------------------


def random_vectors(dimension: int, count: int) -> Vector:
    chance = np.random.default_rng(dimension)
    size = np.float32(10) ** chance.integers(-30, 14, (count, 1)).astype(np.float32)
    return size * chance.standard_normal((count, dimension)).astype(np.float32)


@pytest.mark.parametrize("dimension", [1, 16, 384, 1_024])
def test_what_was_read_is_written_as_the_same_bytes(dimension: int) -> None:
    """So nothing is lost a second time, however often a vector goes from one store to another."""
    for vector in random_vectors(dimension, 3_000):
        blob = to_blob(vector)

        assert to_blob(from_blob(blob)) == blob
        assert len(blob) == 2 * dimension + 5


def test_a_scale_that_rounding_would_move_is_not_moved_a_second_time() -> None:
    """The largest number divided by 32767 and multiplied by it again is another number for these."""
    for fraction in range(2**23 + 2**14, 2**24, 2**15):
        largest = np.float32(fraction * 2.0**-24) * np.float32(32_767)
        vector = np.array([largest, -largest / 3], np.float32)

        assert to_blob(from_blob(to_blob(vector))) == to_blob(vector)


def test_each_number_is_off_by_half_a_step_at_most() -> None:
    for vector in random_vectors(384, 200):
        step = np.abs(vector).max() / 32_767

        assert np.abs(from_blob(to_blob(vector)) - vector).max() <= 0.503 * step  # and what float32 rounds away


def test_the_cosine_of_two_texts_is_kept_to_a_hundred_thousandth() -> None:
    vectors = np.random.default_rng(1).standard_normal((400, 384)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    kept = matrix([to_blob(vector) for vector in vectors], 384)

    assert np.abs(kept @ vectors.T - vectors @ vectors.T).max() < 1e-5


@pytest.mark.parametrize("numbers", [[0.0] * 5, [-0.0, 0.0], [1e-40, -1e-44], []])
def test_nothing_stays_nothing(numbers: list[float]) -> None:
    assert from_blob(to_blob(np.array(numbers, np.float32))).tolist() == [0.0] * len(numbers)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, 1e15])
def test_what_is_not_a_number_is_refused(number: float) -> None:
    with pytest.raises(EmbeddingError):
        to_blob(np.array([0.5, number], np.float32))


def test_the_two_forms_are_told_by_their_lengths_whatever_the_dimension() -> None:
    short, whole = zip(*(sizes_of(dimension) for dimension in range(1, 5_000)), strict=True)

    assert not set(short) & set(whole)


def test_vectors_of_both_forms_are_read_together() -> None:
    vectors = [unit(number) for number in range(6)]
    blobs = [to_blob(one) if place % 2 else one.tobytes() for place, one in enumerate(vectors)]

    np.testing.assert_allclose(matrix(blobs, DIMENSION), vectors, atol=CLOSE)


def test_an_unusable_vector_is_like_nothing_in_either_form() -> None:
    for number in (np.nan, np.inf, 3e38):
        whole = np.full(DIMENSION, number, np.float32).tobytes()

        assert matrix([whole], DIMENSION).tolist() == matrix([shorten(whole)], DIMENSION).tolist() == [[0.0] * 16]
