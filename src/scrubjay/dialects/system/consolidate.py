"""System, consolidation: several memories become one."""

from __future__ import annotations

from scrubjay.dialects.base import COUNT, SHARE, TIME, Body, array, flag, object_schema, text
from scrubjay.dialects.system.definitions import CATEGORY, ID, TAGS, input_schema, success_reply, tools
from scrubjay.engine.engine import Engine
from scrubjay.engine.lifecycle.consolidation import ConsolidationPlan, Strategy, Writer


@tools.writes(
    "Consolidate memories",
    destructive=True,
    asks=True,
    takes=input_schema("consolidate_memories"),
    gives={
        "consolidated_memory_id": ID,
        "source_memory_ids": array(ID),
        "content": text(),
        "category": CATEGORY,
        "tags": TAGS,
        "importance": SHARE,
        "created_at": TIME,
        "consolidated_at": TIME,
        "provenance": object_schema(
            {
                "source_count": COUNT,
                "synthesis_method": text(enum=[str(strategy) for strategy in Strategy]),
                "synthesis_engine": text(
                    "Who wrote an ai_synthesis: the configured model, the client's own, or rules",
                    enum=[str(writer) for writer in Writer],
                ),
                "originals_archived": flag(),
                "archive_ids": array(ID),
            },
            required=("source_count", "synthesis_method", "originals_archived", "archive_ids"),
        ),
    },
    optional={"notes": array(text())},
)
def consolidate_memories(engine: Engine, args: Body) -> Body:
    """Merge related or duplicate memories into a single, coherent memory with preserved provenance."""
    preserve = args.get("preserve_metadata", {})
    done = engine.consolidation.merge(
        ConsolidationPlan(
            ids=tuple(args["memory_ids"]),
            strategy=Strategy(args["consolidation_strategy"]),
            primary=args.get("primary_memory_id"),
            instructions=args.get("synthesis_instructions"),
            earliest_time=preserve.get("earliest_timestamp", True),
            highest_importance=preserve.get("highest_importance", True),
            all_tags=preserve.get("all_tags", True),
            all_links=preserve.get("all_links", True),
            keep_originals=args.get("keep_originals", True),
        )
    )
    memory = done.memory
    body = success_reply(
        consolidated_memory_id=memory.id,
        source_memory_ids=done.sources,
        content=memory.text,
        category=memory.category,
        tags=list(memory.tags or memory.auto_tags),
        importance=memory.importance,
        created_at=memory.created_at,
        consolidated_at=done.at,
        provenance={
            "source_count": len(done.sources),
            "synthesis_method": str(done.strategy),
            **({"synthesis_engine": str(done.writer)} if done.writer else {}),
            "originals_archived": args.get("keep_originals", True),
            "archive_ids": list(done.archives),
        },
    )
    return {**body, "notes": list(done.notes)} if done.notes else body
