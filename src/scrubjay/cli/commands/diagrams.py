"""Decisions as a diagram for Mermaid or Graphviz. Stored text is data: it can only ever be a label."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from scrubjay.cli.output import safe
from scrubjay.values.memory import Memory

if TYPE_CHECKING:
    from scrubjay.engine.decisions.decisions import DecisionGraph

LABEL = 80  # characters of a decision


def mermaid(graph: DecisionGraph) -> str:
    """A flowchart; arrows point from a decision to what it replaced or names."""
    places = _places(graph)
    lines = ["flowchart TD"]
    lines += [f'    {places[memory.id]}["{_entities(_label(memory))}"]' for memory in graph.memories]
    lines += [f"    {places[link.source]} -->|{link.kind}| {places[link.target]}" for link in graph.links]
    return "\n".join(lines)


def dot(graph: DecisionGraph) -> str:
    places = _places(graph)
    lines = ["digraph decisions {", "    rankdir=BT;", "    node [shape=box];"]
    lines += [f'    {places[memory.id]} [label="{_escape(_label(memory))}"];' for memory in graph.memories]
    lines += [f'    {places[link.source]} -> {places[link.target]} [label="{link.kind}"];' for link in graph.links]
    return "\n".join([*lines, "}"])


def _places(graph: DecisionGraph) -> dict[str, str]:
    return {memory.id: f"d{number}" for number, memory in enumerate(graph.memories, 1)}


def _label(memory: Memory) -> str:
    text = f"{memory.topic}: {memory.content}" if memory.topic else memory.content
    cut = text if len(text) <= LABEL else f"{text[: LABEL - 1]}…"
    outcome = memory.detail.get("outcome")
    return safe(" ".join(cut.split())) + (f" [{outcome}]" if outcome else "")


def _entities(text: str) -> str:
    """Everything but letters, digits and the plainest marks as a character entity, which Mermaid writes with #."""
    return re.sub(r"[^\w .,:!?'/+-]", lambda found: f"#{ord(found[0])};", text)


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
