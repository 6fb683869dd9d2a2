"""Rows of vectors with their scores, as arrays: the best of them, each memory once, beside what words found."""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

from collections.abc import Callable

import apsw
import numpy as np
from numpy.typing import NDArray

from scrubjay.embedders.base import Vector
from scrubjay.stores.sqlite.filters import among
from scrubjay.stores.sqlite.words import Found
from scrubjay.values.search import Candidates, Match

Ints = NDArray[np.int64]
Names = NDArray[np.object_]
Scores = NDArray[np.float64]


class Near:
    """Rows with their scores; several may belong to one memory."""

    def __init__(
        self, memories: Ints, created: Ints, scores: Vector, ids: Names | None = None, *, several: bool = True
    ) -> None:
        self.memories, self.created, self.scores = memories, created, scores
        self.ids = ids  # where they are at hand
        self.several = several  # rows may belong to one memory

    @classmethod
    def none(cls) -> Near:
        return cls(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32), np.empty(0, np.object_))

    def and_also(self, other: Near) -> Near:
        return Near(
            np.concatenate((self.memories, other.memories)),
            np.concatenate((self.created, other.created)),
            np.concatenate((self.scores, other.scores)),
        )

    def best(self, limit: int) -> Near:
        """The best row of each of the best memories, best first; equal ones newest first."""
        order = self.scores.argsort()[::-1]
        ordered = self.scores[order]
        if (ordered[1:] == ordered[:-1]).any():  # else one column tells the order, in half the time
            order = np.lexsort((self.memories, self.created, self.scores))[::-1]
        if self.several:
            order = order[np.sort(np.unique(self.memories[order], return_index=True)[1])]
        chosen = order[:limit]
        ids = None if self.ids is None else self.ids[chosen]
        return Near(self.memories[chosen], self.created[chosen], self.scores[chosen], ids, several=False)

    def named(self, con: apsw.Connection) -> Near:
        """With their ids."""
        seqs = self.memories.tolist()
        where, values = among("seq", seqs)
        known = dict(con.execute(f"SELECT seq, id FROM memories WHERE {where}", values)) if seqs else {}
        ids = np.array([known[seq] for seq in seqs], np.object_)
        return Near(self.memories, self.created, self.scores, ids)

    def matches(self) -> list[Match]:
        """In the order they are in."""
        assert self.ids is not None
        return list(map(Match, self.ids.tolist(), self.scores.tolist()))

    def with_words(self, by_words: Found, cosines: Callable[[Ints], Scores]) -> Candidates:
        """These, each once, and what words found, whose cosines are asked for if they are not known."""
        assert self.ids is not None
        near, seqs = len(self.scores), np.asarray(by_words.seqs, np.int64)
        if near:
            order = self.memories.argsort()
            places = order[np.minimum(self.memories.searchsorted(seqs, sorter=order), near - 1)]
            unknown = self.memories[places] != seqs
        else:
            places, unknown = np.zeros(len(seqs), np.int64), np.ones(len(seqs), np.bool_)
        rows = np.where(unknown, near - 1 + unknown.cumsum(), places)
        further = seqs[unknown]
        word_scores = np.zeros(near + len(further))
        word_scores[rows] = np.minimum(by_words.scores, 1.0)
        both = np.concatenate((self.scores, cosines(further))) if len(further) else self.scores
        return Candidates(
            memories=self.ids.tolist() + np.asarray(by_words.ids, np.object_)[unknown].tolist(),
            word_scores=word_scores,
            cosines=both.astype(np.float64),
            near=near,
            by_words=rows.tolist(),
        )


def front_of(scores: Vector, wanted: int) -> Ints:
    """The rows with the highest scores, and all that equal the lowest of them."""
    if wanted >= len(scores):
        return np.arange(len(scores))
    place = len(scores) - wanted
    front: Ints = (scores >= np.partition(scores, place)[place]).nonzero()[0]
    return front
