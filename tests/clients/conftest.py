"""The program as the tests of the command line run it, on a machine without clients."""

from __future__ import annotations

import pytest

from tests.cli.conftest import call, environment, filled, home, run, start, stored, terminal

__all__ = ["call", "environment", "filled", "home", "run", "start", "stored", "terminal"]


@pytest.fixture
def place(tmp_path, monkeypatch, environment):
    """A home without clients, and a repository to work in."""
    for name in ("CODEX_HOME", "CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
        environment.pop(name, None)
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    environment["HOME"] = str(tmp_path / "user")
    (tmp_path / ".git").mkdir()
    return tmp_path
