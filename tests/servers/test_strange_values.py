"""Numbers, depths and halves of characters that not every reader of JSON takes.

None of them gets in, by whatever door. What an older store holds all the same is written out exactly by every writer,
and spoils no answer that it stands in.
"""

from __future__ import annotations

import json
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import islice

import pytest

from scrubjay.dialects.table import DIALECTS, ONLY_REST, find
from scrubjay.engine.archive.restoring import Mode
from scrubjay.engine.engine import Engine
from scrubjay.engine.lifecycle.consolidation import ConsolidationPlan, Strategy
from scrubjay.engine.parts import engine_on
from scrubjay.errors import InvalidInput
from scrubjay.servers.http.app import build_app
from scrubjay.stores import copying
from scrubjay.wiring import copyable, open_peer
from tests.conftest import sqlite_store
from tests.servers.sites import client_of
from tests.servers.test_mcp import ERAS, conversation, served

pytestmark = pytest.mark.process

BIG = 123456789012345678901234567890
BOTH = pytest.mark.parametrize(
    "open_store", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True
)
REFUSED = {
    "beyond 64 bits": "18446744073709551616",
    "below 64 bits": "-9223372036854775809",
    "thousands of digits": "9" * 5_000,
    "not finite": "1e999",
}
REFUSED_JSON = pytest.mark.parametrize("number", REFUSED.values(), ids=REFUSED.keys())


@contextmanager
def site(jay):
    with client_of(build_app(jay, [find(name) for name in DIALECTS], only_rest=map(find, ONLY_REST))) as client:
        yield client


def sent(http, path, text, method="POST"):
    return http.request(method, path, content=text, headers={"content-type": "application/json"})


# --- what comes in ---------------------------------------------------------------------------------------------------


@REFUSED_JSON
def test_rest_refuses_a_number_that_not_every_reader_takes_and_names_it(jay, number):
    nested = f'{{"a": {{"b": [1, 2, 3, {number}]}}}}'
    kept = jay.store("Tea at noon").memory.id
    with site(jay) as http:
        answers = [
            sent(http, "/api/mcp/remember", f'{{"text": "Coffee", "metadata": {nested}}}'),
            sent(http, "/api/v1/memories", f'{{"content": "Coffee", "metadata": {nested}}}'),
            sent(http, f"/api/v1/memories/{kept}", f'{{"metadata": {nested}}}', "PATCH"),
        ]
        imported = sent(http, "/api/v1/import", f'{{"lines": [{{"content": "Coffee", "metadata": {nested}}}]}}')

    assert [answer.status_code for answer in (*answers, imported)] == [400] * 4
    assert all("metadata.a.b[3]" in answer.text for answer in answers)
    assert "lines[0].metadata.a.b[3]" in imported.text
    assert (jay.list(counted=True).total, jay.get(kept).metadata) == (1, {})


@ERAS
def test_mcp_refuses_it_too_in_both_eras(jay, mode):
    calls = [("remember", {"text": "Coffee", "metadata": {"n": {"deep": [BIG]}}})]

    [result] = conversation(served(find("chimera"), engine=jay), *calls, mode=mode)

    assert result.is_error
    assert "metadata.n.deep[0] is beyond 64 bits" in result.content[0].text
    assert jay.list(counted=True).total == 0


@pytest.mark.parametrize("number", ["18446744073709551616", "9" * 5_000])
def test_a_line_on_stdio_is_refused_by_the_field_not_by_the_line(start, number):
    with start("--dialect", "chimera") as peer:
        peer.greet()
        call = {"name": "remember", "arguments": {"text": "Coffee", "metadata": {"n": "N"}}}
        line = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call}).replace('"N"', number)
        peer.write(line.encode())

        [text] = peer.read()["result"]["content"]

    assert "metadata.n is beyond 64 bits" in text["text"]


@pytest.mark.parametrize("value", [BIG, -BIG, float("nan"), float("inf"), "\ud800"])
def test_the_library_refuses_it(jay, value):
    with pytest.raises(InvalidInput, match=r"metadata\.a\[1\]") as stored:
        jay.store("Coffee", metadata={"a": [1, value]})
    with pytest.raises(InvalidInput, match=r"Line 1: metadata\.n"):
        jay.transfer.import_from([{"content": "Coffee", "metadata": {"n": value}}])

    assert stored.value.details["field"] == "metadata.a[1]"
    assert jay.list(counted=True).total == 0


