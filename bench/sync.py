"""What an incremental sync of a hundred changes costs among few memories and among many.

    python -m bench.sync [--memories 100000]

Processor time of a run, both ways, after a hundred memories were changed; among a thousand memories and among many. The
goal is that many cost at most twice as much: what is read is the change feed, not the memories. Then the same among a
thousand by way of a real server in this process, so that both sides' processor time counts.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from statistics import median

from bench.sentences import memories
from scrubjay.engine.engine import Engine
from scrubjay.engine.parts import engine_on
from scrubjay.engine.sync.local import StorePeer
from scrubjay.engine.sync.peer import Peer
from scrubjay.remote.peer import HttpLine, RemotePeer
from scrubjay.stores.promises.sync import Endpoint
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.values.memory import NewMemory

CHANGES = 100
ROUNDS = 7
FEW = 1_000


def cost(count: int, folder: Path, *, over_http: bool = False) -> dict[str, float]:
    """Milliseconds of processor time per run, by what was changed."""
    folder = Path(tempfile.mkdtemp(dir=folder))
    other = engine_on(SqliteStore(folder / "other.db"), None)
    with other, served(other) if over_http else nullcontext() as address:

        def connect(_endpoint: Endpoint, _create: bool) -> Peer:
            if address is not None:
                return RemotePeer("other", HttpLine(address, private=True))
            return StorePeer(other.records, now=other.now, user="local", owned=False)

        jay = engine_on(SqliteStore(folder / "jay.db"), None, connect=connect, endpoints={"other": "other"})
        with jay:
            return measured(jay, count)


def measured(jay: Engine, count: int) -> dict[str, float]:
    ids = jay.store_many(NewMemory(content=f"{text} ({number})") for number, text in enumerate(memories(count)))
    jay.sync.run(destination="other")
    jay.sync.run(destination="other")
    taken: dict[str, list[float]] = {"edits": [], "new": [], "nothing": []}
    for round_number in range(ROUNDS):
        for step in range(CHANGES):
            jay.update(ids[(round_number * CHANGES + step * 7) % count], importance=step / 200 + round_number / 20)
        taken["edits"].append(run(jay))
        jay.store_many(NewMemory(content=f"New {round_number} {step}") for step in range(CHANGES))
        taken["new"].append(run(jay))
        run(jay)  # hears what the runs themselves have written
        taken["nothing"].append(run(jay))
    return {name: median(values) for name, values in taken.items()}


@contextmanager
def served(engine: Engine) -> Iterator[str]:
    """The engine's site on a real port: its address."""
    import uvicorn

    from scrubjay.dialects.memento import memento
    from scrubjay.dialects.table import find
    from scrubjay.servers.http.app import build_app, open_listener

    with open_listener("127.0.0.1", 0) as listener:
        app = build_app(engine, [memento], only_rest=[find("native")])
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


def run(jay: Engine) -> float:
    begun = time.process_time()
    jay.sync.run(destination="other")
    return (time.process_time() - begun) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.sync", description=__doc__)
    parser.add_argument("--memories", type=int, default=100_000)
    many = parser.parse_args().memories
    with tempfile.TemporaryDirectory() as folder:
        small, large = cost(FEW, Path(folder)), cost(many, Path(folder))
        far = cost(FEW, Path(folder), over_http=True)
    for name in small:
        ratio = large[name] / small[name]
        print(
            f"incremental sync, {CHANGES if name != 'nothing' else 0} {name}: {small[name]:.1f} ms among {FEW:,}, "
            f"{large[name]:.1f} ms among {many:,}: {ratio:.2f} x; over HTTP {far[name]:.1f} ms among {FEW:,}"
        )


if __name__ == "__main__":
    main()
