"""What CI does about a test that failed: `tests/again.py`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

ROOT = Path(__file__).parent.parent
CONFTEST = "from tests import closing\npytest_unconfigure = closing.pytest_unconfigure\n"
FLAKY = """
import pathlib
def test_flaky():
    mark = pathlib.Path("seen")
    seen = mark.exists()
    mark.touch()
    assert seen
def test_fine(): pass
"""
BROKEN = "def test_broken(): assert 0\n"
DYING = "import os\ndef test_dying(): os._exit(3)\n"


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        env=environment | {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},  # they take a second
        capture_output=True,
        text=True,
        check=False,
    )


def failed_before(folder: Path, tests: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -q -p xdist")
    (folder / "test_all.py").write_text(tests)
    assert run(folder, "pytest", *options).returncode == 1
    return run(folder, "tests.again")


def test_a_test_that_passes_when_run_again_is_named(tmp_path):
    again = failed_before(tmp_path, FLAKY)

    assert again.returncode == 0
    assert "PASSED ONLY WHEN RUN AGAIN: test_all.py::test_flaky" in again.stdout
    assert "1 passed" in again.stdout


def test_a_broken_test_stays_broken(tmp_path):
    again = failed_before(tmp_path, FLAKY + BROKEN)

    assert again.returncode == 1
    assert "ONLY WHEN RUN AGAIN" not in again.stdout


def test_many_failures_are_not_run_again(tmp_path):
    again = failed_before(tmp_path, "".join(BROKEN.replace("broken", f"broken_{number}") for number in range(4)))

    assert again.returncode == 1
    assert again.stdout == "4 failed tests; not run again\n"


@pytest.mark.parametrize("distribution", ["loadfile", "load"])
def test_a_run_that_was_cut_short_is_not_run_again(tmp_path, distribution):
    options = ["-n", "1", "--dist", distribution, "--max-worker-restart=0"]

    again = failed_before(tmp_path, DYING + "def test_never_run(): pass\n", *options)

    assert again.returncode == 1
    assert again.stdout == "1 failed tests; not run again\n"
