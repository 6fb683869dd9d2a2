"""Writing: everything that changes in one transaction. Memories themselves come from below.

What many changes of one transaction would write to the same row again and again (clock, feed numbers, totals) is kept
in the process and written once, before the next read and at the end.
"""

from __future__ import annotations

from scrubjay.stores.postgres.connections import Connection
from scrubjay.stores.postgres.counts import Counted
from scrubjay.stores.postgres.rebuilding import PostgresRebuilding
from scrubjay.stores.postgres.rows import COUNTED
from scrubjay.stores.postgres.sql import PostgresSql
from scrubjay.stores.postgres.sync import PostgresReplicas
from scrubjay.stores.promises.memories import milliseconds
from scrubjay.stores.tables.parts import hold_changes
from scrubjay.stores.tables.rows import as_json
from scrubjay.stores.tables.tally import HOUR, KEPT_RECALLS, Batch, Tally


class PostgresTransaction(PostgresReplicas, PostgresRebuilding):
    def __init__(self, con: Connection, tally: Tally) -> None:
        super().__init__(con, tally)
        hold_changes(self, PostgresSql(self._reading, tally), tally)

    # --- what a store does in a transaction of its own ---

    def write_reads(self, batch: Batch) -> None:
        """Add a batch to the counters and the recall log; ids of no memory are passed over."""
        if batch.readings:
            self._count_reads(batch)
        if batch.recalls:
            self._log_recalls(batch)

    def _count_reads(self, batch: Batch) -> None:
        readings = batch.readings
        rows = self._con.execute(
            # memories_by_id
            f"""
            UPDATE memories
            SET access_count = access_count + counted.count, accessed_at = greatest(accessed_at, counted.at)
            FROM unnest(%s::TEXT[], %s::BIGINT[], %s::BIGINT[]) AS counted (id, count, at)
            WHERE memories.id = counted.id
            RETURNING memories.id, {COUNTED}
            """,  # noqa: S608 -- constants
            ([*readings], [one.count for one in readings.values()], [one.at for one in readings.values()]),
        )
        for memory, *row in rows:
            now = Counted(*row)
            self._counts.replaced(now._replace(reads=now.reads - readings[memory].count), now)
            for hour, count in readings[memory].hours.items():
                self._counts.happened(now, hour, reads=count)

    def _log_recalls(self, batch: Batch) -> None:
        cursor = self._con.cursor()
        cursor.executemany(
            "INSERT INTO recalls (at, space, user_id, client, memories) VALUES (%s, %s, %s, %s, %s)",
            [
                (milliseconds(recall.at), recall.space, recall.user, recall.client, as_json(recall.memories))
                for recall in batch.recalls
            ],
        )
        cursor.executemany(
            """
            INSERT INTO recall_counts (space, user_id, hour, recalls, memories)
            VALUES (%s, %s, %s, 1, %s)
            ON CONFLICT (space, user_id, hour) DO UPDATE SET
                recalls = recall_counts.recalls + 1,
                memories = recall_counts.memories + excluded.memories
            """,
            [
                (recall.space, recall.user, milliseconds(recall.at) // HOUR, len(recall.memories))
                for recall in batch.recalls
            ],
        )
        self._con.execute(
            # recalls_by_number
            "DELETE FROM recalls WHERE number <= (SELECT max(number) FROM recalls) - %s",
            (KEPT_RECALLS,),
        )
