"""Stores: spaces that are folders of Markdown files as well. Which there are, and when they are looked at.

What keeps a space and its folder in step is `two_way.py`; which folder is whose says `folders/registry.py`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from scrubjay.engine import access
from scrubjay.engine.files.changes import (
    Problem,
    Progress,
    SyncedFolder,
    check_there,
    identity_key,
    is_away,
    still_reading,
)
from scrubjay.engine.files.two_way import FolderReader
from scrubjay.engine.files.writing import FolderWriter
from scrubjay.engine.jobs import no_progress
from scrubjay.engine.store import intake
from scrubjay.errors import (
    Conflict,
    Error,
    FileDamaged,
    Forbidden,
    InvalidInput,
    SpaceNotFound,
    StillReading,
    StorageError,
)
from scrubjay.folders.folder import Folder
from scrubjay.folders.paths import file_of_path
from scrubjay.folders.registry import Registered, Registry
from scrubjay.machine.paths import expand_home
from scrubjay.stores.promises.files import File
from scrubjay.text.letters import is_blank
from scrubjay.values.callers import DEFAULT_SPACE, Provenance, Role
from scrubjay.values.frozen import dataclass, replace
from scrubjay.values.store import Space

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine
    from scrubjay.folders.folder import Watcher
    from scrubjay.stores.promises.memories import Transaction

log = logging.getLogger(__name__)

# What a call waits for a folder with many changes: less than the minute after which most clients give up.
READ_SECONDS = 40.0
POLL_SECONDS = 0.5
WRITE_SECONDS = 2.0  # what a call that changes something waits for other writers, and spends on what they left
MAX_DESCRIPTION = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreInfo:
    """A store as a list shows it."""

    name: str
    path: Path | None  # its folder; None where there is none, or the caller is not on this machine
    description: str | None
    memories: int
    superseded: int = 0  # beside them, as lists by path show them
    mirrored: bool = False
    project: bool = False  # of the working folder
    waiting: int = 0  # files that are still to be written
    there: bool = True  # its folder is there
    away: bool = False  # it was there before, so its disk may not be mounted
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexed:
    """What a full look at a folder did."""

    new: int = 0
    changed: int = 0
    moved: int = 0
    gone: int = 0
    written: int = 0  # files that a mirror wrote
    problems: tuple[Problem, ...] = ()


class Shelf:
    """What this process knows of one space's folder."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.looked_at = float("-inf")
        self.complete: Path | None = None  # the folder of which every file was read, at least once
        self.read = (0, 0)  # files, of how many, while they are being read
        self.problems: dict[str, Problem] = {}
        self.failure: str | None = None  # why files could not be written the last time


class Shelves:
    """The shelves of one process, and who watches and reads them."""

    def __init__(self) -> None:
        self._shelves: dict[str, Shelf] = {}
        self._readers: dict[str, threading.Thread] = {}
        self._lock = threading.Lock()
        self.closing = threading.Event()
        self.watcher: Watcher | None = None

    def of(self, space: str) -> Shelf:
        with self._lock:
            return self._shelves.setdefault(space, Shelf())

    def read_on(self, space: str, work: Callable[[], None]) -> None:
        """Go on reading a folder after the call that began it has been answered; one thread for each."""
        with self._lock:
            reader = self._readers.get(space)
            if not self.closing.is_set() and (reader is None or not reader.is_alive()):
                self._readers[space] = threading.Thread(target=work, name=f"reading {space}", daemon=True)
                self._readers[space].start()

    def close(self) -> None:
        self.closing.set()
        if self.watcher is not None:
            self.watcher.close()
        with self._lock:
            readers = list(self._readers.values())
        for reader in readers:
            reader.join()  # it ends with the files that it has at hand


