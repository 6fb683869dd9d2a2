"""Other people's clients drive every dialect: Python 1.x and 2.x, TypeScript 1.x, over real HTTP.

Each calls every tool with arguments made from its schema, once as they should be and once with a field too many.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from mcp import Client

from scrubjay.dialects.base import Reach
from scrubjay.dialects.table import DIALECTS, find
from scrubjay.folders.registry import Registry
from scrubjay.servers.http.app import build_app
from tests.servers.others.installed import node, npm, python
from tests.servers.samples import sample
from tests.servers.sites import running

pytestmark = pytest.mark.process

HERE = Path(__file__).parent
TOOLS = [find(name) for name in DIALECTS]
TYPESCRIPT, PYTHON = "@modelcontextprotocol/sdk@1.32.2", "mcp==1.30.0"


@pytest.fixture
def other(open_engine, tmp_path):
    folder = tmp_path / "other"
    folder.mkdir()
    return open_engine(file="other.db", registry=Registry(folder, folder, walk_seconds=0))


def calls(jay, address):
    """Every tool that is listed and stays inside the memory, twice."""
    id = jay.store("The lighthouse is red.").memory.id
    for dialect in TOOLS:
        tools = []
        for operation in dialect.operations.values():
            if operation.listed and operation.reach is Reach.MEMORY:
                arguments = sample(operation.takes, {"id": id, "content": "Tea at four.", "query": "lighthouse"})
                tools.append({"name": operation.name, "arguments": arguments})
                tools.append({"name": operation.name, "arguments": {**arguments, "no_such_field": 1}})
        yield {"url": f"{address}/mcp/{dialect.name}", "tools": tools}


def check(results, asked, other):
    """Clients see what the dialect itself answers: `other` is an engine that is asked the same without a wire."""
    assert [one["name"] for one in results] == [tool["name"] for site in asked for tool in site["tools"]]
    for number, one in enumerate(results):
        assert one["listed"], one
        assert one["text"]
        if number % 2:
            assert one["failed"], one
    direct = [
        dialect.call(other, tool["name"], tool["arguments"]).failed
        for dialect, site in zip(TOOLS, calls(other, ""), strict=True)
        for tool in site["tools"]
    ]
    assert [one["failed"] for one in results] == direct
    assert direct.count(False) > len(direct) // 4  # of the half that was asked as it should be


def driven(command, given, **env):
    done = subprocess.run(
        command,
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
        env={**os.environ, **env},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.long
def test_the_typescript_client_drives_every_dialect(jay, other):
    folder = npm("typescript-1", TYPESCRIPT)
    with running(build_app(jay, TOOLS)) as address:
        asked = list(calls(jay, address))
        check(driven([node(folder), HERE / "client.mjs"], {"folder": str(folder), "calls": asked}), asked, other)


@pytest.mark.long
def test_the_python_client_of_the_first_generation_drives_every_dialect(jay, other):
    folder = python("python-1", PYTHON)
    with running(build_app(jay, TOOLS)) as address:
        asked = list(calls(jay, address))
        given = [sys.executable, HERE / "client_1x.py"]
        check(driven(given, {"calls": asked}, PYTHONPATH=str(folder)), asked, other)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_python_client_of_the_second_generation_drives_every_dialect(jay, other, mode):
    async def conversation(asked):
        results = []
        for site in asked:
            async with Client(site["url"], mode=mode) as client:
                listed = [tool.name for tool in (await client.list_tools()).tools]
                for one in site["tools"]:
                    reply = await client.call_tool(one["name"], one["arguments"])
                    results.append(
                        {
                            "name": one["name"],
                            "listed": one["name"] in listed,
                            "failed": reply.is_error,
                            "text": reply.content[0].text,
                        }
                    )
        return results

    with running(build_app(jay, TOOLS)) as address:
        asked = list(calls(jay, address))
        check(anyio.run(conversation, asked), asked, other)
