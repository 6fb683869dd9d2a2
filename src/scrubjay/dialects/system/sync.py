"""System, sync: the same memories in several stores. The input schema and its descriptions are the specification's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay.dialects.base import COUNT, LEFT_OUT, TIME, Body, Reach, array, record, text
from scrubjay.dialects.system.definitions import ID, input_schema, moment, success_reply, tools
from scrubjay.engine.engine import Engine
from scrubjay.engine.sync.run import Keep, Resolution, SyncFilter, SyncRequest, SyncType
from scrubjay.errors import InvalidInput
from scrubjay.values.memory import Category
from scrubjay.values.store import Job

if TYPE_CHECKING:
    from scrubjay.engine.sync.run import Synced

KEEP = ("source", "destination", "newest", "merge")
SUMMARY = [
    "total_checked",
    "synced",
    "created",
    "updated",
    "deleted",
    "conflicts",
    "conflicts_resolved",
    "skipped",
    "errors",
]


@tools.writes(
    "Sync memories",
    destructive=True,  # deletions are passed on, and the losing side of a conflict is overwritten
    idempotent=True,
    reach=Reach.LOCAL,
    takes=input_schema(
        "sync_memories",
        decisions={
            "type": "array",
            "maxItems": 100,
            "items": record({"memory_id": text(), "keep": text(enum=list(KEEP))}),
            "description": "How to resolve conflicts that an earlier manual sync reported (409)",
        },
    ),
    gives={
        "sync_id": ID,
        "sync_type": text(enum=[str(one) for one in SyncType]),
        "source": text(),
        "destination": text(),
        "started_at": TIME,
    },
    optional={
        "completed_at": TIME,
        "duration_ms": COUNT,
        "summary": record(dict.fromkeys(SUMMARY, COUNT)),
        "conflicts_handled": array(
            record(
                {
                    "memory_id": ID,
                    "resolution": text(),
                    "winner": text(enum=["source", "destination", "both", "none"]),
                }
            )
        ),
        "next_sync_recommended": TIME,
        "job_id": text("Id of the background job, for job_status"),
        "status": text(),
        "left_out": LEFT_OUT,
    },
)
def sync_memories(engine: Engine, args: Body) -> Body:
    """Force synchronization of memories across different surfaces, devices, or storage backends."""
    filters = args.get("filters", {})
    request = SyncRequest(
        type=SyncType(args.get("sync_type", "incremental")),
        source=args.get("source", "local"),
        destination=args.get("destination", "cloud"),
        filter=SyncFilter(
            categories=tuple(map(Category, filters["categories"])) if filters.get("categories") else None,
            user_id=filters.get("user_id"),
            conversation_id=filters.get("conversation_id"),
            modified_since=moment(filters, "modified_since"),
        ),
        resolution=Resolution(args.get("conflict_resolution", "newest_wins")),
        dry_run=args.get("dry_run", False),
        decisions=decisions(args),
    )
    if not args.get("background"):
        return show_status(engine.sync.run(request))
    if request.dry_run:
        told = "A dry run cannot run in the background."
        raise InvalidInput(told, hint="Omit dry_run or background.", field="dry_run")
    return show_begun(engine.sync.start(request), request)


def decisions(args: Body) -> dict[str, Keep]:
    here, there = ("source", "destination") if args.get("source", "local") == "local" else ("destination", "source")
    meant = {here: Keep.OURS, there: Keep.THEIRS, "newest": Keep.NEWEST, "merge": Keep.MERGED}
    return {one["memory_id"]: meant[one["keep"]] for one in args.get("decisions", ())}


def show_status(synced: Synced) -> Body:
    request = synced.request
    return success_reply(
        sync_id=synced.id,
        sync_type=request.type,
        source=request.source,
        destination=request.destination,
        started_at=synced.started_at,
        completed_at=synced.completed_at,
        duration_ms=synced.duration_ms,
        summary={
            "total_checked": synced.checked,
            "synced": synced.created + synced.updated + synced.deleted,
            "created": synced.created,
            "updated": synced.updated,
            "deleted": synced.deleted,
            "conflicts": len(synced.conflicts),
            "conflicts_resolved": len(synced.conflicts) - len(synced.waiting),
            "skipped": synced.skipped,
            "errors": synced.errors,
        },
        conflicts_handled=[
            {"memory_id": one.memory, "resolution": str(one.resolution), "winner": str(one.winner)}
            for one in synced.conflicts
        ],
        next_sync_recommended=synced.next_at,
    )


def show_begun(job: Job, request: SyncRequest) -> Body:
    return success_reply(
        sync_id=job.id,
        job_id=job.id,
        status=job.status,
        sync_type=request.type,
        source=request.source,
        destination=request.destination,
        started_at=job.created_at,
    )
