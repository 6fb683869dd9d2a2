"""Every dialect is accepted on both stores: a test that opens an engine runs once on each."""

from __future__ import annotations

import pytest


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "open_store" in metafunc.fixturenames:
        both = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]
        metafunc.parametrize("open_store", both, indirect=True)
