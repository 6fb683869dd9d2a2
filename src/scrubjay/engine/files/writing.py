"""What memories say, written into their files.

A changed memory waits in the store's outbox until its file is written, so that a kill in between heals itself. What
someone wrote into the file meanwhile is taken in first.
"""

from __future__ import annotations

from time import monotonic

from scrubjay.engine import access
from scrubjay.engine.files.changes import FileChange, Progress, SyncedFolder, check_there, get_one
from scrubjay.engine.files.document import document_of, kept_name, possible_names, said_otherwise
from scrubjay.engine.files.links import NoteLinks, keys_in
from scrubjay.engine.files.two_way import FolderReader
from scrubjay.errors import FileDamaged, StorageError
from scrubjay.folders import markdown
from scrubjay.folders.folder import Bytes
from scrubjay.stores.promises.files import File
from scrubjay.stores.promises.memories import Transaction
from scrubjay.values.memory import AT_HAND, LinkKind, Memory, State


class FolderWriter:
    def __init__(self, synced: SyncedFolder) -> None:
        self._synced = synced
        self._engine, self._records = synced.engine, synced.records
        self._space, self._folder = synced.space, synced.folder
        self._reader = FolderReader(synced)

    def write_out(self, *, seconds: float | None = None, progress: Progress | None = None) -> None:
        """Write the files that wait, for some seconds if given. The caller holds the lock of folders.

        :raises StorageError: if the folder, or a part of it, cannot be written to; what is not written goes on waiting
        """
        if self._synced.read_only:
            return self._write_nothing()
        check_there(self._records, self._space, self._folder)
        if any(file.state in AT_HAND for file in self._list_waiting()):
            self._folder.check_writable()
            self._folder.prepare()
        if not self._synced.is_known():
            return  # files can only be removed from a folder that is there
        deadline = None if seconds is None else monotonic() + seconds
        links = NoteLinks(self._engine, self._space, writing=True)
        written = self._write_waiting(deadline, progress)
        if changed := [file for file in written if file.version != file.agreed_version and file.state in AT_HAND]:
            links.follow_written(changed)
            self._write_waiting(deadline, None)  # files name relations

    def _list_waiting(self) -> list[File]:
        return list(self._records.files.list(self._space, waiting=True))

    def _write_waiting(self, deadline: float | None, progress: Progress | None) -> list[File]:
        """Those that were written, as they were before."""
        waiting = self._list_waiting()
        failed: StorageError | None = None
        for number, file in enumerate(waiting, 1):
            try:
                self._write_one(file)
            except StorageError as error:
                if error.retryable:  # nothing can be written now
                    raise
                failed = failed or error  # nothing can be written there; the others do not wait for it
            if deadline is not None and monotonic() > deadline:
                waiting = waiting[:number]
                break
            if progress:
                progress(number, len(waiting))
        if failed is not None:
            raise failed
        return waiting

    def _write_nothing(self) -> None:
        """In a read-only folder nothing waits. What was changed here all the same, by a sync or before the folder was
        read-only, is read from its file again."""
        with self._records.writing() as tx:
            for file in tx.files.list(self._space, waiting=True):
                if file.hash is None or not file.name or file.state is State.PURGED:
                    tx.files.drop([file.memory])
                else:
                    same = file.version == file.agreed_version
                    seen, stamp = (file.hash, file.stamp) if same else (b"", "")
                    tx.files.in_sync(file.memory, name=file.name, hash=seen, stamp=stamp, version=file.version)

    def _write_one(self, file: File) -> None:
        memory = get_one(self._records, file.memory)
        try:
            found = None if memory is None else self._read(file)
            edited = found is not None and found.bytes.hash != file.hash and not self._was_ours(found.document, memory)
            if memory is None or file.state not in AT_HAND:
                self._remove(file, found if edited else None)
            elif edited and found is not None:
                self._take_edit(file, memory, found)
            elif not self._synced.may_lie_here(memory):
                self._withdraw(file, memory)
            else:
                self._write(file, memory, found)
        except FileDamaged as error:  # someone is editing it; our change waits until it can be read
            self._synced.note_problem(file.name, error, memory=file.memory)

    def _read(self, file: File) -> FileChange | None:
        read = self._folder.read(file.name) if file.name else None
        if read is None:
            return None
        return FileChange(name=file.name, bytes=read, document=markdown.parse_file(read.data), file=file)

    def _take_edit(self, file: File, memory: Memory, edit: FileChange) -> None:
        """What someone wrote into a memory's file must not be lost; what else changed is written then."""
        leaving = not self._synced.may_lie_here(memory)
        if not self._reader.revise(edit, file, leaving=leaving):
            return
        memory = self._records.get([memory.id], access.EVERYTHING)[0]
        if leaving:
            return self._withdraw(file, memory)
        with self._records.writing() as tx:
            tx.files.keep([memory.id])
        self._write(file, memory, edit)

    def _remove(self, file: File, edit: FileChange | None) -> None:
        """Of a memory that is deleted, archived, purged or elsewhere."""
        if edit is not None and file.state is State.DELETED:
            self._reader.revise(edit, file)
            return
        if edit is None and file.name:
            self._folder.remove(file.name)
        with self._records.writing() as tx:
            if edit is None and file.state is State.DELETED and file.hash is None:  # another file was moved over it
                tx.files.withdraw(file.memory, version=file.version)
            elif edit is not None or file.state is State.PURGED or file.hash is None:
                tx.files.drop([file.memory])
            else:
                tx.files.in_sync(file.memory, name=file.name, hash=file.hash, stamp="", version=file.version)

    def _withdraw(self, file: File, memory: Memory) -> None:
        """Remove the file of a memory that may no longer be in this folder."""
        if file.name:
            self._folder.remove(file.name)
        with self._records.writing() as tx:
            tx.files.withdraw(memory.id, version=memory.version)
        self._synced.problems.pop(file.name, None)

    def _write(self, file: File, memory: Memory, found: FileChange | None) -> None:
        plain = found is not None and found.document.plain
        if found is not None and plain and memory.version == file.agreed_version and found.bytes.hash == file.hash:
            with self._records.writing() as tx:  # only links changed: a file without front matter stays so
                self._synced.agree(tx, memory, found)
            return
        old = None if found is None else found.document
        data = markdown.render_file(document_of(memory, self._records, old, self._synced.may_lie_here))
        name = kept_name(file, memory) or next(possible_names(memory))
        expected_name = name  # to which other files may already link
        if found is None or name != file.name:
            name, stamp = self._write_new(data, memory)
            if file.name and file.name != name:
                self._folder.remove(file.name)
        elif found.bytes.data == data:
            stamp = found.bytes.stamp
        else:
            stamp = self._folder.write(name, data, over=True)
        if keys_in(memory):
            NoteLinks(self._engine, self._space).expect([memory.content])
        with self._records.writing() as tx:
            if name != expected_name:
                tx.files.keep(self._find_linking(tx, memory))
            written = Bytes(data=data, stamp=stamp)
            tx.files.in_sync(memory.id, name=name, hash=written.hash, stamp=stamp, version=memory.version)
        self._synced.problems.pop(name, None)

    def _find_linking(self, tx: Transaction, memory: Memory) -> list[str]:
        """Memories whose files name this one."""
        return [
            link.source
            for link in tx.history.links([memory.id])
            if link.target == memory.id and link.kind is not LinkKind.MAY_OUTDATE and tx.files.of(link.source)
        ]

    def _write_new(self, data: bytes, memory: Memory) -> tuple[str, str]:
        """Write a file that was not there; one that is, and is not this memory's, keeps its name."""
        for name in possible_names(memory):
            try:
                return name, self._folder.write(name, data, over=False)
            except FileExistsError:
                if self._carries(name, memory):
                    return name, self._folder.write(name, data, over=True)
        raise FileDamaged("Too many files have the same name.")

    def _carries(self, name: str, memory: Memory) -> bool:
        """Whether a file is one that we wrote for this memory, and were killed before we could note it."""
        try:
            found = self._folder.read(name)
            return found is not None and self._was_ours(markdown.parse_file(found.data), memory)
        except FileDamaged:
            return False

    def _was_ours(self, document: markdown.Document, memory: Memory | None) -> bool:
        """Whether a file says what its memory says or said since both last agreed: then a kill kept us from noting it,
        and no one has edited it."""
        if memory is None or document.id != memory.id:
            return False
        file = self._records.files.of(memory.id)
        since = 0 if file is None else file.agreed_version
        versions = (version.memory for version in self._records.history.versions(memory.id))
        said = [memory, *(former for former in versions if former.version > since)]
        return any(not said_otherwise(document, one) for one in said)
