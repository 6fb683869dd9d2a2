"""The scripts in `schema/`: for each backend one makes a store, each of the others brings an earlier one a step on."""

from __future__ import annotations

from scrubjay.errors import StorageError, StorageTooNew
from scrubjay.lazy import resources

SCHEMA_VERSION = 28  # of both backends
UPGRADED = {"sqlite": (19, 27), "postgres": (22, 27)}  # the first ones are those of 465e9b5


def check_version(version: int) -> int:
    """Return the same version.

    :raises StorageTooNew: if a newer scrubjay has written the store
    """
    if version > SCHEMA_VERSION:
        raise StorageTooNew(hint="Update scrubjay on this machine, and restart it.")
    return version


def script_for(backend: str, version: int) -> str:
    """Read the script that brings a store of this version to today's; version 0 is a store that is not there yet.

    :raises StorageError: if no script does
    """
    if version not in (0, *UPGRADED[backend]):
        raise StorageError(
            f"The store has schema {version}, which this scrubjay cannot bring up to date.",
            hint="Let `scrubjay serve` of commit 465e9b5 run on it for some minutes, then open it with this one."
            if version < UPGRADED[backend][0]
            else "Run `scrubjay export` with the version that wrote it, then `scrubjay import` with this one.",
        )
    steps = [f"{backend}_from_{step}.sql" for step in UPGRADED[backend] if step >= version]
    folder = resources.files("scrubjay.stores").joinpath("schema")
    names = steps if version else [f"{backend}.sql"]
    return "\n".join(folder.joinpath(name).read_text(encoding="utf-8") for name in names)
