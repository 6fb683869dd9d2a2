"""What people stumbled over, walked through by clicks in a store of three hundred memories."""

from __future__ import annotations

import json
import re
from contextlib import suppress

import pytest
from playwright.sync_api import expect

from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.servers.http.connect_texts import KEY_HEADER, claude_code_http
from tests.page.conftest import Server, Site
from tests.page.world import LONG, REPEATED, World

pytestmark = pytest.mark.browser

PHONE = {"width": 360, "height": 740}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    home = tmp_path_factory.mktemp("world") / "home"
    home.mkdir()
    world = World(home, HashingEmbedder())
    server = Server(home)
    world.site = Site(server)
    yield world
    server.stop()


def alerts(page):
    return page.get_by_role("alert")


# --- views and their addresses ---------------------------------------------------------------------------------------


def test_a_view_that_is_left_does_not_ask_for_the_next_views_address(world, look):
    looking = look(world.site)
    refused = []
    looking.page.on("response", lambda reply: reply.status >= 400 and refused.append(reply.url))
    page = looking.settled("#/decisions")
    page.get_by_role("navigation", name="Topics").get_by_role("link", name="berth-planner/storage").click()
    page.get_by_role("link", name="As a graph").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Neighbourhood")
    expect(page.get_by_role("status").first).to_contain_text("link")
    for view in ("Conversations", "Decisions"):
        page.get_by_role("navigation", name="Views").get_by_role("link", name=view).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(view)
    page.get_by_role("navigation", name="Views").get_by_role("link", name="Conversations").click()
    page.get_by_role("link", name="Night arrivals").click()
    page.get_by_role("link", name="Open").first.click()
    expect(page.get_by_role("button", name="Forget")).to_be_visible()
    page.get_by_role("navigation", name="Views").get_by_role("link", name="Health").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Health")
    looking.page.wait_for_timeout(300)  # a wrong question would be asked now

    assert refused == []
    expect(alerts(page)).to_have_count(0)


def test_an_error_belongs_to_its_view_and_goes_away_by_itself(world, look):
    looking = look(world.site)
    page = looking.page
    page.clock.install(time=0)
    page.clock.pause_at(60_000)  # by itself no box goes away now
    page.route("**/api/v1/decisions**", lambda route: route.fulfill(status=500, json={"error": {"message": "Broken."}}))
    looking.go("#/decisions")
    expect(alerts(page)).to_have_text(re.compile("Broken"))
    page.get_by_role("navigation", name="Views").get_by_role("link", name="Health").click()
    expect(alerts(page)).to_have_count(0)

    page.get_by_role("navigation", name="Views").get_by_role("link", name="Decisions").click()
    expect(alerts(page)).to_have_count(1)
    page.clock.fast_forward("00:30")
    page.clock.resume()  # the box may have begun to wait only now
    expect(alerts(page)).to_have_count(0)


def test_what_goes_wrong_after_one_left_is_not_said(world, look):
    looking = look(world.site)
    page = looking.page
    held = []
    page.route("**/api/v1/decisions**", lambda route: held.append(route))
    looking.go("#/decisions")
    expect(page.get_by_role("heading", level=1)).to_have_text("Decisions")
    page.get_by_role("navigation", name="Views").get_by_role("link", name="Access").click()
    expect(page.get_by_role("heading", name="Keys")).to_be_visible()
    with page.expect_response("**/api/v1/decisions**"):
        for route in held:
            route.fulfill(status=500, json={"error": {"message": "Broken."}})
    page.wait_for_timeout(200)

    assert alerts(page).count() == 0


def test_a_tab_says_what_is_in_it(world, look):
    looking = look(world.site)
    page = looking.settled(f"#/memories/{world.note.id}")
    expect(page).to_have_title("Onboarding the night watch · scrubjay")
    page.get_by_role("navigation", name="Views").get_by_role("link", name="Decisions").click()
    expect(page).to_have_title("Decisions · scrubjay")
    page.get_by_role("link", name="tide-feed/sender").first.click()
    expect(page).to_have_title("tide-feed/sender · Decisions · scrubjay")
    page.get_by_role("navigation", name="Views").get_by_role("link", name="Search").click()
    page.get_by_role("searchbox", name="Search memories").fill("berths")
    expect(page).to_have_title("berths · Search · scrubjay")
    looking.go(f"#/conversations/{world.conversation}")
    expect(page).to_have_title("Night arrivals · Conversations · scrubjay")


# --- texts -----------------------------------------------------------------------------------------------------------


