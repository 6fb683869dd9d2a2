"""A provider's answers, and every way in which there is none, against a real server."""

from __future__ import annotations

from contextlib import closing

import pytest

from scrubjay.errors import ProviderError
from scrubjay.providers.openai import OpenAiProvider
from tests.providers.provider_site import providing

QUESTION = [{"role": "user", "content": "Who is the harbour master?"}]


@pytest.fixture
def site():
    with providing() as site:
        yield site


def answer(site, **options):
    with closing(OpenAiProvider(site.url, "parrot", **options)) as provider:
        return list(provider.answer(QUESTION))


def test_nobody_at_the_address_is_an_error_that_names_no_address(site):
    site.url = "http://127.0.0.1:9"

    with pytest.raises(ProviderError) as error:
        answer(site, key="sesame")

    assert "127" not in error.value.message
    assert "sesame" not in error.value.message


@pytest.mark.parametrize("status", [301, 401, 429, 500])
def test_any_other_status_is_an_error(site, status):
    site.status, site.headers = status, {"location": "http://127.0.0.1:9/elsewhere"}

    with pytest.raises(ProviderError, match=str(status)):
        answer(site)


@pytest.mark.parametrize(
    "raw",
    [
        b"<html></html>",
        b"",
        b"data: no json\n\n",
        b"data: {}\n\n",
        b'data: {"choices": [7]}\n\n',
        b"data: \xff\n\n",
        b"data: " + b"[" * 200_000 + b"\n\n",
    ],
    ids=lambda raw: ascii(raw[:20]),
)
def test_anything_but_a_completion_is_an_error(site, raw):
    site.raw = raw

    with pytest.raises(ProviderError):
        answer(site)


def test_half_an_answer_is_an_error(site):
    site.done = False

    with pytest.raises(ProviderError, match="middle"):
        answer(site)


def test_an_answer_comes_in_pieces(site):
    assert answer(site, key="sesame") == ["The harbour ", "master is ", "Ottilie."]
    assert site.asked == [{"model": "parrot", "messages": QUESTION, "stream": True}]
    assert site.keys == ["Bearer sesame"]
    assert site.paths == ["/v1/chat/completions"]


def test_without_a_key_none_is_sent(site):
    answer(site)

    assert site.keys == [None]
