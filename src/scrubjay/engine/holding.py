"""How much work is done at once, and for how long one process does it alone.

Memories are held for long work: others may read them, but their changes are refused (`Locked`) until it is done.

Consolidation, archiving and sync hold what they touch between reading it and writing it. A hold ends with its block,
or after `HOLD_SECONDS` if the process dies; whoever works longer renews it. It keeps others' changes from being
refused late, as a conflict; that none is lost is the business of versions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from scrubjay.errors import Error, Locked
from scrubjay.values.memory import random_suffix

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine
    from scrubjay.stores.promises.memories import Store, Transaction

HOLD_SECONDS = 120.0
LEASE_SECONDS = 15.0  # for which one process alone does some work in the background; it renews that
PAUSE_SECONDS = 5.0  # between looks at what other processes have left
CLOSING_SECONDS = 5.0  # what a thread gets to come to its end
BATCH = 64  # memories that are written in one transaction
PAGE = 500  # rows that are read at once


@contextmanager
def holding(engine: Engine, ids: Sequence[str]) -> Iterator[Engine]:
    """Hold memories; inside, the engine that is given may change them.

    :raises Locked: if another process holds one of them; then none is held
    """
    holder = random_suffix()
    with engine.records.writing() as tx:
        hold(tx, ids, holder=holder)
    try:
        yield engine.bound_to(holder=holder)
    finally:
        let_go(engine.records, holder)


def hold(tx: Transaction, ids: Sequence[str], *, holder: str) -> None:
    """Take or renew; :raises Locked: if another process holds one of them"""
    other = tx.jobs.hold(ids, holder=holder, seconds=HOLD_SECONDS)
    if other is not None:
        raise locked_error(other)


def let_go(records: Store, holder: str) -> None:
    # On a full disk the holds end by themselves, and the error that brought us here matters more.
    with suppress(Error), records.writing() as tx:
        tx.jobs.let_go(holder)


def locked_error(id: str) -> Locked:
    return Locked(
        f"Memory {id} is being consolidated, archived or synced.", hint="Try again in a moment.", memory_id=id
    )
