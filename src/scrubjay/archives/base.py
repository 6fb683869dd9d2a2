"""What a place for archived objects promises. A bucket would be one more file beside `folder.py`."""

from __future__ import annotations

from abc import ABC, abstractmethod


class Objects(ABC):
    """Bytes under names that we choose, `<tier>/<id>`, each written once. Safe for several threads and processes."""

    @abstractmethod
    def write(self, name: str, data: bytes) -> None:
        """Keep bytes. When this returns they are durable; when it raises, `read` finds nothing or all of them.

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
