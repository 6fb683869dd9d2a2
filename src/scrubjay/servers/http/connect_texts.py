"""How to connect clients to this server: texts to paste, one function each.

The README shows the same texts, and a test checks that they agree.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from scrubjay.clients.launch import NAME, command, home_arguments
from scrubjay.settings import Settings

KEY_HEADER = {"X-API-Key": "YOUR_KEY"}


def claude_code_stdio(arguments: Sequence[str] = ()) -> str:
    return " ".join(["claude mcp add", NAME, "--", quoted(command()), "mcp", *map(quoted, arguments)])


def claude_code_http(url: str, headers: Mapping[str, str] | None = None) -> str:
    given = "".join(f' --header "{name}: {value}"' for name, value in (headers or {}).items())
    return f"claude mcp add --transport http {NAME} {url}{given}"


def mcp_servers_stdio(arguments: Sequence[str] = ()) -> str:
    """For Claude Desktop, Cursor and others with a `mcpServers` table."""
    return pretty({"mcpServers": {NAME: {"command": command(), "args": ["mcp", *arguments]}}})


def mcp_servers_http(url: str, headers: Mapping[str, str] | None = None) -> str:
    return pretty({"mcpServers": {NAME: over_http(url, headers)}})


def vscode_stdio(arguments: Sequence[str] = ()) -> str:
    return pretty({"servers": {NAME: {"type": "stdio", "command": command(), "args": ["mcp", *arguments]}}})


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
        parts += stdio_texts(home_arguments(settings))
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


def stdio_texts(arguments: Sequence[str]) -> list[str]:
    return [
        "Or let the client start its own server, which shares this memory:",
        section("Claude Code", claude_code_stdio(arguments)),
        section("Claude Desktop (claude_desktop_config.json), Cursor (.cursor/mcp.json)", mcp_servers_stdio(arguments)),
        section("VS Code (.vscode/mcp.json)", vscode_stdio(arguments)),
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
