"""The page over a hundred thousand memories, and a graph of five thousand: it stays small, and one can go on using it.

Numbers are written to standard output; docs/lab/figures.md tells them.
"""

from __future__ import annotations

import json
import os
import time

import pytest
from playwright.sync_api import expect

from scrubjay.values.memory import LinkKind
from tests.page.conftest import Site

pytestmark = [pytest.mark.long, pytest.mark.browser]
MEMORIES = int(os.environ.get("SCRUBJAY_PAGE_MEMORIES", "100000"))
NODES = 5_000
WORDS = (
    "harbour",
    "berth",
    "tide",
    "crane",
    "ferry",
    "pilot",
    "mole",
    "light",
    "buoy",
    "herring",
    "anchor",
    "fog",
    "quay",
)

# How long the window was busy at a stretch while `work` went on, and how many frames it drew.
WATCH = """async (milliseconds) => {
  let frames = 0, longest = 0, last = performance.now();
  const begun = last;
  while (last - begun < milliseconds) {
    const now = await new Promise(requestAnimationFrame);
    longest = Math.max(longest, now - last);
    last = now;
    frames++;
  }
  return { frames, longest };
}"""


def text(number: int) -> str:
    first, second, third = (WORDS[(number // step) % len(WORDS)] for step in (1, 13, 169))
    return f"Note {number}: the {first} by the {second} and the {third}"


@pytest.fixture(scope="module")
def large(server) -> Site:
    site = Site(server, "large")
    with site.engine() as jay:
        jay.store_many({"content": text(number)} for number in range(MEMORIES))
    return site


def test_a_hundred_thousand_memories_are_listed_and_searched(large, look):
    looking = look(large)
    begun = time.perf_counter()
    page = looking.go()
    expect(page.get_by_role("status").filter(has_text=f"{MEMORIES:,} memories")).to_be_visible(timeout=60_000)
    listed = time.perf_counter() - begun

    nodes = []
    for _ in range(60):
        page.mouse.wheel(0, 10_000)
        page.wait_for_timeout(100)
        nodes.append(page.evaluate("document.querySelectorAll('*').length"))
    read = page.evaluate("document.documentElement.scrollHeight")
    smooth = page.evaluate(WATCH, 2_000)

    page.evaluate("scrollTo(0, 0)")
    begun = time.perf_counter()
    sought = f"Note {MEMORIES * 3 // 4}"
    page.get_by_role("searchbox", name="Search memories").fill(sought)
    expect(page.get_by_role("link", name=sought).first).to_be_visible(timeout=60_000)
    found = time.perf_counter() - begun
    told = {"listed_s": listed, "found_s": found, "most_nodes": max(nodes), "height": read, **smooth}
    print(json.dumps({name: round(value, 2) for name, value in told.items()}))

    assert max(nodes) < 5_000
    assert read > 20_000  # it was scrolled, and more came


def test_a_graph_of_five_thousand_stays_usable(server, look):
    site = Site(server, "graph")
    with site.engine() as jay:
        ids = jay.store_many({"content": text(number)} for number in range(NODES))
        memories = [jay.get(id) for id in ids]
        with jay.records.writing() as tx:
            for number in range(1, NODES):
                source, target = memories[number], memories[number // 7]
                jay.ledger.link(tx, LinkKind.RELATED, source, target)
    looking = look(site)
    begun = time.perf_counter()
    page = looking.go(f"#/graph/{memories[0].id}")
    page.get_by_label("steps").select_option("10")
    expect(page.get_by_role("status")).to_contain_text(f"{NODES:,} memories", timeout=60_000)
    drawn = time.perf_counter() - begun
    settling = page.evaluate(WATCH, 3_000)
    expect(page.get_by_role("status")).not_to_contain_text("arranging", timeout=120_000)
    settled = time.perf_counter() - begun
    still = page.evaluate(WATCH, 2_000)
    page.mouse.move(600, 450)
    page.mouse.wheel(0, -300)
    zooming = page.evaluate(WATCH, 2_000)
    told = {"settling": settling, "still": still, "zooming": zooming}
    print(json.dumps({"drawn_s": round(drawn, 2), "settled_s": round(settled, 2), **told}))

    assert settling["frames"] > 10  # the layout is worked out elsewhere: the window goes on drawing
    page.get_by_text("As a list").click()
    expect(page.locator("details li")).to_have_count(200)
