"""Which stored memory may a new one outdate?

Candidates come from the nearest memories and from those that share its names; a small linear judge over named features
decides: *the same subject, another value*. It advises; it never supersedes anything by itself. What is likely enough is
the one sure hint, what is less likely is left to whoever reads it. Where it has no grammar for a text, it is silent.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from scrubjay.engine import access
from scrubjay.engine.conflicts.duplicates import NEAR, same_said
from scrubjay.engine.conflicts.fact_kinds import Attributes, same_kinds
from scrubjay.engine.conflicts.grammar import ANYONE, DETERMINERS, TALK, root
from scrubjay.engine.conflicts.weights import BIAS, CANDIDATE, SURE, WEIGHTS
from scrubjay.engine.store import intake
from scrubjay.engine.store.neighbours import Neighbours, find_neighbours
from scrubjay.stores.promises.memories import Reads
from scrubjay.values.frozen import dataclass
from scrubjay.values.memory import Audience, Kind, LinkKind, Memory, Status, Stored
from scrubjay.values.words import CALENDAR

if TYPE_CHECKING:
    from scrubjay.embedders.base import Vector
    from scrubjay.engine.engine import Engine
    from scrubjay.engine.store.embedding import Embedding
    from scrubjay.stores.promises.memories import Transaction

MOST = 3  # candidates for one memory, besides the sure hint

# Cosines: of any two facts on one subject; what two different facts reach, and beyond it nearly the same sentence.
ON_ONE_SUBJECT, SPREAD = 0.85, 0.10
DIFFERENT, TO_THE_SAME = 0.92, 0.06
A_STEP = 0.05  # by which one may lie behind the nearest …
FAR_BEHIND = 0.15  # … and from which on nothing else can make up for it

Rarity = Mapping[str, float]  # how much a word tells, 0..1; what is not in it is as rare as can be
Kinds = tuple[float, float]  # how far two texts are of the same kind, and of one that has one value at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    memory: Memory
    score: float
    sure: bool = False
    same: bool = False  # it says the same: nothing is outdated


class Judge:
    """Proposes what a new memory may outdate. Owns the model's view of kinds of facts."""

    def __init__(self, embedding: Embedding) -> None:
        self._embedding = embedding
        self._attributes: Attributes | None = None

    def proposals(
        self,
        new: Memory,
        neighbours: Neighbours,
        reads: Reads,
        audience: Audience,
        *,
        same_words: Sequence[Memory],
        now: datetime,
    ) -> list[Proposal]:
        """Earlier memories that the new one may outdate or repeat: those that say the same, then the likeliest."""
        if new.kind is not Kind.MEMORY:
            return []
        near = [neighbours.memories[name] for name in neighbours.promising if name in neighbours.memories]
        known = {memory.id: memory for memory in (*reversed(same_words), *near) if current(memory, new, now)}
        exact = {memory.id for memory in same_words}
        same = [
            one
            for one in known.values()
            if one.id in exact or (neighbours.near(one.id) >= NEAR and same_said(one.text, new.text))
        ]
        twins = [Proposal(memory=memory, score=1.0, same=True) for memory in same]
        others = [memory for memory in known.values() if memory not in same]
        return [*twins, *self._judged(new, others, neighbours, reads, audience)]

    def _judged(
        self, new: Memory, olds: Sequence[Memory], neighbours: Neighbours, reads: Reads, audience: Audience
    ) -> list[Proposal]:
        olds = [old for old in olds if is_english(old.text)] if is_english(new.text) else []
        if not olds:
            return []
        said = read(new.text)
        rarity = reads.rarity(sorted(said.words), audience)
        nearest = max(neighbours.near(old.id) for old in olds)
        found = []
        for old in olds:
            told, cosine = read(old.text), neighbours.near(old.id)
            kinds = neighbours.promising[old.id]
            seen = features(told, said, cosine=cosine, behind=nearest - cosine, kinds=kinds, rarity=rarity)
            score = probability(seen)
            short = max(len(old.text), len(new.text)) <= READ  # of an essay only the beginning was read
            sure = score >= SURE and short and not other_one(told, said)
            if score >= CANDIDATE:
                found.append(Proposal(memory=old, score=score, sure=sure))
        return sorted(found, key=lambda one: -one.score)

    def promising(self, vector: Vector, cosines: Mapping[str, float], reads: Reads) -> dict[str, Kinds]:
        """Those near enough to be judged, with what the vectors say of their kinds; the others need not be read."""
        least = max(cosines.values()) - FAR_BEHIND
        vectors = reads.vectors([one for one, cosine in cosines.items() if cosine >= least])
        return dict(zip(vectors, self._kinds(vector, list(vectors.values())), strict=True))

    def outdates(self, old: str, new: str, old_vector: Vector, new_vector: Vector) -> bool:
        """Whether one sentence, newer than another, very likely makes that one outdated."""
        if not (is_english(old) and is_english(new)):
            return False
        [kinds] = self._kinds(new_vector, [old_vector])
        cosine = float((old_vector * new_vector).sum())
        one, other = read(old), read(new)
        return probability(features(one, other, cosine=cosine, behind=0.0, kinds=kinds, rarity={})) >= SURE

    def _kinds(self, vector: Vector, others: Sequence[Vector]) -> list[Kinds]:
        if not others:
            return []
        if self._attributes is None:
            assert self._embedding.embedder is not None
            self._attributes = Attributes(self._embedding.embedder)
        profiles = self._attributes.profiles([vector, *others])
        return same_kinds(profiles[1:], profiles[0])


