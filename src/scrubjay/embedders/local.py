"""A model on this machine's processor, through onnxruntime; nothing leaves the machine.

    text -> prefix -> pieces -> start … end -> network -> pooling -> length 1

Texts go through the network one at a time: with 8-bit weights a vector depends on its neighbours in the batch (cosine
0.993 to 0.996), and batches of long texts are no faster. Each uses one thread; a bulk runs two texts side by side.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from scrubjay.embedders.base import Embedder, Vector, Vocabulary
from scrubjay.embedders.catalogue import Model, Pooling
from scrubjay.embedders.networks import Network, open_network, open_vocabulary
from scrubjay.embedders.wordpiece import LONGEST_WORD, spans, words
from scrubjay.errors import EmbeddingError, ModelMissing
from scrubjay.lazy import futures
from scrubjay.lazy import numpy as np

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from numpy.typing import NDArray

SPECIALS = 2  # [CLS] and [SEP]
OVERLAP = 32  # tokens that two neighbouring parts share

PULL = "Run: scrubjay model pull"


class LocalEmbedder(Embedder):
    """One catalogue model, its files below the models folder. Costs nothing until the first text."""

    in_process = True

    def __init__(self, model: Model, folder: Path) -> None:
        self.name = model.name
        self.dimension = model.dimension
        self.calibration = model.calibration
        self._model = model
        self._folder = folder
        self._lock = Lock()
        self._network: Network | None = None
        self._threads: ThreadPoolExecutor | None = None
        self._vocabulary: Vocabulary | None = None

    @property
    def fingerprint(self) -> str:
        return self._model.fingerprint

    def split(self, text: str) -> list[str]:
        # A character is at most one piece once it is decomposed (a Korean syllable is three), so this always fits.
        room = self._model.window - SPECIALS - len(self._model.text_prefix)
        if len(text) <= room and (text.isascii() or len(unicodedata.normalize("NFD", text)) <= room):
            return [text]
        return list(parts(text, room, self._counter()))

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        if len(texts) < 2:
            return [self._vector(self._model.text_prefix + text) for text in texts]
        self.load()
        return list(self._bulk().map(lambda text: self._vector(self._model.text_prefix + text), texts))

    def embed_query(self, text: str) -> Vector:
        return self._vector(self._model.query_prefix + text)

    def load(self, progress: Callable[[str], None] | None = None) -> None:
        self._ready(progress)

    def close(self) -> None:
        with self._lock:
            self._network = self._threads = None

    def _bulk(self) -> ThreadPoolExecutor:
        """The threads of every bulk: while the last texts of one are embedded, the next one's begin. They end when
        nothing holds them any more."""
        with self._lock:
            if self._threads is None:
                self._threads = futures.ThreadPoolExecutor(2, thread_name_prefix="embed")
            return self._threads

    def _ready(self, progress: Callable[[str], None] | None = None) -> tuple[Network, Vocabulary]:
        with self._lock:
            if self._network is None:
                if progress:
                    progress(f"Loading {self.name}.")
                if self._model.wrong_files(self._folder):
                    from scrubjay.embedders.download import verify

                    wrong = " ".join(verify(self._model, self._folder))
                    raise ModelMissing(f"{self.name}: {wrong} To download it, run `scrubjay model pull`.")
                self._network = open_network(self._model.folder(self._folder) / self._model.network)
            try:
                return self._network, self._words()
            except (OSError, ValueError) as error:
                raise EmbeddingError("The model's vocabulary cannot be used.", hint=PULL) from error

    def _words(self) -> Vocabulary:
        # Takes no lock: two threads may both read the file, and either result will do.
        if self._vocabulary is None:
            self._vocabulary = open_vocabulary(self._model.folder(self._folder) / self._model.vocabulary)
        return self._vocabulary

    def _counter(self) -> Callable[[str], int]:
        """Counts the tokens of a text; without the vocabulary, the most it can have."""
        try:
            vocabulary = self._words()
        except (OSError, ValueError):
            return at_most
        return lambda text: len(vocabulary(text))

    def _vector(self, text: str) -> Vector:
        network, vocabulary = self._ready()
        pieces = vocabulary(text, limit=self._model.window - SPECIALS)
        hidden = network([vocabulary.start, *pieces, vocabulary.end])
        return normalise_vector(pool_rows(hidden, self._model.pooling), self.dimension)


# --- One vector of a text -------------------------------------------------------------------------------------------


def pool_rows(hidden: NDArray[np.float32], pooling: Pooling) -> NDArray[np.float32]:
    """One row for the text, from one row per token; a network that does its own pooling already gives one row."""
    [rows] = hidden if hidden.ndim == 3 else hidden[:, None]
    row: NDArray[np.float32] = rows[0] if pooling == "cls" else rows.mean(axis=0)
    return row


def normalise_vector(raw: NDArray[np.float32], dimension: int) -> Vector:
    """The vector normalised to length 1.

    :raises EmbeddingError: if it is unusable: wrong dimension, NaN, infinite or all zero
    """
    if raw.shape != (dimension,):
        raise EmbeddingError(f"The model returned a vector of shape {raw.shape}, not {dimension} numbers.")
    # In double precision: the square of a large single is infinite.
    length = math.sqrt(float(np.square(raw, dtype=np.float64).sum()))
    if not math.isfinite(length) or length == 0:
        raise EmbeddingError("The model returned unusable numbers.")
    return (raw / length).astype(np.float32)


# --- Parts of a long text -------------------------------------------------------------------------------------------

# A sentence begins after one of these.
SENTENCE_END = re.compile(r"""[.!?…]["'”’»)\]]*\s+ | [。！？] | \n\s*""", re.VERBOSE)


def parts(text: str, room: int, count: Callable[[str], int]) -> Iterator[str]:
    """Slices of at most `room` tokens that overlap a little and together cover every character.

    A slice ends where a sentence ends if its second half has one, else between two words, else (no spaces: Chinese, a
    table of numbers) between two tokens. The next begins up to OVERLAP tokens earlier, so what was cut is whole there.
    """
    words_at = list(spans(text))
    sizes = [count(text[start:end]) for start, end in words_at]
    sentences = {match.end() for match in SENTENCE_END.finditer(text)}

    def niceness(word: int) -> int:
        start = words_at[word][0]
        return 2 if start in sentences else 1 if start > words_at[word - 1][1] else 0

    first, begin = 0, 0
    while (last := first + _fitting(sizes, first, room)) < len(sizes):
        second_half = range(last, last - _fitting(sizes, last - 1, room // 2, step=-1), -1)
        cut = max(second_half, key=niceness, default=last)
        yield text[begin : words_at[cut][0]]
        shared = range(cut - _fitting(sizes, cut - 1, OVERLAP, step=-1), cut + 1)
        first = max(first + 1, max(shared, key=niceness))
        begin = words_at[first][0]
    yield text[begin:]


def at_most(text: str) -> int:
    """How many tokens a text can have whatever the vocabulary: one for each character."""
    return sum(len(word) if len(word) <= LONGEST_WORD else 1 for word in words(text))


def _fitting(sizes: list[int], at: int, room: int, step: int = 1) -> int:
    """How many words from `at`, in the direction of `step`, fit; going forward, at least one."""
    fitting = 0
    while 0 <= at < len(sizes) and (sizes[at] <= room or (step > 0 and not fitting)):
        room -= sizes[at]
        at += step
        fitting += 1
    return fitting
