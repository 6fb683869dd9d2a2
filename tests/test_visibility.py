"""Who sees superseded, expired, archived and deleted memories: the table of the design, a test per cell.

Each dialect adds its rows here; a cell is (verb, condition) and what the verb does with such a memory.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from scrubjay.dialects.agent.tools import scrubjay
from scrubjay.dialects.chimera.memories import chimera
from scrubjay.dialects.cortex import cortex
from scrubjay.dialects.mama import mama
from scrubjay.dialects.memento import memento
from scrubjay.dialects.system.memories import system

TEXT = "The harbour master is called Ottilie"


class World:
    """One memory in a given condition, and a healthy one beside it."""

    def __init__(self, engine, clock):
        self.engine = engine
        self.clock = clock
        self.it = engine.store(TEXT, expires_at=clock() + timedelta(days=1)).memory.id
        self.path = engine.get(self.it).path
        self.other = engine.store("The lighthouse keeper retired").memory.id

    def become(self, condition):
        engine = self.engine
        if condition == "superseded":
            engine.supersede(old=self.it, new=self.other)
        elif condition == "expired":
            self.clock.move(days=2)
        elif condition == "archived":
            engine.cold_storage.archive([self.it])
        elif condition == "deleted":
            engine.forget(self.it)
        elif condition == "purged":
            engine.forget(self.it, hard=True)

    def call(self, tool, **arguments):
        return memento.call(self.engine, tool, arguments)


class WorldOfDecisions(World):
    """The same with a decision, whose successor is on its own topic."""

    def __init__(self, engine, clock):
        self.engine = engine
        self.clock = clock
        soon = clock() + timedelta(days=1)
        self.it = engine.decisions.save("harbour", TEXT, reasoning="She won", expires_at=soon).memory.id
        self.other = engine.decisions.save("lighthouse", "The lighthouse keeper retired").memory.id


class WorldOfCheckpoints(World):
    def __init__(self, engine, clock):
        self.engine = engine
        self.clock = clock
        self.other = engine.store("The lighthouse keeper retired").memory.id
        soon = clock() + timedelta(days=1)
        self.it = engine.decisions.checkpoint("Painting the pier", expires_at=soon).memory.id


def memento_search(world):
    found = world.call("search_memories", query="Who is the harbour master?").body["memories"]
    return "shown" if world.it in [memory["id"] for memory in found] else "hidden"


def memento_recent(world):
    listed = world.call("list_recent_memories").body["memories"]
    return "shown" if world.it in [memory["id"] for memory in listed] else "hidden"


def memento_similar(world):
    similar = world.call("store_memory", content=TEXT).body["similar"]
    return "shown" if world.it in [memory["id"] for memory in similar] else "hidden"


def memento_supersede(world):
    newer = world.engine.store("The harbour master is called Ada").memory.id
    reply = world.call("supersede_memory", old_memory_id=world.it, new_memory_id=newer)
    return "not found" if reply.failed and reply.body["error"]["code"] == "MEMORY_NOT_FOUND" else "ok"


def agent_call(world, tool, **arguments):
    """Whether the memory is among those of the reply, and how its state is told."""
    reply = scrubjay.call(world.engine, tool, arguments)
    if reply.failed:
        return reply.body["error"]["code"].replace("_", " ")
    memories = reply.body.get("memories", [one for part in reply.body.get("sections", ()) for one in part["memories"]])
    states = [memory["state"] for memory in memories if memory["id"] == world.it]
    return {"current": "shown", "superseded": "marked"}.get(states[0], states[0]) if states else "hidden"


def agent_recall(world):
    return agent_call(world, "recall", question="Who is the harbour master?")


def agent_recall_outdated(world):
    return agent_call(world, "recall", question="Who is the harbour master?", outdated=True)


def agent_recall_by_id(world):
    return agent_call(world, "recall", question=world.it)


def agent_recent(world):
    return agent_call(world, "recent")


def agent_brief(world):
    return agent_call(world, "brief")


def agent_undo(world):
    reply = scrubjay.call(world.engine, "undo", {"id": world.it})
    return reply.body["error"]["code"].replace("_", " ") if reply.failed else reply.body["undone"]


def system_call(world, tool, **arguments):
    return system.call(world.engine, tool, arguments)


def status(reply):
    return str(reply.body["error"]["status"]) if reply.failed else "ok"


def among(world, reply):
    found = [memory for memory in reply.body["memories"] if memory["memory_id"] == world.it]
    if not found:
        return "hidden"
    return "marked" if "superseded_by" in found[0] else "shown"


def system_recall(world):
    return among(world, system_call(world, "recall_memories", query="Who is the harbour master?"))


def system_recall_with_archived(world):
    return among(
        world, system_call(world, "recall_memories", query="Who is the harbour master?", include_archived=True)
    )


def system_list(world):
    return among(world, system_call(world, "list_memories"))


def system_list_of_every_status(world):
    every = {"status": ["active", "archived", "deleted"]}
    return among(world, system_call(world, "list_memories", filters=every))


def system_update(world):
    return status(system_call(world, "update_memory", memory_id=world.it, updates={"importance": 0.9}))


def system_forget(world):
    return status(system_call(world, "forget_memory", memory_id=world.it))


def system_forget_hard(world):
    return status(system_call(world, "forget_memory", memory_id=world.it, hard_delete=True))


def system_consolidate(world):
    alike = world.engine.store("The harbour master is called Ottilie Brandt").memory.id
    arguments = {"memory_ids": [world.it, alike], "consolidation_strategy": "merge_all"}
    return status(system_call(world, "consolidate_memories", **arguments))


def system_archive(world):
    return status(system_call(world, "archive_memory", memory_id=world.it))


def system_restore(world):
    return status(system_call(world, "restore_memory", memory_id=world.it))


def system_stats(world):
    counts = system_call(world, "get_memory_stats", metrics=["count"]).body["statistics"]["count"]
    return " ".join(name for name in ("active", "archived", "deleted", "expired") if counts[name] > (name == "active"))


def system_duplicate(world):
    return "blocks" if system_call(world, "store_memory", content=TEXT).failed else "free"


def cortex_call(world, tool, **arguments):
    return cortex.call(world.engine, tool, {"store": "default", **arguments})


def cortex_outcome(reply):
    if reply.failed:
        words = {"MEMORY_NOT_FOUND": "not found", "MEMORY_EXPIRED": "expired"}
        return words.get(reply.body["error"]["code"], "refused")
    return "ok"


def cortex_get(world):
    reply = cortex_call(world, "get_memory", path=world.path)
    return "marked" if not reply.failed and "superseded_by" in reply.body["metadata"] else cortex_outcome(reply)


def cortex_listed(world, **options):
    listed = cortex_call(world, "list_memories", **options).body["memories"]
    found = [memory for memory in listed if memory["path"] == world.path]
    return ("marked" if "superseded_by" in found[0] else "shown") if found else "hidden"


def cortex_list(world):
    return cortex_listed(world)


def cortex_list_with_expired(world):
    return cortex_listed(world, include_expired=True)


def cortex_update(world):
    return cortex_outcome(cortex_call(world, "update_memory", path=world.path, tags=["new"]))


def cortex_move(world):
    return cortex_outcome(cortex_call(world, "move_memory", from_path=world.path, to_path="else/where"))


def cortex_remove(world):
    return cortex_outcome(cortex_call(world, "remove_memory", path=world.path))


def cortex_add(world):
    return cortex_outcome(cortex_call(world, "add_memory", path=world.path, content="Another text"))


def cortex_prune(world):
    pruned = cortex_call(world, "prune_memories").body["pruned"]
    return "pruned" if world.path in [one["path"] for one in pruned] else "untouched"


def in_chimera(world, tool, name, **arguments):
    found = chimera.call(world.engine, tool, arguments).body["data"][name]
    mine = [memory for memory in found if memory["id"] == world.it.replace("mem_", "memory-")]
    return ("marked" if "superseded_by" in mine[0] else "shown") if mine else "hidden"


def chimera_search(world):
    return in_chimera(world, "search", "results", query="Who is the harbour master?")


def chimera_inject(world):
    return in_chimera(world, "inject", "memories", conversation_id="c1")


def chimera_context(world):
    return in_chimera(world, "build_context", "memories", conversation_id="c1")


def chimera_list(world):
    return in_chimera(world, "list_memories", "memories", conversation_id="c1")


def sync(world):
    """What another store has of it after a sync."""
    import tempfile

    from scrubjay.engine.access import EVERYTHING
    from scrubjay.engine.parts import engine_on
    from scrubjay.engine.sync.local import StorePeer
    from scrubjay.stores.sqlite.store import SqliteStore

    with tempfile.TemporaryDirectory() as folder, engine_on(SqliteStore(Path(folder) / "other.db"), None) as other:

        def connect(_url, _create):
            return StorePeer(other.records, now=world.clock, user="local", owned=False)

        world.engine.parts.connect, world.engine.parts.endpoints = connect, {"other": "other"}
        world.engine.sync.run(destination="other")
        if other.records.get([world.it], EVERYTHING):
            return "travels"
        return "tombstone" if world.it in other.records.sync.stamps([world.it], EVERYTHING) else "stays"


CELLS = {
    #                             active    superseded expired  archived  deleted      purged
    memento_search:              ("shown", "hidden", "hidden", "hidden", "hidden", "hidden"),
    memento_recent:              ("shown", "hidden", "hidden", "hidden", "hidden", "hidden"),
    memento_similar:             ("shown", "hidden", "hidden", "hidden", "hidden", "hidden"),
    memento_supersede:           ("ok", "ok", "ok", "ok", "not found", "not found"),
    agent_recall:                ("shown", "hidden", "hidden", "hidden", "hidden", "hidden"),
    agent_recall_outdated:       ("shown", "marked", "hidden", "hidden", "hidden", "hidden"),
    agent_recall_by_id:          ("shown", "marked", "expired", "archived", "not found", "not found"),
    agent_recent:                ("shown", "hidden", "hidden", "hidden", "hidden", "hidden"),
    agent_brief:                 ("shown", "hidden", "hidden", "hidden", "hidden", "hidden"),
    agent_undo:                  ("conflict", "superseded", "conflict", "conflict", "forgotten", "not found"),
    system_recall:               ("shown", "hidden", "hidden", "hidden", "hidden", "hidden"),
    system_recall_with_archived: ("shown", "hidden", "hidden", "shown", "hidden", "hidden"),
    system_list:                 ("shown", "marked", "hidden", "hidden", "hidden", "hidden"),
    system_list_of_every_status: ("shown", "marked", "hidden", "shown", "shown", "hidden"),
    system_update:               ("ok", "ok", "ok", "409", "404", "404"),
    system_forget:               ("ok", "ok", "ok", "ok", "404", "404"),
    system_forget_hard:          ("ok", "ok", "ok", "ok", "ok", "404"),
    system_consolidate:          ("ok", "422", "422", "422", "404", "404"),
    system_archive:              ("ok", "ok", "422", "409", "404", "404"),
    system_restore:              ("409", "409", "409", "ok", "ok", "404"),
    system_stats:                ("active", "active", "active expired", "archived", "deleted", "deleted"),
    cortex_get:                  ("ok", "marked", "expired", "not found", "not found", "not found"),
    cortex_list:                 ("shown", "marked", "hidden", "hidden", "hidden", "hidden"),
    cortex_list_with_expired:    ("shown", "marked", "shown", "hidden", "hidden", "hidden"),
    cortex_update:               ("ok", "ok", "ok", "not found", "not found", "not found"),
    cortex_move:                 ("ok", "ok", "ok", "not found", "not found", "not found"),
    cortex_remove:               ("ok", "ok", "ok", "not found", "not found", "not found"),
    cortex_add:                  ("refused", "refused", "refused", "ok", "ok", "ok"),
    cortex_prune:                ("untouched", "untouched", "pruned", "untouched", "untouched", "untouched"),
    system_duplicate:            ("blocks", "free", "free", "blocks", "free", "free"),
    chimera_search:              ("shown", "hidden", "hidden", "hidden", "hidden", "hidden"),
    sync:                        ("travels", "travels", "travels", "travels", "travels", "tombstone"),
}  # fmt: skip
CONDITIONS = ("active", "superseded", "expired", "archived", "deleted", "purged")


@pytest.mark.parametrize(
    ("verb", "condition", "expected"),
    [
        pytest.param(verb, condition, expected, id=f"{verb.__name__}-{condition}")
        for verb, row in CELLS.items()
        for condition, expected in zip(CONDITIONS, row, strict=True)
    ],
)
def test_who_sees_what(jay, clock, verb, condition, expected):
    world = World(jay, clock)
    world.become(condition)

    assert verb(world) == expected


# --- in a conversation ---


class WorldOfConversations(World):
    """The same with the memory put into a conversation while all is well."""

    def __init__(self, engine, clock):
        super().__init__(engine, clock)
        engine.conversations.link("c1", self.it)


CONVERSATION_CELLS = {
    #                 active    superseded expired  archived  deleted      purged
    chimera_inject:  ("shown", "hidden", "hidden", "hidden", "hidden", "hidden"),
    chimera_context: ("shown", "hidden", "hidden", "hidden", "hidden", "hidden"),
    chimera_list:    ("shown", "marked", "hidden", "hidden", "hidden", "hidden"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("verb", "condition", "expected"),
    [
        pytest.param(verb, condition, expected, id=f"{verb.__name__}-{condition}")
        for verb, row in CONVERSATION_CELLS.items()
        for condition, expected in zip(CONDITIONS, row, strict=True)
    ],
)
def test_who_sees_what_in_a_conversation(jay, clock, verb, condition, expected):
    world = WorldOfConversations(jay, clock)
    world.become(condition)

    assert verb(world) == expected


# --- decisions and checkpoints ---------------------------------------------------------------------------------------


def mama_call(world, tool, **arguments):
    return mama.call(world.engine, tool, arguments)


def mama_row(world, **arguments):
    for row in mama_call(world, "search", **arguments).body["results"]:
        if row.get("decision") == TEXT:
            return "marked" if "superseded_by" in row else "shown"
    return "hidden"


def mama_search(world):
    return mama_row(world, query="Who is the harbour master?")


def mama_list(world):
    return mama_row(world)


def mama_update(world):
    reply = mama_call(world, "update", id=world.it, outcome="success")
    if not reply.failed:
        return "ok"
    return {"not_found": "not found"}.get(reply.body["error"]["code"], "error")


def mama_predecessor(world):
    """Whether a new decision on the topic outdates this one."""
    new = mama_call(world, "save", type="decision", topic="harbour", decision="Ada leads", reasoning="She won").body
    return "chained" if world.engine.get(new["id"]).supersedes == world.it else "skipped"


def mama_checkpoint(world):
    return "hidden" if mama_call(world, "load_checkpoint").body["checkpoint"] is None else "shown"


DECISION_CELLS = {
    #                  active     superseded expired    archived   deleted      purged
    mama_search:      ("shown", "marked", "hidden", "hidden", "hidden", "hidden"),
    mama_list:        ("shown", "marked", "hidden", "hidden", "hidden", "hidden"),
    mama_update:      ("ok", "ok", "ok", "error", "not found", "not found"),
    mama_predecessor: ("chained", "skipped", "chained", "chained", "skipped", "skipped"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("verb", "condition", "expected"),
    [
        pytest.param(verb, condition, expected, id=f"{verb.__name__}-{condition}")
        for verb, row in DECISION_CELLS.items()
        for condition, expected in zip(CONDITIONS, row, strict=True)
    ],
)
def test_who_sees_which_decision(jay, clock, verb, condition, expected):
    world = WorldOfDecisions(jay, clock)
    world.become(condition)

    assert verb(world) == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [("active", "shown"), ("expired", "hidden"), ("archived", "hidden"), ("deleted", "hidden"), ("purged", "hidden")],
)
def test_which_checkpoint_is_loaded(jay, clock, condition, expected):
    world = WorldOfCheckpoints(jay, clock)
    world.become(condition)

    assert mama_checkpoint(world) == expected
