"""Handles in texts that arrive in fragments: the same as in the whole text, and no later."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zero_mem import handles
from zero_mem.controller.fragments import JsonFragments, TextFragments, expand_json
from zero_mem.controller.references import Expansion, text_places, text_schema
from zero_mem.errors import NotFound
from zero_mem.handles import Reference

pytestmark = pytest.mark.req("controller:by-reference", "handle:grammar")

BODIES = {"1": '[{"id": "A-1"}]', "2": 'pla"in\n body 退', "3": "[memo:2]"}
SCHEMA = {
    "type": "object",
    "properties": {
        "to": {"type": "string"},
        "rows": {"items": {"type": "string"}},
        "body": {"properties": {"to": {"type": "string"}}},
    },
}
pieces = st.sampled_from(
    ["[", "[memo:", "[memo:1]", "[memo:1#/0/id]", "[memo:9]", "[memo:1,2]", "[\\memo:1]", "[\\",
     "[\\\\memo:1]", "m", "memo", "\\", "]", "退", "😀", '"', "\n", " ", "#/x", ",", "[memo:1#/𝒜]",
     "1]", "[MEMO:"]
)  # fmt: skip
texts = st.one_of(
    st.lists(pieces, max_size=7).map("".join),
    st.sampled_from(["[memo:1]", " [memo:2]\n", "[memo:3]", "[memo:1,2]", "[memo:9]"]),
)
values = st.recursive(
    st.one_of(texts, st.none(), st.integers(), st.booleans()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["to", "rows", "body", 'k"[memo:1]']), inner, max_size=3),
    ),
    max_leaves=8,
)


def expansion(places: frozenset[str] = frozenset()) -> Expansion:
    def resolve(reference: Reference) -> str:
        if reference.memory_id not in BODIES:
            raise NotFound(f"no {reference.memory_id}")
        return BODIES[reference.memory_id]

    return Expansion(resolve=resolve, places=places)


def cut(text: str, data: st.DataObject) -> list[str]:
    places = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=12)))
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]


def through(fragments: Any, parts: Sequence[str]) -> str:
    return "".join([fragments.feed(part) for part in parts]) + str(fragments.close())


@given(text=texts, data=st.data())
@settings(max_examples=300)
def test_a_text_expands_the_same_in_any_pieces(text: str, data: st.DataObject) -> None:
    assert through(TextFragments(expansion()), cut(text, data)) == expansion().text(text)


@given(value=values, ascii_only=st.booleans(), data=st.data())
@settings(max_examples=300)
def test_arguments_expand_as_their_value_does(
    value: Any, ascii_only: bool, data: st.DataObject
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    whole = expansion(frozenset(text_places(value, SCHEMA)))
    wanted = whole.arguments(value)
    used = expansion()
    shown = through(JsonFragments(used, SCHEMA), cut(text, data))
    assert json.loads(shown) == wanted
    assert (used.used, used.refused) == (whole.used, whole.refused)
    assert shown == text or wanted != value
    # The audit knows the places, not the schema.
    assert expand_json(text, expansion(), text_schema(whole.places)) == shown


@given(text=st.text('{}[]",:\\u0ad8 memo1[]'), data=st.data())
@settings(max_examples=300)
def test_what_is_no_json_passes_the_same_in_any_pieces(text: str, data: st.DataObject) -> None:
    wanted = expand_json(text, expansion(), SCHEMA)
    assert through(JsonFragments(expansion(), SCHEMA), cut(text, data)) == wanted


@pytest.mark.parametrize(
    ("text", "given_out"),
    [
        ("see [memo:2] now", "see |||||||||||pla\"in\n body 退| now"),
        ("a [memory", "a ||||||[memor|y"),
        ("[\\memo:1] x", "||||||[memo:|1] x"),
        ("[memo:9] x", "|||||||[memo:9]| x"),
    ],
)  # fmt: skip
def test_only_what_is_in_doubt_is_held_back(text: str, given_out: str) -> None:
    fragments = TextFragments(expansion())
    out = [fragments.feed(character) for character in text]
    held = [i for i, shown in enumerate(out) if not shown]
    assert "".join(out) == given_out.replace("|", "")
    start = text.index("[")
    assert all(start <= place < text.find("]") + 1 or "]" not in text for place in held)
    assert all(out[:start])


def test_the_opening_quote_waits_for_the_next_character_alone() -> None:
    fragments = JsonFragments(expansion())
    out = [fragments.feed(part) for part in ['{"rows": "', "x", ' [memo:1#/0/id]", "to": "', "["]]
    assert out == ['{"rows": ', '"x', ' A-1", "to": ', ""]
    assert [fragments.feed(part) for part in ["memo:1", "]", '"', "}"]] == [
        "", "", '[{"id":"A-1"}]', "}",
    ]  # fmt: skip


@given(text=texts, more=texts)
def test_nothing_that_follows_changes_what_is_settled(text: str, more: str) -> None:
    cut_at = handles.undecided(text)
    before, whole = handles.find(text[:cut_at]), handles.find(text + more)
    assert [h for h in whole if h.start < cut_at] == before
    assert handles.unescape(text[:cut_at]) + handles.unescape(text[cut_at:] + more) == (
        handles.unescape(text + more)
    )
