"""Native: what people and the page need and no other dialect offers. REST under /api/v1/, not MCP.

Replies are the engine's own values as JSON (`schemas.shown`), so their schemas are read from the types; what is
None is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Annotated, Any

from scrubjay.dialects import base
from scrubjay.dialects.base import COUNT, SOME, Body, Schema, array, object_schema, present, text
from scrubjay.dialects.native import rows
from scrubjay.dialects.native.rows import LARGE, Id, Limit, Offset, Reason, Text, native, reads, revises, writes
from scrubjay.dialects.schemas import Wordings, fields_of, fill_value, shape, to_json
from scrubjay.engine.brief import BUDGET, LEAST, MOST, Brief
from scrubjay.engine.engine import Engine
from scrubjay.engine.lifecycle.bulk import CHANGEABLE, BulkDone
from scrubjay.engine.lifecycle.curation import GraphNode
from scrubjay.engine.store.intake import CHANGEABLE as ONE_CHANGEABLE
from scrubjay.engine.store.intake import TagChange
from scrubjay.values import memory as values
from scrubjay.values.memory import Link, Memory, NewMemory, Relation
from scrubjay.values.search import Filter, Hit, Order, Query, Verdict
from scrubjay.values.store import Recall, Topic
from scrubjay.values.times import parse_time

__all__ = ["native"]

SAME = array(
    rows.ID, description="Ids of other memories that it now says the same as; with one of them it is an open conflict"
)
CHANGES: Schema = {
    **{name: one for name, one in fields_of(Memory).items() if name in ONE_CHANGEABLE},
    "also": base.PHRASES,
}
NEW: Schema = {**fields_of(NewMemory, without=("kind", "topic", "detail")), "also": base.PHRASES}
NEW = object_schema(NEW, required=["content"])
NOTICED: Schema = {**LARGE, "notices": base.NOTICES}
PAIR = {"old": Memory, "new": Memory}


def moments(names: Iterable[str], args: Body) -> Body:
    """These arguments, as far as they are there, as the engine takes them: times are times."""
    given = {name: args[name] for name in names if name in args}
    ends = ("_at", "_from", "_until")
    return {name: parse_time(one, field=name) if name.endswith(ends) else one for name, one in given.items()}


# --- one memory ------------------------------------------------------------------------------------------------------


Deleted = Annotated[bool | None, "Include a forgotten memory that can still be restored"]


@reads("GET /memories/{id}", "Get a memory", {"memory": Memory})
def get_memory(engine: Engine, id: Id, deleted: Deleted = None) -> Any:
    """A memory by its id, with all its fields."""
    return engine.get(id, deleted=bool(deleted))


STORED = {"memory": Memory, "similar": list[Memory], "candidates": list[Memory], "same": array(rows.ID), "links": COUNT}


@writes("POST /memories", "Store a memory", STORED, status=201, takes=NEW, optional=NOTICED)
def store_memory(engine: Engine, args: Body) -> Any:
    """Store a memory. `similar` is the one earlier memory that it very likely outdates, if any; `candidates` are up to
    three more to judge for yourself, and `same` the ids of those that say the same."""
    stored = engine.store(fill_value(NewMemory, args))
    return {name: to_json(getattr(stored, name)) for name in STORED} | present(degraded=stored.degraded)


PREVIOUS = {"type": ["string", "null"], "description": "Id of the previous version; null if there is none"}


@revises(
    "PATCH /memories/{id}",
    "Update a memory",
    {"memory": Memory, "fields": array(text()), "previous": PREVIOUS, "same": SAME},
    takes=object_schema({"id": rows.ID, **CHANGES, "reason": rows.REASON}, required=("id",)),
)
def update_memory(engine: Engine, args: Body) -> Any:
    """Update a memory; the earlier version stays in the history. Send If-Match with its version to change only that."""
    revised = engine.revise(args["id"], reason=args.get("reason"), **moments(CHANGES, args))
    same = same_as(engine, revised.memory) if "content" in revised.fields else []
    return revised.memory, revised.fields, revised.previous, same


@revises("DELETE /memories/{id}", "Forget a memory", {"memory": Memory, "hard": bool}, destructive=True)
def forget_memory(
    engine: Engine, id: Id, hard: Annotated[bool, "Erase for good"] = False, reason: Reason = None
) -> Any:
    """Forget a memory: it can be restored for thirty days, or with `hard` never."""
    forgotten = engine.forget(id, hard=hard, reason=reason)
    return forgotten.memory, forgotten.hard


@revises("POST /memories/{id}/recover", "Restore a forgotten memory", {"memory": Memory, "same": SAME})
def recover_memory(engine: Engine, id: Id) -> Any:
    """Restore a forgotten memory."""
    memory = engine.recover(id)
    return memory, same_as(engine, memory)


def same_as(engine: Engine, memory: Memory) -> Sequence[str]:
    return engine.conflicts.same_as(memory.id).get(memory.id, [])


# --- finding ---------------------------------------------------------------------------------------------------------


DOUBTS = {"type": "object", "description": "By the id of a memory, that of the newer one that very likely outdates it"}
WORTH = array(rows.ID, description="Which hits are worth reading; the others have little to do with the question")
FOUND = {"hits": list[Hit], "verdict": Verdict, "total": COUNT, "worth": WORTH, "doubts": DOUBTS}


@reads("POST /search", "Search with explanation", FOUND, optional=NOTICED)
def search(
    engine: Engine,
    *,
    query: Text,
    also: Wordings = (),
    limit: Annotated[int, {"minimum": 1, "maximum": 1000, "default": 20}] = 10,
    offset: Offset = 0,
    filter: Filter,
) -> Any:
    """Find memories by words and by meaning, best first, each with the reasons why it was found."""
    asked = Query(text=query, also=also, limit=limit, offset=offset, filter=filter, explain=True)
    hits = engine.search(asked)
    doubts = engine.conflicts.doubts([hit.memory for hit in hits])
    few = 10 if hits.verdict is Verdict.WEAK else 3  # a person sees at a glance what a model would have to read
    worth = [hit.memory.id for hit in hits.worth_reading(doubts, few)]
    found = {name: to_json(getattr(hits, name)) for name in ("hits", "verdict", "total")}
    return {**found, "worth": worth, "doubts": doubts} | present(degraded=hits.degraded)


PAGE = {"memories": list[Memory], "total": COUNT, "doubts": DOUBTS}


@reads("GET /memories", "List memories", PAGE, optional={"cursor": text(), **LARGE})
def list_memories(
    engine: Engine,
    *,
    limit: Limit = 20,
    offset: Offset = 0,
    cursor: Annotated[str | None, SOME, "next_cursor of the previous page"] = None,
    order: Order = Order.CREATED,
    ascending: bool = False,
    filter: Filter,
) -> Any:
    """Memories in order, newest first unless asked otherwise."""
    part: Body = {"limit": limit, "offset": offset, "cursor": cursor}
    part["room"] = lambda found: base.count_that_fit(map(to_json, found))
    page = engine.list(filter, order=order, descending=not ascending, counted=True, **part)
    more = present(cursor=page.cursor, left_out=page.left_out or None)
    doubts = engine.conflicts.doubts(page.memories)
    return {"memories": to_json(page.memories), "total": page.total, "doubts": doubts, **more}


@reads("GET /brief", "Brief a session", Brief, optional={"notices": base.NOTICES})
def brief(engine: Engine, budget: Annotated[int, {"minimum": LEAST, "maximum": MOST}] = BUDGET) -> Any:
    """What to know when a session begins, within a budget of tokens: the current space, what is personal, open
    decisions, the last checkpoint, and other spaces by name; as a text for a model, and as the memories in it."""
    return engine.brief(budget=budget)


@reads("GET /memories/{id}/shown", "Who was shown a memory", {"recalls": list[Recall]})
def shown_to(engine: Engine, id: Id) -> Any:
    """Who received a memory and when, newest first: for when it turns out to be poisoned or wrong."""
    return engine.curation.shown_to(id)


# --- history ---------------------------------------------------------------------------------------------------------


FORMER = {"versions": list[values.Version], "phrases": list[values.FormerPhrases]}


@reads("GET /memories/{id}/versions", "List a memory's versions", FORMER)
def list_versions(engine: Engine, id: Id) -> Any:
    """Earlier versions of a memory, newest first; and the phrases it had before, which change without a new version."""
    return engine.history(id), engine.curation.former_phrases(id)


Number = Annotated[int, {"minimum": 1}]
DIFFERENCE = object_schema({"field": text(), "old": {}, "new": {}, "lines": array(text())}, required=("field", "lines"))


@reads("GET /memories/{id}/diff", "Compare versions", {"differences": array(DIFFERENCE)}, optional=LARGE)
def diff_versions(
    engine: Engine,
    id: Id,
    old: Number,
    new: Annotated[int | None, {"minimum": 1}, "Default: the current version"] = None,
) -> Any:
    """How two versions of a memory differ, field by field."""
    return engine.curation.diff(id, old=old, new=new)


@revises("POST /memories/{id}/versions/{version}/restore", "Restore a version", {"memory": Memory, "same": SAME})
def restore_version(engine: Engine, id: Id, version: Number) -> Any:
    """Make an earlier version of a memory the current one again; the present one joins the history."""
    memory = engine.restore_version(id, version)
    return memory, same_as(engine, memory)


# --- links and conflicts ---------------------------------------------------------------------------------------------


@reads("GET /memories/{id}/links", "List a memory's links", {"links": list[Link]})
def list_links(engine: Engine, id: Id) -> Any:
    """What a memory is linked to."""
    return engine.links(id)


NETWORK = object_schema({"nodes": shape(list[GraphNode]), "links": shape(list[Link])})


@reads("GET /memories/{id}/graph", "Get a memory's surroundings", {"memories": list[Memory], "links": list[Link]})
def get_graph(
    engine: Engine,
    id: Id,
    steps: Annotated[int, {"minimum": 1, "maximum": 3}] = 1,
    similar: Annotated[bool, "Include similar memories"] = False,
) -> Any:
    """A memory, what is linked to it within that many steps, and the links between them."""
    found = engine.curation.around(id, steps=steps, similar=similar)
    return found.memories, found.links


@reads("GET /memories/{id}/network", "Get a memory's network", NETWORK, streams=base.Pieces.LINES)
def get_network(engine: Engine, id: Id, steps: Annotated[int, {"minimum": 1, "maximum": 10}] = 2) -> Any:
    """What a memory is connected to, up to five thousand memories, for drawing: JSON lines, each with some of the nodes
    or, after them, of the links."""
    found = engine.curation.network(id, steps=steps)
    nodes = ({"nodes": to_json(some)} for some in stretches(found.nodes))
    links = ({"links": to_json(some)} for some in stretches(found.links))
    return base.Stream(chain(nodes, links), base.Pieces.LINES)


def stretches(items: tuple[Any, ...], size: int = 500) -> Iterator[tuple[Any, ...]]:
    return (items[start : start + size] for start in range(0, len(items), size))


@revises("POST /memories/{id}/supersede", "Supersede a memory", PAIR, idempotent=True)
def supersede_memory(engine: Engine, id: Id, new: Annotated[Text, "The memory that replaces it"]) -> Any:
    """Mark a memory as outdated by a newer one."""
    return engine.supersede(old=id, new=new)


@revises("POST /memories/{id}/release", "Undo a supersession", {"memory": Memory})
def release_memory(engine: Engine, id: Id) -> Any:
    """Mark an outdated memory as current again."""
    return engine.curation.release(id)


@reads("GET /conflicts", "List open conflicts", {"conflicts": list[values.OpenConflict], "older": COUNT})
def list_conflicts(engine: Engine, limit: Limit = 20, offset: Offset = 0) -> Any:
    """Memories that a newer one may outdate, still unresolved, newest first; and how many older ones there are.
    Supersede the older, or keep both."""
    return engine.conflicts.list(limit=limit, offset=offset), engine.conflicts.count()


@revises("POST /conflicts/keep", "Keep both", PAIR)
def keep_both(engine: Engine, old: Id, new: Id) -> Any:
    """Resolve a conflict: both memories are true."""
    return engine.conflicts.settle(old=old, new=new, keep=True)


@revises("POST /conflicts/same", "Say the same", PAIR)
def mark_same(engine: Engine, old: Id, new: Id) -> Any:
    """Resolve a conflict: both memories say the same, and searches show the newer one."""
    return engine.conflicts.relate(old=old, new=new, relation=Relation.SAME)


@revises("POST /conflicts/reopen", "Reopen a conflict", PAIR)
def reopen_conflict(engine: Engine, old: Id, new: Id) -> Any:
    """Take back how a conflict was resolved: it is open again."""
    return engine.conflicts.reopen(old=old, new=new)


# --- decisions -------------------------------------------------------------------------------------------------------


@reads("GET /decisions", "List decision topics", {"topics": list[Topic]})
def list_topics(engine: Engine) -> Any:
    """The topics of decisions, the latest first."""
    return engine.decisions.topics()


@reads("GET /decisions/{topic:path}", "How a decision evolved", {"decisions": list[Memory]})
def get_chain(engine: Engine, topic: Text) -> Any:
    """The decisions on a topic, newest first."""
    return engine.decisions.chain(topic)


# --- many at once ----------------------------------------------------------------------------------------------------

OPERATION = text("Id of the bulk operation, from an earlier call", minLength=1, maxLength=100)
TAGS = array(text(**SOME), maxItems=20)
CHANGES_OF_MANY = {name: CHANGES[name] for name in CHANGEABLE}
UPDATE = {"filter": object_schema(fields_of(Filter)), "add_tags": TAGS, "remove_tags": TAGS, **CHANGES_OF_MANY}
UPDATE["reason"] = rows.REASON


@reads("POST /bulk/preview", "Preview a bulk operation", {"total": COUNT, "memories": list[Memory]})
def preview_bulk(engine: Engine, *, limit: Limit = 20, filter: Filter) -> Any:
    """What a bulk operation with this filter would change."""
    named = engine.bulk.preview(filter, limit=limit)
    return named.total, named.memories


@revises("POST /bulk/forget", "Forget many", BulkDone, destructive=True)
def bulk_forget(
    engine: Engine, *, reason: Reason = None, deed: Annotated[str | None, OPERATION] = None, filter: Filter
) -> Any:
    """Forget everything that a filter matches, such as all that one client stored. At most a thousand per call: while
    `left` is not 0, call again with the same `deed`."""
    return engine.bulk.forget(filter, reason=reason, operation=deed)


@revises("POST /bulk/update", "Update many", BulkDone, takes=object_schema(UPDATE, required=("filter",)))
def bulk_update(engine: Engine, args: Body) -> Any:
    """Update the same fields of all memories that a filter matches; each keeps its earlier version in its history."""
    tags = TagChange(add=tuple(args.get("add_tags", ())), remove=tuple(args.get("remove_tags", ())))
    named = fill_value(Filter, args["filter"])
    changes = {"tags": tags if tags != TagChange() else None, "reason": args.get("reason"), **moments(CHANGEABLE, args)}
    return engine.bulk.update(named, **changes)


@writes("POST /bulk/undo", "Undo a bulk forget", BulkDone)
def undo_bulk(engine: Engine, deed: Annotated[str, OPERATION]) -> Any:
    """Restore what a bulk operation forgot. While `left` is not 0, call again."""
    return engine.bulk.undo(deed)


@writes("POST /prune", "Forget expired memories", {"pruned": list[str]}, destructive=True)
def prune(engine: Engine, dry_run: Annotated[bool, "Only report what would be forgotten"] = False) -> Any:
    """Soft-delete expired memories."""
    return [memory.id for memory in engine.prune(dry_run=dry_run)]


# The other operations, in their own files, join the same table.
from scrubjay.dialects.native import access, store, sync_peer  # noqa: E402, F401
