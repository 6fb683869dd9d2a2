"""A disk that fails at the Nth call: a file system for SQLite, in Python, in front of the real one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import apsw

from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.access import EVERYTHING
from scrubjay.engine.parts import engine_on
from scrubjay.errors import Error
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.values.memory import Memory, Status

REAL = apsw.vfs_names()[0]
WRITING = {"full": apsw.FullError, "broken": apsw.IOError}  # fail a write, a sync or a truncation


class Disk(apsw.VFS):
    """Counts the calls that change a file, or that read it. While it is `armed`, the Nth fails, or all from then on."""

    def __init__(self) -> None:
        super().__init__("failing", REAL, makedefault=True)
        self.calls = 0
        self.armed: Callable[[int], bool] = lambda _: False
        self.error = "full"

    def xOpen(self, name: Any, flags: list[int]) -> File:
        return File(self, name, flags)

    def arm(self, n: int, error: str, *, for_good: bool) -> None:
        self.calls = 0
        self.error = error
        self.armed = (lambda call: call >= n) if for_good else (lambda call: call == n)

    def disarm(self) -> None:
        self.armed = lambda _: False

    def changing(self) -> None:
        if self.error in WRITING and self._fails():
            raise WRITING[self.error]

    def reading(self) -> None:
        if self.error not in WRITING and self._fails():
            raise apsw.IOError

    def _fails(self) -> bool:
        self.calls += 1
        return self.armed(self.calls)


class File(apsw.VFSFile):
    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        super().__init__(REAL, name, flags)
        self._disk = disk

    def xRead(self, amount: int, offset: int) -> bytes:
        self._disk.reading()
        return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:
        self._disk.changing()
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:
        self._disk.changing()
        super().xSync(flags)

    def xTruncate(self, size: int) -> None:
        self._disk.changing()
        super().xTruncate(size)


# --- a script that changes a store in every way ----------------------------------------------------------------------

OLD = ("changed", "outdated", "forgotten", "erased", "untouched")


def prepare(path: Path) -> dict[str, str]:
    """A store to be changed; the ids by name."""
    with engine_on(SqliteStore(path), HashingEmbedder()) as jay:
        return {name: jay.store(f"{name} as before").memory.id for name in OLD}


def change_everything(path: Path, ids: dict[str, str]) -> dict[str, str | None]:
    """Run the script; what went wrong with each step, None if it was acknowledged."""
    try:
        jay = engine_on(SqliteStore(path), HashingEmbedder())
    except Error as error:
        return {"open": error.code}
    steps: dict[str, Callable[[], object]] = {
        "new": lambda: jay.store("new"),
        "changed": lambda: jay.update(ids["changed"], content="changed now"),
        "outdated": lambda: jay.supersede(old=ids["outdated"], new=ids["changed"]),
        "forgotten": lambda: jay.forget(ids["forgotten"]),
        "erased": lambda: jay.forget(ids["erased"], hard=True),
        "many": lambda: jay.store_many([{"content": "one of many"} for _ in range(3)]),
    }
    outcome = {name: attempted(step) for name, step in steps.items()}
    with suppress(apsw.Error):  # SQLite keeps silent about what fails while it closes; an exception in Python does not
        jay.close()
    return outcome


def attempted(step: Callable[[], object]) -> str | None:
    try:
        step()
    except Error as error:
        return error.code
    except Exception as error:
        return f"unstructured: {error!r}"
    return None


def wrong(path: Path, ids: dict[str, str], outcome: dict[str, str | None]) -> list[str]:
    """What is neither as before nor as the script would have it; what was acknowledged must be the latter."""
    with closing(SqliteStore(path)) as store:
        checkup = store.check(deep=True)
        found = [*checkup.problems, *(f"the text of {id} has changed" for id in checkup.wrong_hashes)]
        if not checkup.memories == checkup.with_words == checkup.with_vectors + checkup.pending:
            found.append(f"counts differ: {checkup}")
        by_id = {memory.id: memory for memory in store.get(list(ids.values()), EVERYTHING)}
        there = {name: by_id.get(id) for name, id in ids.items()}
        texts = [memory.content for memory in store.get(all_ids(store), EVERYTHING)]
    states = {
        "changed": (is_text(there["changed"], "changed as before"), is_text(there["changed"], "changed now")),
        "outdated": (not superseded(there["outdated"]), superseded(there["outdated"])),
        "forgotten": (has(there["forgotten"], Status.ACTIVE), has(there["forgotten"], Status.DELETED)),
        "erased": (has(there["erased"], Status.ACTIVE), there["erased"] is None),
        "new": (texts.count("new") == 0, texts.count("new") == 1),
        "many": (texts.count("one of many") == 0, texts.count("one of many") == 3),
        "untouched": (is_text(there["untouched"], "untouched as before"), False),
    }
    for name, (before, after) in states.items():
        acknowledged = outcome.get(name, "not tried") is None
        if not (after if acknowledged else before or after):
            found.append(f"{name}: neither old nor new, or acknowledged and lost")
    return found


def all_ids(store: SqliteStore) -> Sequence[str]:
    return [event.memory for event in store.history.events("default") if event.action == "stored" and event.memory]


def is_text(memory: Memory | None, text: str) -> bool:
    return memory is not None and memory.content == text


def superseded(memory: Memory | None) -> bool:
    return memory is not None and memory.superseded_by is not None


def has(memory: Memory | None, status: Status) -> bool:
    return memory is not None and memory.status is status
