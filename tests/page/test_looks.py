"""What holds for every view: small, harmless, accessible, no wider than a phone."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from scrubjay.values.callers import Provenance
from tests.conflict import open_conflict

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parent.parent.parent
BUILT = ROOT / "src" / "scrubjay" / "web"
VIEWS = [
    "",
    "#/search?q=text",
    "#/new",
    "#/conflicts",
    "#/decisions",
    "#/conversations",
    "#/health",
    "#/access",
    "#/nonsense",
]

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "<svg/onload=alert(3)>",
    "</textarea><script>alert(4)</script>",
    "javascript:alert(5)",
    "{{constructor.constructor('alert(6)')()}}",
    '" onmouseover="alert(7)" x="',
    "<a href='javascript:alert(8)'>x</a>",
    "<iframe srcdoc='<script>alert(9)</script>'>",
    "<style>*{background:url(http://127.0.0.2/x)}</style>",
    "\u202ereversed <b>bold</b>",
    "<math><mtext><script>alert(10)</script>",
]


def test_the_built_page_is_made_from_these_sources():
    spec = spec_from_file_location("stamp", ROOT / "web" / "stamp.py")
    stamp = module_from_spec(spec)
    spec.loader.exec_module(stamp)

    built = (BUILT / "sources.sha256").read_text().strip()
    assert built == stamp.digest(), "The page's sources have changed: `make page` builds it."


def test_stored_text_is_only_ever_text(site, look):
    """Every hostile text in every field, through every view: no dialog, no violated policy (see `look`)."""
    with site.engine() as jay:
        memories, decisions = [], []
        for text in HOSTILE:
            agent = jay.bound_to(provenance=Provenance(client=text[:100], transport="http", dialect="memento"))
            given = {"title": text[:200], "tags": (text[:90],), "metadata": {text: text}}
            memories.append(agent.store(text, **given).memory)
            decisions.append(agent.decisions.save(text, text, reasoning=text).memory)
            agent.decisions.mark(decisions[-1].name, "failed", reason=text)
            open_conflict(jay, agent.store(f"{text} again").memory, memories[-1])
            agent.update(memories[-1].id, content=f"{text} changed", reason=text)
            talk = jay.conversations.create(title=text).id
            jay.conversations.say(talk, text)
            jay.conversations.link(talk, memories[-1].id)
        shown = [f"#/memories/{one.id}" for one in memories[:2]]
        drawn = [f"#/graph/{one.id}" for one in decisions[:2]]
    looking = look(site)
    views = ("", "#/search?q=alert", "#/conflicts", "#/decisions", f"#/conversations/{talk}", "#/health", "#/access")
    for where in (*views, *shown, *drawn):
        page = looking.settled(where)
        assert page.locator("#page :is(script, iframe, math, [onload], [onerror], [onmouseover])").count() == 0
        assert page.locator("#page a[href^='javascript']").count() == 0
    page = looking.go("#/decisions")
    page.get_by_role("navigation", name="Topics").get_by_role("link").first.click()
    expect(page.locator("ol > li")).to_have_count(1)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_is_accessible(site, look, scheme):
    with site.engine() as jay:
        memory = jay.store("A text: user lives in Seattle", tags=("home",)).memory
        jay.update(memory.id, content="A text: user lives in Austin")
        open_conflict(jay, jay.store("A text: user moved to Rome").memory, memory)
        decision = jay.decisions.save("caching", "Use Redis", reasoning="Fast").memory
        jay.decisions.mark(decision.name, "failed", reason="Slow")
        talk = jay.conversations.create(title="Homes").id
        jay.conversations.say(talk, "Where do I live?")
        jay.conversations.link(talk, memory.id)
    looking = look(site, color_scheme=scheme)
    open_ones = (f"#/memories/{memory.id}", "#/decisions/caching", f"#/conversations/{talk}", f"#/graph/{decision.id}")
    colours = scheme == "dark"  # all else is the same
    for where in (*VIEWS, *open_ones):
        page = looking.settled(where)
        found = Axe().run(page, options={"runOnly": ["color-contrast"]} if colours else None)
        assert found.violations_count == 0, f"{where}: {found.generate_report()}"


def test_questions_are_accessible(site, look):
    with site.engine() as jay:
        jay.store("Fact number 0")
    page = look(site).go()
    page.get_by_role("checkbox", name="Select Fact number 0").check()
    page.get_by_role("button", name="Forget …").click()
    expect(page.get_by_role("dialog", name="Forget 1 memory").get_by_role("listitem")).to_have_text(["Fact number 0"])
    assert Axe().run(page).violations_count == 0
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Help").click()
    expect(page.get_by_role("heading", name="Keyboard")).to_be_visible()
    assert Axe().run(page).violations_count == 0


def test_light_and_dark_can_be_wished_for(site, look):
    page = look(site, color_scheme="light").go()
    page.get_by_role("button", name="Dark colours").click()
    page.reload()

    expect(page.get_by_role("button", name="Light colours")).to_be_visible()
    assert page.evaluate("getComputedStyle(document.body).colorScheme") == "dark"


def test_nothing_is_wider_than_the_window(site, look):
    with site.engine() as jay:
        memory = jay.store("W" * 200 + " a text with a very long word", tags=("x" * 90,)).memory
        table = jay.store(f"|{'a|' * 30}\n|{'---|' * 30}\n|{'wide |' * 30}").memory
        decision = jay.decisions.save("y" * 100, "Use Redis", reasoning="z" * 300).memory
        open_conflict(jay, jay.store("V" * 300).memory, memory)
        talk = jay.conversations.create(title="t" * 150).id
        jay.conversations.say(talk, "s" * 300)
        jay.conversations.link(talk, memory.id)
    looking = look(site)
    memories = (f"#/memories/{memory.id}", f"#/memories/{table.id}", f"#/graph/{decision.id}")
    for where in (*VIEWS, *memories, f"#/conversations/{talk}", f"#/decisions/{'y' * 100}"):
        page = looking.settled(where)
        for width in (360, 390, 1280, 1440):
            page.set_viewport_size({"width": width, "height": 740})
            looking.quiet()
            assert page.evaluate("document.documentElement.scrollWidth") <= width, where
