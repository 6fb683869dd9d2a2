"""What can be read by address: `memory://brief`, `memory://space/NAME`, `memory://ID`, the skill; and names that are
begun."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from scrubjay.clients.guidance import skill
from scrubjay.dialects.agent import replies
from scrubjay.dialects.base import Resource, Resources
from scrubjay.errors import InvalidInput
from scrubjay.values.memory import AT_HAND
from scrubjay.values.search import MAX_LIMIT, Filter

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine

ROOT = "memory://"
PLAIN, MARKDOWN = "text/plain", "text/markdown"
BUDGET = 8_000  # tokens of a memory, or of a space's newest ones
SHOWN = 100  # of a space
SKILL = Resource("skill://scrubjay/SKILL.md", "skill", "When to recall and what to remember, at length", MARKDOWN)
BRIEF = Resource(f"{ROOT}brief", "brief", "What to know at the start of a session", PLAIN)
TEMPLATES = (
    Resource(f"{ROOT}{{id}}", "memory", "A memory, whole", PLAIN),
    Resource(f"{ROOT}space/{{name}}", "space", "The newest memories of a space", PLAIN),
)


def list_resources(engine: Engine) -> list[Resource]:
    return [
        BRIEF,
        SKILL,
        *(
            Resource(f"{ROOT}space/{quote(one.name, safe='')}", f"space {one.name}", f"{one.memories} memories", PLAIN)
            for one in engine.known_spaces.list()
        ),
    ]


def read(engine: Engine, uri: str) -> tuple[str, str]:
    """:raises InvalidInput: if it is not one of our addresses :raises NotFound: if there is nothing"""
    if uri == SKILL.uri:
        return MARKDOWN, skill()
    if not uri.startswith(ROOT):
        hint = f"Addresses are {ROOT}brief, {ROOT}ID and {ROOT}space/NAME."
        raise InvalidInput(f"Unknown address {uri[:100]!r}. {hint}", field="uri")
    name = unquote(uri.removeprefix(ROOT)).rstrip("/")
    if name == "brief":
        reply = replies.brief_reply(engine.brief(), engine.now())
    elif name.startswith("space/"):
        space = engine.known_spaces.get(name.removeprefix("space/")).name
        page = engine.bound_to(spaces=(space,), only=True).list(limit=SHOWN)
        engine.count_reads(page.memories, used=False)
        reply = replies.list_reply(page.memories, BUDGET, engine.now(), engine.conflicts.doubts(page.memories))
    else:
        memory = engine.get(name)
        engine.count_reads([memory])
        reply = replies.one(memory, BUDGET, engine.now(), engine.conflicts.doubts([memory]))
    return PLAIN, reply.text


def complete(engine: Engine, name: str, begun: str, _known: dict[str, str]) -> list[str]:
    """Names that begin so: tags and topics, the most used first; spaces; ids of the newest memories."""
    start = begun.casefold()
    return [one for one in _names(engine, name) if one.casefold().startswith(start)]


def _names(engine: Engine, name: str) -> list[str]:
    if name == "name":
        return [one.name for one in engine.known_spaces.list()]
    newest = engine.records.list(Filter(states=AT_HAND), engine.audience(Filter()), now=engine.now(), limit=MAX_LIMIT)
    if name == "id":
        return [memory.id for memory in newest]
    found: Counter[str] = Counter()
    for memory in newest:
        found.update(memory.tags if name == "tag" else [memory.topic] if name == "topic" and memory.topic else ())
    return [one for one, _ in found.most_common()]


RESOURCES = Resources(templates=TEMPLATES, listed=list_resources, read=read, complete=complete)
