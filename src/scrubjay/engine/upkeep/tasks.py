"""Work on the whole store: backups, checks, another model, new indexes; at once or as a job."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from scrubjay.engine.holding import BATCH, LEASE_SECONDS, PAGE
from scrubjay.engine.store.backlog import GIVE_UP, LEASE
from scrubjay.engine.store.embedding import HARMLESS
from scrubjay.errors import Conflict, EmbeddingError, InvalidInput, Locked, ModelMissing
from scrubjay.machine.paths import full_path
from scrubjay.stores.promises.memories import OWN_MODEL, Checkup, Pending
from scrubjay.values.frozen import dataclass
from scrubjay.values.memory import random_suffix

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine
    from scrubjay.engine.jobs import Handle
    from scrubjay.values.store import Job

REBUILT = ("words", "vectors and hints", "vectors for other languages", "vector index")
WAITING = "waiting"  # what a rebuild says instead while another process makes vectors


class Upkeep:
    """Looks after the store as a whole."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def backup(self, path: Path, *, progress: Callable[[int, int], None] | None = None) -> Checkup:
        """Copy the whole store, every space of it, to a new file; others may write meanwhile.

        :raises Conflict: if there is something already
        """
        return self._engine.records.backup(path, progress=progress)

    def reembed(self, *, progress: Callable[[int, int], None] | None = None) -> Reembedded:
        """Let this engine's model take over: every vector is rebuilt. Resumes where it was interrupted.

        :raises Locked: if another process is embedding
        """
        return Reembedding(self._engine).run(progress)

    def check(self, *, deep: bool = False) -> Checkup:
        """Look for damage; writes nothing."""
        return self._engine.records.check(deep=deep)

    def rebuild(self, progress: Callable[[str, int, int | None], None] | None = None) -> None:
        """Rebuild the word index, missing vectors (of every model) and the vector index.

        `progress` is called with what is being made, and how much of it is done, or that it waits (`WAITING`); it must
        not use the store meanwhile.

        :raises StorageBusy: if another process is embedding and does not stop
        """
        words, vectors, further, index = (progress and partial(progress, name) for name in REBUILT)
        self._engine.records.rebuild(progress=words)
        self._engine.parts.backlog.finish(vectors, progress and partial(progress, WAITING, 0, None))
        self._engine.parts.backlog.finish_further(further)
        self._engine.parts.indexer.finish(index)

    @property
    def unfinished(self) -> bool:
        """Whether the store is the target of a copy that is not finished."""
        return self._engine.records.unfinished

    @property
    def damaged(self) -> bool:
        """Whether damage was found since the memory was opened; then it is not written any more."""
        return self._engine.records.damaged

    @property
    def archive_trouble(self) -> str | None:
        """What keeps archived memories from being read, as a running server last saw it; None if nothing does."""
        return None if self._engine.parts.archive is None else self._engine.parts.archive.trouble

    # --- the same in the background, for who looks after a server from afar: these answer with a job ---

    def start_backup(self, file: str) -> Job:
        """Copy the whole store to a new file of this machine.

        :raises Conflict: if there is something already
        """
        path = full_path(file, field="file")
        if not path.parent.is_dir():
            raise InvalidInput("file must be a new file in an existing folder.", field="file")
        if path.exists() or path.is_symlink():
            raise Conflict("The file already exists.", hint="Choose another name.")
        return self._engine.jobs.start("backup", {"file": str(path)})

    def start_reembed(self) -> Job:
        """Rebuild every vector with the configured model."""
        return self._engine.jobs.start("reembed", {})

    def start_rebuild(self) -> Job:
        """Rebuild the word index, missing vectors and the vector index."""
        return self._engine.jobs.start("rebuild", {})


def run_backup(engine: Engine, arguments: Mapping[str, Any], handle: Handle) -> Mapping[str, Any]:
    checkup = engine.upkeep.backup(Path(arguments["file"]), progress=reporting(handle, "copying"))
    return {"memories": checkup.memories}


def run_reembed(engine: Engine, _arguments: Mapping[str, Any], handle: Handle) -> Mapping[str, Any]:
    done = engine.upkeep.reembed(progress=reporting(handle, "embedding"))
    return {"model": done.model, "memories": done.memories, "failed": done.failed}


def run_rebuild(engine: Engine, _arguments: Mapping[str, Any], _handle: Handle) -> Mapping[str, Any]:
    engine.upkeep.rebuild()
    return {}


def reporting(handle: Handle, note: str) -> Callable[[int, int], None]:
    return lambda done, total: handle.progress(done, total, note)


BECOMING = "becoming "
CLEARED = "reembedding_cleared"  # vectors up to this memory are gone
PATIENCE_SECONDS = 2 * LEASE_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Reembedded:
    model: str
    memories: int  # that were given new vectors
    failed: int  # that could not be embedded; `doctor` counts them
    further: int | None = 0  # that were given vectors of further models; None: one of them is not here


