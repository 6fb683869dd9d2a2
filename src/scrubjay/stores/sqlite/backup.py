"""Copies of a store: made while others write, checked before they get their name, put back only when asked.

memories-2026-11-16.db           the copy: a store like any other, in one file
memories-2026-11-16.db.sha256    its checksum, as `sha256sum --check` reads it
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import apsw

from scrubjay.errors import Conflict, NotFound, StorageBusy, StorageDamaged, StorageError
from scrubjay.stores.promises.memories import Checkup
from scrubjay.stores.scripts import SCHEMA_VERSION
from scrubjay.stores.sqlite import checkup as sqlite_checkup
from scrubjay.stores.sqlite import file as sqlite_file
from scrubjay.stores.sqlite import words as sqlite_words
from scrubjay.stores.sqlite.connections import WriteLock
from scrubjay.stores.sqlite.errors import translate, translated_errors
from scrubjay.values.memory import random_suffix

PAGES = 1_000  # per step; 4 MB
CHUNK = 1024 * 1024

Progress = Callable[[int, int], None]
"""Called with the pages done, and with all there are."""


def backup(source: apsw.Connection, path: Path, progress: Progress | None = None) -> Checkup:
    """Copy what is committed now to a new file, and check the copy. The source is not changed.

    :raises Conflict: if there is something already
    """
    _refuse_existing(path)
    try:
        with _draft(path) as draft:
            _copy(source, draft, progress)
            checkup = _check_copy(draft)
            _write_checksum(draft, path)
            sqlite_file.publish(draft, path)
    except FileExistsError:
        _refuse_existing(path)
        raise
    except OSError as error:
        raise translate(error) from error
    return checkup


def restore(
    path: Path, target: Path, *, replace: bool = False, timeout_seconds: float = 10.0, progress: Progress | None = None
) -> Path | None:
    """Make a backup the store at `target`; where the store that was there is now, if there was one.

    :raises StorageDamaged: if the backup is not whole; nothing is changed
    :raises Conflict: if there is a store and it is not to be replaced
    :raises StorageBusy: if the store is in use
    """
    target = target.resolve()
    _check_opening(path)
    if os.path.lexists(target) and not replace:
        raise Conflict("A store already exists.", hint="With --replace it is moved aside and kept.")
    verify(path)
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _draft(target) as draft, _hold_lock(target, timeout_seconds) as lock:
            with translated_errors(), closing(_open_untouched(path)) as source:
                _copy(source, draft, progress)
            _check_copy(draft)
            aside = _put_aside(target) if os.path.lexists(target) else None
            sqlite_file.publish(draft, target, over=os.path.lexists(target))
            lock.note(0)  # it may be older than what was here
    except OSError as error:
        raise translate(error) from error
    return aside


def verify(path: Path) -> Checkup:
    """Read a backup to its end; writes nothing.

    :raises StorageDamaged: if it is not a whole store
    :raises StorageTooNew: if a newer scrubjay has written it
    """
    _check_opening(path)
    expected = _checksum_beside(path)
    if expected is not None and expected != checksum(path):
        raise StorageDamaged("The backup is damaged: its checksum differs.", hint="Use another backup.")
    with closing(_open_untouched(path)) as con:
        try:
            if sqlite_file.schema_version(con) == SCHEMA_VERSION:
                return _whole(sqlite_checkup.check(con, path, deep=True, damaged=False))
            with tempfile.TemporaryDirectory() as folder:
                draft = Path(folder) / path.name
                _copy(con, draft, None)
                return _check_copy(draft)
        except apsw.Error as error:
            raise StorageDamaged("The backup cannot be read completely.", hint="Use another backup.") from error


def _check_opening(path: Path) -> None:
    """Look at the file's first bytes, before anything else is said."""
    if not os.path.lexists(path):
        raise NotFound(f"No backup {path}.", hint="Name the file that `scrubjay backup` wrote.")
    if path.is_file() and not os.access(path, os.R_OK):
        raise translate(PermissionError())
    if not sqlite_file.is_store(path):
        hint = "Nothing was changed. Give a file that `scrubjay backup` wrote; `scrubjay import` reads exports."
        raise StorageDamaged(f"{path.name} is not a scrubjay backup, or damaged beyond recognition.", hint=hint)


