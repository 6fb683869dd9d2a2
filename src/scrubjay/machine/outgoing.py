"""Addresses: which of them are public, so that this program may connect to them because a text named them.

A name can be made to point anywhere, also at this machine or its private network; so the IP addresses are checked at
the moment of connecting, including those embedded in others (6to4, NAT64, Teredo).
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

from scrubjay.errors import InvalidInput

Resolve = Callable[..., Sequence[tuple[Any, ...]]]

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
# Not in every Python version's list of non-public networks.
CLOSED = tuple(
    map(
        ipaddress.ip_network,
        ("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.88.99.0/24", "198.18.0.0/15", "240.0.0.0/4",
         "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "3fff::/20", "5f00::/16", "fec0::/10"),
    )
)  # fmt: skip
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def without_password(address: str) -> str:
    """An address for display: without the password before its host, or among its options."""
    hidden = re.sub(r"(?<=://)([^:/@]*):[^@]*@", r"\1:…@", address)
    return re.sub(r"(?i)(?<=password=)[^&\s]+", "…", hidden)


def is_address(url: str) -> bool:
    """Whether this is an http or https address of a host, safe to use in a message or a header."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and url.isprintable()
    except ValueError:
        return False


def is_bare(url: str) -> bool:
    """Whether an address has no name, password, query or fragment."""
    parts = urlsplit(url)
    return not (parts.username or parts.password or parts.query or parts.fragment)


def is_unencrypted(url: str) -> bool:
    """Whether others on the network could read what is sent there."""
    parts = urlsplit(url)
    return parts.scheme == "http" and parts.hostname not in LOOPBACK_NAMES


def is_public(text: str) -> bool:
    """Whether an address is public."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and address in NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(str(inner))
        if int(address) < 2**32:  # ::/96, an old form of IPv4 addresses
            return False
    closed = any(address.version == network.version and address in network for network in CLOSED)
    return address.is_global and not address.is_multicast and not closed


def reachable(host: str, port: int, *, private: bool, resolve: Resolve = socket.getaddrinfo) -> list[str]:
    """The addresses of a host that may be connected to.

    :raises InvalidInput: if none of them is public
    :raises OSError: if the host is not known
    """
    found = [str(entry[4][0]) for entry in resolve(host, port, type=socket.SOCK_STREAM)]
    allowed = [address for address in dict.fromkeys(found) if private or is_public(address)]
    if not allowed:
        raise InvalidInput(
            "The address belongs to this machine or a private network.",
            hint="To allow that, set sync_private to on (SCRUBJAY_SYNC_PRIVATE).",
            field="url",
        )
    return allowed
