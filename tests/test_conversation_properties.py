"""Random conversations: prompts only grow, whatever happens in between, and stay valid."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from conversations import FIELD, FORMATS, request, response, results, turn, user
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from zero_mem import Memory, MemoryController
from zero_mem.controller.messages import WireFormat
from zero_mem.controller.wire.sites import splice, steps
from zero_mem.conversation.history import History

values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=20)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=5), st.dictionaries(st.text(max_size=6), inner, max_size=5)
    ),
    max_leaves=20,
)
tables = st.builds(
    lambda n, word: [{"id": f"{word}-{i}", "state": "open", "note": word * 9} for i in range(n)],
    st.integers(0, 30),
    st.sampled_from(["order", "退款", "[memo:1] save (x)"]),
)
bodies = st.one_of(
    values.map(json.dumps),
    tables.map(lambda rows: json.dumps(rows, ensure_ascii=False)),
    st.text(max_size=200),
    st.text("ab \n[memo:1]", max_size=2000),
)
said = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60)
call_ids = st.sampled_from(["", "c1", "c2", "c3", "x" * 1500])
named_calls = st.tuples(st.sampled_from(["orders", "read"]), values)
calls = st.dictionaries(call_ids, named_calls, max_size=3)
turns = st.lists(st.tuples(said, calls, st.lists(bodies, min_size=3, max_size=3)), max_size=6)


def conversation(wire_format: WireFormat, drawn: Any) -> list[list[Any]]:
    """The items of each turn: what the user says, what the model does, what its tools give."""
    steps = []
    for text, made, texts in drawn:
        named = {call: (tool, {"q": given}) for call, (tool, given) in made.items()}
        answers = results(wire_format, **dict(zip(named, texts, strict=False))) if named else []
        steps.append([user(text), *turn(wire_format, "ok", **named), *answers])
    return steps


def shape(body: Mapping[str, Any], wire_format: WireFormat) -> Any:
    """A body without the texts of its results: what an edit must leave as it is."""

    def bare(value: Any) -> Any:
        if isinstance(value, list):
            return [bare(each) for each in value]
        if not isinstance(value, dict):
            return value
        is_result = value.get("role") == "tool" or "tool_use_id" in value
        is_result = is_result or value.get("type") == "function_call_output"
        hidden = ("content", "output") if is_result else ()
        return {k: bare(v) for k, v in value.items() if k not in hidden}

    listed = [item for item in body[FIELD[wire_format]] if not is_block(item)]
    return [bare(item) for item in listed if item.get("role") != "system"]


def is_block(item: Any) -> bool:
    return bool(item.get("role") == "user" and str(item.get("content")).startswith("<memory>"))


options = st.fixed_dictionaries(
    {
        "share": st.sampled_from([0.05, 0.25, 1.0]),
        "fold": st.sampled_from(["never", "next"]),
        "ephemeral_tail": st.booleans(),
        "inject": st.sampled_from([0, 300]),
    }
)
acts = st.sampled_from(
    ["", "pin", "fact", "touch", "require", "restart", "model", "retry", "back", "edit"]
)


class Agent:
    """A host, its store and the provider's view: what was sent stays sent."""

    def __init__(self, wire_format: WireFormat, folder: str, given: Mapping[str, Any]) -> None:
        self.wire_format, self.given = wire_format, given
        self.url = f"sqlite:///{Path(folder) / 'agent.db'}"
        self.memory = Memory.open(self.url, durability="normal")
        self.model = "m-1"
        self.known: dict[int, list[str]] = {}
        self.controller = self.fresh()

    def fresh(self) -> MemoryController:
        return MemoryController(self.memory.namespace("a"), conversation="c", **self.given)

    def act(self, act: str, number: int) -> list[str]:
        """Do what happens between two calls; give what the next prompt must hold."""
        space = self.memory.namespace("a")
        if act == "pin":
            space.save(f"rule {number}", form="procedural", memory_id="rule")
        if act in ("fact", "require"):
            space.save(f"fact {number} of order 退款", memory_id=f"f{number}")
        if act == "touch" and number:
            space.save(f"rule {number}", memory_id="f0", metadata={"n": number})
        if act == "restart":
            self.memory.close()
            self.memory = Memory.open(self.url, durability="normal")
            self.controller = self.fresh()
        if act == "model":
            self.model, self.controller = "m-2", self.fresh()
        return [f"f{number}"] if act == "require" else []

    def send(self, items: list[Any], require: list[str]) -> None:
        """Prepare a request and compare it with what was sent of the same history.

        It ends with what the model is to answer, so words of its own are left out there.
        """
        while items and ends_in_words(items):
            items = items[:-1]
        body = request(self.wire_format, *items, model=self.model)
        before = json.dumps(body)
        prepared = self.controller.prepare(body, self.wire_format, require=require)
        assert json.dumps(body) == before
        assert shape(prepared, self.wire_format) == shape(body, self.wire_format)
        again = self.fresh().prepare(body, self.wire_format)
        assert again == prepared
        sent = [item for item in prepared[FIELD[self.wire_format]] if not is_tail(item)]
        self.compare([json.dumps(item) for item in items], [json.dumps(item) for item in sent])

    def compare(self, items: list[str], sent: list[str]) -> None:
        """Compare with the longest beginning of this history that was sent before."""
        lengths = [n for n in range(len(items) + 1) if hash(tuple(items[:n])) in self.known]
        for length in lengths[-1:]:
            earlier = self.known[hash(tuple(items[:length]))]
            same = [a == b for a, b in zip(earlier, sent, strict=False)]
            if self.given["fold"] == "next" and length < len(items):
                # Only what was new in the request before may have been folded since.
                same = same[: self.settled(items[:length])]
            assert all(same)
            assert len(sent) >= len(earlier)
        self.known[hash(tuple(items))] = sent

    def settled(self, items: list[str]) -> int:
        """How many messages of a sent request no later one may change, folding or not."""
        lengths = [n for n in range(len(items)) if hash(tuple(items[:n])) in self.known]
        return len(self.known[hash(tuple(items[: lengths[-1]]))]) if lengths else 0


