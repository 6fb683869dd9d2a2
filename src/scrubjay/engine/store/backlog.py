"""Texts that wait for their vectors: stored while the model was away, or past the first parts of a long text.

One process at a time works on them, under a lease, whichever is alive. A text that fails again and again while others
do not is left alone and reported by `doctor`; a model that is away is waited for, however long.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING

from scrubjay.engine.holding import CLOSING_SECONDS, LEASE_SECONDS, PAUSE_SECONDS
from scrubjay.engine.store.embedding import Embedding
from scrubjay.engine.store.models import BATCH, Further, Models
from scrubjay.errors import EmbeddingError, Error, ModelMissing, StorageBusy
from scrubjay.lazy import logging
from scrubjay.stores.promises.memories import ONLY_TO_JUDGE, OWN_MODEL, Pending, Store
from scrubjay.values.memory import Memory, random_suffix

if TYPE_CHECKING:
    from logging import Logger

    from scrubjay.embedders.base import Vector

LEASE = "embedding"
GIVE_UP = 5  # failed attempts at one text


class Backlog:
    """The background worker of one process. `judge` compares a memory with earlier ones once it has its vector."""

    def __init__(
        self, store: Store, embedding: Embedding, models: Models, judge: Callable[[Memory, Vector], None]
    ) -> None:
        self._store = store
        self._embedding = embedding
        self._models = models
        self._judge = judge
        self._holder = random_suffix()
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._left_behind = False
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def start(self) -> None:
        """Look after the backlog in the background; once is enough."""
        with self._lock:
            if self._thread is None and self._embedding.embedder is not None and not self._closing.is_set():
                self._thread = threading.Thread(target=self._run, name="backlog", daemon=True)
                self._thread.start()

    def wake(self) -> None:
        """Something waits: see to it soon."""
        self._left_behind = True
        self._wake.set()
        self.start()

    def drain(self, *, seconds: float | None = None, progress: Callable[[int, int], None] | None = None) -> bool:
        """Embed what waits, for at most some seconds; True when nothing is left that can be done."""
        done, total = 0, self._store.upkeep.count_pending() if progress else 0
        deadline = None if seconds is None else monotonic() + seconds
        if not self._store.upkeep.lease(LEASE, holder=self._holder, seconds=LEASE_SECONDS):
            return False
        try:
            while batch := [one for one in self._store.upkeep.pending(limit=BATCH) if one.attempts < GIVE_UP]:
                for one in batch:
                    if deadline is not None and monotonic() > deadline:
                        return False
                    if not self._store.upkeep.lease(LEASE, holder=self._holder, seconds=LEASE_SECONDS):
                        return False
                    self._try_to_embed(one)
                    done += 1
                    if progress:
                        progress(done, max(done, total))
            return True
        finally:
            self._store.upkeep.release(LEASE, holder=self._holder)

    def fill(
        self, model: Further, *, seconds: float | None = None, progress: Callable[[int, int], None] | None = None
    ) -> int | None:
        """Make the missing vectors of a further model, for at most some seconds; for how many memories. None: another
        process does it.

        :raises EmbeddingError: if that model is not here
        """
        deadline = None if seconds is None else monotonic() + seconds

        def go_on() -> bool:
            in_time = deadline is None or monotonic() < deadline
            return in_time and self._store.upkeep.lease(LEASE, holder=self._holder, seconds=LEASE_SECONDS)

        if not go_on():
            return None
        try:
            return model.fill(go_on, progress)
        finally:
            self._store.upkeep.release(LEASE, holder=self._holder)

    def finish_further(self, progress: Callable[[int, int], None] | None = None) -> int | None:
        """Make all that further models lack, if the store has texts for them; for how many memories in all. None: a
        model is not here, or another process does it."""
        try:
            made = [self.fill(model, progress=progress) for model in self._models.each if model.look_at_all()]
        except EmbeddingError:
            return None
        return None if None in made else sum(filter(None, made))

    def finish(
        self, progress: Callable[[int, int], None] | None = None, waiting: Callable[[], None] | None = None
    ) -> None:
        """Embed all that waits, however long it takes; waits for another process's lease to end, and says so.

        :raises StorageBusy: if another process keeps its lease
        """
        patience = monotonic() + 2 * LEASE_SECONDS
        while not self.drain(progress=progress):
            if monotonic() > patience:
                raise StorageBusy("Another process is embedding the backlog.", hint="Try again when it is done.")
            if waiting:
                waiting()
            self._closing.wait(0.5)

    def close(self) -> None:
        self._closing.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(timeout=CLOSING_SECONDS)
        elif self._left_behind and self._embedding.embedder is not None:
            self._try_drain(seconds=CLOSING_SECONDS)

    def _run(self) -> None:
        while not self._closing.is_set():
            self._wake.clear()
            self._try_drain()
            self._wake.wait(timeout=PAUSE_SECONDS)
        if self._left_behind:
            self._try_drain(seconds=CLOSING_SECONDS)

    def _try_drain(self, *, seconds: float | None = None) -> None:
        try:
            woken = self._left_behind
            if self._other_model() or not self._store.upkeep.pending(limit=1) or self.drain(seconds=seconds):
                self._left_behind = False
            for model in self._models.each:
                if model.due(woken=woken):
                    self.fill(model, seconds=seconds)
        except Error as error:  # the store or the model is away; the next look tries again
            log().info("the backlog could not be embedded: %s", error.message)
        except Exception:  # noqa: BLE001 -- a fault of ours must not end the thread
            log().exception("fault in the backlog")

    def _other_model(self) -> bool:
        return self._store.history.fact(OWN_MODEL) not in (None, self._embedding.fingerprint)

    def _try_to_embed(self, one: Pending) -> None:
        try:
            self._embed(one)
        except Error:
            raise
        except Exception:  # noqa: BLE001 -- a fault at one memory must not keep the others waiting
            log().exception("fault in the backlog, at memory %s", one.memory.id)
            with self._store.writing() as tx:
                tx.upkeep.put_off(one.memory.id, failed=True)

    def _embed(self, one: Pending) -> None:
        """Embed a text's missing parts a few at a time, so that a long one never holds the model for long."""
        memory = one.memory
        if one.next_part == ONLY_TO_JUDGE:
            if (vector := self._store.vectors([memory.id]).get(memory.id)) is not None:
                self._judge(memory, vector)
            with self._store.writing() as tx:
                tx.upkeep.end_judgement(memory.id)
            return
        parts = self._embedding.parts_of(memory)
        first: Vector | None = None
        for start in range(one.next_part, len(parts), BATCH):
            try:
                vectors = self._embedding.at_leisure(parts[start : start + BATCH])
            except ModelMissing:
                raise  # not this text's fault
            except EmbeddingError:
                if self._embedding.answers():
                    with self._store.writing() as tx:
                        tx.upkeep.put_off(memory.id, failed=True)
                raise
            first = vectors[0] if start == 0 else first
            if not self._write(memory, start, vectors, len(parts), judged=one.judged):
                return  # the text has changed meanwhile and waits again
        if first is not None and not one.judged:
            self._judge(memory, first)
            with self._store.writing() as tx:
                tx.upkeep.end_judgement(memory.id)

    def _write(self, memory: Memory, start: int, vectors: Sequence[Vector], parts: int, *, judged: bool) -> bool:
        with self._store.writing() as tx:
            if tx.history.fact(OWN_MODEL) is None and self._embedding.fingerprint is not None:
                tx.history.set_fact(OWN_MODEL, self._embedding.fingerprint)
            written = tx.add_vectors(
                memory.id,
                version=memory.version,
                first_part=start,
                vectors=vectors,
                parts=parts,
                also=memory.also,
            )
            if written and not judged and start + len(vectors) >= parts:
                tx.upkeep.await_judgement(memory.id)  # the next process does it, if this one is killed now
            return written


def log() -> Logger:
    return logging.getLogger(__name__)
