"""The table of dialects. Each is imported when first needed, so one costs nothing while another is used."""

from __future__ import annotations

from collections.abc import Callable

from scrubjay.dialects.base import Dialect
from scrubjay.errors import InvalidInput

DEFAULT = "memento"


def _memento() -> Dialect:
    from scrubjay.dialects.memento import memento

    return memento


def _cortex() -> Dialect:
    from scrubjay.dialects.cortex import cortex

    return cortex


def _system() -> Dialect:
    from scrubjay.dialects.system.memories import system

    return system


def _mama() -> Dialect:
    from scrubjay.dialects.mama import mama

    return mama


def _chimera() -> Dialect:
    from scrubjay.dialects.chimera.memories import chimera

    return chimera


def _native() -> Dialect:
    from scrubjay.dialects.native.memories import native

    return native


# By the name used in flags, addresses and manifests; people see them in this order.
DIALECTS: dict[str, Callable[[], Dialect]] = {
    "memento": _memento,
    "cortex": _cortex,
    "system": _system,
    "mama": _mama,
    "chimera": _chimera,
}

# Over REST only, each operation at its own address.
ONLY_REST: dict[str, Callable[[], Dialect]] = {
    "native": _native,
}


def find(name: str) -> Dialect:
    """:raises InvalidInput: naming the known dialects"""
    table = {**DIALECTS, **ONLY_REST}
    if name not in table:
        known = f"Known: {', '.join(DIALECTS)}."
        raise InvalidInput(f"Unknown dialect {name[:40]!r}.", hint=known, field="dialect")
    return table[name]()
