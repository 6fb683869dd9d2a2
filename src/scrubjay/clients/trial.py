"""Connects as a client would: starts the written command, opens the protocol and asks for the tools."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

SECONDS = 30.0
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "scrubjay-install", "version": "1"},
}
KEPT = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "TMPDIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME",
        "APPDATA", "LOCALAPPDATA", "USERPROFILE", "SYSTEMROOT", "TEMP")  # fmt: skip


@dataclass(frozen=True, slots=True)
class ServerSeen:
    """What a client sees of our server; without tools, why not."""

    server: str = ""
    tools: tuple[str, ...] = ()
    why_not: str = ""


def try_to_connect(command: list[str], *, folder: str | None = None, seconds: float = SECONDS) -> ServerSeen:
    """Our settings in this shell do not count: a client started from a desktop has none of them."""
    environ = {name: os.environ[name] for name in KEPT if name in os.environ}
    try:
        process = subprocess.Popen(
            command, cwd=folder, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
    except OSError as error:
        return ServerSeen(why_not=f"{command[0]}: {error.strerror}.")
    guard = threading.Timer(seconds, process.kill)
    guard.start()
    try:
        return ask_server(process)
    except (OSError, ValueError, KeyError, TypeError):
        process.kill()
        said = process.stderr.read().decode(errors="replace").strip() if process.stderr else ""
        return ServerSeen(why_not=said.splitlines()[-1] if said else f"it did not answer within {seconds:g} seconds.")
    finally:
        guard.cancel()
        process.kill()
        process.communicate()


def ask_server(process: subprocess.Popen[bytes]) -> ServerSeen:
    assert process.stdin
    assert process.stdout
    tell(process.stdin, {"id": 1, "method": "initialize", "params": HELLO})
    server = answer(process.stdout, 1)["serverInfo"]
    tell(process.stdin, {"method": "notifications/initialized"})
    tell(process.stdin, {"id": 2, "method": "tools/list", "params": {}})
    tools = tuple(tool["name"] for tool in answer(process.stdout, 2)["tools"])
    return ServerSeen(server=f"{server['name']} {server.get('version', '')}".strip(), tools=tools)


def tell(pipe: IO[bytes], message: dict[str, Any]) -> None:
    pipe.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    pipe.flush()


def answer(pipe: IO[bytes], id: int) -> dict[str, Any]:
    for message in messages(pipe):
        if message.get("id") == id:
            result: dict[str, Any] = message["result"]
            return result
    raise ValueError("closed")


def messages(pipe: IO[bytes]) -> Iterator[dict[str, Any]]:
    for line in pipe:
        yield json.loads(line)
