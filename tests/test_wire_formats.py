"""Each wire format reads into the same neutral messages, and those write as chat messages."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zero_mem.controller.messages import Message, ToolCall, Transcript
from zero_mem.controller.wire import claude_code
from zero_mem.controller.wire.formats import parse
from zero_mem.controller.wire.openai_chat import render_chat
from zero_mem.replay.transcripts import read

pytestmark = pytest.mark.req("ledger:compare")

chat = partial(parse, wire_format="openai_chat")
responses = partial(parse, wire_format="openai_responses")
blocks = partial(parse, wire_format="anthropic")

FIXTURES = Path(__file__).parent / "fixtures" / "wire"
CASES = ["chat.json", "responses.json", "anthropic.json", "session.jsonl", "log.jsonl"]


def only(name: str) -> Transcript:
    reading = read(FIXTURES / name)
    assert reading.defects == ()
    [run] = reading.transcripts
    return run


def outline(run: Transcript) -> list[tuple[str, str, list[str], tuple[str, ...]]]:
    """Role, text, tools (called or answering) and opaque parts of each message."""
    return [
        (m.role, m.text, [c.name for c in m.calls] or [m.tool] * bool(m.tool), m.opaque)
        for m in run.messages
    ]


def by_id(messages: list[dict[str, Any]], parse: Callable[..., Any]) -> list[Message]:
    return list(parse(messages).transcripts[0].messages)


def test_chat_reads_every_kind_of_message() -> None:
    assert outline(only("chat.json")) == [
        ("system", "You help in a bicycle shop.", [], ()),
        ("user", "Do you have this one?\n红色的。", [], ("image_url",)),
        ("assistant", "", ["find_bike", "find_bike"], ()),
        ("tool", '{"sku": "RB-17", "stock": 2}', ["find_bike"], ()),
        ("tool", "none\nin stock", ["find_bike"], ()),
        ("assistant", "Let me look at the price.", ["price"], ()),
        ("tool", "480.00", ["price"], ()),
        ("assistant", "", ["reserve", "notify"], ()),
        ("tool", "reserved", ["reserve"], ()),
        ("tool", "", ["notify"], ()),
        ("assistant", "", ["discount"], ()),
        ("tool", "5 %", ["discount"], ()),
        ("assistant", "", ["note"], ()),
        ("tool", "noted", ["note"], ()),
        ("assistant", "I cannot take card numbers here.", [], ()),
        ("user", "Fine, I pay in the shop.", [], ()),
        ("assistant", "It is reserved: 456.00.", [], ("reasoning_content",)),
    ]


@pytest.mark.req("ledger:columns")
def test_chat_usage_counts_no_token_twice() -> None:
    run = only("chat.json")
    assert run.name == "bike-shop-1"
    assert run.model == "gpt-6.2"
    assert run.tools[0]["function"]["name"] == "find_bike"
    assert run.usage == {2: {"input": 200, "cache_read": 600, "cache_write": 100, "output": 40}}


def test_responses_items_of_one_output_are_one_message() -> None:
    assert outline(only("responses.json")) == [
        ("system", "You mend bicycles.", [], ()),
        ("user", "The chain slips.", [], ()),
        ("assistant", "Checking two parts.", ["parts", "parts"], ("reasoning",)),
        ("tool", "CS-11", ["parts"], ("input_image",)),
        ("tool", "CN-53", ["parts"], ()),
        ("assistant", "", [], ("shell_call",)),
        ("user", "", [], ("shell_call_output",)),
        ("assistant", "", ["torque"], ()),
        ("tool", "ok", ["torque"], ()),
        ("assistant", "", ["order"], ("mcp_call",)),
        ("tool", "ordered", ["order"], ()),
        ("user", "", [], ("item_reference",)),
        ("user", "", [], ("compaction",)),
        ("system", "Answer in one line.", [], ()),
        ("assistant", "I cannot say more.", [], ()),
    ]


def test_responses_results_keep_their_own_order() -> None:
    results = [m for m in only("responses.json").messages if m.role == "tool"]
    assert [m.call_id for m in results[:2]] == ["fc_b", "fc_a"]


def test_anthropic_results_come_first_each_on_its_own() -> None:
    parts = ("image", "document", "search_result", "tool_reference")
    run = only("anthropic.json")
    assert outline(run) == [
        ("system", "You run a library desk.", [], ()),
        ("user", "Who has these three books?", [], ()),
        ("assistant", "Looking.", ["loan"] * 3, ("thinking", "redacted_thinking")),
        ("tool", "reader 4471", ["loan"], parts),
        ("tool", "reader 17", ["loan"], ()),
        ("tool", "no such book", ["loan"], ()),
        ("user", "And please hurry.", [], ()),
        (
            "assistant",
            "Readers 4471 and 17.",
            [],
            ("server_tool_use", "web_search_tool_result"),
        ),
        ("user", "Call them.", [], ()),
        ("assistant", "", ["call"], ()),
        ("tool", "", ["call"], ()),
        ("assistant", "Done.", [], ()),
    ]
    assert [m.is_error for m in run.messages if m.role == "tool"] == [False, False, True, False]
    assert run.messages[2].calls[0].arguments == '{"book":"一号"}'


@pytest.mark.req("ledger:columns")
def test_anthropic_usage_is_kept_as_it_is() -> None:
    assert only("anthropic.json").usage == {
        2: {"input": 12, "cache_read": 800, "cache_write": 90, "output": 55}
    }


def test_session_pieces_side_chains_and_compaction() -> None:
    reading = read(FIXTURES / "session.jsonl")
    main, side, after = reading.transcripts
    assert reading.defects == ()
    assert outline(main) == [
        ("user", "<note>local commands follow</note>", [], ()),
        ("user", "Count the bicycles.", [], ()),
        ("assistant", "I count.", ["Bash", "Task"], ("thinking",)),
        ("tool", "17 bikes.txt", ["Bash"], ()),
        ("tool", "Two more there.", ["Task"], ()),
        ("assistant", "Nineteen.", [], ()),
    ]
    assert outline(side) == [
        ("user", "Look in the cellar.", [], ()),
        ("assistant", "Two more there.", [], ()),
    ]
    assert [m.text for m in after.messages] == [
        "Summary: nineteen bicycles.",
        "And the tyres?",
        "Thirty-eight.",
    ]
    assert [main.name, side.name, after.name] == ["5e55-10", "5e55-10/u8", "5e55-10#2"]


@pytest.mark.req("ledger:columns")
def test_session_counts_a_split_response_once() -> None:
    main = read(FIXTURES / "session.jsonl").transcripts[0]
    figures = {"input": 5, "cache_read": 300, "cache_write": 20}
    assert main.usage == {2: {**figures, "output": 64}, 5: {**figures, "output": 12}}
    assert [m.source_line for m in main.messages] == [3, 4, 5, 8, 12, 15]


def test_session_whose_only_run_has_no_output_is_kept() -> None:
    entry = {"type": "user", "message": {"role": "user", "content": "hello"}, "sessionId": "s"}
    [run] = claude_code.parse([entry]).transcripts
    assert [m.text for m in run.messages] == ["hello"]


def test_two_side_chains_are_two_runs() -> None:
    def side(uuid: str, parent: str | None, role: str) -> dict[str, Any]:
        message = {"role": role, "content": uuid, "id": uuid}
        names = {"uuid": uuid, "parentUuid": parent, "sessionId": "s"}
        return {"type": role, "message": message, "isSidechain": True, **names}

    parsed = claude_code.parse(
        [
            side("a1", None, "user"),
            side("b1", None, "user"),
            side("a2", "a1", "assistant"),
            side("b2", "b1", "assistant"),
        ]
    )
    texts = [[m.text for m in run.messages] for run in parsed.transcripts]
    assert texts == [["a1", "a2"], ["b1", "b2"]]


def test_log_folds_requests_into_runs() -> None:
    reading = read(FIXTURES / "log.jsonl")
    parcel, title = reading.transcripts
    assert reading.defects == ()
    assert [m.role for m in parcel.messages] == [
        *("system", "user", "assistant", "tool", "assistant")
    ]
    assert [figures["output"] for figures in parcel.usage.values()] == [10, 6]
    assert sorted(parcel.usage) == [2, 4]
    assert [m.text for m in title.messages] == ["Title for: where is parcel 881?", "A parcel"]


def test_log_that_only_names_the_response_before(tmp_path: Path) -> None:
    call = {"type": "function_call", "call_id": "c", "name": "track", "arguments": "{}"}
    text = {"type": "message", "role": "assistant", "content": [{"type": "output_text"}]}
    text["content"] = [{"type": "output_text", "text": "In Leipzig."}]
    output = {"type": "function_call_output", "call_id": "c", "output": "Leipzig"}
    usage = {"input_tokens": 50, "output_tokens": 9, "input_tokens_details": {"cached_tokens": 30}}
    log = [
        {
            "request": {"model": "m", "instructions": "Brief.", "input": "Where?"},
            "response": {"id": "resp_1", "output": [call], "usage": usage},
        },
        {
            "request": {
                "model": "m",
                "instructions": "Brief.",
                "previous_response_id": "resp_1",
                "input": [output],
            },
            "response": {"id": "resp_2", "output": [text], "usage": usage},
        },
    ]
    path = tmp_path / "log"
    path.write_text("".join(json.dumps(pair) + "\n" for pair in log))
    reading = read(path)
    [run] = reading.transcripts
    assert reading.defects == ()
    assert [(m.role, m.text) for m in run.messages] == [
        ("system", "Brief."),
        ("user", "Where?"),
        ("assistant", ""),
        ("tool", "Leipzig"),
        ("assistant", "In Leipzig."),
    ]
    assert run.usage[4] == {"input": 20, "cache_read": 30, "cache_write": 0, "output": 9}


def test_counting_and_retried_requests_begin_no_run(tmp_path: Path) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
    answer = {"choices": [{"message": {"role": "assistant", "content": "Hello"}}]}
    log = [body, {"request": body, "response": answer}, body]
    path = tmp_path / "log"
    path.write_text("\n".join(json.dumps(entry) for entry in log))
    [run] = read(path).transcripts
    assert [m.text for m in run.messages] == ["Hi", "Hello"]


@pytest.mark.parametrize(
    ("results", "paired"),
    [
        ([("a", "1"), ("b", "2"), ("a", "3")], ["one", "two", "three"]),
        ([("b", "2"), ("a", "1"), ("a", "3")], ["two", "one", "three"]),
        ([("", "1"), ("", "2"), ("", "3")], ["one", "two", "three"]),
    ],
)
def test_results_pair_by_id_then_by_place(
    results: list[tuple[str, str]], paired: list[str]
) -> None:
    calls = [
        {"id": call_id, "function": {"name": name, "arguments": "{}"}}
        for call_id, name in [("a", "one"), ("b", "two"), ("a", "three")]
    ]
    tools = [{"role": "tool", "tool_call_id": i, "content": text} for i, text in results]
    messages = by_id([{"role": "assistant", "tool_calls": calls}, *tools], chat)
    assert [m.tool for m in messages[1:]] == paired


def test_a_repeated_id_is_answered_in_the_newest_turn() -> None:
    def turn(name: str) -> dict[str, Any]:
        return {"role": "assistant", "tool_calls": [{"id": "x", "function": {"name": name}}]}

    answer = {"role": "tool", "tool_call_id": "x", "content": "yes"}
    parsed = chat([turn("first"), turn("second"), answer])
    assert parsed.transcripts[0].messages[-1].tool == "second"
    assert [d.problem for d in parsed.defects] == ["call without a result: first (x)"]
    assert parsed.defects[0].record == "message 1"


def test_absent_ids_are_filled_in_so_that_pairs_stay_pairs() -> None:
    calls = [{"function": {"name": "one"}}, {"id": None, "function": {"name": "two"}}]
    results = [{"role": "tool", "content": "1"}, {"role": "tool", "content": "2"}]
    messages = by_id([{"role": "assistant", "tool_calls": calls}, *results], chat)
    assert [c.call_id for c in messages[0].calls] == ["call_1", "call_2"]
    assert [m.call_id for m in messages[1:]] == ["call_1", "call_2"]


def test_calls_at_the_very_end_are_no_defect() -> None:
    last = {"role": "assistant", "tool_calls": [{"id": "x", "function": {"name": "end"}}]}
    assert chat([{"role": "user", "content": "go"}, last]).defects == ()


@pytest.mark.req("pkg:errors")
@pytest.mark.parametrize(
    ("parse", "bad"),
    [
        (chat, 7),
        (chat, {"role": "wizard", "content": "x"}),
        (chat, {"content": "x"}),
        (chat, {"role": ["user"], "content": "x"}),
        (chat, {"role": "tool", "tool_call_id": "gone", "content": "x"}),
        (chat, {"role": "user", "content": [None]}),
        (chat, {"role": "user", "content": [{"type": "text"}]}),
        (chat, {"role": "user", "content": {"a": 1}}),
        (chat, {"role": "assistant", "tool_calls": "x"}),
        (chat, {"role": "assistant", "tool_calls": [None]}),
        (chat, {"role": "assistant", "tool_calls": [{"function": {}}, 1]}),
        (responses, None),
        (responses, {"type": "message", "role": "wizard", "content": "x"}),
        (responses, {"type": "function_call_output", "output": "x"}),
        (responses, {"type": "function_call", "arguments": "{}"}),
        (blocks, [1]),
        (blocks, {"role": "tool", "content": "x"}),
        (blocks, {"role": "user", "content": [{"no": "type"}]}),
        (blocks, {"role": "user", "content": [{"type": "tool_use", "name": "x"}]}),
        (blocks, {"role": "assistant", "content": [{"type": "tool_result"}]}),
        (claude_code.parse, 1),
        (claude_code.parse, {"type": "user", "message": "text"}),
    ],
)
def test_a_bad_record_is_a_defect_and_the_rest_is_read(parse: Callable[..., Any], bad: Any) -> None:
    good: dict[str, Any] = {"role": "user", "content": "still here"}
    if parse is claude_code.parse:
        good = {"type": "user", "message": good}
    parsed = parse([bad, good], name="run", file="f.json", lines=[4, 5])
    assert {(d.file, d.line) for d in parsed.defects} == {("f.json", 4)}
    assert all(d.record.startswith("run ") for d in parsed.defects)
    assert parsed.transcripts[0].messages[-1].text == "still here"
    assert parsed.transcripts[0].messages[-1].source_line == 5


def test_content_of_another_type_is_read_as_json() -> None:
    parsed = chat([{"role": "user", "content": {"a": [1, "二"]}}])
    assert parsed.transcripts[0].messages[0].text == '{"a":[1,"二"]}'


@pytest.mark.parametrize("name", CASES)
def test_written_as_chat_and_read_again_is_the_same(name: str) -> None:
    for run in read(FIXTURES / name).transcripts:
        written = render_chat(run.messages)
        parsed = chat(written)
        assert parsed.defects == ()
        assert render_chat(parsed.transcripts[0].messages) == written
        assert [m.text for m in parsed.transcripts[0].messages] == [m.text for m in run.messages]


@pytest.mark.req("controller:safe")
def test_a_cut_between_call_and_result_drops_the_orphan() -> None:
    call = ToolCall(call_id="a", name="look", arguments="{}")
    messages = [
        Message(role="assistant", calls=(call,)),
        Message(role="tool", call_id="a", tool="look", text="seen"),
        Message(role="user", text="and now?"),
    ]
    assert render_chat(messages[1:]) == [{"role": "user", "content": "and now?"}]
    assert [m["role"] for m in render_chat(messages)] == ["assistant", "tool", "user"]


TEXT = st.text(max_size=6)
IDS = st.sampled_from(["", "a", "b", "c" * 1500]) | st.none()
CALL = st.fixed_dictionaries(
    {
        "id": IDS,
        "function": st.fixed_dictionaries(
            {"name": st.sampled_from(["look", "move"]), "arguments": TEXT}
        ),
    }
)
PARTS = st.lists(st.sampled_from(["text", "image_url", "refusal"]), max_size=3).map(
    lambda kinds: [{"type": kind, "text": "t", "refusal": "r"} for kind in kinds]
)
CONTENT = st.none() | TEXT | PARTS
MESSAGE = st.one_of(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "system", "developer"]), "content": CONTENT}
    ),
    st.fixed_dictionaries({"role": st.just("tool"), "tool_call_id": IDS, "content": CONTENT}),
    st.fixed_dictionaries(
        {
            "role": st.just("assistant"),
            "content": CONTENT,
            "tool_calls": st.lists(CALL, max_size=3),
        }
    ),
)


@given(st.lists(MESSAGE, max_size=12))
def test_any_chat_is_stable_once_written(messages: list[dict[str, Any]]) -> None:
    first = chat(messages).transcripts[0].messages
    written = render_chat(first)
    again = chat(written)
    assert render_chat(again.transcripts[0].messages) == written
    assert [(m.role, m.text, m.calls, m.tool) for m in again.transcripts[0].messages] == [
        (m.role, m.text, m.calls, m.tool) for m in first
    ]


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["user", "tool_use", "text", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["role", "type", "content", "tool_calls", "message", "output", "id"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@pytest.mark.req("pkg:errors")
@given(
    st.lists(JSON_VALUES, max_size=4),
    st.sampled_from([chat, responses, blocks, claude_code.parse]),
)
def test_no_json_breaks_a_parser(values: list[Any], read_run: Any) -> None:
    for run in read_run(values).transcripts:
        assert all(isinstance(message.text, str) for message in run.messages)
        render_chat(run.messages)
