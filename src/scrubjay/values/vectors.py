"""Vectors, how a long text is cut up for them, and what their cosine is worth where a model does not say."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]

PART = 2_000  # characters: within the window of every model in use, whatever its language
OVERLAP = 100  # so that a word at a cut is complete in one of the two


def parts_of(text: str) -> list[str]:
    """A text by characters, in parts that overlap: at least one, together all of it."""
    starts = range(0, max(len(text) - OVERLAP, 1), PART - OVERLAP)
    return [text[start : start + PART] for start in starts]


def share_of(cosine: float) -> float:
    return min(max(cosine, 0.0), 1.0)
