"""How to connect clients to this server: texts to paste, those over stdio as `scrubjay config` prints them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from scrubjay.clients.catalogue import CLIENTS, USER
from scrubjay.clients.install import Wanted, printed, wanted
from scrubjay.clients.launch import NAME
from scrubjay.settings import Settings

KEY_HEADER = {"X-API-Key": "YOUR_KEY"}


def claude_code_stdio(settings: Settings) -> str:
    want = connection("claude-code", settings)
    return " ".join(["claude mcp add", NAME, "--", *map(quoted, [want.command, *want.arguments])])


def claude_code_http(url: str, headers: Mapping[str, str] | None = None) -> str:
    given = "".join(f' --header "{name}: {value}"' for name, value in (headers or {}).items())
    return f"claude mcp add --transport http {NAME} {url}{given}"


def stdio(client: str, settings: Settings) -> str:
    return printed(CLIENTS[client], connection(client, settings))


def connection(client: str, settings: Settings) -> Wanted:
    return wanted(CLIENTS[client], settings, scope=USER, folder=Path.cwd(), space=None)


def mcp_servers_http(url: str, headers: Mapping[str, str] | None = None) -> str:
    return pretty({"mcpServers": {NAME: over_http(url, headers)}})


def vscode_http(url: str, headers: Mapping[str, str] | None = None) -> str:
    return pretty({"servers": {NAME: over_http(url, headers)}})


def over_http(url: str, headers: Mapping[str, str] | None) -> dict[str, object]:
    return {"type": "http", "url": url, **({"headers": dict(headers)} if headers else {})}


LOCKED = """Locked: every key was revoked or has expired, so every request is refused.
  A new key: scrubjay keys create --user NAME --role owner
  Require none: scrubjay keys open (anyone who can reach this server then acts as its owner)"""


def announcement(
    address: tuple[str, int], settings: Settings, *, sign_in: str | None = None, locked_out: bool = False
) -> str:
    """What `scrubjay serve` prints when it is ready. `locked_out`: no valid key is left."""
    host, port = address
    site = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    parts = [f"scrubjay is ready. Open your memories in a browser: {site}\nThey are stored in {place(settings)}"]
    if sign_in is not None:
        parts.append(f"Sign in as the owner (works once, within ten minutes):\n  {site}{sign_in}")
    if locked_out:
        parts.append(LOCKED)
    parts += http_texts(f"{site}/mcp", needs_key=sign_in is not None)
    if settings.store == f"sqlite:///{settings.home / 'memories.db'}":
        parts += stdio_texts(settings)
    return "\n\n".join([*parts, "Stop with Ctrl+C.\n"])


def http_texts(url: str, *, needs_key: bool) -> list[str]:
    how = " with a key (create one with `scrubjay keys create --user NAME`)" if needs_key else ""
    headers = KEY_HEADER if needs_key else None
    return [
        f"Connect over HTTP{how}:",
        section("Claude Code", claude_code_http(url, headers)),
        section("Cursor (.cursor/mcp.json)", mcp_servers_http(url, headers)),
        section("VS Code (.vscode/mcp.json)", vscode_http(url, headers)),
    ]


def stdio_texts(settings: Settings) -> list[str]:
    return [
        "Or let the client start its own server, which shares this memory:",
        section("Claude Code", claude_code_stdio(settings)),
        section("Claude Desktop (claude_desktop_config.json)", stdio("claude-desktop", settings)),
        section("Cursor (.cursor/mcp.json)", stdio("cursor", settings)),
        section("VS Code (.vscode/mcp.json)", stdio("vscode", settings)),
    ]


def place(settings: Settings) -> str:
    """Where memories are stored. The address of a database server is not shown: it may contain a password."""
    scheme, _, path = settings.store.partition(":///")
    return path if scheme == "sqlite" else "a database server"


def section(title: str, text: str) -> str:
    indented = "\n".join(f"    {line}" for line in text.splitlines())
    return f"  {title}:\n{indented}"


def quoted(argument: str) -> str:
    return f'"{argument}"' if " " in argument else argument


def pretty(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
