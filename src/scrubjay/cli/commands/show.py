"""`scrubjay show`"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from scrubjay.cli.command import Command
from scrubjay.cli.ids import resolve_id
from scrubjay.cli.output import Cell, print_facts, print_json, safe
from scrubjay.cli.session import CommandSession
from scrubjay.cli.states import state_of
from scrubjay.errors import NotFound
from scrubjay.values.memory import Link, LinkKind, Memory

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine

FORGOTTEN = "If it was forgotten: `scrubjay list --deleted` shows it, `scrubjay forget --undo ID` restores it."


@click.command(
    cls=Command,
    examples="""
    scrubjay show mem_4x1k9c0d2m7q
    scrubjay show mem_4x1k9c0d2m7q --json
    """,
)
@click.argument("id")
@click.pass_obj
def show(session: CommandSession, id: str) -> None:
    """Show everything about a memory.

    Includes its links and the chain of memories that replaced each other, oldest first.
    """
    with session.engine(meaning=False, known_space=True) as engine:
        try:
            memory = engine.get(resolve_id(engine, id, session))
        except NotFound as error:
            raise NotFound(error.message, hint=FORGOTTEN) from None
        links = engine.links(memory.id)
        chain = list(walk_replacements(engine, memory))
        ends = {end for link in links for end in (link.source, link.target)} - {memory.id}
        titles = {other.id: other.title for other in read_existing(engine, ends)} | {one.id: one.title for one in chain}
    if session.as_json:
        chained = [one.id for one in chain] if len(chain) > 1 else []
        print_json({"memory": memory, "links": links, "chain": chained})
        return
    click.echo(safe(memory.shown_text, lines=True) + "\n")
    others = [("link", describe_link(link, memory, titles)) for link in links if link.kind is not LinkKind.SUPERSEDES]
    for place, one in enumerate(chain if len(chain) > 1 else (), 1):
        here = " (this one)" if one.id == memory.id else ""
        others.append(("chain", f"{place}. {one.id}  {one.title}{here}"))
    print_facts([*facts(memory), *others])


def walk_replacements(engine: Engine, memory: Memory) -> Iterator[Memory]:
    """The memory, what it replaced and what replaced it, oldest first."""
    older: list[Memory] = []
    newer: list[Memory] = []
    met = {memory.id}
    for names, found in (("supersedes", older), ("superseded_by", newer)):
        step: Memory | None = memory
        while step is not None and (next_id := getattr(step, names)) is not None and next_id not in met:
            met.add(next_id)
            step = next(read_existing(engine, {next_id}), None)
            if step is not None:
                found.append(step)
    yield from (*reversed(older), memory, *newer)


def read_existing(engine: Engine, ids: set[str]) -> Iterator[Memory]:
    """Those that still exist."""
    for one in sorted(ids):
        try:
            yield engine.get(one)
        except NotFound:
            continue


def facts(memory: Memory) -> Iterator[tuple[str, Cell]]:
    """The memory's facts, in the order people ask for them; missing ones are left out."""
    given: dict[str, Cell] = {
        "id": memory.id,
        "state": state_of(memory),
        "title": memory.title,
        "space": memory.space,
        "kind": memory.kind if memory.kind != "memory" else "",
        "category": memory.category,
        "tags": ", ".join(memory.tags),
        "also": "; ".join(memory.also),
        "found tags": ", ".join(memory.auto_tags),
        "flags": ", ".join(memory.flags),
        "importance": f"{memory.importance:g}",
        "confidence": f"{memory.confidence:g}" if memory.confidence != 1 else "",
        "source": memory.source,
        "access": memory.access_level,
        "path": memory.path,
        "topic": memory.topic or "",
        "user": memory.context.user_id,
        "conversation": memory.context.conversation_id or "",
        "session": memory.context.session_id or "",
        "stored": memory.created_at,
        "changed": memory.updated_at if memory.version > 1 else None,
        "expires": memory.expires_at,
        "true from": memory.valid_from,
        "true until": memory.valid_until,
        "verified": memory.verified_at,
        "read": f"{memory.access_count:,} times" if memory.access_count else "",
        "version": f"{memory.version}",
        "came from": f"{memory.provenance.client} ({memory.provenance.transport})",
        "metadata": json.dumps(memory.metadata, ensure_ascii=False) if memory.metadata else "",
    }
    return ((name, value) for name, value in given.items() if value)


def describe_link(link: Link, memory: Memory, titles: dict[str, str]) -> str:
    """A link as a sentence; an arrow shows which way it points."""
    other = link.target if link.source == memory.id else link.source
    arrow = "->" if link.source == memory.id else "<-"
    score = "" if link.score is None else f" ({link.score:.2f}, {link.state})"
    return f"{link.kind.replace('_', ' ')} {arrow} {other}{score}  {titles.get(other, '')}"
