"""`make dist`: what is in the wheel and the source archive, and that anybody gets the same bytes."""

from __future__ import annotations

import os
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import scrubjay
from tests.packaging.builds import PROJECT, build_archives, copy_sources, release

pytestmark = pytest.mark.process


@pytest.fixture
def loose_umask():
    before = os.umask(0)
    yield
    os.umask(before)


def test_the_same_files_give_the_same_bytes(tmp_path: Path, loose_umask: None):
    again = build_archives(copy_sources(tmp_path / "elsewhere"), tmp_path / "out", "wheel")
    assert again["whl"].read_bytes() == release()["whl"].read_bytes()


def test_the_source_archive_gives_the_same_wheel(tmp_path: Path):
    with tarfile.open(release()["gz"]) as archive:
        archive.extractall(tmp_path, filter="data")
    again = build_archives(tmp_path / f"scrubjay-{scrubjay.__version__}", tmp_path / "out", "wheel")
    assert again["whl"].read_bytes() == release()["whl"].read_bytes()


def test_the_wheel_holds_every_file_of_the_package_and_no_other():
    with zipfile.ZipFile(release()["whl"]) as wheel:
        held = {name for name in wheel.namelist() if ".dist-info/" not in name}
    files = (path for path in (PROJECT / "src").rglob("*") if path.is_file())
    ours = {path.relative_to(PROJECT / "src").as_posix() for path in files if "__pycache__" not in path.parts}
    assert held == ours


def test_the_source_archive_has_what_a_contributor_needs():
    with tarfile.open(release()["gz"]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for name in ("Makefile", "requirements-dev.lock", "tests/conftest.py", "web/package.json", "Dockerfile", "NOTICE"):
        assert name in names
    assert not [name for name in names if "node_modules" in name or "__pycache__" in name or ".venv" in name]


def test_licence_and_notice_travel_with_the_wheel():
    with zipfile.ZipFile(release()["whl"]) as wheel:
        names = {name.rpartition("/")[2] for name in wheel.namelist() if ".dist-info/licenses/" in name}
    assert names == {"LICENSE", "NOTICE"}


def test_postgresql_is_an_extra_and_nothing_for_development_is_installed():
    with zipfile.ZipFile(release()["whl"]) as wheel:
        metadata = Parser().parsestr(wheel.read(f"scrubjay-{scrubjay.__version__}.dist-info/METADATA").decode())
    needs = metadata.get_all("Requires-Dist") or []
    assert metadata.get_all("Provides-Extra") == ["postgres"]
    assert [line for line in needs if "extra ==" in line] == ["psycopg[binary]<4,>=3.2; extra == 'postgres'"]
    assert not [line for line in needs if line.startswith(("pytest", "torch", "playwright"))]
