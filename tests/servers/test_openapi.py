"""REST described: the document is complete and true."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import reduce
from pathlib import Path

import jsonschema_rs
import orjson
import pytest

from scrubjay.dialects.table import DIALECTS, ONLY_REST, find
from scrubjay.servers.http.app import build_app
from scrubjay.servers.http.openapi import NAMES, document, outcomes
from scrubjay.servers.http.rest import IN_QUERY, STATUSES, addresses
from tests.servers.sites import client_of, running

pytestmark = pytest.mark.process

TOOLS = [find(name) for name in DIALECTS]
TABLES = [*TOOLS, *map(find, ONLY_REST)]
DOCUMENT = document(TABLES)
EVERY = [(path, method, one) for path, methods in DOCUMENT["paths"].items() for method, one in methods.items()]


def test_every_address_is_described_and_nothing_else():
    described = {(method.upper(), path) for path, method, _ in EVERY if path.startswith("/api/")}

    assert described == {(one.method, re.sub(r":path\}", "}", one.path)) for one in addresses(TABLES)}


def test_every_operation_has_a_name_of_its_own():
    names = [one["operationId"] for path, _, one in EVERY if path.startswith("/api/")]

    assert len(names) == len(set(names))


@pytest.mark.parametrize(("path", "method", "one"), EVERY, ids=lambda value: value if isinstance(value, str) else "")
def test_every_operation_says_what_it_takes_gives_and_refuses(path, method, one):
    assert one["summary"]
    assert any(status.startswith("2") for status in one["responses"])
    assert "401" in one["responses"]
    if path.startswith("/api/"):
        assert one["description"]
        assert set(one["responses"]) >= {str(status) for status in STATUSES.values()}
        names = {parameter.get("name") for parameter in one["parameters"]}
        assert names >= set(re.findall(r"\{(\w+)\}", path))


def test_every_status_has_a_name():
    assert set(STATUSES.values()) <= set(NAMES)


def test_every_reference_leads_somewhere():
    def references(value):
        if isinstance(value, dict):
            yield from ([value["$ref"]] if isinstance(value.get("$ref"), str) else [])
            for inner in value.values():
                yield from references(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from references(inner)

    for reference in set(references(DOCUMENT)):
        place = DOCUMENT
        for step in reference.removeprefix("#/").split("/"):
            place = place[step]


def test_every_schema_is_one():
    for _, _, one in EVERY:
        for content in one.get("requestBody", {}).get("content", {}).values():
            jsonschema_rs.Draft202012Validator({**content["schema"], "components": DOCUMENT["components"]})


def test_what_comes_often_is_written_once():
    assert len(orjson.dumps(DOCUMENT)) < 600_000
    for dialect in TABLES:
        one = document([dialect], site={})
        assert set(one["paths"]) == {path for path in DOCUMENT["paths"] if path in one["paths"]}
        assert len(orjson.dumps(one)) < 300_000


def test_it_says_the_same_as_every_operations_own_schemas():
    def whole(value):
        if isinstance(value, list):
            return [whole(inner) for inner in value]
        if not isinstance(value, dict):
            return value
        if isinstance(value.get("$ref"), str):
            return whole(reduce(lambda place, step: place[step], value["$ref"][2:].split("/"), DOCUMENT))
        return {name: whole(inner) for name, inner in value.items()}

    for address in addresses(TABLES):
        if address.method not in IN_QUERY and "{" not in address.path:
            described = DOCUMENT["paths"][address.path][address.method.lower()]
            takes = address.operation.accepts or address.operation.takes
            shown = whole(described["requestBody"]["content"]["application/json"]["schema"])
            assert shown == {**takes, "properties": takes.get("properties", {})}
            gives = whole(described["responses"][str(address.status)]["content"]["application/json"]["schema"])
            assert gives == outcomes(address.operation)[0]


def test_the_document_comes_packed_to_those_who_accept_it_and_for_one_dialect(jay):
    with client_of(build_app(jay, TOOLS)) as http:
        plain = http.get("/openapi.json", headers={"accept-encoding": "identity"})
        packed = http.get("/openapi.json", headers={"accept-encoding": "gzip"})
        one, none = http.get("/openapi/mama.json"), http.get("/openapi/nobody.json")

    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) < 60_000 < int(plain.headers["content-length"])
    assert packed.json() == plain.json()
    assert {path.split("/")[2] for path in one.json()["paths"]} == {"mama"}
    assert none.status_code == 404


def test_the_document_and_its_page_come_from_this_server_alone(jay):
    with client_of(build_app(jay, TOOLS)) as http:
        described, page = http.get("/openapi.json"), http.get("/docs")

    assert described.json()["openapi"] == "3.1.0"
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert not re.findall(r"https?://|//\w", page.text)


USUAL = (
    *("--exclude-checks", "positive_data_acceptance"),
    *("--header", "Content-Type: application/json"),  # which a document cannot ask of a request without a body
    *("--warnings", "off", "--no-color", "--request-timeout", "60"),
)


@pytest.fixture
def fuzzed(jay, tmp_path, monkeypatch):
    """Runs schemathesis on a server that was started in an empty folder, which has to stay so."""
    here, client = tmp_path / "started", tmp_path / "client"
    here.mkdir()
    client.mkdir()
    monkeypatch.chdir(here)
    yield lambda *options, **limits: fuzz(jay, client, *options, **limits)
    assert list(here.iterdir()) == []


def fuzz(jay, folder, *options: str, seconds: float = 560) -> None:
    """What schemathesis finds. Valid arguments may be refused: the schemas are the specifications' own, and some of
    their rules (weights that sum to one, a cursor of this list) cannot be said in them. Left out are the
    stream that never ends, and naming a store elsewhere: what cannot be reached is a 503, and rightly so."""
    without = [option for name in ("follow", "add_endpoint") for option in ("--exclude-operation-id", f"native.{name}")]
    program = Path(sys.executable).with_name("schemathesis")
    with running(build_app(jay, TOOLS, only_rest=TABLES[len(TOOLS) :])) as address:
        done = subprocess.run(
            [program, "run", f"{address}/openapi.json", *USUAL, *without, *options],
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
            timeout=seconds,
        )

    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def test_the_server_does_what_its_document_says(fuzzed):
    """The same requests each time; others at length."""
    fuzzed("--phases", "fuzzing,stateful", "--max-examples", "1", "--seed", "1", "--generation-database", "none")


@pytest.mark.long
def test_the_server_does_what_its_document_says_at_length(fuzzed):
    fuzzed("--phases", "coverage,fuzzing,stateful", "--max-examples", "100", seconds=3500)
