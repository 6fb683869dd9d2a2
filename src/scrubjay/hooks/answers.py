"""What a hook gives, from an engine: of a server that is running, or one that is opened for this without a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrubjay.machine.paths import SQLITE
from scrubjay.values.callers import Provenance
from scrubjay.wiring import current_space, open_engine

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine
    from scrubjay.settings import Settings


def answer(engine: Engine, question: dict[str, Any], *, words_only: bool = False) -> dict[str, Any]:
    """The text for the client, and what the log says of it."""
    space = current_space(question["space"], Path(question["folder"]))
    bound = engine.bound_to(
        spaces=(space,),
        only=bool(question.get("only")),
        provenance=Provenance(client="scrubjay-hook", transport="hook"),
    )
    if question["moment"] == "session-start":
        brief = bound.brief()
        ids = [memory.id for section in brief.sections for memory in section.memories]
        return {"text": brief.text, "tokens": brief.tokens, "ids": ids}
    from scrubjay.engine.reminder import remind

    found = remind(bound, question["text"], words_only=words_only)
    return {"text": found.text, "tokens": found.tokens, "ids": [memory.id for memory in found.memories]}


def answer_by_words(settings: Settings, question: dict[str, Any]) -> dict[str, Any]:
    """By words, in this process, if there is a memory at all: a hook creates none."""
    if settings.store.startswith(SQLITE) and not Path(settings.store.removeprefix(SQLITE)).exists():
        return {"text": "", "how": "nothing"}
    # Not closed: this process ends without waiting, and has written nothing.
    return {**answer(open_engine(settings), question, words_only=True), "how": "words"}
