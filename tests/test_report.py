"""The report: one page that loads nothing, shows hostile text as text, and stays small."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import Counter
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from replay_runs import Prompts, Words, calls, orders, refund_run, result, run, says, user

from zero_mem.controller.messages import Defect, Transcript
from zero_mem.replay.book import PromptBook
from zero_mem.replay.charts import Point, Series, bars, line_chart, scatter, ticks
from zero_mem.replay.engine import run as replay
from zero_mem.replay.figures import LeftOut
from zero_mem.replay.report import report
from zero_mem.replay.strategies import (
    ExternalState,
    FullConcatenation,
    ReceiptsOnly,
    SlidingWindow,
    ZeroMem,
)
from zero_mem.replay.verdict import verdict

pytestmark = pytest.mark.req("ledger:compare", "inspect:prompt")

STRATEGIES = (
    FullConcatenation(),
    SlidingWindow(messages=4),
    ExternalState(),
    ReceiptsOnly(),
    ZeroMem(share=0.15),
    ZeroMem(share=0.25),
)
HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)> {{book}} \u2028 \ud800 & \"'"
)


class Page(HTMLParser):
    """Collects what a page holds, and checks that its tags are closed in order."""

    VOID = frozenset({"meta", "link", "input", "br", "img"})

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inside: dict[str, list[str]] = {}
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.inside.setdefault(self.open[-1], []).append(data)

    def attributes(self, name: str) -> list[str]:
        return [attrs[name] or "" for _, attrs in self.tags if name in attrs]


def made(*transcripts: Transcript, book: PromptBook | None = None, source: str = "runs") -> str:
    book = book or PromptBook()
    found = replay(
        transcripts,
        STRATEGIES,
        tokenizer=Words(),
        on_prompt=[book],
        defects=[Defect(file=HOSTILE, line=1, record="", problem=HOSTILE)],
        left_out=[LeftOut(strategy="vector_rag", title="Vector RAG", reason="no dense extra")],
    )
    return report(found, verdict(found), book=book, source=source, title=source)


def embedded(html: str) -> dict[str, Any]:
    match = re.search(r'<script type="application/json" id="book">(.*?)</script>', html, re.S)
    assert match is not None
    loaded: dict[str, Any] = json.loads(match[1])
    return loaded


def test_the_page_is_well_formed_and_needs_nothing_from_outside() -> None:
    html = made(refund_run())
    page = Page(html)
    assert page.attributes("src") == []
    assert set(page.attributes("href")) == {"#main", "data:,"}
    assert "style" not in {name for _, attrs in page.tags for name in attrs}
    assert not [a for _, attrs in page.tags for a in attrs if a.startswith("on")]
    assert "http://" not in html
    assert "https://" not in html
    assert "@import" not in html
    assert "url(" not in html


def test_the_policy_allows_the_pages_own_code_by_hash_and_nothing_else() -> None:
    html = made(refund_run())
    page = Page(html)
    policy = next(
        attrs["content"] or ""
        for _, attrs in page.tags
        if attrs.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    for tag in ("style", "script"):
        code = re.findall(rf"<{tag}>(.*?)</{tag}>", html, re.S)
        assert len(code) == 1
        digest = base64.b64encode(hashlib.sha256(code[0].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


@pytest.mark.req("receipt:forgery")
def test_hostile_text_stays_text() -> None:
    odd = run(
        user(HOSTILE),
        calls(("c", HOSTILE, {HOSTILE: HOSTILE})),
        result("c", HOSTILE, HOSTILE * 30),
        says(HOSTILE),
        name=HOSTILE,
    )
    html = made(odd, odd, source=HOSTILE)
    page = Page(html)
    assert Counter(tag for tag, _ in page.tags)["script"] == 2
    assert "img" not in {tag for tag, _ in page.tags}
    html.encode("utf-8")
    held = embedded(html)["runs"][0]
    assert held["name"] == HOSTILE
    assert HOSTILE in [message["text"] for message in held["messages"]]


def test_a_keyboard_and_a_screen_reader_find_their_way() -> None:
    page = Page(made(refund_run(), refund_run(name="other")))
    ids = Counter(page.attributes("id"))
    assert set(ids.values()) == {1}
    assert set(page.attributes("aria-labelledby")) <= set(ids)
    assert set(page.attributes("for")) <= set(ids)
    html = next(attrs for tag, attrs in page.tags if tag == "html")
    assert html["lang"] == "en"
    assert Counter(tag for tag, _ in page.tags)["h1"] == 1
    assert all(attrs.get("aria-label") for tag, attrs in page.tags if tag == "svg")
    scrolls = [attrs for _, attrs in page.tags if attrs.get("class") == "scroll"]
    assert all(a.get("tabindex") == "0" and a.get("aria-label") for a in scrolls)


def test_the_page_says_the_verdict_the_limits_and_what_was_left_out() -> None:
    html = made(refund_run(), source="退款 runs")
    for said in ("Not worth it", "Worth it", "Costs "):
        if said in html:
            break
    else:
        pytest.fail("no verdict on the page")
    for said in ("退款 runs", "Vector RAG", "no dense extra", "prices of 2026-11", "99.94%"):
        assert said in html


def test_the_book_gives_every_prompt_back() -> None:
    book, sink = PromptBook(), Prompts()
    transcripts = [refund_run(steps=3), refund_run(steps=2, name="other")]
    replay(transcripts, STRATEGIES, tokenizer=Words(), on_prompt=[book, sink])
    for prompt in sink.all:
        held = book.runs[prompt.run]
        key = prompt.strategy if prompt.budget is None else f"{prompt.strategy}@{prompt.budget:g}"
        numbers: list[int] = []
        for kept, added, *_ in held["prompts"][key][: prompt.call]:
            numbers = numbers[:kept] + added
        texts = [held["messages"][number]["text"] for number in numbers]
        assert texts == [entry.message.text for entry in prompt.entries]
        answer = held["messages"][held["answers"][prompt.call - 1]]
        assert answer["text"] == prompt.answer.text
        assert held["prompts"][key][prompt.call - 1][2] == prompt.tokens


def test_a_message_is_held_once_however_often_it_is_sent() -> None:
    html = made(refund_run())
    marker = "Step 2 is through."
    assert json.dumps(embedded(html)).count(marker) == 1


def test_every_memory_token_has_its_reason() -> None:
    book = PromptBook()
    replay([refund_run()], [ZeroMem()], tokenizer=Words(), on_prompt=[book])
    folded = [m for m in book.runs[0]["messages"] if m.get("changed")]
    assert folded
    for message in folded:
        assert message["spans"]
        for start, end, column, reason in message["spans"]:
            assert 0 <= start < end <= len(message["text"])
            assert column in {"memory_receipts", "tool_results"}
            assert reason


def test_many_and_large_runs_are_cut_at_the_cap_and_the_page_says_so() -> None:
    book = PromptBook(cap=20_000, message_cap=500)
    runs = [refund_run(name=f"run {n}") for n in range(9)]
    html = made(*runs, book=book)
    assert book.closed
    assert 0 < len(book.runs) < 9
    assert f"the first {len(book.runs)} of 9 runs" in html
    cut = [m for held in book.runs for m in held["messages"] if m.get("cut")]
    assert all(len(message["text"]) == 500 for message in cut)
    assert any(message["cut"] == len(orders(12)) - 500 for message in cut)
    assert len(json.dumps(embedded(html))) < 60_000


@pytest.mark.parametrize("transcripts", [(), (run(),), (run(user("hi"), says("hello")),)])
def test_an_input_with_nothing_to_judge_makes_a_page_too(
    transcripts: tuple[Transcript, ...],
) -> None:
    Page(made(*transcripts))


def test_the_tables_columns_are_explained_below_it() -> None:
    html = made(refund_run())
    assert "dearer: runs that cost more than with everything sent" in html
    assert "with our tool: and the read tool" in html
    assert "Coverage of 6 values that calls took from earlier results" in html
    assert "Visible in its full line, of 0" in html


@pytest.mark.parametrize("width", [360, 1024])
@given(
    shares=st.lists(
        st.tuples(st.floats(min_value=0, max_value=1.2), st.floats(min_value=0, max_value=1)),
        max_size=12,
    )
)
def test_no_label_lies_over_another_or_over_a_point(
    width: int, shares: list[tuple[float, float]]
) -> None:
    budgets = (0.15, 0.25, 0.35, 0.5)
    points = [
        Point(key="zero_mem", label=f"Zero-Mem {b:g}", x=x, y=y, joined=True, brief=f"{b:g}")
        for b, (x, y) in zip(budgets, shares, strict=False)
    ]
    points += [Point(key="window", label="Sliding window", x=x, y=y) for x, y in shares[4:]]
    drawn = scatter(points, width=width, height=300, title="t")
    dots = [(float(x), float(y)) for x, y in re.findall(r'cx="(\S+)" cy="(\S+)"', drawn)]
    names = re.findall(r'<text class="name [^"]+" x="(\S+)" y="(\S+)">([^<]+)<', drawn)
    boxes = [(float(x), float(y) - 10, float(x) + 7 * len(name), float(y)) for x, y, name in names]
    assert len(dots) == len(points)
    assert len(boxes) <= len(points)
    for at, (left, top, right, bottom) in enumerate(boxes):
        assert not [1 for x, y in dots if left - 4 < x < right + 4 and top - 3 < y < bottom + 3]
        for other in boxes[:at]:
            apart = right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top
            assert apart


def test_charts_take_one_point_none_and_negative_shares() -> None:
    for drawn in (
        line_chart([], width=360, height=200, title="none"),
        line_chart([Series(key="full", label="F", values=[7.0])], width=800, height=200, title="1"),
        scatter([], width=360, height=200, title="none"),
        scatter(
            [Point(key="window", label="W", x=-0.4, y=0.2), Point(key="full", label="F", x=1, y=1)],
            width=800,
            height=300,
            title="two",
        ),
        bars([], width=360, height=200, title="none"),
        bars([("a", 0.5), ("<b>", -0.2)], width=360, height=200, title="two"),
    ):
        Page(drawn)
        assert "nan" not in drawn


def test_a_run_of_thousands_of_calls_stays_a_small_page() -> None:
    turns = [m for n in range(1_200) for m in (user(f"turn {n}"), says("yes"))]
    book = PromptBook(cap=20_000)
    html = made(run(*turns), book=book)
    assert len(html) < 500_000


def test_ticks_are_round_and_span_the_range() -> None:
    assert ticks(0, 9_460) == [0, 2_000, 4_000, 6_000, 8_000, 10_000]
    assert ticks(0, 0)[-1] >= 1
    assert ticks(-0.3, 1, 5)[0] <= -0.3
