"""Answers are tidied by the evidence and nothing else: kept, cut or replaced, never written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zero_mem.recall.calibrate import calibrate, fits

EVIDENCE = (
    "Caroline: I went to a support group on 7 May 2023, it was powerful.",
    "Melanie: We bought a tent, two lamps and a kayak for 350 dollars.",
    "退款状态: 审核通过，金额为 48 元",
)


@pytest.mark.req("recall:dual-view")
@pytest.mark.parametrize(
    ("answer", "question", "text", "action"),
    [
        ("7 May 2023", "When did she go?", "7 May 2023", "kept"),
        ("The answer is 7 May 2023.", "When did she go?", "7 May 2023", "normalised"),
        ("答案：审核通过。", "退款状态是什么？", "审核通过", "normalised"),
        ("a kayak, because she likes rivers very much", "", "a kayak", "shortened"),
        ("a tent, a piano, a kayak", "What did they buy?", "a tent, a kayak", "pruned"),
        ("8 May 2023", "When did she go?", "7 May 2023", "replaced"),
        ("a sailing boat", "What did they buy?", "a sailing boat", "kept"),
        ("400", "How many dollars was it?", "400", "kept"),
        ("", "When?", "", "kept"),
    ],
)
def test_an_answer_is_only_tidied(answer: str, question: str, text: str, action: str) -> None:
    found = calibrate(answer, EVIDENCE, question=question)
    assert (found.text, found.action) == (text, action)


@pytest.mark.req("recall:dual-view")
def test_an_answer_without_support_says_so_and_stays() -> None:
    found = calibrate("in Paris", EVIDENCE, question="Where was it?")
    assert (found.text, found.supported) == ("in Paris", False)


@pytest.mark.req("recall:dual-view")
def test_part_of_a_word_or_number_is_no_support() -> None:
    assert not calibrate("35", EVIDENCE).supported
    assert not calibrate("group on 7 May 202", EVIDENCE).supported


@pytest.mark.req("recall:dual-view")
@given(st.text(), st.lists(st.text(), max_size=3), st.text())
def test_what_is_returned_was_in_the_answer_or_in_the_evidence(
    answer: str, evidence: list[str], question: str
) -> None:
    found = calibrate(answer, evidence, question=question)
    assert calibrate(answer, evidence, question=question) == found
    if found.action == "kept":
        assert found.text == answer
    else:
        assert found.supported


@pytest.mark.req("recall:dual-view")
def test_evidence_fits_a_question_by_the_kind_of_value_it_holds() -> None:
    assert fits("time", "on 7 May 2023")
    assert not fits("time", "some day")
    assert fits("number", "350 dollars")
    assert fits("other", "anything")
