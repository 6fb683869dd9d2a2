"""`make quick`: the tests that need no other process, no browser, no server, no model, no PostgreSQL and no clock.

A file or a test that needs one of them is marked; a test that asks for a fixture that needs one is marked by that. A
test that starts a process or loads a model without a mark fails in `make quick` and says so.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

SLOW_MARKS = ("process", "browser", "model", "postgres", "long")
MARKS_OF_FIXTURES = {
    "model": "model",
    "models": "model",
    "arctic": "model",
    "postgres_store": "postgres",
    "editor": "process",
    "start": "process",
    "terminal": "process",
}
MARKED_FILE = re.compile(rf"^pytestmark = [^\n]*(?:\n +[^\n]*)*?mark\.(?:{'|'.join(SLOW_MARKS)})\b", re.MULTILINE)
SLOW_EVENTS = frozenset({"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn"})


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="only tests within this process, without the model")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files whose every test is slow are not imported at all: what they import takes seconds."""
    unwanted = config.getoption("quick") and collection_path.name.startswith("test_") and is_marked(collection_path)
    return True if unwanted else None


def is_marked(file: Path) -> bool:
    return MARKED_FILE.search(file.read_text("utf-8")) is not None


def mark_by_needs(item: pytest.Item) -> None:
    """Mark a test by the fixtures and parameters that it asks for."""
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    names = {MARKS_OF_FIXTURES.get(one) for one in getattr(item, "fixturenames", ())}
    if "postgres" in map(str, parameters.values()):
        names.add("postgres")
    for name in names - {None}:
        item.add_marker(name)


def is_quick(item: pytest.Item) -> bool:
    return not any(item.get_closest_marker(name) for name in SLOW_MARKS)


def pytest_sessionstart(session: pytest.Session) -> None:
    if session.config.getoption("quick"):
        sys.addaudithook(refuse)


def refuse(event: str, args: tuple[object, ...]) -> None:
    slow = (event in SLOW_EVENTS and running) or (event == "import" and args[0] in ("onnxruntime", "psycopg"))
    if slow:
        raise AssertionError(f"{running or 'A test'} is not quick: {event} {args[0]}")


running = ""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> object:
    global running
    running = item.nodeid
    return (yield)
