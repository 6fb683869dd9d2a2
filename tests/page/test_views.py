"""Conflicts, decisions, the graph, conversations, health and access, as a person uses them."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from playwright.sync_api import expect

import scrubjay
from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.sync.run import SyncRequest
from scrubjay.errors import Undecided
from scrubjay.machine.suggestions import Suggestions
from tests.conflict import open_conflict

pytestmark = pytest.mark.browser


@pytest.mark.parametrize(
    ("answer", "left"),
    [
        ("The newer one replaces it", ["The crane is yellow"]),
        ("Both are true", ["The crane is yellow", "The crane lifts nine tons"]),
        ("Merge", ["The crane lifts nine tons\n\nThe crane is yellow"]),
    ],
    ids=["the newer replaces it", "both are true", "they are merged"],
)
def test_a_conflict_is_settled(site, look, answer, left):
    with site.engine() as jay:
        older, newer = jay.store("The crane lifts nine tons").memory, jay.store("The crane is yellow").memory
        open_conflict(jay, newer, older)
    page = look(site).go("#/conflicts")
    expect(page.locator(".pair")).to_have_count(1)
    page.get_by_role("button", name=answer).click()

    expect(page.get_by_text("No open conflicts.")).to_be_visible()
    with site.engine() as jay:
        assert [memory.content for memory in jay.list()] == left


def test_a_suggestion_is_remembered_and_another_dropped(serve, look, tmp_path):
    site = serve()
    about = {"kind": "memory", "space": "default", "client": "codex", "session": "s"}
    kept = Suggestions(tmp_path / "home")
    kept.add([{"text": "Always use tabs.", **about}, {"text": "Never use spaces.", **about}])
    page = look(site).go("#/conflicts")
    page.get_by_label("Suggestion: Always use tabs.").get_by_role("button", name="Remember it").click()
    expect(page.get_by_label("Suggestion: Always use tabs.")).to_have_count(0)
    page.get_by_role("button", name="Drop").click()

    expect(page.get_by_text("From your sessions")).to_have_count(0)
    assert kept.all() == []
    with site.engine() as jay:
        assert [memory.text for memory in jay.list().memories] == ["Always use tabs."]


def test_what_stores_disagree_about_is_settled_in_the_same_place(site, look, tmp_path):
    with site.engine() as jay:
        memory = jay.store("The crane lifts nine tons").memory
        jay.sync.add("laptop", tmp_path / "laptop.db")
        jay.sync.run(destination="laptop")
        with scrubjay.open(tmp_path / "laptop.db", embedder=HashingEmbedder()) as laptop:
            laptop.update(memory.id, content="The crane lifts twelve tons")
        jay.update(memory.id, content="The crane lifts ten tons")
        with pytest.raises(Undecided):
            jay.sync.run(destination="laptop", resolution="manual")
    page = look(site).go("#/conflicts")

    conflict = page.locator(".pair", has_text="At laptop")
    expect(conflict).to_contain_text("The crane lifts ten tons")
    expect(conflict).to_contain_text("The crane lifts twelve tons")
    conflict.get_by_role("button", name="Take theirs").click()
    expect(page.get_by_text("No open conflicts.")).to_be_visible()
    with site.engine() as jay:
        assert jay.get(memory.id).content == "The crane lifts twelve tons"


def test_decisions_by_topic_as_a_timeline(site, look):
    with site.engine() as jay:
        first = jay.decisions.save("caching", "Use Redis", reasoning="Fast").memory
        jay.decisions.mark(first.name, "failed", reason="Too much to operate")
        jay.decisions.save("caching", "Use a local LRU", reasoning=f"builds_on: {first.name}")
        jay.decisions.save("storage", "Use SQLite", reasoning="One file")
    page = look(site).go("#/decisions")
    page.get_by_role("searchbox", name="Find a topic").fill("cach")
    expect(page.get_by_role("navigation", name="Topics").get_by_role("link")).to_have_count(1)
    page.get_by_role("link", name="caching").click()

    rows = page.locator("ol > li")
    expect(rows).to_have_count(2)
    expect(rows.nth(0)).to_contain_text("Use a local LRU")
    expect(rows.nth(0)).to_contain_text("current")
    expect(rows.nth(1)).to_contain_text("failed")
    expect(rows.nth(1)).to_contain_text("Too much to operate")


def test_a_neighbourhood_is_drawn_and_listed(site, look):
    with site.engine() as jay:
        first = jay.decisions.save("a", "One").memory
        jay.decisions.save("b", "Two", reasoning=f"builds_on: {first.name}")
    page = look(site).go(f"#/graph/{first.id}")

    expect(page.get_by_role("status")).to_have_text("2 memories, 1 link")  # and all have found their places
    page.get_by_text("As a list").click()
    expect(page.locator("details li")).to_have_text(["a: One", "b: Two"])


def test_a_conversation_with_injected_memories(site, look):
    with site.engine() as jay:
        memory = jay.store("The user prefers short answers about harbours").memory
    page = look(site).go("#/conversations")
    page.get_by_role("textbox", name="Title of a new conversation").fill("Harbours")
    page.get_by_role("button", name="Start").click()
    page.get_by_role("textbox", name="Message").fill("What do you know about harbours?")
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".messages li").first).to_contain_text("What do you know")
    expect(page.get_by_role("textbox", name="Message")).to_have_value("")

    page.get_by_role("textbox", name="Search for memories").fill("short answers about harbours")
    page.get_by_role("button", name="Suggest memories").click()
    page.get_by_role("button", name="Add", exact=True).click()
    switch = page.get_by_role("switch")
    expect(switch).to_be_checked()
    expect(page.locator("pre")).to_contain_text("short answers about harbours")
    expect(page.get_by_text(re.compile(r"about \d+ tokens"))).to_be_visible()
    switch.click()
    expect(switch).not_to_be_checked()
    expect(page.locator("pre")).not_to_contain_text("short answers about harbours")
    page.get_by_role("button", name="Remove").click()
    expect(page.get_by_text("No memories are in it.")).to_be_visible()
    with site.engine() as jay:
        while not jay.curation.shown_to(memory.id):  # written down a little later, with the uses
            page.wait_for_timeout(100)
        assert jay.get(memory.id).access_count == 0  # a person looked


def test_health_says_how_it_is_and_what_to_do(site, look):
    with site.engine() as jay:
        for number in range(5):
            jay.store("The same text", category="goal", created_at=jay.now() - timedelta(days=number))
        jay.search("same text")
    page = look(site).go("#/health")

    expect(page.get_by_role("heading", name=re.compile("Health score"))).to_be_visible()
    expect(page.get_by_text("scrubjay duplicates")).to_be_visible()
    expect(page.get_by_role("img", name="Memories over time, 5 at the end").locator("canvas")).to_be_visible()
    recalls = re.compile("Recalls over time, [50] at the end")  # none yet, if midnight has passed meanwhile
    expect(page.get_by_role("img", name=recalls).locator("canvas")).to_be_visible()
    expect(page.get_by_role("img", name="Recalls by weekday and hour, 5 in total")).to_be_visible()
    expect(page.get_by_role("meter", name="medium")).to_have_attribute("aria-valuenow", re.compile(r"\d"))
    page.get_by_role("link", name="goal").click()
    expect(page.locator(".result")).to_have_count(5)


def test_stores_and_jobs_are_listed(site, look, tmp_path):
    with site.engine() as jay:
        jay.store("The crane lifts nine tons")
        jay.sync.add("drive", tmp_path / "drive.db")
        jay.sync.start(SyncRequest(destination="drive"))
    page = look(site).go("#/health")

    expect(page.get_by_role("row", name=site.space).get_by_role("cell").nth(1)).to_have_text("1")
    job = page.locator(".card", has_text="sync")
    expect(job).to_contain_text("completed")  # the server takes it up, and the page asks again
    expect(job.get_by_role("button", name="Cancel")).to_have_count(0)


def test_a_key_is_made_and_then_needed_also_after_it_is_revoked(serve, look):
    site = serve()
    page = look(site).go("#/access")
    page.get_by_label("User").fill("ann")
    page.get_by_label("Role").select_option("owner")
    page.get_by_role("button", name="Create a key").click()
    secret = page.locator("code").inner_text()
    assert len(secret) > 20
    expect(page.get_by_text("You are ann, owner.")).to_be_visible()  # signed in with it at once

    stranger = look(site).go("#/new")
    expect(stranger.get_by_role("heading", name="Sign in")).to_be_visible()
    stranger.get_by_label("Key").fill("wrong")
    stranger.get_by_role("button", name="Sign in").click()
    expect(stranger.get_by_role("alert")).to_contain_text("Wrong key")
    stranger.get_by_label("Key").fill(secret)
    stranger.get_by_role("button", name="Sign in").click()
    expect(stranger.get_by_role("heading", name="Sign in")).to_be_hidden()
    stranger.get_by_role("textbox", name="What to remember").fill("Written after signing in")
    stranger.get_by_role("button", name="Remember").click()
    expect(stranger.get_by_role("heading", level=1)).to_have_text("Written after signing in")

    stranger.goto(f"{site.url}/#/access")
    expect(stranger.get_by_text("You are ann, owner.")).to_be_visible()
    stranger.get_by_role("button", name="Revoke …").click()
    expect(stranger.get_by_role("dialog")).to_contain_text("scrubjay keys open")  # what follows from the last one
    stranger.get_by_role("button", name="Revoke the key").click()
    expect(stranger.get_by_role("heading", name="Sign in")).to_be_visible()  # it was the only one: locked all the same
    expect(stranger.get_by_text("scrubjay keys create")).to_be_visible()
