"""What a caller left out, found in the text: category, tags, importance.

How much does a memory matter, if no one said? A sum of named parts, from what the text and its caller tell:

    importance = (category + explicit + personal + specific + emphatic + sweeping - doubtful) · (½ + ½ confidence)

Cut to 0..1 and rounded to two places. A plain fact is worth about a half.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from scrubjay.engine.conflicts import grammar
from scrubjay.engine.store.keyphrases import auto_tags
from scrubjay.values.memory import Category, Kind, Memory, NewMemory, Source

if TYPE_CHECKING:
    from scrubjay.embedders.base import Vector
    from scrubjay.engine.engine import Engine

READ = 400  # characters: as far as subjects.read looks

# What is asked of an agent, and what someone is like, stays useful longest; what is going on just now, shortest.
CATEGORY = {
    Category.INSTRUCTION: 0.70,
    Category.PREFERENCE: 0.65,
    Category.GOAL: 0.60,
    Category.RELATIONSHIP: 0.60,
    Category.SKILL: 0.55,
    Category.CUSTOM: 0.50,
    Category.FACT: 0.45,
    Category.EVENT: 0.45,
    Category.CONTEXT: 0.35,
}
EXPLICIT = 0.10  # someone asked for it to be remembered
PERSONAL = 0.05  # it is about the user, or said by one
SPECIFIC = 0.03  # each name or number, up to three
MOST_SPECIFIC = 3
EMPHATIC = 0.10  # it says itself that it matters
SWEEPING = 0.05  # it holds every time or everywhere
DOUBTFUL = 0.10  # whoever said it was not sure

ABOUT_ONE = re.compile(r"\b(?:users?|i|me|my|mine|we|us|our)\b")
EMPHASIS = re.compile(
    r"\b(?:important(?:ly)?|critical(?:ly)?|crucial|urgent(?:ly)?|essential|vital|mandatory|must|never|danger(?:ous)?|"
    r"emergenc(?:y|ies)|life-threatening|severe(?:ly)?|allergic|allerg(?:y|ies)|deadlines?|confidential|"
    r"remember (?:that|to|this)|don't forget|do not forget)\b"
)
SWEEP = re.compile(r"\b(?:always|all|every|everything|everywhere|only|any|whenever|at all times)\b")
DOUBT = re.compile(
    r"\b(?:maybe|perhaps|might|possibly|probably|apparently|supposedly|not sure|unsure|i think|i guess)\b"
)


def enrich(engine: Engine, memory: Memory, new: NewMemory, vector: Vector | None) -> Memory:
    """The memory with what its caller left out."""
    category = new.category or category_of(engine, memory, vector)
    found = importance(memory.text, category=category, source=memory.source, confidence=memory.confidence)
    return replace(
        memory,
        category=category,
        auto_tags=auto_tags(memory.text),
        importance=found if new.importance is None else new.importance,
    )


def category_of(engine: Engine, memory: Memory, vector: Vector | None) -> Category:
    if memory.kind is Kind.CHECKPOINT:
        return Category.CONTEXT
    found = engine.parts.categoriser.category(memory.text, vector)
    if memory.kind is Kind.DECISION:  # it either tells others what to do, or says what is the case
        return Category.INSTRUCTION if found is Category.INSTRUCTION else Category.FACT
    return found


def importance(text: str, *, category: Category, source: Source, confidence: float) -> float:
    """0..1 in steps of a hundredth; never falls when source, confidence, names or emphasis grow."""
    total = sum(parts(text, category=category, source=source).values())
    return round(min(1.0, max(0.0, total * (0.5 + 0.5 * confidence))), 2)


def parts(text: str, *, category: Category, source: Source) -> dict[str, float]:
    """What each part adds, by name."""
    plain = text[:READ].lower().replace("’", "'")
    said = grammar.read(text)
    return {
        "category": CATEGORY[category],
        "explicit": EXPLICIT if source is Source.EXPLICIT else 0.0,
        "personal": PERSONAL if ABOUT_ONE.search(plain) else 0.0,
        "specific": SPECIFIC * min(MOST_SPECIFIC, len(said.names | said.numbers)),
        "emphatic": EMPHATIC if EMPHASIS.search(plain) else 0.0,
        "sweeping": SWEEPING if SWEEP.search(plain) else 0.0,
        "doubtful": -DOUBTFUL if DOUBT.search(plain) else 0.0,
    }
