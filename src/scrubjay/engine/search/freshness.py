"""Newer before older: of two facts on one thing, and of a pair of which the newer outdates the older."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import permutations
from typing import TYPE_CHECKING, NamedTuple

from scrubjay.engine.conflicts.weights import SURE
from scrubjay.text.names import SPEAKER, UNSPACED, find_rare_words, pieces
from scrubjay.text.reading import CORRECTED, NOWADAYS, NUMBER_WORDS
from scrubjay.text.statements import CHANGED
from scrubjay.text.tokens import OPENING_LENGTH, TALKING, words_of
from scrubjay.values.memory import Link, LinkKind
from scrubjay.values.search import Glimpses

if TYPE_CHECKING:
    from scrubjay.embedders.base import Vector
    from scrubjay.engine.search.ranking import Ranked

# Reasons why a memory has a better place than its score, to which they add nothing: it is the newer of two facts, or of
# a linked pair.
CURRENT, FRESH = "current", "newer"

# --- of two facts on one thing ---------------------------------------------------------------------------------------

COMPARED = 12  # of the best memories, pair by pair
ONE_THING = 0.77  # cosine of two memories from which on they may speak of one thing
MOST_SHARED = 4  # pieces that two memories share; more of them count no more
FORMER = frozenset(("previous", "previously", "former", "formerly", "originally", "initially", "earlier"))
TELLS_NOW = CHANGED | NOWADAYS | CORRECTED
LIKELY, SURELY = 0.5, 0.75  # chance from which on the newer comes first, with and without phrases of both

# The odds that the newer of two memories on one thing is the better answer. Fitted by `python -m training.newer`.
NEWER = {"bias": -11.70, "score": 13.11, "closeness": 15.01, "shared": 0.64, "told as now": 0.73}


class QuestionPieces(NamedTuple):
    """What a question asks for, in pieces."""

    pieces: frozenset[str]
    names: frozenset[str]  # of these names, numbers, identifiers, and pairs of letters where no word can be told


class Fact(NamedTuple):
    """What is compared of a memory that states something."""

    row: int
    score: float
    created_at: int
    length: int
    own: frozenset[str]  # pieces of its text …
    pieces: frozenset[str]  # … and of its phrases, too
    telling: frozenset[str]  # of these, those that few of the others have
    changes: bool  # whether it says that something changed …
    now: bool  # … or that something is so now
    phrases: bool  # whether it has phrases
    vector: Vector


def newer_first(
    found: Ranked,
    glimpses: Glimpses,
    question: str,
    vectors_of: Callable[[list[str]], Mapping[str, Vector]],
) -> tuple[Ranked, dict[int, tuple[float, int]]]:
    """Put a newer fact before an older one on the same thing, if it is likely to be the better answer. Also return, by
    the row of each older fact, how likely that is and the row of the newer one."""
    if not FORMER.isdisjoint(words_of(question)):
        return found, {}
    better, outdone, asked = set[tuple[int, int]](), dict[int, tuple[float, int]](), read_question(question)
    for older, newer in permutations(find_facts(found, glimpses, vectors_of), 2):
        chance = chance_of_newer(older, newer, asked)
        if chance > (LIKELY if older.phrases and newer.phrases else SURELY):
            better.add((older.row, newer.row))
            outdone[older.row] = max((chance, newer.row), outdone.get(older.row, (0.0, 0)))
    if not better:
        return found, {}
    order, moved = [*found.order[:COMPARED]], dict[int, float]()
    for row in order[1:]:
        low = order.index(row)
        high = next((place for place, other in enumerate(order[:low]) if (other, row) in better), low)
        if high < low:
            order.insert(high, order.pop(low))
            moved[row] = float(found.scores[row])
    return found.reordered([*order, *found.order[COMPARED:]], moved, CURRENT), outdone


def find_facts(
    found: Ranked, glimpses: Glimpses, vectors_of: Callable[[list[str]], Mapping[str, Vector]]
) -> Iterator[Fact]:
    """Find which of the best memories state a fact; what one speaker tells another outdates nothing said before."""
    place = {memory: number for number, memory in enumerate(glimpses.memories)}
    rows = {
        row: place[found.memories[row]]
        for row in found.order[:COMPARED]
        if found.memories[row] in place and states_something(glimpses.opening[place[found.memories[row]]], glimpses)
    }
    if len(rows) < 2:
        return
    vectors = vectors_of([found.memories[row] for row in rows])
    parts = {row: pieces(f"{glimpses.opening[at]} {glimpses.also[at]}") for row, at in rows.items()}
    holding = Counter(piece for some in parts.values() for piece in some)
    telling = {piece for piece, count in holding.items() if count <= max(2, len(rows) // 3)}
    for row, at in rows.items():
        if (vector := vectors.get(found.memories[row])) is not None:
            yield Fact(
                row=row,
                score=float(found.scores[row]),
                created_at=int(glimpses.created_at[at]),
                length=int(glimpses.length[at]),
                own=pieces(glimpses.opening[at]),
                pieces=parts[row],
                telling=parts[row] & telling,
                changes=not TELLS_NOW.isdisjoint(words_of(glimpses.opening[at])),
                now=not NOWADAYS.isdisjoint(words_of(glimpses.opening[at])),
                phrases=len(glimpses.also[at]) > 2,
                vector=vector,
            )


def states_something(opening: str, glimpses: Glimpses) -> bool:
    """Whether a text states a fact, and is not a turn of a conversation. A turn names its speaker, as others do;
    "Battery: …", once only, is what a fact is about."""
    if not TALKING.isdisjoint(words_of(opening)):
        return False
    speaker = SPEAKER.match(opening)
    return speaker is None or sum(other.startswith(speaker[0]) for other in glimpses.opening) < 2


def read_question(question: str) -> QuestionPieces:
    numbers = (word for word in words_of(question) if word in NUMBER_WORDS)  # floor two, floor three
    names = (*find_rare_words(question), *numbers, *UNSPACED.findall(question))
    return QuestionPieces(pieces(question), pieces(" ".join(names)))


def chance_of_newer(older: Fact, newer: Fact, asked: QuestionPieces) -> float:
    """Compute how likely the newer fact is the better answer; 0 if it is not newer, or they are on different things."""
    if newer.created_at <= older.created_at:
        return 0.0
    if newer.length <= OPENING_LENGTH < older.length:  # only the older one's opening is known here
        return 0.0
    seen = compare_facts(older, newer)
    if seen["closeness"] < ONE_THING or not seen["shared"] or is_on_another(older, newer, asked):
        return 0.0
    return 1 / (1 + math.exp(-NEWER["bias"] - sum(NEWER[name] * value for name, value in seen.items())))


def is_on_another(older: Fact, newer: Fact, asked: QuestionPieces) -> bool:
    """Whether the newer one lacks a name of the question that the older one has, or a word of it where the older one
    has all, or more words of it that the older text has than it has beyond that; or says nearly all that the older one
    says and more, without telling a change: the main branch, the main branch of the docs. Phrases say what a text is
    about, so with them it may."""
    lacking = (asked.pieces & older.pieces) - newer.pieces
    if not lacking.isdisjoint(asked.names) or (lacking and asked.pieces <= older.pieces):
        return True
    if len(lacking & older.own) > len((asked.pieces & newer.pieces) - older.pieces):  # the cat's pills, the dog's pills
        return True
    lost, added = (sum(map(str.isalpha, some)) for some in (older.pieces - newer.pieces, newer.pieces - older.pieces))
    adds = lost < 2 and added > lost
    return adds and not newer.changes and not (older.phrases and newer.phrases)


def compare_facts(older: Fact, newer: Fact) -> dict[str, float]:
    """Compute what `NEWER` weighs of two facts."""
    return {
        "score": newer.score - older.score,
        "closeness": float(older.vector @ newer.vector),
        "shared": min(MOST_SHARED, len(older.telling & newer.telling)),
        "told as now": float(newer.now),
    }


# --- of a pair ------------------------------------------------------------------------------------------------------

PAIRS = frozenset({LinkKind.MAY_OUTDATE, LinkKind.SUPERSEDES})
ANSWERS_TOO = 0.55  # the newer one's score, of the older one's, from which on it is an answer to the same question


def fresh_first(found: Ranked, links: Iterable[Link]) -> Ranked:
    """Put the newer of a linked pair first: if it outdates the older, it moves up to just before it.

    If it only may, and this is not settled, the two change places if they are neighbours.
    """
    row_of = {memory: row for row, memory in enumerate(found.memories)}
    pairs = [link for link in links if link.state == "open" and link.source in row_of and link.target in row_of]
    settled = [(row_of[link.source], row_of[link.target]) for link in pairs if link.kind is LinkKind.SUPERSEDES]
    likely = sorted(filter(is_sure, pairs), key=lambda link: link.score or 0.0, reverse=True)
    guessed = [(row_of[link.source], row_of[link.target]) for link in likely]
    for _ in settled:  # a chain of n needs at most n rounds
        before = found
        for newer, older in settled:
            found = move_up(found, newer, older)
        if found is before:
            break
    moved: set[int] = set()  # no result moves by more than one place, however many guesses there are
    for newer, older in guessed:
        place = found.order.index(older)
        if moved.isdisjoint((newer, older)) and [*found.order[place + 1 : place + 2]] == [newer]:
            before, found = found, move_up(found, newer, older)
            moved |= set() if found is before else {newer, older}
    return found


def is_sure(link: Link) -> bool:
    """Whether a link is a sure hint that is not settled."""
    return link.kind is LinkKind.MAY_OUTDATE and (link.score or 0.0) >= SURE


def move_up(found: Ranked, newer: int, older: int) -> Ranked:
    """Move the newer of a pair before the older, if it stands behind it and is an answer too."""
    high, low = found.order.index(older), found.order.index(newer)
    if low < high or found.scores[newer] < ANSWERS_TOO * float(found.scores[older]):
        return found
    order = [*found.order]
    order.insert(high, order.pop(low))
    return found.reordered(order, {newer: float(found.scores[newer])}, FRESH)
