"""Words and meaning, fused into one order; then a second look at the best. Pure functions over columns.

A candidate's score is its own: a fixed, rising function of its similarity (the models' calibrated cosines) and its word
score (share of the question's distinctive words). Nothing is dropped for being far: whether the best is an answer is
decided for each by itself (`chances_of`), and that is the score which is shown, in the order made here.

The second look sees how a memory begins, how long it is, when and in which conversation it was made, and adds or takes
a little (`Candidate.boosts`). What each part is worth was measured: docs/lab/retrieval.md.

Some hundreds of candidates are columns of numbers; a `Candidate` is made of those that are shown.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from scrubjay.engine.search.freshness import CURRENT, FRESH, fresh_first, newer_first
from scrubjay.lazy import numpy as np
from scrubjay.text import names
from scrubjay.text.tokens import FIRST_PERSON, OPENING_LENGTH, WORD, words_of
from scrubjay.text.words import query_words
from scrubjay.values.memory import Link
from scrubjay.values.search import Candidates, Column, Explanation, Glimpses, Match, Period, Query, Verdict

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
        self.second_rows: Sequence[int] = ()  # rows that got a second look
        self.boosts: dict[str, Column] = {}  # what that added to their scores, in the order of `second_rows`
        self.moved: dict[int, dict[str, float]] = {}  # rows that got another place, and what that added
        self.speaker_lead: Column = 0.0  # lead, in similarity, of the named speaker's turns over the others'
        self.chances: Column = scores  # of each row: how likely it answers the question (`rank` says so)

    @classmethod
    def by_words(cls, found: Sequence[Match]) -> Ranked:
        """Rank by word scores only, without vectors."""
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

    def scores_of_page(self, start: int, end: int) -> dict[str, float]:
        """The memories of a page, by id, with their scores."""
        return {self.memories[row]: float(self.scores[row]) for row in self.order[start:end]}

    @property
    def best_has_vector(self) -> bool:
        """Whether the best memory has a vector."""
        return not math.isnan(float(self.cosines[self.order[0]]))

    def first(self, count: int) -> list[str]:
        return [*map(self.memories.__getitem__, self.order[:count])]

    def reordered(self, order: Sequence[int], scores: Mapping[int, float] | None = None, reason: str = "") -> Ranked:
        """The same candidates in another order. Rows that moved for this reason get these scores."""
        other = Ranked(
            self.memories,
            scores=list(self.scores),
            word_scores=self.word_scores,
            cosines=self.cosines,
            similarities=self.similarities,
            order=order,
        )
        other.second_rows, other.boosts, other.moved = self.second_rows, self.boosts, dict(self.moved)
        other.chances = self.chances
        for row, score in (scores or {}).items():
            other.moved[row] = {**self.moved.get(row, {}), reason: score - float(self.scores[row])}
            other.scores[row] = score
        return other

    def _candidate(self, row: int) -> Candidate:
        cosine, boosts = float(self.cosines[row]), dict[str, float]()
        if row in self.second_rows:
            place = self.second_rows.index(row)
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
    """Fuse the scores of words and meaning into one order, best first. `knots` say what a cosine is worth; `further`
    are the similarities that each further model sees, and the weight with which they count."""
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
    """Sort the rows by score; where scores are equal, the nearer row comes first."""
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
    """Decide the order of an answer, except that `candidates.here_first` then puts the current space first: a second
    look at what `fuse` found, newer before older on one thing, fresh before stale. Weights that order have the last
    word."""
    # With weights that order, only their sum counts; and a question about a time wants what was true then.
    weighted_order = query.weights is not None and query.weights.order
    prefers_newer = len(found) > 1 and not weighted_order and not periods
    if not query.words_only:
        found = second_look(found, glimpses, query, periods, passages)
        found.speaker_lead = compare_speakers(found, glimpses, query.text)
        found.chances = chances_of(found, reworded=bool(query.also))
        if prefers_newer:
            found, outdone = newer_first(found, glimpses, query.text, vectors_of)
            pass_chances_on(found.chances, outdone)
    if prefers_newer:
        found = fresh_first(found, links_among(found.first(MOST_LOOKED_AT), found.memories))
    return found


def pass_chances_on(chances: Column, outdone: Mapping[int, tuple[float, int]]) -> None:
    """Change the chances in place: the newer of two facts gets the chance of the older one, though it is not beyond
    doubt for that alone, and the older one loses it, but stays a weak answer."""
    before = [*chances]
    for older, (likely, newer) in outdone.items():
        chances[newer] = max(chances[newer], likely * min(before[older], BEYOND_DOUBT))
    for older, (likely, _) in outdone.items():
        chances[older] = min(before[older], max(WEAK, before[older] * (1 - likely)))


def choose_for_second_look(found: Ranked, periods: Sequence[Period]) -> list[str]:
    """Choose the memories that get a second look: with named times all, since hits from that time may rank low."""
    return found.first(len(found) if periods else MOST_LOOKED_AT)


def explain_candidate(one: Candidate, query: Query, words: tuple[str, ...]) -> Explanation:
    """Explain why a memory was found: the words it holds, and which of the question's other wordings have any of
    them."""
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


# --- how likely each answers -----------------------------------------------------------------------------------------

#     none < 0.03 <= weak < 0.5 <= strong
#
# Each hit has its own probability. Three things decide it: how near it is to the question in meaning, how much of the
# question's words it holds, and how far its score stands above those of its best rivals.

STRONG = 0.5
BEYOND_DOUBT = 0.9  # what a flagged memory needs: one word that a secret shares with a question may make it strong
WEAK = 0.03  # of a hundred questions with an answer three or four have no hit above it
WORDED = 0.5  # a hit that holds this share of the question's words is never called none: one stranger in thirty does
PERSON = 10.0  # weight of who says it, where people talk …
OTHER_SPEAKER = 0.2  # … and what another speaker's turn loses, in similarity
RIVALS = 5  # other hits that a hit is compared with
UNRELATED = 0.25  # score of a rival that a small store lacks: about what a hit gets that has nothing to do with it

# Fitted by `python -m training.labels` on worlds with phrases and wordings written blind, with and without either.
BARE = {"bias": -5.05, "meaning": 6.38, "words": -0.91, "above": 7.22}  # a question alone
REWORDED = {"bias": -7.59, "meaning": 8.39, "words": -0.93, "above": 11.04}  # a question with other wordings


def label_of(score: float) -> Verdict:
    """Turn a chance into its label."""
    return Verdict.STRONG if score >= STRONG else Verdict.WEAK if score >= WEAK else Verdict.NONE


def chances_of(found: Ranked, *, reworded: bool) -> Column:
    """Compute how likely each row answers the question. Of a memory without a vector only the words are known, and
    these cannot rule it out."""
    scores = np.asarray(found.scores, np.float64)
    compared = ~np.isnan(np.asarray(found.cosines, np.float64))
    by_words = np.maximum(scores, WEAK)
    if not compared.any():
        return by_words
    weights = REWORDED if reworded else BARE
    facts = facts_about(found)
    logits = weights["bias"] + sum(weights[name] * column for name, column in facts.items())
    logits = logits + PERSON * found.speaker_lead
    chances = np.maximum(1 / (1 + np.exp(-logits)), np.where(facts["words"] >= WORDED, WEAK, 0.0))
    return np.where(compared, chances, by_words)


def facts_about(found: Ranked) -> dict[str, Column]:
    """Compute what the weights weigh of each hit."""
    scores = np.asarray(found.scores, np.float64)
    best = np.sort(np.append(scores, [UNRELATED] * (RIVALS + 1 - len(scores))))[::-1][: RIVALS + 1]
    others = np.where(scores >= best[-1], best.sum() - scores, best[:-1].sum()) / RIVALS
    return {
        "meaning": np.asarray(found.similarities),
        "words": np.asarray(found.word_scores),
        "above": scores - others,
    }


# --- the second look -------------------------------------------------------------------------------------------------

MOST_LOOKED_AT = 100  # memories that get a second look
# A text of more characters is long: of many things said in it one will resemble any question.
LONG_COSTS = 0.07  # so each doubling costs this …
MOST_DOUBLINGS = 3  # … at most so often …
MOST_IN_NOTES = 0.5  # … and if it belongs to no conversation
PASSAGE = 300  # characters of a long note, in which its words are looked for …
READ = 100_000  # … of this many altogether; they count …
FULLY_READ = 2  # … in full from this many doublings on: the longer, the less its vector says of a passage
NOTE = 0.2  # how much less words weigh in a short memory of no conversation: a question words it in another way
TIME = 0.2  # weight of being from the time that the question names
PERSONAL = 0.1  # for speaking of oneself in a conversation, as a question about "my" things does
SUBJECT = 0.05  # for beginning with a word of the question: who it is about, or who said it
CONVERSATION_PULL = 0.2  # how far a memory is drawn towards the best of its conversation


def second_look(
    found: Ranked, glimpses: Glimpses, query: Query, periods: Sequence[Period], passages: Mapping[str, float]
) -> Ranked:
    """Score the best candidates again; those without a glimpse keep their score. `passages` say of long notes what
    their best passage holds of the question."""
    if not len(glimpses.memories):
        return found

    chosen = choose_for_second_look(found, periods)
    rows = found.order[: len(chosen)]
    if glimpses.memories != chosen:  # in another order, or some are gone
        place = dict(zip(chosen, rows, strict=True))
        rows = [place[memory] for memory in glimpses.memories]
    all_scores, all_words, at = np.array(found.scores, np.float64), np.array(found.word_scores), np.array(rows)
    scores, boosts = all_scores[at], dict[str, Any]()
    similarities, word_scores = np.asarray(found.similarities)[at], np.asarray(found.word_scores)[at]
    lengths, talks = np.asarray(glimpses.length), conversation_ids(glimpses)
    alone = talks == 0
    embedded = ~np.isnan(np.asarray(found.cosines)[at])
    if lengths.max() > OPENING_LENGTH:  # the word score has its own way with length
        doublings = np.log2(np.maximum(lengths, OPENING_LENGTH) / OPENING_LENGTH)
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
        shortness = np.maximum(1 - lengths / OPENING_LENGTH, 0.0)
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
        boosts["time"] = TIME * (fit_periods(glimpses, periods) - scores)
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
    again.second_rows, again.boosts = rows, boosts
    return again


def compare_speakers(found: Ranked, glimpses: Glimpses, question: str) -> Column:
    """If a question names a speaker, compute how much nearer each turn is than the nearest turn of other speakers. A
    question about Anna's race is not answered by what Ben says of his."""
    if not any(glimpses.conversation):
        return 0.0
    asked, column = {word.lower() for word in query_words(question)}, np.zeros(len(found.memories))
    speakers = [names.SPEAKER.match(opening) for opening in glimpses.opening]
    talks = np.array([bool(talk) for talk in glimpses.conversation], bool)
    own = talks & [speaker is not None and speaker[0].strip(" :\n").lower() in asked for speaker in speakers]
    others = talks & ~own
    if own.any() and others.any():
        nearness = np.asarray(found.similarities)[np.array(found.second_rows)]
        nearer = nearness - nearness[others].max() - np.where(own, 0.0, OTHER_SPEAKER)
        column[np.array(found.second_rows)] = np.where(talks, nearer, 0.0)
    return column


