"""The ten release questions, each answered by what is in the store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from clocks import Clock

from zero_mem import Memory
from zero_mem.access import Grant
from zero_mem.doctor import Answer, Diagnosis, examine
from zero_mem.redaction import Redaction

pytestmark = pytest.mark.req("prod:doctor")

NOW = datetime(2026, 1, 10, tzinfo=UTC)
KEY = "sk-ant-" + "a1B2c3D4" * 4


@pytest.fixture
def clock() -> Clock:
    return Clock(NOW)


@pytest.fixture
def memory(tmp_path: Path, clock: Clock) -> Iterator[Memory]:
    careless = Redaction(settings={"secrets": "keep"})
    url = f"sqlite:///{tmp_path}/m.db"
    with Memory.open(url, clock=clock, redaction=careless) as memory:
        yield memory


def answer(memory: Memory, number: int) -> Answer:
    return examine(memory).answers[number - 1]


def test_a_well_kept_store_is_healthy(memory: Memory) -> None:
    memory.namespace("acme").save("tea", kind="user_pref", key="drink")
    memory.expire()
    diagnosis = examine(memory)
    assert diagnosis.healthy
    assert [a.number for a in diagnosis.answers] == list(range(1, 11))
    assert all(a.evidence for a in diagnosis.answers)
    assert all(bool(a.mend) == (a.verdict != "good") for a in diagnosis.answers)


def test_an_examination_writes_nothing(memory: Memory) -> None:
    space = memory.namespace("acme")
    space.save("tea", memory_id="x")
    before = memory.stats(), len(space.changes()), space.get("x").access_count
    examine(memory)
    assert (memory.stats(), len(space.changes()), space.get("x").access_count) == before


def test_an_empty_store_can_be_examined(memory: Memory) -> None:
    assert examine(memory).healthy


def test_1_counts_what_enters_prompts_unasked(memory: Memory) -> None:
    space = memory.namespace("acme")
    space.configure(kind="news", visibility="summary")
    space.save_many([{"content": f"news {n}", "kind": "news"} for n in range(21)])
    found = answer(memory, 1)
    assert found.verdict == "look"
    assert "news 21" in found.evidence[0]


def test_2_finds_previews_that_tell(memory: Memory) -> None:
    memory.namespace("acme").save("tea", kind="user_pref", key="bob@example.com")
    found = answer(memory, 2)
    assert found.verdict == "bad"
    assert "email 1" in found.evidence[1]
    assert "bob@example.com" not in json.dumps(found.evidence)


def test_3_finds_what_nobody_swept(memory: Memory, clock: Clock) -> None:
    memory.namespace("acme").save("tea", expires_in=60)
    assert answer(memory, 3).verdict == "look"
    clock.now += timedelta(days=2)
    assert answer(memory, 3).verdict == "bad"
    memory.expire()
    assert answer(memory, 3).verdict == "good"


def test_4_finds_repeats_without_a_key(memory: Memory) -> None:
    space = memory.namespace("acme")
    space.save("Prefers green tea in the morning", kind="user_pref")
    assert answer(memory, 4).verdict == "good"
    space.save("prefers green tea in the morning", kind="user_pref")
    found = answer(memory, 4)
    assert found.verdict == "bad"
    assert "user_pref" in found.mend[0]


def test_5_finds_wide_limits(memory: Memory) -> None:
    memory.namespace("acme").configure(max_recall_items=1000)
    assert answer(memory, 5).verdict == "look"


def test_6_asks_for_keys_where_there_are_tenants(memory: Memory) -> None:
    for tenant in ("acme", "globex"):
        memory.namespace(tenant).save("tea")
    assert answer(memory, 6).verdict == "look"
    memory.keyring.create("app", [Grant.parse("write:acme/**")])
    found = answer(memory, 6)
    assert found.verdict == "good"
    assert "showed 0 records of another" in found.evidence[0]


def test_7_knows_a_store_that_ends_with_its_process() -> None:
    assert answer(Memory.open("memory://"), 7).verdict == "bad"


def test_8_reads_the_journal(memory: Memory) -> None:
    space = memory.namespace("acme")
    space.save("tea", memory_id="x")
    space.update("x", "green tea")
    found = answer(memory, 8)
    assert found.verdict == "good"
    assert "2 versions" in found.evidence[0]


def test_9_finds_secrets_and_says_no_more_than_their_kind(memory: Memory) -> None:
    memory.namespace("acme").save(f"use {KEY}", metadata={"password": "hunter2x"})
    found = answer(memory, 9)
    assert found.verdict == "bad"
    assert "anthropic_key" in found.evidence[1]
    assert KEY not in json.dumps(found.evidence)
    assert "hunter2x" not in json.dumps(found.evidence)


def test_9_asks_for_encryption_where_there_is_personal_data(memory: Memory) -> None:
    memory.namespace("acme").save("write to bob@example.com")
    assert answer(memory, 9).verdict == "look"


def test_10_asks_for_a_ledger(memory: Memory) -> None:
    assert answer(memory, 10).verdict == "look"


def test_with_a_credential_only_what_it_may_read_is_looked_at(memory: Memory) -> None:
    memory.namespace("acme").save("tea")
    memory.namespace("globex").save(f"use {KEY}")
    credential = memory.keyring.create("app", [Grant.parse("read:acme/**")]).credential
    diagnosis: Diagnosis = examine(memory.guarded(credential))
    assert diagnosis.answers[8].verdict == "good"
