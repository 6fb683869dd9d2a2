"""Filter and audience as conditions on rows, with every name looked up.

At the end of the file is the loop that finds the best of the memories that they admit, by words or by meaning.
"""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any, TypeVar

import apsw

from scrubjay.stores.promises.memories import FURTHER_MODELS
from scrubjay.stores.tables.rows import strings
from scrubjay.stores.tables.sql import (
    Condition,
    View,
    audience_condition,
    bounds,
    by_columns,
    by_rows,
    join_conditions,
    visible_conversations,
)
from scrubjay.values.callers import Audience, Sight
from scrubjay.values.frozen import dataclass
from scrubjay.values.memory import AccessLevel, State
from scrubjay.values.search import Filter
from scrubjay.values.times import milliseconds

PUBLIC, SHARED, FIRST_PRIVATE = 0, 1, 2  # audience numbers; a private memory's is its user's number plus the last

FEW_ROWS = 2_000  # rows that are sorted faster than the space is read in order

MOST_LOOKED_UP = 300

Value = str | int | float | bytes
Result = TypeVar("Result")


def look_up(con: apsw.Connection, key: Hashable, look: Callable[[], Result]) -> Result:
    """Call `look`, which reads the store, unless this thread has done so since it got its reader (`one_reader`)."""
    known: dict[Hashable, Result] | None = getattr(con, "looked_up", None)
    if known is None:
        return look()
    try:
        return known[key]
    except KeyError:
        pass
    if len(known) >= MOST_LOOKED_UP:
        known.clear()
    known[key] = found = look()
    return found


def first_row(con: apsw.Connection, statement: str, values: Mapping[str, Hashable]) -> tuple[Any, ...] | None:
    """Read the first row of a query, once as in `look_up`."""
    rows: list[Any] = look_up(con, (statement, *values.values()), lambda: con.execute(statement, values).fetchall())
    return rows[0] if rows else None


def last_change(con: apsw.Connection) -> int:
    """Read the number of the last transaction that changed memories."""
    change: int = look_up(con, "change", lambda: con.execute("SELECT change FROM counters").get)
    return change


@dataclass(frozen=True, slots=True, kw_only=True)
class Restriction:
    """Which rows are meant. An empty tuple admits nothing, None everything."""

    views: tuple[View, ...]
    sees_all: bool  # the audience does, beyond these views
    states: tuple[int, ...]
    filter: Filter
    now: int
    user: int | None
    conversation: int | None
    row_conditions: tuple[Condition, ...]  # beside those of `by_columns`, which vector tables know too
    is_few: bool  # it admits few rows, which an index finds without a look at the others
    few_tags: tuple[str, ...]  # the first of `row_conditions`, if they are on few memories

    def condition(self) -> Condition:
        named = (("user_id", self.user), ("conversation_id", self.conversation))
        return join_conditions(
            [
                visible_rows(self.views),
                among("memories.state", self.states),
                *by_columns(self.filter, self.now, "?", among),
                *((f"memories.{column} = ?", [number]) for column, number in named if number is not None),
                *self.row_conditions,
            ],
            "AND",
        )


SELECTIVE_FIELDS = ("ids", "id_prefix", "belongs_to", "flag", "topic")  # few rows meet them, and an index finds these


def restrict(
    con: apsw.Connection, filter: Filter, audience: Audience, *, now: datetime, purged: bool = False
) -> Restriction | None:
    """The filter and the audience in this store's numbers; None if nothing can meet them.

    Purged memories are left out even where the filter names them, unless `purged`.
    """
    views = views_of(con, audience)
    states = tuple(sorted(int(state) for state in filter.states if purged or state is not State.PURGED))
    user, conversation = number_of(con, filter.user_id), number_of(con, filter.conversation_id)
    named = ((filter.user_id, user), (filter.conversation_id, conversation))
    unknown = any(name is not None and number is None for name, number in named)
    sets = (filter.kinds, filter.categories, filter.tags, filter.access_levels, filter.ids)
    if not views or not states or unknown or any(values is not None and not values for values in sets):
        return None
    row_states, outdated = _split_superseded(states, superseded_for(con, audience))
    tags = tuple(sorted(filter.tags or ()))
    few_tags = tags if tags and _admits_few(con, "tags", among("tag", tags)) else ()  # tags_by_tag
    talk = ("conversation_id = ?", [conversation])
    few_in_conversation = conversation is not None and _admits_few(con, "memories", talk)
    selective = any(getattr(filter, name) is not None for name in SELECTIVE_FIELDS) or filter.expired is True
    return Restriction(
        views=views,
        sees_all=audience.sees_all,
        states=row_states,
        filter=filter,
        now=milliseconds(now),
        user=user,
        conversation=conversation,
        row_conditions=(*_row_conditions(filter, audience, few_tags=bool(few_tags)), *outdated),
        is_few=selective or few_in_conversation or bool(few_tags),
        few_tags=few_tags,
    )


