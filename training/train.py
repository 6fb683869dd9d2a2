"""Train the reader on worlds, leaving some out.

    python -m training.train --name half --folds 2 --fold 0 --max-pairs 1000
    python -m training.train --name all
    python -m training.train --name hand --from all --everyday --folds 3 --rate 6e-5 --epochs 3

Each run is a file in the build folder, written after every epoch; the same command continues it. A run names the worlds
it has learned from, so that `training.judge` judges by the others alone. Everyday worlds are learned from only with
`--everyday`. A run that goes on `--from` another has learned from the worlds of both.
"""

import argparse
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from scrubjay.embedders.catalogue import DEFAULT, find
from scrubjay.embedders.wordpiece import WordPiece
from scrubjay.settings import load as load_settings
from training import model
from training.pairs import BUILD, Store, open_embedder, rows, sample, stores
from training.worlds import LABELS

RATE, HEAD_FASTER = 1.2e-4, 4
BATCH, EPOCHS = 16, 4
SMOOTHING, DROPOUT = 0.05, 0.1
FROZEN_LAYERS = 1
WARM_UP = 0.1  # share of the steps in which the rate rises; then it falls to nothing
POOL = 8  # batches that are put together by length, so that little is filled up
LONGEST_GRADIENT = 1.0


def train(
    run: Path,
    learned: Sequence[Store],
    *,
    source: Path,
    before: Path | None,
    seed: int,
    epochs: int,
    rate: float,
    most: int | None,
) -> None:
    """Train, or continue where the run's file ends. `before` is a run whose weights it begins with."""
    torch.manual_seed(seed)
    reader = model.start(source, DROPOUT)
    seen = set[str]()
    if before is not None:
        earlier = torch.load(before, weights_only=True)
        reader.load_state_dict(earlier["reader"])
        seen = set(earlier["about"]["learned"])
    reader.freeze(FROZEN_LAYERS)
    faster = HEAD_FASTER if before is None else 1  # a head that has learned need not catch up
    optimizer = torch.optim.AdamW(
        [{"params": reader.body(), "factor": 1}, {"params": reader.head(), "factor": faster}], lr=rate
    )
    chance = random.Random(seed)  # noqa: S311  (no secret)
    kept = sample(learned, most, chance)
    lessons = list(rows(kept, open_embedder(), chance))
    wordpiece = open_wordpiece()
    encoded = [(model.encode(wordpiece, row.old, row.new), LABELS.index(row.label)) for row in lessons]
    about = {
        "learned": sorted(seen | {store.name for store in learned}),
        "pairs": sum(len(store.pairs) for store in kept),
        "rows": len(lessons),
        "seed": seed,
        "epochs": epochs,
        "rate": rate,
    }
    done = 0
    if run.exists():
        state = torch.load(run, weights_only=True)
        if state["about"] != about:
            raise SystemExit(f"{run} is another run: {state['about']}. Give it another --name.")
        reader.load_state_dict(state["reader"])
        optimizer.load_state_dict(state["optimizer"])
        done = state["done"]
    print(
        f"{run.stem}: {about['pairs']} pairs of {len(learned)} worlds, {len(lessons)} rows; {done} epochs done",
        flush=True,
    )
    steps = -(-len(encoded) // BATCH)
    for epoch in range(done, epochs):
        torch.manual_seed(seed * 1000 + epoch)
        began, total = time.monotonic(), 0.0
        reader.train()
        for step, some in enumerate(batches(encoded, random.Random(seed * 1000 + epoch))):  # noqa: S311  (no secret)
            set_rate(optimizer, rate, (epoch * steps + step) / (epochs * steps))
            scores = reader(*model.batch([pair for pair, _ in some]))
            wanted = torch.tensor([label for _, label in some])
            loss = functional.cross_entropy(scores, wanted, label_smoothing=SMOOTHING)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(reader.parameters(), LONGEST_GRADIENT)
            optimizer.step()
            total += loss.item()
            if step % 20 == 19:
                print(
                    f"  {step + 1}/{steps}  loss {total / (step + 1):.3f}  {time.monotonic() - began:.0f} s", flush=True
                )
        save(
            run, {"about": about, "done": epoch + 1, "reader": reader.state_dict(), "optimizer": optimizer.state_dict()}
        )
        print(f"epoch {epoch + 1}: loss {total / steps:.3f}, {time.monotonic() - began:.0f} s", flush=True)


def set_rate(optimizer: torch.optim.Optimizer, rate: float, progress: float) -> None:
    share = progress / WARM_UP if progress < WARM_UP else (1 - progress) / (1 - WARM_UP)
    for group in optimizer.param_groups:
        group["lr"] = rate * group["factor"] * share


def batches(encoded: Sequence[Any], chance: random.Random) -> Iterator[list[Any]]:
    """Every row once; those of one batch have about the same length."""
    order = list(encoded)
    chance.shuffle(order)
    size = BATCH * POOL
    found = []
    for at in range(0, len(order), size):
        pool = sorted(order[at : at + size], key=lambda row: len(row[0][0]))
        found += [pool[start : start + BATCH] for start in range(0, len(pool), BATCH)]
    chance.shuffle(found)
    yield from found


def save(run: Path, state: dict[str, Any]) -> None:
    """Whole or not at all."""
    unfinished = run.with_suffix(".unfinished")
    torch.save(state, unfinished)
    unfinished.replace(run)


def open_wordpiece() -> WordPiece:
    default = find(DEFAULT)
    return WordPiece(default.folder(load_settings().models) / default.vocabulary)


def folds(known: Sequence[Store], count: int) -> list[list[Store]]:
    """For each fold, what is learned from: all but every `count`-th world."""
    return [[store for at, store in enumerate(known) if at % count != fold] for fold in range(count)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", default="reader", help="the run's file in the build folder")
    parser.add_argument("--start", type=Path, default=BUILD / "start.onnx", help="all-MiniLM-L6-v2, fp32")
    parser.add_argument("--from", dest="before", metavar="RUN", help="begin with the weights of another run")
    parser.add_argument("--rate", type=float, default=RATE)
    parser.add_argument("--leave-out", nargs="*", default=[], metavar="WORLD")
    parser.add_argument("--everyday", action="store_true", help="learn from the everyday worlds, too")
    parser.add_argument("--max-pairs", type=int, metavar="N")
    parser.add_argument("--folds", type=int, metavar="K", help="K runs, each of which leaves out every K-th world")
    parser.add_argument("--fold", type=int, help="only this one of the folds, from 0")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    known = [store for store in stores() if store.set == "worlds" or options.everyday]
    if unknown := set(options.leave_out) - {store.name for store in known}:
        parser.error(f"Unknown worlds: {', '.join(sorted(unknown))}")
    known = [store for store in known if store.name not in options.leave_out]
    runs = {options.name: known}
    if options.folds:
        runs = {f"{options.name}-{at}": learned for at, learned in enumerate(folds(known, options.folds))}
    for at, (name, learned) in enumerate(runs.items()):
        if options.fold in (None, at):
            train(
                BUILD / f"{name}.pt",
                learned,
                source=options.start,
                before=BUILD / f"{options.before}.pt" if options.before else None,
                seed=options.seed,
                epochs=options.epochs,
                rate=options.rate,
                most=options.max_pairs,
            )


if __name__ == "__main__":
    main()