class Reembedding:
    """Another model takes over: every vector is dropped and rebuilt.

        model: old ──begin──> model: "becoming <new>" ──clear, embed──> model: new

    While the store is becoming another model's, its `model` belongs to no process: every process searches by words and
    lets new memories wait, so vectors of two models never meet. Each step is a short transaction; killed at any moment,
    the next call goes on. Memories may be stored, changed and erased meanwhile.
    """

    def __init__(self, engine: Engine) -> None:
        self._records = engine.records
        self._embedding = engine.parts.embedding
        self._indexer = engine.parts.indexer
        self._backlog = engine.parts.backlog
        self._holder = random_suffix()

    def run(self, progress: Callable[[int, int], None] | None = None) -> Reembedded:
        """Continue until all vectors are this model's. `progress` is called with what is done and with the total.

        :raises ModelMissing: if there is no model to take over
        :raises EmbeddingError: if the model does not answer any more; the next call goes on
        :raises Locked: if another process is embedding
        """
        model = self._embedding.fingerprint
        if model is None:
            raise ModelMissing("No embedding model is configured.", hint="Choose one: SCRUBJAY_EMBEDDER.")
        self._embedding.at_leisure([HARMLESS])  # before anything is thrown away
        if self._records.history.fact(OWN_MODEL) == model:
            done, failed = self._replace_unusable(progress)
            return Reembedded(model=model, memories=done, failed=failed, further=self._backlog.finish_further(progress))
        self._wait_for_hold()
        try:
            self._begin(model)
            while self._clear_some():
                self._hold()
            done, failed = self._embed_all(progress)
            with self._records.writing() as tx:
                tx.history.set_fact(OWN_MODEL, model)
        finally:
            self._records.upkeep.release(LEASE, holder=self._holder)
        further = self._backlog.finish_further(progress)
        self._indexer.finish()
        return Reembedded(model=model, memories=done, failed=failed, further=further)

    def _replace_unusable(self, progress: Callable[[int, int], None] | None) -> tuple[int, int]:
        """Vectors that are not made of numbers; the others are this model's already."""
        with self._records.writing() as tx:
            if not tx.drop_unusable_vectors():
                return 0, 0
        self._wait_for_hold()
        try:
            return self._embed_all(progress)
        finally:
            self._records.upkeep.release(LEASE, holder=self._holder)

    def _wait_for_hold(self) -> None:
        """One that was killed has left its lease behind; that ends by itself."""
        deadline = monotonic() + PATIENCE_SECONDS
        while not self._records.upkeep.lease(LEASE, holder=self._holder, seconds=LEASE_SECONDS):
            if monotonic() > deadline:
                self._hold()
            sleep(0.2)

    def _hold(self) -> None:
        if not self._records.upkeep.lease(LEASE, holder=self._holder, seconds=LEASE_SECONDS):
            raise Locked("Another process is embedding.", hint="Try again in a moment.")

    def _begin(self, model: str) -> None:
        """Take the store away from its old model; a third one that was about to take over starts over."""
        with self._records.writing() as tx:
            if tx.history.fact(OWN_MODEL) != BECOMING + model:
                tx.history.set_fact(OWN_MODEL, BECOMING + model)
                tx.history.set_fact(CLEARED, "0")

    def _clear_some(self) -> bool:
        with self._records.writing() as tx:
            last = tx.drop_vectors(after=int(tx.history.fact(CLEARED) or 0), limit=PAGE)
            if last is not None:
                tx.history.set_fact(CLEARED, str(last))
            return last is not None

    def _embed_all(self, progress: Callable[[int, int], None] | None) -> tuple[int, int]:
        done = failed = 0
        total = self._records.check().pending
        while batch := [one for one in self._records.upkeep.pending(limit=BATCH) if one.attempts < GIVE_UP]:
            self._hold()
            try:
                self._embed(batch)
                done += len(batch)
            except ModelMissing:
                raise
            except EmbeddingError:  # one of them is to blame: each by itself
                for one in batch:
                    failed += not self._embed_alone(one)
                done += len(batch)
            if progress:
                progress(min(done, total), total)
        return done - failed, len(self._records.upkeep.pending(limit=1_000))

    def _embed_alone(self, one: Pending) -> bool:
        try:
            self._embed([one])
        except ModelMissing:
            raise
        except EmbeddingError as error:
            if not self._embedding.answers():
                raise EmbeddingError(
                    error.message, hint="Run it again when the model is available: it resumes."
                ) from error
            with self._records.writing() as tx:
                tx.upkeep.put_off(one.memory.id, failed=True)
            return False
        return True

    def _embed(self, batch: Sequence[Pending]) -> None:
        """All missing parts of these memories, written together; those changed meanwhile wait again."""
        split = [self._embedding.parts_of(one.memory) for one in batch]
        missing = [parts[one.next_part :] for one, parts in zip(batch, split, strict=True)]
        vectors = iter(self._embedding.at_leisure([part for parts in missing for part in parts]))
        made = [[next(vectors) for _ in parts] for parts in missing]
        with self._records.writing() as tx:
            for one, parts, own in zip(batch, split, made, strict=True):
                tx.add_vectors(
                    one.memory.id,
                    version=one.memory.version,
                    first_part=one.next_part,
                    vectors=own,
                    parts=len(parts),
                    also=one.memory.also,
                )
