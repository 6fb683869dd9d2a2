"""Rate limits: calls of each kind per minute, and requests in all.

Each credential has its own, whichever dialect is spoken with it, so that no key uses up another's; the local owner is
limited only if a setting says so.

A window begins with a caller's first call and lasts a minute by a clock that cannot be set back.

There is one budget per kind of call, whatever the dialect calls it. The first ten numbers are those of the System
specification. Every operation belongs to one kind (a test says so). An operation counts once, however much it does,
since that is how the specification means its numbers for archive, restore, consolidate and the like; only stores sent
as a batch count one by one, and a member's import is one. An owner's is not: owners move whole stores.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from hashlib import sha256
from typing import Any

from scrubjay.dialects.base import Dialect, Operation
from scrubjay.errors import RateLimited, StorageError
from scrubjay.values.callers import Caller, Role
from scrubjay.values.frozen import dataclass

REQUESTS_PER_MINUTE = 6000
SIGN_INS_PER_MINUTE = 10  # for one user from one address, so that others are not locked out …
SIGN_INS_OF_AN_ADDRESS = 100  # … and not all names can be tried from there
WINDOW_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Rate:
    """A caller's limit and what is left of it."""

    limit: int
    remaining: int
    reset: int  # Unix seconds

    @property
    def headers(self) -> dict[str, str]:
        return {
            "X-RateLimit-Limit": str(self.limit),
            "X-RateLimit-Remaining": str(self.remaining),
            "X-RateLimit-Reset": str(self.reset),
        }


class Limits:
    def __init__(self, *, windows: Windows | None = None, local: bool = False) -> None:
        self._windows = windows or Windows()
        self._local = local

    def request(self, caller: Caller) -> Rate | None:
        """Count a request of any kind.

        :raises RateLimited: if the limit is reached
        """
        return self._count(caller, "requests", REQUESTS_PER_MINUTE)

    def call(self, caller: Caller, dialect: Dialect, operation: Operation, arguments: Any = None) -> Rate | None:
        """Count a call of an operation; None if there is no limit.

        :raises RateLimited: if the limit is reached
        """
        budget, acts = cost_of(caller, dialect, operation, arguments)
        return self.act(caller, budget, acts=acts)

    def act(self, caller: Caller, budget: Budget, *, acts: int = 1) -> Rate | None:
        """Count against a budget; None if there is no limit.

        :raises RateLimited: if the limit is reached; then nothing of a batch is counted
        """
        return self._count(caller, budget.kind, budget.per_minute, acts)

    def sign_in(self, address: str, who: str) -> None:
        """Count an attempt to sign in as this user, or with this key.

        :raises RateLimited: if there were too many from that address
        """
        self._take(SIGN_INS_OF_AN_ADDRESS, f"sign-ins/{address}")
        self._take(SIGN_INS_PER_MINUTE, f"sign-in/{address}/{sha256(who.encode()).hexdigest()}")

    def _count(self, caller: Caller, what: str, most: int, acts: int = 1) -> Rate | None:
        if caller.credential is None and not self._local:
            return None
        return self._take(most, f"{what}/{caller.credential or caller.user}", acts)

    def _take(self, most: int, key: str, acts: int = 1) -> Rate:
        possible = acts == 1 or self._windows.read(key)[0] + acts <= most
        admitted = possible and self._windows.add(key, acts) <= most
        if possible and not admitted and acts > 1:
            self._windows.add(key, -acts)  # another was counted since: of what is refused nothing counts
        count, seconds = self._windows.read(key)
        rate = Rate(most, max(0, most - count), math.ceil(time.time() + seconds))
        if not admitted:
            wait = max(1, math.ceil(seconds))
            said = "More than" if acts == 1 else f"Each of these {acts:,} counts: together they exceed"
            raise RateLimited(
                f"{said} {most:,} calls of this kind per minute.",
                hint=f"Try again in {wait} seconds.",
                retry_after=wait,
                limit=rate.limit,
                remaining=rate.remaining,
                reset=rate.reset,
            )
        return rate


