"""Paths, and the files that memories are kept in. Whatever changes a memory lets its file wait."""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scrubjay.errors import SpaceNotFound
from scrubjay.stores.postgres.filters import Condition, audience_of, joined, seen, views_of
from scrubjay.stores.postgres.history import Connection, PostgresHistory
from scrubjay.stores.postgres.rows import columns_for, memory_of, pointer_for
from scrubjay.stores.promises.files import Entry, File
from scrubjay.stores.promises.memories import List, Transaction
from scrubjay.stores.tables.side_rows import entry_of, file_of_row
from scrubjay.values.memory import AccessLevel, Audience, Memory

FILES = """
    SELECT
        memories.id, memories.path,
        CASE WHEN memories.space = files.space THEN memories.state ELSE greatest(memories.state, 3) END,
        memories.version, files.name, files.path, files.version, files.hash, files.stamp, outbox.memory IS NOT NULL
    FROM files
    JOIN memories ON memories.id = files.memory
    LEFT JOIN outbox ON outbox.space = files.space AND outbox.memory = files.memory
"""
# Behind files that wait, for those that already do.
AGAIN = "ON CONFLICT (space, memory) DO UPDATE SET version = excluded.version"


class PostgresFiles(PostgresHistory):
    def at_path(self, space: str, path: str, audience: Audience) -> Memory | None:
        visible, values = seen(views_of(audience))
        columns, told = columns_for(audience)
        with self._reading() as con:
            row = con.execute(
                # memories_by_place
                f"""
                SELECT {columns}
                FROM memories
                WHERE memories.space = %s
                AND memories.path = %s
                AND memories.state IN (0, 1)
                AND {visible}
                ORDER BY memories.audience <> %s, memories.audience NOT IN ('public', 'shared'), memories.seq
                LIMIT 1
                """,
                (*told, space, path, *values, audience_of(AccessLevel.PRIVATE, audience.user)),
            ).fetchone()
            return None if row is None else self._tally.laid_over(memory_of(row))

    def entries(self, space: str, section: str, audience: Audience) -> List[Entry]:
        conditions: list[Condition] = [seen(views_of(audience))]
        if section:  # "0" comes just after "/"
            conditions.append(("memories.path >= %s AND memories.path < %s", [f"{section}/", f"{section}0"]))
        where, values = joined(conditions, "AND")
        newer, told = pointer_for(audience, "superseded_by")
        with self._reading() as con:
            rows = con.execute(
                # memories_by_place
                f"""
                SELECT id, path, title, content_length, updated_at, expires_at, {newer}
                FROM memories
                WHERE space = %s
                AND state IN (0, 1)
                AND {where}
                ORDER BY path
                """,
                (*told, space, *values),
            )
            return [entry_of(row) for row in rows]

    def sections(self, space: str) -> dict[str, str | None]:
        with self._reading() as con:
            rows = con.execute("SELECT path, description FROM sections WHERE space = %s ORDER BY path", (space,))
            return dict(rows)

    def files(self, space: str, *, waiting: bool = False) -> List[File]:
        with self._reading() as con:
            rows = con.execute(
                # files_by_name, the primary key of outbox
                f"{FILES} WHERE {'outbox' if waiting else 'files'}.space = %s ORDER BY files.name",
                (space,),
            )
            return [file_of_row(row) for row in rows]

    def file_of(self, id: str) -> File | None:
        with self._reading() as con:
            row = con.execute(f"{FILES} WHERE memories.id = %s", (id,)).fetchone()
            return None if row is None else file_of_row(row)

    def file_named(self, space: str, name: str) -> File | None:
        with self._reading() as con:
            row = con.execute(
                # files_by_name
                f"""
                {FILES}
                WHERE files.space = %s
                AND files.name = %s
                AND memories.space = files.space
                AND memories.state IN (0, 1)
                """,
                (space, name),
            ).fetchone()
            return None if row is None else file_of_row(row)

    def waiting(self) -> dict[str, int]:
        with self._reading() as con:
            return dict(con.execute("SELECT space, count(*) FROM outbox GROUP BY space"))

    def mirrored(self, space: str) -> bool:
        with self._reading() as con:
            return con.execute("SELECT mirrored FROM spaces WHERE name = %s", (space,)).fetchone() == (True,)


