"""How values cross the wire where psycopg and PostgreSQL do not agree by themselves.

text      PostgreSQL cannot keep U+0000. On the way in it becomes a non-character and a digit, as does the
          non-character itself; on the way out both become what they were. No other text is touched.
texts     several as one array, all in one go: psycopg looks at each of them twice, which takes longer than the
          server's work.
numbers   the same for whole numbers.
vectors   go out in pgvector's binary form: their length, two zero bytes, float32 in network order.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.adapt import Buffer, Dumper
from psycopg.pq import Format
from psycopg.types import TypeInfo
from psycopg.types.string import StrBinaryDumper, StrDumperUnknown, TextBinaryLoader, TextLoader

from scrubjay.lazy import numpy as np

if TYPE_CHECKING:
    from scrubjay.embedders.base import Vector

ESCAPE = "\ufdd0"  # a non-character: no text means anything by it
NUL, ESCAPE_ITSELF = ESCAPE + "0", ESCAPE + "1"

_ESCAPE_BYTES = ESCAPE.encode()
_LENGTH = struct.Struct(">i").pack
TEXTS, BIGINTS = 1009, 1016  # numbers of these types, the same in every database


def text_to_keep(text: str) -> str:
    """The text as PostgreSQL keeps it."""
    if "\0" in text or ESCAPE in text:
        return text.replace(ESCAPE, ESCAPE_ITSELF).replace("\0", NUL)
    return text


def text_as_given(text: str) -> str:
    """The text as it was handed in."""
    return text.replace(NUL, "\0").replace(ESCAPE_ITSELF, ESCAPE)


class TextDumper(StrDumperUnknown):
    def dump(self, obj: str) -> Buffer | None:
        return text_to_keep(obj).encode()


class BinaryTextDumper(StrBinaryDumper):
    def dump(self, obj: str) -> Buffer | None:
        return text_to_keep(obj).encode()


class PlainTextLoader(TextLoader):
    def load(self, data: Buffer) -> str:
        text = bytes(data)
        return text_as_given(text.decode()) if _ESCAPE_BYTES in text else text.decode()


class BinaryTextLoader(TextBinaryLoader):
    def load(self, data: Buffer) -> str:
        text = bytes(data)
        return text_as_given(text.decode()) if _ESCAPE_BYTES in text else text.decode()


def fetch_rows(
    con: psycopg.Connection[Any], statement: str, values: Sequence[object], *, binary: bool = False
) -> list[tuple[Any, ...]]:
    """All rows of a statement that gives hundreds of texts: psycopg reads them without asking us about each, in a tenth
    of the time, and we look at all of them at once."""
    cursor = con.cursor()
    cursor.adapters.register_loader("text", TextLoader)
    cursor.adapters.register_loader("text", TextBinaryLoader)
    rows = cursor.execute(statement, values, binary=binary).fetchall()
    texts = [value for row in rows for value in row if type(value) is str]
    return [tuple(map(_as_given, row)) for row in rows] if ESCAPE in "".join(texts) else rows


def _as_given(value: Any) -> Any:
    return text_as_given(value) if isinstance(value, str) else value


class Texts(tuple[str, ...]):
    """Several texts, as one array."""

    __slots__ = ()


class TextsDumper(Dumper):
    oid = TEXTS

    def dump(self, obj: Texts) -> Buffer | None:
        texts: Sequence[str] = obj
        if _QUOTED("".join(texts)):  # asked once for all of them
            texts = [text_to_keep(each).translate(_IN_QUOTES) for each in texts]
        literal = '","'.join(texts)
        return f'{{"{literal}"}}'.encode() if texts else b"{}"


_QUOTED = re.compile(r'["\\\0\ufdd0]').search  # what an array's literal or `kept` means something by
_IN_QUOTES = str.maketrans({"\\": r"\\", '"': r"\""})
_MEANT = "\\\t\n\r\0\ufdd0"  # something, by COPY or by `kept`
_ESCAPED = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"})


def copied_lines(rows: Iterable[Sequence[object]]) -> bytes:
    """Rows as lines for COPY. What psycopg asks about each value is asked about a column at once, where its values are
    alike, which takes a tenth of the time."""
    columns = [_copied_column(column) for column in zip(*rows, strict=True)]
    return "".join([f"{line}\n" for line in map("\t".join, zip(*columns, strict=True))]).encode()


def _copied_column(values: Sequence[Any]) -> Iterable[str]:
    kinds = {*map(type, values)}
    if all(issubclass(kind, str) for kind in kinds):
        together = "".join(values)
        return map(_copy_value, values) if any(sign in together for sign in _MEANT) else values
    if kinds == {int}:
        return map(int.__repr__, values)
    return map(_copy_value, values)


def copy_in(
    con: psycopg.Connection[Any], table: str, columns: Iterable[str], data: bytes, *, binary: bool = False
) -> None:
    how = " (FORMAT BINARY)" if binary else ""
    with con.cursor().copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN{how}") as copying:
        copying.write(data)


# COPY in binary form begins and ends so (https://www.postgresql.org/docs/current/sql-copy.html).
_BINARY_HEAD, _BINARY_END = b"PGCOPY\n\xff\r\n\0" + bytes(8), b"\xff\xff"


def copied_vectors(rows: Iterable[Sequence[Any]]) -> bytes:
    """Vectors as COPY takes them in binary form: each with space, memory, part, model, itself."""
    pieces = [_BINARY_HEAD]
    for space, memory, part, model, vector in rows:
        name, of = text_to_keep(space).encode(), text_to_keep(model).encode()
        pieces += (
            _NAME(5, len(name)),
            name,
            _PLACE(8, memory, 2, part),
            _LENGTH(len(of)),
            of,
            _LENGTH(len(vector)),
            vector,
        )
    return b"".join((*pieces, _BINARY_END))


_NAME, _PLACE = struct.Struct(">hi").pack, struct.Struct(">iqih").pack


def _copy_value(value: object) -> str:
    if value is None:
        return r"\N"
    if type(value) is bytes:
        return rf"\\x{value.hex()}"
    if isinstance(value, str):
        return text_to_keep(value).translate(_ESCAPED)
    return str(value)


class Numbers(tuple[int, ...]):
    """Several whole numbers, as one array."""

    __slots__ = ()


class NumbersDumper(Dumper):
    oid = BIGINTS

    def dump(self, obj: Numbers) -> Buffer | None:
        return f"{{{','.join(map(int.__repr__, obj))}}}".encode()


class VectorBytes(bytes):
    """A vector in pgvector's binary form."""


class VectorDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: VectorBytes) -> Buffer | None:
        return obj


class Vectors(tuple[VectorBytes, ...]):
    """Several of them, as one array."""

    @property
    def size(self) -> int:
        """Bytes that their numbers take."""
        return sum(len(each) - 4 for each in self)


class VectorsDumper(Dumper):
    format = Format.BINARY
    element = 0  # the type's number in this database

    def dump(self, obj: Vectors) -> Buffer | None:
        return _array(self.element, obj)


def _array(element: int, values: Sequence[bytes]) -> bytes:
    """An array of one dimension in binary form."""
    head = struct.pack(">iiI", bool(values), 0, element)
    if not values:
        return head
    return b"".join((head, struct.pack(">ii", len(values), 1), *(_LENGTH(len(each)) + each for each in values)))


def vector_bytes(vector: Vector) -> VectorBytes:
    """:raises EmbeddingError: if the vector is not made of numbers"""
    return next(rows_of_bytes(vector[None]))


def rows_of_bytes(vectors: Vector) -> Iterator[VectorBytes]:
    """Each row of an array.

    :raises EmbeddingError: if they are not made of numbers
    """
    from scrubjay.stores.sqlite.vectors import check

    check(vectors)
    head, size, data = struct.pack(">HH", vectors.shape[1], 0), 4 * vectors.shape[1], vectors.astype(">f4").tobytes()
    return (VectorBytes(head + data[at : at + size]) for at in range(0, len(data), size))


def all_vectors(vectors: Iterable[Vector]) -> Vectors:
    return Vectors(map(vector_bytes, vectors))


def vector_of(data: bytes) -> Vector:
    """From what `vector_send` gives."""
    return np.frombuffer(data, dtype=">f4", offset=4).astype(np.float32)


def register(con: psycopg.Connection[Any], vector: TypeInfo | None) -> None:
    """Teach a connection both."""
    adapters = con.adapters
    adapters.register_dumper(str, BinaryTextDumper)
    adapters.register_dumper(str, TextDumper)  # the last one is the default
    adapters.register_dumper(Texts, TextsDumper)
    adapters.register_dumper(Numbers, NumbersDumper)
    adapters.register_loader("text", PlainTextLoader)
    adapters.register_loader("text", BinaryTextLoader)
    if vector is not None:
        vector.register(con)
        one = type("OneVectorDumper", (VectorDumper,), {"oid": vector.oid})
        several = type("ManyVectorsDumper", (VectorsDumper,), {"oid": vector.array_oid, "element": vector.oid})
        adapters.register_dumper(VectorBytes, one)
        adapters.register_dumper(Vectors, several)
