"""SQL for what stands beside memories, which is written once for every backend: five methods and a few names.

Statements have `:name` parameters. A backend runs them on a reader's connection, or inside its transaction.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

Row = tuple[Any, ...]


class Span(NamedTuple):
    """How leases and holds are timed: by the database's clock where there is one that all servers share."""

    columns: tuple[str, ...]
    values: str  # of these columns, from now on for so many `:seconds`
    runs: str  # whether one runs now


class Key(NamedTuple):
    """How rows of one table name a row of another."""

    columns: tuple[str, ...]
    of: tuple[str, ...]  # the columns of the other table that they hold
    values: tuple[str, ...]  # what they hold of the row that parameters tell

    def meets(self, table: str, other: str) -> str:
        """A condition: a row of the first table names one of the second."""
        pairs = zip(self.columns, self.of, strict=True)
        return " AND ".join(f"{table}.{column} = {other}.{named}" for column, named in pairs)

    def told(self, table: str) -> str:
        """A condition: a row names the one that parameters tell."""
        pairs = zip(self.columns, self.values, strict=True)
        return " AND ".join(f"{table}.{column} = {value}" for column, value in pairs)


class Sql(ABC):
    user: str  # how a column for users is called: PostgreSQL keeps the word `user` for itself
    space: str  # what a column for spaces holds of the space named `:space`
    events: str  # what to read events from, each with its space by name
    span: Span
    talk: Key  # how messages and injections name their conversation, told by `:space` and `:id`
    injected: Key  # how injections name their memory, told by `:space` and `:memory`
    greatest: str  # the function that gives the greatest of its arguments

    @abstractmethod
    def space_name(self, column: str) -> str:
        """The name of the space that a column tells."""

    @abstractmethod
    def among(self, column: str, values: str) -> str:
        """A condition: the column has one of the values of the array with this name."""

    @abstractmethod
    def array(self, values: Sequence[str]) -> object:
        """Values as one parameter, for `among`."""

    @abstractmethod
    def all(self, statement: str, /, **values: object) -> list[Row]:
        """Every row of a query."""

    @abstractmethod
    def run(self, statement: str, /, **values: object) -> int:
        """Change something; how many rows were."""

    @abstractmethod
    def many(self, statement: str, rows: Iterable[Mapping[str, object]], /) -> None:
        """The same statement for each of these."""

    def one(self, statement: str, /, **values: object) -> Row | None:
        """The first row of a query."""
        return next(iter(self.all(statement, **values)), None)

    def erased(self) -> None:  # noqa: B027 -- not every backend needs to know
        """Say that text was erased: a backend may have copies of it to get rid of once this is committed."""
