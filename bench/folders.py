"""A folder of ten thousand Markdown files: the first index, a later open with nothing changed, one hand edit.

    python -m bench.folders [--files 10000] [--embedded 1000]

The first index is compared with the bare embedder on the same texts in the same batches, in turns of one folder each,
so its part is given as a share of the embedder's throughput. A later open is the whole of it: a new engine on the file,
the walk, and the answer to a list.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from bench.sentences import memories
from scrubjay.embedders.catalogue import find
from scrubjay.embedders.local import LocalEmbedder
from scrubjay.engine.engine import Engine
from scrubjay.engine.parts import engine_on
from scrubjay.folders.registry import Registry
from scrubjay.settings import load
from scrubjay.stores.sqlite.store import SqliteStore

BATCH = 64
PARTS = 4  # folders that the indexed files lie in, each measured beside the bare embedder
OPENS = 7


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--embedded", type=int, default=1_000, help="files of the first index, with the real model")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        first_index(Path(place, "first"), options.embedded // PARTS)
        later_opens(Path(place, "later"), options.files)


def first_index(place: Path, count: int) -> None:
    embedder = LocalEmbedder(find("arctic-embed-s"), load().models)
    embedder.load()
    shares = []
    with engine_on(SqliteStore(place / "memories.db"), embedder, registry=Registry(place, place)) as jay:
        jay.store("The first store loads what only stores need.")
        for part in range(PARTS):
            texts = [f"{text} ({part})" for text in memories(count)]
            written(place / f"part{part}", texts)
            bare, index = -time.process_time(), 0.0
            for start in range(0, len(texts), BATCH):
                embedder.embed(texts[start : start + BATCH])
            bare += time.process_time()
            index = -time.process_time()
            done = jay.folders.add(f"part{part}", place / f"part{part}")
            index += time.process_time()
            assert done.new == count
            shares.append(bare / index)
    share = median(shares)
    print(f"first index: {share:.0%} of the embedder's throughput ({count} files, {PARTS} times; goal 50 %)")


def later_opens(place: Path, count: int) -> None:
    folder = place / "notes"
    written(folder, memories(count))
    with opened(place) as jay:
        begun = time.process_time()
        jay.folders.add("notes", folder)
        taken = time.process_time() - begun
        print(f"first index without a model: {1000 * taken / count:.2f} ms a file")
    time.sleep(0.1)  # until the last file's time is certain
    with opened(place) as jay:
        jay.bound_to(spaces=("notes",)).list(limit=1)
    cpu, wall = zip(*[opening(place) for _ in range(OPENS)], strict=True)
    cost = f"{1000 * median(cpu):.0f} ms of processor, {1000 * min(wall):.0f} ms at best"
    print(f"open with nothing changed: {cost} (goal 300)")
    edited(place, folder)


def opening(place: Path) -> tuple[float, float]:
    cpu, wall = time.process_time(), time.perf_counter()
    with opened(place) as jay:
        jay.bound_to(spaces=("notes",)).list(limit=10)
        return time.process_time() - cpu, time.perf_counter() - wall


def edited(place: Path, folder: Path) -> None:
    with opened(place) as jay:
        notes = jay.bound_to(spaces=("notes",))
        notes.list(limit=1)
        time.sleep(1.1)
        next(folder.rglob("*.md")).write_text("---\n---\nxylophone quicksilver\n")
        begun = time.process_time()
        found = [hit.memory.content for hit in notes.search("quicksilver")]
        print(f"a hand edit a second after the last walk: found {found == ['xylophone quicksilver']}, "
              f"{1000 * (time.process_time() - begun):.0f} ms of processor")  # fmt: skip
        began = time.process_time()
        notes.search("quicksilver")
        print(f"the next search, without a walk: {1000 * (time.process_time() - began):.0f} ms")


def opened(place: Path) -> Engine:
    return engine_on(SqliteStore(place / "memories.db"), None, registry=Registry(place, place))


def written(folder: Path, texts: Iterator[str] | list[str]) -> None:
    for number, text in enumerate(texts):
        place = folder / f"topic-{number % 50}" / f"note-{number}.md"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"---\ncreated_at: 2026-01-01T10:00:00.000Z\ntags: [a, b]\nsource: mcp\n---\n\n{text}\n")


if __name__ == "__main__":
    main()
