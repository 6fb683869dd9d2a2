"""One space and its folder kept in step.

    file changed, memory not    the file wins
    memory changed, file not    the file is written
    both changed                the file wins; what the memory said stays as a version
    file gone                   the memory is softly deleted, if the folder is there and is the one we know
    file back                   the same memory comes back
    file renamed                the same memory, told by the id in its front matter or by its bytes

A changed memory waits in the store's outbox until its file is written, so that a kill in between heals itself. What is
waiting is never judged by its file. Files that cannot be read are left alone and reported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING, Any

from scrubjay.engine import access, intake, lifecycle, names
from scrubjay.engine.documents import document_of, level_of, parts_of, said_otherwise
from scrubjay.engine.ledger import Text
from scrubjay.errors import Conflict, Error, FileDamaged, InvalidInput, StorageError
from scrubjay.folders import markdown
from scrubjay.folders.folder import Bytes, Folder, Walk
from scrubjay.folders.markdown import Document
from scrubjay.folders.paths import file_of_path, path_of_file
from scrubjay.frozen import dataclass
from scrubjay.memory import AT_HAND, Kind, Memory, NewMemory, Source, State, Status, new_id
from scrubjay.stores.base import Transaction
from scrubjay.stores.files import File

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine

OWN_ID = re.compile(r"mem_[0-9a-z]{12}")
EMBEDDED_AT_ONCE = 8  # files whose texts are embedded within the call that finds them; more wait for the backlog
BATCH = 64  # files taken in per transaction

Progress = Callable[[int, int], None]  # what is done, of how many


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A file that is left alone."""

    name: str
    why: str
    stamp: str = ""  # what the file system said of it when it was read
    memory: str | None = None  # whose file it is, if it was one before


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A file that says something else than the memory it belongs to, or belongs to none yet."""

    name: str
    bytes: Bytes
    document: Document
    file: File | None = None  # None: a new memory


class Filing:
    """Works as the machine's owner, to whom its files belong."""

    def __init__(self, desk: Engine, space: str, folder: Folder, problems: dict[str, Problem]) -> None:
        self._desk = desk
        self._records = desk._records
        self._space = space
        self._folder = folder
        self._problems = problems  # by name; remembered, so that a bad file is read once

    # --- files to memories -------------------------------------------------------------------------------------------

    def take_in(
        self, *, seconds: float | None = None, embed: bool = False, progress: Progress | None = None
    ) -> dict[str, int]:
        """Look at every file, and let memories say what files say; how many were new, changed, moved, gone.

        Stops after some seconds, if given: the next look goes on. `embed` waits for every vector.
        """
        deadline = None if seconds is None else monotonic() + seconds
        known_folder = self._is_known()
        walk = self._folder.walk()
        files = self._records.files(self._space)
        changes, same = self._compared(walk, files)
        missing = [
            file
            for file in files
            if file.state in AT_HAND and not file.waiting and file.hash is not None
            if file.name not in walk.files and file.name not in walk.refused
        ]
        changes = self._recognised(changes, missing, files)
        done = {"new": 0, "changed": 0, "moved": 0, "gone": 0}
        if same:
            with self._records.writing() as tx:
                tx.restamp(same)
        self._apply(changes, done, deadline=deadline, embed=embed, progress=progress)
        moved = {change.file.memory for change in changes if change.file is not None}
        if known_folder and walk.complete:
            for file in missing:
                if file.memory not in moved and self._forget(file):
                    done["gone"] += 1
        return done

    def _is_known(self) -> bool:
        """Whether this is the folder that the memories' files were last seen in, and is there at all.

        Another folder, or one made anew, has files missing that nobody deleted: those are written instead.
        """
        identity = self._folder.identity()
        if identity is None and self._folder.root.is_dir() and not self._kept():
            try:
                identity = self._folder.prepare()
            except Error:  # read-only: then there is nothing that could be missing, either
                return False
        if identity is None:
            return False
        key = f"folder:{self._space}"
        if self._records.fact(key) != identity:
            here = self._folder.walk()
            gone = [file.memory for file in self._kept() if file.name not in here.files]
            with self._records.writing() as tx:
                tx.keep_as_file(gone)
                tx.set_fact(key, identity)
        return True

    def _kept(self) -> list[File]:
        return [file for file in self._records.files(self._space) if file.state in AT_HAND and file.hash is not None]

    def _compared(self, walk: Walk, files: Sequence[File]) -> tuple[list[Change], dict[str, str]]:
        """Files that say something new, and the stamps of those that were only touched."""
        by_name = {file.name: file for file in files if file.name and file.state is not State.PURGED}
        by_name |= {file.name: file for file in files if file.name and file.state in AT_HAND}
        self._forget_problems(walk, by_name)
        changes, same = [], {}
        for name, stamp in walk.files.items():
            file = by_name.get(name)
            if file is not None and (file.waiting or (file.stamp == stamp and file.state in AT_HAND)):
                continue
            if (known := self._problems.get(name)) is not None and known.stamp == stamp:
                continue
            found = self._read(name, file)
            if found is None:
                continue
            self._problems.pop(name, None)  # mended, be it by undoing what broke it
            if file is not None and file.hash == found.bytes.hash and file.state in AT_HAND:
                if found.bytes.stamp:
                    same[file.memory] = found.bytes.stamp
            elif file is None or file.state in AT_HAND or file.state is State.DELETED:
                changes.append(replace(found, file=file))
            else:
                changes.append(found)  # of an archived memory: its path is free, and this is another one
        return changes, same

    def _read(self, name: str, file: File | None) -> Change | None:
        try:
            read = self._folder.read(name)
            if read is None:
                return None
            document = markdown.parsed(read.data)
            intake.check_text(document.content, "content")
            return Change(name=name, bytes=read, document=document)
        except (FileDamaged, InvalidInput) as error:
            self._problem(name, error, stamp=self._stamp(name), memory=None if file is None else file.memory)
            return None

    def _stamp(self, name: str) -> str:
        try:
            return self._folder.stamp(name) or ""
        except FileDamaged:
            return ""

    def _recognised(self, changes: list[Change], missing: Sequence[File], files: Sequence[File]) -> list[Change]:
        """Changes with new names told from new memories: by the id that a file carries, or by its bytes."""
        by_id = {file.memory: file for file in missing}
        by_hash = {file.hash: file for file in missing}
        deleted = {file.memory: file for file in files if file.state is State.DELETED and not file.waiting}
        waiting = {file.memory for file in files if file.waiting}
        without = self._without_file(changes, {file.memory for file in files})
        taken: set[str] = set()
        result = []
        for change in changes:
            given, file = change.document.id or "", change.file
            if file is None and given in waiting:
                continue  # it is just being written or moved, and not yet noted
            if file is None or file.state is State.DELETED:
                file = by_id.get(given) or by_hash.get(change.bytes.hash) or file or deleted.get(given)
            file = file or without.get(change.name)
            if file is not None and file.memory in taken:
                file = None
            if file is not None:
                taken.add(file.memory)
            result.append(replace(change, file=file))
        return result

    def _without_file(self, changes: Sequence[Change], filed: set[str]) -> dict[str, File]:
        """Memories of this space that have no file, and that a new one turns out to be: by its id, or by its path and
        text. So a folder that is taken out and put back finds its memories again."""
        new = [change for change in changes if change.file is None]
        ids = {change.document.id: change for change in new if change.document.id and change.document.id not in filed}
        found = {}
        for memory in self._records.get(list(ids), access.EVERYTHING) if ids else ():
            if memory.id in ids and memory.space == self._space and memory.state in AT_HAND:
                found[ids[memory.id].name] = _no_file(memory)
        for change in new:
            at_path = self._records.at_path(self._space, path_of_file(change.name), access.EVERYTHING)
            if at_path is not None and at_path.id not in filed and not said_otherwise(change.document, at_path):
                found.setdefault(change.name, _no_file(at_path))
        return found

    def _apply(
        self,
        changes: Sequence[Change],
        done: dict[str, int],
        *,
        deadline: float | None,
        embed: bool,
        progress: Progress | None,
    ) -> None:
        at_once = embed or len(changes) <= EMBEDDED_AT_ONCE
        changes = sorted(changes, key=_age)  # of decisions on one topic the last is the current one
        for start in range(0, len(changes), BATCH):
            if start and deadline is not None and monotonic() > deadline:
                return  # something is done every time, so that many looks come to an end
            batch = changes[start : start + BATCH]
            self._add([change for change in batch if change.file is None], done, at_once=at_once, embed=embed)
            for change in batch:
                if change.file is not None:
                    self._revise(change, change.file, done, at_once=at_once)
            if progress:
                progress(start + len(batch), len(changes))

    def _add(self, changes: Sequence[Change], done: dict[str, int], *, at_once: bool, embed: bool) -> None:
        """Memories for new files, in one transaction."""
        made = [(change, made) for change in changes if (made := self._made(change)) is not None]
        if not made:
            return
        memories = [memory for _, (_, memory) in made]
        texts = self._texts(memories, at_once=at_once, embed=embed)
        complete = [
            self._desk._enriched(memory, new, text.first) for (_, (new, memory)), text in zip(made, texts, strict=True)
        ]
        with self._records.writing() as tx:
            for (change, _), memory, text in zip(made, complete, texts, strict=True):
                if tx.file_named(self._space, change.name) is None:  # else another process was quicker
                    self._add_one(tx, change, memory, text)
        if any(not text.whole for text in texts):
            self._desk._backlog.wake()
        done["new"] += len(made)

    def _made(self, change: Change) -> tuple[NewMemory, Memory] | None:
        document, now = change.document, self._desk.now()
        created = None if document.created_at is None else min(document.created_at, now)
        try:
            new = NewMemory(
                **parts_of(document),
                path=path_of_file(change.name),
                tags=intake.checked_tags(document.tags),
                source=Source.EXPLICIT,
                access_level=level_of(document.access_level),
                created_at=created,
                expires_at=document.expires_at,
            )
            memory = self._desk._admitted(new, id=self._free_id(document.id))
        except InvalidInput as error:
            self._problem(change.name, error, stamp=change.bytes.stamp)
            return None
        if document.updated_at is not None and memory.created_at <= document.updated_at <= now:
            memory = replace(memory, updated_at=document.updated_at)
        provenance = replace(memory.provenance, client=(document.source or "file")[:100])
        return new, replace(memory, provenance=provenance)

    def _free_id(self, given: str | None) -> str:
        """The id that a file carries, if it is one and nobody's: a store cloned elsewhere keeps its names."""
        if given and OWN_ID.fullmatch(given) and not self._records.get([given], access.EVERYTHING):
            return given
        return new_id()

    def _add_one(self, tx: Transaction, change: Change, memory: Memory, text: Text) -> None:
        memory = replace(memory, path=names.free_path(tx, memory))
        try:
            stored = self._stored(tx, memory, text)
        except Conflict:  # the id of a purged memory
            stored = self._stored(tx, replace(memory, id=new_id()), text)
        self._agree(tx, stored, change)

    def _stored(self, tx: Transaction, memory: Memory, text: Text) -> Memory:
        if memory.kind is Kind.DECISION:
            return self._desk.decisions.add(tx, memory, text)[0]
        return self._desk._ledger.add(tx, memory, text, judged=True)

    def _texts(self, memories: Sequence[Memory], *, at_once: bool, embed: bool) -> Sequence[Text]:
        if embed:
            return self._desk._embedded_at_leisure(memories)
        if at_once:
            return [self._desk._embedded(memory)[0] for memory in memories]
        return [Text(vectors=(), parts=len(self._desk._embedding.split(memory.embeddable))) for memory in memories]

    def _revise(self, change: Change, file: File, done: dict[str, int], *, at_once: bool) -> bool:
        """Let a memory say what its file says; False if that cannot be, or not now."""
        known = next(iter(self._records.get([file.memory], access.EVERYTHING)), None)
        if known is None:
            return False
        try:
            fields = said_otherwise(change.document, known)
            if "content" in fields and known.kind is Kind.CHECKPOINT:
                raise InvalidInput("The text of a checkpoint is not edited.")
            intake.changes({**fields, "expires_at": change.document.expires_at})
            if "content" in fields and known.kind is Kind.DECISION:
                return self._decide_anew(change, known, done)
        except InvalidInput as error:
            self._problem(change.name, error, stamp=change.bytes.stamp, memory=known.id)
            return False
        text = None
        if "content" in fields:
            [text] = self._texts([replace(known, content=fields["content"])], at_once=at_once, embed=False)
        with self._records.writing() as tx:
            current = next(iter(tx.get([known.id], access.EVERYTHING)), None)
            if current is None or current.version != known.version:
                return False  # somebody was quicker: the next look sees what it is now
            moved = self._place(tx, change, file, current)
            self._write_revision(tx, change, current, {**fields, **moved}, text)
        if text is not None and not text.whole:
            self._desk._backlog.wake()
        done["moved" if moved else "changed"] += 1
        return True

    def _decide_anew(self, change: Change, known: Memory, done: dict[str, int]) -> bool:
        """An edited decision is a new one on its topic; the old one keeps its text, and its file says so again."""
        newer = next(iter(self._records.get([known.superseded_by or ""], access.EVERYTHING)), None)
        if newer is None or newer.text != change.document.content:  # else a kill kept us from noting it
            parts = parts_of(change.document, known)
            newer = self._desk.decisions.save(
                known.topic or "",
                parts["content"],
                reasoning=parts["detail"].get("reasoning"),
                confidence=known.confidence,
                tags=intake.checked_tags(change.document.tags),
                access_level=known.access_level,
                user_id=known.context.user_id,
                expires_at=change.document.expires_at,
            ).memory
        with self._records.writing() as tx:
            self._agree(tx, known, change)
            tx.keep_as_file([known.id, newer.id])
        done["changed"] += 1
        return True

    def _place(self, tx: Transaction, change: Change, file: File, current: Memory) -> dict[str, Any]:
        """Where the memory lies now, if its file was renamed or came back."""
        if current.status is Status.ACTIVE and file.name == change.name:
            return {}
        wanted = current.path if file.name == change.name else path_of_file(change.name)
        path = current.path
        if wanted != current.path or current.status is not Status.ACTIVE:
            path = names.free_path(tx, replace(current, path=wanted, space=self._space))
        return {} if path == current.path else {"path": path}

    def _write_revision(
        self, tx: Transaction, change: Change, current: Memory, fields: dict[str, Any], text: Text | None
    ) -> None:
        ledger = self._desk._ledger
        back = current.status is Status.DELETED
        if back:
            fields |= {"status": Status.ACTIVE, "deleted_at": None, "recoverable_until": None}
        if fields:
            touched = not fields.keys() <= {"path"}
            current = ledger.change(
                tx,
                intake.retitled(current, fields),
                "recovered" if back else "updated",
                *fields,
                reason="its file came back" if back else "its file was edited",
                text=text,
                touched=touched,
            )
        if back:
            lifecycle.settle_predecessors(ledger, tx, current)
        self._agree(tx, current, change)

    def _agree(self, tx: Transaction, memory: Memory, change: Change) -> None:
        tx.in_sync(
            memory.id, name=change.name, hash=change.bytes.hash, stamp=change.bytes.stamp, version=memory.version
        )
        self._problems.pop(change.name, None)

    def _forget(self, file: File) -> bool:
        """Softly delete the memory of a file that somebody deleted."""
        try:
            if self._folder.stamp(file.name) is not None or self._folder.identity() is None:
                return False
        except FileDamaged:
            return False
        with self._records.writing() as tx:
            now = tx.file_of(file.memory)
            if now is None or now.waiting or now.state not in AT_HAND or now.name != file.name:
                return False
            forgotten = lifecycle.forget(
                self._desk._ledger, tx, file.memory, hard=False, reason="its file was deleted"
            ).memory
            tx.in_sync(file.memory, name=file.name, hash=file.hash or b"", stamp="", version=forgotten.version)
        return True

    # --- memories to files -------------------------------------------------------------------------------------------

    def write_out(self, *, seconds: float | None = None, progress: Progress | None = None) -> None:
        """Write the files that wait, for some seconds if given. The caller holds the lock of folders.

        :raises StorageError: if the folder, or a part of it, cannot be written to; what is not written goes on waiting
        """
        waiting = self._records.files(self._space, waiting=True)
        if any(file.state in AT_HAND for file in waiting):
            self._folder.check_writable()
            self._folder.prepare()
        if not self._is_known():
            return  # files can only be removed from a folder that is there
        waiting = self._records.files(self._space, waiting=True)
        deadline = None if seconds is None else monotonic() + seconds
        failed: StorageError | None = None
        for number, file in enumerate(waiting, 1):
            try:
                self._write_one(file)
            except StorageError as error:
                if error.retryable:  # nothing can be written now
                    raise
                failed = failed or error  # nothing can be written there; the others do not wait for it
            if deadline is not None and monotonic() > deadline:
                break
            if progress:
                progress(number, len(waiting))
        if failed is not None:
            raise failed

    def _write_one(self, file: File) -> None:
        memory = next(iter(self._records.get([file.memory], access.EVERYTHING)), None)
        try:
            if memory is None or file.state not in AT_HAND:
                self._remove(file, memory)
            else:
                self._write(file, memory)
        except FileDamaged as error:  # somebody is at it; what we have to say waits until it can be read
            self._problem(file.name, error, memory=file.memory)

    def _remove(self, file: File, memory: Memory | None) -> None:
        """Of a memory that is deleted, archived, purged or elsewhere. What was edited meanwhile is not lost."""
        purged = memory is None
        found = self._folder.read(file.name) if file.name and not purged else None
        if found is not None and found.hash != file.hash and not self._was_ours(found, memory):
            change = Change(name=file.name, bytes=found, document=markdown.parsed(found.data), file=file)
            if file.state is State.DELETED:
                self._revise(change, file, {"changed": 0, "moved": 0}, at_once=True)
            else:
                with self._records.writing() as tx:
                    tx.drop_files([file.memory])
            return
        if file.name:
            self._folder.remove(file.name)
        with self._records.writing() as tx:
            if purged or file.hash is None:
                tx.drop_files([file.memory])
            else:
                tx.in_sync(file.memory, name=file.name, hash=file.hash, stamp="", version=file.version)

    def _write(self, file: File, memory: Memory) -> None:
        found, others = self._folder.read(file.name) if file.name else None, ""
        if found is not None:
            change = Change(name=file.name, bytes=found, document=markdown.parsed(found.data), file=file)
            others = change.document.others
            if found.hash != file.hash and not self._was_ours(found, memory):
                if not self._revise(change, file, {"changed": 0, "moved": 0}, at_once=True):
                    return
                with self._records.writing() as tx:
                    tx.keep_as_file([memory.id])  # what else changed is still to be written
                memory = next(iter(self._records.get([memory.id], access.EVERYTHING)))
        data = markdown.rendered(document_of(memory, self._records, others))
        name = file.name if file.name and file.agreed_path in ("", memory.path) else file_of_path(memory.path)
        if found is not None and name == file.name and found.data == data:
            stamp = found.stamp
        elif found is not None and name == file.name:
            stamp = self._folder.write(name, data, over=True)
        else:
            name, stamp = self._write_new(name, data, memory)
            if file.name and file.name != name:
                self._folder.remove(file.name)
        with self._records.writing() as tx:
            tx.in_sync(
                memory.id,
                name=name,
                hash=Bytes(data=data, stamp=stamp).hash,
                stamp=stamp,
                version=memory.version,
            )
        self._problems.pop(name, None)

    def _write_new(self, name: str, data: bytes, memory: Memory) -> tuple[str, str]:
        """Write a file that was not there; one that is, and is not this memory's, keeps its name."""
        stem = name.removesuffix(".md")
        for number in range(1, 1000):
            candidate = name if number == 1 else f"{stem}-{number}.md"
            try:
                return candidate, self._folder.write(candidate, data, over=False)
            except FileExistsError:
                if self._carries(candidate, memory):
                    return candidate, self._folder.write(candidate, data, over=True)
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
        and nobody has edited it."""
        document = markdown.parsed(found.data)
        if memory is None or document.id != memory.id:
            return False
        file = self._records.file_of(memory.id)
        since = 0 if file is None else file.agreed_version
        said = [memory, *(one.memory for one in self._records.versions(memory.id) if one.memory.version > since)]
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


def _age(change: Change) -> float:
    created = change.document.created_at
    return 0.0 if created is None else created.timestamp()


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