def test_the_library_refuses_depth_that_no_answer_could_show(jay):
    with pytest.raises(InvalidInput, match="metadata is nested too deeply"):
        jay.store("Coffee", metadata=nested(300))


def test_what_64_bits_hold_comes_back_to_the_digit(jay):
    numbers = {"least": -(2**63), "most": 2**64 - 1, "float": 1.5e300}
    with site(jay) as http:
        stored = sent(http, "/api/v1/memories", json.dumps({"content": "Coffee", "metadata": numbers})).json()
        shown = http.get(f"/api/v1/memories/{stored['memory']['id']}").json()

    assert shown["memory"]["metadata"] == numbers


# --- what is there already -------------------------------------------------------------------------------------------


def nested(levels):
    value: object = "bottom"
    for _ in range(levels):
        value = {"a": value}
    return {"deep": value}


def held(jay: Engine, metadata) -> str:
    """A memory as an older scrubjay let it in: now, and in a former version."""
    id = jay.store("The number of grains of sand", access_level="shared", conversation_id="sand").memory.id
    for count in (1, 2):
        with jay.records.writing() as tx:
            memory = replace(jay.get(id), metadata={**metadata, "count": count})
            jay.ledger.change(tx, memory, "updated", "metadata")
    return id


@BOTH
@pytest.mark.parametrize("metadata", [{"n": BIG, "m": [-BIG]}, nested(400)], ids=["number", "depth"])
def test_no_answer_fails_on_what_a_store_holds(jay, metadata):
    id = held(jay, metadata)
    with site(jay) as http:
        shown = http.get(f"/api/v1/memories/{id}")
        answers = [
            shown,
            http.get("/api/v1/memories"),
            http.post("/api/v1/search", json={"query": "grains of sand"}),
            http.get(f"/api/v1/memories/{id}/versions"),
            http.get(f"/api/v1/memories/{id}/diff?old=2"),
            http.get("/api/mcp/listMemories?conversation_id=sand"),
            http.post("/api/mcp/search", json={"query": "grains of sand"}),
            http.get("/api/v1/export"),
            http.post("/api/v1/sync/fetch", json={"ids": [id]}),
            http.post("/api/memento/search_memories", json={"query": "grains of sand"}),
            http.patch(f"/api/v1/memories/{id}", json={"tags": ["sand"]}),
            http.delete(f"/api/v1/memories/{id}"),
        ]
    [listed] = conversation(served(find("chimera"), engine=jay), ("list_memories", {"conversation_id": "sand"}))

    assert [answer.status_code for answer in answers] == [200] * len(answers)
    assert json.loads(shown.text)["memory"]["metadata"] == {**metadata, "count": 2}
    assert [json.loads(line) for line in answers[7].text.splitlines()][1]["metadata"] == {**metadata, "count": 2}
    assert not listed.is_error


@ERAS
def test_over_mcp_its_digits_are_exact(jay, mode):
    held(jay, {"n": BIG})

    calls = [("list_memories", {"conversation_id": "sand"})]
    [result] = conversation(served(find("chimera"), engine=jay), *calls, mode=mode)

    assert result.structured_content["data"]["memories"][0]["metadata"]["n"] == BIG
    assert str(BIG) in result.content[0].text


def test_over_mcp_what_is_too_deep_is_told_as_text(jay):
    held(jay, nested(400))

    [result] = conversation(served(find("chimera"), engine=jay), ("list_memories", {"conversation_id": "sand"}))

    assert "bottom" in json.dumps(result.structured_content)


@BOTH
def test_an_archive_holds_its_digits(jay):
    id = held(jay, {"n": BIG})

    jay.cold_storage.archive([id])
    jay.cold_storage.restore([id])

    assert jay.get(id).metadata["n"] == BIG


@BOTH
def test_a_copy_of_the_store_holds_its_digits(jay, tmp_path):
    id = held(jay, {"n": BIG})
    with closing(sqlite_store(tmp_path / "copy.db")) as other:
        copying.copy(copyable(jay.records), copyable(other), lambda *_: None)
    with engine_on(sqlite_store(tmp_path / "copy.db"), None) as copied:
        assert copied.get(id).metadata["n"] == BIG


