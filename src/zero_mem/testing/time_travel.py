"""The journal, the past, the way back, and the purge, whatever the store."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from zero_mem.errors import Conflict, InvalidInput, NotAllowed, NotFound
from zero_mem.memory import Memory
from zero_mem.operations.erasing import Erasure
from zero_mem.space import Namespace
from zero_mem.testing.fakes import FakeClock
from zero_mem.testing.fixtures import StoreFixtures, found, in_no_read, texts
from zero_mem.types import Json


class HistoryConformance(StoreFixtures):
    """History, as-of and rollback."""

    @pytest.mark.req("history:journal")
    def test_history_says_who_when_what_and_what_stood_before(
        self, memory: Memory, clock: FakeClock
    ) -> None:
        """Oldest first, each change once."""
        space = memory.namespace("acme", "alice", actor="ann")
        space.save("A", key="employer", memory_id="e")
        moments = [clock()]
        space.update("e", content="B")
        moments.append(clock.advance())
        memory.namespace("acme", "alice", actor="bob").archive("e")
        entries = space.history("e")
        assert [entry.operation for entry in entries] == ["save", "update", "archive"]
        assert [entry.actor for entry in entries] == ["ann", "ann", "bob"]
        assert [entry.at for entry in entries] == [moments[0], moments[0], moments[1]]
        assert [entry.before for entry in entries] == [None, "A", "B"]
        assert [entry.version for entry in entries] == [1, 2, 3]
        assert [e.record.text for e in entries if e.record] == ["A", "B", "B"]
        with pytest.raises(NotFound):
            space.history("no")

    @pytest.mark.req("history:journal")
    def test_recorded_at_never_goes_back(self, space: Namespace, clock: FakeClock) -> None:
        """Also when the clock does."""
        space.save("a", memory_id="x")
        late = clock()
        clock.advance(-3600)
        space.update("x", content="b")
        assert [entry.at for entry in space.history("x")] == [late, late]
        assert space.get("x").recorded_at == late
        assert space.as_of(late).get("x").text == "b"

    @pytest.mark.req("history:as-of")
    def test_the_past_is_read_as_it_was(self, space: Namespace, clock: FakeClock) -> None:
        """By id, list and search; expiry is judged at that moment."""
        moments: list[datetime] = []

        def step() -> None:
            moments.append(clock())
            clock.advance(10)

        space.save("employer is Acme", key="employer", memory_id="e", expires_in=35)
        step()
        space.update("e", content="employer is Bolt")
        space.save("other", memory_id="o")
        step()
        space.archive("o")
        step()
        space.delete("e")
        step()
        pasts = [space.as_of(moment) for moment in moments]
        assert pasts[0].get("e").text == "employer is Acme"
        assert pasts[1].get("e").text == "employer is Bolt"
        assert [[r.memory_id for r in past.list()] for past in pasts] == [
            ["e"],
            ["e", "o"],
            ["e"],
            [],
        ]
        assert [h.memory_id for h in pasts[0].search("Acme")] == ["e"]
        assert pasts[1].search("Acme") == []
        assert pasts[2].get("o").state == "archived"
        with pytest.raises(NotFound):
            pasts[3].get("e")
        with pytest.raises(NotFound):
            pasts[0].get("o")
        before = space.as_of(moments[0] - timedelta(microseconds=1))
        assert len(before.list()) == 0
        clock.set(moments[0] + timedelta(seconds=36))
        assert len(space.as_of(clock()).list()) == 0

    @pytest.mark.req("history:rollback")
    def test_a_memory_goes_back_to_a_version_or_a_moment(
        self, space: Namespace, clock: FakeClock
    ) -> None:
        """As a new change, so that it can be undone too."""
        space.save("one", memory_id="x", metadata={"n": 1}, tags=["t"])
        space.update("x", content=Json({"two": 2}), metadata={"n": None}, tags=None)
        moment = clock()
        clock.advance()
        space.delete("x")
        space.rollback("x", to_version=1)
        record = space.get("x")
        assert (record.text, record.metadata, record.tags) == ("one", {"n": 1}, ("t",))
        assert record.version == 4
        assert found(space, "one") == ["x"]
        space.rollback("x", to_moment=moment)
        assert space.get("x").content == Json({"two": 2})
        assert [entry.operation for entry in space.history("x")][-2:] == ["rollback"] * 2
        with pytest.raises(NotFound, match="version 99"):
            space.rollback("x", to_version=99)

    @pytest.mark.req("history:rollback")
    def test_a_namespace_goes_back_to_a_moment(
        self, space: Namespace, other: Namespace, clock: FakeClock
    ) -> None:
        """Keys that changed hands included; what did not exist then is gone."""
        space.save("kept", memory_id="kept")
        space.save("old holder", key="k", memory_id="old")
        moment = clock()
        clock.advance()
        space.delete("old")
        space.save("new holder", key="k", memory_id="new")
        space.archive("kept")
        other.save("elsewhere")
        result = space.rollback(to_moment=moment)
        assert result.count == 3
        assert texts(space) == ["kept", "old holder"]
        assert (texts(other), found(space, "new")) == (["elsewhere"], [])
        assert space.save("again", key="k").memory_id == "old"

    @pytest.mark.req("history:rollback")
    def test_a_task_and_an_operation_go_back(self, space: Namespace, clock: FakeClock) -> None:
        """Others that changed meanwhile stay as they are."""
        space.save("of t", task="t", memory_id="a")
        space.save("of u", task="u", memory_id="b")
        moment = clock()
        clock.advance()
        space.update_many([{"memory_id": "a", "content": "A"}, {"memory_id": "b", "content": "B"}])
        operation = space.history("a")[-1].operation_id
        space.rollback(task="t", to_moment=moment)
        assert texts(space) == ["of t", "B"]
        with pytest.raises(Conflict):
            space.rollback(operation=operation)
        space.save_many([{"content": "c", "memory_id": "c"}, {"content": "B2", "memory_id": "b"}])
        space.rollback(operation=space.history("c")[-1].operation_id)
        assert texts(space) == ["of t", "B"]
        for unknown in (0, -1, 10**30):
            with pytest.raises(NotFound):
                space.rollback(operation=unknown)

    @pytest.mark.req("history:rollback", "pkg:errors")
    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"memory_id": "x"},
            {"to_version": 1},
            {"memory_id": "x", "task": "t", "to_version": 1},
            {"operation": 1, "to_version": 1},
            {"memory_id": "x", "to_moment": datetime(2026, 1, 1)},  # noqa: DTZ001
        ],
        ids=repr,
    )
    def test_a_rollback_must_be_clear(self, space: Namespace, options: dict[str, object]) -> None:
        """What goes back, and to when."""
        space.save("text", memory_id="x")
        with pytest.raises(InvalidInput):
            space.rollback(**options)  # type: ignore[arg-type]
        assert len(space.history("x")) == 1


class PurgeConformance(StoreFixtures):
    """What a purge erases, and what it leaves."""

    @pytest.fixture
    def purged(self, space: Namespace, clock: FakeClock) -> Namespace:
        """Save, change and purge a record between two neighbours."""
        space.save("neighbour one", memory_id="a")
        space.save(
            "secret first",
            memory_id="x",
            kind="secret_kind",
            key="secret_key",
            metadata={"secret": 1},
            tags=["secret"],
            task="t",
            session="secret",
            speaker="secret",
            idempotency_key="once",
        )
        space.update("x", content="secret second")
        space.decide("host", "k", "extract", memory_id="x")
        space.save("neighbour two", memory_id="b")
        clock.advance()
        space.purge("x")
        return space

    @pytest.mark.req("history:purge")
    def test_a_purged_record_is_in_no_read(self, purged: Namespace) -> None:
        """Nor in history or past; the journal says only that it was there."""
        assert in_no_read(purged, "x", "secret")
        with pytest.raises(NotFound, match="purged"):
            purged.get("x")
        entries = purged.history("x")
        assert [entry.operation for entry in entries] == ["save", "update", "purge"]
        assert [(entry.record, entry.before) for entry in entries] == [(None, None)] * 3
        assert "secret" not in repr(entries)
        past = purged.as_of(entries[1].at)
        assert [record.memory_id for record in past.list()] == ["a", "b"]
        assert texts(purged, {"state": {"in": ["deleted", "archived"]}}) == [""]
        assert purged.decisions("host") == {"k": None}

    @pytest.mark.req("history:purge")
    def test_the_neighbours_are_as_they_were(self, purged: Namespace) -> None:
        """Readable, searchable, with their past."""
        assert texts(purged) == ["neighbour one", "neighbour two"]
        assert found(purged, "neighbour") == ["b", "a"]
        assert purged.history("b")[0].record == purged.get("b")

    @pytest.mark.req("history:purge", "handle:short", "op:idempotency")
    def test_nothing_of_it_comes_back(self, purged: Namespace, clock: FakeClock) -> None:
        """Neither by save, restore or rollback nor by its old idempotency key."""
        with pytest.raises(Conflict, match="purged"):
            purged.save("new", memory_id="x")
        with pytest.raises(Conflict, match="purged"):
            purged.save("secret first", idempotency_key="once")
        with pytest.raises(NotFound, match="purged"):
            purged.restore("x")
        with pytest.raises(NotFound, match="purged"):
            purged.purge("x")
        with pytest.raises(NotAllowed, match="purged"):
            purged.rollback("x", to_version=1)
        clock.advance()
        purged.save("late", memory_id="late")
        purged.rollback(to_moment=purged.history("b")[0].at)
        assert texts(purged) == ["neighbour one", "neighbour two"]

    @pytest.mark.req("history:purge")
    def test_a_dry_run_says_what_goes_and_changes_nothing(
        self, memory: Memory, space: Namespace
    ) -> None:
        """Versions, bodies, bytes, what was kept for it; the purge then reports the same."""
        space.save("first", memory_id="x", idempotency_key="once", hold="owner")
        space.update("x", content="第二")
        space.update("x", tags=["t"])
        space.update("x", content="first")
        space.archive("x")
        space.save(Json({"n": 1}), memory_id="y")
        for key in ("a", "b"):
            space.decide("host", key, "extract", memory_id="x")
        before = space.history("x"), space.changes(), memory.stats().by_state
        foreseen = space.purge_many(["x", "y", "x"], dry_run=True)
        assert (space.history("x"), space.changes(), memory.stats().by_state) == before
        assert (foreseen.count, foreseen.dry_run, foreseen.bytes) == (0, True, 5 + 6 + 7)
        assert foreseen.erased == (
            Erasure(
                memory_id="x",
                versions=5,
                bodies=2,
                bytes=5 + 6,
                decisions={"host": 2, "zero-mem:idempotency": 1},
                holds=1,
            ),
            Erasure(memory_id="y", versions=1, bodies=1, bytes=7, decisions={}, holds=0),
        )
        done = space.purge_many(["x", "y"])
        assert (done.erased, done.dry_run, done.count) == (foreseen.erased, False, 2)

    @pytest.mark.req("history:purge")
    def test_a_dry_run_refuses_what_the_purge_would(
        self, purged: Namespace, memory: Memory
    ) -> None:
        """What is not there, or was purged."""
        for memory_id in ("no", "x"):
            with pytest.raises(NotFound):
                purged.purge_many(["a", memory_id], dry_run=True)
        with pytest.raises(NotFound):
            memory.namespace("never", "written").purge_many(["1"], dry_run=True)
        assert ("never", "written") not in memory.subtree().namespaces()

    @pytest.mark.req("history:purge")
    def test_its_key_is_free(self, purged: Namespace) -> None:
        """A new record may hold it."""
        receipt = purged.save("open", kind="secret_kind", key="secret_key")
        assert receipt.memory_id == "1"

    @pytest.mark.req("history:purge", "op:stats")
    def test_many_are_purged_in_one_step_or_none(
        self, memory: Memory, space: Namespace, other: Namespace
    ) -> None:
        """In whatever state they are."""
        space.save_many([{"content": f"secret {n}", "memory_id": f"x{n}"} for n in range(4)])
        other.save("secret elsewhere", memory_id="x0")
        space.archive("x1")
        space.delete("x2")
        with pytest.raises(NotFound):
            space.purge_many(["x0", "no"])
        assert len(texts(space)) == 2
        receipts = space.purge_many(["x0", "x1", "x2", "x0"]).receipts
        assert [receipt.memory_id for receipt in receipts] == ["x0", "x1", "x2"]
        assert [receipt.preview for receipt in receipts] == ["purged"] * 3
        assert (texts(space), texts(other)) == (["secret 3"], ["secret elsewhere"])
        assert memory.stats().by_state == {"active": 2, "deleted": 3}
