"""A memory that has no vector yet competes by its words, on equal terms with those that have one."""

from __future__ import annotations

import pytest

from scrubjay.values.search import Query, Verdict
from tests.conftest import Shared

BOTH = pytest.mark.parametrize("open_store", ["sqlite", "postgres"], indirect=True)
OLD, NEW = range(300), range(16_000, 16_300)


def crates(numbers):
    return [{"content": f"Crate {number} stands on shelf {number * 7 % 100}"} for number in numbers]


@pytest.fixture(params=["hashing", pytest.param("model", marks=pytest.mark.model)])
def half_embedded(request, open_engine):
    """A store of which the newer half waits for its vectors, as after `import --embed later`."""
    embedder = "hashing" if request.param == "hashing" else Shared(request.getfixturevalue("model"))
    jay = open_engine(embedder)
    jay.store_many(crates(OLD))
    open_engine(None).store_many(crates(NEW))
    return jay


@BOTH
def test_a_memory_without_a_vector_is_found_by_its_words_among_those_that_have_one(half_embedded):
    found = half_embedded.search("crate 16042", limit=5)

    by_words = half_embedded.search(Query(text="crate 16042", limit=5, words_only=True))

    assert found.hits[0].memory.content.startswith("Crate 16042 ")
    assert found.hits[0].memory.id == by_words.hits[0].memory.id
    assert found.verdict is by_words.verdict is Verdict.STRONG
    assert found.partly, "that most of them wait is still said"


@BOTH
def test_it_does_not_push_out_one_with_a_vector_that_holds_the_same_words(half_embedded):
    """Three that wait stand on shelf 42, and so do three with vectors."""
    found = half_embedded.search("crate 42", limit=5)

    assert "Crate 42" in {hit.memory.content.partition(" stands")[0] for hit in found}
