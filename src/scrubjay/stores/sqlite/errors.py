"""SQLite's and the system's errors as ours. Messages never hold a path: they may reach a model or a stranger."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from scrubjay.errors import InvalidInput, StorageBusy, StorageDamaged, StorageError, StorageFull

DOCTOR = "Run `scrubjay doctor` to see what is wrong."


@contextmanager
def translated_errors() -> Iterator[None]:
    """Raise what SQLite says about the block as one of our errors; everything else passes."""
    try:
        yield
    except apsw.Error as error:
        raise translate(error) from error
    except UnicodeEncodeError as error:
        raise InvalidInput("The text has a lone surrogate, which no file can keep.") from error


def translate(error: apsw.Error | OSError) -> StorageError:  # noqa: PLR0911 -- a table
    match error:
        case apsw.FullError():
            return StorageFull()
        case OSError() if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return StorageFull()
        case apsw.BusyError() | apsw.LockedError() | apsw.ProtocolError():
            return StorageBusy()
        case apsw.CorruptError() | apsw.NotADBError() | apsw.FormatError():
            return StorageDamaged(hint=DOCTOR)
        case apsw.ReadOnlyError() | apsw.PermissionsError() | PermissionError():
            return StorageError("The store cannot be written to.", hint="Check who owns its file and folder.")
        case apsw.CantOpenError() | OSError():
            return StorageError("The store cannot be opened.", hint="Check that its folder exists and is yours.")
        case _:
            return StorageError()
