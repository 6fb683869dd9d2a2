"""What a place for archived objects promises. A bucket would be one more file beside `folder.py`."""

from __future__ import annotations

from abc import ABC, abstractmethod


class Objects(ABC):
    """Bytes under names that we choose, `<tier>/<id>`, each written once. Safe for several threads and processes."""

    @abstractmethod
    def mark(self, tier: str) -> str | None:
        """Which place this is: what `set_mark` left here for a tier. None if nobody has; "" if that was a version whose
        marks were all the same.

        :raises StorageError: if that cannot be told
        """

    @abstractmethod
    def set_mark(self, tier: str, mark: str) -> None:
        """Make the place for a tier's objects, if need be, and leave a mark there.

        :raises StorageFull, StorageError: as `write`
        """

    @abstractmethod
    def write(self, name: str, data: bytes) -> None:
        """Keep bytes. When this returns they are durable; when it raises, `read` finds nothing or all of them.

        :raises ArchiveUnavailable: if the place is not there just now, or was never marked; it is not made
        :raises StorageFull: if there is no room
        :raises StorageError: if they cannot be kept for another reason
        """

    @abstractmethod
    def read(self, name: str) -> bytes:
        """:raises ArchiveDamaged: if there is no such object though the place is there
        :raises ArchiveUnavailable: if the place is not there just now
        :raises StorageError: if it cannot be read
        """

    @abstractmethod
    def remove(self, name: str) -> None:
        """Make sure that there is no such object.

        :raises ArchiveUnavailable: if the place is not there just now
        :raises StorageError: if it cannot be removed
        """
