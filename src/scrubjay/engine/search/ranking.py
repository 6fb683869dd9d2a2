"""Words and meaning, fused into one order; then a second look at the best. Pure functions over columns.

A candidate's score is its own: a fixed, rising function of its similarity (the models' calibrated cosines) and its word
score (share of the question's distinctive words). Nothing is dropped for being far: whether the best is an answer is
decided for each by itself (`verdict.py`), and that is the score which is shown, in the order made here.

The second look sees how a memory begins, how long it is, when and in which conversation it was made, and adds or takes
a little (`Candidate.boosts`). What each part is worth was measured: docs/lab/retrieval.md.

Some hundreds of candidates are columns of numbers; a `Candidate` is made of those that are shown.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from scrubjay.engine.conflicts.weights import SURE
from scrubjay.engine.search import verdict
from scrubjay.lazy import numpy as np
from scrubjay.text import names
from scrubjay.text.languages import is_english
from scrubjay.text.names import UNSPACED, heading, pieces
from scrubjay.text.statements import CHANGED
from scrubjay.text.tokens import FIRST_PERSON, TALKING, WORD, words_of
from scrubjay.text.words import STOP_WORDS, query_words
from scrubjay.values.memory import Link, LinkKind, Memory
from scrubjay.values.search import (
    Candidates,
    Column,
    Decay,
    Explanation,
    Factors,
    Glimpses,
    Hit,
    Match,
    Period,
    Query,
    Weights,
)

if TYPE_CHECKING:  # a search by words alone needs no numpy
    from scrubjay.embedders.base import Vector
    from scrubjay.values.vectors import Knots

DEPTH = 200  # candidates from each side, whatever limit and offset, so that paging is stable
MEANING = 0.65  # weight of similarity against words


class Candidate(NamedTuple):
    """One candidate, with all that is known of it."""

    memory: str
    score: float
    word_score: float
    cosine: float | None
    similarity: float
    boosts: Mapping[str, float] = {}


class Ranked:
    """Candidates as columns, row i of each belonging together, and the order of the rows."""

    def __init__(
        self,
        memories: Sequence[str],
        *,
        scores: Column,
        word_scores: Column,
        cosines: Column,  # not a number where there is none
        similarities: Column,
        order: Sequence[int],
    ) -> None:
        self.memories, self.scores, self.word_scores = memories, scores, word_scores
        self.cosines, self.similarities = cosines, similarities
        self.order = order  # rows, best first
        self.looked: Sequence[int] = ()  # rows that were looked at a second time
        self.boosts: dict[str, Column] = {}  # what that added to their scores, in the order of `looked`
        self.moved: dict[int, dict[str, float]] = {}  # rows that got another place, and what that added
        self.chances: Column = scores  # of each row: how likely it answers the question (`rank` says so)

    @classmethod
    def by_words(cls, found: Sequence[Match]) -> Ranked:
        """Words speak alone."""
        scores, none = [match.score for match in found], [0.0] * len(found)
        return cls(
            [match.memory for match in found],
            scores=scores,
            word_scores=scores,
            cosines=[math.nan] * len(found),
            similarities=none,
            order=range(len(found)),
        )

    def __len__(self) -> int:
        return len(self.order)

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self.page(0, len(self)))

    def page(self, start: int, end: int) -> list[Candidate]:
        return [self._candidate(row) for row in self.order[start:end]]

    def scored(self, start: int, end: int) -> dict[str, float]:
        """The memories of a page with their scores alone."""
        return {self.memories[row]: float(self.scores[row]) for row in self.order[start:end]}

    @property
    def best_was_compared(self) -> bool:
        """Whether the best one has a vector."""
        return not math.isnan(float(self.cosines[self.order[0]]))

    def first(self, count: int) -> list[str]:
        return [*map(self.memories.__getitem__, self.order[:count])]

    def but(self, order: Sequence[int], moved: Mapping[int, float], why: str) -> Ranked:
        """The same in another order; rows that moved have these scores."""
        other = Ranked(
            self.memories,
            scores=list(self.scores),
            word_scores=self.word_scores,
            cosines=self.cosines,
            similarities=self.similarities,
            order=order,
        )
        other.looked, other.boosts, other.moved = self.looked, self.boosts, dict(self.moved)
        other.chances = self.chances
        for row, score in moved.items():
            other.moved[row] = {**self.moved.get(row, {}), why: score - float(self.scores[row])}
            other.scores[row] = score
        return other

    def _candidate(self, row: int) -> Candidate:
        cosine, boosts = float(self.cosines[row]), dict[str, float]()
        if row in self.looked:
            place = self.looked.index(row)
            boosts = {name: float(column[place]) for name, column in self.boosts.items()}
        return Candidate(
            memory=self.memories[row],
            score=float(self.scores[row]),
            word_score=float(self.word_scores[row]),
            cosine=None if math.isnan(cosine) else cosine,
            similarity=float(self.similarities[row]),
            boosts=boosts | self.moved.get(row, {}),
        )


def fuse(found: Candidates, knots: Knots, further: Sequence[tuple[Mapping[str, float], float]] = ()) -> Ranked:
    """One list of candidates, best first. `knots` say what a cosine is worth; `further` are the similarities that each
    further model sees, and the weight with which they count."""
    from scrubjay.values.vectors import interpolate_all

    words, cosines = np.asarray(found.word_scores, np.float64), np.asarray(found.cosines, np.float64)
    embedded = ~np.isnan(cosines)
    similarities = np.where(embedded, interpolate_all(cosines, knots), 0.0)
    for seen, weight in further:
        others = np.array([seen.get(memory, math.nan) for memory in found.memories], np.float64)
        similarities += np.where(embedded & ~np.isnan(others), weight * (others - similarities), 0.0)
    scores = np.where(embedded, MEANING * similarities + (1 - MEANING) * words, words)
    if not embedded.all() and embedded.any():
        # Of a memory without a vector (archived, not embedded yet) words speak alone, and for all of its score: else
        # one that was just stored would stand behind whatever is near the question. But it never passes one with a
        # vector that holds as much of the question.
        as_good = words[embedded] >= words[~embedded][:, None]
        most = np.where(as_good, scores[embedded], 0.0).max(axis=1)
        scores[~embedded] = np.where(as_good.any(axis=1), np.minimum(words[~embedded], most), words[~embedded])
    return Ranked(
        found.memories,
        scores=scores,
        word_scores=words,
        cosines=cosines,
        similarities=similarities,
        order=best_first(scores, similarities),
    )


def best_first(scores: Column, similarities: Column) -> list[int]:
    """The rows in order; where scores are equal, the nearer one comes first."""
    order = (-scores).argsort()
    ordered = scores[order]
    if (ordered[1:] == ordered[:-1]).any():  # hardly ever, and one column is sorted in half the time of two
        order = np.lexsort((-similarities, -scores))
    rows: list[int] = order.tolist()
    return rows


def rank(
    found: Ranked,
    query: Query,
    periods: Sequence[Period],
    glimpses: Glimpses,
    *,
    passages: Mapping[str, float],
    links_among: Callable[[list[str], Sequence[str]], Iterable[Link]],
    vectors_of: Callable[[list[str]], Mapping[str, Vector]],
) -> Ranked:
    """The order of an answer, decided here and nowhere else: what `fuse` found, looked at a second time, newer before
    older on one thing, fresh before stale. Only weights that order have a later word."""
    # A weighted sum is a plain one, and a question about a time wants what was true then.
    plain_sum = query.weights is not None and query.weights.order
    current = len(found) > 1 and not plain_sum and not periods
    if not query.words_only:
        found = second_look(found, glimpses, query, periods, passages)
        found.chances = chances_of(found, reworded=bool(query.also))
        if current:
            found = newer_first(found, glimpses, query.text, vectors_of)
    if current:
        found = fresh_first(found, links_among(found.first(LOOKED), found.memories))
    return found


def chances_of(found: Ranked, *, reworded: bool) -> Column:
    """How likely each row answers the question. Of a memory without a vector only the words are known, and these cannot
    say that it does not."""
    scores = np.asarray(found.scores, np.float64)
    compared = ~np.isnan(np.asarray(found.cosines, np.float64))
    by_words = np.maximum(scores, verdict.WEAK)
    if not compared.any():
        return by_words
    sure = verdict.chances(scores, found.similarities, found.word_scores, reworded=reworded)
    return np.where(compared, sure, by_words)


def looked_at(found: Ranked, periods: Sequence[Period]) -> list[str]:
    """Those that a second look is for; with named times all, since those from that time may rank low."""
    return found.first(len(found) if periods else LOOKED)


CURRENT, FRESH = "current", "newer"  # why a memory has a better place than its score; that adds nothing to the score


def explain_candidate(one: Candidate, query: Query, words: tuple[str, ...]) -> Explanation:
    """Why it was found: the words it holds, and those of the question's other wordings that brought any of them."""
    brought = {word.lower() for word in words} - {word.lower() for word in query_words(query.text)}
    own = {wording: {word.lower() for word in query_words(wording)} for wording in query.also}
    return Explanation(
        words=words,
        wordings=tuple(wording for wording, words in own.items() if not brought.isdisjoint(words)),
        word_score=one.word_score,
        cosine=one.cosine,
        similarity=one.similarity,
        boosts={name: value for name, value in one.boosts.items() if round(value, 2) or name in (CURRENT, FRESH)},
    )


