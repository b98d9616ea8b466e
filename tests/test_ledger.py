"""The ledger's columns, the cache state of a call, and the design's example."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zero_mem.errors import InvalidInput
from zero_mem.ledger.columns import (
    PROMPT_COLUMNS,
    CacheState,
    CallTokens,
    Usage,
    cache_state,
    corrected,
    usage,
)
from zero_mem.ledger.example import example
from zero_mem.ledger.prices import DEFAULT_TABLE, WINDOW, load

counts = st.integers(min_value=0, max_value=10_000_000)
calls = st.builds(CallTokens, **dict.fromkeys((*PROMPT_COLUMNS, "output"), counts))


@pytest.mark.req("ledger:columns")
@given(calls)
def test_columns_and_their_roll_up_add_up_to_the_prompt(tokens: CallTokens) -> None:
    assert tokens.prompt == sum(getattr(tokens, name) for name in PROMPT_COLUMNS)
    assert tokens.roll_up().prompt == tokens.prompt
    assert tokens.as_dict()["prompt"] == tokens.prompt


@pytest.mark.req("ledger:columns")
@given(calls, calls)
def test_calls_add_and_subtract_column_by_column(one: CallTokens, other: CallTokens) -> None:
    assert (one + other).prompt == one.prompt + other.prompt
    assert one + other - other == one


@pytest.mark.req("ledger:columns")
def test_what_memory_adds_is_control_and_never_body() -> None:
    added = CallTokens(our_definitions=90, memory_receipts=12)
    assert added.roll_up().body == 0
    assert added.roll_up().tool_control == 102
    assert CallTokens(memory_reads=5).roll_up().body == 5
    assert (added + CallTokens(memory_reads=5)).overhead == 107


@pytest.mark.req("ledger:columns")
def test_the_unchanged_prefix_is_read_from_cache_and_the_rest_written() -> None:
    assert cache_state(prompt=100, unchanged=70) == CacheState(read=70, write=30)
    assert cache_state(prompt=100, unchanged=70, caching=False) == CacheState(fresh=100)
    assert cache_state(prompt=0, unchanged=0).prompt == 0


@pytest.mark.req("ledger:columns")
@pytest.mark.parametrize("unchanged", [-1, 101])
def test_a_prefix_longer_than_its_prompt_is_refused(unchanged: int) -> None:
    with pytest.raises(InvalidInput, match=r"within 0\.\.100"):
        cache_state(prompt=100, unchanged=unchanged)


@pytest.mark.req("ledger:columns")
@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        (
            {
                "prompt_tokens": 100,
                "completion_tokens": 7,
                "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10},
            },
            Usage(prompt=100, read=60, write=10, output=7),
        ),
        (
            {
                "input_tokens": 100,
                "output_tokens": 7,
                "input_tokens_details": {"cached_tokens": 60},
            },
            Usage(prompt=100, read=60, output=7),
        ),
        (
            {
                "input_tokens": 30,
                "cache_read_input_tokens": 60,
                "cache_creation_input_tokens": 10,
                "output_tokens": 7,
            },
            Usage(prompt=100, read=60, write=10, output=7),
        ),
    ],
    ids=["chat completions", "responses", "anthropic"],
)
def test_usage_means_the_same_whoever_reports_it(figures: dict[str, int], expected: Usage) -> None:
    assert usage(figures) == expected
    assert usage(figures) is not None
    assert expected.state.prompt == 100


@pytest.mark.req("ledger:columns")
def test_usage_without_a_prompt_is_none() -> None:
    assert usage({"total_tokens": 3}) is None


@pytest.mark.req("ledger:columns")
@given(calls, counts)
def test_the_providers_total_corrects_the_columns_exactly(tokens: CallTokens, billed: int) -> None:
    fixed = corrected(tokens, Usage(prompt=billed, output=3))
    assert fixed.prompt == billed
    assert fixed.output == 3
    assert all(getattr(fixed, name) >= 0 for name in PROMPT_COLUMNS)


@pytest.mark.req("ledger:columns")
def test_a_correction_keeps_the_proportions() -> None:
    fixed = corrected(CallTokens(system=300, tool_results=100), Usage(prompt=440))
    assert (fixed.system, fixed.tool_results) == (330, 110)


@pytest.mark.req("ledger:example")
def test_the_designs_arithmetic() -> None:
    worked = example()
    assert (worked.full, worked.receipts) == (8_000_000, 4_500)
    assert f"{worked.saved:.2%}" == "99.94%"


@pytest.mark.req("ledger:example")
def test_the_calculator_takes_other_figures_and_can_lose() -> None:
    small = example(memory_tokens=20, turns=10, receipts=2, receipt_tokens=15)
    assert (small.full, small.receipts) == (200, 300)
    assert small.saved < 0
    assert example(memory_tokens=0).saved == 0
    with pytest.raises(InvalidInput, match="zero or more"):
        example(turns=-1)


@pytest.mark.req("ledger:compare")
def test_every_model_has_a_window_that_its_tiers_lie_within() -> None:
    for row in DEFAULT_TABLE.rows.values():
        assert row.window >= WINDOW == 200_000
        assert all(tier.over < row.window for tier in row.tiers)


@pytest.mark.req("ledger:compare", "pkg:errors")
def test_a_price_file_sets_the_window(tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    row = 'date = "2026-01"\n[models.mine]\ninput = 1\nread = 0.5\noutput = 2\n'
    file.write_text(row)
    assert load(file).price("mine").window == WINDOW
    file.write_text(f"{row}window = 32_000\n")
    assert load(file).price("mine").window == 32_000
    for wrong in ("0", "-1", "1.5", "true", '"many"'):
        file.write_text(f"{row}window = {wrong}\n")
        with pytest.raises(InvalidInput, match="window must be a whole number of tokens"):
            load(file)
