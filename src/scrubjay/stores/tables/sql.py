"""SQL for what stands beside memories, which is written once for every backend: four methods and a few names.

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


class Sql(ABC):
    user: str  # how a column for users is called: PostgreSQL keeps the word `user` for itself
    events: str  # what to read events from, each with its space by name
    span: Span

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
