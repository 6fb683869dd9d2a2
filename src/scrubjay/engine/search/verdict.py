"""Is there an answer among what was found? Pure functions over what a search has seen anyway.

No cosine is near in itself: a vague question is near everything, a precise one near nothing. So a small linear model
asks how far the best stand out: of the ten best that this store has for this question, and of what this question has in
common with a fixed *background*, texts about all kinds of things (`background.npz`, vectors only). Words speak too: how
many of the question's distinctive ones the best memory holds, and whether the store knows the names in it at all.

What comes out is the score of the first hit, from 0 to 1:

    none < 0.09 <= weak < 0.5 <= strong

Three more signs are seen in how a memory begins: it asks itself, it tells someone of themself ("you"), or it is about
someone else than the question names. If all of the first few show some, the score is lowered. What each part is worth:
docs/lab/retrieval.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from math import exp, log10
from typing import TYPE_CHECKING, Any, NamedTuple

from scrubjay.values.memory import Column, Verdict
from scrubjay.values.pronouns import FIRST_PERSON, SECOND_PERSON, says, speaks, told_apart, words_of
from scrubjay.values.words import CALENDAR, SENTENCE, STOP_WORDS, query_words

if TYPE_CHECKING:
    from scrubjay.embedders.base import Vector

STRONG = 0.5  # one question in ten about something else gets this far
DOUBTED = 0.49  # at most, where the best speaks of another one than the question
WEAK = 0.09  # one question in a hundred that has an answer does not get this far

# Fitted by `python -m training.verdict` on training/worlds and training/everyday, in stores of 1, 2, 5, 20 and all
# memories of a world and in one of all worlds; scaled so that the two lines above hold for each set of weights.
WEIGHTS: dict[tuple[str, ...], dict[str, float]] = {
    (): {  # a model without a background: doubted only if nothing is near and no word is shared
        "bias": -2.750,
        "similarity": 6.861,
        "words": 0.674,
        "known": 0.505,
        "unknown": -0.409,
    },
    ("arctic-embed-s",): {
        "bias": -4.568,
        "arctic-embed-s best": 41.802,
        "arctic-embed-s ten": 14.877,
        "arctic-embed-s near": -25.272,
        "arctic-embed-s common": -22.306,
        "words": 1.973,
        "known": 0.219,
        "unknown": -0.515,
        "candidates": -2.194,
    },
    ("multilingual-e5-small",): {
        "bias": -15.457,
        "multilingual-e5-small best": 68.901,
        "multilingual-e5-small ten": 20.738,
        "multilingual-e5-small near": -33.625,
        "multilingual-e5-small common": -36.631,
        "words": 1.795,
        "known": 0.383,
        "unknown": -0.445,
        "candidates": -2.032,
    },
    ("arctic-embed-s", "multilingual-e5-small"): {
        "bias": -13.400,
        "arctic-embed-s best": 30.265,
        "arctic-embed-s ten": 11.260,
        "arctic-embed-s near": -22.584,
        "arctic-embed-s common": -12.374,
        "multilingual-e5-small best": 60.270,
        "multilingual-e5-small ten": 5.361,
        "multilingual-e5-small near": -20.535,
        "multilingual-e5-small common": -32.286,
        "words": 1.019,
        "known": 0.144,
        "unknown": -0.579,
        "candidates": -2.905,
    },
}


def verdict(score: float) -> Verdict:
    """What a score says."""
    return Verdict.STRONG if score >= STRONG else Verdict.WEAK if score >= WEAK else Verdict.NONE


class Heard(NamedTuple):
    """What one model said of a question."""

    fingerprint: str | None
    vector: Vector  # the question's
    cosines: Column  # of its candidates


class Words(NamedTuple):
    """What words say of a question."""

    best: float = 0.0  # the highest word score
    known: int = 0  # names in the question that some memory holds …
    unknown: int = 0  # … and that none does


def likelihood(heard: Sequence[Heard], similarity: float, words: Words) -> float:
    """How likely the best of the candidates answers the question. `similarity` is its calibrated one."""
    seen = {
        "similarity": similarity,
        "words": words.best,
        "known": min(2, words.known),
        "unknown": min(2, words.unknown),
    }
    names = tuple(model for one in heard if (model := _model(one.fingerprint)))
    weights = WEIGHTS.get(names, WEIGHTS[()])
    if names:  # a search by words imports no numpy
        import numpy as np
    for one, model in zip(heard, names, strict=False):
        best = sorted(np.asarray(one.cosines, np.float64).tolist(), reverse=True)[:10]
        near = _background()[str(one.fingerprint)] @ one.vector
        near.sort()
        seen[f"{model} best"], seen[f"{model} ten"] = best[0], sum(best) / len(best)
        seen[f"{model} near"], seen[f"{model} common"] = float(near[-5:].mean()), float(near.mean())
        seen["candidates"] = min(2.3, log10(len(one.cosines) + 1))
    logit = weights["bias"] + sum(weight * seen[name] for name, weight in weights.items() if name != "bias")
    return 1 / (1 + exp(-logit))


def _model(fingerprint: str | None) -> str | None:
    """The name of a model whose background is known."""
    return fingerprint.rsplit("-", 2)[0] if fingerprint in _background() else None


@cache
def _background() -> dict[str, Any]:
    from importlib import resources

    import numpy as np

    with resources.files("scrubjay.engine.search").joinpath("background.npz").open("rb") as stream:
        shipped = np.load(stream, allow_pickle=False)
        return {name: shipped[name].astype(np.float32) / 127 for name in shipped.files}


def english(text: str) -> bool:
    """Whether a text looks like English; a few words without any sign of another language do."""
    words = words_of(text)
    if not text.isascii() and 10 * sum(not word.isascii() for word in words) > len(words):
        return False
    return len(words) < 5 or not STOP_WORDS.isdisjoint(words)


# --- words that must count -------------------------------------------------------------------------------------------

IDENTIFIER = re.compile(r"\d|[_.\-]|\w[A-Z]")


def rare_words(question: str) -> list[str]:
    """Names, numbers and identifiers of a question. A capital at its beginning says nothing."""
    begins = question.lstrip()
    return [
        word
        for word in query_words(question)
        if word.lower() not in CALENDAR
        and (IDENTIFIER.search(word) or (word[0].isupper() and not begins.startswith(word)))
    ]


LABEL = re.compile(r"(?<![^\W\d_])([^\W\d_]{3,}+)\s++([A-HJ-Z])(?!\w)")


def labels(text: str) -> frozenset[tuple[str, str]]:
    """Things that one letter tells apart: Room A, Plan B. As a word, "a" is an article and looked for nowhere."""
    found = ((kind.lower()[:STEM], letter) for kind, letter in LABEL.findall(text))
    return frozenset((kind, letter) for kind, letter in found if kind not in STOP_WORDS)


# --- signs that it is not an answer ----------------------------------------------------------------------------------

STEM = 5  # letters
FIRST = 5  # how many are looked at; the one that looks most like an answer speaks for the list
SIGN = 0.3  # what share of a score each sign takes off
ABSENT = 0.5  # how much it counts that no one the question names is named, in a memory that does not say who speaks
TOLD_REMEMBERED = 10_000  # openings of which it is remembered how they speak

PERSONS = FIRST_PERSON | SECOND_PERSON
SPEAKER = re.compile(r"\s*[^\W\d_]+:\s")  # Anna: I live …


@lru_cache(TOLD_REMEMBERED)
def told(opening: str) -> tuple[str, float, float]:
    """What is seen in how a memory begins, whatever the question: its first word, and how much it speaks in the first
    and in the second person."""
    said = told_apart(opening)
    first_word = said[0] if said else ""
    if PERSONS.isdisjoint(said):  # as most are
        return first_word, 0.0, 0.0
    return first_word, speaks(FIRST_PERSON, said), speaks(SECOND_PERSON, said)


def likeliest(first: Iterable[tuple[float, str]], question: str) -> float:
    """The highest score that is left of the first few, each given with how its memory begins."""
    asked = asked_by(question)
    return max(score * (1 - SIGN * asked.signs(opening)) for score, opening in first)


class Asked:
    """What a question says about the one it wants to hear of."""

    def __init__(self, question: str) -> None:
        words = query_words(question)
        self.words = {word.lower() for word in words}
        capitals = [word for word in words if word[0].isupper() and not question.lstrip().startswith(word)]
        self.names = {word.lower() for word in capitals} - CALENDAR
        self.says_you = says(SECOND_PERSON, question)

    def signs(self, opening: str) -> float:
        """How many signs a memory shows that it is not an answer, from 0 to 3."""
        first_word, _, second_person = told(opening)
        told_to_somebody = 0.0 if self.says_you else second_person
        return asks(opening) + told_to_somebody + self._about_another(opening, first_word)

    def _about_another(self, opening: str, first_word: str) -> float:
        if not self.names or not first_word or first_word in self.words:
            return 0.0
        if SPEAKER.match(opening):
            return 1.0
        return ABSENT if self.names.isdisjoint(words_of(opening)) else 0.0


asked_by = lru_cache(16)(Asked)  # a search wants to know that more than once


def of_another_one(question: str, opening: str) -> bool:
    """The search service, the payment service: a word of both follows a word in each that the other has not."""
    asked, said = words_of(question), words_of(opening)
    wanted = _before(asked)
    if not wanted or wanted.keys().isdisjoint(there := {word[:STEM] for word in said}):
        return False
    before = _before(said)
    return any(
        word in before and what.isdisjoint(there) and before[word].isdisjoint(one[:STEM] for one in asked)
        for word, what in wanted.items()
    )


def another_instead(asked: frozenset[str], opening: str, other: str) -> bool:
    """Where one text has the search service that was asked for, the other has the payment service."""
    there, instead = _before(words_of(opening)), _before(words_of(other))
    return any(word in instead and not what.isdisjoint(asked) for word, what in there.items())


TOKEN = re.compile(r"[^\W_]+(?:[.:/-][^\W_]+)*")
DIGIT = re.compile(r"\d")
LETTERS = re.compile(r"^[^\W\d_]+")


def figures(text: str) -> frozenset[str]:
    """What has a digit: 1001, db1, 4.2."""
    return frozenset(token for token in TOKEN.findall(text.lower()) if DIGIT.search(token))


def names(text: str) -> frozenset[str]:
    """What is written like a name, a capital at the beginning too: Harrow, thumb-worker, db1."""
    tokens = (token for token in TOKEN.findall(text) if token[0].isupper() or IDENTIFIER.search(token))
    return frozenset(token.lower() for token in tokens) - STOP_WORDS


def of_another_number(question: str, opening: str) -> bool:
    """Invoice 1001, invoice 1002; db1, db2: of one kind, and the question's is not in the text."""
    if not (asked := _numbered(question)):
        return False
    said, there = _numbered(opening), figures(opening)
    return any(kind in said and which.isdisjoint(there) for kind, which in asked.items())


def _numbered(text: str) -> dict[str, set[str]]:
    """Figures by what they number: the letters that they begin with, or the word before."""
    found: dict[str, set[str]] = {}
    for before, figure in pairwise(["", *TOKEN.findall(text.lower())]):
        if DIGIT.search(figure):
            letters = LETTERS.match(figure)
            kind = letters[0] if letters else before[:STEM]
            if (letters or len(before) > 2) and kind not in STOP_WORDS:
                found.setdefault(kind, set()).add(figure)
    return found


def _before(words: Sequence[str]) -> dict[str, set[str]]:
    """By its stem, what each word follows that says something; both with three letters or more."""
    found: dict[str, set[str]] = {}
    for one, other in pairwise(words):
        if len(one) > 2 < len(other) and one not in STOP_WORDS and other not in STOP_WORDS:
            found.setdefault(other[:STEM], set()).add(one[:STEM])
    return found


def asks(opening: str) -> float:
    """Which share of the sentences are questions."""
    if "?" not in opening:
        return 0.0
    sentences: list[str] = [sentence for sentence in SENTENCE.split(opening) if sentence]
    return sum(sentence.rstrip().endswith("?") for sentence in sentences) / max(1, len(sentences))
