"""One space and its folder kept in step.

    file changed, memory not    the file wins
    memory changed, file not    the file is written
    both changed                the file wins; what the memory said stays as a version
    file gone                   the memory is soft-deleted, if the folder exists and is the one we know
    folder gone                 nothing: its disk may not be mounted, so nothing is created in its place either
    file back                   the same memory comes back
    file renamed                the same memory, recognised by the id in its front matter or by its bytes
    files swapped               as if each was renamed: ids and histories follow the text
    memory made private         the file leaves a folder that others read; the memory stays

A changed memory waits in the store's outbox until its file is written, so that a kill in between heals itself. What is
waiting is never judged by its file. Files that cannot be read are left alone and reported.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from time import monotonic
from typing import Any

from scrubjay.engine import access
from scrubjay.engine.files.changes import (
    Differences,
    FileChange,
    Progress,
    SyncedFolder,
    get_one,
    kept_files,
    still_reading,
)
from scrubjay.engine.files.document import level_of, parts_of, path_found, said_otherwise
from scrubjay.engine.files.links import NoteLinks
from scrubjay.engine.holding import BATCH
from scrubjay.engine.lifecycle import lifecycle
from scrubjay.engine.store import embedding, intake, names
from scrubjay.engine.store.enrichment import enrich
from scrubjay.engine.store.history import TextVectors
from scrubjay.errors import Conflict, FileDamaged, InvalidInput
from scrubjay.folders.markdown import Document
from scrubjay.folders.paths import path_of_file
from scrubjay.stores.promises.files import File
from scrubjay.stores.promises.memories import Transaction
from scrubjay.values.frozen import replace
from scrubjay.values.memory import AT_HAND, Category, Kind, Memory, NewMemory, Source, Status, new_id

OWN_ID = re.compile(r"mem_[0-9a-z]{12}")
EMBEDDED_AT_ONCE = 8  # files whose texts are embedded within the call that finds them; more wait for the backlog

IN_A_REPOSITORY = "A private memory is not kept in a repository: remove access_level, or move the file elsewhere."


class FolderReader:
    """Lets the memories of a space say what its files say."""

    def __init__(self, synced: SyncedFolder) -> None:
        self._synced = synced
        self._engine, self._records, self._space = synced.engine, synced.records, synced.space
        self._done: Counter[str] = Counter()  # how many were new, changed, moved, gone
        self._crowded: list[FileChange] = []  # the path of each was taken when its memory moved

    def take_in(
        self, *, until: float | None = None, embed: bool = False, progress: Progress | None = None
    ) -> Counter[str]:
        """Look at every file, and let memories say what files say; how many were new, changed, moved, gone.

        `embed` waits for every vector. `progress` is called with how many files are read, and of how many.

        :raises StillReading: if that is not done at the given time; the next look goes on
        """
        known_folder = self._synced.is_known()
        if embed:
            self._withdraw_private()
        found = self._synced.compare(progress)
        changes = found.changes
        if found.touched:
            with self._records.writing() as tx:
                tx.files.restamp(found.touched)
        links = NoteLinks(self._engine, self._space)
        links.expect(change.document.content for change in changes)
        self._apply(changes, total=found.total, until=until, embed=embed, progress=progress)
        if known_folder and found.complete:
            self._forget_missing(found)
        self._settle_paths()
        linking = [change.name for change in changes if change.file is not None or "[[" in change.document.content]
        links.follow(linking, of=len(changes))
        return self._done

    def _withdraw_private(self) -> None:
        """Let files leave that may not lie here any more: the folder has become part of a repository."""
        ids = [file.memory for file in kept_files(self._records, self._space) if not file.waiting]
        found = [
            memory.id
            for start in range(0, len(ids), BATCH)
            for memory in self._records.get(ids[start : start + BATCH], access.EVERYTHING)
            if not self._synced.may_lie_here(memory)
        ]
        with self._records.writing() as tx:
            tx.files.keep(found)

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
            self._synced.check_open()
            read = total - len(changes) + start
            if progress:
                progress(read, total)
            if start and until is not None and monotonic() > until:
                raise still_reading(read, total)  # something is done every time, so that many looks come to an end
            batch = changes[start : start + BATCH]
            self._add([change for change in batch if change.file is None], at_once=at_once, embed=embed)
            for change in batch:
                if change.file is not None:
                    self.revise(change, change.file, at_once=at_once)
        if progress and changes:
            progress(total, total)

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
                if tx.files.find_by_name(self._space, change.name) is None:  # else another process was quicker
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
                tags=intake.check_tags(document.tags),
                also=document.also,
                source=Source.EXPLICIT,
                access_level=level_of(document.access_level),
                created_at=created,
                expires_at=document.expires_at,
            )
            memory = intake.admit(self._engine, new, id=self._free_id(document.id))
            if memory.id == document.id:
                memory = replace(memory, path=path_found(change.name, memory))
            if not self._synced.may_lie_here(memory):
                raise InvalidInput(IN_A_REPOSITORY)
        except InvalidInput as error:
            self._synced.note_problem(change.name, error, stamp=change.bytes.stamp)
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
        self._synced.agree(tx, stored, change)

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

    def revise(self, change: FileChange, file: File, *, at_once: bool = True, leaving: bool = False) -> bool:
        """Let a memory say what its file says; False if that cannot be, or not now."""
        known = get_one(self._records, file.memory)
        if known is None:
            return False
        if not leaving and known.state in AT_HAND and not self._synced.may_lie_here(known):
            with self._records.writing() as tx:
                tx.files.keep([known.id])  # then its file is looked at once more, and leaves
            return False
        try:
            fields = self._find_fields(change.document, known, leaving=leaving)
            if "content" in fields and known.kind is Kind.DECISION:
                return self._decide_anew(change, known)
        except InvalidInput as error:
            self._synced.note_problem(change.name, error, stamp=change.bytes.stamp, memory=known.id)
            return False
        text = None
        if fields.keys() & {"content", "also"}:
            said = {name: fields[name] for name in ("content", "also") if name in fields}
            [text] = self._texts([replace(known, **said)], at_once=at_once, embed=False)
        with self._records.writing() as tx:
            current = get_one(tx, known.id)
            if current is None or current.version != known.version:
                return False  # another process was faster: the next look sees what it is now
            moved = self._place(tx, change, file, current)
            self._write_revision(tx, change, current, {**fields, **moved}, text)
        if text is not None:
            self._engine.parts.backlog.wake()
        self._done["moved" if moved else "changed"] += 1
        return True

    def _find_fields(self, document: Document, known: Memory, *, leaving: bool) -> dict[str, Any]:
        """What a file says that its memory does not. :raises InvalidInput: if that cannot be"""
        if not leaving and not self._synced.may_lie_here(known):
            raise InvalidInput("It is the file of a private memory that was deleted.")
        fields = said_otherwise(document, known) | self._find_new_title(document, known)
        if "content" in fields and known.kind is Kind.CHECKPOINT:
            raise InvalidInput("The text of a checkpoint cannot be edited.")
        intake.changes({**fields, "expires_at": document.expires_at})
        return fields

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
        newer = get_one(self._records, known.superseded_by or "")
        if newer is None or newer.text != change.document.content:  # else a kill kept us from noting it
            parts = parts_of(change.document, known)
            newer = self._engine.decisions.save(
                known.topic or "",
                parts["content"],
                reasoning=parts["detail"].get("reasoning"),
                confidence=known.confidence,
                tags=intake.check_tags(change.document.tags),
                also=change.document.also,
                access_level=known.access_level,
                user_id=known.context.user_id,
                expires_at=change.document.expires_at,
            ).memory
        with self._records.writing() as tx:
            self._synced.agree(tx, known, change)
            tx.files.keep([known.id, newer.id])
        self._done["changed"] += 1
        return True

    def _place(self, tx: Transaction, change: FileChange, file: File, current: Memory) -> dict[str, Any]:
        """Where the memory is now, if its file was renamed or came back."""
        if current.status is Status.ACTIVE and file.name == change.name:
            return {}
        wanted = replace(current, path=current.path if file.name == change.name else path_of_file(change.name))
        path = names.free_path(tx, replace(wanted, space=self._space))
        if path != wanted.path:
            self._crowded.append(change)
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
        self._synced.agree(tx, current, change)

    def _settle_paths(self) -> None:
        """Let memories whose files were swapped lie where their files do: the place was taken until the other left."""
        for change in self._crowded:
            with self._records.writing() as tx:
                memory = None if change.file is None else get_one(tx, change.file.memory)
                if memory is None or memory.state not in AT_HAND:
                    continue
                placed = replace(memory, path=path_of_file(change.name))
                if placed.path != memory.path and names.free_path(tx, placed) == placed.path:
                    moved = self._engine.ledger.change(tx, placed, "moved", "path", touched=False)
                    self._synced.agree(tx, moved, change)

    def _forget_missing(self, found: Differences) -> None:
        """Soft-delete memories whose files someone deleted, or moved another file over."""
        met = {change.file.memory for change in found.changes if change.file is not None}
        for file in found.left:
            if file.memory in met:
                continue
            with self._records.writing() as tx:
                now = tx.files.of(file.memory)
                if now is None or now.waiting or now.state not in AT_HAND:
                    continue
                if not now.name:  # it is another memory's now
                    reason = "another file was moved over its file"
                elif now.name == file.name and self._is_gone(file.name):
                    reason = "its file was deleted"
                else:
                    continue
                forgotten = lifecycle.forget(self._engine.ledger, tx, file.memory, hard=False, reason=reason).memory
                if now.name:
                    tx.files.in_sync(
                        file.memory, name=file.name, hash=file.hash or b"", stamp="", version=forgotten.version
                    )
            self._done["gone"] += 1

    def _is_gone(self, name: str) -> bool:
        """Whether a file is still missing from a folder that is still there."""
        folder = self._synced.folder
        try:
            return folder.stamp(name) is None and (self._synced.read_only or folder.identity() is not None)
        except FileDamaged:
            return False


def _age(change: FileChange) -> float:
    created = change.document.created_at
    return 0.0 if created is None else created.timestamp()


def _stem(name: str) -> str:
    """What people call a file."""
    return name.rpartition("/")[2][:-3]
