"""Workspaces: what Chimera calls spaces. Every space is one, by the name `workspace-<space>`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay.engine import access
from scrubjay.engine.store import intake
from scrubjay.errors import SpaceNotFound
from scrubjay.stores.promises.memories import Transaction
from scrubjay.text.letters import slug
from scrubjay.values.memory import AT_HAND, NewMemory, Stored
from scrubjay.values.search import Filter, Page, Query
from scrubjay.values.store import Space

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine

PREFIX = "workspace-"


def id_of(space: str) -> str:
    return f"{PREFIX}{space}"


class Workspaces:
    """Works at an engine. A workspace is named by its id, or by its space's name."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def create(self, name: str, *, description: str | None = None) -> Space:
        """A new workspace; its space is named after it, with a number where that name is taken."""
        intake.check_text(name, "name", maximum=intake.MAX_TITLE)
        if description is not None:
            intake.check_text(description, "description")
        engine = self._engine

        def write(tx: Transaction) -> Space:
            taken = {space.name for space in tx.spaces.list()}
            wanted = slug(name)
            names = (wanted, *(f"{wanted}-{number}" for number in range(2, len(taken) + 3)))
            space = next(one for one in names if one not in taken)
            access.check_store(engine.caller, space)
            tx.spaces.create(space, at=engine.now())
            tx.spaces.describe(space, title=name, description=description)
            return next(one for one in tx.spaces.list() if one.name == space)

        return engine.transact(Space, write)

    def get(self, workspace: str) -> Space:
        """:raises SpaceNotFound: if there is none :raises Forbidden: if the caller has no part in it"""
        return self._engine.known_spaces.get(self.choose_space(workspace))

    def describe(self, workspace: str, *, name: str | None = None, description: str | None = None) -> Space:
        """Change what a workspace is called; its id stays."""
        return self._engine.known_spaces.describe(self.choose_space(workspace), title=name, description=description)

    def delete(self, workspace: str) -> Space:
        """:raises Conflict: if it holds memories"""
        return self._engine.known_spaces.drop(self.choose_space(workspace))

    def memories(
        self,
        workspace: str,
        *,
        search: str | None = None,
        also: tuple[str, ...] = (),
        limit: int = 20,
        offset: int = 0,
    ) -> Page:
        """A workspace's memories, newest first; with a search the best first."""
        at = self._in(workspace)
        if search is None:
            return at.list(Filter(states=AT_HAND), limit=limit, offset=offset, counted=True)
        hits = at.search(Query(text=search, also=also, limit=limit, offset=offset))
        return Page(memories=tuple(hit.memory for hit in hits), total=hits.total)

    def remember(self, workspace: str, new: NewMemory) -> Stored:
        return self._in(workspace).bound_to(only=self._engine.only).store(new)

    def choose_space(self, workspace: str) -> str:
        """The space that is meant.

        :raises SpaceNotFound: if there is none
        :raises Forbidden: if the caller has no part in it; so no one learns whether there is one
        """
        intake.check_name(workspace, "workspace_id")
        known = {space.name for space in self._engine.records.spaces.list()}
        names = [workspace.removeprefix(PREFIX), workspace]
        space = next((name for name in names if name in known), names[0])
        access.check_granted(self._engine.caller, space)
        if space not in known:
            raise SpaceNotFound(f"Workspace {workspace[:100]} not found")
        return space

    def _in(self, workspace: str) -> Engine:
        return self._engine.bound_to(spaces=(self.choose_space(workspace),), only=True)
