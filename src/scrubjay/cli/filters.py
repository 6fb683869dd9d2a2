"""The options of `search` and `list` that say which memories are meant."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

import click

from scrubjay.cli.durations import read_on, read_since, read_until
from scrubjay.values.memory import Category, Memory, State
from scrubjay.values.search import Filter
from scrubjay.values.times import utc_now

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

ALL_STATES = frozenset(State) - {State.PURGED}
CATEGORIES = click.Choice([category.value for category in Category])
NAMES = ", ".join(CATEGORIES.choices)


def filter_options(command: Decorated) -> Decorated:
    """Adds the options; the command hands them on to :func:`chosen`."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


OPTIONS = (
    click.option("--tag", "tags", multiple=True, help="Only with this tag; repeat for any of several."),
    click.option(
        "--category", "categories", multiple=True, type=CATEGORIES, metavar="NAME", help=f"Only this category: {NAMES}."
    ),
    click.option("--since", callback=read_since, metavar="WHEN", help="Only stored since then: 7d, 12h, 2026-11-01."),
    click.option("--until", callback=read_until, metavar="WHEN", help="Only stored until then."),
    click.option("--on", callback=read_on, metavar="WHEN", help="Only from then: 2026-11-15, 2026-11, yesterday."),
    click.option("--user", "user_id", metavar="NAME", help="Only this user's."),
    click.option("--conversation", "conversation_id", metavar="ID", help="Only from this conversation."),
    click.option("--client", metavar="NAME", help="Only what this program stored."),
    click.option("--caller", metavar="NAME", help="Only what was stored with this user's credential."),
    click.option("--flag", metavar="NAME", help="Only what is flagged: secret, instruction."),
    click.option("--phrased/--unphrased", default=None, help="Only with other wordings (also), or only without any."),
)


def read_filter(
    *,
    tags: tuple[str, ...],
    categories: tuple[str, ...],
    since: datetime | None,
    until: datetime | None,
    on: tuple[datetime, datetime] | None,
    **more: Any,
) -> Filter:
    """The options as a filter; `more` by the filter's own names."""
    if on is not None:
        since, until = max(on[0], since or on[0]), min(on[1], until or on[1])
    return Filter(
        tags=frozenset(tags) or None,
        categories=frozenset(map(Category, categories)) or None,
        created_since=since,
        created_until=until,
        **more,
    )


def state_of(memory: Memory, newer: str | None = None) -> str:
    """Empty for a memory that searches find, unless `newer` may outdate it."""
    states = [] if memory.state is State.ACTIVE else [memory.state.name.lower()]
    if memory.expired(utc_now()):
        states.append("expired")
    if newer:
        states.append(f"may be outdated by {newer}")
    return ", ".join(states)
