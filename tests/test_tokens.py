"""Token counts: exact where they can be, on the safe side where they cannot."""

from __future__ import annotations

import json
import random
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import json_lines
from hypothesis import given
from hypothesis import strategies as st

from zero_mem.text import tokens
from zero_mem.text.tokens import tokenizer

toktok = pytest.importorskip("toktok", reason="exact counts need the extra `cli`")

EMOJI = ("👍", "🎉", "🚀", "✅", "❤️", "🤷🏽", "👨‍👩‍👧", "🇨🇳", "🫠", "🧾")
SAMPLES = (
    "Where is my order? I asked for a refund last Tuesday and nobody has answered me yet.",
    "The customer's payment method was declined twice; she'd rather use a gift card instead.",
    "用户正在申请退款，流程到第二步，客服需要在今天下午之前联系用户确认退款金额和原因。",
    "请把会议改到下周三上午十点，并通知所有参会的人。",
    "def total(rows: list[Row]) -> int:\n    return sum(row.amount for row in rows if row.paid)\n",
    'SELECT id, created_at FROM orders WHERE state = "open" ORDER BY created_at DESC LIMIT 20;',
    'Traceback (most recent call last):\n  File "C:\\repo\\a.py", line 20, in <module>\n',
    "退款状态: 审核通过 (order #57, GB/s, 20.04, POL-358) 👍🏽🎉",
    "# Notes\n\n- first\n- second\n\n| a | b |\n|---|---|\n| 1 | 2.50 |\n",
)


@pytest.fixture
def without_toktok(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Hide the optional package, as on a core install."""
    monkeypatch.setitem(sys.modules, "toktok", None)
    tokens._tokenizer.cache_clear()
    yield
    tokens._tokenizer.cache_clear()


def exact_counts(texts: list[str], encoding: str = "o200k_base") -> list[int]:
    counts: list[int] = toktok.batch_count(texts, encoding, threads=1)
    return counts


def made_up_texts() -> list[str]:
    """Texts of every sort that agents meet, from a fixed seed."""
    source = random.Random(7)
    texts = list(SAMPLES)
    for _ in range(100):
        texts.append("\n".join(source.sample(SAMPLES, 4)))
        identifiers = [str(uuid.UUID(int=source.getrandbits(128))) for _ in range(5)]
        texts.append(json.dumps(identifiers, indent=source.choice([None, 2])))
        row = {"order_id": source.randrange(10**9), "paymentMethod": "gift_card", "ok": None}
        texts.append(json.dumps([row] * source.randint(1, 4), indent=source.choice([None, 2])))
        texts.append("".join(source.choices(EMOJI, k=source.randint(1, 20))))
        texts.append(source.randbytes(32).hex())
    return texts


def shared_texts(shared_data: Callable[[str], Path]) -> list[str]:
    texts: list[str] = []
    for name in ("locomo_audited", "lifebench_zh", "realmem", "hotpotqa", "musique"):
        rows = list(json_lines(shared_data(f"{name}/corpus.jsonl.gz")))
        texts += [row["text"] for row in rows[:: max(1, len(rows) // 300)]]
    for name in ("traj_taubench", "traj_swebench_mini", "traj_whowhen"):
        rows = list(json_lines(shared_data(f"{name}/steps.jsonl.gz")))
        texts += [row["text"] for row in rows[:: max(1, len(rows) // 300)]]
    return [text for text in texts if text]


def assert_on_the_safe_side(
    texts: list[str], encoding: str, estimate: Callable[[str], int]
) -> None:
    exact = exact_counts(texts, f"{encoding}_base")
    ratios = [estimate(text) / count for text, count in zip(texts, exact, strict=True)]
    assert sum(ratio < 1 for ratio in ratios) <= 0.005 * len(ratios)
    assert sum(ratios) / len(ratios) <= 1.35


@pytest.mark.req("recall:explicit", "ledger:columns")
@pytest.mark.parametrize(
    ("name", "encoding"),
    [
        ("o200k", "o200k_base"),
        ("gpt-4o", "o200k_base"),
        ("openai/gpt-4o-mini-2024-07-18", "o200k_base"),
        ("ft:gpt-4.1:acme", "o200k_base"),
        ("gpt-5.2-codex", "o200k_base"),
        ("o3-mini", "o200k_base"),
        ("o1", "o200k_base"),
        ("cl100k_base", "cl100k_base"),
        ("gpt-4", "cl100k_base"),
        ("GPT-4-turbo", "cl100k_base"),
        ("gpt-3.5-turbo", "cl100k_base"),
        ("gpt-35-turbo", "cl100k_base"),
    ],
)
def test_models_of_known_encodings_are_counted_exactly(name: str, encoding: str) -> None:
    counter = tokenizer(name)
    assert counter.exact
    assert [counter.count(text) for text in SAMPLES] == exact_counts(list(SAMPLES), encoding)


@pytest.mark.req("recall:explicit")
@pytest.mark.parametrize("name", ["claude-sonnet-5.5", "gemini-3-pro", "qwen3", "o2k-mine", ""])
def test_other_models_get_an_estimate_above_the_nearest_known_count(name: str) -> None:
    counter = tokenizer(name)
    assert not counter.exact
    assert "estimate" in counter.name
    for text, count in zip(SAMPLES, exact_counts(list(SAMPLES)), strict=True):
        assert count <= counter.count(text) <= 1.35 * count + 1


@pytest.mark.req("handle:short")
def test_a_receipt_costs_what_the_design_says() -> None:
    count = tokenizer("o200k").count
    assert count("[memo:999] save") <= 6
    assert count("[memo:999] save (note)") <= 10


@pytest.mark.req("recall:explicit", "index:offline")
@pytest.mark.usefixtures("without_toktok")
def test_a_core_install_estimates_and_says_so() -> None:
    counter = tokenizer("gpt-4o")
    assert not counter.exact
    assert counter.count("") == 0
    assert counter.count("退款") >= 2


@pytest.mark.req("recall:explicit")
@pytest.mark.usefixtures("without_toktok")
@pytest.mark.parametrize("encoding", ["o200k", "cl100k"])
def test_the_estimate_is_on_the_safe_side_of_made_up_texts(encoding: str) -> None:
    assert_on_the_safe_side(made_up_texts(), encoding, tokenizer(encoding).count)


@pytest.mark.req("recall:explicit")
@pytest.mark.usefixtures("without_toktok")
def test_the_estimate_is_on_the_safe_side_of_public_texts(
    shared_data: Callable[[str], Path],
) -> None:
    assert_on_the_safe_side(shared_texts(shared_data), "o200k", tokenizer("o200k").count)


@pytest.mark.req("index:any-text")
@pytest.mark.parametrize("name", ["o200k", "claude"])
@given(st.text(st.characters()))
def test_any_text_can_be_counted(name: str, text: str) -> None:
    count = tokenizer(name).count(text)
    assert (count == 0) == (text == "")


@pytest.mark.req("index:any-text")
@pytest.mark.usefixtures("without_toktok")
@pytest.mark.parametrize("text", ["\ud800", "\x00" * 9, "a" * 200_000, " " * 200_000, "退" * 99])
def test_any_text_can_be_estimated(text: str) -> None:
    assert tokenizer("o200k").count(text) > 0


@pytest.mark.req("recall:explicit")
def test_a_tokenizer_is_shared() -> None:
    assert tokenizer("gpt-4o") is tokenizer("o200k")