@BOTH
def test_stores_that_sync_agree_on_its_digits(jay, clock, tmp_path):
    """What one store holds travels: the others would never agree with it otherwise."""
    id = held(jay, {"n": BIG})
    elsewhere = sqlite_store(tmp_path / "elsewhere.db")
    with (
        site(jay) as http,
        engine_on(
            elsewhere,
            None,
            clock=clock,
            connect=lambda endpoint, create: open_peer(endpoint, create=create, user="local", private=True),
        ) as other,
    ):
        other.sync.add("first", str(http.base_url))
        other.sync.run(destination="first")
        assert other.get(id).metadata["n"] == BIG
        with other.records.writing() as tx:
            other.ledger.change(tx, replace(other.get(id), metadata={"n": BIG + 1}), "updated", "metadata")
        other.sync.run(destination="first")

    assert jay.get(id).metadata["n"] == BIG + 1


def test_a_backup_holds_its_digits(jay, tmp_path):
    id = held(jay, {"n": BIG})

    jay.upkeep.backup(tmp_path / "backup.db")

    with engine_on(sqlite_store(tmp_path / "backup.db"), None) as kept:
        assert kept.get(id).metadata["n"] == BIG
        assert [one.memory.metadata.get("n") for one in kept.history(id)] == [BIG, None]


@BOTH
def test_the_feed_goes_on_past_it(jay):
    id = held(jay, {"n": BIG})
    after = jay.store("Coffee").memory.id
    with site(jay) as http, http.stream("GET", "/api/v1/events", params={"after": "0"}) as reply:
        events = (json.loads(line.removeprefix("data:")) for line in reply.iter_lines() if line.startswith("data:"))
        told = [(event["memory"], event["action"]) for event in islice(events, 4)]

    assert told == [(id, "stored"), (id, "updated"), (id, "updated"), (after, "stored")]


@BOTH
def test_the_kept_answer_to_a_repeated_request_has_its_digits(jay):
    id = held(jay, {"n": BIG})
    with site(jay) as http:
        answers = [
            http.patch(f"/api/v1/memories/{id}", json={"tags": ["sand"]}, headers={"idempotency-key": "once"})
            for _ in range(2)
        ]

    assert [json.loads(one.text)["memory"]["metadata"]["n"] for one in answers] == [BIG, BIG]


@BOTH
@pytest.mark.parametrize("kind", ["restore", "rebuild"])
def test_work_in_the_background_is_done_and_told_of(jay, kind):
    id = held(jay, {"n": BIG})
    arguments = {}
    if kind == "restore":
        jay.cold_storage.archive([id])
        arguments = {"ids": [id], "mode": str(Mode.FULL), "embed": True, "reason": None}

    job = jay.jobs.run(jay.jobs.start(kind, arguments).id)
    with site(jay) as http:
        told = [http.get(f"/api/v1/jobs/{job.id}"), http.get("/api/v1/jobs")]

    assert (job.status, job.error) == ("completed", None)
    assert [reply.status_code for reply in told] == [200, 200]
    assert jay.get(id).metadata["n"] == BIG


@BOTH
def test_consolidating_it_keeps_its_digits(jay):
    id = held(jay, {"n": BIG})
    other = jay.store("The number of grains of sand on the beach", access_level="shared").memory.id

    done = jay.consolidation.merge(ConsolidationPlan(ids=(id, other), strategy=Strategy.MERGE_ALL))

    assert done.memory.metadata["n"] == BIG


@BOTH
def test_a_former_version_with_it_can_be_restored(jay):
    id = held(jay, {"n": BIG})
    jay.update(id, metadata={})

    assert jay.restore_version(id, 3).metadata["n"] == BIG


def test_a_file_of_it_is_written_and_an_edit_keeps_its_digits(jay, tmp_path):
    id = jay.paths.add("default", "beach/sand", "The number of grains of sand").memory.id
    with jay.records.writing() as tx:
        jay.ledger.change(tx, replace(jay.get(id), metadata={"n": BIG}), "updated", "metadata")
    file = tmp_path / "stores" / "default" / "beach" / "sand.md"
    file.write_text(file.read_text().replace("grains of sand", "grains of salt"))

    jay.list()

    assert (jay.get(id).content, jay.get(id).metadata) == ("The number of grains of salt", {"n": BIG})
    jay.update(id, content="The number of grains of rice")
    assert "grains of rice" in file.read_text()