def choose_long_notes(glimpses: Glimpses) -> list[str]:
    """Choose the long notes that belong to no conversation, as many as may be read."""
    if not len(glimpses.memories):
        return []

    found, left = list[str](), READ
    for place in (np.asarray(glimpses.length) > OPENING_LENGTH).nonzero()[0].tolist():
        length = int(glimpses.length[place])
        if length <= left and not glimpses.conversation[place]:
            found.append(glimpses.memories[place])
            left -= length
    return found


def best_passage(text: str, rarity: Mapping[str, float]) -> float:
    """Compute how much of a question's words, each worth its rarity, stands together in a text: from 0 to 1."""
    worth = {word.lower()[: names.STEM]: value for word, value in rarity.items()}
    text = text.lower()
    found = sorted((at, stem) for stem in worth for at in find_word_starts(stem, text))
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


def find_word_starts(stem: str, text: str) -> Iterator[int]:
    """Find where a word of the text begins with the stem, or is it if very short; without spaces, anywhere in it."""
    at = text.find(stem)
    while at >= 0:
        end = at + len(stem)
        if not stem.isascii() or not (text[at - 1 : at].isalnum() or (len(stem) < 4 and text[end : end + 1].isalnum())):
            yield at
        at = text.find(stem, at + 1)


def fit_periods(glimpses: Glimpses, periods: Sequence[Period]) -> Column:
    """Compute how well each memory fits the times that the question names."""
    from scrubjay.text.time_expressions import fits  # not for the other questions

    created, since, until = (
        np.array(times, np.float64) for times in (glimpses.created_at, glimpses.valid_from, glimpses.valid_until)
    )  # None becomes not a number
    return fits(periods, np.where(np.isnan(since), created, since), until)


def conversation_ids(glimpses: Glimpses) -> Column:
    """Number the conversation of each memory; 0 is none."""
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(talk, len(numbers) + 1) if talk else 0 for talk in glimpses.conversation])


def conversation_boost(scores: Column, talks: Column) -> Column:
    """Draw each turn a little towards the best of its conversation: what was said around an answer belongs to it."""
    order = np.lexsort((scores, talks))
    best = scores[order[talks[order].searchsorted(talks, side="right") - 1]]  # the last of each conversation
    return np.where(talks == 0, 0.0, CONVERSATION_PULL * (best - scores))
