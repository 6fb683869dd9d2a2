"""Vectors in half the bytes: what is lost, that it is lost only once, and files in which an earlier version wrote them
whole."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest

from scrubjay.embedders.base import Vector
from scrubjay.errors import EmbeddingError
from scrubjay.stores.promises.statistics import Part
from scrubjay.stores.sqlite.filters import sizes_of
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.stores.sqlite.vectors import vec1
from scrubjay.stores.sqlite.vectors.blobs import as_floats, from_blob, matrix, shortened, to_blob
from scrubjay.stores.sqlite.vectors.large import Vec1Index
from scrubjay.values.memory import Filter, Memory, State
from tests.conftest import sqlite_store
from tests.stores.contract.samples import CLOSE, DIMENSION, EVERYTHING, NOW, ids, put, put_in, some, unit
from tests.stores.contract.second_vectors import SECOND
from tests.stores.test_vec1 import expected_rows, indexed, known, model, rows, states

# --- the form --------------------------------------------------------------------------------------------------------


def random_vectors(dimension: int, count: int) -> Vector:
    chance = np.random.default_rng(dimension)
    size = np.float32(10) ** chance.integers(-30, 14, (count, 1)).astype(np.float32)
    return size * chance.standard_normal((count, dimension)).astype(np.float32)


@pytest.mark.parametrize("dimension", [1, 16, 384, 1_024])
def test_what_was_read_is_written_as_the_same_bytes(dimension: int) -> None:
    """So nothing is lost a second time, however often a vector goes from one store to another."""
    for vector in random_vectors(dimension, 3_000):
        blob = to_blob(vector)

        assert to_blob(from_blob(blob)) == blob
        assert len(blob) == 2 * dimension + 5


def test_a_scale_that_rounding_would_move_is_not_moved_a_second_time() -> None:
    """The largest number divided by 32767 and multiplied by it again is another number for these."""
    for fraction in range(2**23 + 2**14, 2**24, 2**15):
        largest = np.float32(fraction * 2.0**-24) * np.float32(32_767)
        vector = np.array([largest, -largest / 3], np.float32)

        assert to_blob(from_blob(to_blob(vector))) == to_blob(vector)


def test_each_number_is_off_by_half_a_step_at_most() -> None:
    for vector in random_vectors(384, 200):
        step = np.abs(vector).max() / 32_767

        assert np.abs(from_blob(to_blob(vector)) - vector).max() <= 0.503 * step  # and what float32 rounds away


def test_the_cosine_of_two_texts_is_kept_to_a_hundred_thousandth() -> None:
    vectors = np.random.default_rng(1).standard_normal((400, 384)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    kept = matrix([to_blob(vector) for vector in vectors], 384)

    assert np.abs(kept @ vectors.T - vectors @ vectors.T).max() < 1e-5


@pytest.mark.parametrize("numbers", [[0.0] * 5, [-0.0, 0.0], [1e-40, -1e-44], []])
def test_nothing_stays_nothing(numbers: list[float]) -> None:
    assert from_blob(to_blob(np.array(numbers, np.float32))).tolist() == [0.0] * len(numbers)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, 1e15])
def test_what_is_not_a_number_is_refused(number: float) -> None:
    with pytest.raises(EmbeddingError):
        to_blob(np.array([0.5, number], np.float32))


def test_the_two_forms_are_told_by_their_lengths_whatever_the_dimension() -> None:
    short, whole = zip(*(sizes_of(dimension) for dimension in range(1, 5_000)), strict=True)

    assert not set(short) & set(whole)


def test_vectors_of_both_forms_are_read_together() -> None:
    vectors = [unit(number) for number in range(6)]
    blobs = [to_blob(one) if place % 2 else one.tobytes() for place, one in enumerate(vectors)]

    np.testing.assert_allclose(matrix(blobs, DIMENSION), vectors, atol=CLOSE)


def test_an_unusable_vector_is_like_nothing_in_either_form() -> None:
    for number in (np.nan, np.inf, 3e38):
        whole = np.full(DIMENSION, number, np.float32).tobytes()

        assert matrix([whole], DIMENSION).tolist() == matrix([shortened(whole)], DIMENSION).tolist() == [[0.0] * 16]


# --- a file of an earlier version ------------------------------------------------------------------------------------

MEMORIES = 700


def as_before(path: Path, *, with_index: bool = False) -> list[Memory]:
    """A file as the version before left it: every vector whole, also of a second model; with an index of them."""
    sqlite_store(path).close()
    with closing(indexed(path) if with_index else SqliteStore(path)) as store:
        with store.writing() as tx:
            written = [put_in(tx, some(f"text {n}", id=f"mem_{n}"), [unit(n)]) for n in range(MEMORIES)]
            for n, memory in enumerate(written[:300]):
                tx.add_vectors(memory.id, version=1, first_part=0, vectors=[unit(n + 9)], parts=1, model=SECOND)
        with store._changing() as tx:
            for table, first in (("vectors", 0), ("second_vectors", 9)):
                for (seq,) in tx._con.execute(f"SELECT memory FROM {table}").fetchall():
                    blob = unit(seq - 1 + first).tobytes()
                    tx._con.execute(f"DELETE FROM {table} WHERE memory = ?", (seq,))
                    columns, values = (", model", f", '{SECOND}'") if first else ("", "")
                    insert = f"INSERT INTO {table} (memory, part, vector{columns}) VALUES (?, 0, ?{values})"
                    tx._con.execute(insert, (seq, blob))
            vec1.mirror_rewritten(tx._con, [memory.seq for memory in written])
    return written


def whole(store: SqliteStore) -> int:
    with store._reading() as con:
        both = "SELECT length(vector) FROM vectors UNION ALL SELECT length(vector) FROM second_vectors"
        return [size for (size,) in con.execute(both)].count(4 * DIMENSION)


def found(store: SqliteStore, number: int, **more: Any) -> list[str]:
    return ids(store.nearest(unit(number), Filter(), EVERYTHING, now=NOW, limit=3, **more))


@pytest.fixture(params=[False, True], ids=["compared exactly", "with an index"])
def before(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqliteStore]:
    as_before(tmp_path / "memories.db", with_index=request.param)
    index = Vec1Index(few=0) if request.param else None
    with closing(SqliteStore(tmp_path / "memories.db", index=index, index_from=2**40)) as store:
        yield store


def test_a_file_of_an_earlier_version_is_read_as_it_is(before: SqliteStore) -> None:
    assert whole(before) == MEMORIES + 300
    assert found(before, 77)[0] == "mem_77"
    assert found(before, 77, model=SECOND)[0] == "mem_68"
    np.testing.assert_array_equal(before.vectors(["mem_5"])["mem_5"], unit(5))
    assert before.check(deep=True).problems == ()


def test_new_and_changed_memories_are_written_short_and_found_with_the_others(before: SqliteStore) -> None:
    put(before, some("new", id="mem_new"), [unit(9_000)])
    with before.writing() as tx:
        old = next(iter(tx.get(["mem_5"], EVERYTHING)))
    put(before, replace(old, content="other", version=2), [unit(9_001)])

    assert whole(before) == MEMORIES + 300 - 2  # the vector of a second model went with the text
    assert found(before, 9_000)[0] == "mem_new"
    assert found(before, 9_001)[0] == "mem_5"
    assert found(before, 78)[0] == "mem_78"


def test_all_of_it_is_rewritten_a_piece_at_a_time(before: SqliteStore) -> None:
    expected = {number: found(before, number) for number in range(0, MEMORIES, 50)}
    left = [whole(before)]
    with_index = bool(known(before))
    while before.tend():
        left.append(whole(before))
        assert {number: found(before, number) for number in expected} == expected
        if with_index:
            assert rows(before) == expected_rows(before)

    assert left[-1] == 0
    assert sorted(left, reverse=True) == left
    assert len(set(left)) > 4
    assert not before.needs_tending()
    assert states(before) == (["ready"] if with_index else [])
    assert before.check(deep=True).problems == ()
    assert before.check().with_vectors == MEMORIES
    total = before.statistics.totals(Part(), EVERYTHING, now=NOW).vector_bytes[State.ACTIVE]
    assert total == MEMORIES * sizes_of(DIMENSION)[0]
    assert found(before, 77, model=SECOND)[0] == "mem_68"


def test_rewriting_is_no_change_of_a_memory(before: SqliteStore) -> None:
    """No process reads anything again, and nothing is told to those who follow the changes."""
    with before._reading() as con:
        change = con.execute("SELECT change, clock FROM counters").fetchone()
    while before.tend():
        pass

    with before._reading() as con:
        assert con.execute("SELECT change, clock FROM counters").fetchone() == change


@pytest.mark.parametrize("act", ["replaced", "erased"])
def test_an_index_lets_go_of_whole_and_of_rewritten_vectors(tmp_path: Path, act: str) -> None:
    """A code is found by the very vector that it was made of."""
    written = as_before(tmp_path / "memories.db", with_index=True)
    with closing(SqliteStore(tmp_path / "memories.db", index=Vec1Index(few=0), index_from=2**40)) as store:
        assert store.tend()
        for memory in written[::7]:
            if act == "replaced":
                newer = replace(memory, content=f"other {memory.seq}", version=2)
                put(store, newer, [unit(memory.seq + 5_000)])
            else:
                with store.writing() as tx:
                    tx.purge(memory.id, at=NOW)
        assert states(store) == ["ready"]
        assert rows(store) == expected_rows(store)
        while store.tend():
            pass
        assert states(store) == ["ready"]
        assert rows(store) == expected_rows(store)


def test_an_unusable_vector_is_still_reported_when_it_was_rewritten(before: SqliteStore) -> None:
    with before._changing() as tx:
        poisoned = np.full(DIMENSION, np.nan, np.float32).tobytes()
        tx._con.execute("UPDATE vectors SET vector = ? WHERE memory = 7", (poisoned,))
        tx._con.execute("UPDATE vectors SET vector = ? WHERE memory = 8", (b"??",))
    assert before.check().unusable_vectors == 2
    while before.tend():
        pass

    assert before.check().unusable_vectors == 2
    assert whole(before) == 0


def test_the_file_shrinks(tmp_path: Path) -> None:
    path, wide = tmp_path / "memories.db", 384
    sqlite_store(path).close()
    with closing(SqliteStore(path)) as store:
        chance = np.random.default_rng(3)
        with store.writing() as tx:
            for n in range(1_500):
                put_in(tx, some(f"text {n}"), [chance.standard_normal(wide).astype(np.float32)])
        with store._changing() as tx:
            tx._con.execute("CREATE TABLE kept AS SELECT memory, part, vector FROM vectors")
            tx._con.execute("DELETE FROM vectors")
            tx._con.create_scalar_function("as_floats", as_floats)
            tx._con.execute(
                "INSERT INTO vectors (memory, part, vector) SELECT memory, part, as_floats(vector) FROM kept"
            )
            tx._con.execute("DROP TABLE kept")
        with store._reading() as con:
            pages, vectors = con.pragma("page_count") - con.pragma("freelist_count"), pages_of(con)
        while store.tend():
            pass

        with store._reading() as con:
            assert pages_of(con) < 0.45 * vectors
            assert con.pragma("page_count") < pages - 0.5 * vectors


def pages_of(con: apsw.Connection) -> int:
    return int(con.execute("SELECT count(*) FROM dbstat WHERE name = 'vectors'").get or 0)


# --- others have it open ---------------------------------------------------------------------------------------------


def test_a_program_of_the_version_before_passes_over_what_it_cannot_read(before: SqliteStore) -> None:
    """It asks for vectors of the length that it knows, and never takes the bytes of a short one for numbers."""
    put(before, some(), [unit(9_000)])
    with before._reading() as con:
        blob = con.execute("SELECT vector FROM vectors ORDER BY id DESC LIMIT 1").get
    assert len(blob) != 4 * DIMENSION
    with pytest.raises(ValueError, match="multiple of element size"):
        np.frombuffer(blob, "<f4")


def test_its_index_refuses_a_short_vector_and_is_retired() -> None:
    """A program of the version before gives vec1 what `vectors` or `former_vectors` holds."""
    with closing(apsw.Connection("")) as con:
        assert vec1.able(con)
        con.execute(f"CREATE VIRTUAL TABLE near_1 USING vec1 (vector, {', '.join(vec1.COLUMNS)})")
        con.execute("INSERT INTO near_1 (cmd, arg) VALUES ('rebuild', ?)", (model(),))
        con.execute("INSERT INTO near_1 (rowid, vector) VALUES (4096, ?)", (unit(1).tobytes(),))
        con.execute("UPDATE near_1_base SET vector = ? WHERE id = 4096", (to_blob(unit(1)),))
        with pytest.raises(vec1.BROKEN):
            con.execute("DELETE FROM near_1 WHERE rowid = 4096")


TENDING = """
import sys
from contextlib import closing
from pathlib import Path
from scrubjay.stores.sqlite.store import SqliteStore
with closing(SqliteStore(Path(sys.argv[1]), index_from=2**40)) as store:
    while store.tend():
        print("a step", flush=True)
