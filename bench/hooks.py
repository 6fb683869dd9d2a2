"""What the prompt's hook gives: nothing to strangers, the answer to its own world.

    python -m bench.hooks [FOLDER]      FOLDER has the everyday worlds, one JSON file each

Each world's memories are stored in a home of its own. Then its hook is asked, as the program does it: the questions of
that world, the questions of all others, and 200 things that people type to a coding agent (`data_hooks/prompts.txt`).
Once with the model, as a running server answers, and once by words only, as the hook answers by itself.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path

import scrubjay
from scrubjay.engine.reminder import remind

PROMPTS = (Path(__file__).parent / "data_hooks" / "prompts.txt").read_text("utf-8").splitlines()


def measured(worlds: list[dict], *, words_only: bool, seen: list[str]) -> Counter:
    sums: Counter = Counter()
    for world in worlds:
        with tempfile.TemporaryDirectory() as folder, scrubjay.open(Path(folder) / "memories.db") as jay:
            names = {jay.store(one["text"]).memory.id: one["id"] for one in world["memories"]}
            for question in world["questions"]:
                given = {names[one.id] for one in remind(jay, question["text"], words_only=words_only).memories}
                if question["gold"]:
                    sums["own"] += 1
                    sums["own, answered"] += bool(given & set(question["gold"]))
                    sums["own, something"] += bool(given)
                else:
                    sums["own, unanswerable"] += 1
                    sums["own, unanswerable, something"] += bool(given)
            others = [one["text"] for other in worlds if other is not world for one in other["questions"]]
            for kind, texts in (("strangers", others), ("prompts", PROMPTS)):
                for text in texts:
                    answer = remind(jay, text, words_only=words_only)
                    sums[kind] += 1
                    sums[f"{kind}, something"] += bool(answer.memories)
                    sums["tokens"] += answer.tokens
                    if answer.memories:
                        seen.append(f"{world['world']}: {text!r} -> {answer.text.splitlines()[-1]}")
    return sums


def main() -> None:
    folder = Path(next((one for one in sys.argv[1:] if not one.startswith("-")), "../shared/datasets/everyday"))
    worlds = [json.loads(file.read_text("utf-8")) for file in sorted(folder.glob("*.json"))]
    os.environ["SCRUBJAY_EMBED_WAIT"] = "60"
    for words_only in (False, True):
        seen: list[str] = []
        sums = measured(worlds, words_only=words_only, seen=seen)
        foreign = sums["strangers"] + sums["prompts"]
        given = sums["strangers, something"] + sums["prompts, something"]
        print("words only" if words_only else "with the model")
        for told, part, whole in (
            ("own questions that get their answer", "own, answered", "own"),
            ("own questions that get anything", "own, something", "own"),
            ("unanswerable ones that get anything", "own, unanswerable, something", "own, unanswerable"),
            ("questions of other worlds", "strangers, something", "strangers"),
            ("task prompts", "prompts, something", "prompts"),
        ):
            print(f"  {told:<37} {100 * sums[part] / max(1, sums[whole]):5.1f} % of {sums[whole]:,}")
        print(f"  {'the last two':<37} {100 * given / foreign:5.1f} %, {sums['tokens'] / foreign:.1f} tokens each")
        if "--show" in sys.argv:
            print(*seen, sep="\n")


if __name__ == "__main__":
    main()
