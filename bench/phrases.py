"""What phrases are worth: the worlds we have, with phrases and wordings written blind, with and without either.

    python -m bench.phrases            every world in a store of its own, and all of them in one store
    python -m bench.phrases home ryokan_ja …      these worlds only

Whoever wrote `training/phrases` saw the memories and no question; whoever wrote `training/wordings` saw the questions
and no memory. A run fails if a reply was degraded, and no judge has a deadline. Of hits labelled strong, those that are
the outdated version of an answer are counted apart: whether they are outdated is for somebody to settle.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from statistics import mean
from typing import Any

from training import worlds as training_worlds

import scrubjay
from bench.cached import remembering
from scrubjay.engine.engine import Engine
from scrubjay.engine.search.ranking import WEAK
from scrubjay.values.search import Verdict

TRAINING = Path(training_worlds.__file__).parent
LOOKED_AT = 10  # hits of a question
STRANGERS = 15  # questions of other worlds that each world is asked
NOT_ENGLISH = "not in English"
CASES = {"neither": (False, False), "stored": (True, False), "asked": (False, True), "both": (True, True)}


@dataclass(frozen=True, slots=True)
class Text:
    """A memory of a world."""

    id: str
    text: str
    at: datetime
    phrases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """A question to a world; without `gold` nothing there answers it."""

    text: str
    gold: frozenset[str]
    stale: frozenset[str]
    wordings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class World:
    name: str
    everyday: bool
    english: bool
    texts: tuple[Text, ...]
    questions: tuple[Question, ...]
    outdated: dict[str, frozenset[str]]  # by the id of a text, the earlier ones that it outdates


def load_worlds(names: Sequence[str] = ()) -> list[World]:
    """The worlds for which phrases and wordings were written."""
    found = []
    for folder in ("everyday", "worlds"):
        for file in sorted((TRAINING / folder).glob("*.json")):
            if names and file.stem not in names:
                continue
            world = json.loads(file.read_text("utf-8"))
            phrases = json.loads((TRAINING / "phrases" / file.name).read_text("utf-8"))
            wordings = json.loads((TRAINING / "wordings" / file.name).read_text("utf-8"))
            texts = sorted(
                (
                    Text(id, text, at, tuple(phrases[id]))
                    for id, text, at in (_everyday_texts(world) if folder == "everyday" else _changing_texts(world))
                    if id in phrases
                ),
                key=lambda one: one.at,
            )
            questions = [
                Question(
                    one["text"], frozenset(one["gold"]), frozenset(one.get("stale", ())), tuple(wordings[one["id"]])
                )
                for one in world["questions"]
            ]
            english = world.get("language", "en" if file.stem != "languages" else "") == "en"
            outdated = dict(_changes(world, texts, questions))
            found.append(World(file.stem, folder == "everyday", english, tuple(texts), tuple(questions), outdated))
    return found


def _changes(
    world: dict[str, Any], texts: Sequence[Text], questions: Sequence[Question]
) -> Iterator[tuple[str, frozenset[str]]]:
    """What outdates what: by the labels of a training world, by the questions of an everyday one."""
    labelled = {
        change["id"]: {one["id"] for one in change["earlier"] if one["label"] == "outdates"}
        for change in world.get("changes", ())
    }
    for place, text in enumerate(texts):
        earlier = {one.id for one in texts[:place]}
        old = (
            labelled.get(text.id, ())
            if labelled
            else (stale for one in questions if text.id in one.gold for stale in one.stale)
        )
        if found := earlier.intersection(old):
            yield text.id, frozenset(found)


def _everyday_texts(world: dict[str, Any]) -> Iterator[tuple[str, str, datetime]]:
    for one in world["memories"]:
        yield one["id"], one["text"], _moment(one["at"])


def _changing_texts(world: dict[str, Any]) -> Iterator[tuple[str, str, datetime]]:
    """Each change, and the earlier texts that it is compared with, which are a year older."""
    for change in world["changes"]:
        at = _moment(change["at"])
        yield change["id"], change["new"], at
        for earlier in change["earlier"]:
            yield earlier["id"], earlier["text"], at - timedelta(days=365)


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


@contextmanager
def measuring() -> Iterator[Engine]:
    """An empty memory with the real models, which waits for them and judges without a deadline."""
    settings = {"SCRUBJAY_JUDGE_WAIT": "0", "SCRUBJAY_STRICT_EMBEDDING": "on", "SCRUBJAY_EMBED_WAIT": "120"}
    os.environ.update(settings)
    with tempfile.TemporaryDirectory() as home, remembering():
        os.environ["SCRUBJAY_HOME"] = home
        with scrubjay.open(Path(home) / "memories.db") as jay:
            jay.store("The model is loaded before anything is measured")
            yield jay


def fill(jay: Engine, world: World, *, with_phrases: bool) -> dict[str, str]:
    """Store a world's texts; their names (world/id) by the ids they got."""
    stored = (
        (jay.store(one.text, created_at=one.at, also=one.phrases if with_phrases else ()), one) for one in world.texts
    )
    return {result.memory.id: f"{world.name}/{one.id}" for result, one in stored}


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, what it found and what would have been right."""

    names: tuple[str, ...]
    scores: tuple[float, ...]
    strong: tuple[bool, ...]
    gold: frozenset[str]
    stale: frozenset[str]
    stranger: bool


def ask(
    jay: Engine, known: dict[str, str], question: Question, home: World, *, reworded: bool, stranger: bool
) -> Asked:
    hits = jay.search(question.text, also=question.wordings if reworded else (), limit=LOOKED_AT)
    if hits.degraded:
        raise SystemExit(f"{question.text!r} was answered degraded: {hits.degraded}")
    return Asked(
        names=tuple(known[hit.memory.id] for hit in hits),
        scores=tuple(hit.score for hit in hits),
        strong=tuple(hit.verdict is Verdict.STRONG for hit in hits),
        gold=frozenset() if stranger else frozenset(f"{home.name}/{one}" for one in question.gold),
        stale=frozenset() if stranger else frozenset(f"{home.name}/{one}" for one in question.stale),
        stranger=stranger,
    )


def ask_world(
    jay: Engine, known: dict[str, str], world: World, others: Sequence[World], *, reworded: bool
) -> list[Asked]:
    """A world's own questions, and some of other worlds."""
    own = [ask(jay, known, one, world, reworded=reworded, stranger=False) for one in world.questions]
    strange = strangers_of(world, others)
    return own + [ask(jay, known, one, world, reworded=reworded, stranger=True) for one in strange]


