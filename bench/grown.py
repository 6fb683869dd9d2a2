"""A large store made of a small one: its memories again and again, with other numbers, times and vectors.

Storing a million memories one by one takes hours, and what is to be measured is searching them. Everything that a
search reads is there (rows, words, tags, vectors, totals, feed); only the texts repeat, each with a number of its own.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import apsw

from bench.cached import say
from scrubjay.embedders.base import Embedder
from scrubjay.stores.sqlite import file as sqlite_file
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.stores.sqlite.vectors import to_blob
from scrubjay.stores.sqlite.words import add_passages

BATCH = 5_000  # memories per transaction
MINUTE = 60_000  # milliseconds between two memories
OTHER = {  # what a copy does not take over
    "seq": "seq + :by",
    "id": "'mem_' || printf('%032d', seq + :by)",
    "path": "path || '-' || (seq + :by)",
    "content": "content || ' (' || (seq + :by) || ')'",
    "content_length": "length(content || ' (' || (seq + :by) || ')')",
    "content_hash": "NULL",
    "fingerprint": "randomblob(32)",
    "created_at": f"created_at + {MINUTE} * :by",
    "change": ":change",
}


def grow(path: Path, count: int, embedder: Embedder) -> None:
    """Add copies of a store's memories until there are so many, then make its index."""
    with closing(sqlite_file.connect(path)) as con:
        con.pragma("synchronous", "OFF")
        con.pragma("cache_size", -400 * 1024)
        [(there,)] = con.execute("SELECT count(*) FROM memories")
        for by in range(there, count, there):
            for first in range(1, min(there, count - by) + 1, BATCH):
                with con:
                    copy(con, embedder, by, first, min(first + BATCH - 1, there, count - by))
                say(f"{by + first + BATCH - 1:,} of {count:,} copied")
        con.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    with closing(SqliteStore(path)) as store:
        while store.tend():
            pass


def copy(con: apsw.Connection, embedder: Embedder, by: int, first: int, last: int) -> None:
    """The memories from `first` to `last` once more, their numbers raised by `by`."""
    [(change,)] = con.execute("UPDATE counters SET change = change + 1 RETURNING change")
    values = {"by": by, "first": first, "last": last, "change": change}
    columns = [name for (name,) in con.execute("SELECT name FROM pragma_table_info('memories')")]
    con.execute(
        f"""
        INSERT INTO memories ({", ".join(columns)})
        SELECT {", ".join(OTHER.get(name, name) for name in columns)}
        FROM memories
        WHERE seq BETWEEN :first AND :last
        """,
        values,
    )
    con.execute(
        """
        INSERT INTO words (rowid, text, scope)
        SELECT rowid + 256 * :by, text || ' ' || (rowid / 256 + :by), scope
        FROM words
        WHERE rowid BETWEEN 256 * :first AND 256 * :last + 255
        """,
        values,
    )
    add_passages(con, first + by, last + by)
    con.execute("INSERT INTO tags SELECT memory + :by, tag FROM tags WHERE memory BETWEEN :first AND :last", values)
    con.execute(
        """
        INSERT INTO events
            (space, number, at, action, memory, fields, user_id, client, caller, transport, dialect, reason)
        SELECT spaces.name, seq, memories.created_at, 'stored', id, '[]', 'local', client, caller, transport, dialect,
            NULL
        FROM memories
        JOIN spaces ON spaces.number = memories.space
        WHERE seq BETWEEN :by + :first AND :by + :last
        """,
        values,
    )
    con.execute("UPDATE spaces SET events = ?", (by + last,))
    texts = con.execute("SELECT seq, content FROM memories WHERE seq BETWEEN :by + :first AND :by + :last", values)
    con.executemany(
        "INSERT INTO vectors (memory, part, model, vector) VALUES (?, 0, '', ?)",
        [(seq, to_blob(embedder.embed_query(text))) for seq, text in texts.fetchall()],
    )
