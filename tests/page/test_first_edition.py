"""What was wrong with the page's first edition, clicked and typed through as a person would."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from scrubjay.engine.statistics import Granularity, StatsQuery
from scrubjay.values.callers import Provenance
from scrubjay.values.memory import Status
from scrubjay.values.search import Query
from tests.conflict import open_conflict
from tests.page.test_looks import VIEWS

pytestmark = pytest.mark.browser


def tile(page, name):
    return int(page.locator(".tiles .card", has_text=name).locator("b").inner_text().replace(",", ""))


def results(page):
    return page.locator(".result")


def status_of(page):
    return page.get_by_role("status").filter(has_text=re.compile("memor"))


# --- counts ----------------------------------------------------------------------------------------------------------


def command_line(site, *words):
    env = {**os.environ, "SCRUBJAY_HOME": str(site.server.home), "SCRUBJAY_EMBEDDER": "hashing"}
    call = subprocess.run(
        [sys.executable, "-m", "scrubjay", *words], env=env, capture_output=True, text=True, timeout=240, check=True
    )
    return call.stdout


def test_tile_list_chart_and_command_line_count_the_same_in_each_space_and_in_all(serve, look):
    site = serve()
    with site.engine() as jay:
        for space, facts in (("default", 3), ("work", 5)):
            at = jay.bound_to(spaces=(space,))
            kept = [at.store(f"A fact {number} of {space}", category="fact").memory for number in range(facts + 4)]
            at.store(f"A goal of {space}", category="goal")
            at.forget(kept[0].id)
            at.supersede(old=kept[1].id, new=kept[2].id)
            with at.records.writing() as tx:
                at.ledger.change(tx, replace(at.get(kept[3].id), status=Status.ARCHIVED), "archived", "status")
            with at.records.writing() as tx:
                past = replace(at.get(kept[4].id), expires_at=at.now() - timedelta(minutes=1))
                at.ledger.change(tx, past, "updated", "expires_at")
    looking = look(site)
    for space, current, facts in (("default", 4, 3), ("work", 6, 5), ("", 10, 8)):
        page = looking.go("#/health")
        page.get_by_label("Space").select_option(space)
        looking.quiet()
        assert (tile(page, "current"), tile(page, "superseded")) == (current, 2 if not space else 1), space
        expect(page.get_by_role("img", name=f"Memories over time, {current} at the end")).to_be_visible()
        expect(page.get_by_role("meter", name="fact")).to_have_attribute("aria-valuenow", str(facts))
        levels = ("high", "medium", "low")
        shares = [int(page.get_by_role("meter", name=level).get_attribute("aria-valuenow")) for level in levels]
        assert sum(shares) == current
        page.get_by_role("link", name="fact", exact=True).click()
        expect(results(page)).to_have_count(facts)
        page.get_by_role("button", name="Clear filters").click()
        expect(results(page)).to_have_count(current)
        narrowed = ("--space", space) if space else ()
        assert re.search(rf"memories +{current}\b", command_line(site, "stats", *narrowed)), space
        assert len(command_line(site, "list", *narrowed).splitlines()) >= current


def test_an_average_is_of_the_days_that_the_chart_shows(site, look):
    with site.engine() as jay:
        for number in range(40):
            jay.store(f"Fact number {number}", created_at=jay.now() - timedelta(days=100 - number))
        for number in range(6):
            jay.search(Query(text=f"Fact number {number}", limit=10))
        shown = len(jay.statistics(StatsQuery(trends=Granularity.DAY)).recall_count)
        average = 60 / shown
    page = look(site).settled("#/health")

    expect(page.get_by_text(f"{average:.1f} a day over {shown} days")).to_be_visible()


# --- search ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def one_answer(site):
    """A memory that answers a question, and many that have little to do with it."""
    with site.engine() as jay:
        jay.store_many([{"content": f"Crate {number} stands by the gate"} for number in range(30)])
        jay.store("The harbour master is called Ottilie")
    return site


def test_a_search_ends_after_what_is_worth_reading_and_shows_the_rest_on_request(one_answer, look):
    page = look(one_answer).settled("#/search?q=harbour master called by the gate")

    expect(results(page).first).to_contain_text("Ottilie")
    assert results(page).count() <= 3
    expect(status_of(page)).to_have_text(re.compile(r"^[1-3] memor(y|ies) found"))
    more = page.get_by_role("button", name=re.compile(r"^Show \d+ more"))
    rest = int(re.search(r"\d+", more.inner_text())[0])
    first = results(page).count()
    more.click()
    page.mouse.wheel(0, 20_000)
    expect(results(page)).to_have_count(first + rest)


def test_the_line_below_a_hit_is_one_line_in_plain_words(one_answer, look):
    page = look(one_answer, viewport={"width": 390, "height": 760}).settled("#/search?q=harbour master")
    line = page.locator(".why").first

    assert line.bounding_box()["height"] < 34
    expect(line).not_to_contain_text("%", use_inner_text=True)
    line.get_by_text("Why was this found?").click()
    expect(line).not_to_contain_text("second look")


def test_a_hit_that_a_newer_memory_may_outdate_says_so_and_leads_there(site, look):
    with site.engine() as jay:
        older, newer = jay.store("The demo runs on port 8080").memory, jay.store("The demo moved to port 9090").memory
        open_conflict(jay, newer, older)
    looking = look(site)
    for where in ("#/search?q=port 8080", "", f"#/memories/{older.id}"):
        page = looking.settled(where)
        expect(page.get_by_role("link", name="a newer memory may outdate it")).to_have_count(1)
    page.get_by_role("link", name="a newer memory may outdate it").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("The demo moved to port 9090")


# --- conflicts -------------------------------------------------------------------------------------------------------


def open_disputes(site, number=1):
    with site.engine() as jay:
        pairs = []
        for at in range(number):
            older = jay.store(f"The crane {at} at the north mole lifts {at + 3} tons").memory
            newer = jay.store(f"The crane {at} at the north mole lifts {at + 90} tons").memory
            open_conflict(jay, newer, older)
            pairs.append((older, newer))
    return pairs


def test_the_navigation_counts_conflicts_and_few_of_many_are_drawn(site, look):
    open_disputes(site, 57)
    page = look(site).settled("#/conflicts")

    expect(page.get_by_role("navigation", name="Views").get_by_role("link", name="Conflicts")).to_have_text(
        re.compile(r"Conflicts\s*57")
    )
    assert 3 < page.locator(".pair").count() < 40
    page.mouse.wheel(0, 100_000)
    expect(page.get_by_text("The crane 0 at the north mole lifts 3 tons")).to_be_visible()


@pytest.mark.parametrize(("width", "beside"), [(900, True), (1280, True), (390, False)])
def test_old_and_new_stand_side_by_side_where_there_is_room(site, look, width, beside):
    open_disputes(site)
    page = look(site, viewport={"width": width, "height": 800}).settled("#/conflicts")
    older, newer = (page.locator(".pair .card", has_text=f"lifts {tons} tons").bounding_box() for tons in (3, 90))

    assert (older["x"] + older["width"] <= newer["x"]) is beside
    assert (abs(older["y"] - newer["y"]) < 2) is beside


def test_an_older_memory_stands_once_however_often_its_newer_one_was_stored(site, look):
    with site.engine() as jay:
        older = jay.store("User lives in Seattle").memory
        for text in ("User moved to Austin", "User moved to Austin!", "user moved to austin", "User went to Rome"):
            open_conflict(jay, jay.store(text).memory, older)
    page = look(site).settled("#/conflicts")

    pair = page.locator(".pair", has_text="Seattle")
    expect(pair).to_have_count(1)
    expect(pair.locator(".card", has_text="Seattle")).to_have_count(1)
    expect(pair.locator(".card", has_text=re.compile("austin", re.IGNORECASE))).to_have_count(1)
    expect(pair).to_contain_text("stored 3 times")
    pair.get_by_role("button", name="The newer one replaces it").last.click()
    expect(page.locator(".pair")).to_have_count(0)


def test_the_focus_moves_to_the_next_pair(site, look):
    open_disputes(site, 3)
    page = look(site).settled("#/conflicts")
    for number in (2, 1):
        button = page.locator(".pair", has_text=f"lifts {number + 3} tons").get_by_role("button").first
        if number == 2:
            button.focus()
        expect(button).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator(".pair", has_text=f"lifts {number + 3} tons")).to_have_count(0)
    expect(page.locator(".pair", has_text="lifts 3 tons").get_by_role("button").first).to_be_focused()


def test_of_alike_texts_the_words_that_differ_are_marked_and_of_others_the_value(site, look):
    with site.engine() as jay:
        older, newer = jay.store("The mole light flashes white every five seconds").memory, None
        newer = jay.store("The mole light flashes green every five seconds since the refit").memory
        open_conflict(jay, newer, older)
        older = jay.store("We deploy the planner with Fleet to three machines").memory
        newer = jay.store("Since the audit everything is rolled out by Nomad, on 5 machines").memory
        open_conflict(jay, newer, older)
    page = look(site).settled("#/conflicts")

    alike = page.locator(".pair", has_text="mole light")
    expect(alike.locator("mark")).to_have_text(["white", "green", "refit"])
    unlike = page.locator(".pair", has_text="Fleet")
    expect(unlike.locator("mark")).to_have_text(["Fleet", "Nomad", "5"])
    expect(page.locator(".pair :is(ins, del)")).to_have_count(0)


def test_a_rewritten_text_is_shown_before_and_after_not_word_by_word(site, look):
    with site.engine() as jay:
        memory = jay.store("The office is in Berlin").memory
        jay.update(memory.id, content="Since the flood nobody is in that old house any more")
    page = look(site).settled(f"#/memories/{memory.id}")

    expect(page.locator("del")).to_have_count(1)
    expect(page.locator("ins")).to_have_text(["Since the flood nobody is in that old house any more"])


# --- roles -----------------------------------------------------------------------------------------------------------


def test_a_readers_key_meets_no_refused_control_in_any_view(serve, look):
    site = serve()
    with site.engine() as jay:
        memory = jay.store("User lives in Seattle", access_level="public").memory
        jay.update(memory.id, content="User lives in Austin")
        open_conflict(jay, jay.store("User moved to Rome").memory, memory)
        talk = jay.conversations.create(title="Homes").id
        jay.conversations.say(talk, "Where do I live?")
        jay.conversations.link(talk, memory.id)
        decision = jay.decisions.save("caching", "Use Redis").memory
        jay.callers.create("ann", role="owner")
        reader = jay.callers.create("rea", role="reader")
    looking = look(site)
    page = looking.go()
    page.get_by_label("Key").fill(reader.secret)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("note")).to_contain_text("rea, a reader")
    looking.quiet()
    refused = []
    page.on("response", lambda reply: reply.status in (401, 403) and refused.append(reply.url))
    opened = (f"#/memories/{memory.id}", "#/decisions/caching", f"#/conversations/{talk}", f"#/graph/{decision.id}")
    for where in ("", "#/search?q=Seattle", *VIEWS[3:], *opened):
        page = looking.settled(where)
        number = page.locator("main button:enabled, main summary, main input[type=checkbox]:enabled").count()
        for at in range(number):
            control = page.locator("main button:enabled, main summary, main input[type=checkbox]:enabled").nth(at)
            if control.is_visible() and control.inner_text() != "Sign out":
                control.click()
        looking.quiet()
        page.keyboard.press("Escape")
    page = looking.settled("")
    results(page).first.get_by_role("checkbox").check()
    expect(page.get_by_role("group", name="Selected memories")).to_contain_text("Readers can export.")
    page.keyboard.press("n")

    assert refused == []
    expect(page.get_by_role("link", name="New memory")).to_have_count(0)
    expect(page.get_by_role("alert")).to_have_count(0)


# --- right to left, Markdown, keyboard -------------------------------------------------------------------------------

ARABIC = "يسكن المستخدم في مدينة الإسكندرية. ويعمل في الميناء منذ عشرين سنة."


def direction(locator):
    return locator.evaluate("one => getComputedStyle(one).direction")


def test_texts_titles_and_fields_run_as_their_language_does(site, look):
    with site.engine() as jay:
        memory = jay.store(ARABIC, tags=("ميناء",)).memory
        jay.update(memory.id, content=f"{ARABIC} نعم")
        talk = jay.conversations.create(title="الميناء").id
        jay.conversations.say(talk, ARABIC)
        jay.decisions.save("التخزين", ARABIC, reasoning=ARABIC)
        open_conflict(jay, jay.store(f"{ARABIC} لا").memory, jay.get(memory.id))
    looking = look(site)
    page = looking.settled("")
    assert direction(results(page).locator(".text").first) == "rtl"
    page.get_by_role("searchbox", name="Search memories").fill("الميناء")
    assert direction(page.get_by_role("searchbox", name="Search memories")) == "rtl"
    page = looking.settled(f"#/memories/{memory.id}")
    for text in (
        page.get_by_role("heading", level=1),
        page.locator(".body .text"),
        page.locator("li.card .text").first,
    ):
        assert direction(text) == "rtl"
    page.get_by_role("button", name="Edit").click()
    assert direction(page.get_by_role("textbox", name="Text")) == "rtl"
    assert direction(page.get_by_label("Tags")) == "rtl"
    page = looking.settled(f"#/conversations/{talk}")
    assert direction(page.locator(".messages .text").first) == "rtl"
    page = looking.settled("#/conflicts")
    assert {direction(one) for one in page.locator(".pair .text").all()} == {"rtl"}
    page = looking.settled("#/new")
    page.get_by_role("textbox", name="What to remember").fill(ARABIC)
    assert direction(page.get_by_role("textbox", name="What to remember")) == "rtl"


MARKDOWN = """The berths are numbered from the east. Number seven is closed.

