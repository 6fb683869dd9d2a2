"""The connections of one store: as many readers as read at once, one writer, and the way both are closed.

A reader is borrowed for one call, so no connection is ever used by two threads, and readers never wait for a writer
(WAL). The writer's transaction is bracketed here: thread lock, file lock, BEGIN IMMEDIATE … COMMIT.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from types import TracebackType

import apsw

from scrubjay.errors import StorageBusy, StorageDamaged, StorageError
from scrubjay.machine.locks import try_lock, unlock
from scrubjay.stores.scripts import SCHEMA_VERSION
from scrubjay.stores.sqlite import file as sqlite_file
from scrubjay.stores.sqlite import words as sqlite_words
from scrubjay.stores.sqlite.errors import DOCTOR, translate, translated_errors

NOTE = 8  # where the number stands; the first byte is what Windows locks
DIGITS = 20


class Connections:
    def __init__(self, path: Path, *, timeout_seconds: float, for_copy: bool = False) -> None:
        """Open the store at a path, or make it; `for_copy` marks a new one as a copy that is not finished.

        :raises StorageDamaged: if there is something else
        :raises StorageTooNew: if a newer scrubjay has written it
        """
        self.path = path
        self.closed = False
        self.damaged = False
        self.read_only = False
        self.behind = False
        self._identity: tuple[int, int] | None = None
        self._timeout_seconds = timeout_seconds
        self._lock = WriteLock(path.with_name(path.name + ".lock"))
        self._writer: apsw.Connection | None = None
        self._idle: list[sqlite_file.Connection] = []
        self._own = threading.local()  # the reader that a thread keeps for a while
        self._borrowed = 0
        self._returned = threading.Condition()
        self._process = os.getpid()
        sqlite_file.check_engine()
        try:
            with translated_errors():
                self._make_sure_there_is_a_store(for_copy=for_copy)
                self.read_only = not sqlite_file.writable(path)
                self.damaged = not self.read_only and sqlite_file.is_damaged(path)
                self._make_sure_of_the_schema()
                self.behind = not self.damaged and self.lacks_changes(self._idle[-1])
                self._identity = _identity(path)  # after opening: that may change it in a container
        except BaseException:
            self.close()
            raise

    def reading(self) -> AbstractContextManager[apsw.Connection]:
        """Borrow a connection that sees what is committed and can change nothing."""
        return Reading(self)

    def one_reader(self) -> AbstractContextManager[None]:
        """Within the block this thread reads through one connection, which is borrowed once. Names, numbers and counts
        are looked up once (`filters.look_up`), and not again by the next block if nothing was committed meanwhile.
        """
        return OneReader(self)

    @contextmanager
    def fresh(self) -> Iterator[apsw.Connection]:
        """A reader of its own. FTS5 checks what it remembers of its index, which in a used one may be out of date."""
        self._check_open()
        with translated_errors(), self._noticing_damage(), closing(self._reader()) as con:
            yield con

    @contextmanager
    def writing(self, timeout_seconds: float | None = None) -> Iterator[apsw.Connection]:
        """Hold the write lock and a transaction; what the block has not committed when it ends is undone.

        :raises StorageBusy: if another writer held the store for too long
        :raises StorageDamaged: if the file was found damaged, when it was opened or since
        :raises StorageError: if it may not be written
        """
        if self.read_only:
            raise translate(PermissionError())
        if (reader := getattr(self._own, "reader", None)) is not None:
            reader.looked_up = None
        with self._lock.held(self._timeout_seconds if timeout_seconds is None else timeout_seconds) as deadline:
            self._check_open()
            if self.damaged:
                raise StorageDamaged("The store is damaged; it can be read but not written.", hint=DOCTOR)
            with translated_errors(), self._noticing_damage():
                con = self._writable()
                con.set_busy_timeout(max(1, int((deadline - time.monotonic()) * 1000)))
                con.execute("BEGIN IMMEDIATE")
                try:
                    yield con
                except apsw.IOError:  # after a failed read FTS5 may remember its index wrongly, and call it damaged
                    self._give_up(con)
                    raise
                finally:
                    if con is self._writer:
                        self._undo(con)

    def lacks_changes(self, con: apsw.Connection) -> bool:
        """Whether changes that were once committed are not in the store: its log was deleted, or an older file put in
        its place.
        """
        noted = self._lock.noted()  # before the store is asked, which may go on meanwhile
        return noted > _last_change(con)

    def note_change(self, con: apsw.Connection, change: int | None) -> None:
        """Say beside the store how far it has come; if no change is named, as far as it says itself. The caller holds
        the write lock."""
        self._lock.note(_last_change(con) if change is None else change)
        self.behind = False

    def erase_log(self, con: apsw.Connection) -> None:
        """Empty the write-ahead log, so that what was erased is gone from there too. The caller holds the write lock.

        A reader may be in the way: then the next erasure or checkpoint does it, at the latest closing.
        """
        with suppress(apsw.Error):
            con.set_busy_timeout(100)
            sqlite_file.give_back_space(con)
            con.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)

    def close(self) -> None:
        """Wait for those who are reading or writing, then close."""
        with self._returned:
            self.closed = True
            self._returned.wait_for(lambda: not self._borrowed, timeout=self._timeout_seconds)
            idle, self._idle = self._idle, []
        if os.getpid() != self._process:
            return
        for con in idle:
            con.close()
        with self._lock.held_by_thread(self._timeout_seconds):
            writer, self._writer = self._writer, None
            if writer is not None:
                writer.close()
            self._lock.close()

    @contextmanager
    def _noticing_damage(self) -> Iterator[None]:
        """A bad page is met by chance; from then on nothing is written, which could make it worse. Indexes of words and
        vectors are different: they can be rebuilt.
        """
        try:
            yield
        except (apsw.CorruptError, apsw.NotADBError) as error:
            code = getattr(error, "extendedresult", None)  # not in apsw's types
            self.damaged = self.damaged or code != apsw.SQLITE_CORRUPT_VTAB
            raise
        except apsw.SQLError as error:  # where the list of tables is cut off, a table is not there
            if self.damaged:
                raise StorageDamaged(hint=DOCTOR) from error
            with closing(self._reader()) as con:
                sqlite_file.schema_version(con)  # a newer scrubjay may have changed the tables meanwhile
            raise

    def _make_sure_there_is_a_store(self, *, for_copy: bool) -> None:
        """Of several processes that find nothing one makes it, the others wait."""
        if sqlite_file.is_recognised(self.path):
            return
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise translate(error) from error
        with self._lock.held(self._timeout_seconds):
            if not sqlite_file.is_recognised(self.path):
                sqlite_file.create(self.path, for_copy=for_copy)
                self._lock.note(0)  # the store that was here before is none of its business

    def _make_sure_of_the_schema(self) -> None:
        con = self._reader()
        self._idle.append(con)
        if sqlite_file.schema_version(con) < SCHEMA_VERSION and not self.damaged:
            if self.read_only:
                raise StorageError(
                    "The store was created by an older scrubjay and cannot be upgraded here.",
                    hint="Open it once where it is writable.",
                )
            with self._lock.held(self._timeout_seconds):
                sqlite_file.migrate(self._writable())

    def _borrow(self) -> sqlite_file.Connection:
        with self._returned:
            self._check_open()
            self._borrowed += 1
            if self._idle:
                return self._idle.pop()
        try:
            with translated_errors():
                return self._reader()
        except BaseException:
            self._give_back(None)
            raise

    def _give_back(self, con: sqlite_file.Connection | None) -> None:
        if con is not None and con.in_transaction:
            self._undo(con)
        with self._returned:
            self._borrowed -= 1
            if con is not None and not self.closed and not self.read_only:  # its owner may change it meanwhile
                self._idle.append(con)
            elif con is not None:
                con.close()
            self._returned.notify_all()

    def _check_open(self) -> None:
        if self.closed:
            raise StorageError("The store is closed.")
        if os.getpid() != self._process:  # SQLite's connections do not survive a fork
            raise StorageError("The store was opened in another process.", hint="Open it again in this one.")
        # A file that has lost its name lives on while it is open; what is written there is gone when we close. Another
        # in its place is another store, of which nothing is true that was remembered of this one.
        if _identity(self.path) != self._identity:
            raise StorageError(
                "The store's file was removed or replaced while it was open; nothing is read or written any more.",
                hint="Put the file back, or restart every scrubjay that uses it.",
            )

    def _reader(self) -> sqlite_file.Connection:
        con = sqlite_file.connect(self.path, damaged=self.damaged, read_only=self.read_only)
        con.pragma("query_only", "ON")
        sqlite_words.register(con)
        return con

    def _writable(self) -> apsw.Connection:
        if self._writer is None:
            self._writer = sqlite_file.connect(self.path)
            sqlite_words.register(self._writer)
        return self._writer

    def _undo(self, con: apsw.Connection) -> None:
        """Roll back, unless SQLite already has; a connection that cannot is given up."""
        try:
            if con.in_transaction:
                con.execute("ROLLBACK")
        except apsw.Error:
            self._give_up(con)

    def _give_up(self, con: apsw.Connection) -> None:
        if con is self._writer:
            self._writer = None
        con.close(force=True)


class Reading(AbstractContextManager[apsw.Connection]):
    """A class, not a generator: a search reads a dozen times, and three generators each cost as much as a statement."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def __enter__(self) -> apsw.Connection:
        self._kept = getattr(self._connections._own, "reader", None)
        self._con = self._connections._borrow() if self._kept is None else self._kept
        return self._con

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if isinstance(error, Exception):
                with translated_errors(), self._connections._noticing_damage():
                    raise error
        finally:
            # The frame of an error that is raised here would refer to itself, and keep open what the block has read,
            # and with it a view of the store that grows old, until the garbage is collected.
            del error, trace
            if self._kept is None:
                self._connections._give_back(self._con)


