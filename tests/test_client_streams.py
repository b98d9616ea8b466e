"""Streams of the official clients with memory, against a scripted upstream on loopback."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import json
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from conversations import BODY, FIELD, FORMATS, request, result_texts, results, user
from test_streaming import answered, numbered
from upstream import Sent, Upstream, stream, stream_bytes, upstream

from zero_mem import Memory, MemoryController
from zero_mem.controller.definitions import READ_TOOL
from zero_mem.controller.messages import WireFormat
from zero_mem.controller.wire.server_sent import event_bytes
from zero_mem.conversation import with_memory
from zero_mem.errors import InvalidInput
from zero_mem.space import Namespace

openai: Any = pytest.importorskip("openai", reason="the openai package is not installed")
anthropic: Any = pytest.importorskip("anthropic", reason="the anthropic package is not installed")

each_format = pytest.mark.parametrize("wire_format", FORMATS)
both = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
USAGE = {"openai_chat": "prompt_tokens", "openai_responses": "input_tokens",
         "anthropic": "input_tokens"}  # fmt: skip


@pytest.fixture
def served() -> Iterator[Upstream]:
    with upstream() as server:
        yield server


def controller(space: Namespace, **options: Any) -> MemoryController:
    return MemoryController(space, conversation="c-1", share=0.1, **options)


def client(wire_format: WireFormat, url: str, is_async: bool = False, retries: int = 0) -> Any:
    vendor = anthropic if wire_format == "anthropic" else openai
    name = "Anthropic" if wire_format == "anthropic" else "OpenAI"
    kind = getattr(vendor, f"Async{name}" if is_async else name)
    return kind(base_url=url, api_key="not-a-key", max_retries=retries)


class Host:
    """Calls a client with memory by its stream helper, and keeps its own history."""

    def __init__(
        self, served: Upstream, subject: MemoryController, wire_format: WireFormat,
        is_async: bool = False,
    ) -> None:  # fmt: skip
        self._served, self._subject = served, subject
        self._format, self._async = wire_format, is_async
        self.items: list[Any] = []

    def send(self, *items: Any) -> Any:
        """Give the final response that the SDK's own helper makes of the stream."""
        self.items += [one for i in items for one in (i if isinstance(i, list) else [i])]
        given = request(self._format, *self.items)
        opened = client(self._format, self._served.url, self._async)
        if self._async:
            return asyncio.run(self._send_async(opened, given))
        with opened, self._open(with_memory(opened, self._subject), given) as events:
            for _ in events:
                pass
            return getattr(events, self._final)()

    async def _send_async(self, opened: Any, given: Any) -> Any:
        wrapped = with_memory(opened, self._subject)
        async with opened, self._open(wrapped, given) as events:
            async for _ in events:
                pass
            return await getattr(events, self._final)()

    @property
    def _final(self) -> str:
        return {"openai_chat": "get_final_completion", "openai_responses": "get_final_response",
                "anthropic": "get_final_message"}[self._format]  # fmt: skip

    def _open(self, wrapped: Any, given: dict[str, Any]) -> Any:
        if self._format == "openai_chat":
            options = {"include_usage": True}
            return wrapped.chat.completions.stream(**given, stream_options=options)
        if self._format == "anthropic":
            return wrapped.messages.stream(**given)
        return wrapped.responses.stream(**given)

    def keep(self, final: Any) -> None:
        """Append the turn the way the SDKs' guides do: with the client's own objects."""
        if self._format == "openai_chat":
            self.items.append(final.choices[0].message.to_dict(mode="json"))
        elif self._format == "openai_responses":
            self.items += [item.to_dict(mode="json") for item in final.output]
        else:
            content = [block.to_dict(mode="json") for block in final.content]
            self.items.append({"role": "assistant", "content": content})


def text_of(final: Any) -> str:
    if hasattr(final, "choices"):
        return str(final.choices[0].message.content or "")
    if hasattr(final, "output"):
        return str(final.output_text)
    return "".join(block.text for block in final.content if block.type == "text")


def calls_of(final: Any) -> list[tuple[str, Any]]:
    if hasattr(final, "choices"):
        made = final.choices[0].message.tool_calls or []
        return [(c.function.name, json.loads(c.function.arguments)) for c in made]
    if hasattr(final, "output"):
        made = [item for item in final.output if item.type == "function_call"]
        return [(c.name, json.loads(c.arguments)) for c in made]
    return [(block.name, block.input) for block in final.content if block.type == "tool_use"]


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


def script(wire_format: WireFormat, *turns: list[dict[str, Any]]) -> list[Any]:
    return [answered(wire_format, numbered(turn, n), n) for n, turn in enumerate(turns)]


