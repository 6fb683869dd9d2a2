"""The networks that turn tokens into numbers, whichever form their weights come in, and their vocabularies."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from scrubjay.embedders.base import Vocabulary
from scrubjay.embedders.wordpiece import WordPiece
from scrubjay.errors import EmbeddingError
from scrubjay.lazy import numpy as np

if TYPE_CHECKING:
    import onnxruntime
    from numpy.typing import NDArray

    from scrubjay.embedders.e5 import E5File

    Hidden = NDArray[np.float32]

INPUTS = {"input_ids", "attention_mask", "token_type_ids"}


class Network(Protocol):
    """Tokens to a row of numbers each; a network that does its own pooling gives one row."""

    def __call__(self, tokens: Sequence[int]) -> Hidden: ...


def open_vocabulary(path: Path) -> Vocabulary:
    """:raises OSError: if it cannot be read :raises ValueError: if it is not a vocabulary"""
    return WordPiece(path) if path.suffix == ".txt" else _e5_file(path).pieces


def open_network(path: Path) -> Network:
    """The network, ready to run on the calling thread.

    :raises EmbeddingError: if it cannot be loaded
    """
    return OnnxNetwork(path) if path.suffix == ".onnx" else E5Network(path)


class OnnxNetwork:
    """A network as its publisher exported it."""

    def __init__(self, path: Path) -> None:
        self._session = open_session(path)
        self._inputs = [each.name for each in self._session.get_inputs()]
        if foreign := set(self._inputs) - INPUTS:
            raise EmbeddingError(f"The model has unknown inputs: {', '.join(sorted(foreign))}.")

    def __call__(self, tokens: Sequence[int]) -> Hidden:
        row = np.array([tokens], dtype=np.int64)
        known = {"input_ids": row, "attention_mask": np.ones_like(row), "token_type_ids": np.zeros_like(row)}
        with translated_errors():
            outputs: list[Hidden] = self._session.run(None, {name: known[name] for name in self._inputs})
        return outputs[0]


class E5Network:
    """multilingual-e5-small with 4-bit weights (`e5.py`)."""

    def __init__(self, path: Path) -> None:
        from scrubjay.embedders.e5 import PieceRows, encoder  # only if this model is used

        try:
            file = _e5_file(path)
            self._rows = PieceRows(file)
            self._session = open_session(encoder(file))
        except (OSError, ValueError, KeyError) as error:
            raise EmbeddingError("The model's file cannot be used.", hint="Run: scrubjay model pull") from error

    def __call__(self, tokens: Sequence[int]) -> Hidden:
        with translated_errors():
            outputs: list[Hidden] = self._session.run(None, {"tokens": self._rows(tokens)})
        return outputs[0]


@lru_cache(maxsize=1)  # its vocabulary is needed before its network, perhaps by another thread
def _e5_file(path: Path) -> E5File:
    from scrubjay.embedders.e5 import E5File

    return E5File(path)


def open_session(network: Path | bytes) -> onnxruntime.InferenceSession:
    # Its official builds report to their maker unless told not to before they are loaded.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    try:
        import onnxruntime  # 35 ms: not before a text needs it
    except ImportError as error:
        raise EmbeddingError("onnxruntime cannot be loaded.", hint="Install scrubjay again.") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # Every text has another length, so a plan of memory per length only takes room. Measured resident after long texts
    # on two threads: 197 MB so, 207 with the plans, 240 to 310 without the arena, 270 to 300 if it shrinks each time.
    options.enable_mem_pattern = False
    options.log_severity_level = 3
    with translated_errors():
        return onnxruntime.InferenceSession(network, options, providers=["CPUExecutionProvider"])


@contextmanager
def translated_errors() -> Iterator[None]:
    """Turn onnxruntime's errors, which share no base class, into ours."""
    from onnxruntime.capi import onnxruntime_pybind11_state as native

    theirs = tuple(each for each in vars(native).values() if isinstance(each, type) and issubclass(each, Exception))
    try:
        yield
    except theirs as error:
        raise EmbeddingError("The embedding model could not be run.", hint="Run: scrubjay doctor") from error
