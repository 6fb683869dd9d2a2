"""Every dialect is accepted on both stores. The stores keep the same promises, which their contract tests, so of the
tests that open an engine PostgreSQL gets the first of each operation; the others run there in `make test-long`."""

from __future__ import annotations

import inspect
import re
from collections import defaultdict

import pytest

from scrubjay.dialects.table import DIALECTS, ONLY_REST, find

OPERATIONS = frozenset(name for dialect in [*DIALECTS, *ONLY_REST] for name in find(dialect).operations)
WORD = re.compile(r"\w+")

tested: defaultdict[str, set[str]] = defaultdict(set)  # the operations that tests of a file have named so far


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "open_store" in metafunc.fixturenames:
        before = tested[metafunc.module.__name__]
        named = OPERATIONS.intersection(WORD.findall(inspect.getsource(metafunc.function))) - before
        before |= named
        marks = [pytest.mark.postgres] if named else [pytest.mark.postgres, pytest.mark.long]
        metafunc.parametrize("open_store", ["sqlite", pytest.param("postgres", marks=marks)], indirect=True)
