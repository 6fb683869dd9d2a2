"""Long memories among short notes: minutes, diaries, READMEs, asked for by a rare word, a sentence or their meaning.

    python -m training.long          on which place the long one comes, and what its company does to the short ones

`training/long` has a file for each world: texts, below each its questions, by kind; texts are parted by `===`.

    ? word | maropitant              one rare word, or two that belong together
    ? sentence | the count of …      nearly as it is written there
    ? meaning | who was upset …      in other words
    ? words | dental sensor …        several words of one sentence
"""

import tempfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from bench import phrases
from bench.cached import CachedEmbedder

import scrubjay
from scrubjay.embedders.catalogue import DEFAULT, find
from scrubjay.embedders.local import LocalEmbedder
from scrubjay.engine.engine import Engine
from scrubjay.engine.search import candidates
from scrubjay.settings import load
from scrubjay.values.search import Filter, Query

FOLDER = Path(__file__).parent / "long"
KINDS = ("word", "words", "sentence", "meaning")
FIRST = 10


@dataclass(frozen=True, slots=True)
class Long:
    """A long text, and what it answers: kind and question."""

    text: str
    questions: tuple[tuple[str, str], ...]


def read(path: Path) -> Iterator[Long]:
    for whole in path.read_text(encoding="utf-8").split("\n===\n"):
        text, *asked = whole.strip().split("\n? ")
        kinds = (line.partition(" | ") for line in asked)
        yield Long(text, tuple((kind, question.strip()) for kind, _, question in kinds))


def fill(jay: Engine, world: phrases.World, texts: Sequence[Long]) -> dict[str, str]:
    """A world's notes, the long ones among them; what each memory is called."""
    notes = [(one.id, one.text, one.at) for one in world.texts]
    for number, long in enumerate(texts):
        notes.insert(len(notes) // 2, (f"long{number}", long.text, notes[len(notes) // 2][2]))
    return {jay.store(text, created_at=at).memory.id: id for id, text, at in notes}


def place(jay: Engine, question: str, names: dict[str, str], gold: Collection[str]) -> int:
    found = candidates.find(jay, Query(text=question), jay.audience(Filter()), jay.now()).candidates
    order = (names[memory] for memory in found.first(len(names)))
    return next((number for number, name in enumerate(order, 1) if name in gold), len(names))


def told(places: Sequence[int]) -> str:
    at = np.array(places)
    return (
        f"{len(at):5} {100 * np.mean(at == 1):6.1f} {100 * np.mean(at <= 3):6.1f} "
        f"{100 * np.mean(np.where(at <= FIRST, 1 / at, 0)):6.1f} {at.max():6}"
    )


def main() -> None:
    embedder = CachedEmbedder(LocalEmbedder(find(DEFAULT), load().models))
    long: dict[tuple[str, str], list[int]] = {}
    short: dict[str, list[int]] = {}
    for world in phrases.load_worlds():
        path = FOLDER / f"{world.name}.txt"
        if not path.exists():
            continue
        texts, hand = list(read(path)), "everyday" if world.everyday else "training"
        with tempfile.TemporaryDirectory() as home, scrubjay.open(Path(home) / "m.db", embedder=embedder) as jay:
            names = fill(jay, world, texts)
            for number, one in enumerate(texts):
                for kind, question in one.questions:
                    long.setdefault((hand, kind), []).append(place(jay, question, names, [f"long{number}"]))
            short.setdefault(hand, []).extend(
                place(jay, one.text, names, one.gold) for one in world.questions if one.gold
            )
    print(f"{'':<28} asked   first  first3   MRR  worst")
    for hand, notes in short.items():
        for kind in KINDS:
            print(f"{hand + ', long, ' + kind:<28} {told(long[hand, kind])}")
        print(f"{hand + ', long, all':<28} {told([at for kind in KINDS for at in long[hand, kind]])}")
        print(f"{hand + ', short notes':<28} {told(notes)}")


if __name__ == "__main__":
    main()
