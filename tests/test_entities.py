"""Names are found by how they are written, in both languages, without a dictionary."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zero_mem.index.entities import EntityIndex, names_of, title_of
from zero_mem.index.units import Unit, label_of
from zero_mem.text.entities import entities


def names(text: str) -> set[str]:
    return {entity.name for entity in entities(text)}


@pytest.mark.req("recall:dual-view", "index:languages")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I met Judith Viorst in Newark.", {"judith viorst", "newark"}),
        (
            "at the University of North Texas. It is large.",
            {"university of north texas"},
        ),
        ("Written by G. Stanley Hall", {"g. stanley hall"}),
        ("We read “The Old Man and the Sea” and 《三体》", {"三体", "the old man and the sea"}),
        ("order POL-358 for @dana", {"pol-358", "@dana"}),
        ("请联系李薇老师和张经理", {"李薇老师", "张经理"}),
        ("paid 48200 in all", {"48200"}),
        ("nothing here has a name", set()),
    ],
)
def test_a_text_names_what_it_writes_as_names(text: str, expected: set[str]) -> None:
    assert expected <= names(text)
    if not expected:
        assert names(text) == set()


@pytest.mark.req("recall:dual-view")
def test_a_greeting_is_no_name_and_what_follows_it_is() -> None:
    assert names("Hey Mel! Thanks so much.") == {"mel"}


def index_of(*texts: str) -> EntityIndex:
    units = [Unit(position=n, terms=(), text=text) for n, text in enumerate(texts, start=1)]
    return EntityIndex(units, [names_of(text) for text in texts])


@pytest.mark.req("recall:dual-view")
def test_a_word_that_begins_a_sentence_is_a_name_only_where_another_text_says_so() -> None:
    index = index_of("Umbrellas are wet.", "Rover sleeps.", "The dog is called Rover.")
    assert "umbrellas" not in index.units
    assert index.units["rover"] == [1, 2]


@pytest.mark.req("recall:dual-view")
def test_a_title_is_a_name_and_leads_to_its_text() -> None:
    index = index_of("Brand (play). A play by Henrik Ibsen.", "Henrik Ibsen wrote Brand.")
    assert index.titled["brand"] == [0]
    assert index.holding("henrik ibsen", most=10) == {0, 1}
    assert index.holding("brand", most=0) == {0}


@pytest.mark.req("recall:dual-view", "index:languages")
@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("发送 李秀英: 我：妈，我到了", "李秀英"),
        ("通话 钱永强 +8613873111234 接通", "钱永强"),
        ("Ann: see you at nine", "Ann"),
        ("Hey Mel! Good to see you", ""),
        ("no label here", ""),
    ],
)
def test_a_text_begins_with_whom_it_was_exchanged_with(text: str, label: str) -> None:
    assert label_of(text) == label


@pytest.mark.req("recall:dual-view")
def test_a_long_first_sentence_is_no_title() -> None:
    assert title_of("Linville Falls Tavern. A house.") == "linville falls tavern"
    assert title_of("this is a long first sentence that says very much about all. Then.") == ""


@pytest.mark.req("index:any-text")
@given(st.text())
def test_no_text_breaks_the_rules(text: str) -> None:
    assert all(entity.name for entity in entities(text))
    assert label_of(text) == label_of(text)
    assert title_of(text) == title_of(text).lower()
