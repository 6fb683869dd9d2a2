"""The same done to many memories: looked at first, done together, undone together.

What a filter names is changed a bounded number at a time, each time in one transaction, all as one bulk operation: so a
client that stored ten thousand poisoned memories is undone by one command, and that command by another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from scrubjay.engine import access
from scrubjay.engine.lifecycle import lifecycle
from scrubjay.engine.store import intake
from scrubjay.errors import InvalidInput, NotFound
from scrubjay.stores.promises.memories import Transaction
from scrubjay.values.callers import Role
from scrubjay.values.frozen import dataclass, replace
from scrubjay.values.memory import Memory, State, Status, random_suffix
from scrubjay.values.search import Filter
from scrubjay.values.store import BulkOperation

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine

MOST = 1_000  # memories changed in one transaction
KEPT = frozenset({State.ACTIVE, State.SUPERSEDED, State.ARCHIVED})
FORGOTTEN, UPDATED, RECOVERED = "forgotten", "updated", "recovered"
HOW = ("states", "expired")  # fields of a filter that alone name nothing in particular


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What a filter names: how many, and the newest of them."""

    total: int
    memories: tuple[Memory, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkDone:
    """What was done to how many, the name to undo it by, and how many are left for another call."""

    deed: str
    action: str
    count: int
    left: int = 0
    memories: tuple[str, ...] = ()


class Bulk:
    """Works at an engine, in its spaces; memories that are named one by one may be in any."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def preview(self, filter: Filter, *, limit: int = 20) -> Selection:
        """What `forget` and `update` would change."""
        page = self._at(filter).list(self._choose_filter(filter), limit=limit, counted=True)
        return Selection(total=page.total or 0, memories=page.memories)

    def forget(self, filter: Filter, *, reason: str | None = None, operation: str | None = None) -> BulkDone:
        """Soft-delete what a filter matches; `undo` restores it. More than a thousand take further calls, under
        the same `operation`."""
        if operation is not None:
            self._check_own(operation)
        return self._engine.transact(BulkDone, self._forgetting(filter, reason=reason, operation=operation))

    def forget_all(self, filter: Filter, *, reason: str | None = None) -> BulkDone:
        """The same, however many there are: a thousand per transaction, all as one bulk operation."""
        engine = self._engine
        if (kept := engine.earlier_result(BulkDone)) is not None:
            return kept
        operation, memories, more = None, list[str](), True
        while more:
            forget = self._forgetting(filter, reason=reason, operation=operation, count_rest=False)
            with engine.records.writing() as tx:
                done = forget(tx)
            operation, more = done.deed, done.left > 0 < done.count
            memories += done.memories
        return engine.transact(BulkDone, lambda _tx: replace(done, count=len(memories), memories=tuple(memories)))

    def _check_own(self, operation: str) -> None:
        """:raises NotFound: if the caller has no such bulk operation"""
        known = self._engine.records.history.bulk_operation(operation)
        if known is None or known.user != self._engine.caller.user:
            raise NotFound(f"No bulk operation {operation[:100]}.")

    def _forgetting(
        self, filter: Filter, *, reason: str | None, operation: str | None, count_rest: bool = True
    ) -> Callable[[Transaction], BulkDone]:
        def forget(tx: Transaction, memory: Memory) -> None:
            lifecycle.forget(self._engine.ledger, tx, memory.id, hard=False, reason=reason)

        chosen = self._choose_filter(filter)
        return self._each(chosen, FORGOTTEN, forget, reason=reason, operation=operation, count_rest=count_rest)

    def update(
        self, filter: Filter, *, tags: intake.TagChange | None = None, reason: str | None = None, **changes: Any
    ) -> BulkDone:
        """Change the same fields of everything that a filter names; each keeps its former state in its history."""
        intake.check_known(changes, CHANGEABLE)
        if not changes and tags is None:
            raise InvalidInput("No updates were given.", hint=f"Provide at least one of tags, {', '.join(CHANGEABLE)}.")

        def update(tx: Transaction, memory: Memory) -> None:
            changed = intake.revision(memory, changes, intake.Merge.REPLACE, tags)
            self._engine.ledger.revise(tx, memory, replace(memory, **changed), changed, reason=reason, text=None)

        chosen = self._choose_filter(filter)
        chosen = replace(chosen, states=chosen.states - {State.ARCHIVED})
        return self._engine.transact(BulkDone, self._each(chosen, UPDATED, update, reason=reason, operation=None))

    def undo(self, operation: str) -> BulkDone:
        """Restore what one bulk operation forgot; what was erased or restored since is skipped,
        and so is what was restored and deleted again.

        :raises NotFound: if the caller has no such bulk operation
        """
        engine = self._engine
        done = engine.records.history.bulk_operation(operation)
        if done is None or done.action != FORGOTTEN or (done.user != engine.caller.user and not self._owner):
            raise NotFound(f"Bulk operation {operation[:100]} forgot nothing.")

        def write(tx: Transaction) -> BulkDone:
            forgotten = [
                memory.id
                for memory in tx.get(done.memories, access.audience_anywhere(engine.caller))
                if memory.status is Status.DELETED
                and memory.deleted_at is not None
                and memory.deleted_at <= done.at  # else something else deleted it since
                and access.may_change(engine.caller, memory)
                and (memory.recoverable_until is None or memory.recoverable_until >= engine.now())
            ]
            for name in forgotten[:MOST]:
                lifecycle.recover(engine.ledger, tx, name, reason=lifecycle.UNDONE)
            count = min(len(forgotten), MOST)
            return BulkDone(
                deed=operation,
                action=RECOVERED,
                count=count,
                left=len(forgotten) - count,
                memories=tuple(forgotten[:MOST]),
            )

        return engine.transact(BulkDone, write)

    def _each(
        self,
        filter: Filter,
        action: str,
        change: Callable[[Transaction, Memory], None],
        *,
        reason: str | None,
        operation: str | None,
        count_rest: bool = True,
    ) -> Callable[[Transaction], BulkDone]:
        """What changes as many as one transaction may, once the caller's right to do so is clear. Whoever does the rest
        at once need not count it each time: 1 stands for any number then."""
        engine = self._at(filter)
        for space in engine.spaces:
            access.check_store(engine.caller, space)
        lifecycle.check_names_one(filter.ids, engine.expected_version)
        audience = engine.audience(filter)

        def write(tx: Transaction) -> BulkDone:
            found = tx.list(filter, audience, now=engine.now(), limit=MOST + 1)
            left = max(0, len(found) - MOST)
            found = found[:MOST]
            if left and count_rest:
                left = max(0, tx.count(filter, audience, now=engine.now()) - len(found))
            for memory in found:
                lifecycle.check_version(memory, engine.expected_version)
                change(tx, memory)
            ids = tuple(memory.id for memory in found)
            name = operation or f"bulk_{random_suffix()}"
            tx.history.note_operation(
                BulkOperation(
                    id=name, action=action, user=engine.caller.user, at=engine.now(), reason=reason, memories=ids
                ),
                goes_on=left > 0 and not count_rest,
            )
            return BulkDone(deed=name, action=action, count=len(ids), left=left, memories=ids)

        return write

    def _choose_filter(self, filter: Filter) -> Filter:
        """The filter, for everything that is not deleted unless it says which states.

        :raises InvalidInput: if it names everything there is
        """
        plain = Filter()
        names = [entry.name for entry in fields(Filter) if entry.name not in HOW]
        if all(getattr(filter, name) == getattr(plain, name) for name in names):
            raise InvalidInput("Select memories with a filter.", hint="Give a client, caller, tag, time or flag.")
        if filter.states == plain.states and filter.expired is plain.expired:
            return replace(filter, states=KEPT, expired=None)
        return replace(filter, states=filter.states & KEPT)

    def _at(self, filter: Filter) -> Engine:
        return self._engine if filter.ids is not None else self._engine.bound_to(only=True)

    @property
    def _owner(self) -> bool:
        return self._engine.caller.role is Role.OWNER


CHANGEABLE = ("category", "importance", "confidence", "access_level", "expires_at")  # the same for many makes sense
