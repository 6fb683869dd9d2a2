"""Start-up time is a feature: what a command does not need is not imported."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.process

HEAVY = {"numpy", "onnxruntime", "rich", "mcp", "jsonschema_rs", "starlette", "uvicorn", "pydantic", "orjson", "httpx"}
LOADED = """
import json, sys
from scrubjay.cli.main import main
for words in json.loads(sys.argv[1]):
    try:
        main(words)
    except SystemExit as end:
        assert not end.code, words
print(*sorted(sys.modules), file=sys.stderr)
"""


def list_modules(environment, *commands):
    """The modules that are there when these commands have ended."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED, json.dumps(commands)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stderr.splitlines()[-1].split())


def packages(modules):
    return {name.partition(".")[0] for name in modules}


def test_the_program_itself_imports_only_click_and_the_standard_library(environment):
    modules = list_modules(environment, ["--help"])

    assert packages(modules) - sys.stdlib_module_names - {"__main__", "click", "scrubjay"} <= {"_distutils_hack"}
    ours = {name for name in modules if name.startswith("scrubjay")}
    assert ours == {"scrubjay", "scrubjay.errors", "scrubjay.cli", "scrubjay.lazy"} | {
        f"scrubjay.cli.{name}" for name in ("main", "command", "session", "failures")
    }


def test_a_search_by_words_imports_neither_model_nor_tables_nor_servers(call, stored, environment):
    stored("User moved to Austin")

    modules = list_modules(environment, ["search", "--words", "Austin"])

    assert not packages(modules) & HEAVY
    assert not {name for name in modules if name.startswith(("scrubjay.servers", "scrubjay.dialects"))}
    assert not {"scrubjay.embedders.local", "scrubjay.embedders.hashing", "importlib.metadata"} & modules
    assert "scrubjay.text.secrets" not in modules  # whose patterns take as long to compile as all else together


def test_reading_commands_need_no_model(call, stored, environment):
    id = stored("User moved to Austin")

    reading = (["list"], ["show", id], ["history", id], ["prune"], ["spaces", "list"], ["settings"], ["export"])
    assert not packages(list_modules(environment, *reading)) & HEAVY
