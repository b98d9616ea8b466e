"""The PostgreSQL store passes the suite that every store passes.

The user of these tests is no superuser: the policies of the tables hold for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from zero_mem.storage.base import Storage
from zero_mem.storage.keys import MasterKey
from zero_mem.storage.postgres import PostgresStorage
from zero_mem.storage.sealed import Encryption, SealedStorage

pytest.register_assert_rewrite("zero_mem.testing")

from zero_mem.testing.conformance import StoreConformance  # noqa: E402
from zero_mem.testing.reads import SearchConformance  # noqa: E402
from zero_mem.testing.time_travel import PurgeConformance  # noqa: E402
from zero_mem.testing.vectors import VectorPrimitives  # noqa: E402


class TestPostgres(StoreConformance):
    @pytest.fixture
    def storage(self, postgres_url: str) -> Iterator[Storage]:
        storage = PostgresStorage(postgres_url, durability="normal")
        yield storage
        storage.close()


class TestSealed(SearchConformance, PurgeConformance, VectorPrimitives):
    """An encrypted store on the server."""

    @pytest.fixture
    def storage(self, postgres_url: str) -> Iterator[Storage]:
        inner = PostgresStorage(postgres_url, durability="normal")
        storage = SealedStorage(inner, Encryption(master=MasterKey(bytes(32))))
        yield storage
        storage.close()
