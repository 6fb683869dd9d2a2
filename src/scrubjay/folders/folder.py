"""A folder on disk: walked, read and written without ever touching anything outside it.

    notes/
    ├── .scrubjay-store         the marker: this folder is a store, and which
    ├── project/api/limits.md   a memory
    └── .git, .obsidian …       hidden files and folders are ignored

Files are replaced whole (temporary file, fsync, rename, fsync of the folder): a reader, and a crash, sees the old bytes
or the new ones. Anything but a regular file (links of any kind, pipes) is neither read nor written.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from scrubjay.errors import FileDamaged, StorageError, StorageFull
from scrubjay.machine.paths import replace_file, sync_folder
from scrubjay.values.frozen import dataclass
from scrubjay.values.memory import random_suffix

MARKER = ".scrubjay-store"
MARKER_TEXT = """\
This folder is a store of memories: one Markdown file each. Edit, rename or delete those as you like.
Leave this file where it is: without it, missing files are taken for an unmounted disk.
id: {id}
"""
DRAFT = ".scrubjay-draft-"
OLD_DRAFT_SECONDS = 3600
MAX_BYTES = 300_000  # of a file: the longest text in the widest characters, and its front matter
SUFFIX = ".md"
SETTLED = 50_000_000  # nanoseconds after which another change cannot have the same time …
SETTLED_IN_SECONDS = 2_500_000_000  # … where a file system keeps only seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """What is in a folder."""

    files: dict[str, str] = field(default_factory=dict)  # name: stamp
    refused: dict[str, str] = field(default_factory=dict)  # name: why it is skipped
    complete: bool = True  # False: part of it could not be read, so a file not listed may still exist


@dataclass(frozen=True, slots=True, kw_only=True)
class Bytes:
    """A file's content and its metadata."""

    data: bytes
    stamp: str
    modified_at: datetime | None = None

    @property
    def hash(self) -> bytes:
        return sha256(self.data).digest()


