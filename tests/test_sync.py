"""Two stores exchange their journals: each change once, nothing lost (`op:sync`)."""

from __future__ import annotations

import contextlib
import itertools
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from sync_machine import SyncMachine

from zero_mem import Blob, Conflict, InvalidInput, Json, Memory, NotFound
from zero_mem.access import Grant
from zero_mem.encryption import Encryption, MasterKey
from zero_mem.errors import MigrationNeeded
from zero_mem.restore import restore
from zero_mem.space import Namespace
from zero_mem.sync import Received, changes, cursor, receive, sync
from zero_mem.testing import FakeClock
from zero_mem.testing.audit import faults
from zero_mem.types import MemoryRecord

pytestmark = pytest.mark.req("op:sync")

SECRET = "sk-proj-" + "Ab3" * 16
ANY_STATE = {"state": {"in": ["active", "archived", "deleted", "expired"]}}

Stores = Callable[..., Memory]


@pytest.fixture
def stores(tmp_path: Path, clock: FakeClock) -> Iterator[Stores]:
    """Open stores of any kind on one clock; all are found sound at the end."""
    opened: list[Memory] = []
    numbers = itertools.count(1)

    def make(kind: str = "memory", **options: Any) -> Memory:
        file = tmp_path / f"{next(numbers)}.db"
        url = "memory://" if kind == "memory" else f"sqlite:///{file}"
        if kind == "sealed":
            options["encryption"] = Encryption(master=MasterKey(b"m" * 32))
        opened.append(Memory.open(url, clock=clock, durability="normal", **options))
        return opened[-1]

    yield make
    for memory in opened:
        with contextlib.closing(memory):
            assert faults(memory.storage) == []


@pytest.fixture(
    params=["memory sqlite", "sqlite sqlite", "sealed sqlite", "memory sealed"],
    ids=lambda kinds: str(kinds).replace(" ", "-"),
)
def pair(request: pytest.FixtureRequest, stores: Stores) -> tuple[Namespace, Namespace]:
    """Give the same namespace of two stores: of every kind with every other."""
    one, other = map(stores, request.param.split())
    return one.namespace("acme"), other.namespace("acme")


def exchange(one: Namespace, other: Namespace) -> tuple[Received, Received]:
    report = sync(one.memory, other.memory)
    assert report.stopped == {}
    return report.received, report.sent


def records(space: Namespace) -> dict[str, MemoryRecord]:
    """Read all records by uid, without what is each store's own."""
    return {
        record.uid: replace(record, memory_id="", accessed_at=record.created_at, access_count=0)
        for record in space.each(ANY_STATE)
    }


def texts_below(memory: Memory) -> set[str]:
    paths = memory.subtree("acme").namespaces()
    return {record.text for path in paths for record in memory.namespace(*path).each()}


def here(space: Namespace, uid: str) -> MemoryRecord:
    """Find a record by its uid."""
    return next(record for record in space.each(ANY_STATE) if record.uid == uid)


def purged(space: Namespace, memory_id: str) -> bool:
    with pytest.raises(NotFound, match="purged"):
        space.get(memory_id)
    return True


