"""What an update says and leaves behind: relations, versions that can be used, nothing where nothing changes."""

from __future__ import annotations

from scrubjay.dialects.table import find
from scrubjay.dialects.validation import Checker
from scrubjay.values.memory import LinkKind

system = find("system")


def call(jay, tool, **arguments):
    reply = system.call(jay, tool, arguments)
    Checker(system.operations[tool].gives).check(reply.body)
    return reply.body


def stored(jay, content, **more) -> str:
    return call(jay, "store_memory", content=content, **more)["memory_id"]


def related(jay, id) -> set[str]:
    return {link.target for link in jay.links(id) if link.kind is LinkKind.RELATED and link.given and link.stands}


def test_an_update_can_change_relations(jay):
    tea, cup, pot = stored(jay, "Tea is at four"), stored(jay, "The cup is blue"), stored(jay, "The pot is green")

    body = call(jay, "update_memory", memory_id=tea, updates={"related_memory_ids": [cup]})
    assert body["updated_fields"] == ["related_memory_ids"]
    assert body["version"] == 1
    assert related(jay, tea) == {cup}

    call(jay, "update_memory", memory_id=tea, updates={"related_memory_ids": [pot], "importance": 0.9})
    assert related(jay, tea) == {pot}

    call(jay, "update_memory", memory_id=tea, updates={"related_memory_ids": []})
    assert related(jay, tea) == set()


def test_a_relation_with_an_unknown_memory_changes_nothing(jay):
    tea = stored(jay, "Tea is at four")

    error = call(jay, "update_memory", memory_id=tea, updates={"related_memory_ids": ["mem_none"], "importance": 0.9})

    assert error["error"]["details"]["field"] == "updates.related_memory_ids"
    assert jay.get(tea).version == 1


def test_an_update_that_changes_nothing_makes_no_version(jay):
    tea = stored(jay, "Tea is at four", metadata={"tags": ["tea"], "importance": 0.5})

    body = call(jay, "update_memory", memory_id=tea, updates={"content": "Tea is at four", "importance": 0.5})

    assert body["version"] == 1
    assert body["updated_fields"] == []
    assert "previous_version_id" not in body
    assert jay.history(tea) == []


def test_a_former_version_is_brought_back_by_its_id(jay):
    tea = stored(jay, "Tea is at four")
    previous = call(jay, "update_memory", memory_id=tea, updates={"content": "Tea is at five"})["previous_version_id"]

    body = call(jay, "restore_memory", memory_id=tea, version_id=previous)

    assert body["memories_restored"][0]["memory_id"] == tea
    assert jay.get(tea).content == "Tea is at four"
    assert jay.get(tea).version == 3


def test_a_version_of_another_memory_is_not_found(jay):
    tea, cup = stored(jay, "Tea is at four"), stored(jay, "The cup is blue")
    previous = call(jay, "update_memory", memory_id=cup, updates={"content": "The cup is red"})["previous_version_id"]

    assert call(jay, "restore_memory", memory_id=tea, version_id=previous)["error"]["status"] == 404
    assert jay.get(tea).content == "Tea is at four"


def test_the_expected_version_is_advertised():
    described = system.operations["update_memory"]

    assert "description" in described.takes["properties"]["expected_version"]
    assert "expected_version" in described.description


def test_what_has_expired_already_is_not_taken(jay):
    past = "2020-01-01T00:00:00Z"
    tea = stored(jay, "Tea is at four")

    new = call(jay, "store_memory", content="Cake", metadata={"expires_at": past})
    changed = call(jay, "update_memory", memory_id=tea, updates={"expires_at": past})

    assert (new["error"]["status"], new["error"]["details"]["field"]) == (400, "metadata.expires_at")
    assert (changed["error"]["status"], changed["error"]["details"]["field"]) == (400, "updates.expires_at")
    assert jay.get(tea).expires_at is None


def test_times_may_be_written_in_small_letters(jay):
    tea = stored(jay, "Tea is at four", metadata={"expires_at": "2999-01-01t00:00:00z"})

    assert jay.get(tea).expires_at.year == 2999


def test_statistics_of_everything_have_no_id(jay):
    error = call(jay, "get_memory_stats", scope="global", scope_id="ann")["error"]

    assert (error["status"], error["details"]["field"]) == (400, "scope_id")


def test_a_duplicate_of_an_archived_memory_is_to_be_restored(jay):
    tea = stored(jay, "Tea is at four")
    call(jay, "archive_memory", memory_id=tea)

    error = call(jay, "store_memory", content="Tea is at four")["error"]

    assert error["details"]["memory_id"] == tea
    assert error["details"]["hint"] == "Restore that one instead."
