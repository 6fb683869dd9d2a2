"""Cold storage as an engine offers it: `jay.cold_storage.archive(…)`, `.restore(…)`."""

from __future__ import annotations

from scrubjay.engine.archiving import Archiving
from scrubjay.engine.restoring import Restoring


class ColdStorage(Archiving, Restoring):
    """Put memories away, look at what is away, bring it back."""
