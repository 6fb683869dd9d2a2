"""Which dialects there are. Each is imported when it is first asked for, so one costs nothing while another is used."""

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


# By the name used in flags, addresses and manifests; the order is the one that people see.
DIALECTS: dict[str, Callable[[], Dialect]] = {
    "memento": _memento,
    "cortex": _cortex,
    "system": _system,
    "mama": _mama,
    "chimera": _chimera,
}

# Over REST alone, each operation at an address of its own.
ONLY_REST: dict[str, Callable[[], Dialect]] = {
    "native": _native,
}


def find(name: str) -> Dialect:
    """:raises InvalidInput: naming the dialects that there are"""
    table = {**DIALECTS, **ONLY_REST}
    if name not in table:
        known = f"Known: {', '.join(DIALECTS)}."
        raise InvalidInput(f"There is no dialect {name[:40]!r}.", hint=known, field="dialect")
    return table[name]()
