"""What a store promises, as tests. A backend subclasses `StoreContract` and provides two fixtures:

    store    an empty store
    reopen   a function that closes it and opens it again

The words are those of `promises/memories.py`; both change together.
"""

from __future__ import annotations

from tests.stores.contract.archives import ArchivesContract
from tests.stores.contract.callers import CallersContract
from tests.stores.contract.conversations import ConversationsContract
from tests.stores.contract.files import FilesContract
from tests.stores.contract.further_vectors import FurtherVectorsContract
from tests.stores.contract.history import HistoryContract
from tests.stores.contract.jobs import JobsContract
from tests.stores.contract.lists import ListsContract
from tests.stores.contract.memories import MemoriesContract
from tests.stores.contract.phrases import PhrasesContract
from tests.stores.contract.samples import *  # noqa: F403 -- for tests of one backend, too
from tests.stores.contract.search import SearchContract
from tests.stores.contract.spaces import SpacesContract
from tests.stores.contract.statistics import StatisticsContract
from tests.stores.contract.sync import SyncContract


class StoreContract(
    MemoriesContract,
    HistoryContract,
    ListsContract,
    SearchContract,
    FurtherVectorsContract,
    PhrasesContract,
    StatisticsContract,
    ConversationsContract,
    SpacesContract,
    JobsContract,
    ArchivesContract,
    FilesContract,
    SyncContract,
    CallersContract,
):
    """All of it."""

    vector_size = 4 * DIMENSION  # noqa: F405 -- bytes
