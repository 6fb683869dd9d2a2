"""A provider that speaks OpenAI's chat completions: the company's own, or any compatible server.

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
from typing import Any

from scrubjay.errors import ProviderError
from scrubjay.machine.http_client import JSON, NETWORK_ERRORS, Client, HttpLimits, HttpReply, TooLong
from scrubjay.values.store import Prompt

MAX_ANSWER = 1_000_000  # characters; an endless answer is cut off as a failure
MAX_REPLY_BYTES = 2_000_000
NOT_AGREED = "The provider's answer is not a chat completion."


class OpenAiProvider:
    def __init__(self, url: str, model: str, *, key: str = "", timeout_seconds: float = 60.0) -> None:
        self._model = model
        # To connect, and between two pieces; an answer that trickles for ever is cut off after ten times as long.
        limits = HttpLimits(timeout_seconds, 10 * timeout_seconds, MAX_REPLY_BYTES)
        self._client = Client(url.rstrip("/"), limits, key=key, headers=JSON, keep_alive=True)

    def answer(self, messages: Sequence[Mapping[str, str]]) -> Iterator[str]:
        length = 0
        with self._reply({"messages": [dict(one) for one in messages], "stream": True}) as reply:
            for line in reply.lines():
                field, _, data = line.partition(b":")
                if field != b"data":
                    continue  # a comment, or another field of an event
                if data.strip() == b"[DONE]":
                    return
                if piece := piece_of(data):
                    length += len(piece)
                    if length > MAX_ANSWER:
                        raise TooLong
                    yield piece
        raise ProviderError("The provider stopped in the middle of its answer.")

    def complete(self, prompt: Prompt) -> str:
        """The complete answer to one question.

        :raises ProviderError: if there is no answer in time, or no usable one
        """
        told = [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.text}]
        with self._reply({"messages": told, "max_tokens": prompt.max_tokens, "temperature": 0}) as reply:
            return text_of(reply.body())

    @contextmanager
    def _reply(self, body: dict[str, Any]) -> Iterator[HttpReply]:
        """Errors on the way are reported without the address, the key or the provider's own text."""
        question = json.dumps({"model": self._model, **body}).encode()
        try:
            with self._client.open("POST", "/chat/completions", question) as reply:
                if reply.status != 200:
                    raise ProviderError(f"The provider answered with status {reply.status}.")
                yield reply
        except TimeoutError:
            raise ProviderError("The provider did not answer in time.") from None
        except TooLong:
            raise ProviderError("The provider's answer is too long.") from None
        except NETWORK_ERRORS:
            raise ProviderError("The provider cannot be reached.") from None

    def close(self) -> None:
        self._client.close()


def text_of(reply: bytes) -> str:
    """The text of a complete answer."""
    try:
        text = json.loads(reply)["choices"][0]["message"]["content"]
        str(text).encode()  # no half characters
    except (ValueError, LookupError, TypeError, RecursionError):
        raise ProviderError(NOT_AGREED) from None
    if not isinstance(text, str) or not text.strip():
        raise ProviderError("The provider's answer is empty.")
    return text.strip()


def piece_of(data: bytes) -> str:
    """The text of one event; empty for those that only have the role or the reason why it ended."""
    try:
        event = json.loads(data)
        choices = event["choices"]
        piece = choices[0]["delta"].get("content") if choices else None
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise ProviderError(NOT_AGREED) from None
    return piece if isinstance(piece, str) else ""
