"""How a vector lies in the file, little endian:

    short   scale, a float32 | numbers, int16 each, the largest 32767 | a zero byte      2 × dimension + 5 bytes
    whole   numbers, float32 each, as earlier versions wrote them                        4 × dimension bytes

Five short ones of 384 numbers lie on a page of 4 kB, whole ones two. The odd length tells the two apart, and keeps
earlier versions that have the file open from taking one for the other. Everywhere else vectors are float32.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache

import apsw
import numpy as np

from scrubjay.embedders.base import Vector
from scrubjay.errors import EmbeddingError
from scrubjay.stores.sqlite.filters import dimension_of, sizes_of

LARGE = 1e15  # beyond it a number is none of a vector's, and its square soon infinite
STEPS = np.float32(32_767)  # from nothing to the largest number of a vector


def to_blob(vector: Vector) -> bytes:
    """As it is written. What is read again gives the same bytes.

    :raises EmbeddingError: if the vector is not made of numbers
    """
    check(vector)
    numbers = vector.astype(np.float32, copy=False)
    with np.errstate(over="ignore"):
        scale = np.abs(numbers).max(initial=0) / STEPS * STEPS / STEPS  # twice: one of 32,768 is not found again
    if scale < np.finfo(np.float32).tiny:  # nothing, or as good as
        return _short(0.0, np.zeros_like(numbers))
    return _short(scale, np.rint(numbers / scale))


def _short(scale: float, numbers: Vector) -> bytes:
    return struct.pack("<f", scale) + numbers.astype("<i2").tobytes() + b"\0"


def from_blob(blob: bytes) -> Vector:
    if len(blob) % 2 == 0:
        return _from_floats(blob)
    vector: Vector = np.empty(dimension_of(len(blob)), np.float32)
    _read_short(blob, vector[None])
    return vector


def _from_floats(blobs: bytes) -> Vector:
    return np.frombuffer(blobs, "<f4").astype(np.float32, copy=False)


def _read_short(blobs: bytes, rows: Vector) -> None:
    """Into these rows, one for each."""
    read = np.frombuffer(blobs, _short_form(rows.shape[1]))
    with np.errstate(invalid="ignore", over="ignore"):  # what was written by hand may hold anything
        # Copied first: in a row of an odd length half of the numbers lie askew, which takes twice as long to multiply.
        np.multiply(read["numbers"].copy(), read["scale"][:, None].copy(), out=rows)


@lru_cache(8)
def _short_form(dimension: int) -> np.dtype[np.void]:
    return np.dtype([("scale", "<f4"), ("numbers", "<i2", (dimension,)), ("end", "u1")])


def to_floats(vector: Vector) -> bytes:
    """As vec1 takes it.

    :raises EmbeddingError: if the vector is not made of numbers
    """
    check(vector)
    return vector.astype("<f4", copy=False).tobytes()


def check(vector: Vector) -> None:
    """:raises EmbeddingError: if it is not made of numbers"""
    if not usable(vector):
        raise EmbeddingError("The vector has unusable numbers.")


def as_floats(blob: bytes) -> bytes:
    """A vector of the file as vec1 takes it, whatever its numbers."""
    return blob if len(blob) % 2 == 0 else from_blob(blob).astype("<f4", copy=False).tobytes()


def shorten(blob: bytes) -> bytes:
    """What an earlier version wrote, as it is written now; what is unusable stays so, for `doctor` to find."""
    if len(blob) % 2:
        return blob
    vector = from_blob(blob)
    return to_blob(vector) if usable(vector) else _short(np.nan, np.zeros_like(vector))


def usable(vector: Vector) -> bool:
    """Whether cosines can be made of it: what was written by hand may hold anything."""
    return bool(vector.min(initial=0) > -LARGE and vector.max(initial=0) < LARGE)  # of what is not a number neither


def unusable(con: apsw.Connection) -> dict[str, set[int]]:
    """By model, the memories with vectors of which no cosine can be made."""
    found: dict[str, set[int]] = {}
    for memory, model, blob in con.execute("SELECT memory, model, vector FROM vectors"):
        if not _complete(blob) or not usable(from_blob(blob)):
            found.setdefault(model, set()).add(memory)
    return found


def _complete(blob: bytes) -> bool:
    """Whether it is as long as a vector can be."""
    return len(blob) % 4 == 0 or (len(blob) % 2 == 1 and len(blob) >= 5)


def by_name(rows: Sequence[tuple[str, bytes]]) -> dict[str, Vector]:
    """Vectors by what they are called; those of which no cosine can be made are left out."""
    names, blobs = [name for name, _ in rows], [blob for _, blob in rows]
    if len({*map(len, blobs)}) == 1:
        vectors = matrix(blobs, dimension_of(len(blobs[0])))
        if vectors.any(axis=1).all():
            return dict(zip(names, vectors, strict=True))
    found = zip(names, map(from_blob, blobs), strict=True)
    return {name: vector for name, vector in found if usable(vector)}


def matrix(blobs: Sequence[bytes], dimension: int) -> Vector:
    """One row for each; all zero where the numbers are unusable, which is like nothing at all."""
    rows: Vector = np.empty((len(blobs), dimension), np.float32)
    read_into(rows, blobs)
    return rows


def read_into(rows: Vector, blobs: Sequence[bytes]) -> None:
    """The same, into rows that are there: what is large is written once."""
    short, whole = sizes_of(rows.shape[1])
    sizes = set(map(len, blobs))
    if sizes == {short}:
        _read_short(b"".join(blobs), rows)
    elif sizes == {whole}:
        rows[:] = _from_floats(b"".join(blobs)).reshape(rows.shape)
    else:  # both, until those of an earlier version are rewritten
        np.stack([from_blob(blob) for blob in blobs], out=rows)
    if not usable(rows):
        rows[[not usable(row) for row in rows]] = 0
