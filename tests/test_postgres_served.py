"""`zero-mem serve` on PostgreSQL, by URL: one process, and two on one store."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from proxies import until
from served import Served

from zero_mem import Memory, NotAllowed, NotFound, StoreUnavailable, ZeroMemError
from zero_mem.access import Grant
from zero_mem.backup import verify_file
from zero_mem.client import RemoteMemory, connect
from zero_mem.restore import restore
from zero_mem.testing.audit import faults

pytestmark = [pytest.mark.req("server:serve", "prod:storage")]

QUICK = ["--poll", "0.05", "--recheck", "0", "--rate", "0"]


@contextmanager
def served(url: str, *flags: str, credential: str | None = None) -> Iterator[RemoteMemory]:
    """Serve a store in a process of its own and give its client; the process ends well."""
    with Served(url, *QUICK, *flags) as server:
        with connect(server.url, credential=credential) as memory:
            yield memory
        server.process.send_signal(signal.SIGTERM)
        assert server.ended() == 0, server.lines


@pytest.mark.req("server:http", "server:client")
def test_operations_batches_and_the_past_work_as_on_a_file(postgres_url: str) -> None:
    with served(postgres_url) as memory:
        space = memory.namespace("acme", "alice", actor="her agent")
        space.save("oolong", kind="user_pref", key="drink", if_version=None)
        space.save_many([{"content": f"note {n} on a refund"} for n in range(300)])
        space.update("1", content="green tea", if_version=1)
        assert len(list(space.each())) == 301
        assert [hit.memory_id for hit in space.search("green")] == ["1"]
        assert space.recall("refund", limit=3).items
        assert [entry.actor for entry in space.history("1")] == ["her agent"] * 2
        space.delete("2")
        with pytest.raises(NotFound):
            space.get("2")
        assert memory.stats().records == 301


@pytest.mark.req("server:feed", "server:auth", "prod:auth")
def test_two_servers_on_one_store_see_each_others_writes_and_keys(postgres_url: str) -> None:
    with Memory.open(postgres_url) as local:
        admin = local.keyring.create("admin", [Grant.parse("admin:**")]).credential
    with ExitStack() as stack:
        here = stack.enter_context(served(postgres_url, credential=admin))
        there = stack.enter_context(served(postgres_url, credential=admin))
        feed = there.namespace("acme").follow()
        for number in range(5):
            here.namespace("acme").save(f"note {number}")
            assert next(feed).sequence == number + 1
        there.namespace("acme").save("from there")
        assert here.namespace("acme").get("6").content == "from there"
        new = here.keyring.create("bob", [Grant.parse("write:acme")])
        bobs = stack.enter_context(connect(there.connection.url, credential=new.credential))
        assert bobs.namespace("acme").count() == 6
        following = bobs.namespace("acme").follow(after=6)
        bobs.namespace("acme").save("bob's")
        assert next(following).sequence == 7
        here.keyring.revoke(new.key.key_id)
        with pytest.raises(NotAllowed):
            bobs.namespace("acme").get("1")
        assert list(following) == []


@pytest.mark.req("expire:sweeper")
def test_the_sweeper_ends_what_is_due(postgres_url: str) -> None:
    with served(postgres_url, "--sweep-every", "0.05") as memory:
        space = memory.namespace("acme")
        feed = space.follow()
        space.save("for a moment", expires_in=0.01)
        assert [next(feed).operation for _ in range(2)] == ["save", "expire"]


@pytest.mark.req("prod:backup")
def test_backups_by_the_clock_are_archives_that_can_be_restored(
    postgres_url: str, tmp_path: Path
) -> None:
    folder = tmp_path / "backups"
    with Memory.open(postgres_url) as local:
        local.namespace("acme").save_many([{"content": f"note {n}"} for n in range(50)])
    with served(postgres_url, "--backup-folder", str(folder)):
        until(lambda: folder.is_dir() and any(folder.glob("zero-mem-*.backup")))
    (made,) = folder.iterdir()
    assert verify_file(made).sound
    restore(made, f"sqlite:///{tmp_path}/back.db")
    with Memory.open(f"sqlite:///{tmp_path}/back.db") as back:
        assert back.namespace("acme").count() == 50


@pytest.mark.req("op:order")
def test_a_stop_under_load_loses_nothing_that_was_acknowledged(postgres_url: str) -> None:
    acknowledged: list[tuple[str, str]] = []
    refused: list[ZeroMemError] = []
    begun = threading.Semaphore(0)

    def writer(url: str, name: str) -> None:
        with connect(url) as memory:
            space = memory.namespace("load", name)
            for number in range(10_000):
                try:
                    saved = space.save(f"text {number}", mode="queued" if number % 2 else "sync")
                    acknowledged.append((name, saved.memory_id))
                except ZeroMemError as error:
                    refused.append(error)
                    return
                if number == 10:
                    begun.release()

    with Served(postgres_url, *QUICK) as server:
        names = [f"w{number}" for number in range(6)]
        threads = [threading.Thread(target=writer, args=(server.url, name)) for name in names]
        for thread in threads:
            thread.start()
        for _ in names:
            assert begun.acquire(timeout=60)
        server.process.send_signal(signal.SIGTERM)
        assert server.ended() == 0
        for thread in threads:
            thread.join()
    assert {type(error) for error in refused} <= {StoreUnavailable}
    with Memory.open(postgres_url) as local:
        for name in names:
            stored = {record.memory_id for record in local.namespace("load", name).each()}
            missing = [each for place, each in acknowledged if place == name]
            assert set(missing) <= stored
        assert faults(local.storage) == []
