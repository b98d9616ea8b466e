"""The ledger of a proxy and its live page: figures by column and cache state, never a body."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conversations import BODY, request, results, turn, user
from proxies import Running, running_proxy, send, until
from scripted_upstream import Exchange, scripted_upstream
from test_proxy_offload import Host, answer, figures
from typer.testing import CliRunner
from upstream import Upstream, stream_bytes, upstream

from zero_mem import Memory
from zero_mem.cli.app import app
from zero_mem.controller.definitions import READ_TOOL
from zero_mem.errors import InvalidInput, MissingExtra
from zero_mem.ledger import overview
from zero_mem.ledger.columns import CacheState, CallTokens, Usage
from zero_mem.ledger.entries import Account, LedgerEntry
from zero_mem.ledger.prices import DEFAULT_TABLE
from zero_mem.ledger.sides import Counted, billed
from zero_mem.proxy import ledger
from zero_mem.proxy.counting import CountingProcess, Passed, Rates
from zero_mem.proxy.ledger import Ledger
from zero_mem.proxy.serving import bound, serve
from zero_mem.proxy.settings import Settings
from zero_mem.proxy.targets import upstreams

pytestmark = pytest.mark.req("ledger:columns")

ANTHROPIC = {"input_tokens": 10, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 30,
             "output_tokens": 5}  # fmt: skip
CHAT = {
    "prompt_tokens": 100,
    "prompt_tokens_details": {"cached_tokens": 60},
    "completion_tokens": 5,
}
RESPONSES = {"input_tokens": 100, "output_tokens": 5,
             "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30}}  # fmt: skip


@pytest.fixture
def provider() -> Iterator[Upstream]:
    with upstream() as served:
        yield served


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory.open("memory://") as opened:
        yield opened


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("path", "wire_format", "usage", "state"),
    [
        ("/v1/messages", "anthropic", ANTHROPIC, {"read": 60, "write": 30, "fresh": 10}),
        ("/v1/chat/completions", "openai_chat", CHAT, {"read": 60, "write": 0, "fresh": 40}),
        ("/v1/responses", "openai_responses", RESPONSES, {"read": 60, "write": 30, "fresh": 10}),
    ],
)
def test_calls_are_priced_from_the_providers_own_usage(
    provider: Upstream, memory: Memory, path: str, wire_format: Any, usage: Any, state: Any,
    streams: bool,
) -> None:  # fmt: skip
    provider.script = [{**answer(wire_format, "Hi"), "usage": usage}]
    asked = request(wire_format, user("Hello"), model="claude-sonnet-5-5-20261001", stream=streams)
    with running_proxy(memory, provider.url) as proxy:
        proxy.send(path, json.dumps(asked).encode(), ("x-zero-mem-conversation", "c"))
        (row,) = figures(proxy, calls=1)["conversations"]
    price = DEFAULT_TABLE.price("Sonnet 5.5")
    assert row["paid"]["cache"] == state
    assert row["paid"]["tokens"]["prompt"] == 100
    assert row["paid"]["tokens"]["output"] == 5
    assert sum(v for k, v in row["paid"]["tokens"].items() if k not in ("prompt", "output")) == 100
    assert row["paid"]["cost"]["read"] == pytest.approx(60 * price.read / 1e6)
    assert row["paid"]["cost"]["output"] == pytest.approx(5 * price.output / 1e6)
    assert (row["mode"], row["origin"], row["estimated"]) == ("observe", "named", 0)
    snapshot = memory.snapshot()
    assert (snapshot.calls, snapshot.tokens["output"]) == (1, 5)
    assert CallTokens(**snapshot.tokens).prompt == 100
    counts = [*row["paid"]["tokens"].values(), *row["other"]["cache"].values(), row["kept_out"]]
    assert all(type(count) is int for count in counts)


def test_without_usage_or_price_it_says_so(provider: Upstream, memory: Memory) -> None:
    provider.script = [{**answer("openai_chat", "Hi"), "usage": None}]
    with running_proxy(memory, provider.url) as proxy:
        asked = request("openai_chat", user("Hello"), model="some-model")
        proxy.send("/v1/chat/completions", json.dumps(asked).encode())
        (row,) = figures(proxy, calls=1)["conversations"]
    assert (row["estimated"], row["unpriced"]) == (1, 1)
    assert row["paid"]["tokens"]["prompt"] > 0
    assert "cost" not in row["paid"]


@pytest.mark.req("ledger:compare")
def test_observing_rehearses_what_offloading_would_do(provider: Upstream, memory: Memory) -> None:
    asked = [user("Look"), turn("openai_chat", call_1=("orders", {}))]
    history = [*asked, results("openai_chat", call_1=BODY)]
    big = {"prompt_tokens": 20_000, "completion_tokens": 5}
    provider.script = [answer("openai_chat", "Hi"), {**answer("openai_chat", "Hi"), "usage": big}]
    with running_proxy(memory, provider.url) as proxy:
        for items in (asked[:1], history):
            sent = request("openai_chat", *items, model="gpt-6.2-sol")
            proxy.send("/v1/chat/completions", json.dumps(sent).encode(),
                       ("x-zero-mem-conversation", "c"))  # fmt: skip
        (row,) = figures(proxy, calls=2)["conversations"]
    assert provider.requests[1]["messages"][2]["content"] == BODY
    assert row["other"]["tokens"]["tool_results"] < row["paid"]["tokens"]["tool_results"] / 2
    assert row["other"]["tokens"]["our_definitions"] > 0
    assert row["other"]["cost"]["total"] < row["paid"]["cost"]["total"]


def test_the_providers_discount_is_never_counted_as_saved() -> None:
    def counted(results: int, unchanged: int) -> Counted:
        return Counted(tokens=CallTokens(system=100, tool_results=results), unchanged=unchanged)

    same = billed(counted(900, 900), counted(900, 900), [Usage(prompt=1000, read=900, output=7)])
    assert same.paid == same.other
    call = billed(counted(100, 100), counted(900, 600), [Usage(prompt=200, read=100, write=100)])
    assert call.paid.state == CacheState(read=100, write=100)
    assert call.other.state == CacheState(read=600, write=400)
    uncached = billed(counted(100, 100), counted(900, 600), [Usage(prompt=200)])
    assert uncached.other.state == CacheState(fresh=1000)


def test_hidden_rounds_are_on_the_side_that_was_paid() -> None:
    sent = Counted(tokens=CallTokens(system=100, tool_results=100))
    whole = Counted(tokens=CallTokens(system=100, tool_results=900))
    rounds = [Usage(prompt=200, output=30), Usage(prompt=300, output=5)]
    call = billed(sent, whole, rounds)
    assert (call.paid.tokens.prompt, call.paid.tokens.output) == (500, 35)
    assert (call.other.tokens.prompt, call.other.tokens.output) == (1000, 5)


@pytest.mark.parametrize(
    ("model", "row"),
    [
        ("claude-sonnet-5-5-20261001", "Sonnet 5.5"),
        ("us.anthropic.claude-opus-5-5-v1:0", "Opus 5.5"),
        ("gpt-6.2-sol", "GPT-6.2 Sol"),
        ("claude-sonnet-5-20250101", None),
        ("claude-sonnet-55", None),
        ("", None),
    ],
)
def test_a_models_row_is_found_by_its_api_name(model: str, row: str | None) -> None:
    found = DEFAULT_TABLE.find(model)
    assert (found and found.model) == row


def test_accounts_of_several_processes_add_up(provider: Upstream, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    asked = json.dumps(request("openai_chat", user("Hello"), model="gpt-6.2-sol")).encode()
    for _ in range(2):
        with Memory.open(url) as memory, running_proxy(memory, provider.url) as proxy:
            provider.script = [answer("openai_chat", "Hi")]
            proxy.send("/v1/chat/completions", asked, ("x-zero-mem-conversation", "c"))
    with Memory.open(url) as memory, running_proxy(memory, provider.url) as proxy:
        (row,) = figures(proxy, calls=2)["conversations"]
        found = overview(memory.namespace("proxy"))
    assert row["paid"]["cache"]["fresh"] == 200
    assert found.total.as_dict("observe")["paid"] == row["paid"]
    assert [entry.conversation for entry in found.conversations] == [row["conversation"]]
    assert sum(account.calls for account in found.days.values()) == 2


class ByName:
    """Counts each call as one of the conversation that its path names."""

    def count(self, call: Passed) -> LedgerEntry:
        return LedgerEntry(conversation=str(call), account=Account(calls=1, requests=1))

    def close(self) -> None:
        """Hold nothing."""


def test_accounts_of_earlier_days_are_the_stores_alone(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = memory.namespace("proxy")
    days: list[int] = []
    clock = SimpleNamespace(time=lambda: 1.79e9 + 86_400 * len(days), monotonic=time.monotonic)
    monkeypatch.setattr(ledger, "time", clock)
    monkeypatch.setattr(ledger, "_EVERY", 0.0)
    subject = Ledger(space, ByName(), prices=DEFAULT_TABLE)
    while len(days) < 10:
        subject.add(lambda: "c")  # type: ignore[arg-type, return-value]
        until(lambda: len(space.decisions("proxy.ledger")) == len(days) + 1)
        days.append(subject.read("observe")["total"]["calls"])
    subject.close()
    assert days == list(range(1, 11))
    assert len(subject._book.accounts) <= 3
    assert overview(space).total.calls == 10


def test_what_was_observed_before_is_not_in_what_offloading_saves(
    provider: Upstream, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    history = [
        user("Look"),
        turn("openai_chat", c1=("orders", {})),
        results("openai_chat", c1=BODY),
    ]
    with Memory.open(url) as memory, running_proxy(memory, provider.url) as proxy:
        for items in (history[:1], history):
            provider.script = [answer("openai_chat", "Hi")]
            asked = json.dumps(request("openai_chat", *items, model="gpt-6.2-sol")).encode()
            proxy.send("/v1/chat/completions", asked, ("x-zero-mem-conversation", "c"))
        total = figures(proxy, calls=2)["total"]
        assert total["other"]["tokens"]["tool_results"] < total["paid"]["tokens"]["tool_results"]
    with Memory.open(url) as memory, running_proxy(memory, provider.url, mode="offload") as proxy:
        total = figures(proxy, calls=2)["total"]
    assert total["other"] == total["paid"]


def test_counting_in_a_process_of_its_own_gives_the_same() -> None:
    counter = CountingProcess(Rates())
    body = json.dumps(request("openai_chat", user("Hello"))).encode()
    call = Passed(
        tenant="t", headers=[(b"x-zero-mem-conversation", b"c")], wire_format="openai_chat",
        coding="", raw=body, usages=[CHAT],
    )  # fmt: skip
    try:
        entry = counter.count(call)
        assert entry is not None
        assert entry.state == CacheState(read=60, fresh=40)
    finally:
        counter.close()


# The page


@pytest.fixture
def proxy(provider: Upstream, memory: Memory) -> Iterator[Running]:
    with running_proxy(memory, provider.url, mode="offload") as running:
        yield running


def test_the_page_is_whole_and_loads_nothing_from_elsewhere(proxy: Running) -> None:
    page = proxy.send("/zero-mem", method="GET")
    fields = dict(page.fields)
    assert "default-src 'none'" in fields["content-security-policy"]
    assert fields["cache-control"] == "no-store"
    for name in ("page.css", "page.js", "icon.svg"):
        # Relative, for a proxy that is served beneath a path.
        assert f'"zero-mem/{name}"'.encode() in page.body
        part = proxy.send(f"/zero-mem/{name}", method="GET")
        assert part.status == 200
        assert b"http" not in part.body.replace(b"http://www.w3.org/2000/svg", b"")
    assert b"http" not in page.body
    assert proxy.send("/zero-mem/health", method="GET").json == {"status": "ok", "mode": "offload"}


@pytest.mark.parametrize("name", ["nothing", "../ledger.py", "a/b", "page.html", ""])
def test_nothing_below_the_page_is_passed_on(provider: Upstream, proxy: Running, name: str) -> None:
    proxy.send(f"/zero-mem/{name}", method="GET")
    assert proxy.send("/zero-mem/ledger", b"{}").status == 405
    assert provider.requests == []


def test_figures_hold_no_content(provider: Upstream, proxy: Running) -> None:
    provider.script = [
        answer("anthropic", call_1=("orders", {"body": "CONTENT"})),
        answer("anthropic", call_m=(READ_TOOL, {"id": "1", "lines": "1"})),
        answer("anthropic", "CONTENT"),
    ]
    host = Host(proxy.url, "anthropic", key="CONTENT-key",
                headers={"x-zero-mem-conversation": "CONTENT"})  # fmt: skip
    host.send(user("CONTENT"))
    host.send(results("anthropic", call_1=BODY))
    shown = json.dumps(figures(proxy, calls=2))
    assert "CONTENT" not in shown
    assert "ORD-" not in shown


def test_changes_are_sent_as_they_happen(provider: Upstream, proxy: Running) -> None:
    with urllib.request.urlopen(f"{proxy.url}/zero-mem/events", timeout=30) as events:
        first = json.loads(events.readline().removeprefix(b"data: "))
        assert first["conversations"] == []
        provider.script = [answer("openai_chat", "Hi")]
        asked = json.dumps(request("openai_chat", user("Hello"))).encode()
        proxy.send("/v1/chat/completions", asked)
        events.readline()
        second = json.loads(events.readline().removeprefix(b"data: "))
    assert second["total"]["calls"] == 1


@pytest.mark.req("prod:files")
def test_another_site_that_points_its_name_here_gets_no_figures(proxy: Running) -> None:
    for path in ("/zero-mem", "/zero-mem/ledger", "/zero-mem/events"):
        got = proxy.send(path, None, ("Host", "evil.example"), method="GET")
        assert got.status == 403


@pytest.mark.req("prod:files")
def test_elsewhere_the_page_needs_its_token(provider: Upstream, memory: Memory) -> None:
    with running_proxy(memory, provider.url, page_token="t0ken") as proxy:
        for path in ("/zero-mem", "/zero-mem/ledger", "/zero-mem?token=wrong", "/zero-mem/events"):
            assert proxy.send(path, method="GET").status == 401
        opened = proxy.send("/zero-mem?token=t0ken", method="GET")
        fields = dict(opened.fields)
        assert (opened.status, fields["location"]) == (303, "/zero-mem")
        assert "HttpOnly" in fields["set-cookie"]
        cookie = ("Cookie", fields["set-cookie"].partition(";")[0])
        assert proxy.send("/zero-mem", None, cookie, method="GET").status == 200
        bearer = ("Authorization", "Bearer t0ken")
        assert proxy.send("/zero-mem/ledger", None, bearer, method="GET").status == 200
        assert proxy.send("/zero-mem/health", method="GET").status == 200


# The command


@pytest.mark.req("pkg:cli")
def test_the_command_serves_and_loses_nothing_when_it_is_stopped(tmp_path: Path) -> None:
    begun, release = threading.Event(), threading.Event()
    whole = stream_bytes("anthropic", {**answer("anthropic", "Hello"), "usage": ANTHROPIC})

    async def slow(exchange: Exchange) -> None:
        import asyncio

        await exchange.head(200, ("Content-Type", "text/event-stream"),
                            ("Transfer-Encoding", "chunked"))  # fmt: skip
        await exchange.chunk(whole[:100])
        begun.set()
        await asyncio.to_thread(release.wait)
        await exchange.chunk(whole[100:])
        await exchange.last_chunk()

    store = f"sqlite:///{tmp_path / 'agent.db'}"
    with scripted_upstream() as served:
        served.script = [slow]
        main = "from zero_mem.cli import main; main()"
        options = ["--upstream", served.url, "--port", "0", "--store", store, "--json"]
        command = [sys.executable, "-c", main, "proxy", *options]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        asked = json.dumps({**request("anthropic", user("Hi")), "stream": True}).encode()
        got: list[Any] = []
        caller = threading.Thread(
            target=lambda: got.append(send(said["url"], "/v1/messages", asked))
        )
        caller.start()
        begun.wait()
        os.kill(process.pid, signal.SIGTERM)
        release.set()
        caller.join()
        process.communicate()
    assert got[0].complete
    assert got[0].body == whole
    with Memory.open(store) as memory, running_proxy(memory, "http://127.0.0.1:9") as proxy:
        (row,) = figures(proxy, calls=1)["conversations"]
    assert row["paid"]["cache"] == {"read": 60, "write": 30, "fresh": 10}


@pytest.mark.req("pkg:errors")
def test_a_missing_extra_and_a_taken_address_are_said(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    listening = bound("127.0.0.1", 0)
    with listening, pytest.raises(InvalidInput, match="cannot listen on"):
        bound("127.0.0.1", listening.getsockname()[1])
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with bound("127.0.0.1", 0) as free, pytest.raises(MissingExtra, match=r"zero-mem\[proxy\]"):
        serve(memory, Settings(upstreams=upstreams(["http://127.0.0.1:9"])), free)


@pytest.mark.req("pkg:cli", "pkg:errors")
@pytest.mark.parametrize(
    "arguments",
    [
        ["--upstream", "http://x.example", "--mode", "edit"],
        ["--upstream", "http://x.example", "--share", "0"],
        ["--upstream", "x.example"],
        [],
    ],
)
def test_a_wrong_option_is_said_before_anything_is_served(
    arguments: list[str], tmp_path: Path
) -> None:
    store = f"sqlite:///{tmp_path / 'agent.db'}"
    done = CliRunner().invoke(app, ["proxy", *arguments, "--port", "0", "--store", store])
    assert done.exit_code == 2
    assert not (tmp_path / "agent.db").exists()
