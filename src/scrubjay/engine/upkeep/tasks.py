"""Work on the whole store: backups, checks, another model, new indexes; at once or as a job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrubjay.engine.upkeep import reembedding
from scrubjay.errors import Conflict, InvalidInput
from scrubjay.machine.paths import full_path
from scrubjay.stores.promises.memories import Checkup

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine
    from scrubjay.engine.jobs import Handle
    from scrubjay.values.store import Job


REBUILT = ("words", "vectors and hints", "vectors for other languages", "vector index")
WAITING = "waiting"  # what a rebuild says instead while another process makes vectors


class Upkeep:
    """Looks after the store as a whole."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def backup(self, path: Path, *, progress: Callable[[int, int], None] | None = None) -> Checkup:
        """Copy the whole store, every space of it, to a new file; others may write meanwhile.

        :raises Conflict: if there is something already
        """
        return self._engine.records.backup(path, progress=progress)

    def reembed(self, *, progress: Callable[[int, int], None] | None = None) -> reembedding.Reembedded:
        """Let this engine's model take over: every vector is rebuilt. Resumes where it was interrupted.

        :raises Locked: if another process is embedding
        """
        return reembedding.Reembedding(self._engine).run(progress)

    def check(self, *, deep: bool = False) -> Checkup:
        """Look for damage; writes nothing."""
        return self._engine.records.check(deep=deep)

    def rebuild(self, progress: Callable[[str, int, int | None], None] | None = None) -> None:
        """Rebuild the word index, missing vectors (of every model) and the vector index.

        `progress` is called with what is being made, and how much of it is done, or that it waits (`WAITING`); it must
        not use the store meanwhile.

        :raises StorageBusy: if another process is embedding and does not stop
        """
        words, vectors, further, index = (progress and partial(progress, name) for name in REBUILT)
        self._engine.records.rebuild(progress=words)
        self._engine.parts.backlog.finish(vectors, progress and partial(progress, WAITING, 0, None))
        self._engine.parts.backlog.finish_further(further)
        self._engine.parts.indexer.finish(index)

    @property
    def unfinished(self) -> bool:
        """Whether the store is the target of a copy that is not finished."""
        return self._engine.records.unfinished

    @property
    def damaged(self) -> bool:
        """Whether damage was found since the memory was opened; then it is not written any more."""
        return self._engine.records.damaged

    @property
    def archive_trouble(self) -> str | None:
        """What keeps archived memories from being read, as a running server last saw it; None if nothing does."""
        return None if self._engine.parts.archive is None else self._engine.parts.archive.trouble

    # --- the same in the background, for who looks after a server from afar: these answer with a job ---

    def start_backup(self, file: str) -> Job:
        """Copy the whole store to a new file of this machine.

        :raises Conflict: if there is something already
        """
        path = full_path(file, field="file")
        if not path.parent.is_dir():
            raise InvalidInput("file must be a new file in an existing folder.", field="file")
        if path.exists() or path.is_symlink():
            raise Conflict("The file already exists.", hint="Choose another name.")
        return self._engine.jobs.start("backup", {"file": str(path)})

    def start_reembed(self) -> Job:
        """Rebuild every vector with the configured model."""
        return self._engine.jobs.start("reembed", {})

    def start_rebuild(self) -> Job:
        """Rebuild the word index, missing vectors and the vector index."""
        return self._engine.jobs.start("rebuild", {})


def run_backup(engine: Engine, arguments: Mapping[str, Any], handle: Handle) -> Mapping[str, Any]:
    checkup = engine.upkeep.backup(Path(arguments["file"]), progress=reporting(handle, "copying"))
    return {"memories": checkup.memories}


def run_reembed(engine: Engine, _arguments: Mapping[str, Any], handle: Handle) -> Mapping[str, Any]:
    done = engine.upkeep.reembed(progress=reporting(handle, "embedding"))
    return {"model": done.model, "memories": done.memories, "failed": done.failed}


def run_rebuild(engine: Engine, _arguments: Mapping[str, Any], _handle: Handle) -> Mapping[str, Any]:
    engine.upkeep.rebuild()
    return {}


def reporting(handle: Handle, note: str) -> Callable[[int, int], None]:
    return lambda done, total: handle.progress(done, total, note)
