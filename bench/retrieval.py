"""Finding: every case of a set in a store of its own, every question asked of it through the public library."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import scrubjay
from bench.cached import CachedEmbedder, say
from bench.data import moment
from scrubjay.values.memory import NewMemory

DEPTH = 100  # hits asked for: enough turns for ten sessions

Ask = Callable[[Any, str, dict[str, Any]], Any]  # engine, question, options -> Hits


def both(jay: Any, text: str, options: dict[str, Any]) -> Any:
    hits = jay.search(text, **options)
    if hits.degraded:
        raise RuntimeError(f"the search was by words only: {hits.degraded}")
    return hits


def words(jay: Any, text: str, options: dict[str, Any]) -> Any:
    return jay.search(text, words_only=True, **options)


ASKED: Mapping[str, Ask] = {"scrubjay": both, "BM25": words}


@dataclass(slots=True)
class Answer:
    """What one way of asking gave for one question."""

    ranking: list[str]  # ids of the data set, best first
    top_score: float


@dataclass(slots=True)
class Asked:
    """One question, with what every way of asking answered."""

    case: Any
    query: Any
    answers: dict[str, Answer] = field(default_factory=dict)


@contextmanager
def in_a_file() -> Iterator[Path | str]:
    """Where a store of its own may be made."""
    with tempfile.TemporaryDirectory() as home:
        yield Path(home) / "case.db"


def run(
    dataset: Any,
    embedder: CachedEmbedder,
    ways: Mapping[str, Ask] = ASKED,
    *,
    judged: bool = False,
    place: Callable[[], AbstractContextManager[Path | str]] = in_a_file,
) -> list[Asked]:
    """Ask every question of a data set in every way. `judged`: store one by one, so that conflicts are looked for."""
    embedder.fill(
        (item.text for case in dataset.cases for item in case.items),
        (query.text for case in dataset.cases for query in case.queries),
        dataset.name,
    )
    asked: list[Asked] = []
    for number, case in enumerate(dataset.cases, 1):
        with place() as where:
            asked += run_case(case, embedder, ways, where, judged=judged)
        say(f"{dataset.name}: {number} of {len(dataset.cases)} cases")
    say("")
    return asked


def run_case(
    case: Any, embedder: CachedEmbedder, ways: Mapping[str, Ask], where: Path | str, *, judged: bool
) -> Iterator[Asked]:
    with scrubjay.open(where, embedder=embedder) as jay:
        memories = [
            {"content": item.text, "created_at": moment(item.timestamp), "conversation_id": item.session}
            for item in case.items
        ]
        ids = [jay.store(NewMemory(**memory)).memory.id for memory in memories] if judged else jay.store_many(memories)
        names = dict(zip(ids, (item.id for item in case.items), strict=True))
        for query in case.queries:
            one = Asked(case, query)
            for way, ask in ways.items():
                hits = ask(jay, query.text, {"limit": DEPTH, "now": moment(query.question_date)})
                one.answers[way] = Answer([names[hit.memory.id] for hit in hits], hits[0].score if len(hits) else 0.0)
            yield one


# --- figures ---------------------------------------------------------------------------------------------------------


def figures(rows: list[dict[str, float]], metrics: ModuleType) -> dict[str, Any]:
    """Means over questions, with the interval of recall@5."""
    if not rows:
        return {"n": 0}
    low, high = metrics.interval([row["recall@5"] for row in rows])
    return {"n": len(rows), **metrics.mean(rows), "low@5": low, "high@5": high}


def turn_rows(asked: list[Asked], way: str, metrics: ModuleType) -> list[dict[str, float]]:
    return [metrics.score(one.answers[way].ranking, one.query.gold) for one in asked if one.query.gold]


def session_rows(asked: list[Asked], way: str, metrics: ModuleType) -> list[dict[str, float]]:
    """The same rankings rolled up: a session stands where its first turn does."""
    rows = []
    for one in asked:
        if one.query.gold:
            home = {item.id: item.session for item in one.case.items}
            gold = {home[name] for name in one.query.gold}
            rows.append(metrics.score(metrics.sessions_first(one.answers[way].ranking, home), gold))
    return rows


def fresh_rows(asked: list[Asked], way: str, metrics: ModuleType) -> list[dict[str, float]]:
    return [
        metrics.fresh_first(one.answers[way].ranking, one.query.fresh, one.query.stale)
        for one in asked
        if one.query.fresh and one.query.stale
    ]


def auroc(positive: list[float], negative: list[float]) -> float | None:
    """The chance that an answerable question's top score lies above an unanswerable one's; a tie counts half."""
    if not positive or not negative:
        return None
    wins = sum((good > bad) + (good == bad) / 2 for good in positive for bad in negative)
    return wins / (len(positive) * len(negative))
