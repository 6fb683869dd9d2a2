"""How memories are searched for, and what comes back. A score is a similarity from 0 to 1: higher is better."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from enum import StrEnum
from itertools import count, repeat
from math import nan
from typing import Any, NamedTuple, overload

from scrubjay.values.frozen import dataclass
from scrubjay.values.memory import AccessLevel, Category, Kind, Memory, Source, State

MAX_LIMIT = 1_000  # items of one answer
MAX_WORDINGS, MAX_WORDING = 4, 200  # the same of a question's other wordings
LAST_LETTER = "\U0010ffff"  # comes after whatever a text goes on with


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which memories to include, besides who may see them. Applied before any limit, so it cannot empty a page."""

    states: frozenset[State] = frozenset({State.ACTIVE})
    expired: bool | None = False  # False: only unexpired ones; True: only expired ones; None: both
    kinds: frozenset[Kind] | None = None
    categories: frozenset[Category] | None = None
    tags: frozenset[str] | None = None  # any of them, given or found
    created_since: datetime | None = None  # inclusive
    created_until: datetime | None = None  # inclusive
    accessed_until: datetime | None = None  # last returned, inclusive; unflushed reads do not count
    min_importance: float | None = None
    max_importance: float | None = None
    user_id: str | None = None
    conversation_id: str | None = None
    belongs_to: str | None = None  # a conversation, as the audience sees it: stored in it, or injected into it
    session_id: str | None = None
    access_levels: frozenset[AccessLevel] | None = None
    source: Source | None = None
    client: str | None = None  # provenance
    caller: str | None = None  # provenance
    transport: str | None = None  # provenance
    flag: str | None = None  # secret, instruction; any: whatever is flagged
    phrased: bool | None = None  # whether it has phrases (`also`)
    topic: str | None = None  # however it is spelt: see `topic_key`
    path_prefix: str | None = None  # a folder: itself and everything below
    ids: frozenset[str] | None = None
    id_prefix: str | None = None  # what an id begins with


class Decay(StrEnum):
    """How a memory's recency falls with its age: 1 when new, half of it after ninety days."""

    LINEAR = "linear"
    EXPONENTIAL = "exponential"
    LOGARITHMIC = "logarithmic"


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """How much each factor counts in a ranking; the sum is 1."""

    similarity: float = 0.5
    recency: float = 0.2
    importance: float = 0.2
    access: float = 0.1
    decay: Decay = Decay.EXPONENTIAL
    order: bool = True  # results come in the order of the sum; False: in that of a search without weights


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A question to memory."""

    text: str
    also: tuple[str, ...] = ()  # other wordings of the question
    limit: int = 10
    offset: int = 0
    filter: Filter = Filter()
    now: datetime | None = None  # when the question is asked; default: the clock
    words_only: bool = False
    explain: bool = False
    weights: Weights | None = None  # say, or rank by, a weighted sum of several factors instead of score alone

    @property
    def joined(self) -> str:
        """The question with its other wordings: what is embedded, and whose words are looked for."""
        return "\n".join((self.text, *self.also))


class Order(StrEnum):
    """What a list is sorted by; ties by arrival."""

    CREATED = "created_at"
    UPDATED = "updated_at"
    ACCESSED = "accessed_at"
    IMPORTANCE = "importance"
    ACCESSES = "access_count"
    LENGTH = "content_length"


class Match(NamedTuple):
    """What a store found on one side of a search: by words (BM25) or by meaning (cosine)."""

    memory: str
    score: float


Column = Any  # of numbers: an array, or a list


class Candidates(NamedTuple):
    """What a store found for a question, by words or by meaning, as columns: row i of each belongs together."""

    memories: Sequence[str]  # first those that meaning found, best first
    word_scores: Column  # 0 where words did not find it
    cosines: Column  # not a number where it has no vector
    near: int  # how many meaning found
    by_words: Sequence[int]  # rows that words found, best first

    @classmethod
    def of(
        cls,
        by_words: Iterable[tuple[str, float]],
        by_meaning: Sequence[tuple[str, float]],
        further: Mapping[str, float],
    ) -> Candidates:
        """Both findings as one, with the cosines of what words alone found."""
        words, near = dict(by_words), dict(by_meaning)
        only_words = {memory: score for memory, score in words.items() if memory not in near}
        memories = [*near, *only_words]
        rows = dict(zip(memories, count()))
        return cls(
            memories=memories,
            word_scores=[*map(words.get, near, repeat(0.0)), *only_words.values()],
            cosines=[*near.values(), *map(further.get, only_words, repeat(nan))],
            near=len(by_meaning),
            by_words=[*map(rows.__getitem__, words)],
        )


NO_CANDIDATES = Candidates((), (), (), 0, ())


class Glimpses(NamedTuple):
    """What ranking needs to know about memories besides how well they match, as columns."""

    memories: Sequence[str]
    created_at: Column  # milliseconds since 1970, as the next two
    valid_from: Column  # None where it has none, as the next one
    valid_until: Column
    conversation: Any  # hashable, the same for those of one; nothing if it is in none
    length: Column  # of the content, in characters
    opening: Sequence[str]  # the content's first few hundred characters
    also: Sequence[str]  # its phrases, as JSON

    @classmethod
    def of_rows(cls, rows: Iterable[Sequence[Any]]) -> Glimpses:
        return cls(*columns) if (columns := list(zip(*rows, strict=True))) else NO_GLIMPSES


NO_GLIMPSES = Glimpses((), (), (), (), (), (), (), ())


class Period(NamedTuple):
    """A period that a question names: from `start` to just before `end`."""

    start: datetime
    end: datetime
    words: str  # as written in the question


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why a memory was found."""

    words: tuple[str, ...] = ()  # words of the query and its other wordings that it contains
    wordings: tuple[str, ...] = ()  # those other wordings of which it contains a word
    word_score: float = 0.0  # share of the query's distinctive words found, 0..1
    cosine: float | None = None
    similarity: float = 0.0  # calibrated
    boosts: Mapping[str, float] = field(default_factory=dict)  # what the second look added to the score, by name


