"""The proxy inside the server: the same bytes, who may use it, its page, its stop."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from proxies import Running, until
from scripted_upstream import Exchange, ScriptedUpstream, scripted_upstream
from serving import Loopback, loopback

from zero_mem import Memory
from zero_mem.access import Grant
from zero_mem.client import connect
from zero_mem.errors import InvalidInput, MissingExtra
from zero_mem.server import proxying
from zero_mem.server.parts import chosen
from zero_mem.server.settings import Settings

pytestmark = pytest.mark.req("server:proxy", "controller:modes")

ODD = b'{"model" : "m","n":1.0, "messages": [ {"role":"user","content":"caf\xc3\xa9"} ]}'
ANSWER = b'{"id" : "r", "x":1.0,"usage": {"input_tokens": 7, "output_tokens":1} }'
TOKEN = "the page's own"


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with loopback() as running:
        yield running


@pytest.fixture
def upstream() -> Iterator[ScriptedUpstream]:
    with scripted_upstream() as served:
        served.always = plain
        yield served


async def plain(exchange: Exchange) -> None:
    await exchange.whole(200, ANSWER, ("Content-Type", "application/json"), ("Date", "then"))


@dataclass
class Served:
    server: Loopback
    upstream: ScriptedUpstream
    memory: Memory

    @contextmanager
    def running(self, **given: Any) -> Iterator[Running]:
        """Serve the store with the proxy; the URL is the proxy's."""
        told = {"proxy_upstream": self.upstream.url, "proxy_page_token": TOKEN, "recheck": 0.0}
        settings = Settings(**{**told, **given})
        with self.server.serving(self.memory, settings, parts=chosen(settings)) as url:
            yield Running(f"{url}")

    def key(self, *grants: str) -> str:
        return self.memory.keyring.create("k", [Grant.parse(each) for each in grants]).credential


@pytest.fixture
def served(server: Loopback, upstream: ScriptedUpstream, tmp_path: Path) -> Served:
    return Served(server, upstream, Memory.open(f"sqlite:///{tmp_path}/store.db"))


@pytest.mark.parametrize(
    "path",
    ["/v1/messages", "/v1/chat/completions", "/v1/responses?x=%2F", "/v1/models/a%2Fb", "/proxy/x"],
)
def test_what_goes_through_is_byte_for_byte_as_beside_the_server(served: Served, path: str) -> None:
    fields = [("Authorization", "Bearer provider"), ("x-api-key", "p"), ("User-Agent", "u")]
    with served.running() as run:
        got = run.send(f"/proxy{path}", ODD, *fields, ("x-zero-mem-conversation", "c"))
    (received,) = served.upstream.requests
    assert (received.method, received.target, received.body) == ("POST", path, ODD)
    own = [(name, value) for name, value in received.fields if name.lower() not in (b"host",)]
    sent = [(name.encode(), value.encode()) for name, value in fields]
    assert [(name.lower(), value) for name, value in own[: len(sent)]] == [
        (name.lower(), value) for name, value in sent
    ]
    assert (got.status, got.body) == (200, ANSWER)
    assert [value for name, value in got.fields if name.lower() == "date"] == ["then"]


