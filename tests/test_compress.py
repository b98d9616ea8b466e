"""Extractive compression: quoted or dropped, never rewritten."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zero_mem.text.compress import ELISION, compress
from zero_mem.types import Blob, Json, body_text

TEXT = (
    "The order was placed on Monday. Its total is 1,234.56 dollars. Dr. Smith asked for a refund "
    "because the lamp was broken! 用户正在申请退款，流程到第二步。金额是20.04元。 Goodbye."
)
ORDER = {
    "user": "mia",
    "status": "open",
    "payment_methods": [{"source": "visa", "id": "cc_1"}, {"source": "gift", "id": "g_2"}],
    "items": [{"name": "lamp", "price": 5, "note": "x" * 80}],
    "a/b": {"~": [1, [True, None]]},
}
WORDS = st.sampled_from(
    ["refund", "20.04", "退款", "don't", "👨‍👩‍👧", "🇨🇳", "\ud83d\ude00", "é", ". ", "。", " ", "\n"]
)
TEXTS = st.lists(WORDS, max_size=60).map("".join) | st.text(st.characters(), max_size=200)
LIMITS = st.integers(0, 150)
QUERIES = st.sampled_from(["", "refund", "退款 20.04", "nothing", "\ud800"])
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=12,
)


@pytest.mark.req("recall:extractive")
def test_what_fits_is_given_as_it_is() -> None:
    assert compress("a\n b", limit=4).text == "a\n b"
    assert compress("a\n b", limit=4).left_out == 0
    assert compress(Json(value={"a": 1}), limit=100).text == '{"a": 1}'


@pytest.mark.req("recall:extractive")
def test_without_a_query_the_first_sentences_are_shown() -> None:
    extract = compress(TEXT, limit=70)
    assert extract.text == "The order was placed on Monday. Its total is 1,234.56 dollars. …"
    assert extract.left_out == len(TEXT) - len(extract.pieces[0])


@pytest.mark.req("recall:extractive")
def test_sentences_with_the_words_of_the_query_come_first() -> None:
    assert "refund because the lamp was broken!" in compress(TEXT, limit=100, query="lamps").text
    assert "用户正在申请退款" in compress(TEXT, limit=60, query="退款").text


@pytest.mark.req("recall:extractive")
def test_a_query_that_meets_nothing_shows_the_first_ones() -> None:
    assert compress(TEXT, limit=70, query="zebra").text == compress(TEXT, limit=70).text


@pytest.mark.req("recall:extractive")
@pytest.mark.parametrize("limit", range(0, 120, 7))
def test_words_numbers_and_emoji_are_never_split(limit: int) -> None:
    text = "abcdef 1,234.56 👨‍👩‍👧 🇨🇳 \ud83d\ude00 " * 5
    for piece in compress(text, limit=limit).pieces:
        assert set(piece.split()) <= set(text.split())


@pytest.mark.req("recall:extractive")
def test_json_values_stand_under_their_key_and_row() -> None:
    assert compress(Json(value=ORDER), limit=100).text == (
        'user: "mia", status: "open"; /payment_methods/0 source: "visa", id: "cc_1" …'
    )
    assert compress(Json(value=ORDER), limit=60, query="gift").text == (
        '… /payment_methods/1 source: "gift", id: "g_2" …'
    )
    assert "/a~1b/~0/1 0: true" in compress(Json(value=ORDER), limit=60, query="a/b true").text


@pytest.mark.req("recall:extractive")
def test_json_written_as_text_is_cut_like_json_and_quoted_as_written() -> None:
    body = '{"n": 1.50e3, "s": "\\u9000\\u6b3e", "rest": "' + "y" * 99 + '"}'
    assert compress(body, limit=40).text == 'n: 1.50e3, s: "\\u9000\\u6b3e" …'


@pytest.mark.req("recall:extractive")
def test_a_long_value_is_quoted_from_inside() -> None:
    extract = compress(json.dumps({"content": TEXT}, ensure_ascii=False), limit=80, query="lamp")
    assert extract.text.startswith("content: … ")
    assert "the lamp was broken!" in extract.text


@pytest.mark.req("recall:extractive")
def test_a_limit_too_small_gives_nothing_and_says_how_much() -> None:
    assert compress(TEXT, limit=3).text == ""
    assert compress(TEXT, limit=3).left_out == len(TEXT)
    assert compress(TEXT, limit=0).pieces == ()


@pytest.mark.req("recall:extractive", "record:body")
def test_a_blob_gives_its_label_or_nothing() -> None:
    blob = Blob(data=b"1234", media_type="image/png")
    assert compress(blob, limit=50).text == body_text(blob)
    assert compress(blob, limit=5).text == ""


@pytest.mark.req("recall:extractive")
@given(TEXTS, LIMITS, QUERIES)
def test_text_is_quoted_in_order_within_the_limit(text: str, limit: int, query: str) -> None:
    extract = compress(text, limit=limit, query=query)
    assert len(extract.text) <= limit
    assert 0 <= extract.left_out <= len(text)
    place = 0
    for piece in extract.pieces:
        place = text.index(piece, place) + len(piece)
    if extract.left_out and extract.pieces:
        assert extract.text.strip(ELISION) in ELISION.join(extract.pieces)
    assert extract == compress(text, limit=limit, query=query)


@pytest.mark.req("recall:extractive")
@given(VALUES, LIMITS, QUERIES)
def test_json_values_are_quoted_whole(value: Any, limit: int, query: str) -> None:
    text = body_text(Json(value=value))
    extract = compress(Json(value=value), limit=limit, query=query)
    assert len(extract.text) <= limit
    for piece in extract.pieces:
        assert piece in text
        assert piece in extract.text


@pytest.mark.req("recall:extractive")
@pytest.mark.parametrize(
    "piece", ["a", "a,", "。", "...", "[", '"', '{"a":', "👍", "\u0300", "1 ", "\n", "\\"]
)
def test_hostile_repetition_is_cut_like_any_text(piece: str) -> None:
    extract = compress(piece * 100_000, limit=200, query="a 👍")
    assert len(extract.text) <= 200


@pytest.mark.req("recall:extractive")
@pytest.mark.parametrize("query", ["", "captain", "bridge", "灯塔"])
def test_room_that_whole_sentences_leave_is_used_for_the_words_beside_them(query: str) -> None:
    text = (
        "I went there on Monday. The lighthouse was closed because of the storm that had come "
        "over night. 灯塔关门了。We walked on to the harbour and had tea with the old captain, who "
        "told us of his travels. Then home. It rained all the way, and the road was flooded at "
        "the bridge, so we took the long way round."
    )
    for limit in range(100, 200, 7):
        extract = compress(text, limit=limit, query=query)
        assert limit - 25 <= len(extract.text) <= limit
        assert all(piece in text for piece in extract.pieces)
        assert extract.left_out == len(text) - sum(map(len, extract.pieces))
