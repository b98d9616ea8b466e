"""Vector RAG in a replay: the latest messages, and the nearest passages of the earlier ones."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from replay_runs import Words, calls, orders, refund_run, result, run, says, system, user
from test_replay_strategies import prompts, texts

from zero_mem.controller.messages import Message
from zero_mem.errors import EmbedderUnavailable
from zero_mem.models.embedder import Rows
from zero_mem.models.fake import FakeEmbedder
from zero_mem.replay.engine import run as replay
from zero_mem.replay.prompt import INJECTED
from zero_mem.replay.strategies import FullConcatenation
from zero_mem.replay.vector import VectorRag

pytestmark = pytest.mark.req("ledger:compare")


def talk(count: int) -> list[Message]:
    return [m for n in range(count) for m in (user(f"topic{n} please"), says(f"noted topic{n}"))]


def rag(**options: int) -> VectorRag:
    return VectorRag(embedder=FakeEmbedder(), **options)


def test_short_runs_are_sent_whole() -> None:
    transcript = run(system("s"), user("a"), says("b"), user("c"), says("d"))
    for entries in prompts(rag(), transcript):
        assert all(entry.origin != INJECTED for entry in entries)


def test_the_passage_nearest_to_the_question_comes_back_with_its_score() -> None:
    transcript = run(
        user("the violin teacher lives in Lucca"),
        *talk(8),
        user("where does the violin teacher live"),
        says("In Lucca."),
    )
    *_, last = prompts(rag(keep=4, top=2), transcript)
    injected = last[-1]
    assert injected.origin == INJECTED
    assert "user: the violin teacher lives in Lucca" in injected.message.text
    marked = {injected.message.text[s.start : s.end]: s.reason for s in injected.spans}
    assert marked["the violin teacher lives in Lucca"].startswith("passage of message 1, cosine 0.")
    assert len(injected.spans) == 2


def test_a_long_result_is_cut_into_passages_of_whole_lines() -> None:
    text = "\n".join(f"row {n} of the long table" for n in range(200))
    transcript = run(
        user("read it"),
        calls(("c", "read", {})),
        result("c", "read", text),
        *talk(8),
        user("row 137 of the long table"),
        says("there"),
    )
    *_, last = prompts(rag(keep=4, top=3, passage=200), transcript)
    (injected,) = [entry for entry in last if entry.origin == INJECTED]
    results = [span for span in injected.spans if span.column == "tool_results"]
    assert results
    for span in results:
        lines = injected.message.text[span.start : span.end].splitlines()
        assert all(line in text.splitlines() for line in lines)
        assert span.end - span.start <= 200


def test_it_sees_only_the_past_and_keeps_calls_with_their_results() -> None:
    transcript = refund_run(steps=8)
    whole = prompts(rag(keep=4), transcript)
    for cut in range(3, len(transcript.messages)):
        part = run(*transcript.messages[:cut])
        made = prompts(rag(keep=4), part)
        assert [texts(p) for p in made] == [texts(p) for p in whole[: len(made)]]
    for entries in whole:
        for before, entry in pairwise(entries):
            if entry.message.role == "tool":
                assert before.message.calls or before.message.role == "tool"


def test_values_in_a_passage_count_as_visible_and_its_tokens_are_counted() -> None:
    transcript = run(
        user("list them"),
        calls(("a", "list_orders", {})),
        result("a", "list_orders", orders(2)),
        *talk(8),
        user("refund the shipped parcel order"),
        calls(("b", "refund", {"order_id": "ORD-00001"})),
        result("b", "refund", "done"),
        says("ok"),
    )
    found = replay([transcript], [FullConcatenation(), rag(keep=4)], tokenizer=Words(), overhead="")
    outcome = found.outcome("vector_rag")
    assert outcome is not None
    assert (outcome.seen.values, outcome.seen.visible) == (1, 1)
    assert "fake" in outcome.note


def test_an_embedder_that_fails_ends_the_replay_with_its_name() -> None:
    class Broken(FakeEmbedder):
        def embed(self, texts: Sequence[str], *, query: bool) -> Rows:
            raise OSError("secret text")

    transcript = run(*talk(8), says("end"))
    strategy = VectorRag(embedder=Broken(), keep=2)
    with pytest.raises(EmbedderUnavailable, match="fake failed: OSError") as error:
        replay([transcript], [strategy], tokenizer=Words())
    assert "secret text" not in str(error.value)
