"""Ordinary requests over stdio are answered without the protocol's library, and in its words."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
import time
from queue import SimpleQueue

import pytest

from scrubjay.dialects.table import DIALECTS, find
from scrubjay.errors import StorageBusy
from scrubjay.servers.mcp.server import run_streams
from scrubjay.servers.stdio.front import REPLAYED
from scrubjay.servers.stdio.plain import VERSIONS, Plain
from tests.servers.peer import ENVELOPE, HANDSHAKE, environment
from tests.servers.small_dialect import small_dialect

pytestmark = pytest.mark.process

SECONDS = 60


class Session:
    """A client's side of either server, in one process."""

    def __init__(self, version=VERSIONS[-1]):
        self.inbox = SimpleQueue()
        self.said = SimpleQueue()
        self.version = version
        self.ask("initialize", {**HANDSHAKE, "protocolVersion": version}, id=REPLAYED)
        self.inbox.put({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def ask(self, method, params=None, *, id):
        self.inbox.put({"jsonrpc": "2.0", "id": id, "method": method, **({"params": params} if params else {})})

    def call(self, tool, arguments=None, *, id, **more):
        self.ask("tools/call", {"name": tool, **({} if arguments is None else {"arguments": arguments}), **more}, id=id)

    def deliver(self, id, line):
        assert line.endswith(b"\n")
        if id != REPLAYED:
            self.said.put(json.loads(line))

    def read(self):
        return self.said.get(timeout=SECONDS)

    def plainly(self, dialects, engine):
        """What is left to the library, once the session is over."""
        result = []
        plain = Plain(dialects, engine, self.inbox, self.deliver)
        thread = threading.Thread(target=lambda: result.append(plain.run(threading.Event())))
        thread.start()

        def ended():
            thread.join(SECONDS)
            assert not thread.is_alive()
            return result[0]

        return ended

    def by_library(self, dialects, engine):
        work = threading.Thread(
            target=lambda: run_streams(dialects, engine, self.inbox, self.deliver, serving=threading.Event())
        )
        work.start()
        return work.join


REQUESTS = [
    ("tools/call", {"name": "store_memory", "arguments": {"content": "The ferry – 'Ægir' – leaves at nine"}}),
    ("tools/call", {"name": "store_memory", "arguments": {"content": ""}}),
    ("tools/call", {"name": "store_memory", "arguments": {"contents": "x"}}),
    ("tools/call", {"name": "store_memory", "arguments": {"content": "x", "importance": 10**30}}),
    ("tools/call", {"name": "store_memory", "arguments": {}, "_meta": {"scrubjay/idempotency-key": 5}}),
    ("tools/call", {"name": "store_memory", "arguments": {}, "_meta": {"scrubjay/if-version": "2"}}),
    ("tools/call", {"name": "supersede_memory", "arguments": {"old_id": "mem_000000000000", "new_content": "x"}}),
    ("tools/call", {"name": "search_memories", "arguments": {"query": "a house"}, "_meta": {"a/b": [1]}}),
    ("tools/call", {"name": "list_recent_memories"}),
    ("tools/call", {"name": "list_recent_memories", "arguments": None}),
]


def answers(way, dialects, engine, requests, version=VERSIONS[-1]):
    session = Session(version)
    ended = getattr(session, way)(dialects, engine)
    replies = {}
    for number, (method, params) in enumerate(requests):
        session.ask(method, params, id=number)
        reply = session.read()
        replies[reply.pop("id")] = reply
    session.inbox.put(None)
    ended()
    return [replies[number] for number in range(len(requests))]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_plain_answer_is_the_librarys(open_engine, version):
    one, other = open_engine(file="one.db"), open_engine(file="other.db")

    plain = answers("plainly", [find("memento")], lambda: one, REQUESTS, version)
    library = answers("by_library", [find("memento")], lambda: other, REQUESTS, version)

    assert [set(reply["result"]) for reply in plain] == [{"content", "structuredContent", "isError"}] * len(REQUESTS)
    assert shape(plain) == shape(library)
    assert [reply["result"]["isError"] for reply in plain].count(True) >= 4


def shape(value):
    """A reply without what differs from run to run: ids, moments, scores; errors stay whole."""
    if isinstance(value, dict) and value.get("isError"):
        return value
    if isinstance(value, dict):
        return {name: shape(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [shape(inner) for inner in value]
    return type(value)


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("version", VERSIONS)
def test_the_plain_lists_are_the_librarys(jay, name, version):
    jay.store("The ferry leaves at nine")
    dialect = find(name)
    asked = [("prompts/list", None)] if dialect.prompts else []
    if dialect.resources is not None:
        asked += [("resources/list", None), ("resources/templates/list", {"_meta": {"progressToken": 1}})]

    plain = answers("plainly", [dialect], lambda: jay, asked, version)

    assert plain == answers("by_library", [dialect], lambda: jay, asked, version)
    assert all(reply["result"] for reply in plain)


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "no_such_tool", "arguments": {}}),
        ("tools/call", {"name": ["echo_words"], "arguments": {}}),
        ("tools/call", {"arguments": {}}),
        ("tools/call", {"name": "echo_words", "arguments": [1]}),
        ("tools/call", {"name": "echo_words", "arguments": {"words": []}, "inputResponses": {}}),
        ("tools/call", {"name": "echo_words", "arguments": {"words": []}, "_meta": None}),
        ("tools/call", {"name": "echo_words", "arguments": {"words": []}, "_meta": {"progressToken": True}}),
        ("tools/call", {"name": "echo_words", "arguments": {"words": []}, **ENVELOPE}),
        ("tools/call", {"name": "asking", "arguments": {}}),
        ("tools/list", {"cursor": "2"}),
        ("prompts/list", None),  # a dialect without any
        ("resources/read", {"uri": "memory://x"}),
        ("initialize", HANDSHAKE),
        ("no/such/method", None),
    ],
    ids=str,
)
def test_whatever_is_unusual_is_left_to_the_library_behind_the_handshake(method, params):
    dialect = small_dialect()
    dialect.reads("asking", name="asking", takes={"type": "object"}, gives={"type": "object"}, asks=True)(
        lambda engine, args: {}
    )
    session = Session()
    session.ask(method, params, id=1)

    left = session.plainly([dialect], lambda: None)()

    assert [message["method"] for message in left] == ["initialize", "notifications/initialized", method]
    assert session.said.empty()


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26"])
def test_an_older_version_is_left_to_the_library_at_once(version):
    session = Session(version)

    left = session.plainly([small_dialect()], lambda: None)()

    assert [message["method"] for message in left] == ["initialize", "notifications/initialized"]


