"""What a second look sees of a scope's memories, in memory: how each begins, and when it holds.

Only of scopes that admit nothing but active memories. What changes such a text, or when it holds, writes its signatures
again, which is noted (scopes.py); of archived ones texts are taken out and put back without that.
"""

from __future__ import annotations

from collections.abc import Sequence
from sys import getsizeof
from typing import NamedTuple

from scrubjay.stores.postgres.filters import Restriction
from scrubjay.stores.promises.memories import OPENING
from scrubjay.values.memory import State

# Of `texts`, for `_found` in scopes.py; a further part of a memory has the opening of the first.
COLUMNS = {
    "conversation": ("TEXT", "texts.conversation_id"),
    "length": ("INTEGER", "texts.content_length"),
    "valid_from": ("BIGINT", "texts.valid_from"),
    "valid_until": ("BIGINT", "texts.valid_until"),
    "opening": ("TEXT", f"CASE WHEN vectors.part = 0 THEN left(texts.content, {OPENING}) END"),
}


def kept(restriction: Restriction) -> bool:
    return restriction.states == (int(State.ACTIVE),)


class Seen(NamedTuple):
    """Columns of rows, as they are read."""

    conversation: Sequence[str | None] = ()
    length: Sequence[int] = ()
    valid_from: Sequence[int | None] = ()
    valid_until: Sequence[int | None] = ()
    opening: Sequence[str | None] = ()

    def numbers(self, rows: int) -> list[Sequence[int]]:
        """What is the same for all of one conversation, 0 for none; and lengths."""
        if not self.opening:
            return [[0] * rows, [0] * rows]
        return [[hash(one) if one else 0 for one in self.conversation], self.length]


class Openings:
    """Of the rows of a scope."""

    def __init__(self) -> None:
        self.bytes = 0
        self._texts: list[str] | None = []  # none any more, once they take too much room
        self._valid: dict[int, tuple[int | None, int | None]] = {}  # by a memory's number; hardly any has it

    def add(self, memories: Sequence[int], seen: Seen) -> None:
        first = {memory: text for memory, text in zip(memories, seen.opening, strict=False) if text is not None}
        if self._texts is None or not first.keys() >= {*memories}:
            self.forget()
            return
        self.bytes += sum(map(getsizeof, first.values()))
        self._texts += map(first.__getitem__, memories)
        for memory, *valid in zip(memories, seen.valid_from, seen.valid_until, strict=True):
            if valid != [None, None]:
                self._valid[memory] = valid[0], valid[1]

    def remove(self, row: int, memory: int, *, its_last: bool) -> None:
        """The last row comes into its place."""
        if self._texts is None:
            return
        gone, last = self._texts[row], self._texts.pop()
        if row < len(self._texts):
            self._texts[row] = last
        if its_last:
            self.bytes -= getsizeof(gone)
            self._valid.pop(memory, None)

    def forget(self) -> None:
        self.bytes, self._texts, self._valid = 0, None, {}

    def texts(self, rows: Sequence[int]) -> list[str] | None:
        """None if they are not kept."""
        return None if self._texts is None else [*map(self._texts.__getitem__, rows)]

    def valid(self, memories: Sequence[int]) -> tuple[list[int | None], list[int | None]]:
        """From when on and until when they hold."""
        known = [self._valid.get(memory, (None, None)) for memory in memories]
        return [since for since, _ in known], [until for _, until in known]
