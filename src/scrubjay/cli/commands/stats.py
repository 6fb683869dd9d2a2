"""`scrubjay stats`"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from scrubjay.cli.command import Command
from scrubjay.cli.output import Cell, count_of, print_facts, print_json, tell_empty
from scrubjay.cli.session import CommandSession
from scrubjay.engine.statistics import StatsQuery, StatsScope

if TYPE_CHECKING:
    from scrubjay.engine.statistics import Statistics

BARS = 20  # columns of the longest bar


@click.command(
    cls=Command,
    examples="""
    scrubjay stats
    scrubjay stats --everywhere --json
    """,
)
@click.option("--everywhere", is_flag=True, help="Count every space, even if --only is set.")
@click.pass_obj
def stats(session: CommandSession, everywhere: bool) -> None:
    """Show how many memories there are, of which kinds, and how they are used.

    docs/reference/statistics.md explains each number.
    """
    scope = StatsScope.GLOBAL if everywhere else StatsScope.EVERYTHING
    with session.engine(meaning=False, known_space=True) as engine:
        found = engine.statistics(StatsQuery(scope=scope))
        if session.as_json:
            print_json(found)
        elif found.count.total:
            print_facts(list(facts(found)))
        else:
            tell_empty("No memories found.", engine, session)


def facts(found: Statistics) -> Iterator[tuple[str, Cell]]:
    count, size, used, growth = found.count, found.storage_size, found.access_patterns, found.growth_rate
    rest = {"superseded": found.current.superseded, "archived": count.archived}
    rest |= {"forgotten": found.deletion_rate.soft_deletes, "expired": count.expired}
    more = "".join(f", {number:,} {name}" for name, number in rest.items() if number)
    yield "memories", f"{found.current.total:,}{more}"
    yield "since", found.start
    yield "growth", f"{growth.memories_per_day:g} a day, {growth.trend}"
    yield "size", f"{size.total_bytes / 1e3:,.0f} kB, of which vectors {size.embeddings_bytes / 1e3:,.0f} kB"
    yield (
        "found",
        f"{count_of(used.total_recalls, 'time', 'times')}, {used.unique_memories_accessed:,} memories",
    )
    if used.most_accessed_memory_id is not None:
        yield "most found", f"{used.most_accessed_memory_id} ({count_of(used.most_accessed_count, 'time', 'times')})"
    yield "health", f"{found.health_score.overall:.0%}"
    largest = max(found.current.categories.values(), default=1)
    for category, number in found.current.categories.items():
        yield str(category), f"{'▇' * max(1, round(BARS * number / largest))} {number:,}"
