"""Spaces, in every backend: each is described, has numbers of checkpoints, and can be dropped once it is empty."""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

from datetime import datetime

from scrubjay.errors import Conflict, SpaceNotFound
from scrubjay.stores.tables.conversations import PARTS as CONVERSATION_PARTS
from scrubjay.stores.tables.sql import Sql
from scrubjay.values.store import Space
from scrubjay.values.times import milliseconds, moment

List = list  # below, `list` is a verb


class Spaces:
    """What can be read of spaces."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    def list(self) -> List[Space]:
        """All spaces by name but those that were dropped, without counts."""
        rows = self._sql.all(
            "SELECT name, title, description, created_at FROM spaces WHERE deleted_at IS NULL ORDER BY name"
        )
        return [
            Space(name=name, title=title, description=description, created_at=moment(at))
            for name, title, description, at in rows
        ]

    def has(self, name: str) -> bool:
        """Whether there is a space of this name that was not dropped."""
        found = self._sql.first_row("SELECT 1 FROM spaces WHERE name = :space AND deleted_at IS NULL", space=name)
        return found is not None

    def described(self) -> dict[str, str | None]:
        """Every space by name, dropped ones too, with its description; counts nothing."""
        return dict(self._sql.all("SELECT name, description FROM spaces ORDER BY name"))


class SpaceChanges(Spaces):
    """What a transaction can read and change of them."""

    def __init__(self, sql: Sql) -> None:
        super().__init__(sql)
        self._known: set[str] = set()  # that exist, as this transaction has seen

    def create(self, name: str, *, at: datetime, description: str | None = None) -> bool:
        """Make sure that a space exists; True if it is new, or had been dropped."""
        if name in self._known:
            return False
        created = self._sql.run(
            """
            INSERT INTO spaces (name, description, created_at)
            VALUES (:space, :description, :at)
            ON CONFLICT (name) DO UPDATE SET deleted_at = NULL WHERE spaces.deleted_at IS NOT NULL
            """,
            space=name,
            description=description,
            at=milliseconds(at),
        )
        self._known.add(name)
        return created == 1

    def describe(self, name: str, *, title: str | None, description: str | None) -> None:
        """Set what people read of a space.

        :raises SpaceNotFound: if there is none
        """
        described = self._sql.run(
            "UPDATE spaces SET title = :title, description = :description WHERE name = :space",
            title=title,
            description=description,
            space=name,
        )
        if described == 0:
            raise SpaceNotFound(f"No space {name!r}.")

    def drop(self, name: str, *, at: datetime) -> None:
        """Leave a space out of lists, and erase its conversations. Its tombstones and events stay; creating it again
        brings it back, and so does `put`.

        :raises Conflict: if it holds memories that are not deleted
        :raises SpaceNotFound: if there is none
        """
        if self._sql.first_row("SELECT 1 FROM spaces WHERE name = :space", space=name) is None:
            raise SpaceNotFound(f"No space {name!r}.")
        here = self._sql.space
        if self._sql.first_row(
            f"SELECT 1 FROM memories WHERE space = {here} AND state IN (0, 1, 2) LIMIT 1", space=name
        ):
            raise Conflict(f"Space {name} still has memories.", hint="Forget them or move them first.")
        for table in (*CONVERSATION_PARTS, "conversations"):
            self._sql.run(f"DELETE FROM {table} WHERE space = :space", space=name)
        self._sql.run("UPDATE spaces SET deleted_at = :at WHERE name = :space", at=milliseconds(at), space=name)
        self._sql.note_erasure()
        self._known.discard(name)

    def number_checkpoint(self, space: str, wanted: int | None = None) -> int:
        """A number for a checkpoint of this space: the wanted one if it is past every one given, else the next.

        :raises SpaceNotFound: if the space was never created
        """
        row = self._sql.first_row(
            f"""
            UPDATE spaces SET checkpoints = {self._sql.greatest}(checkpoints + 1, :wanted)
            WHERE name = :space
            RETURNING checkpoints
            """,
            wanted=wanted or 0,
            space=space,
        )
        if row is None:
            raise SpaceNotFound(f"No space {space!r}.")
        return int(row[0])

    def note_checkpoint(self, space: str, number: int) -> None:
        """Let checkpoints of a space be numbered past this one from now on: it came from another store."""
        self._sql.run(
            f"UPDATE spaces SET checkpoints = {self._sql.greatest}(checkpoints, :number) WHERE name = :space",
            number=number,
            space=space,
        )
