"""Whose request it is, and which conversation it continues."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conversations import BODY, request, result_texts, results, rows, turn, user
from proxies import Running, running_proxy
from test_proxy_offload import Host, answer
from upstream import Upstream, upstream

from zero_mem import Memory
from zero_mem.controller.definitions import MEMORY_TOOLS, READ_TOOL
from zero_mem.proxy.identity import session, tenant

pytestmark = pytest.mark.req("controller:offload")

OTHER = json.dumps([{**row, "status": "other"} for row in rows()])
KEY = bytes(32)
UUID = "0b5e8f0e-9c3b-4a35-8d0a-6f1f7b3f2c11"


@pytest.fixture
def provider() -> Iterator[Upstream]:
    with upstream() as served:
        yield served


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(f"sqlite:///{tmp_path / 'proxy.db'}", durability="normal") as opened:
        yield opened


@pytest.fixture
def proxy(provider: Upstream, memory: Memory) -> Iterator[Running]:
    with running_proxy(memory, provider.url, mode="offload") as running:
        yield running


def receipt(provider: Upstream, at: int = -1, wire_format: Any = "openai_chat") -> str:
    return str(result_texts(provider.requests[at], wire_format)[-1].splitlines()[0])


def run_a_tool(provider: Upstream, host: Host, body: str, call_id: str = "call_0") -> None:
    """Two requests: the model calls the tool, and gets its result."""
    calls: dict[str, Any] = {call_id: ("orders", {})}
    provider.script += [answer(host.format, **calls), answer(host.format, "ok")]
    host.send(user("Look at the orders"))
    host.send(results(host.format, **{call_id: body}))


def test_conversations_without_ids_go_on_by_their_turns_and_results(
    provider: Upstream, proxy: Running
) -> None:
    one, two = Host(proxy.url, "openai_chat"), Host(proxy.url, "openai_chat")
    run_a_tool(provider, one, BODY)
    first = provider.requests[-1]
    run_a_tool(provider, two, OTHER)  # the same prompt and the same call id, as some servers give
    assert result_texts(provider.requests[-1], "openai_chat") != result_texts(first, "openai_chat")
    provider.script = [answer("openai_chat", "again")] * 2
    for host, body in ((one, BODY), (two, OTHER)):
        before = provider.requests[1 if host is one else 3]
        host.send({"role": "user", "content": "<reminder>be brief</reminder>"}, user("More"))
        sent = provider.requests[-1]["messages"]
        assert sent[: len(before["messages"])] == before["messages"]
        assert body not in json.dumps(sent)


def test_a_reminder_in_mid_history_does_not_split_a_conversation(
    provider: Upstream, proxy: Running
) -> None:
    host = Host(proxy.url, "anthropic")
    run_a_tool(provider, host, BODY)
    provider.script = [answer("anthropic", "again")]
    host.items[2]["content"].append({"type": "text", "text": "<reminder>now</reminder>"})
    host.send(user("More"), system="Another system prompt")
    assert receipt(provider, wire_format="anthropic").startswith("[memo:1] save")


@pytest.mark.parametrize(
    ("wire_format", "fields", "headers"),
    [
        ("anthropic", {}, {"x-zero-mem-conversation": "order-57"}),
        ("anthropic", {}, {"x-claude-code-session-id": UUID}),
        ("anthropic", {"metadata": {"user_id": f"user_1_account_2_session_{UUID}"}}, {}),
        ("anthropic", {"metadata": {"user_id": json.dumps({"session_id": UUID})}}, {}),
        ("openai_responses", {}, {"session_id": UUID}),
        ("openai_responses", {"prompt_cache_key": UUID}, {}),
    ],
)
def test_a_client_that_names_its_session_is_followed_over_a_cut_history(
    provider: Upstream, proxy: Running, wire_format: Any, fields: Any, headers: Any
) -> None:
    host = Host(proxy.url, wire_format, headers=headers)
    provider.script = [
        answer(wire_format, call_1=("orders", {})),
        answer(wire_format, call_2=("orders", {})),
        answer(wire_format, "ok"),
    ]
    host.send(user("Look at the orders"), **fields)
    host.send(results(wire_format, call_1=BODY), **fields)
    host.items = [user("(cut)"), *host.items[1:]]
    host.send(results(wire_format, call_2=OTHER), **fields)
    first, second = result_texts(provider.requests[-1], wire_format)
    assert first.startswith("[memo:1] save")
    assert second.startswith("[memo:2] save")
    assert provider.headers[0].get("x-zero-mem-conversation") is None


def test_child_agents_of_one_session_are_threads_of_their_own(
    provider: Upstream, proxy: Running
) -> None:
    named = {"x-claude-code-session-id": UUID}
    provider.script = [
        answer("anthropic", call_1=("orders", {})),
        answer("anthropic", call_m=(READ_TOOL, {"id": "1", "lines": "1"})),
        answer("anthropic", "Done."),
        answer("anthropic", "Done."),
        answer("anthropic", "Bye."),
    ]
    parent = Host(proxy.url, "anthropic", headers=named)
    child = Host(proxy.url, "anthropic", headers=named)
    parent.send(user("Look"))
    parent.send(results("anthropic", call_1=BODY))
    child.send(user("You are a child agent"))
    child.send(user("Thanks"))
    # The parent's hidden round before its own "Done." is not put before the child's.
    assert [m["role"] for m in provider.requests[-1]["messages"]] == ["user", "assistant", "user"]


def test_a_bare_user_id_and_a_shared_cache_key_name_no_session() -> None:
    assert session([], {"metadata": {"user_id": "customer-7"}}, "anthropic") is None
    assert session([], {"prompt_cache_key": "support-bot"}, "openai_chat") is None
    assert session([(b"session_id", b"x" * 300)], {}, "openai_chat") is None


@pytest.mark.req("handle:scope")
def test_another_key_gets_nothing_of_a_conversation_even_by_its_name_and_handles(
    provider: Upstream, proxy: Running
) -> None:
    named = {"x-zero-mem-conversation": "shared-name"}
    run_a_tool(provider, Host(proxy.url, "openai_chat", headers=named), BODY)
    thief = Host(proxy.url, "openai_chat", key="key-2", headers=named)
    provider.script = [
        answer("openai_chat", call_m=(READ_TOOL, {"id": "1"})),
        answer("openai_chat", call_1=("orders", {"body": "[memo:1]"})),
        answer("openai_chat", "[memo:1]"),
    ]
    provider.script.insert(2, answer("openai_chat", call_s=("memory_search", {"query": "ORD"})))
    thief.send(user("Read it"))
    assert "ORD-00017" not in json.dumps(provider.requests[2:])
    assert "ORD-00017" not in json.dumps(thief.items)


@pytest.mark.req("handle:scope")
@pytest.mark.parametrize("one_user", [False, True])
def test_conversations_of_one_key_share_their_memories_only_if_they_are_one_users(
    provider: Upstream, memory: Memory, one_user: bool
) -> None:
    with running_proxy(memory, provider.url, mode="offload", one_user=one_user) as proxy:
        named = {"x-zero-mem-conversation": "Ann's"}
        run_a_tool(provider, Host(proxy.url, "openai_chat", headers=named), BODY)
        other = Host(proxy.url, "openai_chat", headers={"x-zero-mem-conversation": "Bob's"})
        provider.script = [
            answer("openai_chat", call_m=(READ_TOOL, {"id": "1", "rows": {"status": "late"}})),
            answer("openai_chat", call_s=("memory_search", {"query": "ORD-00017 late"})),
            answer("openai_chat", "ok"),
        ]
        other.send(user("What do you know?"))
    assert ("ORD-00017" in json.dumps(provider.requests[3:4])) is one_user
    answers = json.dumps([m for m in provider.requests[-1]["messages"] if m["role"] == "tool"])
    assert ("cust_" in answers) is one_user


@pytest.mark.req("handle:scope")
def test_keys_that_are_renewed_can_be_one_user(provider: Upstream, memory: Memory) -> None:
    with running_proxy(memory, provider.url, mode="offload", one_user=True) as proxy:
        host = Host(proxy.url, "openai_chat")
        run_a_tool(provider, host, BODY)
        renewed = Host(proxy.url, "openai_chat", key="key-2")
        renewed.items = host.items
        provider.script = [answer("openai_chat", "ok")]
        renewed.send(user("More"))
    assert receipt(provider, wire_format="openai_chat").startswith("[memo:1] save")


@pytest.mark.req("handle:scope")
def test_tenants_are_told_by_the_whole_credential_under_a_key() -> None:
    one = tenant([(b"authorization", b"Bearer k")], KEY)
    assert one == tenant([(b"x-other", b"1"), (b"Authorization", b"Bearer k")], KEY)
    others = [
        tenant([(b"authorization", b"Bearer l")], KEY),
        tenant([(b"x-api-key", b"Bearer k")], KEY),
        tenant([(b"authorization", b"Bearer k"), (b"x-api-key", b"k")], KEY),
        tenant([(b"authorization", b"Bearer k")], b"\x01" * 32),
        tenant([], KEY),
    ]
    assert len({one, *others}) == 6


def test_a_second_process_on_the_store_sends_the_same_bytes(
    provider: Upstream, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'two.db'}"
    with (
        Memory.open(url) as first,
        Memory.open(url) as second,
        running_proxy(first, provider.url, mode="offload") as one,
        running_proxy(second, provider.url, mode="offload") as two,
    ):
        host = Host(one.url, "anthropic")
        run_a_tool(provider, host, BODY)
        provider.script = [answer("anthropic", "ok")] * 2
        body = json.dumps(request("anthropic", *host.items, user("More"))).encode()
        for proxy in (one, two):
            proxy.send("/v1/messages", body, ("authorization", "Bearer key-1"))
    assert provider.raw[-1] == provider.raw[-2]
    assert b"[memo:1] save" in provider.raw[-1]


def test_observing_never_edits_a_conversation_that_was_offloaded(
    provider: Upstream, memory: Memory
) -> None:
    with running_proxy(memory, provider.url, mode="offload") as proxy:
        host = Host(proxy.url, "openai_chat")
        run_a_tool(provider, host, BODY)
    with running_proxy(memory, provider.url) as proxy:
        again = Host(proxy.url, "openai_chat")
        again.items = host.items
        provider.script = [answer("openai_chat", "ok")]
        again.send(user("More"))
    assert BODY in result_texts(provider.requests[-1], "openai_chat")
    tools = [tool["function"]["name"] for tool in provider.requests[-1]["tools"]]
    assert not set(tools) & set(MEMORY_TOOLS)


def test_responses_that_stay_on_the_server_are_continued_by_their_ids(
    provider: Upstream, proxy: Running
) -> None:
    first = {**answer("openai_responses", call_1=("orders", {})), "id": "resp_1"}
    second = {**answer("openai_responses", "ok"), "id": "resp_2"}
    provider.script = [first, second]
    asked = json.dumps(request("openai_responses", user("Go"))).encode()
    proxy.send("/v1/responses", asked)
    followed = request(
        "openai_responses", results("openai_responses", call_1=BODY), previous_response_id="resp_1"
    )
    proxy.send("/v1/responses", json.dumps(followed).encode())
    assert receipt(provider, wire_format="openai_responses").startswith("[memo:1] save")
    stranger = {**followed, "previous_response_id": "resp_0"}
    provider.script = [second]
    proxy.send("/v1/responses", json.dumps(stranger).encode())
    assert provider.requests[-1] == stranger
    assert turn("openai_responses", call_1=("orders", {}))
