"""The page: files from the package, under a policy that allows its own files and nothing else.

Beside each file is the same packed by gzip and by brotli, made when the page was built.

The page at /docs is the OpenAPI document for reading: one file, nothing from elsewhere.
"""

from __future__ import annotations

import os
import re
import secrets
from importlib.resources import files

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
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


# --- the page at /docs -----------------------------------------------------------------------------------------------


STYLE = """
:root{color-scheme:light dark}body{font:15px/1.5 system-ui;max-width:60em;margin:2em auto;padding:0 1em}
summary{cursor:pointer;padding:.3em 0}code,pre{font:13px ui-monospace,monospace}pre{overflow:auto;padding:1em;
background:#8881}b{display:inline-block;min-width:4.5em}details{border-bottom:1px solid #8883}h2{margin-top:2em}
"""
# Texts only become text nodes: what a document says is shown, never run.
SCRIPT = """
const make = (name, text, ...children) => {
  const element = document.createElement(name);
  if (text) element.textContent = text;
  element.append(...children);
  return element;
};
const show = (title, value) => value ? [make("h4", title), make("pre", JSON.stringify(value, whole, 2))] : [];
const described = await (await fetch("/openapi.json")).json();
// What is written once and named in other places is shown in each.
const whole = (_, value) => typeof value?.$ref !== "string" ? value :
  value.$ref.slice(2).split("/").reduce((place, step) => place[step], described);
const main = document.querySelector("main");
main.append(...described.info.description.split("\\n\\n").map((text) => make("p", text)));
const tags = [...described.tags, {name: "site", description: "The site itself"}];
for (const tag of tags) {
  main.append(make("h2", tag.description));
  for (const [path, methods] of Object.entries(described.paths))
    for (const [method, operation] of Object.entries(methods)) {
      if (!operation.tags.includes(tag.name)) continue;
      const ok = Object.entries(operation.responses).find(([status]) => status.startsWith("2"));
      main.append(make("details", "",
        make("summary", "", make("b", method.toUpperCase()), make("code", path), " ", operation.summary ?? ""),
        make("p", operation.description ?? ""),
        ...show("Parameters", operation.parameters),
        ...show("Body", operation.requestBody?.content["application/json"]?.schema),
        ...show(`Reply ${ok[0]}`, ok[1].content["application/json"]?.schema)));
    }
}
"""


async def docs(_: Request) -> Response:
    nonce = secrets.token_urlsafe(16)
    policy = (
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    page = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f'<title>scrubjay over REST</title><style nonce="{nonce}">{STYLE}</style><h1>scrubjay over REST</h1>'
        f'<main></main><script type="module" nonce="{nonce}">{SCRIPT}</script></html>'
    )
    return HTMLResponse(page, headers={"content-security-policy": policy, "cache-control": "no-store"})
