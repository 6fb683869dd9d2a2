"""One client's calls take effect in the order in which they came."""

from __future__ import annotations

import anyio
import pytest

from scrubjay.servers.workers import Turns
from tests.servers.peer import HANDSHAKE, Peer

pytestmark = pytest.mark.process


def run(calls, *, wait_for=()):
    """Start calls (name, changes) in order; those in `wait_for` end only after everything that could overtake them."""
    order = []

    async def main():
        turns = Turns()

        async def call(name, changes):
            async with turns.turn(changes=changes):
                for _ in range(20 if name in wait_for else 1):
                    await anyio.lowlevel.checkpoint()
                order.append(name)

        async with anyio.create_task_group() as tasks:
            for name, changes in calls:
                tasks.start_soon(call, name, changes)
                await anyio.lowlevel.checkpoint()

    anyio.run(main)
    return order


def test_a_question_waits_for_the_change_before_it():
    assert run([("store", True), ("find", False)], wait_for={"store"}) == ["store", "find"]


def test_a_change_waits_for_the_questions_before_it():
    assert run([("find", False), ("store", True)], wait_for={"find"}) == ["find", "store"]


def test_changes_keep_their_order():
    assert run([("one", True), ("two", True), ("three", True)], wait_for={"one", "two"}) == ["one", "two", "three"]


def test_questions_do_not_wait_for_each_other():
    assert run([("slow", False), ("quick", False)], wait_for={"slow"}) == ["quick", "slow"]


def test_a_call_that_fails_lets_the_next_one_go():
    async def main():
        turns = Turns()
        with pytest.raises(ValueError, match="broken"):
            async with turns.turn(changes=True):
                raise ValueError("broken")
        async with turns.turn(changes=True):
            return "went on"

    assert anyio.run(main) == "went on"


def test_what_is_sent_in_one_breath_happens_in_that_order(tmp_path):
    with Peer(tmp_path) as peer:
        peer.send("initialize", HANDSHAKE, id=1)
        peer.send("notifications/initialized")
        for number in range(2, 12):
            arguments = {"name": "store_memory", "arguments": {"content": "The ferry leaves at nine"}}
            peer.send("tools/call", arguments, id=number)
        peer.send("tools/call", {"name": "search_memories", "arguments": {"query": "ferry", "limit": 20}}, id=12)

        replies = {reply["id"]: reply["result"] for reply in (peer.read() for _ in range(12))}

    similar = [len(replies[number]["structuredContent"]["similar"]) for number in range(2, 12)]
    assert similar == [0, 1, 2, 3, 3, 3, 3, 3, 3, 3]
    assert len(replies[12]["structuredContent"]["memories"]) == 10