| berth | draught | free |
|---|---:|:---:|
| 3 | 9.5 m | **yes** |
| 7 | 8 m |

- [x] call the pilots
- [ ] mark the buoys
  - the red one

    with the long chain
  - the green one

- last
"""


def test_tables_tasks_and_lists_in_lists_are_drawn_and_a_text_is_one_text(site, look):
    with site.engine() as jay:
        memory = jay.store(MARKDOWN).memory
    looking = look(site)
    page = looking.settled(f"#/memories/{memory.id}")
    body = page.locator(".body")

    expect(body.get_by_role("columnheader")).to_have_text(["berth", "draught", "free"])
    expect(body.get_by_role("cell")).to_have_text(["3", "9.5 m", "yes", "7", "8 m", ""])
    expect(body.get_by_role("img", name="done")).to_have_count(1)
    expect(body.get_by_role("img", name="to do")).to_have_count(1)
    expect(body.locator("ul > li")).to_have_count(5)
    expect(body.locator("ul ul > li").first).to_contain_text("with the long chain")
    expect(body).not_to_contain_text("|")
    expect(body).not_to_contain_text("[x]")
    expect(body.locator("p").first).to_have_text("The berths are numbered from the east. Number seven is closed.")
    page = looking.settled("")
    card = results(page).locator(".text")
    expect(card).to_have_text(re.compile("^The berths are numbered from the east. Number seven is closed."))
    assert card.evaluate("one => getComputedStyle(one.querySelector('a')).fontWeight") == "400"


def test_tab_moves_the_focus_to_nothing_that_is_cut_off(site, look):
    links = "\n".join(f"- see [place {number}](https://tides.example/{number}) for more" for number in range(30))
    with site.engine() as jay:
        memory = jay.store(f"Where to look for the tides.\n\n{links}").memory
        talk = jay.conversations.create(title="Tides").id
        jay.conversations.link(talk, memory.id)
    looking = look(site)
    for where in ("", f"#/conversations/{talk}"):
        page = looking.settled(where)
        for _ in range(45):
            page.keyboard.press("Tab")
            hidden = page.evaluate(
                """() => {
                  const one = document.activeElement, box = one.getBoundingClientRect();
                  for (let outer = one.parentElement; outer; outer = outer.parentElement) {
                    const limits = outer.getBoundingClientRect();
                    const cuts = getComputedStyle(outer).overflowY !== "visible" && outer !== document.documentElement;
                    if (cuts && (outer.scrollTop > 0 || box.top > limits.bottom - 2)) return one.outerHTML;
                  }
                }"""
            )
            assert not hidden, hidden


# --- staleness -------------------------------------------------------------------------------------------------------


def test_sending_says_why_nobody_answers_and_the_list_knows_of_it(site, look):
    with site.engine() as jay:
        talk = jay.conversations.create(title="Harbours").id
    page = look(site).settled(f"#/conversations/{talk}")
    page.get_by_role("textbox", name="Message").fill("Which berths are free?")
    page.get_by_role("button", name="Send").click()

    expect(page.get_by_text("No language model is set up")).to_be_visible()
    expect(page.get_by_role("navigation", name="Conversations").get_by_role("link", name="Harbours")).to_contain_text(
        "1 message"
    )


SHOWN_WITH_ONE_MEMORY = {
    "search": "nine tons",
    "conflicts": "No open conflicts.",
    "decisions": "No decisions yet.",
    "conversations": "No conversations yet.",
    "health": "Health score",
    "access": "You are local",
    "memories": "nine tons",
    "graph": "No linked memories.",
}


def test_every_view_comes_back_by_itself_when_its_server_does(serve, look):
    site = serve()
    with site.engine() as jay:
        memory = jay.store("The crane lifts nine tons").memory
    pages = {}
    for where in SHOWN_WITH_ONE_MEMORY:
        pages[where] = look(site).settled("#/new")  # another view, so that this one has to be loaded
        pages[where].get_by_role("textbox", name="What to remember").fill("Do not lose me")
    site.server.process.kill()
    for where, page in pages.items():
        expect(page.get_by_text("No connection to the server.")).to_be_visible()
        id = f"/{memory.id}" if where in ("memories", "graph") else ""
        page.evaluate(f"location.hash = '#/{where}{id}'")
        if where != "search":
            expect(page.get_by_text("could not be loaded")).to_be_visible()
    site.server.stop()
    site.server.start()

    for where, page in pages.items():
        expect(page.get_by_text("No connection to the server.")).to_be_hidden()
        title = {"memories": memory.content, "graph": "Neighbourhood"}.get(where, where.capitalize())
        expect(page.get_by_role("heading", level=1)).to_have_text(title)
        expect(page.get_by_text("could not be loaded")).to_have_count(0)
        expect(page.get_by_text(SHOWN_WITH_ONE_MEMORY[where]).first).to_be_visible()
        page.evaluate("location.hash = '#/new'")
        expect(page.get_by_role("textbox", name="What to remember")).to_have_value("Do not lose me")


# --- bytes -----------------------------------------------------------------------------------------------------------


def test_the_first_view_takes_sixty_kilobytes_at_most(site, look):
    with site.engine() as jay:
        jay.store_many([{"content": f"Fact number {number} about the harbour"} for number in range(30)])
    looking = look(site)
    session, sizes = looking.page.context.new_cdp_session(looking.page), []
    session.send("Network.enable")
    session.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
    page = looking.settled("")
    expect(results(page)).to_have_count(25)

    assert 20_000 < sum(sizes) <= 60_000


def test_header_and_field_are_painted_before_the_program_is_here_and_nothing_typed_is_lost(one_answer, look):
    looking, held, released = look(one_answer), [], []
    keep = re.compile(r"\.js$")
    looking.page.route(keep, lambda route: route.continue_() if released else held.append(route))
    page = looking.page
    page.goto(one_answer.url, wait_until="commit")
    field = page.get_by_role("searchbox", name="Search memories")
    expect(page.get_by_role("banner").get_by_role("link", name="scrubjay")).to_be_visible()
    before = field.bounding_box()
    field.fill("harbour master")
    released.append(True)
    for route in held:
        route.continue_()

    expect(results(page).first).to_contain_text("Ottilie")
    expect(page.get_by_role("searchbox", name="Search memories")).to_have_value("harbour master")
    assert abs(field.bounding_box()["y"] - before["y"]) < 2


# --- spaces, words ---------------------------------------------------------------------------------------------------


def test_spaces_have_counts_and_are_linked_to_and_a_memory_says_where_it_is_from(serve, look):
    site = serve()
    with site.engine() as jay:
        jay.store("The crane lifts nine tons")
        for number in range(3):
            jay.bound_to(spaces=("work",)).store(f"Task number {number}")
    looking = look(site)
    page = looking.settled("")
    space = page.get_by_label("Space")
    expect(space.locator("option")).to_have_text(["All spaces (4)", "default (1)", "work (3)"])
    expect(space).to_have_value("")
    expect(results(page)).to_have_count(4)
    expect(results(page).filter(has_text="from space work")).to_have_count(3)

    page = looking.settled("#/health")
    page.get_by_role("row", name=re.compile("^work")).get_by_role("link", name="work").click()
    expect(page.get_by_label("Space")).to_have_value("work")
    expect(results(page)).to_have_count(3)
    page.get_by_label("Space").select_option("")
    expect(results(page)).to_have_count(4)


def test_words_are_those_of_people(site, look):
    with site.engine() as jay:
        agent = jay.bound_to(provenance=Provenance(client="cursor", transport="http", dialect="memento"))
        memory = agent.store("The crane lifts nine tons", source="extracted").memory
        older = jay.store("The crane lifts six tons").memory
        jay.supersede(old=older.id, new=memory.id)
        jay.update(memory.id, content="The crane lifts ten tons", reason="it was refitted")
    looking = look(site)
    page = looking.settled("")
    expect(page.get_by_label("Flag").locator("option").first).to_have_text("flagged or not")
    page = looking.settled(f"#/memories/{memory.id}")
    facts = page.locator("dl").first
    expect(facts).to_contain_text("a model thought it worth remembering")
    expect(facts).to_contain_text("everyone with access to the space")
    expect(facts).to_contain_text("the memento set, over http")
    for jargon in ("local, shared", "through memento"):
        expect(facts).not_to_contain_text(jargon)
    page = looking.settled("#/access")
    log = page.get_by_role("table").last
    expect(log.get_by_role("row").nth(1)).to_contain_text(re.compile(r"updated\s+The crane lifts ten tons"))
    expect(log.get_by_role("row").nth(1)).to_contain_text("because: it was refitted")
    expect(log).to_contain_text(re.compile(r"superseded\s+The crane lifts six tons"))
    expect(log).to_contain_text(re.compile(r"replaced an older one by\s+The crane lifts ten tons"))
    expect(log).not_to_contain_text(memory.id)
    log.get_by_role("link", name="The crane lifts ten tons").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("The crane lifts ten tons")


def test_an_unknown_address_says_so_and_offers_the_way_back(site, look):
    page = look(site).settled("#/nonsense")

    expect(page.get_by_role("heading", level=1)).to_have_text("Not found")
    expect(page.get_by_text("There is no view “nonsense”.")).to_be_visible()
    page.get_by_role("link", name="Back to search").click()
    expect(page.get_by_role("searchbox", name="Search memories")).to_be_visible()


def test_the_view_one_is_in_does_not_move_its_neighbours(site, look):
    looking = look(site)

    def places(where):
        page = looking.settled(where)
        return [link.bounding_box() for link in page.get_by_role("navigation", name="Views").get_by_role("link").all()]

    assert places("") == places("#/health") == places("#/conversations")


# --- the context of a conversation -----------------------------------------------------------------------------------


def test_the_whole_context_is_shown_and_its_prompt_set(site, look):
    with site.engine() as jay:
        memory = jay.store("The user prefers short answers").memory
        talk = jay.conversations.create(title="Harbours").id
        for number in range(12):
            jay.conversations.say(talk, f"Sentence number {number}.")
        jay.conversations.link(talk, memory.id)
    looking = look(site)
    page = looking.settled(f"#/conversations/{talk}")
    page.get_by_role("textbox", name="System prompt").fill("You are the harbour's secretary.")
    page.get_by_role("button", name="Set the prompt").click()

    context = page.get_by_label("Context", exact=True)
    expect(context).to_contain_text("You are the harbour's secretary.")
    expect(context).to_contain_text("The user prefers short answers")
    expect(context).to_contain_text("Sentence number 11.")
    expect(context).to_contain_text("Sentence number 2.")
    expect(context).not_to_contain_text("Sentence number 1.")
    page = looking.settled(f"#/conversations/{talk}")
    expect(page.get_by_role("textbox", name="System prompt")).to_have_value("You are the harbour's secretary.")


def test_memories_are_added_to_a_conversation_from_a_memory_and_from_a_selection(site, look):
    with site.engine() as jay:
        memories = [jay.store(f"Fact number {number}").memory for number in range(3)]
        talk = jay.conversations.create(title="Harbours").id
        jay.conversations.create(title="Other")
    looking = look(site)
    page = looking.settled(f"#/memories/{memories[0].id}")
    page.get_by_role("button", name="Add to a conversation …").click()
    page.get_by_role("combobox", name="Conversation").select_option("Harbours")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_text("Added to Harbours.")).to_be_visible()
    page = looking.settled("")
    for number in (1, 2):
        page.get_by_role("checkbox", name=f"Select Fact number {number}").check()
    page.get_by_role("button", name="Add to a conversation …").click()
    dialog = page.get_by_role("dialog", name="Add 2 memories to a conversation")
    dialog.get_by_role("combobox", name="Conversation").select_option("Harbours")
    assert Axe().run(page).violations_count == 0
    dialog.get_by_role("button", name="Add", exact=True).click()
    expect(dialog).to_have_count(0)

    page = looking.settled(f"#/conversations/{talk}")
    expect(page.get_by_role("switch")).to_have_count(3)
