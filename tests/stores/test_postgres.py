"""The PostgreSQL store keeps the contract, and what it promises of its database and of other processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from scrubjay.stores.base import Store
from scrubjay.stores.contract import Reopen, StoreContract
from scrubjay.stores.postgres import PostgresStore
from tests.postgres import Stores, server_url


@pytest.fixture(scope="module")
def stores() -> Iterator[Stores]:
    with closing(Stores(server_url(), "contract")) as stores:
        yield stores


@pytest.fixture
def url(stores: Stores) -> str:
    return stores.empty()


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    with closing(PostgresStore(url)) as store:
        yield store


class TestPostgresStore(StoreContract):
    @pytest.fixture
    def reopen(self, store: PostgresStore, url: str) -> Iterator[Reopen]:
        with ExitStack() as opened:

            def reopen() -> Store:
                store.close()
                return opened.enter_context(closing(PostgresStore(url)))

            yield reopen