def test_a_list_that_fails_is_asked_again_by_the_library(jay):
    def engine():
        raise StorageBusy("Busy just now.")

    session = Session()
    session.ask("resources/list", id=1)

    left = session.plainly([find("scrubjay")], engine)()

    assert [message["method"] for message in left][2:] == ["resources/list"]
    assert session.said.empty()


def test_the_library_takes_over_once_running_calls_are_answered_and_loses_nothing(jay):
    begun, go_on = threading.Event(), threading.Event()

    def slow(engine, args):
        """Takes its time."""
        begun.set()
        assert go_on.wait(SECONDS)
        return {"slow": True}

    session = Session()
    ended = session.plainly([small_dialect(slow=slow)], lambda: jay)
    session.call("slow", {}, id=1)
    assert begun.wait(SECONDS)
    session.call("no_such_tool", {}, id=2)
    session.call("slow", {}, id=3)
    session.inbox.put({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}})
    session.inbox.put({"jsonrpc": "2.0", "id": 7, "result": {}})
    while session.inbox.qsize():
        time.sleep(0.01)
    go_on.set()

    left = ended()

    assert session.read()["result"]["structuredContent"] == {"slow": True}
    assert [message.get("id") for message in left] == [REPLAYED, None, 2, 3, None, 7]
    assert session.said.empty()


