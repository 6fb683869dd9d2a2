"""The patterns by which a reasoning names other decisions."""

from __future__ import annotations

import time

import pytest

from scrubjay.engine.edges import edges_in

CASES = {
    "nothing": (None, []),
    "empty": ("", []),
    "plain": ("Because it is faster and we build on experience.", []),
    "builds_on": ("builds_on: decision_a_1_x", [("builds_on", "decision_a_1_x")]),
    "debates": ("We think this debates: decision_a_1_x strongly", [("debates", "decision_a_1_x")]),
    "one synthesized": ("synthesizes: decision_a_1_x", [("synthesizes", "decision_a_1_x")]),
    "a list": (
        "synthesizes: decision_a, decision_b,decision_c",
        [("synthesizes", "decision_a"), ("synthesizes", "decision_b"), ("synthesizes", "decision_c")],
    ),
    "in brackets": (
        "synthesizes: [ decision_a , decision_b ]",
        [("synthesizes", "decision_a"), ("synthesizes", "decision_b")],
    ),
    "upper case": ("BUILDS_ON: Decision_A_1_X", [("builds_on", "decision_a_1_x")]),
    "bold": ("**builds_on**: decision_a", [("builds_on", "decision_a")]),
    "bold with its colon": ("**debates:** decision_a", [("debates", "decision_a")]),
    "full stop": ("builds_on: decision_a_1_x. More.", [("builds_on", "decision_a_1_x")]),
    "two kinds": (
        "builds_on: decision_a. debates: decision_b",
        [("builds_on", "decision_a"), ("debates", "decision_b")],
    ),
    "twice": ("builds_on: decision_a builds_on: decision_a", [("builds_on", "decision_a")]),
    "a memory's id": ("builds_on: mem_0123456789ab", [("builds_on", "mem_0123456789ab")]),
    "part of a longer word": ("rebuilds_on: decision_a", []),
    "no id": ("builds_on: the other thing", []),
    "next line": ("builds_on:\n  decision_a", [("builds_on", "decision_a")]),
}


@pytest.mark.parametrize("case", CASES)
def test_edges_are_found(case):
    text, expected = CASES[case]

    assert edges_in(text) == expected


HOSTILE = {
    "keywords": "builds_on:",
    "spaces": "synthesizes: [          ",
    "commas": "synthesizes: decision_a ,, ",
    "long ids": "synthesizes: decision_" + "a" * 50 + " , ",
    "stars": "**builds_on****:**",
    "one open list": "decision_a,",
}


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_text_takes_time_in_proportion_to_its_length(piece):
    def seconds(size):
        text = "synthesizes: [" + HOSTILE[piece] * (size // len(HOSTILE[piece]))
        best = float("inf")
        for _ in range(5):
            start = time.process_time()
            edges_in(text)
            best = min(best, time.process_time() - start)
        return best

    assert seconds(200_000) < 30 * max(seconds(20_000), 0.0002)  # squared growth would be 100 times