# --- the second look -------------------------------------------------------------------------------------------------

LOOKED = 100  # how many of the best are looked at
LONG = 400  # characters from which a text is long: of many things said in it one will resemble any question …
LONG_COSTS = 0.07  # … so each doubling costs this …
MOST_DOUBLINGS = 3  # … at most so often …
MOST_IN_NOTES = 0.5  # … and if it belongs to no conversation
PASSAGE = 300  # characters of a long note, in which its words are looked for …
READ = 100_000  # … of this many altogether; they count …
FULLY_READ = 2  # … in full from this many doublings on: the longer, the less its vector says of a passage
NOTE = 0.2  # how much less words weigh in a short memory of no conversation: a question words it in another way
TIME = 0.2  # weight of being from the time that the question names
PERSONAL = 0.1  # for speaking of oneself in a conversation, as a question about "my" things does
SUBJECT = 0.05  # for beginning with a word of the question: who it is about, or who said it
TOGETHER = 0.2  # how far a memory is drawn towards the best of its conversation


def second_look(
    found: Ranked, glimpses: Glimpses, query: Query, periods: Sequence[Period], passages: Mapping[str, float]
) -> Ranked:
    """The candidates rescored, best first; those without a glimpse keep their score. `passages` say of long notes what
    their best passage holds of the question."""
    if not len(glimpses.memories):
        return found

    looked = looked_at(found, periods)
    rows = found.order[: len(looked)]
    if glimpses.memories != looked:  # in another order, or some are gone
        place = dict(zip(looked, rows, strict=True))
        rows = [place[memory] for memory in glimpses.memories]
    all_scores, all_words, at = np.array(found.scores, np.float64), np.array(found.word_scores), np.array(rows)
    scores, boosts = all_scores[at], dict[str, Any]()
    similarities, word_scores = np.asarray(found.similarities)[at], np.asarray(found.word_scores)[at]
    lengths, talks = np.asarray(glimpses.length), conversation_ids(glimpses)
    alone = talks == 0
    embedded = ~np.isnan(np.asarray(found.cosines)[at])
    if lengths.max() > LONG:  # the word score has its own way with length
        doublings = np.log2(np.maximum(lengths, LONG) / LONG)
        most = np.where(alone, MOST_IN_NOTES, MOST_DOUBLINGS)
        boosts["length"] = np.where(embedded, -LONG_COSTS * np.minimum(most, doublings), 0.0)
        if passages:  # which is too hard on a long text among short ones
            held = np.array([passages.get(memory, 0.0) for memory in glimpses.memories])
            held *= np.minimum(doublings / FULLY_READ, 1.0)
            more = np.maximum(held - word_scores, 0.0)
            boosts["passage"] = np.where(embedded, 1 - MEANING, 1.0) * more
            all_words[at] = np.maximum(word_scores, held)
    if alone.any() and not query.also:  # other wordings have other words
        leaning = similarities - word_scores
        shortness = np.maximum(1 - lengths / LONG, 0.0)
        boosts["note"] = np.where(embedded & alone, NOTE * shortness * leaning, 0.0)
    if not alone.all():  # who said it
        asked = {word.lower() for word in query_words(query.text)}
        firsts = map(WORD.search, glimpses.opening)
        begins = [first is not None and first[0].lower() in asked for first in firsts]
        boosts["subject"] = np.where(alone, 0.0, SUBJECT * np.array(begins))
        if not FIRST_PERSON.isdisjoint(words_of(query.text)):  # answered by what people said about themselves
            tells = [not FIRST_PERSON.isdisjoint(words_of(opening)) for opening in glimpses.opening]
            boosts["first person"] = np.where(alone, 0.0, PERSONAL * np.array(tells))
    scores = scores + sum(boosts.values())
    if periods:
        boosts["time"] = TIME * (suiting(glimpses, periods) - scores)
        scores += boosts["time"]
    scores = np.minimum(np.maximum(scores, 0.0), 1.0)
    boosts["conversation"] = conversation_boost(scores, talks)
    all_scores[at] = scores + boosts["conversation"]
    again = Ranked(
        found.memories,
        scores=all_scores,
        word_scores=all_words,
        cosines=found.cosines,
        similarities=found.similarities,
        order=best_first(all_scores, np.asarray(found.similarities)),
    )
    again.looked, again.boosts = rows, boosts
    return again


