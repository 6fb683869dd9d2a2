"""A dialect: a table of operations, each a wire name, schemas and a function that translates.

    call(engine, name, arguments)
      └─ may this caller use the operation at all?                 (Forbidden, whatever the arguments)
      └─ check the arguments against the operation's schema        (InvalidInput names the field)
         └─ run: build a value, make one engine call, shape the reply
            └─ an Error on the way becomes the dialect's own error body

The same table feeds MCP, REST, OpenAPI and the documentation. Nothing here knows how bytes travel.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property, partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeVar

from scrubjay.engine import access
from scrubjay.engine.conversations.fence import on_one_line
from scrubjay.engine.engine import Notices
from scrubjay.engine.store.intake import fingerprint
from scrubjay.errors import Error, InvalidInput
from scrubjay.stores.promises.memories import Request
from scrubjay.text.wording import LANGUAGES_ASKED, PHRASES_ASKED, WORDINGS_ASKED
from scrubjay.values.callers import Provenance
from scrubjay.values.codec import plain
from scrubjay.values.memory import MAX_PHRASE, MAX_PHRASES, Memory, Stored, random_suffix
from scrubjay.values.search import MAX_WORDING, MAX_WORDINGS, Filter
from scrubjay.values.store import Prompt

if TYPE_CHECKING:
    from scrubjay.dialects.validation import Checker
    from scrubjay.engine.engine import Engine
    from scrubjay.engine.jobs import Progress

MAX_KEY = 200
MOST_NOTICES = 3  # pairs that one reply tells of
QUOTED = 80  # characters of each of their memories
SINGLE_QUOTES = str.maketrans('"`', "''")

# Of the call being answered.
_prefix: ContextVar[str] = ContextVar("prefix", default="")
_space: ContextVar[str] = ContextVar("space", default="")
_request_id: ContextVar[str] = ContextVar("request_id", default="")
_told: ContextVar[Told | None] = ContextVar("told", default=None)

Schema = dict[str, Any]
Body = dict[str, Any]
Run = Callable[["Engine", Body], "Body | Reply | Stream"]
Given = TypeVar("Given", bound=Run)


@dataclass(frozen=True, slots=True)
class Reply:
    """What an operation answers: a JSON body, and the text shown for it where a dialect fixes one."""

    body: Body
    failed: bool = False
    fixed_text: str | None = None
    error: Error | None = None  # what the body describes, if it failed
    stream: Stream | None = None  # what comes piece by piece, instead of the body
    notices: tuple[str, ...] = ()  # what is to be said besides, where the body has no room for it

    @property
    def text(self) -> str:
        return self.fixed_text or json.dumps(self.body, ensure_ascii=False, separators=(",", ":"))


class Told:
    """What a reply tells, for the sentences beside it."""

    def __init__(self) -> None:
        self.memories: dict[str, Memory] = {}  # by id
        self.found: list[tuple[Memory, Memory]] = []  # a new memory, and what it very likely outdates


class Pieces(StrEnum):
    """How the pieces of a stream are written."""

    EVENTS = "text/event-stream"  # {"event": name?, "id": text?, "data": JSON}
    LINES = "application/x-ndjson"  # any JSON object, one a line


# Given what to call when there may be a next piece; called within the block.
Listening = Callable[[Callable[[], None]], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True)
class Stream:
    """An answer sent piece by piece. An operation with its own route may return one instead of a body.

    The server takes the pieces one by one in a worker thread and sends each at once; the iterator is closed when the
    client leaves, so a generator's `finally` runs. None means that there is nothing yet: no thread waits meanwhile, the
    server asks again when `listening` calls (without it, a moment later) and keeps the connection alive. An Error on
    the way ends the stream with the dialect's error body as the last piece (of events: the event `error`). MCP has no
    streams: there the last piece is the answer (of events: its data), so let it be a body inside the operation's
    `gives`.
    """

    pieces: Iterator[Body | None]
    kind: Pieces = Pieces.EVENTS
    listening: Listening | None = None  # how to hear of the next piece, without polling


class Reach(StrEnum):
    """How far an operation's effect reaches; what a caller needs besides a right in the space."""

    MEMORY = "memory"  # the memories that the caller may see or change
    LOCAL = "local"  # files, folders, backups, sync endpoints: this machine's owner, unless a setting opens it
    OWNER = "owner"  # keys and grants: owners only