def test_markdown_is_shown_as_it_is_meant(world, look):
    page = look(world.site).settled(f"#/memories/{world.note.id}")
    body = page.locator(".body")

    expect(page.get_by_role("heading", level=1)).to_have_text("Onboarding the night watch")
    expect(body.locator("strong")).to_have_text("ARCHITECTURE.md")
    expect(body.locator("em")).to_have_text("north mole")
    expect(body.locator("p > code")).to_have_text("make serve")
    expect(body.locator("pre code")).to_have_text('scrubjay search "<b>berths</b>"')
    expect(body.get_by_text("The first night")).to_be_visible()
    expect(body.locator("ul > li")).to_have_count(3)
    expect(body.locator("ul ol > li")).to_have_text(["outer buoy", "inner mole"])
    expect(body.locator("blockquote")).to_have_text("Nobody walks alone.")
    link = body.get_by_role("link", name="the tide tables")
    expect(link).to_have_attribute("href", "https://tides.example/tables")
    expect(link).to_have_attribute("rel", "noopener noreferrer")


def test_markdown_brings_nothing_from_elsewhere_and_runs_nothing(world, look):
    """`look` fails on a request elsewhere, a dialog and a violated policy."""
    page = look(world.site).settled(f"#/memories/{world.note.id}")
    body = page.locator(".body")

    expect(body.locator("img, script, iframe")).to_have_count(0)
    expect(body.get_by_role("link", name="The plan")).to_have_attribute("href", "https://tides.example/plan.png")
    expect(body.locator("a[href^=javascript]")).to_have_count(0)
    expect(body).to_contain_text("<img src=x onerror=alert(2)>")


def test_a_title_is_the_first_sentence_without_marks(world, look):
    page = look(world.site).settled("#/search?tag=notes")
    titles = page.locator(".result .title")

    expect(titles.filter(has_text="Onboarding")).to_have_text("Onboarding the night watch")
    expect(titles.filter(has_text="tide gauge")).to_have_text("The tide gauge at the ferry ramp drifts.")
    expect(page.locator(".result", has_text="tide gauge")).to_contain_text("It is checked on Mondays.")
    expect(page.locator(".result", has_text="**")).to_have_count(0)


def test_a_short_memory_is_shown_once(world, look):
    looking = look(world.site)
    page = looking.settled("#/search?tag=siren")
    expect(page.locator(".result .title").first).to_have_text(REPEATED)
    assert page.locator(".result").first.inner_text().count(REPEATED) == 1
    page.locator(".result .title").first.click()

    expect(page.get_by_role("heading", level=1)).to_have_text(REPEATED)
    looking.quiet()
    assert page.locator("main").inner_text().count(REPEATED) == 1 + page.locator("table").inner_text().count(REPEATED)


def test_a_text_of_several_sentences_is_one_text(world, look):
    page = look(world.site).settled(f"#/memories/{world.plain_note.id}")

    expect(page.get_by_role("heading", level=1)).to_have_text("The tide gauge at the ferry ramp drifts.")
    expect(page.get_by_role("heading", level=1).get_by_role("link")).to_have_count(0)
    whole = "The tide gauge at the ferry ramp drifts. It is checked on Mondays."
    expect(page.locator(".body")).to_have_text(whole)
    expect(page.locator(".body").get_by_role("link", name="ferry ramp")).to_be_visible()


def test_an_id_in_a_text_is_a_link_with_the_decisions_words(world, look):
    page = look(world.site).settled("#/decisions/tide-feed%2Fsender")
    link = page.locator(".timeline").get_by_role("link", name="Alert on two missed windows in a row")
    expect(page.locator(".timeline")).to_contain_text("builds_on: ")
    link.click()

    expect(page.get_by_role("heading", level=1)).to_have_text("tide-feed/alerting")
    chain = page.get_by_role("list", name="What replaced what").get_by_role("listitem")
    expect(chain).to_contain_text(["Alert when the last value is older", "Alert on two missed windows"])
    expect(chain.filter(has_text="builds_on")).to_have_count(0)


def test_tags_categories_and_clients_filter(world, look):
    page = look(world.site).settled("")
    expect(page.get_by_text(re.compile(r"^2\d\d memories|^300 memories")).first).to_be_visible()
    page.get_by_role("link", name="#lamp").first.click()
    expect(page.get_by_label("Tag")).to_have_value("lamp")
    expect(page.locator(".result").first).to_contain_text("lamp")
    page.locator(".result").first.get_by_role("link", name="cursor").or_(
        page.locator(".result").first.get_by_role("link", name=re.compile("claude-"))
    ).first.click()
    expect(page.get_by_label("Client")).not_to_have_value("")
    expect(page.get_by_label("Tag")).to_have_value("")
    page.go_back()
    expect(page.get_by_label("Tag")).to_have_value("lamp")
    page.locator(".result .title").first.click()
    expect(page.locator(".result")).to_have_count(0)
    page.locator(".marks").get_by_role("link", name="#lamp").click()
    expect(page.get_by_label("Tag")).to_have_value("lamp")


