"""The patterns by which a reasoning names other decisions."""

from __future__ import annotations

import pytest

from scrubjay.engine.decisions.mentions import edges_in

BOTH = [("builds_on", "decision_a"), ("builds_on", "decision_b")]
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
    "as code": ("builds_on: `decision_a_1_x`", [("builds_on", "decision_a_1_x")]),
    "keyword as code": ("`builds_on`: `decision_a`", [("builds_on", "decision_a")]),
    "in quotes": ('debates: "decision_a"', [("debates", "decision_a")]),
    "several built on": ("builds_on: [decision_a, decision_b]", BOTH),
    "several without brackets": ("builds_on: decision_a, decision_b", BOTH),
    "several as code": ("builds_on: `decision_a`, `decision_b`", BOTH),
    "joined by and": ("debates: decision_a and decision_b", [("debates", "decision_a"), ("debates", "decision_b")]),
    "full-width colon": ("builds_on：decision_a", [("builds_on", "decision_a")]),
    "full-width commas": ("builds_on： decision_a、decision_b", BOTH),
    "a list of lines": ("builds_on:\n- decision_a\n- `decision_b`\n- other", BOTH),
    "three on a line": (
        "builds_on: decision_a; debates: decision_b; synthesizes: [decision_c]",
        [("builds_on", "decision_a"), ("debates", "decision_b"), ("synthesizes", "decision_c")],
    ),
    "a word after and": ("builds_on: decision_a and more", [("builds_on", "decision_a")]),
    "in two words": ("This builds on: decision_a. Builds-on: decision_b", BOTH),
    "without a colon": ("It builds on decision_a and debates decision_b", [BOTH[0], ("debates", "decision_b")]),
    "prose without an id": ("It builds on experience and debates (much) <less>", []),
    "round brackets": ("builds_on: (decision_a)", BOTH[:1]),
    "round brackets without a colon": ("builds_on (decision_a, decision_b)", BOTH),
    "angle brackets": ("builds_on: <decision_a>, <decision_b>", BOTH),
    "wiki links": ("builds_on: [[decision_a]], [[decision_b]]", BOTH),
    "a sum": ("builds_on: decision_a + decision_b", BOTH),
    "a sum of wiki links": ("builds_on: [[ decision_a ]] + `decision_b`", BOTH),
    "an arrow": ("builds_on -> decision_a", BOTH[:1]),
    "a numbered list": ("builds_on:\n1. decision_a\n2. decision_b\n3. other", BOTH),
    "a list of lists": ("* **builds_on**:\n  1) `decision_a`\n  2) `decision_b`", BOTH),
    "next line": ("builds_on:\n  decision_a", [("builds_on", "decision_a")]),
}


@pytest.mark.parametrize("case", CASES)
def test_edges_are_found(case):
    text, expected = CASES[case]

    assert edges_in(text) == expected
