"""Who may see and change what: one predicate below all surfaces, default deny.

    role     sees in granted spaces        changes                              elsewhere
    owner    everything                    everything                           public, if it names the space
    member   its own, shared, public       its own, shared and public ones      public, if it names the space
    reader   shared, public                nothing                              public, if it names the space

What a caller may not see does not exist for it (NotFound); what it sees but may not change is Forbidden.
"""

from __future__ import annotations

from collections.abc import Sequence

from scrubjay.errors import Forbidden
from scrubjay.memory import AccessLevel, Audience, Caller, Memory, Role, Scope, Sight

# For the engine's own bookkeeping (a chain must hold together though the caller sees only part of it), never a reply.
EVERYTHING = Audience("", (Scope(None, Sight.ALL),))

SIGHT = {Role.OWNER: Sight.ALL, Role.MEMBER: Sight.OWN, Role.READER: Sight.SHARED}


def granted(caller: Caller, space: str) -> bool:
    return caller.spaces is None or space in caller.spaces


def audience_in(caller: Caller, spaces: Sequence[str]) -> Audience:
    """What the caller sees in the spaces it names, in their order."""
    return Audience(
        caller.user,
        tuple(Scope(space, SIGHT[caller.role] if granted(caller, space) else Sight.PUBLIC) for space in spaces),
    )


def audience_anywhere(caller: Caller, named: Sequence[str] = ()) -> Audience:
    """What the caller sees when it names a memory: every space granted to it, and what is public in those it names."""
    sight = SIGHT[caller.role]
    if caller.spaces is None:
        return Audience(caller.user, (Scope(None, sight),))
    elsewhere = [Scope(space, Sight.PUBLIC) for space in named if not granted(caller, space)]
    return Audience(caller.user, (*(Scope(space, sight) for space in sorted(caller.spaces)), *elsewhere))


def may_change(caller: Caller, memory: Memory) -> bool:
    """Whether a memory that the caller sees is also the caller's to change."""
    if caller.role is Role.READER or not granted(caller, memory.space):
        return False
    own = memory.context.user_id == caller.user
    return caller.role is Role.OWNER or own or memory.access_level is not AccessLevel.PRIVATE


def check_change(caller: Caller, memory: Memory) -> None:
    """:raises Forbidden: if the caller may see this memory but not change it"""
    if not may_change(caller, memory):
        raise Forbidden(f"Memory {memory.id} is not yours to change.", memory_id=memory.id)


def check_call(caller: Caller, *, changes: bool, local: bool, owner: bool) -> None:
    """The gate before every operation, whatever its arguments.

    :raises Forbidden: if the caller's role does not reach so far
    """
    if changes and caller.role is Role.READER:
        raise Forbidden("A reader changes nothing.", hint="Ask an owner for another role.")
    if local and not caller.local:
        raise Forbidden(
            "What touches files, folders and endpoints of the server is for its own owner.",
            hint="Run it on that machine, or let its owner set remote_files.",
        )
    if owner:
        check_owner(caller)


def check_owner(caller: Caller) -> None:
    """:raises Forbidden: if the caller is no owner"""
    if caller.role is not Role.OWNER:
        raise Forbidden("Only owners may do that.", hint="Ask an owner.")


def check_store(caller: Caller, space: str) -> None:
    """:raises Forbidden: if the caller may not write into this space"""
    if caller.role is Role.READER or not granted(caller, space):
        raise Forbidden(f"You may not write into space {space}.", hint="Ask an owner for a grant.", space=space)


def check_granted(caller: Caller, space: str) -> None:
    """:raises Forbidden: if the caller has no part in this space"""
    if not granted(caller, space):
        raise Forbidden("Access denied", hint="Ask an owner for a grant.", space=space)


def check_owns(caller: Caller, space: str) -> None:
    """:raises Forbidden: if the caller does not own this space"""
    if caller.role is not Role.OWNER or not granted(caller, space):
        raise Forbidden("Only an owner may do that.", space=space)


def owner_of_new(caller: Caller, user_id: str | None) -> str:
    """Whose a new memory is: the caller's own, unless an owner names somebody else.

    :raises Forbidden: if the caller names another user without the right
    """
    return caller.user if user_id is None else checked_user(caller, user_id)


def checked_user(caller: Caller, user_id: str) -> str:
    """:raises Forbidden: if the caller names another user without being an owner"""
    if user_id != caller.user and caller.role is not Role.OWNER:
        raise Forbidden("You may not name another user.", hint="Leave user_id out, or ask an owner.")
    return user_id
