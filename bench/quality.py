"""How good are the answers? The everyday worlds first, each left out of what was fitted; then every set of the dev
split, through the public library, beside BM25 in the same store.

    python -m bench.quality                      all sets
    python -m bench.quality --only locomo,dedup  some of them
    python -m bench.quality --data PATH          where the data lies (or BENCH_DATA)

The protocols are those of the data's README. The first run embeds every text once (some minutes to an hour of CPU);
vectors are kept in the user's cache.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from bench import categories, everyday, report, retrieval, supersession, twins
from bench.cached import CachedEmbedder
from bench.data import folder, tools
from bench.report import percent
from scrubjay.embedders.catalogue import DEFAULT, find
from scrubjay.embedders.local import LocalEmbedder
from scrubjay.settings import load

HEADLINE = {
    "locomo": ("multi-hop", "temporal", "open-domain", "single-hop"),
    "beam_100k": (
        "information_extraction", "multi_session_reasoning", "knowledge_update", "temporal_reasoning",
        "contradiction_resolution", "preference_following",
    ),
}  # fmt: skip
UNANSWERABLE = {"locomo": "adversarial", "longmemeval_pool": "abstention", "beam_100k": "abstention"}
# recall@5 / @10 in percent: a Lucene-like BM25 with the Snowball stemmer, from the data's README.
PUBLISHED = {
    ("locomo", "turn"): (48.7, 57.4),
    ("locomo", "session"): (82.8, 91.0),
    ("longmemeval_pool", "turn"): (69.3, 77.6),
    ("longmemeval_pool", "session"): (91.6, 94.5),
    ("longmemeval_big", "turn"): (61.6, 67.8),
    ("longmemeval_s_prefix", "session"): (95.3, 98.0),
    ("beam_100k", "turn"): (46.8, 62.9),
}
UNITS = {
    "locomo": ("turn", "session"),
    "longmemeval_pool": ("turn", "session"),
    "longmemeval_big": ("turn", "session"),
    "longmemeval_s_prefix": ("session",),
}  # the others: turn
GOALS = {
    ("locomo", "turn"): (("recall@5", 0.66), ("recall@10", 0.75)),
    ("locomo", "session"): (("all@5", 0.82),),
    ("longmemeval_pool", "turn"): (("recall@5", 0.80),),
    ("longmemeval_big", "turn"): (("recall@5", 0.68),),
    ("longmemeval_s_prefix", "session"): (("all@5", 0.90),),
}
LEAST_CATEGORIES = 0.85  # of the test half
JUDGED = {"factconsolidation"}  # here the question is whether the current fact comes before the one it outdates
WAYS = tuple(retrieval.ASKED)
COLUMNS = ("recall@5", "recall@10", "any@5", "all@5", "mrr", "ndcg@10")

Run = Callable[[str, CachedEmbedder, ModuleType, ModuleType], dict[str, Any]]


def main(arguments: Sequence[str] | None = None) -> None:
    options = parsed(arguments)
    path = folder(options.data)
    datasets, metrics = tools(path)
    runs: dict[str, Run] = {
        "everyday": everyday_set,
        **dict.fromkeys(datasets.RETRIEVAL, retrieval_set),
        **dict.fromkeys(datasets.SUPERSEDE, supersession_set),
        "dedup": dedup_set,
        "categories": categories_set,
    }
    chosen = options.only.split(",") if options.only else list(runs)
    if unknown := [name for name in chosen if name not in runs]:
        sys.exit(f"Unknown set {unknown[0]}. Known: {', '.join(runs)}.")
    facts = report.machine()
    settings = load()
    model = find(DEFAULT)
    model = replace(model, window=options.window or model.window)
    embedder = CachedEmbedder(LocalEmbedder(model, settings.models), options.cache)
    results: dict[str, Any] = {"model": embedder.fingerprint}
    for name in chosen:
        begun = time.monotonic()
        results[name] = runs[name](name, embedder, datasets, metrics)
        report.console.print(f"  {name}: {time.monotonic() - begun:.0f} s", style="dim")
    print_goals(results)
    report.console.print(f"\nWritten: {report.write('quality', results, facts)}")


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.quality", description="Measure the answers' quality.")
    parser.add_argument("--data", help="folder of the benchmark data")
    parser.add_argument("--only", help="names of sets, separated by commas")
    parser.add_argument("--window", type=int, help="tokens of a part, to try another than the model's")
    parser.add_argument("--cache", type=Path, help="file for the vectors; default: in the user's cache")
    return parser.parse_args(arguments)


# --- single facts, and questions as people ask them -------------------------------------------------------------------


def everyday_set(name: str, _embedder: CachedEmbedder, datasets: ModuleType, _metrics: ModuleType) -> dict[str, Any]:
    result = everyday.run(datasets.DEV)
    report.table(f"{name}, worlds left out one at a time", everyday.COLUMNS, everyday.rows(result), everyday.seen())
    return result


# --- finding ---------------------------------------------------------------------------------------------------------


def retrieval_set(name: str, embedder: CachedEmbedder, datasets: ModuleType, metrics: ModuleType) -> dict[str, Any]:
    asked = retrieval.run(datasets.load(name), embedder, judged=name in JUDGED)
    headline = [one for one in asked if not HEADLINE.get(name) or one.query.category in HEADLINE[name]]
    units = UNITS.get(name, ("turn",))
    result: dict[str, Any] = {}
    for unit in units:
        result[unit] = by_way(headline, unit, metrics)
        print_unit(name, unit, result[unit])
    grouped = groups(asked, datasets.names_time)
    result["groups"] = {group: by_way(some, units[0], metrics) for group, some in grouped.items()}
    print_groups(name, units[0], result["groups"])
    if any(one.query.fresh and one.query.stale for one in asked):
        result["fresh"] = {way: metrics.mean(retrieval.fresh_rows(asked, way, metrics)) for way in WAYS}
        print_fresh(name, result["fresh"], len(retrieval.fresh_rows(asked, WAYS[0], metrics)))
    if name in UNANSWERABLE:
        result["abstention"] = abstention(headline, asked, UNANSWERABLE[name])
        print_abstention(name, result["abstention"])
    return result


def by_way(asked: list[retrieval.Asked], unit: str, metrics: ModuleType) -> dict[str, Any]:
    rows_of = retrieval.turn_rows if unit == "turn" else retrieval.session_rows
    return {way: retrieval.figures(rows_of(asked, way, metrics), metrics) for way in WAYS}


def groups(asked: list[retrieval.Asked], names_time: Callable[[str], bool]) -> dict[str, list[retrieval.Asked]]:
    """Questions by category, and those that name a time."""
    found: dict[str, list[retrieval.Asked]] = {}
    for one in asked:
        if one.query.gold:
            found.setdefault(one.query.category, []).append(one)
            found.setdefault("(names a time)", []).extend([one] if names_time(one.query.text) else [])
    return dict(sorted(found.items()))


def abstention(headline: list[retrieval.Asked], asked: list[retrieval.Asked], category: str) -> dict[str, Any]:
    def tops(some: list[retrieval.Asked], way: str) -> list[float]:
        return [one.answers[way].top_score for one in some]

    answerable = [one for one in headline if one.query.gold and one.query.category != category]
    unanswerable = [one for one in asked if one.query.category == category]
    return {
        "answerable": len(answerable),
        "unanswerable": len(unanswerable),
        **{way: retrieval.auroc(tops(answerable, way), tops(unanswerable, way)) for way in WAYS},
    }


def print_unit(name: str, unit: str, result: dict[str, Any]) -> None:
    rows = [
        [way, one["n"], percent(one["recall@5"]), f"{percent(one['low@5'])} to {percent(one['high@5'])}",
         *(percent(one[column]) for column in COLUMNS[1:])]
        for way, one in result.items()
    ]  # fmt: skip
    if (name, unit) in PUBLISHED:
        at_5, at_10 = PUBLISHED[name, unit]
        rows.append(["BM25, published", "", at_5, "", at_10, "", "", "", ""])
    report.table(f"{name}, unit {unit}", ["", "n", "recall@5", "95 %", *COLUMNS[1:]], rows)


def print_groups(name: str, unit: str, result: dict[str, Any]) -> None:
    shown = [(column, way) for column in ("recall@5", "recall@10") for way in WAYS]
    rows = [
        [group, ways[WAYS[0]]["n"], *(percent(ways[way][column]) for column, way in shown)]
        for group, ways in result.items()
        if ways[WAYS[0]]["n"]
    ]
    columns = [f"{column}, {way}" for column, way in shown]
    report.table(f"{name} by category, unit {unit}", ["", "n", *columns], rows)


def print_fresh(name: str, result: dict[str, Any], n: int) -> None:
    columns = list(result[WAYS[0]])
    rows = [[way, n, *(percent(one[column]) for column in columns)] for way, one in result.items()]
    report.table(f"{name}: the current value before the replaced one", ["", "n", *columns], rows)


def print_abstention(name: str, result: dict[str, Any]) -> None:
    rows = [[way, result["answerable"], result["unanswerable"], percent(result[way])] for way in WAYS]
    report.table(f"{name}: abstention", ["", "answerable", "unanswerable", "AUROC of the top score"], rows)


# --- conflicts and duplicates ----------------------------------------------------------------------------------------


def supersession_set(name: str, embedder: CachedEmbedder, datasets: ModuleType, metrics: ModuleType) -> dict[str, Any]:
    result = supersession.run(name, datasets.load_streams(name), embedder, metrics)
    rows = [
        [way, result["updates"], *(percent(one[f"recall@{k}"]) for k in (1, 3, 5))]
        for way, one in result["ranking"].items()
    ]
    report.table(f"{name}: the outdated memory among what is named", ["", "updates", "recall@1", "@3", "@5"], rows)
    rows = [
        [what, one["flags"], *(percent(one[column]) for column in ("precision", "recall", "f1", "ap", "best_f1"))]
        for what, one in result["flags"].items()
    ]
    columns = ["", "flags", "precision", "recall", "F1", "AP", "best F1"]
    report.table(f"{name}: flags", columns, rows, f"true pairs of one subject flagged: {result['non_updates']}")
    return result


def dedup_set(name: str, embedder: CachedEmbedder, datasets: ModuleType, metrics: ModuleType) -> dict[str, Any]:
    result = twins.run(datasets.load_dedup(), embedder, metrics)
    rows = [
        [source, way, one["n"], *(percent(one[column]) for column in ("ap", "f1", "precision", "recall")),
         percent(one["contradictions"])]
        for source, ways in result.items()
        for way, one in ways.items()
    ]  # fmt: skip
    columns = ["source", "by", "n", "AP", "best F1", "precision", "recall", "contradictions merged"]
    report.table(f"{name}: the same fact or not", columns, rows, "F1 and what follows: at the best threshold of all.")
    return result


def categories_set(name: str, embedder: CachedEmbedder, *_: ModuleType) -> dict[str, Any]:
    result = categories.run(embedder)
    categories.show(name, result)
    return result


def print_goals(results: dict[str, Any]) -> None:
    if "categories" in results:
        got = results["categories"]["accuracy"]
        verdict = "ok" if got >= LEAST_CATEGORIES else "MISSED"
        report.console.print(f"\ngoal: categories accuracy ≥ {percent(LEAST_CATEGORIES)}: {percent(got)}  {verdict}")
    for name, unit, column, least in ((*key, *goal) for key, goals in GOALS.items() for goal in goals):
        if name in results:
            got = results[name][unit][WAYS[0]][column]
            verdict = "ok" if got >= least else "MISSED"
            report.console.print(f"\ngoal: {name} {unit} {column} ≥ {percent(least)}: {percent(got)}  {verdict}")


if __name__ == "__main__":
    main()
