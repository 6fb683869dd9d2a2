"""How a request authenticates: by a key, a bearer token or the page's session; or not at all, where none is needed.

    X-API-Key: sj_…                 a key
    Authorization: Bearer sj_…      the same
    Authorization: Bearer ey…       a token of the configured issuer
    Cookie: scrubjay_session=…      a session; a change also needs its X-CSRF-Token

A server that only this machine can reach and that never had a key needs none: its caller is the local owner.

Bearer tokens are JSON Web Tokens of the one issuer that the settings name. They must be signed with a key from the
issuer's set (a file, or an https address), be for our audience and not be expired. What the subject may do is set by a
credential that an owner created for it: a valid signature alone is not enough.
"""

from __future__ import annotations

import hmac
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.requests import HTTPConnection

from scrubjay.engine.callers import REFUSED
from scrubjay.engine.engine import Engine
from scrubjay.errors import Forbidden, InvalidInput, Unauthenticated
from scrubjay.lazy import jwt
from scrubjay.machine.paths import expand_home
from scrubjay.servers.http.guard import SAFE
from scrubjay.values.callers import Caller, Role, Session
from scrubjay.values.frozen import dataclass

if TYPE_CHECKING:
    from jwt import PyJWK, PyJWKClient, PyJWKSet


COOKIE = "scrubjay_session"
GUARD = "x-csrf-token"
MAX_CREDENTIAL = 8_192  # characters


@dataclass(frozen=True, slots=True)
class Proven:
    caller: Caller
    session: Session | None = None


@dataclass(frozen=True, slots=True)
class Credentials:
    engine: Engine
    tokens: Tokens | None = None
    secret: str = ""  # the owner's key, from the settings instead of the store
    always: bool = False  # require a credential even if there is none yet (others can reach this server)
    remote_files: bool = False  # owners of every space may use this machine's files from elsewhere

    def are_needed(self) -> bool:
        """Whether a request without a credential is refused."""
        return self.always or bool(self.secret) or self.engine.callers.locked()

    def is_locked_out(self) -> bool:
        """Whether a credential is needed and no valid one is left."""
        return not self.secret and self.engine.callers.locked() and not self.engine.callers.in_use()

    def prove(self, request: HTTPConnection, method: str) -> Proven:
        """Find out who calls. This reads the store: call it in a thread.

        :raises Unauthenticated: if the credential is missing or wrong
        :raises Forbidden: if a page changes something without the session's CSRF token
        """
        sent = credentials_in(request)
        if len(sent) > 1:
            raise Unauthenticated("Send only one credential.")
        if sent:
            return Proven(self._with_file_rights(self._find_caller(sent.pop())))
        cookie = request.cookies.get(COOKIE)
        if cookie is not None and len(cookie) <= MAX_CREDENTIAL:
            return self._by_session(cookie, request, method)
        if self.are_needed():
            raise Unauthenticated(hint="Send X-API-Key or Authorization: Bearer; `scrubjay keys create` creates a key.")
        return Proven(self.engine.caller)

    def _find_caller(self, credential: str) -> Caller:
        if len(credential) > MAX_CREDENTIAL:
            raise Unauthenticated(REFUSED)
        if self.secret and hmac.compare_digest(credential.encode(), self.secret.encode()):
            return self.engine.caller
        if self.tokens is not None and credential.count(".") == 2:
            return self.engine.callers.by_subject(self.tokens.subject(credential))
        return self.engine.callers.by_key(credential)

    def _by_session(self, cookie: str, request: HTTPConnection, method: str) -> Proven:
        try:
            caller, session = self.engine.callers.by_session(cookie)
        except Unauthenticated:
            if self.are_needed():
                raise
            return Proven(self.engine.caller)  # an old cookie on a server that needs no credential
        if method not in SAFE:
            guard = request.headers.get(GUARD, "")
            if not hmac.compare_digest(guard.encode(), session.guard.encode()):
                raise Forbidden("This page may not change anything.", hint="Send the session's X-CSRF-Token.")
        return Proven(caller if session.credential is None else self._with_file_rights(caller), session)

    def _with_file_rights(self, caller: Caller) -> Caller:
        local = self.remote_files and caller.role is Role.OWNER and caller.spaces is None
        return replace(caller, local=local)


def presented_in(request: HTTPConnection) -> tuple[frozenset[str], str | None, str]:
    """Everything of a request that `prove` looks at: where this is equal, so is the caller."""
    return frozenset(credentials_in(request)), request.cookies.get(COOKIE), request.headers.get(GUARD, "")


def credentials_in(request: HTTPConnection) -> set[str]:
    """What the headers contain; an Authorization of another kind is refused like a wrong one."""
    sent = set(request.headers.getlist("x-api-key"))
    for value in request.headers.getlist("authorization"):
        scheme, _, rest = value.partition(" ")
        sent.add(rest.strip() if scheme.lower() == "bearer" else "")
    return sent


# --- bearer tokens from another issuer -------------------------------------------------------------------------------


# Never HMAC: with it, anyone who knows the public key could sign.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
LEEWAY_SECONDS = 30
FETCH_SECONDS = 5


class Tokens:
    def __init__(self, *, issuer: str, audience: str, keys: str) -> None:
        """:raises InvalidInput: if the settings do not name all three, or the file cannot be read"""
        if not (issuer and audience and keys):
            raise InvalidInput("Bearer tokens need token_issuer, token_audience and token_keys.", field="token_issuer")
        self._issuer = issuer
        self._audience = audience
        self._client: PyJWKClient | None = None
        self._set: PyJWKSet | None = None
        if keys.startswith("https://"):
            self._client = jwt.PyJWKClient(keys, timeout=FETCH_SECONDS)
        else:
            self._set = read_keys(expand_home(keys, field="token_keys"))

    def subject(self, token: str) -> str:
        """Who a token is for.

        :raises Unauthenticated: unless signature, issuer, audience and time are all valid
        """
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                self._key(token),
                algorithms=list(ALGORITHMS),
                audience=self._audience,
                issuer=self._issuer,
                leeway=LEEWAY_SECONDS,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except (jwt.PyJWTError, ValueError):
            raise Unauthenticated(REFUSED) from None
        return str(claims["sub"])

    def _key(self, token: str) -> PyJWK:
        if self._client is not None:
            return self._client.get_signing_key_from_jwt(token)
        assert self._set is not None
        name = jwt.get_unverified_header(token).get("kid")
        usable = [key for key in self._set.keys if name in (None, key.key_id)]
        if len(usable) != 1:
            raise jwt.InvalidTokenError
        return usable[0]


def read_keys(path: Path) -> PyJWKSet:
    try:
        return jwt.PyJWKSet.from_json(path.read_text("utf-8"))
    except (OSError, ValueError, jwt.PyJWTError):
        raise InvalidInput(
            "token_keys is neither an https address nor a file with a JSON Web Key Set.", field="token_keys"
        ) from None
