"""What the global options of one call said, and the engine they open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine
    from scrubjay.settings import Settings


class Session:
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

    def engine(self, *, meaning: bool = True) -> Engine:
        """The engine, to be used in a `with` block. Without meaning no model is opened: much faster, and enough for
        whatever neither embeds nor compares texts.
        """
        from scrubjay.values.memory import Provenance
        from scrubjay.wiring import open_engine

        # A missing model is downloaded by `model pull` or by a server: this process ends too soon.
        settings = self.settings(model_pull="never", embedder=None if meaning else "none")
        engine = open_engine(settings)
        return engine.bound_to(provenance=Provenance(client="scrubjay-cli", transport="cli"))