def current(old: Memory, new: Memory, now: datetime) -> bool:
    """Only what still counts as true can be outdated, and only by something newer."""
    alive = old.status is Status.ACTIVE and not old.expired(now)
    # A memory that is just being stored has no arrival number yet.
    earlier = (old.created_at, old.seq) < (new.created_at, new.seq or math.inf)
    return old.id != new.id and old.superseded_by is None and alive and earlier


def features(
    old: Reading, new: Reading, *, cosine: float, behind: float, kinds: Kinds, rarity: Rarity
) -> dict[str, float]:
    """All that the judge sees of a pair, by name; `behind` says how much nearer the nearest candidate is."""

    def weight(words: Iterable[str]) -> float:
        return sum(rarity.get(word, 1.0) for word in words)

    seen = differences(old, new, weight)
    same_kind, exclusive = kinds
    closeness = max(-2.5, min(1.5, (cosine - ON_ONE_SUBJECT) / SPREAD))
    return seen | {
        "closeness": closeness,
        "restated": max(0.0, (cosine - DIFFERENT) / TO_THE_SAME),
        "behind": behind / A_STEP,
        "nearest": float(behind == 0),
        "exclusive": exclusive,
        "close_subject": closeness * seen["subject_kept"],
        "close_named": closeness * seen["named"],
        "kind_subject": same_kind * seen["subject_kept"],
        "exclusive_equal": exclusive * seen["subject_equal"],
        "beginning_exclusive": exclusive * seen["same_beginning"],
        "change_equal": seen["subject_equal"] * max(seen["now"], min(1.0, seen["changes"])),
    }


def probability(seen: Mapping[str, float]) -> float:
    total = BIAS + sum(weight * seen[name] for name, weight in WEIGHTS.items())
    return 1 / (1 + math.exp(-total))


# --- reading a text --------------------------------------------------------------------------------------------------
#
# What a text is about and what it says of it, as far as words show; and how two texts differ in both.
#
#     The disk alert on pg-main fires at 80 %.
#     ───────── subject ─────── ── predicate ─
#     names: pg-main     numbers: 80
#
# Two texts are a change if the *subject* is the same thing and the *value* is another. A name, an identifier, a number
# in the subject of one that the other lacks makes it another thing of the same kind: another service, person, release.
# Only English has its grammar here; see `is_english`.

READ = 400  # characters of a text that are read
SUBJECT_AT_MOST = 10  # tokens

TOKEN = re.compile(r"`[^`]+`|[#.]?[^\W_]+(?:[-_'.:/][^\W_]+)*", re.UNICODE)
START = re.compile(r"(?:^|[.!?:;]\s+|\n+)\W*", re.UNICODE)


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


