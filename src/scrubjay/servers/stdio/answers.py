"""What can be answered before the protocol's own library is loaded: who we are, and which tools we have.

Two eras of the protocol are in use, and a client's first request decides which one a connection speaks:

    handshake   initialize, then requests            2024-11-05 … 2025-11-25
    modern      every request carries its version    2026-07-28; server/discover instead of initialize

Anything unusual (an unknown version, a cursor, a missing member, a change of era) is left to the library, which knows
every rule.
"""

from __future__ import annotations

from scrubjay import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from scrubjay.servers.stdio.frames import Message
    from scrubjay.servers.stdio.profile import Profile

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSIONS = ("2026-07-28",)
CAPABILITIES = {"tools": {"listChanged": False}}
PROMPTS = {"prompts": {"listChanged": False}}
RESOURCES = {"resources": {"subscribe": False, "listChanged": False}, "completions": {}}
FRESH_MS = 300_000  # how long a client may cache the list of tools; it cannot change while the process runs

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
CLIENT_KEY = "io.modelcontextprotocol/clientInfo"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"


class Answers:
    """The answers to one client. Remembers what its first request decided."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._modern: bool | None = None  # None: no request yet
        self._greeted = False

    def answer(self, request: Message) -> tuple[dict[str, Any] | None, bool]:
        """The result, or None to leave the request to the library; and whether the library must hear of it as well.

        It must hear of what sets up its state: the opening request, and `initialize`.
        """
        method, params = request["method"], request.get("params") or {}
        enveloped = isinstance(params.get("_meta"), dict) and VERSION_KEY in params["_meta"]
        opening = self._modern is None
        if self._modern is None:
            self._modern = enveloped and method != "initialize"
        if self._modern:
            result = self._modern_answer(method, params)
        else:
            result = None if enveloped else self._handshake_answer(method, params)
        return result, opening or method == "initialize"

    def _handshake_answer(self, method: str, params: Message) -> dict[str, Any] | None:
        if method == "initialize" and not self._greeted and _is_greeting(params):
            self._greeted = True
            asked = params["protocolVersion"]
            return {
                "protocolVersion": asked if asked in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1],
                "capabilities": self._capabilities,
                "serverInfo": self._server_info,
                "instructions": self._profile["instructions"],
            }
        if method == "ping" and _is_bare(params):
            return {}
        if method == "tools/list" and self._greeted and _is_bare(params):
            return {"tools": self._profile["tools"]}
        return None

    def _modern_answer(self, method: str, params: Message) -> dict[str, Any] | None:
        if not (_is_bare(params) and _is_envelope(params.get("_meta", {}))):
            return None
        if method == "server/discover":
            said: dict[str, Any] = {
                "supportedVersions": list(MODERN_VERSIONS),
                "capabilities": self._capabilities,
                "instructions": self._profile["instructions"],
            }
        elif method == "tools/list":
            said = {"tools": self._profile["tools"]}
        else:
            return None
        about = {"resultType": "complete", "ttlMs": FRESH_MS, "cacheScope": "public"}
        return {**said, **about, "_meta": {SERVER_KEY: self._server_info}}

    @property
    def _capabilities(self) -> dict[str, Any]:
        prompts = PROMPTS if self._profile["prompts"] else {}
        return {**CAPABILITIES, **prompts, **(RESOURCES if self._profile["resources"] else {})}

    @property
    def _server_info(self) -> dict[str, str]:
        return {"name": self._profile["name"], "version": __version__}


def _is_greeting(params: Message) -> bool:
    capabilities = params.get("capabilities")
    return (
        isinstance(params.get("protocolVersion"), str)
        and isinstance(capabilities, dict)
        and all(isinstance(capability, dict) for capability in capabilities.values())
        and _is_client(params.get("clientInfo"))
    )


def _is_bare(params: Message) -> bool:
    """Whether nothing is asked beyond the request itself."""
    meta = params.get("_meta", {})
    token = meta.get("progressToken", "") if isinstance(meta, dict) else None
    return not params.keys() - {"_meta"} and isinstance(token, str | int) and not isinstance(token, bool)


def _is_envelope(meta: Message) -> bool:
    return (
        meta.get(VERSION_KEY) in MODERN_VERSIONS
        and isinstance(meta.get(CAPABILITIES_KEY), dict)
        and (CLIENT_KEY not in meta or _is_client(meta[CLIENT_KEY]))
    )


def _is_client(info: Any) -> bool:
    return isinstance(info, dict) and isinstance(info.get("name"), str) and isinstance(info.get("version"), str)
