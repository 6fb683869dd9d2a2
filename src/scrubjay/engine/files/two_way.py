"""One space and its folder kept in step.

    file changed, memory not    the file wins
    memory changed, file not    the file is written
    both changed                the file wins; what the memory said stays as a version
    file gone                   the memory is soft-deleted, if the folder exists and is the one we know
    folder gone                 nothing: its disk may not be mounted, so nothing is created in its place either
    file back                   the same memory comes back
    file renamed                the same memory, told by the id in its front matter or by its bytes
    files swapped               as if each was renamed: ids and histories follow the text
    memory made private         the file leaves a folder that others read; the memory stays

A changed memory waits in the store's outbox until its file is written, so that a kill in between heals itself. What is
waiting is never judged by its file. Files that cannot be read are left alone and reported.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any

from scrubjay.engine import access
from scrubjay.engine.files.document import document_of, level_of, parts_of, said_otherwise
from scrubjay.engine.files.links import NoteLinks, keys_in
from scrubjay.engine.files.names import kept_name, path_found, possible_names
from scrubjay.engine.lifecycle import lifecycle
from scrubjay.engine.store import embedding, intake, names
from scrubjay.engine.store.enrichment import enrich
from scrubjay.engine.store.history import TextVectors
from scrubjay.errors import Conflict, Error, FileDamaged, InvalidInput, StillReading, StorageError
from scrubjay.folders import markdown
from scrubjay.folders.folder import Bytes, Folder, Walk
from scrubjay.folders.markdown import Document
from scrubjay.folders.paths import path_of_file
from scrubjay.machine.projects import project_root
from scrubjay.stores.promises.files import File
from scrubjay.stores.promises.memories import Reads, Transaction
from scrubjay.values.frozen import dataclass, replace
from scrubjay.values.memory import (
    AT_HAND,
    AccessLevel,
    Category,
    Kind,
    LinkKind,
    Memory,
    NewMemory,
    Source,
    State,
    Status,
    new_id,
)

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine

OWN_ID = re.compile(r"mem_[0-9a-z]{12}")
EMBEDDED_AT_ONCE = 8  # files whose texts are embedded within the call that finds them; more wait for the backlog
BATCH = 64  # files taken in per transaction

IN_A_REPOSITORY = "A private memory is not kept in a repository: remove access_level, or move the file elsewhere."

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


class FolderSync:
    """Works as the machine's owner, who owns its files."""

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
        self._engine = engine
        self._records = engine.records
        self._space = space
        self._folder = folder
        self._problems = problems  # by name; remembered, so that a bad file is read once
        self._closing = closing  # set when reading is to end
        self._read_only = read_only  # nothing is written into the folder, not even a marker
        self._done: Counter[str] = Counter()  # how many were new, changed, moved, gone
        self._in_repository = (project_root(folder.root) / ".git").exists()

    def _may_lie_here(self, memory: Memory) -> bool:
        """A private memory is kept as a file only for the machine's own user, and not where it would be committed."""
        own = memory.context.user_id == self._engine.caller.user and not self._in_repository
        return own or memory.access_level is not AccessLevel.PRIVATE or self._read_only

    # --- files to memories -------------------------------------------------------------------------------------------

    def take_in(
        self, *, until: float | None = None, embed: bool = False, progress: Progress | None = None
    ) -> Counter[str]:
        """Look at every file, and let memories say what files say; how many were new, changed, moved, gone.

        `embed` waits for every vector. `progress` is told how many files are read, of how many.

        :raises StillReading: if that is not done at the given time; the next look goes on
        """
        known_folder = not self._read_only and self._is_known()
        self._withdraw_private(thorough=embed)
        walk = self._folder.walk()
        files = self._records.files.list(self._space)
        known = sum(file.name in walk.files for file in files)
        if progress and known < len(walk.files):
            progress(known, len(walk.files))
        changes, same = self._compare_files(walk, files)
        missing = [
            file
            for file in files
            if file.state in AT_HAND and not file.waiting and file.hash is not None
            if file.name not in walk.files and file.name not in walk.refused
        ]
        held = [change.file for change in changes if change.file is not None and change.file.state in AT_HAND]
        changes = self._recognise(changes, missing, files)
        if same:
            with self._records.writing() as tx:
                tx.files.restamp(same)
        links = NoteLinks(self._engine, self._space)
        links.expect(change.document.content for change in changes)
        self._apply(changes, total=len(walk.files), until=until, embed=embed, progress=progress)
        met = {change.file.memory for change in changes if change.file is not None}
        if self._read_only:
            known_folder = bool(walk.files)  # without a marker an empty folder may be a disk that is not there
        if known_folder and walk.complete:
            for file in (*missing, *held):
                if file.memory not in met and self._forget(file):
                    self._done["gone"] += 1
        self._settle_paths(changes)
        linking = [change.name for change in changes if change.file is not None or "[[" in change.document.content]
        links.follow(linking, of=len(changes))
        return self._done

    def is_unchanged(self) -> bool:
        """Whether every file says what it said when it was last read or written. Reads only."""
        walk = self._folder.walk()
        files = {
            file.name: file
            for file in self._records.files.list(self._space)
            if file.name and file.hash is not None and file.state in AT_HAND
        }
        gone = files.keys() - walk.files.keys() - walk.refused.keys()
        return all(files[name].waiting for name in gone) and all(
            self._is_as_known(name, stamp, files.get(name)) for name, stamp in walk.files.items()
        )

    def _is_as_known(self, name: str, stamp: str, file: File | None) -> bool:
        problem = self._problems.get(name)
        if (file is not None and file.stamp == stamp) or (problem is not None and problem.stamp == stamp):
            return True
        read = None if file is None else self._folder.read(name)
        return read is not None and file is not None and read.hash == file.hash

    def _withdraw_private(self, *, thorough: bool) -> None:
        """Let files leave that former versions wrote for memories which may not lie here; looked for once a folder."""
        key = f"folder-private:{self._space}"
        if self._records.history.fact(key) and not thorough:
            return
        ids = [file.memory for file in self._filed_files() if not file.waiting]
        found = [
            memory.id
            for start in range(0, len(ids), BATCH)
            for memory in self._records.get(ids[start : start + BATCH], access.EVERYTHING)
            if not self._may_lie_here(memory)
        ]
        with self._records.writing() as tx:
            tx.files.keep(found)
            tx.history.set_fact(key, "looked for")

    def _is_known(self) -> bool:
        """Whether this is the folder that the memories' files were last seen in, and is there at all.

        Another folder, or a new one, has files missing that no one deleted: those are written instead.
        """
        identity = self._folder.identity()
        if identity is None and self._folder.root.is_dir() and not self._filed_files():
            try:
                identity = self._folder.prepare()
            except Error:  # read-only: then there is nothing that could be missing, either
                return False
        if identity is None:
            return False
        key = identity_key(self._space)
        if self._records.history.fact(key) != identity:
            here = self._folder.walk()
            gone = [file.memory for file in self._filed_files() if file.name not in here.files]
            with self._records.writing() as tx:
                tx.files.keep(gone)
                tx.history.set_fact(key, identity)
        return True

    def _filed_files(self) -> list[File]:
        return kept_files(self._records, self._space)

    def _compare_files(self, walk: Walk, files: Sequence[File]) -> tuple[list[FileChange], dict[str, str]]:
        """Files that say something new, and the stamps of those that were only touched."""
        by_name = {file.name: file for file in files if file.name and file.state is not State.PURGED}
        by_name |= {file.name: file for file in files if file.name and file.state in AT_HAND}
        self._forget_problems(walk, by_name)
        changes, same = [], {}
        for name, stamp in walk.files.items():
            self._check_open()
            file = by_name.get(name)
            if file is not None and (file.waiting or (file.stamp == stamp and file.state in AT_HAND)):
                continue
            if (known := self._problems.get(name)) is not None and known.stamp == stamp:
                continue
            found = self._read(name, file)
            if found is None:
                continue
            self._problems.pop(name, None)  # fixed, perhaps by undoing what broke it
            if file is not None and file.hash == found.bytes.hash and file.state in AT_HAND:
                if found.bytes.stamp:
                    same[file.memory] = found.bytes.stamp
            elif file is None or file.state in AT_HAND or file.state is State.DELETED:
                changes.append(replace(found, file=file))
            else:
                changes.append(found)  # of an archived memory: its path is free, and this is another one
        return changes, same

    def _read(self, name: str, file: File | None) -> FileChange | None:
        try:
            read = self._folder.read(name)
            if read is None:
                return None
            document = markdown.parse_file(read.data)
            intake.check_text(document.content, "content")
            return FileChange(name=name, bytes=read, document=document)
        except (FileDamaged, InvalidInput) as error:
            self._problem(name, error, stamp=self._stamp(name), memory=None if file is None else file.memory)
            return None

    def _stamp(self, name: str) -> str:
        try:
            return self._folder.stamp(name) or ""
        except FileDamaged:
            return ""

    def _recognise(self, changes: list[FileChange], missing: Sequence[File], files: Sequence[File]) -> list[FileChange]:
        """Changes with the memory that each belongs to. The id that a file carries says so, then its bytes, and only
        then its name: files that were swapped, or moved over others, stay the memories that they were."""
        claims = self._claims(changes, missing)
        deleted = {file.memory: file for file in files if file.state is State.DELETED and not file.waiting}
        waiting = {file.memory for file in files if file.waiting}
        without = self._without_file(changes, {file.memory for file in files if file.name or file.waiting})
        taken = {file.memory for file in claims.values()}
        result = []
        for change in changes:
            given, file = change.document.id or "", claims.get(change.name)
            if file is None:
                if change.file is None and given in waiting:
                    continue  # it is just being written or moved, and not yet noted
                named = (change.file, deleted.get(given) if change.file is None else None, without.get(change.name))
                file = next((one for one in named if one is not None and one.memory not in taken), None)
            if file is not None:
                taken.add(file.memory)
            result.append(replace(change, file=file))
        return result

    def _claims(self, changes: Sequence[FileChange], missing: Sequence[File]) -> dict[str, File]:
        """Which files are known ones under other names, by their names now."""
        own = {one.name for one in changes if one.file is not None and one.document.id == one.file.memory}
        others = [
            change.file
            for change in changes
            if change.file is not None and change.file.state in AT_HAND and change.name not in own
        ]
        vacant = {file.memory: file for file in (*others, *missing)}  # whose name holds another text, or nothing
        by_hash = {file.hash: file for file in vacant.values()}
        by_id = [(change.name, vacant.get(change.document.id or "")) for change in changes]
        by_bytes = [(change.name, by_hash.get(change.bytes.hash)) for change in changes]
        claims: dict[str, File] = {}
        claimed: set[str] = set()
        for name, file in (*by_id, *by_bytes):
            if file is not None and name not in own and name not in claims and file.memory not in claimed:
                claims[name] = file
                claimed.add(file.memory)
        return claims

    def _without_file(self, changes: Sequence[FileChange], filed: set[str]) -> dict[str, File]:
        """Memories of this space that have no file, and that a new one turns out to be: by its id, or by its path and
        text. So a folder that is taken out and put back finds its memories again."""
        new = [change for change in changes if change.file is None]
        ids = {change.document.id: change for change in new if change.document.id and change.document.id not in filed}
        found = {}
        for memory in self._records.get(list(ids), access.EVERYTHING) if ids else ():
            mine = memory.id in ids and memory.space == self._space and memory.state in AT_HAND
            if mine and self._may_lie_here(memory):
                found[ids[memory.id].name] = _no_file(memory)
        audience = access.audience_of_paths(self._engine.caller, self._space)
        for change in new:
            at_path = self._records.files.at_path(self._space, path_of_file(change.name), audience)
            if at_path is None or at_path.id in filed or not self._may_lie_here(at_path):
                continue
            if not said_otherwise(change.document, at_path):
                found.setdefault(change.name, _no_file(at_path))
        return found

    def _apply(
        self,
        changes: Sequence[FileChange],
        *,
        total: int,
        until: float | None,
        embed: bool,
        progress: Progress | None,
    ) -> None:
        at_once = embed or len(changes) <= EMBEDDED_AT_ONCE
        changes = sorted(changes, key=_age)  # of decisions on one topic the last is the current one
        for start in range(0, len(changes), BATCH):
            self._check_open()
            read = total - len(changes) + start
            if progress:
                progress(read, total)
            if start and until is not None and monotonic() > until:
                raise still_reading(read, total)  # something is done every time, so that many looks come to an end
            batch = changes[start : start + BATCH]
            self._add([change for change in batch if change.file is None], at_once=at_once, embed=embed)
            for change in batch:
                if change.file is not None:
                    self._revise(change, change.file, at_once=at_once)
        if progress and changes:
            progress(total, total)

    def _check_open(self) -> None:
        """:raises StillReading: if the engine is being closed; what is read stays so"""
        if self._closing.is_set():
            raise StillReading("The store is being closed.")

    def _add(self, changes: Sequence[FileChange], *, at_once: bool, embed: bool) -> None:
        """Memories for new files, in one transaction."""
        made = [(change, made) for change in changes if (made := self._make_memory(change)) is not None]
        if not made:
            return
        memories = [memory for _, (_, memory) in made]
        texts = self._texts(memories, at_once=at_once, embed=embed)
        complete = [
            enrich(self._engine, memory, new, text.first) for (_, (new, memory)), text in zip(made, texts, strict=True)
        ]
        with self._records.writing() as tx:
            for (change, _), memory, text in zip(made, complete, texts, strict=True):
                if tx.files.named(self._space, change.name) is None:  # else another process was quicker
                    self._add_one(tx, change, memory, text)
        self._engine.parts.backlog.wake()
        self._done["new"] += len(made)

    def _make_memory(self, change: FileChange) -> tuple[NewMemory, Memory] | None:
        document, now = change.document, self._engine.now()
        modified = change.bytes.modified_at
        created = document.created_at or modified
        created = None if created is None else min(created, now)
        try:
            new = NewMemory(
                **parts_of(document),
                path=path_of_file(change.name),
                title=document.title or (_stem(change.name)[: intake.MAX_TITLE] if document.plain else None),
                category=None if document.category is None else Category(document.category),
                tags=intake.checked_tags(document.tags),
                also=document.also,
                source=Source.EXPLICIT,
                access_level=level_of(document.access_level),
                created_at=created,
                expires_at=document.expires_at,
            )
            memory = intake.admit(self._engine, new, id=self._free_id(document.id))
            if memory.id == document.id:
                memory = replace(memory, path=path_found(change.name, memory))
            if not self._may_lie_here(memory):
                raise InvalidInput(IN_A_REPOSITORY)
        except InvalidInput as error:
            self._problem(change.name, error, stamp=change.bytes.stamp)
            return None
        updated = document.updated_at or modified
        if updated is not None and memory.created_at <= updated <= now:
            memory = replace(memory, updated_at=updated)
        provenance = replace(memory.provenance, client=(document.source or "file")[:100])
        return new, replace(memory, provenance=provenance)

    def _free_id(self, given: str | None) -> str:
        """The id that a file carries, if it is one and not taken: a store cloned elsewhere keeps its names."""
        if given and OWN_ID.fullmatch(given) and not self._records.get([given], access.EVERYTHING):
            return given
        return new_id()

    def _add_one(self, tx: Transaction, change: FileChange, memory: Memory, text: TextVectors) -> None:
        memory = replace(memory, path=names.free_path(tx, memory))
        try:
            stored = self._store(tx, memory, text)
        except Conflict:  # the id of a purged memory
            stored = self._store(tx, replace(memory, id=new_id()), text)
        self._agree(tx, stored, change)

    def _store(self, tx: Transaction, memory: Memory, text: TextVectors) -> Memory:
        if memory.kind is Kind.DECISION:
            return self._engine.decisions.add(tx, memory, text)[0]
        return self._engine.ledger.add(tx, memory, text, judged=memory.kind is not Kind.MEMORY)

    def _texts(self, memories: Sequence[Memory], *, at_once: bool, embed: bool) -> Sequence[TextVectors]:
        if embed:
            return embedding.embed_at_leisure(self._engine, memories)
        if at_once:
            return [embedding.embed(self._engine, memory)[0] for memory in memories]
        return [
            TextVectors(vectors=(), parts=len(self._engine.parts.embedding.parts_of(memory))) for memory in memories
        ]

    def _revise(self, change: FileChange, file: File, *, at_once: bool = True, leaving: bool = False) -> bool:
        """Let a memory say what its file says; False if that cannot be, or not now."""
        known = next(iter(self._records.get([file.memory], access.EVERYTHING)), None)
        if known is None:
            return False
        if not leaving and known.state in AT_HAND and not self._may_lie_here(known):
            with self._records.writing() as tx:
                tx.files.keep([known.id])  # then its file is looked at once more, and leaves
            return False
        try:
            if not leaving and not self._may_lie_here(known):
                raise InvalidInput("It is the file of a private memory that was deleted.")
            fields = said_otherwise(change.document, known) | self._find_new_title(change.document, known)
            if "content" in fields and known.kind is Kind.CHECKPOINT:
                raise InvalidInput("The text of a checkpoint cannot be edited.")
            intake.changes({**fields, "expires_at": change.document.expires_at})
            if "content" in fields and known.kind is Kind.DECISION:
                return self._decide_anew(change, known)
        except InvalidInput as error:
            self._problem(change.name, error, stamp=change.bytes.stamp, memory=known.id)
            return False
        text = None
        if fields.keys() & {"content", "also"}:
            said = {name: fields[name] for name in ("content", "also") if name in fields}
            [text] = self._texts([replace(known, **said)], at_once=at_once, embed=False)
        with self._records.writing() as tx:
            current = next(iter(tx.get([known.id], access.EVERYTHING)), None)
            if current is None or current.version != known.version:
                return False  # another process was faster: the next look sees what it is now
            moved = self._place(tx, change, file, current)
            self._write_revision(tx, change, current, {**fields, **moved}, text)
        if text is not None:
            self._engine.parts.backlog.wake()
        self._done["moved" if moved else "changed"] += 1
        return True

    def _find_new_title(self, document: Document, known: Memory) -> dict[str, Any]:
        """The title that someone wrote into the front matter. One that the memory had before was written by us: an
        edited file is not written again, so it may be behind."""
        title = document.title
        if document.plain or title is None or title == known.title:
            return {}
        former = {version.memory.title for version in self._records.history.versions(known.id)}
        return {} if title in former else {"title": title}

    def _decide_anew(self, change: FileChange, known: Memory) -> bool:
        """An edited decision is a new one on its topic; the old one keeps its text, and its file says so again."""
        newer = next(iter(self._records.get([known.superseded_by or ""], access.EVERYTHING)), None)
        if newer is None or newer.text != change.document.content:  # else a kill kept us from noting it
            parts = parts_of(change.document, known)
            newer = self._engine.decisions.save(
                known.topic or "",
                parts["content"],
                reasoning=parts["detail"].get("reasoning"),
                confidence=known.confidence,
                tags=intake.checked_tags(change.document.tags),
                also=change.document.also,
                access_level=known.access_level,
                user_id=known.context.user_id,
                expires_at=change.document.expires_at,
            ).memory
        with self._records.writing() as tx:
            self._agree(tx, known, change)
            tx.files.keep([known.id, newer.id])
        self._done["changed"] += 1
        return True

    def _place(self, tx: Transaction, change: FileChange, file: File, current: Memory) -> dict[str, Any]:
        """Where the memory lies now, if its file was renamed or came back."""
        if current.status is Status.ACTIVE and file.name == change.name:
            return {}
        wanted = current.path if file.name == change.name else path_of_file(change.name)
        path = current.path
        if wanted != current.path or current.status is not Status.ACTIVE:
            path = names.free_path(tx, replace(current, path=wanted, space=self._space))
        return {} if path == current.path else {"path": path}

    def _write_revision(
        self, tx: Transaction, change: FileChange, current: Memory, fields: dict[str, Any], text: TextVectors | None
    ) -> None:
        ledger = self._engine.ledger
        back = current.status is Status.DELETED
        if back:
            fields |= {"status": Status.ACTIVE, "deleted_at": None, "recoverable_until": None}
        if fields.keys() == {"also"}:
            phrased = replace(current, **fields)
            current = ledger.rephrase(tx, current, phrased, reason="its file was edited", text=text).memory
        elif fields:
            touched = not fields.keys() <= {"path"}
            current = ledger.change(
                tx,
                intake.retitle(current, fields),
                "recovered" if back else "updated",
                *fields,
                reason="its file came back" if back else "its file was edited",
                text=text,
                touched=touched,
            )
        if back:
            lifecycle.settle_predecessors(ledger, tx, current)
        self._agree(tx, current, change)

    def _agree(self, tx: Transaction, memory: Memory, change: FileChange) -> None:
        tx.files.in_sync(
            memory.id, name=change.name, hash=change.bytes.hash, stamp=change.bytes.stamp, version=memory.version
        )
        self._problems.pop(change.name, None)

    def _settle_paths(self, changes: Sequence[FileChange]) -> None:
        """Let memories whose files were swapped lie where their files do: the place was taken until the other left."""
        for change in changes:
            if change.file is None or change.file.name in ("", change.name):
                continue
            with self._records.writing() as tx:
                memory = next(iter(tx.get([change.file.memory], access.EVERYTHING)), None)
                wanted = path_of_file(change.name)
                if memory is None or memory.state not in AT_HAND or not memory.path.startswith(f"{wanted}-"):
                    continue
                file = tx.files.of(memory.id)
                placed = replace(memory, path=wanted)
                if file is not None and file.name == change.name and names.free_path(tx, placed) == wanted:
                    self._agree(tx, self._engine.ledger.change(tx, placed, "moved", "path", touched=False), change)

    def _forget(self, file: File) -> bool:
        """Soft-delete the memory of a file that someone deleted, or moved another file over."""
        with self._records.writing() as tx:
            now = tx.files.of(file.memory)
            if now is None or now.waiting or now.state not in AT_HAND or now.name not in ("", file.name):
                return False
            if not now.name:  # its name is another memory's now
                lifecycle.forget(
                    self._engine.ledger, tx, file.memory, hard=False, reason="another file was moved over its file"
                )
                return True
            try:
                if self._folder.stamp(file.name) is not None:
                    return False
                if not self._read_only and self._folder.identity() is None:
                    return False
            except FileDamaged:
                return False
            forgotten = lifecycle.forget(
                self._engine.ledger, tx, file.memory, hard=False, reason="its file was deleted"
            ).memory
            tx.files.in_sync(file.memory, name=file.name, hash=file.hash or b"", stamp="", version=forgotten.version)
        return True

    # --- memories to files -------------------------------------------------------------------------------------------

    def write_out(self, *, seconds: float | None = None, progress: Progress | None = None) -> None:
        """Write the files that wait, for some seconds if given. The caller holds the lock of folders.

        :raises StorageError: if the folder, or a part of it, cannot be written to; what is not written goes on waiting
        """
        if self._read_only:
            return self._write_nothing()
        check_there(self._records, self._space, self._folder)
        waiting = self._records.files.list(self._space, waiting=True)
        if any(file.state in AT_HAND for file in waiting):
            self._folder.check_writable()
            self._folder.prepare()
        if not self._is_known():
            return  # files can only be removed from a folder that is there
        deadline = None if seconds is None else monotonic() + seconds
        links = NoteLinks(self._engine, self._space, writing=True)
        written = self._write_waiting(deadline, progress)
        if changed := [file for file in written if file.version != file.agreed_version and file.state in AT_HAND]:
            links.follow_written(changed)
            self._write_waiting(deadline, None)  # files name relations

    def _write_waiting(self, deadline: float | None, progress: Progress | None) -> list[File]:
        """Those that were written, as they were before."""
        waiting = self._records.files.list(self._space, waiting=True)
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
        memory = next(iter(self._records.get([file.memory], access.EVERYTHING)), None)
        try:
            if memory is None or file.state not in AT_HAND:
                self._remove(file, memory)
            elif not self._may_lie_here(memory):
                self._withdraw(file, memory)
            else:
                self._write(file, memory)
        except FileDamaged as error:  # someone is editing it; our change waits until it can be read
            self._problem(file.name, error, memory=file.memory)

    def _find_edit(self, file: File, memory: Memory) -> FileChange | None:
        """What someone wrote into a memory's file since both last agreed: it must not be lost."""
        found = self._folder.read(file.name) if file.name else None
        if found is None or found.hash == file.hash or self._was_ours(found, memory):
            return None
        return FileChange(name=file.name, bytes=found, document=markdown.parse_file(found.data), file=file)

    def _remove(self, file: File, memory: Memory | None) -> None:
        """Of a memory that is deleted, archived, purged or elsewhere."""
        change = None if memory is None else self._find_edit(file, memory)
        if change is not None and file.state is State.DELETED:
            self._revise(change, file)
            return
        if change is None and file.name:
            self._folder.remove(file.name)
        with self._records.writing() as tx:
            if change is not None or memory is None or file.hash is None:
                tx.files.drop([file.memory])
            else:
                tx.files.in_sync(file.memory, name=file.name, hash=file.hash, stamp="", version=file.version)

    def _withdraw(self, file: File, memory: Memory) -> None:
        """Take the file of a memory away that may not lie here any more."""
        if (change := self._find_edit(file, memory)) is not None:
            if not self._revise(change, file, leaving=True):
                return
            memory = next(iter(self._records.get([memory.id], access.EVERYTHING)))
        if file.name:
            self._folder.remove(file.name)
        with self._records.writing() as tx:
            tx.files.withdraw(memory.id, version=memory.version)
        self._problems.pop(file.name, None)

    def _write(self, file: File, memory: Memory) -> None:
        found, old = self._folder.read(file.name) if file.name else None, None
        if found is not None:
            change = FileChange(name=file.name, bytes=found, document=markdown.parse_file(found.data), file=file)
            old = change.document
            if change.document.plain and found.hash == file.hash and memory.version == file.agreed_version:
                with self._records.writing() as tx:  # only links changed: a file without front matter stays so
                    self._agree(tx, memory, change)
                return
            if found.hash != file.hash and not self._was_ours(found, memory):
                if not self._revise(change, file):
                    return
                with self._records.writing() as tx:
                    tx.files.keep([memory.id])  # what else changed is still to be written
                memory = next(iter(self._records.get([memory.id], access.EVERYTHING)))
        data = markdown.render_file(document_of(memory, self._records, old, self._may_lie_here))
        name = kept_name(file, memory) or next(possible_names(memory))
        called = name  # by files that were written before this one
        if found is not None and name == file.name and found.data == data:
            stamp = found.stamp
        elif found is not None and name == file.name:
            stamp = self._folder.write(name, data, over=True)
        else:
            name, stamp = self._write_new(data, memory)
            if file.name and file.name != name:
                self._folder.remove(file.name)
        if keys_in(memory):
            NoteLinks(self._engine, self._space).expect([memory.content])
        with self._records.writing() as tx:
            if name != called:
                tx.files.keep([one for one in self._linking_to(memory) if tx.files.of(one) is not None])
            tx.files.in_sync(
                memory.id,
                name=name,
                hash=Bytes(data=data, stamp=stamp).hash,
                stamp=stamp,
                version=memory.version,
            )
        self._problems.pop(name, None)

    def _linking_to(self, memory: Memory) -> list[str]:
        links = self._records.history.links([memory.id])
        return [link.source for link in links if link.target == memory.id and link.kind is not LinkKind.MAY_OUTDATE]

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
            return found is not None and self._was_ours(found, memory)
        except FileDamaged:
            return False

    def _was_ours(self, found: Bytes, memory: Memory | None) -> bool:
        """Whether a file says what its memory says or said since both last agreed: then a kill kept us from noting it,
        and no one has edited it."""
        document = markdown.parse_file(found.data)
        if memory is None or document.id != memory.id:
            return False
        file = self._records.files.of(memory.id)
        since = 0 if file is None else file.agreed_version
        said = [
            memory,
            *(one.memory for one in self._records.history.versions(memory.id) if one.memory.version > since),
        ]
        return any(not said_otherwise(document, one) for one in said)

    # --- what is left alone ---

    def _problem(self, name: str, error: Error, *, stamp: str = "", memory: str | None = None) -> None:
        self._problems[name] = Problem(name=name, why=error.message, stamp=stamp, memory=memory)

    def _forget_problems(self, walk: Walk, by_name: dict[str, File]) -> None:
        """Those of files that are gone or can be read; and note what the walk itself refused."""
        for name in [name for name in self._problems if name not in walk.files]:
            del self._problems[name]
        for name, why in walk.refused.items():
            file = by_name.get(name)
            self._problems[name] = Problem(name=name, why=why, memory=None if file is None else file.memory)


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
    return [file for file in reads.files.list(space) if file.state in AT_HAND and file.hash is not None]


def still_reading(done: int, total: int) -> StillReading:
    return StillReading(f"Still reading: {done:,} of {total:,} files.", hint="Try again in a moment.")


def _age(change: FileChange) -> float:
    created = change.document.created_at
    return 0.0 if created is None else created.timestamp()


def _stem(name: str) -> str:
    """What people call a file."""
    return name.rpartition("/")[2][:-3]


def _no_file(memory: Memory) -> File:
    return File(
        memory=memory.id,
        path=memory.path,
        state=memory.state,
        version=memory.version,
        name="",
        agreed_path="",
        agreed_version=0,
        hash=None,
        stamp="",
        waiting=False,
    )


def ids_of(problems: Iterable[Problem]) -> set[str]:
    return {problem.memory for problem in problems if problem.memory is not None}
