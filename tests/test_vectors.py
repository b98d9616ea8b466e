"""Vectors: what is embedded of a record, how it is kept, and how the nearest are found."""

from __future__ import annotations

import math
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zero_mem.index import nearest
from zero_mem.index.nearest import DEPTH, Matrix, Nearest, decode, unit_rows
from zero_mem.index.vectors import (
    EMBEDDED_CHARACTERS,
    GAP,
    REACH,
    SHORT,
    context_of,
    embedded_text,
    encode,
    safe_text,
)
from zero_mem.types import Json, MemoryRecord

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def record(text: str, *, minute: int = 0, **fields: Any) -> MemoryRecord:
    at = NOON + timedelta(minutes=minute)
    made = MemoryRecord(
        uid="u",
        memory_id="m",
        namespace=("a",),
        form="episodic",
        kind="message",
        key=None,
        content=text,
        session="s",
        speaker="Bob",
        created_at=at,
        recorded_at=at,
        updated_at=at,
        accessed_at=at,
    )
    return replace(made, **fields)


def question(text: str, **fields: Any) -> MemoryRecord:
    return record(text, **{"speaker": "Ann", **fields})


def random_rows(count: int, dimension: int = 16, seed: int = 0) -> Matrix:
    rows = np.random.default_rng(seed).standard_normal((count, dimension))
    return unit_rows(rows, count=count, dimension=dimension)


def filled(rows: Matrix, **options: int) -> Nearest:
    found = Nearest(rows.shape[1], **options)
    found.put(range(1, len(rows) + 1), rows)
    return found


@pytest.mark.req("index:hybrid")
def test_a_turn_is_embedded_with_the_turn_it_answers() -> None:
    question = record("When do you arrive?", speaker="Ann")
    turn = record("On Friday.", minute=1)
    assert context_of(turn, 9, {8: question}) == 8
    assert embedded_text(turn, question) == "Ann: When do you arrive?\nBob: On Friday."
    assert embedded_text(turn) == "Bob: On Friday."


@pytest.mark.req("index:hybrid")
@pytest.mark.parametrize(
    ("before", "after"), [("Bob", "Bob"), (None, "Bob"), ("Ann", None), (None, None)]
)
def test_what_nobody_else_said_before_is_no_question(before: str | None, after: str | None) -> None:
    turn, other = record("On Friday.", minute=1, speaker=after), record("When?", speaker=before)
    earlier = {8: other, 7: record("And then?", speaker="Ann")}
    assert context_of(turn, 9, earlier) is None