AUXILIARIES = words(
    "is are was were be been being has have had does do did will would can could may might must should shall isn't "
    "aren't wasn't weren't hasn't haven't hadn't doesn't don't didn't won't wouldn't can't cannot couldn't mustn't "
    "shouldn't"
)
PREPOSITIONS = words(
    "of in on at by for with from to into since until as after before about per over under between against without "
    "within during through than"
)
NOWADAYS = words("now nowadays currently anymore longer lately instead finally again already meanwhile")
NOWADAYS_PHRASES = ("any more", "from now on", "these days", "as of", "after all")
ADDED = words("also too another additionally besides addition additional extra both second")
ADDED_PHRASES = ("as well", "on top", "by contrast")
NOT_YET = words(
    "still yet pending undecided waiting planned plans planning provisional temporarily temporary draft open "
    "considering expected due tentative currently trial until"
)
CORRECTED = words("correction wrong mistake error misread typo slip actually corrected mistaken")
CHANGED = words(
    "moved move moves changed changes change switched switch replaced replaces replace swapped migrated migrate "
    "upgraded upgrade raised raise lowered increased decreased reduced cut dropped drop removed remove cancelled "
    "canceled postponed delayed extended shortened became become turned started stopped quit ended left joined "
    "retired resigned sold bought closed opened reopened finished done lifted abolished banned allowed approved "
    "rejected merged fixed solved renamed relocated converted restored recovered healed broke died born married "
    "divorced passed failed got went gave took reversed reverted adopted gone rose fell grew shrank down up "
    "bumped doubled halved rescheduled brought forward taken handed hired fired promoted"
)
DENIALS = words("no not never without none nobody nothing neither nor cannot")
SEASONS = words("may spring summer autumn winter")
# Of each row a thing is one: a text on one of them says nothing about another.
ROWS = tuple(
    words(row)
    for row in (
        "staging production prod dev development test testing preprod qa",
        "mother mum father dad brother sister wife husband son daughter aunt uncle cousin grandma grandpa grandmother "
        "grandfather niece nephew neighbour neighbor colleague boss",
        "left right",
        "internal external public private",
        "read reads write writes",
        "morning afternoon evening night",
        "first second third fourth fifth",
        "breakfast lunch dinner",
        "frontend backend database",
        "disk cpu memory network",
        "north south east west",
    )
)
NUMBER_WORDS = {
    "zero": "0", "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8",
    "nine": "9", "ten": "10", "eleven": "11", "twelve": "12", "thirteen": "13", "fourteen": "14", "fifteen": "15",
    "sixteen": "16", "seventeen": "17", "eighteen": "18", "nineteen": "19", "twenty": "20", "thirty": "30",
    "forty": "40", "fifty": "50", "first": "1", "third": "3", "fourth": "4", "fifth": "5", "half": "0.5", "noon": "12",
    "midnight": "0",
}  # fmt: skip
ORDINAL = re.compile(r"(?<=\d)(?:st|nd|rd|th)$")
FUNCTION_WORDS = (
    AUXILIARIES | PREPOSITIONS | DETERMINERS | ANYONE | NOWADAYS | words("and or but not no who which user")
)
FOREIGN = words(
    "der die das und ist nicht mit von für auf ein eine einen den dem des im zum zur wird sind hat haben wir sich nach "
    "le la les et est pas une des du dans pour sur avec nous vous il elle au aux ce cette sont ont que qui "
    "el los las y es una por para con del se su al más como lo está son ya desde "
    "il gli di che non per della nel sono è o um uma os as não com da na em ao foi mais "
    "het een van niet op zijn voor aan och att som på är av inte med til ikke af"
) - FUNCTION_WORDS - words("as die per son il a op")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reading:
    """What is compared of a text."""

    order: tuple[str, ...]  # all tokens, lower case
    end: int  # how many of them the subject has
    begins_with_name: bool  # "Anna Berg …", "Anna's …", "ledger-api …"
    tokens: frozenset[str]  # the same, in no order
    words: frozenset[str]  # stems of content words
    subject: frozenset[str]  # stems of the subject's content words
    subject_names: frozenset[str]  # names, identifiers and numbers in the subject
    names: frozenset[str]  # names and identifiers, wherever; at the start of a sentence only where they must be one
    maybe: frozenset[str]  # capitalised at the start of a sentence: a name, or any word
    numbers: frozenset[str]
    days: frozenset[str]
    before: Mapping[str, frozenset[str]]  # by content word, what it follows: "alert" -> "disk"
    denied: bool
    now: bool
    since: bool
    adds: bool
    corrects: bool
    not_yet: bool
    past: bool  # only speaks of what was
    changes: int  # words of change
    length: int