class Folder:
    def __init__(self, root: Path, *, private: bool = False) -> None:
        """`private`: what is made here is for this user only, whatever the umask says."""
        self.root = Path(os.path.realpath(root))
        self._file_mode, self._folder_mode = (0o600, 0o700) if private else (0o666, 0o777)

    # --- does it exist ---

    def identity(self) -> str | None:
        """The folder's id, created once; None if the folder or its marker does not exist."""
        try:
            text = (self.root / MARKER).read_text("utf-8", errors="replace")
        except OSError:
            return None
        found = [line.removeprefix("id:").strip() for line in text.splitlines() if line.startswith("id:")]
        return found[0] if found and found[0] else None

    def prepare(self) -> str:
        """Create the folder and its marker, if missing.

        :raises StorageError: if they cannot be created
        """
        with failures():
            for place in (self.root.parent, self.root):
                place.mkdir(self._folder_mode, parents=True, exist_ok=True)
            if not self.root.is_dir():
                raise NotADirectoryError
            if (known := self.identity()) is not None:
                return known
            self._replace(self.root / MARKER, MARKER_TEXT.format(id=random_suffix()).encode(), over=True)
        identity = self.identity()
        if identity is None:
            raise StorageError("What is written to the store's folder cannot be read back.")
        return identity

    def check_writable(self) -> None:
        """:raises StorageError: if nothing could be written here"""
        place = next(folder for folder in (self.root, *self.root.parents) if folder.exists())
        if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
            raise StorageError(
                "The store's folder cannot be written to.",
                hint="Check its permissions; `scrubjay folders add --read-only` needs none.",
            )

    # --- reading ---

    def walk(self) -> Walk:
        """Every Markdown file with its stamp. A subfolder with a marker belongs to another store."""
        files: dict[str, str] = {}
        refused: dict[str, str] = {}
        complete = True
        rest = [(str(self.root), "")]
        while rest:
            folder, prefix = rest.pop()
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        if entry.name.startswith("."):
                            _clear_draft(entry)
                        elif entry.is_dir(follow_symlinks=False):
                            if not os.path.lexists(os.path.join(entry.path, MARKER)):
                                rest.append((entry.path, f"{prefix}{entry.name}/"))
                        elif entry.name.lower().endswith(SUFFIX) and entry.name.lower() != SUFFIX:
                            _take(entry, f"{prefix}{entry.name}", files, refused)
            except FileNotFoundError:  # it was removed meanwhile
                complete = complete and folder != str(self.root)
            except OSError:
                complete = False
        return Walk(files=files, refused=refused, complete=complete)

    def stamp(self, name: str) -> str | None:
        """A file's current stamp; None if it does not exist.

        :raises FileDamaged: if it is something we skip
        """
        place = self._place(name)
        if place is None:
            return None
        try:
            about = os.lstat(place)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:
            raise FileDamaged("It cannot be read.", hint="Check its permissions.") from None
        if (why := _reason_to_refuse(about)) is not None:
            raise FileDamaged(why)
        return stamp_of(about)

    def read(self, name: str) -> Bytes | None:
        """A file's bytes; None if it does not exist.

        :raises FileDamaged: if it is skipped, or cannot be read
        """
        place = self._place(name)
        if place is None:
            return None
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        try:
            with os.fdopen(os.open(place, flags), "rb") as file:
                about = os.fstat(file.fileno())
                if (why := _reason_to_refuse(about)) is not None:
                    raise FileDamaged(why)
                data = file.read(MAX_BYTES + 1)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            why = "It is a link." if error.errno == errno.ELOOP else "It cannot be read."
            raise FileDamaged(why) from None
        if len(data) > MAX_BYTES:
            raise FileDamaged(TOO_LARGE)
        return Bytes(data=data, stamp=believable_stamp(about), modified_at=datetime.fromtimestamp(about.st_mtime, UTC))

    # --- writing ---

    def write(self, name: str, data: bytes, *, over: bool) -> str:
        """Write a file atomically and return its stamp. Without `over` an existing file is not replaced.

        :raises FileExistsError: if it exists and `over` is not given
        :raises StorageError: if it cannot be written
        """
        self.prepare()
        place = self.root.joinpath(*name.split("/"))
        with failures():
            self._make_folders(place.parent)
            if self._place(name) is None:
                raise StorageError("A file's folder is a link to somewhere else.")
            self._replace(place, data, over=over)
            return believable_stamp(os.lstat(place))

    def remove(self, name: str) -> None:
        """Remove a file, and the folders that this leaves empty. A missing file is not an error.

        :raises StorageError: if it cannot be removed
        """
        place = self._place(name)
        if place is None:
            return
        with failures():
            with suppress(FileNotFoundError, NotADirectoryError):
                place.unlink()
                sync_folder(place.parent)
            for folder in place.parents:
                if folder == self.root or not folder.is_relative_to(self.root):
                    break
                try:
                    folder.rmdir()
                except OSError:  # it is not empty
                    break

    def _place(self, name: str) -> Path | None:
        """Where a file is; None if any folder on the way does not exist or is not our own.

        By ancestry: the path must resolve to itself.
        """
        place = self.root.joinpath(*name.split("/"))
        if ".." in place.parts or not place.is_relative_to(self.root):
            return None
        return place if os.path.realpath(place.parent) == str(place.parent) else None

    def _make_folders(self, folder: Path) -> None:
        missing = [place for place in (folder, *folder.parents) if place != self.root and not os.path.lexists(place)]
        for place in reversed([place for place in missing if place.is_relative_to(self.root)]):
            if os.path.realpath(place.parent) != str(place.parent):
                raise StorageError("A file's folder is a link to somewhere else.")
            place.mkdir(self._folder_mode, exist_ok=True)
            sync_folder(place.parent)

    def _replace(self, place: Path, data: bytes, *, over: bool) -> None:
        draft = place.with_name(f"{DRAFT}{random_suffix()}")
        replace_file(place, data, mode=self._file_mode, draft=draft, put=os.replace if over else _publish)


