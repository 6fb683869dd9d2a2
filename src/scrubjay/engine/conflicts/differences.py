"""How two texts differ, as numbers that the judge has weights for, and how likely that makes it that one is outdated.

Two texts are a change if the *subject* is the same thing and the *value* is another. A name, an identifier, a number in
the subject of one that the other lacks makes it another thing of the same kind: another service, person, release.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

from scrubjay.engine.conflicts.reading import ROWS, Reading, is_number
from scrubjay.engine.conflicts.weights import BIAS, WEIGHTS

# Cosines: of any two facts on one subject; what two different facts reach, and beyond it nearly the same sentence.
ON_ONE_SUBJECT, SPREAD = 0.85, 0.10
DIFFERENT, TO_THE_SAME = 0.92, 0.06
A_STEP = 0.05  # by which one may lie behind the nearest

Rarity = Mapping[str, float]  # how much a word tells, 0..1; what is not in it is as rare as can be
Kinds = tuple[float, float]  # how far two texts are of the same kind, and of one that has one value at a time


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
