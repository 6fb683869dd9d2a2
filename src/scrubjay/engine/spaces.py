"""The spaces of a store: listed, made, described, dropped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from scrubjay.engine import access
from scrubjay.engine.store import intake
from scrubjay.errors import Conflict, SpaceNotFound
from scrubjay.stores.promises.memories import Reads, Transaction
from scrubjay.stores.promises.statistics import SpaceCounts
from scrubjay.values.callers import DEFAULT_SPACE
from scrubjay.values.frozen import replace
from scrubjay.values.store import Space

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine


class Spaces:
    """The spaces of a store, as far as the caller may use them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def list(self) -> Sequence[Space]:
        """The spaces that the caller may use, with how many memories of each it sees."""
        granted = [
            space for space in self._engine.records.spaces.list() if access.is_granted(self._engine.caller, space.name)
        ]
        return self._with_counts(self._engine.records, granted)

    def has(self, name: str) -> bool:
        """Whether there is a space of this name; one that was not granted is not there for the caller."""
        return access.is_granted(self._engine.caller, name) and self._engine.records.spaces.has(name)

    def check(self, names: Iterable[str]) -> None:
        """For callers who must not make a space by misspelling one: storing into one that is not there makes it.

        :raises SpaceNotFound: if there is none of that name. One that was not granted looks empty, there or not.
        """
        for name in names:
            if access.is_granted(self._engine.caller, name) and name not in self._engine.spaces:
                self.check_there(self._engine.records, name)

    def check_there(self, reads: Reads, name: str) -> None:
        filed = self._engine.registry is not None and name in self._engine.registry.stores()
        if not filed and not reads.spaces.has(name):
            hint = f"Create it first: `scrubjay spaces create {name}`."
            raise SpaceNotFound(f"No space {name}.", hint=hint, space=name)

    def create(self, name: str, *, description: str | None = None) -> bool:
        """Make a space; False if it was there already."""
        access.check_store(self._engine.caller, intake.check_space(name))
        return self._engine.transact(
            bool, lambda tx: tx.spaces.create(name, at=self._engine.now(), description=description)
        )

    def get(self, name: str) -> Space:
        """:raises SpaceNotFound: if there is none :raises Forbidden: if the caller has no part in it"""
        return self._get(self._engine.records, name)

    def _get(self, reads: Reads, name: str) -> Space:
        access.check_granted(self._engine.caller, name)
        found = next((space for space in reads.spaces.list() if space.name == name), None)
        if found is None:
            raise SpaceNotFound(f"No space {name[:100]!r}.", hint="Create it first.")
        [counted] = self._with_counts(reads, [found])
        return counted

    def _with_counts(self, reads: Reads, spaces: Sequence[Space]) -> Sequence[Space]:
        audience = access.audience_in(self._engine.caller, [space.name for space in spaces])
        known = reads.statistics.space_counts(audience, now=self._engine.now())
        counts = [known.get(space.name, SpaceCounts()) for space in spaces]
        return [
            replace(space, memories=count.active, superseded=count.superseded)
            for space, count in zip(spaces, counts, strict=True)
        ]

    def describe(self, name: str, *, title: str | None = None, description: str | None = None) -> Space:
        """Change what people read of a space; what is not given stays."""
        access.check_store(self._engine.caller, name)
        for field, text in (("title", title), ("description", description)):
            if text is not None:
                intake.check_text(text, field, maximum=intake.MAX_METADATA)

        def write(tx: Transaction) -> Space:
            known = self._get(tx, name)
            tx.spaces.describe(name, title=title or known.title, description=description or known.description)
            return self._get(tx, name)

        return self._engine.transact(Space, write)

    def drop(self, name: str) -> Space:
        """Put an empty space away, its conversations with it; storing into it brings it back.

        :raises Conflict: if it holds memories, or is the default one
        """
        access.check_owns(self._engine.caller, name)
        if name == DEFAULT_SPACE:
            raise Conflict("The default space always exists.")

        def write(tx: Transaction) -> Space:
            known = self._get(tx, name)
            tx.spaces.drop(name, at=self._engine.now())
            return known

        return self._engine.transact(Space, write)
