"""What a store remembers beside the memories' present state, in every backend: links, former versions, events, other
ids, equal texts, recalls, bulk operations, results of writes, and facts about itself.
"""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import NamedTuple

from scrubjay.errors import Conflict, NotFound, SpaceNotFound, Unprocessable
from scrubjay.stores.promises.memories import RESULTS_KEPT, Request
from scrubjay.stores.tables.rows import (
    columns_of_value,
    event_of,
    former_phrases_of,
    snapshot_of_memory,
    value_of,
    version_of,
)
from scrubjay.stores.tables.sql import SUPERSEDED, Clause, Sql
from scrubjay.stores.tables.tally import Tally
from scrubjay.values.callers import Audience
from scrubjay.values.frozen import replace
from scrubjay.values.memory import FormerPhrases, Link, LinkKind, Memory, Version
from scrubjay.values.store import BulkOperation, Event, Recall
from scrubjay.values.times import milliseconds, moment

List = list  # below, `list` is a verb

LINK = """
    links.kind, links.source, links.target, links.score, links.state, links.given, links.reason, links.created_at,
    links.hlc, links.origin
"""
SOURCE, TARGET = 1, 2  # where it has these
RELATE = """
    INSERT INTO links (kind, source, target, score, state, given, reason, created_at, hlc, origin)
    VALUES (:kind, :source, :target, :score, :state, :given, :reason, :created_at, :hlc, :origin)
    ON CONFLICT (source, target, kind) DO UPDATE SET
        score = excluded.score, state = excluded.state, given = excluded.given, reason = excluded.reason,
        created_at = excluded.created_at, hlc = excluded.hlc, origin = excluded.origin
"""
ADD_EVENT = """
    INSERT INTO events (space, number, at, action, memory, fields, user_id, client, caller, transport, dialect, reason,
        credential)
"""
EVENT = """
    :space, {number}, :at, :action, {memory}, :fields, :user, :client, :caller, :transport, :dialect, :reason,
    :credential
"""
DROPPED_AT_ONCE = 100  # results past their time, per result kept: they never pile up, and none waits for them


class StoredText(NamedTuple):
    """A text that a memory has, without the text."""

    fingerprint: bytes
    hash: bytes | None  # SHA-256 of the text as it was written; None of an archived memory
    created_at: int  # milliseconds since 1970
    kind: str
    topic: str | None


