"""Hooks as clients run them: the real program, JSON in, JSON out."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import call, environment, home, run, start, stored

__all__ = ["call", "environment", "home", "run", "start", "stored"]


@pytest.fixture
def hook(run):
    """Runs a hook to its end and gives what it wrote; it always ends well and says nothing else.

    It has time enough for a loaded machine, unless the deadline is what is tested.
    """

    def hook(moment, *options, deadline="60", **given):
        done = run("hook", moment, "--deadline", deadline, *options, stdin=json.dumps(given).encode())
        assert (done.code, done.err) == (0, "")
        return json.loads(done.out)["hookSpecificOutput"]["additionalContext"] if done.out else ""

    return hook
