"""System: store with automatic enrichment, weighted recall, versions, soft delete, lists, statistics."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import Any

from scrubjay.dialects.base import (
    COUNT,
    LEFT_OUT,
    NOTICES,
    PHRASES,
    SHARE,
    TIME,
    WORDINGS,
    Body,
    array,
    count_that_fit,
    flag,
    integer,
    left_out,
    number,
    object_schema,
    phrases_in,
    present,
    record,
    served_name,
    tell_stored,
    text,
)
from scrubjay.dialects.schemas import with_fields
from scrubjay.dialects.system.definitions import (
    CATEGORY,
    EXPIRES,
    ID,
    INPUTS,
    MEMORY,
    NUMBER,
    SAME_AS,
    TAGS,
    TOLERANCE,
    ahead,
    check_range,
    input_schema,
    moment,
    read_filter,
    show_memory,
    success_reply,
    system,
    tools,
)
from scrubjay.engine.engine import Engine
from scrubjay.engine.statistics import Granularity, StatsQuery, StatsScope
from scrubjay.engine.store.intake import Merge, TagChange
from scrubjay.errors import InvalidInput
from scrubjay.values.codec import plain
from scrubjay.values.memory import AccessLevel, Category, Memory, NewMemory, Source, State, Status
from scrubjay.values.search import Decay, Hit, Order, Query, Verdict, Weights
from scrubjay.values.times import iso

__all__ = ["system"]  # table.py finds a dialect in the module that imports all of its operations

# --- store -----------------------------------------------------------------------------------------------------------


@tools.writes(
    "Store a memory",
    takes=input_schema("store_memory", also=PHRASES),
    fields={"created_at": "context.timestamp"},
    gives={
        "memory_id": ID,
        "content": text(),
        "category": CATEGORY,
        "auto_tags": TAGS,
        "importance": SHARE,
        "embeddings_generated": flag(),
        "created_at": TIME,
        "links_created": COUNT,
    },
    optional={**EXPIRES, "notices": NOTICES},
)
def store_memory(engine: Engine, args: Body) -> Body:
    """Store new information with automatic categorization, tagging, and metadata enrichment."""
    context, metadata = args.get("context", {}), args.get("metadata", {})
    stored = engine.store(
        NewMemory(
            content=args["content"],
            category=Category(metadata["category"]) if "category" in metadata else None,
            tags=tuple(metadata.get("tags", ())),
            also=phrases_in(args),
            importance=metadata.get("importance"),
            source=Source.EXPLICIT,
            access_level=AccessLevel(metadata.get("access_level", "private")),
            user_id=context.get("user_id"),
            conversation_id=context.get("conversation_id"),
            session_id=context.get("session_id"),
            created_at=moment(context, "timestamp"),
            expires_at=ahead(engine, metadata, "expires_at"),
            related=tuple(args.get("related_memory_ids", ())),
            find_related=True,
            unique=True,
        )
    )
    memory = stored.memory
    return success_reply(
        memory_id=tell_stored(stored),
        content=memory.shown_text,
        category=memory.category,
        auto_tags=memory.auto_tags,
        importance=memory.importance,
        embeddings_generated=stored.degraded is None,
        created_at=memory.created_at,
        links_created=stored.links,
        **present(expires_at=memory.expires_at),
    )


# --- recall ----------------------------------------------------------------------------------------------------------

VERDICT = text("How far it is an answer, whatever the weights say", enum=[str(verdict) for verdict in Verdict])


@tools.reads(
    "Recall memories",
    takes=input_schema("recall_memories", also=WORDINGS),
    gives={
        "query": text(),
        "total_results": COUNT,
        "returned_count": COUNT,
        "memories": array(
            object_schema(
                {
                    **MEMORY,
                    **EXPIRES,
                    "status": {"const": "archived", "description": "Only for archived memories"},
                    "note": text("How to get a text that is not included"),
                    "scores": record(
                        {
                            "semantic_similarity": SHARE,
                            "recency": SHARE,
                            "importance": SHARE,
                            "access_frequency": SHARE,
                            "combined": number(minimum=0),
                        }
                    ),
                    "verdict": VERDICT,
                },
                required=(*MEMORY, "scores", "verdict"),
            )
        ),
        "verdict": VERDICT,
        "execution_time_ms": COUNT,
    },
    optional={"degraded": text(), "notices": NOTICES, "left_out": LEFT_OUT},
)
def recall_memories(engine: Engine, args: Body) -> Body:
    """Semantic search across memories with multi-factor ranking based on relevance, recency, importance, and
    context."""
    begun = perf_counter()
    filters = args.get("filters", {})
    states = frozenset({State.ACTIVE, *((State.ARCHIVED,) if args.get("include_archived") else ())})
    hits = engine.search(
        Query(
            text=args["query"],
            also=phrases_in(args),
            limit=int(args.get("limit", 10)),
            offset=int(args.get("offset", 0)),
            filter=read_filter(filters, states=states, min_importance=filters.get("min_importance")),
            weights=weights(args.get("ranking", {})),
        )
    )
    memories = [show_recall(hit) for hit in hits]
    count = count_that_fit(memories)
    return success_reply(
        query=args["query"],
        total_results=hits.total,
        returned_count=count,
        memories=memories[:count],
        verdict=str(hits.verdict),
        execution_time_ms=round((perf_counter() - begun) * 1000),
        **present(degraded=hits.degraded),
        **left_out(len(memories) - count),
    )


def weights(ranking: Mapping[str, Any]) -> Weights:
    """The defaults when no weight is given, which then do not order; otherwise omitted ones are 0, and the sum is 1."""
    decay = Decay(ranking.get("recency_decay", "exponential"))
    given = ranking.get("weights") or {}
    if not given:
        return Weights(decay=decay, order=False)
    total = sum(given.values())
    if round(abs(total - 1), 9) > TOLERANCE:
        raise InvalidInput(
            f"ranking.weights must sum to 1.0, not {round(total, 4)}.",
            hint="Omitted weights count as 0.",
            field="ranking.weights",
        )
    return Weights(
        similarity=given.get("semantic_similarity", 0.0),
        recency=given.get("recency", 0.0),
        importance=given.get("importance", 0.0),
        access=given.get("access_frequency", 0.0),
        decay=decay,
    )


def show_recall(hit: Hit) -> Body:
    factors = hit.factors
    assert factors is not None
    scores = {
        "semantic_similarity": factors.similarity,
        "recency": factors.recency,
        "importance": factors.importance,
        "access_frequency": factors.access,
        "combined": factors.combined,
    }
    return {**show_memory(hit.memory), **show_archive(hit.memory), "scores": scores, "verdict": str(hit.verdict)}


def show_archive(memory: Memory) -> Body:
    """For archived memories only; in the deep archive their content is empty until they are restored."""
    if memory.status is Status.ACTIVE:
        return {}
    if memory.content:
        return {"status": str(memory.status)}
    note = f"Its text is in the deep archive: use {served_name('restore_memory')} to restore it."
    return {"status": str(memory.status), "note": note}


# --- update ----------------------------------------------------------------------------------------------------------


@tools.writes(
    "Update a memory",
    of_one_version=True,
    destructive=True,
    takes=input_schema(
        "update_memory",
        expected_version=integer("Change the memory only if this is its version (409 otherwise)", minimum=1),
        updates=with_fields(INPUTS["update_memory"]["takes"]["properties"]["updates"], also=PHRASES),
    ),
    gives={
        "memory_id": ID,
        "version": integer(minimum=1),
        "updated_fields": TAGS,
        "embeddings_regenerated": flag(),
        "updated_at": TIME,
    },
    optional={
        "previous_version_id": {**ID, "description": "For restore_memory; absent if no version was created"},
        "same_as": SAME_AS,
        **EXPIRES,
    },
)
def update_memory(engine: Engine, args: Body) -> Body:
    """Modify existing memory content, metadata, or relationships with full version history tracking. With
    expected_version it is refused if the memory has changed since."""
    updates = dict(args["updates"])
    tags = updates.pop("tags", None)
    related = updates.pop("related_memory_ids", None)
    if "expires_at" in updates and updates["expires_at"] is not None:
        updates["expires_at"] = ahead(engine, updates, "expires_at")
    revised = engine.revise(
        args["memory_id"],
        merge=Merge(args.get("merge_strategy", "replace")),
        tag_change=tag_change(tags),
        reason=args.get("reason"),
        expected_version=args.get("expected_version"),
        related=related,
        **updates,
    )
    return success_reply(
        memory_id=revised.memory.id,
        version=revised.memory.version,
        updated_fields=[name for name in args["updates"] if name in revised.fields],
        embeddings_regenerated=revised.embedded,
        updated_at=revised.memory.updated_at,
        **present(
            previous_version_id=revised.previous,
            expires_at=revised.memory.expires_at,
            same_as=engine.conflicts.same_as(revised.memory.id).get(revised.memory.id)
            if "content" in revised.fields
            else None,
        ),
    )


def tag_change(tags: Mapping[str, Any] | None) -> TagChange | None:
    if tags is None:
        return None
    if not tags:
        raise InvalidInput("updates.tags must have add, remove or replace.", field="updates.tags")
    return TagChange(
        replace=tuple(tags["replace"]) if "replace" in tags else None,
        add=tuple(tags.get("add", ())),
        remove=tuple(tags.get("remove", ())),
    )


# --- forget ----------------------------------------------------------------------------------------------------------


@tools.writes(
    "Forget a memory",
    of_one_version=True,
    destructive=True,
    takes=input_schema("forget_memory"),
    gives={
        "memory_id": ID,
        "deletion_type": text(enum=["soft", "hard"]),
        "deleted_at": TIME,
        "related_memories_affected": COUNT,
    },
    optional={"recoverable_until": TIME, "backup_id": ID},
)
def forget_memory(engine: Engine, args: Body) -> Body:
    """Soft delete a memory with reason tracking, allowing for potential recovery and audit trails."""
    reason = args.get("reason", "user_request")
    details = args.get("reason_details")
    forgotten = engine.forget(
        args["memory_id"],
        hard=args.get("hard_delete", False),
        reason=f"{reason}: {details}" if details else reason,
        days=int(args.get("retention_period_days", 30)),
        cascade=args.get("cascade_related", False),
    )
    memory = forgotten.memory
    assert memory.deleted_at is not None
    body = success_reply(
        memory_id=memory.id,
        deletion_type="hard" if forgotten.hard else "soft",
        deleted_at=memory.deleted_at,
        related_memories_affected=forgotten.related,
    )
    if not forgotten.hard and memory.recoverable_until is not None:
        body |= {"recoverable_until": iso(memory.recoverable_until), "backup_id": forgotten.backup}
    return body


# --- list ------------------------------------------------------------------------------------------------------------

SORTS = {
    "created_at": Order.CREATED,
    "updated_at": Order.UPDATED,
    "last_accessed": Order.ACCESSED,
    "importance": Order.IMPORTANCE,
    "access_count": Order.ACCESSES,
    "content_length": Order.LENGTH,
}
STATES = {"active": (State.ACTIVE, State.SUPERSEDED), "archived": (State.ARCHIVED,), "deleted": (State.DELETED,)}


STATS = ("content_length", "link_count", "days_since_creation", "days_since_access")


@tools.reads(
    "List memories",
    takes=input_schema("list_memories"),
    gives={
        "total_count": COUNT,
        "returned_count": COUNT,
        "memories": array(
            record(
                {
                    **{name: MEMORY[name] for name in ("memory_id", "category", "tags", "importance", "created_at")},
                    "updated_at": TIME,
                    "version": integer(minimum=1),
                    "status": text(enum=["active", "archived", "deleted"]),
                },
                optional={
                    **{name: MEMORY[name] for name in ("content", "last_accessed", "access_count", "context")},
                    **EXPIRES,
                    "access_level": text(enum=["public", "private", "shared"]),
                    "superseded_by": ID,
                    "stats": object_schema(dict.fromkeys(STATS, COUNT)),
                },
            )
        ),
        "pagination": record(
            {
                "has_more": flag(),
                "next_cursor": {"type": ["string", "null"]},
                "next_offset": {"type": ["integer", "null"]},
            }
        ),
    },
    optional={"notices": NOTICES, "left_out": LEFT_OUT},
)
def list_memories(engine: Engine, args: Body) -> Body:
    """Browse memories with comprehensive filtering, sorting, and pagination capabilities."""
    filters, sort, pagination = args.get("filters", {}), args.get("sort", {}), args.get("pagination", {})
    limit, offset = int(pagination.get("limit", 20)), int(pagination.get("offset", 0))
    cursor, content = pagination.get("cursor"), args.get("include_content", True)
    if cursor is not None and offset:
        raise InvalidInput("cursor and offset cannot be combined.", field="pagination")
    between = filters.get("importance_range", {})
    check_range(between.get("min"), between.get("max"), "filters.importance_range")
    statuses = filters.get("status") or ["active"]
    page = engine.list(
        read_filter(
            filters,
            states=frozenset(state for status in statuses for state in STATES[status]),
            # Pruned memories must be found among the deleted: expired ones are hidden only among active memories.
            expired=False if "active" in statuses else None,
            min_importance=between.get("min"),
            max_importance=between.get("max"),
        ),
        order=SORTS[sort.get("field", "created_at")],
        descending=sort.get("order", "desc") == "desc",
        limit=limit,
        offset=offset,
        cursor=cursor,
        counted=True,
        linked=args.get("include_stats", False),
        room=lambda found: count_that_fit(show_listing(memory, content=content) for memory in found),
    )
    now = engine.now()
    memories = []
    for memory in page:
        item = show_listing(memory, content=content)
        if args.get("include_stats", False):
            item["stats"] = {
                "content_length": page.lengths.get(memory.id, len(memory.text)),
                "link_count": page.links[memory.id],
                "days_since_creation": max(0, round((now - memory.created_at).total_seconds() / 86_400)),
                "days_since_access": max(0, round((now - memory.accessed_at).total_seconds() / 86_400)),
            }
        memories.append(item)
    more = page.cursor is not None
    return success_reply(
        total_count=page.total,
        returned_count=len(page),
        memories=memories,
        pagination={
            "has_more": more,
            "next_cursor": page.cursor,
            "next_offset": offset + len(page) if more and cursor is None else None,
        },
        **left_out(page.left_out),
    )


def show_listing(memory: Memory, *, content: bool) -> Body:
    item: Body = {
        **show_memory(memory),
        "updated_at": iso(memory.updated_at),
        "version": memory.version,
        "access_level": str(memory.access_level),
        "status": str(memory.status),
    }
    item |= present(superseded_by=memory.superseded_by)
    if not content or not memory.content:  # the deep archive is not opened for a list
        del item["content"]
    return item


# --- statistics ------------------------------------------------------------------------------------------------------

METRICS = {
    "count": object_schema(dict.fromkeys(("total", "active", "archived", "deleted", "expired"), COUNT)),
    "storage_size": object_schema(dict.fromkeys(("total_bytes", "average_memory_bytes", "embeddings_bytes"), COUNT)),
    "category_distribution": {"type": "object", "additionalProperties": COUNT},
    "importance_distribution": object_schema(dict.fromkeys(("high", "medium", "low"), COUNT)),
    "access_patterns": object_schema(
        {
            "total_recalls": COUNT,
            "unique_memories_accessed": COUNT,
            "average_recalls_per_memory": NUMBER,
            "most_accessed_memory_id": {"type": ["string", "null"]},
            "most_accessed_count": COUNT,
        }
    ),
    "growth_rate": object_schema(
        {
            "memories_per_day": NUMBER,
            "trend": text(enum=["increasing", "stable", "decreasing"]),
            "percent_change": NUMBER,
        }
    ),
    "recall_frequency": object_schema(
        {"daily_average": COUNT, "peak_hour": {"type": ["integer", "null"]}, "peak_day": {"type": ["string", "null"]}}
    ),
    "consolidation_rate": object_schema(
        {"consolidations_per_week": NUMBER, "memories_consolidated": COUNT, "consolidation_ratio": NUMBER}
    ),
    "deletion_rate": object_schema(
        {"deletions_per_week": NUMBER, "soft_deletes": COUNT, "hard_deletes": COUNT, "deletion_ratio": NUMBER}
    ),
    "health_score": object_schema(
        {
            "overall": SHARE,
            "factors": object_schema(
                dict.fromkeys(
                    ("deduplication", "categorization_accuracy", "access_distribution", "storage_efficiency"), SHARE
                )
            ),
        }
    ),
}


@tools.reads(
    "Get statistics",
    takes=input_schema("get_memory_stats"),
    gives={
        "scope": text(enum=["global", "user", "conversation", "category"]),
        "time_range": record({"start": TIME, "end": TIME}),
        "statistics": object_schema(METRICS),
        "generated_at": TIME,
    },
    optional={
        "scope_id": ID,
        "trends": record({"memory_count": array(record({"date": text(), "value": COUNT}))}),
        "left_out": LEFT_OUT,
    },
)
def get_memory_stats(engine: Engine, args: Body) -> Body:
    """Retrieve usage metrics, health indicators, and analytics about the memory system."""
    between = args.get("time_range", {})
    granularity = Granularity(args.get("granularity", "day"))
    found = engine.statistics(
        StatsQuery(
            scope=stats_scope(args),
            scope_id=args.get("scope_id"),
            start=moment(between, "start"),
            end=moment(between, "end"),
            trends=granularity if args.get("include_trends") else None,
        )
    )
    # A number that does not exist yet (the busiest hour of an unused memory) is null, not left out.
    numbers = {name: plain(getattr(found, name), nulls=True) for name in args.get("metrics") or METRICS}
    body = success_reply(
        scope=args.get("scope", "user"),
        time_range={"start": iso(found.start), "end": iso(found.end)},
        statistics=numbers,
        generated_at=engine.now(),
    )
    if "scope_id" in args:
        body["scope_id"] = args["scope_id"]
    if args.get("include_trends"):
        length = len("2026-11-15T10:00") if granularity is Granularity.HOUR else len("2026-11-15")
        points = [{"date": iso(point.at)[:length], "value": point.value} for point in found.memory_count]
        body["trends"] = {"memory_count": points}
    return body


def stats_scope(args: Body) -> StatsScope:
    """A named scope needs its id. The default is a user, and without an id the caller.

    :raises InvalidInput: if an id is given for the global scope
    """
    if args.get("scope") == "global" and "scope_id" in args:
        raise InvalidInput(
            "scope_id cannot be combined with the scope global.", hint="Omit one of the two.", field="scope_id"
        )
    return StatsScope(args.get("scope", "user")) if {"scope", "scope_id"} & args.keys() else StatsScope.OWN


# The other tools, in their own files, join the same table; they use the definitions above.
from scrubjay.dialects.system import archive, consolidate, jobs, sync  # noqa: E402, F401
