"""The dialects behind the protocol's library, in one process: faults, provenance, sizes."""

from __future__ import annotations

import json
import logging
import threading

import anyio
import pytest
from mcp import Client, MCPError
from mcp.types import Implementation

from scrubjay.dialects.memento import memento
from scrubjay.errors import StorageBusy
from scrubjay.servers.mcp.server import build_server
from scrubjay.values.memory import State
from tests.servers.small_dialect import small_dialect

pytestmark = pytest.mark.process

ERAS = pytest.mark.parametrize("mode", ["legacy", "auto"])


def conversation(server, *calls, mode="auto", client="tests"):
    """The results of these calls, each a tool and its arguments, made by a real client one after the other."""

    async def talk():
        async with Client(server, mode=mode, client_info=Implementation(name=client, version="1")) as connected:
            return [await connected.call_tool(tool, arguments) for tool, arguments in calls]

    return anyio.run(talk)


def served(*dialects, engine=None, **options):
    return build_server(dialects, lambda ctx: engine, transport="stdio", **options)


@ERAS
def test_a_fault_of_ours_shows_an_id_and_no_detail(jay, caplog, mode):
    def fall(engine, args):
        """Falls."""
        raise RuntimeError("the key is under the mat")

    [result] = conversation(served(small_dialect(fall=fall), engine=jay), ("fall", {}), mode=mode)

    assert result.is_error
    assert result.structured_content["in"] == "fall"
    assert "mat" not in json.dumps(result.structured_content)
    [record] = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.args[0] in result.structured_content["oops"]
    assert "under the mat" in caplog.text


def test_an_engine_that_cannot_be_opened_is_the_dialects_error(jay):
    attempts = []

    def engine(ctx):
        attempts.append(ctx)
        if len(attempts) == 1:
            raise StorageBusy("Busy just now.")
        return jay

    server = build_server([memento], engine, transport="stdio")

    first, second = conversation(server, ("list_recent_memories", {}), ("list_recent_memories", {}))

    assert first.structured_content == {"error": {"code": "STORAGE_ERROR", "message": "Busy just now."}}
    assert second.structured_content == {"memories": []}


@ERAS
def test_an_unknown_tool_is_the_protocols_error_and_names_the_nearest(jay, mode):
    async def talk():
        async with Client(served(memento, engine=jay), mode=mode) as client:
            with pytest.raises(MCPError, match="Did you mean store_memory") as error:
                await client.call_tool("store_memmory", {})
            return error.value.error.code

    assert anyio.run(talk) == -32602


def test_both_eras_give_the_same_answers(jay):
    """Those that do not depend on time, that is."""
    calls = [
        ("list_recent_memories", {}),
        ("list_recent_memories", {"limit": 51}),
        ("list_recent_memories", {"limits": 5}),
        ("search_memories", {"query": "nothing there"}),
        ("search_memories", {}),
        ("search_memories", {"query": " "}),
        ("store_memory", {"content": "x" * 50_001}),
        ("store_memory", {"content": "x", "source": "other"}),
        ("supersede_memory", {"old_memory_id": "mem_a", "new_memory_id": "mem_b"}),
    ]

    handshake, modern = (
        [(result.is_error, result.structured_content) for result in conversation(server, *calls, mode=mode)]
        for server, mode in ((served(memento, engine=jay), "legacy"), (served(memento, engine=jay), "auto"))
    )

    assert handshake == modern


@ERAS
def test_what_a_client_stores_carries_its_name(jay, mode):
    conversation(served(memento, engine=jay), ("store_memory", {"content": "Tea at five."}), mode=mode, client="teapot")

    [memory] = jay.list()
    assert (memory.provenance.client, memory.provenance.transport) == ("teapot", "stdio")
    assert (memory.provenance.dialect, memory.provenance.caller) == ("memento", "local")


@ERAS
def test_a_client_without_a_name_is_unknown_and_a_long_one_is_cut(jay, mode):
    store = ("store_memory", {"content": "Tea at five."})

    conversation(served(memento, engine=jay), store, mode=mode, client=" ")
    conversation(served(memento, engine=jay), store, mode=mode, client="x" * 1000)

    assert {memory.provenance.client for memory in jay.list()} == {"unknown", "x" * 100}


def test_text_and_structure_say_the_same(jay):
    results = conversation(
        served(memento, engine=jay),
        ("store_memory", {"content": "Grüße 🦜"}),
        ("store_memory", {"content": ""}),
        ("search_memories", {"query": "Grüße"}),
    )

    assert [result.is_error for result in results] == [False, True, False]
    for result in results:
        assert json.loads(result.content[0].text) == result.structured_content


def test_a_reply_past_a_megabyte_carries_fewer_items_and_says_so(jay):
    words = [str(number) + "x" * 300_000 for number in range(5)]

    [result] = conversation(served(small_dialect(), engine=jay), ("echo_words", {"words": words}))

    assert result.structured_content == {"words": words[:3], "left_out": 2}
    assert json.loads(result.content[0].text) == result.structured_content


def test_a_tool_that_is_not_listed_can_be_called(jay):
    server = served(small_dialect(), memento, engine=jay)

    async def talk():
        async with Client(server) as client:
            listed = [tool.name for tool in (await client.list_tools()).tools]
            return listed, await client.call_tool("small_search", {})

    listed, result = anyio.run(talk)

    assert "small_search" not in listed
    assert "memento_store_memory" in listed
    assert not result.is_error


@ERAS
def test_a_write_whose_caller_gave_up_is_whole(jay, mode):
    """The call is finished in its thread, though nobody waits for the answer."""
    entered, go_on = threading.Event(), threading.Event()

    def store_slowly(engine, args):
        """Stores, slowly."""
        entered.set()
        go_on.wait(60)
        engine.store("Finished anyway.")
        return {}

    server = served(small_dialect(store_slowly=store_slowly), engine=jay)

    async def give_up():
        async with Client(server, mode=mode) as client, anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "store_slowly", {})
            await anyio.to_thread.run_sync(entered.wait, 60)
            tasks.cancel_scope.cancel()
            go_on.set()

    anyio.run(give_up)

    [memory] = jay.list()
    assert memory.state is State.ACTIVE
