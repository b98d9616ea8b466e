"""The price table: rows, tiers, overrides, and costs by cache state."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from zero_mem.errors import InvalidInput
from zero_mem.ledger.columns import CacheState
from zero_mem.ledger.prices import DEFAULT_TABLE, cost, load

pytestmark = pytest.mark.req("ledger:columns")

MILLION = 1_000_000


def test_the_default_is_a_dated_row_that_names_are_lenient_about() -> None:
    assert DEFAULT_TABLE.date
    assert DEFAULT_TABLE.price().model == "Sonnet 5.5"
    assert DEFAULT_TABLE.price("sonnet-5.5") is DEFAULT_TABLE.price("SONNET 5.5")


def test_an_unknown_model_is_an_error_that_names_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match=r"'Sonet'.*Sonnet 5\.5.*DeepSeek Flash"):
        DEFAULT_TABLE.price("Sonet")


def test_each_cache_state_has_its_own_price() -> None:
    price = DEFAULT_TABLE.price("Sonnet 5.5")
    state = CacheState(read=MILLION, write=MILLION, fresh=MILLION)
    paid = cost(price, state, output=MILLION)
    assert (paid.read, paid.write, paid.fresh, paid.output) == pytest.approx((0.1, 2.5, 2, 10))
    assert paid.total == pytest.approx(14.6)
    assert (paid + paid).total == pytest.approx(29.2)


def test_a_provider_that_bills_no_write_bills_plain_input() -> None:
    price = DEFAULT_TABLE.price("DeepSeek Flash")
    assert cost(price, CacheState(write=MILLION)).total == pytest.approx(0.15)


@pytest.mark.parametrize(
    ("model", "prompt", "input_factor", "output_factor"),
    [
        ("Haiku 4.5", 100_000, 1, 1),
        ("Haiku 4.5", 100_001, 5, 5),
        ("GPT-6.2 Sol", 272_000, 1, 1),
        ("GPT-6.2 Sol", 272_001, 2, 1.5),
    ],
)
def test_a_long_prompt_pays_its_tier(
    model: str, prompt: int, input_factor: float, output_factor: float
) -> None:
    price = DEFAULT_TABLE.price(model)
    paid = cost(price, CacheState(fresh=prompt), output=1_000)
    assert paid.fresh == pytest.approx(prompt * price.input * input_factor / MILLION)
    assert paid.output == pytest.approx(1_000 * price.output * output_factor / MILLION)


@pytest.mark.parametrize("suffix", [".json", ".toml"])
def test_a_file_overrides_and_adds_rows(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"prices{suffix}"
    if suffix == ".json":
        row = {"input": 1, "read": 0.5, "output": 4, "tiers": [{"over": 10, "input": 3}]}
        models = {"sonnet 5.5": row, "House": {"input": 0, "read": 0, "output": 0}}
        path.write_text(json.dumps({"date": "2027-01", "models": models}), encoding="utf-8")
    else:
        path.write_text(
            'date = "2027-01"\n[models."sonnet 5.5"]\ninput = 1\nread = 0.5\noutput = 4\n'
            '[[models."sonnet 5.5".tiers]]\nover = 10\ninput = 3\n'
            "[models.House]\ninput = 0\nread = 0\noutput = 0\n",
            encoding="utf-8",
        )
    table = load(path)
    assert table.date == "2027-01"
    assert table.price().input == 1
    assert table.price().write is None
    assert table.price().tier(11).input == 3
    assert table.price("house").output == 0
    assert table.price("Fable 5.1") == DEFAULT_TABLE.price("Fable 5.1")


@pytest.mark.req("pkg:errors")
@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("[1]", "a table"),
        ("{", "not a JSON"),
        ('{"date": "d"}', "'models'"),
        ('{"models": {"X": {"input": 1, "read": 1, "output": 1}}}', "'date'"),
        ('{"date": "d", "models": {"X": {"input": -1, "read": 1, "output": 1}}}', "zero or more"),
        ('{"date": "d", "models": {"X": {"input": "1", "read": 1, "output": 1}}}', "a number"),
        ('{"date": "d", "models": {"X": {"inputs": 1}}}', "unknown field inputs"),
        ('{"date": "d", "models": {"X": 3}}', "a row is a table"),
        (
            '{"date": "d", "models": {"X": {"input": 1, "read": 1, "output": 1, "tiers": 3}}}',
            "tiers is a list",
        ),
        (
            '{"date": "d", "models": {"X": {"input": NaN, "read": 1, "output": 1}}}',
            "zero or more",
        ),
    ],
)
def test_a_wrong_price_file_is_an_error_that_names_file_and_row(
    tmp_path: Path, content: str, problem: str
) -> None:
    path = tmp_path / "prices.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InvalidInput, match=problem) as caught:
        load(path)
    assert str(path) in str(caught.value)


@pytest.mark.req("pkg:errors")
def test_a_missing_price_file_is_a_typed_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"none\.toml: the price file cannot be read"):
        load(tmp_path / "none.toml")
