"""Vectors from the letters alone, for tests: no model, no file, microseconds.

Words and letter triples are hashed to a position and a sign, so texts that share words are near each other. It does not
capture meaning: to it, "car" and "automobile" are unrelated.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence

import numpy as np

from scrubjay.embedders.base import Embedder, Vector
from scrubjay.values.vectors import parts_of

WORD = re.compile(r"\w+")


class HashingEmbedder(Embedder):
    """Signed feature hashing; the same numbers in every process and on every machine."""

    name = "hashing"
    dimension = 384
    in_process = True

    @property
    def fingerprint(self) -> str:
        return "hashing-1"

    def split(self, text: str) -> list[str]:
        return parts_of(text)

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> Vector:
        vector = np.zeros(self.dimension, dtype=np.float32)
        for word in WORD.findall(text.lower()):
            self._add(vector, word, 2.0)  # it says more than the triples that it shares with others
            for start in range(len(word) - 2):
                self._add(vector, f"#{word[start : start + 3]}", 1.0)
        length = float(np.linalg.norm(vector))
        if length == 0:  # no letters, or each met its opposite
            vector[0] = length = 1.0
        return vector / np.float32(length)

    def _add(self, vector: Vector, feature: str, weight: float) -> None:
        # The built-in hash() differs from process to process.
        code = zlib.crc32(feature.encode("utf-8", "surrogatepass"))
        vector[code % self.dimension] += weight if code & 0x8000_0000 else -weight
