"""Filter and audience as conditions on rows. Spaces, users and conversations stand there by name, so nothing is
looked up first: a condition is text with placeholders, and what to put there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from typing import Any

from scrubjay.stores.postgres.values import Texts
from scrubjay.stores.tables.sql import (
    SUPERSEDED,
    Condition,
    View,
    audience_condition,
    by_columns,
    by_rows,
    join_conditions,
    visible_conversations,
)
from scrubjay.values.callers import Audience, Sight
from scrubjay.values.frozen import dataclass
from scrubjay.values.memory import AccessLevel, Memory, State
from scrubjay.values.search import Filter
from scrubjay.values.times import milliseconds

PUBLIC, SHARED, PRIVATE = "public", "shared", "private:"  # a private memory's audience ends in its user's name


# What most filters ask of a memory. Its words and its signatures carry it along, so that both are searched without a
# look at the memories, whose rows are ten times as wide.
CARRIED = (
    "id", "state", "audience", "user_id", "conversation_id", "kind", "category", "importance", "created_at",
    "expires_at",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Restriction:
    """Which rows are meant."""

    views: tuple[View, ...]
    sees_all: bool  # the audience does, beyond these views
    states: tuple[int, ...]
    tags: tuple[str, ...] | None  # one of these
    conditions: tuple[Condition, ...]  # beside views, states and tags

    @property
    def spaces(self) -> list[str] | None:
        """The spaces it stays within; None: it may reach every one."""
        return spaces_of(self.views)

    def condition(self, *, tagged_first: bool = False) -> Condition:
        """`tagged_first`: the memories with these tags are listed, and only they are looked at. That is quicker where
        they are some thousands, but nothing for the planner, which cannot tell how many they are."""
        tagged = self._tagged(listed=tagged_first)
        return join_conditions(
            [visible_rows(self.views), among("memories.state", self.states), *tagged, *self.conditions], "AND"
        )

    def _tagged(self, *, listed: bool) -> Iterator[Condition]:
        if self.tags is None:
            return
        if listed and self.spaces is not None:  # tags_by_tag; numbers of memories are single in the whole store
            where, values = join_conditions([among("tags.space", self.spaces), among("tags.tag", self.tags)], "AND")
            yield f"memories.seq = ANY(ARRAY(SELECT tags.memory FROM tags WHERE {where}))", values  # noqa: S608 -- constants
        else:  # the primary key of tags, or tags_by_tag
            named = "SELECT 1 FROM tags WHERE tags.space = memories.space AND tags.memory = memories.seq"
            yield f"EXISTS ({named} AND tags.tag = ANY(%s))", [list(self.tags)]


def restrict(filter: Filter, audience: Audience, *, now: datetime, purged: bool = False) -> Restriction | None:
    """The filter and the audience; None if nothing can meet them.

    Purged memories are left out even where the filter names them, unless `purged`.
    """
    views = views_of(audience)
    states = tuple(sorted(int(state) for state in filter.states if purged or state is not State.PURGED))
    if not views or not states:
        return None
    states, without = _split_superseded(states, audience)
    tags = None if filter.tags is None else tuple(sorted(filter.tags))
    visible = visible_conversations(audience, "%s")
    belonging = () if filter.belongs_to is None else (_conversation_condition(filter.belongs_to, visible),)
    return Restriction(
        views=views,
        sees_all=audience.sees_all,
        states=states,
        tags=tags,
        conditions=(*_conditions(filter, now), *belonging, *without),
    )


def source_of(table: str, where: str) -> tuple[str, str]:
    """Make the FROM clause for rows of a table that carries CARRIED, under a condition on `memories`, and say what the
    table is called there. The memories themselves are joined only if the condition asks for more."""
    if {*re.findall(r"\bmemories\.(\w+)", where)} <= {*CARRIED, "space", "seq"}:
        return f"(SELECT *, memory AS seq FROM {table}) AS memories", "memories"  # noqa: S608 -- constants
    return f"memories JOIN {table} ON {table}.space = memories.space AND {table}.memory = memories.seq", table


def views_of(audience: Audience) -> tuple[View, ...]:
    audiences = {
        Sight.PUBLIC: (PUBLIC,),
        Sight.SHARED: (PUBLIC, SHARED),
        Sight.OWN: (PUBLIC, SHARED, PRIVATE + audience.user),
        Sight.ALL: None,
    }
    return tuple(View(scope.space, audiences[scope.sight]) for scope in audience.scopes)


def superseded_for(audience: Audience) -> Condition:
    """Make the array of ids of memories that something supersedes for this audience, though not for everyone."""
    visible, values = visible_rows(views_of(audience.reaching), "others")
    # asides_by_other, memories_by_id; as an array it is looked up once
    return (f"ARRAY({SUPERSEDED.format(visible)})", values)


def _split_superseded(states: tuple[int, ...], audience: Audience) -> tuple[tuple[int, ...], tuple[Condition, ...]]:
    """Turn the states that a filter asks for into those that rows hold, and a condition: some active memories are
    superseded for this audience."""
    active, outdated = State.ACTIVE in states, State.SUPERSEDED in states
    if active == outdated:
        return states, ()
    some, values = superseded_for(audience)
    if active:
        return states, ((f"memories.id <> ALL({some})", values),)
    only = f"(memories.state <> {int(State.ACTIVE)} OR memories.id = ANY({some}))"
    return (int(State.ACTIVE), *states), ((only, values),)


def audience_of(level: AccessLevel, user: str) -> str:
    return PRIVATE + user if level is AccessLevel.PRIVATE else {AccessLevel.PUBLIC: PUBLIC}.get(level, SHARED)


def audiences_of_path(memory: Memory) -> list[str]:
    """List the audiences in which a path of this memory must be unique."""
    audience = audience_of(memory.access_level, memory.context.user_id)
    return [PUBLIC, SHARED] if audience in (PUBLIC, SHARED) else [audience]


def spaces_of(views: Collection[View]) -> list[str] | None:
    spaces = {view.space for view in views if view.space is not None}
    return None if any(view.space is None for view in views) else sorted(spaces)


def visible_rows(views: Collection[View], table: str = "memories") -> Condition:
    return audience_condition(views, among, table)


def among(column: str, values: Iterable[Any]) -> Condition:
    """Make the condition that a column has one of these values: one text for however many, so that it is prepared once.
    With a single value an index keeps its order."""
    several = list(values)
    if len(several) == 1:
        return f"{column} = %s", several
    return f"{column} = ANY(%s)", [Texts(several) if several and isinstance(several[0], str) else several]


def holds(column: str, value: str) -> Condition:
    """Make the condition that a column of JSON strings holds this one.

    In JSON an element begins behind a bracket or a comma, and a quote inside one is never bare: so its text can be
    looked for as it stands. (`jsonb` cannot keep every string that a client may send.)
    """
    element = json.dumps(value, ensure_ascii=False)
    return f"(strpos({column}, %s) = 1 OR strpos({column}, %s) > 0)", [f"[{element}", f",{element}"]


def _conditions(filter: Filter, now: datetime) -> Iterator[Condition]:
    yield from by_columns(filter, milliseconds(now), "%s", among)
    if filter.user_id is not None:
        yield "memories.user_id = %s", [filter.user_id]
    if filter.conversation_id is not None:
        yield "memories.conversation_id = %s", [filter.conversation_id]
    if filter.access_levels is not None:
        yield among("memories.access_level", sorted(filter.access_levels))
    if filter.flag is not None:  # memories_by_flag
        yield "memories.flags <> '[]'", []
    if filter.flag not in (None, "any"):
        yield holds("memories.flags", str(filter.flag))
    yield from by_rows(filter, "%s", among)


def _conversation_condition(conversation: str, visible: Condition) -> Condition:
    """Make the condition that a memory was stored in a conversation, or injected into it.

    What others than its user store under the id of a private conversation is not in it. For those who may not know of
    it, there is only the id.
    """
    there, values = visible
    named = "conversations.space = memories.space AND conversations.id = %s"
    talk = f"SELECT 1 FROM conversations WHERE {named} AND {there}"  # noqa: S608 -- constants
    private = "conversations.access_level = 'private' AND conversations.user_id <> memories.user_id"
    injected = "SELECT 1 FROM injections WHERE injections.space = memories.space AND injections.memory = memories.id"
    return (
        f"""(
            (
                memories.conversation_id = %s
                AND NOT EXISTS ({talk} AND {private})
            )
            OR (EXISTS ({injected} AND injections.conversation = %s) AND EXISTS ({talk}))
        )""",
        [conversation, conversation, *values, conversation, conversation, *values],
    )
