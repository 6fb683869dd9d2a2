"""Counted reads, written into the file. Totals are kept by triggers; `tables/statistics.py` reads them."""

from __future__ import annotations

import apsw

from scrubjay.stores.tables.rows import as_json
from scrubjay.stores.tables.tally import HOUR, KEPT_RECALLS, Batch, hourly
from scrubjay.values.times import milliseconds


def write_reads(con: apsw.Connection, batch: Batch) -> None:
    """Add a batch to the counters and the recall log; ids of no memory are passed over."""
    if batch.readings:
        con.execute(
            """
            INSERT INTO happened
            SELECT
                space, audience, user_id, conversation_id, category,
                counted.value ->> 1, 0, sum(counted.value ->> 2), 0, 0
            FROM json_each(?) AS counted
            CROSS JOIN memories ON memories.id = counted.value ->> 0
            GROUP BY space, audience, user_id, conversation_id, category, counted.value ->> 1
            """,
            (hourly(batch),),
        )
        con.executemany(
            """
            UPDATE memories
            SET access_count = access_count + ?2, accessed_at = max(accessed_at, ?3)
            WHERE id = ?1
            """,
            [(memory, reading.count, reading.at) for memory, reading in batch.readings.items()],
        )
    if not batch.recalls:
        return
    con.executemany(
        "INSERT INTO recalls (at, space, user_id, client, memories) VALUES (?, ?, ?, ?, ?)",
        [
            (milliseconds(recall.at), recall.space, recall.user, recall.client, as_json(recall.memories))
            for recall in batch.recalls
        ],
    )
    con.executemany(
        """
        INSERT INTO recall_counts (space, user_id, hour, recalls, memories)
        VALUES (?, ?, ?, 1, ?)
        ON CONFLICT (space, user_id, hour) DO UPDATE SET
            recalls = recalls + 1,
            memories = memories + excluded.memories
        """,
        [
            (recall.space, recall.user, milliseconds(recall.at) // HOUR, len(recall.memories))
            for recall in batch.recalls
        ],
    )
    con.execute("DELETE FROM recalls WHERE number <= (SELECT max(number) FROM recalls) - ?", (KEPT_RECALLS,))