@pytest.mark.req("index:hybrid")
@pytest.mark.parametrize(
    "other",
    [
        question("another session", session="t"),
        question("another kind", kind="call"),
        question("too long ago", minute=-int(GAP.total_seconds() // 60) - 1),
        question("later than the turn", minute=2),
        question("deleted", state="deleted"),
        question("archived", state="archived"),
    ],
    ids=lambda other: other.text,
)
def test_a_record_of_another_thread_is_no_context(other: MemoryRecord) -> None:
    turn, true = record("On Friday.", minute=1), question("When?")
    assert context_of(turn, 9, {8: other, 7: true}) == 7
    assert context_of(turn, 9, {8: other}) is None


@pytest.mark.req("index:hybrid")
def test_the_context_is_near_and_a_record_without_session_has_none() -> None:
    turn, before = record("On Friday.", minute=1), question("When?")
    assert context_of(turn, 100, {100 - REACH: before}) == 100 - REACH
    assert context_of(turn, 100, {99 - REACH: before}) is None
    lone = record("A fact.", session=None)
    assert context_of(lone, 9, {8: question("Another?", session=None)}) is None


@pytest.mark.req("index:hybrid")
def test_a_long_text_needs_no_context() -> None:
    words = " ".join(f"word{number}" for number in range(SHORT))
    before = question("When?")
    assert context_of(record(words, minute=1), 9, {8: before}) == 8
    assert context_of(record(f"{words} another", minute=1), 9, {8: before}) is None


@pytest.mark.req("index:hybrid", "index:any-text")
def test_the_embedded_text_is_bounded_and_safe() -> None:
    context = record("start " + "x" * 10_000 + " end")
    text = embedded_text(record("y" * 10_000, key="timezone", speaker=None), context)
    assert text.startswith("x")
    assert " end\ntimezone: yyy" in text
    assert len(text) < EMBEDDED_CHARACTERS + 1000
    assert "start" not in text
    assert safe_text("a\0b\ud800c🎉") == "a b\ufffdc🎉"
    assert (
        embedded_text(record("", content=Json({"city": "上海"}), speaker=None))
        == '{"city": "上海"}'
    )


@pytest.mark.req("index:hybrid")
@given(st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=40))
def test_a_vector_is_read_back_as_it_was_within_half_precision(row: list[float]) -> None:
    read = decode([encode(row), encode(row)], len(row))
    assert read.dtype == np.float32
    assert read.tolist() == [pytest.approx(row, abs=1e-3)] * 2


@pytest.mark.req("index:hybrid")
def test_vectors_are_brought_to_unit_length() -> None:
    rows = unit_rows([[3, 4], [0, 0]], count=2, dimension=2)
    assert rows.tolist() == [pytest.approx([0.6, 0.8]), [0, 0]]


@pytest.mark.req("index:hybrid")
@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([[1, 2]], "shape"),
        ([[1, 2, 3]] * 2, "shape"),
        ([[1, 2], [1]], "inhomogeneous"),
        ([["a", "b"]] * 2, "could not convert"),
        ([[1, math.nan]] * 2, "not finite"),
        ([[1, math.inf]] * 2, "not finite"),
        ([], "shape"),
    ],
)
def test_what_is_no_list_of_vectors_is_refused(rows: object, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        unit_rows(rows, count=2, dimension=2)


@pytest.mark.req("index:hybrid")
def test_search_gives_the_cosine_of_every_vector() -> None:
    rows = random_rows(50)
    scores = filled(rows).best(rows[7])
    assert scores.keys() == set(range(1, 51))
    assert max(scores, key=scores.__getitem__) == 8
    assert scores == pytest.approx({n + 1: float(rows[n] @ rows[7]) for n in range(50)})
    assert Nearest(16).best(rows[0]) == {}


@pytest.mark.req("index:hybrid")
@given(st.lists(st.tuples(st.booleans(), st.integers(1, 12)), max_size=60))
def test_adding_replacing_and_dropping_keep_every_vector_at_its_position(
    steps: list[tuple[bool, int]],
) -> None:
    rows = random_rows(len(steps) + 1)
    found, wanted = Nearest(16), {}
    for step, (adds, position) in enumerate(steps):
        if adds:
            found.put([position], rows[step : step + 1])
            wanted[position] = rows[step]
        else:
            found.drop([position, 99])
            wanted.pop(position, None)
    assert len(found) == len(wanted)
    assert all((position in found) == (position in wanted) for position in range(1, 13))
    query = rows[-1]
    expected = {position: float(row @ query) for position, row in wanted.items()}
    assert found.best(query) == pytest.approx(expected, abs=1e-6)


@pytest.mark.req("index:hybrid")
def test_of_many_vectors_the_best_are_given() -> None:
    rows = random_rows(DEPTH + 500)
    scores = filled(rows).best(rows[3])
    everything = rows @ rows[3]
    best = np.argsort(-everything)[:DEPTH] + 1
    assert scores.keys() == set(best.tolist())


@pytest.mark.req("index:hybrid")
def test_without_the_approximate_index_exact_search_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(nearest, "find_spec", lambda _: None)
    rows = random_rows(30)
    assert len(filled(rows, exact_rows=10).best(rows[0])) == 30


@pytest.mark.req("index:hybrid")
def test_the_approximate_index_gives_what_the_exact_one_does() -> None:
    if find_spec("usearch") is None:
        pytest.skip("usearch is not installed (the extra `ann`)")
    rows = random_rows(3000)
    exact, approximate = filled(rows), filled(rows, exact_rows=10)
    assert len(approximate.best(rows[0])) == 3000  # exact while the graph is being built
    for thread in threading.enumerate():
        if thread.name == "zero-mem-vectors":
            thread.join()
    for found in (exact, approximate):
        found.drop([1, 2])
        found.put([3, 5000], random_rows(2, seed=1))
    shared = 0
    for query in random_rows(20, seed=2):
        scores, near = exact.best(query), approximate.best(query)
        best = sorted(scores, key=scores.__getitem__)[-10:]
        shared += len(near.keys() & set(best))
        assert not {1, 2} & near.keys()
        assert all(score == pytest.approx(scores[place]) for place, score in near.items())
    assert shared >= 190
