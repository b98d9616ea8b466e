"""An answer that is lost on its way to a client over HTTP: the idempotency key decides."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from lossy_proxy import LossyProxy
from serving import Loopback, loopback

from zero_mem import Memory
from zero_mem.client import RemoteMemory, connect
from zero_mem.errors import Conflict, NotFound, StoreUnavailable
from zero_mem.testing.audit import faults

pytestmark = pytest.mark.req("server:client", "op:idempotency", "op:order", "pkg:errors")

UNKNOWN = r"may be done or not: an idempotency_key or if_version makes it safe"


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with loopback() as running:
        yield running


@pytest.fixture(params=["sqlite", "postgres"])
def local(request: pytest.FixtureRequest, tmp_path: Path) -> Memory:
    """Open the store that is served."""
    if request.param == "postgres":
        return Memory.open(request.getfixturevalue("postgres_url"), durability="normal")
    return Memory.open(f"sqlite:///{tmp_path / 'agent.db'}", durability="normal")


@pytest.fixture
def proxy(local: Memory, server: Loopback) -> Iterator[LossyProxy]:
    with server.serving(local) as url:
        port = urlsplit(url).port
        assert port is not None
        with LossyProxy(port, commit=b" /v1/") as proxy:
            yield proxy


@pytest.fixture
def remote(proxy: LossyProxy) -> Iterator[RemoteMemory]:
    with connect(f"http://127.0.0.1:{proxy.port}") as remote:
        yield remote


@pytest.mark.parametrize("arrives", [True, False], ids=["answer lost", "request lost"])
def test_a_save_is_repeated_with_its_key(
    local: Memory, proxy: LossyProxy, remote: RemoteMemory, arrives: bool
) -> None:
    space = remote.namespace("acme")
    space.save("before")
    proxy.lose_next_commit(arrives=arrives)
    with pytest.raises(StoreUnavailable, match=UNKNOWN):
        space.save("paid", idempotency_key="payment-7")
    receipt = space.save("paid", idempotency_key="payment-7")
    assert receipt.replayed is arrives
    assert [record.text for record in space.each()] == ["before", "paid"]
    assert faults(local.storage) == []


@pytest.mark.parametrize("arrives", [True, False], ids=["answer lost", "request lost"])
def test_a_batch_is_there_whole_or_not_at_all(
    local: Memory, proxy: LossyProxy, remote: RemoteMemory, arrives: bool
) -> None:
    space = remote.namespace("acme")
    items = [{"content": f"line {n}", "idempotency_key": f"line-{n}"} for n in range(20)]
    space.save("before")
    proxy.lose_next_commit(arrives=arrives)
    with pytest.raises(StoreUnavailable, match=UNKNOWN):
        space.save_many(items)
    assert space.count() in (1, 21)
    receipts = space.save_many(items).receipts
    assert {receipt.replayed for receipt in receipts} == {arrives}
    assert space.count() == 21


@pytest.mark.parametrize("arrives", [True, False], ids=["answer lost", "request lost"])
def test_what_has_no_key_is_told_by_its_version(
    local: Memory, proxy: LossyProxy, remote: RemoteMemory, arrives: bool
) -> None:
    space = remote.namespace("acme")
    space.save("one", memory_id="x")
    proxy.lose_next_commit(arrives=arrives)
    with pytest.raises(StoreUnavailable, match=UNKNOWN):
        space.update("x", content="two", if_version=1)
    if arrives:
        with pytest.raises(Conflict, match="version 2"):
            space.update("x", content="two", if_version=1)
    else:
        assert space.update("x", content="two", if_version=1).version == 2
    assert [entry.version for entry in space.history("x")] == [1, 2]


@pytest.mark.req("history:purge")
def test_a_purge_whose_answer_was_lost_is_done(
    local: Memory, proxy: LossyProxy, remote: RemoteMemory
) -> None:
    space = remote.namespace("acme")
    space.save("one", memory_id="x")
    proxy.lose_next_commit(arrives=True)
    with pytest.raises(StoreUnavailable, match=UNKNOWN):
        space.purge("x")
    with pytest.raises(NotFound, match="purged"):
        space.purge("x")
    assert [entry.operation for entry in space.history("x")] == ["save", "purge"]
