"""A store's file: recognised, created, brought to the newest schema, looked over after a crash.

    memories.db        the store, ours by its application id
    memories.db-wal    what was committed since the last checkpoint (SQLite's)
    memories.db-shm    its index (SQLite's)
    memories.db.lock   whoever has it locked may write; says which change was the last
    memories.db.turn   whoever has it locked writes next

The file is only ever opened through SQLite: closing another descriptor of it would drop the locks that SQLite holds
in this process (POSIX), and with them the safety of every other connection.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Hashable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw

from scrubjay.errors import StorageDamaged, StorageError
from scrubjay.machine.paths import sync_folder
from scrubjay.stores.scripts import SCHEMA_VERSION, check_version, script_for
from scrubjay.stores.sqlite.errors import DOCTOR, translate, translated_errors
from scrubjay.text.letters import topic_key
from scrubjay.values.memory import random_suffix

APPLICATION_ID = 0x4A61_7931  # "Jay1"
LEAST_SQLITE = (3, 51, 3)  # earlier ones can corrupt a WAL that two connections reset at once
FREE_PAGES = 200  # of 4 kB; less is not worth moving pages about …
FREE_SHARE = 10  # … nor is less than a tenth of the file
CHECK_SECONDS = 1.0
BUSY_MILLISECONDS = 10_000  # readers wait only for those who open, recover or close the file

MOUNTS = Path("/proc/self/mounts")
NETWORK_SYSTEMS = frozenset({
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "glusterfs", "lustre", "davfs", "ncpfs",
    "fuse.sshfs", "fuse.davfs2", "fuse.glusterfs", "fuse.s3fs", "fuse.rclone", "fuse.gcsfuse",
})  # fmt: skip

SETTINGS = {
    "synchronous": "FULL",  # acknowledged means on the disk
    "secure_delete": "ON",  # what is erased is overwritten
    "foreign_keys": "ON",
    "journal_size_limit": 16 * 1024 * 1024,
    "temp_store": "MEMORY",  # no text of ours in temporary files
    "cache_size": -16 * 1024,  # KiB; the upper pages of the indexes of a hundred thousand memories fit
    "mmap_size": 0,
    "cell_size_check": "ON",
    "trusted_schema": "OFF",
}


def check_place(path: Path) -> Path:
    """Where the store really is: links are followed, so that its companions are beside it for everyone.

    :raises StorageError: if a store cannot be there
    """
    if path.is_symlink() and not path.exists():
        raise StorageError("The store's file is a broken link.", hint="Fix or remove the link.")
    place = path.resolve()
    if (system := network_system(place)) is not None:
        raise StorageError(
            f"The store would be on a network drive ({system}), where two writers can destroy it.",
            hint="Keep it on a local disk, and copy it with `scrubjay backup`.",
        )
    return place


def network_system(path: Path) -> str | None:
    """The kind of network file system that holds a path; None on a local one, or where it is not known."""
    if str(path).startswith("\\\\"):  # \\server\share
        return "smb"
    try:
        mounts = MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    holder, kind = "", ""
    for line in mounts:
        fields = line.split()
        if len(fields) > 2 and len(fields[1]) >= len(holder):
            folder = fields[1].replace("\\040", " ")
            if path.is_relative_to(folder):
                holder, kind = folder, fields[2]
    return kind if kind in NETWORK_SYSTEMS else None


def check_engine() -> None:
    """:raises StorageError: if this SQLite is too old to be trusted with several writers"""
    if tuple(map(int, apsw.sqlite_lib_version().split("."))) < LEAST_SQLITE:
        raise StorageError("SQLite is too old.", hint="Install apsw 3.51.3 or newer.")


class Connection(apsw.Connection):
    looked_up: dict[Hashable, Any] | None = None  # what `filters.look_up` remembers; None: nothing at present
    kept: tuple[int, dict[Hashable, Any]] = (
        -1,
        {},
    )  # the same before the last change, and the version of the data that it is for
    links: tuple[int, dict[str, list[str]]] | None = None  # the last that was seen; which memories they join


def connect(path: Path, *, damaged: bool = False, read_only: bool = False) -> Connection:
    """Open an existing file with our settings. Each is a statement of its own: a script stops at the first answer."""
    con = _read_only(path) if read_only else Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    con.set_busy_timeout(BUSY_MILLISECONDS)
    if damaged:
        _read_what_is_left(con)
    # Plans do not depend on what is bound: else most statements would be planned again each time they run.
    con.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    for name, value in SETTINGS.items():
        con.pragma(name, value)
    return con


def writable(path: Path) -> bool:
    """Whether this process may write the file and make its companions beside it."""
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def is_recognised(path: Path) -> bool:
    """Whether there is a store of ours; False if there is nothing at all.

    :raises StorageDamaged: if there is something else; it is left as it is
    """
    if not os.path.lexists(path):
        return False
    if path.is_dir():
        raise StorageDamaged("The store's path is a folder.", hint=f"Name a file in it. {DOCTOR}")
    if path.is_file() and _size(path) == 0:
        raise StorageDamaged(
            "The store's file is empty.", hint=f"Restore a backup, or remove the file to start over. {DOCTOR}"
        )
    if path.is_file() and not os.access(path, os.R_OK):
        raise translate(PermissionError())
    if is_store(path):
        return True
    if is_database(path):
        raise StorageDamaged(
            "The store's file is a database of another program; it was not changed.",
            hint=f"Choose another file for the store. {DOCTOR}",
        )
    raise StorageDamaged("The store's path is not a scrubjay store.", hint=DOCTOR)


def is_store(path: Path) -> bool:
    """Whether the file is ours, whatever its condition.

    :raises StorageError: if the disk does not say
    """
    if path.is_file():
        with _perhaps_not_ours(), closing(open_untouched(path)) as con:
            return bool(con.pragma("application_id") == APPLICATION_ID)
    return False


def is_database(path: Path) -> bool:
    """Whether the file is SQLite's, with something in it."""
    if path.is_file():
        with _perhaps_not_ours(), closing(open_untouched(path)) as con:
            return con.execute("SELECT 1 FROM sqlite_schema").fetchone() is not None
    return False


