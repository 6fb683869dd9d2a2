"""Words and meaning, fused into one order; then a second look at the best. Pure functions.

A candidate's score is its own: a fixed, rising function of its similarity (the models' calibrated cosines) and its word
score (share of the question's distinctive words). Nothing is dropped for being far: whether the best is an answer is
decided for the whole list (`verdict.py`), and shown scores are that verdict's, in the order made here.

The second look sees how a memory begins, how long it is, when and in which conversation it was made, and adds or takes
a little (`Candidate.boosts`). What each part is worth was measured: docs/lab/retrieval.md.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from operator import itemgetter
from typing import NamedTuple

from scrubjay.engine.conflicts.weights import SURE
from scrubjay.engine.search import verdict
from scrubjay.engine.search.pronouns import FIRST_PERSON, SECOND_PERSON, says, speaks, words_of
from scrubjay.values.memory import (
    Decay,
    Explanation,
    Factors,
    Glimpse,
    Hit,
    Link,
    LinkKind,
    Match,
    Memory,
    Period,
    Query,
    Weights,
)
from scrubjay.values.words import query_words

DEPTH = 200  # candidates from each side, whatever limit and offset, so that paging is stable
MEANING = 0.65  # weight of similarity against words
NOT_EMBEDDED = 0.2  # what counts as the similarity of a memory without a vector, where others have one
BESIDE = 0.5  # weight of a second model's similarity against the first's …
FOREIGN = 0.75  # … and if the question is in another language than English
SCORE = itemgetter(1, 4)  # of a Candidate; where scores are equal, the nearer one comes first
NO_BOOSTS: Mapping[str, float] = {}


class Candidate(NamedTuple):
    """One of some hundreds that each search makes: a tuple, since a frozen dataclass takes four times as long."""

    memory: str
    score: float
    word_score: float
    cosine: float | None
    similarity: float
    boosts: Mapping[str, float] = NO_BOOSTS


def fuse(
    by_words: Sequence[Match],
    by_meaning: Sequence[Match],
    further: Mapping[str, float],
    calibrate: Callable[[float], float],
    second: Mapping[str, float] | None = None,
    *,
    weight: float = BESIDE,
) -> list[Candidate]:
    """One list of candidates, best first. `further` are cosines of what only words found, `second` the similarities
    that a second model sees, which count with this weight."""
    words = {match.memory: match.score for match in by_words}
    cosines = {**{match.memory: match.score for match in by_meaning}, **further}
    second = second or {}
    found = []
    for memory, cosine in cosines.items():
        similarity, word_score = calibrate(cosine), words.get(memory, 0.0)
        if (other := second.get(memory)) is not None:
            similarity += weight * (other - similarity)
        score = MEANING * similarity + (1 - MEANING) * word_score
        found.append(Candidate(memory, score, word_score, cosine, similarity))
    # Without any vectors (no model) words speak alone. One memory without a vector (archived, not embedded yet) among
    # others counts as just near enough: its words alone must not pass for a full score.
    least, share = (MEANING * NOT_EMBEDDED, 1 - MEANING) if cosines else (0.0, 1.0)
    found += [
        Candidate(memory, least + share * score, score, None, 0.0)
        for memory, score in words.items()
        if memory not in cosines
    ]
    found.sort(key=SCORE, reverse=True)
    return found


def rank(
    found: list[Candidate],
    query: Query,
    periods: Sequence[Period],
    glimpses: Mapping[str, Glimpse],
    *,
    holders: frozenset[str],
    links_of: Callable[[list[str]], Iterable[Link]],
) -> list[Candidate]:
    """The order of an answer, decided here and nowhere else: what `fuse` found, looked at a second time, the `holders`
    of all rare words first, fresh before stale. Only weights that order have a later word."""
    if not query.words_only:
        found = second_look(found, glimpses, query.text, periods)
    found = holders_first(found, holders)
    # A weighted sum is a plain one, and who asks about a time wants what was true then.
    plain_sum = query.weights is not None and query.weights.order
    if found and not plain_sum and not periods:
        found = fresh_first(found, links_of([one.memory for one in found[:LOOKED]]))
    return found


def looked_at(found: Sequence[Candidate], periods: Sequence[Period]) -> list[str]:
    """Those that a second look is for; with named times all, since those from then may stand far behind."""
    return [one.memory for one in (found if periods else found[:LOOKED])]


def holders_first(found: list[Candidate], holders: frozenset[str]) -> list[Candidate]:
    """A memory that holds every rare word of the question comes before those that hold only some."""
    first = [one for one in found if one.memory in holders]
    if not first or len(first) == len(found):
        return found
    rest = [one for one in found if one.memory not in holders]
    least = rest[0].score
    lifted_up = [
        scored(one, least, {**one.boosts, "names": least - one.score}) if one.score < least else one for one in first
    ]
    return lifted_up + rest


def explained(one: Candidate, words: tuple[str, ...]) -> Explanation:
    return Explanation(
        words=words,
        word_score=one.word_score,
        cosine=one.cosine,
        similarity=one.similarity,
        boosts={name: value for name, value in one.boosts.items() if round(value, 2)},
    )


# --- the second look -------------------------------------------------------------------------------------------------

LOOKED = 100  # how many of the best are looked at
LONG = 400  # characters from which a text is long: of many things said in it one will resemble any question …
LONG_COSTS = 0.07  # … so each doubling costs this …
MOST_DOUBLINGS = 3  # … at most so often
TIME = 0.2  # weight of being from the time that the question names
PERSONAL = 0.1  # for "I" and "my" in a memory, if they are in the question too
TOLD = 0.05  # what "you" in a memory costs, if it is not in the question: it tells someone of themself
SUBJECT = 0.05  # for beginning with a word of the question: who it is about, or who said it
RECENT = 0.08  # what share the newest of those looked at gain, unless the question asks what was: the older, the less
TOGETHER = 0.2  # how far a memory is drawn towards the best of its conversation


# Words of questions about what was, rather than what is.
PAST = frozenset(
    """
    did was were had ago used before after previous previously former originally first ever last when why then
    """.split()  # noqa: SIM905 -- read as words
)


def second_look(
    candidates: Sequence[Candidate],
    glimpses: Mapping[str, Glimpse],
    question: str,
    periods: Sequence[Period],
) -> list[Candidate]:
    """The candidates rescored, best first; those without a glimpse keep their score."""
    words = {word.lower() for word in query_words(question)}
    personal, says_you = says(FIRST_PERSON, question), says(SECOND_PERSON, question)
    if periods:
        from scrubjay.engine.search.time_expressions import fit  # not for the other questions
    newer_than = {} if periods or not PAST.isdisjoint(words_of(question)) else ages(glimpses)
    looked = []
    for one in candidates:
        if (glimpse := glimpses.get(one.memory)) is None:
            looked.append(one)
            continue
        boosts: dict[str, float] = {}
        said = words_of(glimpse.opening)
        if one.cosine is not None and glimpse.length > LONG:  # the word score has its own way with length
            boosts["length"] = -LONG_COSTS * min(MOST_DOUBLINGS, math.log2(glimpse.length / LONG))
        if personal:
            boosts["first person"] = PERSONAL * speaks(FIRST_PERSON, said)
        if not says_you:
            boosts["second person"] = -TOLD * speaks(SECOND_PERSON, said)
        if said and said[0] in words:
            boosts["subject"] = SUBJECT
        if one.memory in newer_than:
            boosts["recent"] = RECENT * newer_than[one.memory] * one.score
        score = one.score + sum(boosts.values())
        if periods:
            suits = fit(periods, glimpse.valid_from or glimpse.created_at, glimpse.valid_until)
            boosts["time"] = TIME * (suits - score)
            score += boosts["time"]
        looked.append(scored(one, max(0.0, min(1.0, score)), boosts))
    looked = drawn_together(looked, glimpses)
    looked.sort(key=SCORE, reverse=True)
    return looked


def ages(glimpses: Mapping[str, Glimpse]) -> dict[str, float]:
    """For each memory the share of the others that are older."""
    times = sorted(glimpse.created_at for glimpse in glimpses.values())
    return {memory: bisect_left(times, one.created_at) / len(times) for memory, one in glimpses.items()}


def drawn_together(candidates: Sequence[Candidate], glimpses: Mapping[str, Glimpse]) -> list[Candidate]:
    """What was said around an answer belongs to it: each is drawn a little towards the best of its conversation."""
    talks = {memory: one.conversation for memory, one in glimpses.items() if one.conversation is not None}
    if not talks:
        return list(candidates)
    best: dict[str, float] = {}
    for one in candidates:
        if (talk := talks.get(one.memory)) is not None and one.score > best.get(talk, 0.0):
            best[talk] = one.score
    return [
        lifted(one, TOGETHER * (best.get(talk, 0.0) - one.score))
        if (talk := talks.get(one.memory)) is not None
        else one
        for one in candidates
    ]


def lifted(one: Candidate, by: float) -> Candidate:
    return scored(one, one.score + by, {**one.boosts, "conversation": by}) if by > 0 else one


def scored(one: Candidate, score: float, boosts: Mapping[str, float]) -> Candidate:
    """The candidate with another score; `_replace` would take four times as long."""
    return Candidate(one.memory, score, one.word_score, one.cosine, one.similarity, boosts)


# --- whether any of it is an answer ----------------------------------------------------------------------------------


def likelihood(
    found: Sequence[Candidate],
    query: Query,
    heard: Sequence[verdict.Heard],
    words: verdict.Words,
    glimpses: Mapping[str, Glimpse],
) -> float:
    """How likely the first candidate answers the question: the score that it is shown with."""
    if not found:
        return 0.0
    best = found[0]
    if not heard:
        return max(best.score, verdict.WEAK)  # words alone cannot say that there is nothing
    first = [(one.score, glimpses[one.memory].opening) for one in found[: verdict.FIRST] if one.memory in glimpses]
    reads_all = len(heard) > 1
    english = verdict.english(query.text) and 2 * sum(verdict.english(opening) for _, opening in first) >= len(first)
    if not english and reads_all:
        heard = heard[1:]  # the second model reads other languages, the first makes little of them
    sure = verdict.likelihood(heard, best.similarity, words)
    if first and best.score > 0:
        sure *= min(1.0, verdict.likeliest(first, query.text) / best.score)
    return sure if english or reads_all else max(sure, verdict.WEAK)


# --- fresh before stale ----------------------------------------------------------------------------------------------

PAIRS = frozenset({LinkKind.MAY_OUTDATE, LinkKind.SUPERSEDES})
ANSWERS_TOO = 0.55  # the newer one's score, of the older one's, from which on it is an answer to the same question


def fresh_first(candidates: Sequence[Candidate], links: Iterable[Link]) -> list[Candidate]:
    """Of a pair of which the newer outdates the older, the newer comes first: it moves up to just before the older one
    and takes its score. If it only may, and this is not settled, the two change places if they are neighbours."""
    ordered = list(candidates)
    names = {one.memory for one in ordered}
    pairs = [link for link in links if link.state == "open" and {link.source, link.target} <= names]
    settled = [(link.source, link.target) for link in pairs if link.kind is LinkKind.SUPERSEDES]
    for _ in settled:  # a chain of n needs at most n rounds
        if not [pair for pair in settled if moved_up(ordered, *pair)]:
            break
    moved: set[str] = set()  # no result moves by more than one place, however many guesses there are
    for link in sorted(pairs, key=lambda link: link.score or 0.0, reverse=True):
        if (
            (link.score or 0.0) >= SURE
            and link.kind is LinkKind.MAY_OUTDATE
            and moved.isdisjoint((link.source, link.target))
        ):
            place = next(number for number, one in enumerate(ordered) if one.memory == link.target)
            neighbours = [one.memory for one in ordered[place + 1 : place + 2]] == [link.source]
            if neighbours and moved_up(ordered, link.source, link.target):
                moved |= {link.source, link.target}
    return ordered


def moved_up(ordered: list[Candidate], newer: str, older: str) -> bool:
    """Move the newer of a pair before the older, if it stands behind it and is an answer too."""
    place = {one.memory: number for number, one in enumerate(ordered)}
    high, low = place[older], place[newer]
    fresh, stale = ordered[low], ordered[high]
    if low < high or fresh.score < ANSWERS_TOO * stale.score:
        return False
    boosts = {**fresh.boosts, "newer": stale.score - fresh.score}
    ordered.insert(high, scored(ordered.pop(low), stale.score, boosts))
    return True


# --- a weighted sum of several factors -------------------------------------------------------------------------------

HALF_LIFE_DAYS = 90.0
MANY_READS = 100  # from here on, more reads add nothing
SHOWN = 4  # decimals; the sum is made of what is shown, so that anybody can add it up


def by_weights(scores: Mapping[str, float], memories: Iterable[Memory], weights: Weights, now: datetime) -> list[Hit]:
    """Memories with what each factor was worth, in the order that the weights make, if they make one."""
    hits = [
        Hit(memory=memory, score=scores[memory.id], factors=weighed(scores[memory.id], memory, weights, now))
        for memory in memories
    ]
    if weights.order:
        hits.sort(key=lambda hit: -hit.factors.combined if hit.factors else 0.0)
    return hits


def weighed(score: float, memory: Memory, weights: Weights, now: datetime) -> Factors:
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
