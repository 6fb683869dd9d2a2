"""Text to record: refuse what cannot be kept, fill in what was left out.

Nothing here changes the text: what a caller stores is what every later reader gets, to the code point.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields as dataclass_fields
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from scrubjay.engine import access
from scrubjay.errors import Conflict, Duplicate, InvalidInput, QuotaExceeded, Unprocessable
from scrubjay.folders.paths import MAX_PATH
from scrubjay.text.letters import is_blank, normalise, slug, topic_key
from scrubjay.values import plain_json
from scrubjay.values.callers import Audience, Caller, Provenance, Scope, Sight
from scrubjay.values.frozen import dataclass
from scrubjay.values.memory import (
    MAX_CONTENT,
    MAX_PHRASE,
    MAX_PHRASES,
    AccessLevel,
    Category,
    Context,
    Kind,
    Memory,
    NewMemory,
    Source,
    State,
    Status,
    new_id,
)
from scrubjay.values.search import MAX_LIMIT, MAX_WORDING, MAX_WORDINGS, Filter, Query
from scrubjay.values.spelling import missing_field, nearest
from scrubjay.values.store import Conversation

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine
    from scrubjay.stores.promises.memories import Reads, Transaction

MAX_TITLE = 200
MAX_TOPIC = 500
MAX_TAGS = 20
MAX_TAG = 100
MAX_NAMED = 1_000  # ids or tags of a filter
MAX_NAME = 256  # ids of users, conversations and sessions
MAX_METADATA = 65_536  # bytes of JSON
MAX_DETAIL = MAX_METADATA + 4 * MAX_CONTENT  # it holds a part of the text
CLOCK_SKEW = timedelta(minutes=10)  # how far ahead another machine's clock may run
SPACE = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


def admit(engine: Engine, new: NewMemory, *, id: str | None = None, caller: Caller | None = None) -> Memory:
    """Make the memory that what a caller hands in becomes, in the caller's first space.

    Pass `caller` when admitting a batch: resolving it reads a file, which says which spaces are read-only.

    :raises Forbidden: if the caller may not write there
    """
    return in_conversation(engine, admit_unread(engine, new, id=id, caller=caller), new)


def admit_unread(engine: Engine, new: NewMemory, *, id: str | None = None, caller: Caller | None = None) -> Memory:
    """Do what `admit` does as far as it needs no read of the store; `in_conversation` does the rest."""
    space, caller = engine.spaces[0], caller or engine.caller
    access.check_store(caller, space)
    user = access.owner_of_new(caller, new.user_id)
    memory = build_memory(
        new, id=id or new_id(), space=space, user=user, provenance=engine.provenance, now=engine.now()
    )
    return check_trust(engine, memory)


def in_conversation(engine: Engine, memory: Memory, new: NewMemory) -> Memory:
    """Make what is stored in a private conversation its user's, and private, unless another user was named."""
    talk = private_conversation(engine, memory.space, new.conversation_id)
    if talk is None:
        return memory
    user = access.owner_of_new(engine.caller, talk.user_id if new.user_id is None else new.user_id)
    level = AccessLevel.PRIVATE if talk.user_id == user else memory.access_level
    return replace(memory, access_level=level, context=replace(memory.context, user_id=user))


def private_conversation(engine: Engine, space: str, id: str | None) -> Conversation | None:
    """Find the private conversation of this id; for others than its user and owners there is none."""
    check_name(id, "conversation_id")
    found = None if id is None else engine.records.conversations.get(space, id)
    if found is None or found.access_level is not AccessLevel.PRIVATE:
        return None
    return found if access.sees_conversation(engine.caller, found) else None


def check_trust(engine: Engine, memory: Memory) -> Memory:
    """Flag, mask or refuse, as the policy says, what reads like a secret or like instructions to a model."""
    # Only what writes needs it; as a part of `engine` it would be looked for there each time.
    from scrubjay.engine.trust import check_trust, policy

    parts = engine.parts
    checked = check_trust(memory, secrets=policy(parts.secrets), instructions=policy(parts.instructions))
    return checked if checked.content == memory.content else _regenerate_derived(memory, checked)


