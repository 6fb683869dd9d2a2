"""Make the example vectors that ship with the package: run after a change of the sentences or the default model."""

from pathlib import Path

import scrubjay.engine.attributes as attributes
from scrubjay.embedders.catalogue import find
from scrubjay.embedders.local import LocalEmbedder
from scrubjay.settings import load

if __name__ == "__main__":
    settings = load()
    path = Path(attributes.__file__).with_name("attributes.npz")
    attributes.write_shipped(LocalEmbedder(find("arctic-embed-s"), settings.models), str(path))
    print(f"{path.name}: {path.stat().st_size:,} bytes")
