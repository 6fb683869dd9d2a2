"""A provider that speaks OpenAI's chat completions: the company's own, or any server that understands the same.

    POST {url}/chat/completions   {"model", "messages", "stream": true}
    ◄── data: {"choices": [{"delta": {"content": "…"}}]}     one event per piece
    ◄── data: [DONE]

The address comes from this machine's settings only, never from a request; redirects are not followed, so that the key
goes nowhere else.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import httpx2

from scrubjay.errors import ProviderError

MAX_ANSWER = 1_000_000  # characters; what never ends is cut off as a failure


class OpenAiProvider:
    def __init__(self, url: str, model: str, *, key: str = "", timeout_seconds: float = 60.0) -> None:
        self._url = f"{url.rstrip('/')}/chat/completions"
        self._model = model
        self._client = httpx2.Client(
            headers={"authorization": f"Bearer {key}"} if key else {},
            timeout=timeout_seconds,  # to connect, and between two pieces
            follow_redirects=False,
            trust_env=False,
        )

    def answer(self, messages: Sequence[Mapping[str, str]]) -> Iterator[str]:
        body = {"model": self._model, "messages": [dict(one) for one in messages], "stream": True}
        length = 0
        with told_as_ours(), self._client.stream("POST", self._url, json=body) as response:
            if response.status_code != 200:
                raise ProviderError(f"The provider answered with status {response.status_code}.")
            for line in response.iter_lines():
                field, _, data = line.partition(":")
                if field != "data":
                    continue  # a comment, or another field of an event
                if data.strip() == "[DONE]":
                    return
                if piece := piece_of(data):
                    length += len(piece)
                    if length > MAX_ANSWER:
                        raise ProviderError("The provider's answer does not end.")
                    yield piece
        raise ProviderError("The provider broke off in the middle of its answer.")

    def close(self) -> None:
        self._client.close()


def piece_of(data: str) -> str:
    """The text of one event; none in those that only tell the role or why it ended."""
    try:
        event = json.loads(data)
        choices = event["choices"]
        piece = choices[0]["delta"].get("content") if choices else None
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        raise ProviderError("The provider answered with something else than a chat completion.") from None
    return piece if isinstance(piece, str) else ""


@contextmanager
def told_as_ours() -> Iterator[None]:
    """What goes wrong on the way, without the address or the key that a message of the client may hold."""
    try:
        yield
    except httpx2.TimeoutException:
        raise ProviderError("The provider did not answer in time.") from None
    except (httpx2.HTTPError, httpx2.InvalidURL, UnicodeError):
        raise ProviderError("The provider cannot be reached.") from None