def prefix_kept(served: Upstream, wire_format: WireFormat) -> bool:
    """Tell whether each request's items begin with those of the request before."""
    lists = [[json.dumps(i) for i in r[FIELD[wire_format]]] for r in served.requests]
    return all(b[: len(a)] == a for a, b in pairwise(lists))


@pytest.mark.req("controller:offload", "controller:by-reference", "recall:no-loop")
@each_format
@both
def test_one_stream_whatever_the_model_does_with_its_memory(
    space: Namespace, served: Upstream, wire_format: WireFormat, is_async: bool
) -> None:
    host = Host(served, controller(space), wire_format, is_async)
    served.script = script(
        wire_format,
        [call("orders"), call("orders", to="b")],
        [{"text": "Let me look."}, call(READ_TOOL, id="1", rows={"status": "late"})],
        [{"text": "It is [memo:1#/17/order_id], I tell Ann."},
         call("orders", to="[memo:1#/17/order_id]", rows="[memo:1#/17]")],
        [{"text": "Done."}],
    )  # fmt: skip
    asked = host.send(user("Which orders are late?"))
    assert calls_of(asked) == [("orders", {}), ("orders", {"to": "b"})]
    host.keep(asked)
    told = host.send(results(wire_format, **{"call-0-0": BODY, "call-0-1": "none"}))
    between = "\n\n" if wire_format == "openai_chat" else ""
    assert text_of(told) == f"Let me look.{between}It is ORD-00017, I tell Ann."
    row = {**json.loads(BODY)[17]}
    assert calls_of(told) == [("orders", {"to": "ORD-00017", "rows": row})]
    assert told.usage.to_dict()[USAGE[wire_format]] == 11 + 12
    host.keep(told)
    last = host.send(results(wire_format, **{"call-2-1": "sent"}))
    assert text_of(last) == "Done."
    assert prefix_kept(served, wire_format)
    assert len(served.requests) == 4
    assert "It is [memo:1#/17/order_id], I tell Ann." in json.dumps(served.requests[-1])


@pytest.mark.req("controller:safe")
@each_format
@both
def test_a_mixed_turn_shows_the_hosts_own_calls_alone(
    space: Namespace, served: Upstream, wire_format: WireFormat, is_async: bool
) -> None:
    space.save("red", kind="note", memory_id="7")
    host = Host(served, controller(space), wire_format, is_async)
    served.script = script(
        wire_format,
        [call("memory_search", query="red"), call("orders", to="a"), call(READ_TOOL, id="7")],
        [{"text": "ok"}],
    )
    asked = host.send(user("Go"))
    assert calls_of(asked) == [("orders", {"to": "a"})]
    if wire_format == "anthropic":
        assert asked.stop_reason == "tool_use"
    host.keep(asked)
    assert text_of(host.send(results(wire_format, **{"call-0-1": "sent"}))) == "ok"
    found, read, theirs = result_texts(served.requests[-1], wire_format)
    assert (found, theirs) == ("[memo:7] note: red", "sent")
    assert "red" in read


@pytest.mark.req("controller:safe")
def test_signed_thinking_and_images_of_a_streamed_turn_go_back_as_they_came(
    tmp_path: Path, served: Upstream
) -> None:
    url = f"sqlite:///{tmp_path / 'agent.db'}"
    thinking = {"type": "thinking", "thinking": "hm [memo:1]", "signature": "c2lnbmVk"}
    first = answered("anthropic", numbered([call("memory_search", query="x")], 0), 0)
    first["content"].insert(0, thinking)
    second = answered("anthropic", [{"thinking": "so"}, {"text": "ok"}], 1)
    served.script = [first, second, answered("anthropic", [{"text": "fine"}], 2)]
    source = {"type": "base64", "media_type": "image/png", "data": "aGk="}
    image = {"role": "user", "content": [{"type": "image", "source": source}]}
    with Memory.open(url) as memory:
        host = Host(served, controller(memory.namespace("a")), "anthropic")
        final = host.send(image)
        assert [block.type for block in final.content] == ["thinking", "thinking", "text"]
        host.keep(final)
    with Memory.open(url) as memory:
        restarted = Host(served, controller(memory.namespace("a")), "anthropic", True)
        restarted.send(*host.items, user("And?"))
    assert prefix_kept(served, "anthropic")
    sent = served.requests[-1]["messages"]
    assert sent[0] == image
    assert sent[1]["content"][0] == thinking
    assert sent[3]["content"] == second["content"]


