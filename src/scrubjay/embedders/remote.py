"""A model behind an OpenAI-compatible endpoint: `POST <url>/embeddings`, on this machine or elsewhere.

    texts -> batches -> {"model": …, "input": [texts]} -> {"data": [{"index": 0, "embedding": [numbers]}, …]}

Transient failures (no connection, a timeout, 429, 5xx) are retried with growing pauses; everything else is an error
immediately. Numbers are checked: one vector per text, a fixed dimension, finite, normalised to length 1. Messages name
neither the address nor the key: they may reach a stranger.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from scrubjay.embedders.base import Embedder, Vector
from scrubjay.embedders.local import normalise_vector
from scrubjay.errors import EmbeddingError, InvalidInput
from scrubjay.machine.http_client import JSON, NETWORK_ERRORS, Client, HttpLimits, TooLong, ask_again
from scrubjay.machine.outgoing import is_address, is_bare, is_unencrypted
from scrubjay.values.vectors import PART, parts_of

BATCH = 64  # texts per request
TIMEOUT_SECONDS = 30.0
TRY_AGAIN = {408, 409, 425, 429, 500, 502, 503, 504}


class RemoteEmbedder(Embedder):
    """One model of one endpoint. Costs nothing until the first text."""

    def __init__(
        self,
        url: str,
        model: str,
        *,
        key: str = "",
        timeout_seconds: float = TIMEOUT_SECONDS,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """:raises InvalidInput: if the address cannot be used, or would send the key unencrypted"""
        self.name = model
        self.dimension = 0  # known with the first vector
        self._url = checked_url(url, key)
        self._pause = pause
        self._lock = threading.Lock()
        limits = HttpLimits(timeout_seconds, 4 * timeout_seconds, 64 << 20)
        self._client = Client(self._url, limits, key=key, headers=JSON, proxies=True)

    @property
    def fingerprint(self) -> str:
        # The address is part of it: two servers may use one name for different models.
        return f"remote-{self.name}-{hashlib.sha256(self._url.encode()).hexdigest()[:12]}"

    def split(self, text: str) -> list[str]:
        return parts_of(text)

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [
            vector for start in range(0, len(texts), BATCH) for vector in self._vectors(texts[start : start + BATCH])
        ]

    def embed_query(self, text: str) -> Vector:
        [vector] = self._vectors([text[:PART]])
        return vector

    def _vectors(self, texts: Sequence[str]) -> list[Vector]:
        given = [text if text.strip() else "." for text in texts]  # most servers refuse an empty text
        rows = numbers_in(self._answer({"model": self.name, "input": given, "encoding_format": "float"}), len(texts))
        with self._lock:
            self.dimension = self.dimension or len(rows[0])
        return [normalise_vector(row, self.dimension) for row in rows]

    def _answer(self, body: dict[str, Any]) -> Any:
        """The server's answer; transient failures are retried."""
        data = json.dumps(body, ensure_ascii=True).encode()
        try:
            answer = ask_again(
                lambda: self._client.ask("POST", body=data),
                TRY_AGAIN,
                longest_seconds=20.0,  # even if the server asks for more
                cut_short=True,
                pause=self._pause,
            )
        except TooLong:
            raise EmbeddingError("The embedding server's answer is too long.") from None
        except NETWORK_ERRORS:
            raise EmbeddingError(
                "The embedding server does not answer.", hint="Check SCRUBJAY_REMOTE_URL, and that it runs."
            ) from None
        if answer.status != 200:
            raise EmbeddingError(
                f"The embedding server refused with status {answer.status}.", hint=HINTS.get(answer.status)
            )
        try:
            return json.loads(answer.body)
        except (ValueError, RecursionError):
            raise EmbeddingError("The embedding server did not answer with JSON.") from None


HINTS = {
    401: "Check SCRUBJAY_REMOTE_KEY.",
    403: "Check SCRUBJAY_REMOTE_KEY.",
    404: "Check SCRUBJAY_REMOTE_URL (it ends before /embeddings) and SCRUBJAY_REMOTE_MODEL.",
    429: "It limits requests; try again later.",
}


def checked_url(url: str, key: str) -> str:
    if not is_address(url) or not is_bare(url):
        raise InvalidInput(
            "Invalid address of the embedding server.",
            hint="Use https://HOST/v1, the part before /embeddings.",
            field="remote_url",
        )
    if key and is_unencrypted(url):
        raise InvalidInput("Refusing to send the key over unencrypted HTTP.", hint="Use https.", field="remote_url")
    return f"{url.rstrip('/').removesuffix('/embeddings')}/embeddings"


def numbers_in(answer: Any, count: int) -> list[Vector]:
    """The vectors of an answer, in the order of the texts.

    :raises EmbeddingError: if there is not exactly one list of numbers for each text
    """
    try:
        rows = {entry.get("index", place): entry["embedding"] for place, entry in enumerate(answer["data"])}
        vectors = [np.array(rows[place], dtype=np.float64) for place in range(count)]
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
        raise EmbeddingError("The embedding server's answer has no vectors.") from None
    if len(answer["data"]) != count or any(vector.ndim != 1 or not len(vector) for vector in vectors):
        raise EmbeddingError("The embedding server returned a different number of vectors than texts.")
    with np.errstate(over="ignore", invalid="ignore"):
        return [vector.astype(np.float32) for vector in vectors]
