"""Make the derived numbers that ship with the package: run after a change of the sentences or the default model."""

from pathlib import Path

from bench.categories import fitted
from scrubjay.embedders.catalogue import find
from scrubjay.embedders.local import LocalEmbedder
from scrubjay.engine.conflicts import fact_kinds
from scrubjay.engine.store import categories
from scrubjay.settings import load

if __name__ == "__main__":
    embedder = LocalEmbedder(find("arctic-embed-s"), load().models)
    kinds, shares = (Path(module.__file__).with_suffix(".npz") for module in (fact_kinds, categories))
    fact_kinds.write_shipped(embedder, str(kinds))
    categories.write_shipped(fitted(embedder), str(shares))
    for path in (kinds, shares):
        print(f"{path.name}: {path.stat().st_size:,} bytes")