@pytest.mark.req("controller:safe")
def test_the_id_of_a_merged_stream_continues_from_its_last_round(
    space: Namespace, served: Upstream
) -> None:
    served.script = script("openai_responses", [call("memory_search", query="x")],
                           [{"text": "a"}], [{"text": "b"}])  # fmt: skip
    with client("openai_responses", served.url) as opened:
        wrapped = with_memory(opened, controller(space))
        with wrapped.responses.stream(model="m", input="Hello") as events:
            final = events.get_final_response()
        assert final.id == "r0"
        wrapped.responses.create(model="m", input="And?", previous_response_id=final.id)
    assert served.requests[-1]["previous_response_id"] == "r1"


@pytest.mark.req("controller:by-reference")
@each_format
def test_a_call_with_an_open_handle_has_run_and_the_model_is_told(
    space: Namespace, served: Upstream, wire_format: WireFormat
) -> None:
    space.save("red", kind="note", memory_id="7")
    subject = controller(space)
    subject.show("7")
    host = Host(served, subject, wire_format)
    served.script = script(wire_format, [call("orders", to="[memo:99]", body="[memo:7]")],
                           [{"text": "a"}], [{"text": "b"}])  # fmt: skip
    asked = host.send(user("Go"))
    assert calls_of(asked) == [("orders", {"to": "[memo:99]", "body": "red"})]
    host.keep(asked)
    host.keep(host.send(results(wire_format, **{"call-0-0": "sent"})))
    host.send(user("And?"))
    (told,) = result_texts(served.requests[-1], wire_format)
    assert told.startswith("Error: [memo:99] is no memory of this conversation. ")
    assert "was run with these characters as they stand" in told
    assert told.endswith("Handles that can be used: [memo:7].\nsent")
    assert prefix_kept(served, wire_format)


@pytest.mark.req("controller:modes", "controller:safe")
@each_format
def test_what_is_not_edited_arrives_byte_for_byte(
    space: Namespace, served: Upstream, wire_format: WireFormat
) -> None:
    body = answered(wire_format, numbered([{"text": "plain [memory"}, call("orders")], 0), 0)
    sent = b": a comment\r\nid: 9\r\n" + stream_bytes(wire_format, body).replace(
        b"\n\n", b"\r\n\r\n"
    )
    served.script = [Sent(chunks=[bytes([b]) for b in sent])] * 2
    for mode in ("observe", "offload"):
        with client(wire_format, served.url) as opened:
            wrapped = with_memory(opened, controller(space, mode=mode))
            create = _raw(wrapped, wire_format)
            with create(**request(wire_format, user("Hi")), stream=True) as response:
                got = b"".join(response.iter_bytes())
                assert response.headers["x-request-id"].startswith("req-")
        edits = sum(b"[m" in line for line in sent.split(b"\r\n")) and mode == "offload"
        assert (got == sent) or edits
        assert got.startswith(b": a comment\r\nid: 9\r\n")


def _raw(wrapped: Any, wire_format: WireFormat) -> Callable[..., Any]:
    if wire_format == "openai_chat":
        create: Callable[..., Any] = wrapped.chat.completions.with_streaming_response.create
    elif wire_format == "anthropic":
        create = wrapped.messages.with_streaming_response.create
    else:
        create = wrapped.responses.with_streaming_response.create
    return create


@pytest.mark.req("controller:safe")
@each_format
@pytest.mark.parametrize("status", [400, 429, 529])
def test_errors_of_the_provider_come_through(
    space: Namespace, served: Upstream, wire_format: WireFormat, status: int
) -> None:
    served.script = [(status, {"error": {"type": "x", "message": "slow down"}})]
    with pytest.raises((openai.APIStatusError, anthropic.APIStatusError)) as caught:
        Host(served, controller(space), wire_format).send(user("Hello"))
    assert caught.value.status_code == status
    assert "slow down" in str(caught.value)


@pytest.mark.req("controller:safe")
@each_format
@both
def test_an_error_in_a_hidden_round_ends_the_stream_and_says_so(
    space: Namespace, served: Upstream, wire_format: WireFormat, is_async: bool
) -> None:
    [first] = script(wire_format, [{"text": "Wait [memo"}, call("memory_search", query="x")])
    served.script = [first, (529, {"error": {"type": "overloaded", "message": "overloaded"}})]
    host = Host(served, controller(space), wire_format, is_async)
    if wire_format == "openai_responses":  # its client raises at the end of the stream
        with pytest.raises(RuntimeError, match=r"response\.completed"):
            host.send(user("Hello"))
    else:
        with pytest.raises((openai.APIError, anthropic.APIError), match=r"529.* overloaded"):
            host.send(user("Hello"))


