"""Worlds: handwritten memories and questions that the reader of changes is trained on, one JSON file each.

A world is one person's or team's store. Each change is a NEW text with EARLIER ones beside it, each labelled by what
the new text does to it. Questions name the texts that answer them (`gold`) and those that no longer do (`stale`).

    python -m training.worlds            counts per world and label; exits with 1 if a world has a fault
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "worlds"
LABELS = ("outdates", "compatible", "same", "unrelated")
KINDS = ("paraphrase", "lexical", "when", "who", "howto", "why", "multi", "unanswerable")
EARLIER_AT_LEAST = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """A text stored before a change; `label` says what the change does to it."""

    id: str
    text: str
    label: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A text stored at `at`, later than each of its `earlier` ones."""

    id: str
    new: str
    at: datetime
    earlier: tuple[Earlier, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What someone asks; an empty `gold` means that the world has no answer."""

    id: str
    text: str
    gold: tuple[str, ...]
    stale: tuple[str, ...]
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """All that lies in one store."""

    name: str
    language: str
    about: str
    changes: tuple[Change, ...]
    questions: tuple[Question, ...]

    def texts(self) -> Iterator[tuple[str, str]]:
        """Every memory as id and text, in the order of the file."""
        for change in self.changes:
            yield from ((earlier.id, earlier.text) for earlier in change.earlier)
            yield change.id, change.new


def load(folder: Path = FOLDER) -> list[World]:
    """Read the worlds of a folder, by name of file."""
    return [_world(json.loads(path.read_text(encoding="utf-8"))) for path in sorted(folder.glob("*.json"))]


def _world(fields: dict[str, Any]) -> World:
    return World(
        name=fields["world"],
        language=fields["language"],
        about=fields["about"],
        changes=tuple(_change(change) for change in fields["changes"]),
        questions=tuple(_question(question) for question in fields["questions"]),
    )


def _change(fields: dict[str, Any]) -> Change:
    return Change(
        id=fields["id"],
        new=fields["new"],
        at=datetime.fromisoformat(fields["at"]),
        earlier=tuple(Earlier(**earlier) for earlier in fields["earlier"]),
    )


def _question(fields: dict[str, Any]) -> Question:
    return Question(
        id=fields["id"],
        text=fields["text"],
        gold=tuple(fields["gold"]),
        stale=tuple(fields.get("stale", ())),
        kind=fields["kind"],
    )


def faults(world: World) -> list[str]:
    """What is wrong with a world, a sentence each; empty if nothing is."""
    return [*_repeated(world), *_wrong_changes(world), *_wrong_questions(world)]


def _repeated(world: World) -> Iterator[str]:
    texts = list(world.texts())
    ids = [id for id, _ in texts] + [question.id for question in world.questions]
    yield from (f"id {id} is used {count} times" for id, count in Counter(ids).items() if count > 1)
    first: dict[str, str] = {}
    for id, text in texts:
        if (other := first.setdefault(_plain(text), id)) != id:
            yield f"{other} and {id} have the same text: {text}"


def _wrong_changes(world: World) -> Iterator[str]:
    for before, after in zip(world.changes, world.changes[1:], strict=False):
        if after.at < before.at:
            yield f"{after.id} is stored before {before.id}"
    for change in world.changes:
        if change.at.tzinfo is None:
            yield f"{change.id} has a time without a zone"
        if len(change.earlier) < EARLIER_AT_LEAST:
            yield f"{change.id} has {len(change.earlier)} earlier texts, fewer than {EARLIER_AT_LEAST}"
        for earlier in change.earlier:
            if earlier.label not in LABELS:
                yield f"{earlier.id} has the unknown label {earlier.label!r}"
            if _plain(earlier.text) == _plain(change.new):
                yield f"{change.id} repeats its earlier text {earlier.id}"


def _wrong_questions(world: World) -> Iterator[str]:
    known = {id for id, _ in world.texts()}
    outdated = {e.id for change in world.changes for e in change.earlier if e.label == "outdates"}
    for question in world.questions:
        for id in (*question.gold, *question.stale):
            if id not in known:
                yield f"{question.id} names {id}, which does not exist"
        for id in question.gold:
            if id in outdated:
                yield f"{question.id} has the outdated {id} for an answer"
        for id in question.stale:
            if id in known - outdated:
                yield f"{question.id} calls {id} stale, which nothing outdates"
        if question.kind not in KINDS:
            yield f"{question.id} has the unknown kind {question.kind!r}"
        if (question.kind == "unanswerable") != (not question.gold):
            yield f"{question.id} is {question.kind} with {len(question.gold)} answers"


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _labels(world: World) -> Counter[str]:
    return Counter(earlier.label for change in world.changes for earlier in change.earlier)


def _row(name: str, changes: int, questions: int, labels: Counter[str]) -> str:
    return f"{name:<16}{changes:>8}{questions:>10}" + "".join(f"{labels[label]:>11}" for label in LABELS)


def main() -> int:
    """Print the counts, then the faults."""
    worlds = load()
    print(f"{'world':<16}{'changes':>8}{'questions':>10}" + "".join(f"{label:>11}" for label in LABELS))
    for world in worlds:
        print(_row(world.name, len(world.changes), len(world.questions), _labels(world)))
    changes, questions = sum(len(w.changes) for w in worlds), sum(len(w.questions) for w in worlds)
    print(_row("all", changes, questions, sum((_labels(w) for w in worlds), Counter())))
    wrong = [f"{world.name}: {fault}" for world in worlds for fault in faults(world)]
    wrong += [f"{name}: two files have this name" for name, n in Counter(w.name for w in worlds).items() if n > 1]
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
