"""The embedder as the engine uses it: loaded in the background, waited for a little, never in a write's way.

    down ──warm()──> loading ──> up <──> down (why, until when)
                        └──<─ a borrowed model is gone, or was given back

A call waits at most `wait_seconds` for its vector, counted from when the model is loaded; for that, the first calls
wait longer (`LOADING_SECONDS`). One that came too late or failed takes the embedder down: calls that follow answer by
words at once instead of waiting again, until a piece of background work succeeds in time.

Waiting needs a second thread, and to wake it and be woken by it costs as much as a seventh of a search. So a model of
this process that was quick the last time is asked in the caller's own thread. If it then is slow, that one call takes
longer, and the next waits by another thread again.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from math import isfinite
from time import monotonic, sleep
from typing import TYPE_CHECKING, TypeVar

from scrubjay.embedders.base import NotLoaded
from scrubjay.engine.store.history import TextVectors
from scrubjay.errors import EmbeddingError, Error, ModelMissing, StorageError
from scrubjay.lazy import futures
from scrubjay.lazy import numpy as np
from scrubjay.stores.promises.memories import OWN_MODEL

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor
    from datetime import datetime

    from scrubjay.embedders.base import Embedder, Vector
    from scrubjay.engine.engine import Engine
    from scrubjay.stores.promises.memories import Store
    from scrubjay.values.callers import Audience
    from scrubjay.values.memory import Memory
    from scrubjay.values.search import Filter
    from scrubjay.values.vectors import Knots

Result = TypeVar("Result")
Payload = TypeVar("Payload")
Item = TypeVar("Item")

THREADS = 2  # that embed what calls wait for, or the next batches of a bulk load
QUICK = 0.1  # of the time that a call waits: a model that answered within it is asked without a second thread
AT_ONCE = 2  # parts of a long text embedded within the call; the rest follow in the background
GIL_SLICE_SECONDS = 0.0005  # for which a bulk load keeps the interpreter's lock while texts are embedded …
GIL_YIELD_SECONDS = 0.00005  # … and for which it lets other threads have it: as long as a thread takes to wake
LOADING_SECONDS = 10.0  # from when loading begins, for which calls wait until the model is loaded
TRY_AGAIN_SECONDS = 15.0
TRIES = 3  # to get a vector of a model that is borrowed from others
LOOK_SECONDS = 5.0  # for which a count of memories without vectors is used again
BY_WORDS = "they are found by their words only."
PAGE = 10  # memories: from a tenth that waits on, one of them is likely to be missing
NOTHING: Knots = ((0.0, 0.0),)  # what a cosine is worth without a model
HARMLESS = "Is the model installed?"
LOADING = "The embedding model is still loading."
LOST = "The process that lends the embedding model ended, again and again."
TOO_LATE = "The embedding model did not answer in time."
LATER = "It is embedded in the background."
NO_MODEL = "No embedding model is configured; searches use words only."
OTHER_MODEL = "The store's vectors come from another embedding model; searches use words only."
BEING_REEMBEDDED = "The store's vectors are being rebuilt (scrubjay reembed); searches use words only."


class Embedding:
    """One process' embedder, shared by every engine bound to it."""

    def __init__(
        self, embedder: Embedder | None, *, wait_seconds: float, fetch: Callable[[], None] | None = None
    ) -> None:
        self.embedder = embedder
        self._wait_seconds = wait_seconds
        self._fetch = fetch
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._loading: Future[None] | None = None
        self._loading_until = 0.0
        self._why_down: str | None = None
        self._down_until = 0.0
        self._quick = False  # it answered quickly the last time
        self._here = 0  # calls that embed in their own thread just now
        self.busy_seconds = 0.0  # that bulk loads spent embedding …
        self._busy_until = 0.0  # … up to this time: two batches at once count once
        self._at_work = 0  # how many batches of texts are being embedded
        self.fits = False  # whether the store's vectors were this model's when that was last looked at

    @property
    def fingerprint(self) -> str | None:
        return self.embedder.fingerprint if self.embedder else None

    def parts_of(self, memory: Memory) -> list[str]:
        """Split a memory's text into parts that fit the model's window, each with its phrases, to be embedded."""
        if self.embedder is None:
            return [memory.embeddable]
        whole = self.embedder.split(memory.embeddable)
        if len(whole) == 1 or not memory.also:
            return whole
        text = memory.embeddable.removesuffix(memory.phrases).removesuffix("\n")
        return [line for part in self.embedder.split(text) for line in self._with_phrases(part, memory.phrases)]

    def _with_phrases(self, part: str, phrases: str) -> Iterator[str]:
        """Put the phrases below the part; in two halves, if both together are too long for the model's window."""
        line, half = f"{part}\n{phrases}", len(part) // 2
        if half < len(phrases) or self.embedder is None or len(self.embedder.split(line)) == 1:
            yield line
            return
        cut = part.rfind(" ", half // 2, half) + 1 or half
        yield from self._with_phrases(part[:cut], phrases)
        yield from self._with_phrases(part[cut:], phrases)

    @property
    def calibration(self) -> Knots:
        """What the model's cosines are worth."""
        return self.embedder.calibration if self.embedder else NOTHING

    def calibrate(self, cosine: float) -> float:
        return self.embedder.calibrate(cosine) if self.embedder else 0.0

    def warm(self) -> Future[None] | None:
        """Start loading, once; returns at once."""
        with self._lock:
            if self.embedder is None:
                return None
            if self._loading is None:
                self._pool = self._pool or futures.ThreadPoolExecutor(THREADS, "embedding")
                self._loading = self._pool.submit(self._load)
                self._loading_until = monotonic() + LOADING_SECONDS
            return self._loading

    def query(self, text: str) -> Vector:
        """:raises EmbeddingError: when no vector comes in time; search by words instead"""
        return self._in_time(lambda embedder: to_arrays(embedder, [embedder.embed_query(text)], 1)[0])

    def texts(self, texts: Sequence[str]) -> list[Vector]:
        """:raises EmbeddingError: when no vectors come in time; store without them"""
        return self._in_time(lambda embedder: to_arrays(embedder, embedder.embed(texts), len(texts)))

    def at_leisure(self, texts: Sequence[str]) -> list[Vector]:
        """Embed for as long as it takes; success in time brings the embedder back up.

        :raises EmbeddingError: if it fails
        """
        return self._retry_after_loading(lambda: self._at_leisure(texts))

    def _at_leisure(self, texts: Sequence[str]) -> list[Vector]:
        if self.embedder is None:
            raise ModelMissing("No embedding model is configured.")
        loading = self.warm()
        assert loading is not None
        loading.result()
        begun = monotonic()
        with self._lock:
            self._at_work += 1
        try:
            vectors = to_arrays(self.embedder, self.embedder.embed(texts), len(texts))
            with self._lock:
                ended = monotonic()
                self.busy_seconds += ended - max(begun, self._busy_until)
                self._busy_until = ended
        except EmbeddingError as error:
            self._take_down(error.message)
            raise
        finally:
            with self._lock:
                self._at_work -= 1
        if monotonic() - begun <= self._wait_seconds * len(texts):
            self._why_down = None
        return vectors

    def yielding_gil(self, items: Iterable[Item]) -> Iterator[Item]:
        """Give these items one by one, and pause now and then while texts are embedded in the background.

        A thread that has a vector needs the interpreter's lock to begin with its next text. From a thread that never
        lets go of the lock it gets it only after 5 ms (`sys.getswitchinterval`), about as long as embedding one text
        takes. To yield after each item would take as much of the processor as a sixth of the item.
        """
        since = monotonic()
        for item in items:
            yield item
            if self._at_work and monotonic() - since >= GIL_SLICE_SECONDS:
                sleep(GIL_YIELD_SECONDS)
                since = monotonic()

    def answers(self) -> bool:
        """Whether the model embeds a harmless text: if so, a text that failed is itself the reason."""
        try:
            self.at_leisure([HARMLESS])
        except EmbeddingError:
            return False
        return True

    def rest(self) -> bool:
        """Give the model back if nothing has needed it for long, and say whether it was given back."""
        if self.embedder is None or not self.embedder.rest():
            return False
        self._forget_loading()
        return True

    def close(self) -> None:
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)
        if self.embedder is not None:
            self.embedder.close()

    def _forget_loading(self) -> None:
        with self._lock:
            if self._loading is not None and self._loading.done():
                self._loading = None

    def _retry_after_loading(self, work: Callable[[], Result]) -> Result:
        """Do the work, and again if the lending process is gone: then the model is loaded first, here or elsewhere."""
        for _ in range(TRIES):
            try:
                return work()
            except NotLoaded:
                self._forget_loading()
        raise EmbeddingError(LOST)

    def _in_time(self, work: Callable[[Embedder], Result]) -> Result:
        return self._retry_after_loading(lambda: self._try_in_time(work))

    def _try_in_time(self, work: Callable[[Embedder], Result]) -> Result:
        if self.embedder is None:
            raise ModelMissing("No embedding model is configured.")
        if self._why_down is not None and monotonic() < self._down_until:
            raise EmbeddingError(self._why_down)
        loading, pool = self.warm(), self._pool
        if loading is None or pool is None:
            raise StorageError("The store is closed.")
        was_loaded = loading.done()
        try:
            loading.result(timeout=max(self._wait_seconds, self._loading_until - monotonic()))
            begun = monotonic()
            if self._quick and self.embedder.in_process and self._enter():
                try:
                    vector = work(self.embedder)
                finally:
                    self._leave()
            else:
                vector = pool.submit(work, self.embedder).result(timeout=self._wait_seconds)
            self._quick = monotonic() - begun <= QUICK * self._wait_seconds
        except futures.CancelledError:
            raise StorageError("The store is closed.") from None
        except TimeoutError:
            self._quick = False
            why = TOO_LATE if loading.done() else LOADING
            if was_loaded or why is LOADING:  # its first answer after loading says nothing of how quick it is
                self._take_down(why)
            raise EmbeddingError(why) from None
        except EmbeddingError as error:
            self._take_down(error.message)
            raise
        self._why_down = None
        return vector

    def _enter(self) -> bool:
        """Whether the calling thread may embed by itself: at most as many at once as there are threads for it."""
        with self._lock:
            free = self._here < THREADS
            self._here += free
            return free

    def _leave(self) -> None:
        with self._lock:
            self._here -= 1

    def _load(self) -> None:
        assert self.embedder is not None
        try:
            try:
                self.embedder.load()
            except ModelMissing:
                if self._fetch is None:
                    raise
                self._take_down("The embedding model is being downloaded.", seconds=3600)
                self._fetch()
                self.embedder.load()
            self._why_down = None
        except EmbeddingError as error:
            self._take_down(error.message)
            with self._lock:
                self._loading = None  # a later call tries again
            raise

    def _take_down(self, why: str, *, seconds: float = TRY_AGAIN_SECONDS) -> None:
        self._down_until = monotonic() + seconds
        self._why_down = why


