"""Paths of memories: slugs between slashes, the same on every file system.

    project/api/rate-limits      section project/api, memory rate-limits
    rate-limits                  a memory at the root

No path accepted here can leave its folder, differ only in case, or be a name that Windows reserves.
"""

from __future__ import annotations

import re
from hashlib import sha256

from scrubjay.errors import InvalidInput
from scrubjay.text.letters import normalise

MAX_SEGMENT = 100
MAX_PATH = 400
SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
RESERVED = "index"  # the name that other programs use for a section's own file
DEVICES = frozenset({"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))})


def checked_path(text: object, field: str = "path") -> str:
    """A memory's path, without spaces around segments and without empty ones.

    :raises InvalidInput: with what a path looks like
    """
    path = _check_part(text, field)
    if path.rpartition("/")[2] == RESERVED:
        raise InvalidInput(f"Invalid {field}: {RESERVED} is a reserved name.", field=field)
    return path


def checked_section(text: object) -> str:
    """A section's path; as :func:`checked_path`, but without reserved names."""
    return _check_part(text, "category")


def _check_part(text: object, field: str) -> str:
    if not isinstance(text, str):
        raise InvalidInput(f"{field} must be text.", field=field)
    if len(text) > 2 * MAX_PATH:  # before any work on it
        raise InvalidInput(f"Invalid {field}: it is too long (maximum {MAX_PATH} characters).", field=field)
    if text.lstrip()[:1] in ("/", "\\"):
        raise _invalid(field, "it must not begin with a slash")
    segments = [segment for part in text.split("/") if (segment := part.strip())]
    path = "/".join(segments)
    if not segments or len(path) > MAX_PATH:
        raise _invalid(field, f"it must have 1 to {MAX_PATH} characters")
    for segment in segments:
        if not SLUG.fullmatch(segment):
            raise _invalid(field, "segments may only have lower-case letters, digits and single hyphens")
        if len(segment) > MAX_SEGMENT:
            raise _invalid(field, f"a segment may have at most {MAX_SEGMENT} characters")
        if segment in DEVICES:
            raise _invalid(field, f"{segment} is a name that Windows reserves")
    return path


def _invalid(field: str, why: str) -> InvalidInput:
    return InvalidInput(f"Invalid {field}: {why}.", hint="Write it like project/api/rate-limits.", field=field)


def to_slug(text: str) -> str:
    """Lower case, spaces and underscores as single hyphens, nothing else; may be empty."""
    plain = normalise("NFKD", text).lower()
    kept = re.sub(r"[^a-z0-9-]", "", re.sub(r"[\s_]+", "-", plain))
    return re.sub(r"-+", "-", kept).strip("-")[:MAX_SEGMENT].strip("-")


def path_of_file(name: str) -> str:
    """The path of a memory whose file has this name, whatever people called it."""
    segments = [_segment(segment) for segment in name.removesuffix(name[-3:]).split("/")]
    if segments[-1] == RESERVED:
        segments[-1] += "-file"
    return shorten(segments)


def file_of_path(path: str) -> str:
    """The file name for a path, safe wherever the path came from."""
    return shorten([_segment(segment) for segment in path.split("/")]) + ".md"


UNWRITABLE = re.compile(r'[\x00-\x1f\x7f-\x9f<>:"/\\|?*#^\[\]`]')  # in a file name on some system, or in a [[link]]
LONGEST_NAME, MOST_BYTES = 60, 180


def readable(text: str) -> str:
    """Words of a text, in any script, as a name that every file system accepts; may be empty."""
    words = UNWRITABLE.sub(" ", normalise("NFC", text[:400])).replace("...", " ").split()
    name = "".join(letter for letter in " ".join(words) if letter.isprintable())
    if len(name) > LONGEST_NAME or len(name.encode()) > MOST_BYTES:
        cut = name[:LONGEST_NAME].encode()[:MOST_BYTES].decode(errors="ignore")
        name = cut.rpartition(" ")[0] or cut
    name = name.strip(" .-_~")
    return "" if to_slug(name) in (*DEVICES, RESERVED) else name


def shorten(segments: list[str]) -> str:
    path = "/".join(segments)
    return path if len(path) <= MAX_PATH - 5 else f"deep/{segments[-1]}"  # room for a number


def _segment(text: str) -> str:
    slug = to_slug(text)
    if not slug:
        return "t" + sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{slug}-file" if slug in DEVICES else slug


def section_of(path: str) -> str:
    return path.rpartition("/")[0]


def sections_above(path: str) -> list[str]:
    """Every section that contains a path, outermost first."""
    segments = path.split("/")[:-1]
    return ["/".join(segments[: n + 1]) for n in range(len(segments))]