@lru_cache(maxsize=512)
def read(text: str) -> Reading:
    """Look at the first 400 characters: conflicts are between statements, not between essays."""
    text = text[:READ].replace("’", "'")
    matches = list(TOKEN.finditer(text))
    written = [match[0] for match in matches]
    lower = [token.lower().removesuffix("'s").strip("`") for token in written]
    starts = {match.end() for match in START.finditer(text)}
    names, maybe, numbers = set(), set(), set()
    for match, token, word in zip(matches, written, lower, strict=True):
        if is_number(word):
            numbers.add(number(word))
        elif is_identifier(token):
            names.add(word)
        elif token[0].isupper() and len(token) > 1 and word not in FUNCTION_WORDS and not is_day(word):
            if match.start() not in starts:
                names.add(word)
            elif word not in TALK and word not in ADDED:
                maybe.add(word)
    end = predicate(written, lower)
    content = [word for word in lower if is_content(word)]
    said, plain = frozenset(lower), text.lower()
    previous = dict[str, set[str]]()
    for one, other in pairwise(lower):
        if is_content(one) and is_content(other):
            previous.setdefault(root(other), set()).add(root(one))
    return Reading(
        order=tuple(lower),
        end=end,
        begins_with_name=begins_with_name(written, lower, names, maybe, end),
        tokens=said,
        words=frozenset(map(root, content)),
        subject=frozenset(root(word) for word in lower[:end] if is_content(word) and word not in ADDED),
        subject_names=frozenset(
            word for word in lower[:end] if word in names or word in maybe or (is_number(word) and number(word))
        ),
        names=frozenset(names),
        maybe=frozenset(maybe),
        numbers=frozenset(numbers),
        days=frozenset(word.removesuffix("s") for word in lower if is_day(word)),
        before={word: frozenset(found) for word, found in previous.items()},
        denied=not DENIALS.isdisjoint(said) or any(word.endswith("n't") for word in lower),
        now=not NOWADAYS.isdisjoint(said) or any(phrase in plain for phrase in NOWADAYS_PHRASES),
        since="since" in said,
        adds=not ADDED.isdisjoint(said) or any(phrase in plain for phrase in ADDED_PHRASES),
        corrects=not CORRECTED.isdisjoint(said) or re.search(r",? not \S+\.?$", text) is not None,
        not_yet=not NOT_YET.isdisjoint(said),
        past=(bool(said & {"was", "were", "had"}) or any(word.endswith("ed") for word in lower))
        and said.isdisjoint(("is", "are", "has", "have")),
        changes=len(said & CHANGED),
        length=len(lower),
    )


def is_number(word: str) -> bool:
    return word[0].isdigit() or word in NUMBER_WORDS


def number(word: str) -> str:
    return NUMBER_WORDS.get(word) or ORDINAL.sub("", word)


def is_day(word: str) -> bool:
    return word in CALENDAR or word in SEASONS or word.removesuffix("s") in CALENDAR


def is_identifier(token: str) -> bool:
    """make smoke-mail, `new_basket`, pg-main, TypeScript, API, docs/adr, TS-402."""
    odd = token[0] in "`#." or "_" in token or "/" in token or any(one.isdigit() for one in token)
    return odd or (len(token) > 2 and any(one.isupper() for one in token[1:])) or ("-" in token and len(token) > 5)


def is_content(word: str) -> bool:
    return (
        word not in TALK and word not in AUXILIARIES and word not in DETERMINERS and word not in PREPOSITIONS
        and not is_number(word)
    )  # fmt: skip


def predicate(written: list[str], lower: list[str]) -> int:
    """Where the subject ends: at the first auxiliary, or the first word that looks like a verb after a name."""
    begun = False
    for place, (token, word) in enumerate(zip(written[:SUBJECT_AT_MOST], lower, strict=False)):
        if word in AUXILIARIES or (begun and token.islower() and is_verb(word, written[place - 1])):
            return place
        begun = begun or (word not in DETERMINERS and word not in PREPOSITIONS)
    return min(3, len(lower))


