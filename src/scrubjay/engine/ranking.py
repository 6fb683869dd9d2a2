"""Words and meaning, fused into one order and one score. Pure functions.

A hit's score is its own: a fixed, rising function of its similarity (the model's calibrated cosine) and its word score
(share of the question's distinctive words), so the same number means the same for every question. What is neither
near in meaning nor shares a distinctive word is dropped: nothing relevant is an empty list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from scrubjay.memory import Match

DEPTH = 200  # candidates from each side, whatever limit and offset, so that paging is stable
MEANING = 0.75  # weight of similarity against words
FLOOR = 0.22  # similarity below which meaning alone says nothing
DISTINCTIVE = 0.1  # word score from which a shared word is reason enough to keep a memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    memory: str
    score: float
    word_score: float
    cosine: float | None
    similarity: float


def fuse(
    by_words: Sequence[Match],
    by_meaning: Sequence[Match],
    further: Mapping[str, float],
    calibrate: Callable[[float], float],
) -> list[Candidate]:
    """One list of candidates, best first. `further` are cosines of what only words found."""
    words = {match.memory: match.score for match in by_words}
    cosines = {**further, **{match.memory: match.score for match in by_meaning}}
    found = dict.fromkeys([match.memory for match in by_meaning] + [match.memory for match in by_words])
    candidates = [candidate(memory, words.get(memory, 0.0), cosines.get(memory), calibrate) for memory in found]
    return sorted((one for one in candidates if relevant(one)), key=lambda one: -one.score)


def candidate(memory: str, word_score: float, cosine: float | None, calibrate: Callable[[float], float]) -> Candidate:
    similarity = 0.0 if cosine is None else calibrate(cosine)
    # Without a vector (not embedded yet, or no model at all) words speak alone.
    score = word_score if cosine is None else MEANING * similarity + (1 - MEANING) * word_score
    return Candidate(memory=memory, score=score, word_score=word_score, cosine=cosine, similarity=similarity)


def relevant(one: Candidate) -> bool:
    return one.cosine is None or one.similarity >= FLOOR or one.word_score >= DISTINCTIVE
