"""The compact form of JSON: lossless, keys once, each value under its key or row header."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import json_lines
from hypothesis import given
from hypothesis import strategies as st

from zero_mem.controller.compact import decode, encode, parse
from zero_mem.errors import InvalidInput

pytestmark = pytest.mark.req("controller:offload")

AWKWARD = ["1", "-", "^x", "true", "null", "x,y", "a: b", "[memo:7]", "{", "", "-1", "1e5", "*"]
AWKWARD += [
    "x'",
    "a.b",
    "=",
    '"q"',
    "\u2028",
    "\ud800",
    " a",
    "a\nb",
    "a b",
    "上海",
    "id",
    "[1 of 2]",
]
texts = st.one_of(st.sampled_from(AWKWARD), st.text(max_size=6))
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    texts,
    texts,
)


def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Make containers, those that become tables and maps among them."""
    row = st.fixed_dictionaries(
        {"id": scalars, "a": inner},
        optional={"n": st.dictionaries(st.sampled_from("pq"), scalars, max_size=2)},
    )
    return st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(texts, inner, max_size=4),
        st.lists(row, max_size=5),
        st.dictionaries(texts, row, max_size=4),
        st.lists(st.lists(row, max_size=2), max_size=3),
    )


values = st.recursive(scalars, nested, max_leaves=25)


@given(values)
def test_every_json_value_comes_back_with_its_order_of_keys(value: Any) -> None:
    assert json.dumps(decode(encode(value))) == json.dumps(value)


@pytest.mark.parametrize(
    "text",
    ["1.50", "1E5", "-0.0", "10000000000000000000001", '{"a": 1.10, "b": [1, 1.0, 1.00]}', "-0"],
)
def test_numbers_keep_their_spelling(text: str) -> None:
    written = encode(parse(text))
    assert encode(decode(written)) == written
    for number in ("1.50", "1E5", "-0.0", "1.10", "1.00"):
        assert (number in written) == (number in text)


def test_a_table_says_keys_once_and_what_is_equal_in_its_header() -> None:
    rows = [{"id": "A1", "to": "SEA", "n": 2}, {"id": "B2", "to": "SEA", "n": 3}]
    assert encode({"user": "mia", "trips": rows}) == (
        "user: mia\ntrips[2]{id to=SEA n}\nA1 2\nB2 3"
    )


def test_a_map_is_a_table_whose_key_is_not_repeated() -> None:
    cards = {f"card_{i}": {"brand": "visa", "last": f"44{i}", "id": f"card_{i}"} for i in (1, 2)}
    assert encode({"cards": cards}) == ("cards[2]{id: brand=visa last' id}\ncard_1 441\ncard_2 442")


def test_nested_objects_become_columns_and_a_repeated_row_one_word() -> None:
    leg = {"no": "HAT039", "price": {"low": 52, "high": 103}}
    other = {"no": "HAT057", "price": {"low": 76, "high": 141}}
    assert encode([[other, leg], [leg, other]]) == (
        "[2x2]{no price{low high}}\nHAT057 76 141\nHAT039 52 103\n^HAT039\n^HAT057"
    )


def test_cells_with_spaces_are_separated_by_commas_and_absent_ones_are_empty() -> None:
    rows = [{"name": "Mia Li", "age": 31}, {"name": "Bo"}, {"name": "Al, Jr", "age": None}]
    written = encode(rows)
    assert written == '[3]{name,age}\nMia Li,31\nBo,\n"Al, Jr",null'
    assert decode(written) == rows


def test_an_extract_is_marked_and_cannot_be_taken_for_the_whole() -> None:
    part = encode({"rows": [{"id": "A1"}]}, totals={("rows",): 28})
    assert part == "rows[1 of 28]{id}\nA1"
    with pytest.raises(InvalidInput, match="extract"):
        decode(part)


@pytest.mark.parametrize("text", ['{"a":1,"a":2}', "NaN", "[1e999]", "{", "[" * 5000 + "]" * 5000])
def test_what_compacting_could_lose_is_not_parsed(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse(text)


@pytest.mark.parametrize("value", [{"a": {1, 2}}, float("nan"), [float("inf")], b"x"])
def test_what_is_not_json_is_refused(value: Any) -> None:
    with pytest.raises(InvalidInput, match="JSON"):
        encode(value)


def test_a_very_deep_value_is_refused() -> None:
    value: Any = 1
    for _ in range(200):
        value = [value]
    with pytest.raises(InvalidInput, match="levels deep"):
        encode(value)


@pytest.mark.parametrize(
    "text", ["", "a", "a: ", "[2]{a}\n1", "[1, 2", 'a: "x', "a: 1\nb", "[2]{a b,c}"]
)
def test_a_damaged_form_names_the_place(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"line \d+, column \d+"):
        decode(text)


def test_real_results_come_back_and_get_shorter(shared_data: Callable[[str], Path]) -> None:
    runs = json_lines(shared_data("raw/taubench_airline.openai_chat.jsonl.gz"))
    before = after = 0
    for run in runs:
        for message in run["messages"]:
            text = message.get("content") or ""
            if message["role"] == "tool" and text.startswith(("{", "[")):
                written = encode(parse(text))
                assert json.dumps(decode(written)) == json.dumps(json.loads(text))
                before, after = before + len(text), after + len(written)
    assert after < 0.6 * before
