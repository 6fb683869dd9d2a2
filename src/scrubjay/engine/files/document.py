"""A memory as the document that its file holds, and back: what a file is called, and what it says.

    project/api/limits.md                        at the path that a caller chose
    inbox/User moved to Austin.md                where we made the path, the file has the memory's words for a name
    decisions/auth/Use sessions.md
    inbox/User moved to Austin (4k2j9x).md       if that name was taken

People may call a file anything, and a file keeps its name as long as its memory stays at its path. Text, tags, phrases,
expiry and title are the file's to say; the rest is written for people, and for finding a memory again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import islice
from typing import Any

from scrubjay.engine import access
from scrubjay.engine.store import intake
from scrubjay.errors import InvalidInput
from scrubjay.folders.markdown import Document, heading_in, tags_in
from scrubjay.folders.paths import file_of_path, path_of_file, readable, section_of
from scrubjay.stores.promises.files import File
from scrubjay.stores.promises.memories import Reads
from scrubjay.values.frozen import replace
from scrubjay.values.memory import AT_HAND, AccessLevel, Kind, LinkKind, Memory
from scrubjay.values.times import iso


def document_of(memory: Memory, reads: Reads, old: Document | None, shown: Callable[[Memory], bool]) -> Document:
    """What a memory's file is to say; front matter that is not ours stays as it was. It names only what is `shown`."""
    links = [link for link in reads.history.links([memory.id]) if link.kind is not LinkKind.MAY_OUTDATE]
    ends = {link.target for link in links} | ({memory.superseded_by} if memory.superseded_by else set())
    found = reads.get(sorted(ends), access.EVERYTHING)
    hidden = {one.id for one in found if not shown(one)}
    paths = {
        one.id: link_to(one, reads)
        for one in found
        if one.space == memory.space and one.state in AT_HAND and one.id not in hidden
    }
    successor = None if memory.superseded_by in hidden else memory.superseded_by
    by_kind: dict[str, list[str]] = {}
    for link in links:
        if link.source == memory.id and link.state == "open" and link.target in paths:
            by_kind.setdefault(str(link.kind), []).append(paths[link.target])
    return Document(
        content=memory.text,
        created_at=memory.created_at,
        updated_at=memory.updated_at,
        expires_at=memory.expires_at,
        tags=memory.tags,
        also=memory.also,
        source=written_by(memory),
        id=memory.id,
        type=str(memory.kind),
        topic=memory.topic,
        title=memory.title,
        category=str(memory.category),
        outcome=_read_text(memory, "outcome"),
        outcome_reason=_read_text(memory, "reason"),
        access_level=None if memory.access_level is AccessLevel.SHARED else str(memory.access_level),
        superseded_by=paths.get(successor or "", successor),
        links=by_kind,
        above="" if old is None else old.above,
        others="" if old is None else old.others,
    )


def _read_text(memory: Memory, part: str) -> str | None:
    """How a decision went, or why."""
    value = memory.detail.get(part) if memory.kind is Kind.DECISION and memory.detail.get("outcome") else None
    return None if not value else str(value)


def written_by(memory: Memory) -> str:
    """Cortex's `source`: through what a memory came in."""
    provenance = memory.provenance
    if provenance.transport == "file":
        return provenance.client
    return "mcp" if provenance.dialect else provenance.transport


def said_otherwise(document: Document, memory: Memory) -> dict[str, Any]:
    """What a file says that its memory does not: files are the truth for text, tags, phrases and expiry.

    Times in files have milliseconds, and line ends are those of Unix.
    """
    said: dict[str, Any] = {}
    if document.content != memory.text.replace("\r\n", "\n"):
        said["content"] = document.content
    if document.plain:
        return {**said, **_said_in_text(document, memory)}
    if intake.check_tags(document.tags) != memory.tags:
        said["tags"] = document.tags
    if (also := intake.check_phrases(document.also)) != memory.also:
        said["also"] = also
    if _iso(document.expires_at) != _iso(memory.expires_at):
        said["expires_at"] = document.expires_at
    return said


def _said_in_text(document: Document, memory: Memory) -> dict[str, Any]:
    """Tags and title of a file without front matter: what its text says otherwise than the memory's text does."""
    said: dict[str, Any] = {}
    before = tags_in(memory.text)
    if document.tags != before:
        kept = [tag for tag in memory.tags if tag not in before]
        said["tags"] = (*document.tags, *kept)[: intake.MAX_TAGS]
    if document.title is not None and document.title != heading_in(memory.text):
        said["title"] = document.title
    return said


def parts_of(document: Document, known: Memory | None = None) -> dict[str, Any]:
    """Kind, text and detail: the file of a decision holds the decision, an empty line and its reasoning, that of a
    checkpoint the summary, an empty line and the next steps."""
    kind = {"decision": Kind.DECISION, "checkpoint": Kind.CHECKPOINT}.get(document.type or "", Kind.MEMORY)
    if kind is Kind.MEMORY or (kind is Kind.DECISION and document.topic is None):
        return {"content": document.content}
    name = "reasoning" if kind is Kind.DECISION else "next_steps"
    old = f"\n\n{known.detail.get(name)}" if known is not None and known.detail.get(name) else None
    if old is not None and document.content.endswith(old):
        content, more = document.content.removesuffix(old), old.removeprefix("\n\n")
    else:
        content, _, more = document.content.partition("\n\n")
    return {
        "kind": kind,
        "content": content,
        "topic": document.topic if kind is Kind.DECISION else None,
        "detail": {name: more} if more.strip() else {},
    }


def level_of(text: str | None) -> AccessLevel:
    try:
        return AccessLevel.SHARED if text is None else AccessLevel(text)
    except ValueError:
        raise InvalidInput("access_level must be private, shared or public.") from None


def _iso(at: datetime | None) -> str | None:
    return None if at is None else iso(at)


# --- names ------------------------------------------------------------------------------------------------------------


def possible_names(memory: Memory) -> Iterator[str]:
    """Names for a memory's file, the best one first."""
    plain = file_of_path(memory.path)
    if intake.is_generated_path(memory):
        chosen = memory.kind is Kind.MEMORY and memory.title != intake.title_of(memory.content)
        words = readable(memory.title if chosen else memory.content)
        if words:
            section = section_of(plain)
            yield f"{section}/{words}.md"
            yield f"{section}/{words} ({intake.path_tail(memory.id)}).md"
    yield plain
    for number in range(2, 1000):
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