def checksum(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _copy(source: apsw.Connection, draft: Path, progress: Progress | None) -> None:
    """All pages as of one moment: the source is in a transaction, so writers cannot make the copy start over."""
    with translated_errors(), closing(apsw.Connection(str(draft))) as copy:
        source.execute("BEGIN")
        try:
            source.execute("SELECT count(*) FROM sqlite_schema").fetchall()  # the moment
            with copy.backup("main", source, "main") as pages:
                while not pages.done:
                    pages.step(PAGES)
                    if progress:
                        progress(pages.page_count - pages.remaining, pages.page_count)
        finally:
            source.execute("COMMIT")
        copy.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)


def _check_copy(draft: Path) -> Checkup:
    with translated_errors(), closing(sqlite_file.connect(draft)) as con:
        sqlite_words.register(con)
        sqlite_file.migrate(con)
        return _whole(sqlite_checkup.check(con, draft, deep=True, damaged=False))


def _whole(checkup: Checkup) -> Checkup:
    """The same, if nothing in it is wrong; who may read the file is not the question here."""
    damage = [problem for problem in checkup.problems if problem != sqlite_checkup.READABLE]
    if damage or checkup.wrong_hashes:
        what = damage[0] if damage else f"{len(checkup.wrong_hashes)} texts have changed."
        raise StorageDamaged(f"The copy is damaged: {what}", hint="Use another one; see `scrubjay doctor --deep`.")
    return checkup


def _open_untouched(path: Path) -> apsw.Connection:
    con = sqlite_file.open_untouched(path)
    sqlite_words.register(con)
    return con


@contextmanager
def _draft(path: Path) -> Iterator[Path]:
    """A file beside the path that only we may read, gone at the end of the block."""
    draft = path.with_name(f"{path.name}.{random_suffix()}.new")
    os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        yield draft
    finally:
        for file in (draft, *(draft.with_name(draft.name + end) for end in ("-wal", "-shm", "-journal"))):
            with suppress(OSError):
                file.unlink(missing_ok=True)


@contextmanager
def _hold_lock(target: Path, timeout_seconds: float) -> Iterator[WriteLock]:
    """Hold the write lock of the store at this place, whether there is one or not."""
    lock = WriteLock(target.with_name(target.name + ".lock"))
    try:
        with lock.held(timeout_seconds):
            yield lock
    finally:
        with lock.held_by_thread(timeout_seconds):
            lock.close()


def _put_aside(target: Path) -> Path:
    """Keep the store that is there under another name, complete and in one file; the caller holds the write lock.

    Its own name it keeps until the new one takes it, so that at no moment there is none. Whoever has it open would go
    on writing to the old file, so no one may: exclusive mode is how SQLite tells.
    """
    aside = target.with_name(f"{target.name}.replaced-{random_suffix()}")
    if sqlite_file.is_store(target):
        with closing(apsw.Connection(str(target), flags=apsw.SQLITE_OPEN_READWRITE)) as con:
            try:
                con.pragma("locking_mode", "EXCLUSIVE")
                con.execute("BEGIN EXCLUSIVE")
                con.execute("COMMIT")
            except apsw.BusyError:
                raise StorageBusy("The store is in use.", hint="Stop every scrubjay server, then try again.") from None
            except (apsw.CorruptError, apsw.NotADBError, apsw.FormatError):
                pass  # that may be why it is replaced
    for end in ("-wal", "-shm"):
        file = target.with_name(target.name + end)
        if os.path.lexists(file):
            file.rename(aside.with_name(aside.name + end))
    try:
        os.link(target, aside)
    except OSError:  # a file system without links, or a folder
        target.rename(aside)
    return aside


def _refuse_existing(path: Path) -> None:
    if os.path.lexists(path):
        raise Conflict("The backup's target already exists.", hint="Choose another name.")
    if not path.parent.is_dir():
        raise StorageError("The folder for the backup does not exist.", hint="Create it first.")


def _write_checksum(draft: Path, path: Path) -> None:
    beside = _beside(path)
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(f"{checksum(draft)}  {path.name}\n")
        stream.flush()
        os.fsync(stream.fileno())


def _checksum_beside(path: Path) -> str | None:
    try:
        return _beside(path).read_text(encoding="utf-8").split()[0]
    except (OSError, IndexError, UnicodeDecodeError):
        return None


def _beside(path: Path) -> Path:
    return path.with_name(path.name + ".sha256")
