"""Cold storage as an engine offers it: `jay.cold_storage.archive(…)`, `.restore(…)`."""

from __future__ import annotations

from scrubjay.engine.archive.archiving import Archiving
from scrubjay.engine.archive.moving import Moved, Moving, Place
from scrubjay.engine.archive.restoring import Restoring
from scrubjay.values.memory import Tier


class ColdStorage(Archiving, Restoring):
    """Put memories away, look at what is away, bring it back."""

    def accept_folder(self) -> dict[Tier, bool]:
        """As `Moving.accept_folder`."""
        return Moving(self._engine).accept_folder()

    def move(self, to: Place) -> Moved:
        """As `Moving.move`."""
        return Moving(self._engine).move(to)
