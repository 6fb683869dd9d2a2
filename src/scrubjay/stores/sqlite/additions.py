"""Many new memories at once, and what of a new one is written beside its row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import apsw

from scrubjay.errors import Conflict
from scrubjay.stores.promises.memories import Addition
from scrubjay.stores.sqlite.sql import PENDING, TAGS, WORDS, insert, row_of, tags_of
from scrubjay.stores.sqlite.words import add_passages, words_of
from scrubjay.stores.tables.rows import as_json, first_columns

if TYPE_CHECKING:
    from scrubjay.stores.sqlite.transaction import SqliteTransaction


def put_new(tx: SqliteTransaction, new: Sequence[Addition]) -> None:
    if not new:
        return
    _check_free(tx, [one.memory.id for one in new])
    [(last,)] = tx._con.execute("SELECT coalesce(max(seq), 0) FROM memories")
    spaces = {name: tx._known_space(name) for name in {one.memory.space for one in new}}
    number = cache(tx._number)
    change = tx._changed()
    rows, words, tags, vectors, pending = [], [], [], [], []
    for seq, one in enumerate(new, last + 1):
        memory, space = tx._without_asides(one.memory), spaces[one.memory.space]
        user, conversation = number(memory.context.user_id), memory.context.conversation_id
        talk = None if conversation is None else number(conversation)
        columns = row_of(memory, space=space, user=user, conversation=talk)
        columns |= first_columns(memory)
        columns |= {"change": change, "fingerprint": one.fingerprint, "parts": one.parts, "seq": seq}
        rows.append(columns)
        words += words_of(seq, memory, space)
        tags += tags_of(seq, memory)
        vectors += [(seq, part, vector) for part, vector in enumerate(one.vectors)]
        pending += [(seq, len(one.vectors))] if len(one.vectors) < one.parts else []
    tx._insert_new([one.memory for one in new], rows)
    tx._mark_repeats(*_find_repeated(tx, [one.fingerprint for one in new], before=last + 1))
    insert(tx._con, "words", WORDS, words)
    add_passages(tx._con, last + 1, last + len(new))
    insert(tx._con, "tags", TAGS, tags)
    tx._put_vectors(vectors)
    insert(tx._con, "pending", PENDING, pending)


def _check_free(tx: SqliteTransaction, ids: Sequence[str]) -> None:
    for (taken,) in tx._con.execute(
        # both by their ids
        """
        SELECT value
        FROM json_each(?)
        WHERE value IN (SELECT id FROM memories) OR value IN (SELECT alias FROM aliases)
        """,
        (as_json(ids),),
    ):
        raise Conflict(f"The id {taken!r} is taken.")


def _find_repeated(tx: SqliteTransaction, fingerprints: Sequence[bytes], *, before: int) -> set[bytes]:
    """The ones that come twice, or that a memory before this number has."""
    earlier = tx._con.execute(
        # memories_by_fingerprint
        """
        SELECT fingerprint
        FROM carray(?) AS wanted
        CROSS JOIN memories ON fingerprint = wanted.value
        WHERE seq < ?
        """,
        (apsw.carray(tuple(fingerprints)), before),
    )
    twice = {one for one, count in Counter(fingerprints).items() if count > 1}
    return twice | {bytes(one) for (one,) in earlier}