def long_notes(glimpses: Glimpses) -> list[str]:
    """Those that are long and belong to no conversation, as many as may be read."""
    if not len(glimpses.memories):
        return []

    found, left = list[str](), READ
    for place in (np.asarray(glimpses.length) > LONG).nonzero()[0].tolist():
        length = int(glimpses.length[place])
        if length <= left and not glimpses.conversation[place]:
            found.append(glimpses.memories[place])
            left -= length
    return found


def best_passage(text: str, rarity: Mapping[str, float]) -> float:
    """How much of a question's words, each worth its rarity, stands together somewhere in a text: from 0 to 1."""
    worth = {word.lower()[: names.STEM]: value for word, value in rarity.items()}
    text = text.lower()
    found = sorted((at, stem) for stem in worth for at in places(stem, text))
    held: Counter[str] = Counter()
    best, total, start = 0.0, 0.0, 0
    for at, stem in found:
        total += 0.0 if held[stem] else worth[stem]
        held[stem] += 1
        while found[start][0] < at - PASSAGE:
            gone = found[start][1]
            held[gone] -= 1
            total -= 0.0 if held[gone] else worth[gone]
            start += 1
        best = max(best, total)
    return min(best / (sum(worth.values()) or 1.0), 1.0)


def places(stem: str, text: str) -> Iterator[int]:
    """Where words of a text begin so, and very short ones are no longer; in scripts without spaces, anywhere."""
    at = text.find(stem)
    while at >= 0:
        end = at + len(stem)
        if not stem.isascii() or not (text[at - 1 : at].isalnum() or (len(stem) < 4 and text[end : end + 1].isalnum())):
            yield at
        at = text.find(stem, at + 1)