@dataclass(frozen=True, slots=True)
class Route:
    """Its own address over REST, where a specification names one.

    `{name}` takes an argument from the path, `{name:path}` one that may contain slashes; GET and DELETE take the rest
    from the query, the others from a JSON body. `?space=` is never an argument: it chooses the space.
    """

    method: str
    path: str
    status: int = 200  # of a success


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One row of the table."""

    name: str
    title: str
    description: str  # what a model reads when choosing
    takes: Schema = field(default_factory=lambda: object_schema({}))
    gives: Schema
    run: Run
    changes: bool  # writes anything at all
    destructive: bool = False  # may remove something
    idempotent: bool = False  # doing it twice has the effect of doing it once
    listed: bool = True  # advertised without --extras
    accepts: Schema | None = None  # a wider schema than the advertised one, where old spellings are accepted
    asks: bool = False  # may ask the client's own language model
    may_ask: bool = False  # could do so, where a setting allows it
    reach: Reach = Reach.MEMORY
    route: Route | None = None  # in addition to POST /api/{dialect}/{name}
    earlier: Route | None = None  # where clients of a predecessor look for it
    streams: Pieces | None = None  # how its pieces are written, if it may answer with a Stream
    says: Callable[[Body], str] | None = None  # the sentence shown for a success, where a specification fixes one
    fields: Mapping[str, str] = field(default_factory=dict)  # an argument by the engine's name -> by the caller's
    of_one_version: bool = False  # changes a memory that is there, so that a version of it can be expected (If-Match)
    replicates: bool = False  # takes exactly what another store has: also whole numbers beyond 64 bits

    def check(self, arguments: Any) -> Body:
        """Refuse what the schema does not allow, before the engine is reached; an optional null counts as not given.

        :raises InvalidInput: naming the field, what was wrong and what is allowed
        """
        checked: Body = self._checker.check(arguments)
        return dict(checked)

    def wire_name(self, name: str) -> str:
        """What the caller wrote for a field that the engine knows by this name: `context.user_id` for `user_id`."""
        if name in self.fields:
            return self.fields[name]
        places = [place for place in paths_in(self.accepts or self.takes) if place.split(".")[-1] == name]
        if name == "id" and not places:
            return self.wire_name("memory_id")
        return name if name in places or len(places) != 1 else places[0]

    @cached_property
    def room(self) -> tuple[str, ...] | None:
        """Which part of a reply's body has room for notices; None if nothing has."""
        properties = self.gives.get("anyOf", [{}])[0].get("properties", {})
        inner = (name for name, part in properties.items() if "notices" in part.get("properties", {}))
        return () if "notices" in properties else next(((name,) for name in inner), None)

    @cached_property
    def _checker(self) -> Checker:
        from scrubjay.dialects.validation import Checker  # 30 ms that listing the tools does not need

        return Checker(self.accepts or self.takes)


@dataclass(frozen=True, slots=True)
class Resource:
    """Something that can be read by its address; in a template, `{name}` is a placeholder."""

    uri: str
    name: str
    description: str
    mime_type: str | None = None  # None: it depends on the address


@dataclass(frozen=True, kw_only=True)
class Resources:
    """What can be read by address in a dialect, besides its tools. Our errors say what was wrong with one."""

    templates: tuple[Resource, ...]
    listed: Callable[[Engine], list[Resource]]
    read: Callable[[Engine, str], tuple[str, str]]  # address -> MIME type, text
    complete: Callable[[Engine, str, str, dict[str, str]], list[str]]  # name, its beginning, what is known -> values


