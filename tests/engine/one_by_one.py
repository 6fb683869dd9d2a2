"""Ranking one candidate after another, as plainly as it can be said: what the columns are compared with."""

from __future__ import annotations

import math
from operator import itemgetter

from scrubjay.engine.conflicts.weights import SURE
from scrubjay.engine.search.freshness import ANSWERS_TOO
from scrubjay.engine.search.ranking import (
    CONVERSATION_PULL,
    FULLY_READ,
    LONG_COSTS,
    MEANING,
    MOST_DOUBLINGS,
    MOST_IN_NOTES,
    MOST_LOOKED_AT,
    NOTE,
    OPENING_LENGTH,
    PERSONAL,
    SUBJECT,
    TIME,
    Candidate,
)
from scrubjay.text.time_expressions import DAY
from scrubjay.text.tokens import FIRST_PERSON, words_of
from scrubjay.text.words import query_words
from scrubjay.values.memory import LinkKind

SCORE = itemgetter(1, 4)  # of a Candidate; where scores are equal, the nearer one comes first


def fuse(by_words, by_meaning, more, *further):
    words, cosines = dict(by_words), {**dict(by_meaning), **more}
    found = []
    for memory, cosine in cosines.items():
        similarity, word_score = cosine, words.get(memory, 0.0)
        for seen, weight in further:
            if memory in seen:
                similarity += weight * (seen[memory] - similarity)
        score = MEANING * similarity + (1 - MEANING) * word_score
        found.append(Candidate(memory, score, word_score, cosine, similarity))
    for memory, word_score in words.items():
        if memory not in cosines:
            as_good = [one.score for one in found if one.cosine is not None and one.word_score >= word_score]
            score = min(word_score, max(as_good, default=1.0))
            found.append(Candidate(memory, score, word_score, None, 0.0))
    return sorted(found, key=SCORE, reverse=True)


def second_look(candidates, glimpses, question, periods, passages):
    words = {word.lower() for word in query_words(question)}
    looked = []
    for one in candidates:
        if (glimpse := glimpses.get(one.memory)) is None:
            looked.append(one)
            continue
        boosts = {}
        said = words_of(glimpse.opening)
        if one.cosine is not None and glimpse.length > OPENING_LENGTH:
            most = MOST_IN_NOTES if glimpse.conversation is None else MOST_DOUBLINGS
            boosts["length"] = -LONG_COSTS * min(most, math.log2(glimpse.length / OPENING_LENGTH))
        doublings = math.log2(max(glimpse.length, OPENING_LENGTH) / OPENING_LENGTH)
        if (held := min(1.0, doublings / FULLY_READ) * passages.get(one.memory, 0.0)) > one.word_score:
            boosts["passage"] = (1.0 if one.cosine is None else 1 - MEANING) * (held - one.word_score)
        if one.cosine is not None and glimpse.conversation is None and glimpse.length < OPENING_LENGTH:
            boosts["note"] = NOTE * (1 - glimpse.length / OPENING_LENGTH) * (one.similarity - one.word_score)
        if glimpse.conversation is not None and said and said[0] in words:
            boosts["subject"] = SUBJECT
        if glimpse.conversation is not None and FIRST_PERSON & {*words_of(question)} and FIRST_PERSON & {*said}:
            boosts["first person"] = PERSONAL
        score = one.score + sum(boosts.values())
        if periods:
            suits = fit(periods, glimpse.valid_from or glimpse.created_at, glimpse.valid_until)
            boosts["time"] = TIME * (suits - score)
            score += boosts["time"]
        score, words_held = max(0.0, min(1.0, score)), max(one.word_score, held)
        looked.append(one._replace(score=score, word_score=words_held, boosts=boosts))
    return sorted(drawn_together(looked, glimpses), key=SCORE, reverse=True)


def fit(periods, since, until=None):
    if until is not None and any(since < period.end and period.start <= until for period in periods):
        return 1.0
    return max(nearness(period, moment) for period in periods for moment in (since, until) if moment is not None)


def nearness(period, moment):
    length = period.end - period.start
    if moment < period.start:
        return 0.5 ** ((period.start - moment) / (DAY + length / 8))
    if moment >= period.end:
        return 0.5 ** ((moment - period.end) / (4 * DAY + length / 4))
    return 1.0


def drawn_together(candidates, glimpses):
    talks = {memory: one.conversation for memory, one in glimpses.items() if one.conversation is not None}
    best = {}
    for one in candidates:
        if (talk := talks.get(one.memory)) is not None:
            best[talk] = max(best.get(talk, 0.0), one.score)
    drawn = []
    for one in candidates:
        by = CONVERSATION_PULL * (best.get(talks.get(one.memory), 0.0) - one.score)
        more = {**one.boosts, "conversation": by}
        drawn.append(one._replace(score=one.score + by, boosts=more) if by > 0 else one)
    return drawn


def fresh_first(candidates, links):
    ordered = list(candidates)
    names = {one.memory for one in ordered}
    pairs = [link for link in links if link.state == "open" and {link.source, link.target} <= names]
    settled = [(link.source, link.target) for link in pairs if link.kind is LinkKind.SUPERSEDES]
    for _ in settled:
        if not [pair for pair in settled if move_up(ordered, *pair)]:
            break
    moved = set()
    for link in sorted(pairs, key=lambda link: link.score or 0.0, reverse=True):
        sure = (link.score or 0.0) >= SURE and link.kind is LinkKind.MAY_OUTDATE
        if sure and moved.isdisjoint((link.source, link.target)):
            place = next(number for number, one in enumerate(ordered) if one.memory == link.target)
            neighbours = [one.memory for one in ordered[place + 1 : place + 2]] == [link.source]
            if neighbours and move_up(ordered, link.source, link.target):
                moved |= {link.source, link.target}
    return ordered


def move_up(ordered, newer, older):
    place = {one.memory: number for number, one in enumerate(ordered)}
    high, low = place[older], place[newer]
    fresh, stale = ordered[low], ordered[high]
    if low < high or fresh.score < ANSWERS_TOO * stale.score:
        return False
    ordered.insert(high, ordered.pop(low)._replace(boosts={**fresh.boosts, "newer": 0.0}))
    return True


def choose_for_second_look(found, periods):
    return [one.memory for one in (found if periods else found[:MOST_LOOKED_AT])]
