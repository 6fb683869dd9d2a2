"""Rate limits: calls of each kind per minute (budgets.py), and requests in all.

Each credential has its own, whichever dialect is spoken with it, so that no key uses up another's; the local owner is
limited only if a setting says so.

A window begins with a caller's first call and lasts a minute by a clock that cannot be set back.
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
from scrubjay.servers.http.budgets import Budget, cost_of
from scrubjay.values.callers import Caller
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
        return self._counted(caller, "requests", REQUESTS_PER_MINUTE)

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
        return self._counted(caller, budget.kind, budget.per_minute, acts)

    def sign_in(self, address: str, who: str) -> None:
        """Count an attempt to sign in as this user, or with this key.

        :raises RateLimited: if there were too many from that address
        """
        self._taken(SIGN_INS_OF_AN_ADDRESS, f"sign-ins/{address}")
        self._taken(SIGN_INS_PER_MINUTE, f"sign-in/{address}/{sha256(who.encode()).hexdigest()}")

    def _counted(self, caller: Caller, what: str, most: int, acts: int = 1) -> Rate | None:
        if caller.credential is None and not self._local:
            return None
        return self._taken(most, f"{what}/{caller.credential or caller.user}", acts)

    def _taken(self, most: int, key: str, acts: int = 1) -> Rate:
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
    """What a refusal says about the window."""
    return Rate(error.details["limit"], error.details["remaining"], error.details["reset"])


class Windows:
    """What this process counts, timed by a clock that is not affected when the wall clock is set."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._windows: OrderedDict[str, tuple[int, float]] = OrderedDict()  # how many, and until when

    def add(self, key: str, amount: int) -> int:
        """How many there are in the window with these."""
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
        """How many there are in the window, and how many seconds it still lasts."""
        count, until = self._windows.get(key, (0, 0.0))
        left = until - time.monotonic()
        return (count, left) if left > 0 else (0, 0.0)

    def clear(self) -> int:
        with self._lock:
            self._windows, former = OrderedDict(), self._windows
        return len(former)

    def _drop_ended(self, now: float) -> None:
        """All last equally long, so those that began first end first."""
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
