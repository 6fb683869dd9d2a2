"""The page at /docs: the OpenAPI document for reading. One file, nothing from elsewhere."""

from __future__ import annotations

import secrets

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

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
