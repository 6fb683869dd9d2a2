"""The models beside the store's own, as a list: each sees some texts better than it, and another is one more entry.

    not needed ──the first text that wakes it, or `always`──> in use: every text gets its vectors, too

Which of them a store uses is kept there (`FURTHER_MODELS`), so every process sees it. Until then nothing of a model is
loaded. Its vectors are made within a call where that is quick, else by the backlog. Without it, or without vectors of
some memories, everything works as before: that part of the score is missing. What the one for other languages is worth:
docs/lab/languages.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from scrubjay.engine.store.embedding import AT_ONCE, Embedding
from scrubjay.errors import EmbeddingError, ModelMissing
from scrubjay.lazy import json
from scrubjay.stores.promises.memories import FURTHER_MODELS
from scrubjay.text.languages import in_another_language
from scrubjay.values.frozen import dataclass

if TYPE_CHECKING:
    from scrubjay.embedders.base import Embedder, Vector
    from scrubjay.stores.promises.memories import Reads, Store
    from scrubjay.values.memory import Memory
    from scrubjay.values.vectors import Knots

LOOK_SECONDS = 2.0  # between looks whether another process uses it
BATCH = 16
AGAIN_SECONDS = 600.0  # between looks for memories that others left without


@dataclass(frozen=True, slots=True, kw_only=True)
class FurtherModel:
    """An entry of the list; as it stands here, the model for other languages than English."""

    embedder: Embedder
    fetch: Callable[[], None] | None = None  # downloads it
    always: bool = False  # every text gets its vectors from the first one on
    wakes: Callable[[str], bool] = in_another_language  # whether a text, or a question, is one that it is for
    weight: float = 0.5  # of its similarity against that of the models before it …
    weight_awake: float = 0.75  # … for a question that it is for
    purpose: str = "other languages"


class ModelScores(NamedTuple):
    """A question as a further model sees it."""

    model: str
    vector: Vector
    calibration: Knots  # what its cosines are worth
    weight: float


def models_of(reads: Reads) -> list[str]:
    """The fingerprints of the further models whose vectors a store has."""
    return list(json.loads(reads.history.fact(FURTHER_MODELS) or "[]"))


class Further:
    """One of these models in one process."""

    def __init__(self, store: Store, entry: FurtherModel, entries: Sequence[FurtherModel], wait_seconds: float) -> None:
        self.entry = entry
        self.embedding = Embedding(entry.embedder, wait_seconds=wait_seconds, fetch=entry.fetch)
        self.model = entry.embedder.fingerprint
        self._listed = {one.embedder.fingerprint for one in entries}
        self._store = store
        self._used = False
        self._look_at = 0.0
        self._fill_at = 0.0

    def in_use(self, *texts: str) -> bool:
        """Whether the store uses it, or one that is no longer in the list; from now on, if one of these new texts wakes
        it."""
        if self._used:
            return True
        if monotonic() >= self._look_at:
            known = {*models_of(self._store)}
            self._used = self.entry.always or self.model in known or not known <= self._listed
            self._look_at = monotonic() + LOOK_SECONDS
        if not self._used and any(map(self.entry.wakes, texts)):
            self._note()
            self._used = True
        return self._used

    def _note(self) -> None:
        """Let the store say that it has this model's vectors, and none of models that are no longer in the list."""
        with self._store.writing() as tx:
            tx.upkeep.keep_models([*(one for one in models_of(tx) if one in self._listed - {self.model}), self.model])

    def query(self, text: str) -> ModelScores | None:
        """The question as the model sees it, if the store uses it.

        :raises EmbeddingError: if the model does not answer
        """
        if not self.in_use():
            return None
        weight = self.entry.weight_awake if self.entry.wakes(text) else self.entry.weight
        return ModelScores(self.model, self.embedding.query(text), self.embedding.calibration, weight)

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
        done, after = 0, 0
        total = self._store.upkeep.count_lacking(self.model) if progress else 0
        while batch := self._store.upkeep.lacking(self.model, after=after, limit=BATCH):
            for memory in batch:
                if not go_on():
                    return done
                done += self._fill(memory)
                after = memory.seq
            if progress:
                progress(min(done, total), total)
        known = {*models_of(self._store)}
        if self.model not in known or not known <= self._listed:
            self._note()
        return done

    def _fill(self, memory: Memory) -> bool:
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
                model=self.model,
            )

    def look_at_all(self) -> bool:
        """Whether the store uses it, or has a text already that wakes it."""
        after = 0
        while not self.in_use():
            batch = self._store.upkeep.lacking(self.model, after=after, limit=500)
            if not batch:
                return False
            self.in_use(*(memory.embeddable for memory in batch))
            after = batch[-1].seq
        return True


class Models:
    """The further models of one process, in their order."""

    def __init__(self, store: Store, entries: Sequence[FurtherModel], *, wait_seconds: float) -> None:
        self.each = [Further(store, entry, entries, wait_seconds) for entry in entries]

    def warm(self) -> None:
        for one in self.each:
            if one.in_use():
                one.embedding.warm()

    def query(self, text: str) -> tuple[list[ModelScores], str | None]:
        """The question as each model sees it that the store uses; why one that it is for is missing."""
        asked, missing = list[ModelScores](), None
        for one in self.each:
            try:
                asked += [seen] if (seen := one.query(text)) is not None else []
            except EmbeddingError as error:
                if one.entry.wakes(text):
                    missing = f"Without the model for {one.entry.purpose}: {error.message}"
        return asked, missing

    def text(self, memory: Memory) -> tuple[Mapping[str, Sequence[Vector]], bool]:
        """The vectors of a new text by model, as far as they come in time; whether some are still to be made."""
        made = {one.model: one.text(memory) for one in self.each}
        waits = any(wait for _, wait in made.values())
        return {model: vectors for model, (vectors, _) in made.items() if vectors}, waits

    def texts(self, memories: Sequence[Memory]) -> list[Mapping[str, Sequence[Vector]]]:
        """The same of many, however long it takes."""
        made = {one.model: one.texts(memories) for one in self.each}
        return [{model: own[place] for model, own in made.items() if own[place]} for place in range(len(memories))]

    def best_for(self, text: str) -> Further | None:
        """The model that this text wakes: it knows better than the store's own what is near."""
        return next((one for one in self.each if one.entry.wakes(text)), None)

    def close(self) -> None:
        for one in self.each:
            one.embedding.close()
