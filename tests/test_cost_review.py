"""What visible memories cost in real runs, and whether a later output needed them."""

from __future__ import annotations

from typing import Any

import pytest

from zero_mem import Blob, Json, ZeroMemRuntime
from zero_mem.policy.cost_review import Call, Exposure, Run, review_cost, values_of
from zero_mem.space import Namespace
from zero_mem.text.tokens import tokenizer

pytestmark = pytest.mark.req("policy:cost-review")

COUNT = tokenizer("o200k")
BODY = "Prefers quiet hotels near the station. " * 8 + "Loyalty number: ZX-4417"


def exposure(body: Any = BODY, *, first: int = 0, visibility: Any = "pinned") -> Exposure:
    return Exposure(
        memory_id="7", kind="user_pref", visibility=visibility, body=body, first_call=first
    )


def run(*outputs: str, given: str = "", shown: Exposure | None = None) -> Run:
    calls = tuple(Call(given=given, output=output) for output in outputs)
    return Run(calls=calls, exposures=(shown or exposure(),))


def test_what_nothing_needed_is_cheapest_hidden() -> None:
    (review,) = review_cost([run("ok", "fine", "bye")], tokenizer=COUNT)
    assert (review.kind, review.shown, review.used, review.uses) == ("user_pref", 1, 0, 0)
    assert (review.cheapest, review.saving) == ("hidden", review.tokens)
    assert review.tokens == 3 * COUNT.count(f"[memo:7] user_pref: {BODY}\n")


def test_one_late_use_is_cheaper_read_than_carried() -> None:
    outputs = ["ok"] * 19 + ['{"loyalty": "ZX-4417"}']
    (review,) = review_cost([run(*outputs)], tokenizer=COUNT)
    assert (review.used, review.uses, review.cheapest) == (1, 1, "handle")
    assert "hidden" not in review.by_policy
    assert 0 < review.saving < review.tokens


def test_what_every_call_needs_is_worth_pinning() -> None:
    short = exposure("Asia/Shanghai")
    (review,) = review_cost([run(*["at 9 Asia/Shanghai"] * 10, shown=short)], tokenizer=COUNT)
    assert (review.uses, review.cheapest, review.saving) == (10, "pinned", 0)


def test_what_the_host_had_already_said_is_no_use_of_the_memory() -> None:
    (review,) = review_cost([run("ZX-4417", given="I am ZX-4417")], tokenizer=COUNT)
    assert review.used == 0


def test_a_use_before_the_memory_was_shown_does_not_count() -> None:
    early = run("ZX-4417", "ok", shown=exposure(first=1))
    (review,) = review_cost([early], tokenizer=COUNT)
    assert (review.used, review.tokens) == (0, COUNT.count(f"[memo:7] user_pref: {BODY}\n"))


def test_kinds_are_summed_over_runs_and_the_dearest_comes_first() -> None:
    other = Exposure(memory_id="8", kind="rule", visibility="summary", body="x-1", first_call=0)
    runs = [run("ok"), run("ok"), run("ok", shown=other)]
    reviews = review_cost(runs, tokenizer=COUNT)
    assert [(r.kind, r.visibility, r.shown) for r in reviews] == [
        ("user_pref", "pinned", 2),
        ("rule", "summary", 1),
    ]


@pytest.mark.parametrize(
    ("body", "values"),
    [
        (Json({"id": 57123, "ok": True, "tags": ["red", None], "n": 7}), {"57123", "red"}),
        ("退款状态: 审核通过", {"退款状态: 审核通过", "审核通过"}),
        ("a long text about order #W12, " * 3 + "due 2026-03-01", {"W12", "2026-03-01"}),
        (Blob(data=b"x"), set()),
    ],
)
def test_values_are_what_can_be_recognised_when_quoted(body: Any, values: set[str]) -> None:
    assert values_of(body) == values


@pytest.mark.req("inspect:prompt")
def test_a_runtime_reviews_its_own_prompts(space: Namespace) -> None:
    space.save(BODY, form="procedural", kind="rule", memory_id="r")
    space.save("order W-991 is open", kind="task_state", memory_id="t")
    runtime = ZeroMemRuntime(space)
    messages = [{"role": "user", "content": "hi"}]
    runtime.build_prompt(messages)
    messages += [{"role": "assistant", "content": "ok"}, {"role": "user", "content": "and?"}]
    runtime.build_prompt(messages, require=["t"])
    reviews = runtime.review_cost([Call(output="ok"), Call(output="closing W-991")])
    assert [(r.kind, r.used, r.shown) for r in reviews] == [("rule", 0, 1), ("task_state", 1, 1)]
    assert reviews[0].tokens == 2 * COUNT.count(f"[memo:r] rule: {BODY}\n")