@pytest.mark.req("controller:safe")
@each_format
@both
def test_a_connection_that_breaks_is_an_error_and_the_turn_is_kept_as_it_was_seen(
    space: Namespace, served: Upstream, wire_format: WireFormat, is_async: bool
) -> None:
    space.save("red", memory_id="7")
    subject = controller(space)
    subject.show("7")
    [body] = script(wire_format, [{"text": "It is [memo:7] and more"}])
    sent = until(wire_format, body, "It is [memo:7] and m")
    served.script = [Sent(chunks=[sent], breaks=True)]
    errors = (openai.APIError, anthropic.APIError, *_broken())
    with pytest.raises(errors):
        Host(served, subject, wire_format, is_async).send(user("Hello"))
    (passed,) = subject.audit()
    assert passed.executed.startswith("It is red and m")


def until(wire_format: WireFormat, body: Any, text: str) -> bytes:
    """The stream of a response up to a point in its text."""
    sent, seen = [], ""
    for event in stream(wire_format, body):
        sent.append(event_bytes(event))
        data = event.data
        delta = data["choices"][0]["delta"] if "choices" in data else data.get("delta", "")
        seen += delta if isinstance(delta, str) else delta.get("content", delta.get("text", ""))
        if seen.startswith(text):
            break
    return b"".join(sent)


def _broken() -> list[type[Exception]]:
    """What the HTTP libraries raise, which some clients let through."""
    found = [name for name in ("httpx", "httpx2") if importlib.util.find_spec(name)]
    return [importlib.import_module(name).TransportError for name in found]


@pytest.mark.req("controller:safe")
@each_format
@both
def test_a_stream_that_is_closed_early_leaves_the_turn_as_it_was_seen(
    space: Namespace, served: Upstream, wire_format: WireFormat, is_async: bool
) -> None:
    space.save("red", memory_id="7")
    subject = controller(space)
    subject.show("7")
    [body] = script(wire_format, [{"text": "It is [memo:7]! [mem"}])
    hold = threading.Event()
    sent = until(wire_format, body, "It is [memo:7]! [me")
    served.script = [Sent(chunks=[sent], hold=hold), *script(wire_format, [{"text": "ok"}])]
    seen = asyncio.run(_part(served, subject, wire_format)) if is_async else (
        _part_sync(served, subject, wire_format)
    )  # fmt: skip
    hold.set()
    assert seen == "It is red! "
    said = {"role": "assistant", "content": seen}
    given = request(wire_format, user("Hello"), said, user("Go on"))
    prepared = json.dumps(subject.prepare(given, wire_format))
    assert "It is [memo:7]! " in prepared


def _part_sync(served: Upstream, subject: MemoryController, wire_format: WireFormat) -> str:
    with client(wire_format, served.url) as opened:
        wrapped = with_memory(opened, subject)
        seen = ""
        with _create(wrapped, wire_format)(
            **request(wire_format, user("Hello")), stream=True
        ) as it:
            for event in it:
                seen += _delta(event)
                if seen.endswith("! "):
                    break
        return seen


async def _part(served: Upstream, subject: MemoryController, wire_format: WireFormat) -> str:
    async with client(wire_format, served.url, True) as opened:
        wrapped = with_memory(opened, subject)
        seen = ""
        create = _create(wrapped, wire_format)
        async with await create(**request(wire_format, user("Hello")), stream=True) as it:
            async for event in it:
                seen += _delta(event)
                if seen.endswith("! "):
                    break
        return seen


def _create(wrapped: Any, wire_format: WireFormat) -> Callable[..., Any]:
    if wire_format == "openai_chat":
        create: Callable[..., Any] = wrapped.chat.completions.create
    else:
        create = wrapped.messages.create if wire_format == "anthropic" else wrapped.responses.create
    return create


def _delta(event: Any) -> str:
    if hasattr(event, "choices"):
        return str(event.choices[0].delta.content or "") if event.choices else ""
    if event.type == "response.output_text.delta":
        return str(event.delta)
    return str(event.delta.text) if event.type == "content_block_delta" else ""


@pytest.mark.req("controller:safe")
@pytest.mark.parametrize("failure", [
    (429, {"type": "error", "error": {"type": "x", "message": "busy"}}),
    Sent(chunks=[], breaks=True),
], ids=["status", "connection"])  # fmt: skip
def test_a_hidden_round_that_failed_is_taken_up_by_the_clients_own_retry(
    space: Namespace, served: Upstream, failure: Any
) -> None:
    first, second = script("anthropic", [call("memory_note", text="blue")], [{"text": "ok"}])
    served.script = [first, failure, second]
    with client("anthropic", served.url, retries=1) as opened:
        wrapped = with_memory(opened, controller(space))
        final = wrapped.messages.create(**request("anthropic", user("Hello")))
    assert text_of(final) == "ok"
    assert space.count() == 1
    assert json.dumps(served.requests[1]) == json.dumps(served.requests[2])


