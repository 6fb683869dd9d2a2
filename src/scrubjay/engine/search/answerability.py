"""Is there an answer among what was found? Pure functions.

What is near a question need not answer it: "Why did Jon mix dance and clothing?" finds Jon asking Gina why *she* did.
Three signs speak against an answer, each seen in how a memory begins: it asks itself, it tells someone of themself
("you"), or it is about someone else than the question names. If all of the first few show some, the scores of the
whole list are lowered: a low first score says that there is probably nothing. The order stays. What it is worth:
docs/lab/retrieval.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from scrubjay.engine.conflicts.grammar import CALENDAR, SENTENCE
from scrubjay.engine.search.pronouns import SECOND_PERSON, says, speaks, words_of
from scrubjay.values.memory import Verdict
from scrubjay.values.words import query_words

FIRST = 5  # how many are looked at; the one that looks most like an answer speaks for the list
SIGN = 0.3  # what share of a score each sign takes off
ABSENT = 0.5  # how much it counts that no one the question names is named, in a memory that does not say who speaks

STRONG = 0.35  # score from which on a hit probably answers

SPEAKER = re.compile(r"\s*[^\W\d_]+:\s")  # Anna: I live …


def verdict(score: float) -> Verdict:
    """What a hit's score says."""
    return Verdict.STRONG if score >= STRONG else Verdict.WEAK if score > 0 else Verdict.NONE


def likeliest(first: Iterable[tuple[float, str]], question: str) -> float:
    """The highest score that is left of the first few, each given with how its memory begins."""
    asked = Asked(question)
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
        said = words_of(opening)
        told_to_somebody = 0.0 if self.says_you else speaks(SECOND_PERSON, said)
        return asks(opening) + told_to_somebody + self._about_another(opening, said)

    def _about_another(self, opening: str, said: Sequence[str]) -> float:
        if not self.names or not said or said[0] in self.words:
            return 0.0
        if SPEAKER.match(opening):
            return 1.0
        return ABSENT if self.names.isdisjoint(said) else 0.0


def asks(opening: str) -> float:
    """Which share of the sentences are questions."""
    sentences: list[str] = [sentence for sentence in SENTENCE.split(opening) if sentence]
    return sum(sentence.rstrip().endswith("?") for sentence in sentences) / max(1, len(sentences))