def _regenerate_derived(memory: Memory, masked: Memory) -> Memory:
    """Recompute title and path after masking."""
    of_text = memory.kind is Kind.MEMORY and is_generated_path(memory)
    return replace(
        masked,
        title=title_of(masked.content) if memory.title == title_of(memory.content) else masked.title,
        path=path_of(masked, masked.id) if of_text else memory.path,
    )


def check_quota(engine: Engine, reads: Reads, *memories: Memory) -> None:
    """:raises QuotaExceeded: if the user of one of them may not keep that many more in its space"""
    if not (quota := engine.parts.quota):
        return

    new = Counter((one.context.user_id, one.space) for one in memories if one.status is not Status.DELETED)
    for (user, space), count in new.items():
        everyone = Audience("", (Scope(space, Sight.ALL),))
        if reads.statistics.count_of_user(user, everyone) + count > quota:
            raise QuotaExceeded(
                f"The limit is reached: user {user} may have {quota:,} memories in space {space}.",
                hint="Forget some, or ask for a higher quota.",
            )


def same_words(reads: Reads, memory: Memory, audience: Audience, now: datetime) -> list[Memory]:
    """Other current memories with the words of this one, in its space and of its user, oldest first."""
    return [
        one
        for one in reads.history.same_text(fingerprint(memory), audience)
        if one.id != memory.id and one.kind is memory.kind and one.state is State.ACTIVE and not one.expired(now)
    ]


def check_unique(engine: Engine, tx: Transaction, fingerprint: bytes) -> None:
    """:raises Duplicate: if its user has the same words in this space already"""
    for same in tx.history.same_text(fingerprint, access.EVERYTHING):
        if same.superseded_by is None and not same.expired(engine.now()):
            archived = same.status is Status.ARCHIVED
            raise Duplicate(
                f"The same text is already {'archived' if archived else 'stored'} as {same.id}.",
                hint="Restore that one instead." if archived else "Update that one instead.",
                memory_id=same.id,
            )


def build_memory(
    new: NewMemory, *, id: str, space: str, user: str, provenance: Provenance, now: datetime, held: bool = False
) -> Memory:
    """A complete memory from what a caller handed in, or, if `held`, from what the store holds already.

    :raises InvalidInput: naming the field that cannot be kept; then nothing is
    """
    check_text(new.content, "content")
    if new.path is not None and not held:
        check_path(new.path)
    if new.title is not None:
        check_text(new.title, "title", maximum=MAX_TITLE)
    check_share(new.confidence, "confidence")
    if new.importance is not None:
        check_share(new.importance, "importance")
    for name, value in (("user_id", user), ("conversation_id", new.conversation_id), ("session_id", new.session_id)):
        check_name(value, name)
    check_json(new.metadata, "metadata", large=held)
    check_json(new.detail, "detail", maximum=MAX_DETAIL, large=held)
    if new.topic is not None:
        check_name(new.topic, "topic", maximum=MAX_TOPIC)
    created = check_time(new.created_at, "created_at") or now
    if created > now + CLOCK_SKEW:
        raise InvalidInput("created_at is in the future.", field="created_at")
    memory = Memory(
        id=id,
        space=space,
        kind=new.kind,
        content=new.content,
        title=new.title or title_of(new.topic or new.content),
        path=new.path or path_of(new, id),
        topic=new.topic,
        category=new.category or Category.FACT,
        tags=check_tags(new.tags),
        also=check_phrases(new.also),
        importance=0.5 if new.importance is None else new.importance,
        confidence=new.confidence,
        source=new.source,
        access_level=new.access_level,
        context=Context(user_id=user, conversation_id=new.conversation_id, session_id=new.session_id),
        metadata=dict(new.metadata),
        detail=dict(new.detail),
        provenance=provenance,
        expires_at=check_time(new.expires_at, "expires_at"),
        valid_from=check_time(new.valid_from, "valid_from"),
        valid_until=check_time(new.valid_until, "valid_until"),
        created_at=created,
        updated_at=now if new.created_at is None else max(created, now),
        accessed_at=created,
    )
    if len(memory.text) > MAX_CONTENT:
        raise InvalidInput(
            f"The text and its {'next_steps' if new.kind is Kind.CHECKPOINT else 'reasoning'} together have "
            f"{len(memory.text):,} characters (maximum {MAX_CONTENT:,}).",
            field="content",
        )
    return memory


