"""What a proxy says of its client counts if a setting names it; so does an origin that is not ours."""

from __future__ import annotations

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from scrubjay.errors import InvalidInput
from scrubjay.servers.http.app import build_app
from scrubjay.servers.http.forwarded import Forwarded, networks
from scrubjay.servers.http.guard import origins_in
from scrubjay.servers.http.rate_limits import SIGN_INS_PER_MINUTE
from scrubjay.values.callers import CredentialKind
from tests.servers.sites import client_of
from tests.servers.small_dialect import small_dialect

pytestmark = pytest.mark.process

PASSWORD = "correct horse!"
PUBLIC = "https://memory.example"
TLS = {"x-forwarded-proto": "https", "x-forwarded-host": "memory.example", "x-forwarded-for": "198.51.100.7"}


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    request = Request(scope)
    seen = {"from": request.client.host, "scheme": request.url.scheme, "host": request.headers["host"]}
    await JSONResponse(seen)(scope, receive, send)


def seen(proxies: str, **headers: str):
    with client_of(Forwarded(echo, proxies=networks(proxies))) as http:
        found = http.get("/", headers={"host": "inner", **headers}).json()
    return found["from"], found["scheme"], found["host"]


# --- who is believed -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("proxies", ["", "10.0.0.0/8", "::1, 192.0.2.1"])
def test_headers_of_strangers_are_ignored(proxies):
    assert seen(proxies, **TLS) == ("127.0.0.1", "http", "inner")


@pytest.mark.parametrize("proxies", ["127.0.0.1", "10.0.0.0/8,127.0.0.0/8", "::1 127.0.0.1"])
def test_a_trusted_proxy_speaks_for_its_client(proxies):
    assert seen(proxies, **TLS) == ("198.51.100.7", "https", "memory.example")


@pytest.mark.parametrize(
    ("heard", "client"),
    [
        ("203.0.113.9, 198.51.100.7", "198.51.100.7"),  # the first was the client's own invention
        ("198.51.100.7, 127.0.0.1", "198.51.100.7"),  # through two proxies
        ("198.51.100.7:4711", "198.51.100.7"),
        ("[2001:db8::7]:4711", "2001:db8::7"),
        ("2001:db8::7", "2001:db8::7"),
        ("::ffff:198.51.100.7", "198.51.100.7"),
        ("198.51.100.7, nonsense", "127.0.0.1"),
        ("unknown", "127.0.0.1"),
        (",", "127.0.0.1"),
    ],
)
def test_the_client_is_the_nearest_address_that_is_not_a_proxys(heard, client):
    assert seen("127.0.0.1", **{"x-forwarded-for": heard})[0] == client


@pytest.mark.parametrize(
    ("heard", "scheme", "expected"),
    [
        ("198.51.100.7", "https, http", "http"),  # the client's own invention comes first
        ("198.51.100.7, 127.0.0.1", "https, http", "https"),  # two proxies, each with its own
        ("198.51.100.7, 127.0.0.1", "https", "https"),
        ("198.51.100.7", "gopher", "http"),
    ],
)
def test_the_scheme_is_what_the_outermost_proxy_saw(heard, scheme, expected):
    assert seen("127.0.0.1", **{"x-forwarded-for": heard, "x-forwarded-proto": scheme})[1] == expected


@pytest.mark.parametrize("text", ["proxy.example", "127.0.0.1/33", "*", "10.0.0.1/8"])
def test_a_setting_that_names_no_address_is_refused(text):
    with pytest.raises(InvalidInput, match="proxies"):
        networks(text)


# --- what follows from it --------------------------------------------------------------------------------------------


@pytest.fixture
def site(jay):
    jay.callers.create("alice", kind=CredentialKind.PASSWORD, password=PASSWORD)
    jay.callers.create("bob", kind=CredentialKind.PASSWORD, password=PASSWORD)
    opened = []

    def open_site(**options):
        opened.append(client_of(build_app(jay, [small_dialect()], allowed_hosts=["memory.example"], **options)))
        return opened[-1].__enter__()

    yield open_site
    for context in opened:
        context.__exit__(None, None, None)


