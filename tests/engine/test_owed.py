"""What there was no time to compare is named in the reply, and what comes of it is told with a later one, once."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from scrubjay.dialects.table import find
from scrubjay.dialects.validation import Checker
from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.engine import Notices
from scrubjay.values.callers import Caller, Provenance, Role
from scrubjay.values.memory import AccessLevel, Relation

BOTH = pytest.mark.parametrize("open_store", ["sqlite", "postgres"], indirect=True)
OLD, NEW = "The demo runs on port 8080", "The demo runs on port 9090 now"
ANN = Caller(user="ann", role=Role.MEMBER, spaces=frozenset({"default"}))
NOT_COMPARED = "Not compared yet: 1 memory; ask `settle` later what they may outdate."


@pytest.fixture
def busy(open_engine):
    """Opens engines on one store that never have time to compare a new memory."""

    def busy(embedder="hashing", **options):
        engine = open_engine(embedder, **options)
        engine.parts.judge_seconds = 0.0
        return engine

    return busy


class Client:
    """A program that calls one dialect; every body must lie inside its operation's schema."""

    def __init__(self, engine, dialect="scrubjay", client="agent", caller=None):
        self.engine = engine if caller is None else engine.bound_to(caller=caller)
        self.dialect, self.client = find(dialect), client

    def call(self, tool, **arguments):
        about = Provenance(client=self.client, transport="stdio", dialect=self.dialect.name)
        reply = self.dialect.call(self.engine, tool, arguments, provenance=about)
        assert not reply.failed, reply.text
        Checker(self.dialect.operations[tool].gives).check(reply.body)
        return reply

    def remember(self, content):
        return self.call("remember", facts=[content])

    def told(self):
        return self.call("recall", question="Which port does the demo run on?").body.get("notices", [])


def judge(engine):
    engine.parts.backlog.finish()
    return engine


def remember_both(client):
    """The client stores both facts, which nobody compares, and then they are compared."""
    client.remember(OLD)
    client.remember(NEW)
    judge(client.engine)
    return client


@BOTH
def test_a_memory_that_was_not_compared_is_named_and_told_of_with_the_next_reply_once(busy):
    here = Client(busy())
    here.remember(OLD)
    reply = here.remember(NEW)

    assert reply.body["notices"] == [NOT_COMPARED]
    assert reply.text.endswith(NOT_COMPARED)

    judge(here.engine)
    [pair] = here.engine.conflicts.list()
    elsewhere = Client(busy())  # another process of the same store
    found = elsewhere.call("recall", question="Which port does the demo run on?")

    told = f'Compared since: {pair.new.id} ("{NEW}") very likely outdates {pair.old.id} ("{OLD}"); ask `settle`.'
    assert found.body["notices"] == [told]
    assert found.text.endswith(told)
    assert elsewhere.told() == here.told() == []


