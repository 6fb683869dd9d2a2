"""What kind of fact is it? Sentences that stand for a kind, compared by meaning.

A memory's *profile* says how much it resembles each kind. Kinds are of two sorts: *exclusive* ones have one value at a
time (a home, an age, a deadline), so another value outdates the first; of the others several may be true together
(hobbies, languages, journeys). The sentences are examples of our own; none of their words is looked for in a text.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from scrubjay.lazy import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from scrubjay.embedders.base import Embedder, Vector

    Profile = NDArray[np.float32]

EXCLUSIVE = {
    "home": ("User lives in Denver", "User moved to another city", "The family resides in a small town",
             "User relocated"),
    "employer": ("Anna works at a company", "Anna joined another firm", "Peter is employed by the bank"),
    "occupation": ("User works as a teacher", "User became an engineer", "His job is plumber"),
    "partner": ("John is married to Eve", "John got divorced", "John is single", "She got engaged"),
    "age": ("User is 40 years old", "User turned 41"),
    "measure": ("User weighs 70 kg", "The room measures 20 square metres", "Her salary is 5000 a month"),
    "contact": ("User's phone number is 123 456", "User's email address is x@example.org",
                "User's address is 12 Main Street"),
    "name": ("User's rabbit is called Bo", "The product is named Apollo", "User goes by the nickname Sam"),
    "diet": ("User is vegan", "User does not eat fish", "User stopped drinking alcohol"),
    "health": ("User is allergic to nuts", "User recovered from the injury"),
    "favourite": ("User's favourite food is pasta", "User prefers trains over planes"),
    "time": ("The meeting is on Tuesday at 9", "The deadline is May 5", "The appointment was moved to Friday"),
    "version": ("The service runs on Node 18", "The library was upgraded to version 2.1"),
    "tool": ("We build with Maven", "The cache is Redis", "We switched the queue to Kafka"),
    "place": ("The shop is in Baker Street", "The server stands in Frankfurt"),
    "count": ("User has four children", "The team has nine members"),
    "vehicle": ("User drives a Ford", "User sold the old car and got a new one"),
    "state": ("The project is on hold", "The feature is finished", "The test suite is failing"),
    "opinion": ("User hates flying", "User now enjoys running"),
}  # fmt: skip

SEVERAL = {
    "likes": ("User likes jazz", "User enjoys cooking", "User loves the sea", "User is afraid of the dark"),
    "hobby": ("User plays chess", "User paints in the evenings", "User goes swimming"),
    "language": ("User speaks Italian", "User is learning Danish"),
    "past": ("User visited Norway in 2018", "User read a novel last week", "User studied law at university",
             "User watched a film", "User was born in Oslo", "User won a race in 2017"),
    "has": ("User has a parrot", "User owns a boat", "User bought a lamp"),
    "family": ("User's brother is called Tom", "User's aunt lives abroad", "User has a child called Kim"),
    "plan": ("User plans a trip to Peru", "User wants to write a book", "User is going to a concert"),
    "skill": ("User knows how to weld", "User has ten years of experience in sales"),
    "part": ("The website uses Vue", "The backend is written in Go", "The tests run nightly"),
    "habit": ("User gets up early", "User cycles to work", "User drinks tea in the morning"),
}  # fmt: skip

KINDS = {**EXCLUSIVE, **SEVERAL}
SHARPNESS = 0.03  # cosines of unrelated kinds differ by a few hundredths only


class Attributes:
    """The example sentences as vectors of one model."""

    def __init__(self, embedder: Embedder) -> None:
        shipped = shipped_vectors(embedder.fingerprint)
        self._vectors = shipped if shipped is not None else np.stack(embedder.embed(sentences()))
        self._starts = np.cumsum([0, *(len(examples) for examples in KINDS.values())][:-1])

    def profiles(self, vectors: Sequence[Vector]) -> Profile:
        """How much each text resembles each kind, a row per text in the order of KINDS; each adds up to one."""
        # vecdot and not @: for so few numbers, waking the threads of a matrix product costs more than the product.
        similarities = np.vecdot(np.stack(vectors)[:, None, :], self._vectors[None, :, :])
        nearest = np.maximum.reduceat(similarities, self._starts, axis=1)
        weights = np.exp((nearest - nearest.max(axis=1, keepdims=True)) / SHARPNESS)
        return np.asarray(weights / weights.sum(axis=1, keepdims=True), dtype=np.float32)


def same_kinds(profiles: Profile, other: Profile) -> list[tuple[float, float]]:
    """How far each profile agrees with another one, and how far on exclusive kinds; both 0..1."""
    shared = np.sqrt(profiles * other)
    return list(zip(shared.sum(axis=1).tolist(), shared[:, : len(EXCLUSIVE)].sum(axis=1).tolist(), strict=True))


def sentences() -> list[str]:
    return [sentence for examples in KINDS.values() for sentence in examples]


@cache
def shipped_vectors(fingerprint: str) -> Profile | None:
    """The vectors that come with the package, if they are this model's: embedding them again takes half a second."""
    with resources.files("scrubjay.engine.conflicts").joinpath("fact_kinds.npz").open("rb") as stream:
        shipped = np.load(stream, allow_pickle=False)
        if str(shipped["fingerprint"]) != fingerprint:
            return None
        return np.asarray(shipped["vectors"], dtype=np.float32)
