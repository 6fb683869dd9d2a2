"""The real model, found once; tests that need it fail without it, since skipping them would prove nothing."""

from pathlib import Path

import pytest

from scrubjay.embedders import catalogue
from scrubjay.embedders.download import pull
from scrubjay.embedders.local import LocalEmbedder
from scrubjay.settings import load


@pytest.fixture(scope="session")
def models() -> Path:
    folder = load().models
    if wrong := catalogue.find(catalogue.DEFAULT).wrong_files(folder):
        pytest.fail(f"{' and '.join(wrong)} of the default model missing or wrong. Run: scrubjay model pull")
    return folder


@pytest.fixture(scope="session")
def arctic(models):
    embedder = LocalEmbedder(catalogue.find("arctic-embed-s"), models)
    embedder.load()
    return embedder


@pytest.fixture(scope="session")
def multilingual(models):
    """The second model, fetched by its hash the first time."""
    model = catalogue.find("multilingual-e5-small")
    pull(model, models)
    embedder = LocalEmbedder(model, models)
    embedder.load()
    return embedder
