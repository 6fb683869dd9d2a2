"""How a caller proves itself over HTTP: keys, tokens, sessions; and where nothing is asked."""

from __future__ import annotations

import json
import time
from datetime import timedelta

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from scrubjay.dialects.base import Reach
from scrubjay.errors import InvalidInput, Unauthenticated
from scrubjay.servers.http.app import build_app, open_listener
from scrubjay.servers.http.credentials import Credentials, Tokens
from scrubjay.servers.http.sign_in import SignInLink
from scrubjay.values.callers import CredentialKind, Role
from tests.servers.sites import client_of
from tests.servers.small_dialect import ANY, small_dialect

pytestmark = pytest.mark.process

ISSUER, AUDIENCE = "https://issuer.example", "scrubjay"


def dialect():
    small = small_dialect()

    @small.reads("Who", takes=ANY, gives=ANY)
    def whoami(engine, args):
        """Says who asks."""
        caller = engine.caller
        return {
            "user": caller.user,
            "role": caller.role,
            "spaces": None if caller.spaces is None else sorted(caller.spaces),
            "space": engine.spaces[0],
        }

    @small.reads("Local", takes=ANY, gives=ANY, reach=Reach.LOCAL)
    def local(engine, args):
        """Touches files."""
        return {}

    return small


@pytest.fixture(autouse=True)
def made_spaces(jay):
    """Those that keys are made for."""
    for name in ("work", "play"):
        jay.known_spaces.create(name)


@pytest.fixture
def site(jay):
    """Opens the site with these options."""
    opened = []

    def open_site(**options):
        context = client_of(build_app(jay, [dialect()], **options))
        opened.append(context)
        return context.__enter__()

    yield open_site
    for context in opened:
        context.__exit__(None, None, None)


def who(http, **headers):
    reply = http.post("/api/small/whoami", json={}, headers=headers)
    return reply.json() if reply.status_code == 200 else reply.status_code


# --- where nothing is asked ------------------------------------------------------------------------------------------


def test_without_a_key_the_caller_is_the_local_owner(site):
    http = site()

    assert who(http) == {"user": "local", "role": "owner", "spaces": None, "space": "default"}
    assert http.post("/api/small/local", json={}).status_code == 200


def test_the_first_key_closes_the_door_while_the_server_runs(site, jay):
    http = site()
    assert who(http)["user"] == "local"

    issued = jay.callers.create("alice")

    assert who(http) == 401
    assert who(http, **{"x-api-key": issued.secret})["user"] == "alice"
    jay.callers.revoke(issued.credential.id)
    assert who(http) == 401
    jay.callers.open_door()
    assert who(http)["user"] == "local"


def test_a_server_that_others_reach_always_asks(site, jay):
    http = site(credentials=Credentials(jay, always=True))

    assert who(http) == 401


def test_the_form_says_how_to_make_a_key(site, jay):
    jay.callers.revoke(jay.callers.create("alice").credential.id)

    assert "scrubjay keys create" in site().get("/sign-in").text


def test_a_wrong_credential_is_refused_even_where_none_is_needed(site):
    assert who(site(), **{"x-api-key": "garbage"}) == 401


def test_other_addresses_are_served_once_there_is_a_key(jay):
    with pytest.raises(InvalidInput, match="Without a key"):
        open_listener("0.0.0.0", 0, jay)
    jay.callers.create("alice")

    with open_listener("0.0.0.0", 0, jay) as listener:
        assert listener.getsockname()[0] == "0.0.0.0"


# --- keys ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("header", ["x-api-key", "authorization"])
def test_a_key_comes_in_either_header(site, jay, header):
    key = jay.callers.create("alice", spaces=["work"], role=Role.READER).secret
    sent = key if header == "x-api-key" else f"bearer {key}"

    assert who(site(), **{header: sent}) == {"user": "alice", "role": "reader", "spaces": ["work"], "space": "work"}


def test_the_space_is_the_only_granted_one_unless_one_is_named(site, jay):
    http = site()
    one = {"x-api-key": jay.callers.create("alice", spaces=["work"]).secret}
    two = {"x-api-key": jay.callers.create("bob", spaces=["work", "play"]).secret}

    assert who(http, **one)["space"] == "work"
    assert who(http, **two)["space"] == "default"
    assert who(http, **two, **{"x-scrubjay-space": "play"})["space"] == "play"


def test_files_are_the_machines_own_unless_a_setting_opens_them(site, jay):
    owner = {"x-api-key": jay.callers.create("olga", role=Role.OWNER).secret}
    narrow = {"x-api-key": jay.callers.create("otto", role=Role.OWNER, spaces=["work"]).secret}
    member = {"x-api-key": jay.callers.create("alice", spaces=["*"]).secret}

    def status(http, headers):
        return http.post("/api/small/local", json={}, headers=headers).status_code

    closed, opened = site(), site(credentials=Credentials(jay, remote_files=True))
    assert [status(closed, one) for one in (owner, narrow, member)] == [403, 403, 403]
    assert [status(opened, one) for one in (owner, narrow, member)] == [200, 403, 403]


# --- tokens ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def signer():
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@pytest.fixture
def tokens(signer, tmp_path):
    key = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(signer.public_key())) | {"kid": "k1", "alg": "RS256"}
    (tmp_path / "keys.json").write_text(json.dumps({"keys": [key]}))
    return Tokens(issuer=ISSUER, audience=AUDIENCE, keys=str(tmp_path / "keys.json"))