@dataclass(frozen=True, kw_only=True)
class UserPrompt:
    """A message that a person can choose to send to the model; what it says is made when it is chosen."""

    name: str
    title: str
    description: str
    arguments: Mapping[str, str] = field(default_factory=dict)  # name -> what it is
    required: tuple[str, ...] = ()
    say: Callable[[Engine, Mapping[str, str]], str]


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """A vocabulary: its operations in a fixed order, and how it reports errors."""

    name: str
    title: str
    server_name: str  # what MCP clients see as the server's name
    instructions: str  # teaches a model when to store and search; the first 2 kB count
    brief: str = ""  # the same in a line, where several dialects are served
    conflicts: str = "scrubjay conflicts"  # what lists open pairs: a tool, an address or a command
    marks_pairs: bool = False  # its bodies have a place that marks the older one of an unsettled pair
    acts: Mapping[str, str] = field(default_factory=dict)  # what other dialects can do too -> the tool for it here
    error_body: Callable[[Error, str], Body]  # (error, operation name) -> body
    error_text: Callable[[Error, Body], str | None] = lambda _error, _body: None  # where a seed fixes one
    tools: bool = True  # served over MCP and at POST /api/{dialect}/{name}; else only where its operations have routes
    operations: dict[str, Operation] = field(default_factory=dict)
    common: Mapping[str, Any] = field(default_factory=dict)  # of operations registered here, unless they say otherwise
    resources: Resources | None = None
    prompts: tuple[UserPrompt, ...] = ()

    def reads(self, title: str, **more: Any) -> Callable[[Given], Given]:
        """Register a function that changes nothing. `more`: see `Operation`."""
        return self.operation(title, changes=False, **more)

    def writes(self, title: str, **more: Any) -> Callable[[Given], Given]:
        return self.operation(title, changes=True, **more)

    def part(self, **common: Any) -> Dialect:
        """The same table for operations that have this in common."""
        return replace(self, common=common)

    def operation(
        self, title: str, *, changes: bool, idempotent: bool = False, name: str | None = None, **more: Any
    ) -> Callable[[Given], Given]:
        """Register a function under its own name; its docstring is what a model reads."""

        def register(run: Given) -> Given:
            operation = Operation(
                name=name or run.__name__.rstrip("_"),
                title=title,
                description=" ".join((run.__doc__ or "").split()),
                run=run,
                changes=changes,
                idempotent=idempotent or not changes,
                **{**self.common, **more},
            )
            self.operations[operation.name] = operation
            return run

        return register

    def call(
        self,
        engine: Engine,
        name: str,
        arguments: Any,
        *,
        key: str | None = None,
        if_version: int | None = None,
        prefix: str = "",
        provenance: Provenance | None = None,
        progress: Progress | None = None,
        client_model: Callable[[Prompt], str] | None = None,
    ) -> Reply:
        """Answer one call. What the engine refuses comes back as the dialect's error body; bugs raise.

        A write with a key is done once: sent again, it gets the same answer. `if_version` allows a change only to that
        version. `prefix` goes before the names of tools where several dialects are served. The engine is
        bound here, once, to everything known about the call.
        """
        operation = self.operations[name]
        _prefix.set(prefix)
        _space.set(engine.spaces[0])
        _told.set(Told())
        try:
            access.check_call(
                engine.caller,
                changes=operation.changes,
                local=operation.reach is Reach.LOCAL,
                owner=operation.reach is Reach.OWNER,
            )
            checked = operation.check({} if arguments is None else arguments)
            if if_version is not None and operation.changes and not operation.of_one_version:
                told = f"An expected version (If-Match) has no meaning for {name}: it does not change one memory."
                raise InvalidInput(told, hint="Do not send it.", field="If-Match")
            request = self._request(engine, operation, checked, key) if key is not None and operation.changes else None
            bound = engine.bound_to(
                provenance=provenance,
                request=request,
                expected_version=if_version,
                progress=progress,
                client_model=client_model,
                notices=Notices(),
            )
            answer = self._run(operation, bound, checked)
            if isinstance(answer, Stream):
                assert answer.kind is operation.streams  # or its description would be wrong
                return Reply({}, stream=answer)
            sentences = self._notices(bound, operation)
            if isinstance(answer, Reply):  # it has its own wording
                return noticing(answer, operation.room, sentences) if sentences else answer
            reply = Reply(answer, fixed_text=operation.says(answer) if operation.says else None)
            return noticing(reply, operation.room, sentences) if sentences else reply
        except Error as error:
            return self.failure(error, name)

    def _notices(self, engine: Engine, operation: Operation) -> list[str]:
        """What limits kept from this reply, and what they kept from earlier ones to the same client; the latter waits
        for a reply with room for it, if this dialect has any."""
        sentences, conflicts = [], served_name(self.conflicts) if self.conflicts in self.operations else self.conflicts
        if engine.notices is not None and (count := len(engine.notices.uncompared)):
            memories = "1 memory" if count == 1 else f"{count} memories"
            sentences.append(f"Not compared yet: {memories}; ask `{conflicts}` later what they may outdate.")
        fits = operation.room is not None or all(one.room is None for one in self.operations.values())
        owed = engine.take_owed() if fits else ()
        pairs = [("Compared since", pair.new, pair.old) for pair in owed]
        known = {pair.old.id for pair in owed}
        unmarked = told_now().found if operation.changes else self._pairs_told(engine)
        pairs += [("Not settled", new, old) for new, old in unmarked if old.id not in known]
        for begun, new, old in pairs[:MOST_NOTICES]:
            verb = "says the same as" if say_the_same(new, old) else "very likely outdates"
            sentences.append(f"{begun}: {name_memory(new)} {verb} {name_memory(old)}; ask `{conflicts}`.")
        if len(pairs) > MOST_NOTICES:
            sentences.append(f"{len(pairs) - MOST_NOTICES} more pairs like this: ask `{conflicts}`.")
        return sentences

    def _pairs_told(self, engine: Engine) -> list[tuple[Memory, Memory]]:
        """The unsettled pairs, newer and older, of which the reply holds one; unless it marks them, also those of
        which it holds both."""
        told = told_now().memories
        doubts = engine.conflicts.doubts(list(told.values()))
        pairs = [(new, old) for old, new in doubts.items() if not (self.marks_pairs and {old, new} <= told.keys())]
        ends = {end for pair in pairs for end in pair} - told.keys()
        others = engine.records.get(sorted(ends), engine.audience(Filter())) if ends else ()
        known = told | {one.id: one for one in others}
        return [(known[new], known[old]) for new, old in pairs if new in known and old in known]

    def _run(self, operation: Operation, engine: Engine, checked: Body) -> Body | Reply | Stream:
        try:
            return operation.run(engine, checked)
        except InvalidInput as error:  # in the engine's terms
            name = error.details.get("field")
            raise error if name is None else error.renamed(name, operation.wire_name(name)) from None

    def _request(self, engine: Engine, operation: Operation, arguments: Body, key: str) -> Request:
        if not 0 < len(key) <= MAX_KEY or not key.isprintable():
            raise InvalidInput(f"An idempotency key must have 1 to {MAX_KEY} printable characters.")
        return Request(
            caller=engine.caller.user,
            key=key,
            operation=f"{self.name}.{operation.name}",
            # The space is not an argument, but the same call to another space is a different request.
            arguments=sha256(json.dumps([engine.spaces, arguments], sort_keys=True).encode()).digest(),
        )

    def failure(self, error: Error, name: str) -> Reply:
        body = self.error_body(error, name)
        return Reply(body, failed=True, fixed_text=self.error_text(error, body), error=error)


