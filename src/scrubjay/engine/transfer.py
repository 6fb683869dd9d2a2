"""Export and import: a memory as a line of JSON, and back with every field.

    {"type": "scrubjay", "format": 1, …}      the first line
    {"type": "memory", "id": "mem_…", …}      one per memory, oldest first: all but purged ones
    {"type": "link", "kind": "supersedes", …} one per link between them

A line that holds only `content` (and any field of a new memory) is imported as a new memory, so that lists made by
hand or by other programs come in the same way. Each line is imported once, however often a file is: one with an id is
known by it, another by its text, user, kind and topic, and by its time if it names one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from datetime import datetime
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Any

from scrubjay.engine import access
from scrubjay.engine.cursors import pages
from scrubjay.engine.holding import BATCH, PAGE
from scrubjay.engine.lifecycle import supersession
from scrubjay.engine.store import embedding, intake, loading, names
from scrubjay.errors import Conflict, Error, InvalidInput, QuotaExceeded
from scrubjay.stores.promises.memories import Reads, Store, Transaction
from scrubjay.values import plain_json
from scrubjay.values.callers import Audience, Caller, Provenance, Role
from scrubjay.values.codec import plain
from scrubjay.values.frozen import dataclass, replace
from scrubjay.values.memory import TIMES, Link, LinkKind, Memory, State, Status
from scrubjay.values.search import Filter
from scrubjay.values.spelling import missing_field
from scrubjay.values.times import iso, milliseconds, parse_time, read_time

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine
    from scrubjay.engine.store.history import TextVectors

FORMAT = 1
BATCH_OF_TEXTS = 512  # … or only written, where there is no model
ALL_BUT_PURGED = Filter(states=frozenset(State) - {State.PURGED}, expired=None)
LEFT_OUT = ("seq", "hlc", "origin")  # of the store it lay in


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    stored: int = 0
    already_here: int = 0
    forgotten: int = 0  # of those here: they stay so
    links: int = 0
    links_left_out: int = 0  # between memories of which one is not here, or not the importer's to see and change
    without_vectors: int = 0  # of those stored: they wait for the model


class Transfer:
    """Memories that leave a store or come into it as a whole: exports, imports, copies."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def export(self) -> Iterator[dict[str, Any]]:
        """Every memory of this engine's spaces as plain JSON objects, oldest first."""

        def linked(ids: Sequence[str]) -> Sequence[Link]:
            return self._engine.ledger.visible_links(self._engine.records, ids)

        here = access.audience_in(
            self._engine.caller, self._engine.spaces
        )  # as an import puts all of it into one space
        return export_lines(self._engine.records, here, self._engine.now(), self._engine.with_texts, linked)

    def import_from(
        self, lines: Iterable[Mapping[str, Any]], *, progress: Callable[[int], None] | None = None
    ) -> Imported:
        """Take in what `export` gave, or a list made by hand, each line once: a line is already here if its id is or,
        without an id, if a memory of its user has its text, at its time if it names one."""
        result = import_lines(self._engine, lines, progress)
        self._engine.parts.backlog.wake()
        self._engine.parts.indexer.finish()
        return result

    def build_memory(self, fields: Mapping[str, Any], *, id: str | None = None, caller: Caller | None = None) -> Memory:
        """A memory from named fields as it would be stored, with an id of its own or a given one."""
        return intake.admit(self._engine, intake.new_memory(fields, {}), id=id, caller=caller)

    def known_ids(self, ids: Sequence[str]) -> set[str]:
        """Those of the ids that are taken, whoever may see them."""
        return {memory.id for memory in self._engine.records.get(ids, access.EVERYTHING)} if ids else set()

    def spaces_of(self, ids: Sequence[str]) -> set[str]:
        """Where memories with these ids are, whoever may see them: for whoever owns the machine."""
        return {memory.space for memory in self._engine.records.get(ids, access.EVERYTHING)}

    def add_all(
        self,
        memories: Sequence[Memory],
        links: Sequence[Link] = (),
        *,
        texts: Sequence[TextVectors] | None = None,
        check: Callable[[Transaction], None] | None = None,
    ) -> int:
        """Write complete memories and the links between known ones in one transaction; how many links there were.

        Links that reach what the caller may not see or not change are left out.
        `texts` are the memories' vectors, where they are made already; `check` may refuse before anything is written.
        """
        texts = embedding.embed_at_leisure(self._engine, memories) if texts is None else texts
        with self._engine.records.writing() as tx:
            if check is not None:
                check(tx)
            loading.add_memories(self._engine, tx, memories, texts, imported=True)
            ends = {end for link in links for end in (link.source, link.target)}
            seen = tx.get(sorted(ends), access.audience_anywhere(self._engine.caller))
            known = {memory.id for memory in seen if access.may_change(self._engine.caller, memory)}
            kept = [link for link in links if {link.source, link.target} <= known]
            for link in kept:
                tx.history.relate(replace(link, **tx.clock.stamp(self._engine.now())))
            for memory in tx.get(supersession.ends_of(kept), supersession.PLAIN):
                supersession.settle(tx, memory)
            for memory in tx.get(sorted({link.source for link in kept}), access.EVERYTHING):
                self._engine.ledger.record(tx, memory, "linked")
        self._engine.write_files(patient=True)
        return len(kept)


