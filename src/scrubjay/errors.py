"""Everything that can go wrong, as one tree.

    Error                      code, message, hint, details, retryable
    ├── InvalidInput           invalid_input        the caller sent something we cannot accept
    │   ├── QueryTooComplex    query_too_complex    too many filter values in one question
    │   ├── NoSuchAddress      no_such_address      nothing is served there
    │   ├── WrongMethod        method_not_allowed   the address takes another method
    │   ├── TooLarge           too_large            the request is larger than the server reads
    │   ├── TooSlow            too_slow             the request's body stopped arriving
    │   ├── UnsupportedMediaType  unsupported_media_type  the body is of a type that a form of another site could send
    │   └── Misdirected        misdirected          the request names another host
    ├── NotFound               not_found            no such memory, or not visible to the caller
    │   ├── SpaceNotFound      space_not_found
    │   ├── EndpointNotFound   endpoint_not_found   no endpoint of this name to sync with
    │   ├── ScopeNotFound      scope_not_found      no such user, conversation or category to count
    │   ├── JobNotFound        job_not_found        no such job, or none of the caller's
    │   ├── SectionNotFound    section_not_found    no such section of a space
    │   └── Expired            expired              it exists, but has expired
    ├── Unauthenticated        unauthenticated      no credential, or no valid one
    ├── Forbidden              forbidden            visible, but the caller may not change it
    ├── Conflict               conflict             the memory is not in the state the caller expects
    │   ├── Duplicate          duplicate            the same text is already there
    │   ├── TooDissimilar      too_dissimilar       memories that have nothing in common are not consolidated
    │   ├── AlreadyArchived    already_archived
    │   ├── AlreadyActive      already_active       nothing to restore
    │   └── Undecided          undecided            a sync left conflicts to resolve
    ├── Unprocessable          unprocessable        understood, but it cannot be done to this memory
    │   ├── ArchiveDamaged     archive_damaged      the archived copy is missing or damaged
    │   └── ClockAhead         clock_ahead          a change that another store stamped with a wrong clock
    ├── ArchiveUnavailable     archive_unavailable  the archive cannot be reached
    ├── SynthesisFailed        synthesis_failed     the language model gave no usable answer
    ├── Locked                 locked               a long operation holds the memory; try again
    ├── RateLimited            rate_limited         too many calls in a minute; try again later
    ├── TimedOut               timed_out            the call took longer than a server waits
    ├── QuotaExceeded          quota_exceeded       the user has reached the memory limit
    ├── EndpointUnreachable    endpoint_unreachable the other side of a sync cannot be reached; try again
    ├── SyncFailed             sync_failed          a sync was interrupted; what was synced stays
    ├── EmbeddingError         embedding_failed     no vector could be made
    │   └── ModelMissing       model_missing        the model's files are not on this machine
    ├── ProviderError          provider_failed      the language model's provider did not answer; try again
    ├── StorageError           storage_failed       the store could not read or write
    │   ├── StorageBusy        storage_busy         another writer held the store too long; try again
    │   │   └── StillReading   still_reading        the files of a store's folder are not all read yet; try again
    │   ├── StorageFull        storage_full         no space left on the disk
    │   ├── StorageDamaged     storage_damaged      the file is not what it should be
    │   ├── CopyUnfinished     copy_unfinished      the store is the target of a copy that was interrupted or still runs
    │   ├── FileDamaged        file_damaged         a memory's Markdown file cannot be read
    │   ├── RegistryDamaged    registry_damaged     the list of stores cannot be read
    │   └── StorageTooNew      storage_too_new      written by a newer scrubjay
    └── Internal               internal             a bug in scrubjay; details are in the log only

A message says what was wrong and with what; a hint says what to do about it. Neither holds a path, a URL with
credentials or a memory's text: both may reach a model or a stranger.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, Self


class Error(Exception):
    """Something went wrong."""

    code: ClassVar[str] = "error"  # of the others, their name in snake case, unless they say otherwise
    retryable: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        if "code" not in cls.__dict__:
            cls.code = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()

    def __init__(self, message: str | None = None, *, hint: str | None = None, **details: Any) -> None:
        super().__init__(_sendable(message or (type(self).__doc__ or "").partition("\n")[0]))
        self.hint = hint
        self.details: dict[str, Any] = {
            name: _sendable(value) if isinstance(value, str) else value for name, value in details.items()
        }

    @property
    def message(self) -> str:
        return str(self.args[0])


def _sendable(text: str) -> str:
    """Replace lone surrogates, which a caller may send but no answer can carry, with question marks."""
    return text.encode("utf-8", "replace").decode()


def every_kind(kind: type[Error] = Error) -> list[type[Error]]:
    """The whole tree below a kind of error, itself first."""
    return [kind, *(below for child in kind.__subclasses__() for below in every_kind(child))]


class InvalidInput(Error):
    """Invalid input."""

    def renamed(self, field: str, name: str) -> Self:
        """The same error for a field that the caller knows by another name."""
        if field == name:
            return self
        message = re.sub(rf"(?<![\w.]){re.escape(field)}(?!\w)", name.replace("\\", r"\\"), self.message, count=1)
        return type(self)(message, hint=self.hint, **{**self.details, "field": name})


class QueryTooComplex(InvalidInput):
    """The question has too many filter values."""


class NoSuchAddress(InvalidInput):
    """Nothing is served at this address."""


class WrongMethod(InvalidInput):
    """This address does not allow that method."""

    code = "method_not_allowed"


class TooLarge(InvalidInput):
    """The request is too large."""


class TooSlow(InvalidInput):
    """The request arrived too slowly."""


class UnsupportedMediaType(InvalidInput):
    """The request's content type is not accepted."""