class PostgresFileChanges(Transaction):
    """The part of a transaction that changes files and sections."""

    _con: Connection

    def keep_as_file(self, ids: Sequence[str]) -> None:
        self._con.execute(
            """
            INSERT INTO files (space, memory, name)
            SELECT space, id, ''
            FROM memories
            WHERE id = ANY(%s)
            AND NOT EXISTS (SELECT 1 FROM files WHERE files.memory = memories.id)
            """,
            (list(ids),),
        )
        self._con.execute(
            f"""
            INSERT INTO outbox (space, memory, version)
            SELECT files.space, files.memory, memories.version
            FROM memories
            JOIN files ON files.memory = memories.id
            WHERE memories.id = ANY(%s)
            {AGAIN}
            """,
            (list(ids),),
        )

    def in_sync(self, id: str, *, name: str, hash: bytes, stamp: str, version: int) -> None:
        self._con.execute(
            # files_by_name; a name is one memory's
            """
            UPDATE files
            SET name = '', hash = NULL, stamp = ''
            WHERE space = (SELECT space FROM memories WHERE id = %(id)s)
            AND name = %(name)s
            AND memory <> %(id)s
            """,
            {"id": id, "name": name},
        )
        known = self._con.execute(
            """
            UPDATE files SET name = %s, path = memories.path, version = %s, hash = %s, stamp = %s
            FROM memories
            WHERE memories.id = %s
            AND files.memory = memories.id
            """,
            (name, version, hash, stamp, id),
        )
        if known.rowcount == 0:
            self._con.execute(
                """
                INSERT INTO files (space, memory, name, path, version, hash, stamp)
                SELECT space, id, %s, path, %s, %s, %s FROM memories WHERE id = %s
                """,
                (name, version, hash, stamp, id),
            )
        self._con.execute("DELETE FROM outbox WHERE memory = %s AND version <= %s", (id, version))

    def restamp(self, stamps: Mapping[str, str]) -> None:
        self._con.cursor().executemany(
            "UPDATE files SET stamp = %s WHERE memory = %s", [(stamp, memory) for memory, stamp in stamps.items()]
        )

    def withdraw_file(self, id: str, *, version: int) -> None:
        self._con.execute(
            "UPDATE files SET name = '', path = '', version = 0, hash = NULL, stamp = '' WHERE memory = %s", (id,)
        )
        self._con.execute("DELETE FROM outbox WHERE memory = %s AND version <= %s", (id, version))

    def drop_files(self, ids: Sequence[str]) -> None:
        for table in ("files", "outbox"):
            self._con.execute(f"DELETE FROM {table} WHERE memory = ANY(%s)", (list(ids),))

    def mirror(self, space: str, *, on: bool) -> None:
        self._check_space(space)
        self._con.execute("UPDATE spaces SET mirrored = %s WHERE name = %s", (on, space))
        if on:
            self._con.execute(
                # memories_by_place
                """
                INSERT INTO files (space, memory, name)
                SELECT space, id, ''
                FROM memories
                WHERE space = %s
                AND state IN (0, 1)
                AND NOT EXISTS (SELECT 1 FROM files WHERE files.memory = memories.id)
                """,
                (space,),
            )
            self._con.execute(
                f"""
                INSERT INTO outbox (space, memory, version)
                SELECT files.space, files.memory, memories.version
                FROM files
                JOIN memories ON memories.id = files.memory
                WHERE files.space = %s
                AND files.hash IS NULL
                {AGAIN}
                """,
                (space,),
            )

    def put_section(self, space: str, path: str, *, description: str | None) -> None:
        self._check_space(space)
        self._con.execute(
            """
            INSERT INTO sections (space, path, description)
            VALUES (%s, %s, %s)
            ON CONFLICT (space, path) DO UPDATE SET description = excluded.description
            """,
            (space, path, description),
        )

    def drop_sections(self, space: str, path: str) -> None:
        self._check_space(space)
        self._con.execute(
            "DELETE FROM sections WHERE space = %s AND (path = %s OR (path >= %s AND path < %s))",
            (space, path, f"{path}/", f"{path}0"),
        )

    def file_waits(self, id: str, *, space: str, version: int, state: int, moved: bool) -> None:
        """A memory has changed: its file, if it is kept as one, is to be written; and if it has moved, those that
        name it by its path."""
        self._con.execute(
            """
            INSERT INTO files (space, memory, name)
            SELECT name, %(id)s, ''
            FROM spaces
            WHERE name = %(space)s
            AND mirrored
            AND %(state)s < 2
            AND NOT EXISTS (SELECT 1 FROM files WHERE files.memory = %(id)s)
            """,
            {"id": id, "space": space, "state": state},
        )
        self._con.execute(
            f"""
            INSERT INTO outbox (space, memory, version)
            SELECT space, memory, %s FROM files WHERE memory = %s
            {AGAIN}
            """,
            (version, id),
        )
        if moved:
            self._con.execute(
                f"""
                INSERT INTO outbox (space, memory, version)
                SELECT DISTINCT files.space, files.memory, others.version
                FROM links
                JOIN memories AS others ON others.id IN (links.source, links.target)
                JOIN files ON files.memory = others.id
                WHERE (links.source = %(id)s OR links.target = %(id)s)
                AND others.id <> %(id)s
                {AGAIN}
                """,
                {"id": id},
            )

    def _check_space(self, name: str) -> None:
        if self._con.execute("SELECT 1 FROM spaces WHERE name = %s", (name,)).fetchone() is None:
            raise SpaceNotFound(f"No space {name!r}.", hint="Create it first.")
