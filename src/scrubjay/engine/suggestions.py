"""What this machine's hooks suggest to remember: shown, accepted, dropped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from scrubjay.errors import NotFound
from scrubjay.values.memory import Kind, Source, Stored

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine
    from scrubjay.machine.suggestions import Suggestion


class Suggestions:
    """What this machine's hooks suggest to remember; it is in no search until accepted."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def list(self) -> Sequence[Suggestion]:
        """What this machine's hooks suggest to remember, newest first; it is in no search until accepted."""
        return [] if self._engine.parts.suggestions is None else self._engine.parts.suggestions.all()

    def accept(self, id: str, text: str | None = None) -> Stored:
        """Store what was suggested, in its own words or these; the suggestion is gone then.

        :raises NotFound: if there is no such suggestion
        """
        one = self._take(id)
        try:
            bound = self._engine.bound_to(spaces=(one.space,), only=self._engine.only)
            return bound.store(text or one.text, kind=Kind(one.kind), source=Source.EXPLICIT)
        except BaseException:
            assert self._engine.parts.suggestions is not None
            self._engine.parts.suggestions.put_back(one)
            raise

    def drop(self, id: str) -> None:
        """:raises NotFound: if there is no such suggestion"""
        self._take(id)

    def _take(self, id: str) -> Suggestion:
        one = None if self._engine.parts.suggestions is None else self._engine.parts.suggestions.take(id)
        if one is None:
            raise NotFound(
                f"No suggestion {id!r}.", hint="`scrubjay suggestions` lists them; after 30 days they are gone."
            )
        return one
