"""Long-term memory for AI agents.

    import scrubjay

    with scrubjay.open("memories.db") as jay:
        jay.store("User moved to Austin", source="explicit")
        for hit in jay.search("Where does the user live?"):
            print(hit.score, hit.memory.content)

Names are loaded when they are first used, so that `import scrubjay` costs nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False  # the typing module is not worth its import here
if TYPE_CHECKING:
    from typing import Any

    from scrubjay.engine.engine import Engine as Engine
    from scrubjay.wiring import open as open

__version__ = "0.1.0"

_NAMES = {
    "scrubjay.wiring": "open",
    "scrubjay.engine.engine": "Engine",
    "scrubjay.values.callers": "Caller Provenance Role",
    "scrubjay.values.memory": "AccessLevel Category Context Kind Link LinkKind Memory NewMemory Source State Status "
    "Stored Version",
    "scrubjay.values.search": "Explanation Filter Hit Hits Order Page Query Verdict",
    "scrubjay.values.store": "Event Recall Space",
    "scrubjay.errors": "Conflict Duplicate EmbeddingError Error Forbidden InvalidInput ModelMissing NotFound "
    "SpaceNotFound StorageBusy StorageDamaged StorageError StorageFull StorageTooNew",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = ["__version__", *sorted(_HOMES)]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'scrubjay' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
