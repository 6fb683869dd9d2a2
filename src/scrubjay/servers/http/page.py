"""The page: files from the package, under a policy that allows its own files and nothing else."""

from __future__ import annotations

from importlib.resources import files

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
}
FOREVER = "public, max-age=31536000, immutable"  # a file's name changes with its content


def page_routes() -> list[BaseRoute]:
    root = str(files("scrubjay").joinpath("web"))

    async def index(_: Request) -> Response:
        text = files("scrubjay").joinpath("web", "index.html").read_bytes()
        return Response(text, media_type="text/html", headers={**HEADERS, "cache-control": "no-cache"})

    return [Route("/", index, methods=["GET"]), Mount("/assets", Assets(directory=f"{root}/assets"))]


class Assets(StaticFiles):
    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers.update({**HEADERS, "cache-control": FOREVER})
        return response
