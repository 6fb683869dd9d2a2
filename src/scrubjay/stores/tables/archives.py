"""Archived memories: where their text is, and what becomes of it, in every backend.

How a row is emptied and filled again is the backend's (`Transaction.put_away`, `bring_back`).
"""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from scrubjay.stores.tables.rows import columns_of_value, value_of
from scrubjay.stores.tables.sql import Sql
from scrubjay.values.memory import Archive
from scrubjay.values.times import milliseconds


class Archives:
    """What can be read."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    def get(self, ids: Sequence[str]) -> dict[str, Archive]:
        """Where the texts of the archived ones of these memories are (`Transaction.put_away`)."""
        rows = self._sql.all(
            # memories by their ids, then the primary key
            f"""
            SELECT memories.id, archives.id, tier, at, bytes, checksum, object, packed
            FROM memories
            CROSS JOIN archives
            WHERE {self._sql.among("memories.id", "ids")}
            AND {self._sql.memory_key.joins("archives", "memories")}
            """,
            ids=list(ids),
        )
        return {memory: value_of(Archive, rest) for memory, *rest in rows}

    def hot_bytes(self, ids: Sequence[str], *, vectors: bool) -> dict[str, int]:
        """What `put_away` would free of each memory; with or without its vectors."""
        rows = self._sql.all(
            f"""
            SELECT
                memories.id,
                octet_length(content) + octet_length(title) + octet_length(path) + octet_length(metadata)
                + octet_length(detail) + {self._sql.word_bytes} + {self._sql.vector_bytes if vectors else "0"},
                (
                    SELECT coalesce(sum(octet_length(snapshot)), 0)
                    FROM versions
                    WHERE {self._sql.memory_key.joins("versions", "memories")}
                )
            FROM memories
            WHERE {self._sql.among("memories.id", "ids")}
            """,
            ids=list(ids),
        )
        return {memory: int(own) + int(former) for memory, own, former in rows}

    def bytes(self) -> int:
        """How much is packed in all, in the store and elsewhere."""
        [(size,)] = self._sql.all("SELECT coalesce(sum(bytes), 0) FROM archives")
        return int(size)

    def objects(self, tier: str, limit: int) -> list[str]:
        """Names of objects of a tier in which texts lie outside the store, longest there first."""
        rows = self._sql.all(
            "SELECT object FROM archives WHERE object IS NOT NULL AND tier = :tier ORDER BY at, object LIMIT :limit",
            tier=tier,
            limit=limit,
        )
        return [name for (name,) in rows]

    def objects_due(self, now: datetime, limit: int) -> list[str]:
        """Names of archived objects that are to be removed by now, longest due first."""
        rows = self._sql.all(
            # objects_to_remove_by_due
            "SELECT object FROM objects_to_remove WHERE due <= :due ORDER BY due LIMIT :limit",
            due=milliseconds(now),
            limit=limit,
        )
        return [name for (name,) in rows]


class ArchiveChanges(Archives):
    """What a transaction can read and change."""

    def move(self, id: str, archive: Archive, *, at: datetime) -> None:
        """Note that what was packed of a memory is elsewhere now: in the store (`packed`), or in an `object`, which
        is claimed as by `put_away`. The object where it was is due for removal. Nothing happens if the memory has
        another archive by now, or none."""
        here = f"archives.id = :archive AND {self._sql.memory_key.matches_parameters('archives')}"
        row = self._sql.first_row(f"SELECT object FROM archives WHERE {here}", archive=archive.id, memory=id)
        if row is None:
            return
        if row[0] not in (None, archive.object):
            self.announce_objects([row[0]], due=at)
        self._sql.run(
            f"UPDATE archives SET object = :object, packed = :packed WHERE {here}",
            object=archive.object,
            packed=archive.packed,
            archive=archive.id,
            memory=id,
        )
        self._claim(archive)

    def announce_objects(self, objects: Sequence[str], *, due: datetime) -> None:
        """Note objects that are about to be written: unless `put_away` names them by then, they are to be removed."""
        self._sql.run_many(
            """
            INSERT INTO objects_to_remove (object, due)
            VALUES (:object, :due)
            ON CONFLICT (object) DO UPDATE SET due = excluded.due
            """,
            [{"object": name, "due": milliseconds(due)} for name in objects],
        )

    def objects_removed(self, objects: Sequence[str]) -> None:
        """Note that objects are gone."""
        self._sql.run(
            f"DELETE FROM objects_to_remove WHERE {self._sql.among('object', 'objects')}",
            objects=list(objects),
        )

    def keep(self, id: str, archive: Archive) -> None:
        """Keep what was packed of a memory; the backend empties its row."""
        columns, of, _ = self._sql.memory_key
        self._sql.run(
            f"""
            INSERT INTO archives ({", ".join(columns)}, id, tier, at, bytes, checksum, object, packed)
            SELECT {", ".join(of)}, :id, :tier, :at, :size, :checksum, :object, :packed
            FROM memories
            WHERE memories.id = :memory
            """,
            **columns_of_value(archive),
            memory=id,
        )
        self._claim(archive)

    def forget(self, id: str, *, at: datetime) -> None:
        """Forget what is packed of a memory, here and soon elsewhere; the backend fills its row, or has erased it."""
        here = self._sql.memory_key.matches_parameters("archives")
        objects = self._sql.all(f"SELECT object FROM archives WHERE {here} AND object IS NOT NULL", memory=id)
        self.announce_objects([name for (name,) in objects], due=at)
        self._sql.run(f"DELETE FROM archives WHERE {here}", memory=id)

    def _claim(self, archive: Archive) -> None:
        self._sql.run("DELETE FROM objects_to_remove WHERE object = :object", object=archive.object)
