"""A provider's answers, in pieces or whole, and every way in which there is none, against a real server."""

from __future__ import annotations

import threading
from contextlib import closing

import pytest

from scrubjay.engine.lifecycle.consolidation import ConsolidationPlan, Strategy
from scrubjay.errors import InvalidInput, ProviderError, SynthesisFailed
from scrubjay.providers.openai import OpenAiProvider
from scrubjay.settings import load
from scrubjay.values.store import Prompt
from scrubjay.wiring import open_model
from tests.providers.provider_site import completion, providing

QUESTION = [{"role": "user", "content": "Who is the harbour master?"}]
PROMPT = Prompt(system="Merge.", text="One. Two.", max_tokens=100)


@pytest.fixture
def site():
    with providing() as site:
        yield site


def in_pieces(site, **options):
    with closing(OpenAiProvider(site.url, "parrot", **options)) as provider:
        return list(provider.answer(QUESTION))


def whole(site, **options):
    with closing(OpenAiProvider(site.url, "parrot", **options)) as provider:
        return provider.complete(PROMPT)


either_way = pytest.mark.parametrize("ask", [in_pieces, whole])


@either_way
def test_nobody_at_the_address_is_an_error_that_names_no_address(site, ask):
    site.url = "http://127.0.0.1:9"

    with pytest.raises(ProviderError, match="reached") as error:
        ask(site, key="sesame")

    assert "127" not in error.value.message
    assert "sesame" not in error.value.message


@either_way
@pytest.mark.parametrize("status", [301, 400, 401, 404, 429, 500, 503])
def test_a_refusal_is_said_by_its_number_alone(site, ask, status):
    site.status, site.headers = status, {"location": "http://127.0.0.1:9/elsewhere"}
    site.raw = b'{"error": "your key sk-123 is bad"}'

    with pytest.raises(ProviderError, match=str(status)) as refused:
        ask(site)

    assert "sk-123" not in refused.value.message
    assert "127.0.0.1" not in refused.value.message


@either_way
@pytest.mark.parametrize(
    "raw",
    [
        b"<html></html>",
        b"",
        b"{}",
        b"[]",
        b'{"choices": []}',
        completion(None),
        completion(""),
        completion("   "),
        completion(["x"]),
        completion("x" * 2_000_001),
        b"data: no json\n\n",
        b"data: {}\n\n",
        b'data: {"choices": [7]}\n\n',
        b"data: \xff\n\n",
        b"data: " + b"[" * 200_000 + b"\n\n",
    ],
    ids=lambda raw: ascii(raw[:60]),
)
def test_anything_but_a_completion_is_an_error(site, ask, raw):
    site.raw = raw

    with pytest.raises(ProviderError):
        ask(site)


def test_half_an_answer_is_an_error(site):
    site.done = False

    with pytest.raises(ProviderError, match="middle"):
        in_pieces(site)


@either_way
def test_a_model_that_does_not_answer_in_time_is_given_up(site, ask):
    site.wait = threading.Event()

    with pytest.raises(ProviderError, match="in time" if ask is whole else None):
        ask(site, timeout_seconds=0.2)


def test_the_question_and_the_key_arrive_and_the_answer_comes_back(site):
    assert in_pieces(site, key="sesame") == ["The harbour ", "master is ", "Ottilie."]
    assert whole(site, key="sesame") == "The harbour master is Ottilie."

    asked, prompted = site.asked
    assert asked == {"model": "parrot", "messages": QUESTION, "stream": True}
    assert (prompted["model"], prompted["max_tokens"], prompted["temperature"]) == ("parrot", 100, 0)
    messages = [(one["role"], one["content"]) for one in prompted["messages"]]
    assert messages == [("system", "Merge."), ("user", "One. Two.")]
    assert site.keys == ["Bearer sesame"] * 2
    assert site.paths == ["/v1/chat/completions"] * 2


@either_way
def test_without_a_key_none_is_sent(site, ask):
    ask(site)

    assert site.keys == [None]


# --- consolidations that it writes -----------------------------------------------------------------------------------


def prepare_merge(site, open_engine):
    """An engine with two memories, and what merges them."""
    jay = open_engine(model=open_model(load({}, synthesis_url=site.url, synthesis_model="small")))
    ids = tuple(jay.store(text).memory.id for text in ("User likes tea", "User likes tea a lot"))
    return jay, lambda: jay.consolidation.merge(ConsolidationPlan(ids=ids, strategy=Strategy.AI_SYNTHESIS))


def test_it_is_configured_wholly_or_not_at_all():
    assert open_model(load({})) is None
    with pytest.raises(InvalidInput):
        open_model(load({}, synthesis_url="http://localhost/v1"))
    with pytest.raises(InvalidInput):
        open_model(load({}, synthesis_url="localhost", synthesis_model="small"))
    assert open_model(load({}, synthesis_url="http://localhost/v1", synthesis_model="small"))


def test_a_consolidation_is_written_by_it(site, open_engine):
    _, merge = prepare_merge(site, open_engine)

    done = merge()

    assert (done.memory.content, done.writer) == ("The harbour master is Ottilie.", "endpoint")
    assert "User likes tea a lot" in site.asked[0]["messages"][1]["content"]


def test_a_consolidation_fails_with_it_and_changes_nothing(site, open_engine):
    site.status = 500
    jay, merge = prepare_merge(site, open_engine)

    with pytest.raises(SynthesisFailed, match="500"):
        merge()

    assert len(list(jay.list())) == 2
