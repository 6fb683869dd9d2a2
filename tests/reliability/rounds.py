"""How often a fact is tried: a few times in every run, thirty times in a long one.

n clean rounds bound the chance of failure per round below 3/n (95 %).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apsw
import pytest

PATIENCE = 240  # seconds that anything may take on a loud machine; never slept, only waited for


def short_and_long(names: str, short: object, long: object) -> pytest.MarkDecorator:
    """One test with two sizes; only `make test-long` runs the second."""
    sizes = [
        pytest.param(*_values(short), id="short"),
        pytest.param(*_values(long), id="long", marks=pytest.mark.long),
    ]
    return pytest.mark.parametrize(names, sizes)


def _values(size: object) -> tuple[object, ...]:
    return size if isinstance(size, tuple) else (size,)


def end_leases(path: Path) -> None:
    """As if fifteen seconds had passed since a process was killed: others may do what it had begun."""
    with closing(apsw.Connection(str(path))) as con:
        con.execute("UPDATE leases SET until = 0")


def wait_until(condition: Callable[[], bool], *, seconds: float = PATIENCE) -> None:
    """Look again and again until it is so."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)