class PendingVectors:
    """The memories without vectors, which a search by meaning may miss.

    Counting them takes as long as a search, so a count is used for some seconds; and while no memory of the store waits
    for vectors, as nearly always, nothing is counted.
    """

    def __init__(self, records: Store) -> None:
        self._records = records
        self._any, self._look_at = False, 0.0
        self._warnings: dict[tuple[Filter, Audience], str | None] = {}

    def warning(self, filter: Filter, audience: Audience, now: datetime, *, met_one: bool = False) -> str | None:
        """Say how many of the searched memories have no vectors, if a page is likely to lack one of them.

        With `met_one` the caller has met a hit without a vector, so an earlier answer that none waits does not count.
        """
        if monotonic() >= self._look_at or (met_one and not self._any):
            self._warnings = {}
            self._any, self._look_at = self._records.upkeep.any_waits(), monotonic() + LOOK_SECONDS
        if not self._any:
            return None
        key, warnings = (filter, audience), self._warnings  # another thread may replace this dictionary meanwhile
        if key not in warnings:
            waiting = self._records.count_waiting(filter, audience, now=now)
            searched = self._records.count(filter, audience, now=now) if waiting else 0
            warnings[key] = without_vectors(waiting, searched) if waiting * PAGE >= searched else None
        return warnings[key]


