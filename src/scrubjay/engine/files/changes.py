"""What the files of a folder say that their memories do not say yet. Nothing is changed here.

What is waiting to be written is never judged by its file. Files that cannot be read are left alone and reported.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from scrubjay.engine import access
from scrubjay.engine.files.document import said_otherwise
from scrubjay.engine.store import intake
from scrubjay.errors import Error, FileDamaged, InvalidInput, StillReading, StorageError
from scrubjay.folders import markdown
from scrubjay.folders.folder import Bytes, Folder, Walk
from scrubjay.folders.markdown import Document
from scrubjay.folders.paths import path_of_file
from scrubjay.machine.projects import project_root
from scrubjay.stores.promises.files import File
from scrubjay.stores.promises.memories import Reads, Transaction
from scrubjay.values.frozen import dataclass, replace
from scrubjay.values.memory import AT_HAND, AccessLevel, Memory, State

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine


Progress = Callable[[int, int], None]  # what is done, of how many


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A file that is left alone."""

    name: str
    why: str
    stamp: str = ""  # what the file system said of it when it was read
    memory: str | None = None  # whose file it is, if it was one before


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """A file that says something else than the memory it belongs to, or belongs to none yet."""

    name: str
    bytes: Bytes
    document: Document
    file: File | None = None  # None: a new memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """A folder as it was found, against what its space knows of it."""

    total: int  # files in the folder
    changes: Sequence[FileChange]
    touched: dict[str, str]  # stamps of files that say what they said, by memory
    left: Sequence[File]  # files whose name holds nothing now, or another text: their memories may have lost them
    complete: bool  # otherwise a file that is not listed may still exist


