"""The reader: a BERT of six layers that reads an earlier and a newer text together.

    [CLS] earlier [SEP] newer [SEP]  ->  layers  ->  tanh(linear of [CLS])  ->  a number for each of LABELS

It starts from all-MiniLM-L6-v2. Parameters have the names of the published file, which leaves matrices nameless: a
matrix is known by the bias that is added to its product.
"""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import numpy_helper
from torch import Tensor, nn
from torch.nn import functional

from scrubjay.embedders.wordpiece import WordPiece
from training.worlds import LABELS

START_SHA256 = "759c3cd2b7fe7e93933ad23c4c9181b7396442a2ed746ec7c1d46192c469c46e"
LAYERS, WIDTH, HEADS, INNER = 6, 384, 12, 1536
PIECES, POSITIONS = 30522, 512
WINDOW = 128  # tokens of a pair, the three special ones included
SPECIALS = 3
EPSILON = 1e-12


class Embeddings(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(PIECES, WIDTH)
        self.position_embeddings = nn.Embedding(POSITIONS, WIDTH)
        self.token_type_embeddings = nn.Embedding(2, WIDTH)
        self.LayerNorm = nn.LayerNorm(WIDTH, eps=EPSILON)

    def forward(self, pieces: Tensor, sides: Tensor) -> Tensor:
        places = torch.arange(pieces.shape[1])
        hidden = self.word_embeddings(pieces) + self.token_type_embeddings(sides) + self.position_embeddings(places)
        return self.LayerNorm(hidden)


class Layer(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.attention = nn.ModuleDict(
            {
                "self": nn.ModuleDict({name: nn.Linear(WIDTH, WIDTH) for name in ("query", "key", "value")}),
                "output": _output(WIDTH),
            }
        )
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(WIDTH, INNER)})
        self.output = _output(INNER)
        self.dropout = dropout

    def forward(self, hidden: Tensor, seen: Tensor) -> Tensor:
        query, key, value = (_heads(self.attention["self"][name](hidden)) for name in ("query", "key", "value"))
        drop = self.dropout if self.training else 0.0
        read = functional.scaled_dot_product_attention(query, key, value, attn_mask=seen[:, None, None], dropout_p=drop)
        hidden = self._added(self.attention["output"], read.transpose(1, 2).flatten(2), hidden)
        return self._added(self.output, functional.gelu(self.intermediate["dense"](hidden)), hidden)

    def _added(self, output: nn.ModuleDict, inner: Tensor, hidden: Tensor) -> Tensor:
        return output["LayerNorm"](hidden + functional.dropout(output["dense"](inner), self.dropout, self.training))


def _output(inner: int) -> nn.ModuleDict:
    return nn.ModuleDict({"dense": nn.Linear(inner, WIDTH), "LayerNorm": nn.LayerNorm(WIDTH, eps=EPSILON)})


