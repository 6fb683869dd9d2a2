"""System, cold storage: archive memories and restore them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from time import perf_counter

from scrubjay.dialects.base import COUNT, LEFT_OUT, SHARE, TIME, Body, array, flag, present, record, text
from scrubjay.dialects.system.definitions import (
    ID,
    NUMBER,
    SAME_AS,
    code_of,
    input_schema,
    moment,
    success_reply,
    tools,
)
from scrubjay.engine.archive.archiving import Archived, Criteria, Terms
from scrubjay.engine.archive.restoring import BroughtBack, LeftAway, Mode, Restored
from scrubjay.engine.engine import Engine
from scrubjay.errors import ArchiveDamaged, InvalidInput
from scrubjay.values.memory import Category, Tier
from scrubjay.values.store import JobStatus
from scrubjay.values.times import iso

NULLABLE_ID = {"type": ["string", "null"]}


@tools.writes(
    "Archive memories",
    of_one_version=True,
    takes=input_schema("archive_memory"),
    gives={
        "archive_job_id": {**NULLABLE_ID, "description": "null in a dry run"},
        "archived_count": COUNT,
        "memories_archived": array(
            record(
                {
                    "memory_id": ID,
                    "archive_id": {**NULLABLE_ID, "description": "null in a dry run"},
                    "archive_tier": text(enum=[str(tier) for tier in Tier]),
                    "archived_at": TIME,
                    "retrieval_time_estimate_ms": COUNT,
                    "storage_cost_reduction": SHARE,
                }
            )
        ),
        "storage_saved_bytes": COUNT,
        "estimated_monthly_savings": NUMBER,
        "embeddings_retained": flag(),
        "total_cost": NUMBER,
    },
    optional={"dry_run": {"const": True}, "left_out": LEFT_OUT},
)
def archive_memory(engine: Engine, args: Body) -> Body:
    """Move memories to cold storage for long-term retention with reduced access costs and performance. Give exactly
    one of memory_id, memory_ids and auto_archive_criteria; all criteria must match."""
    only_one(args, "memory_id", "memory_ids", "auto_archive_criteria")
    terms = Terms(
        tier=Tier(args.get("archive_tier", "cold")),
        keep_vectors=args.get("retain_embeddings", False),
        reason=args.get("reason"),
    )
    dry_run = args.get("dry_run", False)
    if "auto_archive_criteria" in args:
        done = engine.cold_storage.archive_matching(criteria(args["auto_archive_criteria"]), terms, dry_run=dry_run)
    else:
        done = engine.cold_storage.archive(read_names(args), terms, dry_run=dry_run)
    body = success_reply(
        archive_job_id=done.job,
        archived_count=len(done.memories),
        memories_archived=list(show_plan(done)),
        storage_saved_bytes=done.saved_bytes,
        estimated_monthly_savings=done.monthly_savings,
        embeddings_retained=done.vectors_kept,
        total_cost=done.cost,
    )
    return {**body, "dry_run": True} if dry_run else body


def show_plan(done: Archived) -> Iterable[Body]:
    for one in done.memories:
        yield {
            "memory_id": one.memory,
            "archive_id": one.archive,
            "archive_tier": str(done.tier),
            "archived_at": iso(one.at),
            "retrieval_time_estimate_ms": one.retrieval_ms,
            "storage_cost_reduction": one.cost_reduction,
        }


def criteria(given: Body) -> Criteria:
    """:raises InvalidInput: for a category other than the nine, which the specification's schema lets through"""
    known = {str(category) for category in Category}
    for category in given.get("categories", ()):
        if category not in known:
            raise InvalidInput(
                f"Unknown category {category[:60]!r}.",
                hint=f"Known: {', '.join(sorted(known))}.",
                field="auto_archive_criteria.categories",
            )
    return Criteria(
        inactive_days=int(given["inactive_days"]) if "inactive_days" in given else None,
        below_importance=given.get("low_importance"),
        categories=frozenset(map(Category, given["categories"])) if given.get("categories") else None,
        before=moment(given, "before_date"),
    )


