"""The port over which the tables beside memories are read and written, with SQL that both backends share.

Statements have `:name` parameters. A backend runs them on a reader's connection, or inside its transaction.
"""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from scrubjay.text.letters import topic_key
from scrubjay.values.callers import Audience, Sight
from scrubjay.values.memory import Memory
from scrubjay.values.search import LAST_LETTER, Filter
from scrubjay.values.times import milliseconds

if TYPE_CHECKING:
    from scrubjay.embedders.base import Vector
    from scrubjay.stores.promises.memories import Position

Row = tuple[Any, ...]


class Span(NamedTuple):
    """How leases and holds are timed: by the database's clock where there is one that all servers share."""

    columns: tuple[str, ...]
    values: str  # of these columns, from now on for this many `:seconds`
    runs: str  # with a table in place of {0}: whether one runs now


class Key(NamedTuple):
    """How rows of one table refer to a row of another."""

    columns: tuple[str, ...]
    of: tuple[str, ...]  # the columns of the other table that they hold
    values: tuple[str, ...]  # what they hold of the row that the statement's parameters name

    def joins(self, table: str, other: str) -> str:
        """Make the condition under which a row of the first table refers to one of the second."""
        pairs = zip(self.columns, self.of, strict=True)
        return " AND ".join(f"{table}.{column} = {other}.{named}" for column, named in pairs)

    def matches_parameters(self, table: str) -> str:
        """Make the condition under which a row refers to the one that the statement's parameters name."""
        pairs = zip(self.columns, self.values, strict=True)
        return " AND ".join(f"{table}.{column} = {value}" for column, value in pairs)


Clause = tuple[str, dict[str, object]]  # SQL, and its parameters
Condition = tuple[str, list[Any]]  # the same with a mark for each parameter, as the backend writes it


class View(NamedTuple):
    """What a caller sees of one space, or of every space, as the backend names both."""

    space: Any  # None: every one
    audiences: tuple[Any, ...] | None  # None: all


def audience_condition(
    views: Collection[View], among: Callable[[str, Sequence[Any]], Condition], table: str
) -> Condition:
    """Make the condition that an audience with these views sees a row; without a view it admits nothing.

    `among` makes the condition that a column has one of some values.
    """
    if not views:
        return "FALSE", []
    each = []
    for space, audiences in views:
        within = [] if space is None else [among(f"{table}.space", [space])]
        level = [] if audiences is None else [among(f"{table}.audience", audiences)]
        each.append(join_conditions([*within, *level], "AND"))
    return join_conditions(each, "OR")


def join_conditions(conditions: Collection[Condition], word: str) -> Condition:
    """Join conditions to one, in brackets; no condition admits everything."""
    if not conditions:
        return "TRUE", []
    sql = f"\n{word} ".join(sql for sql, _ in conditions)
    return f"({sql})", [value for _, values in conditions for value in values]


def bounds(filter: Filter) -> Iterator[tuple[str, str, int | float]]:
    """List the columns that a filter bounds, each with its operator and its bound."""
    if filter.created_since is not None:
        yield "created_at", ">=", milliseconds(filter.created_since)
    if filter.created_until is not None:
        yield "created_at", "<=", milliseconds(filter.created_until)
    if filter.min_importance is not None:
        yield "importance", ">=", float(filter.min_importance)
    if filter.max_importance is not None:
        yield "importance", "<=", float(filter.max_importance)


def by_columns(
    filter: Filter, now: int, mark: str, among: Callable[[str, Sequence[Any]], Condition]
) -> Iterator[Condition]:
    """Make the conditions on columns that the indexes of vectors hold too; most conditions belong in `by_rows`."""
    if filter.expired is not None:
        lasting = "memories.expires_at IS NULL OR memories.expires_at >"
        yield f"({'memories.expires_at <=' if filter.expired else lasting} {mark})", [now]
    for column, sign, bound in bounds(filter):
        yield f"memories.{column} {sign} {mark}", [bound]
    for column, names in (("kind", filter.kinds), ("category", filter.categories)):
        if names is not None:
            yield among(f"memories.{column}", sorted(names))


def by_rows(filter: Filter, mark: str, among: Callable[[str, Sequence[Any]], Condition]) -> Iterator[Condition]:
    """Make the conditions on columns that both backends name alike and that no index of vectors holds."""
    if filter.accessed_until is not None:
        yield f"memories.accessed_at <= {mark}", [milliseconds(filter.accessed_until)]
    for column in ("source", "client", "caller", "transport", "session_id"):
        if (value := getattr(filter, column)) is not None:
            yield f"memories.{column} = {mark}", [value]
    if filter.phrased is not None:
        yield f"memories.also {'<>' if filter.phrased else '='} '[]'", []
    if filter.topic is not None:  # memories_by_topic
        yield f"memories.topic_key = {mark}", [topic_key(filter.topic)]
    if filter.path_prefix is not None and (folder := filter.path_prefix.rstrip("/")):  # "0" comes just after "/"
        below = f"(memories.path = {mark} OR (memories.path >= {mark} AND memories.path < {mark}))"
        yield below, [folder, folder + "/", folder + "0"]
    if filter.ids is not None:
        yield among("memories.id", sorted(filter.ids))
    if filter.id_prefix is not None:  # the unique index of ids
        yield f"(memories.id >= {mark} AND memories.id < {mark})", [filter.id_prefix, filter.id_prefix + LAST_LETTER]


