"""What the global options of one call said, and the engine they open."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from scrubjay.errors import SpaceNotFound
from scrubjay.lazy import modules

if TYPE_CHECKING:
    from scrubjay import settings as configuration
    from scrubjay import wiring
    from scrubjay.engine import engine as engines
    from scrubjay.values import callers
else:
    configuration, wiring, engines, callers = modules("scrubjay", "settings wiring engine.engine values.callers")


class CommandSession:
    """One call of the program. Imports nothing until a command asks for something."""

    def __init__(self) -> None:
        self.home: str | None = None
        self.space: str | None = None
        self.as_json = False
        self.debug = False
        self.given: dict[str, object] = {}  # global options as typed, for commands that refuse some

    def settings(self, **flags: Any) -> configuration.Settings:
        """:raises InvalidInput: naming the setting that has a bad value"""
        return configuration.load(home=self.home, space=self.space, **flags)

    @property
    def narrowed(self) -> bool:
        """Whether --space named the only space to look in."""
        return self.space not in (None, configuration.AUTO)

    def engine(self, *, meaning: bool = True, known_space: bool = False, writes: bool = False) -> engines.Engine:
        """The engine, to be used in a `with` block. Without meaning no model is opened: much faster, and enough for
        whatever neither embeds nor compares texts. A command that writes compares with every space, also where its
        caller named the one that it writes to.

        :raises SpaceNotFound: with `known_space`, if its space does not exist; the default one always does
        """
        # A missing model is downloaded by `model pull` or by a server: this process ends too soon.
        only = True if self.narrowed and not writes else None
        chosen = self.settings(model_pull="never", embedder=None if meaning else "none", only=only)
        chosen = replace(chosen, space=chosen.space or configuration.AUTO)
        # A person who typed a command waits for its whole answer: these limits are for servers.
        engine = wiring.open_engine(replace(chosen, embed_wait=configuration.DAY, judge_wait=0.0))
        if known_space:
            try:
                check_known(engine)
            except BaseException:
                engine.close()
                raise
        provenance = callers.Provenance(client="scrubjay-cli", transport="cli")
        return engine.bound_to(provenance=provenance, notices=engines.Notices())


def check_known(engine: engines.Engine) -> None:
    folders = () if engine.registry is None else engine.registry.stores()
    space = engine.spaces[0]
    if engine.only and not (space == callers.DEFAULT_SPACE or space in folders or engine.known_spaces.has(space)):
        hint = "`scrubjay spaces list` shows the existing ones; storing a memory in a space creates it."
        raise SpaceNotFound(f"No space {space}.", hint=hint, space=space)
