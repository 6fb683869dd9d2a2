"""What the global options of one call said, and the engine they open."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine
    from scrubjay.settings import Settings


class CommandSession:
    """One call of the program. Imports nothing until a command asks for something."""

    def __init__(self) -> None:
        self.home: str | None = None
        self.space: str | None = None
        self.as_json = False
        self.debug = False
        self.given: dict[str, object] = {}  # global options as typed, for commands that refuse some

    def settings(self, **flags: Any) -> Settings:
        """:raises InvalidInput: naming the setting that has a bad value"""
        from scrubjay.settings import load

        return load(home=self.home, space=self.space, **flags)

    def engine(self, *, meaning: bool = True, known_space: bool = False, writes: bool = False) -> Engine:
        """The engine, to be used in a `with` block. Without meaning no model is opened: much faster, and enough for
        whatever neither embeds nor compares texts. A command that writes compares with every space, also where its
        caller named the one that it writes to.

        :raises SpaceNotFound: with `known_space`, if its space does not exist; the default one always does
        """
        from scrubjay.engine.engine import Notices
        from scrubjay.settings import AUTO, DAY
        from scrubjay.values.callers import Provenance
        from scrubjay.wiring import open_engine

        # A missing model is downloaded by `model pull` or by a server: this process ends too soon.
        only = True if self.space not in (None, AUTO) and not writes else None
        settings = self.settings(model_pull="never", embedder=None if meaning else "none", only=only)
        settings = replace(settings, space=settings.space or AUTO)
        # A person who typed a command waits for its whole answer: these limits are for servers.
        engine = open_engine(replace(settings, embed_wait=DAY, judge_wait=0.0))
        if known_space:
            try:
                check_known(engine)
            except BaseException:
                engine.close()
                raise
        return engine.bound_to(provenance=Provenance(client="scrubjay-cli", transport="cli"), notices=Notices())


def check_known(engine: Engine) -> None:
    from scrubjay.errors import SpaceNotFound
    from scrubjay.values.callers import DEFAULT_SPACE

    folders = () if engine.registry is None else engine.registry.stores()
    space = engine.spaces[0]
    if engine.only and not (space == DEFAULT_SPACE or space in folders or engine.known_spaces.has(space)):
        hint = "`scrubjay spaces list` shows the existing ones; storing a memory in a space creates it."
        raise SpaceNotFound(f"No space {space}.", hint=hint, space=space)
