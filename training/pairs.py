"""Pairs of an earlier and a newer text with what the newer one does to the earlier, and the rows a reader learns from.

Two sets: `worlds` (training/worlds) and `everyday` (training/everyday). In both, a world is one store.
"""

import json
import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from bench.cached import CachedEmbedder

from scrubjay.embedders.base import Vector
from scrubjay.embedders.catalogue import DEFAULT, find
from scrubjay.embedders.local import LocalEmbedder
from scrubjay.settings import load as load_settings
from training.worlds import LABELS
from training.worlds import load as load_worlds

EVERYDAY = Path(__file__).parent / "everyday"
BUILD = Path(os.environ.get("SCRUBJAY_TRAINING", Path(__file__).parents[1] / "build" / "train"))
OUTDATES = LABELS.index("outdates")
ONE_WAY = {"outdates"}  # the other order has another label, and which one the data does not say
STRANGERS = 3  # how many of the nearest texts of other changes one is drawn from


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    old: str
    new: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """The pairs of one world."""

    name: str
    set: str
    language: str
    pairs: tuple[Pair, ...]

    def olds(self) -> list[str]:
        """Every earlier text, once, in the order of the file."""
        return list(dict.fromkeys(pair.old for pair in self.pairs))

    def news(self) -> list[str]:
        return list(dict.fromkeys(pair.new for pair in self.pairs))

    def outdated(self, new: str) -> set[str]:
        return {pair.old for pair in self.pairs if pair.new == new and pair.label == "outdates"}


def stores() -> list[Store]:
    """Both sets, in the order of their files' names."""
    ours = [
        Store(
            name=world.name,
            set="worlds",
            language=world.language,
            pairs=tuple(
                Pair(old=earlier.text, new=change.new, label=earlier.label)
                for change in world.changes
                for earlier in change.earlier
            ),
        )
        for world in load_worlds()
    ]
    return ours + [_everyday(path) for path in sorted(EVERYDAY.glob("*.json"))]


def _everyday(path: Path) -> Store:
    fields = json.loads(path.read_text(encoding="utf-8"))
    pairs = tuple(
        Pair(old=pair["old"], new=pair["new"], label="same" if pair["label"] == "duplicate" else pair["label"])
        for pair in fields["pairs"]
    )
    language = "several" if fields["world"] == "languages" else "en"
    return Store(name=fields["world"], set="everyday", language=language, pairs=pairs)


def open_embedder() -> CachedEmbedder:
    """The default embedder; each vector is made once and kept in the build folder."""
    BUILD.mkdir(parents=True, exist_ok=True)
    return CachedEmbedder(LocalEmbedder(find(DEFAULT), load_settings().models), BUILD / "vectors.db")


def vectors_of(texts: Sequence[str], embedder: CachedEmbedder) -> dict[str, Vector]:
    """One text at a time: a bulk would take a second thread."""
    return {text: embedder.embed([text])[0] for text in texts}


def nearest(text: str, others: Sequence[str], vectors: dict[str, Vector], limit: int) -> list[tuple[str, float]]:
    """The nearest of the other texts and their cosines, best first."""
    cosines = np.stack([vectors[other] for other in others]) @ vectors[text]
    return [(others[at], float(cosines[at])) for at in np.argsort(-cosines, kind="stable")[:limit]]


def sample(chosen: Sequence[Store], most: int | None, chance: random.Random) -> list[Store]:
    """About `most` pairs over all stores; what belongs to one new text stays together."""
    if most is None or sum(len(store.pairs) for store in chosen) <= most:
        return list(chosen)
    changes = [(store.name, new) for store in chosen for new in store.news()]
    chance.shuffle(changes)
    counts = {
        (store.name, new): sum(pair.new == new for pair in store.pairs) for store in chosen for new in store.news()
    }
    kept: set[tuple[str, str]] = set()
    total = 0
    for change in changes:
        if total >= most:
            break
        kept.add(change)
        total += counts[change]
    return [
        Store(
            name=store.name,
            set=store.set,
            language=store.language,
            pairs=tuple(pair for pair in store.pairs if (store.name, pair.new) in kept),
        )
        for store in chosen
    ]


def rows(chosen: Sequence[Store], embedder: CachedEmbedder, chance: random.Random) -> Iterator[Pair]:
    """What the reader learns from: each pair, the other order of those that have one, and for each new text one of the
    nearest strangers as unrelated."""
    for store in chosen:
        yield from store.pairs
        yield from (
            Pair(old=pair.new, new=pair.old, label=pair.label) for pair in store.pairs if pair.label not in ONE_WAY
        )
        vectors = vectors_of([*store.olds(), *store.news()], embedder)
        for new in store.news():
            own = {pair.old for pair in store.pairs if pair.new == new}
            strangers = [old for old in store.olds() if old not in own]
            if strangers:
                old, _ = chance.choice(nearest(new, strangers, vectors, STRANGERS))
                yield Pair(old=old, new=new, label="unrelated")
