"""The [[links]] in the files of a folder as relations between their memories.

A link that leads to no file yet waits for one: people often write the link first. Which links wait is a fact of the
store, and so is that texts were taken in whose links were not followed yet: a kill in between loses none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from scrubjay.engine import access
from scrubjay.engine.holding import BATCH
from scrubjay.folders.markdown import links_in
from scrubjay.stores.promises.files import File
from scrubjay.stores.promises.memories import Transaction
from scrubjay.text.letters import normalise
from scrubjay.values.frozen import dataclass, replace
from scrubjay.values.memory import AT_HAND, LinkKind, Memory

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine

RELATED = frozenset({LinkKind.RELATED})
MOST_WAITING = 10_000  # links, in one folder

Keys = dict[str, list[str]]  # memory: the notes that its text links to


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfollowed:
    """What the store remembers of links that are still to be followed."""

    unread: bool  # there are texts whose links were not read yet
    waiting: Keys  # links that lead to no file yet


class NoteLinks:
    def __init__(self, engine: Engine, space: str, *, writing: bool = False) -> None:
        self._engine = engine
        self._writing = writing  # a file names the relations of its memory; while files are only read, none is written
        self._records = engine.records
        self._key = f"folder-links:{space}"
        self._space = space
        self._before = self._find_unfollowed()

    def expect(self, texts: Iterable[str]) -> None:
        """Note that texts are about to be taken in, if any of them has links."""
        if not self._before.unread and any("[[" in text for text in texts):
            self._keep(replace(self._before, unread=True))

    def follow(self, names: Sequence[str], *, of: int) -> None:
        """Relate the memories of these files, of all that changed, to those that their texts link to, and no longer
        to those that only their former texts did. Follow links that waited for a file; all, if some were left unread.
        """
        if names or self._before.unread or (of and self._before.waiting):
            files, chosen = self._files(), set(names)
            self._follow([file.memory for file in files if self._before.unread or file.name in chosen], files)

    def follow_written(self, written: Sequence[File]) -> None:
        """The same for files that were written here, as they were before: memories have new texts, or are new."""
        if self._before.unread:
            return  # the next look follows all
        ids = [file.memory for file in written]
        related = self._records.history.links(ids, kinds=RELATED)
        linking = {one for one, keys in self._find_linked(ids).items() if keys}
        linking |= {link.source for link in related if link.stands}
        changed = [one for one in ids if one in linking]
        if changed or (self._before.waiting and any(not file.agreed_version for file in written)):
            self._follow(changed, self._files())

    def _files(self) -> list[File]:
        return [file for file in self._records.files.list(self._space) if file.state in AT_HAND and file.name]

    def _follow(self, changed: Sequence[str], files: Sequence[File]) -> None:
        notes, here = _by_key(files), {file.memory for file in files}
        linked = self._find_linked(changed)
        gone = {} if self._before.unread else self._find_released(linked, notes)
        wanted = {one: keys for one, keys in self._before.waiting.items() if one in here} | linked
        for start in range(0, len(wanted), BATCH):
            with self._records.writing() as tx:
                for one in list(wanted)[start : start + BATCH]:
                    ends = {notes[key] for key in wanted[one] if key in notes}
                    self._relate(tx, one, ends, gone.get(one, set()))
        missing = {one: [key for key in keys if key not in notes] for one, keys in wanted.items()}
        self._keep(Unfollowed(unread=False, waiting=_bound_keys(missing)))

    def _find_linked(self, ids: Sequence[str]) -> Keys:
        return {
            memory.id: keys_in(memory)
            for start in range(0, len(ids), BATCH)
            for memory in self._records.get(ids[start : start + BATCH], access.EVERYTHING)
        }

    def _find_released(self, linked: Keys, notes: dict[str, str]) -> dict[str, set[str]]:
        """Where the links of former texts led, and those of the texts now do not."""
        released = {}
        for one, keys in linked.items():
            former = next((keys_in(version.memory) for version in self._records.history.versions(one)), keys)
            released[one] = {notes[key] for key in former if key in notes} - {notes.get(key) for key in keys}
        return released

    def _relate(self, tx: Transaction, id: str, ends: set[str], gone: set[str]) -> None:
        """Relate a memory to these others, and take relations to those back that stood in its text."""
        file = tx.files.of(id)
        if file is None or not (ends or gone):
            return
        links = [link for link in tx.history.links([id], kinds=RELATED) if link.source == id and link.stands]
        for link in links:
            if link.target in gone and link.given:
                tx.history.relate(replace(link, state="released", **tx.clock.stamp(self._engine.now())))
        new = sorted(ends - {link.target for link in links} - {id})
        found = {memory.id: memory for memory in tx.get([id, *new], access.EVERYTHING)} if new else {}
        for target in new:
            if id in found and target in found:
                self._engine.ledger.link(tx, LinkKind.RELATED, found[id], found[target])
        if not self._writing and not file.waiting and file.hash is not None:  # it is in the text: no file is written
            tx.files.in_sync(file.memory, name=file.name, hash=file.hash, stamp=file.stamp, version=file.version)

    def _find_unfollowed(self) -> Unfollowed:
        fact = json.loads(self._records.history.fact(self._key) or "{}")
        return Unfollowed(unread=fact.get("unread", False), waiting=fact.get("waiting", {}))

    def _keep(self, now: Unfollowed) -> None:
        if now == self._find_unfollowed():
            return
        with self._records.writing() as tx:
            tx.history.set_fact(self._key, json.dumps({"unread": now.unread, "waiting": now.waiting}))


def keys_in(memory: Memory) -> list[str]:
    return list(dict.fromkeys(_key(name) for name in links_in(memory.content)))


def _key(name: str) -> str:
    """Programs that follow these links find a note by its name in any case, and in either form of Unicode."""
    return normalise("NFC", name).lower().removesuffix(".md")


def _by_key(files: Sequence[File]) -> dict[str, str]:
    """The memories of files by what a link may call them: name, or folders and name, or path."""
    by_key = {_key(file.name.rpartition("/")[2]): file.memory for file in reversed(files)}
    by_key |= {file.path: file.memory for file in files}
    return by_key | {_key(file.name): file.memory for file in files}


def _bound_keys(waiting: Keys) -> Keys:
    kept: Keys = {}
    room = MOST_WAITING
    for one, keys in waiting.items():
        if keys and room > 0:
            kept[one] = keys[:room]
            room -= len(keys)
    return kept
