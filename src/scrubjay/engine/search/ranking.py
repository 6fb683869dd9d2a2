"""Words and meaning, fused into one order and one score; then a second look at the best. Pure functions.

A hit's score is its own: a fixed, rising function of its similarity (the model's calibrated cosine) and its word score
(share of the question's distinctive words), so the same number means the same for every question. What is neither
near in meaning nor shares a distinctive word is dropped: nothing relevant is an empty list.

The second look sees how a memory begins, how long it is, when and in which conversation it was made, and adds or takes
a little (`Candidate.boosts`). What each part is worth was measured: docs/lab/retrieval.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from operator import itemgetter
from typing import NamedTuple

from scrubjay.engine.search import answerability
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
FLOOR = 0.22  # similarity below which meaning alone says nothing
BESIDE = 0.5  # weight of a second model's similarity against the first's …
FOREIGN = 0.75  # … and if the question is in another language than English
SCORE = itemgetter(1)  # of a Candidate
DISTINCTIVE = 0.1  # word score from which a shared word is reason enough to keep a memory
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
        if similarity >= FLOOR or word_score >= DISTINCTIVE:
            score = MEANING * similarity + (1 - MEANING) * word_score
            found.append(Candidate(memory, score, word_score, cosine, similarity))
    # Without any vectors (no model) words speak alone. One memory without a vector (archived, not embedded yet) among
    # others counts as just near enough: its words alone must not pass for a full score.
    least, share = (MEANING * FLOOR, 1 - MEANING) if cosines else (0.0, 1.0)
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
    glimpses_of: Callable[[list[str]], Mapping[str, Glimpse]],
    links_of: Callable[[list[str]], Iterable[Link]],
) -> list[Candidate]:
    """The order of an answer, decided here and nowhere else: what `fuse` found, looked at a second time, lowered if
    nothing looks like an answer, fresh before stale. With weights `by_weights` has the last word."""
    best = [one.memory for one in (found if periods else found[:LOOKED])]  # those from then may stand far behind
    if not query.words_only:
        glimpses = glimpses_of(best) if best else {}
        found = second_look(found, glimpses, query.text, periods)
        if query.weights is None:
            found = lower_if_unanswered(found, glimpses, query.text)
    # A weighted sum is a plain one, and who asks about a time wants what was true then.
    if query.weights is None and found and not periods:
        found = fresh_first(found, links_of([one.memory for one in found[:LOOKED]]))
    return found


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
TOGETHER = 0.2  # how far a memory is drawn towards the best of its conversation


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
        score = one.score + sum(boosts.values())
        if periods:
            suits = fit(periods, glimpse.valid_from or glimpse.created_at, glimpse.valid_until)
            boosts["time"] = TIME * (suits - score)
            score += boosts["time"]
        looked.append(scored(one, max(0.0, min(1.0, score)), boosts))
    looked = drawn_together(looked, glimpses)
    looked.sort(key=SCORE, reverse=True)
    return looked


def drawn_together(candidates: Sequence[Candidate], glimpses: Mapping[str, Glimpse]) -> list[Candidate]:
    """What was said around an answer belongs to it: each is drawn a little towards the best of its conversation."""
    best: dict[str, float] = {}
    talks = {one.memory: talk for one in candidates if (talk := conversation(glimpses.get(one.memory))) is not None}
    for one in candidates:
        if (talk := talks.get(one.memory)) is not None:
            best[talk] = max(best.get(talk, 0.0), one.score)
    return [
        lifted(one, TOGETHER * (best[talk] - one.score)) if (talk := talks.get(one.memory)) is not None else one
        for one in candidates
    ]


def lifted(one: Candidate, by: float) -> Candidate:
    return scored(one, one.score + by, {**one.boosts, "conversation": by}) if by > 0 else one


def scored(one: Candidate, score: float, boosts: Mapping[str, float]) -> Candidate:
    """The candidate with another score; `_replace` would take four times as long."""
    return Candidate(one.memory, score, one.word_score, one.cosine, one.similarity, boosts)


def conversation(glimpse: Glimpse | None) -> str | None:
    return None if glimpse is None else glimpse.conversation


# --- nothing that looks like an answer -------------------------------------------------------------------------------


def lower_if_unanswered(
    candidates: Sequence[Candidate], glimpses: Mapping[str, Glimpse], question: str
) -> list[Candidate]:
    """The candidates with scores as low as the doubt whether any of them answers; in the same order."""
    looked = candidates[: answerability.FIRST]
    first = [(one.score, glimpses[one.memory].opening) for one in looked if one.memory in glimpses]
    if not first or candidates[0].score <= 0:
        return list(candidates)
    left = answerability.likeliest(first, question) / candidates[0].score
    return list(candidates) if left >= 1 else [lowered(one, left) for one in candidates]


def lowered(one: Candidate, left: float) -> Candidate:
    score = one.score * left
    return scored(one, score, {**one.boosts, "doubt": score - one.score})


# --- fresh before stale ----------------------------------------------------------------------------------------------

PAIRS = frozenset({LinkKind.MAY_OUTDATE, LinkKind.SUPERSEDES})
ANSWERS_TOO = 0.55  # the newer one's score, of the older one's, from which on it is an answer to the same question


def fresh_first(candidates: Sequence[Candidate], links: Iterable[Link]) -> list[Candidate]:
    """Of a pair of which the newer outdates the older, or may, the newer comes first: it moves up to just before the
    older one and shows its score. Nothing else changes its place by more than one."""
    ordered = list(candidates)
    names = {one.memory for one in ordered}
    best: dict[str, Link] = {}  # for each older one its likeliest successor: guesses must not pile up before an answer
    for link in links:
        if link.state == "open" and {link.source, link.target} <= names:
            known = best.get(link.target)
            if known is None or (link.score or 0.0) > (known.score or 0.0):
                best[link.target] = link
    pairs = [(link.source, link.target) for link in best.values()]
    for _ in pairs:  # a chain of n needs at most n rounds
        moves = [pair for pair in pairs if moved_up(ordered, *pair)]
        if not moves:
            break
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
    """Memories in the order that the weights make, with what each factor was worth."""
    weighted = [(weighed(scores[memory.id], memory, weights, now), memory) for memory in memories]
    weighted.sort(key=lambda pair: -pair[0].combined)
    return [
        Hit(
            memory=memory,
            score=scores[memory.id],
            verdict=answerability.verdict(scores[memory.id]),
            factors=factors,
        )
        for factors, memory in weighted
    ]


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
