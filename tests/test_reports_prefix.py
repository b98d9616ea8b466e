"""What went wrong for users of systems that edit prompts: each report is a test of its number."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from conversations import BODY, request, response, result_texts, results, turn, user

from zero_mem import MemoryController, handles
from zero_mem.controller.definitions import PREAMBLE, READ_TOOL
from zero_mem.errors import LimitReached
from zero_mem.ledger.prices import DEFAULT_TABLE
from zero_mem.space import Namespace
from zero_mem.text.tokens import tokenizer

TOKENS = tokenizer("o200k")
CHAT: Final = "openai_chat"
CLAUDE: Final = "anthropic"


def controller(space: Namespace, **options: Any) -> MemoryController:
    return MemoryController(space, **{"conversation": "c-1", "share": 0.1, **options})


def listing(body: Any = BODY, **fields: Any) -> dict[str, Any]:
    called = [turn(CLAUDE, c1=("orders", {})), results(CLAUDE, c1=body)]
    return request(CLAUDE, user("Which are late?"), *called, **fields)


def shown_in(prepared: Any) -> str:
    return str(result_texts(dict(prepared), CLAUDE)[0])


def id_in(text: str) -> str:
    return handles.find(text)[0].references[0].memory_id


@pytest.mark.req("controller:modes")
def test_39_a_request_that_is_not_edited_is_the_same_object(space: Namespace) -> None:
    given = listing("short")
    assert controller(space, mode="observe").prepare(given, CLAUDE) is given
    assert controller(space, recall_reachable=False).prepare(given, CLAUDE) is given


@pytest.mark.req("controller:offload")
def test_40_neither_a_reminder_nor_a_shared_prompt_moves_a_conversation(space: Namespace) -> None:
    first = controller(space).prepare(listing(system="You are kind."), CLAUDE)
    reminded = listing(system="You are kind. It is 12:05.")
    later = controller(space).prepare(reminded, CLAUDE)
    assert shown_in(later) == shown_in(first)
    other = controller(space, conversation="c-2").prepare(listing(system="You are kind."), CLAUDE)
    assert id_in(shown_in(other)) != id_in(shown_in(first))


@pytest.mark.req("controller:offload")
def test_41_old_results_are_never_cleared(space: Namespace) -> None:
    items = [*listing()["messages"]]
    sent: list[Any] = []
    for number in range(12):
        call = f"n{number}"
        body = BODY.replace("late", f"late{number}")
        items += [*turn(CLAUDE, "ok", **{call: ("orders", {})}), *results(CLAUDE, **{call: body})]
        prepared = controller(space).prepare(request(CLAUDE, *items), CLAUDE)
        assert prepared["messages"][: len(sent)] == sent
        sent = prepared["messages"]
    assert all(text.startswith("[memo:") for text in result_texts({"messages": sent}, CLAUDE))


@pytest.mark.req("controller:safe")
def test_42_43_signed_thinking_keeps_its_place_and_its_text(space: Namespace) -> None:
    thought = {"type": "thinking", "thinking": f"[memo:1] {BODY}", "signature": "s1g"}
    called = turn(CLAUDE, c1=("orders", {}))[0]
    called = {**called, "content": [thought, *called["content"]]}
    given = request(CLAUDE, user("go"), called, results(CLAUDE, c1=BODY))
    space.save("be kind", form="procedural")
    prepared = controller(space, fold="next", ephemeral_tail=True).prepare(given, CLAUDE)
    assert prepared["messages"][1] is called
    assert len(prepared["messages"]) == 4
    produced = response(CLAUDE, [called])
    assert controller(space).absorb(produced, CLAUDE).response is produced


@pytest.mark.req("controller:by-reference")
def test_44_a_dead_handle_ends_in_an_error_that_says_what_to_do(space: Namespace) -> None:
    subject = controller(space)
    memory_id = id_in(shown_in(subject.prepare(listing(), CLAUDE)))
    dead = turn(CLAUDE, c2=("orders", {"to": "[memo:999]"}))
    told = subject.absorb(response(CLAUDE, dead), CLAUDE).answers["c2"]
    assert "do not repeat this call as it is" in told
    assert f"[memo:{memory_id}]" in told
    assert "do not ask for it again" in subject.run_memory_call(READ_TOOL, {"id": "999"})


@pytest.mark.req("controller:offload", "limits:overflow")
def test_45_an_original_lives_as_long_as_its_conversation(space: Namespace) -> None:
    space.configure(kind="tool_result", max_memory_items=1)
    memory_id = id_in(shown_in(controller(space).prepare(listing(), CLAUDE)))
    with pytest.raises(LimitReached):
        space.save("another", kind="tool_result")
    read = controller(space).run_memory_call(READ_TOOL, {"id": memory_id, "rows": {"total": 17.5}})
    assert "ORD-00000" in read


@pytest.mark.req("controller:offload")
def test_46_the_wording_says_stored_intact_and_how_to_read_it() -> None:
    assert "stored intact" in PREAMBLE
    assert READ_TOOL in PREAMBLE


@pytest.mark.req("controller:safe")
def test_47_a_child_agent_without_the_tool_gets_no_receipt(space: Namespace) -> None:
    child = controller(space, recall_reachable=False)
    assert shown_in(child.prepare(listing(), CLAUDE)) == BODY
    space.save("be kind", form="procedural")
    sent = child.prepare(listing(), CLAUDE)
    assert "be kind" in sent["messages"][-1]["content"]


@pytest.mark.req("controller:offload", "recall:where")
def test_48_a_line_is_quoted_whole_under_its_number_or_can_be_read(space: Namespace) -> None:
    lines = [f"src/mod_{n}.py:{n}: def handler_{n}(request): return {n * 7}" for n in range(400)]
    subject = controller(space, share=0.25)
    shown = shown_in(subject.prepare(listing("\n".join(lines)), CLAUDE))
    head, *quoted = shown.split("\n")
    number, kept = 1, 0
    for line in quoted:
        if line.startswith("@"):
            number = int(line[1:])
        else:
            assert line == lines[number - 1]
            number, kept = number + 1, kept + 1
    assert f"+{len(lines) - kept}" in head
    read = subject.run_memory_call(READ_TOOL, {"id": id_in(shown), "lines": "399-400"})
    assert all(line in read for line in lines[-2:])


@pytest.mark.req("recall:no-loop", "recall:where")
def test_49_what_recall_gave_is_neither_offloaded_nor_unbounded(space: Namespace) -> None:
    subject = controller(space)
    given = listing()
    memory_id = id_in(shown_in(subject.prepare(given, CLAUDE)))
    read = subject.run_memory_call(READ_TOOL, {"id": memory_id, "budget": 600})
    assert TOKENS.count(read) <= 600
    for _ in range(3):
        again = [turn(CLAUDE, r1=(READ_TOOL, {"id": memory_id})), results(CLAUDE, r1=read)]
        longer = request(CLAUDE, *given["messages"], *again)
        assert result_texts(dict(controller(space).prepare(longer, CLAUDE)), CLAUDE)[1] == read
    assert space.count() == 1


@pytest.mark.req("controller:safe")
def test_50_a_memory_call_is_answered_here_or_was_not_offered(space: Namespace) -> None:
    called = response(CLAUDE, turn(CLAUDE, m1=("memory_search", {"query": "x"})))
    absorbed = controller(space).absorb(called, CLAUDE)
    assert absorbed.all_ours
    child = controller(space, recall_reachable=False)
    assert "memory_search" not in json.dumps(child.prepare(listing("x"), CLAUDE))


@pytest.mark.req("controller:safe")
def test_51_53_only_texts_are_replaced_and_a_link_stays_a_link(space: Namespace) -> None:
    mark = {"type": "ephemeral"}
    link = {"type": "resource_link", "uri": "https://example.org/a", "name": "a"}
    parts = [{"type": "text", "text": BODY, "cache_control": mark}, link]
    result = {"type": "tool_result", "tool_use_id": "c1", "content": parts, "is_error": True}
    given = request(CLAUDE, turn(CLAUDE, c1=("orders", {})), {"role": "user", "content": [result]})
    (after,) = controller(space).prepare(given, CLAUDE)["messages"][1]["content"]
    assert (after["is_error"], after["content"][0]["cache_control"]) == (True, mark)
    assert after["content"][1] is link


@pytest.mark.req("controller:offload")
def test_52_a_call_id_is_never_a_name_of_ours(space: Namespace) -> None:
    for call_id in ("", "x" * 1500, "../../etc/passwd"):
        named: Any = {call_id: ("orders", {})}
        body = f"{call_id} {BODY}"
        given = request(CHAT, turn(CHAT, **named), results(CHAT, **{call_id: body}))
        (shown,) = result_texts(dict(controller(space).prepare(given, CHAT)), CHAT)
        assert space.get(id_in(shown)).text == body
    stored = space.decisions_at("controller:c-1").scopes[0]
    assert all(len(key) < 120 and "passwd" not in key for key in stored)


@pytest.mark.req("controller:by-reference")
def test_54_the_audit_has_the_template_and_what_was_executed(space: Namespace) -> None:
    subject = controller(space)
    part = handles.render(id_in(shown_in(subject.prepare(listing(), CLAUDE))), pointer="/17/total")
    written = turn(CLAUDE, c2=("orders", {"to": part}))
    executed = subject.absorb(response(CLAUDE, written), CLAUDE).response
    (passed,) = controller(space).audit()
    assert json.loads(passed.written) == {"to": part}
    assert json.loads(passed.executed) == executed["content"][0]["input"]
    assert "34.5" in passed.executed


@pytest.mark.req("ledger:columns")
def test_55_savings_are_priced_at_the_cache_state_of_the_call(space: Namespace) -> None:
    """Nearly all of the prompt came from the cache: so would have what memory kept out."""
    subject = controller(space)
    given = listing(model="Sonnet 5.5")
    sent = subject.prepare(given, CLAUDE)
    usage = {"input_tokens": 10, "cache_read_input_tokens": 990, "output_tokens": 0}
    call = subject.account(sent, CLAUDE, usage=usage, given=given)
    price = DEFAULT_TABLE.price("Sonnet 5.5")
    saved = subject.ledger().saved
    assert call.without is not None
    kept_out = call.without - call.columns.prompt
    assert kept_out > 0
    at_list_price = kept_out * price.input / 1_000_000
    at_cache_price = kept_out * (0.99 * price.read + 0.01 * price.input) / 1_000_000
    assert saved == pytest.approx(at_cache_price, rel=0.01)
    assert saved < at_list_price / 10


@pytest.mark.req("limits:overflow", "controller:offload")
def test_56_originals_have_a_quota_and_are_shared_with_nobody(space: Namespace) -> None:
    space.configure(kind="tool_result", max_memory_items=1, overflow="refuse")
    subject = controller(space)
    subject.prepare(listing(), CLAUDE)
    longer = request(CLAUDE, *listing()["messages"], turn(CLAUDE, c2=("orders", {})),
                     results(CLAUDE, c2=BODY + " "))  # fmt: skip
    assert result_texts(dict(subject.prepare(longer, CLAUDE)), CLAUDE)[1] == BODY + " "
    assert space.count() == 1
    stranger = space.memory.namespace("stranger")
    other = MemoryController(stranger, conversation="c-1")
    handle = turn(CLAUDE, c2=("orders", {"to": "[memo:1]"}))
    assert other.absorb(response(CLAUDE, handle), CLAUDE).refused == {"c2"}
