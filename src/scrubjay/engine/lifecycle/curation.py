"""What people do by hand to keep a memory in order: undo a supersession, compare, look around."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from scrubjay.engine import access
from scrubjay.engine.conflicts import settle
from scrubjay.engine.lifecycle import lifecycle, revising
from scrubjay.engine.lifecycle.lifecycle import UNDONE
from scrubjay.engine.lifecycle.supersession import RELEASED, SUPERSEDES
from scrubjay.engine.store.intake import CHANGEABLE, Merge, title_of
from scrubjay.engine.store.intake import revision as revision_of
from scrubjay.errors import Conflict, InvalidInput, NotFound
from scrubjay.lazy import difflib
from scrubjay.stores.promises.memories import Reads, Transaction, clock_at
from scrubjay.values.callers import Act, ActFilter
from scrubjay.values.codec import plain
from scrubjay.values.frozen import dataclass, replace
from scrubjay.values.memory import FormerPhrases, Kind, Link, LinkKind, Memory, State, Status, Undone, Version
from scrubjay.values.search import Filter
from scrubjay.values.store import Recall

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine

MAX_STEPS = 3
MAX_AROUND = 200
MAX_DRAWN_STEPS = 10
MAX_LABEL = 80
MAX_DRAWN = 5_000  # more than that no eye can follow
SIMILAR = 5  # near memories shown beside linked ones
UNDID = f"{UNDONE}, back to version "  # the reason of a revision's undo
NOT_DELETED = frozenset({State.ACTIVE, State.SUPERSEDED, State.ARCHIVED})
TEXTS = ("content", "title")
BOOKKEEPING = ("version", "updated_at", "accessed_at", "access_count", "hlc", "origin", "seq")  # differ by themselves


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One field of two versions."""

    field: str
    old: Any
    new: Any
    lines: tuple[str, ...] = ()  # of a text, as `diff -u` shows them


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbourhood:
    """A memory, what it is linked with within this many steps, and the links between them."""

    memories: tuple[Memory, ...]
    links: tuple[Link, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphNode:
    """A memory as a drawing needs it."""

    id: str
    title: str
    kind: Kind
    importance: float
    superseded: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryNetwork:
    """What is connected with a memory, the nearest first, and the links between."""

    nodes: tuple[GraphNode, ...]
    links: tuple[Link, ...]


def label(memory: Memory) -> str:
    """What a drawing calls a memory. A title that was only cut off the text says less than the text."""
    if memory.topic:
        return f"{memory.topic}: {memory.content}"[:MAX_LABEL]
    return memory.content[:MAX_LABEL] if memory.title == title_of(memory.content) else memory.title


class Curation:
    """Works at an engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def find_by_id_prefix(self, prefix: str, *, limit: int = 5) -> Sequence[Memory]:
        """Memories whose id begins like this, forgotten ones included."""
        audience = access.audience_anywhere(self._engine.caller, self._engine.spaces)
        wanted = Filter(id_prefix=prefix, states=frozenset(State) - {State.PURGED}, expired=None)
        return self._engine.records.list(wanted, audience, now=self._engine.now(), limit=limit)

    def former_phrases(self, id: str) -> Sequence[FormerPhrases]:
        """The phrases that a memory had before, newest first: those that were changed alone, which makes no version."""
        memory = self._engine.ledger.get_visible(self._engine.records, id, deleted=True, elsewhere=True)
        return self._engine.records.history.former_phrases(memory.id)[::-1]

    def shown_to(self, id: str, *, limit: int = 100) -> Sequence[Recall]:
        """Who was handed a memory and when, newest first: for when it turns out poisoned or wrong.

        :raises Forbidden: if the caller does not own its space
        """
        caller, records = self._engine.caller, self._engine.records
        memory = self._engine.get(id, deleted=True)
        access.check_owns(caller, memory.space)
        recalls = records.history.recalls(memory.id, limit=limit)
        if caller.spaces is None:
            return recalls
        # Whoever was handed it may read more spaces: of what else they got only what this caller may see is named.
        names = {name for recall in recalls for name in recall.memories}
        seen = {one.id for one in records.get(sorted(names), access.audience_anywhere(caller))}
        return [
            replace(
                recall,
                space=recall.space if access.is_granted(caller, recall.space) else memory.space,
                memories=tuple(name for name in recall.memories if name in seen),
            )
            for recall in recalls
        ]

    def release(self, id: str) -> Memory:
        """Take a supersession back: the memory is current again, and true as long as it was before.

        :raises Conflict: if nothing supersedes it
        """

        return self._engine.transact(Memory, lambda tx: self._release(tx, id))

    def _release(self, tx: Transaction, id: str, *, only: str | None = None, reason: str | None = None) -> Memory:
        memory = self._engine.ledger.get_changeable(tx, id)
        lifecycle.check_version(memory, self._engine.expected_version)
        if memory.superseded_by is None:
            raise Conflict(f"Memory {memory.id} is not superseded.", memory_id=memory.id)
        return lifecycle.release(self._engine.ledger, tx, memory, only=only, reason=reason)

    def last_change(self, *, client: str | None = None) -> Act:
        """What this caller did last to a memory and has not undone, if wanted with one client only.

        :raises NotFound: if there is nothing of that kind
        """
        engine = self._engine
        wanted = ActFilter(user=engine.caller.user, spaces=engine.caller.spaces, client=client)
        acts = [act for act in engine.records.callers.acts(wanted, limit=MAX_AROUND) if act.memory is not None]
        if not acts:
            raise NotFound("Nothing has been changed yet.")
        names = sorted({act.memory for act in acts if act.memory is not None})
        found = {one.id: one for one in engine.records.get(names, access.EVERYTHING)}
        newest, revisions_undone = dict[str, Act](), Counter[str]()
        for act in acts:
            name = act.memory or ""
            newest.setdefault(name, act)
            if is_undo(act):
                revisions_undone[name] += act.action == "updated"
            elif act.action == "updated" and revisions_undone[name]:
                revisions_undone[name] -= 1
            elif name not in found or self._still_counts(act, found[name], newest[name]):
                return act
        raise NotFound("There is nothing more to undo.")

    def _still_counts(self, act: Act, memory: Memory, newest: Act) -> bool:
        """Whether something that was done to a memory has not been taken back."""
        deleted = memory.status is Status.DELETED
        if act.action == "superseded" or (deleted and is_undo(newest)):
            return False  # followed by itself, from a settlement or from another memory that came or went
        if act.action in ("stored", "forgotten"):
            return deleted == (act.action == "forgotten")
        if act.action in ("supersedes", "kept"):
            settled = self._last_settled(self._engine.records, memory)
            return settled is not None and (settled.kind is LinkKind.SUPERSEDES) == (act.action == "supersedes")
        return True

    def undo_last(self, *, client: str | None = None) -> Undone:
        """Take back what this caller did last to a memory; one that was just stored is forgotten.

        :raises Conflict: if that cannot be undone, was done to many memories at once, or if others have changed the
            memory since
        """
        if (kept := self._engine.earlier_result(Undone)) is not None:
            return kept
        engine, last = self._engine, self.last_change(client=client)
        assert last.memory is not None
        if (deed := self.bulk_operation_of(last)) is not None:
            hint = f"Undo it by its id: `scrubjay undo {deed}`."
            raise Conflict("The last change was made to many memories at once.", hint=hint)
        memory = engine.get(last.memory, deleted=True)
        [newest] = engine.records.callers.acts(ActFilter(memory=memory.id), limit=1)
        if newest.user != last.user or client not in (None, newest.client):
            hint = "Look at it; if that is to be taken back, undo it by its id."
            told = f"{memory.id} has been changed since, by another user or program."
            raise Conflict(told, hint=hint, memory_id=memory.id)
        expected = memory.version if engine.expected_version is None else engine.expected_version
        if last.action != "stored":
            return engine.bound_to(expected_version=expected).curation.undo(memory.id)

        def write(tx: Transaction) -> Undone:
            done = lifecycle.forget(engine.ledger, tx, memory.id, hard=False, reason=UNDONE, expected_version=expected)
            return Undone(memory=done.memory, what="stored")

        return engine.transact(Undone, write)

    def bulk_operation_of(self, act: Act) -> str | None:
        """The id of the bulk operation that this change belongs to."""
        deed = self._engine.records.history.last_bulk_operation(act.user)
        one_of_many = deed is not None and deed.action == act.action and act.memory in deed.memories
        return deed.id if deed is not None and one_of_many and deed.at >= act.at else None

    def undo(self, id: str) -> Undone:
        """Take back what was last done to a memory: that it was forgotten, superseded, settled with another, or
        revised. Each further undo takes back what was done before; only doing it again brings back what was undone.

        :raises Conflict: if nothing was
        """
        if (kept := self._engine.earlier_result(Undone)) is not None:
            return kept
        engine = self._engine
        memory = engine.get(id, deleted=True)
        if memory.status is Status.DELETED:
            return engine.transact(Undone, lambda tx: self._undo_forgetting(tx, memory))
        if memory.superseded_by is not None:
            return engine.transact(Undone, lambda tx: self._undo_supersession(tx, memory))
        revision, settled = last_revision(memory, engine.history(memory.id)), self._last_settled(engine.records, memory)
        former_phrases = engine.records.history.former_phrases(memory.id)
        since = max(0 if revision is None else revision.after.hlc, 0 if settled is None else said_at(settled))
        if former_phrases and former_phrases[-1].hlc >= since:
            return self._undo_rephrasing(memory, former_phrases[-1])
        if settled is not None and (revision is None or said_at(settled) > revision.after.hlc):
            return engine.transact(Undone, lambda tx: self._undo_settling(tx, memory, settled))
        if revision is None:
            hint = self._instead_of_undoing(memory)
            raise Conflict(f"There is nothing to undo on {memory.id}.", hint=hint, memory_id=memory.id)
        return self._undo_revision(memory, revision.before)

    def _instead_of_undoing(self, memory: Memory) -> str:
        links = self._engine.ledger.visible_links(self._engine.records, [memory.id])
        newer = [link.source for link in links if link.kind is LinkKind.SUPERSEDES and link.state != RELEASED]
        newer = [name for name in newer if name != memory.id]
        if newer:  # it would be superseded, were they not forgotten
            return f"It is current because {newer[-1]}, which replaced it, was forgotten: undo that."
        if memory.supersedes is not None:
            older = memory.supersedes
            return f"Forget it, if it should not have been stored: {older}, which it replaced, is then current again."
        return "Forget it, if it should not have been stored."

    def _undo_forgetting(self, tx: Transaction, memory: Memory) -> Undone:
        expected = self._engine.expected_version
        recovered = lifecycle.recover(self._engine.ledger, tx, memory.id, expected_version=expected, reason=UNDONE)
        return Undone(memory=recovered, what="forgotten")

    def _undo_supersession(self, tx: Transaction, memory: Memory) -> Undone:
        """The last one, if there are several: the next undo takes back the one before."""
        newer = memory.superseded_by
        current = self._engine.ledger.get_visible(tx, memory.id)
        if current.superseded_by != newer:
            raise _changed_meanwhile(memory)
        links = tx.history.links([memory.id], kinds=SUPERSEDES)
        direct = any((link.source, link.target) == (newer, memory.id) for link in links)
        # Where the memory that it stands for was forgotten, nothing is said of the two themselves.
        return Undone(
            memory=self._release(tx, memory.id, only=newer if direct else None, reason=UNDONE),
            what="superseded",
            other=newer,
        )

    def _last_settled(self, reads: Reads, memory: Memory) -> Link | None:
        """What was last said of this memory and another, and still counts: that both are true, or that it supersedes
        the other. A decision replaces the last on its topic by being stored; that was not said."""
        engine = self._engine
        said = [
            link
            for link in engine.ledger.visible_links(reads, [memory.id])
            if (link.kind is LinkKind.MAY_OUTDATE and link.state == "kept")
            or (link.kind is LinkKind.SUPERSEDES and link.source == memory.id and link.state != RELEASED)
        ]
        others = sorted({end for link in said for end in (link.source, link.target)} - {memory.id})
        found = reads.get(others, access.audience_anywhere(engine.caller)) if others else ()
        chained = {one.id for one in found if one.kind is memory.kind is Kind.DECISION and one.topic == memory.topic}
        out_of_reach = {one.id for one in found if one.recoverable_until and one.recoverable_until < engine.now()}
        counting = [
            link
            for link in said
            if not out_of_reach & {link.source, link.target}
            and not (link.kind is LinkKind.SUPERSEDES and link.target in chained)
        ]
        return max(counting, key=lambda link: (said_at(link), link.origin), default=None)

    def _undo_settling(self, tx: Transaction, memory: Memory, said: Link) -> Undone:
        ledger = self._engine.ledger
        lifecycle.check_version(ledger.get_visible(tx, memory.id), self._engine.expected_version)
        if self._last_settled(tx, memory) != said:
            raise _changed_meanwhile(memory)
        other = ledger.get_visible(tx, said.source if said.target == memory.id else said.target, deleted=True)
        if other.status is Status.DELETED:
            told = f"The last change of {memory.id} was made with {other.id}, which is forgotten."
            raise Conflict(told, hint=f"Undo that on {other.id} first.", memory_id=memory.id)
        if said.kind is LinkKind.SUPERSEDES:
            released = lifecycle.release(ledger, tx, ledger.get_changeable(tx, other.id), only=memory.id, reason=UNDONE)
            return Undone(memory=released, what="superseded", other=memory.id)
        memory = ledger.get_changeable(tx, memory.id)  # the other may lie where nothing is changed
        pair = {memory.id, other.id}
        links = [link for link in tx.history.links([memory.id], kinds=lifecycle.MAY_OUTDATE) if link.state == "kept"]
        settle.unsettle(
            ledger, tx, memory, [link for link in links if {link.source, link.target} == pair], reason=UNDONE
        )
        return Undone(memory=ledger.get_visible(tx, memory.id), what="settled", other=other.id)

    def _undo_revision(self, memory: Memory, former: Version) -> Undone:
        engine = self._engine
        fields = revising.fields_of(engine, former.memory)
        changed = revision_of(memory, fields, Merge.REPLACE, None, held=True)
        revision = revising.prepare_revision(engine, memory, {**changed, "detail": former.memory.detail})

        def write(tx: Transaction) -> Undone:
            current = revision.current(engine, tx, expected_version=engine.expected_version)
            again = revision.write(engine, tx, current, reason=f"{UNDID}{former.id}").memory
            differ = tuple(name for name in changes(memory, again) if name != "title")
            return Undone(memory=again, what="revised", before=memory, fields=differ)

        undone = engine.transact(Undone, write)
        revision.see_to_the_rest(engine)
        return undone

    def _undo_rephrasing(self, memory: Memory, last: FormerPhrases) -> Undone:
        engine = self._engine
        revision = revising.prepare_revision(engine, memory, {"also": last.also})

        def write(tx: Transaction) -> Undone:
            current = revision.current(engine, tx, expected_version=engine.expected_version)
            if tx.history.former_phrases(memory.id)[-1:] != (last,):
                raise _changed_meanwhile(memory)
            again = replace(current, also=revision.changed["also"], flags=revision.flags)
            undone = engine.ledger.rephrase(tx, current, again, reason=UNDONE, text=revision.text, undo=True)
            return Undone(memory=undone.memory, what="revised", before=memory, fields=undone.fields)

        undone = engine.transact(Undone, write)
        revision.see_to_the_rest(engine)
        return undone

    def diff(self, id: str, *, old: int, new: int | None = None) -> Sequence[Difference]:
        """How two versions of a memory differ; without a second one, from what it is now.

        :raises NotFound: if it never was at one of these versions
        """
        memory = self._engine.get(id, deleted=True)
        states = {memory.version: memory, **{one.memory.version: one.memory for one in self._engine.history(id)}}
        try:
            before, after = states[old], states[memory.version if new is None else new]
        except KeyError as error:
            raise NotFound(f"Memory {memory.id} has no version {error.args[0]}.", memory_id=memory.id) from None
        return [
            difference(entry.name, getattr(before, entry.name), getattr(after, entry.name))
            for entry in fields(Memory)
            if entry.name not in BOOKKEEPING and getattr(before, entry.name) != getattr(after, entry.name)
        ]

    def around(self, id: str, *, steps: int = 1, similar: bool = False) -> Neighbourhood:
        """What a memory is linked with within this many steps; if asked also what is like it, as links found by us."""
        if not 1 <= steps <= MAX_STEPS:
            raise InvalidInput(f"steps must be from 1 to {MAX_STEPS}.", field="steps")
        centre = self._engine.get(id, deleted=True)
        known = {centre.id: centre}
        found = follow_links(self._engine, known, steps=steps, limit=MAX_AROUND)
        if similar:
            found += self._like(centre, known)
        return Neighbourhood(memories=tuple(known.values()), links=tuple(found))

    def network(self, id: str, *, steps: int = 2) -> MemoryNetwork:
        """What a memory is connected with within this many steps, for drawing: a few thousand at most."""
        if not 1 <= steps <= MAX_DRAWN_STEPS:
            raise InvalidInput(f"steps must be from 1 to {MAX_DRAWN_STEPS}.", field="steps")
        known = {(centre := self._engine.get(id, deleted=True)).id: centre}
        found = follow_links(self._engine, known, steps=steps, limit=MAX_DRAWN)
        nodes = (
            GraphNode(
                id=memory.id,
                title=label(memory),
                kind=memory.kind,
                importance=memory.importance,
                superseded=memory.superseded_by is not None,
            )
            for memory in known.values()
        )
        return MemoryNetwork(nodes=tuple(nodes), links=tuple(found))

    def _like(self, centre: Memory, known: dict[str, Memory]) -> list[Link]:
        """The nearest memories of the same space, added to the known ones."""
        engine = self._engine
        vector = engine.records.vectors([centre.id]).get(centre.id)
        if vector is None:
            return []
        audience = access.audience_in(engine.caller, (centre.space,))
        near = engine.records.nearest(vector, Filter(), audience, now=engine.now(), limit=SIMILAR + 1)
        fresh = [match for match in near if match.memory not in known]
        known |= {memory.id: memory for memory in engine.records.get([one.memory for one in fresh], audience)}
        return [
            Link(
                kind=LinkKind.RELATED,
                source=centre.id,
                target=match.memory,
                score=engine.parts.embedding.calibrate(match.score),
                given=False,
                created_at=engine.now(),
            )
            for match in fresh
            if match.memory in known
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRevision:
    """The state before a revision, and the one it led to."""

    before: Version
    after: Memory


def is_undo(act: Act) -> bool:
    return act.reason == UNDONE or (act.reason or "").startswith(UNDID)


def said_at(link: Link) -> int:
    """When it was said, on the store's clock. A later one in its place marks a supersession, but is not said of it."""
    replaced = link.kind is LinkKind.SUPERSEDES and link.state == "replaced"
    return clock_at(link.created_at) if replaced else link.hlc


def _changed_meanwhile(memory: Memory) -> Conflict:
    told = f"What was said about {memory.id} has changed meanwhile."
    return Conflict(told, hint="Look at it again, then undo.", memory_id=memory.id)


def last_revision(memory: Memory, history: Sequence[Version]) -> LastRevision | None:
    """The last revision that still stands. An undo leads to an old state: what came after that one is undone, so the
    search continues after it."""
    undone_to: str | None = None
    after = memory
    for one in history:
        if undone_to is not None:
            undone_to = None if one.id == undone_to else undone_to
        elif (one.reason or "").startswith(UNDID):
            undone_to = (one.reason or "").removeprefix(UNDID)
        elif one.memory.state is State.ACTIVE and changes(one.memory, memory):
            return LastRevision(before=one, after=after)
        after = one.memory
    return None


def changes(before: Memory, now: Memory) -> list[str]:
    told = [name for name in CHANGEABLE if getattr(before, name) != getattr(now, name)]
    return told if before.detail.get("outcome") == now.detail.get("outcome") else [*told, "outcome"]


def follow_links(
    engine: Engine,
    known: dict[str, Memory],
    *,
    steps: int,
    limit: int,
    states: frozenset[State] = NOT_DELETED,
    kinds: frozenset[LinkKind] | None = None,
) -> list[Link]:
    """Add the memories that links lead to within this many steps, the nearest first; then the links between all."""
    rim = list(known)
    for _ in range(steps if known else 0):
        links = engine.records.history.links(rim, kinds=kinds)
        ends = dict.fromkeys(end for link in links for end in (link.source, link.target) if end not in known)
        found = engine.records.get(list(ends), access.audience_anywhere(engine.caller))
        fresh = [one for one in found if one.state in states][: max(0, limit - len(known))]
        if not fresh:
            break
        known |= {memory.id: memory for memory in fresh}
        rim = [memory.id for memory in fresh]
    links = engine.records.history.links(list(known), kinds=kinds)
    return [link for link in links if {link.source, link.target} <= known.keys()]


def difference(name: str, old: Any, new: Any) -> Difference:
    lines: Sequence[str] = ()
    if name in TEXTS:
        lines = list(difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=2))[
            2:
        ]  # without file names
    return Difference(field=name, old=plain(old), new=plain(new), lines=tuple(lines))
