"""What a store promises: rows, words, vectors, history and events, kept together or not at all.

Read it as the specification of a backend; `tests/stores/contract` says the same as tests, and both change together.
Here is what concerns memories themselves. What stands beside them has a file of its own, as it has in the contract, or
is held as a part that is written once for every backend (`Reads` names them; `stores/tables` has them):


Invariants that callers rely on:
 1. A transaction is all or nothing. When `writing()` ends without an error its changes are durable (they survive
    kill -9 and power loss) and every reader in every process sees them.
 2. Every read of memories takes an audience and never shows a row outside it. There is no default audience.
 3. Filters apply before a limit, never after: a page that has answers is not emptied by one.
 4. Text is data. No content, query, tag or id is ever read as SQL, search syntax or a path.
 5. Purged memories (erased to a tombstone) are found by nothing here except counts that name `State.PURGED`, and
    statistics.
 6. Statistics are counted from the memories' rows when they are asked, so they are never stale.

A store knows nothing of ranking, defaults or limits; those live above it, once.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrubjay.stores.promises.sync import Replica
from scrubjay.values.callers import Audience
from scrubjay.values.frozen import dataclass, replace
from scrubjay.values.memory import Archive, FormerPhrases, Memory, Sketch, Version
from scrubjay.values.search import Candidates, Filter, Glimpses, Match, Order
from scrubjay.values.store import Topic
from scrubjay.values.times import milliseconds

if TYPE_CHECKING:  # numpy takes longer to import than a search by words takes
    from scrubjay.embedders.base import Vector
    from scrubjay.stores.tables.archives import ArchiveChanges, Archives
    from scrubjay.stores.tables.callers import CallerChanges, Callers
    from scrubjay.stores.tables.conversations import ConversationChanges, Conversations
    from scrubjay.stores.tables.files import FileChanges, Files
    from scrubjay.stores.tables.history import History, HistoryChanges
    from scrubjay.stores.tables.jobs import JobChanges, Jobs
    from scrubjay.stores.tables.parts import Clock
    from scrubjay.stores.tables.spaces import SpaceChanges, Spaces
    from scrubjay.stores.tables.statistics import Statistics, StatisticsChanges
    from scrubjay.stores.tables.sync import Sync, SyncChanges
    from scrubjay.stores.tables.tally import Tally
    from scrubjay.stores.tables.upkeep import Upkeep, UpkeepChanges

List = list  # the type's name where `list` is a verb

RESULTS_KEPT = timedelta(hours=24)  # how long the result of a write is remembered for its key
OPENING = 300  # characters of a text that a glimpse shows


def clock_at(moment: datetime) -> int:
    """The highest value of a store's clock that shows this time: milliseconds, and a count in the lower 16 bits."""
    return (milliseconds(moment) << 16) | 0xFFFF


ONLY_TO_JUDGE = 2**31 - 1  # more parts than any text has


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A memory whose vectors are not all there yet, or that is not compared with earlier ones yet."""

    memory: Memory
    next_part: int  # the first part of its text without a vector; ONLY_TO_JUDGE if it has them all
    attempts: int  # how often embedding it has failed
    judged: bool  # whether it was compared with earlier memories for conflicts


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Where a list goes on: just after the memory with this sort value and arrival number."""

    value: float | int | None  # times in milliseconds since 1970; None: in order of arrival alone
    seq: int

    @classmethod
    def of(cls, memory: Memory, order: Order) -> Position:
        """Where a list in this order continues after one of its memories."""
        value = len(memory.content) if order is Order.LENGTH else getattr(memory, order)
        return cls(value=milliseconds(value) if isinstance(value, datetime) else value, seq=memory.seq)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Why a memory is written, for its history: who did it, and what for."""

    user: str
    at: datetime
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Addition:
    """A new memory as `Transaction.put_new` takes it; all is as `put` has it."""

    memory: Memory
    fingerprint: bytes
    vectors: Sequence[Vector]
    parts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A write that may be sent twice; the key that its caller chose identifies it."""

    caller: str
    key: str
    operation: str
    arguments: bytes  # their SHA-256

    def nth(self, place: int) -> Request:
        """One of several writes of the same request; no caller's key contains this sign."""
        return replace(self, key=f"{self.key}\x1f{place}")


