"""Memories by where they are in a space: a path of slugs, its last segment the memory, those before it sections.

Every verb names the store it works in. Where the store has a folder, a verb sees what people did to the files there,
and leaves a file behind that says what it did.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from scrubjay.engine import access
from scrubjay.engine.files.changes import ids_of
from scrubjay.engine.files.stores import checked_description
from scrubjay.engine.lifecycle import lifecycle
from scrubjay.engine.store import intake, names
from scrubjay.errors import Conflict, Expired, InvalidInput, NotFound, SectionNotFound
from scrubjay.folders.paths import checked_path, checked_section, section_of, sections_above
from scrubjay.stores.promises.files import Entry
from scrubjay.stores.promises.memories import Reads, Transaction
from scrubjay.values.frozen import dataclass, replace
from scrubjay.values.memory import AT_HAND, Memory, NewMemory, Revised, Source
from scrubjay.values.search import Filter, Order

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """The answer to a change by path."""

    memory: Memory
    waits: str | None = None  # why its file is not written yet, if so


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedSection:
    """A direct section of another, or of a space."""

    path: str
    memories: int  # below it, at any depth
    description: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What is in a section."""

    section: str  # "" for the whole space
    exists: bool
    entries: tuple[Entry, ...]
    sections: tuple[ListedSection, ...]
    unreadable: int = 0  # files that are left alone
    total: int = 0  # entries on all pages
    cursor: str | None = None  # where the next page begins, if there is one