class History:
    """What can be read."""

    def __init__(self, sql: Sql, tally: Tally) -> None:
        self._sql = sql
        self._tally = tally

    def links(
        self,
        ids: Sequence[str],
        *,
        kinds: frozenset[LinkKind] | None = None,
        within: Collection[str] | None = None,
    ) -> list[Link]:
        """Links that touch any of these memories on either side, oldest first; of them those with both ends `within`
        others, if these are given."""
        if not (ids := self._sql.find_linked(ids, within)):
            return []
        among = self._sql.among
        rows = self._sql.all(
            # the unique index of sources, links_by_target
            f"""
            SELECT {LINK}
            FROM links
            WHERE ({among("links.source", "ids")} OR {among("links.target", "ids")})
            AND {"TRUE" if kinds is None else among("links.kind", "kinds")}
            ORDER BY links.created_at, links.number
            """,
            ids=list(ids),
            kinds=sorted(kinds or ()),
        )
        if within is not None:
            ends = frozenset(within)
            rows = [row for row in rows if row[SOURCE] in ends and row[TARGET] in ends]
        return [value_of(Link, row) for row in rows]

    def open_conflicts(self, audience: Audience, *, now: datetime, limit: int, offset: int = 0) -> list[Link]:
        """Open `may_outdate` links between memories that are visible, active and not expired, newest first."""
        among, values = self._open_conflicts(audience, now)
        newest = "ORDER BY links.created_at DESC, links.number DESC LIMIT :limit OFFSET :offset"
        rows = self._sql.all(f"SELECT {LINK} {among} {newest}", limit=limit, offset=offset, **values)
        return [value_of(Link, row) for row in rows]

    def count_open_conflicts(self, audience: Audience, *, now: datetime) -> int:
        """How many older memories these links lead to."""
        among, values = self._open_conflicts(audience, now)
        return int(self._sql.all(f"SELECT count(DISTINCT links.target) {among}", **values)[0][0])

    def _open_conflicts(self, audience: Audience, now: datetime) -> Clause:
        others, values = self._sql.visible(audience.reaching, "others")
        ends = []
        for end in ("newer", "older"):
            visible, given = self._sql.visible(audience, end)
            values |= given
            # Something may supersede it for this audience, though not for everyone.
            ends.append(
                f"""
                {visible}
                AND {end}.state = 0
                AND ({end}.expires_at IS NULL OR {end}.expires_at > :at)
                AND {end}.id NOT IN ({SUPERSEDED.format(others)})
                """
            )
        # links_open, then each end by its id
        return (
            f"""
            FROM links
            CROSS JOIN memories AS newer
            CROSS JOIN memories AS older
            WHERE links.kind = 'may_outdate'
            AND links.state = 'open'
            AND newer.id = links.source
            AND older.id = links.target
            AND {" AND ".join(ends)}
            """,
            {"at": milliseconds(now), **values},
        )

    def same_text(self, fingerprint: bytes, audience: Audience) -> list[Memory]:
        """Active and archived memories with this fingerprint, oldest first."""
        return self._sql.memories(
            # memories_by_fingerprint
            "memories.fingerprint = :fingerprint AND memories.state IN (0, 2)",
            audience,
            order="memories.created_at, memories.seq",
            fingerprint=fingerprint,
        )

    def texts(self, fingerprints: Collection[bytes], audience: Audience) -> list[StoredText]:
        """What tells the texts with these fingerprints apart, of every memory that is not deleted."""
        if not fingerprints:
            return []
        names = {f"text_{number}": fingerprint for number, fingerprint in enumerate(fingerprints)}
        visible, given = self._sql.visible(audience)
        rows = self._sql.all(
            # memories_by_fingerprint
            f"""
            SELECT fingerprint, content_hash, created_at, kind, topic
            FROM memories
            WHERE memories.fingerprint IN ({", ".join(f":{name}" for name in names)})
            AND memories.state IN (0, 1, 2)
            AND {visible}
            """,
            **names,
            **given,
        )
        return [StoredText(bytes(row[0]), None if row[1] is None else bytes(row[1]), *row[2:]) for row in rows]

    def versions(self, id: str) -> list[Version]:
        """Former states, newest first. The caller has already been shown the memory itself."""
        rows = self._sql.all(
            # memories by their ids, then the key of versions
            f"""
            SELECT versions.id, versions.snapshot, versions.replaced_at, versions.replaced_by, versions.reason
            FROM memories
            JOIN versions ON {self._sql.memory_key.joins("versions", "memories")}
            WHERE memories.id = :id
            ORDER BY versions.version DESC
            """,
            id=id,
        )
        return [version_of(row) for row in rows]

    def former_phrases(self, id: str) -> tuple[FormerPhrases, ...]:
        """The phrases that a memory had before, of those changes that made no version; oldest first."""
        row = self._sql.first_row("SELECT former_also FROM memories WHERE id = :id", id=id)
        return () if row is None else former_phrases_of(row[0])

    def events(self, space: str, *, after: int = 0, limit: int = 1000) -> list[Event]:
        """The changes of a space after a number, in order."""
        rows = self._sql.all(
            # the primary key
            """
            SELECT number, at, action, memory, fields, user_id, client, caller, transport, dialect, reason
            FROM events
            WHERE space = :space
            AND number > :after
            ORDER BY number
            LIMIT :limit
            """,
            space=space,
            after=after,
            limit=limit,
        )
        return [event_of(space, row) for row in rows]

    def last_event(self, space: str) -> int:
        """The number of a space's newest event; 0 if there is none."""
        row = self._sql.first_row("SELECT events FROM spaces WHERE name = :space", space=space)
        return 0 if row is None else int(row[0])

    def last_events(self) -> dict[str, int]:
        """The same of every space."""
        return dict(self._sql.all("SELECT name, events FROM spaces"))

    def recalls(self, memory: str, *, limit: int = 100) -> list[Recall]:
        """Who a memory was handed out to, newest first."""
        rows = self._sql.all(
            # At most KEPT_RECALLS rows, read rarely: no index of their memories. In JSON an element begins behind a
            # bracket or a comma, and a quote inside one is never bare: so its text can be looked for as it stands.
            f"""
            SELECT at, space, user_id, client, memories
            FROM recalls
            WHERE {self._sql.place}(memories, :first) = 1 OR {self._sql.place}(memories, :later) > 0
            ORDER BY number DESC
            LIMIT :limit
            """,
            first="[" + json.dumps(memory, ensure_ascii=False),
            later="," + json.dumps(memory, ensure_ascii=False),
            limit=limit,
        )
        written = [
            Recall(at=moment(at), space=space, user=user, client=client, memories=tuple(json.loads(memories)))
            for at, space, user, client, memories in rows
        ]
        return [*self._tally.recalls_of(memory), *written][:limit]

    def bulk_operation(self, id: str) -> BulkOperation | None:
        """What was done to many memories at once under this id."""
        row = self._sql.first_row("SELECT id, action, user_id, at, reason FROM deeds WHERE id = :id", id=id)
        if row is None:
            return None
        memories = self._sql.all("SELECT memory FROM deed_memories WHERE deed = :id ORDER BY memory", id=id)
        name, action, user, at, reason = row
        return BulkOperation(
            id=name,
            action=action,
            user=user,
            at=moment(at),
            reason=reason,
            memories=tuple(memory for (memory,) in memories),
        )

    def last_bulk_operation(self, user: str) -> BulkOperation | None:
        """What this user last did to many memories at once."""
        row = self._sql.first_row("SELECT id FROM deeds WHERE user_id = :user ORDER BY at DESC LIMIT 1", user=user)
        return None if row is None else self.bulk_operation(row[0])

    def owed(self, *, user: str, client: str) -> list[str]:
        """Memories that this user stored with this client and that could not be compared with earlier ones in time, but
        have been since, in order of arrival."""
        rows = self._sql.all(
            # owed_by_client, then the ids of memories, then the key of pending
            f"""
            SELECT owed.memory
            FROM owed
            JOIN memories ON memories.id = owed.memory
            WHERE owed.user_id = :user
            AND owed.client = :client
            AND NOT EXISTS (
                SELECT 1 FROM pending WHERE {self._sql.memory_key.joins("pending", "memories")} AND NOT pending.judged
            )
            ORDER BY memories.seq
            """,
            user=user,
            client=client,
        )
        return [memory for (memory,) in rows]

    def fact(self, key: str) -> str | None:
        """A remembered fact about the store itself: `model`, `origin` …"""
        row = self._sql.cached_row("SELECT value FROM facts WHERE key = :key", key=key)
        return None if row is None else str(row[0])