def visible_conversations(audience: Audience, mark: str) -> Condition:
    """Make the condition that an audience may know of a conversation."""
    by_sight: dict[Sight, Condition] = {
        Sight.PUBLIC: ("FALSE", []),
        Sight.SHARED: ("conversations.access_level <> 'private'", []),
        Sight.OWN: (f"(conversations.access_level <> 'private' OR conversations.user_id = {mark})", [audience.user]),
        Sight.ALL: ("TRUE", []),
    }
    conditions: list[Condition] = [("FALSE", [])]
    for scope in audience.scopes:
        within = [] if scope.space is None else [(f"conversations.space = {mark}", [scope.space])]
        conditions.append(join_conditions([*within, by_sight[scope.sight]], "AND"))
    return join_conditions(conditions, "OR")


def conditions_after(after: Position | None, value: str, mark: str, *, descending: bool) -> Iterator[Condition]:
    """Make the condition that a row comes behind this position of a list sorted by a value, then by arrival."""
    beyond = "<" if descending else ">"
    if after is not None and after.value is not None:
        yield f"({value}, memories.seq) {beyond} ({mark}, {mark})", [after.value, after.seq]
    elif after is not None:
        yield f"memories.seq {beyond} {mark}", [after.seq]


# Ids of memories that something supersedes, though not for everyone: only for readers who see `others`, which the
# condition in place of {} says.
SUPERSEDED = """
    SELECT asides.memory
    FROM asides
    JOIN memories AS others ON others.id = asides.other
    WHERE asides.role = 'superseded_by'
    AND others.state < 3
    AND {}
"""
POINTERS = ("supersedes", "superseded_by")


def pointer(name: str, visible: str) -> str:
    """Make the SQL of a column that names another memory: the row's own, or what is said only to readers who see that
    memory (`others`) under this condition."""
    # the primary key of asides, memories by their ids
    return f"""
        coalesce(memories.{name}, (
            SELECT asides.other
            FROM asides
            JOIN memories AS others ON others.id = asides.other
            WHERE asides.memory = memories.id
            AND asides.role = '{name}'
            AND others.state < 3
            AND {visible}
            ORDER BY asides.hlc DESC, asides.other
            LIMIT 1
        ))
    """


def columns_as_seen(columns: Mapping[str, str], others: Condition) -> Condition:
    """Make the SELECT list of a memory's columns for readers who see other memories under this condition."""
    visible, values = others
    selected = [pointer(name, visible) if name in POINTERS else column for name, column in columns.items()]
    return ", ".join(selected), [value for name in POINTERS if name in columns for value in values]


def name_values(condition: tuple[str, Sequence[object]], mark: str, prefix: str) -> Clause:
    """Give each value of a condition a name of its own, in place of its mark."""
    sql, values = condition
    first, *rest = sql.split(mark)
    names = [f"{prefix}{number}" for number, _ in enumerate(values)]
    text = first + "".join(f":{name}{part}" for name, part in zip(names, rest, strict=True))
    return text, dict(zip(names, values, strict=True))


class Sql(ABC):
    # Names that differ.
    space: str  # what the column for spaces of memories holds of the space named `:space`
    space_name: str  # with that column in place of {}: the name of the space
    name: str  # what the columns `user_id` and `conversation_id` of memories hold of the one named `:name`
    span: Span
    memory_key: Key  # how rows that belong to a memory refer to it, given as `:memory`
    greatest: str  # the function that gives the greatest of its arguments
    with_file_waiting: str  # the same statement, which writes a link, in place of {}, and the file that names it waits
    notification: str  # a statement that wakes listeners of a `:space` once this is committed; empty if none is
    each: str  # with a list of texts in place of {list}: its rows, each a `value` and its `place`, from 0
    json: str  # with a column of JSON in place of {}: what `->>` can be asked of
    place: str  # the function that gives the place of a text in another
    word_bytes: str  # what a memory's words take, where they go when it is archived
    vector_bytes: str  # what a memory's vectors take

    @abstractmethod
    def memories(self, where: str, audience: Audience | None, /, *, order: str = "", **values: object) -> list[Memory]:
        """Read the memories that meet a condition, as the audience may see them; without one, as the rows have them."""

    @abstractmethod
    def vectors(self, memory: str, model: str | None = None) -> list[Vector]:
        """Read the vectors of a memory's parts in order: a further model's, by its fingerprint, or the store's."""

    @abstractmethod
    def visible(self, audience: Audience, table: str = "memories") -> Clause:
        """Make the condition that the audience sees the memory in this table; its values' names begin alike."""

    @abstractmethod
    def count(self, where: str, audience: Audience, /, *, index: str, **values: object) -> int:
        """Count the memories that meet a condition and that an audience sees, on an index that holds all of it."""

    @abstractmethod
    def among(self, column: str, values: str) -> str:
        """Make the condition that the column has a value of the list that the parameter of this name holds."""

    @abstractmethod
    def all(self, statement: str, /, **values: object) -> list[Row]:
        """Read every row of a query."""

    def find_linked(self, ids: Sequence[str], within: Collection[str] | None = None) -> Sequence[str]:  # noqa: ARG002
        """Find those of these memories that links may touch, or may join with another of those `within`. A backend
        that cannot know without reading links returns all of them."""
        return ids

    @abstractmethod
    def run(self, statement: str, /, **values: object) -> int:
        """Run a statement that changes rows, and return how many it changed."""

    @abstractmethod
    def run_many(self, statement: str, rows: Iterable[Mapping[str, object]], /) -> None:
        """Run the same statement once for each of these rows of parameters."""

    def first_row(self, statement: str, /, **values: object) -> Row | None:
        """Read the first row of a query, or None."""
        return next(iter(self.all(statement, **values)), None)

    def cached_row(self, statement: str, /, **values: Hashable) -> Row | None:
        """Read the first row of a query that a backend may remember for as long as nothing is committed."""
        return self.first_row(statement, **values)

    def note_erasure(self) -> None:  # noqa: B027 -- not every backend needs to know
        """Note that text was erased: a backend may have copies of it to remove once this is committed."""
