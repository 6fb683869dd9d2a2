"""Work on the whole store, in the background: for who looks after a server from afar.

The engine's own verbs wait until they are done; these answer with a job.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrubjay.errors import Conflict, InvalidInput
from scrubjay.machine.paths import full_path

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine
    from scrubjay.engine.jobs import Handle
    from scrubjay.values.store import Job


class Upkeep:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def backup(self, file: str) -> Job:
        """Copy the whole store to a new file of this machine.

        :raises Conflict: if there is something already
        """
        path = full_path(file, field="file")
        if not path.parent.is_dir():
            raise InvalidInput("file must be a new file in an existing folder.", field="file")
        if path.exists() or path.is_symlink():
            raise Conflict("The file already exists.", hint="Choose another name.")
        return self._engine.jobs.start("backup", {"file": str(path)})

    def reembed(self) -> Job:
        """Rebuild every vector with the configured model."""
        return self._engine.jobs.start("reembed", {})

    def rebuild(self) -> Job:
        """Rebuild the word index, missing vectors and the vector index."""
        return self._engine.jobs.start("rebuild", {})


def run_backup(engine: Engine, arguments: Mapping[str, Any], handle: Handle) -> Mapping[str, Any]:
    checkup = engine.backup(Path(arguments["file"]), progress=reporting(handle, "copying"))
    return {"memories": checkup.memories}


def run_reembed(engine: Engine, _arguments: Mapping[str, Any], handle: Handle) -> Mapping[str, Any]:
    done = engine.reembed(progress=reporting(handle, "embedding"))
    return {"model": done.model, "memories": done.memories, "failed": done.failed}


def run_rebuild(engine: Engine, _arguments: Mapping[str, Any], _handle: Handle) -> Mapping[str, Any]:
    engine.rebuild()
    return {}


def reporting(handle: Handle, note: str) -> Callable[[int, int], None]:
    return lambda done, total: handle.progress(done, total, note)
