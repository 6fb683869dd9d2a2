"""PostgreSQL's errors as ours. Messages never hold an address or a credential: they may reach a model or a stranger."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors

from scrubjay.errors import Error, InvalidInput, StorageBusy, StorageDamaged, StorageError, StorageFull

READ_ONLY = (
    "The database is read-only.",
    "It may be a replica, or its disk may be nearly full: set SCRUBJAY_STORE to the primary.",
)


@contextmanager
def translated_errors() -> Iterator[None]:
    """Raise what PostgreSQL says about the block as one of our errors; everything else passes."""
    try:
        yield
    except psycopg.Error as error:
        raise translate(error) from error
    except UnicodeEncodeError as error:
        raise InvalidInput("The text has a lone surrogate, which no store can keep.") from error


def translate(error: psycopg.Error) -> Error:  # noqa: PLR0911 -- a table
    match error:
        case errors.LockNotAvailable() | errors.SerializationFailure() | errors.DeadlockDetected():
            return StorageBusy()
        case errors.QueryCanceled():
            return StorageBusy(
                "The database took too long to answer.",
                hint="Try again; if it persists, check the load of the database or raise SCRUBJAY_STATEMENT_TIMEOUT.",
            )
        case errors.DiskFull() | errors.OutOfMemory():
            return StorageFull()
        case errors.TooManyConnections():
            return _busy_error()
        case errors.ReadOnlySqlTransaction():
            return StorageError(READ_ONLY[0], hint=READ_ONLY[1])
        case errors.InsufficientPrivilege():
            return StorageError(
                "The database user is not allowed to do this.",
                hint="Make the user in SCRUBJAY_STORE the owner of the schema scrubjay.",
            )
        case errors.ProgramLimitExceeded():
            return InvalidInput("A name, tag or path is too long to be stored.", hint="Shorten it.")
        case errors.DataCorrupted() | errors.IndexCorrupted():
            return StorageDamaged("The database reports damaged files.", hint="Restore it from a backup.")
        case errors.UndefinedTable() | errors.UndefinedColumn() | errors.UndefinedObject() | errors.UndefinedFunction():
            return StorageDamaged(
                "The database has no complete store of this version of scrubjay.",
                hint="If a newer scrubjay has brought it up to date, update this one and restart it; otherwise restore "
                "the schema scrubjay from a backup.",
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
        return StorageError(f"The server has no such {what}.", hint=f"Create the {what}, or fix SCRUBJAY_STORE.")
    if "invalid connection option" in said or "invalid uri" in said or 'missing "="' in said:
        return StorageError("Invalid database address.", hint="Write postgresql://USER:PASSWORD@HOST/DATABASE.")
    if "too many" in said or "connection slots" in said:  # clients, or connections of a role or a database
        return _busy_error()
    if "could not translate host name" in said or "failed to resolve host" in said:
        return StorageBusy("Unknown database host.", hint="Check the host in SCRUBJAY_STORE.")
    return StorageBusy(
        "The database cannot be reached.", hint="Check that it is running and reachable, then try again."
    )


def _busy_error() -> StorageBusy:
    return StorageBusy(
        "The database has no free connections.",
        hint="Lower SCRUBJAY_POOL_SIZE, or raise max_connections of the database.",
    )