def views_of(con: apsw.Connection, audience: Audience) -> tuple[View, ...]:
    """Turn an audience's scopes into this store's numbers; those of unknown spaces show nothing."""
    private = number_of(con, audience.user)
    own = () if private is None else (FIRST_PRIVATE + private,)
    audiences = {
        Sight.PUBLIC: (PUBLIC,),
        Sight.SHARED: (PUBLIC, SHARED),
        Sight.OWN: (PUBLIC, SHARED, *own),
        Sight.ALL: None,
    }
    views = []
    for scope in audience.scopes:
        space = None if scope.space is None else space_number(con, scope.space)
        if scope.space is None or space is not None:
            views.append(View(space, audiences[scope.sight]))
    return tuple(views)


def audience_of(level: AccessLevel, user: int) -> int:
    return {AccessLevel.PUBLIC: PUBLIC, AccessLevel.SHARED: SHARED, AccessLevel.PRIVATE: FIRST_PRIVATE + user}[level]


def any_asides(con: apsw.Connection) -> bool:
    """Whether any memory supersedes another for some readers only; hardly any store has such."""
    return look_up(con, "asides", lambda: con.execute("SELECT 1 FROM asides LIMIT 1").get is not None)


def superseded_for(con: apsw.Connection, audience: Audience) -> tuple[int, ...]:
    """Find the active memories that something supersedes for this audience, though not for everyone."""
    if not any_asides(con):
        return ()
    visible, values = visible_rows(views_of(con, audience.reaching), "others")
    rows = con.execute(
        # the unique index of ids, twice
        f"""
        SELECT DISTINCT outdated.seq
        FROM asides
        CROSS JOIN memories AS outdated ON outdated.id = asides.memory
        CROSS JOIN memories AS others ON others.id = asides.other
        WHERE asides.role = 'superseded_by'
        AND outdated.state = 0
        AND others.state < 3
        AND {visible}
        """,
        values,
    )
    return tuple(seq for (seq,) in rows)


def _split_superseded(
    states: tuple[int, ...], superseded: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[Condition, ...]]:
    """Turn the states that a filter asks for into those that rows hold, and a condition: these active memories count as
    superseded for the audience."""
    active, outdated = State.ACTIVE in states, State.SUPERSEDED in states
    if not superseded or active == outdated:
        return states, ()
    if active:
        return states, (("memories.seq NOT IN (SELECT value FROM json_each(?))", [json.dumps(superseded)]),)
    only = f"(memories.state <> {int(State.ACTIVE)} OR memories.seq IN (SELECT value FROM json_each(?)))"
    return (State.ACTIVE, *states), ((only, [json.dumps(superseded)]),)


def visible_rows(views: Collection[View], table: str = "memories") -> Condition:
    return audience_condition(views, among, table)


def space_by_space(con: apsw.Connection, views: Collection[View]) -> list[View]:
    """Make views of the same rows with each space in only one of them, so that their counts can be added up."""
    everywhere = [view.audiences for view in views if view.space is None]
    named = {view.space for view in views if view.space is not None}
    spaces = [number for (number,) in con.execute("SELECT number FROM spaces")] if everywhere else sorted(named)
    return [
        View(space, _join_audiences([*everywhere, *(view.audiences for view in views if view.space == space)]))
        for space in spaces
    ]


def _join_audiences(audiences: Collection[tuple[int, ...] | None]) -> tuple[int, ...] | None:
    known = [each for each in audiences if each is not None]
    return tuple(sorted({one for each in known for one in each})) if len(known) == len(audiences) else None


def space_number(con: apsw.Connection, name: str) -> int | None:
    statement = "SELECT number FROM spaces WHERE name = ?"
    number: int | None = look_up(con, (statement, name), lambda: con.execute(statement, (name,)).get)
    return number


def among(column: str, values: Collection[Value]) -> Condition:
    if len(values) == 1:
        return f"{column} = ?", list(values)
    return f"{column} IN ({placeholders(values)})", list(values)


def placeholders(values: Collection[object]) -> str:
    return ", ".join("?" * len(values))


