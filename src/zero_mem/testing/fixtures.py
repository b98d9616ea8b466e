"""What every part of the conformance suite stands on: a store, a clock, two namespaces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from zero_mem.errors import NotFound
from zero_mem.memory import Memory
from zero_mem.space import Namespace
from zero_mem.storage.base import Storage
from zero_mem.testing.fakes import CountingTokenizer, FakeClock


class StoreFixtures:
    """Fixtures over one new, empty store; a subclass overrides `storage`."""

    @pytest.fixture
    def storage(self) -> Iterator[Storage]:
        """Give a new, empty store and take it away again."""
        raise NotImplementedError("override the fixture `storage` to give a new, empty store")

    @pytest.fixture
    def clock(self) -> FakeClock:
        """Give the clock that the store is opened with."""
        return FakeClock()

    @pytest.fixture
    def memory(self, storage: Storage, clock: FakeClock) -> Iterator[Memory]:
        """Open the store."""
        with Memory(storage, clock=clock, tokens=CountingTokenizer(), actor="suite") as memory:
            yield memory

    @pytest.fixture
    def space(self, memory: Memory) -> Namespace:
        """Give the namespace that a test writes to."""
        return memory.namespace("acme", "alice")

    @pytest.fixture
    def other(self, memory: Memory) -> Namespace:
        """Give a namespace that must stay as it is."""
        return memory.namespace("acme", "bob")


def texts(space: Namespace, where: dict[str, Any] | None = None) -> list[str]:
    """List the bodies of the live records of a namespace, or of those a filter names."""
    return [record.text for record in space.each(where)]


def found(space: Namespace, query: str, **options: Any) -> list[str]:
    """Search and give the ids, best first."""
    return [hit.memory_id for hit in space.search(query, **options)]


def readable(space: Namespace, memory_id: str) -> bool:
    """Tell whether get answers."""
    try:
        space.get(memory_id)
    except NotFound:
        return False
    return True


def in_no_read(space: Namespace, memory_id: str, query: str) -> bool:
    """Tell whether a record is out of get, list, count, search, recall and prompts."""
    return not (
        readable(space, memory_id)
        or space.count({"memory_id": memory_id})
        or any(record.memory_id == memory_id for record in space.each())
        or memory_id in found(space, query)
        or any(item.memory_id == memory_id for item in space.recall(query).items)
        or f"[memo:{memory_id}]" in space.recall_for_prompt([memory_id])
    )