def ends_in_words(items: list[Any]) -> bool:
    """Tell whether the last item is the model's own."""
    return bool(items[-1].get("role") == "assistant" or "arguments" in items[-1])


def is_tail(item: Any) -> bool:
    return is_block(item) and "(for this call only)" in item["content"]


@pytest.mark.req("controller:offload", "controller:safe", "recall:required")
@pytest.mark.parametrize("wire_format", FORMATS)
@given(drawn=turns, done=st.lists(acts, min_size=6, max_size=6), given_options=options)
@settings(max_examples=40, phases=[Phase.explicit, Phase.generate])
def test_no_turn_changes_what_was_sent_before(
    wire_format: WireFormat, drawn: Any, done: list[str], given_options: dict[str, Any]
) -> None:
    """Restarts, other models, retries, edits in mid-history, changed memories: all the same."""
    with tempfile.TemporaryDirectory() as folder:
        agent = Agent(wire_format, folder, given_options)
        try:
            items: list[Any] = []
            for number, (step, act) in enumerate(
                zip(conversation(wire_format, drawn), done, strict=False)
            ):
                require = agent.act(act, number)
                if act == "edit" and items:
                    agent.send([*items[:-1], user(f"edited {number}")], [])
                if act == "retry" and items:
                    agent.send(items, [])
                if act == "back" and given_options["fold"] == "never":
                    agent.act("pin", number)
                    agent.send(items[: len(items) // 2], [])
                answer = turn(wire_format, "so") if items and not ends_in_words(items) else []
                items = [*items, *answer, *step]
                agent.send(items, require)
        finally:
            agent.memory.close()


@pytest.mark.req("controller:offload")
@pytest.mark.parametrize("wire_format", FORMATS)
@given(drawn=turns, cuts=st.lists(st.integers(0, 9), min_size=6, max_size=6), told=said)
@settings(max_examples=40)
def test_reading_on_gives_the_steps_of_reading_anew(
    wire_format: WireFormat, drawn: Any, cuts: list[int], told: str
) -> None:
    """Whether a request goes on from the last one, tries again, or begins elsewhere."""
    history = History()
    items: list[Any] = []
    field = "instructions" if wire_format == "openai_responses" else "system"
    for number, step in enumerate(conversation(wire_format, drawn)):
        items = [*items, *step] if cuts[number] > 2 else [*items[: cuts[number]], *step[1:]]
        system = {field: told} if cuts[number] % 2 else {}
        body = json.loads(json.dumps(request(wire_format, *items, **system)))
        for _ in range(2):
            assert history.steps(body, wire_format) == steps(body, wire_format)
            # A host may keep one list and change it in place.
            body[FIELD[wire_format]].append(user("more"))
            assert history.steps(body, wire_format) == steps(body, wire_format)
            body[FIELD[wire_format]][0]["content"] = "changed"


written = st.one_of(
    st.sampled_from(["[memo:1]", "[memo:1#/0/id]", "[memo:2]", "[memo:1,2]", "see [memo:1] 退"]),
    said,
)
arguments = st.dictionaries(said, st.one_of(written, st.lists(written, max_size=3)), max_size=3)


@pytest.mark.req("controller:by-reference", "controller:safe")
@pytest.mark.parametrize("wire_format", FORMATS)
@given(text=written, made=arguments)
@settings(max_examples=60)
def test_what_comes_back_is_what_the_provider_produced(
    wire_format: WireFormat, text: str, made: dict[str, Any]
) -> None:
    space = Memory.open("memory://").namespace("a")
    space.save(json.dumps([{"id": "A-1"}]), kind="tool_result")
    space.save("a plain body", kind="tool_result")
    subject = MemoryController(space, conversation="c")
    subject.show("1", "2")
    own = turn(wire_format, text, c1=("orders", made))
    seen = subject.absorb(response(wire_format, own), wire_format).response
    if wire_format == "openai_chat":
        back = [seen["choices"][0]["message"]]
    elif wire_format == "openai_responses":
        back = seen["output"]
    else:
        back = [{"role": "assistant", "content": seen["content"]}]
    given = request(wire_format, user("go"), *back, results(wire_format, c1="done"))
    prepared = MemoryController(space, conversation="c").prepare(given, wire_format)
    listed = [item for item in prepared[FIELD[wire_format]] if item.get("role") != "system"]
    assert json.dumps(listed[1 : 1 + len(own)]) == json.dumps(own)


names = st.sampled_from(["role", "type", "content", "text", "id", "name", "arguments", "output"])
words = st.sampled_from(["user", "tool", "tool_use", "message", "memory_read", "[memo:1]", "c1"])
junk = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), words),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(names, inner, max_size=5)),
    max_leaves=30,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every path into a body."""
    inside: list[tuple[Any, Any]] = list(value.items()) if isinstance(value, dict) else []
    inside += enumerate(value) if isinstance(value, list) else []
    return [path, *(deep for step, each in inside for deep in places(each, (*path, step)))]


@pytest.mark.req("controller:safe")
@pytest.mark.parametrize("wire_format", FORMATS)
@given(data=st.data(), wrong=junk)
@settings(max_examples=100)
def test_what_no_provider_would_take_passes_without_an_error(
    wire_format: WireFormat, data: st.DataObject, wrong: Any
) -> None:
    subject = MemoryController(Memory.open("memory://").namespace("a"), conversation="c")
    made = turn(wire_format, "see [memo:1]", c1=("orders", {"q": "[memo:1]"}))
    for body in (
        request(wire_format, user("go"), *made, results(wire_format, c1="[memo:1] " * 99)),
        response(wire_format, made),
    ):
        place = data.draw(st.sampled_from(places(body)[1:]))
        broken = splice(body, {place: wrong})
        before = json.dumps(broken)
        subject.prepare(broken, wire_format)
        subject.absorb(broken, wire_format)
        assert json.dumps(broken) == before