def without_vectors(waiting: int, searched: int) -> str | None:
    """Say how many of the searched memories have no vectors; doctor counts those of the whole store."""
    if not waiting:
        return None
    if searched == 1:
        return "The only memory that was searched has no vectors yet: it is found by its words only."
    if waiting >= searched:
        return f"None of the {searched:,} memories that were searched has vectors yet: {BY_WORDS}"
    have, how = ("has", "it is found by its words only.") if waiting == 1 else ("have", BY_WORDS)
    return f"{waiting:,} of the {searched:,} memories that were searched {have} no vectors yet: {how}"


def to_arrays(embedder: Embedder, vectors: Sequence[Vector], texts: int) -> list[Vector]:
    """Convert vectors to arrays; embedders of others may return anything, such as lists of numbers.

    :raises EmbeddingError: unless there is one vector of numbers, of the right length, for each text
    """
    try:
        with np.errstate(over="ignore"):
            found = [np.asarray(vector, dtype=np.float32) for vector in vectors]
    except (TypeError, ValueError, OverflowError):
        found = []
    if len(found) != texts or any(vector.shape != (embedder.dimension,) for vector in found):
        raise EmbeddingError(f"The model did not return one vector of {embedder.dimension} numbers for each text.")
    if not all(isfinite(vector.min()) and isfinite(vector.max()) for vector in found):
        raise EmbeddingError("The model returned unusable numbers.")
    return found