def suiting(glimpses: Glimpses, periods: Sequence[Period]) -> Column:
    """How well each suits the times that the question names."""
    from scrubjay.text.time_expressions import fits  # not for the other questions

    created, since, until = (
        np.array(times, np.float64) for times in (glimpses.created_at, glimpses.valid_from, glimpses.valid_until)
    )  # None becomes not a number
    return fits(periods, np.where(np.isnan(since), created, since), until)


def conversation_ids(glimpses: Glimpses) -> Column:
    """The conversation of each as a number; 0: none."""
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(talk, len(numbers) + 1) if talk else 0 for talk in glimpses.conversation])


def conversation_boost(scores: Column, talks: Column) -> Column:
    """What was said around an answer belongs to it: each is drawn a little towards the best of its conversation."""
    order = np.lexsort((scores, talks))
    best = scores[order[talks[order].searchsorted(talks, side="right") - 1]]  # the last of each conversation
    return np.where(talks == 0, 0.0, TOGETHER * (best - scores))


# --- newer before older, where both speak of one thing ----------------------------------------------------------------

COMPARED = 12  # of the best
ONE_THING = 0.75  # cosine of two memories from which on they may speak of one thing
SELDOM = 4  # of those compared may hold a name that says which thing two of them speak of
NOW = frozenset(("now", "nowadays", "current", "currently", "still", "new"))
FORMER = frozenset(("previous", "previously", "former", "formerly", "originally", "initially", "earlier"))