TestSyncMachine = SyncMachine.TestCase
TestSyncMachine.settings = settings(
    max_examples=25,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.fault
def test_many_more_random_exchanges() -> None:
    from hypothesis.stateful import run_state_machine_as_test

    many = settings(
        max_examples=300,
        stateful_step_count=60,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(SyncMachine, settings=many)


# What travels


def test_records_come_over_whole(pair: tuple[Namespace, Namespace], clock: FakeClock) -> None:
    one, other = pair
    one.save("退款 lone \ud800", kind="case", key="k", metadata={"n": 1.5}, tags=["red"], task="t")
    one.save(Json({"rows": [1, None]}), speaker="Ann", session="s", expires_in=timedelta(days=1))
    other.save(Blob(data=b"\0\xff", media_type="image/png"), form="episodic", source="tool")
    clock.advance(5)
    received, sent = exchange(one, other)
    assert (received.created, sent.created) == (1, 2)
    assert records(one) == records(other)
    assert len(records(one)) == 3


def test_the_journal_says_who_and_where(pair: tuple[Namespace, Namespace]) -> None:
    one, other = pair
    writer = one.memory.namespace("acme", actor="ann")
    receipt = writer.save("v1", key="k")
    writer.update(receipt.memory_id, content="v2")
    exchange(one, other)
    history = other.history(receipt.memory_id)
    assert [(e.version, e.actor, e.before) for e in history] == [(1, "ann", None), (2, "ann", "v1")]
    with other.memory.transaction() as transaction:
        row = transaction.namespace(("acme",))
        assert row is not None
        assert {e.origin for e in transaction.journal(row)} == {one.memory.storage.origin}


def test_every_way_to_end_a_record_travels(
    pair: tuple[Namespace, Namespace], clock: FakeClock
) -> None:
    one, other = pair
    ids = [one.save(f"note {n}", expires_in=60 if n == 3 else None).memory_id for n in range(5)]
    exchange(one, other)
    one.archive(ids[0])
    one.delete(ids[1])
    one.archive(ids[2])
    one.restore(ids[2])
    clock.advance(61)
    one.expire()
    one.rollback(ids[4], to_version=1)
    exchange(one, other)
    assert records(one) == records(other)
    assert [record.state for record in one.each(ANY_STATE)] == [
        "archived",
        "deleted",
        "active",
        "deleted",
        "active",
    ]


def test_a_purge_reaches_the_other_side_and_its_file(stores: Stores, tmp_path: Path) -> None:
    one, other = stores("sqlite"), stores("sqlite")
    space, twin = one.namespace("acme"), other.namespace("acme")
    memory_id = space.save("the word is zyxwvut").memory_id
    space.update(memory_id, content="the word was zyxwvut")
    exchange(space, twin)
    space.purge(memory_id)
    _, sent = exchange(space, twin)
    assert sent.purged == 1
    assert purged(twin, memory_id)
    assert twin.history(memory_id)[-1].operation == "purge"
    files = [path for path in tmp_path.iterdir() if path.name.startswith("2.db")]
    assert files
    assert not any(b"zyxwvut" in path.read_bytes() for path in files)


def test_a_purged_record_does_not_come_back_by_an_older_peer(stores: Stores) -> None:
    one, other, third = (stores().namespace("acme") for _ in range(3))
    memory_id = one.save("to be forgotten").memory_id
    exchange(one, third)
    one.purge(memory_id)
    # The other store never had it, hears of the purge first, and tells the third one.
    exchange(one, other)
    third.update(memory_id, content="changed where nobody knew")
    received, sent = exchange(other, third)
    assert (received.created, sent.purged) == (0, 1)
    assert purged(other, memory_id)
    assert purged(third, memory_id)
    assert other.save("next").memory_id != memory_id


def test_what_is_each_stores_own_stays(pair: tuple[Namespace, Namespace]) -> None:
    one, other = pair
    one.configure(max_memory_items=7)
    memory_id = one.save("a note", idempotency_key="once", hold="owner").memory_id
    one.decide("host", "a", "b", memory_id=memory_id)
    one.touch(memory_id)
    exchange(one, other)
    assert other.settings() == ""
    assert other.decisions("host") == {}
    assert other.get(memory_id).access_count == 0
    other.delete(memory_id)


# Each change once


def test_what_was_exchanged_is_not_sent_again(pair: tuple[Namespace, Namespace]) -> None:
    one, other = pair
    for n in range(5):
        one.save(f"a {n}")
        other.save(f"b {n}")
    exchange(one, other)
    for received in exchange(one, other):
        assert received == Received()
    one.save("a 5")
    received, sent = exchange(one, other)
    assert (received.entries, sent.entries, sent.applied) == (0, 1, 1)


def test_a_message_counts_once_however_often_it_comes(pair: tuple[Namespace, Namespace]) -> None:
    one, other = pair
    one.save("tea")
    message = json.loads(json.dumps(changes(one)))
    assert receive(other, message).created == 1
    again = receive(other, message)
    assert (again.entries, again.applied) == (0, 0)
    assert len(other.list()) == 1


def test_a_sync_that_was_cut_off_goes_on_from_there(
    pair: tuple[Namespace, Namespace], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = pair
    for n in range(7):
        one.save(f"note {n}")
    origin = one.memory.storage.origin
    receive(other, changes(one, limit=3))
    assert cursor(other, origin) == 3
    message = changes(one, 3, limit=2)
    with monkeypatch.context() as patch:
        patch.setattr("zero_mem.sync.state.SyncState.advance", _cut)
        with pytest.raises(_Cut):
            receive(other, message)
    assert cursor(other, origin) == 3
    assert len(other.list()) == 3
    _, sent = exchange(one, other)
    assert (sent.entries, sent.created) == (4, 4)
    assert records(one) == records(other)


class _Cut(Exception):
    pass


def _cut(*_: object) -> None:
    raise _Cut


def test_messages_that_would_leave_a_gap_are_refused(pair: tuple[Namespace, Namespace]) -> None:
    one, other = pair
    one.save("first")
    one.save("second")
    with pytest.raises(Conflict, match="changes since 0"):
        receive(other, changes(one, 1))
    assert len(other.list()) == 0


# Ids and keys


def test_ids_are_each_stores_own(pair: tuple[Namespace, Namespace]) -> None:
    one, other = pair
    mine = one.get(one.save("mine").memory_id)
    theirs = other.get(other.save("theirs").memory_id)
    assert mine.memory_id == theirs.memory_id == "1"
    received, sent = exchange(one, other)
    assert received.renumbered == {(("acme",), theirs.uid): "2"}
    assert sent.renumbered == {(("acme",), mine.uid): "2"}
    one.update("2", content="theirs, changed here")
    other.update("2", content="mine, changed there")
    received, sent = exchange(one, other)
    assert received.conflicts == sent.conflicts == []
    assert one.get("1").content == "mine, changed there"
    assert other.get("1").content == "theirs, changed here"
    given = {space.save("new").memory_id for space in (one, other)}
    assert given == {"3"}


def test_three_stores_find_a_record_under_three_ids(stores: Stores) -> None:
    spaces = [stores().namespace("acme") for _ in range(3)]
    for count, space in enumerate(spaces):
        for n in range(count):
            space.save(f"filler {count}.{n}")
    one, two, three = spaces
    uid = one.get(one.save("v0").memory_id).uid
    for version, (changer, other) in enumerate(((one, two), (two, three), (three, two))):
        changer.update(here(changer, uid).memory_id, content=f"v{version + 1}")
        exchange(changer, other)
    exchange(two, one)
    ids = [here(space, uid).memory_id for space in spaces]
    assert len(set(ids)) == 3
    assert {here(space, uid).content for space in spaces} == {"v3"}
    assert {here(space, uid).version for space in spaces} == {4}


def test_a_key_belongs_to_the_later_record(
    pair: tuple[Namespace, Namespace], clock: FakeClock
) -> None:
    one, other = pair
    one.save("Paris", kind="city", key="home")
    clock.advance(1)
    other.save("Rome", kind="city", key="home")
    received, sent = exchange(one, other)
    assert len(received.displaced) == len(sent.displaced) == 1
    for space in pair:
        active, archived = sorted(space.each(ANY_STATE), key=lambda record: record.state)
        assert (active.content, active.state) == ("Rome", "active")
        assert (archived.content, archived.state) == ("Paris", "archived")
        assert space.save("Oslo", kind="city", key="home").memory_id == active.memory_id
    assert received.displaced[0].memory_id == "1"


def test_an_expired_record_gives_its_key_away(
    pair: tuple[Namespace, Namespace], clock: FakeClock
) -> None:
    one, other = pair
    other.save("new", key="k")
    clock.advance(1)
    one.save("old, but written later", key="k", expires_in=5)
    clock.advance(10)
    exchange(one, other)
    assert records(one) == records(other)
    assert [record.content for record in one.list()] == ["new"]


# Conflicts


def test_the_later_change_stays_and_the_other_is_in_the_history(
    pair: tuple[Namespace, Namespace], clock: FakeClock
) -> None:
    one, other = pair
    memory_id = one.save("v1").memory_id
    exchange(one, other)
    one.update(memory_id, content="changed on one side")
    clock.advance(1)
    other.update(memory_id, content="changed on the other side")
    received, sent = exchange(one, other)
    origin = other.memory.storage.origin
    for report, space in ((received, one), (sent, other)):
        (conflict,) = report.conflicts
        assert (conflict.memory_id, conflict.kept_from) == (memory_id, origin)
        assert (conflict.version, conflict.lost_version) == (3, 2)
        assert space.get(memory_id).content == "changed on the other side"
        assert "changed on one side" in [entry.record.content for entry in _entries(space)]
    assert records(one) == records(other)
    # Who read version 2, on whichever side, is told that it is not the last one any more.
    with pytest.raises(Conflict):
        one.update(memory_id, content="late", if_version=2)
    for space in (other, one):
        space.rollback(memory_id, to_version=2)
        assert space.get(memory_id).content == "changed on one side"
    received, sent = exchange(one, other)
    assert received.conflicts == sent.conflicts == []
    assert received.agreed == sent.agreed == 1


def _entries(space: Namespace) -> list[Any]:
    return [entry for entry in space.history("1") if entry.record is not None]


@pytest.mark.parametrize("deleted_later", [True, False])
def test_a_delete_against_a_change(
    pair: tuple[Namespace, Namespace], clock: FakeClock, deleted_later: bool
) -> None:
    one, other = pair
    memory_id = one.save("v1").memory_id
    exchange(one, other)
    steps: list[Callable[[], object]] = [
        lambda: one.update(memory_id, content="v2"),
        lambda: other.delete(memory_id),
    ]
    for step in steps if deleted_later else reversed(steps):
        clock.advance(1)
        step()
    exchange(one, other)
    assert records(one) == records(other)
    state = "deleted" if deleted_later else "active"
    assert [record.state for record in one.each(ANY_STATE)] == [state]
    for space in pair:
        space.rollback(memory_id, to_version=2)


def test_both_sweeping_the_same_record_is_no_conflict(
    pair: tuple[Namespace, Namespace], clock: FakeClock
) -> None:
    one, other = pair
    one.save("short", expires_in=10)
    exchange(one, other)
    clock.advance(11)
    one.expire()
    clock.advance(11)
    other.expire()
    received, sent = exchange(one, other)
    assert received.conflicts == sent.conflicts == []
    assert (received.agreed, sent.agreed) == (1, 1)
    assert records(one) == records(other)


def test_a_conflict_settled_elsewhere_is_settled_alike(stores: Stores, clock: FakeClock) -> None:
    spaces = [stores().namespace("acme") for _ in range(3)]
    one, two, three = spaces
    memory_id = one.save("v1").memory_id
    exchange(one, two)
    exchange(two, three)
    for n, space in enumerate(spaces):
        clock.advance(1)
        space.update(memory_id, content=f"by store {n}")
    for pair in ((one, two), (two, three), (one, three), (one, two)):
        exchange(*pair)
    assert {space.get(memory_id).content for space in spaces} == {"by store 2"}
    assert {space.get(memory_id).version for space in spaces} == {4}


# Policies and rights


def test_a_store_never_keeps_what_its_own_rules_forbid(stores: Stores) -> None:
    lax, strict = stores("sqlite"), stores("sqlite")
    lax_space, strict_space = lax.namespace("acme"), strict.namespace("acme")
    strict_space.configure(redact={"personal": "mask"})
    memory_id = lax_space.save(
        "write to ann@example.org", key="ann@example.org", tags=["ann@example.org"]
    ).memory_id
    _, sent = exchange(lax_space, strict_space)
    assert sent.redacted == 1
    kept = strict_space.get(memory_id)
    assert "ann@" not in f"{kept}"
    for _ in range(2):
        for received in exchange(lax_space, strict_space):
            assert received == Received()
    assert lax_space.get(memory_id).content == "write to ann@example.org"
    lax_space.update(memory_id, content="write to bob@example.org")
    _, sent = exchange(lax_space, strict_space)
    assert sent.conflicts == []
    assert "bob@" not in strict_space.get(memory_id).text
    strict_space.update(memory_id, tags=["seen"])
    exchange(lax_space, strict_space)
    assert lax_space.get(memory_id).tags == ("seen",)


def test_a_key_of_the_other_store_bounds_the_exchange(stores: Stores) -> None:
    team, laptop = stores(), stores()
    for name in ("alice", "bob", "shared"):
        team.namespace("acme", name).save(f"of {name}")
    grants = [Grant.parse(g) for g in ("write:acme/alice", "read:acme/shared")]
    guarded = team.guarded(team.keyring.create("laptop", grants).credential)
    for name in ("alice", "shared", "carol"):
        laptop.namespace("acme", name).save(f"of {name}, on the laptop")
    report = sync(laptop, guarded)
    assert {path[-1] for path in report.stopped} == {"shared", "carol"}
    texts = texts_below(laptop)
    assert {"of alice", "of shared"} <= texts
    assert "of bob" not in texts
    assert texts_below(team) == {
        "of alice",
        "of bob",
        "of shared",
        "of alice, on the laptop",
    }


def test_a_purge_without_the_right_is_done_later_by_who_has_it(stores: Stores) -> None:
    team, laptop = stores("sqlite"), stores("sqlite")
    guarded = team.guarded(team.keyring.create("l", [Grant.parse("write:acme")]).credential)
    space = laptop.namespace("acme")
    memory_id = space.save("to be forgotten").memory_id
    uid = space.get(memory_id).uid
    sync(laptop, guarded)
    space.purge(memory_id)
    space.save("what comes after")
    report = sync(laptop, guarded)
    assert report.sent.refused == [uid]
    assert {r.text for r in team.namespace("acme").each()} == {
        "to be forgotten",
        "what comes after",
    }
    space.save("one more")
    report = sync(laptop, team)
    assert report.sent.purged == 1
    assert purged(team.namespace("acme"), memory_id)


def test_only_the_namespaces_that_a_pattern_names(stores: Stores) -> None:
    one, other = stores(), stores()
    for path in (("acme",), ("acme", "alice"), ("acme", "bob"), ("other",)):
        one.namespace(*path).save("note")
    report = sync(one, other, namespaces=["acme/*"])
    assert report.namespaces == [("acme", "alice"), ("acme", "bob")]
    assert other.subtree().namespaces() == [("acme", "alice"), ("acme", "bob")]
    sync(one, other, namespaces=[("acme", "**")])
    assert ("other",) not in other.subtree().namespaces()
    with pytest.raises(InvalidInput, match="pattern"):
        sync(one, other, namespaces=["a/**/b"])


def test_a_dry_run_writes_nothing(pair: tuple[Namespace, Namespace]) -> None:
    one, other = pair
    one.save("mine", key="k")
    other.save("theirs", key="k")
    before = records(one), records(other)
    report = sync(one.memory, other.memory, dry_run=True, batch=1)
    assert (report.received.created, report.sent.created) == (1, 1)
    assert len(report.received.displaced) == 1
    assert (records(one), records(other)) == before
    assert exchange(one, other)[0].created == 1


# Lives of a store


def test_a_restored_store_goes_on_as_one_of_its_own(
    stores: Stores, tmp_path: Path, clock: FakeClock
) -> None:
    one, other = stores("sqlite"), stores("memory")
    space, twin = one.namespace("acme"), other.namespace("acme")
    ids = [space.save(f"note {n}").memory_id for n in range(3)]
    exchange(space, twin)
    one.backup(tmp_path / "b")
    clock.advance(1)
    space.update(ids[0], content="after the backup")
    lost = space.save("saved after the backup").memory_id
    exchange(space, twin)
    restore(tmp_path / "b", f"sqlite:///{tmp_path}/again.db")
    with Memory.open(f"sqlite:///{tmp_path}/again.db", clock=clock) as again:
        back = again.namespace("acme")
        back.update(ids[1], content="changed in the restored store")
        clock.advance(1)
        received, sent = exchange(back, twin)
        assert received.conflicts == sent.conflicts == []
        assert back.get(ids[0]).content == "after the backup"
        assert twin.get(ids[1]).content == "changed in the restored store"
        assert here(back, twin.get(lost).uid).content == "saved after the backup"
        assert records(back) == records(twin)
        assert faults(again.storage) == []


def test_a_store_restored_to_a_moment_takes_again_what_it_had(
    stores: Stores, tmp_path: Path, clock: FakeClock
) -> None:
    one, other = stores("sqlite"), stores("memory")
    space, twin = one.namespace("acme"), other.namespace("acme")
    memory_id = space.save("v1").memory_id
    exchange(space, twin)
    moment = clock()
    clock.advance(10)
    twin.update(memory_id, content="v2")
    twin.save("theirs")
    exchange(space, twin)
    one.backup(tmp_path / "b")
    restore(tmp_path / "b", f"sqlite:///{tmp_path}/again.db", until=moment)
    with Memory.open(f"sqlite:///{tmp_path}/again.db", clock=clock) as again:
        back = again.namespace("acme")
        assert [record.content for record in back.list()] == ["v1"]
        back.save("a number that was another's before")
        exchange(back, twin)
        assert records(back) == records(twin)
        back.update(memory_id, content="v3")
        received, sent = exchange(back, twin)
        assert received.conflicts == sent.conflicts == []
        assert twin.get(memory_id).content == "v3"


def test_a_number_that_is_used_again_means_another_change(
    stores: Stores, tmp_path: Path, clock: FakeClock
) -> None:
    one, other = stores("sqlite"), stores("memory")
    space, twin = one.namespace("acme"), other.namespace("acme")
    memory_id = twin.save("v1").memory_id
    exchange(space, twin)
    moment = clock()
    clock.advance(10)
    twin.update(memory_id, content="v2 there")
    exchange(space, twin)
    one.backup(tmp_path / "b")
    restore(tmp_path / "b", f"sqlite:///{tmp_path}/again.db", until=moment)
    clock.advance(10)
    with Memory.open(f"sqlite:///{tmp_path}/again.db", clock=clock) as again:
        back = again.namespace("acme")
        # It gets the number under which the lost change of the other store was noted.
        back.update(memory_id, content="v2 here")
        received, sent = exchange(back, twin)
        assert len(received.conflicts) == len(sent.conflicts) == 1
        assert records(back) == records(twin)
        assert back.get(memory_id).content == "v2 here"


@pytest.mark.req("history:purge")
def test_a_purge_after_the_moment_of_a_restore_still_reaches_other_stores(
    stores: Stores, tmp_path: Path, clock: FakeClock
) -> None:
    one, other, third = stores("sqlite"), stores("memory"), stores("memory")
    space, twin, stranger = (each.namespace("acme") for each in (one, other, third))
    memory_id = space.save("never to be read again").memory_id
    exchange(space, twin)
    moment = clock()
    clock.advance(10)
    space.save("cut off by the moment")
    space.purge(memory_id)
    one.backup(tmp_path / "b")
    restore(tmp_path / "b", f"sqlite:///{tmp_path}/again.db", until=moment)
    with Memory.open(f"sqlite:///{tmp_path}/again.db", clock=clock) as again:
        back = again.namespace("acme")
        assert [entry.operation for entry in back.changes(after=0)] == ["save", "purge"]
        assert faults(again.storage) == []
        back.save("after the restore")
        for with_whom in (twin, stranger):
            exchange(back, with_whom)
            assert records(back).keys() == records(with_whom).keys()
            assert [record.content for record in with_whom.list()] == ["after the restore"]


def test_a_store_that_went_back_in_time_is_refused(stores: Stores, tmp_path: Path) -> None:
    one, other = stores("sqlite"), stores("memory")
    space = one.namespace("acme")
    space.save("first")
    one.backup(tmp_path / "copy.db")
    space.save("second")
    sync(one, other)
    shutil.copy(tmp_path / "copy.db", tmp_path / "back.db")
    with Memory.open(f"sqlite:///{tmp_path}/back.db") as back:
        with pytest.raises(InvalidInput, match="copy of the other"):
            sync(one, back)
        with pytest.raises(Conflict, match="went back"):
            receive(other.namespace("acme"), changes(back.namespace("acme"), 1))
        with pytest.raises(InvalidInput, match="own"):
            receive(space, changes(back.namespace("acme")))


# Messages


def broken(message: dict[str, Any], path: list[Any], value: Any) -> dict[str, Any]:
    """Give a message with another value at a place."""
    changed: dict[str, Any] = json.loads(json.dumps(message))
    place: Any = changed
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return changed


ENTRY = ["entries", 0]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["origin"], "x"),
        (["namespace"], ["other"]),
        (["namespace"], []),
        (["since"], -1),
        (["until"], 0),
        (["entries"], {}),
        ([*ENTRY, "sequence"], 0),
        ([*ENTRY, "sequence"], True),
        ([*ENTRY, "operation"], "drop"),
        ([*ENTRY, "uid"], "f" * 32),
        ([*ENTRY, "uid"], "../x"),
        ([*ENTRY, "home"], "a/b"),
        ([*ENTRY, "content"], "  "),
        ([*ENTRY, "actor"], None),
        ([*ENTRY, "fields", "kind"], "a\nb"),
        ([*ENTRY, "fields", "form"], "poem"),
        ([*ENTRY, "fields", "state"], "expired"),
        ([*ENTRY, "fields", "version"], 0),
        ([*ENTRY, "fields", "created"], 10**30),
        ([*ENTRY, "fields", "expires"], "soon"),
        ([*ENTRY, "fields", "meta"], [1]),
        ([*ENTRY, "cause", "seen"], {}),
        ([*ENTRY, "cause", "heads"], [["x"]]),
        ([*ENTRY, "cause", "stamp"], [1, 2]),
    ],
)
def test_a_message_that_is_none_changes_nothing(
    stores: Stores, path: list[Any], value: Any
) -> None:
    one, other = stores().namespace("acme"), stores().namespace("acme")
    one.save("tea", key="k")
    message = changes(one)
    with pytest.raises(InvalidInput):
        receive(other, broken(message, path, value))
    assert other.memory.subtree().namespaces() == []
    receive(other, message)


def test_a_message_of_a_newer_version_is_refused(stores: Stores) -> None:
    one, other = stores().namespace("acme"), stores().namespace("acme")
    with pytest.raises(MigrationNeeded):
        receive(other, broken(changes(one), ["format"], 2))
    strange: list[object] = [None, [], "x", {}]
    for value in strange:
        with pytest.raises((InvalidInput, MigrationNeeded)):
            receive(other, value)
