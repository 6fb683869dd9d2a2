"""How two texts differ, as numbers that the judge has weights for, and how likely that makes it that one is outdated.

Two texts are a change if the *subject* is the same thing and the *value* is another. A name, an identifier, a number in
the subject of one that the other lacks makes it another thing of the same kind: another service, person, release.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from scrubjay.engine.conflicts.weights import BIAS, INNER, MIDDLE, OUTER
from scrubjay.lazy import numpy as np
from scrubjay.text.reading import CORRECTED, READ, Text, read
from scrubjay.text.statements import (
    GAINED,
    LASTING,
    denies_another_thing,
    denies_or_ends,
    holds_beside,
    is_passing_event,
    is_past_event,
    is_plan,
)
from scrubjay.text.tokens import word_set

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Cosines: of any two facts on one subject; what two different facts reach, and beyond it nearly the same sentence.
ON_ONE_SUBJECT, SPREAD = 0.85, 0.10
DIFFERENT, TO_THE_SAME = 0.92, 0.06
A_STEP = 0.05  # by which one may lie behind the nearest

Rarity = Mapping[str, float]  # how much a word of the new text tells, 0..1; others are as rare as can be
Kinds = tuple[float, float]  # how far two texts are of the same kind, and of one that has one value at a time


def features(old: Text, new: Text, *, cosine: float, behind: float, kinds: Kinds, rarity: Rarity) -> dict[str, float]:
    """All that the judge sees of a pair, by name; `behind` says how much nearer the nearest candidate is."""
    seen = differences(old, new, rarity)
    same_kind, exclusive = kinds
    closeness = max(-2.5, min(1.5, (cosine - ON_ONE_SUBJECT) / SPREAD))
    seen["closeness"] = closeness
    seen["restated"] = max(0.0, (cosine - DIFFERENT) / TO_THE_SAME)
    seen["behind"] = behind / A_STEP
    seen["nearest"] = float(behind == 0)
    seen["exclusive"] = exclusive
    seen["close_subject"] = closeness * seen["subject_kept"]
    seen["close_named"] = closeness * seen["named"]
    seen["kind_subject"] = same_kind * seen["subject_kept"]
    seen["exclusive_equal"] = exclusive * seen["subject_equal"]
    seen["beginning_exclusive"] = exclusive * seen["same_beginning"]
    seen["change_equal"] = seen["subject_equal"] * max(seen["now"], min(1.0, seen["changes"]))
    return seen


class ConflictNetwork(NamedTuple):
    """A layer of a few bent sums of all features, and their sum: two features may count otherwise together."""

    features: Callable[[Mapping[str, float]], tuple[float, ...]]
    inner: NDArray[np.float64]
    middle: NDArray[np.float64]
    outer: NDArray[np.float64]
    bias: float


def network_of(inner: Mapping[str, Sequence[float]], middle: Any, outer: Any, bias: float) -> ConflictNetwork:
    return ConflictNetwork(itemgetter(*inner), np.array(list(inner.values())), np.array(middle), np.array(outer), bias)


@cache
def network() -> ConflictNetwork:
    return network_of(INNER, MIDDLE, OUTER, BIAS)


def probabilities(seen: Sequence[Mapping[str, float]]) -> list[float]:
    """How likely it is that the earlier text of each pair is outdated."""
    judge = network()
    sums = np.tanh(np.array(list(map(judge.features, seen))) @ judge.inner + judge.middle) @ judge.outer + judge.bias
    found: list[float] = (1 / (1 + np.exp(-sums))).tolist()
    return found


def probability(seen: Mapping[str, float]) -> float:
    return probabilities([seen])[0]


def differences(old: Text, new: Text, rarity: Rarity) -> dict[str, float]:
    """How two texts differ in what they are about and in what they say of it."""

    def weight(words: Iterable[str]) -> float:
        return sum([rarity.get(word, 1.0) for word in words])

    def share(part: float, whole: float, there: object) -> float:
        return part / max(0.3, whole) if there else 0.5

    # What only the old text has is as rare as can be: its words need no looking up, only counting.
    common, kept_words = old.words & new.words, old.subject & new.words
    in_common, in_kept, in_both = weight(common), weight(kept_words), weight(old.subject & new.subject)
    in_old = in_common + len(old.words) - len(common)
    in_subject = in_kept + len(old.subject) - len(kept_words)
    context = min(1.0, in_common / 2)
    both = old.tokens & new.tokens
    shared = not (
        both.isdisjoint(old.names) and both.isdisjoint(new.names)
        and both.isdisjoint(old.maybe) and both.isdisjoint(new.maybe)
    )  # fmt: skip
    named = float(shared)
    kept = not (old.subject_names.isdisjoint(new.tokens) and old.subject_names.isdisjoint(new.numbers))
    begins = not (new.subject_names.isdisjoint(old.tokens) and new.subject_names.isdisjoint(old.numbers))
    denial = float(old.denied != new.denied)
    covered = share(in_kept, in_subject, old.subject)
    beginning = same_beginning(old, new)
    return number_differences(old, new, context) | {
        "named": named,
        "only_others": float(not shared and not old.names <= new.tokens and not new.names <= old.tokens),
        "other_subject": float(bool(old.subject_names) and bool(new.subject_names) and not kept and not begins),
        "subject_lost": float(bool(old.subject_names) and not kept),
        "subject_begins": float(bool(new.subject_names) and not begins),
        "subject_kept": covered,
        "subject_alike": share(in_both, in_subject + weight(new.subject) - in_both, old.subject or new.subject),
        "shared": share(in_common, in_old + weight(new.words) - in_common, old.words or new.words),
        "shared_old": share(in_common, in_old, old.words),
        "shared_none": float(not common),
        "denial": denial,
        "denial_there": context * denial,
        "denial_of_all": float(denies(old, new)),
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
        "other_of_row": float(any(other_of_row(old, new, row) for row in old.of_rows)),
        "number_in_subject": float(number_in_subject(old, new)),
        "subject_named": covered * named,
        "subject_equal": float(bool(old.subject) and old.subject == new.subject),
        "other_one": float(other_one(old, new)),
        "same_beginning": share_of_both(old, new, beginning) if beginning else 0.0,
        "only_the_end": float(beginning >= 4 and share_of_both(old, new, beginning) >= 0.5),
    }


def number_differences(old: Text, new: Text, context: float) -> dict[str, float]:
    """How two texts differ in their numbers and days; `context` says how much else they have in common."""
    other_numbers = bool(old.numbers) and bool(new.numbers) and old.numbers.isdisjoint(new.numbers)
    return {
        "numbers_other": float(other_numbers),
        "numbers_other_there": context * other_numbers,
        "numbers_partly": float(not old.numbers.isdisjoint(new.numbers) and not new.numbers <= old.numbers),
        "numbers_same": float(bool(old.numbers) and old.numbers == new.numbers),
        "numbers_gone": float(bool(old.numbers) and not new.numbers),
        "days_other": float(bool(old.days) and bool(new.days) and old.days.isdisjoint(new.days)),
    }


def other_part(old: Text, new: Text, common: frozenset[str]) -> bool:
    """The disk alert, the CPU alert: a word of both follows a word in each that the other has not."""
    for word in common:
        one, other = old.before.get(word), new.before.get(word)
        if one and other and one.isdisjoint(new.words) and other.isdisjoint(old.words):
            return True
    return False


def other_one(old: Text, new: Text) -> bool:
    """Both begin with the name of what they are about, and it is another."""
    if not (old.begins_with_name and new.begins_with_name):
        return False
    return old.subject_names.isdisjoint(new.tokens) and new.subject_names.isdisjoint(old.tokens)


NUMBERED = re.compile(r"([^\W\d_]+)\d+$")


def other_number(old: Text, new: Text) -> bool:
    """db1, db2: a number says which one each speaks of, and it is another. A version (v2) is rather a value."""
    kinds = {match[1] for name in old.names - new.tokens if (match := NUMBERED.match(name))}
    return any(
        match[1] in kinds and match[1] != "v" for name in new.names - old.tokens if (match := NUMBERED.match(name))
    )


def other_letter(old: Text, new: Text) -> bool:
    """Room A, Room B: a letter says which one each speaks of, and it is another."""
    kinds = {kind for kind, _ in old.subject_letters} & {kind for kind, _ in new.subject_letters}
    return bool(kinds) and old.subject_letters.isdisjoint(new.subject_letters)


TURNED = word_set("back out hold drops came alone everywhere unplugged")  # a change, where nothing else differs
ON_THE_HOUR = re.compile(r"(\d\d?)[:.]00$")


def restates(old: Text, new: Text, cosine: float) -> bool:
    """The same said again in other words: the same names, figures and days, and no word of a change. What only ends
    otherwise has another value."""
    if cosine < DIFFERENT or new.now or new.since or new.corrects or new.changes or not TURNED.isdisjoint(new.tokens):
        return False
    if denies(old, new):
        return False
    named = new.names <= old.tokens and old.names <= new.tokens and new.days == old.days
    return named and same_figures(old, new) and not same_beginning(old, new)


def denies_something_else(old: str, new: str, seen: Mapping[str, float]) -> bool:
    """Whether both texts deny something ("does not eat pork", "does not eat beef"), or one denies of another thing what
    the other text says. Not where the newer one corrects: "wrong: it is on the 13th, not the 3rd"."""
    if denies_or_ends(old) and denies_or_ends(new) and not seen["numbers_other"]:
        return True
    one, other = read(old), read(new)
    if one.denied == other.denied or not CORRECTED.isdisjoint(other.tokens):
        return False
    return denies_another_thing(*((new, old) if other.denied else (old, new)))


# What texts say themselves of a change. That they are the nearest, and of a kind that has one value at a time, is none.
EVIDENCE = ("now", "since", "corrects", "denial", "numbers_other", "numbers_partly", "days_other", "not_yet_there")


def is_unsupported(old: str, new: str, seen: Mapping[str, float]) -> bool:
    """Whether the texts themselves do not bear out that the newer one outdates the older, however likely it seems: that
    is left to a reader."""
    one, other = read(old), read(new)
    if denies_something_else(old, new, seen):
        return True
    if not other.corrects and (is_past_event(old) or (is_passing_event(new) and not one.not_yet)):
        return True
    if (
        is_plan(new)
        or other_identifiers(one, other)
        or (seen["other_of_row"] and not (seen["changes"] or other.now or other.corrects))
    ):
        return True
    if any(seen[name] for name in EVIDENCE):
        return False
    if holds_beside(old, new):
        return (LASTING - GAINED).isdisjoint(other.tokens)
    return not seen["changes"] and same_start(one, other) < 3  # "we deploy with Jenkins", "we deploy with Make"


def other_identifiers(old: Text, new: Text) -> bool:
    """Both have identifiers with a sign in them (catalog-api, lock_timeout), and none in common."""
    told, said = ({name for name in text.names if "-" in name or "_" in name} for text in (old, new))
    return bool(told) and bool(said) and told.isdisjoint(new.tokens) and said.isdisjoint(old.tokens)


SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
TELL_OF_ONE_THING = 4.0  # rare words that two sentences have in common, from which on that is certain


def told_otherwise(old: str, new: str, rarity: Rarity) -> float:
    """How surely a turn of a conversation contradicts what an earlier one said; certain from 1 on.

    A turn thanks, asks and tells in one breath. So it is compared sentence by sentence: what two of them have in common
    of rare words, if the newer one has another number or day, or says that it is so now.
    """
    common = (
        sum([rarity.get(word, 1.0) for word in told.words & said.words])
        for said in sentences(new)
        for told in sentences(old)
        if said.now or said.corrects or differ(told.numbers, said.numbers) or differ(told.days, said.days)
    )
    return max(common, default=0.0) / TELL_OF_ONE_THING


@lru_cache(maxsize=500)
def sentences(text: str) -> tuple[Text, ...]:
    return tuple(map(read, SENTENCE.split(text[:READ])))


def differ(old: frozenset[str], new: frozenset[str]) -> bool:
    return bool(old) and bool(new) and old != new


def denies(old: Text, new: Text) -> bool:
    """One of them denies the very words of the other."""
    denied, said = (new, old) if new.denied else (old, new)
    return old.denied != new.denied and said.words <= denied.words


def same_figures(old: Text, new: Text) -> bool:
    """Whether both have the same numbers; 19:00 in one of them may be 7 (pm) in the other."""
    one, other = figures(old) - figures(new), figures(new) - figures(old)
    if any(map(ON_THE_HOUR.match, one)) == any(map(ON_THE_HOUR.match, other)):
        return one == other
    return set(map(hour, one)) == set(map(hour, other))


def figures(text: Text) -> frozenset[str]:
    return text.numbers - {"1"} if "one" in text.tokens else text.numbers  # "a fresh one" is not a number


def hour(number: str) -> str:
    on_the_hour = ON_THE_HOUR.match(number)
    return str(int(on_the_hour[1]) % 12 or 12) if on_the_hour else number


def same_beginning(old: Text, new: Text) -> int:
    """How many tokens are word for word the same from the start; 0 unless the subject and the verb are among them."""
    same = same_start(old, new)
    return same if same > max(old.end, new.end) else 0


def same_start(old: Text, new: Text) -> int:
    """How many tokens two texts begin with alike."""
    pairs = zip(old.order, new.order, strict=False)
    return next((place for place, (one, other) in enumerate(pairs) if one != other), min(old.length, new.length))


def share_of_both(old: Text, new: Text, tokens: int) -> float:
    return tokens / max(len(old.order), len(new.order))


def other_of_row(old: Text, new: Text, row: int) -> bool:
    return row in new.of_rows and old.of_rows[row].isdisjoint(new.of_rows[row])


def number_in_subject(old: Text, new: Text) -> bool:
    """Incident 771, incident 784: numbers that say which, not how much."""
    one, other = old.subject_numbers, new.subject_numbers
    return bool(one) and bool(other) and one.isdisjoint(other)