def fingerprint(memory: Memory) -> bytes:
    """The same for texts that differ only in case, width or white space, within one space and user.

    The separators keep ("ab", "c") and ("a", "bc") apart.
    """
    plain = " ".join(normalise("NFKC", memory.text).casefold().split())
    return sha256(f"{memory.space}\0{memory.context.user_id}\0{plain}".encode()).digest()


# --- what callers may hand in ----------------------------------------------------------------------------------------

ENUMS: dict[str, type[StrEnum]] = {
    "kind": Kind,
    "category": Category,
    "source": Source,
    "access_level": AccessLevel,
}
FIELDS = tuple(entry.name for entry in dataclass_fields(NewMemory))
CHANGEABLE = (
    "content", "title", "tags", "category", "importance", "confidence", "access_level", "expires_at", "metadata",
    "valid_from", "valid_until", "verified_at", "also",
)  # fmt: skip


def new_memory(given: NewMemory | Mapping[str, Any] | str, fields: Mapping[str, Any]) -> NewMemory:
    """What the library and the command line take: a value, a mapping, or a text with keyword fields."""
    if isinstance(given, NewMemory):
        return given
    named = dict(given) if isinstance(given, Mapping) else {"content": given}
    named.update(fields)
    if "content" not in named:
        raise InvalidInput(missing_field("content", map(str, named), FIELDS), field="content")
    check_known(named, FIELDS)
    return NewMemory(**{name: convert_value(name, value) for name, value in named.items()})


def revision(
    known: Memory, fields: Mapping[str, Any], merge: Merge, tags: TagChange | None, *, held: bool = False
) -> dict[str, Any]:
    """The fields that a change really changes, checked; if `held`, they are of a former version.

    :raises InvalidInput: if there are none, or one that cannot be kept
    :raises Unprocessable: if the text is not this memory's to edit
    """
    if known.status is Status.ARCHIVED:
        raise Conflict(f"Memory {known.id} is archived.", hint="Restore it first.", memory_id=known.id)
    given = {**fields, **({} if tags is None else {"tags": tags.applied(known.tags)})}
    if given.get("also", ()) is None:  # as of who does not name it
        del given["also"]
    changed = changes(given, held=held)
    if "content" in changed:
        if known.kind is not Kind.MEMORY:
            where = " on the same topic" if known.topic else ""
            raise Unprocessable(
                f"The text of a {known.kind} cannot be edited.",
                hint=f"Store a new {known.kind}{where} instead, in scrubjay or mama; it replaces this one.",
            )
        changed["content"] = merge_texts(known.content, changed["content"], merge)
        if changed["content"] == known.content:
            del changed["content"]
    return changed


def changes(given: Mapping[str, Any], *, held: bool = False) -> dict[str, Any]:
    """The fields of an update, checked one by one.

    :raises InvalidInput: if there are none, or one that cannot be changed
    """
    if not given:
        raise InvalidInput("No updates were given.", hint="Provide at least one field to update.")
    check_known(given, CHANGEABLE)
    result = {name: convert_value(name, value) for name, value in given.items()}
    for name, value in result.items():
        if name in ("content", "title"):
            check_text(value, name, maximum=MAX_CONTENT if name == "content" else MAX_TITLE)
        elif name in ("importance", "confidence"):
            check_share(value, name)
        elif name == "tags":
            result[name] = check_tags(value)
        elif name == "metadata":
            check_json(value, name, large=held)
        elif name.endswith(("_at", "_from", "_until")):
            check_time(value, name)
    return result


class Merge(StrEnum):
    """What a new text does to the old one."""

    REPLACE = "replace"
    APPEND = "append"
    PREPEND = "prepend"


