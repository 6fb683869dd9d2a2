"""Paths, and the files that memories are kept in, in every backend.

A change of a memory that is kept as a file (`put`, `purge`, a link) lets the file wait, whoever makes it; so does a new
memory in a mirrored space. Backends see to that where they change memories.
"""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scrubjay.errors import SpaceNotFound
from scrubjay.stores.promises.files import Entry, File
from scrubjay.stores.tables.rows import Row, value_of
from scrubjay.stores.tables.sql import Sql, pointer
from scrubjay.values.callers import Audience
from scrubjay.values.memory import AccessLevel, Memory, State

List = list  # below, `list` is a verb


class Files:
    """What can be read."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._space = sql.space_name.format("memories.space")
        self._files = f"""
            SELECT
                memories.id, memories.path,
                CASE WHEN {self._space} = files.space THEN memories.state ELSE {sql.greatest}(memories.state, 3) END,
                memories.version, files.name, files.path, files.version, files.hash, files.stamp,
                outbox.memory IS NOT NULL
            FROM files
            JOIN memories ON memories.id = files.memory
            LEFT JOIN outbox ON outbox.space = files.space AND outbox.memory = files.memory
        """

    def at_path(self, space: str, path: str, audience: Audience) -> Memory | None:
        """The active memory at a path, as this audience sees it.

        Of several: the private one of the audience's own user, else the one that is shared or public, else the oldest.
        """
        found = self._sql.memories(
            # memories_by_place
            f"memories.space = {self._sql.space} AND memories.path = :path AND memories.state IN (0, 1)",
            audience,
            space=space,
            path=path,
        )

        def place(memory: Memory) -> tuple[bool, bool, int]:
            private = memory.access_level is AccessLevel.PRIVATE
            return not (private and memory.context.user_id == audience.user), private, memory.seq

        return min(found, key=place, default=None)

    def used_paths(self, space: str, paths: Sequence[str]) -> set[str]:
        """Which of the paths active memories of a space have, whoever may see them."""
        rows = self._sql.all(
            # memories_by_place
            f"""
            SELECT memories.path
            FROM memories
            WHERE memories.space = {self._sql.space}
            AND memories.state IN (0, 1)
            AND {self._sql.among("memories.path", "paths")}
            """,
            space=space,
            paths=list(paths),
        )
        return {path for (path,) in rows}

    def taken_paths(self, memory: Memory) -> set[str]:
        """Of the memory's path and those that begin with it and a hyphen, the ones that are taken for it.

        Taken by other active memories of its space and audience: those that are shared or public if it is so itself,
        its user's private ones if it is private.
        """
        path, private = memory.path, memory.access_level is AccessLevel.PRIVATE
        rows = self._sql.all(
            # memories_by_place; "." comes just after "-"
            f"""
            SELECT memories.path
            FROM memories
            WHERE memories.space = {self._sql.space}
            AND memories.state IN (0, 1)
            AND memories.path >= :path
            AND memories.path < :end
            AND (memories.path = :path OR memories.path >= :first)
            AND memories.id <> :id
            AND {f"memories.access_level = 'private' AND memories.user_id = {self._sql.name}" if private else SHARED}
            """,
            space=memory.space,
            path=path,
            first=path + "-",
            end=path + ".",
            id=memory.id,
            name=memory.context.user_id,
        )
        return {path for (path,) in rows}

    def entries(self, space: str, section: str, audience: Audience) -> List[Entry]:
        """The active memories below a section of a space ("" for all of it), expired ones included, by path."""
        visible, values = self._sql.visible(audience)
        newer, newer_values = self._sql.visible(audience.reaching, "others")
        below = "AND memories.path >= :first AND memories.path < :end" if section else ""  # "0" comes just after "/"
        rows = self._sql.all(
            # memories_by_place
            f"""
            SELECT
                memories.id, memories.path, memories.title, memories.content_length, memories.updated_at,
                memories.expires_at, {pointer("superseded_by", newer)}
            FROM memories
            WHERE memories.space = {self._sql.space}
            AND memories.state IN (0, 1)
            AND {visible}
            {below}
            ORDER BY memories.path
            """,
            space=space,
            first=f"{section}/",
            end=f"{section}0",
            **values,
            **newer_values,
        )
        return [value_of(Entry, row) for row in rows]

    def sections(self, space: str) -> dict[str, str | None]:
        """Sections that were made or described, with their descriptions; others exist by what is in them."""
        return dict(
            self._sql.all("SELECT path, description FROM sections WHERE space = :space ORDER BY path", space=space)
        )

    def list(self, space: str, *, waiting: bool = False) -> List[File]:
        """Every memory of a space that is or was kept as a file, by name; purged ones while their file waits.

        `waiting` leaves out those whose file need not be written. For the engine's own bookkeeping: whoever they belong
        to.
        """
        table = "outbox" if waiting else "files"
        rows = self._sql.all(
            # files_by_name; the primary key of outbox
            f"{self._files} WHERE {table}.space = :space ORDER BY files.name",
            space=space,
        )
        return [file_of_row(row) for row in rows]

    def of(self, id: str) -> File | None:
        """The file of one memory; None if it is not kept as one."""
        row = self._sql.first_row(f"{self._files} WHERE memories.id = :id", id=id)
        return None if row is None else file_of_row(row)

    def find_by_name(self, space: str, name: str) -> File | None:
        """Find the file with this name, if an active memory is kept in it."""
        row = self._sql.first_row(
            # files_by_name
            f"""
            {self._files}
            WHERE files.space = :space
            AND files.name = :name
            AND {self._space} = files.space
            AND memories.state IN (0, 1)
            """,
            space=space,
            name=name,
        )
        return None if row is None else file_of_row(row)

    def waiting(self) -> dict[str, int]:
        """How many files wait to be written, by space; spaces where none does are left out."""
        # the primary key
        return dict(self._sql.all("SELECT space, count(*) FROM outbox GROUP BY space"))

    def mirrored(self, space: str) -> bool:
        """Whether every memory of the space is kept as a file."""
        row = self._sql.first_row("SELECT mirrored FROM spaces WHERE name = :space", space=space)
        return row is not None and bool(row[0])


class FileChanges(Files):
    """What a transaction can read and change."""

    def keep(self, ids: Sequence[str]) -> None:
        """Keep memories as files of their space from now on, and let the files wait to be written."""
        wanted = self._sql.among("memories.id", "ids")
        self._begin(wanted, ids=List(ids))
        self._let_wait(wanted, ids=List(ids))

    def in_sync(self, id: str, *, name: str, hash: bytes, stamp: str, version: int) -> None:
        """Note that a memory, at a version, and a file say the same; the file waits no longer unless it has changed
        since that version. A deleted memory that had a file of this name before has none any more."""
        values = {"name": name, "hash": hash, "stamp": stamp, "version": version}
        self._sql.run(
            # files_by_name; a name is one memory's
            f"""
            UPDATE files
            SET name = '', hash = NULL, stamp = ''
            WHERE space = (SELECT {self._space} FROM memories WHERE memories.id = :memory)
            AND name = :name
            AND memory <> :memory
            """,
            memory=id,
            name=name,
        )
        known = self._sql.run(
            """
            UPDATE files
            SET name = :name, path = (SELECT memories.path FROM memories WHERE memories.id = :memory),
                version = :version, hash = :hash, stamp = :stamp
            WHERE memory = :memory
            """,
            memory=id,
            **values,
        )
        if not known:
            self._sql.run(
                f"""
                INSERT INTO files (space, memory, name, path, version, hash, stamp)
                SELECT {self._space}, memories.id, :name, memories.path, :version, :hash, :stamp
                FROM memories
                WHERE memories.id = :memory
                """,
                memory=id,
                **values,
            )
        self._wait_no_longer(id, version)

    def restamp(self, stamps: Mapping[str, str]) -> None:
        """Note what the file system says now of the files of these memories, whose bytes are the same."""
        self._sql.run_many(
            "UPDATE files SET stamp = :stamp WHERE memory = :memory",
            [{"memory": memory, "stamp": stamp} for memory, stamp in stamps.items()],
        )

    def withdraw(self, id: str, *, version: int) -> None:
        """Note that the file of a memory, at a version, was taken away though the memory stays. The next change of the
        memory lets a file wait again."""
        self._sql.run(
            """
            UPDATE files
            SET name = '', path = '', version = 0, hash = NULL, stamp = ''
            WHERE memory = :memory
            """,
            memory=id,
        )
        self._wait_no_longer(id, version)

    def drop(self, ids: Sequence[str]) -> None:
        """Memories are no longer kept as files, and nothing waits for them."""
        for table in ("files", "outbox"):
            self._sql.run(f"DELETE FROM {table} WHERE {self._sql.among('memory', 'ids')}", ids=List(ids))

    def forget_name(self, id: str) -> None:
        """Keep nothing of the file that an erased memory had; one that is still to be removed goes on waiting."""
        self._sql.run(
            # files_by_memory; the primary key of outbox
            """
            DELETE FROM files
            WHERE memory = :memory
            AND NOT EXISTS (
                SELECT 1 FROM outbox WHERE outbox.space = files.space AND outbox.memory = files.memory
            )
            """,
            memory=id,
        )

    def mirror(self, space: str, *, on: bool) -> None:
        """Keep every memory of a space as a file from now on (those there already wait), or only those that are."""
        if not self._sql.run("UPDATE spaces SET mirrored = :on WHERE name = :space", on=on, space=space):
            raise _no_space(space)
        if on:
            # memories_by_place
            self._begin(f"memories.space = {self._sql.space} AND memories.state IN (0, 1)", space=space)
            self._let_wait("files.space = :space AND files.hash IS NULL", space=space)

    def put_section(self, space: str, path: str, *, description: str | None) -> None:
        """Make a section, or change its description.

        :raises SpaceNotFound: if its space was never created
        """
        put = self._sql.run(
            """
            INSERT INTO sections (space, path, description)
            SELECT name, :path, :description
            FROM spaces
            WHERE name = :space
            ON CONFLICT (space, path) DO UPDATE SET description = excluded.description
            """,
            space=space,
            path=path,
            description=description,
        )
        if not put:
            raise _no_space(space)

    def drop_sections(self, space: str, path: str) -> None:
        """Forget a section and those below it; memories stay.

        :raises SpaceNotFound: if there is no such space
        """
        if self._sql.first_row("SELECT 1 FROM spaces WHERE name = :space", space=space) is None:
            raise _no_space(space)
        self._sql.run(
            """
            DELETE FROM sections
            WHERE space = :space
            AND (path = :path OR (path >= :first AND path < :end))
            """,
            space=space,
            path=path,
            first=f"{path}/",
            end=f"{path}0",
        )

    def _begin(self, which: str, **values: object) -> None:
        """Keep memories as files that are not yet."""
        self._sql.run(
            f"""
            INSERT INTO files (space, memory, name)
            SELECT {self._space}, memories.id, ''
            FROM memories
            WHERE {which}
            AND NOT EXISTS (SELECT 1 FROM files WHERE files.memory = memories.id)
            """,
            **values,
        )

    def _let_wait(self, which: str, **values: object) -> None:
        self._sql.run(
            f"""
            INSERT INTO outbox (space, memory, version)
            SELECT files.space, files.memory, memories.version
            FROM files
            JOIN memories ON memories.id = files.memory
            WHERE {which}
            ON CONFLICT (space, memory) DO UPDATE SET version = excluded.version
            """,
            **values,
        )

    def _wait_no_longer(self, id: str, version: int) -> None:
        self._sql.run("DELETE FROM outbox WHERE memory = :memory AND version <= :version", memory=id, version=version)


SHARED = "memories.access_level <> 'private'"


def _no_space(name: str) -> SpaceNotFound:
    return SpaceNotFound(f"No space {name!r}.", hint="Create it first.")


STATES = tuple(State)  # by number; quicker than asking the enum ten thousand times


def file_of_row(row: Row) -> File:
    key, path, state, version, name, agreed_path, agreed_version, digest, stamp, waiting = row
    return File(
        memory=key,
        path=path,
        state=STATES[state],
        version=version,
        name=name,
        agreed_path=agreed_path,
        agreed_version=agreed_version,
        hash=digest,
        stamp=stamp,
        waiting=bool(waiting),
    )
