"""Who may see and change what: one predicate below all surfaces, default deny.

    role     sees in granted spaces        changes                              elsewhere
    owner    everything                    everything                           public, if it names the space
    member   its own, shared, public       its own, shared and public ones      public, if it names the space
    reader   shared, public                nothing                              public, if it names the space

In a sealed space, whose files are read-only, no one changes anything.

What a caller may not see does not exist for it (NotFound); what it sees but may not change is Forbidden. Erasing for
good and making private, which both take a memory from all others, are for its author and owners. Only owners say when a
memory was verified.
"""

from __future__ import annotations

from collections.abc import Sequence

from scrubjay.errors import Forbidden
from scrubjay.values.callers import Audience, Caller, Role, Scope, Sight
from scrubjay.values.memory import AccessLevel, Memory
from scrubjay.values.store import Conversation

# For the engine's own bookkeeping (a chain must hold together though the caller sees only part of it), never a reply.
EVERYTHING = Audience("", (Scope(None, Sight.ALL),))

OPENNESS = (AccessLevel.PRIVATE, AccessLevel.SHARED, AccessLevel.PUBLIC)
SIGHT = {Role.OWNER: Sight.ALL, Role.MEMBER: Sight.OWN, Role.READER: Sight.SHARED}


def is_granted(caller: Caller, space: str) -> bool:
    return caller.spaces is None or space in caller.spaces


def audience_in(caller: Caller, spaces: Sequence[str]) -> Audience:
    """What the caller sees in the spaces it names, in their order."""
    return Audience(
        caller.user,
        tuple(Scope(space, SIGHT[caller.role] if is_granted(caller, space) else Sight.PUBLIC) for space in spaces),
        reach=audience_anywhere(caller, spaces).scopes,
    )


def own_audience(caller: Caller, memory: Memory, *, only: bool = True) -> Audience:
    """What the memory's user may see: in its own space only, or in every space that the caller may use."""
    role = caller.role if memory.context.user_id == caller.user else Role.MEMBER
    spaces = None if caller.spaces is None else caller.spaces | {memory.space}
    user = Caller(user=memory.context.user_id, role=role, spaces=spaces)
    return audience_in(user, (memory.space,)) if only else audience_anywhere(user)


def audience_of_paths(caller: Caller, space: str) -> Audience:
    """Whose paths the caller cannot use once more: its own private memories, and those of all."""
    return Audience(caller.user, (Scope(space, Sight.OWN),))


def audience_anywhere(caller: Caller, named: Sequence[str] = ()) -> Audience:
    """What the caller sees when it names a memory: every space granted to it, and what is public in those it names."""
    sight = SIGHT[caller.role]
    if caller.spaces is None:
        return Audience(caller.user, (Scope(None, sight),))
    elsewhere = [Scope(space, Sight.PUBLIC) for space in named if not is_granted(caller, space)]
    return Audience(caller.user, (*(Scope(space, sight) for space in sorted(caller.spaces)), *elsewhere))


def sees(audience: Audience, memory: Memory) -> bool:
    """Whether these may see a memory as it is here: for states that no store looks up, such as former ones."""
    scopes = (scope for scope in audience.scopes if scope.space in (None, memory.space))
    return any(_sees(audience.user, scope.sight, memory) for scope in scopes)


def _sees(user: str, sight: Sight, memory: Memory) -> bool:
    if memory.access_level is AccessLevel.PRIVATE:
        return sight is Sight.ALL or (sight is Sight.OWN and memory.context.user_id == user)
    return sight >= (Sight.PUBLIC if memory.access_level is AccessLevel.PUBLIC else Sight.SHARED)


def as_open(one: Memory, other: Memory) -> bool:
    """Whether everyone who may see the other memory may see this one."""
    if one.space != other.space:
        return False
    if one.access_level is AccessLevel.PRIVATE:
        return other.access_level is AccessLevel.PRIVATE and one.context.user_id == other.context.user_id
    return OPENNESS.index(one.access_level) >= OPENNESS.index(other.access_level)


def may_change(caller: Caller, memory: Memory) -> bool:
    """Whether a memory that the caller sees is also the caller's to change."""
    if caller.role is Role.READER or not is_granted(caller, memory.space) or memory.space in caller.sealed:
        return False
    own = memory.context.user_id == caller.user
    return caller.role is Role.OWNER or own or memory.access_level is not AccessLevel.PRIVATE


def check_change(caller: Caller, memory: Memory) -> None:
    """:raises Forbidden: if the caller may see this memory but not change it"""
    check_unsealed(caller, memory.space)
    if not may_change(caller, memory):
        raise Forbidden(f"You are not allowed to change memory {memory.id}.", memory_id=memory.id)


