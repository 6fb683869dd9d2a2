"""What is left of a damaged store: its pages one by one, without SQLite's indexes, and without touching the file.

SQLite finds a row from the root of its table downwards, so that one bad page hides every row below it. Here each page
is looked at by itself (https://sqlite.org/fileformat2.html): a leaf of a table holds whole rows, and one of `memories`
is recognised by its shape. The log is read too. What is in other tables (links, earlier versions, vectors) is not
looked for.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import apsw

from scrubjay.stores.sqlite import file as sqlite_file
from scrubjay.stores.sqlite.errors import translate
from scrubjay.stores.tables.rows import FIELDS, content_hash, memory_of
from scrubjay.values.callers import DEFAULT_SPACE, LOCAL_USER
from scrubjay.values.frozen import dataclass, replace
from scrubjay.values.memory import Memory, State

MAGIC = b"SQLite format 3\0"
PAGE_SIZE = 4096  # of every store that we make; the header says so, too, unless it is damaged
TABLE_LEAF = 0x0D
LONGEST_ROW = 16 * 1024 * 1024
LOG_MAGIC = (0x377F0682, 0x377F0683)
INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}  # bytes, by the type that a row's header names

Numbers = dict[int, str]


@dataclass(frozen=True, slots=True)
class SalvagedMemory:
    """A memory, and whether its text is the one that was written."""

    memory: Memory
    sound: bool


def salvage_rows(path: Path) -> Iterator[SalvagedMemory]:
    """Every memory that is still readable somewhere in the file, each once; erased ones are left out.

    Nothing else in this process may have the store open: closing a file drops SQLite's locks on it.

    :raises StorageError: if the file cannot be read at all
    """
    columns = _columns()
    spaces, names = _number_names(path, "spaces"), _number_names(path, "names")
    best: dict[str, tuple[int, int, int]] = {}  # id: version, page and cell of its newest row
    try:
        with closing(Pages(path)) as pages:
            for place, row in _rows(pages, columns):
                known = best.get(row["id"])
                if known is None or row["version"] > known[0]:
                    best[row["id"]] = (row["version"], *place)
            wanted = {place[1:] for place in best.values()}
            for place, row in _rows(pages, columns):
                if place in wanted and (found := _find(row, spaces, names)) is not None:
                    yield found
    except OSError as error:
        raise translate(error) from error


class Pages:
    """The pages of a file as its last committed transaction left them."""

    def __init__(self, path: Path) -> None:
        self._data = _map_file(path)
        self._log = _map_file(path.with_name(path.name + "-wal"))
        self.size = PAGE_SIZE
        if self._data[:16] == MAGIC:
            said = int.from_bytes(self._data[16:18], "big")
            said = 65536 if said == 1 else said
            self.size = said if said >= 512 and said & (said - 1) == 0 else PAGE_SIZE
        self._newer = dict(self._committed())
        self.count = max(-(-len(self._data) // self.size), *self._newer, 0)

    def __getitem__(self, number: int) -> bytes:
        """A page by its number, from 1; what is cut off is zero."""
        start = self._newer.get(number)
        if start is not None:
            return bytes(self._log[start : start + self.size])
        return bytes(self._data[(number - 1) * self.size : number * self.size]).ljust(self.size, b"\0")

    def close(self) -> None:
        for mapped in (self._data, self._log):
            if isinstance(mapped, mmap.mmap):
                mapped.close()

    def _committed(self) -> Iterator[tuple[int, int]]:
        """Pages that the log has newer, and where in it; only up to its last commit."""
        head = self._log[:32]
        if len(head) < 32 or int.from_bytes(head[:4], "big") not in LOG_MAGIC:
            return
        waiting: list[tuple[int, int]] = []
        for start in range(32, len(self._log) - self.size - 23, self.size + 24):
            frame = self._log[start : start + 24]
            number, committed = struct.unpack(">II", frame[:8])
            if frame[8:16] != head[16:24] or not number:
                return
            waiting.append((number, start + 24))
            if committed:
                yield from waiting
                waiting = []


def _map_file(path: Path) -> mmap.mmap | bytes:
    try:
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (FileNotFoundError, ValueError):  # there is none, or it is empty
        return b""


def _rows(pages: Pages, columns: Sequence[str]) -> Iterator[tuple[tuple[int, int], dict[str, Any]]]:
    """Whatever looks like a row of `memories`, with its page and its number there."""
    for number in range(1, pages.count + 1):
        page = pages[number]
        header = 100 if number == 1 else 0
        if page[header] != TABLE_LEAF:
            continue
        cells = int.from_bytes(page[header + 3 : header + 5], "big")
        for cell in range(min(cells, pages.size // 4)):
            at = header + 8 + 2 * cell
            with suppress(ValueError, IndexError, struct.error):  # not a row, or not a whole one
                row = _row(pages, page, int.from_bytes(page[at : at + 2], "big"), columns)
                if row is not None:
                    yield (number, cell), row


def _row(pages: Pages, page: bytes, at: int, columns: Sequence[str]) -> dict[str, Any] | None:
    length, at = _varint(page, at)
    seq, at = _varint(page, at)
    header, _ = _varint(page, at)
    least = columns.index("content") + 1  # what the first schema had; later columns may be missing
    if not least < header < 4 * len(columns) or not header <= length <= LONGEST_ROW:
        return None
    values = _values(_payload(pages, page, at, length))
    if len(values) < least:
        return None
    row = dict(zip(columns, values, strict=False))
    if not (isinstance(row["id"], str) and isinstance(row["version"], int) and isinstance(row["content"], str)):
        return None
    return {**row, "seq": seq}


def _payload(pages: Pages, page: bytes, at: int, length: int) -> bytes:
    """A row's bytes, from its page and those it flows over into; zeros where that trail is lost."""
    usable = pages.size
    local = length
    if length > usable - 35:
        least = (usable - 12) * 32 // 255 - 23
        local = least + (length - least) % (usable - 4)
        local = local if local <= usable - 35 else least
    if at + local > usable:
        raise ValueError
    parts, missing = [page[at : at + local]], length - local
    following = int.from_bytes(page[at + local : at + local + 4], "big") if missing else 0
    while missing > 0:
        if not 1 < following <= pages.count:
            parts.append(bytes(missing))
            break
        more = pages[following]
        following = int.from_bytes(more[:4], "big")
        parts.append(more[4 : 4 + min(missing, usable - 4)])
        missing -= usable - 4
    return b"".join(parts)


