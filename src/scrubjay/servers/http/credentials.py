"""How a request authenticates: by a key, a bearer token or the page's session; or not at all, where none is needed.

    X-API-Key: sj_…                 a key
    Authorization: Bearer sj_…      the same
    Authorization: Bearer ey…       a token of the configured issuer
    Cookie: scrubjay_session=…      a session; a change also needs its X-CSRF-Token

A server that only this machine can reach and that never had a key needs none: its caller is the local owner.
"""

from __future__ import annotations

import hmac
from dataclasses import replace

from starlette.requests import HTTPConnection

from scrubjay.engine.callers import REFUSED
from scrubjay.engine.engine import Engine
from scrubjay.errors import Forbidden, Unauthenticated
from scrubjay.servers.http.guard import SAFE
from scrubjay.servers.http.tokens import Tokens
from scrubjay.values.callers import Caller, Role, Session
from scrubjay.values.frozen import dataclass

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

    def needed(self) -> bool:
        return self.always or bool(self.secret) or self.engine.callers.locked()

    def none_fits(self) -> bool:
        """Whether a credential is needed and there is none left."""
        return not self.secret and self.engine.callers.locked() and not self.engine.callers.in_use()

    def proven(self, request: HTTPConnection, method: str) -> Proven:
        """The caller. This reads the store: call it in a thread.

        :raises Unauthenticated: if the credential is missing or wrong
        :raises Forbidden: if a page changes something without the session's CSRF token
        """
        sent = credentials_in(request)
        if len(sent) > 1:
            raise Unauthenticated("Send only one credential.")
        if sent:
            return Proven(self._trusted(self._by(sent.pop())))
        cookie = request.cookies.get(COOKIE)
        if cookie is not None and len(cookie) <= MAX_CREDENTIAL:
            return self._by_session(cookie, request, method)
        if self.needed():
            raise Unauthenticated(hint="Send X-API-Key or Authorization: Bearer; `scrubjay keys create` creates a key.")
        return Proven(self.engine.caller)

    def _by(self, credential: str) -> Caller:
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
            if self.needed():
                raise
            return Proven(self.engine.caller)  # an old cookie on a server that needs no credential
        if method not in SAFE:
            guard = request.headers.get(GUARD, "")
            if not hmac.compare_digest(guard.encode(), session.guard.encode()):
                raise Forbidden("This page may not change anything.", hint="Send the session's X-CSRF-Token.")
        return Proven(caller if session.credential is None else self._trusted(caller), session)

    def _trusted(self, caller: Caller) -> Caller:
        local = self.remote_files and caller.role is Role.OWNER and caller.spaces is None
        return replace(caller, local=local)


def proof_in(request: HTTPConnection) -> tuple[frozenset[str], str | None, str]:
    """Everything that `proven` looks at; equal ones prove the same."""
    return frozenset(credentials_in(request)), request.cookies.get(COOKIE), request.headers.get(GUARD, "")


def credentials_in(request: HTTPConnection) -> set[str]:
    """What the headers contain; an Authorization of another kind is refused like a wrong one."""
    sent = set(request.headers.getlist("x-api-key"))
    for value in request.headers.getlist("authorization"):
        scheme, _, rest = value.partition(" ")
        sent.add(rest.strip() if scheme.lower() == "bearer" else "")
    return sent