def noticing(reply: Reply, room: tuple[str, ...] | None, sentences: Sequence[str]) -> Reply:
    """The reply with notices: in its body and its text if there is room, else beside them."""
    if room is None:
        return replace(reply, notices=tuple(sentences))
    for name in room:
        body = reply.body[name]
        return replace(reply, body={**reply.body, name: {**body, "notices": [*body.get("notices", ()), *sentences]}})
    text = None if reply.fixed_text is None else "\n".join([reply.fixed_text, *sentences])
    return replace(reply, body={**reply.body, "notices": list(sentences)}, fixed_text=text)


def quote_memory(memory: Memory) -> str:
    """A memory's id and how its text begins, on one line and without quotes that would end the quotation; nothing of a
    text that is flagged."""
    beginning = on_one_line(memory.shown_text).translate(SINGLE_QUOTES)[:QUOTED]
    return memory.id if memory.flags else f'{memory.id} ("{beginning}")'


def name_memory(memory: Memory) -> str:
    """What to call one of a pair; of another space's that is not in the reply no text is quoted."""
    if is_elsewhere(memory) and memory.id not in told_now().memories:
        return f"{memory.id} in space {memory.space}"
    return quote_memory(memory)


def say_the_same(one: Memory, other: Memory) -> bool:
    return fingerprint(one) == fingerprint(other)


def tell_memory(memory: Memory) -> str:
    """The id of a memory that goes into the reply; it is noted, as the reply names the unsettled pairs it holds."""
    told_now().memories[memory.id] = memory
    return memory.id