def _row_conditions(filter: Filter, audience: Audience, *, few_tags: bool) -> Iterator[Condition]:
    if filter.tags is not None:  # tags_by_tag; the plus keeps the planner from starting with many rows
        sql, values = among("tag", sorted(filter.tags))
        yield f"{'' if few_tags else '+'}memories.seq IN (SELECT memory FROM tags WHERE {sql})", values
    if filter.access_levels is not None:
        yield _level_condition(filter.access_levels)
    if filter.flag is not None:
        yield _flag_condition(filter.flag)
    if filter.belongs_to is not None:
        yield _conversation_condition(filter.belongs_to, visible_conversations(audience, "?"))
    yield from by_rows(filter, "?", among)


def _flag_condition(flag: str) -> Condition:
    """Make the condition that a memory has this flag, or any."""
    sql = "memories.flags <> '[]'"  # memories_by_flag
    if flag == "any":
        return sql, []
    return f"{sql} AND EXISTS (SELECT 1 FROM json_each(memories.flags) WHERE value = ?)", [flag]


def _conversation_condition(conversation: str, visible: Condition) -> Condition:
    """Make the condition that a memory was stored in a conversation, or injected into it.

    Only memories of its own space are ever injected into one. What others than its user store under the id of a private
    conversation is not in it. For those who may not know of it, there is only the id.
    """
    there, values = visible
    return (
        # memories_by_conversation, conversations_by_id
        f"""
        memories.seq IN (
            SELECT seq
            FROM memories AS stored
            WHERE stored.conversation_id = (SELECT number FROM names WHERE name = ?)
            AND NOT EXISTS (
                SELECT 1
                FROM conversations
                WHERE conversations.id = ?
                AND conversations.space = (SELECT name FROM spaces WHERE number = stored.space)
                AND conversations.access_level = 'private'
                AND stored.user_id IS NOT (SELECT number FROM names WHERE name = conversations.user_id)
                AND {there}
            )
            UNION ALL
            SELECT injected.seq
            FROM conversations
            JOIN injections ON injections.space = conversations.space AND injections.conversation = conversations.id
            JOIN memories AS injected ON injected.id = injections.memory
            WHERE conversations.id = ?
            AND {there}
        )
        """,
        [conversation, conversation, *values, conversation, *values],
    )


def _level_condition(levels: frozenset[AccessLevel]) -> Condition:
    """Make the condition on access levels, asked of the audience, which the indexes of lists hold."""
    conditions: list[Condition] = []
    if AccessLevel.PUBLIC in levels:
        conditions.append(("memories.audience = ?", [PUBLIC]))
    if AccessLevel.SHARED in levels:
        conditions.append(("memories.audience = ?", [SHARED]))
    if AccessLevel.PRIVATE in levels:
        conditions.append(("memories.audience >= ?", [FIRST_PRIVATE]))
    return join_conditions(conditions, "OR") if conditions else ("FALSE", [])


def _admits_few(con: apsw.Connection, table: str, condition: Condition, most: int = FEW_ROWS) -> bool:
    """Whether at most so many rows of the table meet the condition; counts no more than that."""
    where, values = condition
    statement = f"SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {where} LIMIT {most + 1})"
    return look_up(con, (statement, *values), lambda: int(con.execute(statement, values).get) <= most)


def number_of(con: apsw.Connection, name: str | None) -> int | None:
    if name is None:
        return None
    statement = "SELECT number FROM names WHERE name = ?"
    number: int | None = look_up(con, (statement, name), lambda: con.execute(statement, (name,)).get)
    return number


# How much a restriction admits, estimated without reading it: small scopes are searched in another way than large ones.


SMALL = 1_000  # memories whose vectors are read sooner than all codes are compared


def is_small(con: apsw.Connection, restriction: Restriction, few_at_most: int) -> bool:
    """Whether an index finds the memories that a restriction admits, and they are few."""
    if restriction.is_few or not few_at_most:
        return restriction.is_few
    conditions = [visible_rows(restriction.views), among("state", restriction.states)]
    if restriction.user is None:
        index = "memories_by_created"
        limits = bounds(restriction.filter)
        conditions += [(f"{column} {sign} ?", [bound]) for column, sign, bound in limits if column == "created_at"]
    else:
        index = "memories_by_user"
        conditions.append(("user_id = ?", [restriction.user]))
    return _admits_few(con, f"memories INDEXED BY {index}", join_conditions(conditions, "AND"), few_at_most)