TOO_LARGE = f"It is too large (maximum {MAX_BYTES:,} bytes)."


def stamp_of(about: os.stat_result) -> str:
    return f"{about.st_mtime_ns}.{about.st_ctime_ns}.{about.st_size}.{about.st_ino}"


def believable_stamp(about: os.stat_result) -> str:
    """The stamp, if another change would have a different one; a file changed just now may change again unnoticed."""
    age = time.time_ns() - max(about.st_mtime_ns, about.st_ctime_ns)
    return stamp_of(about) if age > (SETTLED if about.st_mtime_ns % 10**9 else SETTLED_IN_SECONDS) else ""


@contextmanager
def failures() -> Iterator[None]:
    """Turns system errors in the block into ours; FileExistsError is left to the caller."""
    try:
        yield
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageFull("No space is left on the disk of the store's folder.") from error
        raise StorageError("The store's folder cannot be written to.", hint="Check its permissions.") from error


def _take(entry: os.DirEntry[str], name: str, files: dict[str, str], refused: dict[str, str]) -> None:
    try:
        about = entry.stat(follow_symlinks=False)
        name.encode()
    except FileNotFoundError:
        return
    except UnicodeEncodeError:
        refused[name.encode("utf-8", "replace").decode()] = "Its name is not valid text."
        return
    except OSError:
        refused[name] = "It cannot be read."
        return
    why = _reason_to_refuse(about)
    if why is None:
        files[name] = stamp_of(about)
    else:
        refused[name] = why


def _reason_to_refuse(about: os.stat_result) -> str | None:
    if stat.S_ISLNK(about.st_mode):
        return "It is a link."
    if not stat.S_ISREG(about.st_mode):
        return "It is not a regular file."
    if about.st_nlink > 1:
        return "It is a hard link."
    return TOO_LARGE if about.st_size > MAX_BYTES else None


def _clear_draft(entry: os.DirEntry[str]) -> None:
    """Remove what a killed process left behind from a write."""
    if entry.name.startswith(DRAFT):
        with suppress(OSError):
            if time.time() - entry.stat(follow_symlinks=False).st_mtime > OLD_DRAFT_SECONDS:
                os.unlink(entry.path)


def _publish(draft: Path, place: Path) -> None:
    try:
        os.link(draft, place)  # unlike a rename, never replaces a file created meanwhile
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if os.path.lexists(place):
            raise FileExistsError from None
        draft.rename(place)


LOOK_AGAIN_MS = 5_000  # for folders that were added or created meanwhile


class Watcher:
    """A thread that calls `changed` with the names of the folders that changed."""

    def __init__(self, folders: Callable[[], Mapping[str, Path]], changed: Callable[[str], None]) -> None:
        self._folders = folders
        self._changed = changed
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="folders", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join(timeout=2)

    def _run(self) -> None:
        while not self._stop.is_set():
            folders = {name: path for name, path in self._folders().items() if path.is_dir()}
            if folders:
                self._watch(folders)
            else:
                self._stop.wait(LOOK_AGAIN_MS / 1000)

    def _watch(self, folders: Mapping[str, Path]) -> None:
        """Until there are other folders to watch."""
        from watchfiles import watch  # only servers need it

        for changes in watch(
            *folders.values(),
            watch_filter=lambda _change, path: path.endswith(".md"),
            stop_event=self._stop,
            rust_timeout=LOOK_AGAIN_MS,
            yield_on_timeout=True,
            raise_interrupt=False,
        ):
            places = [Path(path) for _, path in changes]
            for name, root in folders.items():
                if any(place.is_relative_to(root) for place in places):
                    self._changed(name)
            if {name: path for name, path in self._folders().items() if path.is_dir()} != folders:
                return
