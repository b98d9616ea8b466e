"""The same random operations on SQLite and in memory: all that can be seen is equal."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from processes.sqlite_checks import file_faults

from zero_mem.errors import ZeroMemError
from zero_mem.memory import Memory
from zero_mem.operations.batch import BatchResult
from zero_mem.operations.history import HistoryEntry
from zero_mem.past import Past
from zero_mem.space import Namespace
from zero_mem.storage.base import Storage
from zero_mem.storage.memory import MemoryStorage
from zero_mem.storage.sqlite import SQLiteStorage
from zero_mem.testing import CountingTokenizer, FakeClock
from zero_mem.types import Blob, Hit, Json, MemoryRecord, Page

pytestmark = [pytest.mark.req("op:save", "op:order", "history:journal", "history:as-of")]

Call: TypeAlias = Callable[[Namespace], object]

PATHS = [("a",), ("a", "b")]
WORDS = ["refund", "order", "the", "bicycle", "退款", "申请", "order-57", "🚲", "*", "don't"]
QUERIES = ["refund", "the order", "退款", "申请退", "bicycle order-57 refund", "*", "🚲"]
ANY_STATE = {"state": {"in": ["active", "expired", "archived", "deleted"]}}

TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
BODIES = st.one_of(
    TEXTS,
    TEXTS,
    st.sampled_from(["lone \ud800 nul \0", "[memo:1] save"]),
    st.builds(Json, st.dictionaries(st.sampled_from("ab"), TEXTS | st.integers(0, 1))),
    st.just(Blob(data=b"\0\xff")),
)
IDS = st.sampled_from(["1", "2", "3", "4", "x", "y"])
TASKS = st.sampled_from(["t", "u"])
LIFETIMES = st.sampled_from([1.0, 30, timedelta(days=40), None])
METADATA = st.dictionaries(
    st.sampled_from(["order", "m"]), st.sampled_from([57, 57.0, "57", None, [1], True]), max_size=2
)
VERSIONS = st.integers(0, 4)


def options(**strategies: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Draw keyword arguments, each of them given or not."""
    return st.fixed_dictionaries({}, optional=strategies)


SAVES = options(
    kind=st.sampled_from(["note", "task_state", "user_pref", "capped"]),
    key=st.sampled_from(["k", "l"]),
    memory_id=IDS,
    metadata=METADATA,
    tags=st.lists(st.sampled_from(["red", "退款"]), max_size=2),
    task=TASKS,
    source=st.sampled_from(["user", "tool"]),
    expires_in=LIFETIMES,
    invalidated_by=st.just(["e"]),
    if_version=VERSIONS,
    idempotency_key=st.sampled_from(["once", "twice"]),
    hold=st.sampled_from(["owner", "other"]),
)
UPDATES = options(
    content=BODIES,
    metadata=METADATA | st.none(),
    tags=st.lists(st.sampled_from(["red", "blue"]), max_size=2) | st.none(),
    expires_in=LIFETIMES,
    if_version=VERSIONS,
)
WHERES = st.sampled_from(
    [
        {"kind": "task_state"},
        {"tag": "red"},
        {"metadata.order": {"gte": 57}},
        {"task": {"exists": True}, "state": "active"},
        {"not": {"key": "k"}},
        {"state": "archived"},
        {"or": [{"state": "expired"}, {"text": {"contains": "退"}}]},
        {"memory_id": {"in": ["1", "x"]}},
        {"access_count": {"gt": 0}},
    ]
)


def seen(value: Any) -> Any:
    """Reduce a result to what must be equal: all but the random uid."""
    if isinstance(value, MemoryRecord):
        return repr(replace(value, uid=""))
    if isinstance(value, HistoryEntry):
        return seen(value.record), repr(replace(value, record=None))
    if isinstance(value, Hit):
        return value.memory_id, round(value.score, 12), seen(value.record)
    if isinstance(value, BatchResult):
        return seen(value.results)
    if isinstance(value, ZeroMemError):
        return type(value), str(value)
    if isinstance(value, Page | list | tuple):
        return [seen(each) for each in value]
    return value


