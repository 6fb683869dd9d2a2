"""Rates: as many acts as the specification says, for each caller and each kind, and no more."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest

from scrubjay.dialects.system.memories import system
from scrubjay.dialects.table import DIALECTS, ONLY_REST, find
from scrubjay.errors import RateLimited
from scrubjay.servers.http import rate_limits as module
from scrubjay.servers.http.app import build_app
from scrubjay.servers.http.rate_limits import KINDS, PER_MINUTE, Limits, budget_of, rate_of
from scrubjay.values.callers import Caller, Role
from tests.servers.peer import ENVELOPE
from tests.servers.sites import client_of

pytestmark = pytest.mark.process

ALICE = Caller(user="alice", credential="key_1", local=False)
BOB = Caller(user="bob", credential="key_2", local=False)
FORGET = system.operations["forget_memory"]


def admitted(limits, caller, times, operation=FORGET):
    count = 0
    for _ in range(times):
        try:
            limits.call(caller, system, operation)
            count += 1
        except RateLimited:
            pass
    return count


class Moved:
    """The clocks of this process, moved."""

    def __init__(self, monkeypatch):
        self.monotonic, self.wall = 0.0, 0.0
        monotonic, wall = time.monotonic, time.time
        monkeypatch.setattr(module.time, "monotonic", lambda: monotonic() + self.monotonic)
        monkeypatch.setattr(module.time, "time", lambda: wall() + self.wall)


@pytest.fixture
def moved(monkeypatch):
    return Moved(monkeypatch)


def test_no_more_than_the_limit_in_a_window_and_again_in_the_next(moved):
    limits = Limits()

    first, moved.monotonic = admitted(limits, ALICE, 150), 61
    second = admitted(limits, ALICE, 150)

    assert (first, second) == (50, 50)


def test_other_callers_and_other_kinds_are_not_affected():
    limits = Limits()
    admitted(limits, ALICE, 60)

    assert admitted(limits, BOB, 60) == 50
    assert admitted(limits, ALICE, 250, system.operations["update_memory"]) == 200


def test_no_key_uses_up_what_another_of_the_same_user_has():
    limits = Limits()
    admitted(limits, ALICE, 50)

    assert admitted(limits, Caller(user="alice", credential="key_9", local=False), 60) == 50


def test_a_clock_that_is_set_back_locks_nobody_out(moved):
    limits = Limits()
    admitted(limits, ALICE, 60)

    moved.wall, moved.monotonic = -3600, 61

    rate = limits.call(ALICE, system, FORGET)
    assert rate.remaining == 49
    assert rate.reset > time.time() - 3600


def test_a_refusal_says_when_to_come_again():
    limits = Limits()
    admitted(limits, ALICE, 50)

    with pytest.raises(RateLimited) as caught:
        limits.call(ALICE, system, FORGET)

    rate = rate_of(caught.value)
    assert (rate.limit, rate.remaining) == (50, 0)
    assert time.time() < rate.reset <= time.time() + 61
    assert 1 <= caught.value.details["retry_after"] <= 60


def test_the_local_owner_is_limited_only_if_a_setting_says_so():
    assert Limits().call(Caller(), system, FORGET) is None
    assert Limits(local=True).call(Caller(), system, FORGET).limit == 50


def test_many_at_once_are_counted_each():
    limits = Limits()

    with ThreadPoolExecutor(16) as pool:
        counts = list(pool.map(lambda _: admitted(limits, ALICE, 10), range(16)))

    assert sum(counts) == 50


@pytest.mark.parametrize(
    "windows", [module.Windows(), module.SharedWindows(lambda *_, **__: (1, 60.0))], ids=["alone", "shared"]
)
def test_windows_of_the_past_do_not_pile_up(moved, windows):
    for number in range(100):
        windows.add(f"user {number}", 1)

    moved.monotonic = 61
    windows.add("another", 1)

    assert windows.clear() == 1


def test_one_kind_of_act_has_one_budget_whatever_the_dialect_calls_it():
    limits = Limits()
    stores = [(find(name.partition(".")[0]), name.partition(".")[2]) for name in KINDS["store"].split()]

    def stored(number):
        dialect, name = stores[number % len(stores)]
        limits.call(ALICE, dialect, dialect.operations[name])

    for number in range(PER_MINUTE["store"]):
        stored(number)
    for number in range(len(stores)):
        with pytest.raises(RateLimited):
            stored(number)


def test_memories_of_a_batch_count_each_and_a_refused_batch_counts_nothing():
    limits, chimera = Limits(), find("chimera")
    batch, remember = chimera.operations["batch_remember"], chimera.operations["remember"]

    first = limits.call(ALICE, chimera, batch, {"memories": [{"text": "x"}] * 60})
    with pytest.raises(RateLimited) as caught:
        limits.call(ALICE, chimera, batch, {"memories": [{"text": "x"}] * 60})
    second = limits.call(ALICE, chimera, remember, {"text": "x"})

    assert first.remaining == 40
    assert rate_of(caught.value).remaining == 40
    assert second.remaining == 39


class LookingTogether(module.Windows):
    """Two callers see the window before either of them has counted."""

    def __init__(self):
        super().__init__()
        self.both = threading.Barrier(2)
        self.looked = count()

    def read(self, key):
        found = super().read(key)
        if next(self.looked) < 2:
            self.both.wait(timeout=30)
        return found


def test_of_two_batches_at_once_the_refused_one_counts_nothing():
    limits, chimera = Limits(windows=LookingTogether()), find("chimera")

    def batch(_):
        try:
            limits.call(ALICE, chimera, chimera.operations["batch_remember"], {"memories": [{"text": "x"}] * 60})
        except RateLimited:
            return "refused"
        return "admitted"

    with ThreadPoolExecutor(2) as callers:
        assert sorted(callers.map(batch, range(2))) == ["admitted", "refused"]
    assert limits.call(ALICE, chimera, chimera.operations["remember"], {"text": "x"}).remaining == 39


def test_a_members_import_costs_as_many_stores_as_it_has_lines():
    limits, native = Limits(), find("native")
    member = Caller(user="mia", role=Role.MEMBER, spaces=frozenset({"work"}), credential="key_3", local=False)
    lines = {"lines": [{"content": "x"}] * 60}

    assert limits.call(member, native, native.operations["import"], lines).remaining == 40
    with pytest.raises(RateLimited):
        limits.call(member, native, native.operations["import"], lines)
    assert limits.call(member, native, native.operations["store_memory"], {"content": "x"}).remaining == 39
    assert limits.call(ALICE, native, native.operations["import"], lines).limit == PER_MINUTE["import"]


@pytest.mark.parametrize("arguments", [None, [], {}, {"memories": []}, {"memories": "x" * 1000}, {"memories": {}}])
def test_a_batch_that_cannot_be_read_counts_once(arguments):
    chimera = find("chimera")

    assert Limits().call(ALICE, chimera, chimera.operations["batch_remember"], arguments).remaining == 99


def test_what_a_specification_counts_once_counts_once():
    limits = Limits()
    many = {"memory_ids": ["mem_x"] * 50}

    assert limits.call(ALICE, system, system.operations["archive_memory"], many).remaining == 19
    assert limits.call(ALICE, system, system.operations["restore_memory"], many).remaining == 19
    assert limits.call(ALICE, system, system.operations["consolidate_memories"], many).remaining == 9
    native = find("native")
    assert limits.call(ALICE, native, native.operations["import"], {"memories": [{}] * 50}).remaining == 99


def test_every_operation_is_of_one_kind_and_every_name_is_an_operation():
    tables = [*map(find, DIALECTS), *map(find, ONLY_REST)]
    operations = {
        f"{table.name}.{name.removeprefix(f'{table.name}_')}" for table in tables for name in table.operations
    }
    names = [name for kind in KINDS.values() for name in kind.split()]

    assert sorted(names) == sorted(operations)


def test_the_numbers_are_those_of_the_system_specification():
    said = {
        "store_memory": 100,
        "recall_memories": 1000,
        "update_memory": 200,
        "forget_memory": 50,
        "consolidate_memories": 10,
        "list_memories": 500,
        "get_memory_stats": 100,
        "sync_memories": 10,
        "archive_memory": 20,
        "restore_memory": 20,
    }

    assert {name: budget_of(system, system.operations[name]).per_minute for name in said} == said


def test_the_documentation_has_every_kind_and_its_number():
    text = Path("docs/reference/server.md").read_text(encoding="utf-8")

    for kind, number in PER_MINUTE.items():
        assert f"| {kind} | {number:,} |" in text


# --- over HTTP -------------------------------------------------------------------------------------------------------


@pytest.fixture
def http(jay, within_a_minute):
    with client_of(build_app(jay, [find("system"), find("memento")])) as client:
        yield client


def test_s25_the_101st_store_of_a_minute_is_refused_in_every_dialect_and_other_tools_are_not(http, jay):
    key = {"x-api-key": jay.callers.create("alice").secret}

    def store(number):
        return http.post("/api/system/store_memory", json={"content": f"Fact {number}"}, headers=key)

    replies = [store(number) for number in range(101)]

    assert [reply.status_code for reply in replies] == [200] * 100 + [429]
    last = replies[-1]
    assert last.json()["error"]["code"] == "RATE_LIMITED"
    assert (last.headers["x-ratelimit-limit"], last.headers["x-ratelimit-remaining"]) == ("100", "0")
    assert int(last.headers["x-ratelimit-reset"]) > time.time()
    assert 1 <= int(last.headers["retry-after"]) <= 60
    remaining = [int(reply.headers["x-ratelimit-remaining"]) for reply in replies[:100]]
    assert remaining == list(range(99, -1, -1))
    assert http.post("/api/system/list_memories", json={}, headers=key).status_code == 200
    assert http.post("/api/memento/store_memory", json={"content": "x"}, headers=key).status_code == 429


def test_every_reply_to_a_caller_with_a_key_says_where_it_stands(http, jay):
    key = {"x-api-key": jay.callers.create("alice").secret}
    replies = [
        http.post("/api/system/list_memories", json={}, headers=key),
        http.post("/api/system/list_memories", json={"oops": 1}, headers=key),
        http.get("/openapi.json", headers=key),
        http.get("/nowhere", headers=key),
        http.get("/mcp", headers=key),
    ]
    for reply in replies:
        assert int(reply.headers["x-ratelimit-remaining"]) < int(reply.headers["x-ratelimit-limit"])


def test_over_mcp_the_same_is_said_in_headers_and_meta(http, jay):
    key = {"x-api-key": jay.callers.create("alice").secret}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    call = {**body, "params": {"name": "get_memory_stats", "arguments": {}, **ENVELOPE}}
    modern = {
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "get_memory_stats",
        "accept": "application/json, text/event-stream",
    }

    replies = [http.post("/mcp/system", json=call, headers={**modern, **key}) for _ in range(101)]

    first, last = replies[0], replies[-1]
    assert first.json()["result"]["_meta"]["X-RateLimit-Remaining"] == first.headers["x-ratelimit-remaining"] == "99"
    assert last.json()["result"]["isError"]
    assert last.json()["result"]["structuredContent"]["error"]["code"] == "RATE_LIMITED"


def test_what_is_read_by_its_address_over_mcp_counts_as_read(jay):
    key = {"x-api-key": jay.callers.create("alice").secret}
    modern = {
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "resources/list",
        "accept": "application/json, text/event-stream",
    }
    with client_of(build_app(jay, [find("cortex")])) as http:
        body = {"jsonrpc": "2.0", "id": 1, "method": "resources/list", "params": ENVELOPE}
        listed = http.post("/mcp/cortex", json=body, headers={**modern, **key})
        read = http.post("/api/cortex/list_stores", json={}, headers=key)

    assert "result" in listed.json()
    assert read.headers["x-ratelimit-remaining"] == "998"


def test_the_local_owner_is_told_of_no_limit(http):
    assert "x-ratelimit-limit" not in http.post("/api/system/list_memories", json={}).headers


@pytest.mark.parametrize("limits", ["on", "off"])
def test_over_stdio_the_owner_is_limited_only_if_asked_for(start, limits):
    peer = start("--dialect", "system", SCRUBJAY_LIMITS=limits)
    peer.greet()

    results = [peer.call("consolidate_memories", memory_ids=["mem_x", "mem_y"]) for _ in range(11)]

    refused = results[-1]["structuredContent"]["error"]["code"] == "RATE_LIMITED"
    assert refused == (limits == "on")
    assert ("X-RateLimit-Remaining" in results[0].get("_meta", {})) == (limits == "on")
