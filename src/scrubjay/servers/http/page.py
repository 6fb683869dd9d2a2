"""The page: files from the package, under a policy that allows its own files and nothing else.

Beside each file lies the same packed by gzip and by brotli, made when the page was built.
"""

from __future__ import annotations

import os
import re
from importlib.resources import files

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    ]
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "vary": "accept-encoding",
}
FOREVER = "public, max-age=31536000, immutable"  # a file's name changes with its content
PACKED = {"br": ".br", "gzip": ".gz"}  # the smallest first


def page_routes() -> list[BaseRoute]:
    root = files("scrubjay").joinpath("web")
    pages = Packed(directory=str(root), cache="no-cache")

    async def index(request: Request) -> Response:
        return await pages.get_response("index.html", request.scope)

    assets = Packed(directory=str(root.joinpath("assets")), cache=FOREVER)
    return [Route("/", index, methods=["GET"]), Mount("/assets", assets)]


class Packed(StaticFiles):
    """Serves each file as the client takes it with the fewest bytes."""

    def __init__(self, *, directory: str, cache: str) -> None:
        super().__init__(directory=directory)
        self._cache = cache
        self._names = frozenset(os.listdir(directory))

    async def get_response(self, path: str, scope: Scope) -> Response:
        accepted = Headers(scope=scope).get("accept-encoding", "")
        coding = next((one for one in PACKED if accepts(accepted, one) and path + PACKED[one] in self._names), "")
        response = await super().get_response(path + PACKED.get(coding, ""), scope)
        response.headers.update({**HEADERS, "cache-control": self._cache})
        if coding:
            response.headers["content-encoding"] = coding
        if self._cache != FOREVER:  # installed files may all have one time, and the same length before and after
            del response.headers["etag"], response.headers["last-modified"]
        return response


def accepts(header: str, coding: str) -> bool:
    return re.search(rf"(?<![\w-]){coding}(?!\w)(?!\s*;\s*q=0(\.0*)?\s*(,|$))", header) is not None