OWN_MODEL = "own_model"  # the fact that says whose vectors the store has …
FURTHER_MODELS = "further_models"  # … and a JSON list of those whose vectors it has beside them
LOST = "changes_lost"  # the fact that says when a store was found to lack its last changes; empty once reported


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkup:
    """What `doctor` wants to know of a store. Counts are of memories that are not purged."""

    problems: tuple[str, ...]  # damage, in words; empty when whole
    memories: int
    with_words: int
    with_vectors: int  # every part embedded, or nothing to embed for now (archived, or forgotten before it was)
    pending: int
    unusable_vectors: int = 0  # memories whose vectors are not made of numbers; they are not among `with_vectors`
    wrong_hashes: tuple[str, ...] = ()  # ids whose content no longer fits its hash (deep check only)
    bytes_on_disk: int = 0
    schema: int = 0
    facts: Mapping[str, str] = field(default_factory=dict)  # engine version, journal mode, permissions …


class Reads(ABC):
    """What can be asked, of the store as it stands or inside a transaction."""

    callers: Callers  # credentials, grants, sessions and the audit
    jobs: Jobs  # long work, and memories that are held meanwhile
    conversations: Conversations  # messages, and memories put into conversations
    files: Files  # paths, and files that memories are kept in
    archives: Archives  # archived memories
    history: History  # links, versions, events, other ids, results, facts: what is remembered beside memories
    spaces: Spaces
    sync: Sync  # the clock, memories as they travel between stores, endpoints, conflicts
    statistics: Statistics  # what there is, and what happened when
    upkeep: Upkeep  # what waits to be done, and leases

    @property
    def origin(self) -> str:
        """Names this store among others it may sync with; random, made once and with `renew_origin`.

        Read each time, as another process may have renewed it; once in a transaction.
        """
        return self.history.fact("origin") or ""

    @abstractmethod
    def get(self, ids: Sequence[str], audience: Audience) -> List[Memory]:
        """The visible memories with these ids or aliases, in the order asked; unknown ones are left out.

        What holds a slash is an alias first: so are checkpoints called.
        """

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
        """Memories in order; equal ones by arrival in the same direction. `after` continues after a position."""

    @abstractmethod
    def count(self, filter: Filter, audience: Audience, *, now: datetime) -> int:
        """How many memories `list` would give without a limit."""

    @abstractmethod
    def count_waiting(self, filter: Filter, audience: Audience, *, now: datetime) -> int:
        """How many of these have no vector yet and wait for one. Takes as long as all that waits in the store."""

    @abstractmethod
    def match(self, text: str, filter: Filter, audience: Audience, *, now: datetime, limit: int) -> List[Match]:
        """Memories that share words with the text, best first; equal ones newest first.

        A score is BM25 divided by what a memory of average length holding every word of the text once would reach,
        cut at 1: so 0.5 means half of the text's distinctive words. Text without a usable word matches nothing.
        What the audience may not see changes nothing: how rare a word is and how long texts are on average is counted
        from memories within its scopes, or from all of them where it sees all.
        """

    @abstractmethod
    def matched_words(self, text: str, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """For each of these memories the words of the text that it holds, spelt as in the text."""

    @abstractmethod
    def rarity(self, words: Sequence[str], audience: Audience) -> dict[str, float]:
        """How much each of these words tells, by the share of the audience's texts that hold it: from 0 (all) to 1
        (hardly any)."""

    @abstractmethod
    def nearest(
        self,
        vector: Vector,
        filter: Filter,
        audience: Audience,
        *,
        now: datetime,
        limit: int,
        model: str | None = None,
    ) -> List[Match]:
        """The memories whose nearest part has the highest cosine with the vector, best first, each once.

        `model`, the fingerprint of a further model, asks its vectors instead: memories that have none are left out.
        """

    def match_and_nearest(
        self, text: str, vector: Vector, filter: Filter, audience: Audience, *, now: datetime, limit: int
    ) -> tuple[List[Match], List[Match]]:
        """Both answers; at once, where that is quicker than one after the other."""
        return (
            self.match(text, filter, audience, now=now, limit=limit),
            self.nearest(vector, filter, audience, now=now, limit=limit),
        )

    def candidates(
        self, text: str, vector: Vector, filter: Filter, audience: Audience, *, now: datetime, limit: int
    ) -> Candidates:
        """What `match` and `nearest` find, each with both scores."""
        by_words, by_meaning = self.match_and_nearest(text, vector, filter, audience, now=now, limit=limit)
        near = dict(by_meaning)
        further = self.cosines(vector, [match.memory for match in by_words if match.memory not in near])
        return Candidates.of(by_words, by_meaning, further)

    @abstractmethod
    def cosines(self, vector: Vector, ids: Sequence[str], *, model: str | None = None) -> dict[str, float]:
        """The cosine of the vector with each of these memories' nearest part; those without vectors are left out.

        `model` as for `nearest`.
        """

    @abstractmethod
    def glimpses(self, ids: Sequence[str]) -> Glimpses:
        """What ranking wants to know of these memories, in any order; unknown ones are left out."""

    @abstractmethod
    def in_space(self, ids: Sequence[str], space: str) -> set[str]:
        """Which of these memories are in a space; in a store of one space, ids of no memory may be among them."""

    @abstractmethod
    def sketches(self, ids: Sequence[str], audience: Audience) -> List[Sketch]:
        """What is compared with a new memory, of those of these that the audience sees, in the order asked."""

    @abstractmethod
    def vectors(self, ids: Sequence[str]) -> dict[str, Vector]:
        """The vector of each memory's first part; those without are left out."""

    @abstractmethod
    def topics(self, audience: Audience, *, now: datetime, limit: int) -> List[Topic]:
        """What visible decisions that are neither deleted, archived nor expired were made about, newest first."""


class Transaction(Reads):
    """A set of changes that become visible and durable together, or never."""

    callers: CallerChanges
    jobs: JobChanges
    conversations: ConversationChanges
    files: FileChanges
    archives: ArchiveChanges
    history: HistoryChanges
    spaces: SpaceChanges
    statistics: StatisticsChanges
    sync: SyncChanges
    upkeep: UpkeepChanges
    clock: Clock  # stamps every change
    deferred_writes: List[Callable[[], None]]  # called before the next statement

    @abstractmethod
    def put(
        self,
        memory: Memory,
        *,
        fingerprint: bytes,
        vectors: Sequence[Vector] | None,
        parts: int,
        change: Change,
        agreed: bool | None = None,
        former_phrases: Sequence[FormerPhrases] | None = None,
    ) -> Memory:
        """Write a memory's row and words, and its vectors; the result carries its arrival number.

        `vectors` are those of the text's first parts, `parts` how many parts there are: what is missing waits in
        `pending`. `vectors=None` says that the text has not changed: words and vectors stay as they are.
        A memory whose id is not known is new, whatever its version: it may come from another store. A known one
        replaces the version before it, which is kept in the history with `change`. The state that filters see follows
        the memory (`Memory.state`). Of an archived memory only what its row still has is changed. One that is
        deleted, or is in another space than before, is taken out of every conversation that it was injected into.
        `agreed` says of a new one what `judge_category` would. `former_phrases`, all that a known memory ever had, say
        that only its phrases change: it keeps its version, and no former state joins the history.

        :raises Conflict: if it is archived and `vectors` says that its text has changed; if the stored version is not
            ``memory.version - 1``; if a new memory's id is taken, or its path by another active one of the same space
        :raises SpaceNotFound: if its space was never created
        """

    def put_new(self, new: Sequence[Addition]) -> None:
        """Write many new memories, in their order: the same as `put` for each of them, in fewer statements.

        :raises Conflict: if an id is taken, or a path by another active memory of the same space and audience
        :raises SpaceNotFound: if a space was never created
        """
        for one in new:
            change = Change(user="", at=one.memory.updated_at)  # there is no version before it to be kept
            self.put(one.memory, fingerprint=one.fingerprint, vectors=one.vectors, parts=one.parts, change=change)

    @abstractmethod
    def add_vectors(
        self,
        id: str,
        *,
        version: int,
        first_part: int,
        vectors: Sequence[Vector],
        parts: int,
        also: Sequence[str] | None = None,
        model: str | None = None,
    ) -> bool:
        """Add the vectors of further parts. False, and nothing happens, if the text has changed since `version`, or
        its phrases are others than `also`.

        `model` is the fingerprint of a further model. Its vectors, of all parts, come in place of any that are there;
        they go when the text changes.
        """

    @abstractmethod
    def purge(self, id: str, *, at: datetime, final: bool = True) -> None:
        """Erase a memory's text from row, versions, words, vectors, tags, conflicts, kept results and
        the reasons of links and events.

        A tombstone stays, so that totals add up: id, space, kind, category, importance, access level, user,
        conversation, times, reads, version + 1. Purging twice is fine. What was archived is erased as well; an
        object of it is due for removal at once. `final=False` says that only the date of its deletion
        has come: version and stamp stay those of the deletion, so that stores which do it each in its own time agree,
        and a recovery elsewhere is not undone.
        """

    @abstractmethod
    def put_away(self, id: str, archive: Archive, *, keep_vectors: bool) -> None:
        """Take a memory's text out of the hot tables.

        The row stays with what lists are filtered, sorted and counted by, so a memory that is read again has empty
        text, title, path, metadata and detail (but for `name` and `end_given`) and no former versions: the caller has
        packed all of them. Its words are still matched where a filter names `State.ARCHIVED`; its vectors only if they
        are kept. `put` changes everything else of it. Nothing of this changes its version.

        :raises Conflict: if it is already archived
        """

    @abstractmethod
    def bring_back(self, memory: Memory, versions: Sequence[Version], *, at: datetime) -> Memory:
        """Undo `put_away`: the text comes from `memory`, everything else from the row as it is now.

        The archive is forgotten, and its object, if it has one, is due for removal.

        :raises NotFound: if the memory is not archived
        """

    @abstractmethod
    def amend(self, id: str, columns: Mapping[str, Any]) -> None:
        """Change columns of a memory's row. Changes neither version nor stamp, and nothing of a tombstone.

        With `state` its repeats and its file follow.
        """

    def describe(self, memory: Memory) -> None:
        """Bring title, path, metadata of an archived memory back into its row, and leave it archived."""
        if self.archives.get([memory.id]):
            told = {"title": memory.title, "path": memory.path}
            self.amend(memory.id, told | {"metadata": json.dumps(dict(memory.metadata), ensure_ascii=False)})

    def judge_category(self, id: str, *, agreed: bool) -> None:
        """Note whether a memory's category is that of most of its neighbours."""
        self.amend(id, {"category_agreed": int(agreed)})

    def set_access_count(self, id: str, count: int) -> None:
        """Write how often a memory was handed out."""
        self.amend(id, {"access_count": count})

    @abstractmethod
    def replicate(
        self, replica: Replica, *, fingerprint: bytes | None, vectors: Sequence[Vector] | None, change: Change
    ) -> None:
        """Write a memory as it is elsewhere: its stamp and version as they are, whatever is here.

        What is here joins the history (a tombstone has none); other stores' changes that either state had seen are
        seen by the result; aliases are added, those that belong to another memory are left out. A tombstone erases as
        `purge` does. `vectors=None` keeps those that are here. Where the stamp is the same only version, seen and
        aliases are written.

        :raises Conflict: if its path is taken by another active memory of the same space
        :raises SpaceNotFound: if its space was never created
        """

    @abstractmethod
    def drop_vectors(self, *, after: int = 0, limit: int | None = None) -> int | None:
        """Forget the vectors of memories behind an arrival number and let these wait for new ones, at most `limit`.

        For another model that takes over; whatever was derived from vectors goes at once. The arrival number of the
        last one, to go on behind; None if there was none left.
        """

    def drop_unusable_vectors(self) -> int:
        """Forget vectors that are not made of numbers, and let their memories wait for new ones; how many memories.

        None, in a store that cannot hold such vectors.
        """
        return 0


class Store(Reads):
    """One memory's storage. Safe to use from several threads, and together with other processes."""

    tally: Tally  # counts what is handed out, and writes that in batches

    @property
    def damaged(self) -> bool:
        """Whether damage was found since it was opened: it can be read as far as that goes, and is not written."""
        return False

    @property
    def unfinished(self) -> bool:
        """Whether it is the target of a copy that was cut off, or still runs."""
        return self.history.fact("copy") is not None

    def one_reader(self) -> AbstractContextManager[None]:
        """Within the block, what this thread reads goes through one connection, where there are connections."""
        return nullcontext()

    @abstractmethod
    def writing(self, *, timeout_seconds: float | None = None) -> AbstractContextManager[Transaction]:
        """Open a transaction: committed when the block ends, undone when it raises.

        Writers wait for each other, at most 10 seconds unless told otherwise. Never embed or wait for anything else
        inside.

        :raises StorageBusy: if another writer held the store for too long
        :raises StorageFull: if there is no room; nothing was changed
        """

    def rest(self) -> None:
        """Let go of what was read into memory; it is read again when it is needed."""

    def flush_reads(self, *, timeout_seconds: float | None = None) -> None:
        """Write the counted reads now."""
        if self.tally.has_unwritten:
            with self.writing(timeout_seconds=timeout_seconds):
                pass  # every transaction takes them along

    def count_call(
        self,
        key: str,  # noqa: ARG002 -- the arguments are for stores that several machines share
        *,
        seconds: float,  # noqa: ARG002
        amount: int = 1,  # noqa: ARG002
    ) -> tuple[int, float] | None:
        """Count this many more, or fewer, in a window that all processes share: how many there were, and how
        many seconds it lasts.

        None: this store serves one machine, whose server counts by itself.
        """
        return None

    @abstractmethod
    def listening(self, space: str, ring: Callable[[], None]) -> AbstractContextManager[None]:
        """Have `ring` called, from any thread, soon after this or another process has written events of a space.

        Sometimes it is called for nothing. What it costs the store does not depend on how many listen. Entering and
        leaving never wait.
        """

    @abstractmethod
    def check(self, *, deep: bool = False) -> Checkup:
        """Look for damage and for rows without words or vectors. Writes nothing. `deep` reads every page and text."""

    @abstractmethod
    def rebuild(self, *, progress: Callable[[int, int], None] | None = None) -> None:
        """Rebuild words from the memories, and let those without vectors wait for them.

        What only makes searches faster is dropped; `tend` rebuilds it. `progress` is called with how many memories have
        their words, of how many; it must not use the store meanwhile.
        """

    @abstractmethod
    def backup(self, path: Path, *, progress: Callable[[int, int], None] | None = None) -> Checkup:
        """Copy the store as it is now to a new file, and check the copy; others write meanwhile.

        The file appears complete and checked, or not at all. `progress` is called with what is done and with the total.

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
        """Flush and close. Closing twice is fine."""
