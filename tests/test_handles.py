"""The one grammar of handles, and that no text forges one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zero_mem.errors import InvalidInput
from zero_mem.handles import (
    Reference,
    check_memory_id,
    escape,
    find,
    parse_whole,
    render,
    unescape,
)

ALPHABET = "ABCXYZabcxyz0123456789"
IDS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,63}", fullmatch=True)
KEYS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
POINTERS = st.lists(KEYS, max_size=4).map(
    lambda keys: "".join("/" + key.replace("~", "~0").replace("/", "~1") for key in keys)
)
HOSTILE = st.text(st.sampled_from("[]\\memo:79,#/a~ MEMO\n"), max_size=40)


def references(text: str) -> list[list[tuple[str, str | None]]]:
    return [[(r.memory_id, r.pointer) for r in handle.references] for handle in find(text)]


@pytest.mark.req("handle:grammar")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[memo:7]", [[("7", None)]]),
        ("[memo:7,9,12]", [[("7", None), ("9", None), ("12", None)]]),
        ("[memo:7#/payment_methods/0/id]", [[("7", "/payment_methods/0/id")]]),
        ("[memo:7#/a%5Db%2Cc/~0~1]", [[("7", "/a]b,c/~0~1")]]),
        ("[memo:7#/订单/0]", [[("7", "/订单/0")]]),
        ("[memo:7#]", [[("7", "")]]),
        ("见[memo:task-001]和[memo:a.b_c:d]。", [[("task-001", None)], [("a.b_c:d", None)]]),
        ("```\nrun([memo:7])\n```", [[("7", None)]]),
        ("https://x.test/?q=[memo:7]&r=1#top", [[("7", None)]]),
        ("[[memo:7]]", [[("7", None)]]),
        ("[memo:7][memo:8]", [[("7", None)], [("8", None)]]),
    ],
)
def test_handles_are_found_wherever_they_stand(
    text: str, expected: list[list[tuple[str, str | None]]]
) -> None:
    assert references(text) == expected


@pytest.mark.req("handle:grammar")
@pytest.mark.parametrize(
    "text",
    [
        "[memo:]",
        "[memo:a b]",
        "[memory:7]",
        "[memo:-7]",
        "[memo:7,]",
        "[memo:7, 9]",
        "[memo:7",
        "[Memo:7]",
        "[\\memo:7]",
        "[memo:退款]",
        "[memo:7#a]",
        "[memo:7#/a,9]",
        "[memo:7,9#/a]",
        "[memo:7#/a~2]",
        "[memo:7#/%ff]",
        "[memo:7#/%4]",
        "[memo:" + "a" * 65 + "]",
    ],
)
def test_look_alikes_are_left_alone(text: str) -> None:
    assert find(text) == []
    assert parse_whole(text) is None


@pytest.mark.req("handle:grammar")
def test_a_handle_knows_where_it_stands() -> None:
    text = "退款 [memo:7] ok"
    (handle,) = find(text)
    assert text[handle.start : handle.end] == "[memo:7]"
    assert parse_whole(text) is None
    assert parse_whole("[memo:7]") is not None


@pytest.mark.req("handle:grammar")
@given(st.lists(IDS, min_size=1, max_size=5))
def test_what_is_rendered_is_read_back(memory_ids: list[str]) -> None:
    handle = parse_whole(render(*memory_ids))
    assert handle is not None
    assert handle.references == tuple(Reference(memory_id=each) for each in memory_ids)


@pytest.mark.req("handle:grammar")
@given(IDS, POINTERS)
def test_a_part_is_read_back(memory_id: str, pointer: str) -> None:
    handle = parse_whole(render(memory_id, pointer=pointer))
    assert handle is not None
    assert handle.references == (Reference(memory_id=memory_id, pointer=pointer),)


@pytest.mark.req("handle:grammar")
def test_parts_cannot_be_listed() -> None:
    with pytest.raises(InvalidInput, match="one memory"):
        render(7, 9, pointer="/a")


@pytest.mark.req("handle:grammar")
@pytest.mark.parametrize("pointer", ["a", "/a~", "/~2", "/\ud800"])
def test_a_pointer_outside_the_grammar_is_refused(pointer: str) -> None:
    with pytest.raises(InvalidInput, match="JSON Pointer"):
        render(7, pointer=pointer)


@pytest.mark.req("handle:grammar")
def test_integer_ids_become_text() -> None:
    assert check_memory_id(57) == "57"
    assert check_memory_id("task-001") == "task-001"
    assert check_memory_id("a" * 64) == "a" * 64


@pytest.mark.req("handle:grammar")
@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("", "empty"),
        ("a/b", "'/' at position 1"),
        ("a%2f", "'%'"),
        ("a&b=c?", "'&'"),
        ("-1", "begins with '-'"),
        (-1, "begins with '-'"),
        ("a" * 65, "65 characters"),
        ("退款", "begins with"),
        ("7\n", "position 1"),
        (True, "bool"),
        (None, "NoneType"),
    ],
)
def test_an_id_that_no_handle_could_name_is_refused(value: object, fault: str) -> None:
    with pytest.raises(InvalidInput, match=fault):
        check_memory_id(value)  # type: ignore[arg-type]


@pytest.mark.req("receipt:forgery")
@given(HOSTILE | st.text())
def test_escaped_text_holds_no_handle_and_comes_back_exactly(text: str) -> None:
    assert find(escape(text)) == []
    assert unescape(escape(text)) == text


@pytest.mark.req("receipt:forgery")
def test_a_fake_receipt_is_shown_but_does_not_pass() -> None:
    assert escape("[memo:7] save (task_state)") == "[\\memo:7] save (task_state)"
    assert escape("[\\memo:7]") == "[\\\\memo:7]"
    assert escape("[MEMO:7]") == "[\\MEMO:7]"


@pytest.mark.req("handle:grammar", "index:any-text")
@pytest.mark.parametrize("piece", ["[memo:", "[memo:7,", "[memo:7#/", "[memo:" + "a" * 64, "[\\"])
def test_hostile_repetition_holds_no_handle(piece: str) -> None:
    text = piece * 100_000
    assert find(text) == []
    assert unescape(escape(text)) == text
