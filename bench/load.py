"""The server under load: closed loops of 1, 8 and 64 clients over HTTP, beside a bare Starlette route in the same run.

    python -m bench.load [--memories 2000] [--seconds 3] [--calls 20000]

A closed loop asks again as soon as it is answered. The server is a process of its own; vectors are drawn at random, so
what is measured is everything around the model. The engine's own time for the same search is measured inside the
server, in turn with the others. The clients are plain sockets in this process: they take some of the time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from statistics import median, quantiles

from bench import report
from bench.sentences import memories, questions
from bench.system import RandomEmbedder

CLIENTS = (1, 8, 64)
ROUNDS = 3
LEAST = 2  # answers to each client, however slow: quantiles need two
ENVELOPE = {
    "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
}


def serve(memories_count: int) -> None:
    """Both sites in this process, on ports of their own; says them, then waits."""
    import threading

    import uvicorn
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import Request
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    from scrubjay.dialects.memento import memento
    from scrubjay.engine.parts import engine_on
    from scrubjay.servers.http.app import build_app, open_listener
    from scrubjay.stores.sqlite.store import SqliteStore

    async def bare(request: Request) -> JSONResponse:
        return JSONResponse(await request.json())

    async def engine(request: Request) -> JSONResponse:
        """The search itself, and how long that took."""
        asked = await request.json()

        def search() -> float:
            begun = time.perf_counter()
            jay.search(asked["query"], limit=asked["limit"])
            return time.perf_counter() - begun

        return JSONResponse({"seconds": await run_in_threadpool(search)})

    with (
        tempfile.TemporaryDirectory() as folder,
        engine_on(SqliteStore(Path(folder) / "m.db"), RandomEmbedder()) as jay,
    ):
        jay.store_many([{"content": text} for text in memories(memories_count)])
        sites = []
        plain = [Route("/bare", bare, methods=["POST"]), Route("/engine", engine, methods=["POST"])]
        for app in (Starlette(routes=plain), build_app(jay, [memento])):
            listener = open_listener("127.0.0.1", 0)
            server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False))
            threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True).start()
            sites.append(listener.getsockname()[1])
        sys.stdout.write(json.dumps({"bare": sites[0], "scrubjay": sites[1]}) + "\n")
        sys.stdout.flush()
        sys.stdin.read()


@dataclass
class Load:
    """What the clients of one kind send."""

    name: str
    port: int
    path: str
    bodies: list[bytes]
    headers: str = ""

    def requests(self) -> list[bytes]:
        head = f"POST {self.path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{self.headers}"
        return [f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body for body in self.bodies]


@dataclass
class Measured:
    calls: int
    failed: int
    seconds: float
    waits: list[float]
    cpu: float = 0.0  # of the server, in seconds

    def figures(self) -> dict[str, float]:
        return {
            "per_second": round(self.calls / self.seconds, 1),
            "p50_ms": round(median(self.waits) * 1000, 2),
            "p95_ms": round(quantiles(self.waits, n=20)[-1] * 1000, 2),
            "cpu_ms": round(self.cpu / self.calls * 1000, 2),
            "failed": self.failed,
        }


async def loop(load: Load, clients: int, *, seconds: float = 1e9, calls: float = 1e9) -> Measured:
    """So many clients, each asking again when it is answered, for so long or so often."""
    requests, waits, failed = load.requests(), list[float](), 0
    begun = time.perf_counter()

    async def client(start: int) -> None:
        nonlocal failed
        reader, writer = await asyncio.open_connection("127.0.0.1", load.port)
        sent = cycle(requests[start % len(requests) :] + requests[: start % len(requests)])
        answered = 0
        while answered < LEAST or (time.perf_counter() - begun < seconds and len(waits) < calls):
            answered += 1
            asked = time.perf_counter()
            writer.write(next(sent))
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            body = await reader.readexactly(length)
            failed += b" 200 " not in head[:15] or b'"isError":true' in body
            inner = load.path == "/engine"
            waits.append(json.loads(body)["seconds"] if inner else time.perf_counter() - asked)
        writer.close()

    async with asyncio.TaskGroup() as tasks:
        for number in range(clients):
            tasks.create_task(client(number * 7))
    return Measured(len(waits), failed, time.perf_counter() - begun, waits)


def loads(ports: dict[str, int]) -> list[Load]:
    searches = [{"query": question, "limit": 5} for question in questions(50)]
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    over_mcp = [{**call, "params": {"name": "search_memories", "arguments": one, **ENVELOPE}} for one in searches]
    modern = (
        "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n"
        "Mcp-Method: tools/call\r\nMcp-Name: search_memories\r\n"
    )
    return [
        Load("bare", ports["bare"], "/bare", [json.dumps(one).encode() for one in searches]),
        Load("engine", ports["bare"], "/engine", [json.dumps(one).encode() for one in searches]),
        Load("rest", ports["scrubjay"], "/api/memento/search_memories", [json.dumps(one).encode() for one in searches]),
        Load("mcp", ports["scrubjay"], "/mcp", [json.dumps(one).encode() for one in over_mcp], modern),
    ]


def processor_time(pid: int) -> float:
    """Seconds of processor that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(pid: int) -> float:
    """MiB that a process holds."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


async def measured(ports: dict[str, int], pid: int, seconds: float, calls: int) -> dict[str, object]:
    kinds = loads(ports)
    for load in kinds:
        await loop(load, 4, seconds=1)
    figures: dict[str, object] = {}
    for clients in CLIENTS if seconds else ():
        best: dict[str, Measured] = {}
        for _ in range(ROUNDS):  # in turn, so that whatever else the machine does meets all alike
            for load in kinds:
                cpu = processor_time(pid)
                one = await loop(load, clients, seconds=seconds)
                one.cpu = processor_time(pid) - cpu
                known = best.get(load.name)
                best[load.name] = one if known is None or median(one.waits) < median(known.waits) else known
        figures[f"{clients} clients"] = {name: one.figures() for name, one in best.items()}
    if calls:
        sizes = []
        for _ in range(4):
            await loop(kinds[2], 8, calls=calls // 4)
            sizes.append(round(resident(pid), 1))
        figures["resident_mib_after_each_quarter"] = sizes
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--memories", type=int, default=2_000)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each loop; 0: only the memory over many calls")
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve(options.memories)
    command = [sys.executable, "-m", "bench.load", "--serve", "--memories", str(options.memories)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        try:
            ports = json.loads(server.stdout.readline())
            figures = asyncio.run(measured(ports, server.pid, options.seconds, options.calls))
        finally:
            server.stdin.close()
            server.wait()
    print("MiB after each quarter of the calls:", figures.get("resident_mib_after_each_quarter"))
    if not options.seconds:
        return
    rows = [
        (clients, name, one["per_second"], one["p50_ms"], one["p95_ms"], one["cpu_ms"], one["failed"])
        for clients in map("{} clients".format, CLIENTS)
        for name, one in figures[clients].items()
    ]
    alone = figures["1 clients"]
    over = alone["rest"]["p50_ms"] - alone["engine"]["p50_ms"]
    caption = f"REST over the engine's own time, 1 client: {over:.2f} ms (goal 3)"
    report.table("Over HTTP", ("load", "what", "calls/s", "p50 ms", "p95 ms", "server CPU ms", "failed"), rows, caption)
    report.write("load", figures, report.machine())


if __name__ == "__main__":
    main()