def begins_with_name(written: list[str], lower: list[str], names: set[str], maybe: set[str], end: int) -> bool:
    """Whether the first word can only be a name: more of it follows, or a verb, or what belongs to it."""
    first = next((place for place, word in enumerate(lower[:end]) if word not in DETERMINERS), None)
    if first is None or not (lower[first] in names or lower[first] in maybe):
        return False
    return written[first].endswith("'s") or first + 1 >= end or lower[first + 1] in names


def is_verb(word: str, after: str) -> bool:
    if word in CHANGED or (word.endswith("ed") and len(word) > 4):
        return True
    third_person = word.endswith("s") and not word.endswith("ss") and len(word) > 3
    return third_person and not after.endswith("'s") and (after[0].isupper() or "-" in after)


def is_english(text: str) -> bool:
    """Whether the words that hold a sentence together are English, as far as there are any."""
    letters = [one for one in text[:READ] if one.isalpha()]
    if sum(one.isascii() for one in letters) < 0.9 * len(letters):
        return False
    tokens = [match.lower() for match in TOKEN.findall(text[:READ])]
    foreign = sum(token in FOREIGN for token in tokens)
    return foreign == 0 or foreign < sum(token in FUNCTION_WORDS for token in tokens)


# --- two texts -------------------------------------------------------------------------------------------------------


def differences(old: Reading, new: Reading, weight: Callable[[Iterable[str]], float]) -> dict[str, float]:
    """How two texts differ, as numbers that the judge's weights are for; `weight` says how much words tell."""

    def share(part: frozenset[str], whole: frozenset[str]) -> float:
        return weight(part) / max(0.3, weight(whole)) if whole else 0.5

    common = old.words & new.words
    context = min(1.0, weight(common) / 2)
    shared = {name for name in old.names | old.maybe | new.names | new.maybe if name in old.tokens & new.tokens}
    named = float(bool(shared))
    old_only, new_only = old.names - new.tokens, new.names - old.tokens
    kept = old.subject_names & (new.tokens | new.numbers)
    begins = new.subject_names & (old.tokens | old.numbers)
    other_numbers = bool(old.numbers) and bool(new.numbers) and not old.numbers & new.numbers
    denial = float(old.denied != new.denied)
    covered = share(old.subject & new.words, old.subject)
    return {
        "named": named,
        "only_others": float(bool(old_only) and bool(new_only) and not shared),
        "other_subject": float(bool(old.subject_names) and bool(new.subject_names) and not kept and not begins),
        "subject_lost": float(bool(old.subject_names) and not kept),
        "subject_begins": float(bool(new.subject_names) and not begins),
        "subject_kept": covered,
        "subject_alike": share(old.subject & new.subject, old.subject | new.subject),
        "shared": share(common, old.words | new.words),
        "shared_old": share(common, old.words),
        "shared_none": float(not common),
        "numbers_other": float(other_numbers),
        "numbers_other_there": context * other_numbers,
        "numbers_partly": float(bool(old.numbers & new.numbers) and bool(new.numbers - old.numbers)),
        "numbers_same": float(bool(old.numbers) and old.numbers == new.numbers),
        "numbers_gone": float(bool(old.numbers) and not new.numbers),
        "days_other": float(bool(old.days) and bool(new.days) and not old.days & new.days),
        "denial": denial,
        "denial_there": context * denial,
        "denied_new": float(new.denied),
        "denied_old": float(old.denied),
        "now": float(new.now),
        "now_there": context * new.now,
        "now_named": named * new.now,
        "since": float(new.since),
        "adds": float(new.adds),
        "corrects": float(new.corrects),
        "corrects_there": context * new.corrects,
        "changes": float(min(2, new.changes)),
        "changes_there": context * min(2, new.changes),
        "changes_named": named * min(1, new.changes),
        "not_yet_there": context * old.not_yet,
        "old_past": float(old.past),
        "old_changes": float(min(2, old.changes)),
        "both_past": float(old.past and new.past),
        "old_length": min(40, old.length) / 20,
        "other_part": float(other_part(old, new, common)),
        "other_of_row": float(any(of_row(row, old, new) for row in ROWS)),
        "number_in_subject": float(number_in_subject(old, new)),
        "subject_named": covered * named,
        "subject_equal": float(bool(old.subject) and old.subject == new.subject),
        "other_one": float(other_one(old, new)),
        "same_beginning": same_beginning(old, new),
        "only_the_end": float(same_beginning(old, new, at_least=4) >= 0.5),
    }


