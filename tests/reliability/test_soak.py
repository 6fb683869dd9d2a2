"""Days of use in minutes: mixed calls to a server with many memories, which must be as quick and as small at the end.

The goals of a day of use: less than 1 MiB of memory per 1,000 calls and less than a fifth in the last half, files and
threads as they were, and a call of the last tenth no dearer than 1.5 of the first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from random import Random
from statistics import quantiles
from typing import Any

import httpx
import pytest

from tests.reliability.large import fill
from tests.reliability.rounds import short_and_long
from tests.reliability.usage import MIB, Usage, usage
from tests.reliability.wholeness import checked
from tests.servers.peer import Peer
from tests.servers.test_http import real_server

Call = Callable[..., dict[str, Any]]

# Files and threads more than at first. A connection is opened when all others are in use, and kept: on a busy machine
# background work falls together with calls more often. What is left open by one of ten calls would be more.
MORE_AT_ONCE = 12

pytestmark = [pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc"), pytest.mark.process]


@contextmanager
def over_stdio(home: Path) -> Iterator[tuple[Call, int]]:
    with Peer(home, "--dialect", "system") as peer:
        peer.greet()
        yield lambda tool, **arguments: peer.call(tool, **arguments)["structuredContent"], peer.process.pid


@contextmanager
def over_http(home: Path) -> Iterator[tuple[Call, int]]:
    with real_server(home) as (address, process), httpx.Client(timeout=60) as http:
        yield lambda tool, **arguments: http.post(f"{address}/api/system/{tool}", json=arguments).json(), process.pid


@pytest.mark.parametrize("serving", [over_stdio, over_http])
@short_and_long(("memories", "calls"), (200, 200), (100_000, 20_000))
def test_after_many_mixed_calls_a_server_is_as_quick_and_as_small_as_before(
    quick_path, chance, serving, memories, calls
):
    fill(quick_path / "memories.db", memories)
    with serving(quick_path) as (call, process):
        use = user(call, chance, memories)
        use(calls // 4)  # models are loaded, caches filled
        tenths = [measured(use, process, calls * 3 // 40) for _ in range(10)]

    first, half, last = tenths[0], tenths[4], tenths[-1]
    growth = (last.after.memory - first.before.memory) / MIB / (calls * 3 / 4 / 1_000)
    print(
        f"{calls:,} calls {serving.__name__.replace('_', ' ')}, {memories:,} memories: "
        f"{growth:.2f} MiB per 1,000 calls after the first quarter (from {first.before.memory / MIB:.0f} MiB), "
        f"{last.after.memory / half.after.memory - 1:+.1%} in the last half; CPU a call {first.cpu:.1f} ms in the "
        f"first tenth, {last.cpu:.1f} in the last; p95 {first.p95:.0f} and {last.p95:.0f} ms; "
        f"threads {first.before.threads} and {last.after.threads}, files {first.before.files} and {last.after.files}"
    )
    checked(quick_path / "memories.db", pending=True)
    assert growth < (1 if calls >= 10_000 else 100)  # a few hundred are still filling caches
    if calls >= 10_000:
        assert last.after.memory < 1.2 * half.after.memory
        assert last.cpu < 1.5 * first.cpu
    assert last.after.files <= first.before.files + MORE_AT_ONCE
    assert last.after.threads <= first.before.threads + MORE_AT_ONCE


class Measured:
    """Some calls: what the server needed before and after, its processor time per call, the slowest of the client's."""

    def __init__(self, before: Usage, after: Usage, milliseconds: list[float]) -> None:
        self.before, self.after = before, after
        self.cpu = (after.cpu - before.cpu) / len(milliseconds)
        self.p95 = quantiles(milliseconds, n=20, method="inclusive")[18]


def measured(use: Callable[[int], list[float]], process: int, calls: int) -> Measured:
    before = usage(process)
    milliseconds = use(calls)
    return Measured(before, usage(process), milliseconds)


def user(call: Call, chance: Random, memories: int) -> Callable[[int], list[float]]:
    """Somebody who stores, looks for, changes, lists and forgets, so that about as many live at the end."""
    numbers, mine = count(), []

    def store() -> dict[str, Any]:
        done = call("store_memory", content=f"note {next(numbers)} about crane {chance.randrange(10_000)}")
        mine.append(done["memory_id"])
        return done

    def update() -> dict[str, Any]:
        return call("update_memory", memory_id=mine[-1], updates={"content": f"note {next(numbers)} changed"})

    acts: list[Callable[[], dict[str, Any]]] = [
        store,
        lambda: call("recall_memories", query=f"harbour {chance.randrange(977)}"),
        lambda: call("recall_memories", query="which pier", filters={"tags": [f"pier-{chance.randrange(50)}"]}),
        update,
        lambda: call("recall_memories", query=f"fact {chance.randrange(memories)}", limit=5),
        lambda: call("list_memories", pagination={"limit": 20, "offset": chance.randrange(max(1, memories - 20))}),
        store,
        lambda: call("recall_memories", query=f"note {chance.randrange(1 + len(mine))} about crane"),
        lambda: call("get_memory_stats"),
        lambda: call("forget_memory", memory_id=mine.pop(0), hard_delete=True),
        lambda: call("forget_memory", memory_id=mine.pop(0)),
    ]

    def use(calls: int) -> list[float]:
        milliseconds = []
        for number in range(calls):
            begun = time.monotonic()
            done = acts[number % len(acts)]()
            milliseconds.append(1000 * (time.monotonic() - begun))
            assert "error" not in done, done
        return milliseconds

    return use
