"""Settings to an engine: the only place that picks concrete parts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from scrubjay.errors import InvalidInput
from scrubjay.memory import DEFAULT_SPACE, Caller
from scrubjay.projects import project_space
from scrubjay.settings import Settings, load

if TYPE_CHECKING:
    from scrubjay.embedders.base import Embedder
    from scrubjay.engine.engine import Engine
    from scrubjay.stores.base import Store


def open_engine(settings: Settings) -> Engine:
    """The engine of these settings, bound to the local owner."""
    from scrubjay.engine.engine import Engine

    return Engine(
        open_store(settings.store),
        open_embedder(settings),
        caller=Caller(user=settings.user),
        spaces=spaces_of(settings.space, Path.cwd()),
        wait_seconds=settings.embed_wait,
    )


def open(target: str | Path | None = None, *, embedder: Embedder | None = None) -> Engine:
    """Open a memory: a file, a URL, or None for the default home. Use it in a `with` block."""
    from scrubjay.engine.engine import Engine

    settings = load()
    where = settings.store if target is None else str(target)
    return Engine(
        open_store(where if "://" in where else f"sqlite:///{Path(where).absolute()}"),
        embedder or open_embedder(settings),
        caller=Caller(user=settings.user),
        spaces=spaces_of(settings.space, Path.cwd()),
        wait_seconds=settings.embed_wait,
    )


def open_store(url: str) -> Store:
    scheme, _, rest = url.partition("://")
    if scheme == "sqlite" and rest.startswith("/"):
        from scrubjay.stores.sqlite import SqliteStore

        return SqliteStore(Path(rest.removeprefix("/")))
    raise InvalidInput(
        "The store's address is not understood.", hint="Write sqlite:///FILE, with a full path.", field="store"
    )


def open_embedder(settings: Settings) -> Embedder | None:
    """The chosen model, not yet loaded; None when words are to be enough."""
    name = settings.embedder
    if name == "none":
        return None
    if name == "hashing":
        from scrubjay.embedders.hashing import HashingEmbedder

        return HashingEmbedder()
    from scrubjay.embedders.catalogue import find
    from scrubjay.embedders.local import LocalEmbedder

    return LocalEmbedder(find(name), settings.models)


def spaces_of(space: str, folder: Path) -> tuple[str, ...]:
    """The spaces a process works in, the first for writing; `auto` adds the default one behind the project's."""
    if space != "auto":
        return (space,)
    project = project_space(folder)
    return (project, DEFAULT_SPACE) if project and project != DEFAULT_SPACE else (DEFAULT_SPACE,)
