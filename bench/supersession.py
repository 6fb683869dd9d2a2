"""Conflicts: memories arrive in order, and each store names earlier ones that it may outdate.

Two grades. *Ranking*: is the outdated memory among the first 1, 3 or 5 named? *Flags*: of everything named, how much
is right, and how much of what is outdated was named; what is never named is a miss. Streams are talk, and only some
of their updates are labelled, so precision over a whole stream is a lower bound; "labelled" looks only at memories
that the data says something about.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import scrubjay
from bench.cached import CachedEmbedder, say
from bench.data import moment
from scrubjay.engine.conflicts.duplicates import same_said
from scrubjay.values.memory import LinkKind

NAMED = 5


@dataclass(slots=True)
class Grades:
    """What is gathered while streams go by."""

    ranking: dict[str, list[dict[str, float]]] = field(default_factory=dict)
    everywhere: list[tuple[float, bool]] = field(default_factory=list)  # score of a flag, is it right?
    labelled: list[tuple[float, bool]] = field(default_factory=list)
    missed: int = 0
    kept: int = 0  # pairs that are both true, both seen …
    kept_flagged: int = 0  # … and flagged all the same
    twins: int = 0  # updates whose old and new text would be reported as saying the same


def run(name: str, streams: Sequence[Any], embedder: CachedEmbedder, metrics: ModuleType) -> dict[str, Any]:
    changing = {stream.id: {update.new for update in stream.updates} for stream in streams}
    embedder.fill(
        (memory.text for stream in streams for memory in stream.memories),
        (memory.text for stream in streams for memory in stream.memories if memory.id in changing[stream.id]),
        name,
    )
    grades = Grades()
    for number, stream in enumerate(streams, 1):
        watch(stream, embedder, grades)
        say(f"{name}: {number} of {len(streams)} streams")
    say("")
    return {
        "updates": sum(len(stream.updates) for stream in streams),
        "ranking": {way: metrics.mean(rows) for way, rows in grades.ranking.items()},
        "flags": {
            "whole streams": flagged(grades.everywhere, grades.missed, metrics),
            "labelled": flagged(grades.labelled, grades.missed, metrics),
        },
        "non_updates": f"{grades.kept_flagged} of {grades.kept}",
        "twins": grades.twins,
    }


def watch(stream: Any, embedder: CachedEmbedder, grades: Grades) -> None:
    """One stream into one store."""
    outdated: dict[str, set[str]] = {}
    for update in stream.updates:
        outdated.setdefault(update.new, set()).update(update.old)
    kept: dict[str, set[str]] = {}
    for new, other in stream.non_updates:
        kept.setdefault(new, set()).add(other)
    with tempfile.TemporaryDirectory() as home, scrubjay.open(Path(home) / "stream.db", embedder=embedder) as jay:
        names: dict[str, str] = {}
        texts = {item.id: item.text for item in stream.memories}
        for item in stream.memories:
            old = outdated.get(item.id, set())
            if old:
                for way, words_only in (("search with the new text", False), ("BM25 with the new text", True)):
                    hits = jay.search(item.text, limit=NAMED, words_only=words_only)
                    grade(grades, way, [names[hit.memory.id] for hit in hits], old)
            stored = jay.store(item.text, created_at=moment(item.timestamp), conversation_id=item.session)
            if stored.degraded:
                raise RuntimeError(f"stored without a vector: {stored.degraded}")
            names[stored.memory.id] = item.id
            similar = [names[memory.id] for memory in stored.similar]
            scores = {
                names[link.target]: link.score or 0.0
                for link in (jay.links(stored.memory.id) if similar else ())
                if link.kind is LinkKind.MAY_OUTDATE and link.source == stored.memory.id
            }
            if old:
                grade(grades, "proposed by store", similar, old)
                grades.twins += sum(same_said(texts[name], item.text) for name in old)
            flags = [(scores[name], name in old) for name in similar]
            grades.everywhere += flags
            grades.labelled += flags if old or item.id in kept else []
            grades.missed += len(old - set(similar))
            both_true = kept.get(item.id, set()) & set(names.values())
            grades.kept += len(both_true)
            grades.kept_flagged += len(both_true & set(similar))


def grade(grades: Grades, way: str, ranking: Sequence[str], old: Iterable[str]) -> None:
    wanted = set(old)
    shares = {f"recall@{k}": len(wanted.intersection(ranking[:k])) / len(wanted) for k in (1, 3, NAMED)}
    grades.ranking.setdefault(way, []).append(shares)


def flagged(flags: list[tuple[float, bool]], missed: int, metrics: ModuleType) -> dict[str, Any]:
    scored = [*flags, *[(metrics.MISSED, True)] * missed]
    f1, precision, recall = metrics.at_threshold(scored, 0.0)
    best, *_ = metrics.best_f1(scored)
    ap = metrics.average_precision(scored)
    return {"flags": len(flags), "precision": precision, "recall": recall, "f1": f1, "ap": ap, "best_f1": best}
