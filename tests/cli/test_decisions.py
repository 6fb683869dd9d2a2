"""`scrubjay decisions`: how decisions evolved, for people and for drawing programs."""

from __future__ import annotations

import pytest

import scrubjay
from scrubjay.embedders.hashing import HashingEmbedder


@pytest.fixture
def decided(home):
    """A chain of two, with a link between topics and hostile text in it."""
    home.mkdir()
    with scrubjay.open(home / "memories.db", embedder=HashingEmbedder()) as jay:
        first = jay.decisions.save("caching", "Use Redis", reasoning="Fast").memory
        jay.decisions.mark(first.name, "failed", reason="Too much to operate")
        hostile = 'He said "no"]; click d1 href "x" \x1b[31m <b>%% \\'
        other = jay.decisions.save("storage", hostile, reasoning=f"builds_on: {first.name}").memory
        jay.decisions.save("caching", "Use a local LRU", reasoning=f"debates: {other.name}")


def test_topics_with_their_number_of_decisions(call, decided):
    lines = call("decisions").out.splitlines()

    assert [line.split("\t")[:2] for line in lines] == [["caching", "2"], ["storage", "1"]]


def test_a_topic_as_a_tree(call, decided):
    out = call("decisions", "CACHING").out

    assert out.index("Use a local LRU  current") < out.index("Use Redis  superseded")
    assert "failed: Too much to operate" in out
    assert "debates: storage" in out
    assert "\x1b[31m" not in out


def test_a_topic_for_mermaid_cannot_break_out_of_its_label(call, decided):
    lines = call("decisions", "caching", "--format", "mermaid").out.splitlines()

    assert lines[0] == "flowchart TD"
    assert sum("-->" in line for line in lines) == 3
    for line in lines[1:4]:
        label = line.split('["', 1)[1].removesuffix('"]')
        assert not set('"[]<>%') & set(label)


def test_a_topic_for_graphviz_cannot_break_out_of_its_label(call, decided):
    out = call("decisions", "--format", "dot").out

    assert out.startswith("digraph decisions {")
    assert '\\"no\\"' in out
    assert out.count("->") == 3


def test_a_topic_as_json(call, decided):
    graph = call("decisions", "caching", "--steps", "0", "--json").json

    assert [memory["content"] for memory in graph["memories"]] == ["Use Redis", "Use a local LRU"]
    assert [link["kind"] for link in graph["links"]] == ["supersedes"]
