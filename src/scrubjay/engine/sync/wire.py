"""What travels between two scrubjays as JSON and back, and what is refused of what came from afar.

    written(parcel) -> JSON body -> read(body) -> SyncBatch, every memory of it checked

A body has the shape of the values themselves (`codec.plain`), but for vectors: each is base64 of its little-endian
32-bit numbers. Both sides must speak the same `PROTOCOL`; a test fails when the shape changes and the number does not.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from scrubjay.engine.store import intake
from scrubjay.engine.sync.peer import SyncBatch
from scrubjay.errors import InvalidInput
from scrubjay.lazy import numpy as np
from scrubjay.stores.promises.sync import Replica
from scrubjay.values import codec
from scrubjay.values.frozen import dataclass, replace
from scrubjay.values.memory import MAX_CONTENT, TIMES, Link, Memory

if TYPE_CHECKING:
    from scrubjay.embedders.base import Vector

PROTOCOL = 4
BYTES = 600_000  # of memories and links in one message; a single memory that is larger goes alone
MAX_PATH = 1_000
MAX_FOUND = 100  # tags that intake found, flags, other ids

Body = dict[str, Any]
Item = TypeVar("Item")
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Greeting:
    """How a store introduces itself."""

    protocol: int = PROTOCOL
    origin: str
    spaces: tuple[str, ...]  # that the caller may sync
    every_space: bool  # also those that are not there yet
    sealed: tuple[str, ...] | None = None  # if any, those that take nothing in: their files are read-only
    model: str | None = None
    mark: str | None = None  # by which a store recognises itself


def write_value(parcel: SyncBatch) -> Body:
    body: Body = codec.plain(replace(parcel, replicas=tuple(map(_flatten, parcel.replicas))))
    return body


def read(body: Mapping[str, Any]) -> SyncBatch:
    """:raises InvalidInput: for what no store of ours would hold"""
    parcel = build_value(SyncBatch, body)
    replicas = tuple(
        replace(check_replica(one), vectors=vectors_of(one), further=_further_of(one)) for one in parcel.replicas
    )
    for name in parcel.spaces:
        intake.check_space(name)
    return replace(parcel, replicas=replicas, links=tuple(map(checked_link, parcel.links)))


def build_value(kind: type[Value], body: Any) -> Value:
    """A value from JSON of the right shape, whose times may still be none.

    :raises InvalidInput: if one is
    """
    try:
        return codec.build_value(kind, body)
    except (ArithmeticError, LookupError, TypeError, ValueError):
        raise InvalidInput("The peer's message does not match the sync protocol.") from None


def size_of(item: Replica | Link) -> int:
    """Bytes on the way, a little more rather than less."""
    flat = _flatten(item) if isinstance(item, Replica) else item
    return len(codec.write_json(flat).encode()) + 1


def batches(items: Iterable[Item], size: Callable[[Item], int], limit: int = BYTES) -> Iterator[tuple[Item, ...]]:
    """The items in their order, as many at once as fit; one that is too large goes alone."""
    batch: list[Item] = []
    total = 0
    for item in items:
        weight = size(item)
        if batch and total + weight > limit:
            yield tuple(batch)
            batch, total = [], 0
        batch.append(item)
        total += weight
    if batch:
        yield tuple(batch)


# --- what is refused -------------------------------------------------------------------------------------------------


def check_replica(replica: Replica) -> Replica:
    """:raises InvalidInput: naming the field that no memory of ours has like that"""
    memory = replica.memory
    intake.check_id(memory.id)
    intake.check_space(memory.space)
    intake.check_name(memory.origin, "origin")
    for name, texts in (("aliases", replica.aliases), ("auto_tags", memory.auto_tags), ("flags", memory.flags)):
        if len(texts) > MAX_FOUND:
            raise InvalidInput(f"{name} has more than {MAX_FOUND} entries.", field=name)
        for text in texts:
            intake.check_name(text, name)
    if replica.archive is not None:
        intake.check_name(replica.archive, "archive")
    _check_times(memory)
    if replica.erased:
        if memory.content or memory.metadata or memory.detail:
            raise InvalidInput("An erased memory must not have a text.", field="content")
        return replica
    intake.check_text(memory.content, "content")
    if len(memory.text) > MAX_CONTENT:
        raise InvalidInput(f"The text has more than {MAX_CONTENT:,} characters.", field="content")
    intake.check_text(memory.title, "title", maximum=2 * intake.MAX_TITLE)
    intake.check_text(memory.path, "path", maximum=MAX_PATH)
    intake.check_name(memory.topic, "topic", maximum=intake.MAX_TOPIC)
    intake.check_tags(memory.tags)
    intake.check_phrases(memory.also)
    intake.check_share(memory.importance, "importance")
    intake.check_share(memory.confidence, "confidence")
    for name in ("user_id", "conversation_id", "session_id"):
        intake.check_name(getattr(memory.context, name), name)
    # Another store holds them already: stores that meet must agree, and every writer of ours writes them exactly.
    intake.check_json(memory.metadata, "metadata", large=True)
    intake.check_json(memory.detail, "detail", maximum=intake.MAX_DETAIL, large=True)
    return replica


def checked_link(link: Link) -> Link:
    for end in (link.source, link.target):
        intake.check_id(end)
    intake.check_name(link.origin, "origin")
    intake.check_name(link.state, "state")
    if link.reason is not None:
        intake.check_text(link.reason, "reason")
    if link.score is not None:
        intake.check_share(link.score, "score")
    intake.check_time(link.created_at, "created_at")
    return link


def _check_times(memory: Memory) -> None:
    for name in TIMES:
        value: datetime | None = getattr(memory, name)
        if intake.check_time(value, name) is not None and not 1 < value.year < 9_999:  # type: ignore[union-attr]
            raise InvalidInput(f"{name} is out of range.", field=name)  # no zone may carry it over the edge


# --- vectors ---------------------------------------------------------------------------------------------------------


def _flatten(replica: Replica) -> Replica:
    further = {model: _as_texts(vectors) for model, vectors in replica.further.items()}
    return replace(replica, vectors=_as_texts(replica.vectors), further=further)


def _as_texts(vectors: Iterable[Vector]) -> tuple[str, ...]:
    return tuple(b64encode(one.astype("<f4").tobytes()).decode() for one in vectors)


def vectors_of(replica: Replica) -> tuple[Vector, ...]:
    """:raises InvalidInput: if they are not unit vectors"""
    vectors = _unit_vectors(replica.vectors)
    if len(vectors) > replica.parts:
        raise InvalidInput("There are more vectors than parts.", field="vectors")
    return vectors


def _further_of(replica: Replica) -> dict[str, tuple[Vector, ...]]:
    for model in replica.further:
        intake.check_name(model, "model")
    return {model: _unit_vectors(texts) for model, texts in replica.further.items()}


def _unit_vectors(texts: Sequence[str]) -> tuple[Vector, ...]:
    if not texts:
        return ()

    try:
        vectors = tuple(np.frombuffer(b64decode(text, validate=True), dtype="<f4") for text in texts)
    except ValueError:
        raise InvalidInput("vectors must be base64-encoded 32-bit numbers.", field="vectors") from None
    for one in vectors:
        with np.errstate(all="ignore"):
            length = float(np.sqrt(np.square(one, dtype=np.float64).sum()))
        if len(one) != len(vectors[0]) or not 0.99 < length < 1.01:
            raise InvalidInput("vectors must have one dimension and length 1.", field="vectors")
    return vectors