class Paths:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._records = engine.records
        self._folders = engine.folders

    # --- memories ----------------------------------------------------------------------------------------------------

    def add(
        self,
        store: str,
        path: str,
        content: str,
        *,
        tags: Sequence[str] = (),
        expires_at: datetime | None = None,
        also: tuple[str, ...] = (),
    ) -> Placed:
        """Keep a memory at a path that is free. A store that is not there yet is made, unless the registry is closed.

        :raises Conflict: if there is a memory at that path
        """
        place = checked_path(path)
        engine = self._engine.bound_to(spaces=(store,), only=self._engine.only)
        new = NewMemory(
            content=content,
            path=place,
            tags=intake.check_tags(tuple(tags)),
            source=Source.EXPLICIT,
            expires_at=expires_at,
            also=also,
            as_file=True,
        )
        intake.admit(engine, new)  # refuse what cannot be kept before anything is made for it
        self._folders.enroll(store)
        self._folders.look_closely(store, place)
        self._check_free(engine, place)
        try:
            stored = engine.store(new)
        except Conflict as error:
            raise path_taken(place) if error.details.get("path") == place else error from None
        return self._place(stored.memory)

    def _check_free(self, engine: Engine, path: str) -> None:
        """Before the text is embedded, and again by the store itself when it is written."""
        space = engine.spaces[0]
        if engine.request is None:
            self._check_untaken(self._records, space, path)
        self._check_section(space, section_of(path))

    def _check_untaken(self, reads: Reads, space: str, path: str) -> None:
        """:raises Conflict: if the caller has something there or all have. What another keeps private takes no path
        away, and its place must not be revealed."""
        if reads.files.at_path(space, path, access.audience_of_paths(self._engine.caller, space)) is not None:
            raise path_taken(path)

    def _check_section(self, space: str, section: str) -> None:
        """:raises SectionNotFound: if there is none, where sections are made before anything is put into them"""
        registry = self._engine.registry
        if registry is not None and registry.strict_sections and section and not self._exists(space, section):
            raise no_section(section)

    def get(self, store: str, path: str, *, expired: bool = False) -> Memory:
        """The memory at a path, counted as read.

        :raises NotFound: if there is none, or none that the caller may see
        :raises Expired: if its time is over, unless expired ones are asked for
        :raises FileDamaged: if its file cannot be read
        """
        memory = self._find(self._folders.check(store), path)
        if not expired and memory.expired(self._engine.now()):
            raise Expired(f"Memory expired: {memory.path}", hint="Include expired ones, or prune them.")
        self._engine.count_reads([memory])
        return memory

    def update(self, store: str, path: str, fields: Mapping[str, Any]) -> Placed:
        """Change text, tags or expiry; what is not named stays."""
        if (kept := self._engine.earlier_result(Revised)) is not None:
            return self._place(kept.memory)
        known = self._find(self._folders.check(store), path)
        return self._place(self._engine.revise(known.id, **fields).memory)

    def remove(self, store: str, path: str) -> Placed:
        """Soft-delete the memory at a path."""
        space = self._folders.check(store)
        place = self._looked_at(space, path)

        def write(tx: Transaction) -> Memory:
            known = self._at(tx, space, place)
            return lifecycle.forget(self._engine.ledger, tx, known.id, hard=False, reason="removed").memory

        return self._place(self._engine.transact(Memory, write))

    def move(self, store: str, source: str, destination: str) -> Placed:
        """Move a memory to another place in its store; nothing else about it changes.

        :raises Conflict: if there is a memory at the destination
        """
        space, place = self._folders.check(store), checked_path(destination, "destination")
        origin = self._looked_at(space, source, "source")
        self._folders.look_closely(space, place)

        def write(tx: Transaction) -> Memory:
            current = self._engine.ledger.get_changeable(tx, self._at(tx, space, origin).id)
            if current.path == place:
                return current
            self._check_untaken(tx, space, place)
            if names.holder(tx, replace(current, path=place)) is not None:
                raise path_taken(place)
            self._check_section(space, section_of(place))
            return self._engine.ledger.change(tx, replace(current, path=place), "moved", "path", touched=False)

        return self._place(self._engine.transact(Memory, write))

    def prune(self, store: str, *, dry_run: bool = False) -> Sequence[Memory]:
        """Soft-delete what has expired in a store, and return it; a dry run only returns it."""
        space = self._folders.check(store)
        access.check_unsealed(self._engine.caller, space)
        self._folders.look([space])
        return self._engine.bound_to(spaces=(space,), only=True).prune(dry_run=dry_run)

    # --- lists -------------------------------------------------------------------------------------------------------

    def list(
        self,
        store: str,
        section: str | None = None,
        *,
        expired: bool = False,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Contents:
        """What is below a section, at any depth, and its direct sections. One that is not there is empty.

        With a limit, at most that many entries and a cursor for those after them; sections are counted whole.
        """
        space = self._folders.check(store)
        place = "" if section is None else checked_section(section)
        self._folders.look([space])
        problems = self._folders.problems(space)
        broken, now = ids_of(problems), self._engine.now()
        below = self._entries(space, place)
        shown = [entry for entry in below if entry.id not in broken and (expired or not entry.expired(now))]
        described = self._records.files.sections(space)
        entries = sorted(shown, key=_order)
        after = None if cursor is None else _place_of(cursor)
        rest = entries if after is None else [entry for entry in entries if _order(entry) > after]
        page = rest[:limit]
        return Contents(
            section=place,
            exists=not place or bool(below) or any(_within(path, place) for path in described),
            entries=tuple(page),
            sections=tuple(_direct(place, shown, below, described)),
            unreadable=len(problems),
            total=len(entries),
            cursor=f"{page[-1].path} {page[-1].id}" if len(page) < len(rest) else None,
        )

    def recent(self, store: str, *, limit: int = 10, section: str | None = None) -> Sequence[Memory]:
        """The memories that were changed last, newest first."""
        space = self._folders.check(store)
        prefix = None if section is None else checked_section(section)
        page = self._engine.bound_to(spaces=(space,), only=True).list(
            Filter(states=AT_HAND, path_prefix=prefix), order=Order.UPDATED, limit=limit
        )
        return page.memories

    # --- sections ----------------------------------------------------------------------------------------------------

    # Each answers with the section's path, cleaned, and what became of it.

    def create_section(self, store: str, section: str) -> tuple[str, bool]:
        """Make an empty section; False if it was there."""
        space, place = self._changeable_section(store, section)
        self._folders.look([space])

        def write(tx: Transaction) -> bool:
            new = not self._exists(space, place)
            if new:
                self._put_section(tx, space, place, None)
            return new

        return place, self._engine.transact(bool, write)

    def describe_section(self, store: str, section: str, description: str) -> tuple[str, str | None]:
        """Say what belongs into a section; it is made if it was not there. Blank takes the description away."""
        space, place = self._changeable_section(store, section)
        text = checked_description(description)

        def write(tx: Transaction) -> bool:
            self._put_section(tx, space, place, text)
            return True

        self._engine.transact(bool, write)
        return place, text

    def _put_section(self, tx: Transaction, space: str, place: str, description: str | None) -> None:
        tx.spaces.create(space, at=self._engine.now())
        tx.files.put_section(space, place, description=description)

    def delete_section(self, store: str, section: str) -> tuple[str, int]:
        """Soft-delete everything in a section, and the section; return how many memories that were.

        :raises SectionNotFound: if there is no such section
        """
        space, place = self._changeable_section(store, section)
        if "/" not in place:
            raise InvalidInput(
                f"The root category {place} cannot be deleted.", hint="Delete its contents instead.", field="path"
            )
        self._folders.look([space])

        def write(tx: Transaction) -> tuple[Memory, ...]:
            if not self._exists(space, place):
                raise no_section(place)
            entries = tx.files.entries(space, place, access.audience_in(self._engine.caller, (space,)))
            for entry in entries:
                lifecycle.forget(self._engine.ledger, tx, entry.id, hard=False, reason=f"section {place} was deleted")
            tx.files.drop_sections(space, place)
            return tuple(tx.get([entry.id for entry in entries], access.EVERYTHING))

        return place, len(self._engine.transact(tuple[Memory, ...], write))

    def _changeable_section(self, store: str, section: str) -> tuple[str, str]:
        space = self._folders.check(store)
        access.check_store(self._engine.caller, space)
        return space, checked_section(section)

    def _exists(self, space: str, section: str) -> bool:
        return bool(self._entries(space, section)) or any(
            _within(path, section) for path in self._records.files.sections(space)
        )

    # --- steps -------------------------------------------------------------------------------------------------------

    def _entries(self, space: str, section: str) -> Sequence[Entry]:
        return self._records.files.entries(space, section, access.audience_in(self._engine.caller, (space,)))

    def _find(self, space: str, path: str) -> Memory:
        return self._at(self._records, space, self._looked_at(space, path))

    def _looked_at(self, space: str, path: str, field: str = "path") -> str:
        """The path, checked, of a memory that now says what its file says. An id stands for its memory's path."""
        if isinstance(path, str) and path.startswith("mem_"):
            self._folders.look([space])
            named = self._records.get([path[:100]], access.audience_in(self._engine.caller, (space,)))
            path = named[0].path if named else "unknown-id"
        place = checked_path(path, field)
        self._folders.look_closely(space, place)
        if self._records.files.at_path(space, place, access.audience_in(self._engine.caller, (space,))) is None:
            self._folders.look([space])  # a new file may have any name
        return place

    def _at(self, reads: Reads, space: str, place: str) -> Memory:
        """:raises NotFound: if there is none at that path that the caller may see"""
        memory = reads.files.at_path(space, place, access.audience_in(self._engine.caller, (space,)))
        if memory is None:
            raise NotFound(f"Memory not found: {place}", hint="List the memories to see their paths.")
        return memory

    def _place(self, memory: Memory) -> Placed:
        return Placed(memory=memory, waits=self._folders.waits(memory.id))


def _direct(
    place: str, shown: Sequence[Entry], below: Sequence[Entry], described: Mapping[str, str | None]
) -> list[ListedSection]:
    """The direct sections of a section, with how many of the shown memories are in each."""
    start = f"{place}/" if place else ""
    counts: dict[str, int] = {}
    for path in (*(section_of(entry.path) for entry in below), *described):
        if path.startswith(start) and path != place and path:
            counts.setdefault(start + path[len(start) :].partition("/")[0], 0)
    for entry in shown:
        inner = section_of(entry.path)
        if inner.startswith(start) and inner != place:
            counts[start + inner[len(start) :].partition("/")[0]] += 1
    return [ListedSection(path=path, memories=counts[path], description=described.get(path)) for path in sorted(counts)]


def _order(entry: Entry) -> tuple[bool, str, str]:
    """What is at the root comes first."""
    return "/" in entry.path, entry.path, entry.id


def _place_of(cursor: str) -> tuple[bool, str, str]:
    """Where an entry lay that was the last of a page; it need not be there any more."""
    path, _, last = cursor.partition(" ")
    if not last:
        raise InvalidInput("The cursor is not valid for this list.", hint="Start again without one.", field="cursor")
    return "/" in path, path, last


def _within(path: str, section: str) -> bool:
    return path == section or section in sections_above(f"{path}/")


def path_taken(path: str) -> Conflict:
    return Conflict(f"Memory already exists at {path}", path=path)


def no_section(section: str) -> SectionNotFound:
    return SectionNotFound(f"Category not found: {section}", hint="Create it first.")