def export_lines(
    records: Store,
    audience: Audience,
    now: datetime,
    with_texts: Callable[..., Sequence[Memory]],
    linked: Callable[[Sequence[str]], Sequence[Link]],
) -> Iterator[dict[str, Any]]:
    """Lines, in the order an import needs them; the store is read a page at a time."""
    yield first_line(now)
    links: dict[tuple[str, str, str], Link] = {}
    for page in pages(records, ALL_BUT_PURGED, audience, now=now, size=PAGE, newest_first=False):
        for link in linked([memory.id for memory in page]):
            links[link.key] = link
        for memory in with_texts(page, strict=True):  # an export that lacks texts would be believed to have them
            yield line_of(memory)
    for link in links.values():
        yield {"type": "link", **plain(link, leave_out=LEFT_OUT)}


def first_line(now: datetime) -> dict[str, Any]:
    return {"type": "scrubjay", "format": FORMAT, "exported_at": iso(now)}


def line_of(memory: Memory) -> dict[str, Any]:
    return {"type": "memory", **plain(memory, leave_out=LEFT_OUT)}


def import_lines(
    engine: Engine, lines: Iterable[Mapping[str, Any]], progress: Callable[[int], None] | None
) -> Imported:
    """Take lines in, a transaction per batch; what is already here is left alone, so a broken-off import goes on.

    :raises InvalidInput: naming the line; what came before it stays
    """
    if (kept := engine.earlier_result(Imported)) is not None:
        return kept
    result = Imported()
    for memories, texts, batch in embedding.embed_ahead(engine, _batches(engine, lines)):
        fresh = {memory.id: (memory, text) for memory, text in zip(memories, texts, strict=True)}
        links = _new_links(engine, batch.links)
        try:
            written = _add_unknown(engine, fresh, links, batch)
        except KeyboardInterrupt:
            # It may have come while the disk was waited for. Some may be here without us, so all are looked for.
            if progress and fresh.keys() <= engine.transfer.known_ids([*fresh]) and not _new_links(engine, links):
                progress(batch.last_line)
            raise
        result = Imported(
            stored=result.stored + len(fresh),
            already_here=result.already_here + batch.memories - len(fresh),
            forgotten=result.forgotten + batch.forgotten,
            links=result.links + written,
            links_left_out=result.links_left_out + len(links) - written,
            without_vectors=result.without_vectors + sum(not text.vectors for _, text in fresh.values()),
        )
        if progress:
            progress(batch.last_line)
    return result if engine.request is None else engine.transact(Imported, lambda _tx: result)


def _add_unknown(
    engine: Engine, fresh: dict[str, tuple[Memory, TextVectors]], links: Sequence[Link], batch: ImportBatch
) -> int:
    """Write these memories and take out of them those that are here already; how many links were written."""

    def check(tx: Transaction) -> None:
        if repeated := _find_repeated(engine, tx, [memory for memory, _ in fresh.values()], batch.ids, batch.untimed):
            raise BroughtMeanwhile(repeated)

    while True:
        for known in engine.transfer.known_ids([one for one in fresh if one in batch.ids]):
            fresh.pop(known, None)  # it has another id if it was found by its name: that is refused when written
        try:
            return engine.transfer.add_all(
                [memory for memory, _ in fresh.values()],
                links,
                texts=[text for _, text in fresh.values()],
                check=check,
            )
        except BroughtMeanwhile as brought:
            for repeated in brought.ids:
                del fresh[repeated]
        except (Conflict, QuotaExceeded):
            if fresh.keys().isdisjoint(engine.transfer.known_ids([one for one in fresh if one in batch.ids])):
                raise  # else another import has brought one since


