"""How clients are told about this server: texts to paste, one function each.

The README shows the same texts, and a test holds the two together.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from scrubjay.settings import Settings, data_folder

NAME = "scrubjay"


def command() -> str:
    """What starts this very program from anywhere: its full path, since clients inherit no shell's search path."""
    beside = Path(sys.executable).with_name(NAME)
    return str(beside) if beside.exists() else shutil.which(NAME) or NAME


def claude_code_stdio(arguments: Sequence[str] = ()) -> str:
    return " ".join(["claude mcp add", NAME, "--", quoted(command()), "mcp", *map(quoted, arguments)])


def claude_code_http(url: str) -> str:
    return f"claude mcp add --transport http {NAME} {url}"


def mcp_servers_stdio(arguments: Sequence[str] = ()) -> str:
    """For Claude Desktop, Cursor and others with a `mcpServers` table."""
    return pretty({"mcpServers": {NAME: {"command": command(), "args": ["mcp", *arguments]}}})


def mcp_servers_http(url: str) -> str:
    return pretty({"mcpServers": {NAME: {"type": "http", "url": url}}})


def vscode_stdio(arguments: Sequence[str] = ()) -> str:
    return pretty({"servers": {NAME: {"type": "stdio", "command": command(), "args": ["mcp", *arguments]}}})


def vscode_http(url: str) -> str:
    return pretty({"servers": {NAME: {"type": "http", "url": url}}})


def announcement(address: tuple[str, int], settings: Settings, *, sign_in: str | None = None) -> str:
    """What `scrubjay serve` says when it is ready."""
    host, port = address
    site = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    parts = [f"scrubjay is listening on {site}\nMemories are kept in {place(settings)}", *http_texts(f"{site}/mcp")]
    if sign_in is not None:
        parts.append(f"Sign in as the owner, once, within ten minutes:\n  {site}{sign_in}")
    if settings.store == f"sqlite:///{settings.home / 'memories.db'}":
        parts += stdio_texts(stdio_arguments(settings))
    return "\n\n".join([*parts, "Stop with Ctrl+C.\n"])


def http_texts(url: str) -> list[str]:
    return [
        "Connect over HTTP:",
        section("Claude Code", claude_code_http(url)),
        section("Cursor (.cursor/mcp.json)", mcp_servers_http(url)),
        section("VS Code (.vscode/mcp.json)", vscode_http(url)),
    ]


def stdio_texts(arguments: Sequence[str]) -> list[str]:
    return [
        "Or let the client start its own server, which shares this memory:",
        section("Claude Code", claude_code_stdio(arguments)),
        section("Claude Desktop (claude_desktop_config.json), Cursor (.cursor/mcp.json)", mcp_servers_stdio(arguments)),
        section("VS Code (.vscode/mcp.json)", vscode_stdio(arguments)),
    ]


def stdio_arguments(settings: Settings) -> list[str]:
    """What a stdio server must be told to share this memory. Clients started from a desktop inherit no shell's
    environment, so only the plain default goes without saying."""
    return [] if settings.home == data_folder({}) else ["--home", str(settings.home)]


def place(settings: Settings) -> str:
    """Where memories lie. The address of a database server is not shown: it may hold a password."""
    scheme, _, path = settings.store.partition(":///")
    return path if scheme == "sqlite" else "a database server"


def section(title: str, text: str) -> str:
    indented = "\n".join(f"    {line}" for line in text.splitlines())
    return f"  {title}:\n{indented}"


def quoted(argument: str) -> str:
    return f'"{argument}"' if " " in argument else argument


def pretty(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
