"""The scripts in `schema/`, two for each backend: one makes a store, one brings a store of 465e9b5 up to date."""

from __future__ import annotations

from scrubjay.errors import StorageError, StorageTooNew
from scrubjay.lazy import resources

SCHEMA_VERSION = 27  # of both backends
UPGRADED = {"sqlite": 19, "postgres": 22}  # the schemas of 465e9b5


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
    if version not in (0, UPGRADED[backend]):
        raise StorageError(
            f"The store has schema {version}, which this scrubjay cannot bring up to date.",
            hint="Open it once with the scrubjay of commit 465e9b5, then with this one."
            if version < UPGRADED[backend]
            else "Run `scrubjay export` with the version that wrote it, then `scrubjay import` with this one.",
        )
    name = f"{backend}_upgrade.sql" if version else f"{backend}.sql"
    return resources.files("scrubjay.stores").joinpath("schema", name).read_text(encoding="utf-8")
