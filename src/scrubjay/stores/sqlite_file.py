"""A store's file: recognised, created, brought to the newest schema, looked over after a crash.

    memories.db        the store, ours by its application id
    memories.db-wal    what was committed since the last checkpoint (SQLite's)
    memories.db-shm    its index (SQLite's)
    memories.db.lock   empty; whoever has it locked may write

The file is only ever opened through SQLite: closing another descriptor of it would drop the locks that SQLite holds
in this process (POSIX), and with them the safety of every other connection.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

import apsw

from scrubjay.errors import StorageDamaged, StorageError, StorageTooNew
from scrubjay.memory import random_suffix
from scrubjay.stores.sqlite_errors import DOCTOR, translated, translated_errors

APPLICATION_ID = 0x4A61_7931  # "Jay1"
SCHEMA_VERSION = 9  # the highest number in schema/sqlite
LEAST_SQLITE = (3, 51, 3)  # earlier ones can corrupt a WAL that two connections reset at once
FREE_PAGES = 200  # of 4 kB; less is not worth moving pages about
CHECK_SECONDS = 1.0
BUSY_MILLISECONDS = 10_000  # readers wait only for those who open, recover or close the file

SETTINGS = {
    "synchronous": "FULL",  # acknowledged means on the disk
    "secure_delete": "ON",  # what is erased is overwritten
    "foreign_keys": "ON",
    "journal_size_limit": 16 * 1024 * 1024,
    "temp_store": "MEMORY",  # no text of ours in temporary files
    "cache_size": -8 * 1024,  # KiB
    "mmap_size": 0,
    "cell_size_check": "ON",
    "trusted_schema": "OFF",
}


def check_engine() -> None:
    """:raises StorageError: if this SQLite is too old to be trusted with several writers"""
    if tuple(map(int, apsw.sqlite_lib_version().split("."))) < LEAST_SQLITE:
        raise StorageError("SQLite is too old.", hint="Install apsw 3.51.3 or newer.")


def connect(path: Path, *, damaged: bool = False) -> apsw.Connection:
    """Open an existing file with our settings. Each is a statement of its own: a script stops at the first answer."""
    con = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    con.set_busy_timeout(BUSY_MILLISECONDS)
    if damaged:
        _read_what_is_left(con)
    for name, value in SETTINGS.items():
        con.pragma(name, value)
    return con


def recognised(path: Path) -> bool:
    """Whether there is a store of ours; False if there is nothing at all.

    :raises StorageDamaged: if there is something else; it is left as it is
    """
    if not os.path.lexists(path):
        return False
    if path.is_file():
        with suppress(apsw.Error), closing(_untouched(path)) as con:
            if con.pragma("application_id") == APPLICATION_ID:
                return True
            if con.execute("SELECT 1 FROM sqlite_schema").fetchone():
                raise StorageDamaged(
                    "The file where the store should be is a database of another program; it was left as it is.",
                    hint=f"Choose another file for the store. {DOCTOR}",
                )
    raise StorageDamaged("There is something else where the store should be.", hint=DOCTOR)


def create(path: Path) -> None:
    """Make an empty store. The caller holds the write lock and has seen that there is nothing.

    It is made under another name and appears complete: a crash leaves no half-made store behind.
    """
    draft = path.with_name(f"{path.name}.{random_suffix()}.new")
    try:
        _clear_drafts(path)
        os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))  # SQLite gives -wal and -shm the same mode
        with translated_errors(), closing(connect(draft)) as con:
            con.pragma("auto_vacuum", "INCREMENTAL")  # can only be chosen before the first table
            con.pragma("journal_mode", "WAL")
            migrate(con)
        _publish(draft, path)
    except OSError as error:
        raise translated(error) from error
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def migrate(con: apsw.Connection) -> None:
    """Bring the schema up to date. The caller holds the write lock.

    :raises StorageTooNew: if a newer scrubjay has written the store
    """
    from importlib.resources import files  # slow to import, and hardly ever needed

    for number in range(schema_version(con) + 1, SCHEMA_VERSION + 1):
        [script] = [
            file
            for file in files("scrubjay.stores").joinpath("schema", "sqlite").iterdir()
            if file.name.startswith(f"{number:04}_")
        ]
        with con:  # one savepoint: all of a migration, or nothing
            for _ in con.execute(script.read_text(encoding="utf-8")):
                pass
            con.pragma("application_id", APPLICATION_ID)
            con.pragma("user_version", number)


def schema_version(con: apsw.Connection) -> int:
    """:raises StorageTooNew: if a newer scrubjay has written the store"""
    version = int(con.pragma("user_version"))
    if version > SCHEMA_VERSION:
        raise StorageTooNew(hint="Update scrubjay: `pip install --upgrade scrubjay`.")
    return version


def damaged(path: Path) -> bool:
    """Look for damage where there may be some: a file that is cut off, or one that nobody closed.

    Bounded to about a second; what a large store hides longer is for `doctor` to find.
    """
    try:
        if _size(_wal(path)):
            return _damaged_by_crash(path)
        with closing(connect(path)) as con:
            con.pragma("user_version")  # SQLite compares the file's size with what its header says
    except (apsw.CorruptError, apsw.NotADBError, apsw.FormatError):
        return True
    return False


def give_back_space(con: apsw.Connection) -> None:
    """Shrink the file once a good part of it is free, a bounded piece at a time."""
    free = int(con.pragma("freelist_count"))
    if free > FREE_PAGES and free * 4 > int(con.pragma("page_count")):
        for _ in con.execute("PRAGMA incremental_vacuum(500)"):
            pass


def permissions(path: Path) -> str:
    return f"{path.stat().st_mode & 0o777:04o}"


def others_may_read(path: Path) -> bool:
    return sys.platform != "win32" and bool(path.stat().st_mode & 0o077)


def bytes_on_disk(path: Path) -> int:
    return _size(path) + _size(_wal(path))


def _damaged_by_crash(path: Path) -> bool:
    """Check the file if nobody else has it open; exclusive mode is how SQLite tells.

    :raises apsw.CorruptError: if it cannot even be checked
    """
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)) as con:
        con.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        con.pragma("locking_mode", "EXCLUSIVE")
        deadline = time.monotonic() + CHECK_SECONDS
        con.set_progress_handler(lambda: time.monotonic() > deadline, 1000)
        try:
            return con.execute("PRAGMA quick_check(1)").fetchall() != [("ok",)]
        except (apsw.BusyError, apsw.InterruptError, apsw.ReadOnlyError, apsw.CantOpenError):
            return False


def _untouched(path: Path) -> apsw.Connection:
    """Open without locks, journal or any other trace: what is there may belong to somebody else.

    A crash during a checkpoint leaves a file that is shorter than its header says until the log is read, too.
    """
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    con = apsw.Connection(f"{path.absolute().as_uri()}?immutable=1", flags=flags)
    _read_what_is_left(con)
    return con


def _read_what_is_left(con: apsw.Connection) -> None:
    """Let a damaged file be read as far as it goes, also one that is shorter than its header says."""
    con.pragma("writable_schema", "ON")


def _publish(draft: Path, path: Path) -> None:
    try:
        os.link(draft, path)  # unlike a rename, never replaces what came to be there meanwhile
    except (FileExistsError, FileNotFoundError):
        raise
    except OSError:  # a file system without links
        draft.rename(path)
    if sys.platform != "win32":
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _clear_drafts(path: Path) -> None:
    """Remove what an earlier, killed attempt left; drafts are made under the write lock, so nobody is at it."""
    for draft in path.parent.iterdir():
        if draft.name.startswith(f"{path.name}.") and draft.name.endswith((".new", ".new-wal", ".new-shm")):
            draft.unlink(missing_ok=True)


def _wal(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