def test_offloading_uses_the_servers_own_store(served: Served) -> None:
    rows = json.dumps([{"id": n, "status": "sent"} for n in range(200)])
    tool = {"name": "orders", "description": "List.", "input_schema": {"type": "object"}}
    call = {"type": "tool_use", "id": "t1", "name": "orders", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": rows}
    messages = [
        {"role": "user", "content": "Which is late?"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]
    with served.running(proxy_mode="offload", proxy_namespace="team/proxy") as run:
        for some in (messages[:1], messages):
            body = {"model": "m", "max_tokens": 9, "tools": [tool], "messages": some}
            run.send("/proxy/v1/messages", json.dumps(body).encode(), ("x-api-key", "p"),
                     ("x-zero-mem-conversation", "c"))  # fmt: skip
        sent = served.upstream.requests[-1].json["messages"][-1]["content"][0]["content"]
        assert "[memo:1]" in json.dumps(sent)
        found = httpx.get(f"{run.url}/v1/subtree/namespaces", params={"below": "team/proxy"})
        (place,) = [path for path in found.json()["result"] if len(path) == 4]
        records = httpx.get(f"{run.url}/v1/records", params={"namespace": "/".join(place)})
        with connect(run.url) as memory:
            until(lambda: memory.ledger().calls == 2)
            assert memory.ledger().kept_out > 0
            assert memory.snapshot().operations["save"] == 1
        assert [each["content"] for each in records.json()["items"]] == [rows]


@pytest.mark.parametrize(
    "path",
    ["/%7Aero-mem/../v1/messages", "/zero-mem%2F../v1/messages", "/%7Aero-mem", "/zero-mem/../v1"],
)
def test_no_spelling_of_the_pages_path_lets_a_request_through_without_a_key(
    served: Served, path: str
) -> None:
    served.key("write:**")
    with served.running() as run:
        got = run.send(f"/proxy{path}", ODD, ("x-api-key", "p"))
    assert got.status in (401, 404, 405)
    assert served.upstream.requests == []


def test_with_keys_the_proxy_asks_for_one_that_is_not_sent_on(served: Served) -> None:
    may, reader = served.key("write:proxy/**"), served.key("read:**", "write:other/**")
    told = ("Authorization", "Bearer provider"), ("anthropic-version", "1")
    with served.running() as run:
        for fields in ((), (("x-zero-mem-key", "zm_unknown"),)):
            refused = run.send("/proxy/v1/messages", ODD, *told, *fields)
            assert refused.status == 401
            assert refused.json["type"] == "error"
            assert refused.json["error"]["type"] == "authentication_error"
            message = refused.json["error"]["message"]
            assert "x-zero-mem-key takes a key of this server" in message
            assert "Authorization" not in message, "that field is the provider's"
        denied = run.send("/proxy/v1/chat/completions", ODD, ("x-zero-mem-key", reader))
        assert (denied.status, denied.json["error"]["code"]) == (403, "proxy_403")
        # A key of the store is none of the provider's: it opens nothing where theirs belongs.
        assert run.send("/proxy/v1/messages", ODD, ("Authorization", f"Bearer {may}")).status == 401
        assert served.upstream.requests == []
        assert run.send("/proxy/v1/messages", ODD, *told, ("X-Zero-Mem-Key", may)).status == 200
    (received,) = served.upstream.requests
    assert received.field("authorization") == "Bearer provider"
    assert may not in str(received.fields)


def test_without_keys_a_page_of_the_web_can_not_use_it(served: Served) -> None:
    with served.running() as run:
        rebound = run.send("/proxy/v1/messages", ODD, ("Host", "attacker.example"))
        assert rebound.status == 421
        for site in ("cross-site", "same-site"):
            foreign = run.send("/proxy/v1/messages", ODD, ("Sec-Fetch-Site", site))
            assert foreign.status == 403
        assert served.upstream.requests == []


def test_the_page_opens_to_this_machine_as_long_as_there_is_no_key(served: Served) -> None:
    with served.running() as run:
        page = run.send("/proxy/zero-mem", method="GET")
        assert page.status == 200
        assert b'src="zero-mem/page.js"' in page.body
        assert run.send("/proxy/zero-mem/page.js", method="GET").status == 200
        assert run.send("/proxy/zero-mem/ledger", method="GET").json["mode"] == "observe"
        foreign = run.send("/proxy/zero-mem/ledger", None, ("Host", "a.example"), method="GET")
        assert foreign.status == 401
        assert run.send("/proxy/zero-mem/ledger", b"{}").status == 405
        assert served.upstream.requests == []


def test_with_keys_the_page_asks_for_its_token_or_an_admin(served: Served) -> None:
    writer, admin = served.key("write:proxy/**"), served.key("admin:**")
    with served.running() as run, httpx.Client(base_url=run.url) as http:
        ledger = "/proxy/zero-mem/ledger"
        assert http.get(ledger).status_code == 401
        for key, status in ((writer, 401), (admin, 200), (TOKEN, 200)):
            headers = {"Authorization": f"Bearer {key}"}
            assert http.get(ledger, headers=headers).status_code == status
        opened = http.get("/proxy/zero-mem", params={"token": TOKEN})
        assert (opened.status_code, opened.headers["location"]) == (303, "/proxy/zero-mem")
        assert "Path=/proxy/zero-mem" in opened.headers["set-cookie"]
        assert http.get(ledger).status_code == 200
        assert http.get("/proxy/zero-mem/health").json() == {"status": "ok", "mode": "observe"}


def test_a_stop_ends_the_pages_stream_and_writes_the_ledger(served: Served, tmp_path: Path) -> None:
    with served.running() as run, httpx.Client(base_url=run.url, timeout=60) as http:
        assert run.send("/proxy/v1/messages", ODD, ("x-api-key", "p")).status == 200
        with http.stream("GET", "/proxy/zero-mem/events") as events:
            lines = events.iter_lines()
            assert next(lines).startswith("data: ")
            assert served.server.switch.app is not None
            assert served.server.switch.loop is not None
            served.server.switch.loop.call_soon_threadsafe(served.server.switch.app.stop)
            assert not [line for line in lines if line.startswith("event")]
    with Memory.open(f"sqlite:///{tmp_path}/store.db") as again:
        accounts = [
            json.loads(value or "{}")
            for value in again.namespace("proxy").decisions("proxy.ledger").values()
        ]
    assert [account["calls"] for account in accounts] == [1]


def test_a_client_that_goes_away_ends_its_call_upstream(served: Served) -> None:
    async def silent(exchange: Exchange) -> None:
        await exchange.head(200, ("Transfer-Encoding", "chunked"))
        while True:
            await exchange.chunk(b": waiting\n\n")

    served.upstream.always = silent
    with served.running() as run:
        with httpx.stream("POST", f"{run.url}/proxy/v1/messages", content=ODD) as answer:
            assert answer.status_code == 200
        until(served.upstream.gone.is_set)
        served.upstream.always = plain
        assert run.send("/proxy/v1/messages", ODD).status == 200


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"proxy_upstream": "x.example"}, "x.example"),
        ({"proxy_mode": "edit"}, "edit"),
        ({"proxy_share": 0.0}, "share"),
        ({"proxy_prices": "No Such Model"}, "No Such Model"),
        ({"proxy_namespace": "[1]"}, "proxy_namespace"),
    ],
)
@pytest.mark.req("server:settings")
def test_a_setting_of_the_proxy_that_can_not_be_is_named(given: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        chosen(Settings(**{"proxy_upstream": "http://x.example", **given}))


def test_without_its_extra_the_proxy_is_missed_at_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(proxying, "find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match="proxy"):
        chosen(Settings(proxy_upstream="http://x.example"))
    assert chosen(Settings(console=False, mcp=False)) == []