"""


@pytest.mark.parametrize("with_index", [False, True])
@pytest.mark.parametrize("steps", [1, 2, 3])
def test_killed_while_vectors_are_rewritten_nothing_is_lost(tmp_path: Path, steps: int, with_index: bool) -> None:
    path = tmp_path / "memories.db"
    as_before(path, with_index=with_index)
    with closing(SqliteStore(path, index=Vec1Index(few=0), index_from=2**40)) as store:
        child = subprocess.Popen([sys.executable, "-c", TENDING, str(path)], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        for number in range(steps):  # this process reads and writes meanwhile
            child.stdout.readline()
            assert found(store, 50 + number)[0] == f"mem_{50 + number}"
            put(store, some(f"meanwhile {number}", id=f"mem_meanwhile{number}"), [unit(9_000 + number)])
        child.kill()
        child.wait()
        child.stdout.close()

    with closing(SqliteStore(path, index=Vec1Index(few=0), index_from=2**40)) as store:
        while store.tend():
            pass
        assert whole(store) == 0
        for number in range(0, MEMORIES, 70):
            assert found(store, number)[0] == f"mem_{number}"
        for number in range(steps):
            assert found(store, 9_000 + number)[0] == f"mem_meanwhile{number}"
        checkup = store.check(deep=True)
        assert (checkup.problems, checkup.with_vectors) == ((), MEMORIES + steps)
        if with_index:
            assert rows(store) == expected_rows(store)
