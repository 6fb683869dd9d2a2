"""The promise of a store stays narrow: few methods for a backend to write, few parts, all held, short ancestries."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import psycopg  # noqa: F401 -- every class is looked at, those for PostgreSQL too
import pytest

import scrubjay
from scrubjay.stores.promises.memories import Reads, Store, Transaction
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.stores.tables.sql import Sql

pytestmark = pytest.mark.postgres

STORES = Path(scrubjay.__file__).parent / "stores"


def _classes() -> Iterator[type]:
    for module in pkgutil.walk_packages(scrubjay.__path__, "scrubjay."):
        if not module.name.endswith("__main__"):
            found = importlib.import_module(module.name)
            yield from (one for one in vars(found).values() if inspect.isclass(one) and one.__module__ == module.name)


def _parts() -> dict[str, str]:
    return {name: kind for name, kind in Reads.__annotations__.items() if not name.startswith("_")}


def test_a_backend_has_at_most_forty_methods_to_write() -> None:
    """Those of stores and transactions, and of the port."""
    promised = [*(Store.__abstractmethods__ | Transaction.__abstractmethods__)]
    promised += Sql.__abstractmethods__

    assert len(promised) <= 40, sorted(promised)


def test_a_store_has_at_most_ten_parts_and_holds_each_of_them(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "memories.db")
    try:
        assert len(_parts()) <= 10
        assert {name: type(getattr(store, name)).__name__.removeprefix("Sqlite") for name in _parts()} == _parts()
        with store.writing() as tx:
            held = {name: type(getattr(tx, name)).__name__.removeprefix("Sqlite") for name in _parts()}
            assert held == {name: Transaction.__annotations__.get(name, kind) for name, kind in _parts().items()}
    finally:
        store.close()


def test_no_class_has_more_than_three_ancestors_of_ours() -> None:
    ancestors = {
        f"{one.__module__}.{one.__qualname__}": [
            above.__qualname__ for above in one.__mro__[1:] if above.__module__.startswith("scrubjay")
        ]
        for one in _classes()
    }

    assert {name: above for name, above in ancestors.items() if len(above) > 3} == {}


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_a_backend_has_at_most_twenty_modules(backend: str) -> None:
    assert len(list((STORES / backend).glob("*.py"))) <= 20


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_what_stands_beside_memories_is_written_once(backend: str) -> None:
    """Statements about these tables stand in `stores/tables`; copies and check-ups read every table."""
    beside = ("conversations", "messages", "heard", "endpoints", "leases", "deeds", "grants", "credentials", "sessions")
    everything = {"copying", "checkup", "salvage", "backup", "filters", "sql"}
    for module in (STORES / backend).glob("*.py"):
        text = module.read_text("utf-8")
        if module.stem not in everything:
            assert [name for name in beside if f"INTO {name} " in text or f"FROM {name}\n" in text] == [], module.name
