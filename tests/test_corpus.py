"""What recall keeps of a namespace follows every change and stays what it would be anew."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from unittest.mock import patch

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from zero_mem.index.units import Unit, label_of
from zero_mem.recall.arithmetic import Lists
from zero_mem.recall.configuration import DEFAULT, PAPER
from zero_mem.recall.corpus import Corpus
from zero_mem.recall.hierarchy import hierarchy
from zero_mem.recall.pipeline import HEAD, rank
from zero_mem.recall.profile import read_question
from zero_mem.text.segment import content_terms

START = datetime(2024, 3, 4, 9, tzinfo=UTC)
WORDS = ("lamp", "Rome", "boat", "May", "李伟", "Delft", "rain", "2024-03-05", "yesterday")
QUESTION = "What did Ann say of the lamp in Delft on 2024-03-05?"


def unit(position: int, text: str, session: str, speaker: str, hours: int) -> Unit:
    return Unit(
        position=position,
        terms=tuple(content_terms(f"{text} {speaker}")),
        text=text,
        stamp=START + timedelta(hours=hours),
        speaker=speaker,
        session=session,
        kind="message",
        label=label_of(text),
    )


texts = st.builds(
    lambda label, words: f"{label}{' '.join(words)}.",
    st.sampled_from(("", "", "To Bo: ", "To Cy: ")),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=4),
)
units = st.builds(
    unit,
    st.integers(1, 14),
    texts,
    st.sampled_from(("", "a", "b")),
    st.sampled_from(("", "Ann", "Ben")),
    st.integers(0, 9),
)
changes = st.lists(st.one_of(units, st.integers(1, 14)), min_size=1, max_size=16)


def changed(held: Corpus, change: Unit | int) -> None:
    """Apply a change as the journal would: new units come last."""
    if isinstance(change, int):
        held.remove(change)
    elif not held.put(change):
        last = held.units[-1].position
        assert held.put(
            unit(last + 1, change.text, change.session, change.speaker, len(change.text) % 7)
        )


def outcome(held: Corpus) -> list[tuple[int, float]]:
    found: list[tuple[int, float]] = []
    for question in (QUESTION, "lamp", "李伟 yesterday", "boat Rome"):
        for config in (DEFAULT, PAPER):
            ranking = rank(held, question, config=config, asked_at=START + timedelta(days=2))
            order = ranking.order()
            found += [(held.units[i].position, round(ranking.score(i), 9)) for i in order]
    return found


@pytest.mark.req("recall:fresh", "recall:dual-view")
@given(changes)
@settings(max_examples=60, deadline=None, phases=(Phase.explicit, Phase.generate))
def test_a_followed_corpus_ranks_as_one_made_anew(some: list[Unit | int]) -> None:
    followed = Corpus([])
    for change in some:
        changed(followed, change)
        outcome(followed)  # every part is made, and has to follow from here
    alive = [held for held in followed.units if held.text]
    assert outcome(followed) == outcome(Corpus(alive))


@pytest.mark.req("recall:dual-view", "index:hybrid")
@given(st.lists(units, min_size=1, max_size=20), st.lists(st.floats(-1, 1), min_size=20))
@settings(max_examples=60, deadline=None)
def test_arrays_give_the_scores_of_lists_to_the_last_bit(
    some: list[Unit], cosines: list[float]
) -> None:
    pytest.importorskip("numpy", reason="numpy is not installed (the extra `vectors`)")
    from zero_mem.recall import arrays

    held = Corpus([])
    for change in some:
        changed(held, change)
    similarities = dict(enumerate(cosines[: held.count]))
    question = read_question(held, QUESTION)
    config = replace(DEFAULT, gate=False)  # threads count, whether they hold together or not
    by_lists = hierarchy(held, question, config, similarities, by=Lists())
    for level in (held.windows, held.episodes, held.sessions):
        level.forget(question.terms)
    with patch.object(arrays, "FEW", 0):  # the short cuts of large namespaces are taken too
        by_arrays = hierarchy(held, question, config, similarities, by=arrays.Arrays())
    assert by_lists.scores == by_arrays.scores.tolist()
    for index in range(held.count):
        for part, value in by_lists.added.items():
            assert value(index) == by_arrays.added[part](index)


@pytest.mark.req("recall:dual-view")
@given(st.lists(st.sampled_from((0.0, 0.1, 0.2, 0.5, 0.7, 1.0)), max_size=80), st.integers(1, 40))
def test_the_best_are_those_of_sorting_all(scores: list[float], count: int) -> None:
    wanted = sorted(((s, i) for i, s in enumerate(scores) if s > 0), reverse=True)
    assert Lists().best(scores, count, None) == [index for _, index in wanted[:count]]


@pytest.mark.req("recall:dual-view")
def test_an_order_goes_on_beyond_its_head() -> None:
    held = Corpus(unit(n, f"lamp {n}", "", "", n) for n in range(1, 9 * HEAD))
    order = list(rank(held, "lamp").order())
    assert sorted(order) == list(range(held.count))