class Folders:
    """The stores, as one caller uses them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._records = engine.records
        self._registry: Registry | None = engine.registry
        self._shelves = engine.parts.shelves

    # --- which there are ---------------------------------------------------------------------------------------------

    def list(self) -> list[StoreInfo]:
        """The stores that the caller may see, by name."""
        spaces = {space.name: space for space in self._engine.known_spaces.list()}
        stores = {} if self._registry is None else self._registry.stores()
        waiting = self._records.files.waiting()
        closed = self._registry is not None and not self._registry.auto_register
        return [
            self._describe(name, stores.get(name), spaces.get(name), waiting.get(name, 0))
            for name in sorted(stores if closed else {*stores, *spaces})
            if access.is_granted(self._engine.caller, name)
        ]

    def _describe(self, name: str, store: Registered | None, space: Space | None, waiting: int) -> StoreInfo:
        project = None if self._registry is None else self._registry.project()
        return StoreInfo(
            name=name,
            path=store.path if store and self._on_this_machine() else None,
            description=(store and store.description) or (space and space.description) or None,
            memories=space.memories if space else 0,
            superseded=space.superseded if space else 0,
            mirrored=self._records.files.mirrored(name),
            project=project is not None and project.name == name,
            waiting=waiting,
            there=store is None or store.path.is_dir(),
            away=store is not None and not store.read_only and self._is_away(name),
            read_only=store is not None and store.read_only,
        )

    def known(self, name: object) -> bool:
        """Whether a store has this name. Spaces made in other ways are stores too, unless the registry is closed."""
        if not isinstance(name, str):
            return False
        if self._registry is not None:
            if name in self._registry.stores():
                return True
            if not self._registry.auto_register:
                return False
        return any(space.name == name for space in self._records.spaces.list())

    def check(self, name: object) -> str:
        """:raises SpaceNotFound: if there is no such store. One that was not granted looks empty, there or not."""
        if isinstance(name, str) and intake.SPACE.fullmatch(name) and not access.is_granted(self._engine.caller, name):
            return intake.check_space(name)
        if not self.known(name):
            raise not_registered(name)
        return str(name)

    def enroll(self, name: str) -> None:
        """Make sure that a store is registered, for a first write. Where its folder is away, the file waits for it.

        :raises SpaceNotFound: if it is not, and the registry is closed
        :raises StorageError: if its folder cannot be written to
        """
        intake.check_space(name)
        access.check_store(self._engine.caller, name)
        if self._registry is None:
            self._create_space(name, None)
            return
        store = self._registry.find(name)
        if store is None and not self._registry.auto_register:
            raise not_registered(name)
        if not self._is_away(name):
            Folder((store or self._registry.usual(name)).path).check_writable()
        if store is None or (not store.written and name != DEFAULT_SPACE):
            self._register(store or self._registry.usual(name))

    def create(
        self, name: str, *, path: Path | None = None, description: str | None = None, read_only: bool = False
    ) -> Registered:
        """Make a store: under the home, or in a folder that the machine's owner chooses.

        :raises Conflict: if there is one of that name
        """
        intake.check_space(name)
        access.check_store(self._engine.caller, name)
        if path is not None:
            self._check_local("Only this machine's owner may choose a folder; omit path.")
        registry = self._need_registry()
        store = replace(registry.usual(name), description=checked_description(description))
        if path is not None:
            store = replace(store, path=checked_folder(path), read_only=read_only)

        def write(tx: Transaction) -> bool:
            if (known := registry.find(name)) is not None and (known.written or name != DEFAULT_SPACE):
                raise Conflict(f"Store {name!r} already exists.", hint="Choose another name, or use it.", space=name)
            if not read_only:
                Folder(store.path).check_writable()
            self._check_registered(tx, store)
            return True

        self._engine.transact(bool, write)
        if not read_only:
            registry.folder_of(store).prepare()
        return store

    def add(
        self,
        name: str,
        path: Path,
        *,
        description: str | None = None,
        read_only: bool = False,
        progress: Progress | None = None,
    ) -> Indexed:
        """Register a folder that is there, and take in what is in it. Into one that is added `read_only` nothing is
        ever written, and its memories are changed by editing their files only."""
        if not checked_folder(path).is_dir():
            raise InvalidInput("No such folder.", hint="`scrubjay folders create` creates one.", field="path")
        self.create(name, path=path, description=description, read_only=read_only)
        return self.reindex(name, progress=progress)

    def remove(self, name: str) -> None:
        """Take a store out of the registry. Its files stay where they are, its memories stay in their space."""
        self._check_local("Only this machine's owner may remove a store.")
        registry = self._need_registry()
        store = registry.find(name)
        if store is None or not store.written:
            raise not_registered(name)
        with self._records.writing() as tx:
            registry.remove(name)
            tx.spaces.create(name, at=self._engine.now())
            tx.files.mirror(name, on=False)
            tx.files.drop([file.memory for file in tx.files.list(name)])
            tx.history.set_fact(identity_key(name), "")

    def mirror(self, name: str, path: Path | None = None, *, progress: Progress | None = None) -> Indexed:
        """Keep every memory of a space as a file from now on; what lay in its folder, and how many were written."""
        self._check_local("Only this machine's owner may mirror a space.")
        registry = self._need_registry()
        store = registry.find(name)
        access.check_unsealed(self._engine.caller, name)
        if path is not None and (store is None or not store.written or not same_folder(store.path, path)):
            if store is not None and (store.written or (name == DEFAULT_SPACE and self._records.files.list(name))):
                raise Conflict(f"Store {name!r} has another folder.", hint="Remove the store first.")
            self._register(replace(registry.usual(intake.check_space(name)), path=checked_folder(path)))
        elif store is None:
            self._register(registry.usual(intake.check_space(name)))
        self._create_space(name, None)
        folder = registry.folder_of(registry.stores()[name])
        check_there(self._records, name, folder)
        folder.prepare()
        indexed = self.reindex(name)  # what is there already
        with self._records.writing() as tx:
            tx.files.mirror(name, on=True)
        waiting = len(self._records.files.list(name, waiting=True))
        self._write(name, seconds=None, progress=progress, quiet=False)
        return replace(indexed, written=waiting - len(self._records.files.list(name, waiting=True)))

    def stop_mirroring(self, name: str) -> None:
        """New memories of a space are no longer written as files; those that are stay so."""
        self._check_local("Only this machine's owner may mirror a space.")
        with self._records.writing() as tx:
            tx.files.mirror(self.check(name), on=False)

    def _register(self, store: Registered) -> None:
        with self._records.writing() as tx:
            self._check_registered(tx, store)

    def _check_registered(self, tx: Transaction, store: Registered) -> None:
        """Inside a transaction, so that no other process changes the registry at the same time."""
        description = self._engine.parts.checked_text(store.description)
        tx.spaces.create(store.name, at=self._engine.now(), description=description)
        self._need_registry().add(replace(store, description=description, written=True))

    def _create_space(self, name: str, description: str | None) -> None:
        with self._records.writing() as tx:
            tx.spaces.create(name, at=self._engine.now(), description=description)

    def _is_away(self, name: str) -> bool:
        folder = self._folder(name)
        return folder is not None and is_away(self._records, name, folder)

    def _need_registry(self) -> Registry:
        if self._registry is None:
            raise InvalidInput("This memory was opened without a home, so it has no folders.")
        return self._registry

    def _on_this_machine(self) -> bool:
        caller = self._engine.caller
        return caller.local and caller.role is Role.OWNER and self._engine.provenance.transport != "http"

    def _check_local(self, why: str) -> None:
        if not self._on_this_machine():
            raise Forbidden(why)

    # --- in step -----------------------------------------------------------------------------------------------------

    def look(self, spaces: Sequence[str], *, owing: bool = True) -> None:
        """Take in what people changed, at most once a second for each space, and write what we owe to their files. What
        cannot be read now is read later.

        :raises StillReading: if there is more than a call has time for; it is read on meanwhile
        """
        for space in spaces:
            try:
                self._look(space, owing=owing)
            except StillReading:
                raise
            except Error as error:
                log.warning("The folder of store %s could not be checked: %s", space, error.message)

    def look_closely(self, space: str, path: str) -> None:
        """Make sure that the memory at a path says what its file says: one stat, if nothing has changed and every file
        was read before (the file of a path may have any name).

        :raises FileDamaged: if there is a file that cannot be read
        :raises StillReading: if there is more to read than a call has time for
        """
        folder = self._folder(space)
        if folder is None or not folder.root.is_dir():
            return
        if self._shelves.of(space).complete != folder.root:
            self._read(space, folder)
        audience = access.audience_in(self._engine.caller, (space,))
        memory = self._records.files.at_path(space, path, audience) or self._records.files.at_path(
            space, path, access.EVERYTHING
        )
        file = None if memory is None else self._records.files.of(memory.id)
        if self._has_changed(folder, file, path, alone=memory is None):
            self._read(space, folder)
        seen = self._records.files.at_path(space, path, audience) is not None  # once more: it may have been read now
        if not (access.is_granted(self._engine.caller, space) if memory is None else seen):
            return
        for problem in self.problems(space):
            mine = memory is not None and problem.memory == memory.id
            if mine or (memory is None and problem.name == file_of_path(path)):
                raise FileDamaged(f"Memory file is corrupted: {path}. {problem.why}", hint="Fix the file by hand.")

    def _has_changed(self, folder: Folder, file: File | None, path: str, *, alone: bool) -> bool:
        try:
            if file is not None:
                return file.waiting or not file.stamp or folder.stamp(file.name) != file.stamp
            return alone and folder.stamp(file_of_path(path)) is not None
        except FileDamaged:
            return True

    def problems(self, space: str) -> Sequence[Problem]:
        """Files of a space that are left alone, and why, as of the last look."""
        return sorted(self._shelves.of(space).problems.values(), key=lambda problem: problem.name)

    def reindex(self, name: str, *, new_folder: bool = False, progress: Progress | None = None) -> Indexed:
        """Look at every file of a store, now, and wait for its vectors. With `new_folder`, a folder that is gone is
        created again and filled."""
        folder = self._folder(self.check(name))
        if folder is None:
            return Indexed()
        if new_folder:
            self._check_local("Only this machine's owner may create a folder again.")
            folder.prepare()
        with self._at(name, until=None) as shelf:
            self._write(name)
            shelf.problems.clear()
            reader = FolderReader(self._synced(name, folder, shelf))
            done = reader.take_in(embed=True, progress=self._reporting(shelf, progress))
            self._write(name)
            shelf.looked_at, shelf.complete = monotonic(), folder.root
        return Indexed(**done, problems=tuple(self.problems(name)))

    def write(self, *, patient: bool = False) -> None:
        """Write the files that wait. Never fails: what cannot be written now goes on waiting, as does what a call
        without patience has no time for."""
        for space in self._records.files.waiting():
            self._write(space, seconds=None if patient else WRITE_SECONDS)

    def waits(self, id: str) -> str | None:
        """Why a memory's file is not written yet; None if it is, or there is none."""
        memory_file = self._records.files.of(id)
        if memory_file is None or not memory_file.waiting:
            return None
        space = self._records.get([id], access.EVERYTHING)[0].space
        return self._shelves.of(space).failure or "Its file is written as soon as the folder is free."

    def watch(self) -> None:
        """Look at folders as soon as something happens in them, until the engine is closed."""
        from scrubjay.folders.folder import Watcher

        if self._registry is not None and self._shelves.watcher is None:
            self._shelves.watcher = Watcher(self._places, self._note_change)
            self._shelves.watcher.start()

    def _places(self) -> dict[str, Path]:
        try:
            return {name: Folder(store.path).root for name, store in self._need_registry().stores().items()}
        except Error as error:
            log.warning("Folders are not watched: %s", error.message)
            return {}

    def _note_change(self, space: str) -> None:
        self._shelves.of(space).looked_at = float("-inf")
        with suppress(StillReading):
            self.look([space])

    def _look(self, space: str, *, owing: bool) -> None:
        folder = self._folder(space)
        if folder is None or self._registry is None:
            return
        shelf = self._shelves.of(space)
        there = folder.root.is_dir()
        if owing and not there:
            self._write(space)
            there = folder.root.is_dir()
        if not there or monotonic() - shelf.looked_at < self._registry.walk_seconds:
            return
        until = monotonic() + READ_SECONDS
        with self._at(space, until=until) as held:
            if monotonic() - held.looked_at >= self._registry.walk_seconds:
                self._take_in(space, folder, held, until=until, owing=owing)

    def _read(self, space: str, folder: Folder) -> None:
        until = monotonic() + READ_SECONDS
        with self._at(space, until=until) as shelf:
            self._take_in(space, folder, shelf, until=until)

    def _take_in(self, space: str, folder: Folder, shelf: Shelf, *, until: float | None, owing: bool = True) -> None:
        if owing:
            self._write(space)
        reader = FolderReader(self._synced(space, folder, shelf))
        try:
            done = reader.take_in(until=until, progress=self._reporting(shelf))
        except StillReading:
            folders = Folders(self._engine.bound_to(progress=no_progress))
            self._shelves.read_on(space, lambda: folders.read_on(space, folder))
            raise
        if owing or done:
            self._write(space)  # what became of it
        shelf.looked_at, shelf.complete = monotonic(), folder.root

    def read_on(self, space: str, folder: Folder) -> None:
        """Read what the call that began had no time for."""
        try:
            with self._at(space, until=None) as shelf:
                self._take_in(space, folder, shelf, until=None)
        except Error as error:
            if not self._shelves.closing.is_set():
                log.warning("The folder of store %s could not be read: %s", space, error.message)

    def _reporting(self, shelf: Shelf, progress: Progress | None = None) -> Progress:
        """Tells a waiting caller how many files are read, of how many."""

        def report(done: int, total: int) -> None:
            shelf.read = done, total
            self._engine.progress(done, total, "reading files")
            if progress:
                progress(done, total)

        return report

    def _write(
        self,
        space: str,
        *,
        seconds: float | None = WRITE_SECONDS,
        progress: Progress | None = None,
        quiet: bool = True,
    ) -> None:
        folder = self._folder(space)
        if folder is None or space not in self._records.files.waiting():
            return
        shelf = self._shelves.of(space)
        try:
            with self._need_registry().lock.held(seconds=60 if seconds is None else seconds) as had:
                if had:
                    writer = FolderWriter(self._synced(space, folder, shelf))
                    writer.write_out(seconds=seconds, progress=progress)
            shelf.failure = None if had else "Another process is writing files."
        except StorageError as error:
            shelf.failure = error.message
            if not quiet:
                raise
            log.warning("Files of store %s are not written yet: %s", space, error.message)

    def _folder(self, space: str) -> Folder | None:
        store = None if self._registry is None else self._registry.find(space)
        return None if self._registry is None or store is None else self._registry.folder_of(store)

    def _synced(self, space: str, folder: Folder, shelf: Shelf) -> SyncedFolder:
        sealed = space in self._need_registry().read_only()
        identity = self._engine.parts.owner.identity
        owner = replace(
            self._engine,
            identity=identity,
            spaces=(space,),
            provenance=Provenance(client="file", transport="file", caller=identity.user),
            request=None,
            expected_version=None,
            from_files=True,
        )
        return SyncedFolder(owner, space, folder, shelf.problems, self._shelves.closing, read_only=sealed)

    @contextmanager
    def _at(self, space: str, *, until: float | None) -> Iterator[Shelf]:
        """One thread at a time looks at a folder.

        :raises StillReading: if another one does until then
        """
        shelf = self._shelves.of(space)
        while not shelf.lock.acquire(timeout=POLL_SECONDS):
            self._engine.progress(*shelf.read, "reading files")
            if until is not None and monotonic() > until:
                raise still_reading(*shelf.read)
        try:
            yield shelf
        finally:
            shelf.lock.release()


def not_registered(name: object) -> SpaceNotFound:
    return SpaceNotFound(f"Store {str(name)[:100]!r} is not registered.", hint="List the stores, or create it.")


def checked_description(text: str | None) -> str | None:
    """Trimmed; blank is none at all."""
    if text is None or is_blank(text):
        return None
    intake.check_text(text.strip(), "description", maximum=MAX_DESCRIPTION)
    return text.strip()


def checked_folder(path: Path) -> Path:
    """A folder as its owner names it, absolute."""
    if "\0" in str(path):
        raise InvalidInput("A folder's name cannot contain a NUL.", field="path")
    return expand_home(path, field="path").absolute()


def same_folder(one: Path, other: Path) -> bool:
    return Folder(one).root == Folder(checked_folder(other)).root
