"""What a store promises, as tests. A backend subclasses `StoreContract` and provides two fixtures:

    store    an empty store
    reopen   a function that closes it and opens it again

The words are those of `base.py`; both change together.
"""

from __future__ import annotations

from scrubjay.stores.contract_archives import ArchivesContract
from scrubjay.stores.contract_callers import CallersContract
from scrubjay.stores.contract_conversations import ConversationsContract
from scrubjay.stores.contract_files import FilesContract
from scrubjay.stores.contract_history import HistoryContract
from scrubjay.stores.contract_jobs import JobsContract
from scrubjay.stores.contract_lists import ListsContract
from scrubjay.stores.contract_memories import MemoriesContract
from scrubjay.stores.contract_samples import *  # noqa: F403 -- for tests of one backend, too
from scrubjay.stores.contract_search import SearchContract
from scrubjay.stores.contract_spaces import SpacesContract
from scrubjay.stores.contract_statistics import StatisticsContract
from scrubjay.stores.contract_sync import SyncContract


class StoreContract(
    MemoriesContract,
    HistoryContract,
    ListsContract,
    SearchContract,
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
