"""The ephemeral tail and folding: what one call's prompt has beside what is final."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zero_mem import handles
from zero_mem.controller.core import Offloader
from zero_mem.controller.definitions import READ_TOOL
from zero_mem.controller.folding import folded
from zero_mem.controller.messages import Message, ToolCall
from zero_mem.controller.tail import Standing, Tail, TailSelector, standing_share, tail
from zero_mem.errors import InvalidInput
from zero_mem.text.tokens import tokenizer

pytestmark = pytest.mark.req("controller:offload")

TOKENS = tokenizer("o200k")


def user(text: str) -> Message:
    return Message(role="user", text=text)


def says(text: str = "", *opaque: str) -> Message:
    return Message(role="assistant", text=text, opaque=opaque)


def asks(**arguments: Any) -> Message:
    call = ToolCall(call_id="c", name="look", arguments=json.dumps(arguments))
    return Message(role="assistant", calls=(call,))


def result(value: Any, tool: str = "look") -> Message:
    return Message(
        role="tool", text=value if isinstance(value, str) else json.dumps(value), tool=tool
    )


def booking(number: int) -> dict[str, Any]:
    return {
        "booking_id": f"BKG{number:04d}",
        "remark": "The guest wants a quiet room that looks out on the garden. " * 4,
        "nightly_price": 80 + number,
        "guests": [
            {"guest_id": f"guest_{number}_{at}", "meal_plan": f"plan-{at}"} for at in range(4)
        ],
    }


def standing_for(history: list[Message], share: float = 0.25) -> dict[int, Standing]:
    """What an offloader puts in the place of the results, beside a tail."""
    offloader = Offloader(share=standing_share(share), tokenizer=TOKENS)
    standing: dict[int, Standing] = {}
    for at, message in enumerate(history):
        if message.role == "tool":
            memory_id = str(len(standing) + 1)
            text = offloader.insert(message, memory_id).text
            standing[at] = Standing(memory_id=memory_id, text=text)
        else:
            offloader.observe(message)
    return standing


def block(history: list[Message], share: float = 0.25) -> Tail:
    return tail(history, standing_for(history, share), share=share, tokenizer=TOKENS)


HISTORY = [
    user("Show me the bookings."),
    asks(page=1),
    result([booking(number) for number in range(6)]),
    says("There are six."),
]


def test_a_tail_quotes_what_the_newest_words_name() -> None:
    plain = block([*HISTORY, user("Thanks.")])
    asked = block([*HISTORY, user("What is the nightly price of each?")])
    assert "nightly_price" not in plain.text
    assert "nightly_price" in asked.text
    assert "85" in asked.text


def test_a_tail_repeats_nothing_that_stands_under_the_same_record() -> None:
    history = [*HISTORY, user("Which booking_id, guest_id and nightly_price have they?")]
    standing = standing_for(history)
    made = tail(history, standing, share=0.25, tokenizer=TOKENS)
    assert "BKG0003" in standing[2].text
    assert made.text
    assert "BKG0003" not in made.text


def test_what_a_newer_result_has_is_taken_from_there() -> None:
    again = [*HISTORY, asks(page=1), result([booking(number) for number in range(6)])]
    made = block([*again, says("The same."), user("What is the meal_plan of each guest?")])
    assert {span.memory_id for span in made.spans} <= {"2"}


def test_a_new_result_is_quoted_more_fully_than_one_that_was_answered() -> None:
    fresh = HISTORY[:-1]
    assert block(fresh).tokens > block([*HISTORY, user("Thanks.")]).tokens


def test_lines_of_a_text_stand_under_their_handle_and_number() -> None:
    source = "\n".join(
        [f"def step_{n}(state): return state" for n in range(80)]
        + ["# the refund is settled below"]
        + ["def settle_refund(order): return order.ledger"]
    )
    history = [user("Show the steps."), asks(file="a.py"), result(source), says("Here.")]
    history += [user("Where is settle_refund? refund ledger order")]
    standing = {2: Standing(memory_id="7", text="[memo:7] save +82")}
    made = tail(history, standing, share=0.25, tokenizer=TOKENS)
    head, *quoted = made.text.rstrip("\n").split("\n")
    assert head == "[memo:7]"
    assert "def settle_refund(order): return order.ledger" in quoted
    assert set(source.split("\n")) >= {line for line in quoted if not line.startswith("@")}
    assert any(line.startswith("@") for line in quoted)


def test_spans_name_the_result_that_each_part_quotes() -> None:
    made = block([*HISTORY, user("What is the nightly price of each?")])
    assert made.tokens == TOKENS.count(made.text)
    assert made.spans[0].start == 0
    assert made.spans[-1].end == len(made.text)
    for span in made.spans:
        assert made.text[span.start :].startswith(f"[memo:{span.memory_id}]\n")
        assert (span.origin, bool(span.reason)) == (2, True)


def test_a_result_without_a_handle_is_not_quoted() -> None:
    history = [user("hi"), asks(), result({"id": "B-1"}), result([booking(1)], READ_TOOL)]
    standing = {2: Standing(memory_id="1", text='{"id": "B-1"}')}
    assert tail(history, standing, share=1, tokenizer=TOKENS) == Tail()


def test_what_looks_like_a_handle_is_escaped_in_a_tail() -> None:
    value = [{"ref": f"[memo:9] R{n:04d}", "pad": "x " * 40} for n in range(4)]
    history = [user("Which ref?"), asks(), result(value)]
    standing = {2: Standing(memory_id="7", text="[memo:7] save +8")}
    made = tail(history, standing, share=1, tokenizer=TOKENS)
    assert "R0002" in made.text
    assert [found.references[0].memory_id for found in handles.find(made.text)] == ["7"]


@pytest.mark.parametrize("share", [0, 1.5])
def test_a_share_is_above_nothing_and_at_most_all(share: float) -> None:
    with pytest.raises(InvalidInput, match="share"):
        TailSelector(share=share, tokenizer=TOKENS)


messages = st.one_of(
    st.text(max_size=30).map(user),
    st.text(max_size=30).map(says),
    st.integers(0, 9).map(lambda number: result([booking(number), booking(number + 1)])),
    st.text(max_size=200).map(result),
)


@given(st.lists(messages, max_size=10), st.sampled_from([0.1, 0.25, 1.0]))
def test_a_tail_is_a_function_of_the_history_and_keeps_to_its_limit(
    history: list[Message], share: float
) -> None:
    standing = standing_for(history, share)
    selector = TailSelector(share=share, tokenizer=TOKENS)
    for at, message in enumerate(history):
        selector.take(message, standing.get(at))
    made = selector.select()
    assert made == selector.select() == tail(history, standing, share=share, tokenizer=TOKENS)
    full = sum(TOKENS.count(m.text) for m in history if m.role == "tool")
    assert made.tokens <= 1.5 * share * (full + 500)


def test_a_result_folds_on_the_next_call_and_never_later() -> None:
    history = [user("a"), asks(), result("one"), asks(), result("two"), says("done"), user("b")]
    assert folded(history[:3]) == frozenset()
    assert folded(history[:4]) == {2}
    assert folded(history) == {2, 4}


def test_a_result_that_signed_thinking_has_read_is_not_folded() -> None:
    thought = says("hm", "thinking")
    history = [user("a"), asks(), result("one"), thought, asks(), result("two"), says("done")]
    assert folded(history) == {5}


@given(st.lists(messages, max_size=12))
def test_a_fold_is_never_taken_back_and_never_reaches_behind_an_answer(
    history: list[Message],
) -> None:
    for stop in range(1, len(history) + 1):
        before, now = folded(history[: stop - 1]), folded(history[:stop])
        last = max(
            (i for i, m in enumerate(history[: stop - 1]) if m.role == "assistant"), default=-1
        )
        assert before <= now
        assert all(at > last for at in now - before)