@tools.writes(
    "Restore memories",
    of_one_version=True,
    takes=input_schema(
        "restore_memory",
        version_id=text(
            "With memory_id: go back to this earlier version (previous_version_id of an update)",
            minLength=1,
            maxLength=256,
        ),
    ),
    gives={
        "restore_job_id": ID,
        "status": text(enum=[str(status) for status in JobStatus]),
        "restored_count": COUNT,
        "memories_restored": array(
            record(
                {
                    "memory_id": ID,
                    "archive_id": {**NULLABLE_ID, "description": "null for a memory that was only forgotten"},
                    "restored_at": TIME,
                    "restore_mode": text(enum=[str(mode) for mode in Mode]),
                    "embeddings_regenerated": flag(),
                    "restoration_time_ms": COUNT,
                },
                optional={"same_as": SAME_AS},
            )
        ),
        "total_cost": NUMBER,
        "estimated_time_remaining_ms": COUNT,
    },
    optional={
        "memories_failed": array(
            record(
                {
                    "memory_id": ID,
                    "archive_id": ID,
                    "error": record({"code": text(), "status": COUNT, "message": text()}),
                }
            ),
            description="Those whose archived copy is damaged; the others are restored",
        ),
        "left_out": LEFT_OUT,
    },
)
def restore_memory(engine: Engine, args: Body) -> Body:
    """Retrieve archived memories from cold storage back to active status. Give exactly one of memory_id, archive_id and
    memory_ids; a forgotten memory's id or backup_id restores it too, until it is erased. With version_id an update is
    undone. With priority low it runs in the background: job_status shows its progress."""
    only_one(args, "memory_id", "archive_id", "memory_ids")
    if "version_id" in args:
        return former(engine, args)
    done = engine.cold_storage.restore(
        read_names(args),
        mode=Mode(args.get("restore_mode", "full")),
        embed=args.get("regenerate_embeddings", True),
        reason=args.get("reason"),
        background=args.get("priority") == "low",
    )
    return show_restored(done, engine.conflicts.same_as(*(one.memory for one in done.memories)))


def show_restored(done: Restored, same: Mapping[str, Sequence[str]] | None = None) -> Body:
    return success_reply(
        restore_job_id=done.job,
        status=done.status,
        restored_count=len(done.memories),
        memories_restored=[
            {
                "memory_id": one.memory,
                "archive_id": one.archive,
                "restored_at": iso(one.at),
                "restore_mode": str(done.mode),
                "embeddings_regenerated": one.embedded,
                "restoration_time_ms": one.milliseconds,
                **present(same_as=None if same is None else same.get(one.memory)),
            }
            for one in done.memories
        ],
        total_cost=done.cost,
        estimated_time_remaining_ms=done.remaining_ms,
        **present(memories_failed=list(map(failure, done.left_away)) or None),
    )


def failure(one: LeftAway) -> Body:
    code, status = code_of(ArchiveDamaged)
    error = {"code": code, "status": status, "message": one.why}
    return {"memory_id": one.memory, "archive_id": one.archive, "error": error}


def former(engine: Engine, args: Body) -> Body:
    """A memory as it was in an earlier version, in the shape of a restore."""
    if "memory_id" not in args:
        raise InvalidInput("version_id needs memory_id.", field="version_id")
    begun, before = perf_counter(), engine.get(args["memory_id"])
    memory = engine.restore_version(args["memory_id"], args["version_id"])
    one = BroughtBack(
        memory=memory.id,
        archive=None,
        at=memory.updated_at,
        embedded=memory.content != before.content,
        milliseconds=round((perf_counter() - begun) * 1000),
    )
    done = Restored(job=args["version_id"], status=JobStatus.COMPLETED, mode=Mode.FULL, memories=(one,))
    return show_restored(done, engine.conflicts.same_as(memory.id))


def only_one(args: Body, *names: str) -> None:
    """What the specification says with `oneOf`, which model APIs refuse in a tool's schema."""
    given = [name for name in names if name in args]
    if len(given) != 1:
        instead = f", not {' and '.join(given)}" if given else ""
        raise InvalidInput(f"Give exactly one of {', '.join(names)}{instead}.")


def read_names(args: Body) -> list[str]:
    return args["memory_ids"] if "memory_ids" in args else [args.get("memory_id") or args.get("archive_id", "")]
