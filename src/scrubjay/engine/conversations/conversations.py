"""Conversations: what is said, which memories are put into them, and the context a language model is given.

A conversation belongs to a space and to the user who began it. Everyone who has a part in the space reads it, and
members write in it, unless it is private: then it exists only for its user and for owners, and so do memories stored in
it, whichever way they came. Only its user and owners clear or delete it. Other members may give their memories the same
id without knowing: those do not belong to it.

Memories reach it in three ways: they were stored in it, a person put them in (an injection, in force or paused), or
they are found to fit what was said last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from typing import TYPE_CHECKING, Any

from scrubjay.engine import access
from scrubjay.engine.conversations.contexts import BuiltContext, build_context
from scrubjay.engine.conversations.fence import fence_memories
from scrubjay.engine.search.candidates import search
from scrubjay.engine.store import embedding, intake
from scrubjay.engine.store.enrichment import enrich
from scrubjay.errors import Conflict, InvalidInput, NotFound, ProviderError
from scrubjay.stores.promises.memories import Reads, Transaction
from scrubjay.text.letters import is_blank
from scrubjay.values.callers import DEFAULT_SPACE
from scrubjay.values.frozen import dataclass, replace
from scrubjay.values.memory import AT_HAND, MAX_CONTENT, AccessLevel, Kind, Memory, NewMemory, Stored, random_suffix
from scrubjay.values.search import Filter, Hits, Page, Query, Verdict
from scrubjay.values.store import Conversation, Injection, Message, Speaker

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine
    from scrubjay.engine.lifecycle.bulk import BulkDone

HISTORY = 10  # messages of a context
MAX_ANSWER = 200_000  # characters
LAST_SAID = 3  # messages that say what a conversation is about


@dataclass(frozen=True, slots=True, kw_only=True)
class Belongings:
    """The memories that belong to a conversation; for injected ones whether they are in force."""

    page: Page
    active: Mapping[str, bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Injected:
    """What a conversation should be given: memories, and the same as text for a prompt."""

    memories: tuple[Memory, ...] = ()
    text: str = ""
    active: Mapping[str, bool] = field(default_factory=dict)  # of those that were injected


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A message that was said, the context it is answered in, and the answer if there is one already."""

    message: Message
    context: BuiltContext
    answer: Message | None = None


