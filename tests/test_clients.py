"""The official clients with memory, against a scripted provider on loopback."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from conversations import BODY, FIELD, request, response, result_texts, results, rows, turn, user
from scripted_provider import ScriptedProvider, scripted_provider

from zero_mem import Memory, MemoryController
from zero_mem.controller.definitions import READ_TOOL
from zero_mem.controller.messages import WireFormat
from zero_mem.conversation import with_memory
from zero_mem.errors import InvalidInput
from zero_mem.space import Namespace

openai: Any = pytest.importorskip("openai", reason="the openai package is not installed")
anthropic: Any = pytest.importorskip("anthropic", reason="the anthropic package is not installed")

CALLS = [("openai_chat", False), ("openai_responses", False), ("anthropic", False),
         ("openai_chat", True), ("openai_responses", True), ("anthropic", True)]  # fmt: skip
each_client = pytest.mark.parametrize(
    ("wire_format", "is_async"), CALLS, ids=[f"{f}-{'async' if a else 'sync'}" for f, a in CALLS]
)
USAGE = {
    "openai_chat": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
    "openai_responses": {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 3},
        "output_tokens": 2,
        "total_tokens": 12,
    },
    "anthropic": {"input_tokens": 10, "output_tokens": 2},
}
SUM = {"openai_chat": "prompt_tokens", "openai_responses": "input_tokens",
       "anthropic": "input_tokens"}  # fmt: skip


@pytest.fixture
def provider() -> Iterator[ScriptedProvider]:
    with scripted_provider() as served:
        yield served


def answer(wire_format: WireFormat, text: str = "", **calls: Any) -> dict[str, Any]:
    """A complete response with usage."""
    made = response(wire_format, turn(wire_format, text, **calls))
    return {**made, "usage": USAGE[wire_format]}


class Host:
    """Calls a wrapped client of any kind the same way, and keeps its own history."""

    def __init__(
        self, provider: ScriptedProvider, controller: MemoryController, wire_format: WireFormat,
        is_async: bool = False, rounds: int = 8,
    ) -> None:  # fmt: skip
        vendor = anthropic if wire_format == "anthropic" else openai
        name = ("Async" if is_async else "") + (
            "Anthropic" if wire_format == "anthropic" else "OpenAI"
        )
        self._open: Callable[[], Any] = lambda: getattr(vendor, name)(
            base_url=provider.url, api_key="not-a-key", max_retries=0
        )
        self._controller, self._rounds = controller, rounds
        self._format, self._async = wire_format, is_async
        self.items: list[Any] = []

    def send(self, *items: Any, **fields: Any) -> Any:
        self.items += [one for i in items for one in (i if isinstance(i, list) else [i])]
        given = request(self._format, *self.items, **fields)
        if self._async:
            return asyncio.run(self._send_async(given))
        with self._open() as client:
            return self._create(client)(**given)

    async def _send_async(self, given: dict[str, Any]) -> Any:
        async with self._open() as client:
            return await self._create(client)(**given)

    def _create(self, client: Any) -> Any:
        wrapped = with_memory(client, self._controller, rounds=self._rounds)
        if self._format == "openai_chat":
            return wrapped.chat.completions.create
        return wrapped.messages.create if self._format == "anthropic" else wrapped.responses.create

    def keep(self, answered: Any) -> None:
        """Append the turn the way the SDKs' guides do: with the client's own objects."""
        if self._format == "openai_chat":
            self.items.append(answered.choices[0].message)
        elif self._format == "openai_responses":
            self.items += answered.output
        else:
            self.items.append({"role": "assistant", "content": answered.content})


def text_of(answered: Any) -> str:
    if hasattr(answered, "choices"):
        return str(answered.choices[0].message.content or "")
    if hasattr(answered, "output"):
        return str(answered.output_text)
    return "".join(block.text for block in answered.content if block.type == "text")


def calls_of(answered: Any) -> list[tuple[str, Any]]:
    if hasattr(answered, "choices"):
        made = answered.choices[0].message.tool_calls or []
        return [(c.function.name, json.loads(c.function.arguments)) for c in made]
    if hasattr(answered, "output"):
        made = [item for item in answered.output if item.type == "function_call"]
        return [(c.name, json.loads(c.arguments)) for c in made]
    return [(block.name, block.input) for block in answered.content if block.type == "tool_use"]


def controller(space: Namespace, **options: Any) -> MemoryController:
    return MemoryController(space, conversation="c-1", share=0.1, **options)


def prefix_kept(provider: ScriptedProvider, wire_format: WireFormat) -> bool:
    """Tell whether each request's items begin with those of the request before."""
    lists = [[json.dumps(i) for i in r[FIELD[wire_format]]] for r in provider.requests]
    return all(later[: len(one)] == one for one, later in pairwise(lists))