class HistoryChanges(History):
    """What a transaction can read and change.

    Facts are read once. Events gather and are written before the next read and at the end: many changes of one
    transaction would else write the number of the space's last event again and again.
    """

    def __init__(self, sql: Sql, tally: Tally, deferred_writes: list[Callable[[], None]]) -> None:
        """`deferred_writes` is called, and emptied, before the transaction's next statement."""
        super().__init__(sql, tally)
        self._deferred_writes = deferred_writes
        self._facts: dict[str, str | None] = {}
        self._feeds: dict[str, int] = {}  # number of each space's last event …
        self._written: dict[str, int] = {}  # … and as its space says it
        self._events: list[dict[str, object]] = []
        self._same_events: list[dict[str, object]] = []  # each of many memories

    def fact(self, key: str) -> str | None:
        if key not in self._facts:
            self._facts[key] = super().fact(key)
        return self._facts[key]

    def set_fact(self, key: str, value: str) -> None:
        """Remember a fact about the store itself."""
        self._facts[key] = value
        self._sql.run(
            """
            INSERT INTO facts (key, value) VALUES (:key, :value)
            ON CONFLICT (key) DO UPDATE SET value = excluded.value
            """,
            key=key,
            value=value,
        )

    def record(self, event: Event) -> Event:
        """Append to the space's feed; the result carries its number, one higher than the last."""
        numbered = replace(event, number=self._next_number(event))
        self._gather(columns_of_value(numbered) | columns_of_value(event.provenance))
        return numbered

    def record_each(self, event: Event, memories: Sequence[str]) -> None:
        """The same event of each of these memories, written at once: many may have come."""
        if not memories:
            return
        columns = columns_of_value(event) | columns_of_value(event.provenance)
        first = self._next_number(event)
        self._feeds[event.space] = first + len(memories) - 1
        self._deferred_writes.append(self._write_events)
        self._same_events.append({**columns, "memories": [*memories], "number": first})

    def _gather(self, columns: dict[str, object]) -> None:
        if not self._events:
            self._deferred_writes.append(self._write_events)
        self._events.append(columns)

    def _next_number(self, event: Event) -> int:
        if event.space not in self._feeds:
            row = self._sql.first_row(
                "UPDATE spaces SET events = events + 1 WHERE name = :space RETURNING events", space=event.space
            )
            if row is None:
                raise SpaceNotFound(f"No space {event.space!r}.")
            if self._sql.notification:
                self._sql.all(self._sql.notification, space=event.space)
            number = self._written[event.space] = int(row[0])
        else:
            number = self._feeds[event.space] + 1
        self._feeds[event.space] = number
        return number

    def _write_events(self) -> None:
        (events, self._events), (same, self._same_events) = (self._events, []), (self._same_events, [])
        if events:
            add = f"{ADD_EVENT} VALUES ({EVENT})".format(number=":number", memory=":memory")
            self._sql.run_many(add, events)
        for event in same:
            add = f"{ADD_EVENT} SELECT {EVENT} FROM {self._sql.each}".format(
                number=":number + place", memory="value", list=":memories"
            )
            self._sql.run(add, **event)
        behind = {space: number for space, number in self._feeds.items() if number != self._written[space]}
        self._written |= behind
        if behind:
            self._sql.run_many(
                "UPDATE spaces SET events = :number WHERE name = :space",
                [{"space": space, "number": number} for space, number in behind.items()],
            )

    def relate(self, link: Link) -> None:
        """Write a link; one of the same kind between the same memories is replaced."""
        self._sql.run(
            self._sql.with_file_waiting.format(RELATE),
            **columns_of_value(link),
        )

    def keep_versions(self, id: str, versions: Sequence[Version]) -> None:
        """Write former states of a memory; the ones it already has stay."""
        columns, of, _ = self._sql.memory_key
        self._sql.run_many(
            f"""
            INSERT INTO versions ({", ".join(columns)}, version, id, snapshot, replaced_at, replaced_by, reason)
            SELECT {", ".join(of)}, :version, :id, :snapshot, :replaced_at, :replaced_by, :reason
            FROM memories
            WHERE memories.id = :memory
            ON CONFLICT ({", ".join(columns)}, version) DO NOTHING
            """,
            [
                columns_of_value(one)
                | {"memory": id, "version": one.memory.version, "snapshot": snapshot_of_memory(one.memory)}
                for one in versions
            ],
        )

    def alias(self, alias: str, id: str) -> None:
        """Let a memory be found by another id as well.

        :raises NotFound: if there is no such memory
        :raises Conflict: if the alias belongs to another memory or is a memory's id
        """
        if self._sql.first_row("SELECT 1 FROM memories WHERE id = :id AND state <> 4", id=id) is None:
            raise NotFound(f"No memory {id!r}.")
        self.add_alias(alias, id)
        if self._aliased(alias) != id:
            raise Conflict(f"The id {alias!r} is taken.")

    def add_alias(self, alias: str, id: str) -> None:
        """Let a memory be found by another id as well, unless that is taken."""
        columns, _, values = self._sql.memory_key
        self._sql.run(
            # memories and aliases by their ids
            f"""
            INSERT INTO aliases ({", ".join(columns)}, alias)
            SELECT {", ".join(values)}, :alias
            WHERE NOT EXISTS (SELECT 1 FROM memories AS others WHERE others.id = :alias)
            AND NOT EXISTS (SELECT 1 FROM aliases AS known WHERE known.alias = :alias)
            """,
            memory=id,
            alias=alias,
        )

    def move_alias(self, alias: str, id: str) -> None:
        """Let an alias belong to this memory from now on, whoever had it."""
        columns, of, _ = self._sql.memory_key
        if self._sql.first_row("SELECT 1 FROM memories WHERE id = :id AND state < 4", id=id) is None:
            return
        self._sql.run("DELETE FROM aliases WHERE alias = :alias", alias=alias)
        self._sql.run(
            f"""
            INSERT INTO aliases ({", ".join(columns)}, alias)
            SELECT {", ".join(of)}, :alias FROM memories WHERE memories.id = :id
            """,
            id=id,
            alias=alias,
        )

    def note_operation(self, operation: BulkOperation, *, goes_on: bool = False) -> None:
        """Remember what was done to these memories together; one noted before is given more of them, and the time of
        the last, and loses those that were restored since, unless it goes on: then a later call sees to that."""
        if not goes_on:
            self._drop_restored(operation)
        self._sql.run(
            """
            INSERT INTO deeds (id, action, user_id, at, reason)
            VALUES (:id, :action, :user, :at, :reason)
            ON CONFLICT (id) DO UPDATE SET at = excluded.at
            """,
            **columns_of_value(operation),
        )
        self._sql.run_many(
            "INSERT INTO deed_memories (deed, memory) VALUES (:deed, :memory) ON CONFLICT DO NOTHING",
            [{"deed": operation.id, "memory": memory} for memory in operation.memories],
        )

    def _drop_restored(self, operation: BulkOperation) -> None:
        self._sql.run(
            # by their ids; what was deleted after the operation's last time is not deleted by it
            """
            DELETE FROM deed_memories
            WHERE deed = :id
            AND memory IN (
                SELECT memories.id
                FROM deeds
                JOIN deed_memories AS known ON known.deed = deeds.id
                JOIN memories ON memories.id = known.memory
                WHERE deeds.id = :id
                AND (memories.deleted_at IS NULL OR memories.deleted_at > deeds.at)
            )
            """,
            id=operation.id,
        )

    def result_of(self, request: Request, *, now: datetime) -> str | None:
        """The kept result of the same request; None if it is new or its result was kept for longer than a day.

        Ask first and `keep_result` in the same transaction: of two that come at once the second waits for the first
        and is given its result.

        :raises Unprocessable: if its caller used the key for another operation or other arguments
        """
        row = self._sql.first_row(
            # the unique index of callers and keys
            """
            SELECT operation, arguments, result
            FROM results
            WHERE caller = :caller
            AND key = :key
            AND at > :since
            """,
            caller=request.caller,
            key=request.key,
            since=milliseconds(now - RESULTS_KEPT),
        )
        if row is None:
            return None
        operation, arguments, result = row
        if (operation, arguments) != (request.operation, request.arguments):
            raise Unprocessable(
                "This idempotency key was used for another request.", hint="Send a new key with every new request."
            )
        return str(result)

    def keep_result(self, request: Request, result: str, *, memories: Sequence[str], at: datetime) -> None:
        """Remember the result for a day, or until one of the memories that it mentions is purged."""
        self._sql.run(
            "DELETE FROM results WHERE caller = :caller AND key = :key", caller=request.caller, key=request.key
        )
        self._sql.run(
            # results_by_time; what a result says of memories goes with it
            """
            DELETE FROM results
            WHERE (caller, key) IN (
                SELECT caller, key FROM results WHERE at <= :before ORDER BY at LIMIT :limit
            )
            """,
            before=milliseconds(at - RESULTS_KEPT),
            limit=DROPPED_AT_ONCE,
        )
        self._sql.run(
            """
            INSERT INTO results (caller, key, operation, arguments, result, at)
            VALUES (:caller, :key, :operation, :arguments, :result, :at)
            """,
            caller=request.caller,
            key=request.key,
            operation=request.operation,
            arguments=request.arguments,
            result=result,
            at=milliseconds(at),
        )
        self._sql.run_many(
            "INSERT INTO result_memories (memory, caller, key) VALUES (:memory, :caller, :key)",
            [{"memory": memory, "caller": request.caller, "key": request.key} for memory in dict.fromkeys(memories)],
        )

    def owe(self, id: str, *, user: str, client: str) -> None:
        """Note that a reply to this client said that its memory is not compared with earlier ones yet."""
        self._sql.run(
            "INSERT INTO owed (memory, user_id, client) VALUES (:memory, :user, :client)",
            memory=id,
            user=user,
            client=client,
        )

    def end_owing(self, *ids: str) -> None:
        """Note that the client knows what these memories were compared with, or no longer needs to."""
        self._sql.run_many("DELETE FROM owed WHERE memory = :memory", [{"memory": memory} for memory in ids])

    def forget_results(self, memory: str) -> None:
        """Forget every result that mentions a memory, which is erased."""
        self._sql.run(
            """
            DELETE FROM results
            WHERE (caller, key) IN (SELECT caller, key FROM result_memories WHERE memory = :memory)
            """,
            memory=memory,
        )

    def forget_reasons(self, memory: str) -> None:
        """Forget why a memory, which is erased, was changed: reasons quote it. That it was changed stays known."""
        self._sql.run(
            # events_by_reason
            "UPDATE events SET reason = NULL WHERE memory = :memory AND reason IS NOT NULL",
            memory=memory,
        )

    def _aliased(self, alias: str) -> str | None:
        row = self._sql.first_row(
            f"""
            SELECT memories.id
            FROM aliases
            JOIN memories ON {self._sql.memory_key.joins("aliases", "memories")}
            WHERE aliases.alias = :alias
            """,
            alias=alias,
        )
        return None if row is None else str(row[0])
