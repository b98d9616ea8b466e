"""An offloader that goes on decides as one that starts anew, whatever history it is given."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zero_mem.controller.core import Offloader
from zero_mem.controller.messages import Message, ToolCall
from zero_mem.conversation.feed import Feed
from zero_mem.text.tokens import tokenizer

words = st.sampled_from(["late", "order A-17", "refund 退款", "see row 3", ""])
rows = st.integers(1, 12).map(
    lambda n: str([{"id": f"A-{i}", "state": "late" if i == 3 else "sent"} for i in range(n)])
)
bodies = st.one_of(rows.map(lambda text: text.replace("'", '"')), st.text(max_size=300))
said = st.builds(lambda text: Message(role="user", text=text), words)
called = st.builds(
    lambda text: Message(
        role="assistant",
        text=text,
        calls=(ToolCall(call_id="c", name="t", arguments='{"id": "A-3"}'),),
    ),
    words,
)
returned = st.builds(lambda text: Message(role="tool", text=text, tool="t"), bodies)
histories = st.lists(st.one_of(said, called, returned), max_size=9)
make = partial(Offloader, share=0.2, tokenizer=tokenizer("o200k"))


def decided(feed: Feed, history: list[Message], known: dict[int, str]) -> dict[int, str]:
    """Feed a history, results that are known by their text, and decide the others."""
    fed = feed.start()
    texts: dict[int, str] = {}
    for at, message in enumerate(history):
        if message.role != "tool":
            fed.observe(message)
        elif at in known:
            fed.adopt(message, known[at])
        else:
            texts[at] = fed.insert(message, str(at + 1)).text
    feed.keep(fed)
    return texts


@pytest.mark.req("controller:offload")
@given(histories, st.lists(st.tuples(st.integers(0, 9), histories), max_size=4))
@settings(max_examples=60)
def test_going_on_decides_as_starting_anew(
    first: list[Message], later: list[tuple[int, list[Message]]]
) -> None:
    kept = Feed(make)
    history, known = first, decided(kept, first, {})
    for cut, more in later:
        # An edit in mid-history forgets what came after it; a longer history keeps all.
        history = [*history[: max(0, len(history) - cut)], *more]
        known = {at: text for at, text in known.items() if at < len(history) - len(more)}
        anew: dict[int, str] = decided(Feed(make), history, known)
        assert decided(kept, history, known) == anew
        known |= anew


@pytest.mark.req("controller:offload")
def test_a_longer_history_is_fed_from_where_the_last_one_ended() -> None:
    fed: list[str] = []

    class Counted(Offloader):
        def observe(self, message: Message) -> None:
            fed.append(message.text)
            super().observe(message)

    feed = Feed(partial(Counted, share=0.2, tokenizer=tokenizer("o200k")))
    history = [Message(role="user", text=f"m{n}") for n in range(3)]
    result: Any = Message(role="tool", text='[{"id": "A-1"}]', tool="t")
    known = decided(feed, [*history, result], {})
    assert fed == ["m0", "m1", "m2"]
    decided(feed, [*history, result, Message(role="user", text="new"), result], known)
    assert fed == ["m0", "m1", "m2", "new"]
