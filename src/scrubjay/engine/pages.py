"""Everything that a filter names, read a page at a time: for work on more memories than anybody would hold at once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from scrubjay.stores.promises.memories import Position, Reads
from scrubjay.values.memory import Audience, Filter, Memory, Order


def pages(
    reads: Reads, filter: Filter, audience: Audience, *, now: datetime, size: int, newest_first: bool = True
) -> Iterator[list[Memory]]:
    """In the order in which memories were made, which no change of them disturbs: each is met once."""
    after = None
    while page := reads.list(
        filter, audience, now=now, order=Order.CREATED, descending=newest_first, limit=size, after=after
    ):
        yield page
        after = Position.of(page[-1], Order.CREATED)
