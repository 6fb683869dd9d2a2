"""Whatever a person can do on the command line, REST can do; what it cannot, and why, stands here."""

from __future__ import annotations

import click
import pytest

from scrubjay.cli.main import main
from scrubjay.dialects.table import DIALECTS, ONLY_REST, find
from scrubjay.servers.http.rest import addresses

# By command: the operations that do the same, as dialect.operation.
REST = {
    "store": "native.store_memory",
    "update": "native.update_memory",
    "supersede": "native.supersede_memory",
    "conflicts": "native.list_conflicts native.supersede_memory native.keep_both native.mark_same "
    "native.reopen_conflict",
    "consolidate": "system.consolidate_memories",
    "brief": "native.brief",
    "suggestions": "native.list_suggestions native.accept_suggestion native.drop_suggestion",
    "search": "native.search",
    "list": "native.list_memories",
    "tags": "native.list_tags",
    "stats": "native.get_statistics",
    "edit": "native.get_memory native.update_memory",
    "show": "native.get_memory native.list_links",
    "history": "native.list_versions native.restore_version",
    "duplicates": "native.list_duplicates",
    "decisions": "native.list_topics native.get_chain",
    "forget": "native.forget_memory native.recover_memory native.preview_bulk native.bulk_forget native.undo_bulk",
    "undo": "native.recover_memory native.reopen_conflict native.restore_version native.undo_bulk",
    "prune": "native.prune",
    "archive": "system.archive_memory system.restore_memory",
    "export": "native.export",
    "import": "native.import",
    "backup": "native.backup",
    "sync add": "native.add_endpoint",
    "sync list": "native.list_endpoints",
    "sync remove": "native.remove_endpoint",
    "sync run": "native.run_sync",
    "sync conflicts": "native.list_sync_conflicts",
    "sync resolve": "native.resolve_sync_conflict",
    "keys create": "native.create_key",
    "keys list": "native.list_keys",
    "keys revoke": "native.revoke_key",
    "keys rotate": "native.rotate_key",
    "audit": "native.audit native.shown_to",
    "doctor": "native.check native.rebuild",
    "jobs list": "native.list_jobs",
    "jobs show": "native.get_job",
    "jobs cancel": "native.cancel_job",
    "folders list": "cortex.list_stores",
    "folders create": "cortex.create_store",
    "folders reindex": "native.reindex_store",
    "reembed": "native.reembed",
    "tidy": "native.tidy",
    "spaces create": "native.create_space",
    "spaces list": "native.list_spaces",
    "spaces grant": "native.grant_space",
    "spaces grants": "native.list_grants",
    "spaces revoke": "native.withdraw_grant",
}
ONLY_TYPED = {
    "mcp": "is a server itself",
    "serve": "is the server itself",
    "open": "starts a browser on this machine",
    "completion": "is for shells",
    "hook": "is run by a client, next to it",
    "hooks log": "is a file of this machine",
    "install": "changes the files of this machine's clients",
    "config": "is about the files of this machine's clients",
    "settings": "are those of the machine, and may hold secrets",
    "restore": "replaces the store, so no server may have it open",
    "copy": "works on stores that no server has open",
    "model check": "is about files of the machine",
    "model list": "is about files of the machine",
    "model pull": "is about files of the machine",
    "model status": "is about processes of the machine",
    "keys open": "is for this machine's owner",
    "sync mend-clock": "is for this machine's owner",
    "jobs run": "is what a server does by itself",
    "folders add": "names a folder: only this machine's owner does (DESIGN, Folders)",
    "folders mirror": "names a folder: only this machine's owner does (DESIGN, Folders)",
    "folders remove": "is for this machine's owner",
}
OPERATIONS = {
    f"{one.dialect.name}.{one.operation.name}" for one in addresses([*map(find, DIALECTS), *map(find, ONLY_REST)])
}


def commands(group: click.Group, before: str = ""):
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}"


@pytest.mark.parametrize("command", list(commands(main)))
def test_every_command_has_its_operation_or_its_reason(command):
    assert (command in REST) != (command in ONLY_TYPED)
    assert set(REST.get(command, "").split()) <= OPERATIONS


def test_the_table_names_no_command_that_is_gone():
    assert {*REST, *ONLY_TYPED} == set(commands(main))
