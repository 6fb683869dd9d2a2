"""The page's files and the replies it reads travel compressed, to whoever takes them so."""

from __future__ import annotations

import gzip
import re

import pytest

from scrubjay.dialects.table import DIALECTS, ONLY_REST, find
from scrubjay.servers.http.app import build_app
from scrubjay.servers.http.page import accepts
from tests.servers.sites import client_of

TABLES = [find(name) for name in (*DIALECTS, *ONLY_REST)]


@pytest.fixture
def http(jay):
    with client_of(build_app(jay, TABLES[: len(DIALECTS)], only_rest=TABLES[len(DIALECTS) :])) as http:
        yield http


def got(http, path, coding):
    """The reply, and the bytes of its body as they travelled."""
    with http.stream("GET", path, headers={"accept-encoding": coding}) as reply:
        return reply, b"".join(reply.iter_raw())


@pytest.mark.parametrize("coding", ["br", "gzip"])
def test_the_pages_files_travel_compressed_and_are_kept(http, coding):
    index = http.get("/", headers={"accept-encoding": "identity"})
    names = re.findall(r'"\./(assets/[^"]+\.(?:js|css))"', index.text)
    assert names
    sizes = []
    for path in ("/", *(f"/{name}" for name in names)):
        plain, whole = got(http, path, "identity")
        packed, fewer = got(http, path, coding)

        assert "content-encoding" not in plain.headers
        assert packed.headers["content-encoding"] == coding
        assert packed.headers["content-type"] == plain.headers["content-type"]
        assert packed.headers["vary"] == "accept-encoding"
        assert ("no-cache" if path == "/" else "immutable") in packed.headers["cache-control"]
        sizes.append((len(fewer), len(whole)))
        if coding == "gzip":
            assert gzip.decompress(fewer) == whole
    assert all(fewer < whole for fewer, whole in sizes)
    assert sum(fewer for fewer, _ in sizes) < 0.4 * sum(whole for _, whole in sizes)


def test_the_page_itself_is_never_taken_for_its_last_edition(http):
    """Installed files may all have one time, and a new edition the length of the old one."""
    assert {"etag", "last-modified"}.isdisjoint(http.get("/").headers)


def test_replies_over_a_kilobyte_travel_compressed(http, jay):
    jay.store("tide " * 400)
    packed, fewer = got(http, "/api/v1/memories", "gzip")
    small, _ = got(http, "/session", "gzip")

    assert packed.headers["content-encoding"] == "gzip"
    assert len(fewer) < 1_000
    assert "content-encoding" not in small.headers


@pytest.mark.parametrize(
    ("header", "taken"),
    [
        ("gzip, deflate, br", True),
        ("br;q=0.5", True),
        ("br", True),
        ("gzip, br;q=0", False),
        ("br; q=0.0, gzip", False),
        ("brotli", False),
        ("identity", False),
        ("", False),
    ],
)
def test_a_coding_is_used_only_if_the_client_takes_it(header, taken):
    assert accepts(header, "br") is taken
