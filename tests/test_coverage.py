"""The measure of decision coverage, definition by definition."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from conftest import json_lines
from hypothesis import given
from hypothesis import strategies as st

from zero_mem.controller.messages import Message, ToolCall
from zero_mem.replay.coverage import (
    CallColumn,
    History,
    Part,
    Tally,
    cost,
    judge,
    price,
    read_of,
)
from zero_mem.replay.transcripts import read
from zero_mem.replay.values import argument_values, stands, text_values

pytestmark = pytest.mark.req("ledger:compare")


def call(**arguments: object) -> Message:
    text = json.dumps(arguments, ensure_ascii=False)
    return Message(role="assistant", calls=(ToolCall(call_id="c", name="t", arguments=text),))


def shell(command: str, thought: str = "") -> Message:
    tool_call = ToolCall(call_id="c", name="bash", arguments=command)
    return Message(role="assistant", text=thought, calls=(tool_call,))


def result(text: str) -> Message:
    return Message(role="tool", text=text)


def history(*messages: Message) -> History:
    seen = History()
    for message in messages:
        seen.observe(message)
    return seen


@pytest.mark.parametrize(
    ("value", "text", "found"),
    [
        ("HAT05", "HAT057", False),
        ("HAT057", "(HAT057)", True),
        ("100", "1100 100.5", True),
        ("id_1", "my_id_1", False),
        ("A12", "订单A12已发", True),
        ("上海", "在上海市", True),
        ("hat057", "HAT057", False),
        ("", "anything", False),
    ],
)
def test_a_value_stands_whole_or_not_at_all(value: str, text: str, *, found: bool) -> None:
    assert stands(value, text) is found


def test_json_values_are_strings_of_three_and_numbers_of_two_digits_once() -> None:
    arguments = '{"a": "abc", "b": "ab", "c": 7, "d": [12, "abc", {"e": 1.5}], "f": true}'
    assert argument_values(arguments) == ["abc", "12", "1.5"]


def test_text_values_are_paths_and_telling_identifiers() -> None:
    command = "sed -n 5p src/app/core.py | grep get_user; echo plainword HttpServer x1 utf8_x"
    assert text_values(command) == ["src/app/core.py", "get_user", "HttpServer", "utf8_x"]


@pytest.mark.parametrize(
    ("arguments", "values"),
    [
        (
            {"command": "cat src/mod_042/handler_042.py | head", "description": "Show the file"},
            ["src/mod_042/handler_042.py", "mod_042", "handler_042", "Show the file"],
        ),
        ({"command": ["bash", "-lc", "git checkout fix_login"]}, ["fix_login"]),
        ({"command": "pwd"}, []),
        ({"code": "total = load_rows(path)\nprint(total)"}, ["load_rows"]),
        ({"query": "SELECT name FROM order_items WHERE id = 4711"}, ["order_items"]),
        ({"pattern": r"class\s+HttpServer|def\s+get_user"}, ["HttpServer", "get_user"]),
        ({"query": "usages of get_user in src/app"}, ["get_user", "src/app"]),
        (
            {"prompt": "Read the tests of the parser in `tests/test_parse.py` and say why."},
            ["tests/test_parse.py", "test_parse"],
        ),
    ],
    ids=["shell", "list", "bare", "code", "sql", "pattern", "phrase", "task"],
)
def test_a_string_that_is_itself_text_gives_its_paths_and_identifiers(
    arguments: dict[str, object], values: list[str]
) -> None:
    assert argument_values(json.dumps(arguments)) == values


@pytest.mark.parametrize(
    "value",
    [
        "A-100",
        "HAT252",
        "2024-05-15 10:00",
        "10/12/2024 10:00 AM",
        "iPhone 14 Pro Max",
        "Gas/Electric Range",
        "12 Main Street, Suite 641",
        "(555) 010-1234",
        "158 + 141",
        "sara_doe_496",
        "src/app/core.py",
        "https://example.org/a_b?c=d",
        "She wants flight HAT252 for user_id 4711, and to pay it with the gift card.",
        "顾客想把 order_4711 改到五月二十四日。",
    ],
)
def test_a_plain_value_is_one_value(value: str) -> None:
    assert argument_values(json.dumps({"given": value})) == [value]


def shell_run(said: Callable[[str], Message]) -> list[list[str]]:
    """What each call of a shell run takes from memory, its commands made messages by `said`."""
    seen, found = History(), []
    steps = [
        ("ls src", "mod_042\nmod_043"),
        ("cat <<EOF\nmod_043\nEOF", "mod_043"),
        ("ls src/mod_042", "src/mod_042/handler_042.py\nsrc/mod_042/models.py"),
        ('grep -n "class" src/mod_042/handler_042.py', "3:class RefundHandler:"),
        ("grep -rn RefundHandler . | grep mod_043", ""),
        ("cat src/mod_042/handler_042.py", "def run(): pass"),
    ]
    for command, output in steps:
        found.append([taken.value for taken in seen.called(said(command))])
        seen.observe(said(command))
        seen.observe(result(output))
    return found


def test_a_shell_run_has_the_same_values_in_every_format() -> None:
    as_text = shell_run(shell)
    assert as_text == [
        [],
        ["mod_043"],
        ["mod_042"],
        ["src/mod_042/handler_042.py", "handler_042"],
        ["RefundHandler"],
        [],
    ]
    assert shell_run(lambda command: call(command=command)) == as_text


def test_real_shell_runs_have_the_same_values_as_json(
    shared_data: Callable[[str], Path],
) -> None:
    text, wrapped, found = History(), History(), 0
    for step in list(json_lines(shared_data("traj_swebench_mini/steps.jsonl.gz")))[:600]:
        if step["kind"] == "tool_result":
            text.observe(result(step["text"]))
            wrapped.observe(result(step["text"]))
        elif step["kind"] == "tool_call":
            plain, json_call = shell(step["text"]), call(command=step["text"])
            taken = text.called(plain)
            assert taken == wrapped.called(json_call)
            found += len(taken)
            text.observe(plain)
            wrapped.observe(json_call)
    assert found > 0


def test_the_small_public_session_takes_nothing_from_memory(
    shared_data: Callable[[str], Path],
) -> None:
    """Each path in its commands was in a call before: the file had just been written."""
    (run,) = read(shared_data("raw/claude_code_session.jsonl.gz")).transcripts
    seen, named, taken = History(), set(), 0
    for message in run.messages:
        for one in message.calls:
            named.update(argument_values(one.arguments))
        taken += len(seen.called(message))
        seen.observe(message)
    assert "/workspace/number_generator.py" in named
    assert taken == 0


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("src/a.py", json.dumps({"stdout": "total 1\nsrc/a.py\n"})),
        ("mod_042", json.dumps({"stdout": "a\tmod_042"})),
        ("A12", json.dumps({"note": "订单A12"})),
        ("上海市", json.dumps({"city": "上海市"})),
        ('5" disk', json.dumps({"item": '5" disk'})),
    ],
)
def test_a_value_stands_in_json_that_escapes_it_or_its_neighbour(value: str, text: str) -> None:
    assert stands(value, text)
    seen = history(result(text))
    (taken,) = seen.called(call(given=value))
    assert judge(taken, [Part(text=text, origin=0)], seen).linked
    assert not history(call(before=value), result(text)).called(call(given=value))


WORDS = st.sampled_from(("A-100", "a_b", "100", "b", "上海", "x/y", "\\n", '"', ".", " ", "\n"))
TEXTS = st.lists(WORDS, max_size=6).map("".join)


@given(st.lists(TEXTS, max_size=5), st.lists(TEXTS, max_size=5), TEXTS.filter(str.strip))
def test_memory_is_found_where_a_search_of_every_text_finds_it(
    said: Sequence[str], results: Sequence[str], value: str
) -> None:
    seen = history(*(Message(role="user", text=text) for text in said), *map(result, results))
    expected = [len(said) + at for at, text in enumerate(results) if stands(value, text)]
    if any(stands(value, text) for text in said):
        expected = []
    assert [at for taken in seen.named([value]) for at in taken.holders] == expected


def test_a_value_counts_only_when_it_can_have_come_from_memory_alone() -> None:
    seen = history(
        Message(role="user", text="my order is A-100"),
        result('{"order": "A-100", "item": "B-200"}'),
        Message(role="assistant", text="It has C-300."),
        result('{"other": "C-300"}'),
    )
    taken = seen.called(call(order="A-100", item="B-200", third="C-300", fourth="D-400"))
    assert [(one.value, one.holders) for one in taken] == [("B-200", (1,))]


def test_the_text_of_the_same_turn_is_not_earlier() -> None:
    seen = history(result("def get_user():"))
    assert [one.value for one in seen.called(shell("grep get_user", "Look at get_user"))]
    seen.observe(shell("ls", "Look at get_user"))
    assert not seen.called(shell("grep get_user"))


def test_linked_needs_the_key_under_the_newest_record() -> None:
    old, new = '{"id": "B-200"}', '{"item_id": "B-200", "n": 1}'
    seen = history(result(old), result(new))
    (taken,) = seen.called(call(item="B-200"))
    shown = {
        "old only": [Part(text=old, origin=0), Part(text="[memo:2] save", origin=1)],
        "bare": [Part(text="B-200", origin=1)],
        "linked": [Part(text="item_id: B-200", origin=1)],
        "header": [Part(text="[1]{item_id n}\nB-200 1", origin=1)],
        "key too late": [Part(text="B-200\nitem_id", origin=1)],
        "nothing": [Part(text="[memo:2] save", origin=1)],
    }
    verdicts = {name: judge(taken, parts, seen) for name, parts in shown.items()}
    assert [name for name, verdict in verdicts.items() if verdict.linked] == ["linked", "header"]
    assert [name for name, verdict in verdicts.items() if not verdict.visible] == ["nothing"]


def test_a_maps_own_key_is_its_row_header() -> None:
    seen = history(result('{"SFO": "San Francisco"}'))
    (taken,) = seen.called(call(to="SFO"))
    assert judge(taken, [Part(text="SFO: San Francisco", origin=0)], seen).linked


def test_in_line_needs_the_whole_source_line() -> None:
    seen = history(result("import os\n    def get_user(name):\n"))
    (taken,) = seen.called(shell("grep get_user"))
    assert judge(taken, [Part(text="def get_user(name):", origin=0)], seen).in_line
    assert not judge(taken, [Part(text="get_user", origin=0)], seen).in_line


def test_reachable_is_visible_or_a_live_handle_of_a_holder() -> None:
    seen = history(result('{"id": "B-200"}'), result('{"x": 1}'))
    (taken,) = seen.called(call(id="B-200"))
    assert judge(taken, [], seen, live={0}).reachable
    assert not judge(taken, [], seen, live={1}).reachable
    assert judge(taken, [Part(text="B-200")], seen).reachable


def test_a_read_is_one_pointer_or_one_line() -> None:
    seen = history(result('{"a/b": [{"id": "B-200"}]}'))
    (taken,) = seen.called(call(id="B-200"))
    read = read_of(taken, seen, "7")
    assert json.loads(read.arguments) == {"id": "7", "pointer": "/a~1b/0/id"}
    assert read.text == "B-200"
    seen = history(result("one\n  def get_user():\n"))
    (taken,) = seen.called(shell("grep get_user"))
    read = read_of(taken, seen, "7")
    assert json.loads(read.arguments) == {"id": "7", "lines": "2"}
    assert read.text == "def get_user():"


def test_replies_take_ids_codes_dates_and_numbers_of_results() -> None:
    record = {"price": 1210, "city": "Oslo", "gate": "OSL", "day": "2026-05-24", "ref": "K7-P2"}
    seen = history(Message(role="user", text="hi"), result(json.dumps(record)))
    text = "On 2026-05-24 from OSL (Oslo), ref K7-P2, at 06:26 for $1,210; 24 May."
    replied = seen.replied(Message(role="assistant", text=text))
    assert {taken.value for taken in replied} == {"1210", "OSL", "2026-05-24", "K7-P2"}


def test_a_reply_takes_nothing_that_was_said() -> None:
    seen = history(Message(role="user", text="K7-P2"), result('{"ref": "K7-P2", "n": 45}'))
    replied = seen.replied(Message(role="assistant", text="K7-P2 has 45."))
    assert [taken.value for taken in replied] == ["45"]


def test_cost_and_price_are_pooled_over_calls() -> None:
    calls = [
        CallColumn(sent=100, cached=0, full=400, ours=50),
        CallColumn(sent=150, cached=100, full=600, ours=50),
    ]
    assert cost(calls) == 250 / 1000
    assert cost(calls, with_ours=True) == 350 / 1000
    assert price(calls) == pytest.approx((100 + 50 + 10) / 1000)
    assert cost([]) == 0.0


def test_a_tally_pools_counts() -> None:
    seen = history(result('{"id": "B-200", "no": "C-300"}'))
    tally = Tally()
    for taken in seen.called(call(a="B-200", b="C-300")):
        tally.add(judge(taken, [Part(text="id: B-200", origin=0)], seen))
    assert (tally.values, tally.visible, tally.share("linked")) == (2, 1, 0.5)
    assert Tally().share("visible") == 1.0


def test_the_development_runs_have_as_many_values_as_the_rules_say(
    shared_data: Callable[[str], Path],
) -> None:
    found = 0
    for run in json_lines(shared_data("raw/taubench_airline.openai_chat.jsonl.gz")):
        seen = History()
        for raw in run["messages"]:
            calls = tuple(
                ToolCall(
                    call_id=one["id"],
                    name=one["function"]["name"],
                    arguments=one["function"]["arguments"],
                )
                for one in raw.get("tool_calls") or ()
            )
            message = Message(role=raw["role"], text=raw.get("content") or "", calls=calls)
            found += len(seen.called(message))
            seen.observe(message)
    assert found == 376