class BroughtMeanwhile(Exception):
    """Another import, or the batch before this one, has brought some of these memories."""

    def __init__(self, ids: Set[str]) -> None:
        self.ids = ids


def _find_repeated(
    engine: Engine, reads: Reads, memories: Sequence[Memory], ids: Set[str], untimed: Set[str]
) -> set[str]:
    """Those of these memories that came without an id and say what a memory that is here says, or one before them.

    Only memories that the caller may see count: the number of lines that were already here must not tell of others.
    """
    fingerprints = {memory.id: intake.fingerprint(memory) for memory in memories}
    wanted = {fingerprint for name, fingerprint in fingerprints.items() if name not in ids}
    audience = access.audience_in(engine.caller, engine.spaces[:1])
    here: dict[tuple[bytes, bytes | None, str, str | None], set[int]] = {}
    for text in reads.history.texts(wanted, audience):
        here.setdefault((text.fingerprint, text.hash, text.kind, text.topic), set()).add(text.created_at)
    repeated = set()
    for memory in memories:
        fingerprint, created = fingerprints[memory.id], milliseconds(memory.created_at)
        times = here.setdefault((fingerprint, sha256(memory.text.encode()).digest(), memory.kind, memory.topic), set())
        of_archived = here.get((fingerprint, None, memory.kind, memory.topic), set())
        if memory.id not in ids and (created in times | of_archived or (memory.id in untimed and times | of_archived)):
            repeated.add(memory.id)
        times.add(created)
    return repeated


def _new_links(engine: Engine, links: Sequence[Link]) -> list[Link]:
    """Leave out the links that an earlier import brought."""
    ends = sorted({end for link in links for end in (link.source, link.target)})
    known = engine.ledger.visible_links(engine.records, ends) if ends else []
    here = [replace(link, hlc=0, origin="") for link in known]
    return [link for link in links if link not in here]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportBatch:
    """Some lines, beside the memories in them that are not here yet."""

    memories: int
    links: Sequence[Link]
    last_line: int
    ids: Set[str]  # that lines have; no memory has one of those that are made here
    untimed: Set[str]  # ids of the memories whose line has no time
    forgotten: int  # lines whose memory is here and the caller forgot


def _batches(engine: Engine, lines: Iterable[Mapping[str, Any]]) -> Iterator[tuple[Sequence[Memory], ImportBatch]]:
    size = BATCH_OF_TEXTS if engine.parts.embedding.embedder is None else BATCH
    numbered = enumerate(lines, 1)
    while batch := list(islice(numbered, size)):
        memories, links, ids, untimed = _read(engine, batch)
        named = [memory.id for memory in memories if memory.id in ids]
        seen = engine.records.get(named, access.audience_anywhere(engine.caller)) if named else ()
        read = ImportBatch(
            memories=len(memories),
            links=links,
            last_line=batch[-1][0],
            ids=ids,
            untimed=untimed,
            forgotten=sum(one.state is State.DELETED for one in seen),
        )
        here = engine.transfer.known_ids(named)
        here |= _find_repeated(engine, engine.records, memories, ids, untimed)  # before they are embedded
        yield [memory for memory in memories if memory.id not in here], read


