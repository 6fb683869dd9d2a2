"""What decisions and checkpoints are called, so that people and models can read and repeat it.

    decision_auth_strategy_1732530000_k3x9      its topic, when it was made, four random characters
    checkpoint_3                                counts per space
    memory-4x1k9c0d2m7q                         Chimera's spelling of mem_4x1k9c0d2m7q

A name is kept in the memory's `detail` and is an alias of its id. Checkpoints count per space, so their alias carries
the space's name, and a bare `checkpoint_3` is looked for in the spaces that one works in.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256

from scrubjay.engine import access
from scrubjay.errors import InvalidInput
from scrubjay.stores.promises.memories import Reads, Transaction
from scrubjay.text.letters import topic_key
from scrubjay.values.callers import Audience, Scope, Sight
from scrubjay.values.frozen import replace
from scrubjay.values.memory import AT_HAND, AccessLevel, Kind, Memory, random_suffix

CHECKPOINT = re.compile(r"checkpoint_([0-9]{1,16})")
MOST_NUMBERED = 10**9  # numbers from elsewhere are kept up to here: room is left for those that follow
DECISION = re.compile(r"decision_[a-z0-9_]{1,200}")
SLUG = 50
TAIL = 4


def name_decision(tx: Transaction, memory: Memory) -> Memory:
    """A decision or checkpoint with a name that nothing else has; one that it brings along stays if it is free."""
    if memory.kind is Kind.DECISION:
        return _with_name(memory, _decision_name(tx, memory))
    if memory.kind is Kind.CHECKPOINT:
        brought = number_of(memory)
        number = free_number(tx, memory.space, brought if brought is not None and brought < MOST_NUMBERED else None)
        memory = replace(_with_name(memory, f"checkpoint_{number}"), path=f"checkpoints/{number}")
        return replace(memory, path=free_path(tx, memory))
    return memory


def free_number(tx: Transaction, space: str, wanted: int | None = None) -> int:
    """A number for a checkpoint whose id no memory has yet: one may have been imported."""
    number = tx.spaces.number_checkpoint(space, wanted)
    while tx.get([f"{space}/checkpoint_{number}"], access.EVERYTHING):
        number = tx.spaces.number_checkpoint(space)
    return number


def free_path(reads: Reads, memory: Memory) -> str:
    """The memory's path, or the first of path-2, path-3 … that is free in its space and audience."""
    return _first_free(memory.path, reads.files.taken_paths(memory))


def on_free_paths(reads: Reads, memories: Sequence[Memory]) -> list[Memory]:
    """Many memories of one space, each with a free path, as if each were written before the next is checked."""
    used = reads.files.used_paths(memories[0].space, [memory.path for memory in memories]) if memories else set()
    given: dict[str | None, set[str]] = {}  # by whose they are, if not everyone's
    placed = []
    for memory in memories:
        private = memory.access_level is AccessLevel.PRIVATE
        mine = given.setdefault(memory.context.user_id if private else None, set())
        path = memory.path
        if path in used or path in mine:
            path = _first_free(path, reads.files.taken_paths(memory) | mine)
        if memory.state in AT_HAND:
            mine.add(path)
        placed.append(memory if path == memory.path else replace(memory, path=path))
    return placed


def _first_free(path: str, taken: set[str]) -> str:
    if path not in taken:
        return path
    return next(other for n in range(2, len(taken) + 3) if (other := f"{path}-{n}") not in taken)


def holder(reads: Reads, memory: Memory) -> Memory | None:
    """Another active memory that has this one's path in its space and audience."""
    private = memory.access_level is AccessLevel.PRIVATE
    scope = Scope(memory.space, Sight.OWN if private else Sight.SHARED)
    found = reads.files.at_path(memory.space, memory.path, Audience(memory.context.user_id, (scope,)))
    if found is None or found.id == memory.id or (found.access_level is AccessLevel.PRIVATE) is not private:
        return None
    return found


def number_of(memory: Memory) -> int | None:
    """The number of a checkpoint."""
    found = CHECKPOINT.fullmatch(memory.name) if memory.kind is Kind.CHECKPOINT else None
    return int(found[1]) if found else None


def alias_of(memory: Memory) -> str | None:
    """Under which other id a memory is found: decisions and checkpoints only, whose names were checked."""
    if memory.kind is Kind.CHECKPOINT:
        return f"{memory.space}/{memory.name}"
    return memory.name if memory.kind is Kind.DECISION and memory.name != memory.id else None


def check_new_id(id: str | None) -> None:
    """:raises InvalidInput: if checkpoints of some space are found under ids like this one"""
    if id is not None and CHECKPOINT.fullmatch(id.rpartition("/")[2]):
        raise InvalidInput("An id may not be the name of a checkpoint.", field="id")


def stands_for(id: str, memory: Memory) -> bool:
    """Whether this id may mean a memory that was found by it: the name of a checkpoint means nothing else."""
    return not CHECKPOINT.fullmatch(id) or (memory.kind is Kind.CHECKPOINT and memory.name == id)


def ids_for(id: str, spaces: Sequence[str]) -> list[str]:
    """What an id may stand for, most likely first."""
    if CHECKPOINT.fullmatch(id):
        return [f"{space}/{id}" for space in spaces]
    return [id, f"mem_{id.removeprefix('memory-')}"] if id.startswith("memory-") else [id]


def slug(topic: str) -> str:
    """The topic in the letters of an id; the same for every spelling of it."""
    key = topic_key(topic)
    letters = re.sub(r"[^a-z0-9_]", "", key.replace(" ", "_"))
    plain = re.sub(r"_+", "_", letters).strip("_")[:SLUG].rstrip("_")
    return plain or "t" + sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def _decision_name(tx: Transaction, memory: Memory) -> str:
    kept = memory.detail.get("name")  # it comes from an export or another store
    stem = f"decision_{slug(memory.topic or '')}_{int(memory.created_at.timestamp())}"
    length = TAIL
    name = kept if isinstance(kept, str) and DECISION.fullmatch(kept) else f"{stem}_{random_suffix(length)}"
    while tx.get([name], access.EVERYTHING):
        length += 1
        name = f"{stem}_{random_suffix(length)}"
    return name


def _with_name(memory: Memory, name: str) -> Memory:
    return replace(memory, detail={**memory.detail, "name": name})