def tell_stored(stored: Stored) -> str:
    """The same of a new memory, by a dialect whose reply to a store has no place for what it outdates."""
    told_now().found += [(stored.memory, old) for old in stored.similar]
    return tell_memory(stored.memory)


def told_now() -> Told:
    """What the reply to this call tells so far."""
    return _told.get() or Told()


def served_name(tool: str) -> str:
    """A tool's name as the client of this call knows it, for texts that name one."""
    return f"{_prefix.get()}{tool}"


def is_elsewhere(memory: Memory) -> bool:
    """Whether a memory is from another space than this call works in, which texts then say."""
    return memory.space != _space.get()


def request_id() -> str:
    """The id of the call being answered, for logs and replies."""
    if not _request_id.get():
        name_request(f"req_{random_suffix()}")
    return _request_id.get()


def name_request(id: str) -> None:
    """Set the call's id; used by the server that received it."""
    _request_id.set(id)


def paths_in(schema: Schema) -> Iterator[str]:
    """The paths of an argument object's fields, outer ones first: `context`, `context.user_id`."""
    properties: Schema = schema.get("properties", {})
    yield from properties
    for name, inner in properties.items():
        yield from (f"{name}.{place}" for place in paths_in(inner))


def object_schema(properties: Schema, *, required: Iterable[str] = (), closed: bool = True) -> Schema:
    """A JSON object; closed ones refuse unknown fields."""
    schema: Schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = list(required)
    if closed:
        schema["additionalProperties"] = False
    return schema


def record(properties: Schema, *, optional: Schema | None = None) -> Schema:
    """A closed JSON object that has all of these properties, and perhaps some of the optional ones."""
    return object_schema({**properties, **(optional or {})}, required=tuple(properties))


def array(items: Schema, **more: Any) -> Schema:
    """A JSON array of items of this schema; `more` as JSON Schema names it: maxItems, description …"""
    return {"type": "array", "items": items, **more}


def scalar(kind: str, description: str = "", **more: Any) -> Schema:
    """A JSON string, number or boolean; `more` as JSON Schema names it: minLength, default …"""
    return {"type": kind, **more, **({"description": description} if description else {})}


text, integer, number, flag = (partial(scalar, kind) for kind in ("string", "integer", "number", "boolean"))
TIME = text(format="date-time")
COUNT = integer(minimum=0)
SHARE = number(minimum=0, maximum=1)
SOME: Schema = {"minLength": 1}  # of a text: it must not be empty


# Goes with a list that was cut because the reply would have been too large: by servers/calls.py, or earlier, where
# a reply counts its items or has a cursor.
LEFT_OUT: Schema = {"type": "integer", "minimum": 1, "description": "How many items were left out of a large reply"}
NOTICES = array(text(), description="What was not done in time, and what came of it since; it quotes stored data.")
DEGRADED = text("Present when only words are used for all or many memories, with the reason.")
# Optional beside what a dialect's paper defines, as `also`, wherever something is stored or asked.
PHRASES = array(
    text(minLength=1, maxLength=MAX_PHRASE),
    maxItems=MAX_PHRASES,
    description=f"{PHRASES_ASKED} {LANGUAGES_ASKED}",
)
WORDINGS = array(text(minLength=1, maxLength=MAX_WORDING), maxItems=MAX_WORDINGS, description=WORDINGS_ASKED)
ROOM = 950_000  # bytes of a reply's items; the rest of the megabyte is for its other fields


def count_that_fit(items: Iterable[Body]) -> int:
    """Count the items that fit into a reply: at least one."""
    room, count = ROOM, 0
    for item in items:
        room -= len(json.dumps(item, ensure_ascii=False, separators=(",", ":")).encode()) + len(",")
        if room < 0 and count:
            break
        count += 1
    return count


def left_out(count: int) -> Body:
    """Make the field by which a reply says that items were left out."""
    return {"left_out": count} if count else {}


def present(**fields: Any) -> Body:
    """The fields of a reply that are not None; times, enums and our own values as JSON."""
    return {name: plain(value) for name, value in fields.items() if value is not None}


def phrases_in(args: Body) -> tuple[str, ...]:
    """The other words that a caller has given."""
    return tuple(args.get("also", ()))


def either(ok: Schema, error: Schema) -> Schema:
    """An output schema that includes error bodies: strict clients drop whatever does not match."""
    return {"type": "object", "anyOf": [ok, error]}
