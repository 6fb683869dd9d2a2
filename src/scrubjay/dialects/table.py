"""The table of dialects. Each is imported when first needed, so one costs nothing while another is used."""

from __future__ import annotations

from importlib import import_module

from scrubjay.dialects.base import Dialect
from scrubjay.errors import InvalidInput

DEFAULT = "scrubjay"  # the first in the table, which `/mcp` serves

# Where each is, by the name used in flags, addresses and manifests; the order is the one that people see.
DIALECTS = {
    "scrubjay": "agent.tools",
    "memento": "memento",
    "cortex": "cortex",
    "system": "system.memories",
    "mama": "mama",
    "chimera": "chimera.memories",
}

# Over REST alone, each operation at an address of its own.
ONLY_REST = {"native": "native.memories"}


def find(name: str) -> Dialect:
    """:raises InvalidInput: naming the known dialects"""
    table = {**DIALECTS, **ONLY_REST}
    if name not in table:
        known = f"Known: {', '.join(DIALECTS)}."
        raise InvalidInput(f"Unknown dialect {name[:40]!r}.", hint=known, field="dialect")
    dialect: Dialect = getattr(import_module(f"scrubjay.dialects.{table[name]}"), name)
    return dialect