class Misdirected(InvalidInput):
    """The request names another host."""


class NotFound(Error):
    """No such memory."""


class SpaceNotFound(NotFound):
    """No such space."""


class EndpointNotFound(NotFound):
    """No such endpoint."""


class ScopeNotFound(NotFound):
    """No such scope."""


class JobNotFound(NotFound):
    """No such job."""


class SectionNotFound(NotFound):
    """No such section."""


class Expired(NotFound):
    """The memory has expired."""


class Unauthenticated(Error):
    """Authentication is required."""


class Forbidden(Error):
    """You are not allowed to do that."""


class Conflict(Error):
    """The memory is not in the state this change expects."""


class Duplicate(Conflict):
    """The same text is already stored."""


class TooDissimilar(Conflict):
    """The memories are too dissimilar to consolidate."""


class AlreadyArchived(Conflict):
    """The memory is already archived."""


class AlreadyActive(Conflict):
    """The memory is already active."""


class Undecided(Conflict):
    """There are conflicts to resolve."""


class Unprocessable(Error):
    """This cannot be done to this memory."""


class ArchiveDamaged(Unprocessable):
    """The archived copy of the memory is missing or damaged."""


class ArchiveUnavailable(Error):
    """The archive cannot be reached."""

    retryable = True


class SynthesisFailed(Error):
    """The language model gave no usable answer."""

    retryable = True


class Locked(Error):
    """The memory is locked by another operation."""

    retryable = True


class RateLimited(Error):
    """Too many calls in too short a time."""

    retryable = True


class TimedOut(Error):
    """The call took too long."""

    retryable = True


class QuotaExceeded(Error):
    """The memory limit is reached."""


class EndpointUnreachable(Error):
    """The other side cannot be reached."""

    retryable = True


class ClockAhead(Unprocessable):
    """A change has a timestamp too far in the future."""


class SyncFailed(Error):
    """The sync was interrupted."""

    retryable = True


class EmbeddingError(Error):
    """The text could not be embedded."""

    code = "embedding_failed"
    retryable = True


class ModelMissing(EmbeddingError):
    """The embedding model is not on this machine."""


class ProviderError(Error):
    """The provider did not answer."""

    code = "provider_failed"
    retryable = True


class StorageError(Error):
    """The store could not read or write."""

    code = "storage_failed"


class StorageBusy(StorageError):
    """Another writer held the store for too long; try again."""

    retryable = True


class StillReading(StorageBusy):
    """The store's files are still being read."""


class StorageFull(StorageError):
    """No space is left on the store's disk."""

    retryable = True


class StorageDamaged(StorageError):
    """The store's file is damaged or is not a scrubjay store."""


class CopyUnfinished(StorageError):
    """The store is an unfinished copy."""

    def __init__(self, message: str | None = None, *, hint: str | None = None, **details: Any) -> None:
        super().__init__(message, hint=hint or self.REMEDY, **details)

    REMEDY = (
        "Run `scrubjay copy FROM TO` again: it resumes where it stopped. "
        "To abandon it, delete the target (its file, or its schema in the database)."
    )


class FileDamaged(StorageError):
    """A memory's file cannot be read."""


class RegistryDamaged(StorageError):
    """The list of stores cannot be read."""


class StorageTooNew(StorageError):
    """The store was written by a newer scrubjay."""


class Internal(Error):
    """Something went wrong inside scrubjay."""
