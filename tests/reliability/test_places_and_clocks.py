"""The same wherever and whenever it runs: time zones, code pages, clocks that stand still or go back."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from scrubjay.dialects.table import find
from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.parts import engine_on
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.values.search import Filter
from tests.reliability.processes import Child
from tests.reliability.rounds import short_and_long
from tests.reliability.wholeness import checked
from tests.servers.peer import Peer, environment

pytestmark = pytest.mark.process

ZONES = ["UTC", "Pacific/Kiritimati", "America/Los_Angeles"]  # 26 hours apart
CODE_PAGES = {
    "C and cp1252": {"LC_ALL": "C", "PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"},
    "POSIX, no coercion": {"LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
}
ODD_MOMENTS = {
    "leap day": datetime(2028, 2, 28, 22, 30, tzinfo=UTC),
    "day after": datetime(2028, 2, 29, 22, 30, tzinfo=UTC),
    "spring forward": datetime(2026, 3, 29, 0, 30, tzinfo=UTC),
    "fall back": datetime(2026, 10, 25, 0, 30, tzinfo=UTC),
    "new year": datetime(2026, 12, 31, 22, 30, tzinfo=UTC),
}
TEXT = "Grüße aus 東京 🦜 — “naïve” café\n\tعربي rendezvous"
TIME = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def scrubjay(home: Path, *arguments: str, input: str | None = None, **env: str) -> bytes:
    done = subprocess.run(
        [sys.executable, "-m", "scrubjay", *arguments],
        input=None if input is None else input.encode(),
        capture_output=True,
        env=environment(home, **env),
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


# --- places ----------------------------------------------------------------------------------------------------------


def test_the_library_gives_the_same_results_in_every_time_zone(tmp_path):
    said = []
    for zone in ZONES:
        with Child("live_through_a_day", tmp_path / zone / "memories.db", TZ=zone) as child:
            said.append(child.rest())
            child.end()

    assert said[0]
    assert said[1:] == said[:1] * 2


def test_the_command_line_reads_and_shows_the_same_times_in_every_time_zone(tmp_path):
    shown = []
    for zone in ZONES:
        home = tmp_path / zone
        scrubjay(home, "store", TEXT, "--expires", "2099-12-01", TZ=zone)
        scrubjay(home, "store", "later", "--expires", "2099-12-01T10:00:00-07:00", TZ=zone)
        listed = json.loads(scrubjay(home, "list", "--json", TZ=zone))
        shown.append(sorted((one["content"], one["expires_at"]) for one in found_in(listed)))
        assert all(TIME.fullmatch(one["created_at"]) for one in found_in(listed))

    assert shown[0] == [(TEXT, "2099-12-01T00:00:00.000Z"), ("later", "2099-12-01T17:00:00.000Z")]
    assert shown[1:] == shown[:1] * 2


def test_a_store_moves_between_time_zones_without_a_memory_expiring_early(tmp_path):
    """Twenty-six hours lie between the two clocks on the wall, and none between the moments."""
    scrubjay(tmp_path, "store", "short-lived", "--expires", "12h", TZ="America/Los_Angeles")

    listed = json.loads(scrubjay(tmp_path, "list", "--json", TZ="Pacific/Kiritimati"))

    assert [one["content"] for one in found_in(listed)] == ["short-lived"]


@pytest.mark.parametrize("start", ["2026-11-15T10:00:00Z", "2026-11-15T03:00:00-07:00", "2026-11-16T00:00:00+14:00"])
def test_a_filter_means_the_same_moment_in_every_notation(open_engine, clock, start):
    jay, system = open_engine(), find("system")
    noon = datetime(2026, 11, 15, 10, tzinfo=UTC)
    for name, at in (("before", noon - timedelta(seconds=1)), ("at", noon), ("after", noon + timedelta(hours=1))):
        clock.move(seconds=(at - clock()).total_seconds())
        jay.store(name)

    reply = system.call(jay, "list_memories", {"filters": {"date_range": {"start": start}}})

    assert {memory["content"] for memory in reply.body["memories"]} == {"at", "after"}


@pytest.mark.parametrize("page", CODE_PAGES)
def test_text_keeps_every_byte_whatever_the_code_page(tmp_path, page):
    """In through standard input and a server, out as JSON and lines of JSON."""
    env = {**CODE_PAGES[page], "SCRUBJAY_SPACE": "default"}  # the command line writes to the space of a project
    scrubjay(tmp_path, "store", "-", input=TEXT, **env)
    with Peer(tmp_path, **env) as peer:
        peer.greet()
        assert peer.call("store_memory", content=TEXT)["structuredContent"]["created"]["content"] == TEXT

    listed = json.loads(scrubjay(tmp_path, "list", "--json", **env).decode())
    searched = json.loads(scrubjay(tmp_path, "search", "rendezvous", "--json", **env).decode())
    exported = map(json.loads, scrubjay(tmp_path, "export", "-", **env).decode().splitlines())

    assert [one["content"] for one in found_in(listed)] == [TEXT] * 2
    assert [one["content"] for one in found_in(searched)] == [TEXT] * 2
    assert [line["content"] for line in exported if line["type"] == "memory"] == [TEXT] * 2


@pytest.mark.parametrize("page", CODE_PAGES)
def test_an_argument_of_the_command_line_keeps_every_byte_whatever_the_code_page(tmp_path, page):
    stored = json.loads(scrubjay(tmp_path, "store", TEXT, "--json", **CODE_PAGES[page]).decode())

    assert [one["content"] for one in found_in(stored)] == [TEXT]


def found_in(document: object) -> list[dict]:
    """The memories of a document, wherever they stand in it."""
    if isinstance(document, dict) and "content" in document:
        return [document]
    parts = document.values() if isinstance(document, dict) else document if isinstance(document, list) else ()
    return [memory for part in parts for memory in found_in(part)]


# --- clocks ----------------------------------------------------------------------------------------------------------


def test_a_clock_set_back_an_hour_leaves_versions_links_and_feed_in_order(open_engine, clock):
    """Another process, whose clock is behind, goes on with the memory."""
    ahead = open_engine()
    first = ahead.store("first").memory
    second = ahead.update(first.id, content="second")
    clock.move(hours=-1)
    behind = open_engine()

    third = behind.update(first.id, content="third")
    newer = behind.store("newer").memory
    old, new = behind.supersede(old=first.id, new=newer.id)

    memories = [first, second, third, old]
    assert [memory.version for memory in memories] == [1, 2, 3, 4]
    assert [memory.updated_at for memory in memories] == sorted(memory.updated_at for memory in memories)
    clocks = [first.hlc, second.hlc, third.hlc, newer.hlc, old.hlc, new.hlc]
    assert clocks == sorted(set(clocks))
    assert [version.memory.content for version in behind.history(first.id)] == ["third", "second", "first"]
    assert new.updated_at >= new.created_at
    assert old.valid_until >= first.created_at - timedelta(hours=1)


def test_a_memory_made_by_a_clock_that_is_ahead_is_found_listed_and_never_of_negative_age(open_engine, clock):
    ahead = open_engine()
    clock.move(hours=1)
    future = ahead.store("from the future").memory
    clock.move(hours=-1)
    now = open_engine()

    found = now.search("future")
    listed = now.list()

    assert [hit.memory.id for hit in found] == [memory.id for memory in listed] == [future.id]
    assert now.get(future.id).accessed_at >= future.created_at


def test_an_expiry_is_honoured_by_a_clock_that_was_moved(open_engine, clock):
    jay = open_engine()
    jay.store("gone in a day", expires_at=clock() + timedelta(days=1))

    clock.move(days=3653)
    gone = len(jay.list())
    clock.move(days=-3653)
    back = len(jay.list())

    assert (gone, back) == (0, 1)


@pytest.mark.parametrize("moment", ODD_MOMENTS)
def test_a_leap_day_and_a_change_of_the_clocks_are_moments_like_others(open_engine, clock, moment):
    """The night through, an hour at a time: what was stored then is found, counted, ordered and expires in time."""
    clock.move(seconds=(ODD_MOMENTS[moment] - clock()).total_seconds())
    jay = open_engine()
    stored = []
    for hour in range(4):
        stored.append(jay.store(f"note of hour {hour}", expires_at=clock() + timedelta(days=366)).memory)
        clock.move(hours=1)

    assert [memory.id for memory in jay.list()] == [memory.id for memory in reversed(stored)]
    assert [hit.memory.id for hit in jay.search("note of hour 3, an hour ago", limit=1)] == [stored[3].id]
    assert jay.search("What did I note a year ago?", now=clock() + timedelta(days=365))
    assert len(jay.list(Filter(created_since=stored[2].created_at))) == 2
    clock.move(days=366, hours=-4)
    assert [memory.id for memory in jay.list()] == [memory.id for memory in reversed(stored[1:])]


@short_and_long("stores", 2_000, 10_000)
def test_stores_under_a_frozen_clock_have_ids_and_an_order_of_their_own(quick_path, clock, stores):
    path = quick_path / "memories.db"
    with engine_on(SqliteStore(path), HashingEmbedder(), clock=clock) as jay:
        ids = jay.store_many({"content": f"text {number}"} for number in range(stores))
        listed = [memory.id for start in range(0, stores, 1000) for memory in jay.list(limit=1000, offset=start)]

    assert len(set(ids)) == stores
    assert listed == list(reversed(ids))
    assert checked(path).memories == stores
