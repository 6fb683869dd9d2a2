"""The protocol's own conformance suite, on a profile for tests, over the stack that serves every dialect.

@modelcontextprotocol/conformance 0.1.16 (up to 2025-11-25) and 0.2.0-alpha.12 (2026-07-28), Node 22.23.3 from npm.

The suite expects a server with every feature of the protocol. Ours offers tools, so the scenarios of tools and of the
transport apply; those of resources, prompts, sampling, elicitation, logging and completion do not. The suite also takes
"Unknown tool" for a text, so what the tools say is asserted here as well.
"""

from __future__ import annotations

import json
import re
import subprocess

import pytest

from scrubjay.dialects.base import Dialect, object_schema
from scrubjay.errors import InvalidInput
from scrubjay.servers.http import build_app
from tests.servers.others.installed import node, npm
from tests.servers.sites import running

ANY = {"type": "object"}
OF_2025 = {
    "server-initialize",
    "ping",
    "tools-list",
    "tools-call-simple-text",
    "tools-call-error",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
}
OF_2026 = {
    "tools-list",
    "tools-call-simple-text",
    "tools-call-error",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
    "http-header-validation",
    "sep-2164-resource-not-found",
    "input-required-result-missing-input-response",
    "input-required-result-unsupported-methods",
    "input-required-result-ignore-extra-params",
    "input-required-result-validate-input",
}
# Of server-stateless, only these cannot be tested: they ask for tools that sample, elicit and log.
UNTESTABLE = {
    "sep-2575-server-rejects-undeclared-capability",
    "sep-2575-missing-capability-http-400",
    "sep-2575-http-server-no-independent-requests-on-stream",
    "sep-2575-server-no-log-without-loglevel",
}


def profile() -> Dialect:
    dialect = Dialect(
        name="conformance",
        title="For the conformance suite",
        server_name="scrubjay",
        instructions="For tests only.",
        error_body=lambda error, _: {"error": error.message},
    )

    @dialect.operation("test_simple_text", title="Text", changes=False, takes=object_schema({}), gives=ANY)
    def simple_text(engine, args):
        """Says a text."""
        return {"text": "This is a simple text response for testing."}

    @dialect.operation("test_error_handling", title="Error", changes=False, takes=object_schema({}), gives=ANY)
    def error_handling(engine, args):
        """Fails."""
        raise InvalidInput("This tool intentionally returns an error for testing")

    return dialect


def run(jay, folder, tmp_path, *options: str) -> str:
    with running(build_app(jay, [profile()])) as address:
        command = [node(folder), folder / "node_modules" / ".bin" / "conformance", "server"]
        done = subprocess.run(
            [*command, "--url", f"{address.replace('127.0.0.1', 'localhost')}/mcp", "-o", tmp_path, *options],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
    return done.stdout


def passed(told: str) -> set[str]:
    return set(re.findall(r"^✓ ([\w-]+): [1-9]\d* passed, 0 failed", told, re.MULTILINE))


@pytest.mark.long
def test_what_we_offer_of_the_handshake_era_conforms(jay, tmp_path):
    told = run(jay, npm("conformance-1", "@modelcontextprotocol/conformance@0.1.16"), tmp_path, "--suite", "active")

    assert passed(told) >= OF_2025, told[-3000:]


@pytest.mark.long
def test_what_we_offer_of_the_modern_era_conforms(jay, tmp_path):
    folder = npm("conformance-2", "@modelcontextprotocol/conformance@0.2.0-alpha.12")

    told = run(jay, folder, tmp_path, "--requirements", "2026-07-28")

    assert passed(told) >= OF_2026, told[-3000:]
    [checks] = tmp_path.glob("server-server-stateless-*/checks.json")
    failed = {one["id"] for one in json.loads(checks.read_text()) if one["status"] == "FAILURE"}
    assert failed == UNTESTABLE
