"""Server gone, session ended, too many requests, refused input, two people at once: said in words, nothing is lost."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


def test_a_server_that_is_gone_is_said_and_nothing_typed_is_lost(serve, look):
    site = serve()
    page = look(site).go("#/new")
    text = page.get_by_role("textbox", name="What to remember")
    text.fill("Do not lose me")
    page.get_by_label("Tags").fill("dear")
    site.server.stop()
    page.get_by_role("button", name="Remember").click()
    expect(page.get_by_role("alert")).to_contain_text("does not answer")
    expect(page.get_by_text("No connection to the server.")).to_be_visible()
    expect(text).to_have_value("Do not lose me")

    site.server.start()
    expect(page.get_by_text("No connection to the server.")).to_be_hidden()  # it comes back by itself
    page.reload()
    expect(text).to_have_value("Do not lose me")
    expect(page.get_by_label("Tags")).to_have_value("dear")
    page.get_by_role("button", name="Remember").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Do not lose me")
    expect(page.get_by_text("#dear")).to_be_visible()


def test_a_session_that_ended_asks_to_sign_in_in_front_of_what_one_was_doing(serve, look):
    site = serve()
    with site.engine() as jay:
        memory = jay.store("User lives in Seattle").memory
        ann, bob = (jay.callers.create(user, role="owner") for user in ("ann", "bob"))
    looking = look(site)
    looking.page.route("**/api/v1/events*", lambda _: None)  # else the page may hear of the end before it saves
    page = looking.go(f"#/memories/{memory.id}")
    page.get_by_label("Key").fill(ann.secret)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name="Edit").click()
    page.get_by_role("textbox", name="Text").fill("User lives in Austin")
    page.get_by_label("Tags").fill("home")
    with site.engine() as jay:
        jay.callers.revoke(ann.credential.id)
    page.get_by_role("button", name="Save").click()

    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.get_by_label("Key").fill(bob.secret)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_hidden()
    expect(page.get_by_role("textbox", name="Text")).to_have_value("User lives in Austin")
    expect(page.get_by_label("Tags")).to_have_value("home")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("User lives in Austin")


def test_too_many_requests_are_said_with_how_long_to_wait(site, look):
    page = look(site).go()
    busy = {"status": 429, "headers": {"retry-after": "7"}, "json": {"error": {"code": "rate_limited", "message": "x"}}}
    page.route("**/api/v1/search*", lambda route: route.fulfill(**busy))
    page.get_by_role("searchbox", name="Search memories").fill("anything")

    expect(page.get_by_role("alert").first).to_contain_text("Wait 7 seconds")
    expect(page.get_by_role("searchbox", name="Search memories")).to_have_value("anything")


def test_what_is_refused_is_said_and_stays_to_be_corrected(site, look):
    page = look(site).go("#/new")
    page.get_by_role("textbox", name="What to remember").fill("A memory with far too many tags")
    page.get_by_label("Tags").fill(", ".join(f"tag{number}" for number in range(60)))
    page.get_by_role("button", name="Remember").click()

    expect(page.get_by_role("alert")).to_contain_text("tags")
    expect(page.get_by_role("textbox", name="What to remember")).to_have_value("A memory with far too many tags")
    page.get_by_label("Tags").fill("one")
    page.get_by_role("button", name="Remember").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("A memory with far too many tags")


def test_two_people_editing_lose_nothing(site, look):
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
    page.get_by_role("button", name="I have seen it: save mine anyway").click()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("My version")


def test_an_edit_that_was_left_is_there_again(site, look):
    with site.engine() as jay:
        memory = jay.store("User lives in Seattle").memory
    page = look(site).go(f"#/memories/{memory.id}")
    page.get_by_role("button", name="Edit").click()
    page.get_by_role("textbox", name="Text").fill("User lives in Aus")
    page.goto(f"{site.url}/#/health")
    expect(page.get_by_role("heading", level=1)).to_have_text("Health")
    page.goto(f"{site.url}/#/memories/{memory.id}")

    expect(page.get_by_role("textbox", name="Text")).to_have_value("User lives in Aus")
    page.get_by_role("button", name="Cancel").click()
    page.reload()
    expect(page.get_by_role("button", name="Edit")).to_be_visible()


def test_a_memory_that_is_not_there_is_said(site, look):
    looking = look(site)
    for id in ("mem_000000000000", "%"):
        page = looking.go(f"#/memories/{id}")
        expect(page.get_by_role("heading", name="Not found")).to_be_visible()


def test_a_reader_is_told_and_offered_nothing_that_would_be_refused(serve, look):
    site = serve()
    with site.engine() as jay:
        memory = jay.store("User lives in Seattle", access_level="public").memory
        jay.callers.create("ann", role="owner")
        reader = jay.callers.create("rea", role="reader")
    page = look(site).go(f"#/memories/{memory.id}")
    page.get_by_label("Key").fill(reader.secret)
    page.get_by_role("button", name="Sign in").click()

    expect(page.get_by_role("note")).to_contain_text("rea, a reader")
    expect(page.get_by_role("button", name="Forget")).to_have_count(0)
    page.goto(f"{site.url}/#/access")
    expect(page.get_by_text("Only owners can see keys.")).to_be_visible()
