"""A reply past the limit carries fewer items, and says so."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from scrubjay.servers.calls import bound_body


def size(body):
    return len(json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode())


def test_one_item_that_is_too_large_alone_stays_whole():
    body = {"memories": [{"content": "x" * 500}]}

    assert bound_body(body, max_bytes=100) == body


def test_of_two_items_that_are_too_large_the_better_stays():
    best, second = {"content": "a" * 500}, {"content": "b" * 500}

    assert bound_body({"memories": [best, second]}, max_bytes=100) == {"memories": [best], "left_out": 1}


def test_a_body_without_lists_is_left_alone():
    body = {"created": {"content": "x" * 500}}

    assert bound_body(body, max_bytes=100) == body


def test_the_heaviest_list_is_cut_and_not_the_one_with_most_items():
    body = {"tags": ["a"] * 100, "memories": ["x" * 300, "y" * 300]}

    assert bound_body(body, max_bytes=800) == {"tags": ["a"] * 100, "memories": ["x" * 300], "left_out": 1}


def test_a_list_further_down_is_found():
    body = {"data": {"results": ["x" * 300, "y" * 300], "total": 2}, "ok": True}

    assert bound_body(body, max_bytes=400) == {"data": {"results": ["x" * 300], "total": 2}, "ok": True, "left_out": 1}


def test_the_body_it_was_given_is_not_changed():
    body = {"data": {"results": ["x" * 300, "y" * 300]}}

    bound_body(body, max_bytes=400)

    assert len(body["data"]["results"]) == 2


def test_a_body_within_the_limit_is_the_same_body():
    body = {"memories": [{"content": "🦜"}]}

    assert bound_body(body, max_bytes=size(body)) is body


@given(st.lists(st.text(max_size=40)), st.integers(min_value=40, max_value=400))
def test_what_stays_are_the_first_items_and_as_many_as_fit(items, max_bytes):
    body = bound_body({"memories": items}, max_bytes=max_bytes)

    kept, left_out = body["memories"], body.get("left_out", 0)
    assert kept == items[: len(items) - left_out]
    assert size(body) <= max_bytes or len(kept) == 1
    if left_out:
        more = {"memories": items[: len(kept) + 1], "left_out": left_out}
        assert size(more) > max_bytes
