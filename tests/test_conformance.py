"""Every store that the project ships passes the suite that it ships."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from zero_mem.storage.base import Storage
from zero_mem.storage.data_keys import Encryption
from zero_mem.storage.keys import KeyFile, MasterKey
from zero_mem.storage.memory import MemoryStorage
from zero_mem.storage.sealed import SealedStorage
from zero_mem.storage.sqlite import SQLiteStorage

pytest.register_assert_rewrite("zero_mem.testing")

from zero_mem.testing.conformance import StoreConformance  # noqa: E402

STORES: dict[str, Callable[[Path], Storage]] = {
    "memory": lambda folder: MemoryStorage(),
    "sqlite": lambda folder: SQLiteStorage(str(folder / "store.db"), durability="normal"),
    "sqlite, sealed": lambda folder: SealedStorage(
        SQLiteStorage(str(folder / "store.db"), durability="normal"),
        Encryption(master=MasterKey(bytes(32)), keys=KeyFile(folder / "keys.json")),
    ),
}


class TestStores(StoreConformance):
    # A store that needs a server joins here as a parameter with a marker of its own.
    @pytest.fixture(params=sorted(STORES))
    def storage(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Storage]:
        storage = STORES[request.param](tmp_path)
        yield storage
        storage.close()


@pytest.mark.req("pkg:import")
def test_the_fakes_need_no_pytest() -> None:
    code = "import sys, zero_mem.testing; sys.exit('pytest' in sys.modules)"
    assert subprocess.run([sys.executable, "-I", "-c", code], check=False).returncode == 0
