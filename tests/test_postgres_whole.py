"""A PostgreSQL store as a whole: moved in and out, and synced with a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from zero_mem import Json, Memory, NotAllowed
from zero_mem.restore import restore
from zero_mem.sync import sync
from zero_mem.testing import CountingTokenizer

pytestmark = pytest.mark.req("prod:storage")

ANY_STATE = {"state": {"in": ["active", "archived", "deleted", "expired"]}}


def held(memory: Memory) -> dict[str, Any]:
    """Read all of a store that can be seen, but for the store's own origin."""
    return {
        "/".join(path): [
            (record, memory.namespace(*path).history(record.memory_id))
            for record in memory.namespace(*path).each(ANY_STATE)
        ]
        for path in memory.subtree().namespaces()
    }


def fill(memory: Memory) -> None:
    for name in ("alice", "bob"):
        space = memory.namespace("acme", name)
        space.save_many([{"content": f"note {n} of {name}", "key": f"k{n}"} for n in range(40)])
        space.update("3", content="退款")
        space.archive("4")
        space.purge("5")
        space.save(Json({"name": name}), idempotency_key="once", hold="owner")


@pytest.mark.req("prod:backup")
def test_a_file_moves_into_postgresql_and_back(tmp_path: Path, postgres_url: str) -> None:
    with Memory.open(f"sqlite:///{tmp_path}/agent.db") as memory:
        fill(memory)
        memory.backup(tmp_path / "file.backup")
        wanted = held(memory)
    report = restore(tmp_path / "file.backup", postgres_url)
    assert report.verified
    with Memory.open(postgres_url, tokens=CountingTokenizer()) as moved:
        assert held(moved) == wanted
        assert moved.namespace("acme", "bob").search("退款")[0].memory_id == "3"
        moved.namespace("acme", "bob").save("written there")
        out = moved.backup(tmp_path / "server.backup")
        assert out.form == "archive"
        wanted = held(moved)
    with pytest.raises(NotAllowed, match="holds memories"):
        restore(tmp_path / "file.backup", postgres_url)
    restore(tmp_path / "server.backup", f"sqlite:///{tmp_path}/back.db")
    with Memory.open(f"sqlite:///{tmp_path}/back.db") as back:
        assert held(back) == wanted


@pytest.mark.req("op:sync")
def test_a_laptop_and_a_server_exchange_their_changes(tmp_path: Path, postgres_url: str) -> None:
    with (
        Memory.open(f"sqlite:///{tmp_path}/laptop.db") as laptop,
        Memory.open(postgres_url, tokens=CountingTokenizer()) as team,
    ):
        fill(laptop)
        team.namespace("acme", "alice").save("theirs", key="k7")
        team.namespace("acme", "carol").save("of carol")
        report = sync(laptop, team, batch=25)
        assert report.stopped == {}
        assert len(report.sent.displaced) == 1
        paths = [path for path in laptop.subtree().namespaces() if path[0] == "acme"]
        assert len(paths) == 3
        for path in paths:
            texts = [
                sorted(
                    (r.uid, r.version, r.state, r.text)
                    for r in store.namespace(*path).each(ANY_STATE)
                )
                for store in (laptop, team)
            ]
            assert texts[0] == texts[1]
        again = sync(laptop, team)
        assert (again.received.entries, again.sent.entries) == (0, 0)
        assert team.verify().sound
        assert laptop.verify().sound
