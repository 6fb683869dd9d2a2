"""Every view of the page, as a person uses it."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

ROOT = Path(__file__).parent.parent.parent
BUILT = ROOT / "src" / "scrubjay" / "web"

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


# --- what was built --------------------------------------------------------------------------------------------------


def test_the_built_page_is_made_from_these_sources():
    spec = spec_from_file_location("stamp", ROOT / "web" / "stamp.py")
    stamp = module_from_spec(spec)
    spec.loader.exec_module(stamp)

    built = (BUILT / "sources.sha256").read_text().strip()
    assert built == stamp.digest(), "The page's sources have changed: `make page` builds it."


def test_the_first_view_is_small(serve, look):
    site = serve()
    sizes = []
    looking = look(site)
    looking.page.on("response", lambda reply: reply.url.endswith(".js") and sizes.append(len(reply.body())))
    page = looking.go()
    expect(page.get_by_role("searchbox", name="Search memories")).to_be_visible()
    page.wait_for_load_state("networkidle")

    assert 0 < sum(sizes) < 150_000  # not even compressed


# --- search ----------------------------------------------------------------------------------------------------------


def test_results_come_as_one_types_and_say_why(serve, look):
    site = serve()
    with site.engine() as jay:
        jay.store("The harbour master is called Ottilie", tags=("harbour",))
        jay.store("The lighthouse was painted in May", category="event")
    looking = look(site)
    page = looking.go()
    expect(page.locator(".result")).to_have_count(2)

    page.keyboard.type("harbour master")

    expect(page.locator(".result")).to_have_count(1)
    page.get_by_text("Why was this found?").click()
    expect(page.locator(".result dl")).to_contain_text("harbour, master")
    looking.picture("search")


def test_filters_narrow_the_list_and_stay_in_the_address(serve, look):
    site = serve()
    with site.engine() as jay:
        jay.store("A goal of mine", category="goal", tags=("life",))
        jay.store("A plain fact", category="fact")
    page = look(site).go()

    page.get_by_label("Category").select_option("goal")
    expect(page.locator(".result")).to_have_count(1)
    page.reload()
    expect(page.locator(".result")).to_have_count(1)
    page.get_by_role("button", name="Clear filters").click()
    expect(page.locator(".result")).to_have_count(2)
    page.get_by_label("Tag").fill("life")
    expect(page.locator(".result")).to_have_count(1)


def test_the_keyboard_is_enough(serve, look):
    site = serve()
    with site.engine() as jay:
        for number in range(3):
            jay.store(f"Fact number {number}")
    page = look(site).go()
    expect(page.locator(".result")).to_have_count(3)

    page.keyboard.press("ArrowDown")
    page.keyboard.press("j")
    page.keyboard.press("Enter")

    expect(page.get_by_role("heading", level=1)).to_have_text("Fact number 1")
    page.go_back()
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox", name="Search memories")).to_be_focused()


def test_a_long_list_is_read_page_by_page(serve, look):
    site = serve()
    with site.engine() as jay:
        jay.store_many([{"content": f"Fact number {number}"} for number in range(200)])
    page = look(site).go()
    expect(page.get_by_role("status").filter(has_text="200")).to_be_visible()
    assert page.locator(".result").count() < 100

    for _ in range(20):
        page.mouse.wheel(0, 20_000)
        page.wait_for_timeout(100)
        if page.locator(".result").count() == 200:
            break

    expect(page.locator(".result")).to_have_count(200)


def test_several_are_forgotten_at_once_and_brought_back(serve, look):
    site = serve()
    with site.engine() as jay:
        for number in range(3):
            jay.store(f"Fact number {number}")
    looking = look(site)
    page = looking.go()
    page.get_by_role("checkbox", name="Choose Fact number 0").check()
    page.get_by_role("checkbox", name="Choose Fact number 1").check()
    page.get_by_role("button", name="Forget …").click()

    expect(page.locator(".result")).to_have_count(1)
    assert "Forget 2 memories?" in looking.dialogs[0]
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".result")).to_have_count(3)


def test_what_is_chosen_is_exported(serve, look):
    site = serve()
    with site.engine() as jay:
        jay.store("Keep a copy of me")
    page = look(site).go()
    page.get_by_role("checkbox", name="Choose Keep a copy of me").check()
    with page.expect_download() as download:
        page.get_by_role("button", name="Export").click()

    [line] = Path(download.value.path()).read_text().splitlines()
    assert json.loads(line)["content"] == "Keep a copy of me"


def test_changes_by_agents_appear_without_reload(serve, look):
    site = serve()
    page = look(site).go()
    expect(page.get_by_text("Nothing is remembered here yet.")).to_be_visible()

    with site.engine() as jay:
        jay.store("Stored by an agent just now")

    expect(page.locator(".result")).to_have_count(1)


# --- one memory ------------------------------------------------------------------------------------------------------


def test_a_memory_is_edited_and_its_former_state_restored(serve, look):
    site = serve()
    with site.engine() as jay:
        memory = jay.store("User lives in Seattle").memory
    looking = look(site)
    page = looking.go(f"#/memories/{memory.id}")
    page.get_by_role("button", name="Edit").click()
    page.get_by_role("textbox", name="Text").fill("User lives in Austin")
    page.get_by_role("button", name="Save").click()

    expect(page.locator("ins")).to_have_text("Austin")
    expect(page.locator("del")).to_have_text("Seattle")
    looking.picture("memory")
    page.get_by_role("button", name="Make current again").click()
    expect(page.locator(".text.card")).to_have_text("User lives in Seattle")


def test_a_memory_is_forgotten_and_brought_back(serve, look):
    site = serve()
    with site.engine() as jay:
        memory = jay.store("User lives in Seattle").memory
    page = look(site).go(f"#/memories/{memory.id}")
    page.get_by_role("button", name="Forget").click()
    page.get_by_role("button", name="Undo").click()

    expect(page.get_by_role("button", name="Forget")).to_be_visible()
    with site.engine() as jay:
        assert jay.get(memory.id).content == "User lives in Seattle"


def test_a_memory_goes_into_the_archive_and_back(serve, look):
    site = serve()
    with site.engine() as jay:
        memory = jay.store("User lived in Seattle").memory
    page = look(site).go(f"#/memories/{memory.id}")
    page.get_by_role("button", name="Archive").click()
    page.get_by_role("button", name="Restore from the archive").click()

    expect(page.get_by_role("button", name="Archive")).to_be_visible()


def test_a_new_memory_is_written(serve, look):
    site = serve()
    page = look(site).go("#/new")
    page.get_by_role("textbox", name="What to remember").fill("Written by a person")
    page.get_by_role("button", name="Remember").click()

    expect(page.get_by_role("heading", level=1)).to_have_text("Written by a person")


def test_two_people_editing_lose_nothing(serve, look):
    site = serve()
    with site.engine() as jay:
        memory = jay.store("User lives in Seattle").memory
    page = look(site).go(f"#/memories/{memory.id}")
    page.get_by_role("button", name="Edit").click()
    page.get_by_role("textbox", name="Text").fill("My version")
    with site.engine() as jay:
        jay.update(memory.id, content="Their version")
    page.get_by_role("button", name="Save").click()

    expect(page.get_by_role("alert").first).to_be_visible()
    expect(page.locator("form ins").first).to_contain_text("Their")
    expect(page.get_by_role("textbox", name="Text")).to_have_value("My version")
    page.get_by_role("button", name="I have seen it: save mine on top").click()
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".text.card")).to_have_text("My version")


def test_a_memory_that_is_not_there_is_said(serve, look):
    page = look(serve()).go("#/memories/mem_000000000000")

    expect(page.get_by_role("heading", name="Not here")).to_be_visible()


# --- conflicts, decisions, graph -------------------------------------------------------------------------------------


def test_a_conflict_is_settled(serve, look):
    site = serve()
    with site.engine() as jay:
        older, newer = jay.store("User lives in Seattle").memory, jay.store("User moved to Austin").memory
        propose(jay, newer, older)
    looking = look(site)
    page = looking.go("#/conflicts")
    expect(page.locator(".pair")).to_have_count(1)
    looking.picture("conflicts")
    page.get_by_role("button", name="The newer one replaces it").click()

    expect(page.get_by_text("Nothing is open.")).to_be_visible()
    with site.engine() as jay:
        assert jay.get(older.id).superseded_by == newer.id


def test_both_sides_of_a_conflict_may_stay(serve, look):
    site = serve()
    with site.engine() as jay:
        older, newer = jay.store("User likes tea").memory, jay.store("User likes coffee").memory
        propose(jay, newer, older)
    page = look(site).go("#/conflicts")
    page.get_by_role("button", name="Both are true").click()

    expect(page.get_by_text("Nothing is open.")).to_be_visible()
    with site.engine() as jay:
        assert jay.get(older.id).superseded_by is None


def propose(jay, newer, older):
    """An open proposal; the embedder of these tests finds none by itself."""
    from scrubjay.memory import LinkKind

    with jay._records.writing() as tx:
        jay._ledger.link(tx, LinkKind.MAY_OUTDATE, newer, older, score=0.9, given=False)


def test_decisions_by_topic_as_a_timeline(serve, look):
    site = serve()
    with site.engine() as jay:
        first = jay.decisions.save("caching", "Use Redis", reasoning="Fast").memory
        jay.decisions.mark(first.name, "failed", reason="Too much to operate")
        jay.decisions.save("caching", "Use a local LRU", reasoning=f"builds_on: {first.name}")
    looking = look(site)
    page = looking.go("#/decisions")
    page.get_by_role("link", name="caching").click()

    rows = page.locator("ol > li")
    expect(rows).to_have_count(2)
    expect(rows.nth(0)).to_contain_text("Use a local LRU")
    expect(rows.nth(1)).to_contain_text("failed")
    expect(rows.nth(1)).to_contain_text("Too much to operate")
    looking.picture("decisions")


def test_a_neighbourhood_is_drawn_and_listed(serve, look):
    site = serve()
    with site.engine() as jay:
        first = jay.decisions.save("a", "One").memory
        jay.decisions.save("b", "Two", reasoning=f"builds_on: {first.name}")
    looking = look(site)
    page = looking.go(f"#/graph/{first.id}")

    expect(page.get_by_role("status")).to_contain_text("2 memories, 1 links")
    page.wait_for_timeout(300)
    looking.picture("graph")
    page.get_by_text("As a list").click()
    expect(page.locator("details li")).to_have_count(2)


# --- conversations ---------------------------------------------------------------------------------------------------


def test_a_conversation_with_injected_memories(serve, look):
    site = serve()
    with site.engine() as jay:
        jay.store("The user prefers short answers about harbours")
    looking = look(site)
    page = looking.go("#/conversations")
    page.get_by_role("textbox", name="Title of a new conversation").fill("Harbours")
    page.get_by_role("button", name="Begin").click()
    page.get_by_role("textbox", name="Message").fill("What do you know about harbours?")
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".messages li").first).to_contain_text("What do you know")

    page.get_by_role("textbox", name="What to look for").fill("short answers about harbours")
    page.get_by_role("button", name="Suggest memories").click()
    page.get_by_role("button", name="Inject").click()
    switch = page.get_by_role("switch")
    expect(switch).to_be_checked()
    expect(page.locator("pre")).to_contain_text("short answers about harbours")
    looking.picture("conversation")
    switch.click()
    expect(switch).not_to_be_checked()
    expect(page.locator("pre")).not_to_contain_text("short answers about harbours")


# --- health and access -----------------------------------------------------------------------------------------------


def test_health_says_what_to_do(serve, look):
    site = serve()
    with site.engine() as jay:
        for number in range(5):
            jay.store("The same text", created_at=jay.now() - timedelta(days=number))
    looking = look(site)
    page = looking.go("#/health")

    expect(page.get_by_role("heading", name=re.compile("Health score"))).to_be_visible()
    expect(page.get_by_text("scrubjay duplicates")).to_be_visible()
    page.wait_for_timeout(300)
    looking.picture("health")


def test_a_key_is_made_and_then_needed(serve, look):
    site = serve()
    looking = look(site)
    page = looking.go("#/access")
    page.get_by_label("User").fill("ann")
    page.get_by_label("Role").select_option("owner")
    page.get_by_role("button", name="Create a key").click()
    secret = page.locator("code").inner_text()
    assert len(secret) > 20

    stranger = look(site).go()
    expect(stranger.get_by_role("heading", name="Sign in")).to_be_visible()
    stranger.get_by_label("Key").fill("wrong")
    stranger.get_by_role("button", name="Sign in").click()
    expect(stranger.get_by_role("alert")).to_contain_text("not right")
    stranger.get_by_label("Key").fill(secret)
    stranger.get_by_role("button", name="Sign in").click()
    expect(stranger.get_by_role("searchbox", name="Search memories")).to_be_visible()
    stranger.goto(f"{site.url}/#/new")
    stranger.get_by_role("textbox", name="What to remember").fill("Written after signing in")
    stranger.get_by_role("button", name="Remember").click()
    expect(stranger.get_by_role("heading", level=1)).to_have_text("Written after signing in")


# --- worse days ------------------------------------------------------------------------------------------------------


def test_a_server_that_is_gone_is_said_and_nothing_typed_is_lost(serve, look):
    site = serve()
    page = look(site).go("#/new")
    page.get_by_role("textbox", name="What to remember").fill("Do not lose me")
    site.stop()
    page.get_by_role("button", name="Remember").click()
    expect(page.get_by_role("alert")).to_contain_text("does not answer")
    expect(page.get_by_role("textbox", name="What to remember")).to_have_value("Do not lose me")

    site.start()
    page.reload()
    expect(page.get_by_role("textbox", name="What to remember")).to_have_value("Do not lose me")
    page.get_by_role("button", name="Remember").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Do not lose me")


def test_refusals_are_shown_in_words(serve, look):
    site = serve()
    looking = look(site)
    page = looking.go()
    busy = {"status": 429, "headers": {"retry-after": "7"}, "json": {"error": {"code": "rate_limited", "message": "x"}}}
    page.route("**/api/v1/search", lambda route: route.fulfill(**busy))
    page.get_by_role("searchbox", name="Search memories").fill("anything")

    expect(page.get_by_role("alert").first).to_contain_text("Wait 7 seconds")


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_stored_text_is_only_ever_text(serve, look, text):
    site = serve()
    with site.engine() as jay:
        memory = jay.store(text, title=text[:200], tags=(text[:90],), metadata={text: text}, user_id="local").memory
        decision = jay.decisions.save(text, text, reasoning=text).memory
        jay.decisions.mark(decision.name, "failed", reason=text)
        newer = jay.store(f"{text} again").memory
        propose(jay, newer, memory)
        jay.update(memory.id, content=f"{text} changed", reason=text)
        jay.bound_to(spaces=("other",)).store(text)
    looking = look(site)
    for where in ("", f"#/memories/{memory.id}", "#/conflicts", "#/decisions", f"#/graph/{decision.id}", "#/health"):
        page = looking.go(where)
        page.wait_for_load_state("networkidle")
        page.reload()
        page.wait_for_load_state("networkidle")
    page = looking.go("#/decisions")
    page.locator("nav ul a").first.click()
    expect(page.locator("ol > li")).to_have_count(1)

    assert looking.dialogs == []
    assert page.locator("#page script, #page iframe, #page svg[onload], #page img").count() == 0


VIEWS = ["", "#/new", "#/conflicts", "#/decisions", "#/conversations", "#/health", "#/access"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_accessible(serve, look, scheme):
    site = serve()
    with site.engine() as jay:
        memory = jay.store("User lives in Seattle", tags=("home",)).memory
        jay.update(memory.id, content="User lives in Austin")
        jay.decisions.save("caching", "Use Redis", reasoning="Fast")
    looking = look(site, color_scheme=scheme)
    for where in (*VIEWS, f"#/memories/{memory.id}", "#/decisions/caching"):
        page = looking.go(where)
        page.reload()
        page.wait_for_load_state("networkidle")
        found = Axe().run(page)
        assert found.violations_count == 0, f"{where}: {found.generate_report()}"


@pytest.mark.parametrize("where", VIEWS)
def test_nothing_is_wider_than_a_phone(serve, look, where):
    site = serve()
    with site.engine() as jay:
        jay.store("W" * 200 + " a text with a very long word")
    page = look(site, viewport={"width": 360, "height": 740}).go(where)
    page.wait_for_load_state("networkidle")

    assert page.evaluate("document.documentElement.scrollWidth") <= 360
