from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from scrubjay.servers.http import rate_limits
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


@pytest.fixture
def within_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long its calls take on a busy machine, to the rate limits they come at once."""
    now = time.monotonic()
    monkeypatch.setattr(rate_limits, "time", SimpleNamespace(monotonic=lambda: now, time=time.time))