def members_statement(restriction: Restriction) -> Condition:
    """Make the statement that lists the memories that a restriction admits, each once. It may list more: where an
    index finds them, their rows are not looked at."""
    if restriction.few_tags and len(restriction.row_conditions) == 1:
        where, values = among("tag", restriction.few_tags)
        return f"SELECT DISTINCT memory FROM tags WHERE {where}", values  # tags_by_tag
    if restriction.is_few and restriction.conversation is not None and not restriction.row_conditions:
        where = "memories WHERE conversation_id = ?"  # memories_by_conversation
        return f"SELECT seq FROM {where}", [restriction.conversation]
    if restriction.user is not None and not restriction.is_few:  # the planner would not take this index by itself
        by_user: Condition = ("user_id = ?", [restriction.user])
        where, values = restriction.condition() if restriction.row_conditions else by_user
        return f"SELECT seq FROM memories INDEXED BY memories_by_user WHERE {where}", values
    where, values = restriction.condition()
    return f"SELECT seq FROM memories WHERE {where}", values


def further_models(con: apsw.Connection) -> tuple[str, ...]:
    """Read the fingerprints of the models whose vectors the store has beside its own."""
    row = con.execute("SELECT value FROM facts WHERE key = ?", (FURTHER_MODELS,)).fetchone()
    return () if row is None else strings(row[0])


def sizes_of(dimension: int) -> tuple[int, int]:
    """How many bytes a vector of this many numbers takes: short, and whole."""
    return 2 * dimension + 5, 4 * dimension


def dimension_of(size: int) -> int:
    return (size - 5) // 2 if size % 2 else size // 4


def of_dimension(dimension: int) -> str:
    """A condition on `vectors`; other lengths are another model's."""
    return f"length(vectors.vector) IN {sizes_of(dimension)}"


# The best memories that a restriction admits: one loop for words and for vectors.
#
# The finder returns ids with scores, best first, without filtering; then the memories' rows say which of them the
# restriction admits. If it admits few, or hardly any of those found, its members are listed first and only they are
# scored.


DEPTH = 50  # memories that are scored at least
MANY = 5_000  # rows to score; where there are fewer, it is not worth listing the members first
MOST_ADMITTED = 5_000  # memories whose rows are looked at; if more had to be, the members are listed first

Within = Sequence[int] | None  # the numbers of the only memories to score; None: any
Scores = tuple[Mapping[int, float], bool]  # by the memory's number; whether every memory that has a score is there
Found = tuple[
    float, int, int, str
]  # score, time and order of arrival, id: as compared, of equal ones the newest is first
Score = Callable[[int, Within], Scores]  # scores so many of the best


class Members:
    """The memories that a restriction admits."""

    def __init__(self, con: apsw.Connection, restriction: Restriction) -> None:
        self.con, self.restriction = con, restriction

    def keep_members(self, scores: Mapping[int, float]) -> list[Found]:
        """Keep those of these memories that are members."""
        if not scores:
            return []
        where, values = self.restriction.condition()
        rows = self.con.execute(
            # CROSS JOIN keeps the order: each memory by its primary key.
            f"""
            SELECT memories.seq, memories.created_at, memories.id
            FROM carray(?) AS wanted
            CROSS JOIN memories ON memories.seq = wanted.value
            WHERE {where}
            """,
            (as_carray(scores), *values),
        )
        return [(scores[seq], created, seq, memory) for seq, created, memory in rows]

    @cached_property
    def numbers(self) -> list[int]:
        """Every member, and perhaps some that are none (`members_statement`)."""
        statement, values = members_statement(self.restriction)
        return [int(seq) for (seq,) in self.con.execute(statement, values)]

    def find_best(self, limit: int, score: Score, *, few_at_most: int) -> list[Found]:
        """Find the best members, best first. If there are at most `few_at_most`, only members are scored."""
        within = self.numbers if is_small(self.con, self.restriction, few_at_most) else None
        depth = max(DEPTH, limit + limit // 8)
        while within is None or within:
            scores, complete = score(depth, within)
            found = self.keep_members(scores)
            if complete or len(found) >= limit:
                return sorted(found, reverse=True)[:limit]
            deeper = max(4 * depth, int(1.2 * limit * len(scores) / max(len(found), 1)))
            if within is None and deeper > MOST_ADMITTED:
                within = self.numbers
            else:
                depth = deeper
        return []


def as_carray(memories: Collection[int]) -> Any:
    """Pass numbers, at least one, as SQLite's `carray` reads them."""
    return apsw.carray(array("q", memories))


def ids_by_number(con: apsw.Connection, ids: Collection[str]) -> dict[int, str]:
    """Read the numbers of memories in this store, which never change, with their ids."""
    rows = con.execute(
        # the unique index of ids
        "SELECT seq, memories.id FROM json_each(?) AS wanted CROSS JOIN memories ON memories.id = wanted.value",
        (json.dumps([*ids]),),
    )
    return dict(rows)