# --- what a call embeds ----------------------------------------------------------------------------------------------


def embed(engine: Engine, memory: Memory) -> tuple[TextVectors, str | None]:
    """Embed a text's first parts within the waiting time; without vectors, say why there are none."""
    embedding = engine.parts.embedding
    parts = embedding.parts_of(memory)
    if not engine.with_model:
        return TextVectors(vectors=(), parts=len(parts)), LATER
    vectors: Sequence[Vector] = ()
    if (reason := cannot_embed(engine)) is None:
        try:
            vectors = embedding.texts(parts[:AT_ONCE])
        except EmbeddingError as error:
            reason = error.message
    further, waits = engine.parts.models.text(memory)
    return TextVectors(vectors=vectors, parts=len(parts), further=further, further_wait=waits), reason


def embed_at_leisure(engine: Engine, memories: Sequence[Memory]) -> Sequence[TextVectors]:
    """Embed all parts of all texts; what cannot be embedded now waits in the backlog."""
    embedding = engine.parts.embedding
    split = [embedding.parts_of(memory) for memory in memories]
    vectors: Iterator[Vector] = iter(())
    if check_model(engine) is None:
        try:
            vectors = iter(embedding.at_leisure([part for parts in split for part in parts]))
        except EmbeddingError:
            engine.parts.backlog.wake()
    further = engine.parts.models.texts(memories)
    return [
        TextVectors(vectors=tuple(islice(vectors, len(parts))), parts=len(parts), further=others)
        for parts, others in zip(split, further, strict=True)
    ]


def embed_ahead(
    engine: Engine, batches: Iterable[tuple[Sequence[Memory], Payload]]
) -> Iterator[tuple[Sequence[Memory], Sequence[TextVectors], Payload]]:
    """Embed the texts of batches: those of the next ones in the background, while the caller writes this one.

    There are always two, so that the embedder begins with one while it ends the other. An error in the source is raised
    once all that came before it was given out.
    """
    if engine.parts.embedding.embedder is None:  # nothing takes long enough to be worth a thread
        for memories, payload in batches:
            yield memories, embed_at_leisure(engine, memories), payload
        return
    waiting: deque[tuple[Sequence[Memory], Future[Sequence[TextVectors]], Payload]] = deque()

    def take_ready(left: int) -> Iterator[tuple[Sequence[Memory], Sequence[TextVectors], Payload]]:
        while len(waiting) > left:
            memories, texts, payload = waiting.popleft()
            yield memories, texts.result(), payload

    pool = futures.ThreadPoolExecutor(THREADS, "ahead")
    try:
        try:
            for memories, payload in batches:
                waiting.append((memories, pool.submit(embed_at_leisure, engine, memories), payload))
                yield from take_ready(THREADS)
        except Error:
            yield from take_ready(0)
            raise
        yield from take_ready(0)
    finally:
        # A caller who leaves early (an interrupt, a full disk) does not wait for vectors that will not be written.
        pool.shutdown(wait=False, cancel_futures=True)


def embed_query(engine: Engine, question: str) -> tuple[Vector | None, str | None]:
    """Embed a question; without a vector, say why there is none."""
    embedding = engine.parts.embedding
    if (reason := cannot_embed(engine)) is not None:
        return None, reason
    try:
        return embedding.query(question), None
    except EmbeddingError as error:
        return None, error.message


def cannot_embed(engine: Engine) -> str | None:
    """Say why vectors of this model are of no use to this store, as far as is known without reading it.

    A call that compares vectors asks again (`check_model`) when it reads the store anyway.
    """
    return None if engine.parts.embedding.fits else check_model(engine)


def check_model(engine: Engine) -> str | None:
    """Say why vectors of this model are of no use to this store; None if they are of use."""
    embedding = engine.parts.embedding
    if embedding.embedder is None:
        return NO_MODEL
    kept = engine.records.history.fact(OWN_MODEL)
    embedding.fits = kept in (None, embedding.fingerprint)
    if kept is None or embedding.fits:
        return None
    return BEING_REEMBEDDED if kept.startswith("becoming ") else OTHER_MODEL


def check_degraded(engine: Engine, degraded: str | None) -> None:
    """:raises EmbeddingError: if words alone are not to be enough, and there are only words"""
    if degraded is not None and engine.parts.strict_embedding:
        raise EmbeddingError(degraded)