@contextmanager
def _perhaps_not_ours() -> Iterator[None]:
    """What SQLite cannot make sense of is not ours; a disk that fails says nothing about whose it is."""
    try:
        yield
    except apsw.IOError as error:
        raise translate(error) from error
    except apsw.Error:
        pass


def create(path: Path, *, for_copy: bool = False) -> None:
    """Make an empty store, or one that only a copy may be made into. The caller holds the write lock and has seen that
    there is nothing.

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
            if for_copy:
                con.execute("INSERT INTO facts (key, value) VALUES ('copy', '')")
        publish(draft, path)
    except OSError as error:
        raise translate(error) from error
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def migrate(con: apsw.Connection) -> None:
    """Make the tables, or bring them up to date. The caller holds the write lock.

    :raises StorageTooNew: if a newer scrubjay has written the store
    :raises StorageError: if the store is too old
    """
    if (version := schema_version(con)) < SCHEMA_VERSION:
        if version:
            from scrubjay.stores.sqlite.vectors import shorten  # numpy is not for a new store

            con.create_scalar_function("topic_key", lambda *topic: topic_key(str(topic[0])), 1)
            con.create_scalar_function("shortened", lambda *blob: shorten(blob[0]), 1)
        with con:  # one savepoint: all of it, or nothing
            for _ in con.execute(script_for("sqlite", version)):
                pass
            con.pragma("application_id", APPLICATION_ID)
            con.pragma("user_version", SCHEMA_VERSION)


def schema_version(con: apsw.Connection) -> int:
    """:raises StorageTooNew: if a newer scrubjay has written the store"""
    return check_version(int(con.pragma("user_version")))


def is_damaged(path: Path) -> bool:
    """Look for damage where there may be some: a file that is cut off, or one that was not closed.

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


def much_is_free(con: apsw.Connection) -> bool:
    free = int(con.pragma("freelist_count"))
    return free > FREE_PAGES and free * FREE_SHARE > int(con.pragma("page_count"))


def give_back_space(con: apsw.Connection) -> None:
    """Shrink the file once a good part of it is free, a bounded piece at a time."""
    if much_is_free(con):
        give_back(con, 500)


def give_back(con: apsw.Connection, pages: int) -> None:
    if pages > 0:  # for SQLite, none is all
        for _ in con.execute(f"PRAGMA incremental_vacuum({pages})"):
            pass


def permissions(path: Path) -> str:
    return f"{path.stat().st_mode & 0o777:04o}"


def others_may_read(path: Path) -> bool:
    return sys.platform != "win32" and bool(path.stat().st_mode & 0o077)


def bytes_on_disk(path: Path) -> int:
    return _size(path) + _size(_wal(path))


def _damaged_by_crash(path: Path) -> bool:
    """Check the file if no one else has it open; exclusive mode is how SQLite tells.

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


def _read_only(path: Path) -> Connection:
    """Open where nothing may be written. Without a log there is nothing to share with writers, and SQLite could not
    make the file to share it in; so the file is taken to stand still for as long as this connection is used.
    """
    if _size(_wal(path)):
        return Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    return Connection(f"{path.absolute().as_uri()}?immutable=1", flags=flags)


def open_untouched(path: Path) -> apsw.Connection:
    """Open without locks, journal or any other trace: what is there may belong to another program.

    A crash during a checkpoint leaves a file that is shorter than its header says until the log is read, too.
    """
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    con = apsw.Connection(f"{path.absolute().as_uri()}?immutable=1", flags=flags)
    _read_what_is_left(con)
    return con


def _read_what_is_left(con: apsw.Connection) -> None:
    """Let a damaged file be read as far as it goes, also one that is shorter than its header says."""
    con.pragma("writable_schema", "ON")


def publish(draft: Path, path: Path, *, over: bool = False) -> None:
    """Give a complete file its name; with `over` in place of what has that name, at one stroke."""
    try:
        if over:
            os.replace(draft, path)
        else:
            os.link(draft, path)  # unlike a rename, never replaces what came to be there meanwhile
    except (FileExistsError, FileNotFoundError):
        raise
    except OSError:  # a file system without links
        if over:
            raise
        draft.rename(path)
    sync_folder(path.parent)


def _clear_drafts(path: Path) -> None:
    """Remove what an earlier, killed attempt left; drafts are made under the write lock, so no one is using them."""
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
