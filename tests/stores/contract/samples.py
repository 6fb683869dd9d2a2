"""Memories and other things to test stores with, and short ways to put and find them. Part of `suite.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

import numpy as np

from scrubjay.embedders.base import Vector
from scrubjay.stores.promises.memories import Change, Request, Store, Transaction
from scrubjay.stores.promises.statistics import Part, Totals
from scrubjay.stores.promises.sync import Replica
from scrubjay.values.callers import Audience, Caller, Scope, Sight
from scrubjay.values.memory import AccessLevel, Archive, Category, Link, LinkKind, Memory, State, Tier, new_id
from scrubjay.values.search import Filter
from scrubjay.values.store import Conversation, Event, Job

NOW = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
EVERYTHING = Audience("local", (Scope(None, Sight.ALL),))
NOTHING = Audience("local", ())
EVERY_STATE = frozenset(State)
DIMENSION = 16
CLOSE = 7e-5  # to a cosine: half a step of 1/32767 in each of 16 numbers, where a store keeps so many
Reopen = Callable[[], Store]


def later(minutes: float) -> datetime:
    return NOW + timedelta(minutes=minutes)


def some(content: str = "User lives in Seattle", **fields: Any) -> Memory:
    """A memory like many; what matters to a test is named there."""
    name = fields.pop("id", None) or new_id()
    at = fields.get("created_at", NOW)
    usual: dict[str, Any] = {
        "id": name,
        "space": "default",
        "title": content[:40],
        "path": f"inbox/{name}",
        "category": Category.FACT,
        "importance": 0.5,
        "created_at": at,
        "updated_at": at,
        "accessed_at": at,
    }
    return Memory(content=content, **usual | fields)


def unit(seed: int) -> Vector:
    vector = np.random.default_rng(seed).standard_normal(DIMENSION).astype(np.float32)
    return vector / np.linalg.norm(vector)


def at_cosine(cosine: float) -> Vector:
    """A vector at this cosine to `QUERY`."""
    vector = np.zeros(DIMENSION, np.float32)
    vector[0], vector[1] = cosine, (1 - cosine**2) ** 0.5
    return vector


QUERY = at_cosine(1.0)


def put_in(
    tx: Transaction, memory: Memory, vectors: Sequence[Vector] | None = (QUERY,), parts: int | None = None
) -> Memory:
    return tx.put(
        memory,
        fingerprint=memory.content.encode()[:32],
        vectors=vectors,
        parts=len(vectors or ()) if parts is None else parts,
        change=Change(user="ann", at=memory.updated_at, reason="because"),
    )


def put(store: Store, memory: Memory, vectors: Sequence[Vector] | None = (QUERY,), parts: int | None = None) -> Memory:
    with store.writing() as tx:
        return put_in(tx, memory, vectors, parts)


def put_all(store: Store, memories: Iterable[Memory], vectors: Sequence[Vector] = (QUERY,)) -> list[Memory]:
    with store.writing() as tx:
        return [put_in(tx, memory, vectors) for memory in memories]


def changed(store: Store, memory: Memory, **fields: Any) -> Memory:
    """The next version, text unchanged."""
    return put(store, replace(memory, version=memory.version + 1, **fields), None)


def ids(found: Iterable[Any]) -> list[str]:
    return [getattr(one, "memory", None) or one.id for one in found]


def ids_of(memories: Iterable[Memory]) -> list[str]:
    return [memory.id for memory in memories]


def got(store: Store, id: str) -> Memory:
    [memory] = store.get([id], EVERYTHING)
    return memory


def listed(store: Store, filter: Filter = Filter(), **options: Any) -> list[str]:  # noqa: B008 -- frozen
    return ids(store.list(filter, EVERYTHING, now=NOW, **options))


def matched(store: Store, text: str, filter: Filter = Filter(), limit: int = 100) -> list[str]:  # noqa: B008 -- frozen
    return ids(store.match(text, filter, EVERYTHING, now=NOW, limit=limit))


def scores(store: Store, text: str, audience: Audience) -> tuple[list[tuple[str, float]], dict[str, float]]:
    """What an audience is told of a text: scores, and how rare its words are."""
    found = store.match(text, Filter(states=EVERY_STATE), audience, now=NOW, limit=100)
    return [(one.memory, one.score) for one in found], store.rarity(text.split(), audience)


def nearest(store: Store, filter: Filter = Filter(), limit: int = 100) -> list[str]:  # noqa: B008 -- frozen
    return ids(store.nearest(QUERY, filter, EVERYTHING, now=NOW, limit=limit))


def an_event(**fields: Any) -> Event:
    usual: dict[str, Any] = {"space": "default", "at": NOW, "action": "stored", "user": "ann"}
    return Event(**usual | fields)


def a_link(source: str, target: str, **fields: Any) -> Link:
    usual: dict[str, Any] = {"kind": LinkKind.RELATED, "created_at": NOW}
    return Link(source=source, target=target, **usual | fields)


def relate(store: Store, *links: Link) -> None:
    with store.writing() as tx:
        for link in links:
            tx.history.relate(link)


def a_request(**fields: Any) -> Request:
    usual: dict[str, Any] = {"caller": "ann", "key": "k", "operation": "store_memory", "arguments": b"\1" * 32}
    return Request(**usual | fields)


def keep(
    store: Store, request: Request, result: str = "{}", *, memories: Sequence[str] = (), at: datetime = NOW
) -> None:
    with store.writing() as tx:
        tx.history.keep_result(request, result, memories=memories, at=at)


def kept(store: Store, request: Request, *, now: datetime = NOW) -> str | None:
    with store.writing() as tx:
        return tx.history.result_of(request, now=now)


def purge(store: Store, id: str) -> None:
    with store.writing() as tx:
        tx.purge(id, at=NOW)


def totals(store: Store, part: Part = Part(), audience: Audience = EVERYTHING) -> Totals:  # noqa: B008 -- frozen
    return store.statistics.totals(part, audience, now=NOW)


def put_talk(store: Store, id: str, **fields: Any) -> Conversation:
    usual: dict[str, Any] = {"space": "default", "created_at": NOW, "updated_at": NOW}
    talk = Conversation(id=id, **usual | fields)
    with store.writing() as tx:
        tx.conversations.put(talk)
    return talk


def create_spaces(store: Store, *names: str) -> None:
    with store.writing() as tx:
        for name in names:
            tx.spaces.create(name, at=NOW)


# Text, a word to find it by, in scripts with and without spaces.
SCRIPTS = [
    ("用户住在东京都", "京"),
    ("用户住在东京都", "东京"),
    ("用户住在东京都", "东京都"),
    ("彼女はコーヒーが好きです", "コーヒー"),
    ("ﾃｽﾄは半角カナ", "テスト"),
    ("사용자는 서울에서 일합니다", "서울"),
    ("ผู้ใช้ชอบดื่มกาแฟ", "กาแฟ"),
    ("ຜູ້ໃຊ້ຢູ່ວຽງຈັນ", "ວຽງຈັນ"),
    ("المستخدم يحب القهوة", "القهوة"),
    ("كَتَبَ رسالة", "كتب"),
    ("Пользователь живёт в Москве", "москве"),
    ("उपयोगकर्ता दिल्ली में रहता है।", "दिल्ली"),
    ("Das Café an der Straße", "cafe"),
    ("Das Cafe an der Ecke", "Café"),
    ("cafe\u0301 with a combining accent", "café"),
    ("Launch went well 🚀 today", "🚀"),
    ("使用Python编写", "python"),
    ("Python编写", "编写"),
    ("ＦＵＬＬ width", "full"),
    ("calls parseHttpResponse twice", "response"),
    ("calls parseHttpResponse twice", "parseHttpResponse"),
    ("set max_retry_count to 5", "retry"),
    ("set max_retry_count to 5", "max_retry_count"),
    ("runs on node22", "22"),
    ("upgraded to 3.11.7", "3.11.7"),
    ("imports os.path.join", "path"),
    ("User was running late", "runs"),
]

HOSTILE = [
    "'; DROP TABLE memories; --",
    '"',
    '""" OR ""',
    "*",
    "sea*",
    "NEAR(seattle austin, 2)",
    "-seattle",
    "text:seattle",
    "scope : x",
    "{text scope} : seattle",
    "^seattle",
    "(seattle",
    "seattle AND",
    "AND OR NOT",
    "seattle + user",
    "%_\\",
    "a\0b seattle",
    "\ud800",
    "",
    " ",
    "😀" * 300,
    "x" * 100_000,
    "? ?1 :name @name $name",
    "\ue0001",
]


