"""multilingual-e5-small with 4-bit weights, read from the one file that it is published as, run by onnxruntime.

    file = "E5S1", sizes, pieces with scores, normal forms, a directory of tensors, the tensors
    row of weights = blocks of 32: one half-precision scale, 16 bytes with weights 0-15 below, 16-31 above

The file is mapped, not read: three quarters of it are the rows of 250,000 pieces, of which a text needs a few. The
encoder becomes an ONNX model in memory (14 MB): onnxruntime has an operator for weights of this kind (MatMulNBits).
Its bytes hold neighbours instead, so the weights are repacked.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scrubjay.embedders.onnx_graph import CONTRIB, Graph
from scrubjay.embedders.unigram import Unigram

BLOCK = 32


class Sizes(NamedTuple):
    width: int
    layers: int
    heads: int
    inner: int
    vocabulary: int
    window: int
    kinds: int
    epsilon: float
    block: int


class E5File:
    """The published file: its pieces and its tensors.

    :raises OSError: if it cannot be read
    :raises ValueError: if it is not one
    """

    def __init__(self, path: Path) -> None:
        self._bytes = np.memmap(path, dtype=np.uint8, mode="r")
        try:
            self._read()
        except struct.error:
            raise ValueError("not an E5S1 file") from None

    def _read(self) -> None:
        reader = _Reader(self._bytes)
        if reader.take("4s") != (b"E5S1",) or reader.take("I") != (1,):
            raise ValueError("not an E5S1 file")
        self.sizes = Sizes(*reader.take("7ifi"))
        if self.sizes.block != BLOCK:
            raise ValueError(f"blocks of {self.sizes.block} weights are not known here")
        count, start, end, _padding, unknown = reader.take("5i")
        (length,) = reader.take("Q")
        offsets = reader.array(np.uint32, count + 1)
        scores = reader.array(np.float32, count)
        pieces = reader.array(np.uint8, length).tobytes()
        self._listed = (pieces, offsets, scores)
        forms = dict(reader.form() for _ in range(reader.take("iI")[0]))
        self.pieces = Unigram(pieces, offsets, scores, forms=forms, start=start, end=end, unknown=unknown)
        self._tensors = dict(reader.entry() for _ in range(*reader.take("i")))

    def listed(self) -> tuple[list[str], list[float]]:
        """Every piece and its score, in their order."""
        pieces, offsets, scores = self._listed
        cuts = offsets.tolist()
        return [pieces[begin:end].decode() for begin, end in pairwise(cuts)], scores.tolist()

    def numbers(self, name: str) -> NDArray[np.float32]:
        offset, size = self._tensors[name]
        return self._bytes[offset : offset + size].view(np.float32)

    def blocks(self, name: str, rows: int, columns: int) -> NDArray[np.uint8]:
        offset, size = self._tensors[name]
        return self._bytes[offset : offset + size].reshape(rows, columns // BLOCK, 2 + BLOCK // 2)


class _Reader:
    """Reads the file's head from the beginning on."""

    def __init__(self, data: NDArray[np.uint8]) -> None:
        self._data = data
        self._at = 0

    def take(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from(f"<{layout}", self._data.data, self._at)
        self._at += struct.calcsize(f"<{layout}")
        return values

    def array(self, kind: type[np.generic], count: int) -> NDArray[Any]:
        size = count * np.dtype(kind).itemsize
        if self._at + size > len(self._data):
            raise ValueError("the file is cut off")
        found = np.frombuffer(self._data, kind, count, self._at)
        self._at += size
        return found

    def form(self) -> tuple[int, str]:
        """A character, and what it becomes."""
        code, count = self.take("IB")
        return code, "".join(map(chr, self.take(f"{count}I")))

    def entry(self) -> tuple[str, tuple[int, int]]:
        """A tensor's name, its place and how many bytes it has."""
        (length,) = self.take("H")
        name, _kind, _count, offset, size = self.take(f"{length}sBIQQ")
        if offset + size > len(self._data):
            raise ValueError("the file is cut off")
        return name.decode(), (offset, size)


def encoder(file: E5File) -> bytes:
    """All that comes after the embedding of pieces, as an ONNX model from `tokens` to `hidden`."""
    sizes, graph = file.sizes, Graph()

    def linear(name: str, source: str, parts: Sequence[str], rows: int, columns: int) -> str:
        """`source` times the weights of all parts, side by side."""
        packed = [repack(file.blocks(f"{part}.w", rows, columns)) for part in parts]
        weights = graph.constant(f"{name}.weights", np.concatenate([each for each, _ in packed]))
        scales = graph.constant(f"{name}.scales", np.concatenate([each for _, each in packed]))
        bias = graph.constant(f"{name}.bias", np.concatenate([file.numbers(f"{part}.b") for part in parts]))
        graph.add(
            "MatMulNBits",
            [source, weights, scales, "", "", bias],
            [name],
            domain=CONTRIB,
            K=columns,
            N=rows * len(parts),
            bits=4,
            block_size=BLOCK,
            accuracy_level=4,  # it multiplies 8-bit numbers
        )
        return name

    def normal(name: str, source: str, part: str) -> str:
        weights = graph.constant(f"{name}.weights", file.numbers(f"{part}.w"))
        bias = graph.constant(f"{name}.bias", file.numbers(f"{part}.b"))
        graph.add("LayerNormalization", [source, weights, bias], [name], axis=-1, epsilon=sizes.epsilon)
        return name

    def added(name: str, first: str, second: str) -> str:
        graph.add("Add", [first, second], [name])
        return name

    thirds = graph.constant("thirds", np.full(3, sizes.width, np.int64))
    hidden = normal("start", "tokens", "emb.ln")
    for layer in (f"l{number}" for number in range(sizes.layers)):
        asked = linear(f"{layer}.qkv", hidden, [f"{layer}.{part}" for part in "qkv"], sizes.width, sizes.width)
        graph.add("Split", [asked, thirds], [f"{layer}.{part}" for part in "qkv"], axis=-1)
        graph.add(
            "MultiHeadAttention",
            [f"{layer}.{part}" for part in "qkv"],
            [f"{layer}.context"],
            domain=CONTRIB,
            num_heads=sizes.heads,
        )
        answer = linear(f"{layer}.answer", f"{layer}.context", [f"{layer}.ao"], sizes.width, sizes.width)
        hidden = normal(f"{layer}.middle", added(f"{layer}.attended", hidden, answer), f"{layer}.aln")
        wide = linear(f"{layer}.wide", hidden, [f"{layer}.fi"], sizes.inner, sizes.width)
        graph.add("Gelu", [wide], [f"{layer}.active"], domain=CONTRIB)
        narrow = linear(f"{layer}.narrow", f"{layer}.active", [f"{layer}.fo"], sizes.width, sizes.inner)
        hidden = normal(f"{layer}.hidden", added(f"{layer}.passed", hidden, narrow), f"{layer}.oln")
    return graph.model(takes="tokens", gives=hidden, width=sizes.width)


def repack(blocks: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Weights two to a byte, neighbours together, and the scale of each block."""
    weights = _weights(blocks)
    return weights[:, :, 0::2] | weights[:, :, 1::2] << np.uint8(4), _scales(blocks).ravel()


class PieceRows:
    """The first step of the network: a row for each token, from its piece and its place."""

    def __init__(self, file: E5File) -> None:
        width = file.sizes.width
        self._rows = file.blocks("emb.word", file.sizes.vocabulary, width)
        self._places = file.numbers("emb.pos").reshape(-1, width) + file.numbers("emb.type")[:width]

    def __call__(self, tokens: Sequence[int]) -> NDArray[np.float32]:
        blocks = self._rows[np.asarray(tokens)]  # whose weights 0 to 15 stand for -8 to 7
        weights = (_weights(blocks).astype(np.float32) - 8) * _scales(blocks)[:, :, None]
        rows: NDArray[np.float32] = weights.reshape(len(tokens), -1) + self._places[: len(tokens)]
        return rows[None]


def _weights(blocks: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """0 to 15 for each of a block's weights, in their order."""
    halves = blocks[:, :, 2:]
    return np.concatenate([halves & 15, halves >> 4], axis=2)


def _scales(blocks: NDArray[np.uint8]) -> NDArray[np.float32]:
    return np.ascontiguousarray(blocks[:, :, :2]).view(np.float16)[:, :, 0].astype(np.float32)
