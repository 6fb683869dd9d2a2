"""The changes of a space as they happen, as far as the caller may see them.

A change of a memory that the caller may not see is passed over. The numbers of events count those too, so a caller from
outside sees places in the feed instead, which reveal nothing. What has been erased for good is seen by owners and by
whoever did it: for others there is no longer anything that says whether they might have seen it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import TYPE_CHECKING

from scrubjay.engine import access, cursors
from scrubjay.engine.holding import PAGE
from scrubjay.errors import InvalidInput
from scrubjay.stores.promises.memories import Position
from scrubjay.values.callers import Role
from scrubjay.values.frozen import replace
from scrubjay.values.store import Event

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine

LAST_NUMBER = 2**63 - 1


class Feed:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._records = engine.records

    def events(self, *, after: int = 0, limit: int = 100) -> Sequence[Event]:
        """The changes of the engine's first space after a number, in order."""
        if not 1 <= limit <= 1_000:
            raise InvalidInput("limit must be from 1 to 1,000.", field="limit")
        _check_number(after)
        shown: list[Event] = []
        for event in self._visible_events(after):
            if event is None or len(shown) == limit:
                break
            shown.append(event)
        return shown

    def follow(self, *, after: int | None = None) -> Iterator[Event | None]:
        """The changes after a number, or from now on; None whenever there is nothing yet."""
        if after is None:
            return self._visible_events(self._records.history.last_event(self._engine.spaces[0]))
        _check_number(after)
        return self._visible_events(after)

    def place_of(self, event: Event) -> str:
        """An event's position in the feed, for this caller to continue after it."""
        return cursors.write_cursor(Position(value=0, seq=event.number), key=self._key, question=self._question)

    def number_at(self, place: str) -> int:
        """The number of the event there; 0 is the beginning.

        :raises InvalidInput: if no reply to this caller has named this place in this space
        """
        if place == "0":
            return 0
        try:
            return cursors.read(place, key=self._key, question=self._question).seq
        except InvalidInput:
            hint = "Omit it to start now, or send 0 to start with the first event."
            raise InvalidInput("after must be the id of an event in this space.", hint=hint, field="after") from None

    @cached_property
    def _key(self) -> bytes:
        return cursors.signing_key(self._engine.records)

    @property
    def _question(self) -> str:
        return repr(("events", self._engine.caller.user, self._engine.spaces[0]))

    def listening(self, ring: Callable[[], None]) -> AbstractContextManager[None]:
        """Have `ring` called when there may be news to follow; see `Store.listening`."""
        return self._records.listening(self._engine.spaces[0], ring)

    def _visible_events(self, after: int) -> Iterator[Event | None]:
        while True:
            batch = self._records.history.events(self._engine.spaces[0], after=after, limit=PAGE)
            visible = self._visible([event.memory for event in batch if event.memory is not None])
            for event in batch:
                after = event.number
                if self._may_know(event):
                    yield event
                elif event.memory in visible:
                    yield event if event.reason is None else self._without_secrets(event)
            if len(batch) < PAGE:
                yield None

    def _visible(self, ids: Sequence[str]) -> set[str]:
        audience = access.audience_in(self._engine.caller, self._engine.spaces[:1])
        return {memory.id for memory in self._records.get(list(dict.fromkeys(ids)), audience)}

    def _without_secrets(self, event: Event) -> Event:
        """The event without its reason, if that may be about a state that the caller was never to see."""
        memory = event.memory or ""
        former = self._records.history.versions(memory)
        seen = self._engine.ledger.visible_versions(self._records, former)
        unknown = self._records.archives.get([memory])  # its earlier versions were archived with it
        return replace(event, reason=None) if unknown or len(seen) < len(former) else event

    def _may_know(self, event: Event) -> bool:
        caller = self._engine.caller
        if not access.is_granted(caller, event.space):
            return False
        return caller.role is Role.OWNER or (event.user == caller.user and caller.role is Role.MEMBER)


def _check_number(after: int) -> None:
    if not 0 <= after <= LAST_NUMBER:
        raise InvalidInput(f"after must be from 0 to {LAST_NUMBER:,}: the number of an event.", field="after")
