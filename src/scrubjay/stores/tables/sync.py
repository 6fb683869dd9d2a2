"""What sync needs of a store, in every backend: the clock, stamps and memories as they travel, what of another store's
feed was heard, endpoints and conflicts.
"""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from scrubjay.stores.promises.sync import Aside, Endpoint, Erased, Heard, Replica, Stamp, SyncConflict
from scrubjay.stores.tables.history import HistoryChanges
from scrubjay.stores.tables.rows import columns_of_value, maybe_milliseconds, value_of
from scrubjay.stores.tables.sql import Sql
from scrubjay.values.callers import Audience
from scrubjay.values.frozen import replace
from scrubjay.values.memory import AT_HAND, State, random_suffix
from scrubjay.values.times import milliseconds

if TYPE_CHECKING:
    from scrubjay.stores.tables.parts import Clock

STAMPED = ("memories", "links", "ancestry")  # tables with clock values


class Sync:
    """What can be read."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    def asides(self, id: str) -> list[Aside]:
        """What a memory says of others to some only, by name."""
        rows = self._sql.all("SELECT role, other, hlc FROM asides WHERE memory = :id ORDER BY role, other", id=id)
        return [Aside(*row) for row in rows]

    def stamps(self, ids: Sequence[str], audience: Audience) -> dict[str, Stamp]:
        """The stamps of the visible memories with these ids, tombstones included; unknown ones are left out."""
        visible, values = self._sql.visible(audience)
        rows = self._sql.all(
            # memories by their ids
            f"""
            SELECT id, hlc, origin, version, state, final
            FROM memories
            WHERE {self._sql.among("memories.id", "ids")}
            AND {visible}
            """,
            ids=list(ids),
            **values,
        )
        seen, aliases = self._seen(ids), self._aliases(ids)
        return {
            name: Stamp(
                hlc=hlc,
                origin=origin,
                version=version,
                erased=erased_of(state, final),
                seen=seen.get(name, {}),
                aliases=len(aliases.get(name, ())),
            )
            for name, hlc, origin, version, state, final in rows
        }

    def replicas(
        self, ids: Sequence[str], audience: Audience, *, vectors: bool = False, further: Sequence[str] = ()
    ) -> list[Replica]:
        """The visible memories with these ids as they travel, tombstones included, in the order asked; with their
        vectors, and those of these further models."""
        which, (visible, values) = self._sql.among("memories.id", "ids"), self._sql.visible(audience)
        memories = self._sql.memories(f"{which} AND {visible}", None, order="", **values, ids=list(ids))
        rows = self._sql.all(f"SELECT id, state, final, parts FROM memories WHERE {which}", ids=list(ids))
        states = {name: rest for name, *rest in rows}
        seen, aliases = self._seen(ids), self._aliases(ids)
        found = {}
        for memory in memories:
            state, final, parts = states[memory.id]
            found[memory.id] = Replica(
                memory=memory,
                erased=erased_of(state, final),
                seen=seen.get(memory.id, {}),
                aliases=tuple(aliases.get(memory.id, ())),
                vectors=tuple(self._sql.vectors(memory.id)) if vectors else (),
                parts=parts,
                further={model: own for model in further if (own := tuple(self._sql.vectors(memory.id, model)))},
            )
        return [found[name] for name in dict.fromkeys(ids) if name in found]

    def clock(self) -> int:
        """The store's hybrid logical clock: the last value that it gave or saw."""
        [(clock,)] = self._sql.all("SELECT clock FROM counters")
        return int(clock)

    def endpoints(self) -> list[Endpoint]:
        """All that were added, by name."""
        rows = self._sql.all("SELECT name, url, spaces, added_at, synced_at FROM endpoints ORDER BY name")
        return [value_of(Endpoint, row) for row in rows]

    def heard(self, speaker: str, listener: str, space: str) -> Heard:
        """How far one store (by its origin) has heard another's feed of a space; from the beginning if never."""
        row = self._sql.first_row(
            # the primary key
            "SELECT number, proof FROM heard WHERE speaker = :speaker AND listener = :listener AND space = :space",
            speaker=speaker,
            listener=listener,
            space=space,
        )
        return Heard() if row is None else Heard(*row)

    def conflicts(
        self, *, open: bool | None = None, endpoint: str | None = None, memory: str | None = None, limit: int = 1000
    ) -> list[SyncConflict]:
        """Conflicts, newest first: those that wait, those that are settled, or both."""
        asked = ["TRUE"]
        if open is not None:
            asked.append("outcome IS NULL" if open else "outcome IS NOT NULL")
        if endpoint is not None:
            asked.append("endpoint = :endpoint")
        if memory is not None:
            asked.append("memory = :memory")
        rows = self._sql.all(
            # sync_conflicts_open, sync_conflicts_by_memory
            f"""
            SELECT number, memory, endpoint, policy, at, outcome, settled_at, ours, theirs
            FROM sync_conflicts
            WHERE {" AND ".join(asked)}
            ORDER BY number DESC
            LIMIT :limit
            """,
            endpoint=endpoint,
            memory=memory,
            limit=limit,
        )
        return [value_of(SyncConflict, row) for row in rows]

    def _seen(self, ids: Sequence[str]) -> dict[str, dict[str, int]]:
        """Other stores' changes that went into memories. What a row's own stamp says need not be said twice."""
        rows = self._sql.all(
            # memories by their ids, then the primary key
            f"""
            SELECT memories.id, ancestry.origin, ancestry.hlc
            FROM memories
            CROSS JOIN ancestry
            WHERE {self._sql.among("memories.id", "ids")}
            AND {self._sql.memory_key.joins("ancestry", "memories")}
            AND (ancestry.origin <> memories.origin OR ancestry.hlc > memories.hlc)
            ORDER BY ancestry.origin
            """,
            ids=list(ids),
        )
        seen: dict[str, dict[str, int]] = {}
        for memory, origin, hlc in rows:
            seen.setdefault(memory, {})[origin] = hlc
        return seen

    def _aliases(self, ids: Sequence[str]) -> dict[str, list[str]]:
        rows = self._sql.all(
            # memories by their ids, then aliases_by_memory
            f"""
            SELECT memories.id, aliases.alias
            FROM memories
            CROSS JOIN aliases
            WHERE {self._sql.among("memories.id", "ids")}
            AND {self._sql.memory_key.joins("aliases", "memories")}
            ORDER BY aliases.alias
            """,
            ids=list(ids),
        )
        aliases: dict[str, list[str]] = {}
        for memory, alias in rows:
            aliases.setdefault(memory, []).append(alias)
        return aliases


