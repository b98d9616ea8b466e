"""The proxy in the mode observe: every byte as it was, both ways; errors, drops, departures."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import threading
import zlib
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from proxies import Running, running_proxy, until
from scripted_upstream import Exchange, ScriptedUpstream, scripted_upstream

from zero_mem import Memory
from zero_mem.errors import InvalidInput
from zero_mem.proxy.targets import upstreams
from zero_mem.proxy.upstream import Timeouts

pytestmark = pytest.mark.req("controller:modes")

ODD = (
    b'\xef\xbb\xbf{"model" : "m","n":1.0, "big":1e400, "n" : 2,\r\n "messages": [ {"role":"user",'
    b'"content":"\\ud83d caf\xc3\xa9"} ], "unknown": {"x" : null }}'
)
ANSWER = b'{"id" : "r", "x":1.0,"usage": {"input_tokens": 7, "output_tokens":1} }'
PATHS = ["/v1/chat/completions", "/chat/completions", "/v1/responses", "/responses",
         "/v1/messages", "/messages", "/v1/messages/count_tokens?beta=true"]  # fmt: skip


@pytest.fixture
def upstream() -> Iterator[ScriptedUpstream]:
    with scripted_upstream() as served:
        yield served


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory.open("memory://") as opened:
        yield opened


@pytest.fixture
def proxy(upstream: ScriptedUpstream, memory: Memory) -> Iterator[Running]:
    with running_proxy(memory, upstream.url) as running:
        yield running


async def plain(exchange: Exchange) -> None:
    await exchange.whole(200, ANSWER, ("Content-Type", "application/json"))


@pytest.mark.parametrize("path", PATHS)
def test_bodies_fields_and_status_pass_byte_for_byte(
    upstream: ScriptedUpstream, proxy: Running, path: str
) -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.whole(
            203, ANSWER, ("Content-Type", "application/json"), ("request-id", "r-1"),
            ("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"), ("x-ratelimit", "3"), ("Date", "then"),
            ("Server", "theirs"), ("Keep-Alive", "timeout=1"), ("X-Hop", "1"),
            ("Connection", "keep-alive, X-Hop"),
        )  # fmt: skip

    upstream.script = [answer]
    got = proxy.send(
        path, ODD, ("Authorization", "Bearer k"), ("anthropic-beta", "one"), ("X-Own", "a"),
        ("anthropic-beta", "two"), ("Accept-Encoding", "br"), ("TE", "trailers"),
        ("Connection", "X-Mine"), ("X-Mine", "1"), ("x-zero-mem-conversation", "c"),
    )  # fmt: skip
    (received,) = upstream.requests
    assert (received.method, received.target, received.body) == ("POST", path, ODD)
    own = [
        (n.lower(), v) for n, v in received.fields if n.lower() not in (b"host", b"content-length")
    ]
    assert own == [
        (b"authorization", b"Bearer k"),
        (b"anthropic-beta", b"one"),
        (b"x-own", b"a"),
        (b"anthropic-beta", b"two"),
        (b"accept-encoding", b"br"),
    ]
    assert received.field("host") == urlsplit(upstream.url).netloc
    assert (got.status, got.body) == (203, ANSWER)
    assert [(name.lower(), value) for name, value in got.fields] == [
        ("content-type", "application/json"),
        ("request-id", "r-1"),
        ("set-cookie", "a=1"),
        ("set-cookie", "b=2"),
        ("x-ratelimit", "3"),
        ("date", "then"),
        ("server", "theirs"),
        ("content-length", str(len(ANSWER))),
    ]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/v1/models?limit=2&after=%2Fx%20y", None),
        ("GET", "/v1/responses/resp_1", None),
        ("DELETE", "/v1/files/f%2F1", None),
        ("POST", "/v1/embeddings", ODD),
        ("PUT", "/anything/at//all", b"\x00\xff"),
        ("POST", "/v1/empty", b""),
    ],
)
def test_every_other_path_and_method_passes(
    upstream: ScriptedUpstream, proxy: Running, method: str, path: str, body: bytes | None
) -> None:
    upstream.script = [plain]
    got = proxy.send(path, body, method=method)
    (received,) = upstream.requests
    assert (received.method, received.target) == (method, path)
    assert received.body == (body or b"")
    assert received.field("content-length") in ((None, "0") if body is None else (str(len(body)),))
    assert (got.status, got.body) == (200, ANSWER)


def test_head_and_empty_answers_pass(upstream: ScriptedUpstream, proxy: Running) -> None:
    async def head(exchange: Exchange) -> None:
        await exchange.head(200, ("Content-Length", "9000"), ("X-A", "1"))

    async def nothing(exchange: Exchange) -> None:
        await exchange.head(204, ("X-A", "2"))

    upstream.script = [head, nothing]
    got = proxy.send("/v1/models", method="HEAD")
    assert (got.status, got.body, dict(got.fields)["content-length"]) == (200, b"", "9000")
    assert proxy.send("/v1/x", method="DELETE").status == 204


def test_redirects_are_the_clients_own_business(upstream: ScriptedUpstream, proxy: Running) -> None:
    async def moved(exchange: Exchange) -> None:
        await exchange.whole(307, b"", ("Location", "https://elsewhere.example/x"))

    upstream.script = [moved]
    got = proxy.send("/v1/messages", ODD)
    assert (got.status, dict(got.fields)["location"]) == (307, "https://elsewhere.example/x")


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
def test_coded_bodies_pass_in_their_coding(
    upstream: ScriptedUpstream, proxy: Running, coding: str
) -> None:
    known: dict[str, Any] = {"gzip": gzip.compress, "deflate": zlib.compress}
    coded = known.get(coding, lambda body: b"\x01" + body)
    sent = coded(ANSWER)

    async def answer(exchange: Exchange) -> None:
        await exchange.whole(200, sent, ("Content-Encoding", coding))

    upstream.script = [answer]
    got = proxy.send("/v1/messages", coded(ODD), ("Content-Encoding", coding))
    assert upstream.requests[0].body == coded(ODD)
    assert upstream.requests[0].field("content-encoding") == coding
    assert got.body == sent
    assert dict(got.fields)["content-encoding"] == coding


def test_a_stream_is_passed_on_piece_by_piece(upstream: ScriptedUpstream, proxy: Running) -> None:
    taken = threading.Event()
    first, second = b"event: ping\r\ndata: {}\r\n\r\n: com", b"ment\n\ndata: [DONE]\n\n"

    async def answer(exchange: Exchange) -> None:
        await exchange.head(200, ("Content-Type", "text/event-stream"),
                            ("Transfer-Encoding", "chunked"))  # fmt: skip
        await exchange.chunk(first)
        await asyncio.to_thread(taken.wait)
        await exchange.chunk(second)
        await exchange.last_chunk()

    upstream.script = [answer]
    with socket.create_connection(("127.0.0.1", urlsplit(proxy.url).port or 0)) as raw:
        raw.sendall(b"POST /v1/messages HTTP/1.1\r\nhost: h\r\ncontent-length: 2\r\n\r\n{}")
        got = b""
        while first not in got:
            got += raw.recv(65_536)
        taken.set()
        while not got.endswith(b"0\r\n\r\n"):
            got += raw.recv(65_536)
    assert second in got


@pytest.mark.parametrize("sized", [True, False])
def test_a_dropped_answer_is_cut_off_for_the_client_too(
    upstream: ScriptedUpstream, proxy: Running, sized: bool
) -> None:
    async def answer(exchange: Exchange) -> None:
        field = ("Content-Length", "100") if sized else ("Transfer-Encoding", "chunked")
        await exchange.head(200, ("Content-Type", "text/event-stream"), field)
        await (exchange.send if sized else exchange.chunk)(b"data: {}\n\n")
        exchange.writer.transport.close()

    upstream.script = [answer]
    got = proxy.send("/v1/messages", b"{}")
    assert (got.status, got.body, got.complete) == (200, b"data: {}\n\n", False)


def test_a_client_that_goes_away_ends_the_call_upstream(
    upstream: ScriptedUpstream, proxy: Running
) -> None:
    async def endless(exchange: Exchange) -> None:
        await exchange.head(200, ("Transfer-Encoding", "chunked"))
        while True:
            await exchange.chunk(b"data: {}\n\n" * 1000)
            await asyncio.sleep(0)

    upstream.script = [endless]
    with socket.create_connection(("127.0.0.1", urlsplit(proxy.url).port or 0)) as raw:
        raw.sendall(b"POST /v1/messages HTTP/1.1\r\nhost: h\r\ncontent-length: 2\r\n\r\n{}")
        assert raw.recv(65_536)
    assert upstream.gone.wait(30)


ERRORS = [("/v1/messages", "anthropic"), ("/v1/chat/completions", "openai"), ("/v1/x", "openai")]


def message_of(body: Any, form: str) -> str:
    if form == "anthropic":
        assert body["type"] == "error"
    assert {"type", "message"} <= body["error"].keys()
    return str(body["error"]["message"])


@pytest.mark.req("pkg:errors")
@pytest.mark.parametrize(("path", "form"), ERRORS)
def test_an_upstream_that_is_not_there_is_a_502_in_the_vendors_form(
    memory: Memory, path: str, form: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    with running_proxy(memory, url) as proxy:
        got = proxy.send(path, b"{}")
    assert got.status == 502
    assert "cannot be reached" in message_of(got.json, form)


@pytest.mark.req("pkg:errors")
def test_an_upstream_that_says_nothing_is_a_504(upstream: ScriptedUpstream, memory: Memory) -> None:
    release = threading.Event()

    async def silent(_: Exchange) -> None:
        await asyncio.to_thread(release.wait)

    upstream.script = [silent]
    with running_proxy(memory, upstream.url, timeouts=Timeouts(read=0.2)) as proxy:
        got = proxy.send("/v1/messages", b"{}")
        release.set()
    assert got.status == 504
    assert "in time" in message_of(got.json, "anthropic")


@pytest.mark.req("pkg:errors")
@pytest.mark.parametrize(("path", "form"), ERRORS[:2])
def test_a_body_beyond_the_limit_is_refused(
    upstream: ScriptedUpstream, memory: Memory, path: str, form: str
) -> None:
    with running_proxy(memory, upstream.url, body_limit=100) as proxy:
        got = proxy.send(path, b"x" * 101)
    assert got.status == 413
    assert "100 bytes" in message_of(got.json, form)
    assert upstream.requests == []


def test_an_upstream_can_have_a_path_and_there_can_be_several(
    upstream: ScriptedUpstream, memory: Memory
) -> None:
    upstream.always = plain
    named = [f"anthropic={upstream.url}/a", f"openai={upstream.url}/o/v1"]
    with running_proxy(memory, *named) as proxy:
        for path in ("/v1/messages", "/v1/chat/completions", "/responses", "/v1/models"):
            proxy.send(path, b"{}")
        proxy.send("/v1/models", None, ("x-api-key", "k"), method="GET")
    assert [received.target for received in upstream.requests] == [
        "/a/v1/messages",
        "/o/v1/chat/completions",
        "/o/v1/responses",
        "/o/v1/models",
        "/a/v1/models",
    ]


@pytest.mark.req("pkg:errors")
@pytest.mark.parametrize(
    "given",
    [[], ["ftp://x"], ["api.anthropic.com"], ["gemini=https://x"], ["https://u:p@x"],
     ["https://x?key=1"], ["http://x:99999"], ["https://"]],
)  # fmt: skip
def test_an_upstream_that_is_none_is_refused(given: list[str]) -> None:
    with pytest.raises(InvalidInput):
        upstreams(given)


def test_two_hundred_streams_at_once_keep_their_events_in_order(
    upstream: ScriptedUpstream, proxy: Running
) -> None:
    events = [b'data: {"n": %d}\n\n' % number for number in range(20)]

    async def answer(exchange: Exchange) -> None:
        await exchange.head(200, ("Content-Type", "text/event-stream"),
                            ("Transfer-Encoding", "chunked"))  # fmt: skip
        for event in events:
            await exchange.chunk(exchange.received.body + event)
            await asyncio.sleep(0)
        await exchange.last_chunk()

    upstream.always = answer
    got: dict[int, bytes] = {}

    def ask(number: int) -> None:
        got[number] = proxy.send("/v1/messages", b"%d" % number).body

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == {n: b"".join(b"%d" % n + event for event in events) for n in range(200)}


@pytest.mark.req("prod:files")
def test_no_key_and_no_body_is_kept_or_logged(
    upstream: ScriptedUpstream, tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    upstream.always = plain
    path = tmp_path / "kept.db"
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "BODY-SECRET"}]})
    fields = [("authorization", "Bearer KEY-SECRET"), ("x-api-key", "KEY-SECRET"),
              ("cookie", "KEY-SECRET")]  # fmt: skip
    with Memory.open(f"sqlite:///{path}") as memory, running_proxy(memory, upstream.url) as proxy:
        proxy.send("/v1/messages?key=KEY-SECRET", body.encode(), *fields)
        proxy.send("/v1/models?key=KEY-SECRET", None, *fields, method="GET")
        until(lambda: proxy.send("/zero-mem/ledger", method="GET").json["total"].get("calls") == 1)
    kept = b"".join(each.read_bytes() for each in tmp_path.iterdir())
    assert b"SECRET" not in kept
    assert "SECRET" not in caplog.text
