"""Many new memories at once: what is asked about each is asked about all of them, and their rows come through COPY."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from scrubjay.errors import Conflict, SpaceNotFound
from scrubjay.stores.postgres import signatures as postgres_signatures
from scrubjay.stores.postgres.filters import CARRIED, PUBLIC, SHARED
from scrubjay.stores.postgres.sql import row_of
from scrubjay.stores.postgres.stored import await_file
from scrubjay.stores.postgres.values import Texts, all_vectors, copied_lines, copied_vectors, copy_in
from scrubjay.stores.postgres.words import passages_of
from scrubjay.stores.promises.memories import Addition
from scrubjay.stores.tables.rows import first_columns
from scrubjay.values.memory import AT_HAND, Memory, State

if TYPE_CHECKING:
    from scrubjay.stores.postgres.transaction import PostgresTransaction

Row = tuple[Any, ...]


def put_new(tx: PostgresTransaction, new: Sequence[Addition]) -> None:
    """As `Transaction.put_new` promises it."""
    memories = [tx._without_asides(one.memory) for one in new]
    _check_free(tx, [memory.id for memory in memories])
    mirrored = _spaces(tx, {memory.space for memory in memories})
    rows = [row_of(memory) for memory in memories]
    _check_paths(tx, memories, rows)
    repeated = _find_repeated(tx, [one.fingerprint for one in new])
    numbers = tx._con.execute("SELECT nextval('arrivals') FROM generate_series(1, %s)", (len(new),))
    tags, words, vectors, pending = list[Row](), list[Row](), list[Row](), list[Row]()
    for one, memory, columns, (seq,) in zip(new, memories, rows, numbers, strict=True):
        space, placed = memory.space, all_vectors(one.vectors)
        columns.update(first_columns(memory))
        columns.update(seq=seq, fingerprint=one.fingerprint, parts=one.parts, vector_bytes=placed.size)
        if columns["state"] != State.PURGED:
            passages, carried = passages_of(memory), [columns[name] for name in CARRIED]
            tags += [(space, seq, tag) for tag in sorted({*memory.tags, *memory.auto_tags})]
            words += [(space, seq, each.place, each.length, each.terms(space), *carried) for each in passages]
            tx._count_words(space, passages)
        vectors += [(space, seq, part, "", vector) for part, vector in enumerate(placed)]
        pending += [(space, seq, len(placed))] if len(placed) < one.parts else []
    _copy(tx, "memories", rows[0], [tuple(columns.values()) for columns in rows])
    _copy(tx, "tags", ("space", "memory", "tag"), tags)
    _copy(tx, "words", ("space", "memory", "place", "length", "terms", *CARRIED), words)
    if vectors:
        copy_in(
            tx._con, "vectors", ("space", "memory", "part", "model", "vector"), copied_vectors(vectors), binary=True
        )
        postgres_signatures.sign_new(tx._con, {row[:2]: None for row in vectors})
    if pending:
        _copy(tx, "pending", ("space", "memory", "next_part"), pending)
    tx._mark_repeats(*repeated)
    tx.arrived += len(new)
    for columns in rows:
        if columns["space"] in mirrored:
            place = {name: columns[name] for name in ("space", "version", "state")}
            await_file(tx._con, columns["id"], **place, moved=False)


def _copy(tx: PostgresTransaction, table: str, columns: Iterable[str], rows: Sequence[Row]) -> None:
    copy_in(tx._con, table, columns, copied_lines(rows))


def _check_free(tx: PostgresTransaction, ids: Sequence[str]) -> None:
    taken = [key for key, count in Counter(ids).items() if count > 1]
    taken += [
        key
        for (key,) in tx._con.execute(
            # memories_by_id, aliases_by_alias
            """
            SELECT id FROM unnest(%s) AS these (id)
            WHERE EXISTS (SELECT FROM memories WHERE memories.id = these.id)
            OR EXISTS (SELECT FROM aliases WHERE alias = these.id)
            """,
            (Texts(ids),),
        )
    ]
    for key in taken:
        raise Conflict(f"The id {key!r} is taken.")


def _spaces(tx: PostgresTransaction, names: set[str]) -> set[str]:
    """Which of them are folders of files."""
    known = tx._con.execute("SELECT name, mirrored FROM spaces WHERE name = ANY(%s)", (Texts(names),)).fetchall()
    for name in names.difference(name for name, _ in known):
        raise SpaceNotFound(f"No space {name!r}.", hint="Create it first.")
    return {name for name, mirrored in known if mirrored}


def _check_paths(tx: PostgresTransaction, memories: Sequence[Memory], rows: Sequence[dict[str, Any]]) -> None:
    """A path is single in its space among what all see, and among what each user alone sees."""
    places = [
        (columns["space"], columns["path"], SHARED if columns["audience"] == PUBLIC else columns["audience"])
        for memory, columns in zip(memories, rows, strict=True)
        if memory.state in AT_HAND
    ]
    taken = [path for (_, path, _), count in Counter(places).items() if count > 1]
    taken += [
        path
        for (path,) in tx._con.execute(
            # memories_by_place, for each of them
            """
            SELECT these.path
            FROM unnest(%s, %s, %s) AS these (space, path, audience)
            CROSS JOIN LATERAL (
                SELECT
                FROM memories
                WHERE memories.space = these.space AND memories.path = these.path AND state IN (0, 1)
                AND CASE memories.audience WHEN 'public' THEN 'shared' ELSE memories.audience END = these.audience
                LIMIT 1
            ) AS taken
            """,
            [Texts(column) for column in zip(*places, strict=True)] or [Texts()] * 3,
        )
    ]
    for path in taken:
        raise Conflict(f"The path {path!r} is taken.", hint="Choose another path.", path=path)


def _find_repeated(tx: PostgresTransaction, fingerprints: Sequence[bytes]) -> list[bytes]:
    """The ones that several memories have, with those that are stored."""
    counts = Counter(fingerprints)
    known = tx._con.execute(
        # memories_by_fingerprint
        "SELECT DISTINCT fingerprint FROM memories WHERE fingerprint = ANY(%s)",
        (list(counts),),
    )
    return list({fingerprint for fingerprint, count in counts.items() if count > 1} | {bytes(one) for (one,) in known})
