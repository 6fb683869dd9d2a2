"""Signing in on the page: with a key, with a name and password, or by the link that the server printed.

    GET  /sign-in           a small form, for browsers
    POST /sign-in           {"key"} or {"user", "password"}: sets the session's cookie
    GET  /sign-in/{word}    the link: works once, for ten minutes after the start; signs in as the local owner
    GET  /session           who I am, and the token that every change must carry as X-CSRF-Token
    POST /sign-out          ends the session

The cookie is HttpOnly and SameSite=Strict, and its value is kept as a hash only.
"""

from __future__ import annotations

import hmac
import secrets
import threading
import time
from collections.abc import Callable
from typing import Any

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from scrubjay.engine.callers import SignedIn
from scrubjay.engine.engine import Engine
from scrubjay.errors import Error, InvalidInput, Unauthenticated
from scrubjay.servers.http.credentials import COOKIE
from scrubjay.servers.http.crowd import address_of
from scrubjay.servers.http.processes import LINK_SECONDS
from scrubjay.servers.http.rate_limits import Limits
from scrubjay.servers.http.rest import fail, read_body

THREADS = 4  # for writing sessions; however many of those wait, other requests are handled
KNOWN = ({"key"}, {"user", "password"})


class SignInLink:
    """A secret that opens one session, for a short time. `once` says whether no other process has used it."""

    def __init__(
        self, word: str | None = None, *, until: float | None = None, once: Callable[[], bool] = lambda: True
    ) -> None:
        self._word: str | None = word or secrets.token_urlsafe(32)
        self._until = time.monotonic() + LINK_SECONDS if until is None else until
        self._once = once
        self._lock = threading.Lock()

    @property
    def path(self) -> str:
        return f"/sign-in/{self._word}"

    def use(self, word: str) -> bool:
        with self._lock:
            good = self._word is not None and hmac.compare_digest(word.encode(), self._word.encode())
            good = good and time.monotonic() < self._until
            if good:
                self._word = None
            return good and self._once()


def session_routes(engine: Engine, limits: Limits, link: SignInLink) -> list[Route]:
    own = CapacityLimiter(THREADS)

    async def sign_in(request: Request) -> Response:
        if request.method != "POST":
            return HTMLResponse(FORM, headers=PAGE_HEADERS)
        try:
            given = credentials_of(read_body(request.headers, await request.body()))
            limits.sign_in(address_of(request.client), name_in(given))
            signed_in = await run_sync(lambda: engine.callers.sign_in(**given), limiter=own)
        except Error as error:
            return fail(error)
        return with_cookie(request, signed_in, JSONResponse({"status": "ok"}))

    async def by_link(request: Request) -> Response:
        if not link.use(request.path_params["word"]):
            return fail(Unauthenticated("This link has expired or has already been used."))
        signed_in = await run_sync(engine.callers.sign_in_locally, limiter=own)
        return with_cookie(request, signed_in, RedirectResponse("/", status_code=303))

    async def session(request: Request) -> Response:
        bound, kept = request.state.engine, request.state.session
        caller = bound.caller
        return JSONResponse(
            {
                "user": caller.user,
                "role": str(caller.role),
                "local": caller.local,
                "spaces": None if caller.spaces is None else sorted(caller.spaces),
                "csrf_token": None if kept is None else kept.guard,
            },
            headers={"cache-control": "no-store"},
        )

    async def sign_out(request: Request) -> Response:
        cookie = request.cookies.get(COOKIE)
        if cookie:
            await run_sync(engine.callers.sign_out, cookie, limiter=own)
        response = JSONResponse({"status": "ok"})
        response.delete_cookie(COOKIE, path="/")
        return response

    return [
        Route("/sign-in", sign_in, methods=["GET", "POST"]),
        Route("/sign-in/{word}", by_link, methods=["GET"]),
        Route("/session", session, methods=["GET"]),
        Route("/sign-out", sign_out, methods=["POST"]),
    ]


def credentials_of(body: dict[str, Any]) -> dict[str, str]:
    if set(body) not in KNOWN or not all(isinstance(value, str) for value in body.values()):
        raise InvalidInput('Send {"key"}, or {"user", "password"}.')
    return body


def name_in(given: dict[str, str]) -> str:
    """Who an attempt is for: a user, or the public part of a key."""
    return given["user"] if "user" in given else given["key"].rpartition("_")[0]


def with_cookie(request: Request, signed_in: SignedIn, response: Response) -> Response:
    response.set_cookie(
        COOKIE,
        signed_in.cookie,
        path="/",
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
        max_age=int((signed_in.session.expires_at - signed_in.session.created_at).total_seconds()),
    )
    response.headers["cache-control"] = "no-store"
    return response


SCRIPT = """
document.querySelector("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const given = Object.fromEntries([...new FormData(event.target)].filter(([, value]) => value));
  const reply = await fetch("/sign-in", {
    method: "POST", headers: {"content-type": "application/json"}, body: JSON.stringify(given)});
  if (reply.ok) location = "/";
  else document.querySelector("output").textContent = (await reply.json()).error.message;
});
"""
STYLE = "body{font:16px system-ui;max-width:22em;margin:15vh auto}input,button{display:block;width:100%;margin:.5em 0}"
NONCE = "scrubjay-page"
FORM = f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Sign in to scrubjay</title><style nonce="{NONCE}">{STYLE}</style>
<h1>Sign in</h1>
<form>
<label>Name <input name="user" autocomplete="username"></label>
<label>Password <input name="password" type="password" autocomplete="current-password"></label>
<label>Or a key <input name="key" type="password" autocomplete="off"></label>
<button>Sign in</button>
<output></output>
</form>
<p>No key? Create one on the server's machine: <code>scrubjay keys create --user NAME --role owner</code>.</p>
<script nonce="{NONCE}">{SCRIPT}</script>
</html>
"""
# Nothing of the form comes from a client, so a fixed nonce cannot be used against it.
PAGE_HEADERS = {
    "content-security-policy": (
        f"default-src 'none'; script-src 'nonce-{NONCE}'; style-src 'nonce-{NONCE}'; connect-src 'self'; "
        "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "cache-control": "no-store",
}