# The odds that the newer of two memories is the better answer though it stands behind. A fact that has changed is often
# told in other words than the question's, which the outdated one still has: so of two on one thing their meaning says
# more than their words. Fitted by `python -m training.newer`.
NEWER = {
    "bias": -2.76,
    "meaning": 12.10,
    "closeness": 2.96,
    "shared words": 2.88,
    "told as a change": 0.36,
    "told as now": 0.39,
    "told as a correction": 1.24,
    "told, with a name of both": 0.99,
    "older one told as a change": -0.07,
    "long": -1.06,
    "lacks": -0.01,
    "lacks, but told": 0.27,
    "lacks, with a name of both": 1.25,
    "adds": 0.78,
    "adds, not in English": -0.86,
    "asks what is": 0.67,
}


class Fact(NamedTuple):
    """What is compared of a memory that states something."""

    row: int
    similarity: float
    created_at: int
    length: int
    opening: str
    words: frozenset[str]
    stems: frozenset[str]  # of the words that say something
    figures: frozenset[str]  # what has a digit: 1001, db1, 4.2
    named: frozenset[str]  # stems of what is written like a name
    names: frozenset[str]  # of these, in full, those that few of the others have
    telling: frozenset[str]  # pieces of the text that few of the others have
    heading: frozenset[str]  # pieces of what it names first as its topic
    english: bool
    vector: Vector


class QuestionParts(NamedTuple):
    """What a question asks for."""

    stems: frozenset[str]  # of its words that say something, and its figures
    names: frozenset[str]  # of these the names, numbers and identifiers
    pairs: frozenset[str]  # of letters, in scripts without spaces, where no word can be compared
    now: bool  # it says "now", "still", "current"


def newer_first(
    found: Ranked,
    glimpses: Glimpses,
    question: str,
    vectors_of: Callable[[list[str]], Mapping[str, Vector]],
) -> Ranked:
    """A newer fact comes before an older one on the same thing, if it is likely to be the better answer. Places change,
    scores do not."""
    if not FORMER.isdisjoint(words_of(question)):
        return found
    known = facts(found, glimpses, vectors_of)
    if len(known) < 2:
        return found
    asked = asked_for(question)
    order, moved = [*found.order[:COMPARED]], dict[int, float]()
    for row in order[1:]:
        low = order.index(row)
        for high, other in enumerate(order[:low]):
            if other in known and row in known and answers_better(known[other], known[row], asked):
                order.insert(high, order.pop(low))
                moved[row] = float(found.scores[row])
                break
    return found.but([*order, *found.order[COMPARED:]], moved, CURRENT) if moved else found