def token(signer, *, algorithm="RS256", kid="k1", **claims):
    usual = {"iss": ISSUER, "aud": AUDIENCE, "sub": "auth|alice", "exp": int(time.time()) + 3600}
    body = {name: value for name, value in {**usual, **claims}.items() if value is not None}
    return jwt.encode(body, signer, algorithm=algorithm, headers={"kid": kid})


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://other.example"},
        {"iss": None},
        {"aud": "another"},
        {"aud": None},
        {"exp": int(time.time()) - 3600},
        {"exp": None},
        {"sub": None},
        {"nbf": int(time.time()) + 86_400},
        {"kid": "k2"},
    ],
)
def test_a_token_that_is_not_for_us_is_refused(tokens, signer, claims):
    with pytest.raises(Unauthenticated):
        tokens.subject(token(signer, **claims))


def test_a_token_of_another_signer_is_refused(tokens, signer):
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = signer.public_key()
    forged = [
        token(other),
        token(ec.generate_private_key(ec.SECP256R1()), algorithm="ES256"),
        token("a secret that is long enough to sign with, surely", algorithm="HS256"),
        jwt.encode({"sub": "auth|alice"}, None, algorithm="none"),
        token(signer)[:-4] + "AAAA",
        "a.b.c",
        "..",
        str(public.public_numbers().n),
    ]
    for one in forged:
        with pytest.raises(Unauthenticated):
            tokens.subject(one)


def test_a_good_token_opens_what_an_owner_made_for_its_subject_and_nothing_else(site, jay, tokens, signer):
    http = site(credentials=Credentials(jay, tokens=tokens, always=True))
    good = {"authorization": f"Bearer {token(signer)}"}
    assert who(http, **good) == 401

    made = jay.callers.create("auth|alice", kind=CredentialKind.TOKEN, role=Role.READER, spaces=["work"]).credential

    assert who(http, **good) == {"user": "auth|alice", "role": "reader", "spaces": ["work"], "space": "work"}
    assert who(http, authorization=f"Bearer {token(signer, sub='auth|bob')}") == 401
    jay.callers.revoke(made.id)
    assert who(http, **good) == 401


@pytest.mark.parametrize(
    "options", [{"audience": ""}, {"keys": ""}, {"keys": "/no/such/file"}, {"keys": "http://x.example"}]
)
def test_an_issuer_needs_an_audience_and_keys(options):
    with pytest.raises(InvalidInput):
        Tokens(**{"issuer": ISSUER, "audience": AUDIENCE, "keys": "keys.json", **options})


# --- sessions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"key": "garbage"},
        {"user": "alice", "password": "wrong password!"},
        {"user": "alice"},
        {"key": 1},
        {"key": "x", "user": "alice"},
        [],
    ],
)
def test_a_wrong_sign_in_sets_no_cookie(site, jay, body):
    jay.callers.create("alice", kind=CredentialKind.PASSWORD, password="correct horse!")

    reply = site().post("/sign-in", json=body)

    assert reply.status_code in (400, 401)
    assert "set-cookie" not in reply.headers


def test_signing_in_is_not_for_guessing(site, jay, within_a_minute):
    jay.callers.create("alice", kind=CredentialKind.PASSWORD, password="correct horse!")
    http = site()

    replies = [http.post("/sign-in", json={"key": "garbage"}) for _ in range(11)]

    assert [reply.status_code for reply in replies] == [401] * 10 + [429]
    assert int(replies[-1].headers["retry-after"]) > 0


def test_a_session_reads_freely_and_changes_only_with_its_guard(site, jay):
    jay.callers.create("alice", kind=CredentialKind.PASSWORD, password="correct horse!")
    http = site()

    reply = http.post("/sign-in", json={"user": "alice", "password": "correct horse!"})

    cookie = reply.headers["set-cookie"].lower()
    assert all(word in cookie for word in ("httponly", "samesite=strict", "path=/"))
    session = http.get("/session").json()
    assert (session["user"], session["role"], session["spaces"]) == ("alice", "member", ["default"])
    assert who(http) == 403
    assert who(http, **{"x-csrf-token": "guess"}) == 403
    assert who(http, **{"x-csrf-token": session["csrf_token"]})["user"] == "alice"


def test_signing_out_ends_the_session(site, jay):
    key = jay.callers.create("alice").secret
    http = site()
    http.post("/sign-in", json={"key": key})
    cookie = dict(http.cookies)
    guard = {"x-csrf-token": http.get("/session").json()["csrf_token"]}

    assert http.post("/sign-out", headers=guard).status_code == 200

    http.cookies.update(cookie)
    assert http.get("/session").status_code == 401


def test_a_revoked_key_ends_the_session_that_it_opened(site, jay):
    issued = jay.callers.create("alice")
    http = site()
    http.post("/sign-in", json={"key": issued.secret})
    jay.callers.create("bob")

    jay.callers.revoke(issued.credential.id)

    assert http.get("/session").status_code == 401


def test_the_printed_link_makes_one_reader_the_owner_once(site, jay):
    jay.callers.create("alice")
    link = SignInLink()
    path = link.path
    http = site(link=link)

    reply = http.get(path)

    assert (reply.status_code, reply.headers["location"]) == (303, "/")
    assert http.get("/session").json()["role"] == "owner"
    with httpx.Client(base_url=http.base_url, timeout=60) as second:
        assert second.get(path).status_code == 401
        assert second.get("/sign-in/None").status_code == 401
        assert second.get("/session").status_code == 401


def test_the_form_runs_nothing_from_elsewhere(site):
    reply = site().get("/sign-in")

    assert "default-src 'none'" in reply.headers["content-security-policy"]
    assert "unsafe" not in reply.headers["content-security-policy"]
    assert "http" not in reply.text.replace("https://www.w3.org", "")


def test_a_session_ends_by_itself(site, jay, clock):
    http = site()
    http.post("/sign-in", json={"key": jay.callers.create("alice").secret})

    clock.time += timedelta(hours=13)

    assert http.get("/session").status_code == 401
