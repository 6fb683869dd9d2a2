"""What an embedder promises: text in, unit vectors out, the same vector for the same text every time.

A long text is several *parts*, each within the model's window; a memory is found by any of its parts. Queries and
stored texts are embedded differently by most models, hence two verbs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from scrubjay.values.vectors import PLAIN, Knots, Vector, interpolate

__all__ = ["Embedder", "NotLoaded", "Vector", "Vocabulary"]

REMEMBERED_WORDS = 20_000  # so that no text fills the memory


class NotLoaded(Exception):
    """The process that lent the model is gone: loading it again takes longer than a call waits for a vector."""


class Embedder(ABC):
    """Text to vectors. Safe to call from several threads; owns its model until closed."""

    name: str
    dimension: int
    calibration: Knots = PLAIN  # what its cosines are worth
    in_process = False  # nothing but this computer's own work keeps it from answering

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Changes whenever the same text would get a different vector; kept in the store, so two models never mix."""

    @abstractmethod
    def split(self, text: str) -> list[str]:
        """Cut a text into parts that fit the model's window, at least one, together covering all of it.

        Needs no loaded model; `parts_of` cuts by characters.
        """

    @abstractmethod
    def embed(self, texts: Sequence[str]) -> list[Vector]:
        """One unit vector per stored text (already split), independent of its neighbours in the batch.

        :raises EmbeddingError: if the model cannot be loaded or gives no usable numbers
        :raises NotLoaded: if a borrowed model is gone; `load` finds another one
        """

    @abstractmethod
    def embed_query(self, text: str) -> Vector:
        """The unit vector of a question; a text past the window is cut.

        :raises EmbeddingError: as :meth:`embed`
        """

    def calibrate(self, cosine: float) -> float:
        """Map this model's cosine of a query and a stored text to 0..1: unrelated near 0, the same fact near 1."""
        return interpolate(cosine, self.calibration)

    # Both may do nothing: an embedder without a model has nothing to load or release.
    def load(self, progress: Callable[[str], None] | None = None) -> None:  # noqa: B027
        """Load the model; slow the first time. Embedding does it too, so calling this early only saves the wait."""

    def rest(self) -> bool:
        """Give the model back if nothing has needed it for long; whether that is so."""
        return False

    def close(self) -> None:  # noqa: B027
        """Release the model."""


class Vocabulary(ABC):
    """Text to the numbers of a model's pieces; `start` and `end` go around those of every text. Safe to use from
    several threads."""

    start: int
    end: int

    def __init__(self) -> None:
        self.pieces = lru_cache(REMEMBERED_WORDS)(self.cut)

    def __call__(self, text: str, limit: int | None = None) -> list[int]:
        """The pieces of a text, the first `limit` of them if given, without special tokens."""
        numbers: list[int] = []
        for word in self.words(text):
            numbers += self.pieces(word)
            if limit is not None and len(numbers) >= limit:
                return numbers[:limit]
        return numbers

    @abstractmethod
    def words(self, text: str) -> Iterable[str]:
        """The words of a text in their normal form."""

    @abstractmethod
    def cut(self, word: str) -> tuple[int, ...]:
        """The pieces of one word as :meth:`words` gives it; `pieces` remembers them."""
