"""The protocol's own conformance suite, on a profile for tests, over the stack that serves every dialect.

@modelcontextprotocol/conformance 0.1.16 (up to 2025-11-25) and 0.2.0-alpha.12 (both eras), Node 22.23.3 from npm. What
does not pass is named, with the reason, in `expected_failures.yml`.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.servers.others.everything import everything
from tests.servers.others.installed import node, npm
from tests.servers.sites import running

pytestmark = pytest.mark.process

EXPECTED = Path(__file__).with_name("expected_failures.yml")
OLD, NEW = "@modelcontextprotocol/conformance@0.1.16", "@modelcontextprotocol/conformance@0.2.0-alpha.12"


def run(jay, folder, results, *options: str) -> set[str]:
    """The scenarios that passed, each with at least one check, none of them because a tool was missing."""
    with running(everything(jay)) as address:
        command = [node(folder), folder / "node_modules" / ".bin" / "conformance", "server"]
        done = subprocess.run(
            [*command, "--url", f"{address.replace('127.0.0.1', 'localhost')}/mcp", "-o", results, *options],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    passed = set(re.findall(r"^✓ ([\w-]+): [1-9]\d* passed, 0 failed", done.stdout, re.MULTILINE))
    for name in passed:
        # The suite takes "Unknown tool" for a text, and for the error that it asked for.
        assert "Unknown tool" not in "".join(one.read_text() for one in results.glob(f"server-{name}-2*/checks.json"))
    return passed


@pytest.mark.long
def test_the_handshake_era_conforms(jay, tmp_path):
    passed = run(jay, npm("conformance-1", OLD), tmp_path, "--suite", "all")

    assert len(passed) == 31  # of 32: resuming a broken stream is not offered, and not required


@pytest.mark.long
@pytest.mark.parametrize(("revision", "scenarios"), [("2025-11-25", 30), ("2026-07-28", 37)])
def test_what_a_revision_requires_is_all_there(jay, tmp_path, revision, scenarios):
    passed = run(jay, npm("conformance-2", NEW), tmp_path, "--requirements", revision)

    assert len(passed) >= scenarios


@pytest.mark.long
def test_beyond_that_only_tasks_and_resuming_are_missing(jay, tmp_path):
    passed = run(jay, npm("conformance-2", NEW), tmp_path, "--suite", "all", "--expected-failures", str(EXPECTED))

    checks = [one for file in tmp_path.glob("*/checks.json") for one in json.loads(file.read_text())]
    failed = {one["id"] for one in checks if one["status"] == "FAILURE"}
    assert len(passed) >= 47
    assert all(name.startswith(("tasks-", "sep-2663-")) for name in failed), failed
