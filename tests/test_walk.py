"""What one call does to get its answer, traced in real calls: `python -m bench.walk` prints it."""

from __future__ import annotations

import pytest
from bench import walk

pytestmark = pytest.mark.process

MOST_SEARCH, MOST_STORE, MOST_STDIO = 22, 30, 38  # files
MOST_REENTRIES = 15


@pytest.fixture(scope="module")
def library():
    return walk.library()


@pytest.fixture(scope="module")
def stdio():
    return walk.stdio()


@pytest.mark.parametrize("call", ["store", "store in a conversation", "search"])
def test_a_call_reads_through_one_connection(library, call):
    assert library[call].readers == 1


def test_a_store_is_one_transaction(library):
    assert library["store"].writes == 1


def test_a_search_never_writes(library):
    assert library["search"].writes == 0


def test_a_call_over_stdio_is_bound_once_and_reads_through_one_connection(stdio):
    assert (stdio.bound, stdio.readers, stdio.writes) == (1, 1, 1)


def test_calls_do_not_grow_longer(library, stdio):
    """If one does: merge modules that are one idea, or skip a step that has nothing to do."""
    assert len(library["search"].files) <= MOST_SEARCH
    assert len(library["store"].files) <= MOST_STORE
    assert len(stdio.files) <= MOST_STDIO


def test_a_call_reads_downwards(library, stdio):
    """It hardly ever comes back to a file that waits for it."""
    assert max(walk.reentries for walk in (*library.values(), stdio)) <= MOST_REENTRIES
