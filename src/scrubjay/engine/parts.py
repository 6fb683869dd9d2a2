"""What an engine works with: built, warmed and closed here, shared by everyone the engine is bound to."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from scrubjay.embedders.lending import Lending, give_back_memory
from scrubjay.engine.archive.marks import MarkedObjects
from scrubjay.engine.engine import Engine
from scrubjay.engine.jobs import JobWorker
from scrubjay.engine.store import intake
from scrubjay.engine.store.backlog import Backlog
from scrubjay.engine.store.embedding import Embedding, PendingVectors
from scrubjay.engine.store.models import FurtherModel, Models
from scrubjay.engine.upkeep.housekeeping import Housekeeper, Indexer
from scrubjay.errors import ArchiveUnavailable
from scrubjay.values.callers import DEFAULT_SPACE, Caller, Provenance
from scrubjay.values.store import Prompt
from scrubjay.values.times import utc_now

if TYPE_CHECKING:
    from scrubjay.archives.base import Objects
    from scrubjay.embedders.base import Embedder, Vector
    from scrubjay.engine.conflicts.judge import Judge
    from scrubjay.engine.files.stores import Shelves
    from scrubjay.engine.store.categories import Categoriser
    from scrubjay.engine.sync.peer import Peer
    from scrubjay.folders.registry import Registry
    from scrubjay.machine.suggestions import Suggestions
    from scrubjay.providers.base import Provider
    from scrubjay.stores.promises.memories import Store
    from scrubjay.stores.promises.sync import Endpoint
    from scrubjay.values.memory import Memory

CHECKED = ("mask", "refuse")  # what is done about secrets where every text is checked on its way to a row


class Parts:
    """The store, the model, the folders and the archive of one process, and its work in the background."""

    def __init__(
        self,
        records: Store,
        embedder: Embedder | None,
        *,
        caller: Caller | None = None,
        spaces: tuple[str, ...] = (DEFAULT_SPACE,),
        only: bool = False,
        provenance: Provenance | None = None,
        clock: Callable[[], datetime] = utc_now,
        wait_seconds: float = 2.0,
        fetch: Callable[[], None] | None = None,
        further: Sequence[FurtherModel] = (),
        strict_embedding: bool = False,
        quota: int = 0,
        provider: Provider | None = None,
        secrets: str = "flag",
        instructions: str = "flag",
        archive: Objects | None = None,
        archive_in_store: bool = False,
        archive_quota: int = 0,
        prices: Mapping[str, float] | None = None,
        model: Callable[[Prompt], str] | None = None,
        least_similarity: float = 0.3,
        judge_seconds: float = 0.0,
        registry: Registry | None = None,
        connect: Callable[[Endpoint, bool], Peer] | None = None,
        endpoints: Mapping[str, str] | None = None,
        suggestions: Suggestions | None = None,
        lending: Lending | None = None,
    ) -> None:
        if secrets in CHECKED:
            from scrubjay.engine.trust import guard_store, policy  # else nothing is looked at on its way to a row

            records = guard_store(records, policy(secrets))
        self.records = records
        self.registry = registry
        self.clock = clock
        self.strict_embedding = strict_embedding
        self.quota = quota
        self.provider = provider
        self.secrets = secrets
        self.instructions = instructions
        self.archive = None if archive is None else MarkedObjects(archive, records)
        self.archive_in_store = archive_in_store  # glacier and deep_archive too; older ones may be in the folder
        self.archive_quota = archive_quota
        self.prices = prices or {}
        self.model = model  # a language model that the owner has configured
        self.least_similarity = least_similarity  # of memories that may be consolidated
        self.judge_seconds = judge_seconds or math.inf  # what a store may spend on what it outdates
        self.connect = connect  # (endpoint, may be made) -> a place to sync with
        self.endpoints = endpoints or {}  # named in the settings
        self.suggestions = suggestions  # of this machine's hooks
        self.lending = lending or Lending()
        who = caller or Caller()
        # The engine of the machine's owner: what happens in the background and what people do to files is theirs.
        self.owner = Engine(
            parts=self,
            records=records,
            now=clock,
            identity=who,
            spaces=tuple(intake.check_space(space) for space in spaces),
            only=only,
            provenance=provenance or Provenance(caller=who.user),
        )
        self.embedding = Embedding(embedder, wait_seconds=wait_seconds, fetch=fetch)
        self.models = Models(records, further, wait_seconds=wait_seconds)
        self.pending_vectors = PendingVectors(records)
        self.backlog = Backlog(records, self.embedding, self.models, self._judge_late)
        self.housekeeper = Housekeeper(self.owner)
        self.indexer = Indexer(records)
        self.worker = JobWorker(self.owner)

    # Only a store needs these three: each is made when it is first asked for.

    @cached_property
    def shelves(self) -> Shelves:
        from scrubjay.engine.files.stores import Shelves

        return Shelves()

    @cached_property
    def judge(self) -> Judge:
        from scrubjay.engine.conflicts.judge import Judge

        return Judge(self.embedding)

    @cached_property
    def categoriser(self) -> Categoriser:
        from scrubjay.engine.store.categories import Categoriser

        return Categoriser(self.embedding)

    def checked_text(self, text: str | None) -> str | None:
        """A text that is written beside the store, as the policy about secrets says.

        :raises Unprocessable: if the policy refuses it
        """
        if text is None or self.secrets not in CHECKED:
            return text
        from scrubjay.engine.trust import checked_text, policy

        return checked_text(text, policy(self.secrets))

    def objects(self) -> MarkedObjects:
        """:raises ArchiveUnavailable: if there is no place for archived objects"""
        if self.archive is None:
            raise ArchiveUnavailable("No archive is configured.", hint="Set SCRUBJAY_ARCHIVE to a folder.")
        return self.archive

    def warm(self, *, model: bool = True) -> None:
        """See to what waits, in the background, and load the model there, if wanted; returns at once."""
        if model:
            self.embedding.warm()
            self.models.warm()
        self.backlog.start()
        self.housekeeper.start()
        self.indexer.start()
        self.worker.start()

    def rest(self) -> None:
        """Give back the models and what was read into memory, if no text has needed a vector for ten minutes."""
        embeddings = [self.embedding, *(one.embedding for one in self.models.each)]
        if [each for each in embeddings if each.rest()] and not self.lending.lends:
            self.records.rest()
            gc.collect()
            give_back_memory()

    def close(self) -> None:
        """Finish what waits for a vector, as far as that is quick, and let go of everything. Twice is fine."""
        self.worker.close()
        if "shelves" in vars(self):
            self.shelves.close()
        self.housekeeper.close()
        self.indexer.close()
        self.backlog.close()
        self.embedding.close()
        self.models.close()
        self.records.close()
        if self.provider is not None:
            self.provider.close()

    def _judge_late(self, memory: Memory, vector: Vector) -> None:
        from scrubjay.engine.conflicts.judge import judge_late  # not for a search

        judge_late(self.owner, memory, vector)


def engine_on(records: Store, embedder: Embedder | None, **options: Any) -> Engine:
    """The engine of a store's owner; closing it closes the store. The options are those of `Parts`."""
    return Parts(records, embedder, **options).owner
