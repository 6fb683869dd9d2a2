"""Text to the numbers of a SentencePiece vocabulary (Unigram), in every script.

    "Guten Tag, 世界"  ->  ▁Guten  ▁Tag,  ▁世界  ->  ▁Gu|ten  ▁Tag|,  ▁|世界

Characters first take their normal form; words are what lies between spaces, and begin with "▁". Each word is then cut
into the pieces whose scores add up to the most; a character that is in no piece counts as unknown.

There are 250,000 pieces. A dictionary of them takes 0.2 s and 30 MB, so their hashes lie in a sorted array (2 MB), and
all substrings of a word are looked up at once. A collision of two 64-bit hashes would only cut one word differently.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from scrubjay.embedders.base import Vocabulary

MARK = "▁"
FACTOR = np.uint64(0x9E3779B97F4A7C15)  # odd: its powers keep all 64 bits
LONGEST_RUN = 256  # characters cut at once: scripts without spaces make long words

Codes = NDArray[np.uint64]


class Unigram(Vocabulary):
    def __init__(
        self,
        pieces: bytes,
        offsets: NDArray[np.uint32],
        scores: NDArray[np.float32],
        *,
        forms: Mapping[int, str],
        start: int,
        end: int,
        unknown: int,
    ) -> None:
        """`pieces` in a row as UTF-8; `forms` are the characters that become something else.

        :raises ValueError: if the pieces are not text
        """
        super().__init__()
        begins = np.concatenate([[0], np.cumsum(np.frombuffer(pieces, np.uint8) & 0xC0 != 0x80)])[
            offsets
        ]  # in characters
        lengths = np.diff(begins)
        self._longest = int(lengths.max())
        codes = _codes(pieces.decode(), self._longest)
        hashes = np.zeros(len(lengths), np.uint64)
        for at in range(0, len(lengths), some := 4_096):  # so that they take little memory at once
            every = _hashes(codes[begins[:-1][at : at + some, None] + np.arange(self._longest)])
            sizes = np.maximum(lengths[at : at + some], 1)
            hashes[at : at + some] = every[np.arange(len(sizes)), sizes - 1]
        hashes[scores >= 0] = 0  # special tokens, such as <s>: a text that spells one out is text
        order = np.argsort(hashes, kind="stable")
        self._hashes, self._order = hashes[order], order.astype(np.int32)
        self._scores = scores
        self._unknown_score = float(scores.min()) - 10.0  # as in SentencePiece
        self._forms = forms
        self.start, self.end, self.unknown = start, end, unknown

    def words(self, text: str) -> Iterator[str]:
        """Normal forms, each word with its mark; long runs without a space in several."""
        for word in filter(None, text.translate(self._forms).split(" ")):
            marked = MARK + word
            for at in range(0, len(marked), LONGEST_RUN):
                yield marked[at : at + LONGEST_RUN]

    def cut(self, word: str) -> tuple[int, ...]:
        """The best way through the word: for each place the best score that reaches it, from where, by which piece."""
        ways: list[tuple[float, int, int]] = [(0.0, 0, 0)] + [(-np.inf, 0, 0)] * len(word)
        found = self._found(word)
        for begin in range(len(word)):
            reached = ways[begin][0]
            for end, piece, score in found[begin]:
                if reached + score > ways[end][0]:
                    ways[end] = (reached + score, begin, piece)
            if reached + self._unknown_score > ways[begin + 1][0]:
                ways[begin + 1] = (reached + self._unknown_score, begin, self.unknown)
        numbers, at = [], len(word)
        while at:
            _, at, piece = ways[at]
            numbers.append(piece)
        return tuple(reversed(numbers))

    def _found(self, word: str) -> list[list[tuple[int, int, float]]]:
        """For each place in a word the pieces that begin there: where they end, their numbers and scores."""
        codes = _codes(word, self._longest)
        wanted = _hashes(np.lib.stride_tricks.sliding_window_view(codes, self._longest)[: len(word)])
        places = np.minimum(np.searchsorted(self._hashes, wanted), len(self._hashes) - 1)
        begins, more = np.nonzero(self._hashes[places] == wanted)
        numbers = self._order[places[begins, more]]
        found: list[list[tuple[int, int, float]]] = [[] for _ in word]
        rows = (begins.tolist(), (begins + more + 1).tolist(), numbers.tolist(), self._scores[numbers].tolist())
        for begin, end, piece, score in zip(*rows, strict=True):
            if end <= len(word):
                found[begin].append((end, piece, score))
        return found


def _codes(text: str, beyond: int) -> Codes:
    """A number for each character, and some more that no character has."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64)
    return np.concatenate([codes + np.uint64(1), np.zeros(beyond, np.uint64)])


def _hashes(windows: Codes) -> Codes:
    """For each window the hash of its first character, of its first two, and so on: numbers times rising powers."""
    powers = np.cumprod(np.full(windows.shape[1], FACTOR), dtype=np.uint64)
    hashes: Codes = np.cumsum(windows * powers, axis=1, dtype=np.uint64)
    return hashes