def _values(payload: bytes) -> list[Any]:
    end, at = _varint(payload, 0)
    kinds, place = [], end
    while at < end:
        kind, at = _varint(payload, at)
        kinds.append(kind)
    values: list[Any] = []
    for kind in kinds:
        value, place = _value(payload, place, kind)
        values.append(value)
    return values


def _value(payload: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind in (0, 8, 9):
        return {0: None, 8: 0, 9: 1}[kind], at
    size = INTEGERS.get(kind) or (8 if kind == 7 else (kind - 12) // 2)
    piece = payload[at : at + size]
    if kind in (10, 11) or len(piece) != size:
        raise ValueError
    if kind in INTEGERS:
        return int.from_bytes(piece, "big", signed=True), at + size
    if kind == 7:
        return struct.unpack(">d", piece)[0], at + size
    return (piece.decode(errors="replace") if kind % 2 else piece), at + size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place in range(at, at + 8):
        byte = data[place]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, place + 1
    return value << 8 | data[at + 8], at + 9


def _find(row: dict[str, Any], spaces: Numbers, names: Numbers) -> SalvagedMemory | None:
    """The memory in a row, if it is one that was not erased."""
    if not row["content"] or row["state"] == State.PURGED:
        return None
    fields = {name: row.get(name) for name in FIELDS}
    fields |= {
        "space": spaces.get(row["space"], DEFAULT_SPACE),
        "user_id": names.get(row["user_id"], LOCAL_USER),
        "conversation_id": names.get(row["conversation_id"]),
    }
    # They stand behind the text and are lost with its end.
    unread = {"accessed_at": row["updated_at"], "access_count": 0, "also": None}
    for known in (fields, fields | unread):
        with suppress(ValueError, TypeError, KeyError, OverflowError):
            memory = memory_of([known[name] for name in FIELDS])
            if row["content_hash"] in (None, content_hash(memory)):
                return SalvagedMemory(memory, sound=True)
            return SalvagedMemory(replace(memory, content=memory.content.rstrip("\0")), sound=False)
    return None


def _columns() -> list[str]:
    """Of `memories`, in the order of its rows; from our own schema, not from the file's."""
    with closing(apsw.Connection(":memory:")) as con:
        sqlite_file.migrate(con)
        return [name for (name,) in con.execute("SELECT name FROM pragma_table_info('memories') ORDER BY cid")]


def _number_names(path: Path, table: str) -> Numbers:
    """Names by their numbers, as far as SQLite can still read them."""
    found: Numbers = {}
    with suppress(apsw.Error), closing(sqlite_file.open_untouched(path)) as con:
        for number, name in con.execute(f"SELECT number, name FROM {table}"):  # noqa: S608 -- a constant
            found[number] = name
    return found
