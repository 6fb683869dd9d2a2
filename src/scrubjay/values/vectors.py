"""Vectors, how a long text is cut up for them, and what their cosine is worth where a model does not say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay.lazy import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]
else:
    Vector = object  # numpy is not for a window that only waits

PART = 2_000  # characters: within the window of every model in use, whatever its language
OVERLAP = 100  # so that a word at a cut is complete in one of the two


def parts_of(text: str) -> list[str]:
    """A text by characters, in parts that overlap: at least one, together all of it."""
    starts = range(0, max(len(text) - OVERLAP, 1), PART - OVERLAP)
    return [text[start : start + PART] for start in starts]


Knots = tuple[tuple[float, float], ...]  # (cosine, what it is worth from 0 to 1), rising

PLAIN: Knots = ((0.0, 0.0), (1.0, 1.0))


def interpolate(cosine: float, knots: Knots) -> float:
    """The straight line between the two knots around `cosine`; flat before the first and after the last."""
    return float(interpolate_all(np.array([cosine]), knots)[0])


def interpolate_all(cosines: NDArray[np.float64], knots: Knots) -> NDArray[np.float64]:
    """The same for many at once; what is not a number stays so."""
    known, worth = zip(*knots, strict=True)
    found: NDArray[np.float64] = np.interp(cosines, known, worth)
    return found