@dataclass(frozen=True, slots=True, kw_only=True)
class Factors:
    """What a weighted ranking saw in a memory, each from 0 to 1, and their weighted sum."""

    similarity: float
    recency: float
    importance: float
    access: float
    combined: float


class Verdict(StrEnum):
    """Whether what was found answers the question."""

    STRONG = "strong"  # it probably does
    WEAK = "weak"  # it may
    NONE = "none"  # nothing here is about that


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    memory: Memory
    score: float  # calibrated: means the same for every query
    verdict: Verdict = Verdict.STRONG
    explanation: Explanation | None = None
    factors: Factors | None = None  # only if weights were given


@dataclass(frozen=True, slots=True, kw_only=True)
class Hits:
    """The answer to a query, best first; filled even if nothing answers it: see `verdict` and `answers`."""

    hits: tuple[Hit, ...] = ()
    verdict: Verdict = Verdict.NONE  # on the best of all candidates, whatever the page
    total: int = 0  # candidates before paging
    degraded: str | None = None  # why only words were used, for all or many memories, if so
    partly: bool = False  # for many: the others were compared by meaning
    uncompared: tuple[str, ...] = ()  # ids of hits that were not compared with earlier memories yet
    periods: tuple[Period, ...] = ()  # the times that the question names: what is from then comes first

    @property
    def answers(self) -> tuple[Hit, ...]:
        """The hits that may answer the question."""
        return tuple(hit for hit in self.hits if hit.verdict is not Verdict.NONE)

    def worth_reading(self, doubts: Mapping[str, str], few: int = 3) -> tuple[Hit, ...]:
        """The strong hits, with what the ranking put before them and both sides of an unsettled pair; without a strong
        one the first few weak ones, and where nothing answers the nearest few. `doubts`: by the id of a memory, the
        newer one that may outdate it."""
        strong = [place for place, hit in enumerate(self.hits) if hit.verdict is Verdict.STRONG]
        if not strong:
            return tuple(hit for hit in self.answers or self.hits if not hit.memory.flags)[:few]
        first, rest = self.hits[: strong[-1] + 1], self.hits[strong[-1] + 1 :]
        known = {hit.memory.id for hit in first}
        paired = {old for old, new in doubts.items() if new in known} | {doubts[old] for old in known & doubts.keys()}
        return (*first, *(hit for hit in rest if hit.memory.id in paired))

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Hit, ...]: ...
    def __getitem__(self, index: int | slice) -> Hit | tuple[Hit, ...]:
        return self.hits[index]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Part of a list."""

    memories: tuple[Memory, ...] = ()
    total: int | None = None  # how many there are in all, if requested
    cursor: str | None = None  # where the next page begins; None on the last one
    links: Mapping[str, int] = field(default_factory=dict)  # how many each memory has, if requested
    lengths: Mapping[str, int] = field(default_factory=dict)  # of archived contents that are not shown
    left_out: int = 0  # that did not fit; the next page begins with them

    def __iter__(self) -> Iterator[Memory]:
        return iter(self.memories)

    def __len__(self) -> int:
        return len(self.memories)