def other_part(old: Reading, new: Reading, common: frozenset[str]) -> bool:
    """The disk alert, the CPU alert: a word of both follows a word in each that the other has not."""
    for word in common:
        one, other = old.before.get(word), new.before.get(word)
        if one and other and not one & new.words and not other & old.words:
            return True
    return False


def other_one(old: Reading, new: Reading) -> bool:
    """Both begin with the name of what they are about, and it is another."""
    if not (old.begins_with_name and new.begins_with_name):
        return False
    return not old.subject_names & new.tokens and not new.subject_names & old.tokens


def same_beginning(old: Reading, new: Reading, *, at_least: int = 1) -> float:
    """The share of both that is word for word the same from the start, if the subject and the verb are in it."""
    same = next(
        (place for place, (one, other) in enumerate(zip(old.order, new.order, strict=False)) if one != other),
        min(len(old.order), len(new.order)),
    )
    return same / max(len(old.order), len(new.order)) if same > max(old.end, new.end, at_least - 1) else 0.0


def of_row(row: frozenset[str], old: Reading, new: Reading) -> bool:
    one, other = row & old.tokens, row & new.tokens
    return bool(one) and bool(other) and not one & other


def number_in_subject(old: Reading, new: Reading) -> bool:
    """Incident 771, incident 784: numbers that say which, not how much."""
    one, other = ({name for name in side.subject_names if is_number(name)} for side in (old, new))
    return bool(one) and bool(other) and not one & other


# --- as a store uses it ----------------------------------------------------------------------------------------------


def find_proposals(
    engine: Engine, memory: Memory, neighbours: Neighbours, audience: Audience, fingerprint: bytes
) -> list[Proposal]:
    """What a memory may outdate, among what its user may see."""
    same_words = [one for one in engine.records.history.same_text(fingerprint, audience) if one.kind is Kind.MEMORY]
    return engine.parts.judge.proposals(
        memory, neighbours, engine.records, audience, same_words=same_words, now=engine.now()
    )


def sure_hint(proposals: Iterable[Proposal]) -> Proposal | None:
    return next((one for one in proposals if one.sure), None)


def propose(engine: Engine, tx: Transaction, memory: Memory, proposals: Sequence[Proposal]) -> bool:
    """Open a conflict for the sure hint, if there is one."""
    if (hint := sure_hint(proposals)) is not None:
        engine.ledger.link(tx, LinkKind.MAY_OUTDATE, memory, hint.memory, score=hint.score, given=False)
    return hint is not None


def stored_result(memory: Memory, proposals: Sequence[Proposal], *, degraded: str | None, links: int) -> Stored:
    """The answer to a store: the sure hint, and what else is worth a reader's look, twins first."""
    hint = sure_hint(proposals)
    rest = sorted((one for one in proposals if one is not hint), key=lambda one: not one.same)[:MOST]
    return Stored(
        memory=memory,
        similar=() if hint is None else (hint.memory,),
        candidates=tuple(one.memory for one in rest),
        same=tuple(one.memory.id for one in rest if one.same),
        degraded=degraded,
        links=links,
    )


def judge_late(engine: Engine, memory: Memory, vector: Vector) -> None:
    """Judge a memory that had no vector when it was stored."""
    audience = access.own_audience(engine.caller, memory)
    neighbours = find_neighbours(engine, memory, vector, audience)
    proposals = find_proposals(engine, memory, neighbours, audience, intake.fingerprint(memory))
    hint = sure_hint(proposals)
    if hint is None:
        return
    with engine.records.writing() as tx:
        pair = {memory.id, hint.memory.id}
        links = tx.history.links([memory.id], kinds=frozenset({LinkKind.MAY_OUTDATE}))
        if any({link.source, link.target} == pair for link in links):
            return  # it was proposed before, here or elsewhere, and perhaps settled
        if propose(engine, tx, memory, proposals):  # no other event tells the feed of this link
            engine.ledger.record(tx, memory, "linked")
