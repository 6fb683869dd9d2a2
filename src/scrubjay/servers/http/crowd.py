"""All connections: how many at once, per address and in all, and how long they may stay idle.

A connection is *idle* while we wait for its client: for a request's head, for the rest of a body, or for the next
request. Idle ones have a deadline, and when there are too many connections the longest idle one makes room for the
next. Connections beyond the limit get an error; health checks are answered anyway.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections import Counter
from collections.abc import Sequence, Set
from typing import TYPE_CHECKING

from scrubjay.servers.http.forwarded import Network

if TYPE_CHECKING:
    from scrubjay.servers.http.connection import Connection

log = logging.getLogger(__name__)

MAX_CONNECTIONS = 1_000
OF_ONE_ADDRESS = 500
RESERVED = 50  # beyond either limit, to report that it is reached and to answer health checks
IDLE_SECONDS = 10.0
OTHER_FILES = 500  # of the store, its companions and its readers
SAY_AGAIN_SECONDS = 60.0


class ConnectionLimiter:
    """Counts the open connections, and closes idle ones where there are too many."""

    def __init__(
        self,
        *,
        most: int = MAX_CONNECTIONS,
        of_one_address: int = OF_ONE_ADDRESS,
        reserved: int = RESERVED,
        idle_seconds: float = IDLE_SECONDS,
        proxies: Sequence[Network] = (),
    ) -> None:
        """`proxies`: addresses that many clients share, and that therefore have no limit of their own."""
        self.idle_seconds = idle_seconds
        self._most = most
        self._of_one_address = of_one_address
        self._reserved = reserved
        self._proxies = proxies
        self._connections: set[Connection] = set()
        self._addresses: Counter[str] = Counter()
        self._sweep: asyncio.TimerHandle | None = None
        self._said_at = float("-inf")

    def enter(self, connection: Connection) -> None:
        """Count a connection, and close an idle one if there are too many."""
        self._connections.add(connection)
        self._addresses[connection.address] += 1
        if self._is_address_full(connection):
            beside = {one for one in self._connections if one.address == connection.address}
            self._make_room(connection, beside, self._of_one_address)
        elif len(self._connections) > self._most:
            self._make_room(connection, self._connections, self._most)
        if self._sweep is None:
            self._schedule_check()

    def leave(self, connection: Connection) -> None:
        if connection in self._connections:
            self._connections.discard(connection)
            self._addresses[connection.address] -= 1
            if not self._addresses[connection.address]:
                del self._addresses[connection.address]

    def too_many(self, connection: Connection) -> bool:
        """Whether this connection is beyond a limit, with no idle connection left to close."""
        return len(self._connections) > self._most or self._is_address_full(connection)

    def _is_address_full(self, connection: Connection) -> bool:
        return self._addresses[connection.address] > self._of_one_address and not self._is_proxy(connection)

    def _is_proxy(self, connection: Connection) -> bool:
        host = connection.client[0] if connection.client else ""
        return bool(self._proxies) and any(ipaddress.ip_address(host) in network for network in self._proxies)

    def _make_room(self, newcomer: Connection, among: Set[Connection], bound: int) -> None:
        idle = [one for one in among if one.idle and one is not newcomer]
        if idle:
            min(idle, key=lambda one: one.since).drop()
        elif len(among) > bound + self._reserved:
            newcomer.drop()
        self._warn()

    def _warn(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._said_at >= SAY_AGAIN_SECONDS:
            self._said_at = now
            log.warning("Too many connections (%d); closing idle ones.", len(self._connections))

    def _schedule_check(self) -> None:
        # A connection needs no timer of its own, and a server without connections needs none at all.
        loop = asyncio.get_running_loop()
        self._sweep = loop.call_later(self.idle_seconds / 10, self._close_idle) if self._connections else None

    def _close_idle(self) -> None:
        now = asyncio.get_running_loop().time()
        for connection in list(self._connections):
            connection.close_if_idle(now)
        self._schedule_check()


def address_of(client: tuple[str, int] | None) -> str:
    """The address that a limit counts by: for IPv6, the network that a household or machine is given."""
    host = client[0] if client else ""
    if ":" not in host or host == "::1":
        return host
    return str(ipaddress.IPv6Network((host.partition("%")[0], 64), strict=False))


def affordable_connections(connections: int = MAX_CONNECTIONS) -> int:
    """Ask the system for enough open files; return how many connections its limit then allows, at most so many."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return connections
    wanted = connections + RESERVED + OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        except (OSError, ValueError):
            soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return connections if soft < 0 else max(10, min(connections, soft - RESERVED - OTHER_FILES))
