"""The acceptance cases of sync_memories (S20, S21) once more, with the other store elsewhere: behind another scrubjay
on a real port, and in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.engine import Engine
from scrubjay.engine.parts import engine_on
from scrubjay.engine.sync.run import Keep
from tests.dialects.test_system import ok, refused
from tests.dialects.test_system_sync import (  # noqa: F401 -- the same cases
    both_changed,
    test_a_key_lets_a_sync_happen_once,
    test_a_sync_says_what_it_did,
    test_leaving_conflicts_between_two_other_stores_is_400,
    test_s20_a_dry_run_fills_the_same_fields_and_writes_nothing,
    test_s20_a_second_sync_while_one_runs_is_423,
    test_s20_in_the_background_the_job_is_told_at_once_and_followed,
    test_s20_manual_with_conflicts_is_409_listing_them,
    test_s21_merge_unites_tags_and_takes_the_higher_count,
    test_s21_the_named_side_wins,
    test_what_one_store_got_by_sync_is_recalled_there,
)
from tests.servers.sites import running
from tests.sync.lines import site_of

pytestmark = pytest.mark.process


@pytest.fixture(params=["http", pytest.param("postgres", marks=pytest.mark.postgres)])
def place(open_engine, clock, request) -> Iterator[tuple[Engine, str]]:
    """The other engine, and the address at which its store is synced with."""
    if request.param == "http":
        engine = open_engine("drive.db")
        with running(site_of(engine)) as address:
            yield engine, address
        return
    from scrubjay.stores.postgres.store import PostgresStore

    url = request.getfixturevalue("postgres_store")("cases")
    with closing(engine_on(PostgresStore(url), HashingEmbedder(), clock=clock)) as engine:
        yield engine, url


@pytest.fixture
def drive(place) -> Engine:
    return place[0]


@pytest.fixture
def jay(place, open_engine) -> Engine:
    engine = open_engine()
    engine.sync.add("drive", place[1])
    return engine


def test_what_was_left_to_somebody_is_decided_and_told(jay, drive, clock):
    memory = both_changed(jay, drive, clock)
    refused(jay, "sync_memories", {"destination": "drive", "conflict_resolution": "manual"})

    [conflict] = jay.sync.conflicts()
    jay.sync.resolve(conflict.number, Keep.OURS)
    clock.move(seconds=1)
    ok(jay, "sync_memories", {"destination": "drive"})

    assert drive.get(memory).content == "User lives in Rome"
    assert not jay.sync.conflicts()