def _read(
    engine: Engine, batch: Sequence[tuple[int, Mapping[str, Any]]]
) -> tuple[list[Memory], list[Link], set[str], set[str]]:
    """Memories, links, the ids that lines brought along, and those of the memories whose line has no time."""
    memories: list[Memory] = []
    links: list[Link] = []
    ids: set[str] = set()
    untimed: set[str] = set()
    caller = engine.caller
    reader = replace(engine, provenance=replace(engine.provenance, transport="import"))
    for number, line in engine.parts.embedding.yielding_gil(batch):
        try:
            plain_json.check(line)
            kind = line.get("type", "memory")
            if kind == "memory":
                memories.append(read_memory(reader, line, caller))
                if line.get("id") is not None:
                    ids.add(memories[-1].id)
                if line.get("created_at") is None:
                    untimed.add(memories[-1].id)
            elif kind == "link":
                links.append(read_link(line))
            elif kind != "scrubjay":
                raise InvalidInput("type must be memory or link.")
            elif line.get("format") != FORMAT:
                told = f"It was exported in another format; this scrubjay reads format {FORMAT}."
                raise InvalidInput(told, hint="Update this one, or export it again with an older one.")
        except Error as error:
            raise InvalidInput(f"Line {number}: {error.message}", hint=error.hint, line=number) from error
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InvalidInput(f"Line {number} is not a memory.", line=number) from error
    return memories, links, ids, untimed


# --- values to JSON and back -----------------------------------------------------------------------------------------


def read_memory(engine: Engine, line: Mapping[str, Any], caller: Caller) -> Memory:
    """A complete memory from a full line, or from one written by hand.

    What the store itself vouches for (who wrote, verified and read it) is taken from an owner only.
    """
    given: dict[str, Any] = {
        name: read_time(value, field=name) if name in TIME_FIELDS else value for name, value in line.items()
    }
    given.pop("type", None)
    context = given.pop("context", None) or {}
    new = {name: given.pop(name) for name in line if name in FIELDS}
    if "content" not in new:
        raise InvalidInput(missing_field("content", map(str, given), KNOWN), field="content")
    for name in NAMES:
        if given.get(name) is not None:
            intake.check_id(given[name])
    names.check_new_id(given.get("id"))
    for name, least in COUNTS.items():
        if name in given:
            intake.check_whole(given[name], name, least=least)
    memory = engine.transfer.build_memory({**new, **context}, id=given.pop("id", None), caller=caller)
    given.pop("space", None)  # an import goes where the engine writes
    if caller.role is not Role.OWNER:
        given = {name: value for name, value in given.items() if name not in VOUCHED}
    if not given:  # as of a line written by hand
        return memory
    source = given.pop("provenance", None)
    provenance = Provenance(**source) if source else memory.provenance
    status = Status(given.pop("status", Status.ACTIVE))
    tags = intake.check_tags(given.pop("auto_tags", ()))
    flags = tuple(dict.fromkeys((*memory.flags, *intake.check_tags(given.pop("flags", ())))))
    intake.check_known(given, KNOWN)
    return replace(memory, provenance=provenance, status=status, auto_tags=tags, flags=flags, **given)


FIELDS, TIME_FIELDS = frozenset(intake.FIELDS), frozenset(TIMES)
NAMES = ("id", "supersedes", "superseded_by")
COUNTS = {"version": 1, "access_count": 0}
KEPT = (
    "supersedes", "superseded_by", "verified_at", "deleted_at", "recoverable_until", "updated_at", "accessed_at",
    "access_count", "version",
)  # fmt: skip
KNOWN = (*intake.FIELDS, *KEPT)

# Of a member's import these are left out: its credential says who wrote the memory, its links what supersedes what.
VOUCHED = ("provenance", "verified_at", "access_count", "accessed_at", "supersedes", "superseded_by")


LINK_STATES = ("open", "kept", "superseded", "released", "replaced")


def read_link(line: Mapping[str, Any]) -> Link:
    given = {name: value for name, value in line.items() if name != "type"}
    for end in ("source", "target"):
        intake.check_id(given[end])
    if given.get("score") is not None:
        given["score"] = _score(given["score"])
    if given.get("reason") not in (None, ""):
        intake.check_text(given["reason"], "reason")
    if given.get("state", "open") not in LINK_STATES:
        raise InvalidInput(f"state must be one of {', '.join(LINK_STATES)}.", field="state")
    if not isinstance(given.get("given", True), bool):
        raise InvalidInput("given must be true or false.", field="given")
    given["kind"] = LinkKind(given["kind"])
    given["created_at"] = parse_time(given["created_at"], field="created_at")
    return Link(**given)


def _score(value: object) -> float:
    """A finite number, and nothing narrower: a cosine may be a little more than 1."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput("score must be a number.", field="score")
    return float(value)
