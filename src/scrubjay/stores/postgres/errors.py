"""PostgreSQL's errors as ours. Messages never hold an address or a credential: they may reach a model or a stranger."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors

from scrubjay.errors import Error, InvalidInput, StorageBusy, StorageDamaged, StorageError, StorageFull

READ_ONLY = (
    "The database is read-only.",
    "It may be a replica, or its disk may be nearly full: let SCRUBJAY_STORE name the primary.",
)


@contextmanager
def translated_errors() -> Iterator[None]:
    """Raise what PostgreSQL says about the block as one of our errors; everything else passes."""
    try:
        yield
    except psycopg.Error as error:
        raise translated(error) from error
    except UnicodeEncodeError as error:
        raise InvalidInput("The text holds half of a surrogate pair, which no store can keep.") from error


def translated(error: psycopg.Error) -> Error:  # noqa: PLR0911 -- a table
    match error:
        case errors.LockNotAvailable() | errors.SerializationFailure() | errors.DeadlockDetected():
            return StorageBusy()
        case errors.QueryCanceled():
            return StorageBusy(
                "The database took too long to answer.",
                hint="Try again; if it stays so, look at the load of the database or raise SCRUBJAY_STATEMENT_TIMEOUT.",
            )
        case errors.DiskFull() | errors.OutOfMemory():
            return StorageFull()
        case errors.TooManyConnections():
            return _crowded()
        case errors.ReadOnlySqlTransaction():
            return StorageError(READ_ONLY[0], hint=READ_ONLY[1])
        case errors.InsufficientPrivilege():
            return StorageError(
                "The database refuses this to its user.",
                hint="Let the user in SCRUBJAY_STORE own the schema scrubjay.",
            )
        case errors.ProgramLimitExceeded():
            return InvalidInput("A name, tag or path is too long to be kept.", hint="Shorten it.")
        case errors.DataCorrupted() | errors.IndexCorrupted():
            return StorageDamaged("The database says that its files are damaged.", hint="Restore it from a backup.")
        case errors.UndefinedTable() | errors.UndefinedColumn() | errors.UndefinedObject() | errors.UndefinedFunction():
            return StorageDamaged(
                "The database holds no whole scrubjay store.", hint="Restore the schema scrubjay from a backup."
            )
        case psycopg.OperationalError():
            return _away(error)
        case _:
            return StorageError()


def _away(error: psycopg.OperationalError) -> StorageError:
    """No connection could be made, or it broke. The server's words tell what a code does not, before a login."""
    said = str(error).lower()
    if (error.sqlstate or "").startswith("28") or "password" in said or "no pg_hba.conf entry" in said:
        return StorageError(
            "The database refuses these credentials.", hint="Check user, password and host in SCRUBJAY_STORE."
        )
    if "does not exist" in said and ("database" in said or "role" in said):
        what = "user" if "role" in said else "database"
        return StorageError(f"The server has no such {what}.", hint=f"Create the {what}, or mend SCRUBJAY_STORE.")
    if "invalid connection option" in said or "invalid uri" in said or 'missing "="' in said:
        return StorageError(
            "The database's address is not understood.", hint="Write postgresql://USER:PASSWORD@HOST/DATABASE."
        )
    if "too many" in said or "connection slots" in said:  # clients, or connections of a role or a database
        return _crowded()
    if "could not translate host name" in said or "failed to resolve host" in said:
        return StorageBusy("The database's host is not known.", hint="Check the host in SCRUBJAY_STORE.")
    return StorageBusy("The database cannot be reached.", hint="See that it runs and is reachable; then try again.")


def _crowded() -> StorageBusy:
    return StorageBusy(
        "The database has no connection to spare.",
        hint="Lower SCRUBJAY_POOL_SIZE, or raise max_connections of the database.",
    )
