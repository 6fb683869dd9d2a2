"""Files of other programs: read, compared, backed up and replaced in one step, so that nothing of theirs is lost."""

from __future__ import annotations

import difflib
import os
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path

from scrubjay.errors import Conflict, InvalidInput
from scrubjay.machine.paths import replace_file

BACKUP = ".scrubjay-backup"


@dataclass(frozen=True, slots=True)
class FileEdit:
    """What a file says, and what it should say; `after` is None for a file of ours that goes."""

    file: Path
    before: str | None
    after: str | None
    copied: bool = True  # first, since there is something of the user's in it; the first copy stays
    restored: bool = False  # to what it was before us, so that its copy goes

    @property
    def needed(self) -> bool:
        return self.before != self.after

    def diff(self) -> str:
        old, new = ((text or "").splitlines(keepends=True) for text in (self.before, self.after))
        was, will_be = ("/dev/null" if text is None else str(self.file) for text in (self.before, self.after))
        lines = difflib.unified_diff(old, new, was, will_be)
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)

    def make(self) -> Path | None:
        """Write it, after a copy of what was there; the result is the copy of the user's file, if there is one.

        :raises Conflict: if the file has changed meanwhile
        :raises InvalidInput: if it cannot be written
        """
        target = follow_links(self.file)
        try:
            if contents(self.file) != self.before:
                raise Conflict(f"{self.file} has just been changed by another program.", hint="Run this again.")
            copy = copy_of(self.file)
            if self.before is not None and self.copied and not copy.exists():
                shutil.copy2(target, copy)
            if self.after is None:
                target.unlink()
            elif self.needed:
                mode = stat.S_IMODE(target.stat().st_mode) if self.before is not None else 0o666 & ~umask()
                target.parent.mkdir(parents=True, exist_ok=True)
                replace_file(target, self.after.encode(), mode=mode)
                os.chmod(target, mode)
            if self.restored:
                copy.unlink(missing_ok=True)
            if self.after is None:
                tidy(target.parent)
        except OSError as error:
            raise InvalidInput(f"{self.file} cannot be written: {error.strerror}.") from None
        return copy if copy.exists() else None


def copy_of(file: Path) -> Path:
    """Where the user's own version of a file is kept.

    :raises InvalidInput: if that name is a link, which a repository may have brought: it could lead anywhere
    """
    target = follow_links(file)
    copy = target.with_name(target.name + BACKUP)
    if copy.is_symlink():
        raise InvalidInput(f"{copy} is a link.", hint="Remove it: a copy of the file next to it would be kept there.")
    return copy


def tidy(folder: Path) -> None:
    """Remove folders that have become empty, up to the one the user is in and the home folder."""
    here, home = Path.cwd(), Path.home().resolve()
    stays = {here, *here.parents, home, *home.parents}
    while folder not in stays:
        try:
            folder.rmdir()
        except OSError:  # there is something in it
            return
        folder = folder.parent


def contents(file: Path) -> str | None:
    """The file's text; None if there is none.

    :raises InvalidInput: if it cannot be read
    """
    try:
        return follow_links(file).read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{file} cannot be read: byte {error.start} is not UTF-8. It was left as it is.") from None
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror}. It was left as it is.") from None


def follow_links(file: Path) -> Path:
    """The file that a link leads to: people keep their settings in a repository and link to them.

    :raises InvalidInput: if links lead in a circle
    """
    try:
        return file.resolve()
    except (OSError, RuntimeError):
        raise InvalidInput(f"{file} cannot be read: its links lead in a circle.") from None


def umask() -> int:
    current = os.umask(0o077)
    os.umask(current)
    return current
