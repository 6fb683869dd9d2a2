"""The model for other languages, beside the store's own.

    not needed ──the first text in another language, or languages = on──> in use: every text gets its vectors, too

Whether a store uses it is kept there (`SECOND`), so every process sees it. Until then nothing of it is loaded. Its
vectors are made within a call where that is quick, else by the backlog. Without it, or without vectors of some
memories, everything works as before: that part of the score is missing. What it is worth: docs/lab/languages.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from scrubjay.engine.store.embedding import AT_ONCE, Embedding
from scrubjay.errors import EmbeddingError, ModelMissing
from scrubjay.values.languages import in_another_language

if TYPE_CHECKING:
    from scrubjay.embedders.base import Embedder, Vector
    from scrubjay.stores.promises.memories import Store
    from scrubjay.values.memory import Memory
    from scrubjay.values.vectors import Knots

SECOND = "second_model"  # the fact that says whose second vectors a store has
LOOK_SECONDS = 2.0  # between looks whether another process uses it
BATCH = 16
AGAIN_SECONDS = 600.0  # between looks for memories that others left without


class Asked(NamedTuple):
    """A question as the second model sees it."""

    model: str
    vector: Vector
    calibration: Knots  # what its cosines are worth
    foreign: bool  # whether it is in another language than English


class Languages:
    """One process' model for other languages. `mode`: auto, on or off."""

    def __init__(
        self,
        store: Store,
        embedder: Embedder | None,
        *,
        mode: str,
        wait_seconds: float,
        fetch: Callable[[], None] | None,
    ) -> None:
        self.embedding = Embedding(None if mode == "off" else embedder, wait_seconds=wait_seconds, fetch=fetch)
        self.configured = self.embedding.embedder is not None  # if it is not, no call needs to ask further
        self._store = store
        self._mode = mode
        self._used = False
        self._look_at = 0.0
        self._fill_at = 0.0

    @property
    def model(self) -> str | None:
        return self.embedding.fingerprint

    def in_use(self, *texts: str) -> bool:
        """Whether the store uses it; from now on, if one of these new texts is in another language."""
        if self.embedding.embedder is None or self._used:
            return self._used
        if monotonic() >= self._look_at:
            self._used = self._mode == "on" or self._store.history.fact(SECOND) is not None
            self._look_at = monotonic() + LOOK_SECONDS
        if not self._used and any(map(in_another_language, texts)):
            with self._store.writing() as tx:
                tx.history.set_fact(SECOND, str(self.model))
            self._used = True
        return self._used

    def warm(self) -> None:
        if self.in_use():
            self.embedding.warm()

    def query(self, text: str) -> tuple[Asked | None, str | None]:
        """The question's vector, if the store uses the model; or none, and the reason if it matters."""
        if not self.in_use():
            return None, None
        foreign = in_another_language(text)
        try:
            vector = self.embedding.query(text)
        except EmbeddingError as error:
            return None, f"Without the model for other languages: {error.message}" if foreign else None
        assert self.embedding.embedder is not None
        return Asked(str(self.model), vector, self.embedding.calibration, foreign), None

    def text(self, memory: Memory) -> tuple[Sequence[Vector], bool]:
        """The vectors of all parts of a new text, if the store uses the model and they come in time; whether they are
        still to be made."""
        if not self.in_use(memory.embeddable):
            return (), False
        try:
            parts = self.embedding.parts_of(memory)
            return ((), True) if len(parts) > AT_ONCE else (self.embedding.texts(parts), False)
        except EmbeddingError:
            return (), True

    def texts(self, memories: Sequence[Memory]) -> Sequence[Sequence[Vector]]:
        """The same for many, however long it takes; none of those that cannot be embedded now."""
        if not self.in_use(*(memory.embeddable for memory in memories)):
            return [()] * len(memories)
        try:
            split = [self.embedding.parts_of(memory) for memory in memories]
            made = iter(self.embedding.at_leisure([part for parts in split for part in parts]))
            return [[next(made) for _ in parts] for parts in split]
        except EmbeddingError:
            return [()] * len(memories)

    def due(self, *, woken: bool) -> bool:
        """Whether it is time to look for memories that lack its vectors."""
        return (woken or monotonic() >= self._fill_at) and self.in_use()

    def fill(self, go_on: Callable[[], bool], progress: Callable[[int, int], None] | None = None) -> int:
        """Make what is missing, as long as `go_on`; for how many memories it was made.

        :raises ModelMissing: if the model is not here
        """
        self._fill_at = monotonic() + AGAIN_SECONDS
        model, done, after = str(self.model), 0, 0
        total = self._store.upkeep.count_lacking_second(model) if progress else 0
        while batch := self._store.upkeep.lacking_second(model, after=after, limit=BATCH):
            for memory in batch:
                if not go_on():
                    return done
                done += self._fill(memory, model)
                after = memory.seq
            if progress:
                progress(min(done, total), total)
        if self._store.history.fact(SECOND) != model:  # they were another model's, or nothing needed to say so yet
            with self._store.writing() as tx:
                tx.history.set_fact(SECOND, model)
        return done

    def _fill(self, memory: Memory, model: str) -> bool:
        try:
            vectors = self.embedding.at_leisure(self.embedding.parts_of(memory))
        except ModelMissing:
            raise
        except EmbeddingError:
            return False  # this text's fault: the next look tries it again
        with self._store.writing() as tx:
            return tx.add_vectors(
                memory.id,
                version=memory.version,
                first_part=0,
                vectors=vectors,
                parts=len(vectors),
                also=memory.also,
                model=model,
            )

    def look_at_all(self) -> bool:
        """Whether the store uses it, or has a text in another language already."""
        model, after = str(self.model), 0
        while not self.in_use() and self.model is not None:
            batch = self._store.upkeep.lacking_second(model, after=after, limit=500)
            if not batch:
                return False
            self.in_use(*(memory.embeddable for memory in batch))
            after = batch[-1].seq
        return self._used

    def close(self) -> None:
        self.embedding.close()
