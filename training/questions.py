"""Questions as people ask them, for the worlds of `training/worlds`: one file each, a line for each question.

    c18a c18 | dripping faucets           what answers it, and the question
    -        | number of electors         near the topic, but nothing answers it

Short, vague, often in other words than the memory, sometimes in another language. Written by hand.

    python -m training.questions          counts; exits with 1 if a file has a fault
"""

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from training import worlds

FOLDER = Path(__file__).parent / "questions"
NOTHING = "-"


@dataclass(frozen=True, slots=True)
class Asked:
    text: str
    gold: tuple[str, ...]  # empty if nothing answers


def load(world: worlds.World) -> list[Asked]:
    """The questions of a world: those of its own file first, then these."""
    own = [Asked(one.text, one.gold) for one in world.questions]
    return own + [asked for _, asked in _lines(world)]


def _lines(world: worlds.World) -> Iterator[tuple[int, Asked]]:
    lines = (FOLDER / f"{world.name}.txt").read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        gold, _, text = line.partition("|")
        yield number, Asked(text.strip(), () if gold.strip() == NOTHING else tuple(gold.split()))


def answers_too(world: worlds.World) -> dict[str, set[str]]:
    """For each memory those that say the same, or said it before: who asks for one is not misled by the others."""
    found: dict[str, set[str]] = {}
    for change in world.changes:
        said = {change.id, *(one.id for one in change.earlier if one.label in ("same", "outdates"))}
        for id in said:
            found.setdefault(id, set()).update(said - {id})
    return found


def faults(world: worlds.World) -> Iterator[str]:
    """What is wrong with a world's questions, a sentence each."""
    known = {id for id, _ in world.texts()}
    outdated = {e.id for change in world.changes for e in change.earlier if e.label == "outdates"}
    texts = Counter(one.text.casefold() for one in load(world))
    for number, asked in _lines(world):
        where = f"{world.name}.txt:{number}"
        if not asked.text or (not asked.gold and texts[asked.text.casefold()] > 1):
            yield f"{where} has no question of its own"
        yield from (f"{where} names {id}, which does not exist" for id in asked.gold if id not in known)
        yield from (f"{where} has the outdated {id} for an answer" for id in asked.gold if id in outdated)


def main() -> int:
    """Print the counts, then the faults."""
    wrong = []
    answerable = unanswerable = 0
    for world in worlds.load():
        asked = [one for _, one in _lines(world)]
        answered = sum(bool(one.gold) for one in asked)
        print(f"{world.name:<20}{answered:>5} answerable{len(asked) - answered:>5} not")
        answerable, unanswerable = answerable + answered, unanswerable + len(asked) - answered
        wrong += faults(world)
    print(f"{'all':<20}{answerable:>5} answerable{unanswerable:>5} not")
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
