"""Are answers as good on PostgreSQL as on SQLite? Run by hand: python -m bench.both_stores

    --only NAME     a set of the retrieval data (default locomo)
    --cases N       only its first ones
    --data, --cache as for bench.quality

The same texts, questions and vectors; recall@5, recall@10 and MRR in percent, for each store and way of asking.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import psycopg
from tests.postgres import FAST, Server

from bench import retrieval
from bench.cached import CachedEmbedder
from bench.data import folder, tools
from scrubjay.embedders.catalogue import DEFAULT, find
from scrubjay.embedders.local import LocalEmbedder
from scrubjay.settings import load


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--only", default="locomo")
    options.add_argument("--cases", type=int)
    options.add_argument("--data")
    options.add_argument("--cache", type=Path)
    given = options.parse_args()
    datasets, metrics = tools(folder(given.data))
    whole = datasets.load(given.only)
    dataset = SimpleNamespace(name=whole.name, cases=whole.cases[: given.cases])
    embedder = CachedEmbedder(LocalEmbedder(find(DEFAULT), load().models), given.cache)
    server = Server(**FAST)

    @contextmanager
    def in_a_database() -> Iterator[Path | str]:
        yield f"{server.url}&schema=case"
        with psycopg.connect(server.url, autocommit=True) as con:
            con.execute('DROP SCHEMA "case" CASCADE')

    for store, place in (("SQLite", retrieval.in_a_file), ("PostgreSQL", in_a_database)):
        asked = retrieval.run(dataset, embedder, place=place)
        for way in retrieval.ASKED:
            found = retrieval.figures(retrieval.turn_rows(asked, way, metrics), metrics)
            values = "   ".join(f"{name} {found[name] * 100:5.1f}" for name in ("recall@5", "recall@10", "mrr"))
            print(f"{store:12} {way:10} {values}   ({found['n']} questions)", flush=True)


if __name__ == "__main__":
    main()
