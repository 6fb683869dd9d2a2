"""The real model, found once; tests that need it fail without it, since skipping them would prove nothing."""

import os
from pathlib import Path

import pytest

from scrubjay.embedders import catalogue
from scrubjay.embedders.local import LocalEmbedder

pytest.register_assert_rewrite("tests.embedders.embedder_contract")


@pytest.fixture(scope="session")
def models() -> Path:
    folder = Path(os.environ.get("SCRUBJAY_MODELS") or catalogue.user_cache_folder())
    if wrong := catalogue.find(catalogue.DEFAULT).wrong_files(folder):
        pytest.fail(f"{' and '.join(wrong)} of the default model missing or wrong. Run: scrubjay model pull")
    return folder


@pytest.fixture(scope="session")
def arctic(models):
    embedder = LocalEmbedder(catalogue.find("arctic-embed-s"), models)
    embedder.load()
    return embedder
