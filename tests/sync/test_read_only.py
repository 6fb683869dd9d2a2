"""A store whose folder is read-only tells a sync what its files say, and takes nothing in."""

from __future__ import annotations

import pytest

from scrubjay.errors import Forbidden
from scrubjay.folders.registry import Registered, Registry
from scrubjay.remote.peer import RemotePeer
from tests.servers.sites import running
from tests.sync.lines import site_of

pytestmark = pytest.mark.process


@pytest.fixture
def vault(open_engine, tmp_path):
    """An engine at a read-only folder with one note."""
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "tides.md").write_text("High water is at noon")
    engine = open_engine("vault.db", registry=Registry(tmp_path, tmp_path, walk_seconds=0))
    engine.folders.add("vault", folder, read_only=True)
    return engine


@pytest.fixture
def other(open_engine):
    """A store on another machine, with a memory for that space and one for another."""
    engine = open_engine("other.db")
    engine.bound_to(spaces=("vault",)).store("Boats leave at one")
    engine.store("The harbour closes at nine")
    return engine


def texts(engine, space):
    return sorted(memory.content for memory in engine.bound_to(spaces=(space,)).list().memories)


def check_both(vault, other):
    assert texts(vault, "vault") == ["High water is at noon"]
    assert texts(other, "vault") == ["Boats leave at one", "High water is at noon"]
    assert texts(vault, "default") == texts(other, "default") == ["The harbour closes at nine"]


def test_a_sync_of_its_own_takes_nothing_into_it(vault, other, tmp_path):
    vault.sync.add("other", tmp_path / "other.db")
    vault.sync.run(destination="other")

    check_both(vault, other)


def test_a_sync_over_http_sends_nothing_into_it(vault, other):
    with running(site_of(vault)) as address:
        other.sync.add("vault", address)
        other.sync.run(destination="vault")

        check_both(vault, other)


def test_what_is_sent_into_it_all_the_same_is_refused(vault, other, monkeypatch):
    monkeypatch.setattr(RemotePeer, "sealed", lambda _self, _space: False)  # as of a version that does not ask
    with running(site_of(vault)) as address:
        other.sync.add("vault", address)
        with pytest.raises(Forbidden):
            other.sync.run(destination="vault")

    assert texts(vault, "vault") == ["High water is at noon"]


def test_what_was_left_out_comes_when_the_folder_may_be_written(vault, other, tmp_path):
    vault.sync.add("other", tmp_path / "other.db")
    vault.sync.run(destination="other")
    vault.registry.add(Registered(name="vault", path=tmp_path / "notes"))
    vault.sync.run(destination="other")

    assert texts(vault, "vault") == ["Boats leave at one", "High water is at noon"]