class SyncedFolder:
    """One space and its folder, as both directions see them. Works as the machine's owner, who owns its files."""

    def __init__(
        self,
        engine: Engine,
        space: str,
        folder: Folder,
        problems: dict[str, Problem],
        closing: threading.Event,
        *,
        read_only: bool = False,
    ) -> None:
        self.engine = engine
        self.records = engine.records
        self.space = space
        self.folder = folder
        self.problems = problems  # by name; remembered, so that a bad file is read once
        self.read_only = read_only  # nothing is written into the folder, not even a marker
        self._closing = closing  # set when reading is to end
        self._in_repository = (project_root(folder.root) / ".git").exists()

    def may_lie_here(self, memory: Memory) -> bool:
        """A private memory is kept as a file only for the machine's own user, and not where it would be committed."""
        own = memory.context.user_id == self.engine.caller.user and not self._in_repository
        return own or memory.access_level is not AccessLevel.PRIVATE or self.read_only

    def is_known(self) -> bool:
        """Whether this is the folder that the memories' files were last seen in, and is there at all.

        Another folder, or a new one, has files missing that no one deleted: those are written instead.
        """
        if self.read_only:
            return True
        identity = self.folder.identity()
        if identity is None and self.folder.root.is_dir() and not kept_files(self.records, self.space):
            try:
                identity = self.folder.prepare()
            except Error:  # read-only: then there is nothing that could be missing, either
                return False
        if identity is None:
            return False
        key = identity_key(self.space)
        if self.records.history.fact(key) != identity:
            here = self.folder.walk().files
            gone = [file.memory for file in kept_files(self.records, self.space) if file.name not in here]
            with self.records.writing() as tx:
                tx.files.keep(gone)
                tx.history.set_fact(key, identity)
        return True

    def check_open(self) -> None:
        """:raises StillReading: if the engine is being closed; what is read stays so"""
        if self._closing.is_set():
            raise StillReading("The store is being closed.")

    def agree(self, tx: Transaction, memory: Memory, change: FileChange) -> None:
        """Note that a memory and its file say the same."""
        tx.files.in_sync(
            memory.id, name=change.name, hash=change.bytes.hash, stamp=change.bytes.stamp, version=memory.version
        )
        self.problems.pop(change.name, None)

    def note_problem(self, name: str, error: Error, *, stamp: str = "", memory: str | None = None) -> None:
        self.problems[name] = Problem(name=name, why=error.message, stamp=stamp, memory=memory)

    # --- comparing ---------------------------------------------------------------------------------------------------

    def compare(self, progress: Progress | None = None) -> Differences:
        """Look at every file, and find out whose each is."""
        walk = self.folder.walk()
        files = self.records.files.list(self.space)
        known = sum(file.name in walk.files for file in files)
        if progress and known < len(walk.files):
            progress(known, len(walk.files))
        changes, touched = self._read_changed(walk, files)
        here = walk.files.keys() | walk.refused.keys()
        vacant = [change.file for change in changes if change.file is not None and change.file.state in AT_HAND]
        vacant += [
            file
            for file in files
            if file.state in AT_HAND and not file.waiting and file.hash is not None and file.name not in here
        ]
        return Differences(
            total=len(walk.files),
            changes=self._find_owners(changes, vacant, files),
            touched=touched,
            left=vacant,
            # Without a marker an empty folder may be a disk that is not there.
            complete=walk.complete and (bool(walk.files) or not self.read_only),
        )

    def _read_changed(self, walk: Walk, files: Sequence[File]) -> tuple[list[FileChange], dict[str, str]]:
        """Files that say something new, and the stamps of those that were only touched."""
        by_name = {file.name: file for file in sorted(files, key=lambda file: file.state in AT_HAND) if file.name}
        self._review_problems(walk, by_name)
        changes, touched = [], {}
        for name, stamp in walk.files.items():
            self.check_open()
            file = by_name.get(name)
            if file is not None and not file.waiting and file.state not in (*AT_HAND, State.DELETED):
                file = None  # of an archived memory: its path is free, and this is another one
            if self._is_as_known(name, stamp, file) or (change := self._read(name, file)) is None:
                continue
            self.problems.pop(name, None)  # fixed, perhaps by undoing what broke it
            if file is None or file.state not in AT_HAND or file.hash != change.bytes.hash:
                changes.append(change)
            elif change.bytes.stamp:
                touched[file.memory] = change.bytes.stamp
        return changes, touched

    def _is_as_known(self, name: str, stamp: str, file: File | None) -> bool:
        if file is not None and (file.waiting or (file.stamp == stamp and file.state in AT_HAND)):
            return True
        return (problem := self.problems.get(name)) is not None and problem.stamp == stamp

    def _read(self, name: str, file: File | None) -> FileChange | None:
        try:
            read = self.folder.read(name)
            if read is None:
                return None
            document = markdown.parse_file(read.data)
            intake.check_text(document.content, "content")
            return FileChange(name=name, bytes=read, document=document, file=file)
        except (FileDamaged, InvalidInput) as error:
            self.note_problem(name, error, stamp=self._stamp(name), memory=None if file is None else file.memory)
            return None

    def _stamp(self, name: str) -> str:
        try:
            return self.folder.stamp(name) or ""
        except FileDamaged:
            return ""

    def _review_problems(self, walk: Walk, by_name: dict[str, File]) -> None:
        """Forget those of files that are gone or can be read; and note what the walk itself refused."""
        for name in self.problems.keys() - walk.files.keys():
            del self.problems[name]
        for name, why in walk.refused.items():
            file = by_name.get(name)
            self.problems[name] = Problem(name=name, why=why, memory=None if file is None else file.memory)

    def _find_owners(
        self, changes: Sequence[FileChange], vacant: Sequence[File], files: Sequence[File]
    ) -> list[FileChange]:
        """Changes with the memory that each belongs to. The id that a file carries says so, then its bytes, and only
        then its name: files that were swapped, or moved over others, stay the memories that they were."""
        by_id = {file.memory: file for file in vacant}
        by_hash = {file.hash: file for file in vacant}
        deleted = {file.memory: file for file in files if file.state is State.DELETED and not file.waiting}
        waiting = {file.memory for file in files if file.waiting}
        without = self._find_without_file(changes, {file.memory for file in files if file.name or file.waiting})
        ways: tuple[Callable[[FileChange], File | None], ...] = (
            lambda change: change.file if change.file and change.document.id == change.file.memory else None,
            lambda change: by_id.get(change.document.id or ""),
            lambda change: by_hash.get(change.bytes.hash),
            lambda change: change.file,
            lambda change: None if change.file is not None else deleted.get(change.document.id or ""),
            lambda change: without.get(change.name),
        )
        owners = _match(changes, ways)
        return [
            replace(change, file=owners.get(change.name))
            for change in changes  # a file is left out that is just being written or moved, and not yet noted
            if change.file is not None or change.name in owners or change.document.id not in waiting
        ]

    def _find_without_file(self, changes: Sequence[FileChange], filed: set[str]) -> dict[str, File]:
        """Memories of this space that have no file, and that a new one turns out to be: by its id, or by its path and
        text. So a folder that is taken out and put back finds its memories again."""
        new = [change for change in changes if change.file is None]
        ids = {change.document.id: change for change in new if change.document.id and change.document.id not in filed}
        found = {}
        for memory in self.records.get(list(ids), access.EVERYTHING) if ids else ():
            mine = memory.id in ids and memory.space == self.space and memory.state in AT_HAND
            if mine and self.may_lie_here(memory):
                found[ids[memory.id].name] = _without_file(memory)
        audience = access.audience_of_paths(self.engine.caller, self.space)
        for change in new:
            at_path = self.records.files.at_path(self.space, path_of_file(change.name), audience)
            if at_path is None or at_path.id in filed or not self.may_lie_here(at_path):
                continue
            if not said_otherwise(change.document, at_path):
                found.setdefault(change.name, _without_file(at_path))
        return found


