"""The measurement of recall: sets in the documented format, figures that mean what they say."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from evidence_set import CORPUS, QUERIES, write_set

from zero_mem.errors import EmbedderUnavailable, InvalidInput
from zero_mem.evaluation import rows, sets
from zero_mem.evaluation.cache import CachedEmbedder
from zero_mem.evaluation.figures import Figures, by_rank, by_tokens, ndcg
from zero_mem.evaluation.measure import measure
from zero_mem.evaluation.page import page
from zero_mem.evaluation.prompt import Order, Prompt
from zero_mem.evaluation.result import Result, SetFacts, as_json
from zero_mem.evaluation.sets import Asked, EvidenceSet
from zero_mem.evaluation.targets import TARGETS, judged
from zero_mem.evaluation.vectors import Vectors
from zero_mem.models.embedder import Rows
from zero_mem.models.fake import FakeEmbedder
from zero_mem.recall.configuration import DEFAULT, PLAIN
from zero_mem.space import Namespace
from zero_mem.text.tokens import tokenizer

pytestmark = pytest.mark.req("recall:dual-view")


@contextmanager
def quiet(what: str, total: int) -> Iterator[Callable[[int], None]]:
    yield lambda done: None


def measured(found: EvidenceSet, *names: str, vectors: Vectors | None = None) -> list[Figures]:
    chosen = rows.chosen(rows.rows(vectors), names)
    return measure(found, chosen, tokenizer=tokenizer(), progress=quiet, vectors=vectors)


@pytest.fixture
def small(tmp_path: Path) -> EvidenceSet:
    return sets.read("small", write_set(tmp_path / "small"))


# Sets


@pytest.mark.parametrize("zipped", [False, True])
def test_a_set_is_read_with_its_times_threads_and_evidence(tmp_path: Path, zipped: bool) -> None:
    found = sets.read("mine", write_set(tmp_path / "mine", zipped=zipped))
    assert [space.name for space in found.spaces] == ["kitchen", "办公室", "facts"]
    assert sum(len(space.ids) for space in found.spaces) == len(CORPUS)
    first, second, chinese, update = found.questions  # a question without evidence does not count
    unit = first.space.corpus.units[0]
    assert (unit.speaker, unit.session, unit.kind) == ("Nora", "monday", "message")
    assert f"{unit.stamp}" == "2026-03-02 09:00:00+00:00"
    assert second.evidence == {0, 2}
    assert first.moment == first.space.last
    assert f"{chinese.moment:%Y-%m-%d}" == "2026-04-28"  # a month is asked near its end
    assert update.answers == ("Lena Moss", "Moss")
    assert update.space.corpus.units[0].stamp is None  # a number only counts
    assert len(found.digest) == 64


def test_a_live_turn_sees_what_was_before_it_in_other_sessions(tmp_path: Path) -> None:
    query = {
        "space": "kitchen", "question": "And the cake?", "gold": ["k1"], "before": "k5",
    }  # fmt: skip
    (asked,) = sets.read("mine", write_set(tmp_path / "mine", queries=[query])).questions
    assert asked.live is not None
    assert (asked.live.speaker, asked.live.before) == ("Nora", (3,))
    assert [place for place in range(5) if asked.allowed(place)] == [0, 1, 2]
    (ours,) = measured(EvidenceSet(name="mine", spaces=[], questions=[asked]), "zero-mem")
    assert ours.means()["share@5"] == 100


@pytest.mark.req("pkg:errors")
@pytest.mark.parametrize(
    ("corpus", "queries", "says"),
    [
        (["{"], QUERIES, r"corpus\.jsonl:1: this line is no JSON"),
        (["[]"], QUERIES, r"corpus\.jsonl:1: a line is a JSON object, not list"),
        (
            [{"space": "a", "id": "1"}],
            [],
            r"corpus\.jsonl:1: 'text' is a string, and it is missing",
        ),
        ([{"space": "a", "id": 1, "text": "x"}], [], r"corpus\.jsonl:1: 'id' is a string, not int"),
        ([{**CORPUS[0], "ts": "soon"}], [], r"corpus\.jsonl:1: 'ts' is no time"),
        ([CORPUS[0], CORPUS[0]], [], r"corpus\.jsonl:2: the id 'k1' is there twice"),
        ([], QUERIES, r"corpus\.jsonl: it has no record"),
        (CORPUS, [{**QUERIES[0], "space": "attic"}], r"queries\.jsonl:1: .* no space 'attic'"),
        (CORPUS, [{**QUERIES[0], "gold": ["k9"]}], r"queries\.jsonl:1: .* no record 'k9'"),
        (CORPUS, [{**QUERIES[0], "before": "k9"}], r"queries\.jsonl:1: .* no record 'k9'"),
        (CORPUS, [{**QUERIES[0], "gold": {"k1": 1}}], r"jsonl:1: 'gold' is a list of strings"),
        (CORPUS, [QUERIES[2]], r"queries\.jsonl: no question names its evidence"),
    ],
)
def test_a_bad_line_says_where_it_is_and_what_is_wrong(
    tmp_path: Path, corpus: Sequence[Any], queries: Sequence[Any], says: str
) -> None:
    folder = write_set(tmp_path / "mine", corpus=corpus, queries=queries)
    with pytest.raises(InvalidInput, match=says):
        sets.read("mine", folder)


@pytest.mark.req("pkg:errors")
def test_a_damaged_archive_is_a_typed_error(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "mine", zipped=True)
    path = folder / "corpus.jsonl.gz"
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(InvalidInput, match="can't be read after line"):
        sets.read("mine", folder)


def test_sets_are_found_by_folder_and_by_name(tmp_path: Path) -> None:
    write_set(tmp_path / "one")
    write_set(tmp_path / "two", zipped=True)
    built_in = list(sets.BUILT_IN)
    assert list(sets.find([tmp_path])) == ["one", "two", *built_in]
    assert list(sets.find([tmp_path / "two"])) == ["two", *built_in]
    assert list(sets.find([tmp_path], ["two"])) == ["two"]
    for paths, names, says in (
        ([tmp_path], ["three"], "no set 'three'; there are one, two"),
        ([tmp_path / "none"], [], "no such folder"),
        ([tmp_path, tmp_path / "one"], [], "two sets are called one"),
    ):
        with pytest.raises(InvalidInput, match=says):
            sets.find(paths, names)


def test_the_public_sets_are_asked_as_their_figures_are(tmp_path: Path) -> None:
    queries = [{**QUERIES[0], "category": "adversarial"}, QUERIES[1], QUERIES[4]]
    folder = write_set(tmp_path / "locomo_audited", queries=queries)
    assert len(sets.read("locomo_audited", folder).questions) == 2
    assert len(sets.read("locomo_audited", folder, every=True).questions) == 3
    assert len(sets.read("other", folder).questions) == 3
    assert len(sets.read("other", folder, limit=1).questions) == 2  # of each space


def test_halves_are_every_other_space_or_every_other_question(small: EvidenceSet) -> None:
    by_space = {question.space.name: question.half for question in small.questions}
    assert by_space == {"facts": 0, "kitchen": 1, "办公室": 0}
    facts = sets.read("single_facts", None, limit=6)
    assert [question.half for question in facts.questions] == [0, 1, 0, 1, 0, 1]


# Figures


def test_shares_and_hits_count_evidence_once_each() -> None:
    found = by_rank([0, 9, 1], frozenset({0, 1, 2, 3}))
    assert (found["share@5"], found["any@5"], found["all@5"]) == (0.5, 1.0, 0.0)
    assert found["first"] == 1.0
    assert by_rank([0], frozenset({0}))["ndcg@10"] == 1.0
    assert by_rank([], frozenset({0}))["first"] == 0.0
    best = 1 + 1 / math.log2(3)
    assert ndcg([0.0, 1.0, 1.0], 2) == pytest.approx((1 / math.log2(3) + 1 / 2) / best)


def test_by_tokens_a_record_counts_by_what_its_line_keeps(tmp_path: Path) -> None:
    long = " ".join(f"Sentence number {n} tells of another bird." for n in range(60))
    corpus = [
        {"space": "s", "id": "a", "text": long},
        {"space": "s", "id": "b", "text": "The heron is grey."},
    ]
    query = {"space": "s", "question": "Which bird is grey?", "gold": ["a", "b"]}
    folder = write_set(tmp_path / "mine", corpus=corpus, queries=[query])
    (question,) = sets.read("mine", folder).questions
    prompt = Prompt(question=question, tokenizer=tokenizer())
    found = dict(by_tokens(prompt, Order([0, 1]), question.evidence))
    assert 0.5 < found["share@250t"] < 0.7  # one whole, of the other 200 characters
    assert (found["any@250t"], found["all@250t"]) == (1.0, 1.0)
    assert found["share@250w"] == 0.5  # whole, the long one does not fit and is passed over
    assert found["share@1000w"] == 1.0
    spent = sum(line.tokens for line in prompt.filled(Order([0, 1]), 250))
    assert spent <= 250


def test_a_replaced_fact_costs_what_is_said_of_it(small: EvidenceSet) -> None:
    question = small.questions[-1]
    prompt = Prompt(question=question, tokenizer=tokenizer())
    (plain,) = prompt.filled(Order([0]), 200)
    (newer,) = prompt.filled(Order([0], {0: 2}), 200)
    assert newer.text == f"{plain.text} (superseded by 3)"
    assert newer.tokens > plain.tokens


def test_rows_are_compared_by_category_and_by_half(small: EvidenceSet) -> None:
    recency, plain, ours = measured(small, "recency", "bm25", "zero-mem")
    assert ours.categories == ["multi-hop", "single-hop", "update"]
    assert ours.means()["share@5"] == 100
    assert ours.means(category="update")["first"] == 100
    assert ours.means(category="update")["newest"] == 100
    assert plain.means(category="single-hop")["first"] == 100
    assert recency.means(half=0)["first"] < ours.means(half=0)["first"]
    assert len(ours.outcomes) == 4


def test_every_part_has_a_row_that_is_chosen_without_commas() -> None:
    every = rows.rows(Vectors(FakeEmbedder(), quiet))
    assert all(name.replace("-", "").isalnum() for name in every)
    for base in ("zero-mem", "zero-mem-dense"):
        for part in ("graph", "hierarchy", "closure", "neighbours", "dates", "session"):
            assert every[f"{base}-less-{part}"].base == base
        assert every[f"{base}-plus-calibration"].base == base
    assert {"recency", "bm25", "dense", "bm25-dense", "paper", "paper-dense"} <= every.keys()
    assert every["zero-mem-dense-less-dense"].base == "zero-mem-dense"
    assert [row.name for row in rows.chosen(every, ["bm25", "dense", "bm25"])] == ["bm25", "dense"]
    with pytest.raises(InvalidInput, match=r"no row 'dense'.*more with an embedder"):
        rows.chosen(rows.rows(None), ["dense"])


def test_single_facts_are_found_no_worse_than_by_bm25() -> None:
    for name in sets.BUILT_IN:
        plain, ours = measured(sets.read(name, None), "bm25", "zero-mem")
        assert ours.means()["first"] >= plain.means()["first"]
        assert ours.means()["share@5"] >= plain.means()["share@5"]


# Vectors


def synonymous(tmp_path: Path) -> EvidenceSet:
    corpus = [
        {"space": "s", "id": "blank", "text": " "},  # a store takes no such record
        {"space": "s", "id": "a", "text": "The vehicle is in the shed."},
        {"space": "s", "id": "b", "text": "The boat is in the water."},
    ]
    query = {"space": "s", "question": "Where did the car go?", "gold": ["a"]}
    return sets.read("mine", write_set(tmp_path / "mine", corpus=corpus, queries=[query]))


@pytest.mark.req("index:hybrid")
def test_rows_with_vectors_find_what_no_word_names(tmp_path: Path) -> None:
    vectors = Vectors(FakeEmbedder(synonyms={"car": "vehicl"}), quiet)
    plain, alone, fused, ours = measured(
        synonymous(tmp_path), "bm25", "dense", "bm25-dense", "zero-mem-dense", vectors=vectors
    )
    assert plain.means()["first"] == 0
    assert [one.means()["first"] for one in (alone, fused, ours)] == [100, 100, 100]
    vectors.forget()


class Failing:
    name = "failing"
    dimension = 2

    def embed(self, texts: Sequence[str], *, query: bool) -> Rows:
        if query:
            raise EmbedderUnavailable("failing: out of order")
        return [[1.0, 0.0] for _ in texts]


@pytest.mark.req("index:hybrid", "pkg:errors")
def test_a_row_with_vectors_is_never_measured_without_them(tmp_path: Path) -> None:
    with pytest.raises(EmbedderUnavailable, match="out of order"):
        measured(synonymous(tmp_path), "zero-mem-dense", vectors=Vectors(Failing(), quiet))


class Counting:
    name = "counting"
    dimension = 2

    def __init__(self) -> None:
        self.asked: list[tuple[str, bool]] = []

    def embed(self, texts: Sequence[str], *, query: bool) -> Rows:
        self.asked += [(text, query) for text in texts]
        return [[float(len(text)), 1.0 + query] for text in texts]


@pytest.mark.req("index:hybrid")
def test_kept_vectors_are_not_made_again(tmp_path: Path) -> None:
    inner, path = Counting(), tmp_path / "vectors.db"
    first = CachedEmbedder(inner, path)
    made = [list(row) for row in first.embed(["a", "bcd", "a"], query=False)]
    assert made == [[1.0, 1.0], [3.0, 1.0], [1.0, 1.0]]
    first.close()
    again = CachedEmbedder(inner, path)
    assert [list(row) for row in again.embed(["bcd"], query=False)] == [[3.0, 1.0]]
    assert [list(row) for row in again.embed(["bcd"], query=True)] == [[3.0, 2.0]]
    again.close()
    assert inner.asked == [("a", False), ("bcd", False), ("bcd", True)]
    path.write_bytes(b"no database" * 100)
    with pytest.raises(InvalidInput, match="can't keep vectors"):
        CachedEmbedder(inner, path)


# The page and the JSON


def result(found: EvidenceSet, *names: str) -> Result:
    every = rows.rows(None)
    return Result(
        command="zero-mem bench recall",
        rows=rows.chosen(every, names),
        tokenizer=tokenizer().name,
        sets=[SetFacts.of(found)],
        figures=measured(found, *names),
    )


def test_the_page_has_a_table_for_each_question_of_a_reader(small: EvidenceSet) -> None:
    names = ("recency", "bm25", "zero-mem", "zero-mem-less-newest", "paper")
    written = page(result(small, *names))
    assert "4 questions (every question that names its evidence) over 11 records" in written
    for heading in ("## small", "## Knowledge update (small)", "## What each part earns"):
        assert heading in written
    ours = next(line for line in written.splitlines() if line.startswith("| Zero-Mem (core) |"))
    assert ours.split("|")[2].strip() == "100.0"
    assert "| less newest first | " in written
    for table in written.split("\n\n"):
        if table.startswith("|"):
            assert len({line.count("|") for line in table.splitlines()}) == 1


def test_the_json_repeats_the_run_and_says_nothing_of_the_machine(small: EvidenceSet) -> None:
    found = json.loads(json.dumps(as_json(result(small, "bm25", "zero-mem")), allow_nan=False))
    assert found["command"] == "zero-mem bench recall"
    assert {"python", "zero-mem"} <= found["versions"].keys()
    assert found["configurations"]["default"]["graph"] == DEFAULT.graph
    (facts,) = found["sets"]
    assert (facts["records"], facts["questions"], len(facts["sha256"])) == (11, 4, 64)
    ours = found["figures"][1]
    assert ours["all"]["share@5"] == 100
    assert ours["categories"]["update"]["newest"] == 100
    assert len(ours["halves"]) == 2
    assert {f"{kind}@{depth}" for kind in ("share", "any", "all") for depth in (5, 10, 20)} <= (
        ours["all"].keys()
    )
    assert {f"{kind}@{n}{suffix}" for kind in ("share", "any", "all", "ndcg")
            for n in (250, 500, 1000, 2000) for suffix in "tw"} <= ours["all"].keys()  # fmt: skip


def test_targets_are_judged_for_rows_with_and_without_vectors() -> None:
    assert {target.row for target in TARGETS} == {"zero-mem", "zero-mem-dense"}
    plain, ours = measured(sets.read("single_facts", None), "bm25", "zero-mem")
    dense = replace(ours, row="zero-mem-dense")
    found = judged([plain, ours, dense])
    assert [one.target.row for one in found] == ["zero-mem", "zero-mem-dense"]
    assert [one.met for one in found] == [True, True]
    assert judged([ours]) == []  # above BM25, and there is no BM25
    empty = replace(ours, outcomes=[replace(o, values={"first": 0.0}) for o in ours.outcomes])
    assert not judged([plain, empty])[0].met


def test_a_part_of_the_questions_gets_no_verdict() -> None:
    found = result(sets.read("single_facts", None), "bm25", "zero-mem")
    assert found.judged
    assert "What must be reached" in page(found)
    found.complete = False
    assert found.judged == []
    assert "What must be reached" not in page(found)


# The public data


def share(asked: EvidenceSet, *names: str) -> list[float]:
    return [one.means()["share@10"] for one in measured(asked, *names)]


def test_conversations_give_much_more_evidence_than_bm25(
    shared_data: Callable[[str], Path],
) -> None:
    found = sets.read("locomo_audited", shared_data("locomo_audited/corpus.jsonl.gz").parent)
    first = [one for one in found.questions if one.space is found.spaces[0]]
    plain, ours = share(replace(found, questions=first), "bm25", "zero-mem")
    assert ours >= plain + 12


def test_documents_are_reached_over_names(shared_data: Callable[[str], Path]) -> None:
    found = sets.read("hotpotqa", shared_data("hotpotqa/corpus.jsonl.gz").parent)
    plain, ours = share(found, "bm25", "zero-mem")
    assert ours >= plain + 3


@pytest.mark.req("recall:fresh")
def test_a_store_ranks_as_the_benchmark_does(
    space: Namespace, shared_data: Callable[[str], Path]
) -> None:
    found = sets.read("locomo_audited", shared_data("locomo_audited/corpus.jsonl.gz").parent)
    bench = found.spaces[1]
    assert_same_order(space, bench, [one for one in found.questions if one.space is bench][:25])


def test_a_store_ranks_the_small_set_as_the_benchmark_does(
    space: Namespace, small: EvidenceSet
) -> None:
    bench = small.spaces[0]
    assert_same_order(space, bench, [one for one in small.questions if one.space is bench])


def assert_same_order(space: Namespace, bench: sets.Space, questions: Sequence[Asked]) -> None:
    space.save_many(saved(bench))
    for profile in (DEFAULT, PLAIN):
        ranker = rows.configured(profile)
        for question in questions:
            ranked = ranker(question).indices[:10]
            stored = space.recall(
                question.text, asked_at=question.moment, limit=10, budget=10_000, profile=profile
            )
            assert [item.record.text for item in stored.items] == [bench.texts[i] for i in ranked]
            prompt = Prompt(question=question, tokenizer=tokenizer())
            lines = prompt.filled(Order(ranked, ranker(question).newer), 10_000)
            assert "\n".join(line.text for line in lines) == stored.text


def saved(bench: sets.Space) -> Iterator[Mapping[str, Any]]:
    for text, unit in zip(bench.texts, bench.corpus.units, strict=True):
        yield {
            "content": text,
            "kind": unit.kind,
            "session": unit.session,
            "speaker": unit.speaker,
            "created_at": unit.stamp,
        }