def test_weak_results_are_marked(world, look):
    page = look(world.site).settled("#/search?q=harbour siren is tested on the first Wednesday of the month")
    rows = page.locator(".result")

    expect(rows.first).to_contain_text("strong match")
    page.get_by_role("button", name=re.compile("^Show .* more")).click()
    expect(rows.filter(has_text="weak match").or_(rows.filter(has_text="not an answer")).first).to_be_visible()


def test_the_page_says_when_nothing_seems_to_answer(world, look):
    page = look(world.site).settled("#/search?q=Where did Zzyzx meet Qwrtplk")

    expect(page.get_by_text("Nothing here seems to answer this")).to_be_visible()


# --- conflicts -------------------------------------------------------------------------------------------------------


def test_conflicts_are_grouped_by_the_older_memory_and_repeats_are_no_conflicts(world, look):
    page = look(world.site).settled("#/conflicts")
    group = page.locator(".pair", has_text="every lamp in the harbour is an LED lamp")

    expect(page.locator(".pair", has_text=REPEATED)).to_have_count(0)
    repeat = page.locator(".repeat", has_text=REPEATED)
    expect(repeat).to_contain_text("3 times")
    assert repeat.inner_text().count(REPEATED) == 1
    expect(repeat).not_to_contain_text("likely to be out of date")

    repeat.get_by_role("button", name="Keep one").click()
    expect(page.get_by_text("One stays; the others are superseded.")).to_be_visible()
    expect(page.locator(".repeat", has_text=REPEATED)).to_have_count(0)
    with world.site.engine() as jay:
        kept = [one for one in world.repeats if jay.get(one.id).superseded_by is None]
    assert kept == [world.repeats[-1]]

    while not group.count():  # only those near the window are drawn
        page.mouse.wheel(0, 1_500)
        page.wait_for_timeout(50)
    for place, verdict in enumerate(("Both are true", "The newer one replaces it")):
        older = group.first.locator(".title").first.get_attribute("href").removeprefix("#/memories/")
        group.first.get_by_role("button", name=verdict).click()
        expect(page.get_by_text(("Both stay.", "The older one is superseded.")[place])).to_be_visible()
        with world.site.engine() as jay:
            assert (jay.get(older).superseded_by == world.hub.id) is bool(place)
        expect(page.locator(f".pair a[href='#/memories/{older}']")).to_have_count(0)


# --- the graph -------------------------------------------------------------------------------------------------------


def test_a_graph_is_readable(world, look):
    page = look(world.site).settled(f"#/graph/{world.hub.id}")
    expect(page.get_by_role("status").first).not_to_contain_text("arranging")
    legend = page.get_by_role("list", name="Legend")
    expect(legend).to_contain_text("related")
    expect(legend).to_contain_text("current")

    labels = page.locator(".picture .label")
    expect(labels.filter(has_text="Since the refit")).to_be_visible()
    boxes = labels.evaluate_all("all => all.map(one => one.getBoundingClientRect().toJSON())")
    picture = page.locator(".picture").evaluate("one => one.getBoundingClientRect().toJSON()")
    assert len(boxes) >= 5
    page.get_by_text("As a list").click()
    expect(page.get_by_role("link", name="Onboarding the night watch", exact=True)).to_be_visible()
    for at, box in enumerate(boxes):
        assert picture["left"] <= box["left"] < box["right"] <= picture["right"]
        assert picture["top"] <= box["top"] < box["bottom"] <= picture["bottom"]
        assert not any(overlap(box, other) for other in boxes[at + 1 :])


def overlap(one, other):
    beside = one["right"] <= other["left"] or other["right"] <= one["left"]
    return not beside and one["top"] < other["bottom"] and other["top"] < one["bottom"]


def test_a_node_says_what_it_is_when_one_points_at_it(world, look):
    page = look(world.site).settled(f"#/graph/{world.hub.id}")
    expect(page.get_by_role("status").first).not_to_contain_text("arranging")
    card = page.locator(".hover")
    for side in range(40):  # the dot is on one side of its name
        page.mouse.move(*beside(page.locator(".label.main").bounding_box(), side % 4))
        with suppress(AssertionError):
            expect(card).to_contain_text("every lamp in the harbour is an LED lamp", timeout=1_000)
            break
    else:
        raise AssertionError("nothing is said of it")
    page.mouse.move(2, 2)
    expect(card).to_have_count(0)


def beside(box, side):
    across, down = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    left, right = box["x"] - 10, box["x"] + box["width"] + 10
    return [(left, down), (right, down), (across, box["y"] - 10), (across, down + 18)][side]


# --- layout ----------------------------------------------------------------------------------------------------------


