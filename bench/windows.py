"""One model for all windows, and all cores for a server: what that saves, and what it survives.

    python -m bench.windows             ten windows on 10,000 memories, and 20,000 calls: a quarter of an hour
    python -m bench.windows --quick     does it run at all?

Memory is proportional: pages that n processes share count 1/n for each. Throughput is that of two workers beside that
of one, in turn, by clients in this process that take some of the same cores.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from random import Random
from statistics import median

from tests.reliability.lenders import ended_at_random, killed_under_searches, processes_on
from tests.servers.several import Site, killed_under_calls, site

from bench import children, report
from bench.figures import Figure, figure_table
from bench.load import ENVELOPE, Measured, loop
from bench.sentences import memories, questions
from bench.speed import filled_home
from scrubjay.embedders.catalogue import DEFAULT, find
from scrubjay.embedders.local import LocalEmbedder
from scrubjay.settings import load

REST_SECONDS = 2.0
CLIENTS = 64
# A window that gives its model back after some seconds instead of ten minutes.
HASTY = """
from scrubjay.embedders import lending
from scrubjay.engine.upkeep import housekeeping
lending.IDLE_SECONDS, housekeeping.PAUSE_SECONDS = 3.0, 1.0
from scrubjay.__main__ import main
main()
"""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.windows", description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args(arguments).quick
    facts = report.machine()
    children.compile_package()
    model = LocalEmbedder(find(DEFAULT), load().models)
    with tempfile.TemporaryDirectory() as folder:
        home = filled_home(Path(folder) / "home", 300 if quick else 10_000, model)
        home.chmod(0o700)
        figures = [
            *fleet(home),
            *after_ten_minutes(home),
            *commands(home, rounds=3 if quick else 15),
            *ends(home, quick=quick),
            *workers(home, seconds=2.0 if quick else 10.0, rounds=1 if quick else 3),
            *kills(Path(folder) / "kills", *((200, 8, 1.0) if quick else (20_000, CLIENTS, 5.0))),
        ]
    facts["load_after"] = [round(value, 2) for value in os.getloadavg()]
    table = figure_table(one.as_json() for one in figures)
    report.table("Windows and workers", table["columns"], table["rows"], f"Load: {facts['load'][0]}")
    report.console.print(
        f"\nWritten: {report.write('windows', {'figures': [one.as_json() for one in figures]}, facts)}"
    )


def search(server: children.Server, question: str) -> None:
    server.call("search_memories", {"query": question})


@contextmanager
def window(home: Path, program: str | None = None) -> Iterator[children.Server]:
    with children.Server(home, program) as server:
        server.open()
        yield server


def fleet(home: Path) -> list[Figure]:
    """Ten windows of one user, each searched once."""
    with ExitStack() as stack:
        servers = [stack.enter_context(window(home)) for _ in range(10)]
        for server, question in zip(servers, questions(10), strict=True):
            search(server, question)
        time.sleep(REST_SECONDS)
        shares = [server.memory() for server in servers]
        others = len(processes_on(home)) - len(servers)
    borrowers = shares[1:]
    return [
        Figure(name="ten windows together", value=sum(one["share"] for one in shares), unit="MB", goal=700.0),
        Figure(name="processes besides the ten", value=others, unit="processes", goal=0.0),
        Figure(name="one that borrows", value=median(one["share"] for one in borrowers), unit="MB", goal=60.0),
        Figure(name="one that borrows, resident", value=median(one["resident"] for one in borrowers), unit="MB"),
        Figure(name="the one that lends", value=shares[0]["share"], unit="MB"),
    ]


def after_ten_minutes(home: Path) -> list[Figure]:
    """A lender that has given its model back, beside a window that has done nothing, and its next search."""
    with window(home, HASTY) as lender, window(home):
        search(lender, "Who plays the cello?")
        time.sleep(10)
        idle, begun = lender.memory(), time.perf_counter()
        search(lender, "Who has a kayak?")
        took = time.perf_counter() - begun
    return [
        Figure(name="a lender after its model was given back", value=idle["share"], unit="MB", goal=90.0),
        Figure(name="a lender after its model was given back, resident", value=idle["resident"], unit="MB"),
        Figure(name="its next search", value=took, unit="s", goal=1.0),
    ]


def commands(home: Path, rounds: int) -> list[Figure]:
    """What a command and a second window take of the processor, beside a window that lends."""

    def second() -> float:
        with window(home) as server:
            search(server, "Who plays the cello?")
            return server.end()[0]

    def typed() -> float:
        return children.run([*children.COMMAND, "search", "Who plays the cello?"], home)[0]

    alone = median(typed() for _ in range(rounds))
    with window(home) as lender:
        search(lender, "Who plays the cello?")
        taken = [(typed(), second()) for _ in range(rounds)]
    searches, starts = zip(*taken, strict=True)
    return [
        Figure(name="search by the command line, beside a window", value=median(searches), unit="s", goal=0.35),
        Figure(name="search by the command line, alone", value=alone, unit="s"),
        Figure(name="start and first search of a second window", value=median(starts), unit="s", goal=0.45),
    ]


def ends(home: Path, *, quick: bool) -> list[Figure]:
    """The lender killed under searches of others; windows and commands killed in any order."""
    told = killed_under_searches(home, *((3, 6) if quick else (10, 40)), patient=False, SCRUBJAY_EMBED_WAIT="2")
    left = ended_at_random(home, *((4, 6) if quick else (50, 100)), Random(37))
    return [
        Figure(name="searches degraded by a killed lender", value=len(told.degraded), unit="searches", goal=0.0),
        Figure(name="processes left", value=len(left.processes), unit="processes", goal=0.0),
        Figure(name="locks left", value=left.locks, unit="locks", goal=0.0),
        Figure(name="sockets left, before the next search", value=left.sockets_before, unit="sockets"),
        Figure(name="sockets left, after it", value=len(left.sockets), unit="sockets", goal=0.0),
    ]


@dataclass
class Mixed:
    """Searches and stores in turn, over REST and MCP, for the closed loops of `bench.load`."""

    port: int
    path: str = ""

    def requests(self) -> list[bytes]:
        made = []
        texts = cycle(memories(20_000)[15_000:])
        for place, question in enumerate(questions(400)):
            if place % 2:
                tool, arguments = "store_memory", {"content": f"{next(texts)} ({os.urandom(4).hex()})"}
            else:
                tool, arguments = "search_memories", {"query": question, "limit": 5}
            made.append(rest(tool, arguments) if place % 4 < 2 else mcp(tool, arguments))
        return made


def rest(tool: str, arguments: dict[str, object]) -> bytes:
    return post(f"/api/memento/{tool}", arguments)


def mcp(tool: str, arguments: dict[str, object]) -> bytes:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    headers = (
        "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n"
        f"Mcp-Method: tools/call\r\nMcp-Name: {tool}\r\n"
    )
    body = {**call, "params": {"name": tool, "arguments": arguments, **ENVELOPE}}
    return post("/mcp/memento", body, headers)


def post(path: str, body: dict[str, object], headers: str = "") -> bytes:
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{headers}"
    return f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data


def workers(home: Path, seconds: float, rounds: int) -> list[Figure]:
    """Calls a second of two workers and of one, each on a copy of the store, in turn."""
    rates: dict[str, list[float]] = {"1": [], "2": []}
    failed = 0
    for _ in range(rounds):
        for count, known in rates.items():
            with tempfile.TemporaryDirectory() as folder:
                copy = Path(folder) / "home"
                shutil.copytree(home, copy, ignore=shutil.ignore_patterns("run"))
                with site(copy, count, SCRUBJAY_EMBEDDER=DEFAULT) as ours:
                    done = asyncio.run(loaded(ours, seconds))
                    known.append(done.calls / done.seconds)
                    failed += done.failed
    one, two = (median(known) for known in rates.values())
    return [
        Figure(name="mixed calls of 64 clients, one worker", value=one, unit="calls/s", more_is_better=True),
        Figure(name="mixed calls of 64 clients, two workers", value=two, unit="calls/s", more_is_better=True),
        Figure(name="two workers beside one", value=two / one, unit="times", goal=1.8, more_is_better=True),
        Figure(name="calls that failed", value=failed, unit="calls", goal=0.0),
    ]


async def loaded(ours: Site, seconds: float) -> Measured:
    mixed = Mixed(int(ours.address.rpartition(":")[2]))
    await loop(mixed, CLIENTS, seconds=1.0)
    return await loop(mixed, CLIENTS, seconds=seconds)


def kills(home: Path, calls: int, callers: int, seconds: float) -> list[Figure]:
    outcome = killed_under_calls(home, calls, callers, seconds)
    sys.stderr.write(f"{outcome}\n")
    return [
        Figure(name=f"{outcome.calls:,} calls with {outcome.kills} kills: acknowledged and lost",
               value=outcome.lost, unit="memories", goal=0.0),
        Figure(name="errors that may not be tried again", value=len(outcome.unexpected), unit="calls", goal=0.0),
        Figure(name="tried again", value=sum(outcome.again.values()), unit="calls"),
    ]  # fmt: skip


if __name__ == "__main__":
    main()