def test_a_call_that_its_client_takes_back_is_finished_and_never_answered(jay):
    begun, go_on, finished = threading.Event(), threading.Event(), threading.Event()

    def slow(engine, args):
        """Takes its time."""
        begun.set()
        assert go_on.wait(SECONDS)
        finished.set()
        return {}

    session = Session()
    ended = session.plainly([small_dialect(slow=slow)], lambda: jay)
    session.call("slow", {}, id=1)
    assert begun.wait(SECONDS)
    session.inbox.put({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    session.call("echo_words", {"words": ["still there"]}, id=2)

    assert session.read()["id"] == 2

    go_on.set()
    session.inbox.put(None)
    assert ended() is None
    assert finished.is_set()
    assert session.said.empty()


@pytest.mark.parametrize("second", ["2", 2], ids=["the same as text", "the same"])
def test_a_call_that_waits_is_not_disturbed_by_another_of_its_id(jay, second):
    begun, go_on = threading.Event(), threading.Event()

    def slow(engine, args):
        """Takes its time."""
        begun.set()
        assert go_on.wait(SECONDS)
        return {}

    session = Session()
    ended = session.plainly([small_dialect(slow=slow), find("scrubjay")], lambda: jay)
    session.call("small_slow", {}, id=1)
    assert begun.wait(SECONDS)
    session.call("small_search", {}, id=2, _meta={"progressToken": "t"})  # a change waits for those before it
    session.ask("prompts/list", id=second)
    listed = session.read()
    go_on.set()
    answered = [session.read(), session.read()]
    session.inbox.put(None)
    ended()

    assert (listed["id"], list(listed["result"])) == (second, ["prompts"])
    assert {reply["id"] for reply in answered} == {1, 2}
    assert all("result" in reply for reply in answered)


def test_each_of_two_calls_with_one_id_can_be_taken_back(jay):
    begun, go_on = threading.Semaphore(0), threading.Event()

    def slow(engine, args):
        """Takes its time."""
        begun.release()
        assert go_on.wait(SECONDS)
        return {}

    session = Session()
    ended = session.plainly([small_dialect(slow=slow)], lambda: jay)
    for _ in range(2):
        session.call("slow", {}, id=1)
        assert begun.acquire(timeout=SECONDS)
    for _ in range(2):
        session.inbox.put({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    session.call("echo_words", {"words": ["still there"]}, id=2)
    assert session.read()["id"] == 2
    go_on.set()
    session.call("no_such_tool", {}, id=3)  # is left to the library once nothing runs any more

    assert [message.get("id") for message in ended()] == [REPLAYED, None, 3]
    assert session.said.empty()


def test_a_fault_of_ours_shows_a_number_and_no_detail(jay, caplog):
    def fall(engine, args):
        """Falls."""
        raise RuntimeError("the key is under the mat")

    session = Session()
    ended = session.plainly([small_dialect(fall=fall)], lambda: jay)
    session.call("fall", {}, id=1)
    result = session.read()["result"]
    session.inbox.put(None)
    ended()

    assert result["isError"]
    assert "mat" not in json.dumps(result)
    [record] = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.args[0] in result["structuredContent"]["oops"]


def test_a_session_of_ordinary_requests_never_imports_the_library(tmp_path):
    """Every editor window would pay for it."""
    asked = [
        {"id": 1, "method": "initialize", "params": HANDSHAKE},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
        {"id": 3, "method": "prompts/list"},
        {"id": 4, "method": "resources/list"},
        {"id": 5, "method": "resources/templates/list"},
        {"id": 6, "method": "tools/call", "params": {"name": "remember", "arguments": {"facts": ["The sea is wide"]}}},
        {"id": 7, "method": "tools/call", "params": {"name": "recall", "arguments": {"question": "the sea"}}},
    ]
    lines = "".join(json.dumps({"jsonrpc": "2.0", **one}) + "\n" for one in asked)

    shown = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "scrubjay", "mcp"],
        input=lines,
        capture_output=True,
        text=True,
        check=True,
        env=environment(tmp_path),
        encoding="utf-8",
    )

    replies = [json.loads(line) for line in shown.stdout.splitlines()]
    assert {reply["id"] for reply in replies if "result" in reply} == {1, 2, 3, 4, 5, 6, 7}
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in shown.stderr.splitlines()}
    assert "anyio" in imported
    assert not imported & {"mcp", "mcp_types", "pydantic", "starlette", "httpx", "opentelemetry"}
