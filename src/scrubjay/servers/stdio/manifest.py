"""The manifests: one file per dialect, from which the fast start answers.

python -m scrubjay.servers.stdio.manifest           write them
python -m scrubjay.servers.stdio.manifest --check   list stale ones, and fail if there are any
"""

from __future__ import annotations

import json
import sys
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from scrubjay import __version__
from scrubjay.dialects.base import Dialect, Operation
from scrubjay.dialects.table import DIALECTS, find
from scrubjay.servers.stdio.profile import MANIFESTS

if TYPE_CHECKING:
    from scrubjay.servers.stdio.profile import Sheet


def sheet_of(dialect: Dialect) -> Sheet:
    """A dialect's table as plain JSON, in the protocol's terms."""
    operations = dialect.operations.values()
    said: Sheet = {
        "dialect": dialect.name,
        "title": dialect.title,
        "server_name": dialect.server_name,
        "instructions": dialect.instructions,
        "brief": dialect.brief,
        "acts": dict(dialect.acts),
        "tools": [tool_of(operation) for operation in operations],
        "extras": [operation.name for operation in operations if not operation.listed],
        "resources": dialect.resources is not None,
        "prompts": bool(dialect.prompts),
    }
    return {"version": __version__, "hash": sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16], **said}


def tool_of(operation: Operation) -> dict[str, object]:
    return {
        "name": operation.name,
        "title": operation.title,
        "description": operation.description,
        "inputSchema": operation.takes,
        "annotations": {
            "readOnlyHint": not operation.changes,
            "destructiveHint": operation.destructive,
            "idempotentHint": operation.idempotent,
            "openWorldHint": False,
        },
    }


def write_manifest(dialect: Dialect) -> str:
    return json.dumps(sheet_of(dialect), indent=1, ensure_ascii=False) + "\n"


def stale(folder: Path) -> list[str]:
    """The dialects whose file is missing or differs from their table."""
    return [name for name in DIALECTS if _read(folder / f"{name}.json") != write_manifest(find(name))]


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


def main(arguments: list[str]) -> int:
    folder = Path(MANIFESTS)
    if arguments == ["--check"]:
        names = stale(folder)
        if names:
            sys.stderr.write(f"Stale: {', '.join(names)}. Run `python -m scrubjay.servers.stdio.manifest`.\n")
        return 1 if names else 0
    if arguments:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    folder.mkdir(exist_ok=True)
    for name in DIALECTS:
        (folder / f"{name}.json").write_text(write_manifest(find(name)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
