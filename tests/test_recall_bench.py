"""The benchmark of recall measures what it says; a floor under what was reached."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from zero_mem.recall.configuration import DEFAULT, PLAIN, Configuration
from zero_mem.space import Namespace

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "bench"))

figures = pytest.importorskip("evidence.figures")
sets = pytest.importorskip("evidence.sets")
rows = pytest.importorskip("recall")


def share(name: str, asked: list[object], config: Configuration) -> float:
    """Give the share of the evidence among the first ten."""
    found = figures.measure(name, "row", rows.configured(config), asked, tokens=False)
    return float(found.means["share@10"])


@pytest.mark.req("recall:dual-view")
def test_shares_and_hits_count_evidence_once_each() -> None:
    found = figures.by_rank(["a", "x", "b"], frozenset({"a", "b", "c", "d"}))
    assert (found["share@5"], found["any@5"], found["all@5"]) == (0.5, 1.0, 0.0)
    assert found["first"] == 1.0
    assert 0 < found["ndcg@10"] < 1
    assert figures.by_rank(["a"], frozenset({"a"}))["ndcg@10"] == 1.0


@pytest.mark.req("recall:dual-view")
def test_single_facts_are_found_no_worse_than_by_bm25() -> None:
    for session in ("", "diary"):
        asked = sets.questions("short", [sets.short_space(session)], every=True)
        ours, plain = (
            figures.measure("short", "row", rows.configured(c), asked, tokens=False).means
            for c in (DEFAULT, PLAIN)
        )
        assert ours["first"] >= plain["first"]
        assert ours["share@5"] >= plain["share@5"]


@pytest.mark.req("recall:dual-view")
def test_conversations_give_much_more_evidence_than_bm25(
    shared_data: Callable[[str], Path],
) -> None:
    found = sets.spaces(shared_data("locomo_audited/corpus.jsonl.gz").parent)[:1]
    asked = sets.questions("locomo_audited", found, every=False)
    assert share("locomo_audited", asked, DEFAULT) >= share("locomo_audited", asked, PLAIN) + 12


@pytest.mark.req("recall:dual-view")
def test_documents_are_reached_over_names(shared_data: Callable[[str], Path]) -> None:
    found = sets.spaces(shared_data("hotpotqa/corpus.jsonl.gz").parent)
    asked = sets.questions("hotpotqa", found, every=False)
    assert share("hotpotqa", asked, DEFAULT) >= share("hotpotqa", asked, PLAIN) + 3


@pytest.mark.req("recall:dual-view", "recall:fresh")
def test_a_store_ranks_as_the_benchmark_does(
    space: Namespace, shared_data: Callable[[str], Path]
) -> None:
    bench = sets.spaces(shared_data("locomo_audited/corpus.jsonl.gz").parent)[1]
    space.save_many(
        {
            "content": text,
            "kind": unit.kind,
            "session": unit.session,
            "speaker": unit.speaker,
            "created_at": unit.stamp,
        }
        for text, unit in zip(bench.texts, bench.corpus.units, strict=True)
    )
    for question in sets.questions("locomo_audited", [bench], every=False)[:25]:
        ranked = rows.configured(DEFAULT)(question)[:10]
        stored = space.recall(question.text, asked_at=question.moment, limit=10, budget=10_000)
        assert [item.record.text for item in stored.items] == [bench.texts[i] for i in ranked]