def facts(
    found: Ranked, glimpses: Glimpses, vectors_of: Callable[[list[str]], Mapping[str, Vector]]
) -> dict[int, Fact]:
    """Of the first few those that state something; what one speaker tells another outdates nothing said before."""
    place = {memory: number for number, memory in enumerate(glimpses.memories)}
    said: dict[int, frozenset[str]] = {}
    for row in found.order[:COMPARED]:
        at = place.get(found.memories[row])
        if at is not None:
            words = frozenset(words_of(glimpses.opening[at]))
            if TALKING.isdisjoint(words) and not speaks_again(glimpses.opening[at], glimpses.opening):
                said[row] = words
    if len(said) < 2:
        return {}
    vectors = vectors_of([found.memories[row] for row in said])
    named = {row: names.find_names(glimpses.opening[place[found.memories[row]]]) for row in said}
    having = Counter(name for some in named.values() for name in some)
    seldom = {name for name, count in having.items() if count <= SELDOM}
    parts = {row: pieces(glimpses.opening[place[found.memories[row]]]) for row in said}
    holding = Counter(piece for some in parts.values() for piece in some)
    telling = {piece for piece, count in holding.items() if count <= max(2, len(said) // 3)}
    known = {}
    for row, words in said.items():
        memory = found.memories[row]
        if (vector := vectors.get(memory)) is not None:
            opening = glimpses.opening[place[memory]]
            known[row] = Fact(
                row=row,
                similarity=float(found.similarities[row]),
                created_at=int(glimpses.created_at[place[memory]]),
                length=int(glimpses.length[place[memory]]),
                opening=opening,
                words=words,
                stems=frozenset(word[: names.STEM] for word in words - STOP_WORDS if len(word) > 1),
                figures=names.find_figures(opening),
                named=frozenset(name[: names.STEM] for name in named[row]),
                names=named[row] & seldom,
                telling=parts[row] & telling,
                heading=heading(opening),
                english=is_english(opening),
                vector=vector,
            )
    return known


def speaks_again(opening: str, others: Iterable[str]) -> bool:
    """Whether a text names a speaker, as others do; "Battery: …", once only, is what it is about."""
    speaker = names.SPEAKER.match(opening)
    if speaker is None:
        return False
    those = (True for other in others if other.startswith(speaker[0]))
    return next(those, False) and next(those, False)  # itself, and another


def asked_for(question: str) -> QuestionParts:
    from scrubjay.text.reading import NUMBER_WORDS  # not for a search by words

    stems = frozenset(word[: names.STEM] for word in words_of(" ".join(query_words(question))))
    figures, words = names.find_figures(question), words_of(question)
    numbers = (word for word in words if word in NUMBER_WORDS)  # floor two, floor three
    rare = frozenset(word.lower()[: names.STEM] for word in (*names.find_rare_words(question), *numbers))
    pairs = pieces(question) if UNSPACED.search(question) else frozenset[str]()
    return QuestionParts(stems | figures, rare | figures, pairs, not NOW.isdisjoint(words))


def answers_better(older: Fact, newer: Fact, asked: QuestionParts) -> bool:
    """Whether the newer one, which stands behind, speaks of the same thing and is likely to be the better answer."""
    if (seen := compare_facts(older, newer, asked)) is None:
        return False
    odds = NEWER["bias"] + sum(NEWER[name] * value for name, value in seen.items())
    return odds > 0 and not (on_another_one(older, newer, asked) or on_another_subject(older, newer, asked))


def compare_facts(older: Fact, newer: Fact, asked: QuestionParts) -> dict[str, float] | None:
    """What `NEWER` weighs of two facts, if one is newer and both may speak of one thing: it has those names of the
    question that the older one has, and all words if the older one has all, and is not about a narrower one."""
    from scrubjay.text.reading import CORRECTED, NOWADAYS  # not for a search by words

    if newer.created_at <= older.created_at or newer.length <= LONG < older.length:  # only its opening is known here
        return None
    if not on_one_thing(older, newer) or not asked.pairs & older.telling <= newer.telling:
        return None
    near = float(older.vector @ newer.vector)
    held = asked.stems & (older.stems | older.figures)
    lacking = held - newer.stems - newer.figures
    if near < ONE_THING or not lacking.isdisjoint(asked.names | older.named):
        return None
    if lacking and held == asked.stems:
        return None
    changes, now = min(2, len(newer.words & CHANGED)), not newer.words.isdisjoint(NOWADAYS)
    corrects = not newer.words.isdisjoint(CORRECTED)
    told = bool(changes) or now or corrects
    lost = len(older.stems - newer.stems)
    adds = not told and len(newer.stems - older.stems) > lost
    if adds and lost < 2 and older.english and newer.english:  # the main branch, the main branch of the docs
        return None
    named = not older.names.isdisjoint(newer.names)
    least = min(len(older.stems), len(newer.stems))
    return {
        "meaning": newer.similarity - older.similarity,
        "closeness": near,
        "shared words": len(older.stems & newer.stems) / max(1, least),
        "told as a change": changes,
        "told as now": float(now),
        "told as a correction": float(corrects),
        "told, with a name of both": float(told and named),
        "older one told as a change": min(2, len(older.words & CHANGED)),
        "long": float(newer.length > LONG),
        "lacks": min(2, len(lacking)),
        "lacks, but told": min(2, len(lacking)) * told,
        "lacks, with a name of both": min(2, len(lacking)) * named,
        "adds": float(adds),
        "adds, not in English": float(adds and not (older.english and newer.english)),
        "asks what is": float(asked.now),
    }


def on_one_thing(older: Fact, newer: Fact) -> bool:
    """Whether the texts themselves show it, whatever a cosine means in their language: they share a piece that few
    others have, in other languages than English two of them, and do not name different topics."""
    if older.heading and newer.heading and older.heading.isdisjoint(newer.heading):
        return False
    return len(older.telling & newer.telling) >= (1 if older.english and newer.english else 2)


def on_another_one(older: Fact, newer: Fact, asked: QuestionParts) -> bool:
    """The billing service, the ledger service: both are of one kind."""
    lacking = asked.stems - newer.stems - newer.figures
    texts = (said_of(asked.stems, older.opening), said_of(asked.stems, newer.opening))
    return names.names_another_instead(lacking, older.opening, newer.opening) or names.is_of_another_one(*texts)


def on_another_subject(older: Fact, newer: Fact, asked: QuestionParts) -> bool:
    """The shipping service runs on …, checkout was upgraded to …: further off in meaning, the newer one lacks what the
    older one is about and the question names. Where the question has other words than the older one, both are about
    different things."""
    if newer.similarity >= older.similarity or not (older.english and newer.english):
        return False
    about = subject(older)
    if asked.stems.isdisjoint(older.stems | older.figures):
        return about.isdisjoint(newer.stems) and subject(newer).isdisjoint(older.stems)
    return not about & asked.stems <= newer.stems


def subject(fact: Fact) -> frozenset[str]:
    """Stems of the words before its verb."""
    from scrubjay.text.reading import read  # not for a search by words

    reading = read(fact.opening)
    return fact.stems.intersection(word[: names.STEM] for word in reading.order[: reading.end])


def said_of(asked: frozenset[str], text: str) -> str:
    """A text from the first word of the question on: "Maria owns …" and "Jonas owns …" tell who owns the same."""
    for match in WORD.finditer(text):
        if match[0].lower()[: names.STEM] in asked:
            return text[match.start() :]
    return text


# --- fresh before stale ----------------------------------------------------------------------------------------------

PAIRS = frozenset({LinkKind.MAY_OUTDATE, LinkKind.SUPERSEDES})
ANSWERS_TOO = 0.55  # the newer one's score, of the older one's, from which on it is an answer to the same question


def fresh_first(found: Ranked, links: Iterable[Link]) -> Ranked:
    """Of a pair of which the newer outdates the older, the newer comes first: it moves up to just before the older one.
    If it only may, and this is not settled, the two change places if they are neighbours."""
    links = [link for link in links if link.state == "open"]
    if not links:
        return found
    row_of = {memory: row for row, memory in enumerate(found.memories)}
    pairs = [link for link in links if link.source in row_of and link.target in row_of]
    settled = [(row_of[link.source], row_of[link.target]) for link in pairs if link.kind is LinkKind.SUPERSEDES]
    for _ in settled:  # a chain of n needs at most n rounds
        before = found
        for newer, older in settled:
            found = moved_up(found, newer, older)
        if found is before:
            break
    moved: set[int] = set()  # no result moves by more than one place, however many guesses there are
    for link in sorted(pairs, key=lambda link: link.score or 0.0, reverse=True):
        newer, older = row_of[link.source], row_of[link.target]
        sure = (link.score or 0.0) >= SURE and link.kind is LinkKind.MAY_OUTDATE and moved.isdisjoint((newer, older))
        place = found.order.index(older)
        if sure and [*found.order[place + 1 : place + 2]] == [newer]:
            before, found = found, moved_up(found, newer, older)
            moved |= set() if found is before else {newer, older}
    return found


def moved_up(found: Ranked, newer: int, older: int) -> Ranked:
    """The newer of a pair before the older, if it stands behind it and is an answer too."""
    high, low = found.order.index(older), found.order.index(newer)
    if low < high or found.scores[newer] < ANSWERS_TOO * float(found.scores[older]):
        return found
    order = [*found.order]
    order.insert(high, order.pop(low))
    return found.but(order, {newer: float(found.scores[newer])}, FRESH)


# --- a weighted sum of several factors -------------------------------------------------------------------------------

HALF_LIFE_DAYS = 90.0
MANY_READS = 100  # from here on, more reads add nothing
SHOWN = 4  # decimals; the sum is made of what is shown, so that anybody can add it up


def by_weights(scores: Mapping[str, float], memories: Iterable[Memory], weights: Weights, now: datetime) -> list[Hit]:
    """Memories with what each factor was worth, in the order that the weights make, if they make one."""
    hits = [
        Hit(memory=memory, score=scores[memory.id], factors=weigh_memory(scores[memory.id], memory, weights, now))
        for memory in memories
    ]
    if weights.order:
        hits.sort(key=lambda hit: -hit.factors.combined if hit.factors else 0.0)
    return hits


def weigh_memory(score: float, memory: Memory, weights: Weights, now: datetime) -> Factors:
    """The plain weighted sum over what is known of a memory."""
    age_days = max(0.0, (now - memory.created_at).total_seconds() / 86_400)
    similarity = round(score, SHOWN)
    recency = round(recency_of(age_days, weights.decay), SHOWN)
    importance = round(memory.importance, SHOWN)
    access = round(min(1.0, math.log1p(memory.access_count) / math.log1p(MANY_READS)), SHOWN)
    combined = (
        weights.similarity * similarity
        + weights.recency * recency
        + weights.importance * importance
        + weights.access * access
    )
    return Factors(
        similarity=similarity,
        recency=recency,
        importance=importance,
        access=access,
        combined=round(combined, SHOWN),
    )


def recency_of(age_days: float, decay: Decay) -> float:
    """1 at age 0, one half after the half-life, falling for ever (or, linearly, to 0 after two half-lives)."""
    lives = age_days / HALF_LIFE_DAYS
    if decay is Decay.LINEAR:
        return max(0.0, 1 - lives / 2)
    if decay is Decay.LOGARITHMIC:
        return 1 / (1 + math.log2(1 + lives))
    return float(0.5**lives)