def rate_of(error: RateLimited) -> Rate:
    """Read from a refusal what it says about the window."""
    return Rate(error.details["limit"], error.details["remaining"], error.details["reset"])


class Windows:
    """The counts of this process, timed by a clock that is not affected when the wall clock is set."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._windows: OrderedDict[str, tuple[int, float]] = OrderedDict()  # how many, and until when

    def add(self, key: str, amount: int) -> int:
        """Add to a window; return its count with these."""
        now = time.monotonic()
        with self._lock:
            self._drop_ended(now)
            count, until = self._windows.get(key, (0, 0.0))
            if until <= now:
                count, until = 0, now + WINDOW_SECONDS
            count = max(0, count + amount)  # what is given back may have been counted in the window before
            self._windows[key] = (count, until)
            return count

    def read(self, key: str) -> tuple[int, float]:
        """Read the count of a window, and how many seconds it still lasts."""
        count, until = self._windows.get(key, (0, 0.0))
        left = until - time.monotonic()
        return (count, left) if left > 0 else (0, 0.0)

    def clear(self) -> int:
        with self._lock:
            self._windows, former = OrderedDict(), self._windows
        return len(former)

    def _drop_ended(self, now: float) -> None:
        """Drop the windows that have ended: all last equally long, so those that began first end first."""
        while self._windows and next(iter(self._windows.values()))[1] <= now:
            self._windows.popitem(last=False)


class SharedWindows(Windows):
    """Windows that all servers on one database share; this process keeps the last known state.

    A store that is unavailable for a moment must neither let everyone in nor lock them out: this process counts then.
    """

    def __init__(self, count_call: Callable[..., tuple[int, float] | None]) -> None:
        super().__init__()
        self._count_call = count_call

    def add(self, key: str, amount: int) -> int:
        try:
            shared = self._count_call(key, seconds=WINDOW_SECONDS, amount=amount)
        except StorageError:
            shared = None
        if shared is None:
            return super().add(key, amount)
        count, seconds = shared
        now = time.monotonic()
        with self._lock:
            self._drop_ended(now)  # one that another server began may go a little later than it ends
            self._windows[key] = (count, now + seconds)
        return count


# --- kinds of calls --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Budget:
    kind: str
    per_minute: int


PER_MINUTE = {
    "store": 100,
    "recall": 1000,
    "update": 200,
    "forget": 50,
    "consolidate": 10,
    "list": 500,
    "statistics": 100,
    "sync": 10,
    "archive": 20,
    "restore": 20,
    "read": 1000,  # one memory or what is around it
    "export": 100,
    "import": 100,
    "converse": 100,
    "manage": 100,  # keys, spaces, workspaces, categories, jobs, upkeep
    "exchange": 3000,  # between two stores that sync: the first sync of a large one sends as much as it can
}

READ = Budget("read", PER_MINUTE["read"])

KINDS = {
    "store": """
        scrubjay.remember
        memento.store_memory cortex.add_memory system.store_memory mama.save mama.save_decision mama.save_checkpoint
        chimera.remember chimera.create_memory chimera.batch_remember native.store_memory
    """,
    "recall": """
        scrubjay.recall
        memento.search_memories system.recall_memories mama.search mama.recall_decision mama.suggest_decision
        chimera.search chimera.inject chimera.build_context native.search
    """,
    "update": """
        scrubjay.settle scrubjay.revise scrubjay.undo
        memento.supersede_memory cortex.update_memory cortex.move_memory system.update_memory mama.update
        mama.update_outcome chimera.update_memory native.update_memory native.recover_memory native.restore_version
        native.supersede_memory native.release_memory native.keep_both native.mark_same native.reopen_conflict
        native.bulk_update native.undo_bulk native.tidy
        native.resolve_sync_conflict native.accept_suggestion native.drop_suggestion
    """,
    "forget": """
        scrubjay.forget
        cortex.remove_memory cortex.prune_memories system.forget_memory chimera.delete_memory native.forget_memory
        native.bulk_forget native.prune
    """,
    "consolidate": "system.consolidate_memories",
    "list": """
        scrubjay.recent
        memento.list_recent_memories cortex.list_memories cortex.get_recent_memories system.list_memories
        mama.list_decisions chimera.list_memories chimera.list_workspace_memories native.list_memories
        native.list_topics native.list_conflicts native.list_duplicates native.preview_bulk native.list_tags
        native.list_suggestions
    """,
    "statistics": "system.get_memory_stats native.get_statistics",
    "sync": "system.sync_memories native.run_sync",
    "archive": "system.archive_memory",
    "restore": "system.restore_memory",
    "read": """
        scrubjay.brief
        cortex.get_memory cortex.list_stores system.job_status mama.load_checkpoint chimera.get_memory
        chimera.list_conversations chimera.get_conversation chimera.list_messages chimera.list_workspaces
        chimera.get_workspace native.get_memory native.shown_to native.list_versions native.diff_versions
        native.list_links native.get_graph native.get_network native.get_chain native.follow native.audit
        native.list_keys native.list_grants native.list_spaces native.list_stores native.list_jobs native.get_job
        native.list_endpoints native.list_sync_conflicts native.check native.brief
    """,
    "export": "native.export",
    "import": "native.import",
    "converse": """
        chimera.create_conversation chimera.update_conversation chimera.delete_conversation chimera.clear_conversation
        chimera.send_message chimera.inject_memory chimera.toggle_memory chimera.remove_injection
    """,
    "manage": """
        cortex.create_store cortex.create_category cortex.set_category_description cortex.delete_category
        cortex.reindex_store system.job_cancel chimera.create_workspace chimera.update_workspace
        chimera.delete_workspace native.create_key native.revoke_key native.rotate_key native.grant_space
        native.withdraw_grant native.create_space native.drop_space native.add_endpoint native.remove_endpoint
        native.cancel_job native.reindex_store native.backup native.reembed native.rebuild
    """,
    "exchange": """
        native.sync_greet native.sync_changes native.sync_stamps native.sync_links native.sync_fetch native.sync_take
        native.sync_renew
    """,
}
KIND_OF = {name: kind for kind, names in KINDS.items() for name in names.split()}

# Where the memories of a batch are in the arguments.
BATCHES = {"scrubjay.remember": "facts", "chimera.batch_remember": "memories"}
BATCHES_OF_MEMBERS = {"native.import": "lines"}


def cost_of(caller: Caller, dialect: Dialect, operation: Operation, arguments: Any) -> tuple[Budget, int]:
    """Find the budget that a call counts against, and as how many calls. The arguments have not been checked yet."""
    name = _name(dialect, operation)
    if name in BATCHES_OF_MEMBERS and caller.role is not Role.OWNER:
        return Budget("store", PER_MINUTE["store"]), _items(arguments, BATCHES_OF_MEMBERS[name])
    return budget_of(dialect, operation), _items(arguments, BATCHES.get(name))


def budget_of(dialect: Dialect, operation: Operation) -> Budget:
    kind = KIND_OF.get(_name(dialect, operation), "manage" if operation.changes else "read")
    return Budget(kind, PER_MINUTE[kind])


def _items(arguments: Any, batch: str | None) -> int:
    items = arguments.get(batch) if batch is not None and isinstance(arguments, dict) else None
    return max(1, len(items)) if isinstance(items, list) else 1


def _name(dialect: Dialect, operation: Operation) -> str:
    """The operation's name in `KINDS`: some have a second one, prefixed with the dialect's."""
    return f"{dialect.name}.{operation.name.removeprefix(f'{dialect.name}_')}"