def strangers_of(world: World, others: Sequence[World]) -> list[Question]:
    """Some answerable questions of other worlds."""
    strange = [one for other in others for one in other.questions if one.gold]
    return Random(world.name).sample(strange, min(STRANGERS, len(strange)))


def measure(
    worlds: Sequence[World], *, with_phrases: bool, reworded: tuple[bool, ...]
) -> dict[tuple[str, bool], list[Asked]]:
    """What every question found, by kind of store and whether it had other wordings."""
    found: dict[tuple[str, bool], list[Asked]] = {}
    with measuring() as jay:
        together: dict[str, str] = {}
        for world in worlds:
            alone = jay.bound_to(spaces=(f"{world.name.replace('_', '-')}",), only=True)
            known = fill(alone, world, with_phrases=with_phrases)
            others = [other for other in worlds if other is not world and other.everyday is world.everyday]
            for also in reworded:
                asked = ask_world(alone, known, world, others, reworded=also)
                for kind in (
                    "each",
                    "everyday" if world.everyday else "training",
                    *(() if world.english else (NOT_ENGLISH,)),
                ):
                    found.setdefault((f"{kind}, a world alone", also), []).extend(asked)
        every = jay.bound_to(spaces=("every-world",), only=True)
        for world in worlds:
            together |= fill(every, world, with_phrases=with_phrases)
        for also in reworded:
            found[f"{len(worlds)} worlds in one store", also] = [
                ask(every, together, one, world, reworded=also, stranger=False)
                for world in worlds
                for one in world.questions
            ]
    return found


def area(yes: Sequence[float], no: Sequence[float]) -> float | None:
    """How often a right one scores above a wrong one, of a hundred pairs."""
    if not yes or not no:
        return None
    return 100 * mean((a > b) + 0.5 * (a == b) for a in yes for b in no)


def figures(asked: Sequence[Asked]) -> dict[str, float | None]:
    answerable = [one for one in asked if one.gold]
    places = [next((n for n, name in enumerate(one.names, 1) if name in one.gold), None) for one in answerable]
    best = [max(one.scores, default=0.0) for one in answerable]
    changed = [one for one in answerable if one.stale]
    current = [
        next((n for n, name in enumerate(one.names) if name in one.gold), LOOKED_AT)
        < next((n for n, name in enumerate(one.names) if name in one.stale), LOOKED_AT)
        for one in changed
    ]
    strong = [
        (name in one.gold, name in one.stale)
        for one in answerable
        for name, yes in zip(one.names, one.strong, strict=True)
        if yes
    ]
    right, stale = sum(gold for gold, _ in strong), sum(old and not gold for gold, old in strong)
    return {
        "questions": len(answerable),
        "first": 100 * mean(place == 1 for place in places),
        "five": 100 * mean(place is not None and place <= 5 for place in places),
        "MRR": 100 * mean(1 / place if place else 0.0 for place in places),
        "current first": 100 * mean(current) if current else None,
        "strangers": area(best, [max(one.scores, default=0.0) for one in asked if one.stranger]),
        "near topics": area(best, [max(one.scores, default=0.0) for one in asked if not one.gold and not one.stranger]),
        "strong: precision": 100 * right / len(strong) if strong else None,
        "… outdated ones apart": 100 * right / (len(strong) - stale) if len(strong) > stale else None,
        "strong: recall": 100 * right / sum(len(one.gold) for one in answerable),
        "answers called none": 100 * mean(one < WEAK for one in best),
    }


def main() -> None:
    worlds = load_worlds(sys.argv[1:])
    found: dict[tuple[str, str], list[Asked]] = {}
    for with_phrases in (False, True):
        for (kind, reworded), asked in measure(worlds, with_phrases=with_phrases, reworded=(False, True)).items():
            case = next(name for name, both in CASES.items() if both == (with_phrases, reworded))
            found[kind, case] = asked
    columns = list(figures(next(iter(found.values()))))
    print(f"| store | phrases | {' | '.join(columns)} |\n|{'---|' * (len(columns) + 2)}")
    for (kind, case), asked in sorted(found.items(), key=lambda one: (one[0][0], [*CASES].index(one[0][1]))):
        shown = [
            "–" if value is None else f"{value:.0f}" if name == "questions" else f"{value:.1f}"
            for name, value in figures(asked).items()
        ]
        print(f"| {kind} | {case} | {' | '.join(shown)} |")


if __name__ == "__main__":
    main()