def test_labels_of_a_row_stand_in_line(world, look):
    page = look(world.site).settled("#/access")
    lined_up(page, "form")
    page = look(world.site).settled(f"#/memories/{world.note.id}")
    page.get_by_role("button", name="Edit").click()
    expect(page.locator(".fields")).to_be_visible()
    lined_up(page, ".fields")


def lined_up(page, row):
    tops = page.evaluate(
        """row => ['span', 'input, select'].map(what => [...document.querySelectorAll(`${row} label`)]
            .map(label => label.querySelector(what).getBoundingClientRect().top))""",
        row,
    )
    for of_one_kind in tops:
        assert len(of_one_kind) >= 2
        assert max(of_one_kind) - min(of_one_kind) < 1, tops


def test_the_navigation_fits_a_phone(world, look):
    page = look(world.site, viewport=PHONE).settled("")
    for link in page.get_by_role("navigation", name="Views").get_by_role("link").all():
        box = link.bounding_box()
        assert 0 <= box["x"] < box["x"] + box["width"] <= PHONE["width"], link.inner_text()


def test_a_long_memory_takes_little_room_in_a_conversation(world, look):
    page = look(world.site).settled(f"#/conversations/{world.conversation}")
    memory = page.locator(".memory", has_text="Line 1 of the long report")

    assert memory.bounding_box()["height"] < 200
    memory.get_by_role("button", name="Show all").click()
    expect(memory.get_by_role("button", name="Show less")).to_be_visible()
    expect(memory.get_by_text("Line 80 of the long report")).to_be_visible()
    assert memory.bounding_box()["height"] > 500


def test_the_edit_box_is_as_high_as_its_text(world, look):
    page = look(world.site).settled(f"#/memories/{world.note.id}")
    page.get_by_role("button", name="Edit").click()
    box = page.get_by_role("textbox", name="Text")
    before = box.bounding_box()["height"]
    assert before > 350
    box.fill("One line")
    assert box.bounding_box()["height"] < before
    box.fill(LONG)
    assert box.bounding_box()["height"] <= page.viewport_size["height"]
    page.get_by_role("button", name="Cancel").click()


# --- the beginning ---------------------------------------------------------------------------------------------------


def over_http(table, url, **more):
    return json.dumps({table: {"scrubjay": {"type": "http", "url": url, **more}}}, indent=2)


def test_an_empty_page_says_how_to_connect_a_client(site, look):
    looking = look(site, permissions=["clipboard-read", "clipboard-write"])
    page = looking.settled("")
    expect(page.get_by_text("No memories here yet.")).to_be_visible()
    url = f"{site.url}/mcp"
    for client, text in (
        ("Claude Code", claude_code_http(url)),
        ("Cursor", over_http("mcpServers", url)),
        ("VS Code", over_http("servers", url)),
    ):
        page.get_by_role("button", name=f"Copy for {client}").click()
        page.wait_for_function("text => navigator.clipboard.readText().then(copied => copied === text)", arg=text)
        expect(page.get_by_role("status").filter(has_text="Copied").first).to_be_visible()
    page.set_viewport_size(PHONE)
    page.wait_for_function("width => document.documentElement.scrollWidth <= width", arg=PHONE["width"])
    page.get_by_role("link", name="Write the first memory").click()
    page.get_by_role("textbox", name="What to remember").fill("The first one")
    page.get_by_role("button", name="Remember").click()

    expect(page.get_by_role("heading", level=1)).to_have_text("The first one")


def test_where_keys_are_needed_the_texts_to_paste_have_a_place_for_one(serve, look):
    site = serve()
    with site.engine() as jay:
        secret = jay.callers.create("ann", role="owner").secret
    page = look(site).go()
    page.get_by_label("Key").fill(secret)
    page.get_by_role("button", name="Sign in").click()

    url = f"{site.url}/mcp"
    for client, text in (
        ("Claude Code", claude_code_http(url, KEY_HEADER)),
        ("Cursor", over_http("mcpServers", url, headers=KEY_HEADER)),
        ("VS Code", over_http("servers", url, headers=KEY_HEADER)),
    ):
        expect(page.get_by_label(f"Settings for {client}")).to_have_text(text)

    page.evaluate("delete Navigator.prototype.clipboard")  # as over http from another machine
    page.get_by_role("button", name="Copy for Cursor").click()
    expect(alerts(page)).to_contain_text("copy it by hand")


def test_an_empty_store_has_no_health_and_no_charts(site, look):
    page = look(site).settled("#/health")

    expect(page.get_by_text("No memories here yet")).to_be_visible()
    expect(page.get_by_text("100 %")).to_have_count(0)
    expect(page.locator("canvas")).to_have_count(0)