class SyncChanges(Sync):
    """What a transaction can read and change."""

    def __init__(
        self, sql: Sql, history: HistoryChanges, clock: Clock, amend: Callable[[str, Mapping[str, Any]], None]
    ) -> None:
        """`amend` is `Transaction.amend`."""
        super().__init__(sql)
        self._history = history
        self._clock = clock
        self._amend = amend

    def mend_clock(self, *, now: int, latest: int) -> int:
        """Set a clock back that was lifted past `latest`; how many stamps were.

        Those stamps, of memories, links and what memories have seen, come to lie right behind `now` and every other
        stamp, in the order that they had.
        """
        stamps = " UNION ".join(f"SELECT hlc FROM {table}" for table in STAMPED)
        lifted = self._sql.all(f"SELECT hlc FROM ({stamps}) AS stamps WHERE hlc > :latest ORDER BY hlc", latest=latest)
        [(last,)] = self._sql.all(f"SELECT max(hlc) FROM ({stamps}) AS stamps WHERE hlc <= :latest", latest=latest)
        behind = max(now, last or 0)
        for table in STAMPED:
            self._sql.run(
                f"UPDATE {table} SET hlc = :behind + 1 + place FROM {self._sql.each.format(list=':lifted')} "
                f"WHERE {table}.hlc = CAST(value AS BIGINT)",
                behind=behind,
                lifted=[str(hlc) for (hlc,) in lifted],
            )
        clock = behind + len(lifted) if lifted else now
        self._sql.run("UPDATE counters SET clock = :clock WHERE clock > :latest", clock=clock, latest=latest)
        self._clock.forget()
        return len(lifted)

    def point(
        self,
        id: str,
        *,
        supersedes: str | None,
        superseded_by: str | None,
        valid_until: datetime | None,
        asides: Sequence[Aside] = (),
    ) -> None:
        """Write what follows from the links between memories. Changes neither version nor stamp.

        The pointers are for everyone who may see the memory. Where there is none, those who may see what an aside
        names read that instead, the newest first, and for them it decides the state: `get`, `list` and all that takes
        a filter tell each audience its own.
        """
        self._sql.run("DELETE FROM asides WHERE memory = :id", id=id)
        self._sql.run_many(
            "INSERT INTO asides (memory, role, other, hlc) VALUES (:memory, :role, :other, :hlc)",
            [{"memory": id, **one._asdict()} for one in asides],
        )
        row = self._sql.first_row("SELECT state FROM memories WHERE id = :id AND state < 4", id=id)
        if row is not None:
            state = int(superseded_by is not None) if row[0] in AT_HAND else row[0]
            pointers = {"supersedes": supersedes, "superseded_by": superseded_by}
            self._amend(id, {**pointers, "valid_until": maybe_milliseconds(valid_until), "state": state})

    def put_endpoint(self, endpoint: Endpoint) -> None:
        """Write an endpoint; one of the same name is replaced."""
        self._sql.run(
            """
            INSERT INTO endpoints (name, url, spaces, added_at, synced_at)
            VALUES (:name, :url, :spaces, :added_at, :synced_at)
            ON CONFLICT (name) DO UPDATE SET
                url = excluded.url, spaces = excluded.spaces,
                added_at = excluded.added_at, synced_at = excluded.synced_at
            """,
            **columns_of_value(endpoint) | {"added_at": milliseconds(endpoint.added_at) if endpoint.added_at else 0},
        )

    def remove_endpoint(self, name: str) -> bool:
        """Forget an endpoint and the conflicts that wait for it; False if there is none."""
        self._sql.run("DELETE FROM sync_conflicts WHERE endpoint = :name AND outcome IS NULL", name=name)
        return self._sql.run("DELETE FROM endpoints WHERE name = :name", name=name) == 1

    def hear(self, speaker: str, listener: str, space: str, heard: Heard) -> None:
        """Remember how far a feed was heard."""
        self._sql.run(
            """
            INSERT INTO heard (speaker, listener, space, number, proof)
            VALUES (:speaker, :listener, :space, :number, :proof)
            ON CONFLICT (speaker, listener, space) DO UPDATE SET number = excluded.number, proof = excluded.proof
            """,
            speaker=speaker,
            listener=listener,
            space=space,
            number=heard.number,
            proof=heard.proof,
        )

    def note_conflict(self, conflict: SyncConflict) -> SyncConflict:
        """Write a conflict; one with the same endpoint and memory that still waits is replaced."""
        if conflict.outcome is None:
            self._sql.run(
                "DELETE FROM sync_conflicts WHERE endpoint = :endpoint AND memory = :memory AND outcome IS NULL",
                endpoint=conflict.endpoint,
                memory=conflict.memory,
            )
        [(number,)] = self._sql.all(
            """
            INSERT INTO sync_conflicts (memory, endpoint, policy, at, outcome, settled_at, ours, theirs)
            VALUES (:memory, :endpoint, :policy, :at, :outcome, :settled_at, :ours, :theirs)
            RETURNING number
            """,
            **columns_of_value(conflict),
        )
        return replace(conflict, number=number)

    def settle_conflict(self, number: int, outcome: str, *, at: datetime) -> None:
        """Note what became of a conflict that waited."""
        self._sql.run(
            """
            UPDATE sync_conflicts SET outcome = :outcome, settled_at = :at
            WHERE number = :number AND outcome IS NULL
            """,
            outcome=outcome,
            at=milliseconds(at),
            number=number,
        )

    def renew_origin(self, *, late: bool = False) -> str:
        """Give the store a new origin, which is returned: it was put back from a copy, or is one.

        `late` says that changes may have been made since: what it made so far is taken to be its own, and may prove
        to be apart from what the store it was copied from made under the same origin.
        """
        former, origin = self._history.fact("origin"), random_suffix(16)
        self._history.set_fact("origin", origin)
        if late:
            columns, of, _ = self._sql.memory_key
            self._sql.run("UPDATE memories SET origin = :origin WHERE origin = :former", origin=origin, former=former)
            self._sql.run(
                f"""
                DELETE FROM ancestry
                WHERE origin = :former
                AND ({", ".join(columns)}) IN (SELECT {", ".join(of)} FROM memories WHERE memories.origin = :origin)
                """,
                former=former,
                origin=origin,
            )
        return origin

    def note_seen(self, id: str, others: Mapping[str, int]) -> None:
        """Let other stores' changes be seen by a memory, each up to this clock value or a later one known already."""
        columns, of, _ = self._sql.memory_key
        self._sql.run_many(
            f"""
            INSERT INTO ancestry ({", ".join(columns)}, origin, hlc)
            SELECT {", ".join(of)}, :origin, :hlc FROM memories WHERE memories.id = :memory
            ON CONFLICT ({", ".join(columns)}, origin) DO UPDATE SET
                hlc = {self._sql.greatest}(ancestry.hlc, excluded.hlc)
            """,
            [{"memory": id, "origin": origin, "hlc": hlc} for origin, hlc in others.items()],
        )


def erased_of(state: int, final: int) -> Erased:
    if state != State.PURGED:
        return Erased.NO
    return Erased.FINAL if final else Erased.IN_TIME