@pytest.mark.req("controller:safe", "pkg:errors")
def test_a_client_that_signs_its_requests_is_refused(space: Namespace) -> None:
    class OpenAIBedrock(openai.OpenAI):  # type: ignore[misc]
        """A client of the kind whose requests no one may change."""

    with (
        OpenAIBedrock(api_key="not-a-key", base_url="http://127.0.0.1:1") as opened,
        pytest.raises(InvalidInput, match="signs each request"),
    ):
        with_memory(opened, controller(space))


@pytest.mark.req("controller:offload")
def test_tokens_are_counted_as_the_request_is_sent(space: Namespace, served: Upstream) -> None:
    served.script = [{"input_tokens": 5}, answered("anthropic", [{"text": "ok"}], 0)]
    given = request("anthropic", user("Hello"))
    with client("anthropic", served.url) as opened:
        wrapped = with_memory(opened, controller(space))
        counted = {name: given[name] for name in ("model", "messages", "tools")}
        assert wrapped.messages.count_tokens(**counted).input_tokens == 5
        wrapped.messages.create(**given)
    assert served.requests[0]["tools"] == served.requests[1]["tools"]
    assert served.requests[0]["system"] == served.requests[1]["system"]


@pytest.mark.req("pkg:async", "controller:safe")
@each_format
def test_an_event_loop_never_waits_for_the_store(
    tmp_path: Path, served: Upstream, wire_format: WireFormat, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: set[int] = set()

    def noting(name: str) -> Callable[..., Any]:
        found = getattr(Namespace, name)

        def call(*given: Any, **options: Any) -> Any:
            used.add(threading.get_ident())
            return found(*given, **options)

        return call

    with Memory.open(f"sqlite:///{tmp_path / 'agent.db'}") as memory:
        space = memory.namespace("a")
        space.save("red", memory_id="7")
        subject = controller(space)
        subject.show("7")
        for name in ("get", "decision", "decisions", "decide", "recall", "save"):
            monkeypatch.setattr(Namespace, name, noting(name))
        served.script = script(wire_format, [{"text": "One"}, call("memory_search", query="x")],
                               [{"text": "It is [memo:7]!"}])  # fmt: skip
        told = Host(served, subject, wire_format, True).send(user("Hello"))
    assert text_of(told).endswith("It is red!")
    assert used
    assert threading.get_ident() not in used


@pytest.mark.req("controller:by-reference")
def test_an_answer_that_is_asked_for_as_json_stays_json(space: Namespace, served: Upstream) -> None:
    space.save('say "hi"', memory_id="7")
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    asked = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
    body = answered("openai_chat", [{"text": '{"text": "[memo:7]", "raw": "so: [memo:7]"}'}], 0)
    for streamed in (False, True):
        subject = MemoryController(space, conversation=f"c-{streamed}")
        subject.show("7")
        served.script = [body]
        with client("openai_chat", served.url) as opened:
            wrapped = with_memory(opened, subject)
            given = {**request("openai_chat", user("Hi")), "response_format": asked}
            if streamed:
                with wrapped.chat.completions.stream(**given) as events:
                    final = events.get_final_completion()
            else:
                final = wrapped.chat.completions.create(**given)
        said = json.loads(text_of(final))
        assert said == {"text": 'say "hi"', "raw": 'so: say "hi"'}
        assert json.loads(subject.audit()[0].executed) == said


@pytest.mark.req("controller:by-reference")
def test_raw_responses_and_parsed_ones_have_memory_too(space: Namespace, served: Upstream) -> None:
    space.save("red", memory_id="7")
    subject = controller(space)
    subject.show("7")
    served.script = [answered("openai_chat", [{"text": "It is [memo:7]"}], 0)] * 3
    with client("openai_chat", served.url) as opened:
        create = with_memory(opened, subject).chat.completions
        given = request("openai_chat", user("Hi"))
        raw = create.with_raw_response.create(**given)
        assert raw.headers["x-request-id"] == "req-1"
        assert text_of(raw.parse()) == "It is red"
        del given["tools"]
        assert text_of(create.parse(**given)) == "It is red"
        # A provider that does not stream though it was asked to.
        served.script = [(200, served.script[0])]
        with create.with_streaming_response.create(**given, stream=True) as response:
            whole = json.loads(response.read())
    assert whole["choices"][0]["message"]["content"] == "It is red"