@BOTH
def test_of_two_processes_that_answer_at_once_one_tells_it(busy):
    remember_both(Client(busy()))
    engines = [busy().bound_to(provenance=Provenance(client="agent"), notices=Notices()) for _ in range(2)]
    ready, taken = threading.Barrier(2), []

    def take(engine):
        engine.look_for_owed()
        ready.wait(60)  # both have seen that there is something
        taken.append(len(engine.take_owed()))

    threads = [threading.Thread(target=take, args=(engine,)) for engine in engines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert sorted(taken) == [0, 1]


@BOTH
def test_neither_another_client_nor_another_user_is_told(busy):
    jay = remember_both(Client(busy())).engine

    assert Client(jay, client="editor").told() == []
    assert Client(jay, caller=ANN).told() == []
    assert len(Client(jay).told()) == 1


def test_what_is_not_seen_any_more_is_not_told_and_waits(busy):
    jay = busy()
    mine = remember_both(Client(jay, caller=replace(ANN, spaces=frozenset({"default", "other"}))))

    assert Client(jay.bound_to(spaces=("other",)), caller=replace(ANN, spaces=frozenset({"other"}))).told() == []
    assert len(mine.told()) == 1


def test_the_older_one_is_seen_by_who_is_told_of_it(busy):
    """Between the store and the reply it became someone's own."""
    jay = busy()
    mine = Client(jay, caller=ANN)
    old = jay.store(OLD).memory
    mine.remember(NEW)
    judge(jay)
    jay.update(old.id, access_level=AccessLevel.PRIVATE)

    assert mine.told() == []


@pytest.mark.parametrize("what", ["settled", "old forgotten", "new forgotten"])
def test_what_was_settled_or_forgotten_meanwhile_is_not_told(busy, what):
    jay = busy()
    client = Client(jay)
    old = client.remember(OLD).body["remembered"][0]["memory"]["id"]
    new = client.remember(NEW).body["remembered"][0]["memory"]["id"]
    judge(jay)

    if what == "settled":
        jay.conflicts.relate(old=old, new=new, relation=Relation.BOTH_TRUE)
    else:
        jay.forget(old if what == "old forgotten" else new)

    assert client.told() == []


def test_nothing_is_owed_if_comparing_brings_nothing(busy):
    client = Client(busy())
    client.remember(OLD)

    assert client.remember("The demo runs on port 8080 in the evening, too, says Ana").body["notices"] == [NOT_COMPARED]
    judge(client.engine)

    assert client.told() == []


def test_a_brief_tells_it_too(busy):
    reply = remember_both(Client(busy())).call("brief")

    assert len(reply.body["notices"]) == 1
    assert reply.text.endswith(reply.body["notices"][0])


def test_a_memory_whose_vector_was_late_is_told_of_when_it_has_one(busy):
    free = threading.Event()

    class Held(HashingEmbedder):
        in_process = False

        def embed(self, texts):
            if any(text == NEW for text in texts):
                free.wait(60)
            return super().embed(texts)

    client = Client(busy(Held(), wait_seconds=0.5))
    client.engine.store(OLD)
    judge(client.engine)
    client.engine.parts.judge_seconds = float("inf")

    reply = client.remember(NEW)
    free.set()
    judge(client.engine)

    assert reply.body["notices"] == [NOT_COMPARED]
    assert "Found by words only for now" in reply.text
    assert len(client.told()) == 1


def test_without_a_model_nothing_is_promised(busy):
    client = Client(busy(None))
    client.remember(OLD)

    assert "notices" not in client.remember(NEW).body


def test_a_library_that_is_not_asked_for_notices_owes_none(busy):
    jay = busy()
    jay.store(OLD)

    assert not jay.store(NEW).compared
    assert judge(jay).records.history.owed(user=jay.identity.user, client=jay.provenance.client) == []


def test_a_flagged_text_is_not_quoted(busy):
    client = Client(busy())
    for port in ("8080", "9090 now"):
        client.remember(f"The demo with the key sk-proj-9f8e7d6c5b4a39281706f5e4d3c2b1a0ZYXW runs on port {port}")
    judge(client.engine)

    [told] = client.told()
    assert "sk-proj" not in told


STORES = {
    "memento": ("store_memory", lambda text: {"content": text}, "search_memories", {"query": "demo port"}),
    "native": ("store_memory", lambda text: {"content": text}, "search", {"query": "demo port"}),
    "system": ("store_memory", lambda text: {"content": text}, "recall_memories", {"query": "demo port"}),
    "chimera": ("remember", lambda text: {"text": text}, "search", {"query": "demo port"}),
}


@pytest.mark.parametrize("dialect", STORES)
def test_every_dialect_with_room_says_it(busy, dialect):
    store, written, search, asked = STORES[dialect]
    client = Client(busy(), dialect)
    client.call(store, **written(OLD))

    stored = client.call(store, **written(NEW))
    judge(client.engine)
    found = client.call(search, **asked)
    again = client.call(search, **asked)

    assert "Not compared yet: 1 memory" in [sentence.partition(";")[0] for sentence in sentences_of(stored)]
    [told] = sentences_of(found)
    assert told.startswith("Compared since: ")
    assert not any(sentence.startswith("Compared since") for sentence in sentences_of(again))


def sentences_of(reply):
    return [*reply.notices, *reply.body.get("notices", ()), *reply.body.get("data", {}).get("notices", ())]


def test_a_dialect_without_room_says_it_beside_the_body(busy):
    client = Client(busy(), "cortex")
    client.call("add_memory", store="default", path="a/one", content=OLD)

    reply = client.call("add_memory", store="default", path="a/two", content=NEW)

    assert "notices" not in reply.body
    assert [sentence.partition(";")[0] for sentence in reply.notices] == ["Not compared yet: 1 memory"]