def may_erase(caller: Caller, memory: Memory) -> bool:
    """Whether the caller may delete a memory for good: only its author and owners, whoever may change it."""
    own = memory.context.user_id == caller.user
    return may_change(caller, memory) and (caller.role is Role.OWNER or own)


def check_erase(caller: Caller, memory: Memory) -> None:
    """:raises Forbidden: if the caller may change this memory but not erase it"""
    if not may_erase(caller, memory):
        raise Forbidden(
            f"Only the author or an owner may erase memory {memory.id} for good.",
            hint="Soft-delete it instead: it can be restored for a while.",
            memory_id=memory.id,
        )


def check_levels(caller: Caller, before: Memory, after: Memory) -> None:
    """:raises Forbidden: if a change hides a memory that is neither the caller's nor an owner's to hide"""
    hidden = after.access_level is AccessLevel.PRIVATE is not before.access_level
    if hidden and caller.role is not Role.OWNER and before.context.user_id != caller.user:
        raise Forbidden(
            f"Only the author or an owner may make memory {before.id} private.",
            hint="Store your own private memory instead.",
            memory_id=before.id,
        )


def check_verifies(caller: Caller, before: Memory, after: Memory) -> None:
    """:raises Forbidden: if anyone but an owner says when a memory was verified, or that it was not"""
    if after.verified_at != before.verified_at and caller.role is not Role.OWNER:
        raise Forbidden("Only an owner may set when a memory was verified.", hint="Leave verified_at out.")


def sees_conversation(caller: Caller, conversation: Conversation) -> bool:
    """Whether a conversation is there for a caller who has a part in its space."""
    if conversation.access_level is not AccessLevel.PRIVATE or caller.role is Role.OWNER:
        return True
    return caller.role is Role.MEMBER and conversation.user_id == caller.user


def check_ends(caller: Caller, conversation: Conversation) -> None:
    """:raises Forbidden: unless the caller began the conversation or is an owner"""
    if caller.role is not Role.OWNER and conversation.user_id != caller.user:
        raise Forbidden("Only its creator or an owner may clear or delete a conversation.", hint="Ask an owner.")


def check_call(caller: Caller, *, changes: bool, local: bool, owner: bool) -> None:
    """The gate before every operation, whatever its arguments.

    :raises Forbidden: if the caller's role does not reach so far
    """
    if changes and caller.role is Role.READER:
        raise Forbidden("Readers cannot make changes.", hint="Ask an owner for another role.")
    if local and not caller.local:
        raise Forbidden(
            "Only the server's own owner may use its files, folders and endpoints.",
            hint="Run it on that machine, or have its owner set remote_files.",
        )
    if owner:
        check_owner(caller)


def check_owner(caller: Caller) -> None:
    """:raises Forbidden: if the caller is not an owner"""
    if caller.role is not Role.OWNER:
        raise Forbidden("Only owners may do that.", hint="Ask an owner.")


def check_store(caller: Caller, space: str) -> None:
    """:raises Forbidden: if the caller may not write into this space"""
    if caller.role is Role.READER or not is_granted(caller, space):
        own = f"Name one of yours ({', '.join(sorted(caller.spaces))}), or ask" if caller.spaces else "Ask"
        raise Forbidden(
            f"You are not allowed to write to space {space}.", hint=f"{own} an owner for a grant.", space=space
        )
    check_unsealed(caller, space)


def check_unsealed(caller: Caller, space: str) -> None:
    """:raises Forbidden: if the space is a folder that was added as read-only"""
    if space in caller.sealed:
        raise Forbidden(f"Store {space} is read-only.", hint="Edit its files, or use another store.", space=space)


def check_granted(caller: Caller, space: str) -> None:
    """:raises Forbidden: if the caller has no part in this space"""
    if not is_granted(caller, space):
        raise Forbidden("Access denied", hint="Ask an owner for a grant.", space=space)


def check_owns(caller: Caller, space: str) -> None:
    """:raises Forbidden: if the caller does not own this space"""
    if caller.role is not Role.OWNER or not is_granted(caller, space):
        raise Forbidden("Only an owner may do that.", space=space)


def owner_of_new(caller: Caller, user_id: str | None) -> str:
    """Whose a new memory is: the caller's own, unless an owner names another user.

    :raises Forbidden: if the caller names another user without the right
    """
    return caller.user if user_id is None else checked_user(caller, user_id)


def checked_user(caller: Caller, user_id: str) -> str:
    """:raises Forbidden: if the caller names another user without being an owner"""
    if user_id != caller.user and caller.role is not Role.OWNER:
        raise Forbidden("You are not allowed to act for another user.", hint="Omit user_id, or ask an owner.")
    return user_id
