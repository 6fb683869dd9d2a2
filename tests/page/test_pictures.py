"""The pictures of docs/reference/page.md, taken from a store that looks like a year of work: `make pictures`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from playwright.sync_api import expect

from scrubjay.settings import load
from scrubjay.values.frozen import replace
from scrubjay.wiring import open_embedder
from tests.page.conftest import Server, Site
from tests.page.demo import Year

PICTURES = os.environ.get("SCRUBJAY_PICTURES")  # the folder; without it nothing is written
EMBEDDER = "arctic-embed-s"
MOST_BYTES = 125_000
pytestmark = [pytest.mark.skipif(not PICTURES, reason="pictures are taken by `make pictures`"), pytest.mark.browser]
DESK = {"width": 1100, "height": 760}
PHONE = {"width": 390, "height": 760}


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    home = tmp_path_factory.mktemp("pictures") / "home"
    home.mkdir()
    return home, Year(home, open_embedder(replace(load(), embedder=EMBEDDER)))


@pytest.fixture(scope="module")
def shown(demo):
    server = Server(demo[0], SCRUBJAY_EMBEDDER=EMBEDDER)
    yield Site(server)
    server.stop()


@pytest.mark.parametrize(
    ("name", "where", "options"),
    [
        ("search", "#/search?q=which+berth+is+closed", {"viewport": DESK}),
        ("search-dark", "#/search?q=which+berth+is+closed", {"viewport": DESK, "color_scheme": "dark"}),
        ("search-phone", "#/search?q=which+berth+is+closed", {"viewport": PHONE}),
        ("memory", "#/memories/{changed.id}", {"viewport": DESK}),
        ("conflicts", "#/conflicts", {"viewport": DESK}),
        ("decisions", "#/decisions/berth-planner%2Fstorage", {"viewport": DESK}),
        ("graph", "#/graph/{decision.id}", {"viewport": DESK}),
        ("conversation", "#/conversations/{conversation}", {"viewport": DESK}),
        ("health", "#/health", {"viewport": DESK}),
    ],
)
def test_a_picture(shown, demo, look, name, where, options):
    looking = look(shown, **options)
    page = looking.settled(where.format(**vars(demo[1])))
    if name == "search":
        page.get_by_text("Why was this found?").first.click()
    if name == "memory":
        page.get_by_role("button", name="Make current again").last.scroll_into_view_if_needed()
    if name == "graph":
        expect(page.get_by_role("status")).not_to_contain_text("arranging")
    page.wait_for_timeout(400)  # what moves has arrived
    file = Path(PICTURES) / f"{name}.png"
    file.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=file)

    assert file.stat().st_size <= MOST_BYTES
