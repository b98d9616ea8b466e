"""Hostile text gives a result or a typed error, the same on every store.

ZERO_MEM_HOSTILE=50000 runs the full number.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hostile import Rooted, attempts, outcome

from zero_mem import Json, Memory

pytestmark = [pytest.mark.fault, pytest.mark.req("index:any-text", "prod:storage")]

ATTEMPTS = int(os.environ.get("ZERO_MEM_HOSTILE", "4000"))
ROUND = 2000
"""So many attempts share their namespaces: what is stored bears on what comes after."""

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_every_store_answers_alike(tmp_path: Path, postgres_url: str) -> None:
    urls = ("memory://", f"sqlite:///{tmp_path}/m.db", postgres_url)
    with ExitStack() as stack:
        stores = [
            stack.enter_context(Memory.open(url, clock=lambda: NOW, durability="normal"))
            for url in urls
        ]
        for seed in range(ATTEMPTS // ROUND):
            rooted = [Rooted(store, f"round {seed}") for store in stores]
            for number, attempt in enumerate(attempts(seed, ROUND)):
                first, *others = (outcome(store, attempt) for store in rooted)
                assert all(other == first for other in others), (seed, number, attempt)


def test_ten_megabytes_come_back_byte_for_byte(tmp_path: Path, postgres_url: str) -> None:
    whole = "退款 \x00 \ud800 é " * 600_000
    for url in ("memory://", f"sqlite:///{tmp_path}/m.db", postgres_url):
        with Memory.open(url, durability="normal") as memory:
            space = memory.namespace("big")
            space.save(whole, memory_id="text")
            space.save(Json({"a": whole}), memory_id="json")
            assert space.get("text").content == whole
            assert space.get("json").content == Json({"a": whole})
            assert [hit.memory_id for hit in space.search("退款", limit=1)]