def _heads(rows: Tensor) -> Tensor:
    return rows.unflatten(2, (HEADS, WIDTH // HEADS)).transpose(1, 2)


class Reader(nn.Module):
    def __init__(self, dropout: float = 0.0, *, layers: int = LAYERS, outputs: int = len(LABELS)) -> None:
        super().__init__()
        self.embeddings = Embeddings()
        self.encoder = nn.ModuleDict({"layer": nn.ModuleList(Layer(dropout) for _ in range(layers))})
        self.pooler = nn.Linear(WIDTH, WIDTH)
        self.classifier = nn.Linear(WIDTH, outputs)
        self.dropout = dropout

    def hidden(self, pieces: Tensor, sides: Tensor, seen: Tensor) -> Tensor:
        hidden = functional.dropout(self.embeddings(pieces, sides), self.dropout, self.training)
        for layer in self.encoder["layer"]:
            hidden = layer(hidden, seen)
        return hidden

    def forward(self, pieces: Tensor, sides: Tensor, seen: Tensor) -> Tensor:
        first = torch.tanh(self.pooler(self.hidden(pieces, sides, seen)[:, 0]))
        return self.classifier(functional.dropout(first, self.dropout, self.training))

    def freeze(self, layers: int) -> None:
        """Embeddings and the first layers stay as they are."""
        for part in (self.embeddings, *self.encoder["layer"][:layers]):
            part.requires_grad_(False)

    def head(self) -> list[nn.Parameter]:
        return [*self.pooler.parameters(), *self.classifier.parameters()]

    def body(self) -> list[nn.Parameter]:
        head = set(map(id, self.head()))
        return [one for one in self.parameters() if one.requires_grad and id(one) not in head]


def start(path: Path, dropout: float, *, outputs: int = len(LABELS)) -> Reader:
    """A reader with the published weights and a head that knows nothing yet.

    :raises ValueError: if the file is another one
    """
    raw = path.read_bytes()
    if sha256(raw).hexdigest() != START_SHA256:
        raise ValueError(f"{path} is not the published all-MiniLM-L6-v2.")
    reader = Reader(dropout, outputs=outputs)
    weights = {name: torch.from_numpy(values.copy()) for name, values in published(onnx.load_from_string(raw)).items()}
    rest, unknown = reader.load_state_dict(weights, strict=False)
    assert not unknown
    assert {name.split(".")[0] for name in rest} == {"pooler", "classifier"}
    for linear in (reader.pooler, reader.classifier):
        nn.init.normal_(linear.weight, std=0.02)
        nn.init.zeros_(linear.bias)
    return reader


def published(model: onnx.ModelProto) -> dict[str, NDArray[np.float32]]:
    """The weights of the published file by the names of ours."""
    arrays = {one.name: one for one in model.graph.initializer}
    weights = {
        name: numpy_helper.to_array(one)
        for name, one in arrays.items()
        if name.startswith(("embeddings.", "encoder.")) and not name.endswith("position_ids")
    }
    for bias, matrix in matrices(model).items():
        weights[bias.removesuffix("bias") + "weight"] = numpy_helper.to_array(arrays[matrix]).T
    return weights


def matrices(model: onnx.ModelProto) -> dict[str, str]:
    """By the name of a bias, the matrix to whose product it is added."""
    products = {node.output[0]: node.input[1] for node in model.graph.node if node.op_type == "MatMul"}
    return {
        node.input[0]: products[node.input[1]]
        for node in model.graph.node
        if node.op_type == "Add" and node.input[0].endswith(".bias") and node.input[1] in products
    }


def encode(wordpiece: WordPiece, old: str, new: str) -> tuple[list[int], list[int]]:
    """The pieces of a pair and the side of each; the longer text is cut until both fit."""
    earlier, newer = wordpiece(old, limit=WINDOW), wordpiece(new, limit=WINDOW)
    room = WINDOW - SPECIALS
    if len(earlier) + len(newer) > room:
        short = min(len(earlier), len(newer), room // 2)
        earlier, newer = (
            (earlier[: room - short], newer[:short])
            if len(earlier) > len(newer)
            else (earlier[:short], newer[: room - short])
        )
    pieces = [wordpiece.start, *earlier, wordpiece.end, *newer, wordpiece.end]
    return pieces, [0] * (len(earlier) + 2) + [1] * (len(newer) + 1)


def batch(encoded: Sequence[tuple[list[int], list[int]]]) -> tuple[Tensor, Tensor, Tensor]:
    """Pieces, sides and which places are seen; shorter pairs are filled up."""
    width = max(len(pieces) for pieces, _ in encoded)
    pieces = torch.zeros(len(encoded), width, dtype=torch.long)
    sides, seen = torch.zeros_like(pieces), torch.zeros(len(encoded), width, dtype=torch.bool)
    for at, (row, side) in enumerate(encoded):
        pieces[at, : len(row)] = torch.tensor(row)
        sides[at, : len(row)] = torch.tensor(side)
        seen[at, : len(row)] = True
    return pieces, sides, seen
