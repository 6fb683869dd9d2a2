"""A whole store is copied on the command line, between SQLite and PostgreSQL."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.postgres


def test_a_store_moves_to_postgresql_and_back(call, stored, home, tmp_path, postgres_store, environment):
    id = stored("User lives in Seattle")
    url = postgres_store("copies")

    there = call("copy", str(home / "memories.db"), url)
    back = call("copy", url, str(tmp_path / "back.db"), "--json")

    assert (there.code, back.code) == (0, 0)
    assert "1 memories and 1 vectors copied; both sides are the same." in there.err
    assert back.json["verified"] is True
    for address in (url, f"sqlite:///{tmp_path / 'back.db'}"):
        environment["SCRUBJAY_STORE"] = address
        found = call("search", "Where does the user live?", "--json")
        assert [hit["memory"]["id"] for hit in found.json] == [id]


def test_copying_from_nowhere_makes_nothing(call, tmp_path):
    done = call("copy", str(tmp_path / "none.db"), str(tmp_path / "new.db"))

    assert done.code != 0
    assert "no store to copy from" in done.err
    assert not (tmp_path / "new.db").exists()


def test_a_store_is_not_copied_onto_itself(call, stored, home):
    stored("User lives in Seattle")

    done = call("copy", str(home / "memories.db"), str(home / "memories.db"))

    assert done.code != 0
    assert "onto itself" in done.err


def test_a_password_is_never_shown(call, stored, home):
    stored("User lives in Seattle")

    done = call("copy", str(home / "memories.db"), "postgresql://jay:hunter2@127.0.0.1:9/none")

    assert done.code != 0
    assert "cannot be reached" in done.err
    assert "hunter2" not in done.err + done.out
