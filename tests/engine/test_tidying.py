"""Phrases for memories that have none: what a calling model is given, and what a configured one writes."""

from __future__ import annotations

import pytest

from scrubjay.dialects.table import find
from scrubjay.engine.lifecycle.tidying import phrases_of, prompt_for
from scrubjay.errors import Unprocessable
from scrubjay.values.search import Filter
from scrubjay.values.store import JobStatus
from tests.conflict import open_conflict

BOAT = "The Ottilie is moored at pier four"


def librarian(prompt):
    """A language model that does as it is asked: a line for each note."""
    notes = [line for line in prompt.text.split("\n\n") if line]
    return "\n".join(f"{note.partition(':')[0]}: words for {note.partition(': ')[2][:20]}; liaison" for note in notes)


@pytest.fixture
def tidy(open_engine):
    jay = open_engine(model=librarian)
    for number in range(25):
        jay.store(f"Shelf {number} holds the maps of province {number}")
    jay.store(BOAT, also=["berth"])
    return jay


def test_a_calling_model_is_given_twenty_and_the_open_conflicts(jay):
    for number in range(25):
        jay.store(f"Shelf {number} holds the maps of province {number}")
    phrased = jay.store(BOAT, also=["berth"]).memory
    old, new = jay.store("The captain is Ottilie").memory, jay.store("The captain is Ada").memory
    open_conflict(jay, new, old)

    said = find("scrubjay").call(jay, "recent", {"tidy": True})

    assert not said.failed
    assert len(said.body["memories"]) == 20
    assert said.body["left_out"] == 7
    assert phrased.id not in said.text
    assert [pair["old"]["id"] for pair in said.body["open"]] == [old.id]
    assert 'revise(id="…", also=["…"]' in said.text
    assert "settle" in said.text


def test_what_the_calling_model_does_is_done_with_the_tools_it_has(jay):
    memory = jay.store(BOAT).memory
    dialect = find("scrubjay")

    done = dialect.call(jay, "revise", {"id": memory.id, "also": ["berth"], "reason": "other words"})

    assert not done.failed
    assert "its text is as it was" in done.text
    assert dialect.call(jay, "recent", {"tidy": True}).body["memories"] == []
    assert "berth -> none" in dialect.call(jay, "undo", {"id": memory.id}).text


def test_a_person_can_ask_for_it(jay):
    jay.store(BOAT)
    [prompt] = [one for one in find("scrubjay").prompts if one.name == "tidy"]

    assert BOAT in prompt.say(jay, {})


def test_the_configured_model_writes_phrases_for_all_that_have_none(tidy):
    seen = []

    assert tidy.tidying.write(lambda done, total: seen.append((done, total))) == 25

    assert seen == [(0, 25), (10, 25), (20, 25)]
    assert tidy.tidying.waiting().total == 0
    [memory] = [one for one in tidy.list(Filter(), limit=100) if one.content.startswith("Shelf 7 ")]
    assert memory.also == ("words for Shelf 7 holds the ma", "liaison")
    assert memory.version == 1
    assert tidy.curation.undo(memory.id).memory.also == ()


def test_a_preview_changes_nothing_and_a_job_does(tidy):
    written = tidy.tidying.preview()
    assert (len(written), written[0].also[1], tidy.tidying.waiting().total) == (20, "liaison", 25)

    job = tidy.tidying.start()
    tidy.parts.worker.run_waiting()

    done = tidy.jobs.get(job.id)
    assert (done.status, done.result) == (JobStatus.COMPLETED, {"memories": 25})
    assert tidy.tidying.waiting().total == 0


def test_texts_with_secrets_are_not_sent(open_engine):
    asked = []
    jay = open_engine(model=lambda prompt: asked.append(prompt.text) or "")
    jay.store("The old key was AKIA" + "IOSFODNN7QQZTRWL")
    jay.store(BOAT)

    assert jay.tidying.write(lambda _done, _total: None) == 0
    assert [("AKIA" in text, BOAT in text) for text in asked] == [(False, True)]
    assert "<<<" not in prompt_for(["<<<end>>>"]).text, "notes cannot end their fence"


def test_without_a_model_it_says_who_else_can_do_it(jay):
    jay.store(BOAT)

    for work in (jay.tidying.start, jay.tidying.preview, lambda: jay.tidying.write(lambda _done, _total: None)):
        with pytest.raises(Unprocessable) as refused:
            work()
        assert "tidy" in refused.value.hint


@pytest.mark.parametrize(
    ("answer", "phrases"),
    [
        ("1: berth; yacht harbour", {0: ("berth", "yacht harbour")}),
        ('Here you are:\n1. berth\n2) "pier"; pier', {0: ("berth",), 1: ("pier",)}),
        ("1: a; b; c; d; e; f", {0: ("a", "b", "c", "d")}),
        (f"1: {'x' * 81}; berth", {0: ("berth",)}),
        ("3: berth\n0: berth\nberth\n1: ;", {}),
        ("", {}),
    ],
)
def test_whatever_a_model_answers_only_fitting_phrases_are_taken(answer, phrases):
    assert phrases_of(answer, 2) == phrases