def put_away(
    store: Store,
    memory: Memory,
    *,
    packed: bytes = b"packed",
    object: str | None = None,
    checksum: bytes | None = None,
    keep_vectors: bool = False,
    tier: Tier | None = None,
    at: datetime = NOW,
) -> Archive:
    archive = Archive(
        id=f"arch_{new_id()}",
        tier=tier or (Tier.COLD if object is None else Tier.GLACIER),
        at=at,
        size=len(packed),
        checksum=checksum or sha256(packed).digest(),
        object=object,
        packed=packed if object is None else None,
    )
    with store.writing() as tx:
        tx.put_away(memory.id, archive, keep_vectors=keep_vectors)
    return archive


def a_job(**fields: Any) -> Job:
    usual: dict[str, Any] = {
        "id": f"job_{new_id()}",
        "kind": "sync",
        "caller": Caller(),
        "spaces": ("default",),
        "arguments": {"destination": "laptop"},
        "created_at": NOW,
    }
    return Job(**usual | fields)


def put_job(store: Store, job: Job) -> None:
    with store.writing() as tx:
        tx.jobs.put(job)


def sees(audience: Audience, memory: Memory) -> bool:
    """The predicate, once more and slowly."""
    least = {AccessLevel.PUBLIC: Sight.PUBLIC, AccessLevel.SHARED: Sight.SHARED, AccessLevel.PRIVATE: Sight.ALL}
    own = memory.access_level is AccessLevel.PRIVATE and memory.context.user_id == audience.user
    needed = Sight.OWN if own else least[memory.access_level]
    return any(scope.space in (None, memory.space) and scope.sight >= needed for scope in audience.scopes)


def take(store: Store, replica: Replica, vectors: Sequence[Vector] | None) -> None:
    with store.writing() as tx:
        tx.replicate(
            replica,
            fingerprint=None if replica.erased else replica.memory.content.encode()[:32],
            vectors=vectors,
            change=Change(user="sync", at=NOW),
        )
