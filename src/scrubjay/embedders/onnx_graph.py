"""A network as the bytes of an ONNX model, for weights that are published in another form.

ONNX is a protocol buffer; the handful of fields that a network needs are written here by number, which saves a
dependency (`onnx` takes 40 MB) for what is a page. Field numbers are those of `onnx.proto`, which never change.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

CONTRIB = "com.microsoft"  # onnxruntime's own operators

_TYPES = {np.dtype(np.float32): 1, np.dtype(np.uint8): 2, np.dtype(np.int64): 7}


class Graph:
    """Operators in the order they run, and their constants. Every value has a name."""

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._constants: list[bytes] = []

    def constant(self, name: str, values: NDArray[Any]) -> str:
        dimensions = b"".join(_field(1, size) for size in values.shape)
        kind, raw = _TYPES[values.dtype], np.ascontiguousarray(values).tobytes()
        self._constants.append(dimensions + _field(2, kind) + _field(8, name) + _field(9, raw))
        return name

    def add(
        self, operator: str, inputs: Sequence[str], outputs: Sequence[str], *, domain: str = "", **settings: int | float
    ) -> None:
        node = b"".join(_field(1, name) for name in inputs) + b"".join(_field(2, name) for name in outputs)
        node += _field(4, operator) + b"".join(_field(5, _setting(*each)) for each in settings.items())
        self._nodes.append(node + (_field(7, domain) if domain else b""))

    def model(self, *, takes: str, gives: str, width: int) -> bytes:
        """The model; what it takes and gives are rows of `width` numbers, one for each token."""
        graph = b"".join(_field(1, node) for node in self._nodes) + _field(2, "graph")
        graph += b"".join(_field(5, constant) for constant in self._constants)
        graph += _field(11, _rows(takes, width)) + _field(12, _rows(gives, width))
        # Version 17 of the standard's operators, 8 of the format.
        operators = _field(8, _field(1, "") + _field(2, 17)) + _field(8, _field(1, CONTRIB) + _field(2, 1))
        return _field(1, 8) + _field(7, graph) + operators


def _rows(name: str, width: int) -> bytes:
    sizes = (_field(1, 1), _field(2, "tokens"), _field(1, width))
    shape = b"".join(_field(1, size) for size in sizes)
    return _field(1, name) + _field(2, _field(1, _field(1, _TYPES[np.dtype(np.float32)]) + _field(2, shape)))


def _setting(name: str, value: int | float) -> bytes:
    if isinstance(value, float):
        return _field(1, name) + _field(2, value) + _field(20, 1)
    return _field(1, name) + _field(3, value) + _field(20, 2)


def _field(number: int, value: int | float | str | bytes) -> bytes:
    if isinstance(value, int):
        return _number(number << 3) + _number(value)
    if isinstance(value, float):
        return _number(number << 3 | 5) + struct.pack("<f", value)
    raw = value.encode() if isinstance(value, str) else value
    return _number(number << 3 | 2) + _number(len(raw)) + raw


def _number(value: int) -> bytes:
    """Seven bits a byte, the lowest first; a negative number as its complement in 64 bits."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])