def sign_in(http, user, password=PASSWORD, **headers):
    return http.post("/sign-in", json={"user": user, "password": password}, headers=headers)


def test_behind_tls_the_cookie_is_secure(site):
    trusting, wary = site(proxies=networks("127.0.0.1")), site()

    assert "Secure" in sign_in(trusting, "alice", **TLS).headers["set-cookie"]
    assert "Secure" not in sign_in(trusting, "alice").headers["set-cookie"]
    assert "Secure" not in sign_in(wary, "alice", **TLS).headers["set-cookie"]


def test_behind_tls_the_page_is_of_the_same_origin(site):
    trusting, wary = site(proxies=networks("127.0.0.1")), site()

    assert sign_in(trusting, "alice", origin=PUBLIC, **TLS).status_code == 200
    assert sign_in(trusting, "alice", origin="http://memory.example", **TLS).status_code == 403
    refused = sign_in(wary, "alice", origin=PUBLIC, **TLS, host="memory.example")
    assert refused.status_code == 403
    assert "proxies" in refused.text


def test_a_forwarded_host_must_be_one_of_ours(site):
    http = site(proxies=networks("127.0.0.1"))

    assert http.get("/healthz", headers={**TLS, "x-forwarded-host": "evil.example"}).status_code == 421


def test_wrong_sign_ins_lock_out_only_who_was_meant(site, within_a_minute):
    http = site(proxies=networks("127.0.0.1"))
    far, near = {"x-forwarded-for": "203.0.113.9"}, {"x-forwarded-for": "198.51.100.7"}
    for _ in range(SIGN_INS_PER_MINUTE):
        assert sign_in(http, "alice", "wrong", **far).status_code == 401

    assert sign_in(http, "alice", **far).status_code == 429
    assert sign_in(http, "alice", **near).status_code == 200
    assert sign_in(http, "bob", **far).status_code == 200


def test_all_addresses_of_one_ipv6_network_share_their_sign_ins(site, within_a_minute):
    http = site(proxies=networks("127.0.0.1"))
    for number in range(SIGN_INS_PER_MINUTE):
        assert sign_in(http, "alice", "wrong", **{"x-forwarded-for": f"2001:db8::{number:x}"}).status_code == 401

    assert sign_in(http, "alice", **{"x-forwarded-for": "2001:db8::ffff"}).status_code == 429
    assert sign_in(http, "alice", **{"x-forwarded-for": "2001:db8:0:1::1"}).status_code == 200


def test_wrong_sign_ins_through_an_unnamed_proxy_do_not_lock_out_the_others(site, within_a_minute):
    http = site()
    for _ in range(SIGN_INS_PER_MINUTE):
        sign_in(http, "alice", "wrong")

    assert sign_in(http, "alice").status_code == 429
    assert sign_in(http, "bob").status_code == 200


# --- pages of other origins ------------------------------------------------------------------------------------------


def test_a_named_origin_may_send_and_read(site):
    http = site(origins=origins_in("https://app.example, vscode-webview://abc"))

    for origin in ("https://app.example", "vscode-webview://abc"):
        asked = {"origin": origin, "access-control-request-method": "POST"}
        may = http.options("/api/small/search", headers={**asked, "access-control-request-headers": "x-api-key"})
        assert may.status_code == 200
        assert may.headers["access-control-allow-origin"] == origin
        reply = http.post("/api/small/search", json={}, headers={"origin": origin})
        assert (reply.status_code, reply.headers["access-control-allow-origin"]) == (401, origin)


def test_an_origin_that_is_not_named_may_not(site):
    http = site(origins=origins_in("https://app.example"))

    for origin in ("http://app.example", "https://app.example:8443", "https://evil.example", "null"):
        reply = http.options("/api/small/search", headers={"origin": origin, "access-control-request-method": "POST"})
        assert reply.status_code == 403
        assert "access-control-allow-origin" not in reply.headers


@pytest.mark.parametrize("text", ["*", "null", "app.example", "https://app.example/page", "https://"])
def test_a_setting_that_names_no_origin_is_refused(text):
    with pytest.raises(InvalidInput, match="not an origin"):
        origins_in(text)
