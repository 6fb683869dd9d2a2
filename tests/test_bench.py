"""The benchmarks' own parts: what they measure with must be right."""

from __future__ import annotations

import json

import numpy as np
import pytest
from bench import figures, sentences
from bench.cached import CachedEmbedder
from bench.figures import Figure
from bench.retrieval import auroc
from bench.timing import WARM_UP, in_turn

from scrubjay.embedders.hashing import HashingEmbedder
from tests.embedders.embedder_contract import EmbedderContract

pytestmark = pytest.mark.process


class Counting(HashingEmbedder):
    """Says how many texts it was asked for."""

    asked = 0

    def embed(self, texts):
        self.asked += len(texts)
        return super().embed(texts)


class TestCachedEmbedder(EmbedderContract):
    @pytest.fixture
    def embedder(self, tmp_path):
        return CachedEmbedder(HashingEmbedder(), tmp_path / "vectors.db")

    @pytest.fixture
    def another(self, tmp_path):
        return CachedEmbedder(HashingEmbedder(), tmp_path / "others.db")


def test_a_text_is_embedded_once_even_by_another_process(tmp_path):
    inner = Counting()
    CachedEmbedder(inner, tmp_path / "vectors.db").embed(["tea", "milk", "tea"])

    again = CachedEmbedder(inner, tmp_path / "vectors.db").embed(["milk", "tea"])

    assert inner.asked == 2
    assert np.array_equal(again[1], HashingEmbedder().embed(["tea"])[0])


def test_a_question_and_a_text_with_the_same_words_are_kept_apart(tmp_path):
    cached = CachedEmbedder(Counting(), tmp_path / "vectors.db")
    cached.embed_query("tea")

    cached.embed(["tea"])

    assert cached._inner.asked == 1


def test_made_up_memories_are_different_and_the_same_every_time():
    made = sentences.memories(500)

    assert len(set(made)) == 500
    assert made == sentences.memories(600)[:500]


def test_floor_and_subject_take_turns_and_change_places():
    order: list[str] = []

    def step(name):
        return lambda: order.append(name) or (1.0, 1.0)

    compared = in_turn("x", step("floor"), step("subject"), rounds=4)

    assert len(compared.floor.cpu) == len(compared.subject.cpu) == 4
    assert len(order) == 2 * (4 + WARM_UP)
    assert all({order[at], order[at + 1]} == {"floor", "subject"} for at in range(0, len(order), 2))
    assert order[0] != order[2]


def test_a_goal_is_met_by_the_ratio_of_medians():
    slow = iter([9.0] * WARM_UP + [2.0, 8.0, 2.0])

    compared = in_turn("x", lambda: (1.0, 1.0), lambda: (next(slow), 1.0), rounds=3, goal=2.0)

    assert compared.figures()["met"] is True


def test_auroc_counts_a_tie_as_half():
    assert auroc([0.9, 0.5], [0.1]) == 1.0
    assert auroc([0.5], [0.5]) == 0.5
    assert auroc([0.1], [0.9]) == 0.0
    assert auroc([], [0.9]) is None


def test_a_figure_is_shown_beside_its_floor_what_it_was_and_its_goal() -> None:
    search = Figure(name="search", value=6.0, floor=1.5, goal=5.0)
    store = Figure(name="store", value=6.0, floor=4.0, goal_times=1.6)
    rate = Figure(name="copy", value=5_200.0, unit="rows/s", floor=10_400.0, goal=5_000.0, more_is_better=True)

    assert figures.row(search, {"search": 12.0}) == [
        "search, ms", "1.50", "6", "4", "12", "≤ 5", "[red]missed[/red]"
    ]  # fmt: skip
    assert figures.row(store, {}) == ["store, ms", "4", "6", "1.50", "", "≤ 1.60 ×", "ok"]
    assert figures.row(rate, {}) == ["copy, rows/s", "10,400", "5,200", "0.500", "", "≥ 5,000", "ok"]


MACHINE = {"commit": "abc1234", "at": "2026-11-19T23:00:00", "load": [3.0], "processor": "x", "cores": 2}
TEXT = "Before.\n<!-- results of speed -->\nold\n<!-- end -->\nAfter.\n<!-- results of sync -->\nkept\n<!-- end -->\n"


def test_the_page_has_the_kept_figures_between_its_markers_and_its_text_stays() -> None:
    store = Figure(name="store", value=8.0, floor=4.0, goal_times=1.6).as_json()

    page = figures.page(TEXT, {"speed": {"machine": MACHINE, "figures": [store]}})

    assert page.startswith("Before.\n<!-- results of speed -->\n")
    assert "| store, ms | 4 | 8 | 2 | ≤ 1.60 × | missed |" in page
    assert "Commit abc1234, 2026-11-19, 2 cores at a load of 3.0." in page
    assert "old" not in page
    assert page.endswith("<!-- end -->\nAfter.\n<!-- results of sync -->\nkept\n<!-- end -->\n")


def test_a_bench_without_figures_is_shown_by_its_tables() -> None:
    table = {"title": "Sync", "columns": ["", "ms"], "rows": [["100 edits", "141"]]}

    page = figures.page(TEXT, {"sync": {"machine": MACHINE, "tables": [table]}})

    assert "**Sync**\n\n|  | ms |\n| --- | --- |\n| 100 edits | 141 |\n" in page


def test_the_page_says_what_the_kept_results_say() -> None:
    kept = json.loads(figures.KEPT.read_text())

    assert figures.page(figures.PAGE.read_text(), kept) == figures.PAGE.read_text()
    assert set(kept) <= set(figures.BENCHES)
