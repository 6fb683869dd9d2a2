"""What a place for archived objects promises. A bucket would be one more file next to `folder.py`."""

from __future__ import annotations

from abc import ABC, abstractmethod


class Objects(ABC):
    """Bytes under names that we choose, `<tier>/<id>`, each written once. Safe for several threads and processes."""

    @abstractmethod
    def mark(self, tier: str) -> str | None:
        """Which place this is: what `set_mark` left here for a tier. None if there is no mark; "" if it is from a
        version whose marks were all the same.

        :raises StorageError: if that cannot be determined
        """

    @abstractmethod
    def set_mark(self, tier: str, mark: str) -> None:
        """Create the place for a tier's objects, if needed, and leave a mark there.

        :raises StorageFull, StorageError: as `write`
        """

    @abstractmethod
    def write(self, name: str, data: bytes) -> None:
        """Keep bytes. When this returns they are durable; when it raises, `read` finds nothing or all of them.

        :raises ArchiveUnavailable: if the place is currently unavailable, or was never marked; it is not created
        :raises StorageFull: if there is no space
        :raises StorageError: if they cannot be kept for another reason
        """

    @abstractmethod
    def read(self, name: str) -> bytes:
        """:raises ArchiveDamaged: if there is no such object although the place exists
        :raises ArchiveUnavailable: if the place is currently unavailable
        :raises StorageError: if it cannot be read
        """

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove the object, if it exists.

        :raises ArchiveUnavailable: if the place is currently unavailable
        :raises StorageError: if it cannot be removed
        """
