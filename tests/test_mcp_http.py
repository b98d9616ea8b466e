"""The endpoint at `/mcp` of a real server on loopback: keys, namespaces, other pages, the end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp_sessions import called, refused
from served import Served
from serving import Loopback, loopback
from test_mcp_stdio import VERSIONS, call, hello

from zero_mem import Memory
from zero_mem.access import Grant
from zero_mem.mcp.definitions import TOOLS
from zero_mem.mcp.endpoint import Endpoint
from zero_mem.server.settings import Settings

SETTINGS = Settings(max_body=2_000_000, body_timeout=0.5, poll=0.05, recheck=0.0, max_streams=1)
Talk = Callable[[Client], Coroutine[Any, Any, None]]


@pytest.fixture(scope="module")
def running() -> Iterator[Loopback]:
    with loopback() as served:
        yield served


@pytest.fixture
def store(tmp_path: Path) -> Memory:
    return Memory.open(f"sqlite:///{tmp_path}/store.db", durability="normal")


@pytest.fixture
def url(running: Loopback, store: Memory) -> Iterator[str]:
    """Serve the store without keys."""
    with running.serving(store, SETTINGS, parts=[Endpoint]) as address:
        yield f"{address}/mcp"


@pytest.fixture
def guarded(running: Loopback, store: Memory) -> Iterator[str]:
    """Serve the store with keys only."""
    with running.serving(store, SETTINGS, is_open=False, parts=[Endpoint]) as address:
        yield f"{address}/mcp"


@asynccontextmanager
async def connected(url: str, credential: str | None = None) -> AsyncIterator[Client]:
    headers = {} if credential is None else {"Authorization": f"Bearer {credential}"}
    async with (
        httpx.AsyncClient(headers=headers) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        yield client


def talk(url: str, say: Talk, credential: str | None = None) -> None:
    async def whole() -> None:
        async with connected(url, credential) as client:
            task = asyncio.ensure_future(say(client))
            await asyncio.wait([task])
        task.result()

    asyncio.run(whole())


def post(url: str, message: Any, version: str = "2025-06-18", **headers: str) -> httpx.Response:
    """Send one message as an older client does."""
    content = message if isinstance(message, bytes) else json.dumps(message).encode()
    given = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": version,
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    return httpx.post(url, content=content, headers=given)


def message(number: int, name: str, **arguments: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", **call(number, name, **arguments)}


@pytest.mark.req("mcp:http")
def test_the_official_client_works_over_http(url: str, store: Memory) -> None:
    async def say(client: Client) -> None:
        assert await called(client, "memory_save", text="Prefers tea") == "[memo:1] save (note)"
        texts = [called(client, "memory_save", text=f"fact {n}") for n in range(20)]
        assert len(set(await asyncio.gather(*texts))) == 20
        assert "tea" in await called(client, "memory_search", query="tea")
        assert await called(client, "memory_save", text="x" * 1_000_000)
        (content,) = (await client.read_resource("memo://1")).contents
        assert content.model_dump()["text"] == "Prefers tea"

    talk(url, say)
    assert store.namespace("default").count() == 22


@pytest.mark.req("mcp:http", "mcp:versions")
@pytest.mark.parametrize("version", VERSIONS)
def test_a_client_of_an_earlier_version_is_served_over_http(url: str, version: str) -> None:
    begin, begun = ({"jsonrpc": "2.0", **each} for each in hello(version))
    welcome = post(url, begin, version)
    assert welcome.json()["result"]["protocolVersion"] == version
    assert post(url, begun, version).status_code == 202
    listed = post(url, {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, version).json()
    assert len(listed["result"]["tools"]) == len(TOOLS)
    saved = post(url, message(2, "memory_save", text="tea"), version)
    assert saved.json()["result"]["content"][0]["text"] == "[memo:1] save (note)"
    # Nothing stays open and nothing is kept: there is no stream to get and no session to delete.
    assert httpx.get(url).status_code == 405
    assert httpx.delete(url).headers["allow"] == "POST"


@pytest.mark.req("mcp:http", "server:auth")
def test_each_call_shows_a_key_that_holds(guarded: str, store: Memory) -> None:
    key = store.keyring.create("agent", [Grant.parse("write:acme/**")])
    there = f"{guarded}/acme/alice"
    refusal = post(there, message(1, "memory_save", text="tea"))
    assert refusal.status_code == 401
    assert refusal.headers["www-authenticate"] == "Bearer"
    assert refusal.json()["type"] == "urn:zero-mem:no-credential"

    async def say(client: Client) -> None:
        await called(client, "memory_save", text="tea")
        await asyncio.to_thread(store.keyring.revoke, key.key.key_id)
        with pytest.raises(MCPError, match="error response"):
            await client.call_tool("memory_save", {"text": "more"})

    talk(there, say, key.credential)
    assert [(r.text, r.namespace) for r in store.namespace("acme", "alice").each()] == [
        ("tea", ("acme", "alice"))
    ]
    again = post(there, message(1, "memory_read", id="1"), Authorization=f"Bearer {key.credential}")
    assert again.status_code == 401
    assert key.credential not in again.text


@pytest.mark.req("mcp:http", "handle:scope")
def test_a_namespace_is_the_addresss_as_far_as_the_key_goes(guarded: str, store: Memory) -> None:
    store.namespace("acme", "bob").save("Bob's secret")
    credential = store.keyring.create("agent", [Grant.parse("write:acme/alice")]).credential

    async def own(client: Client) -> None:
        await called(client, "memory_save", text="Alice's")
        assert "Alice" in await called(client, "memory_read", id="1")

    async def foreign(client: Client) -> None:
        for name, arguments in (
            ("memory_read", {"id": "1"}),
            ("memory_search", {"query": "secret"}),
            ("memory_save", {"text": "x"}),
            ("memory_delete", {"id": "1"}),
        ):
            assert (await refused(client, name, **arguments)).startswith("NotAllowed: ")
        with pytest.raises(MCPError, match="NotAllowed"):
            await client.read_resource("memo://1")
        with pytest.raises(MCPError, match="NotAllowed"):
            await client.list_resources()

    talk(f"{guarded}/acme/alice", own, credential)
    talk(f"{guarded}/acme/bob", foreign, credential)
    talk(guarded, foreign, credential)
    assert store.namespace("acme", "bob").count() == 1


@pytest.mark.req("mcp:http")
def test_segments_of_the_address_are_percent_encoded(url: str, store: Memory) -> None:
    post(f"{url}/a%2Fb/%E9%80%80", message(1, "memory_save", text="tea"))
    assert store.namespace("a/b", "退").count() == 1
    assert post(f"{url}/%FF", message(1, "memory_save", text="tea")).status_code == 400
    assert post(f"{url}/a//b", message(1, "memory_save", text="tea")).status_code == 400
    for other in ("%6Dcp/acme", "%6Dcp/acme/mcp/b"):  # would be another namespace
        address = url.removesuffix("mcp") + other
        assert post(address, message(1, "memory_save", text="tea")).status_code == 400
    assert list(store.subtree().namespaces()) == [("a/b", "退")]


@pytest.mark.req("mcp:http", "server:auth")
def test_pages_of_other_origins_and_names_are_refused(url: str) -> None:
    saving = message(1, "memory_save", text="tea")
    assert post(url, saving, Origin="https://evil.example").status_code == 403
    assert post(url, saving, Origin="null").status_code == 403
    assert post(url, saving, Origin="http://[").status_code == 403
    assert post(url, saving, Host="evil.example").status_code == 421
    assert post(url, saving, Origin=url.removesuffix("/mcp")).status_code == 200
    assert post(url, saving, Content_Type="text/plain").status_code == 400


@pytest.mark.req("mcp:http")
def test_an_origin_that_is_named_may_call(running: Loopback, store: Memory) -> None:
    origin = "https://app.example"
    with running.serving(store, Settings(cors=origin), parts=[Endpoint]) as address:
        asked = httpx.options(
            f"{address}/mcp",
            headers={
                "Origin": origin,
                "Access-Control-Request-Method": "POST",
                "Access-Control-Request-Headers": "authorization, mcp-method, mcp-name",
            },
        )
        assert asked.status_code == 200
        answer = post(f"{address}/mcp", message(1, "memory_save", text="tea"), Origin=origin)
        assert answer.headers["access-control-allow-origin"] == origin
        other = post(f"{address}/mcp", message(1, "memory_save", text="tea"), Origin="https://b.c")
        assert other.status_code == 403


@pytest.mark.req("mcp:http", "server:bad-input")
def test_what_is_no_call_is_refused_whole(url: str, store: Memory) -> None:
    assert post(url, b"x" * 2_000_001).status_code == 413
    for wrong in (b"", b"not json", b"[]", b'"x"', b"\xff", b"[" * 100_000, b'{"jsonrpc":"2.0"}'):
        for version in ("2025-06-18", "2026-07-28", "1999-01-01"):
            assert 400 <= post(url, wrong, version).status_code < 500
    refusal = post(url, message(1, "memory_save", text="half \ud800"))
    assert refusal.status_code == 400
    assert store.namespace("default").count() == 0


@pytest.mark.req("mcp:http", "server:bad-input")
def test_a_body_that_does_not_arrive_is_given_up(url: str) -> None:
    def parts() -> Iterator[bytes]:
        yield b'{"jsonrpc": '
        stop.wait(30)

    stop = threading.Event()
    try:
        answer = httpx.post(url, content=parts(), headers={"Content-Type": "application/json"})
        assert answer.status_code == 408
    except httpx.TransportError:
        pass  # the server closed the connection before all was sent
    finally:
        stop.set()


@pytest.mark.req("mcp:http", "server:http")
def test_every_answer_says_that_it_is_nobody_elses(url: str) -> None:
    for answer in (
        post(url, message(1, "memory_save", text="tea")),
        post(url, b"not json"),
        httpx.get(url),
    ):
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")


@pytest.mark.req("mcp:http", "server:feed")
def test_who_listens_hears_of_writes_until_the_key_ends(guarded: str, store: Memory) -> None:
    key = store.keyring.create("agent", [Grant.parse("write:acme/**")])
    space = store.namespace("acme", "alice")

    async def say(client: Client) -> None:
        await called(client, "memory_save", text="tea")
        async with client.listen(resource_subscriptions=["memo://1"]) as events:
            with pytest.raises(MCPError, match="listen already"):
                async with client.listen(resources_list_changed=True):
                    pass
            await asyncio.to_thread(space.update, "1", "coffee")
            heard = [event async for event in _until_revoked(events)]
        assert {event.uri for event in heard} == {"memo://1"}

    async def _until_revoked(events: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for event in events:
            store.keyring.revoke(key.key.key_id)
            yield event

    talk(f"{guarded}/acme/alice", say, key.credential)


@pytest.mark.req("mcp:http", "server:serve")
def test_a_server_that_stops_waits_for_nobody_who_listens(tmp_path: Path) -> None:
    with Served(f"sqlite:///{tmp_path}/store.db", "--grace", "60") as server:

        async def say(client: Client) -> None:
            async with client.listen(resources_list_changed=True) as events:
                await called(client, "memory_save", text="tea")
                async for _ in events:
                    os.kill(server.process.pid, signal.SIGTERM)
                    break
                async for _ in events:
                    pass

        talk(f"{server.url}/mcp/acme/alice", say)
        assert server.ended() == 0
        said = "".join(server.lines)
    assert "POST mcp 200" in said
    assert "acme" not in said
    with Memory.open(f"sqlite:///{tmp_path}/store.db") as memory:
        assert memory.namespace("acme", "alice").count() == 1
