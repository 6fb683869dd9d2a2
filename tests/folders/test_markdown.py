from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from time import thread_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrubjay.errors import FileDamaged
from scrubjay.folders.markdown import Document, heading_in, links_in, parse_file, render_file, tags_in

pytestmark = pytest.mark.process

AT = datetime(2026, 11, 15, 10, tzinfo=UTC)
writable = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"))


@given(content=writable, tags=st.lists(writable, max_size=5), source=writable.filter(str.strip))
def test_what_is_written_is_read_back(content, tags, source):
    document = Document(
        content=content, created_at=AT, updated_at=AT, tags=tuple(tags), source=source, id="mem_a", type="memory"
    )

    assert parse_file(render_file(document)) == document


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

    assert render_file(document).decode() == (
        "---\ncreated_at: 2026-11-15T10:00:00.000Z\nupdated_at: 2026-11-15T10:00:00.000Z\n"
        'tags: ["a"]\nsource: mcp\nexpires_at: 2026-11-15T10:00:00.000Z\nid: mem_x\ntype: memory\n---\n\nText\n'
    )


def test_line_ends_of_windows_and_a_byte_order_mark_are_read():
    document = parse_file(b"\xef\xbb\xbf---\r\ntags: [a]\r\n---\r\n\r\nOne\r\nTwo\r\n")

    assert (document.content, document.tags) == ("One\nTwo", ("a",))


@pytest.mark.parametrize(
    ("written", "hour"),
    [("2026-11-15T10:00:00Z", 10), ("2026-11-15 10:00:00", 10), ("2026-11-15", 0), ('"2026-11-15T12:00:00+02:00"', 10)],
)
def test_times_are_read_however_yaml_takes_them(written, hour):
    assert parse_file(f"---\ncreated_at: {written}\n---\nx".encode()).created_at == AT.replace(hour=hour)


@pytest.mark.parametrize("tags", ["[no, 3.10, 012, 12:30, True, 1e3]", "\n- no\n- 3.10\n- 012\n- 12:30\n- True\n- 1e3"])
def test_tags_are_the_words_that_stand_there(tags):
    document = parse_file(f"---\ntags: {tags}\ntopic: 3.10\n---\nx".encode())

    assert document.tags == ("no", "3.10", "012", "12:30", "True", "1e3")
    assert document.topic == "3.10"


def test_front_matter_in_one_line_is_read():
    document = parse_file(b"---\n{tags: [a], other: 1}\n---\nText")

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
    plain = render_file(Document(content="x", tags=("a",)))

    assert cost(data) < 1000 * max(cost(plain), 1e-4)


def cost(data: bytes) -> float:
    """Processor time of this thread; the best of a few, since another process may have the caches."""
    costs = []
    for _ in range(5):
        begun = thread_time()
        with suppress(FileDamaged):
            parse_file(data)
        costs.append(thread_time() - begun)
    return min(costs)


HOSTILE_TEXTS = [
    "# " + "# " * 20_000 + "x",
    "#" + " \t" * 20_000 + "x",
    "[[" + "a" * 40_000,
    "[[a" + "|" * 40_000,
    "[[a|" * 10_000,
    " #" + "1" * 40_000,
    " #1" * 13_000,
    "`a\n" * 13_000,
    "```\n" * 10_000,
    "```a\n~~~" * 5_000,
    "`" * 40_000,
]


@pytest.mark.parametrize("text", HOSTILE_TEXTS, ids=range(len(HOSTILE_TEXTS)))
def test_hostile_text_is_read_in_time_that_grows_with_its_length(text):
    def seconds(length):
        begun = thread_time()
        for _ in range(3):
            heading_in(text[:length]), tags_in(text[:length]), links_in(text[:length])
        return thread_time() - begun

    assert seconds(len(text)) < 8 * seconds(len(text) // 4) + 0.05


BREAKS = ["---\nA break, then text\n\nmore\n", "---\n\nText\n\n---\n\nmore\n", "---\n", "---\nA title\n---\nx"]
BROKEN = ["tags: [a", "- a\n---\n", "a: b\n", "# only a comment\n", "[a, b]\n---\n", "{a: b\n---\n"]


@pytest.mark.parametrize("text", BREAKS)
def test_dashes_before_a_text_are_a_line_and_no_front_matter(text):
    document = parse_file(text.encode())

    assert document.plain
    assert document.content == text.removesuffix("\n")


@pytest.mark.parametrize("head", BROKEN)
def test_what_begins_like_front_matter_and_is_none_is_damaged(head):
    with pytest.raises(FileDamaged):
        parse_file(f"---\n{head}".encode())
