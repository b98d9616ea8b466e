"""The client passes the suite that every store passes, over a real server on loopback.

The primitives of a store (`StorageConformance`) are not reached over HTTP and are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from serving import Loopback, loopback

from zero_mem import Memory
from zero_mem.client import RemoteMemory, connect
from zero_mem.storage.base import Storage
from zero_mem.storage.sqlite import SQLiteStorage
from zero_mem.testing import CountingTokenizer, FakeClock
from zero_mem.testing.conformance import OperationConformance


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with loopback() as running:
        yield running


@pytest.mark.req("server:client")
class TestOverHttp(OperationConformance):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> Iterator[Storage]:
        storage = SQLiteStorage(str(tmp_path / "store.db"), durability="normal")
        yield storage
        storage.close()

    @pytest.fixture
    def memory(
        self, storage: Storage, clock: FakeClock, server: Loopback
    ) -> Iterator[RemoteMemory]:
        local = Memory(storage, clock=clock, tokens=CountingTokenizer(), actor="suite")
        with server.serving(local) as url, connect(url) as remote:
            yield remote
