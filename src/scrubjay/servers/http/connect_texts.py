"""What `scrubjay serve` prints when it is ready: where memories are, and how clients are connected."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from scrubjay.clients.catalogue import CLIENTS, USER
from scrubjay.clients.install import find_wanted
from scrubjay.clients.launch import NAME, command, home_arguments
from scrubjay.settings import Settings

KEY_HEADER = {"X-API-Key": "YOUR_KEY"}


def claude_code_stdio(settings: Settings) -> str:
    want = find_wanted(CLIENTS["claude-code"], settings, scope=USER, folder=Path.cwd(), space=None)
    return " ".join(["claude mcp add", NAME, "--", *map(quote, [want.command, *want.arguments])])


def claude_code_http(url: str, headers: Mapping[str, str] | None = None) -> str:
    given = "".join(f' --header "{name}: {value}"' for name, value in (headers or {}).items())
    return f"claude mcp add --transport http {NAME} {url}{given}"


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
    parts.append(connecting(f"{site}/mcp", settings, needs_key=sign_in is not None))
    return "\n\n".join([*parts, "Stop with Ctrl+C.\n"])


def connecting(url: str, settings: Settings, *, needs_key: bool) -> str:
    """The one command for all clients, one entry, and what prints the others. A client starts its own server, if the
    memory is in this home's file; a database server's address may contain a password, so it is not written."""
    program = NAME if shutil.which(NAME) else quote(command())
    key = "\nOver HTTP a key is needed: scrubjay keys create --user NAME" if needs_key else ""
    if settings.store == f"sqlite:///{settings.home / 'memories.db'}":
        options, entry, over_http = home_arguments(settings), claude_code_stdio(settings), f" (over HTTP: --url {url})"
    else:
        options, entry, over_http = ["--url", url], claude_code_http(url, KEY_HEADER if needs_key else None), ""
    how = "".join(f" {quote(option)}" for option in options)
    return (
        f"Connect the clients on this machine:\n  {program} install{how}\n"
        f"Or by hand, Claude Code for one:\n  {entry}\n"
        f"What others take is printed by:\n  {program} config CLIENT{how}{over_http}{key}"
    )


def place(settings: Settings) -> str:
    """Where memories are stored. The address of a database server is not shown: it may contain a password."""
    scheme, _, path = settings.store.partition(":///")
    return path if scheme == "sqlite" else "a database server"


def quote(argument: str) -> str:
    return f'"{argument}"' if " " in argument else argument
