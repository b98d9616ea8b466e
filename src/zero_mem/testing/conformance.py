"""The conformance suite: what every store must do, as tests that its author can run.

Subclass `StoreConformance` in a test module of your own and say how to make a new, empty store:

    class TestMyStore(StoreConformance):
        @pytest.fixture
        def storage(self, tmp_path):
            storage = MyStorage(tmp_path / "store")
            yield storage
            storage.close()

Each test bears the marker `req` with the ids of the requirements that it shows; register it
(`markers = ["req: requirement ids"]`) where pytest runs with `--strict-markers`.
"""

from __future__ import annotations

from zero_mem.testing.batches import BatchConformance
from zero_mem.testing.clocks import ClockConformance
from zero_mem.testing.forgetting import ExpiryConformance, LimitConformance
from zero_mem.testing.keys import KeyConformance
from zero_mem.testing.primitives import (
    HostPrimitives,
    IndexPrimitives,
    NamespacePrimitives,
    RecordPrimitives,
)
from zero_mem.testing.reads import FilterConformance, ListConformance, SearchConformance
from zero_mem.testing.time_travel import HistoryConformance, PurgeConformance
from zero_mem.testing.vectors import VectorPrimitives
from zero_mem.testing.whole_stores import WholeStores
from zero_mem.testing.writes import SaveConformance, UpdateConformance


class StorageConformance(
    NamespacePrimitives, RecordPrimitives, IndexPrimitives, VectorPrimitives, HostPrimitives
):
    """The primitives alone."""


class OperationConformance(
    SaveConformance,
    UpdateConformance,
    KeyConformance,
    BatchConformance,
    ClockConformance,
    ExpiryConformance,
    LimitConformance,
    HistoryConformance,
    PurgeConformance,
    ListConformance,
    FilterConformance,
    SearchConformance,
):
    """The operations on top, as users see them."""


class StoreConformance(StorageConformance, OperationConformance, WholeStores):
    """All that a store must do."""
