"""Make the derived numbers that ship with the package: run after a change of the sentences or the default model."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bench.categories import fitted
from scrubjay.embedders.base import Embedder
from scrubjay.embedders.catalogue import find
from scrubjay.embedders.local import LocalEmbedder
from scrubjay.engine.conflicts import fact_kinds
from scrubjay.engine.store import categories
from scrubjay.settings import load


def write_kinds(embedder: Embedder, path: str) -> None:
    vectors = np.stack(embedder.embed(fact_kinds.sentences())).astype(np.float16)
    np.savez_compressed(path, fingerprint=np.array(embedder.fingerprint), vectors=vectors)


def write_weights(fitted: categories.CategoryWeights, path: str) -> None:
    numbers = {name: getattr(fitted, name) for name in categories.CategoryWeights.__slots__ if name != "fingerprint"}
    halves = {name: value.astype(np.float16) for name, value in numbers.items()}
    np.savez_compressed(path, allow_pickle=False, fingerprint=np.array(fitted.fingerprint), **halves)


if __name__ == "__main__":
    embedder = LocalEmbedder(find("arctic-embed-s"), load().models)
    kinds, shares = (Path(module.__file__).with_suffix(".npz") for module in (fact_kinds, categories))
    write_kinds(embedder, str(kinds))
    write_weights(fitted(embedder), str(shares))
    for path in (kinds, shares):
        print(f"{path.name}: {path.stat().st_size:,} bytes")