def _match(changes: Sequence[FileChange], ways: Sequence[Callable[[FileChange], File | None]]) -> dict[str, File]:
    """Each file's owner by its name now, found in the first way that leads to one; none is taken twice."""
    owners: dict[str, File] = {}
    taken: set[str] = set()
    for find in ways:
        for change in changes:
            file = find(change)
            if file is not None and change.name not in owners and file.memory not in taken:
                owners[change.name] = file
                taken.add(file.memory)
    return owners


def _without_file(memory: Memory) -> File:
    return File(memory=memory.id, path=memory.path, state=memory.state, version=memory.version)


def get_one(reads: Reads, id: str) -> Memory | None:
    """The memory with this id, whoever may see it."""
    return next(iter(reads.get([id], access.EVERYTHING)), None)


def identity_key(space: str) -> str:
    """The fact that says which folder the files of a space were last seen in."""
    return f"folder:{space}"


def is_away(reads: Reads, space: str, folder: Folder) -> bool:
    """Whether a folder that was in use is gone, or is an empty place where its disk would be mounted."""
    if not reads.history.fact(identity_key(space)) or folder.identity() is not None:
        return False
    if not folder.root.is_dir():
        return True
    files, here = kept_files(reads, space), folder.walk().files
    return bool(files) and not any(file.name in here for file in files)


def check_there(reads: Reads, space: str, folder: Folder) -> None:
    """:raises StorageError: if a folder that was in use is away"""
    if is_away(reads, space, folder):
        raise StorageError(
            "The store's folder is not there; its disk may not be mounted.",
            hint=f"If it is gone for good, `scrubjay folders reindex {space} --new-folder` creates it again.",
        )


def kept_files(reads: Reads, space: str) -> list[File]:
    """The files that both sides agreed on, of memories that are at hand."""
    return [file for file in reads.files.list(space) if file.state in AT_HAND and file.hash is not None]


def still_reading(done: int, total: int) -> StillReading:
    return StillReading(f"Still reading: {done:,} of {total:,} files.", hint="Try again in a moment.")


def ids_of(problems: Iterable[Problem]) -> set[str]:
    return {problem.memory for problem in problems if problem.memory is not None}
