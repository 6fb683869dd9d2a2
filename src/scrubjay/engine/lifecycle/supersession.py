"""What supersedes a memory, and in whose view.

A memory is superseded while at least one of its successors is not deleted, through any number of steps: deleting the
last of a chain brings the one before it back, recovering it hides that again, and deleting one in between changes
nothing for those before it.

It counts for those who may see both. If everyone who may see the memory may see its successor, the memory itself says
so (`superseded_by`, and the state that follows). Otherwise it is an aside: the store tells it to those who may see the
successor, and for everyone else the memory stays current and no hidden memory is named. All of it follows from links
and from who may see what, so it is settled again whenever one of these changes, and does not change the memory.

So does the end of a memory that had none of its own: it was true until its successor was, or until that was said. When
nothing supersedes it any more, it has no end again. An end that someone gave is never touched: a memory that got one,
or that had one when it was superseded, says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from scrubjay.engine import access
from scrubjay.stores.promises.memories import Reads, Transaction
from scrubjay.stores.promises.sync import Aside
from scrubjay.values.frozen import replace
from scrubjay.values.memory import Link, LinkKind, Memory, Status

SUPERSEDES = frozenset({LinkKind.SUPERSEDES})
RELEASED = "released"  # of a link: it once said that one memory supersedes another
PLAIN = replace(access.EVERYTHING, reach=())  # every memory as it is for everyone: without asides
GIVEN = "end_given"  # in the detail of a memory: its end does not come from being superseded
SAME_MOMENT = timedelta(seconds=1)  # earlier versions read the clock twice: for the link, and then for the end


class Successor(NamedTuple):
    """What supersedes a memory for everyone, and since when."""

    id: str
    since: datetime


def plain(reads: Reads, memory: Memory) -> Memory:
    """What the memory says to everyone who may see it."""
    return next(iter(reads.get([memory.id], PLAIN)))


def settle(tx: Transaction, memory: Memory) -> bool:
    """Let a memory, read plainly, say what its links say: what it supersedes, by what it is superseded and, if it had
    no end of its own, since when; whether the first two were news to everyone.

    It follows from links and what they lead to, so it does not change the memory: no version, no stamp, and no edit
    made in another store meanwhile loses to it.
    """
    older, some_older = newest_predecessor(tx, memory)
    newer, some_newer = newest_successor(tx, memory)
    asides = sorted(
        [*(Aside("supersedes", link.target, link.hlc) for link in some_older),
         *(Aside("superseded_by", link.source, link.hlc) for link in some_newer)]
    )  # fmt: skip
    name = newer.id if newer is not None else None
    ended = own_end(tx, memory) or (newer.since if newer is not None else None)
    news = (older, name) != (memory.supersedes, memory.superseded_by)
    if news or ended != memory.valid_until or asides != tx.sync.asides(memory.id):
        tx.sync.point(memory.id, supersedes=older, superseded_by=name, valid_until=ended, asides=asides)
    return news


def own_end(reads: Reads, memory: Memory) -> datetime | None:
    """Until when a memory was true by itself: its end, unless that came from being superseded."""
    end = memory.valid_until
    if GIVEN in memory.detail:
        return end
    found: set[str] = set()
    front = [memory.id] if end is not None else []
    while end is not None and front:
        links = [link for link in reads.history.links(front, kinds=SUPERSEDES) if link.target in front]
        sources = sorted({link.source for link in links})
        if any(link.created_at <= end < link.created_at + SAME_MOMENT for link in links):
            return None
        # Also of those that were erased: a tombstone keeps its times. And what they said before: they say another time
        # now, which the end is to follow.
        began = {one.memory.valid_from for one in reads.sync.replicas(sources, access.EVERYTHING)}
        began |= {one.memory.valid_from for name in sources for one in reads.history.versions(name)}
        if end in began:
            return end if _had_end_before(reads, memory.id, end) else None
        front = [name for name in sources if name not in found]
        found.update(front)
    return end


def _had_end_before(reads: Reads, id: str, end: datetime) -> bool:
    """Whether a memory had this end before it was superseded; one that was said to be given was taken away since."""
    states = (version.memory for version in reads.history.versions(id))
    return any(one.valid_until == end for one in states if one.superseded_by is None and GIVEN not in one.detail)


def with_given_end(reads: Reads, known: Memory, memory: Memory) -> Memory:
    """A memory that someone changes, saying whether its end was given.

    It says so whatever supersedes it: that alone must not tell of a successor that the reader may not see.
    """
    if memory.valid_until is None and own_end(reads, known) is None:
        memory = replace(memory, valid_until=known.valid_until)  # this one follows from links: nothing to take away
    same = memory.valid_until == known.valid_until
    return said_given(memory, GIVEN in known.detail if same else memory.valid_until is not None)


def said_given(memory: Memory, given: bool) -> Memory:
    if given == (GIVEN in memory.detail):
        return memory
    rest = {name: value for name, value in memory.detail.items() if name != GIVEN}
    return replace(memory, detail={**rest, GIVEN: True} if given else rest)


def newest_predecessor(reads: Reads, memory: Memory) -> tuple[str | None, list[Link]]:
    """The newest that a memory supersedes, as far as everyone may see it; and links to those that only some may."""
    links = [link for link in _standing(reads, [memory.id]) if link.source == memory.id]
    known = _by_id(reads, [link.target for link in links])
    hidden = [link for link in links if link.target in known and not access.as_open(known[link.target], memory)]
    told = [link for link in links if link not in hidden]
    return (_newest(told).target if told else None), hidden


def newest_successor(reads: Reads, outdated: Memory) -> tuple[Successor | None, list[Link]]:
    """The newest that supersedes a memory for everyone, since the first of them did; and links from those that do so
    for some only. In the place of those that are deleted stand their own successors."""
    found = {outdated.id}
    front = found
    for_some: list[Link] = []
    while front:
        links = [link for link in _standing(reads, sorted(front)) if link.target in front and link.source not in found]
        there = _by_id(reads, [link.source for link in links])
        alive = {name: memory for name, memory in there.items() if memory.status is not Status.DELETED}
        open_to_all = {name for name, memory in alive.items() if access.as_open(memory, outdated)}
        for_some += [link for link in links if link.source in alive.keys() - open_to_all]
        if told := [link for link in links if link.source in open_to_all]:
            since = min(there[link.source].valid_from or link.created_at for link in told)
            return Successor(_newest(told).source, since), for_some
        found |= {link.source for link in links}
        front = {link.source for link in links} - alive.keys()
    return None, for_some


def successors(reads: Reads, memory: Memory) -> set[str]:
    """Everything that supersedes this memory, through any number of steps."""
    found: set[str] = set()
    front = [memory.id]
    while front:
        links = _standing(reads, front)
        front = [link.source for link in links if link.target in front and link.source not in found]
        found.update(front)
    return found


def predecessors(reads: Reads, ids: Iterable[str]) -> Iterator[Memory]:
    """What these supersede and, where that is deleted, what it had superseded in turn."""
    found = set(ids)
    front = found
    while front:
        links = reads.history.links(sorted(front), kinds=SUPERSEDES)
        front = {link.target for link in links if link.source in front} - found
        found |= front
        memories = reads.get(sorted(front), PLAIN)
        yield from memories
        front -= {memory.id for memory in memories if memory.status is not Status.DELETED}


def neighbours(reads: Reads, memory: Memory) -> list[Memory]:
    """The memory itself and all that its supersessions lead to: what is settled again when others may see it."""
    links = reads.history.links([memory.id], kinds=SUPERSEDES)
    ends = {end for link in links for end in (link.source, link.target)}
    if not ends:
        return []
    gone = ends if memory.status is Status.DELETED else ()
    return [*reads.get(sorted(ends), PLAIN), *predecessors(reads, gone)]


def ends_of(links: Iterable[Link]) -> list[str]:
    """The memories that these links, if they are supersessions, lead from and to."""
    return sorted({end for link in links if link.kind in SUPERSEDES for end in (link.source, link.target)})


def _standing(reads: Reads, ids: Sequence[str]) -> list[Link]:
    return [link for link in reads.history.links(ids, kinds=SUPERSEDES) if link.state != RELEASED]


def _by_id(reads: Reads, ids: Sequence[str]) -> dict[str, Memory]:
    return {memory.id: memory for memory in reads.get(sorted(set(ids)), PLAIN)} if ids else {}


def _newest(links: Sequence[Link]) -> Link:
    return max(links, key=lambda link: (link.hlc, link.origin))
