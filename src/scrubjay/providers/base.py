"""What a provider promises: an answer to a conversation, piece by piece."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol


class Provider(Protocol):
    def answer(self, messages: Sequence[Mapping[str, str]]) -> Iterator[str]:
        """The answer to messages of `role` and `content`, in pieces as they come; closing it ends the call.

        :raises ProviderError: if there is none, or an incomplete one
        """
        ...

    def close(self) -> None:
        """Close connections. Calling it twice is fine."""
        ...
