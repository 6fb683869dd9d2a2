"""Make the derived numbers that ship with the package: run after a change of the sentences or the default model."""

from pathlib import Path

import scrubjay.engine.attributes as attributes
import scrubjay.engine.categories as categories
from bench.categories import fitted
from scrubjay.embedders.catalogue import find
from scrubjay.embedders.local import LocalEmbedder
from scrubjay.settings import load

if __name__ == "__main__":
    embedder = LocalEmbedder(find("arctic-embed-s"), load().models)
    folder = Path(attributes.__file__).parent
    attributes.write_shipped(embedder, str(folder / "attributes.npz"))
    categories.write_shipped(fitted(embedder), str(folder / "categories.npz"))
    for path in sorted(folder.glob("*.npz")):
        print(f"{path.name}: {path.stat().st_size:,} bytes")
