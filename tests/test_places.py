"""Files and folders that somebody names in words: they never depend on where a program was started."""

from __future__ import annotations

from pathlib import Path

import pytest

from scrubjay.dialects.table import DIALECTS, ONLY_REST, find
from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.errors import InvalidInput
from scrubjay.machine.paths import full_path
from scrubjay.settings import load
from scrubjay.wiring import open_engine, open_store

# Every argument of an operation that names a place on the machine. What is called `path` elsewhere is a memory's.
NAMED = {
    ("cortex", "create_store"): {"name": "notes", "path": "{}"},
    ("native", "backup"): {"file": "{}"},
    ("native", "add_endpoint"): {"name": "drive", "url": "sqlite:///{}"},
}


@pytest.fixture
def jay(tmp_path, monkeypatch):
    """An engine as it is wired, started in a folder of its own."""
    started_in = tmp_path / "started"
    started_in.mkdir()
    monkeypatch.chdir(started_in)
    settings = load({"SCRUBJAY_HOME": str(tmp_path / "home")})
    with open_engine(settings, embedder=HashingEmbedder()) as engine:
        yield engine


@pytest.mark.parametrize("place", ["notes", "a/../notes", "~nobody-of-that-name/x"])
@pytest.mark.parametrize(("dialect", "name"), NAMED)
def test_a_client_cannot_name_a_place_by_where_the_server_was_started(jay, dialect, name, place):
    arguments = {key: value.format(place) for key, value in NAMED[dialect, name].items()}

    reply = find(dialect).call(jay, name, arguments)

    assert reply.failed
    assert reply.error.code == "invalid_input"
    assert list(Path.cwd().iterdir()) == []


@pytest.mark.parametrize(("dialect", "name"), NAMED)
def test_a_client_may_begin_with_the_home_of_the_servers_user(jay, dialect, name, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    arguments = {key: value.format("~/new") for key, value in NAMED[dialect, name].items()}

    reply = find(dialect).call(jay, name, arguments)
    for job in jay.jobs.list():
        jay.jobs.run(job.id)

    assert not reply.failed, reply.text
    assert (tmp_path / "new").exists()
    assert list(Path.cwd().iterdir()) == []


def test_no_other_operation_names_a_place():
    """`path` and its kin are where a memory lies; a new argument that names a file belongs into NAMED."""
    of_memories = {"path", "from_path", "to_path", "path_prefix", "as_file", "open_files"}
    suspicious = {
        (dialect, name)
        for dialect in (*DIALECTS, *ONLY_REST)
        for name, operation in find(dialect).operations.items()
        for argument in set(operation.takes["properties"]) - of_memories
        if any(word in argument for word in ("path", "file", "folder", "url", "uri", "directory"))
    }

    assert suspicious == set(NAMED) - {("cortex", "create_store")}


@pytest.mark.parametrize("text", ["notes", "./notes", "../notes", "", "a\0b", "/a\0b", "~nobody-of-that-name/x"])
def test_what_is_no_full_path_is_refused(text):
    with pytest.raises(InvalidInput):
        full_path(text, field="file")


def test_a_full_path_may_begin_with_the_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))

    assert full_path("~/a", field="file") == tmp_path / "a"
    assert full_path(str(tmp_path / "b"), field="file") == tmp_path / "b"


@pytest.mark.parametrize("address", ["sqlite:///memories.db", "sqlite:///./memories.db", "sqlite:///", "sqlite://x"])
def test_the_address_of_a_store_is_a_full_one(tmp_path, monkeypatch, address):
    monkeypatch.chdir(tmp_path)

    with pytest.raises(InvalidInput):
        open_store(address)

    assert list(tmp_path.iterdir()) == []
