"""Cold storage as an engine offers it: `jay.cold_storage.archive(…)`, `.restore(…)`."""

from __future__ import annotations

from scrubjay.engine.archive.archiving import Archiving
from scrubjay.engine.archive.moving import Moving
from scrubjay.engine.archive.restoring import Restoring


class ColdStorage(Archiving, Restoring, Moving):
    """Put memories away, look at what is away, bring it back."""
