"""A change of a memory's fields: examined and embedded before its transaction, and written within one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from scrubjay.engine.lifecycle import lifecycle, supersession
from scrubjay.engine.store import embedding, intake
from scrubjay.engine.store.enrichment import auto_tags
from scrubjay.engine.store.history import TextVectors
from scrubjay.stores.promises.memories import Transaction
from scrubjay.values.callers import Role
from scrubjay.values.frozen import dataclass, replace
from scrubjay.values.memory import Kind, Memory, Revised

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """What a memory is to become, and the vectors of its text if that is another one."""

    known: Memory  # as it was looked at
    changed: Mapping[str, Any]
    flags: tuple[str, ...]
    text: TextVectors | None

    def current(self, engine: Engine, tx: Transaction, *, expected_version: int | None = None) -> Memory:
        """The memory that it is to be written to.

        :raises Conflict: if that has changed meanwhile
        """
        current = engine.ledger.get_changeable(tx, self.known.id)
        if expected_version not in (None, current.version) or current.version != self.known.version:
            raise lifecycle.changed_meanwhile(current)
        return current

    def write(self, engine: Engine, tx: Transaction, current: Memory, *, reason: str | None) -> Revised:
        revised = replace(intake.retitle(current, self.changed), flags=self.flags)
        if "content" in self.changed:
            revised = replace(revised, auto_tags=auto_tags(revised.text))
        return engine.ledger.revise(tx, current, revised, self.changed, reason=reason, text=self.text)

    def see_to_the_rest(self, engine: Engine) -> None:
        """In the background a text is judged, and a long one gets the vectors of its later parts."""
        if self.text is not None:
            engine.parts.backlog.wake()


def prepare_revision(engine: Engine, known: Memory, changed: Mapping[str, Any]) -> Revision:
    flags = known.flags
    if changed.keys() & {"content", "title", "metadata", "also"}:
        examined = intake.check_trust(engine, intake.retitle(known, changed))
        changed, flags = {name: getattr(examined, name) for name in changed}, examined.flags
    embeds = "content" in changed or changed.get("also", known.also) != known.also
    text = embedding.embed(engine, intake.retitle(known, changed))[0] if embeds else None
    return Revision(known=known, changed=changed, flags=flags, text=text)


def fields_of(engine: Engine, former: Memory) -> dict[str, Any]:
    """What this caller can bring back of a former state."""
    fields = {name: getattr(former, name) for name in intake.CHANGEABLE}
    fields["valid_until"] = supersession.own_end(engine.records, former)  # the other kind follows from links
    if former.kind is not Kind.MEMORY:
        del fields["content"]
    if engine.caller.role is not Role.OWNER:
        del fields["verified_at"]  # not theirs to say
    return fields