def merge_texts(old: str, new: str, merge: Merge) -> str:
    """Joined by one newline, or by nothing where either side already has white space at the joint.

    :raises InvalidInput: if the two together are too long
    """
    if merge is Merge.REPLACE:
        return new
    first, second = (old, new) if merge is Merge.APPEND else (new, old)
    joint = "" if first[-1:].isspace() or second[:1].isspace() else "\n"
    text = f"{first}{joint}{second}"
    check_text(text, "content")
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class TagChange:
    """First replace, then add, then remove."""

    replace: tuple[str, ...] | None = None
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()

    def applied(self, tags: tuple[str, ...]) -> tuple[str, ...]:
        kept = tags if self.replace is None else self.replace
        gone = {tag.strip() for tag in self.remove}
        return check_tags([tag for tag in (*kept, *self.add) if tag.strip() not in gone])


def retitle(memory: Memory, changed: Mapping[str, Any]) -> Memory:
    """A title that was made from the content follows it."""
    made = memory.title == title_of(memory.content)
    title = title_of(changed["content"]) if made and "content" in changed and "title" not in changed else memory.title
    return replace(memory, **{"title": title, **changed})


def query(given: Query | str, options: Mapping[str, Any]) -> Query:
    """:raises InvalidInput: for a blank question or an impossible page"""
    asked = given if isinstance(given, Query) else Query(text=given, **options)
    check_text(asked.text, "query")
    if (also := check_phrases(asked.also, most=MAX_WORDINGS, longest=MAX_WORDING)) != asked.also:
        asked = replace(asked, also=also)
    check_limit(asked.limit, asked.offset)
    check_time(asked.now, "now")
    return asked


def check_limit(limit: object, offset: object = 0) -> None:
    for name, value, least, most in (("limit", limit, 1, MAX_LIMIT), ("offset", offset, 0, 10**9)):
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise InvalidInput(f"{name} must be a whole number from {least} to {most:,}.", field=name)


def convert_value(name: str, value: Any) -> Any:
    if name in ENUMS and value is not None:
        try:
            return ENUMS[name](value)
        except ValueError:
            raise InvalidInput(f"{name} must be one of {', '.join(ENUMS[name])}.", field=name) from None
    if name == "also":
        return check_phrases(value)
    return check_tags(value) if name == "tags" else value


def check_filter(filter: Filter) -> None:
    """:raises InvalidInput: if it names more than a store can be asked for at once"""
    for field in ("ids", "tags"):
        named = len(getattr(filter, field) or ())
        if named > MAX_NAMED:
            raise InvalidInput(f"{field} names too many: {named:,} (maximum {MAX_NAMED:,}).", field=field)


def check_known(given: Mapping[str, Any], known: Sequence[str]) -> None:
    for name in given:
        if name not in known:
            near = nearest(str(name), known)
            hint = f"Did you mean {near}?" if near else f"Known: {', '.join(known)}."
            raise InvalidInput(f"{str(name)[:100]} is not known.", hint=hint, field=str(name)[:100])


# --- what is refused -------------------------------------------------------------------------------------------------


def check_text(text: object, field: str, *, maximum: int = MAX_CONTENT) -> None:
    """:raises InvalidInput: for blank, over-long or unwritable text"""
    if not isinstance(text, str):
        raise InvalidInput(f"{field} must be text.", field=field)
    if len(text) > maximum:
        raise InvalidInput(f"{field} is too long: {len(text):,} characters (maximum {maximum:,}).", field=field)
    if is_blank(text):
        raise InvalidInput(f"{field} must not be empty or blank.", field=field)
    check_writable(text, field)


def check_writable(text: str, field: str) -> None:
    # A lone surrogate is half a character: no client could read the answer that holds it.
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidInput(f"{field} has a lone surrogate at position {error.start}.", field=field) from None


