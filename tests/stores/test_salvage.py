"""A damaged file: what its pages still hold is saved, at least what SQLite's own `.recover` saves."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import apsw
import pytest

from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.parts import engine_on
from scrubjay.engine.transfer import line_of
from scrubjay.errors import Error
from scrubjay.stores.sqlite import file as sqlite_file
from scrubjay.stores.sqlite.salvage import salvage_rows
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.values.memory import State

pytestmark = pytest.mark.process

PAGE = 4096
MEMORIES = 120


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """Texts that fill a cell, and texts that flow over into other pages; one forgotten, one erased."""
    path = tmp_path_factory.mktemp("whole") / "memories.db"
    with engine_on(SqliteStore(path), HashingEmbedder()) as jay:
        ids = jay.store_many(
            {"content": f"Fact {number} 東京 " + "and more " * (number * 7 % 900), "tags": ("harbour",)}
            for number in range(MEMORIES + 1)
        )
        jay.forget(ids[5])
        jay.forget(ids[-1], hard=True)
    return path


def page_of(path: Path, table: str, kind: str, which: int = 0) -> int:
    """The number of a page of a table: `leaf`, `internal` or `overflow`."""
    with closing(sqlite_file.open_untouched(path)) as con:
        pages = con.execute(
            "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = ? ORDER BY pageno", (table, kind)
        ).fetchall()
    return pages[which][0]


def overwritten(page: int, filling: bytes) -> Callable[[bytes], bytes]:
    return lambda data: data[: (page - 1) * PAGE] + filling + data[page * PAGE :]


def noise(size: int) -> bytes:
    return random.Random(7).randbytes(size)


# What is damaged, and how many memories are saved at least.
DAMAGES: dict[str, tuple[Callable[[Path], Callable[[bytes], bytes]], int]] = {
    "nothing": (lambda _: lambda data: data, MEMORIES),
    "cut in half": (lambda _: lambda data: data[: len(data) // 2], MEMORIES // 2),
    "cut within a page": (lambda _: lambda data: data[: len(data) * 3 // 4 + 1234], MEMORIES * 3 // 4),
    "a leaf of zeros": (lambda path: overwritten(page_of(path, "memories", "leaf"), bytes(PAGE)), MEMORIES - 9),
    "a leaf of noise": (lambda path: overwritten(page_of(path, "memories", "leaf", 3), noise(PAGE)), MEMORIES - 9),
    "the root": (lambda path: overwritten(page_of(path, "memories", "internal"), bytes(PAGE)), MEMORIES),
    "the root, noise": (lambda path: overwritten(page_of(path, "memories", "internal"), noise(PAGE)), MEMORIES),
    "of a long text": (lambda path: overwritten(page_of(path, "memories", "overflow"), noise(PAGE)), MEMORIES - 1),
    "the spaces": (lambda path: overwritten(page_of(path, "spaces", "leaf"), bytes(PAGE)), MEMORIES),
    "no header": (lambda _: lambda data: bytes(100) + data[100:], MEMORIES),
    "no first page": (lambda _: overwritten(1, noise(PAGE)), MEMORIES),
    "every tenth page": (
        lambda _: (
            lambda data: b"".join(
                bytes(PAGE) if number % 10 == 3 else data[number * PAGE : (number + 1) * PAGE]
                for number in range(len(data) // PAGE)
            )
        ),
        MEMORIES * 2 // 3,  # which pages these are follows from the tables there are
    ),
    "all noise": (lambda _: lambda data: noise(len(data)), 0),
    "empty": (lambda _: lambda _: b"", 0),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_at_least_what_sqlite_recovers_is_saved_and_every_text_that_is_called_sound_is(whole, tmp_path, damage):
    damaged = tmp_path / "memories.db"
    make, least = DAMAGES[damage]
    damaged.write_bytes(make(whole)(whole.read_bytes()))
    with closing(SqliteStore(whole)) as store, store._reading() as con:
        written = dict(con.execute("SELECT id, content FROM memories WHERE state != ?", (State.PURGED,)))
    before = sha256(damaged.read_bytes()).digest()

    found = {one.memory.id: one for one in salvage_rows(damaged)}

    assert sha256(damaged.read_bytes()).digest() == before
    assert [file.name for file in tmp_path.iterdir()] == ["memories.db"]
    assert {id: one.memory.content for id, one in found.items() if one.sound}.items() <= written.items()
    saved = {id for id, one in found.items() if one.sound}
    assert len(saved) >= least
    theirs = {id for id, text in recovered(damaged, tmp_path).items() if written.get(id) == text}
    print(f"{damage}: {len(saved)} of {len(written)} saved, {len(theirs)} by .recover")
    assert theirs <= saved


def recovered(path: Path, folder: Path) -> dict[str, str]:
    """Ids and texts that `sqlite3 .recover` finds, in their table or lost and found; nothing where there is no sqlite3,
    or one that was built without it, as Debian's is."""
    if shutil.which("sqlite3") is None:
        return {}
    copy, target = folder / "copy.db", folder / "recovered.db"
    shutil.copy(path, copy)
    script = subprocess.run(["sqlite3", str(copy), ".recover"], capture_output=True, timeout=240, check=False).stdout
    subprocess.run(["sqlite3", str(target)], input=script, capture_output=True, timeout=240, check=False)
    found: dict[str, str] = {}
    with closing(apsw.Connection(str(target))) as con:
        tables = [name for (name,) in con.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        if "memories" in tables:
            rows = con.execute("SELECT id, CAST(content AS BLOB) FROM memories WHERE content != ''")
            found |= {id: content.decode(errors="replace") for id, content in rows}
        for table in [name for name in tables if name.startswith("lost_and_found")]:
            for row in con.execute(f"SELECT * FROM {table}"):
                texts = [value for value in row if isinstance(value, str)]
                id = next((text for text in texts if text.startswith("mem_")), None)
                longest = max((text for text in texts if text.startswith("Fact ")), key=len, default=None)
                if id is not None and longest is not None:
                    found.setdefault(id, longest)
    return found


def test_what_only_the_log_holds_is_saved_too(tmp_path):
    """Two texts are in the log, and one that was changed there; then the log is cut within its last transaction."""
    path = tmp_path / "memories.db"
    store = SqliteStore(path)
    with closing(apsw.Connection(str(path))) as reader, engine_on(store, HashingEmbedder()) as jay:
        first = jay.store("Only in the log").memory
        jay.update(first.id, content="Changed in the log")
        jay.store("The last one")
        reader.execute("SELECT 1 FROM memories").fetchall()
        for end in ("", "-wal"):
            shutil.copy(f"{path}{end}", tmp_path / f"crashed.db{end}")
    crashed, log = tmp_path / "crashed.db", tmp_path / "crashed.db-wal"

    complete = {one.memory.content for one in salvage_rows(crashed)}
    log.write_bytes(log.read_bytes()[:-100])
    cut = {one.memory.content for one in salvage_rows(crashed)}

    assert complete == {"Changed in the log", "The last one"}
    assert "Changed in the log" in cut
    assert cut <= complete


def test_a_text_that_rotted_is_saved_and_told(whole, tmp_path):
    path = tmp_path / "memories.db"
    path.write_bytes(whole.read_bytes().replace("Fact 8 東京".encode(), "Fact 9 東京".encode()))

    rotten = [one.memory.content for one in salvage_rows(path) if not one.sound]

    assert [text.split(" and")[0].strip() for text in rotten] == ["Fact 9 東京"]


def test_of_a_text_that_is_lost_in_part_the_rest_is_saved_and_told(whole, tmp_path):
    path = tmp_path / "memories.db"
    path.write_bytes(DAMAGES["of a long text"][0](whole)(whole.read_bytes()))

    [rest] = [one.memory.content for one in salvage_rows(path) if not one.sound]

    assert rest.startswith("Fact ")
    assert "and more and more" in rest


def test_what_is_saved_is_imported_with_tags_and_state(whole, tmp_path):
    with closing(SqliteStore(whole)) as store, store._reading() as con:
        deleted = [id for (id,) in con.execute("SELECT id FROM memories WHERE state = ?", (State.DELETED,))]
    with engine_on(SqliteStore(tmp_path / "memories.db"), HashingEmbedder()) as jay:
        result = jay.transfer.import_from(line_of(one.memory) for one in salvage_rows(whole))

        assert result.stored == MEMORIES
        assert {memory.tags for memory in jay.list(limit=MEMORIES)} == {("harbour",)}
        assert jay.get(deleted[0], deleted=True).deleted_at is not None


def test_a_store_that_is_not_there_has_nothing_to_save(tmp_path):
    assert list(salvage_rows(tmp_path / "nothing.db")) == []
    (tmp_path / "folder").mkdir()
    with pytest.raises(Error):
        list(salvage_rows(tmp_path / "folder"))
