"""The start page, as a person uses it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.page.conftest import PATIENCE_MS

pytestmark = pytest.mark.browser


def results(page):
    return page.locator(".result")


def test_results_come_as_one_types_and_say_why(site, look):
    with site.engine() as jay:
        jay.store("The harbour master is called Ottilie", tags=("harbour",))
        jay.store("The lighthouse was painted in May", category="event")
    page = look(site).go()
    expect(results(page)).to_have_count(2)

    page.keyboard.type("harbour master")

    expect(page.locator("mark")).to_have_text(["harbour", "master"])
    page.get_by_text("Why was this found?").first.click()
    why = page.locator(".result dl").first
    expect(why).to_contain_text("harbour, master")
    for bar in ("similar in meaning", "shares words", "recency", "importance"):
        expect(why.get_by_role("meter", name=bar)).to_be_visible()


def test_filters_narrow_the_list_and_stay_in_the_address(site, look):
    with site.engine() as jay:
        jay.store("A goal of mine", category="goal", tags=("life",))
        jay.store("A plain fact", category="fact")
        jay.decisions.save("caching", "Use Redis", reasoning="Fast")
    page = look(site).go()

    page.get_by_label("Category").select_option("goal")
    expect(results(page)).to_have_count(1)
    page.reload()
    expect(results(page)).to_have_count(1)
    page.get_by_role("button", name="Clear filters").click()
    expect(results(page)).to_have_count(3)
    page.get_by_label("Tag").fill("life")
    expect(results(page)).to_have_count(1)
    page.get_by_label("Tag").fill("")
    page.get_by_label("Kind").select_option("decision")
    expect(results(page)).to_have_count(1)


def test_nothing_found_is_said_and_so_is_what_to_do(site, look):
    page = look(site).go()
    expect(page.get_by_text("No memories here yet.")).to_be_visible()

    page.get_by_label("Category").select_option("goal")
    expect(page.get_by_text("clear the filters")).to_be_visible()


def test_the_keyboard_is_enough(site, look):
    with site.engine() as jay:
        for number in range(3):
            jay.store(f"Fact number {number}")
    page = look(site).go()
    expect(results(page)).to_have_count(3)

    page.keyboard.press("ArrowDown")
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.get_by_text("1 selected")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Fact number 1")
    page.keyboard.press("e")
    expect(page.get_by_role("textbox", name="Text")).to_be_focused()
    page.keyboard.press("n")  # is typed, and goes nowhere
    expect(page.get_by_role("textbox", name="Text")).to_have_value("Fact number 1n")

    page.get_by_role("button", name="Cancel").click()
    page.keyboard.press("?")
    expect(page.get_by_role("heading", name="Keyboard")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("2")
    expect(page.get_by_role("heading", level=1)).to_have_text("Conflicts")
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox", name="Search memories")).to_be_focused()


def test_a_long_list_is_read_leaf_by_leaf_and_drawn_where_one_looks(site, look):
    with site.engine() as jay:
        jay.store_many([{"content": f"Fact number {number}"} for number in range(300)])
    page = look(site).go()
    expect(page.get_by_role("status").filter(has_text="300 memories")).to_be_visible()
    assert results(page).count() < 100
    oldest = page.get_by_role("link", name="Fact number 0", exact=True)

    most = 0
    for _ in range(PATIENCE_MS // 50):
        page.mouse.wheel(0, 5_000)
        page.wait_for_timeout(50)
        most = max(most, results(page).count())
        if oldest.count():
            break

    expect(oldest).to_be_visible()
    assert most < 200  # of three hundred that were read
    page.evaluate("scrollTo(0, 0)")
    expect(page.get_by_role("link", name="Fact number 299", exact=True)).to_be_visible()


def test_coming_back_shows_the_list_where_one_left_it(site, look):
    with site.engine() as jay:
        jay.store_many([{"content": f"Fact number {number}"} for number in range(60)])
    page = look(site).go()
    expect(results(page)).to_have_count(25)
    page.get_by_role("link", name="Fact number 38", exact=True).scroll_into_view_if_needed()
    page.get_by_role("link", name="Fact number 38", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Fact number 38")

    page.go_back()
    expect(page.get_by_role("link", name="Fact number 38", exact=True)).to_be_in_viewport()


def test_several_are_forgotten_at_once_and_brought_back(site, look):
    with site.engine() as jay:
        for number in range(3):
            jay.store(f"Fact number {number}")
    page = look(site).go()
    page.get_by_role("checkbox", name="Select Fact number 0").check()
    page.get_by_role("checkbox", name="Select Fact number 1").check()
    page.get_by_role("button", name="Forget …").click()

    preview = page.get_by_role("dialog", name="Forget 2 memories")
    expect(preview.get_by_role("listitem")).to_have_text(["Fact number 0", "Fact number 1"])
    preview.get_by_role("button", name="Forget 2 memories").click()
    expect(results(page)).to_have_count(1)
    page.get_by_role("button", name="Undo").click()
    expect(results(page)).to_have_count(3)


def test_everything_that_matches_is_changed_at_once(site, look):
    with site.engine() as jay:
        jay.store_many([{"content": f"Fact number {number}", "category": "fact"} for number in range(30)])
        jay.store("A goal of mine", category="goal")
    page = look(site).go("#/search?category=fact")
    page.get_by_role("checkbox", name="Select Fact number 29").check()
    page.get_by_role("button", name="Select all 30").click()
    expect(page.get_by_text("30 selected")).to_be_visible()
    page.get_by_role("button", name="Add tags …").click()
    expect(page.get_by_text("and 22 more")).to_be_visible()
    page.get_by_label("Tags, separated by commas").fill("old, numbered")
    page.get_by_role("button", name="Add tags to 30 memories").click()

    expect(page.get_by_text("30 memories changed")).to_be_visible()
    with site.engine() as jay:
        tagged = jay.list(limit=100).memories
        assert sum({"old", "numbered"} <= set(memory.tags) for memory in tagged) == 30


def test_nothing_is_skipped_where_memories_are_long(site, look):
    with site.engine() as jay:  # more than an answer may hold
        jay.store_many([{"content": f"Fact number {number} {'wave ' * 9_000}"} for number in range(28)])
    page = look(site).go()
    page.get_by_role("checkbox", name="Select Fact number 27").check()
    page.get_by_role("button", name="Select all 28").click()

    expect(page.get_by_text("28 selected")).to_be_visible()


def test_what_is_chosen_is_exported(site, look):
    with site.engine() as jay:
        jay.store("Keep a copy of me")
    page = look(site).go()
    page.get_by_role("checkbox", name="Select Keep a copy of me").check()
    with page.expect_download() as download:
        page.get_by_role("button", name="Export").click()

    [line] = Path(download.value.path()).read_text().splitlines()
    assert json.loads(line)["content"] == "Keep a copy of me"


def test_changes_by_agents_appear_without_reload(site, look):
    page = look(site).go()
    expect(page.get_by_text("No memories here yet.")).to_be_visible()

    with site.engine() as jay:
        jay.store("Stored by an agent just now")

    expect(results(page)).to_have_count(1)


def test_what_happens_before_the_page_hears_of_changes_appears_too(site, look):
    looking = look(site)
    held = []
    looking.page.route("**/api/v1/events*", lambda route: held.append(route))
    page = looking.go()
    expect(page.get_by_text("No memories here yet.")).to_be_visible()
    with site.engine() as jay:
        jay.store("Stored by an agent just now")
    for route in held:
        route.continue_()

    expect(results(page)).to_have_count(1)


def test_changes_do_not_move_the_list_under_a_reader(site, look):
    with site.engine() as jay:
        jay.store_many([{"content": f"Fact number {number}"} for number in range(25)])
    page = look(site).go()
    page.get_by_role("link", name="Fact number 3", exact=True).scroll_into_view_if_needed()
    with site.engine() as jay:
        jay.store("Stored by an agent just now")

    page.get_by_role("button", name="There are new changes: show them").click()
    expect(page.get_by_role("link", name="Stored by an agent just now")).to_be_in_viewport()
