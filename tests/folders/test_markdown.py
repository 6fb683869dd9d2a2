from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrubjay.errors import FileDamaged
from scrubjay.folders.markdown import Document, parsed, rendered

AT = datetime(2026, 11, 15, 10, tzinfo=UTC)
writable = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"))


@given(content=writable, tags=st.lists(writable, max_size=5), source=writable.filter(str.strip))
def test_what_is_written_is_read_back(content, tags, source):
    document = Document(
        content=content, created_at=AT, updated_at=AT, tags=tuple(tags), source=source, id="mem_a", type="memory"
    )

    assert parsed(rendered(document)) == document


def test_the_keys_come_in_cortexs_order():
    document = Document(
        content="Text",
        created_at=AT,
        updated_at=AT,
        expires_at=AT,
        tags=("a",),
        source="mcp",
        id="mem_x",
        type="memory",
    )

    assert rendered(document).decode() == (
        "---\ncreated_at: 2026-11-15T10:00:00.000Z\nupdated_at: 2026-11-15T10:00:00.000Z\n"
        'tags: ["a"]\nsource: mcp\nexpires_at: 2026-11-15T10:00:00.000Z\nid: mem_x\ntype: memory\n---\n\nText\n'
    )


def test_line_ends_of_windows_and_a_byte_order_mark_are_read():
    document = parsed(b"\xef\xbb\xbf---\r\ntags: [a]\r\n---\r\n\r\nOne\r\nTwo\r\n")

    assert (document.content, document.tags) == ("One\nTwo", ("a",))


@pytest.mark.parametrize(
    ("written", "hour"),
    [("2026-11-15T10:00:00Z", 10), ("2026-11-15 10:00:00", 10), ("2026-11-15", 0), ('"2026-11-15T12:00:00+02:00"', 10)],
)
def test_times_are_read_however_yaml_takes_them(written, hour):
    assert parsed(f"---\ncreated_at: {written}\n---\nx".encode()).created_at == AT.replace(hour=hour)


@pytest.mark.parametrize("tags", ["[no, 3.10, 012, 12:30, True, 1e3]", "\n- no\n- 3.10\n- 012\n- 12:30\n- True\n- 1e3"])
def test_tags_are_the_words_that_stand_there(tags):
    document = parsed(f"---\ntags: {tags}\ntopic: 3.10\n---\nx".encode())

    assert document.tags == ("no", "3.10", "012", "12:30", "True", "1e3")
    assert document.topic == "3.10"


def test_front_matter_in_one_line_is_read():
    document = parsed(b"---\n{tags: [a], other: 1}\n---\nText")

    assert document.tags == ("a",)
    assert document.others == "other: 1\n"


HOSTILE = [
    b"---\nx: " + b"[" * 50_000 + b"\n---\nx",
    b"---\n" + b"- " * 50_000 + b"\n---\nx",
    b"---\n" + b"a: &a [*a]\n" * 5_000 + b"---\nx",
    b"---\n" + b"? " * 50_000 + b"\n---\nx",
    b"---\n" + b"--- \n" * 20_000,
    b"---\n" + b"\n---" * 25_000,
    b"---\n" + b"'" * 100_000 + b"\n---\nx",
    b"---" * 33_000,
    b"---\nx: " + b"{a: " * 99 + b"\n---\nx",
    b"---\n" + b"".join(b" " * n + b"a:\n" for n in range(120)) + b"---\nx",
]


@pytest.mark.parametrize("data", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_front_matter_ends_quickly(data):
    """100 kB cost no more than a thousand times what a plain file costs."""
    plain = rendered(Document(content="x", tags=("a",)))
    begun = process_time()
    for _ in range(20):
        parsed(plain)
    usual = (process_time() - begun) / 20
    begun = process_time()
    with suppress(FileDamaged):
        parsed(data)

    assert process_time() - begun < 1000 * max(usual, 1e-4)