@pytest.mark.req("controller:offload", "recall:no-loop")
@each_client
def test_memory_calls_are_answered_here_and_put_back_later(
    space: Namespace, provider: ScriptedProvider, wire_format: WireFormat, is_async: bool
) -> None:
    host = Host(provider, controller(space), wire_format, is_async)
    provider.script = [
        answer(wire_format, c1=("orders", {})),
        answer(
            wire_format, "Let me look.", m1=(READ_TOOL, {"id": "1", "rows": {"status": "late"}})
        ),
        answer(wire_format, "Two are late: [memo:1#/17/order_id]."),
        answer(wire_format, "You are welcome."),
    ]
    asked = host.send(user("Which orders are late?"))
    assert calls_of(asked) == [("orders", {})]
    host.keep(asked)
    told = host.send(results(wire_format, c1=BODY))
    between = "\n\n" if wire_format == "openai_chat" else ""  # one text for both rounds
    assert text_of(told) == f"Let me look.{between}Two are late: ORD-00017."
    assert calls_of(told) == []
    assert told.usage.to_dict()[SUM[wire_format]] == 20
    host.keep(told)
    last = host.send(user("Thank you"))
    assert text_of(last) == "You are welcome."
    assert prefix_kept(provider, wire_format)
    read = result_texts(provider.requests[-1], wire_format)[1]
    assert [json.loads(line.partition(": ")[2]) for line in read.splitlines()[1:]] == [
        row for row in rows() if row["status"] == "late"
    ]
    assert "Two are late: [memo:1#/17/order_id]." in json.dumps(provider.requests[-1])


@pytest.mark.req("ledger:columns")
@each_client
def test_every_round_is_in_the_ledger_and_hidden_ones_are_never_saved(
    space: Namespace, provider: ScriptedProvider, wire_format: WireFormat, is_async: bool
) -> None:
    subject = controller(space)
    host = Host(provider, subject, wire_format, is_async)
    provider.script = [
        answer(wire_format, c1=("orders", {})),
        answer(wire_format, m1=(READ_TOOL, {"id": "1", "rows": {"status": "late"}})),
        answer(wire_format, "Two are late."),
    ]
    host.keep(host.send(user("Which orders are late?")))
    host.send(results(wire_format, c1=BODY))
    opening, hidden, shown = subject.ledger().calls
    assert all(call.billed and call.columns.prompt == 10 for call in (opening, hidden, shown))
    assert (hidden.without, shown.columns.memory_reads > 0) == (0, True)
    assert 0 < (opening.without or 0) < 10  # our definitions are on top
    assert (shown.without or 0) > 10


@pytest.mark.req("controller:safe", "controller:by-reference")
@each_client
def test_in_a_mixed_turn_the_host_sees_its_own_calls_alone(
    space: Namespace, provider: ScriptedProvider, wire_format: WireFormat, is_async: bool
) -> None:
    space.save("red", kind="note", memory_id="7")
    subject = controller(space)
    subject.show("7")
    host = Host(provider, subject, wire_format, is_async)
    mixed: dict[str, Any] = {
        "m1": ("memory_search", {"query": "red"}),
        "c1": ("orders", {"to": "[memo:7]"}),
        "c2": ("orders", {"to": "[memo:8]"}),
    }
    provider.script = [answer(wire_format, **mixed), answer(wire_format, "done")]
    asked = host.send(user("Send red"))
    assert calls_of(asked) == [("orders", {"to": "red"})]
    host.keep(asked)
    assert text_of(host.send(results(wire_format, c1="sent"))) == "done"
    sent = provider.requests[-1][FIELD[wire_format]]
    own = turn(wire_format, **mixed)
    assert [item for item in own if item not in sent] == []
    found, refused, theirs = result_texts(provider.requests[-1], wire_format)
    assert found == "[memo:7] note: red"
    assert "[memo:8]" in refused
    assert theirs == "sent"
    if wire_format == "anthropic":  # all results of a turn are in one message
        assert [message["role"] for message in sent] == ["user", "assistant", "user"]


