"""Selecting inside a body: pointer, rows, lines, pattern; and what an error lists."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zero_mem.errors import InvalidInput
from zero_mem.recall.select import PART_LENGTH, resolve_pointer, select
from zero_mem.text.pattern import Pattern
from zero_mem.types import Blob, Json

ORDER = Json(
    value={
        "id": 57,
        "items": [
            {"name": "lamp", "price": 5},
            {"name": "sofa", "price": 900.5},
            {"name": "台灯", "price": 40},
        ],
        "methods": {"cc_1": {"source": "visa"}, "g/2": {"source": "gift", "ok~": True}},
    }
)
LOG = "start\nwarning: disk\nERROR 退款 failed\n\nend\n"


@pytest.mark.req("recall:where")
@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("", ORDER.value),
        ("/id", 57),
        ("/items/1/name", "sofa"),
        ("/methods/g~12/ok~0", True),
    ],
)
def test_a_pointer_names_a_part(pointer: str, value: Any) -> None:
    assert select(ORDER, pointer=pointer).value == value
    assert select(json.dumps(ORDER.value), pointer=pointer or "/id").value == (
        value if pointer else 57
    )


@pytest.mark.req("recall:where")
def test_the_examples_of_the_standard_resolve() -> None:
    document = {"foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, " ": 7, "m~n": 8, "k\\l": 6}
    expected = {"/foo/0": "bar", "/": 0, "/a~1b": 1, "/c%d": 2, "/ ": 7, "/m~0n": 8, "/k\\l": 6}
    assert {pointer: resolve_pointer(document, pointer) for pointer in expected} == expected


@pytest.mark.req("recall:where")
@pytest.mark.parametrize(
    ("pointer", "message"),
    [
        ("/nope", "no such key at the top; keys there: id, items, methods"),
        ("/items/3", "no such index at /items; it has 3 elements"),
        ("/items/-", "no such index at /items"),
        ("/items/01", "no such index at /items"),
        ("/items/9" + "9" * 5000, "no such index"),
        ("/id/x", "nothing below /id: a number"),
        ("items", "begins with '/'"),
        ("/~2", "'~' is written '~0'"),
    ],
)
def test_a_pointer_to_nothing_says_what_is_there(pointer: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        select(ORDER, pointer=pointer)


@pytest.mark.req("recall:where")
def test_many_keys_are_listed_in_part() -> None:
    with pytest.raises(InvalidInput, match="k19 and 80 more") as caught:
        select(Json(value={f"k{index}": index for index in range(100)}), pointer="/x")
    assert len(str(caught.value)) < 300


@pytest.mark.req("recall:where")
def test_rows_are_chosen_by_their_fields() -> None:
    chosen = select(ORDER, pointer="/items", rows={"price": {"lt": 50}})
    assert chosen.value == [{"name": "lamp", "price": 5}, {"name": "台灯", "price": 40}]
    assert chosen.text == '0: {"name": "lamp", "price": 5}\n2: {"name": "台灯", "price": 40}'
    assert (chosen.matched, chosen.total) == (2, 3)
    assert "\n".join(chosen.pieces) == chosen.text


@pytest.mark.req("recall:where")
def test_an_object_of_objects_has_rows_too() -> None:
    chosen = select(ORDER, pointer="/methods", rows={"source": "gift"})
    assert chosen.value == {"g/2": {"source": "gift", "ok~": True}}
    assert chosen.pieces == ('g/2: {"source": "gift", "ok~": true}',)


@pytest.mark.req("recall:where")
def test_rows_that_match_nothing_are_no_error_but_an_unknown_field_is() -> None:
    assert select(ORDER, pointer="/items", rows={"price": 1}).matched == 0
    with pytest.raises(InvalidInput, match=r"no row has the field 'cost'; fields there: name, p"):
        select(ORDER, pointer="/items", rows={"cost": 1})
    assert select(ORDER, pointer="/items", rows={"cost": {"exists": False}}).matched == 3


@pytest.mark.req("recall:where")
@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"rows": {"a": 1}}, "no row has the field"),
        ({"rows": {"a": 1}, "pointer": "/id"}, "not a number"),
        ({"rows": {"a": {"like": 1}}, "pointer": "/items"}, "rows.a.like"),
        ({"rows": {"name": "x"}, "lines": "1", "pointer": "/items"}, "cannot be combined"),
        ({"lines": "9"}, "no line 9: there are 3"),
    ],
)
def test_a_choice_that_does_not_fit_is_refused(choice: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        select(ORDER, **choice)


@pytest.mark.req("recall:where")
@pytest.mark.parametrize("lines", [(2, 3), [2, 3], "2-3", " 2 - 3 "])
def test_lines_are_counted_from_one(lines: Any) -> None:
    chosen = select(LOG, lines=lines)
    assert chosen.text == "warning: disk\nERROR 退款 failed"
    assert chosen.pieces == ("2: warning: disk", "3: ERROR 退款 failed")
    assert (chosen.matched, chosen.total) == (2, 5)


@pytest.mark.req("recall:where")
def test_an_open_range_ends_at_the_last_line() -> None:
    assert select(LOG, lines="4-").text == "\nend"
    assert select(LOG, lines="5").text == "end"
    assert select(LOG, lines=(5, 999)).matched == 1


@pytest.mark.req("recall:where")
@pytest.mark.parametrize("lines", [(0, 1), (3, 2), (1,), ("1", "2"), (True, 2), "a", "-3", "3-1"])
def test_a_wrong_range_is_refused(lines: Any) -> None:
    with pytest.raises(InvalidInput, match="lines are"):
        select(LOG, lines=lines)


@pytest.mark.req("recall:where")
def test_a_line_beyond_the_end_says_how_many_there_are() -> None:
    with pytest.raises(InvalidInput, match="no line 9: there are 5"):
        select(LOG, lines="9-12")


@pytest.mark.req("recall:where")
def test_a_pattern_keeps_line_numbers_and_text_together() -> None:
    chosen = select(LOG, pattern=r"(?i)error|disk$")
    assert chosen.text == "2: warning: disk\n3: ERROR 退款 failed"
    assert (chosen.matched, chosen.total) == (2, 5)
    assert select(LOG, pattern="退款", lines="1-2").matched == 0


@pytest.mark.req("recall:where")
def test_the_pieces_of_an_object_are_its_entries() -> None:
    assert select(ORDER, pattern="visa").text.startswith("methods: {")
    assert select(ORDER, pointer="/items", pattern="sofa").pieces == (
        '1: {"name": "sofa", "price": 900.5}',
    )


@pytest.mark.req("recall:where")
def test_a_long_line_is_shown_around_the_match_and_read_in_parts() -> None:
    text = "x" * 5000 + " needle " + "y" * 5000
    (piece,) = select(text, pattern="needle").pieces
    place, _, shown = piece.partition(": ")
    start = int(place.removeprefix("1+"))
    assert "needle" in shown
    assert text[start : start + len(shown)] == shown
    parts = select(text).pieces
    assert all(len(part) < PART_LENGTH + 20 for part in parts)
    assert "".join(part.partition(": ")[2] for part in parts) == text


@pytest.mark.req("recall:where")
def test_without_a_choice_the_whole_body_is_given() -> None:
    whole = select(LOG, pointer="", lines="", pattern="")
    assert (whole.text, whole.value) == (LOG, LOG)
    assert select(ORDER).value == ORDER.value
    assert select("").total == 0


@pytest.mark.req("recall:where", "record:body")
def test_a_blob_has_no_parts() -> None:
    blob = Blob(data=b"1234", media_type="image/png")
    assert select(blob).text == "(image/png, 4 bytes)"
    with pytest.raises(InvalidInput, match="image/png"):
        select(blob, lines="1")


@pytest.mark.req("recall:where")
def test_text_that_is_no_json_has_no_pointer() -> None:
    for body in (LOG, "[" * 100_000):
        with pytest.raises(InvalidInput, match=r"text of \d+ lines, not JSON"):
            select(body, pointer="/a")


@pytest.mark.req("recall:where")
@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(a", "not a regular expression"),
        ("a{2,1}", "not a regular expression"),
        (r"(a)\1", "position 3"),
        ("(?=a)", "position 0"),
        ("(?P<n>a)", "position 0"),
        ("a" * 501, "longer than 500"),
        ("(?:(?:a{99}){99}){99}", "repeats too much"),
        ("(" * 60 + "a" + ")" * 60, "unsupported"),
    ],
)
def test_a_pattern_that_cannot_be_searched_is_refused(pattern: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        select(LOG, pattern=pattern)


@pytest.mark.req("recall:where")
@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "^(a|a)*$", "(a*)*b", ".*.*.*.*x", "(?:a?){40}a{40}$"]
)
def test_patterns_that_hang_others_are_searched(pattern: str) -> None:
    assert select("a" * 5000 + "!", pattern=pattern).matched == 0


@pytest.mark.req("recall:where")
def test_repeating_the_empty_is_the_empty() -> None:
    pattern = "".join(["(?:" * 20, "){9999}" * 20, "退"])
    assert select(LOG, pattern=pattern).pieces == ("3: ERROR 退款 failed",)


ATOMS = st.sampled_from(
    ["a", "b", ".", r"\d", r"\w", r"\W", r"\s", "[ab]", "[^a]", "[]x-]", r"\.", "^", "$", r"\b",
     r"\B", "退", "(?:a|b1)", "(ab|)", "(?:)", r"\x61", "-", "{", "}", "]"]
)  # fmt: skip
COUNTS = st.sampled_from(["", "", "?", "*", "+", "{2}", "{1,}", "{,2}", "{0,2}", "*?", "{2}?"])
PIECES = st.tuples(ATOMS, COUNTS).map("".join)
PATTERNS = st.lists(st.lists(PIECES, max_size=4).map("".join), min_size=1, max_size=2).map("|".join)
LINES = st.text(st.sampled_from("ab1.-_ 退x]{}A"), max_size=12)


@pytest.mark.req("recall:where")
@given(PATTERNS, st.lists(LINES, min_size=1, max_size=5), st.booleans())
def test_a_pattern_means_what_it_means_in_python(
    pattern: str, lines: list[str], fold: bool
) -> None:
    pattern = f"(?i){pattern}" if fold else pattern
    try:
        reference = re.compile(pattern)
    except re.error:
        with pytest.raises(InvalidInput):
            Pattern(pattern)
        return
    ours = Pattern(pattern)
    for line in lines:
        if line == "" and r"\B" in pattern:
            continue  # Python itself has changed its mind about this in 3.14
        end = ours.first_end(line)
        assert (end is not None) == (reference.search(line) is not None)
        if end is not None:
            starts = range(end + 1)
            assert any(reference.match(line, start) for start in starts)


@pytest.mark.req("recall:where")
@pytest.mark.parametrize(
    ("pattern", "finds", "passes"),
    [
        ("[a&&b]", "&", "c"),
        ("[[x]", "[", "]"),
        ("[+--]", ",", "a"),
        ("[a||b]", "|", "c"),
        ("[~~]", "~", "-"),
    ],
)
def test_a_class_means_what_it_means_today_and_nothing_is_warned_of(
    pattern: str, finds: str, passes: str
) -> None:
    assert Pattern(pattern).first_end(finds) is not None
    assert Pattern(pattern).first_end(passes) is None


@pytest.mark.req("recall:where")
@pytest.mark.parametrize("pattern", ["[[[)\\d", "x]-][[)[", "-&a[(|x||"])
def test_an_unfinished_class_is_refused_without_a_warning(pattern: str) -> None:
    with pytest.raises(InvalidInput):
        Pattern(pattern)
