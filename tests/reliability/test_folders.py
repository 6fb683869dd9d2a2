"""Rows and files under kill -9 and several processes: what was acknowledged is in both, once, and says the same."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from scrubjay.folders.markdown import parse_file
from scrubjay.folders.registry import Registry
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.values.search import Filter
from tests.reliability.children import opened_at
from tests.reliability.processes import Child
from tests.reliability.rounds import short_and_long, wait_until
from tests.servers.test_http import real_server

pytestmark = pytest.mark.process


def files_of(home: Path) -> dict[str, str]:
    folder = home / "stores" / "default"
    return {
        str(place.relative_to(folder)).removesuffix(".md"): parse_file(place.read_bytes()).content
        for place in folder.rglob("*.md")
    }


def rows_of(home: Path) -> dict[str, str]:
    with opened_at(str(home)) as jay:
        entries = jay.paths.list("default").entries
        assert jay.records.files.waiting() == {}
        return {entry.path: jay.paths.get("default", entry.path).content for entry in entries}


def test_a_kill_between_row_and_file_heals_at_the_next_look(tmp_path):
    """The child has committed its row and waits for the lock of folders, which we hold, when it is killed."""
    lock = Registry(tmp_path, tmp_path).lock
    with opened_at(str(tmp_path)) as jay, Child("add_by_path", tmp_path, "n", 1) as child:
        assert child.hear() == {"ready": True}
        with lock.held(seconds=60) as had:
            assert had
            child.tell()
            wait_until(lambda: jay.records.files.waiting() == {"default": 1})
            child.kill()
            child.process.wait()
        assert files_of(tmp_path) == {}

    assert rows_of(tmp_path) == files_of(tmp_path) == {"project/n0": "Text of project/n0"}


@short_and_long("rounds", 4, 60)
def test_whenever_it_is_killed_rows_and_files_agree_afterwards(tmp_path, chance, rounds):
    known: dict[str, str | None] = {}
    for number in range(rounds):
        in_doubt: set[str] = set()
        with Child("change_by_path", tmp_path, f"r{number}x") as child:
            for _ in range(chance.randint(2, 40)):
                said = child.hear()
                if "trying" in said:
                    in_doubt = {said["trying"], said["target"]}
                    moved_from = said["trying"]
                else:
                    known |= {moved_from: None, said["path"]: said["text"]}
                    in_doubt = set()
            child.kill()
            for said in child.rest():
                if "trying" in said:
                    in_doubt = {said["trying"], said["target"]}
                    moved_from = said["trying"]
                else:
                    known |= {moved_from: None, said["path"]: said["text"]}
                    in_doubt = set()
        rows, files = rows_of(tmp_path), files_of(tmp_path)

        assert rows == files
        there = {path: text for path, text in known.items() if text is not None and path not in in_doubt}
        assert {path: rows.get(path) for path in there} == there
        assert not {path for path, text in known.items() if text is None and path not in in_doubt} & rows.keys()
        known |= {path: rows.get(path) for path in in_doubt}


def test_a_running_server_notices_a_new_file_without_a_call(tmp_path):
    with opened_at(str(tmp_path)) as jay:
        jay.paths.add("default", "a/first", "First")
        everything = jay.audience(Filter())
    with real_server(tmp_path), closing(SqliteStore(tmp_path / "memories.db")) as store:

        def noticed() -> bool:
            (tmp_path / "stores" / "default" / "a" / "second.md").write_text("---\n---\nSecond\n")
            return store.files.at_path("default", "a/second", everything) is not None

        wait_until(noticed)


@short_and_long("each", 10, 100)
def test_three_processes_adding_into_one_category_lose_nothing(tmp_path, each):
    children = [Child("add_by_path", tmp_path, name, each) for name in "xyz"]
    try:
        for child in children:
            assert child.hear() == {"ready": True}
        for child in children:
            child.tell()
        added = [said["added"] for child in children for said in child.rest() if "added" in said]
    finally:
        for child in children:
            child.__exit__()

    assert len(added) == 3 * each
    assert sorted(rows_of(tmp_path)) == sorted(files_of(tmp_path)) == sorted(added)
