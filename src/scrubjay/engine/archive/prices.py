"""What storage costs, as its owner declares it: `hot=0.25 cold=0.25 glacier=0.004 glacier.out=0.03`.

A tier's own name is the price of a gigabyte for a month; `.in` and `.out` are the prices of a gigabyte put there and
brought back. Without a price every cost is 0.0: nothing is invented.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from scrubjay.errors import InvalidInput
from scrubjay.values.memory import Tier

GIGABYTE = 1_000_000_000
HOT = "hot"
NAMES = {HOT, *(f"{tier}{way}" for tier in Tier for way in ("", ".in", ".out"))}


def read(text: str) -> dict[str, float]:
    """:raises InvalidInput: naming what is not a price"""
    prices: dict[str, float] = {}
    for pair in text.replace(",", " ").split():
        name, _, amount = pair.partition("=")
        try:
            price = float(amount)
        except ValueError:
            price = -1.0
        if name not in NAMES or not 0 <= price < math.inf:
            raise InvalidInput(
                f"prices: invalid price {pair[:60]!r}.",
                hint=f"Use NAME=AMOUNT; names are {', '.join(sorted(NAMES))}.",
                field="prices",
            )
        prices[name] = price
    return prices


def monthly_savings(prices: Mapping[str, float], tier: Tier, sizes: Iterable[tuple[int, int]]) -> float:
    """What moving memories, each (hot bytes, packed bytes), to a tier saves a month."""
    if HOT not in prices:
        return 0.0
    saved = sum(hot * prices[HOT] - packed * prices.get(tier, 0.0) for hot, packed in sizes)
    return round(saved / GIGABYTE, 6)


def reduction(prices: Mapping[str, float], tier: Tier, hot: int, packed: int) -> float:
    """By which share a memory costs less than before; 0 when a price is missing."""
    if not prices.get(HOT) or tier not in prices or not hot:
        return 0.0
    return round(min(1.0, max(0.0, 1 - packed * prices[tier] / (hot * prices[HOT]))), 2)


def transfer(prices: Mapping[str, float], tier: Tier, way: str, bytes_moved: int) -> float:
    return round(prices.get(f"{tier}.{way}", 0.0) * bytes_moved / GIGABYTE, 6)
