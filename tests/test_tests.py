"""The tests themselves."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import quick

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[1]

BARE = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
FILES = [*Path(__file__).parent.rglob("*.py")]
OUTER = re.compile(r"^(?:async )?(def|class) |^ +(?:async )?def (test_\w+)", re.MULTILINE)


def test_no_test_is_hidden_inside_a_function():
    """A merge once left the promises of sync below a function's return, where nothing ran them."""
    hidden = []
    for file in FILES:
        outer = ""
        for kind, test in OUTER.findall(file.read_text("utf-8")):
            outer = kind or outer
            if test and outer == "def":
                hidden.append(f"{file.name}: {test}")

    assert hidden == []


# --- what `make test` says last --------------------------------------------------------------------------------------

SAMPLE = """
import pytest

def test_right(): pass
@pytest.mark.skip
def test_left_out(): pass
"""
FAILING = """
import pytest

def test_wrong(): assert 1 == 2
@pytest.fixture
def broken(): raise OSError("no disk")
def test_cannot_begin(broken): pass
"""


@pytest.fixture
def run(tmp_path):
    """Runs our pytest on these files, as `make test` does; its last lines."""

    def run(**files: str) -> list[str]:
        (tmp_path / "conftest.py").write_text("from tests.closing import pytest_unconfigure")
        for name, text in files.items():
            (tmp_path / f"test_{name}.py").write_text(text)
        options = ["-q", "-rN", "-p", "xdist", "-n", "2", "--dist", "loadfile", "-p", "no:cacheprovider"]
        command = [sys.executable, "-m", "pytest", *options, str(tmp_path)]
        done = subprocess.run(command, cwd=tmp_path, env=BARE, capture_output=True, text=True, timeout=480, check=False)
        return done.stdout.splitlines()

    return run


def test_a_run_ends_with_one_line_that_says_how_many_tests_and_how_long(run):
    assert re.fullmatch(r"1 passed, 1 skipped in [\d.]+s(?: \([\d:]+\))?", run(sample=SAMPLE)[-1])


def test_a_failure_shows_its_name_last(run):
    *_, counts, first, second = run(sample=SAMPLE, failing=FAILING)

    assert re.match(r"1 failed, 1 passed, 1 skipped, 1 error in ", counts)
    assert re.fullmatch(r"FAILED \S*test_failing.py::test_wrong - assert 1 == 2", first)
    assert re.fullmatch(r"ERROR \S*test_failing.py::test_cannot_begin - OSError: no disk", second)


# --- what `make quick` runs ---


def test_quick_tests_are_many_and_leave_out_marked_files():
    files = [file for file in FILES if file.name.startswith("test_")]
    slow = {file.relative_to(ROOT).as_posix() for file in files if quick.is_marked(file)}

    assert len(files) - len(slow) >= 70
    assert slow >= {"tests/page/test_views.py", "tests/stores/test_postgres.py", "tests/reliability/test_kill.py"}
    assert slow.isdisjoint({"tests/engine/test_engine.py", "tests/dialects/test_cortex.py"})


@pytest.mark.parametrize(
    ("test", "reason"),
    [
        ("from os import system\ndef test_it(): __import__('subprocess').run(['true'])", "subprocess.Popen"),
        ("def test_it(): __import__('onnxruntime')", "import onnxruntime"),
    ],
    ids=["process", "model"],
)
def test_a_test_that_is_not_quick_after_all_fails(tmp_path, test, reason):
    (tmp_path / "conftest.py").write_text("from tests.quick import *")
    (tmp_path / "test_it.py").write_text(test)
    command = [sys.executable, "-m", "pytest", "--quick", "-p", "no:cacheprovider", "."]
    done = subprocess.run(command, cwd=tmp_path, env=BARE, capture_output=True, text=True, timeout=480, check=False)

    assert "1 failed" in done.stdout, done.stdout + done.stderr
    assert f"test_it is not quick: {reason}" in done.stdout


# --- what `make serve` says ------------------------------------------------------------------------------------------

PYTHON = """#!/bin/sh
case "$*" in
    *stamp.py*) cat src/scrubjay/web/sources.sha256 ;;
    *"model check"*) test -e model-is-here ;;
    *"model pull"*) touch model-is-here; echo "fetched" ;;
    *"scrubjay serve"*) echo "served" ;;
esac
"""


@pytest.mark.skipif(os.name == "nt", reason="there is no make")
def test_make_serve_says_what_it_does_and_the_second_time_only_that_it_starts(tmp_path):
    """Our Makefile with a Python that only notes what it is asked."""
    (tmp_path / "Makefile").write_bytes((ROOT / "Makefile").read_bytes())
    for file in ("pyproject.toml", "requirements.lock", "src/scrubjay/web/sources.sha256", ".venv/bin/python"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(PYTHON if file.endswith("python") else "same")
    (tmp_path / ".venv/bin/python").chmod(0o700)

    def serve() -> list[str]:
        env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
        done = subprocess.run(
            ["make", "serve"], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=480, check=True
        )
        return done.stdout.splitlines()

    packages, model, fetched, starting, served = serve()
    assert packages.startswith("Installing packages")
    assert model.startswith("Fetching the embedding model")
    assert (fetched, starting, served) == ("fetched", "Starting the server ...", "served")
    assert serve() == ["Starting the server ...", "served"]
