"""`scrubjay decisions`"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from scrubjay.cli.command import Command
from scrubjay.cli.commands import diagrams
from scrubjay.cli.output import note, print_json, print_table, safe, tell_empty, when
from scrubjay.cli.session import CommandSession
from scrubjay.text.letters import topic_key
from scrubjay.values.memory import LinkKind

if TYPE_CHECKING:
    from scrubjay.engine.decisions.decisions import DecisionGraph
    from scrubjay.engine.engine import Engine

FORMATS = ("tree", "mermaid", "dot", "json")


@click.command(
    cls=Command,
    examples="""
    scrubjay decisions
    scrubjay decisions auth_strategy
    scrubjay decisions auth_strategy --steps 2 --format mermaid > auth.mmd
    """,
)
@click.argument("topic", required=False)
@click.option("--format", "shape", type=click.Choice(FORMATS), default="tree", help="How to show it. Default: tree.")
@click.option("--steps", type=click.IntRange(0, 10), default=1, help="How far to follow links. Default: 1.")
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=200, help="Maximum number of decisions to show. Default: 200."
)
@click.pass_obj
def decisions(session: CommandSession, topic: str | None, shape: str, steps: int, limit: int) -> None:
    """Show how decisions evolved, topic by topic.

    Without a topic, lists all topics; a diagram (mermaid, dot or json) then shows all decisions. For a topic, shows
    its decisions, newest first, their outcomes, and the decisions that they build on, debate or synthesize.
    """
    with session.engine(meaning=False, known_space=True) as engine:
        if topic is None and shape == "tree" and not session.as_json:
            list_topics(engine, session, limit)
            return
        graph = engine.decisions.graph(topic, steps=steps, limit=limit)
    if session.as_json or shape == "json":
        print_json(graph)
    elif shape == "tree":
        print_tree(graph, topic or "")
    else:
        click.echo(diagrams.mermaid(graph) if shape == "mermaid" else diagrams.dot(graph))


def list_topics(engine: Engine, session: CommandSession, limit: int) -> None:
    topics = engine.decisions.topics(limit=limit)
    if not topics:
        tell_empty("No decisions yet.", engine, session)
        return
    rows = [(one.name, f"{one.decisions:,}", one.latest_at) for one in topics]
    print_table(("topic", "decisions", "latest"), rows)
    note("`scrubjay decisions TOPIC` shows how one evolved.", session)


def print_tree(graph: DecisionGraph, topic: str) -> None:
    """The chain newest first; under each decision its reasoning, outcome and links."""
    from rich.console import Console
    from rich.text import Text
    from rich.tree import Tree

    names = {memory.id: memory for memory in graph.memories}
    chain = [one for one in reversed(graph.memories) if one.topic and topic_key(one.topic) == topic_key(topic)]
    tree = Tree(Text(safe(topic), style="bold"))
    for memory in chain:
        state = "superseded" if memory.superseded_by else "current"
        line = Text.assemble(
            (safe(memory.content), "dim" if memory.superseded_by else "bold"),
            (f"  {state}, {when(memory.created_at)}", "dim"),
        )
        branch = tree.add(line)
        if reasoning := memory.detail.get("reasoning"):
            branch.add(Text(f"why: {safe(reasoning)}"))
        if outcome := memory.detail.get("outcome"):
            why = f": {safe(memory.detail['reason'])}" if memory.detail.get("reason") else ""
            style = {"success": "green", "failed": "red"}.get(outcome, "yellow")
            branch.add(Text(f"{outcome}{why}", style=style))
        for link in graph.links:
            if link.kind is LinkKind.SUPERSEDES or memory.id not in (link.source, link.target):
                continue
            other = names[link.target if link.source == memory.id else link.source]
            arrow = f"{link.kind}" if link.source == memory.id else f"{link.kind} this"
            branch.add(Text(f"{arrow}: {safe(other.topic or other.title)} ({safe(other.content)})", style="cyan"))
    terminal = sys.stdout is not None and sys.stdout.isatty()
    Console(soft_wrap=not terminal, highlight=False).print(tree)
