"""How text becomes terms: English and Chinese alike, and any text at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zero_mem.text.segment import JOINER, fold, query_terms, terms

ANY_TEXT = st.text(st.characters(), max_size=80)


def joined(*parts: str) -> str:
    return JOINER.join(parts)


@pytest.mark.req("index:languages")
@pytest.mark.parametrize("query", ["退款", "第二步", "退", "ABC退款123", "用户"])
def test_a_chinese_query_meets_the_text_without_a_dictionary(query: str) -> None:
    found = set(terms("用户正在申请退款，流程到第二步"))
    assert found & set(query_terms(query))


@pytest.mark.req("index:languages")
def test_chinese_gives_bigrams_and_characters_less_those_of_grammar() -> None:
    assert terms("我的订单") == ["我的", "的订", "订", "订单", "单"]
    assert terms("退") == ["退"]


@pytest.mark.req("index:languages")
def test_english_words_meet_by_their_stem() -> None:
    assert terms("Refunds were REFUNDED") == ["refund", "were", "refund"]
    assert query_terms("refunding") == ["refund"]


@pytest.mark.req("index:languages")
def test_kana_hangul_and_other_scripts() -> None:
    assert terms("日本語の") == ["日", "日本", "本", "本語", "語", "語の"]
    assert terms("한국어") == ["한국", "국어"]
    assert terms("Хорошо, café हिन्दी") == ["хорошо", "café", "हिन्दी"]


@pytest.mark.req("index:languages")
def test_widths_and_composition_fold() -> None:
    assert terms("ＡＢＣ１２") == terms("abc12")
    assert terms("cafe\u0301") == terms("CAFÉ")
    assert fold("Ｓｔｒａße") == "strasse"


@pytest.mark.req("index:languages")
def test_an_emoji_is_a_term_whatever_its_skin() -> None:
    assert terms("ok 👍🏽") == ["ok", "👍"]
    assert terms("🇨🇳❤️") == ["🇨🇳", "❤"]


@pytest.mark.req("index:any-text")
@pytest.mark.parametrize(
    ("identifier", "parts"),
    [
        ("pre-edit", ["pre", "edit"]),
        ("POL-358", ["pol", "358"]),
        ("C:\\repo\\b.py", ["c", "repo", "b", "py"]),
        ("GB/s", ["gb", "s"]),
        ("20.04", ["20", "04"]),
        ("don't", ["don", "t"]),
        ("snake_case", ["snake", "case"]),
        (
            "550e8400-e29b-41d4-a716-446655440000",
            ["550e8400", "e29b", "41d4", "a716", "446655440000"],
        ),
    ],
)
def test_an_identifier_gives_its_parts_and_the_whole(identifier: str, parts: list[str]) -> None:
    assert terms(f"({identifier})") == [*parts, joined(*parts)]
    assert joined(*parts) in query_terms(identifier)


@pytest.mark.req("index:any-text")
def test_camel_case_is_found_by_its_parts_and_in_lower_case() -> None:
    assert terms("parseJSONBody") == ["pars", "json", "bodi", *terms("parsejsonbody")]


@pytest.mark.req("index:languages")
def test_a_possessive_is_the_name() -> None:
    assert terms("Alice's") == terms("Alice") == terms("Alice’s")


@pytest.mark.req("recall:explicit")
def test_a_query_loses_its_stop_words_unless_nothing_else_remains() -> None:
    assert query_terms("where is the refund of the refund") == ["refund"]
    assert query_terms("what is this") == ["what", "is", "this"]
    assert query_terms("退款是什么") == ["退", "退款", "款", "款是"]
    assert query_terms("AND OR NOT") == ["and", "or", "not"]
    assert query_terms("是什么") != []


@pytest.mark.req("index:any-text")
@pytest.mark.parametrize("text", ["", " \n", "!?. ,;", "。，、！", '"*(', "\x00", "\ud800", "——…"])
def test_text_without_words_gives_no_terms(text: str) -> None:
    assert terms(text) == []
    assert query_terms(text) == []


@pytest.mark.req("index:any-text")
def test_surrogates_are_made_harmless() -> None:
    assert terms("a\ud83d\ude00b") == ["a", "😀", "b"]
    assert fold("A\ud800") == "a\ufffd"


@pytest.mark.req("index:any-text")
@given(ANY_TEXT)
def test_any_text_gives_terms_that_fts5_keeps_whole(text: str) -> None:
    for term in terms(text):
        assert term
        assert all(c > "\x7f" or c.isdigit() or "a" <= c <= "z" for c in term)
        assert term.encode("utf-8")
    assert set(query_terms(text)) <= set(terms(text))
    assert bool(query_terms(text)) == bool(terms(text))


@pytest.mark.req("index:any-text")
@given(ANY_TEXT)
def test_a_text_is_found_by_itself_in_any_case(text: str) -> None:
    assert terms(text) == terms(text)
    assert fold(text).encode("utf-8") is not None


@pytest.mark.req("index:any-text")
@given(st.lists(ANY_TEXT, max_size=4))
def test_words_on_lines_of_their_own_do_not_touch(lines: list[str]) -> None:
    assert terms("\n".join(lines)) == [term for line in lines for term in terms(line)]


@pytest.mark.req("index:any-text")
@pytest.mark.parametrize("piece", ["a.b", "a'", "_", "aB", "\u0300\u0316", "退", "👍", "\ud800x"])
def test_hostile_repetition_is_cut_like_any_text(piece: str) -> None:
    assert isinstance(terms("é" + piece * 50_000), list)