class Twins(RuleBasedStateMachine):
    """One store in memory and one in a file, under one clock."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "store.db"
        self.clock = FakeClock()
        self.stores = [
            Memory(storage, clock=self.clock, tokens=CountingTokenizer())
            for storage in self.storages()
        ]
        self.moments: list[datetime] = []
        self.spaces_used = set[tuple[str, ...]]()

    def storages(self) -> tuple[Storage, Storage]:
        """Make the two stores, both empty."""
        return MemoryStorage(), SQLiteStorage(str(self.path), durability="normal")

    def teardown(self) -> None:
        with self.folder:
            for store in self.stores:
                store.close()
            assert file_faults(self.path) == []

    def both(self, path: tuple[str, ...], call: Call) -> Any:
        """Do the same to both, and see the same come out of it."""
        self.spaces_used.add(path)
        outcomes = []
        for store in self.stores:
            try:
                outcomes.append(seen(call(store.namespace(*path))))
            except ZeroMemError as error:
                outcomes.append(seen(error))
        assert outcomes[0] == outcomes[1]
        return outcomes[0]

    # Writes

    @rule(path=st.sampled_from(PATHS), body=BODIES, options=SAVES)
    def save(self, path: tuple[str, ...], body: Any, options: dict[str, Any]) -> None:
        self.both(path, lambda space: space.save(body, **options))

    @rule(
        path=st.sampled_from(PATHS),
        items=st.lists(st.tuples(BODIES, SAVES), min_size=1, max_size=4),
        on_error=st.sampled_from(["abort", "skip"]),
    )
    def save_many(
        self, path: tuple[str, ...], items: list[tuple[Any, dict[str, Any]]], on_error: Any
    ) -> None:
        batch = [{"content": body, **options} for body, options in items]
        self.both(path, lambda space: space.save_many(batch, on_error=on_error))

    @rule(path=st.sampled_from(PATHS), memory_id=IDS, options=UPDATES)
    def update(self, path: tuple[str, ...], memory_id: str, options: dict[str, Any]) -> None:
        self.both(path, lambda space: space.update(memory_id, **options))

    @rule(
        path=st.sampled_from(PATHS),
        items=st.lists(st.tuples(IDS, UPDATES), min_size=1, max_size=3),
        on_error=st.sampled_from(["abort", "skip"]),
    )
    def update_many(
        self, path: tuple[str, ...], items: list[tuple[str, dict[str, Any]]], on_error: Any
    ) -> None:
        batch = [{"memory_id": memory_id, **options} for memory_id, options in items]
        self.both(path, lambda space: space.update_many(batch, on_error=on_error))

    @rule(path=st.sampled_from(PATHS), memory_id=IDS, options=options(expires_in=LIFETIMES))
    def touch(self, path: tuple[str, ...], memory_id: str, options: dict[str, Any]) -> None:
        self.both(path, lambda space: space.touch(memory_id, **options))

    @rule(
        path=st.sampled_from(PATHS),
        memory_id=IDS,
        name=st.sampled_from(["archive", "restore", "restore", "delete"]),
        options=options(if_version=VERSIONS),
    )
    def end(self, path: tuple[str, ...], memory_id: str, name: str, options: Any) -> None:
        self.both(path, lambda space: getattr(space, name)(memory_id, **options))

    @rule(
        path=st.sampled_from(PATHS),
        ids=st.lists(IDS, min_size=1, max_size=4),
        name=st.sampled_from(["touch_many", "archive_many", "restore_many"]),
    )
    def end_many(self, path: tuple[str, ...], ids: list[str], name: str) -> None:
        self.both(path, lambda space: getattr(space, name)(ids, on_error="skip"))

    @rule(path=st.sampled_from(PATHS), where=WHERES)
    def delete_many(self, path: tuple[str, ...], where: Any) -> None:
        self.both(path, lambda space: space.delete_many(where))

    @rule(path=st.sampled_from(PATHS), memory_id=IDS)
    def purge(self, path: tuple[str, ...], memory_id: str) -> None:
        self.both(path, lambda space: space.purge(memory_id))

    # Forgetting

    @rule(
        path=st.sampled_from(PATHS),
        action=st.sampled_from(["expire", "archive", "delete"]),
        dry_run=st.booleans(),
    )
    def sweep(self, path: tuple[str, ...], action: Any, dry_run: bool) -> None:
        self.both(path, lambda space: space.expire(action=action, dry_run=dry_run))

    @rule(path=st.sampled_from(PATHS), task=TASKS)
    def start_task(self, path: tuple[str, ...], task: str) -> None:
        self.both(path, lambda space: space.start_task(task, lease=60))

    @rule(path=st.sampled_from(PATHS), task=TASKS, dry_run=st.booleans())
    def end_task(self, path: tuple[str, ...], task: str, dry_run: bool) -> None:
        self.both(path, lambda space: space.end_task(task, dry_run=dry_run))

    @rule(
        path=st.sampled_from(PATHS), match=METADATA, action=st.sampled_from(["expire", "archive"])
    )
    def raise_event(self, path: tuple[str, ...], match: Any, action: Any) -> None:
        self.both(path, lambda space: space.raise_event("e", match=match, action=action))

    @rule(path=st.sampled_from(PATHS), merge=st.booleans())
    def duplicates(self, path: tuple[str, ...], merge: bool) -> None:
        self.both(path, lambda space: space.duplicates("note", merge=merge))

    @rule(
        path=st.sampled_from(PATHS),
        kind=st.sampled_from(["note", "capped"]),
        settings=options(
            max_memory_items=st.integers(1, 3),
            overflow=st.sampled_from(["archive", "refuse"]),
            dedupe_key=st.sampled_from([None, "content", "metadata.order"]),
            retention_days=st.just(1.0),
        ),
    )
    def configure(self, path: tuple[str, ...], kind: str, settings: dict[str, Any]) -> None:
        self.both(path, lambda space: space.configure(kind=kind, **settings))

    @rule(by=st.sampled_from([1.0, 29.999999, 30, 3600, timedelta(days=2), -5.0]))
    def advance(self, by: Any) -> None:
        self.moments.append(self.clock())
        self.clock.advance(by)

    # What hosts keep

    @rule(path=st.sampled_from(PATHS), memory_id=IDS, key=st.sampled_from("pq"), body=TEXTS)
    def decide(self, path: tuple[str, ...], memory_id: str, key: str, body: str) -> None:
        self.both(path, lambda space: space.decide("host", key, body, memory_id=memory_id))
        self.both(path, lambda space: list(space.decisions("host").items()))

    @rule(path=st.sampled_from(PATHS), memory_id=IDS, hold=st.booleans())
    def hold(self, path: tuple[str, ...], memory_id: str, hold: bool) -> None:
        if hold:
            self.both(path, lambda space: space.hold("owner", memory_id))
        else:
            self.both(path, lambda space: space.release("owner"))

    @rule(path=st.sampled_from(PATHS), ids=st.lists(IDS, min_size=1, max_size=4))
    def show(self, path: tuple[str, ...], ids: list[str]) -> None:
        self.both(path, lambda space: space.recall_for_prompt(ids, budget=20))

    # The way back

    @rule(
        path=st.sampled_from(PATHS),
        memory_id=IDS,
        version=st.integers(1, 5),
    )
    def roll_back_to_version(self, path: tuple[str, ...], memory_id: str, version: int) -> None:
        self.both(path, lambda space: space.rollback(memory_id, to_version=version))

    @rule(path=st.sampled_from(PATHS), operation=st.integers(1, 30))
    def undo(self, path: tuple[str, ...], operation: int) -> None:
        self.both(path, lambda space: space.rollback(operation=operation))

    @precondition(lambda self: self.moments)
    @rule(
        path=st.sampled_from(PATHS),
        draw=st.data(),
        scope=options(task=TASKS) | options(memory_id=IDS),
    )
    def roll_back_to_moment(
        self, path: tuple[str, ...], draw: st.DataObject, scope: dict[str, Any]
    ) -> None:
        moment = draw.draw(st.sampled_from(self.moments))
        self.both(path, lambda space: space.rollback(to_moment=moment, **scope))

    # Reads

    @rule(path=st.sampled_from(PATHS), where=WHERES, query=st.sampled_from(QUERIES))
    def filtered_reads(self, path: tuple[str, ...], where: Any, query: str) -> None:
        self.both(path, lambda space: space.list(where))
        self.both(path, lambda space: space.count(where))
        self.both(path, lambda space: space.search(query, where=where))

    @precondition(lambda self: self.moments)
    @rule(path=st.sampled_from(PATHS), draw=st.data(), query=st.sampled_from(QUERIES))
    def the_past(self, path: tuple[str, ...], draw: st.DataObject, query: str) -> None:
        moment = draw.draw(st.sampled_from(self.moments))

        def read(past: Past) -> list[object]:
            return [seen(past.list(ANY_STATE)), seen(past.list()), seen(past.search(query))]

        self.both(path, lambda space: read(space.as_of(moment)))

    @rule()
    def histories(self) -> None:
        for path in self.spaces_used:
            for memory_id in ("1", "2", "3", "4", "x", "y"):
                self.both(path, lambda space, key=memory_id: space.history(key))  # type: ignore[misc]

    @invariant()
    def everything_is_equal(self) -> None:
        for path in self.spaces_used:
            self.both(path, lambda space: space.list(ANY_STATE))
            self.both(path, lambda space: space.list())
            for query in ("refund the order", "退款"):
                self.both(path, lambda space, asked=query: space.search(asked))  # type: ignore[misc]
        stats = [replace(store.stats(), bytes=0) for store in self.stores]
        assert stats[0] == stats[1]


TestTwins = Twins.TestCase
TestTwins.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    suppress_health_check=[HealthCheck.too_slow],
)