@pytest.mark.req("controller:safe")
def test_signed_thinking_of_a_hidden_round_goes_back_as_it_came(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    url = f"sqlite:///{tmp_path / 'agent.db'}"
    thinking = {"type": "thinking", "thinking": "hm [memo:1]", "signature": "c2lnbmVk"}
    hidden = answer("anthropic", m1=("memory_search", {"query": "x"}))
    hidden["content"].insert(0, thinking)
    provider.script = [hidden, answer("anthropic", "ok"), answer("anthropic", "fine")]
    with Memory.open(url) as memory:
        host = Host(provider, controller(memory.namespace("a")), "anthropic")
        host.keep(host.send(user("Hello")))
    with Memory.open(url) as memory:
        restarted = Host(provider, controller(memory.namespace("a")), "anthropic")
        restarted.send(*host.items, user("And?"))
    assert prefix_kept(provider, "anthropic")
    assert provider.requests[-1]["messages"][1]["content"][0] == thinking


@pytest.mark.req("controller:safe")
def test_with_the_history_on_the_server_only_what_is_new_is_sent(
    space: Namespace, provider: ScriptedProvider
) -> None:
    mixed: dict[str, Any] = {"m1": ("memory_search", {"query": "x"}), "c1": ("orders", {})}
    provider.script = [
        {**answer("openai_responses", m0=("memory_search", {"query": "y"})), "id": "r1"},
        {**answer("openai_responses", **mixed), "id": "r2"},
        {**answer("openai_responses", "done"), "id": "r3"},
    ]
    host = Host(provider, controller(space), "openai_responses")
    asked = host.send(user("Go"), previous_response_id="r0")
    assert calls_of(asked) == [("orders", {})]
    host.items = []
    host.send(results("openai_responses", c1="none"), previous_response_id=asked.id)
    chain = [r["previous_response_id"] for r in provider.requests]
    assert chain == ["r0", "r1", "r2"]
    answered = [[i["call_id"] for i in r["input"] if "call_id" in i] for r in provider.requests]
    assert answered == [[], ["m0"], ["m1", "c1"]]


@pytest.mark.req("controller:safe")
def test_with_the_conversation_on_the_server_only_what_is_new_is_sent(
    space: Namespace, provider: ScriptedProvider
) -> None:
    mixed: dict[str, Any] = {"m1": ("memory_search", {"query": "x"}), "c1": ("orders", {})}
    provider.script = [
        answer("openai_responses", m0=("memory_search", {"query": "y"})),
        answer("openai_responses", **mixed),
        answer("openai_responses", "done"),
        answer("openai_responses", "bye"),
    ]
    host = Host(provider, controller(space), "openai_responses")
    asked = host.send(user("Go"), conversation="conv_1")
    assert calls_of(asked) == [("orders", {})]
    for items in (results("openai_responses", c1="none"), [user("Thanks")]):
        host.items = []
        host.send(items, conversation={"id": "conv_1"})
    answered = [[i["call_id"] for i in r["input"] if "call_id" in i] for r in provider.requests]
    assert answered == [[], ["m0"], ["m1", "c1"], []]


@pytest.mark.req("controller:safe")
def test_a_model_that_only_uses_its_memory_is_stopped(
    space: Namespace, provider: ScriptedProvider
) -> None:
    provider.script = [answer("anthropic", m1=("memory_search", {"query": "x"}))] * 3
    with pytest.raises(anthropic.InternalServerError, match=r"LimitReached.* 3 rounds"):
        Host(provider, controller(space), "anthropic", rounds=3).send(user("Hello"))


@pytest.mark.req("controller:modes", "controller:safe")
def test_errors_of_the_provider_pass_and_observing_changes_nothing(
    space: Namespace, provider: ScriptedProvider
) -> None:
    host = Host(provider, controller(space, mode="observe"), "anthropic")
    provider.script = [(429, {"type": "error", "error": {"type": "x", "message": "slow"}})]
    with pytest.raises(anthropic.RateLimitError):
        host.send(user("Hello"))
    provider.script = [answer("anthropic", "see [memo:1] in text")]
    assert text_of(host.send()) == "see [memo:1] in text"
    assert provider.requests[-1] == request("anthropic", user("Hello"))


@pytest.mark.req("controller:safe")
def test_a_client_with_memory_is_a_client_of_the_same_class(space: Namespace) -> None:
    with openai.OpenAI(api_key="not-a-key", base_url="http://127.0.0.1:1") as client:
        wrapped = with_memory(client, controller(space)).with_options(timeout=1, max_retries=0)
        assert isinstance(wrapped, openai.OpenAI)
        assert wrapped.api_key == "not-a-key"
        with pytest.raises(openai.APIConnectionError):
            wrapped.models.list()
    with pytest.raises(InvalidInput, match="no client of openai or anthropic"):
        with_memory(object(), controller(space))


@pytest.mark.req("controller:safe")
def test_messages_may_be_an_iterator_and_a_response_without_choices_passes(
    space: Namespace, provider: ScriptedProvider
) -> None:
    provider.script = [{**answer("openai_chat", "x"), "choices": []}]
    with openai.OpenAI(base_url=provider.url, api_key="not-a-key") as client:
        wrapped = with_memory(client, controller(space))
        told = wrapped.chat.completions.create(model="m", messages=iter([user("Hello")]))
    assert told.choices == []
    assert provider.requests[-1]["messages"][-1] == user("Hello")


@pytest.mark.req("controller:offload")
def test_a_response_has_the_clients_own_type(space: Namespace, provider: ScriptedProvider) -> None:
    space.save("red", memory_id="7")
    subject = controller(space)
    subject.show("7")
    provider.script = [{**answer("openai_chat", "It is [memo:7]"), "unknown": {"a": 1}}]
    told = Host(provider, subject, "openai_chat").send(user("Which?"))
    assert isinstance(told, openai.types.chat.ChatCompletion)
    assert told.choices[0].message.content == "It is red"
    assert told._request_id == "req-1"
    assert told.unknown == {"a": 1}
