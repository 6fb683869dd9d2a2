"""What becomes of two states of one memory that meet: pure functions over what travels.

    one includes the other      the later one stays, no question
    both alike                  the one with the higher stamp stays, so that all stores choose the same
    apart                       a conflict: a policy decides, and it is recorded
    erased for good             wins over everything; what it did not know of is a recorded conflict

`newest_wins` keeps the winner's own stamp, so that in whatever order stores meet, the newest edit wins everywhere. The
other policies make a new state, stamped by the store that decided, which includes both. So does `newest_wins` where one
stamp is from the future: a clock that is ahead loses, and the decision must hold in stores that meet the two later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from enum import StrEnum

from scrubjay.stores.promises.sync import MAX_CLOCK, Erased, Replica, Stamp
from scrubjay.values.frozen import dataclass, replace
from scrubjay.values.memory import Memory, all_phrases


class WinnerPolicy(StrEnum):
    """How a conflict is decided, seen from the store that takes the other's state in."""

    INCOMING = "incoming"
    CURRENT = "current"
    NEWEST = "newest_wins"
    MERGE = "merge"
    MANUAL = "manual"


class Winner(StrEnum):
    CURRENT = "current"
    INCOMING = "incoming"
    BOTH = "both"
    NONE = "none"  # a person has to decide


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """The outcome: what to write, if anything, and whether something was decided against someone's change."""

    state: Replica | None = None  # None: what is here stays as it is
    stamped_anew: bool = False  # the state is a change of its own and needs a stamp
    conflict: bool = False
    winner: Winner = Winner.CURRENT


# The stamp, the store or the links say these already: two states may differ in them and still be alike.
BESIDE = {"version", "hlc", "origin", "seq", "updated_at", "accessed_at", "access_count", "supersedes", "superseded_by"}
CONTENT = tuple(entry.name for entry in fields(Memory) if entry.name not in BESIDE)


PHRASES = {"also", "flags"}  # all that a change of phrases changes


def includes(one: Stamp, other: Stamp) -> bool:
    """Whether the change that made the other state went into this one."""
    if one.origin == other.origin and one.hlc >= other.hlc:
        return True
    return one.seen.get(other.origin, 0) >= other.hlc


def differing(one: Memory, other: Memory) -> tuple[str, ...]:
    return tuple(name for name in CONTENT if getattr(one, name) != getattr(other, name))


def join_replicas(
    current: Replica | None, incoming: Replica, policy: WinnerPolicy, *, latest: int = MAX_CLOCK
) -> Joined:
    """What a store that has `current` makes of another's `incoming`. A stamp behind `latest` is from the future."""
    if current is None:
        return Joined(state=incoming, winner=Winner.INCOMING)
    ours, theirs = current.stamp, incoming.stamp
    apart = not includes(ours, theirs) and not includes(theirs, ours)
    final = Erased.FINAL in (ours.erased, theirs.erased)
    if apart and not final and differing(current.memory, incoming.memory):
        return _decide(current, incoming, policy, latest)
    same = (ours.hlc, ours.origin) == (theirs.hlc, theirs.origin)
    takes = _rank(theirs) > _rank(ours) if apart or final or same else includes(theirs, ours)
    winner, loser = (incoming, current) if takes else (current, incoming)
    lost = final and loser.erased is not Erased.FINAL and not includes(winner.stamp, loser.stamp)
    return _keep_winner(current, winner, loser, conflict=lost)


def merge_memories(newer: Memory, older: Memory) -> Memory:
    """The newer one with what the older one had beside it: tags, phrases and metadata of both, the higher count of
    reads."""
    return replace(
        newer,
        tags=tuple(dict.fromkeys((*newer.tags, *older.tags))),
        also=all_phrases(newer, older),
        metadata={**older.metadata, **newer.metadata},
        access_count=max(newer.access_count, older.access_count),
        accessed_at=max(newer.accessed_at, older.accessed_at),
    )


def _rank(stamp: Stamp) -> tuple[bool, int, str, bool]:
    """A total order, the same in every store. A tombstone has the stamp of the deletion whose date had come."""
    return (stamp.erased is Erased.FINAL, stamp.hlc, stamp.origin, bool(stamp.erased))


def _keep_winner(current: Replica, winner: Replica, loser: Replica, *, conflict: bool) -> Joined:
    """The winner with its own stamp, knowing of the other."""
    same = (winner.memory.hlc, winner.memory.origin) == (loser.memory.hlc, loser.memory.origin)
    differ = {*differing(winner.memory, loser.memory)}
    rephrased = "also" in differ and differ <= PHRASES  # which makes no version, here as where it was done
    version = max(winner.memory.version, loser.memory.version + (0 if same or rephrased else 1))
    aliases = () if winner.erased else tuple(sorted({*winner.aliases, *loser.aliases}))
    state = replace(
        winner, memory=replace(winner.memory, version=version), seen=_changes_seen(winner, loser), aliases=aliases
    )
    side = Winner.CURRENT if winner is current else Winner.INCOMING
    if state.stamp == current.stamp:
        return Joined(conflict=conflict, winner=side)
    return Joined(state=state, conflict=conflict, winner=side)


def _decide(current: Replica, incoming: Replica, policy: WinnerPolicy, latest: int) -> Joined:
    if policy is WinnerPolicy.MANUAL:
        return Joined(conflict=True, winner=Winner.NONE)
    newer, older = sorted((incoming, current), key=lambda one: _rank(one.stamp), reverse=True)
    doubted = newer.memory.hlc > latest >= older.memory.hlc
    if doubted:
        newer, older = older, newer
    # Of an erased one nothing is left to merge.
    newest = policy is WinnerPolicy.NEWEST or (policy is WinnerPolicy.MERGE and (newer.erased or older.erased))
    if newest and not doubted:
        return _keep_winner(current, newer, older, conflict=True)
    if newest:
        memory, base, winner = newer.memory, newer, Winner.CURRENT if newer is current else Winner.INCOMING
    elif policy is WinnerPolicy.MERGE:
        memory, base, winner = merge_memories(newer.memory, older.memory), newer, Winner.BOTH
    elif policy is WinnerPolicy.INCOMING:
        memory, base, winner = incoming.memory, incoming, Winner.INCOMING
    else:
        memory, base, winner = current.memory, current, Winner.CURRENT
    both = (current.memory, incoming.memory)
    memory = replace(
        memory,
        version=max(one.version for one in both) + 1,
        updated_at=max(one.updated_at for one in both),
    )
    state = replace(
        base,
        memory=memory,
        seen=_changes_seen(current, incoming, with_own=True),
        aliases=() if base.erased else tuple(sorted({*current.aliases, *incoming.aliases})),
    )
    return Joined(state=state, stamped_anew=True, conflict=True, winner=winner)


def _changes_seen(winner: Replica, loser: Replica, *, with_own: bool = False) -> Mapping[str, int]:
    """All changes that went into either; the winner's own is said by its stamp unless it gets another."""
    seen: dict[str, int] = {}
    own = ((one.memory.origin, one.memory.hlc) for one in (winner, loser))
    for origin, hlc in (*winner.seen.items(), *loser.seen.items(), *own):
        seen[origin] = max(seen.get(origin, 0), hlc)
    if not with_own and seen[winner.memory.origin] <= winner.memory.hlc:
        del seen[winner.memory.origin]
    return dict(sorted(seen.items()))