class Conversations:
    """Works at an engine. `workspace` names a space, by its name or as `workspace-<name>`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    # --- memories ----------------------------------------------------------------------------------------------------

    def remember(self, new: NewMemory, *, workspace: str | None = None) -> Stored:
        """Store a memory in a conversation's space; an unknown conversation begins with it."""
        at = self._at(workspace, new.conversation_id)
        stored = at.bound_to(only=self._engine.only).store(new)
        if new.conversation_id is not None:
            self._ensure_begun(at, new.conversation_id)
        return stored

    def remember_all(self, items: Sequence[NewMemory], *, workspace: str | None = None) -> tuple[Memory, ...]:
        """Store all or none."""
        ats = [self._at(workspace, new.conversation_id) for new in items]
        admitted = [intake.admit(at, new) for at, new in zip(ats, items, strict=True)]
        texts = embedding.embed_at_leisure(self._engine, admitted)
        memories = [
            enrich(self._engine, memory, new, text.first)
            for memory, new, text in zip(admitted, items, texts, strict=True)
        ]

        def write(tx: Transaction) -> tuple[Memory, ...]:
            stored = []
            for memory, text in zip(memories, texts, strict=True):
                intake.check_quota(self._engine, tx, memory)
                stored.append(self._engine.ledger.add(tx, memory, text, judged=memory.kind is not Kind.MEMORY))
            return tuple(stored)

        result = self._engine.transact(tuple[Memory, ...], write)
        self._engine.parts.backlog.wake()
        for at, new in zip(ats, items, strict=True):
            if new.conversation_id is not None:
                self._ensure_begun(at, new.conversation_id)
        return result

    def search(
        self,
        text: str,
        *,
        also: tuple[str, ...] = (),
        limit: int = 5,
        conversation: str | None = None,
        workspace: str | None = None,
    ) -> Hits:
        """Search a space, or only what belongs to a conversation."""
        at = self._at(workspace, conversation)
        return at.search(Query(text=text, also=also, limit=limit, filter=Filter(belongs_to=conversation)))

    def memories(
        self, conversation: str, *, limit: int = 20, offset: int = 0, workspace: str | None = None
    ) -> Belongings:
        """What was stored in a conversation or put into it, newest first; outdated memories too."""
        at = self._at(workspace, conversation)
        wanted = Filter(belongs_to=conversation, states=AT_HAND)
        page = at.list(wanted, limit=limit, offset=offset, counted=True)
        return Belongings(page=page, active=self._active(at, conversation))

    def inject(self, conversation: str, *, limit: int = 5, workspace: str | None = None) -> Injected:
        """What the conversation should be given: what was injected, then what fits what was said last, then what
        was stored in it last. Nothing that is paused."""
        at = self._at(workspace, conversation)
        active = self._active(at, conversation)
        chosen = {memory.id: memory for memory in self._in_force(at, conversation)}
        for memory in self._fitting(at, conversation, limit=limit + len(active)):
            if len(chosen) < limit and memory.id not in active:
                chosen.setdefault(memory.id, memory)
        memories = tuple(chosen.values())[:limit]
        at.count_reads(memories)
        return Injected(memories=memories, text=fence_memories(memories, at.conflicts.doubts(memories)), active=active)

    def clear(self, conversation: str, *, workspace: str | None = None) -> BulkDone:
        """Forget everything that was stored in a conversation; it can be undone as one bulk operation."""
        at = self._at(workspace, conversation)
        if (known := at.records.conversations.get(at.spaces[0], conversation)) is not None:
            access.check_ends(at.caller, known)
        return at.bulk.forget_all(self._stored_in(at, conversation), reason=f"conversation {conversation} cleared")

    # --- what is injected --------------------------------------------------------------------------------------------

    def link(self, conversation: str, memory: str, *, workspace: str | None = None) -> Injection:
        """Put a memory of the same space into a conversation. Doing it twice changes nothing."""
        at = self._to_write(workspace, conversation)

        def write(tx: Transaction) -> Injection:
            found = at.ledger.get_visible(tx, memory)
            if found.space != at.spaces[0]:
                raise NotFound(f"Memory with ID {memory} not found", memory_id=memory)
            self._begin(at, tx, conversation)
            if (linked := self._link(at, tx, conversation, found.id)) is None:
                linked = Injection(memory=found.id, injected_at=at.now())
                tx.conversations.inject(at.spaces[0], conversation, linked)
            return linked

        return at.transact(Injection, write)

    def toggle(self, conversation: str, memory: str, *, workspace: str | None = None) -> Injection:
        """Pause what is in force, or put it back in force.

        :raises NotFound: if it was never put in
        """
        at = self._to_write(workspace, conversation)

        def write(tx: Transaction) -> Injection:
            linked = self._link_of(at, tx, conversation, memory)
            tx.conversations.inject(at.spaces[0], conversation, toggled := replace(linked, active=not linked.active))
            return toggled

        return at.transact(Injection, write)

    def unlink(self, conversation: str, memory: str, *, workspace: str | None = None) -> Injection:
        """Take a memory out of a conversation again.

        :raises NotFound: if it was never put in
        """
        at = self._to_write(workspace, conversation)

        def write(tx: Transaction) -> Injection:
            linked = self._link_of(at, tx, conversation, memory)
            tx.conversations.take_out(at.spaces[0], conversation, linked.memory)
            return linked

        return at.transact(Injection, write)

    # --- conversations and messages ----------------------------------------------------------------------------------

    def list(self, *, limit: int = 20, offset: int = 0, workspace: str | None = None) -> Sequence[Conversation]:
        """A space's conversations, those with the latest message first."""
        at = self._at(workspace, None)
        audience = access.audience_in(at.caller, at.spaces)
        return at.records.conversations.list(at.spaces[0], audience, limit=limit, offset=offset)

    def create(
        self,
        id: str | None = None,
        *,
        title: str | None = None,
        system_prompt: str | None = None,
        access_level: AccessLevel | str = AccessLevel.SHARED,
        workspace: str | None = None,
    ) -> Conversation:
        """Begin a conversation: shared with all who have a part in the space, or private.

        :raises Conflict: if the space has a conversation of this id
        """
        at = self._to_write(workspace, None)
        now = at.now()
        made = check_conversation(
            Conversation(
                id=id or f"conv-{random_suffix()}",
                space=at.spaces[0],
                title=title,
                system_prompt=system_prompt,
                created_at=now,
                updated_at=now,
                user_id=at.caller.user,
                access_level=intake.convert_value("access_level", access_level),
            )
        )

        def write(tx: Transaction) -> Conversation:
            if tx.conversations.get(made.space, made.id) is not None:
                raise Conflict(f"Conversation {made.id} already exists.")
            tx.spaces.create(made.space, at=now)
            tx.conversations.put(made)
            return made

        return at.transact(Conversation, write)

    def get(self, id: str, *, workspace: str | None = None) -> Conversation:
        """:raises NotFound: if there is none"""
        at = self._at(workspace, id)
        return known_in(at, at.records, id)

    def describe(self, id: str, *, workspace: str | None = None, **fields: Any) -> Conversation:
        """Change a conversation's title or system prompt."""
        at = self._to_write(workspace, id)

        def write(tx: Transaction) -> Conversation:
            known = known_in(at, tx, id)
            changed = check_conversation(replace(known, updated_at=max(at.now(), known.updated_at), **fields))
            tx.conversations.put(changed)
            return changed

        return at.transact(Conversation, write)

    def delete(self, id: str, *, workspace: str | None = None) -> Conversation:
        """Erase a conversation with its messages; memories stay.

        :raises Forbidden: unless the caller began it or is an owner
        """
        at = self._to_write(workspace, id)

        def write(tx: Transaction) -> Conversation:
            known = known_in(at, tx, id)
            access.check_ends(at.caller, known)
            tx.conversations.drop(at.spaces[0], id)
            return known

        return at.transact(Conversation, write)

    def messages(self, id: str, *, limit: int = 50, offset: int = 0, workspace: str | None = None) -> Sequence[Message]:
        """The last messages, oldest first.

        :raises NotFound: if there is no such conversation
        """
        at = self._at(workspace, id)
        known_in(at, at.records, id)
        return at.records.conversations.messages(at.spaces[0], id, limit=limit, offset=offset)

    def context(self, id: str, *, message: str | None = None, workspace: str | None = None, **how: Any) -> BuiltContext:
        """What a language model would be given now.

        :raises NotFound: if there is no such conversation
        """
        at = self._at(workspace, id)
        known = known_in(at, at.records, id)
        said = at.records.conversations.messages(at.spaces[0], id, limit=HISTORY)
        return self._context(at, known, said, message, how)

    def say(
        self,
        id: str,
        content: str,
        *,
        role: Speaker = Speaker.USER,
        workspace: str | None = None,
        **how: Any,
    ) -> Turn:
        """Add a message and build the context to answer it in. An unknown conversation begins with it."""
        at = self._to_write(workspace, id)
        intake.check_text(content, "content")
        known = at.records.conversations.get(at.spaces[0], id)
        prompt = (known.system_prompt if known else None) or ""
        build_context(
            prompt=prompt, memories=(), said=(), message=content, **how
        )  # too large is refused before it is kept

        def write(tx: Transaction) -> Message:
            self._begin(at, tx, id)
            message = Message(id=f"msg-{random_suffix()}", role=role, content=content, created_at=at.now())
            tx.conversations.add_message(at.spaces[0], id, message)
            return message

        message = at.transact(Message, write)
        said = at.records.conversations.messages(at.spaces[0], id, limit=HISTORY + 1)
        earlier = [one for one in said if message.id not in (one.id, one.reply_to)][-HISTORY:]
        return Turn(
            message=message,
            context=self._context(at, known_in(at, at.records, id), earlier, content, how),
            answer=at.records.conversations.answer_to(at.spaces[0], id, message.id),
        )

    def converse(
        self, id: str, content: str, *, workspace: str | None = None, **how: Any
    ) -> tuple[Turn, Iterator[str | Message]]:
        """Add a message, and let the provider answer it: in pieces, and last the message that the answer is kept as.

        Without a provider there are no pieces. A message is answered once: asked again with the same request, the kept
        answer comes at once. Taking the pieces raises ProviderError if there is no whole answer; then none is kept.
        """
        at = self._at(workspace, id)
        turn = self.say(id, content, workspace=workspace, **how)
        return turn, self._answer(at, id, turn)

    def _answer(self, at: Engine, id: str, turn: Turn) -> Iterator[str | Message]:
        if turn.answer is not None:
            yield from (turn.answer.content, turn.answer)
        elif at.parts.provider is not None:
            pieces = []
            for piece in at.parts.provider.answer(turn.context.chat):
                pieces.append(piece)
                yield piece
            yield self._keep_answer(at, id, turn.message.id, "".join(pieces))

    def _keep_answer(self, at: Engine, id: str, question: str, text: str) -> Message:
        try:  # a model may send the halves of a character apart
            text = text.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            raise ProviderError("The provider's answer is not valid text.") from None
        if is_blank(text) or len(text) > MAX_ANSWER:
            raise ProviderError("The provider's answer is empty or too long to store.")
        answer = Message(
            id=f"msg-{random_suffix()}",
            role=Speaker.ASSISTANT,
            content=text,
            reply_to=question,
            created_at=at.now(),
        )
        with at.records.writing() as tx:
            if (kept := tx.conversations.answer_to(at.spaces[0], id, question)) is not None:
                return kept  # a twin of this request was quicker
            tx.conversations.add_message(at.spaces[0], id, answer)
        return answer

    # --- steps -------------------------------------------------------------------------------------------------------

    def _to_write(self, workspace: str | None, conversation: str | None) -> Engine:
        at = self._at(workspace, conversation)
        access.check_store(at.caller, at.spaces[0])
        return at

    def _at(self, workspace: str | None, conversation: str | None) -> Engine:
        """The engine in the space that is meant, which it reads alone: the one named, else the conversation's, else its
        own first.

        :raises Forbidden: if the caller has no part in it
        :raises SpaceNotFound: if there is none of that name
        :raises NotFound: if the conversation is private to another
        """
        intake.check_name(conversation, "conversation_id")
        if workspace is not None:
            space = self._engine.workspaces.choose_space(workspace)
        else:
            space = self._space_of(conversation) or self._engine.spaces[0]
        access.check_granted(self._engine.caller, space)
        if conversation is not None:
            known = self._engine.records.conversations.get(space, conversation)
            if known is not None and not access.sees_conversation(self._engine.caller, known):
                raise missing(conversation)
        return self._engine.bound_to(spaces=(space,), only=True)

    def _space_of(self, conversation: str | None) -> str | None:
        """Where a conversation is. Who has chosen a space stays in it; who has not finds it in any of its own."""
        if conversation is None:
            return None
        found = [
            space
            for space in self._engine.records.conversations.spaces_of(conversation)
            if access.is_granted(self._engine.caller, space) and self._sees(space, conversation)
        ]
        own = [space for space in self._engine.spaces if space in found]
        return next(iter(own or (found if self._engine.spaces == (DEFAULT_SPACE,) else ())), None)

    def _sees(self, space: str, conversation: str) -> bool:
        known = self._engine.records.conversations.get(space, conversation)
        return known is not None and access.sees_conversation(self._engine.caller, known)

    def _ensure_begun(self, at: Engine, id: str) -> None:
        """Make sure that the conversation exists, once something is in it."""
        if at.records.conversations.get(at.spaces[0], id) is None:
            with at.records.writing() as tx:
                self._begin(at, tx, id)

    def _begin(self, at: Engine, tx: Transaction, id: str) -> None:
        if tx.conversations.get(at.spaces[0], id) is None:
            now = at.now()
            tx.spaces.create(at.spaces[0], at=now)
            tx.conversations.put(
                Conversation(id=id, space=at.spaces[0], created_at=now, updated_at=now, user_id=at.caller.user)
            )

    def _active(self, at: Engine, conversation: str) -> dict[str, bool]:
        return {one.memory: one.active for one in at.records.conversations.injections(at.spaces[0], conversation)}

    def _in_force(self, at: Engine, conversation: str) -> Sequence[Memory]:
        """What was injected and is not paused, in that order; not what is outdated, expired or out of sight."""
        wanted = [name for name, active in self._active(at, conversation).items() if active]
        if not wanted:
            return []
        which = Filter(ids=frozenset(wanted))
        found = {
            memory.id: memory
            for memory in at.records.list(which, at.audience(Filter()), now=at.now(), limit=len(wanted))
        }
        return [found[name] for name in wanted if name in found]

    def _fitting(self, at: Engine, conversation: str, *, limit: int) -> Iterator[Memory]:
        """What fits what was said last, best first; then what was stored in the conversation, newest first."""
        said = at.records.conversations.messages(at.spaces[0], conversation, limit=LAST_SAID)
        if said:
            query = "\n".join(one.content for one in said)[-MAX_CONTENT:]
            audience, now = at.audience(Filter()), at.now()
            found = search(at, Query(text=query, limit=limit), audience, now)
            # This was not asked for, so only what probably fits.
            yield from (hit.memory for hit in found if hit.verdict is Verdict.STRONG)
        stored = self._stored_in(at, conversation)
        yield from at.records.list(stored, at.audience(stored), now=at.now(), limit=limit)

    def _stored_in(self, at: Engine, conversation: str) -> Filter:
        """What was stored in a conversation; in a private one, only what is its user's."""
        private = intake.private_conversation(at, at.spaces[0], conversation)
        return Filter(conversation_id=conversation, user_id=private.user_id if private else None)

    def _link(self, at: Engine, tx: Transaction, conversation: str, memory: str) -> Injection | None:
        injections = tx.conversations.injections(at.spaces[0], conversation)
        return next((one for one in injections if one.memory == memory), None)

    def _link_of(self, at: Engine, tx: Transaction, conversation: str, memory: str) -> Injection:
        linked = None
        with suppress(NotFound):  # what is gone is in no conversation
            linked = self._link(at, tx, conversation, at.ledger.get_visible(tx, memory).id)
        if linked is None:
            raise NotFound("Memory injection not found")
        return linked

    def _context(
        self,
        at: Engine,
        conversation: Conversation,
        said: Sequence[Message],
        message: str | None,
        how: Mapping[str, Any],
    ) -> BuiltContext:
        memories = self._in_force(at, conversation.id)
        context = build_context(
            prompt=conversation.system_prompt or "",
            memories=memories,
            said=said,
            message=message,
            doubts=at.conflicts.doubts(memories),
            **how,
        )
        at.count_reads(context.memories)
        return context


def check_conversation(conversation: Conversation) -> Conversation:
    """:raises InvalidInput: naming the field that cannot be kept"""
    intake.check_name(conversation.id, "conversation_id")
    if conversation.title is not None:
        intake.check_text(conversation.title, "title", maximum=intake.MAX_TITLE)
    if conversation.access_level is AccessLevel.PUBLIC:
        raise InvalidInput("A conversation must be private or shared.", field="access_level")
    if conversation.system_prompt is not None:
        intake.check_text(conversation.system_prompt, "system_prompt")
    return conversation


def known_in(at: Engine, reads: Reads, id: str) -> Conversation:
    """:raises NotFound: if there is no such conversation"""
    known = reads.conversations.get(at.spaces[0], id)
    if known is None:
        raise missing(id)
    return known


def missing(id: str) -> NotFound:
    return NotFound(f"Conversation {id[:100]} not found")
