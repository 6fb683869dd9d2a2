"""Connects to a server that runs, by its address, as a client would: opens the protocol and asks for the tools."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

from scrubjay.clients.trial import HELLO, ServerSeen
from scrubjay.errors import EndpointUnreachable, InvalidInput
from scrubjay.machine.http_client import NETWORK_ERRORS, Client, HttpLimits

LIMITS = HttpLimits(silence_seconds=30.0, answer_seconds=30.0, bytes=10_000_000)
HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
UNAUTHENTICATED = 401


def full_address(url: str) -> str:
    """The address with the path of our tools, unless it names one.

    :raises InvalidInput: if it is not an address, or contains a password
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        hint = "Give one such as http://127.0.0.1:8377."
        raise InvalidInput(f"{url} is not the address of a server.", hint=hint, field="url")
    if parts.username or parts.password:
        hint = "Set SCRUBJAY_KEY instead."
        raise InvalidInput("The address contains a password, which clients would keep.", hint=hint, field="url")
    return url if parts.path.strip("/") else f"{url.rstrip('/')}/mcp"


def visit_server(url: str, key: str) -> tuple[ServerSeen, bool]:
    """What a client sees there, and whether it wants a key: then `key` is sent, and without one nothing is seen.

    :raises EndpointUnreachable: if no server of this kind answers, or it refuses the key
    """
    seen = ask_server(url, "")
    if seen is not None:
        return seen, False
    seen = ask_server(url, key) if key else ServerSeen()
    if seen is None:
        raise EndpointUnreachable(f"{url} refused the key.", hint="`scrubjay keys list` shows which are valid.")
    return seen, True


def ask_server(url: str, key: str) -> ServerSeen | None:
    """The server and its tools; None if it wants a key, or another one."""
    hello, headers = send_request(url, key, HEADERS, {"id": 1, "method": "initialize", "params": HELLO})
    if hello is None:
        return None
    send_request(url, key, headers, {"method": "notifications/initialized"})
    listed, _ = send_request(url, key, headers, {"id": 2, "method": "tools/list", "params": {}})
    try:
        server, tools = hello["serverInfo"], tuple(tool["name"] for tool in (listed or {})["tools"])
        return ServerSeen(server=f"{server['name']} {server.get('version', '')}".strip(), tools=tools)
    except (KeyError, TypeError):
        raise no_server(url, "it does not speak MCP") from None


def send_request(
    url: str, key: str, headers: dict[str, str], message: dict[str, Any]
) -> tuple[dict[str, Any] | None, dict[str, str]]:
    """The result, None if a key is wanted; and the headers for what follows."""
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    try:
        answer = Client(url, LIMITS, key=key, headers=headers, proxies=True).ask("POST", "", body)
    except NETWORK_ERRORS as error:
        raise no_server(url, str(error) or "it cannot be reached") from None
    if answer.status == UNAUTHENTICATED:
        return None, headers
    if answer.status >= 300:
        raise no_server(url, f"it answered {answer.status}")
    session = answer.headers.get("mcp-session-id")
    text = answer.body.decode("utf-8", "replace")
    lines = [f"data:{text}"] if text.startswith("{") else text.splitlines()
    try:
        found = [json.loads(line[5:]) for line in lines if line.startswith("data:") and line[5:].strip()]
        result: dict[str, Any] = next((one["result"] for one in found if one.get("id") == message.get("id")), {})
    except (ValueError, KeyError, AttributeError):
        raise no_server(url, "it does not speak MCP") from None
    return result, {**headers, **({"Mcp-Session-Id": session} if session else {})}


def no_server(url: str, why: str) -> EndpointUnreachable:
    return EndpointUnreachable(f"No server answers at {url}: {why}.", hint="`scrubjay serve` starts one.")
