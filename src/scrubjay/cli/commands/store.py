"""`scrubjay store`"""

from __future__ import annotations

from typing import Any

import click

from scrubjay.cli.command import Command
from scrubjay.cli.durations import read_ahead
from scrubjay.cli.filters import CATEGORIES, NAMES
from scrubjay.cli.output import announce_new_space, note, show, tell_flags, tell_owed
from scrubjay.cli.progress import waiting
from scrubjay.cli.session import CommandSession
from scrubjay.cli.texts import given_text
from scrubjay.values.memory import Memory, Stored


@click.command(
    cls=Command,
    examples="""
    scrubjay store "User moved to Austin" --tag home
    scrubjay store "The boiler is a Vaillant ecoTEC" --also "heating" --also "which model is it?"
    scrubjay store "The demo runs on port 8080" --expires 30d --category context
    git log -1 --format=%B | scrubjay store -
    """,
)
@click.argument("text")
@click.option("--tag", "tags", multiple=True, help="A tag; repeat for several.")
@click.option(
    "--also",
    multiple=True,
    metavar="PHRASE",
    help="A phrase to find it by; repeat up to six times.",
)
@click.option("--category", type=CATEGORIES, metavar="NAME", help=f"One of {NAMES}. Default: found in the text.")
@click.option("--importance", type=click.FloatRange(0, 1), help="From 0 to 1. Default: found in the text.")
@click.option(
    "--source",
    type=click.Choice(["explicit", "extracted"]),
    default="explicit",
    help="Whether someone asked for it or a model extracted it. Default: explicit.",
)
@click.option(
    "--expires", "expires_at", callback=read_ahead, metavar="WHEN", help="Hide it after 30d, 12h, or on 2026-12-01."
)
@click.option("--title", help="A title. Default: the beginning of the text.")
@click.option("--user", "user_id", metavar="NAME", help="Whose memory it is. Default: yours.")
@click.option("--conversation", "conversation_id", metavar="ID", help="The conversation it comes from.")
@click.pass_obj
def store(session: CommandSession, /, *, text: str, **fields: Any) -> None:
    """Store a memory.

    Prints its id. Earlier memories that it may outdate are listed on standard error, with the command that marks them
    as outdated. If TEXT is -, it is read from standard input, without the final newline. Put a text that begins with a
    dash after --.
    """
    content = given_text(text)
    with session.engine(writes=True) as engine, announce_new_space(engine, session):
        with waiting("Storing, and comparing with earlier memories"):
            stored = engine.store(content, **fields)
        owed = engine.take_owed()
    show(stored, stored.memory.id, session)
    advise(stored, session)
    tell_owed(owed, session)


def advise(stored: Stored, session: CommandSession) -> None:
    def title_of(memory: Memory) -> str:
        where = f" (from space {memory.space})" if memory.space != stored.memory.space else ""
        return f"{memory.title}{where}"

    tell_flags(stored.memory, session)
    if stored.degraded:
        note(f"Found by words only for now: {stored.degraded} See `scrubjay doctor`.", session)
    if not stored.compared:
        note("Not compared yet: 1 memory; `scrubjay conflicts` says later what it may outdate.", session)
    for earlier in stored.similar:
        note(f"It may outdate: {title_of(earlier)}", session)
        note(f"  If so: scrubjay supersede {earlier.id} {stored.memory.id}", session)
    for earlier in stored.candidates:
        if earlier.id in stored.same:
            note(f"It says the same as: {title_of(earlier)} ({earlier.id})", session)