def check_share(value: object, field: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1 or math.isnan(value):
        raise InvalidInput(f"{field} must be a number from 0 to 1.", field=field)


def check_whole(value: object, field: str, *, least: int, most: int = 2**31 - 1) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise InvalidInput(f"{field} must be a whole number from {least} to {most:,}.", field=field)


def check_name(value: str | None, field: str, *, maximum: int = MAX_NAME) -> None:
    if value is None:
        return
    if not isinstance(value, str) or is_blank(value) or len(value) > maximum:
        raise InvalidInput(f"{field} must be 1 to {maximum} characters and not blank.", field=field)
    if not value.isprintable() and any(unicodedata.category(character) in ("Cc", "Cs") for character in value):
        raise InvalidInput(f"{field} must not contain control characters.", field=field)


def check_id(value: object) -> None:
    """:raises InvalidInput: if the value cannot be a memory id"""
    if not isinstance(value, str):
        raise InvalidInput("An id must be text.", field="id")
    check_name(value, "id")


def check_path(path: str) -> None:
    """:raises InvalidInput: for a path that names no place inside its store"""
    check_name(path, "path", maximum=MAX_PATH)
    plain = normalise("NFKC", path)
    if "\\" in plain or re.match("[a-zA-Z]:", plain) or not all(part.strip(" .") for part in plain.split("/")):
        raise InvalidInput(
            "path must stay inside its store.", hint="Write it like project/api/rate-limits.", field="path"
        )


def check_json(value: object, field: str, *, maximum: int = MAX_METADATA, large: bool = False) -> None:
    """:raises InvalidInput: naming the place that no reader could read back; see `plain_json`"""
    if value == {}:
        return
    plain_json.check(value, within=field, large=large)
    try:
        size = len(json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8"))
    except (TypeError, ValueError):
        raise InvalidInput(f"{field} must be plain JSON.", field=field) from None
    if size > maximum:
        raise InvalidInput(f"{field} is too large: {size:,} bytes (maximum {maximum:,}).", field=field)


def check_tags(tags: object) -> tuple[str, ...]:
    """Trimmed, each once, in the order given."""
    if not isinstance(tags, tuple | list) or (tags and not all(isinstance(tag, str) for tag in tags)):
        raise InvalidInput("tags must be a list of strings.", field="tags")
    if not tags:
        return ()
    plain = tuple(dict.fromkeys(tag.strip() for tag in tags))
    if len(plain) > MAX_TAGS:
        raise InvalidInput(f"A memory has at most {MAX_TAGS} tags, not {len(plain)}.", field="tags")
    for tag in plain:
        check_text(tag, "tags", maximum=MAX_TAG)
    return plain


def check_phrases(phrases: object, *, most: int = MAX_PHRASES, longest: int = MAX_PHRASE) -> tuple[str, ...]:
    """Other words for a memory or a question: each on one line and once, in the order given; None is none of them."""
    if phrases is None or phrases == ():
        return ()
    if not isinstance(phrases, tuple | list) or not all(isinstance(phrase, str) for phrase in phrases):
        raise InvalidInput("also must be a list of strings.", field="also")
    plain = tuple(dict.fromkeys(" ".join(phrase.split()) for phrase in phrases))
    if len(plain) > most:
        raise InvalidInput(f"also has at most {most} entries, not {len(plain)}.", field="also")
    for phrase in plain:
        check_text(phrase, "also", maximum=longest)
    return plain


def check_time(value: object, field: str) -> datetime | None:
    if value is None:
        return None
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise InvalidInput(f"{field} must be a time with a zone.", field=field)
    return value


def check_space(name: object) -> str:
    if not isinstance(name, str) or len(name) > 100 or not SPACE.fullmatch(name):
        raise InvalidInput(
            "A space's name may only have lower-case letters, digits and single hyphens, at most 100.", field="space"
        )
    return name


# --- what is filled in -----------------------------------------------------------------------------------------------


def title_of(text: str) -> str:
    """The text on one line, or its first 50 characters and dots."""
    line = " ".join(text[:400].split())
    return line if len(line) <= 50 else f"{line[:50]}..."


def path_of(new: NewMemory | Memory, id: str) -> str:
    """Generate the path of a memory that was written without one."""
    tail = path_tail(id)
    if new.kind is Kind.DECISION:
        return f"decisions/{slug(topic_key(new.topic or ''))}/{tail}"
    words = slug(" ".join(new.content[:200].split()[:6]))
    return f"inbox/{words[:40].strip('-')}-{tail}"


def is_generated_path(memory: Memory) -> bool:
    """Whether the path was generated: such a path ends with the end of the memory's id."""
    tail = re.escape(path_tail(memory.id))
    return re.fullmatch(rf"(?:inbox/[^/]*-|decisions/[^/]+/){tail}(-\d+)?", memory.path) is not None


def path_tail(id: str) -> str:
    """Cut the end off an id, which a generated path ends with: other memories may have the same words."""
    return id.removeprefix("mem_")[-6:]
