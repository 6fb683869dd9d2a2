"""`scrubjay hooks`"""

from __future__ import annotations

from itertools import islice
from typing import Any

import click

from scrubjay.cli.command import Family
from scrubjay.cli.output import note, print_json, print_table
from scrubjay.cli.session import CommandSession
from scrubjay.hooks.log import read


@click.group(cls=Family, without=("--space",), examples="scrubjay hooks log --limit 100")
def hooks() -> None:
    """Show what hooks gave to agents."""


@hooks.command(examples="scrubjay hooks log --limit 100")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, help="Maximum number of lines. Default: 50.")
@click.pass_obj
def log(session: CommandSession, limit: int) -> None:
    """Show when a hook ran, for which prompt, and what it gave: memories, tokens, milliseconds.

    The way says how: a server was asked, words were looked up, nothing was found, or it was too late.
    """
    lines = list(islice(read(session.settings().home), limit))
    if session.as_json:
        print_json(lines)
    elif lines:
        columns = ("when", "hook", "client", "way", "hits", "tokens", "ms", "prompt")
        print_table(columns, [row(line) for line in lines])
    else:
        note("No hook has run yet. `scrubjay install CLIENT --hooks` adds them.", session)


def row(line: dict[str, Any]) -> tuple[str, ...]:
    way = line.get("why") or line.get("how", "")
    count = len(line.get("ids", ())) or line.get("suggestions", "")
    fields = (line.get("at"), line.get("hook"), line.get("client"), way, count, line.get("tokens"), line.get("ms"))
    return (*(str(field or "") for field in fields), str(line.get("prompt") or ""))
