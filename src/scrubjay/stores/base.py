"""What a store promises: rows, words, vectors, history and events, kept together or not at all.

Read it as the specification of a backend; `contract.py` says the same as tests, and both change together.

Invariants that callers rely on:
 1. A transaction is all or nothing. When `writing()` ends without an error its changes are durable (they survive
    kill -9 and power loss) and every reader in every process sees them.
 2. Every read of memories takes an audience and never shows a row outside it. There is no default audience.
 3. Filters apply before a limit, never after: a page that has answers is not emptied by one.
 4. Text is data. No content, query, tag or id is ever read as SQL, search syntax or a path.
 5. Purged memories (erased to a tombstone) are found by nothing here except counts that name `State.PURGED`, and
    statistics.
 6. Statistics come from totals that change in the transaction that changes the memory: never stale, never a scan.

A store knows nothing of ranking, defaults or limits; those live above it, once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from scrubjay.frozen import dataclass
from scrubjay.memory import (
    Archive,
    Audience,
    Category,
    Conversation,
    Deed,
    Event,
    Filter,
    Glimpse,
    Injection,
    Job,
    Link,
    LinkKind,
    Match,
    Memory,
    Message,
    Order,
    Recall,
    Space,
    State,
    Topic,
    Version,
)
from scrubjay.stores.callers import CallerChanges, CallerReads
from scrubjay.stores.replication import ReplicaReads, ReplicaWrites

if TYPE_CHECKING:  # numpy takes longer to import than a search by words takes
    from scrubjay.embedders.base import Vector

List = list  # the type's name where `list` is a verb

RESULTS_KEPT = timedelta(hours=24)  # how long the result of a write is remembered for its key
OPENING = 300  # characters of a text that a glimpse shows


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def milliseconds(at: datetime) -> int:
    """Since 1970, rounded down: what stores keep of a time."""
    return (at - _EPOCH) // timedelta(milliseconds=1)


def moment(milliseconds: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=milliseconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A memory whose vectors are not all there yet."""

    memory: Memory
    next_part: int  # the first part of its text without a vector
    attempts: int  # how often embedding it has failed
    judged: bool  # whether it was compared with earlier memories for conflicts


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Where a list goes on: just after the memory with this sort value and arrival number."""

    value: float | int | None  # times in milliseconds since 1970; None: in order of arrival alone
    seq: int

    @classmethod
    def of(cls, memory: Memory, order: Order) -> Position:
        """Where a list in this order goes on behind a memory of it."""
        value = len(memory.content) if order is Order.LENGTH else getattr(memory, order)
        return cls(value=milliseconds(value) if isinstance(value, datetime) else value, seq=memory.seq)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Why a memory is written, for its history: who did it, and what for."""

    user: str
    at: datetime
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A write that may be sent twice, told from others by the key that its caller chose."""

    caller: str
    key: str
    operation: str
    arguments: bytes  # their SHA-256


class Of(StrEnum):
    ALL = "all"
    USER = "user"
    CONVERSATION = "conversation"
    CATEGORY = "category"


@dataclass(frozen=True, slots=True)
class Part:
    """Which memories a statistic is about, beside who may see them."""

    of: Of = Of.ALL
    name: str = ""  # of the user, conversation or category


class Level(StrEnum):
    """How important a memory is, in three words."""

    HIGH = "high"  # 0.7 and above
    MEDIUM = "medium"
    LOW = "low"  # below 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What there is, tombstones included. Groups without a memory are left out."""

    states: Mapping[State, int] = field(default_factory=dict)
    categories: Mapping[Category, int] = field(default_factory=dict)
    levels: Mapping[Level, int] = field(default_factory=dict)
    expired: int = 0  # of the active and superseded ones
    text_bytes: Mapping[State, int] = field(default_factory=dict)  # content, metadata and detail, in UTF-8
    vector_bytes: Mapping[State, int] = field(default_factory=dict)
    reads: int = 0  # how often memories were handed out
    squared_reads: int = 0  # the squares of the memories' own counts, added up
    read_memories: int = 0  # how many were handed out at least once
    judged: int = 0  # how many had their category compared with their neighbours' …
    agreed: int = 0  # … and how many of those agreed
    repeats: int = 0  # neither deleted nor the first of their text (by fingerprint) that is not
    since: datetime | None = None  # the hour in which the first was created

    @property
    def memories(self) -> int:
        return sum(self.states.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """What happened in a stretch of time."""

    reads: Mapping[tuple[int, int], int] = field(default_factory=dict)  # by weekday (Monday 0) and hour of the day, UTC
    deleted: int = 0  # deleted in that time and still gone, softly or for good
    consolidations: int = 0
    consolidated: int = 0  # memories that went into them


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A memory as a list of paths shows it: without its text."""

    id: str
    path: str
    title: str
    length: int  # of the text, in code points
    updated_at: datetime
    expires_at: datetime | None = None
    superseded_by: str | None = None

    def expired(self, now: datetime) -> bool:
        return self.expires_at is not None and self.expires_at <= now


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """The file that a memory is kept in, and what both sides last agreed on."""

    memory: str
    path: str  # the memory's; empty once it is purged
    state: State  # the memory's; DELETED also if it has left the file's space
    version: int  # the memory's
    name: str  # below the space's folder, with forward slashes; empty until one was chosen
    agreed_path: str  # the memory's, when both sides last agreed
    agreed_version: int  # the memory's, then; 0 before the first time
    hash: bytes | None  # of the file's bytes then; None before the first time
    stamp: str  # what the file system said of the file then; empty if that is not to be believed
    waiting: bool  # the memory has changed since, and its file is to be written


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkup:
    """What `doctor` wants to know of a store. Counts are of memories that are not purged."""

    problems: tuple[str, ...]  # damage, in words; empty when whole
    memories: int
    with_words: int
    with_vectors: int  # every part embedded
    pending: int
    wrong_hashes: tuple[str, ...] = ()  # ids whose content no longer fits its hash (deep check only)
    bytes_on_disk: int = 0
    schema: int = 0
    facts: Mapping[str, str] = field(default_factory=dict)  # engine version, journal mode, permissions …


class Reads(CallerReads, ReplicaReads):
    """What can be asked, of the store as it stands or inside a transaction."""

    @abstractmethod
    def get(self, ids: Sequence[str], audience: Audience) -> List[Memory]:
        """The visible memories with these ids or aliases, in the order asked; unknown ones are left out."""

    @abstractmethod
    def list(
        self,
        filter: Filter,
        audience: Audience,
        *,
        now: datetime,
        order: Order = Order.CREATED,
        descending: bool = True,
        limit: int = 20,
        offset: int = 0,
        after: Position | None = None,
    ) -> List[Memory]:
        """Memories in order; equal ones by arrival in the same direction. `after` goes on behind a position."""

    @abstractmethod
    def count(self, filter: Filter, audience: Audience, *, now: datetime) -> int:
        """How many memories `list` would give without a limit."""

    @abstractmethod
    def match(self, text: str, filter: Filter, audience: Audience, *, now: datetime, limit: int) -> List[Match]:
        """Memories that share words with the text, best first; equal ones newest first.

        A score is BM25 divided by what a memory of average length holding every word of the text once would reach,
        cut at 1: so 0.5 means half of the text's distinctive words. Text without a usable word matches nothing.
        """

    @abstractmethod
    def matched_words(self, text: str, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """For each of these memories the words of the text that it holds, spelt as in the text."""

    @abstractmethod
    def rarity(self, words: Sequence[str]) -> dict[str, float]:
        """How much each of these words tells, by the share of texts that hold it: from 0 (all) to 1 (hardly any)."""

    @abstractmethod
    def nearest(self, vector: Vector, filter: Filter, audience: Audience, *, now: datetime, limit: int) -> List[Match]:
        """The memories whose nearest part has the highest cosine with the vector, best first, each once."""

    def match_and_nearest(
        self, text: str, vector: Vector, filter: Filter, audience: Audience, *, now: datetime, limit: int
    ) -> tuple[List[Match], List[Match]]:
        """Both answers; at once, where that is quicker than one after the other."""
        return (
            self.match(text, filter, audience, now=now, limit=limit),
            self.nearest(vector, filter, audience, now=now, limit=limit),
        )

    @abstractmethod
    def cosines(self, vector: Vector, ids: Sequence[str]) -> dict[str, float]:
        """The cosine of the vector with each of these memories' nearest part; those without vectors are left out."""

    @abstractmethod
    def glimpses(self, ids: Sequence[str]) -> dict[str, Glimpse]:
        """What ranking wants to know of each of these memories; unknown ones are left out."""

    @abstractmethod
    def vectors(self, ids: Sequence[str]) -> dict[str, Vector]:
        """The vector of each memory's first part; those without are left out."""

    @abstractmethod
    def twins(self, fingerprint: bytes, audience: Audience) -> List[Memory]:
        """Active and archived memories with this fingerprint, oldest first."""

    @abstractmethod
    def taken_paths(self, space: str, path: str) -> set[str]:
        """Of this path and those that begin with it and a hyphen, the ones that active memories have."""

    @abstractmethod
    def links(self, ids: Sequence[str], *, kinds: frozenset[LinkKind] | None = None) -> List[Link]:
        """Links that touch any of these memories on either side, oldest first."""

    @abstractmethod
    def versions(self, id: str) -> List[Version]:
        """Former states, newest first. The caller has already been shown the memory itself."""

    @abstractmethod
    def events(self, space: str, *, after: int = 0, limit: int = 1000) -> List[Event]:
        """The changes of a space behind a number, in order."""

    @abstractmethod
    def last_event(self, space: str) -> int:
        """The number of a space's newest event; 0 if there is none."""

    @abstractmethod
    def spaces(self) -> List[Space]:
        """All spaces by name but those that were dropped, with how many active memories each holds."""

    @abstractmethod
    def conversation(self, space: str, id: str) -> Conversation | None:
        """A space's conversation with this id."""

    @abstractmethod
    def conversations(self, space: str, *, limit: int = 20, offset: int = 0) -> List[Conversation]:
        """A space's conversations, those with the latest message or change first."""

    @abstractmethod
    def spaces_of_conversation(self, id: str) -> List[str]:
        """The names of the spaces that have a conversation with this id, in order."""

    @abstractmethod
    def messages(self, space: str, id: str, *, limit: int, offset: int = 0) -> List[Message]:
        """The last messages of a conversation in the order in which they came; `offset` leaves out the very last."""

    @abstractmethod
    def answer_to(self, space: str, id: str, message: str) -> Message | None:
        """The message of a conversation that answers this one."""

    @abstractmethod
    def injections(self, space: str, id: str) -> List[Injection]:
        """The memories put into a conversation, in the order in which that was done."""

    @abstractmethod
    def deed(self, id: str) -> Deed | None:
        """What was done to many memories at once under this id."""

    @abstractmethod
    def open_conflicts(self, audience: Audience, *, now: datetime, limit: int, offset: int = 0) -> List[Link]:
        """Open `may_outdate` links between memories that are visible, active and not expired, newest first."""

    @abstractmethod
    def topics(self, audience: Audience, *, now: datetime, limit: int) -> List[Topic]:
        """What visible decisions that are neither deleted, archived nor expired were made about, newest first."""

    @abstractmethod
    def fact(self, key: str) -> str | None:
        """A remembered fact about the store itself: `model`, `origin` …"""

    @abstractmethod
    def pending(self, *, limit: int) -> List[Pending]:
        """Memories that wait for vectors, fewest attempts first, then oldest. Deleted ones do not wait."""

    @abstractmethod
    def recalls(self, memory: str, *, limit: int = 100) -> List[Recall]:
        """To whom a memory was handed out, newest first."""

    @abstractmethod
    def due_for_purge(self, now: datetime, limit: int) -> List[str]:
        """Ids of softly deleted memories whose date (`recoverable_until`) has come, those due longest first.

        For the store's own housekeeping: whoever they belong to, in every space.
        """

    @abstractmethod
    def totals(self, part: Part, audience: Audience, *, now: datetime) -> Totals:
        """What there is of a part, as far as the audience sees it; counted reads not yet written included."""

    @abstractmethod
    def created_before(self, part: Part, audience: Audience, moments: Sequence[datetime]) -> List[int]:
        """For each moment how many memories, whatever became of them since, were created before it."""

    @abstractmethod
    def activity(self, part: Part, audience: Audience, *, since: datetime, until: datetime) -> Activity:
        """What happened from one moment to another, both included.

        Reads and consolidations are counted by the hour, so for them the stretch is widened to whole hours. They
        belong to where the memory was then; a memory that is moved takes only its later ones along.
        """

    # --- paths, and files that memories are kept in ---

    @abstractmethod
    def at_path(self, space: str, path: str, audience: Audience) -> Memory | None:
        """The active memory at a path; there is at most one."""

    @abstractmethod
    def entries(self, space: str, section: str, audience: Audience) -> List[Entry]:
        """The active memories below a section of a space ("" for all of it), expired ones included, by path."""

    @abstractmethod
    def sections(self, space: str) -> dict[str, str | None]:
        """Sections that were made or described, with their descriptions; others exist by what lies in them."""

    @abstractmethod
    def files(self, space: str, *, waiting: bool = False) -> List[File]:
        """Every memory of a space that is or was kept as a file, by name; purged ones while their file waits.

        `waiting` leaves out those whose file need not be written. For the engine's own bookkeeping: whoever they belong
        to.
        """

    @abstractmethod
    def file_of(self, id: str) -> File | None:
        """The file of one memory; None if it is not kept as one."""

    @abstractmethod
    def file_named(self, space: str, name: str) -> File | None:
        """The file with this name, if an active memory is kept in it."""

    @abstractmethod
    def waiting(self) -> dict[str, int]:
        """How many files wait to be written, by space; spaces where none does are left out."""

    @abstractmethod
    def mirrored(self, space: str) -> bool:
        """Whether every memory of the space is kept as a file."""


    @abstractmethod
    def job(self, id: str) -> Job | None:
        """A job by its id. One that is not finished is running while somebody's lease `job:<id>` runs, else waiting."""

    @abstractmethod
    def jobs(self, *, user: str | None = None, unfinished: bool = False, limit: int = 100) -> List[Job]:
        """Jobs, newest first: those of one user, those not finished yet, or all."""

    @abstractmethod
    def archives(self, ids: Sequence[str]) -> dict[str, Archive]:
        """Where the texts of those of these memories are that were put away (`Transaction.put_away`)."""

    @abstractmethod
    def hot_bytes(self, ids: Sequence[str], *, vectors: bool) -> dict[str, int]:
        """What `put_away` would free of each memory; with or without its vectors."""

    @abstractmethod
    def archived_bytes(self) -> int:
        """How much is packed in all, in the store and elsewhere."""

    @abstractmethod
    def objects_due(self, now: datetime, limit: int) -> List[str]:
        """Names of archived objects that are to be removed by now, longest due first."""

    @abstractmethod
    def held(self, ids: Sequence[str], *, but: str = "") -> List[str]:
        """Those of these memories that long work holds (`Transaction.hold`); what this holder holds is left out."""


class Transaction(CallerChanges, ReplicaWrites, Reads):
    """A set of changes that become visible and durable together, or never."""

    @abstractmethod
    def tick(self, now: datetime) -> int:
        """The next value of the store's hybrid logical clock: past every earlier one, whatever the wall clock says."""

    @abstractmethod
    def put(
        self, memory: Memory, *, fingerprint: bytes, vectors: Sequence[Vector] | None, parts: int, change: Change
    ) -> Memory:
        """Write a memory's row and words, and its vectors; the result carries its arrival number.

        `vectors` are those of the text's first parts, `parts` how many parts there are: what is missing waits in
        `pending`. `vectors=None` says that the text has not changed: words and vectors stay as they are.
        A memory whose id is not known is new, whatever its version: it may come from another store. A known one
        replaces the version before it, which is kept in the history with `change`. The state that filters see follows
        the memory (`Memory.state`). Of a memory that was put away only what its row still holds is changed. One that is
        deleted, or is in another space than before, is taken out of every conversation that it was injected into.

        :raises Conflict: if it was put away and `vectors` says that its text has changed; if the stored version is not
            ``memory.version - 1``; if a new memory's id is taken, or its path by another active one of the same space
        :raises SpaceNotFound: if its space was never created
        """

    @abstractmethod
    def add_vectors(self, id: str, *, version: int, first_part: int, vectors: Sequence[Vector], parts: int) -> bool:
        """Add the vectors of further parts. False, and nothing happens, if the text has changed since `version`."""

    @abstractmethod
    def put_off(self, id: str, *, judged: bool | None = None, failed: bool = False) -> None:
        """Note that embedding failed once more, or that the judgement is done, for a memory in `pending`."""

    @abstractmethod
    def purge(self, id: str, *, at: datetime, final: bool = True) -> None:
        """Erase a memory's text from row, versions, words, vectors, links' reasons, tags, conflicts and kept results.

        A tombstone stays, so that totals add up: id, space, kind, category, importance, access level, user,
        conversation, times, reads, version + 1. Purging twice is no error. What was put away is erased as well; an
        object of it is due for removal at once. `final=False` says that nobody wished it, only the date of its deletion
        has come: version and stamp stay those of the deletion, so that stores which do it each in its own time agree,
        and a recovery elsewhere is not undone.
        """

    @abstractmethod
    def judge_category(self, id: str, *, agreed: bool) -> None:
        """Note whether a memory's category is that of most of its neighbours. Changes no version."""

    @abstractmethod
    def count_consolidation(self, id: str, *, sources: int, at: datetime) -> None:
        """Count that this memory was made from, or took in, so many others."""

    @abstractmethod
    def relate(self, link: Link) -> None:
        """Write a link; one of the same kind between the same memories is replaced."""

    @abstractmethod
    def record(self, event: Event) -> Event:
        """Append to the space's feed; the result carries its number, one higher than the last."""

    @abstractmethod
    def alias(self, alias: str, id: str) -> None:
        """Let a memory be found by another id as well.

        :raises Conflict: if the alias belongs to another memory or is a memory's id
        """

    @abstractmethod
    def number_checkpoint(self, space: str, wanted: int | None = None) -> int:
        """A number for a checkpoint of this space: the wanted one if it is past every one given, else the next.

        :raises SpaceNotFound: if the space was never created
        """

    @abstractmethod
    def create_space(self, name: str, *, at: datetime, description: str | None = None) -> bool:
        """Make sure that a space exists; True if it is new, or had been dropped."""

    @abstractmethod
    def describe_space(self, name: str, *, title: str | None, description: str | None) -> None:
        """Set what people read of a space.

        :raises SpaceNotFound: if there is none
        """

    @abstractmethod
    def drop_space(self, name: str, *, at: datetime) -> None:
        """Leave a space out of lists, and erase its conversations. Its tombstones and events stay; creating it again
        brings it back, and so does `put`.

        :raises Conflict: if it holds memories that are not deleted
        :raises SpaceNotFound: if there is none
        """

    @abstractmethod
    def put_conversation(self, conversation: Conversation) -> None:
        """Write a conversation; one with the same id in the same space is replaced, its messages stay.

        :raises SpaceNotFound: if its space was never created
        """

    @abstractmethod
    def drop_conversation(self, space: str, id: str) -> bool:
        """Erase a conversation, its messages and injections; memories stay. False if there is none."""

    @abstractmethod
    def add_message(self, space: str, id: str, message: Message) -> None:
        """Add to a conversation.

        :raises NotFound: if there is no such conversation
        :raises Conflict: if the message that it answers has an answer already
        """

    @abstractmethod
    def inject(self, space: str, id: str, injection: Injection) -> None:
        """Put a memory into a conversation; where it is in already, only `active` changes.

        :raises NotFound: if there is no such conversation, or no such memory in its space that is not deleted
        """

    @abstractmethod
    def take_out(self, space: str, id: str, memory: str) -> bool:
        """Take a memory out of a conversation. False if it was not in it."""

    @abstractmethod
    def note_deed(self, deed: Deed) -> None:
        """Remember what was done to these memories together; a deed noted before is given more of them."""

    @abstractmethod
    def set_fact(self, key: str, value: str) -> None:
        """Remember a fact about the store itself."""

    @abstractmethod
    def result_of(self, request: Request, *, now: datetime) -> str | None:
        """The kept result of the same request; None if it is new or its result was kept for longer than a day.

        Ask first and `keep_result` in the same transaction: of two that come at once the second waits for the first
        and is given its result.

        :raises Unprocessable: if its caller used the key for another operation or other arguments
        """

    @abstractmethod
    def keep_result(self, request: Request, result: str, *, memories: Sequence[str], at: datetime) -> None:
        """Remember the result for a day, or until one of the memories that it mentions is purged."""

    # --- paths, and files that memories are kept in ---
    #
    # A change of a memory that is kept as a file (`put`, `purge`, a link) lets the file wait, whoever makes it; so does
    # a new memory in a mirrored space.

    @abstractmethod
    def keep_as_file(self, ids: Sequence[str]) -> None:
        """Keep memories as files of their space from now on, and let the files wait to be written."""

    @abstractmethod
    def in_sync(self, id: str, *, name: str, hash: bytes, stamp: str, version: int) -> None:
        """Note that a memory, at a version, and a file say the same; the file waits no longer unless it has changed
        since that version. A deleted memory that had a file of this name before has none any more."""

    @abstractmethod
    def restamp(self, stamps: Mapping[str, str]) -> None:
        """Note what the file system says now of the files of these memories, whose bytes are the same."""

    @abstractmethod
    def drop_files(self, ids: Sequence[str]) -> None:
        """Memories are no longer kept as files, and nothing waits for them."""

    @abstractmethod
    def mirror(self, space: str, *, on: bool) -> None:
        """Keep every memory of a space as a file from now on (those there already wait), or only those that are."""

    @abstractmethod
    def put_section(self, space: str, path: str, *, description: str | None) -> None:
        """Make a section, or change its description."""

    @abstractmethod
    def drop_sections(self, space: str, path: str) -> None:
        """Forget a section and those below it; memories stay."""

    @abstractmethod
    def put_away(self, id: str, archive: Archive, *, keep_vectors: bool) -> None:
        """Take a memory's text out of the hot tables.

        The row stays with what lists are filtered, sorted and counted by, so a memory that is read again has empty
        text, title, path, metadata and detail (but for a `name` in it) and no former versions: the caller has packed
        all of them. Its words are still matched where a filter names `State.ARCHIVED`; its vectors only if they are
        kept. `put` changes everything else of it. Nothing of this changes its version.

        :raises Conflict: if it is put away already
        """

    @abstractmethod
    def bring_back(self, memory: Memory, versions: Sequence[Version], *, at: datetime) -> Memory:
        """Undo `put_away`: the text comes from `memory`, everything else from the row as it is now.

        The archive is forgotten, and its object, if it has one, is due for removal.

        :raises NotFound: if the memory was not put away
        """

    @abstractmethod
    def describe(self, memory: Memory) -> None:
        """Bring title, path, metadata of a memory that was put away back into its row, and leave it put away."""

    @abstractmethod
    def announce_objects(self, objects: Sequence[str], *, due: datetime) -> None:
        """Note objects that are about to be written: unless `put_away` names them by then, they are to be removed."""

    @abstractmethod
    def objects_removed(self, objects: Sequence[str]) -> None:
        """Note that objects are gone."""

    @abstractmethod
    def put_job(self, job: Job) -> None:
        """Write a job as it is now, new or known. Whether it waits or runs is not written: the lease says so."""

    @abstractmethod
    def drop_jobs(self, *, finished_before: datetime) -> None:
        """Forget jobs that were finished before a moment."""

    @abstractmethod
    def hold(self, ids: Sequence[str], *, holder: str, seconds: float) -> str | None:
        """Hold memories for long work, or hold them longer: all of them, or none and the id of one that another holds.

        Others may read them meanwhile; their changes are refused above.
        """

    @abstractmethod
    def let_go(self, holder: str) -> None:
        """Give back every memory that this holder holds."""

    @abstractmethod
    def drop_vectors(self, *, after: int = 0, limit: int | None = None) -> int | None:
        """Forget the vectors of memories behind an arrival number and let these wait for new ones, at most `limit`.

        For another model that takes over; whatever was derived from vectors goes at once. The arrival number of the
        last one, to go on behind; None if there was none left.
        """


class Store(Reads):
    """One memory's storage. Safe to use from several threads, and together with other processes."""

    @property
    def damaged(self) -> bool:
        """Whether damage was found since it was opened: it can be read as far as that goes, and is not written."""
        return False

    @property
    @abstractmethod
    def origin(self) -> str:
        """Names this store among others it may sync with; random, made once and with `renew_origin`."""

    @abstractmethod
    def writing(self) -> AbstractContextManager[Transaction]:
        """Open a transaction: committed when the block ends, undone when it raises.

        Writers wait for each other, at most 10 seconds. Never embed or wait for anything else inside.

        :raises StorageBusy: if another writer held the store for too long
        :raises StorageFull: if there is no room; nothing was changed
        """

    @abstractmethod
    def count_reads(self, reads: Mapping[str, int], *, at: datetime, recall: Recall | None = None) -> None:
        """Note that memories were handed out. Cheap: kept in the process, written in batches, seen by the next call.

        Changes neither version nor updated_at nor any clock; what is not yet flushed may be lost in a crash.
        """

    @abstractmethod
    def flush_reads(self) -> None:
        """Write the counted reads now."""

    @abstractmethod
    def lease(self, name: str, *, holder: str, seconds: float) -> bool:
        """Take or renew the right to do some work alone; False while another holder's lease runs."""

    @abstractmethod
    def release(self, name: str, *, holder: str) -> None:
        """Give a lease back; nothing happens if it is not this holder's."""

    def count_call(self, key: str, *, seconds: float) -> tuple[int, float] | None:  # noqa: ARG002 -- for those who do
        """Count one more in a window that all processes share: how many there were, and for how many seconds it lasts.

        None: this store serves one machine, whose server counts by itself.
        """
        return None

    def listening(
        self, space: str, ring: Callable[[], None]  # noqa: ARG002 -- for those who do
    ) -> AbstractContextManager[Callable[[], bool]]:
        """Have `ring` called, from any thread, when another process may have written events of a space.

        The block's value says whether that can be relied on just now; if not, ask for events now and then. Entering and
        leaving never wait.
        """
        return nullcontext(lambda: False)

    @abstractmethod
    def check(self, *, deep: bool = False) -> Checkup:
        """Look for damage and for rows without words or vectors. Writes nothing. `deep` reads every page and text."""

    @abstractmethod
    def rebuild(self) -> None:
        """Make words and totals anew from the memories, and let those without vectors wait for them.

        What only makes searches quicker is thrown away; `tend` makes it anew.
        """

    @abstractmethod
    def backup(self, path: Path, *, progress: Callable[[int, int], None] | None = None) -> Checkup:
        """Copy the store as it is now to a new file, and check the copy; others write meanwhile.

        The file appears complete and checked, or not at all. `progress` is told what is done, of how much.

        :raises Conflict: if there is something already
        :raises StorageDamaged: if the copy is not whole
        """

    @abstractmethod
    def needs_tending(self) -> bool:
        """Whether `tend` has something to do. Quick."""

    @abstractmethod
    def tend(self) -> bool:
        """Do the next piece of the work that keeps a large store quick, if there is any; True while more may be left.

        Call it again until it gives False. Answers of searches stay right meanwhile, and writers wait for a fraction
        of a second at most. One caller at a time (a lease) is enough; more do no harm.
        """

    @abstractmethod
    def close(self) -> None:
        """Flush and let go. Closing twice is no error."""
