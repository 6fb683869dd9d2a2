"""Kinds of calls, and how many of each a caller has per minute: one budget per kind, whatever the dialect calls it.

The first ten numbers are those of the System specification. Every operation belongs to one kind (a test says so). An
operation counts once, however much it does, since that is how the specification means its numbers for archive, restore,
consolidate and the like; only stores sent as a batch count one by one, and a member's import is one. An owner's is not:
owners move whole stores.
"""

from __future__ import annotations

from typing import Any

from scrubjay.dialects.base import Dialect, Operation
from scrubjay.values.callers import Caller, Role
from scrubjay.values.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Budget:
    kind: str
    per_minute: int


PER_MINUTE = {
    "store": 100,
    "recall": 1000,
    "update": 200,
    "forget": 50,
    "consolidate": 10,
    "list": 500,
    "statistics": 100,
    "sync": 10,
    "archive": 20,
    "restore": 20,
    "read": 1000,  # one memory or what is around it
    "export": 100,
    "import": 100,
    "converse": 100,
    "manage": 100,  # keys, spaces, workspaces, categories, jobs, upkeep
    "exchange": 3000,  # between two stores that sync: the first sync of a large one sends as much as it can
}

READ = Budget("read", PER_MINUTE["read"])

KINDS = {
    "store": """
        scrubjay.remember
        memento.store_memory cortex.add_memory system.store_memory mama.save mama.save_decision mama.save_checkpoint
        chimera.remember chimera.create_memory chimera.batch_remember native.store_memory
    """,
    "recall": """
        scrubjay.recall
        memento.search_memories system.recall_memories mama.search mama.recall_decision mama.suggest_decision
        chimera.search chimera.inject chimera.build_context native.search
    """,
    "update": """
        scrubjay.settle scrubjay.revise scrubjay.undo
        memento.supersede_memory cortex.update_memory cortex.move_memory system.update_memory mama.update
        mama.update_outcome chimera.update_memory native.update_memory native.recover_memory native.restore_version
        native.supersede_memory native.release_memory native.keep_both native.mark_same native.reopen_conflict
        native.bulk_update native.undo_bulk native.tidy
        native.resolve_sync_conflict native.accept_suggestion native.drop_suggestion
    """,
    "forget": """
        scrubjay.forget
        cortex.remove_memory cortex.prune_memories system.forget_memory chimera.delete_memory native.forget_memory
        native.bulk_forget native.prune
    """,
    "consolidate": "system.consolidate_memories",
    "list": """
        scrubjay.recent
        memento.list_recent_memories cortex.list_memories cortex.get_recent_memories system.list_memories
        mama.list_decisions chimera.list_memories chimera.list_workspace_memories native.list_memories
        native.list_topics native.list_conflicts native.list_duplicates native.preview_bulk native.list_tags
        native.list_suggestions
    """,
    "statistics": "system.get_memory_stats native.get_statistics",
    "sync": "system.sync_memories native.run_sync",
    "archive": "system.archive_memory",
    "restore": "system.restore_memory",
    "read": """
        scrubjay.brief
        cortex.get_memory cortex.list_stores system.job_status mama.load_checkpoint chimera.get_memory
        chimera.list_conversations chimera.get_conversation chimera.list_messages chimera.list_workspaces
        chimera.get_workspace native.get_memory native.shown_to native.list_versions native.diff_versions
        native.list_links native.get_graph native.get_network native.get_chain native.follow native.audit
        native.list_keys native.list_grants native.list_spaces native.list_stores native.list_jobs native.get_job
        native.list_endpoints native.list_sync_conflicts native.check native.brief
    """,
    "export": "native.export",
    "import": "native.import",
    "converse": """
        chimera.create_conversation chimera.update_conversation chimera.delete_conversation chimera.clear_conversation
        chimera.send_message chimera.inject_memory chimera.toggle_memory chimera.remove_injection
    """,
    "manage": """
        cortex.create_store cortex.create_category cortex.set_category_description cortex.delete_category
        cortex.reindex_store system.job_cancel chimera.create_workspace chimera.update_workspace
        chimera.delete_workspace native.create_key native.revoke_key native.rotate_key native.grant_space
        native.withdraw_grant native.create_space native.drop_space native.add_endpoint native.remove_endpoint
        native.cancel_job native.reindex_store native.backup native.reembed native.rebuild
    """,
    "exchange": """
        native.sync_greet native.sync_changes native.sync_stamps native.sync_links native.sync_fetch native.sync_take
        native.sync_renew
    """,
}
KIND_OF = {name: kind for kind, names in KINDS.items() for name in names.split()}

# Where the memories of a batch are in the arguments.
BATCHES = {"scrubjay.remember": "facts", "chimera.batch_remember": "memories"}
BATCHES_OF_MEMBERS = {"native.import": "lines"}


def cost_of(caller: Caller, dialect: Dialect, operation: Operation, arguments: Any) -> tuple[Budget, int]:
    """The budget that a call counts against, and as how many. The arguments have not been checked yet."""
    name = _name(dialect, operation)
    if name in BATCHES_OF_MEMBERS and caller.role is not Role.OWNER:
        return Budget("store", PER_MINUTE["store"]), _items(arguments, BATCHES_OF_MEMBERS[name])
    return budget_of(dialect, operation), _items(arguments, BATCHES.get(name))


def budget_of(dialect: Dialect, operation: Operation) -> Budget:
    kind = KIND_OF.get(_name(dialect, operation), "manage" if operation.changes else "read")
    return Budget(kind, PER_MINUTE[kind])


def _items(arguments: Any, batch: str | None) -> int:
    items = arguments.get(batch) if batch is not None and isinstance(arguments, dict) else None
    return max(1, len(items)) if isinstance(items, list) else 1


def _name(dialect: Dialect, operation: Operation) -> str:
    """Some operations have a second name, prefixed with the dialect's."""
    return f"{dialect.name}.{operation.name.removeprefix(f'{dialect.name}_')}"
