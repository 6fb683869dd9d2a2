"""What others keep to themselves changes nothing that one is told: every reading operation of every dialect, asked
before and after a stranger stores thirty private memories, gives the same bytes.
"""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import pytest

from scrubjay.dialects.cortex import cortex
from scrubjay.dialects.table import DIALECTS, ONLY_REST, find
from scrubjay.engine.engine import Engine
from scrubjay.values.callers import Caller, Role
from scrubjay.values.memory import AccessLevel, NewMemory
from tests.conftest import Clock
from tests.servers.samples import sample

TABLES = [*(find(name) for name in DIALECTS), *map(find, ONLY_REST)]
TEAM = frozenset({"team"})
WATCHERS = {
    "member": Caller(user="ann", role=Role.MEMBER, spaces=TEAM, local=False),
    "member of all spaces": Caller(user="ann", role=Role.MEMBER, spaces=None, local=False),
    "reader": Caller(user="ann", role=Role.READER, spaces=TEAM, local=False),
    "stranger": Caller(user="ann", role=Role.MEMBER, spaces=frozenset({"other"}), local=False),
    "owner of one space": Caller(user="ann", role=Role.OWNER, spaces=TEAM, local=False),
}
BOTH = pytest.mark.parametrize("open_store", ["sqlite", "postgres"], indirect=True)
ASKED = "walrus tusks in the harbour"
PRIVATE = ("tusks", "tusks of another walrus " * 9, "tusks and harbour " * 700)


@pytest.fixture
def team(jay: Engine) -> Engine:
    jay.known_spaces.create("other")
    jay.known_spaces.create("team")
    jay = jay.bound_to(spaces=("team",))
    for number, level in enumerate(AccessLevel):
        ann = {"user_id": "ann", "conversation_id": "talk", "access_level": level}
        jay.store(NewMemory(content=f"Ann saw a walrus in harbour {number}", **ann))
        jay.store(NewMemory(content=f"The harbour has {number} cranes", access_level=level, tags=("pier",)))
    return jay


def store_privately(team: Engine, *, space: str) -> None:
    bob = team.bound_to(caller=Caller(user="bob", role=Role.MEMBER), spaces=(space,))
    private = {"access_level": AccessLevel.PRIVATE, "tags": ("pier", "secret"), "conversation_id": "talk"}
    for number in range(10):
        for text in PRIVATE:
            bob.store(NewMemory(content=f"{number} {text}", **private))


def ask_everything(engine: Engine) -> dict[str, Any]:
    """What every reading operation answers, without what asking itself changes."""
    asked = dict.fromkeys(("query", "search", "question"), ASKED)
    words = {**asked, "workspace": "team", "store": "team", "scope_id": "ann"}
    answers = {}
    for table in TABLES:
        for operation in table.operations.values():
            if operation.changes or operation.streams:
                continue
            for everything in (False, True):
                schema = operation.accepts or operation.takes
                arguments = sample(schema, words, everything=everything)
                if everything:
                    arguments = {name: value for name, value in arguments.items() if name in CHOSEN}
                reply = table.call(engine, operation.name, arguments)
                if reply.stream is None:
                    answers[f"{table.name}.{operation.name} {arguments}"] = without_use(reply.body)
    answers["resources"] = [repr(one) for one in cortex.resources.listed(engine)]
    return answers


CHOSEN = frozenset({"query", "search", "question", "store", "workspace_id", "limit", "explain", "counted"})


USE = re.compile("access|recall|request|execution_time|timestamp|generated|combined")


def without_use(body: Any) -> Any:
    if isinstance(body, dict):
        kept = (name for name in body if not USE.search(name))
        return {name: without_use(body[name]) for name in kept}
    return [without_use(one) for one in body] if isinstance(body, list) else body


@BOTH
@pytest.mark.parametrize("watcher", WATCHERS)
def test_nothing_that_one_is_told_changes_with_what_others_keep_private(team: Engine, watcher: str) -> None:
    engine = team.bound_to(caller=WATCHERS[watcher])
    before = ask_everything(engine)

    store_privately(team, space="other" if watcher == "owner of one space" else "team")

    after = ask_everything(engine)
    assert [name for name in before if json.dumps(before[name]) != json.dumps(after[name])] == []


# --- every count is as many as one can walk through ---


def walk(engine: Engine, dialect: str, tool: str, name: str, **arguments: Any) -> tuple[int, int]:
    """How many a list says that there are, and how many its pages of three hold."""
    found, said = 0, None
    while True:
        page = call_tool(engine, dialect, tool, limit=3, offset=found, **arguments)
        said = page[name] if said is None else said
        assert page[name] == said
        found += len(page["memories"])
        if len(page["memories"]) < 3:
            return said, found


def call_tool(engine: Engine, dialect: str, tool: str, **arguments: Any) -> dict[str, Any]:
    [table] = [table for table in TABLES if table.name == dialect]
    if dialect == "system" and tool == "list_memories":
        arguments = {"pagination": arguments}
    reply = table.call(engine, tool, arguments)
    assert not reply.failed, reply.text
    return reply.body.get("data", reply.body)


@BOTH
@pytest.mark.parametrize("watcher", [name for name in WATCHERS if name != "stranger"])
def test_every_count_is_what_one_can_walk_through(team: Engine, clock: Clock, watcher: str) -> None:
    store_privately(team, space="team")
    [new, old, soon] = [team.store(f"Pier {number} is closed", tags=("pier",)).memory.id for number in range(3)]
    team.supersede(old=old, new=new)
    team.update(soon, expires_at=clock() + timedelta(hours=1))
    for user in ("ann", "bob"):  # a supersession counts for those who see both
        person = team.bound_to(caller=Caller(user=user, role=Role.MEMBER, spaces=TEAM))
        shared = person.store(f"Quay {user} is shared").memory.id
        private = person.store(NewMemory(content=f"Quay {user} is gone", access_level=AccessLevel.PRIVATE)).memory.id
        person.supersede(old=shared, new=private)
    clock.move(days=1)
    engine = team.bound_to(caller=WATCHERS[watcher])

    [space] = [one for one in call_tool(engine, "native", "list_spaces")["spaces"] if one["name"] == "team"]
    [store] = [one for one in call_tool(engine, "native", "list_stores")["stores"] if one["name"] == "team"]
    assert walk(engine, "native", "list_memories", "total") == (space["memories"], space["memories"])
    assert (store["memories"], store["superseded"]) == (space["memories"], space["superseded"])

    [store] = [one for one in call_tool(engine, "cortex", "list_stores")["stores"] if one["name"] == "team"]
    listed = call_tool(engine, "cortex", "list_memories", store="team")["memories"]
    assert store["memory_count"] == len(listed) == space["memories"] + space["superseded"]

    [workspace] = [
        one for one in call_tool(engine, "chimera", "list_workspaces")["workspaces"] if one["name"] == "team"
    ]
    held = walk(engine, "chimera", "list_workspace_memories", "total", workspace_id="team")
    assert held == (workspace["memory_count"], workspace["memory_count"])
    assert call_tool(engine, "chimera", "get_workspace", workspace_id="team")["workspace"] == workspace

    counts = call_tool(engine, "system", "get_memory_stats", scope="global")["statistics"]["count"]
    assert walk(engine, "system", "list_memories", "total_count")[0] == held[0]
    if watcher != "member of all spaces":
        assert counts["active"] - counts["expired"] == held[0]
