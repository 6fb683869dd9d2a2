from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.servers.peer import Peer


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Peer]]:
    """Starts servers on one home, and makes sure that none outlives the test."""
    peers: list[Peer] = []

    def start_one(*arguments: str, **env: str) -> Peer:
        peers.append(Peer(tmp_path, *arguments, **env))
        return peers[-1]

    yield start_one
    for peer in peers:
        peer.__exit__()
