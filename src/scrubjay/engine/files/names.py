"""What the files of memories are called.

    project/api/limits.md                        at the path that a caller chose
    inbox/User moved to Austin.md                where we made the path, the file has the memory's words for a name
    decisions/auth/Use sessions.md
    inbox/User moved to Austin (4k2j9x).md       if that name was taken

People may call a file anything, and a file keeps its name as long as its memory stays at its path.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from scrubjay.engine.store import intake
from scrubjay.folders.paths import file_of_path, path_of_file, readable, section_of
from scrubjay.stores.promises.files import File
from scrubjay.stores.promises.memories import Reads
from scrubjay.values.frozen import replace
from scrubjay.values.memory import Kind, Memory

MOST = 1000  # names that are tried


def possible_names(memory: Memory) -> Iterator[str]:
    """Names for a memory's file, the best one first."""
    plain = file_of_path(memory.path)
    if intake.path_was_made(memory):
        chosen = memory.kind is Kind.MEMORY and memory.title != intake.title_of(memory.content)
        words = readable(memory.title if chosen else memory.content)
        if words:
            section = section_of(plain)
            yield f"{section}/{words}.md"
            yield f"{section}/{words} ({intake.tail_of(memory.id)}).md"
    yield plain
    for number in range(2, MOST):
        yield f"{plain.removesuffix('.md')}-{number}.md"


def kept_name(file: File, memory: Memory) -> str | None:
    """The name that a memory's file has and keeps; None if it is to have another."""
    return file.name if file.name and file.agreed_path in ("", memory.path) else None


def path_found(name: str, memory: Memory) -> str:
    """Where a memory lies that came as a file with its id: where it did elsewhere, if we named the file there."""
    made = replace(memory, path=intake.path_of(memory, memory.id))
    return made.path if name in islice(possible_names(made), 2) else path_of_file(name)


def link_to(memory: Memory, reads: Reads) -> str:
    """What a [[link]] in another file of the folder calls a memory: the name of its file, which programs that show
    such folders look for."""
    file = reads.files.of(memory.id)
    if file is None:
        return memory.path
    return (kept_name(file, memory) or next(possible_names(memory)))[:-3]
