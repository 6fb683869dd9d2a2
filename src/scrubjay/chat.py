"""A language model behind an OpenAI-compatible address, asked one question at a time.

Only what its owner configures is ever called, and only with the memories that a caller wants consolidated.
"""

from __future__ import annotations

from scrubjay.errors import SynthesisFailed
from scrubjay.frozen import dataclass
from scrubjay.memory import Prompt

MAX_REPLY_BYTES = 2_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatModel:
    url: str  # up to and without /chat/completions
    model: str
    key: str = ""
    timeout_seconds: float = 60.0

    def answer(self, prompt: Prompt) -> str:
        """:raises SynthesisFailed: if there is no answer in time, or none that can be used"""
        import httpx2  # only for those who have configured a model

        body = {
            "model": self.model,
            "messages": [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.text}],
            "max_tokens": prompt.max_tokens,
            "temperature": 0,
        }
        headers = {"authorization": f"Bearer {self.key}"} if self.key else {}
        try:
            with httpx2.Client(timeout=self.timeout_seconds) as client:
                reply = client.post(f"{self.url.rstrip('/')}/chat/completions", json=body, headers=headers)
                reply.raise_for_status()
                if len(reply.content) > MAX_REPLY_BYTES:
                    raise SynthesisFailed("The language model's answer is too long.")
                text = reply.json()["choices"][0]["message"]["content"]
        except httpx2.TimeoutException as error:
            raise SynthesisFailed("The language model did not answer in time.") from error
        except httpx2.HTTPStatusError as error:
            # Neither the address nor the model's own words: both may hold what is not for everybody.
            raise SynthesisFailed(f"The language model refused with {error.response.status_code}.") from error
        except httpx2.HTTPError as error:
            raise SynthesisFailed("The language model could not be reached.") from error
        except (ValueError, LookupError, TypeError) as error:
            raise SynthesisFailed("The language model's answer is not what was agreed.") from error
        if not isinstance(text, str) or not text.strip():
            raise SynthesisFailed("The language model's answer is empty.")
        return text.strip()
