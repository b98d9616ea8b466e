"""Requests of all kinds through both modes: answered as a direct call is."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from proxies import Running, running_proxy, send
from scripted_upstream import Exchange, ScriptedUpstream, scripted_upstream

from zero_mem import Memory

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "bench"))

fuzz = pytest.importorskip("proxying.fuzz")
judge: Any = pytest.importorskip("proxying.upstream")

pytestmark = pytest.mark.req("controller:modes")


async def judged(exchange: Exchange) -> None:
    status, body = judge.judged(exchange.received.body)
    await exchange.whole(status, body, ("Content-Type", "application/json"))


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedUpstream]:
    with scripted_upstream() as served:
        served.always = judged
        yield served


@pytest.fixture(scope="module", params=["observe", "offload"])
def proxy(request: Any, upstream: ScriptedUpstream) -> Iterator[Running]:
    with (
        Memory.open("memory://") as memory,
        running_proxy(memory, upstream.url, mode=request.param) as running,
    ):
        yield running


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 10**9))
def test_a_fuzzed_request_is_answered_as_directly(
    upstream: ScriptedUpstream, proxy: Running, seed: int
) -> None:
    request = fuzz.fuzzed(seed)
    name = ("x-zero-mem-conversation", str(seed))
    if request.opening is not None:
        proxy.send(request.path, request.opening, name)
    wanted = send(upstream.url, request.path, request.body)
    got = proxy.send(request.path, request.body, *([name] if request.opening else []))
    assert (got.status, got.body) == (wanted.status, wanted.body)


@given(st.integers(0, 10**9))
def test_both_kinds_of_request_are_made_again_from_their_number(seed: int) -> None:
    assert fuzz.fuzzed(seed) == fuzz.fuzzed(seed)
