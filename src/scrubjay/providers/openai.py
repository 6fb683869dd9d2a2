"""A provider that speaks OpenAI's chat completions: the company's own, or any server that understands the same.

    POST {url}/chat/completions   {"model", "messages", "stream": true}
    ◄── data: {"choices": [{"delta": {"content": "…"}}]}     one event per piece
    ◄── data: [DONE]

    POST {url}/chat/completions   {"model", "messages", "max_tokens", "temperature": 0}
    ◄── {"choices": [{"message": {"content": "…"}}]}         one question, one answer

The address comes from this machine's settings only, never from a request; redirects are not followed, so that the key
goes nowhere else.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import httpx2

from scrubjay.errors import ProviderError
from scrubjay.values.memory import Prompt

MAX_ANSWER = 1_000_000  # characters; what never ends is cut off as a failure
MAX_REPLY_BYTES = 2_000_000
NOT_AGREED = "The provider answered with something else than a chat completion."


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
            check_status(response)
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

    def complete(self, prompt: Prompt) -> str:
        """The answer to one question, whole.

        :raises ProviderError: if there is no answer in time, or none that can be used
        """
        told = [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.text}]
        body = {"model": self._model, "messages": told, "max_tokens": prompt.max_tokens, "temperature": 0}
        reply = bytearray()
        with told_as_ours(), self._client.stream("POST", self._url, json=body) as response:
            check_status(response)
            for piece in response.iter_bytes():
                reply += piece
                if len(reply) > MAX_REPLY_BYTES:
                    raise ProviderError("The provider's answer does not end.")
        return text_of(bytes(reply))

    def close(self) -> None:
        self._client.close()


def check_status(response: httpx2.Response) -> None:
    # The number alone: the provider's own words may hold what is not for everybody.
    if response.status_code != 200:
        raise ProviderError(f"The provider answered with status {response.status_code}.")


def text_of(reply: bytes) -> str:
    """The text of a whole answer."""
    try:
        text = json.loads(reply)["choices"][0]["message"]["content"]
    except (ValueError, LookupError, TypeError):
        raise ProviderError(NOT_AGREED) from None
    if not isinstance(text, str) or not text.strip():
        raise ProviderError("The provider's answer is empty.")
    return text.strip()


def piece_of(data: str) -> str:
    """The text of one event; none in those that only tell the role or why it ended."""
    try:
        event = json.loads(data)
        choices = event["choices"]
        piece = choices[0]["delta"].get("content") if choices else None
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        raise ProviderError(NOT_AGREED) from None
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
