"""The proxy in the mode offload, with the official clients in front and a scripted provider."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from conversations import BODY, FIELD, request, response, result_texts, results, turn, user
from proxies import Running, running_proxy, until
from upstream import Sent, Upstream, stream_bytes, upstream

from zero_mem import Memory
from zero_mem.controller.definitions import MEMORY_TOOLS, PREAMBLE, READ_TOOL
from zero_mem.controller.messages import WireFormat

openai: Any = pytest.importorskip("openai", reason="the openai package is not installed")
anthropic: Any = pytest.importorskip("anthropic", reason="the anthropic package is not installed")

each_way = pytest.mark.parametrize(
    ("wire_format", "streams"),
    [(f, s) for f in ("openai_chat", "openai_responses", "anthropic") for s in (False, True)],
    ids=lambda value: {True: "streamed", False: "whole"}.get(value, value),
)
USAGE = {
    "openai_chat": {"prompt_tokens": 100, "completion_tokens": 2, "total_tokens": 102},
    "openai_responses": {"input_tokens": 100, "output_tokens": 2, "total_tokens": 102},
    "anthropic": {"input_tokens": 100, "output_tokens": 2},
}


@pytest.fixture
def provider() -> Iterator[Upstream]:
    with upstream() as served:
        yield served


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(f"sqlite:///{tmp_path / 'proxy.db'}", durability="normal") as opened:
        yield opened


def answer(wire_format: WireFormat, text: str = "", **calls: Any) -> dict[str, Any]:
    """A complete response with usage, whose calls and items have ids of their own."""
    made = response(wire_format, turn(wire_format, text, **calls))
    for number, item in enumerate(made.get("output", [])):
        item.setdefault("id", f"item_{number}")
    if wire_format == "openai_chat" and calls:
        made["choices"][0]["finish_reason"] = "tool_calls"
    if wire_format == "anthropic":
        made |= {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    return {**made, "created": 1, "created_at": 1, "usage": USAGE[wire_format]}


class Host:
    """A program with an official client; it keeps its own history and knows no memory."""

    def __init__(
        self, url: str, wire_format: WireFormat, *, streams: bool = False, key: str = "key-1",
        headers: dict[str, str] | None = None,
    ) -> None:  # fmt: skip
        vendor = anthropic.Anthropic if wire_format == "anthropic" else openai.OpenAI
        base = url if wire_format == "anthropic" else f"{url}/v1"
        self.open: Callable[[], Any] = lambda: vendor(
            base_url=base, api_key=key, max_retries=0, default_headers=headers
        )
        self.format, self.streams = wire_format, streams
        self.items: list[Any] = []

    def send(self, *items: Any, **fields: Any) -> dict[str, Any]:
        """Send the history and what is new; take the turn into the history; give the response."""
        self.items += [one for i in items for one in (i if isinstance(i, list) else [i])]
        given = request(self.format, *self.items, **fields)
        with self.open() as client:
            got = self._streamed(client, given) if self.streams else self._create(client, given)
        seen: dict[str, Any] = got.to_dict(mode="json")
        if self.format == "openai_chat":
            message = seen["choices"][0]["message"]
            self.items.append({k: v for k, v in message.items() if v is not None})
        elif self.format == "openai_responses":
            self.items += seen["output"]
        else:
            self.items.append({"role": "assistant", "content": seen["content"]})
        return seen

    def _create(self, client: Any, given: dict[str, Any]) -> Any:
        if self.format == "openai_chat":
            return client.chat.completions.create(**given)
        if self.format == "openai_responses":
            return client.responses.create(**given)
        return client.messages.create(**given)

    def _streamed(self, client: Any, given: dict[str, Any]) -> Any:
        if self.format == "openai_chat":
            with client.chat.completions.stream(**given) as stream:
                return stream.get_final_completion()
        if self.format == "openai_responses":
            with client.responses.stream(**given) as stream:
                return stream.get_final_response()
        with client.messages.stream(**given) as stream:
            return stream.get_final_message()


def tools_of(body: dict[str, Any]) -> list[str]:
    return [tool.get("function", tool)["name"] for tool in body["tools"]]


def call_names(seen: dict[str, Any]) -> list[str]:
    items = seen.get("output") or seen.get("content") or []
    if "choices" in seen:
        calls = seen["choices"][0]["message"].get("tool_calls") or []
        return [call["function"]["name"] for call in calls]
    return [item["name"] for item in items if item["type"] in ("function_call", "tool_use")]


def text_of(seen: dict[str, Any]) -> str:
    if "choices" in seen:
        return seen["choices"][0]["message"]["content"] or ""
    if "output" in seen:
        parts = [part for item in seen["output"] for part in item.get("content", [])]
        return "".join(part["text"] for part in parts)
    return "".join(block["text"] for block in seen["content"] if block["type"] == "text")


def listed(body: dict[str, Any], wire_format: WireFormat) -> list[str]:
    return [json.dumps(item) for item in body[FIELD[wire_format]]]


@pytest.mark.req("controller:offload", "controller:modes", "controller:safe", "recall:no-loop")
@each_way
def test_a_client_gets_its_work_done_and_never_sees_the_memory(
    provider: Upstream, memory: Memory, wire_format: WireFormat, streams: bool
) -> None:
    provider.script = [
        answer(wire_format, call_1=("orders", {"body": "all"})),
        answer(wire_format, call_m=(READ_TOOL, {"id": "1", "rows": {"status": "late"}})),
        answer(wire_format, call_2=("orders", {"body": "[memo:1#/17/order_id]"})),
        answer(wire_format, "Late is [memo:1#/17/order_id], and one more."),
        answer(wire_format, "You are welcome."),
    ]
    with running_proxy(memory, provider.url, mode="offload") as proxy:
        host = Host(proxy.url, wire_format, streams=streams)
        assert call_names(host.send(user("Which orders are late?"))) == ["orders"]
        second = host.send(results(wire_format, call_1=BODY))
        assert call_names(second) == ["orders"]
        assert "ORD-00017" in json.dumps(second)
        third = host.send(results(wire_format, call_2="done"))
        assert text_of(third) == "Late is ORD-00017, and one more."
        host.send(user("Thanks"))
    first, asked, hidden, after, last = provider.requests
    assert all(tools_of(body) == ["orders", *MEMORY_TOOLS] for body in provider.requests)
    assert PREAMBLE in json.dumps(first)
    assert result_texts(asked, wire_format)[-1].startswith("[memo:1] save")
    assert len(provider.raw[1]) < len(BODY)
    assert "ORD-00121" in result_texts(hidden, wire_format)[-1]
    # What the provider was sent stays, hidden rounds and its own handles included.
    for earlier, later in [(first, asked), (asked, hidden), (hidden, after), (after, last)]:
        kept = listed(earlier, wire_format)
        assert listed(later, wire_format)[: len(kept)] == kept
    assert "[memo:1#/17/order_id]" in json.dumps(after)
    assert "Late is [memo:1#/17/order_id]" in json.dumps(last)
    assert not any(name in json.dumps(host.items) for name in MEMORY_TOOLS)


@pytest.mark.req("controller:offload", "controller:safe")
@each_way
def test_memory_calls_in_a_mixed_turn_are_held_and_answered_with_the_clients_results(
    provider: Upstream, memory: Memory, wire_format: WireFormat, streams: bool
) -> None:
    provider.script = [
        answer(wire_format, call_1=("orders", {})),
        answer(
            wire_format, "Both.",
            call_m=(READ_TOOL, {"id": "1", "rows": {"status": "late"}}),
            call_2=("orders", {"to": "Ann"}), call_3=("orders", {"to": "Bob"}),
        ),
        answer(wire_format, "Sent."),
    ]  # fmt: skip
    with running_proxy(memory, provider.url, mode="offload") as proxy:
        host = Host(proxy.url, wire_format, streams=streams)
        host.send(user("Which orders are late?"))
        assert call_names(host.send(results(wire_format, call_1=BODY))) == ["orders", "orders"]
        host.send(results(wire_format, call_2="mailed", call_3="mailed too"))
    answered = result_texts(provider.requests[2], wire_format)[1:]
    assert len(answered) == 3
    assert any("ORD-00121" in text for text in answered)
    assert {"mailed", "mailed too"} < set(answered)


@pytest.mark.req("controller:offload")
@each_way
def test_a_restart_in_mid_conversation_and_another_model_change_no_byte(
    provider: Upstream, tmp_path: Path, wire_format: WireFormat, streams: bool
) -> None:
    provider.script = [
        answer(wire_format, call_1=("orders", {})),
        answer(wire_format, call_m=(READ_TOOL, {"id": "1", "lines": "1-2"})),
        answer(wire_format, call_2=("orders", {"body": "[memo:1]"})),
        answer(wire_format, "Done."),
    ]
    url = f"sqlite:///{tmp_path / 'restart.db'}"
    with Memory.open(url) as memory, running_proxy(memory, provider.url, mode="offload") as proxy:
        host = Host(proxy.url, wire_format, streams=streams)
        host.send(user("Copy the orders"))
        host.send(results(wire_format, call_1=BODY))
    with Memory.open(url) as memory, running_proxy(memory, provider.url, mode="offload") as proxy:
        again = Host(proxy.url, wire_format, streams=streams)
        again.items = host.items
        again.send(results(wire_format, call_2=BODY), model="m-2")
    kept = listed(provider.requests[2], wire_format)
    assert listed(provider.requests[3], wire_format)[: len(kept)] == kept
    assert provider.requests[3]["tools"] == provider.requests[2]["tools"]


@pytest.mark.req("controller:safe")
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_signed_thinking_images_and_marks_go_on_as_they_are(
    provider: Upstream, memory: Memory, streams: bool
) -> None:
    thinking = {"type": "thinking", "thinking": "Look: [memo:1]", "signature": "c2lnbmVk"}
    first = answer("anthropic", call_1=("orders", {}))
    first["content"].insert(0, thinking)
    hidden = answer("anthropic", call_m=(READ_TOOL, {"id": "1", "pattern": "ORD-00017"}))
    hidden["content"].insert(0, {**thinking, "signature": "aGlkZGVu"})
    provider.script = [first, hidden, answer("anthropic", "Found."), answer("anthropic", "Bye.")]
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}}
    block = {
        "type": "tool_result", "tool_use_id": "call_1", "is_error": True,
        "cache_control": {"type": "ephemeral"}, "content": [{"type": "text", "text": BODY}, image],
    }  # fmt: skip
    with running_proxy(memory, provider.url, mode="offload") as proxy:
        host = Host(proxy.url, "anthropic", streams=streams)
        seen = host.send(user("Which order is it?"))
        assert seen["content"][0] == thinking
        host.send({"role": "user", "content": [block]})
        host.send(user("Thanks"))
    sent = provider.requests[1]["messages"]
    assert sent[1]["content"][0] == thinking
    (edited,) = sent[2]["content"]
    assert {**edited, "content": None} == {**block, "content": None}
    assert edited["content"][0]["text"].startswith("[memo:1] save")
    assert edited["content"][1] == image
    assert {**thinking, "signature": "aGlkZGVu"} in provider.requests[3]["messages"][3]["content"]


@pytest.mark.req("controller:modes")
@pytest.mark.parametrize("status", [400, 429, 529])
@each_way
def test_errors_come_through_as_they_are(
    provider: Upstream, memory: Memory, wire_format: WireFormat, streams: bool, status: int
) -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "busy", "x": 1.0}}
    provider.script = [(status, error), answer(wire_format, "Hi")]
    with running_proxy(memory, provider.url, mode="offload") as proxy:
        host = Host(proxy.url, wire_format, streams=streams)
        vendor = anthropic if wire_format == "anthropic" else openai
        with pytest.raises(vendor.APIStatusError) as caught:
            host.send(user("Hello"))
        assert caught.value.status_code == status
        assert caught.value.response.json() == error
        assert text_of(host.send()) == "Hi"
    assert provider.raw[0] == provider.raw[1]


@pytest.mark.req("controller:modes")
@each_way
def test_an_error_in_a_hidden_round_reaches_the_client(
    provider: Upstream, memory: Memory, wire_format: WireFormat, streams: bool
) -> None:
    reads = answer(wire_format, call_m=(READ_TOOL, {"id": "1", "lines": "1"}))
    error = {"error": {"type": "overloaded_error", "message": "too busy now"}}
    provider.script = [
        answer(wire_format, call_1=("orders", {})), reads, (529, error),
        answer(wire_format, "At last."),
    ]  # fmt: skip
    with running_proxy(memory, provider.url, mode="offload") as proxy:
        host = Host(proxy.url, wire_format, streams=streams)
        host.send(user("Go"))
        vendor = anthropic if wire_format == "anthropic" else openai
        with pytest.raises((vendor.APIError, RuntimeError)) as caught:
            host.send(results(wire_format, call_1=BODY))
        assert streams or caught.value.status_code == 529
        assert text_of(host.send()) == "At last."
    assert provider.raw[1] == provider.raw[3]


@pytest.mark.req("controller:modes")
@pytest.mark.parametrize("wire_format", ["openai_chat", "openai_responses", "anthropic"])
def test_a_stream_that_breaks_off_never_looks_complete(
    provider: Upstream, memory: Memory, wire_format: WireFormat
) -> None:
    whole = stream_bytes(wire_format, answer(wire_format, "A long answer that breaks off."))
    provider.script = [Sent(chunks=[whole[: len(whole) // 2]], breaks=True)]
    with running_proxy(memory, provider.url, mode="offload") as proxy:
        body = json.dumps({**request(wire_format, user("Hi")), "stream": True}).encode()
        path = {
            "openai_chat": "/v1/chat/completions",
            "openai_responses": "/v1/responses",
            "anthropic": "/v1/messages",
        }[wire_format]
        got = proxy.send(path, body)
    assert got.status == 200
    assert not got.complete
    assert got.body


@pytest.mark.req("controller:offload")
def test_a_client_that_goes_away_and_goes_on_later_finds_the_hidden_rounds_kept(
    provider: Upstream, memory: Memory
) -> None:
    asked = [user("Go"), turn("anthropic", call_1=("orders", {}))[0],
             results("anthropic", call_1=BODY)[0]]  # fmt: skip
    hidden = answer("anthropic", call_m=(READ_TOOL, {"id": "1", "lines": "1"}))
    whole = stream_bytes("anthropic", answer("anthropic", "Half a sentence"))
    held = threading.Event()
    cut = whole.index(b"content_block_stop") - 7
    provider.script = [
        answer("anthropic", call_1=("orders", {})),
        hidden,
        Sent(chunks=[whole[:cut]], breaks=True, hold=held),
        answer("anthropic", "Bye."),
    ]
    fields = (("x-zero-mem-conversation", "c"),)
    with running_proxy(memory, provider.url, mode="offload") as proxy:
        proxy.send("/v1/messages", json.dumps(request("anthropic", asked[0])).encode(), *fields)
        body = json.dumps(request("anthropic", *asked, stream=True)).encode()
        with socket.create_connection(("127.0.0.1", urlsplit(proxy.url).port or 0)) as raw:
            head = "POST /v1/messages HTTP/1.1\r\nhost: h\r\nx-zero-mem-conversation: c\r\n"
            raw.sendall(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
            got = b""
            while b'"nce"' not in got:
                got += raw.recv(65_536)
    held.set()
    with running_proxy(memory, provider.url, mode="offload") as proxy:
        history = [*asked, turn("anthropic", "Half a sentence"), user("Go on")]
        proxy.send("/v1/messages", json.dumps(request("anthropic", *history)).encode(), *fields)
    assert READ_TOOL in json.dumps(provider.requests[-1]["messages"][3])
    kept = listed(provider.requests[2], "anthropic")
    assert listed(provider.requests[3], "anthropic")[: len(kept)] == kept


@pytest.mark.req("controller:safe")
def test_where_the_model_is_not_free_to_recall_new_results_stay_whole(
    provider: Upstream, memory: Memory
) -> None:
    provider.script = [
        answer("anthropic", call_1=("orders", {})),
        answer("anthropic", call_2=("orders", {})),
        answer("anthropic", "Done."),
    ]
    with running_proxy(memory, provider.url, mode="offload") as proxy:
        host = Host(proxy.url, "anthropic")
        host.send(user("Go"))
        host.send(results("anthropic", call_1=BODY), tool_choice={"type": "tool", "name": "orders"})
        host.send(results("anthropic", call_2=BODY + " "))
    assert result_texts(provider.requests[1], "anthropic") == [BODY]
    stays, receipt = result_texts(provider.requests[2], "anthropic")
    assert stays == BODY
    assert receipt.startswith("[memo:")


@pytest.mark.req("controller:safe")
@pytest.mark.parametrize(
    ("wire_format", "fields"),
    [
        ("openai_chat", {"n": 2}),
        ("openai_chat", {"tools": []}),
        ("openai_responses", {"background": True}),
        ("openai_responses", {"conversation": "conv_1"}),
        ("anthropic", {"tools": []}),
        ("anthropic", {"tools": [{"name": "memory_search", "input_schema": {}}]}),
    ],
)
def test_a_conversation_that_could_not_recall_is_passed_on_as_it_is(
    provider: Upstream, memory: Memory, wire_format: WireFormat, fields: dict[str, Any]
) -> None:
    provider.script = [answer(wire_format, "Hi")] * 2
    bodies = [json.dumps(request(wire_format, user("Hi"), **fields)).encode()]
    history = [
        user("Hi"),
        turn(wire_format, call_1=("orders", {})),
        results(wire_format, call_1=BODY),
    ]
    bodies.append(json.dumps(request(wire_format, *history, **fields)).encode())
    with running_proxy(memory, provider.url, mode="offload") as proxy:
        path = {"openai_chat": "/chat/completions", "openai_responses": "/responses"}
        for body in bodies:
            proxy.send(path.get(wire_format, "/v1/messages"), body)
    assert provider.raw == bodies


@pytest.mark.req("controller:offload")
def test_a_conversation_met_in_the_middle_is_only_observed(
    provider: Upstream, memory: Memory
) -> None:
    provider.script = [answer("openai_chat", "Hi")] * 2
    history = [user("Hi"), turn("openai_chat", call_1=("orders", {})),
               results("openai_chat", call_1=BODY)]  # fmt: skip
    body = json.dumps(request("openai_chat", *history)).encode()
    with running_proxy(memory, provider.url, mode="offload") as proxy:
        for named in ((), (("x-zero-mem-conversation", "c-1"),), (("session_id", "s-1"),)):
            provider.script = [answer("openai_chat", "Hi")]
            proxy.send("/v1/chat/completions", body, *named)
    assert provider.raw == [body] * 3


@pytest.mark.req("controller:offload")
def test_tokens_are_counted_on_what_would_be_sent(provider: Upstream, memory: Memory) -> None:
    provider.script = [
        answer("anthropic", call_1=("orders", {})),
        {"input_tokens": 500},
        answer("anthropic", "Done."),
    ]
    with running_proxy(memory, provider.url, mode="offload") as proxy:
        host = Host(proxy.url, "anthropic", headers={"x-claude-code-session-id": "s-1"})
        host.send(user("Go"))
        given = request("anthropic", *host.items, results("anthropic", call_1=BODY))
        given.pop("max_tokens")
        with host.open() as client:
            assert client.messages.count_tokens(**given).input_tokens == 500
        host.send(results("anthropic", call_1=BODY))
    counted, sent = provider.requests[1:]
    assert provider.paths[1] == "/v1/messages/count_tokens"
    assert {**sent, "max_tokens": None} == {**counted, "max_tokens": None}


@pytest.mark.req("ledger:columns")
def test_hidden_rounds_are_summed_in_the_usage_that_the_client_sees(
    provider: Upstream, memory: Memory
) -> None:
    provider.script = [
        answer("anthropic", call_1=("orders", {})),
        answer("anthropic", call_m=(READ_TOOL, {"id": "1", "lines": "1"})),
        answer("anthropic", "Done."),
    ]
    with running_proxy(memory, provider.url, mode="offload") as proxy:
        host = Host(proxy.url, "anthropic")
        host.send(user("Go"))
        seen = host.send(results("anthropic", call_1=BODY))
        assert seen["usage"]["input_tokens"] == 200
        ledger = figures(proxy, calls=2)
    (row,) = ledger["conversations"]
    assert (row["mode"], row["calls"], row["requests"]) == ("offload", 2, 3)
    assert row["paid"]["cache"]["fresh"] == 300
    assert row["paid"]["tokens"]["prompt"] == 300
    assert row["receipts"][0].startswith("[memo:1] save")
    assert row["other"]["tokens"]["tool_results"] > row["paid"]["tokens"]["tool_results"]


def figures(proxy: Running, *, calls: int) -> dict[str, Any]:
    """Read the ledger once it has so many calls."""

    def read() -> dict[str, Any]:
        got: dict[str, Any] = proxy.send("/zero-mem/ledger", method="GET").json
        return got

    until(lambda: read()["total"].get("calls") == calls)
    return read()
