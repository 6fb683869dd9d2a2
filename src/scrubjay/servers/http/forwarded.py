"""What a trusted proxy says about its client: the address, and the scheme and host that it called.

    X-Forwarded-For: 198.51.100.7, 10.0.0.2     each proxy appends the address it heard from
    X-Forwarded-Proto: https
    X-Forwarded-Host: memory.example

Anyone can write these headers, so they count only from the addresses that `proxies` names. Of several entries, the one
that the outermost trusted proxy wrote counts; what comes before it may be the client's own invention.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from scrubjay.errors import InvalidInput

Network = IPv4Network | IPv6Network


class Forwarded:
    """The first layer, so that the others see the request as its client sent it."""

    def __init__(self, app: ASGIApp, *, proxies: Sequence[Network] = ()) -> None:
        self._app = app
        self._proxies = proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self._is_trusted(address_in((scope.get("client") or ("",))[0])):
            scope = self._restore_request(scope)
        await self._app(scope, receive, send)

    def _is_trusted(self, address: IPv4Address | IPv6Address | None) -> bool:
        return address is not None and any(address in network for network in self._proxies)

    def _restore_request(self, scope: Scope) -> Scope:
        headers = Headers(scope=scope)
        client, hops = scope["client"][0], 1
        for text in reversed(entries(headers, "x-forwarded-for")):
            address = address_in(text)
            if address is None:
                break
            client = str(address)
            if not self._is_trusted(address):
                break
            hops += 1
        scheme = (entry_of_outermost(entries(headers, "x-forwarded-proto"), hops) or "").lower()
        host = entry_of_outermost(entries(headers, "x-forwarded-host"), hops)
        return {
            **scope,
            "client": (client, 0),
            "scheme": scheme if scheme in {"http", "https"} else scope["scheme"],
            "headers": scope["headers"] if host is None else with_host(scope["headers"], host),
        }


def entries(headers: Headers, name: str) -> list[str]:
    texts = (text.strip() for line in headers.getlist(name) for text in line.split(","))
    return [text for text in texts if text]


def entry_of_outermost(values: Sequence[str], hops: int) -> str | None:
    """Find the entry that the outermost of so many proxies wrote; a proxy that replaces entries leaves only its own."""
    return values[max(0, len(values) - hops)] if values else None


def with_host(headers: Sequence[tuple[bytes, bytes]], host: str) -> list[tuple[bytes, bytes]]:
    return [(b"host", host.encode("latin-1")), *(one for one in headers if one[0] != b"host")]


def address_in(text: str) -> IPv4Address | IPv6Address | None:
    """Read an address with or without a port; None if the text is not one."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def networks(text: str) -> list[Network]:
    """Read the addresses and networks that a setting names.

    :raises InvalidInput: if one is not
    """
    try:
        return [ip_network(one) for one in text.replace(",", " ").split()]
    except ValueError as error:
        raise InvalidInput(
            f"proxies must be addresses or networks such as 127.0.0.1 or 10.0.0.0/8: {error}.", field="proxies"
        ) from None
