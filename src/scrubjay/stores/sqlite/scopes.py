"""Which memories a filter admits, remembered: a category of a large store is asked about again and again, and finding
its members takes a walk through an index of all memories. What has changed since is looked at by itself.

A scope may hold more than the filter admits, never less: whether a memory has expired is left to the look at its row,
so that a scope is the same at any time.
"""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

import threading
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import apsw
import numpy as np
from numpy.typing import NDArray

from scrubjay.stores.sqlite.filters import Restriction, Value, change_of, small_table
from scrubjay.values.frozen import replace

MOST_SCOPES = 100
MOST_KEPT = 2_000_000  # memories of all of them, 8 bytes each
MOST_CHANGED = 5_000  # memories that are looked at by themselves

Ints = NDArray[np.int64]
Key = tuple[Hashable, ...]


class Scope(NamedTuple):
    """The memories of a filter, up to a change."""

    memories: Ints
    change: int


class Scopes:
    """Those of one store. Safe to call from several threads, each with a connection that reads from one snapshot."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[Key, Scope] = {}  # the one that was asked for last comes last
        self._memories = 0

    def knows(self, restriction: Restriction) -> bool:
        where, values = _condition(restriction)
        with self._lock:
            return (where, *values) in self._kept

    def members(self, con: apsw.Connection, restriction: Restriction) -> Ints:
        """The memories that a restriction admits, some that have expired among them, in any order."""
        where, values = _condition(restriction)
        everything = f"{small_table(restriction)} WHERE {where}"
        if not restriction.lasting:
            return _found(con, everything, values)
        key = (where, *values)
        change = change_of(con)
        with self._lock:
            known = self._kept.get(key)
        if known is None or known.change != change:
            memories = None if known is None else _followed(con, known, where, values, change)
            known = Scope(_found(con, everything, values) if memories is None else memories, change)
        self._keep(key, known)
        return known.memories

    def _keep(self, key: Key, scope: Scope) -> None:
        with self._lock:
            if self._kept.get(key, scope).change > scope.change:  # another thread reads from a newer snapshot
                return
            self._forget(key)
            self._kept[key] = scope
            self._memories += len(scope.memories)
            while self._memories > MOST_KEPT or len(self._kept) > MOST_SCOPES:
                self._forget(next(iter(self._kept)))

    def _forget(self, key: Key) -> None:
        former = self._kept.pop(key, None)
        self._memories -= 0 if former is None else len(former.memories)


def _condition(restriction: Restriction) -> tuple[str, Sequence[Value]]:
    return (replace(restriction, expired=None) if restriction.expired is False else restriction).condition()


def _found(con: apsw.Connection, those: str, values: Sequence[Value]) -> Ints:
    rows = con.execute(f"SELECT memories.seq FROM {those}", values).fetchall()
    return np.fromiter((seq for (seq,) in rows), np.int64)


def _followed(con: apsw.Connection, known: Scope, where: str, values: Sequence[Value], change: int) -> Ints | None:
    """The memories of a scope as of now; None if it is quicker to find them again."""
    if known.change > change:  # it was read from a newer snapshot
        return None
    touched = "memories INDEXED BY memories_by_change WHERE memories.change > ?"
    changed = _found(con, f"{touched} LIMIT ?", [known.change, MOST_CHANGED + 1])
    if len(changed) > MOST_CHANGED:
        return None
    others = known.memories[np.isin(known.memories, changed, invert=True)]
    return np.concatenate((others, _found(con, f"{touched} AND {where}", [known.change, *values])))