class OneReader(AbstractContextManager[None]):
    """A class as well: every search and every store begins with it."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._con: sqlite_file.Connection | None = None  # if it is not kept already

    def __enter__(self) -> None:
        connections = self._connections
        if getattr(connections._own, "reader", None) is not None:
            return
        self._con = connections._own.reader = con = connections._borrow()
        try:
            with connections.reading():
                version = con.execute("PRAGMA data_version").get
        except BaseException:
            self._give_back()
            raise
        if con.kept[0] != version:
            con.kept = version, {}
        con.looked_up = con.kept[1]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._give_back()

    def _give_back(self) -> None:
        if self._con is not None:
            self._con.looked_up = self._connections._own.reader = None
            self._connections._give_back(self._con)


def _last_change(con: apsw.Connection) -> int:
    [(change,)] = con.execute("SELECT change FROM counters")
    return int(change)


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file has this name now; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


# --- the lock --------------------------------------------------------------------------------------------------------


class WriteLock:
    """One writer at a time, in this process and beside it.

    SQLite's own lock lets waiting processes try again at growing intervals, so that a busy one starves the others for
    seconds. A lock on a file of its own costs microseconds. A file lock does not hold off a second thread that shares
    the descriptor, hence the thread lock before it.

    A file lock alone is not fair either: a process with more to write takes it again before one that tries every
    millisecond finds it free. So whoever waits for the lock holds another one, the turn, and whoever wants the lock
    again queues behind. A process that is stopped while it has the turn holds others up for a second only.

    The file also says which change was committed last. SQLite's log is deleted by hand now and then, by people who take
    it for a leftover; the store is whole without it, only older, and nothing else would tell. Written after the commit
    and not forced to the disk, the number is never ahead of the store, and costs microseconds.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._threads = threading.Lock()
        self._holder: int | None = None
        self._file: int | None = None
        self._turn: int | None = None

    @contextmanager
    def held(self, timeout_seconds: float) -> Iterator[float]:
        """Hold the lock in the block; gives the time, as of `time.monotonic`, at which all waiting should end.

        :raises StorageBusy: if it could not be had in time
        """
        deadline = time.monotonic() + timeout_seconds
        with self.held_by_thread(timeout_seconds):
            file, turn = self._opened()
            has_turn = _try_until(turn, min(deadline, time.monotonic() + TURN_SECONDS))
            try:
                if not _try_until(file, deadline):
                    raise StorageBusy()
            finally:
                if has_turn:
                    unlock(turn)
            try:
                yield deadline
            finally:
                unlock(file)

    @contextmanager
    def held_by_thread(self, timeout_seconds: float) -> Iterator[None]:
        """Hold off the other threads of this process only."""
        if self._holder == threading.get_ident():
            raise RuntimeError("A transaction is already open in this thread.")
        if not self._threads.acquire(timeout=timeout_seconds):
            raise StorageBusy()
        try:
            self._holder = threading.get_ident()
            yield
        finally:
            self._holder = None
            self._threads.release()

    def note(self, change: int) -> None:
        """Say which change was the last; the caller holds the lock."""
        file, _ = self._opened()
        with suppress(OSError):  # a full disk: the change itself is kept
            os.lseek(file, NOTE, os.SEEK_SET)
            os.write(file, f"{change:{DIGITS}}".encode("ascii"))
            os.lseek(file, 0, os.SEEK_SET)

    def noted(self) -> int:
        """The last change that was said; 0 if none was."""
        with suppress(OSError, ValueError), self._path.open("rb") as file:
            file.seek(NOTE)
            return int(file.read(DIGITS) or 0)
        return 0

    def close(self) -> None:
        """The caller holds the lock."""
        for file in (self._file, self._turn):
            if file is not None:
                os.close(file)
        self._file = self._turn = None

    def _opened(self) -> tuple[int, int]:
        """The files of the lock and of the turn."""
        try:
            if self._file is None:
                self._file = _open(self._path)
            if self._turn is None:
                self._turn = _open(self._path.with_suffix(".turn"))
        except OSError as error:
            raise translate(error) from error
        return self._file, self._turn


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


TURN_SECONDS = 1.0


def _try_until(file: int, deadline: float) -> bool:
    """Try to lock it until it works or the time is over: no system lock can be waited for with a limit."""
    pause = 0.0002
    while not try_lock(file):
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
        pause = min(pause * 2, 0.001)
    return True
