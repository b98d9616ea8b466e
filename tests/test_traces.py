"""Traces: transcripts and JSON lines become records of what happened, each once and whole."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zero_mem import Json, Memory, MemoryRecord, ZeroMemRuntime
from zero_mem.errors import InvalidInput, StoreUnavailable
from zero_mem.index.document import index_terms
from zero_mem.index.units import unit_of
from zero_mem.recall import corpora
from zero_mem.recall.configuration import DEFAULT
from zero_mem.recall.corpus import Corpus
from zero_mem.space import Namespace
from zero_mem.traces import TraceReport, import_lines, import_transcripts, parse_mapping
from zero_mem.traces.writing import BATCH

pytestmark = pytest.mark.req("runtime:hooks", "record:fields")

FIXTURES = Path(__file__).parent / "fixtures" / "traces"
KINDS = ("message", "tool_call", "tool_result")
MAPPING = (
    "content=text,speaker=who.nick|who.name|'nobody',session=conv,created_at=ts:ms,"
    "metadata.order=order_id,tags=labels"
)


@pytest.fixture
def space() -> Iterator[Namespace]:
    with Memory.open("memory://") as memory:
        yield memory.namespace("acme", "alice")


def trace(space: Namespace) -> list[MemoryRecord]:
    return list(space.each())


def told(space: Namespace) -> list[tuple[str, str | None, str | None, str]]:
    return [(r.kind, r.session, r.speaker, r.text) for r in trace(space)]


def taken(space: Namespace, name: str) -> TraceReport:
    return import_transcripts(space, [FIXTURES / name])


# The formats


def test_openai_chat_runs_are_sessions_with_their_speakers(space: Namespace) -> None:
    report = taken(space, "openai_chat.jsonl")
    assert (report.imported, report.instructions) == (6, 2)
    assert report.sessions == {"order-881": 4, "order-902": 2}
    assert told(space)[:4] == [
        ("message", "order-881", "mia", "Where is my order W-881?"),
        ("tool_call", "order-881", "assistant", 'get_order({"id": "W-881"})'),
        ("tool_result", "order-881", "get_order", '{"id": "W-881", "status": "in Leipzig"}'),
        ("message", "order-881", "assistant", "Your order W-881 is in Leipzig."),
    ]
    call, result = trace(space)[1:3]
    assert call.metadata["tools"] == ["get_order"]
    assert call.metadata["calls"][0]["arguments"] == '{"id": "W-881"}'
    assert result.metadata == {"position": 3, "tool": "get_order", "call_id": "call_1"}
    assert {r.source for r in trace(space)} == {"import"}
    assert {r.form for r in trace(space)} == {"episodic"}


def test_openai_responses_items(space: Namespace) -> None:
    taken(space, "openai_responses.jsonl")
    assert [(kind, speaker, text) for kind, _, speaker, text in told(space)] == [
        ("message", "user", "How warm is it in Oslo?"),
        ("tool_call", "assistant", 'weather({"city":"Oslo"})'),
        ("tool_result", "weather", "-3 °C, snow"),
        ("message", "assistant", "It is -3 °C and it snows."),
    ]


def test_anthropic_messages_with_a_failed_tool(space: Namespace) -> None:
    taken(space, "anthropic.json")
    assert [(kind, text) for kind, _, _, text in told(space)] == [
        ("message", "What does the door sensor say?"),
        ("message", "I look."),
        ("tool_result", "timeout"),
        ("message", "And now?"),
        ("message", "It does not answer."),
    ]
    records = trace(space)
    assert records[1].metadata["tools"] == ["read_sensor"]
    assert records[2].metadata["error"] is True


def test_a_claude_code_session_keeps_times_and_side_chains_apart(space: Namespace) -> None:
    report = taken(space, "claude_code.jsonl")
    assert report.sessions == {"5e55-0001": 4, "5e55-0001/s1": 2}
    main = [r for r in trace(space) if r.session == "5e55-0001"]
    assert [r.text for r in main] == [
        "Rename the helper in app.py",
        "I search for it first.",
        "app.py:3: def helper():",
        "Renamed to load_rows.",
    ]
    assert main[0].created_at == datetime(2026, 3, 4, 9, 0, 1, 500_000, tzinfo=UTC)
    assert [r.created_at.second for r in main] == [1, 3, 9, 12]
    assert [r.metadata["position"] for r in main] == [0, 1, 2, 3]


def test_a_codex_session_begins_anew_where_it_was_compacted(space: Namespace) -> None:
    report = taken(space, "codex.jsonl")
    assert report.sessions == {"019a-77": 6, "019a-77#2": 5}
    assert report.defects == []
    assert [(kind, speaker, text) for kind, _, speaker, text in told(space)] == [
        ("message", "user", "Why does the build fail?"),
        ("tool_call", "assistant", 'shell({"command":["make"]})'),
        ("tool_result", "shell", "Makefile:4: missing separator"),
        ("tool_call", "assistant", "apply_patch(*** Begin Patch\n*** End Patch)"),
        ("tool_result", "apply_patch", "Success."),
        ("message", "assistant", "A tab was missing in line 4 of the Makefile."),
        ("message", "user", "Summary: the Makefile is mended."),
        ("message", "user", "Run the tests."),
        ("tool_call", "assistant", 'local_shell({"type":"exec","command":["pytest","-q"]})'),
        ("tool_result", "local_shell", "12 passed"),
        ("message", "assistant", "All 12 tests pass."),
    ]
    assert trace(space)[2].created_at == datetime(2026, 3, 5, 10, 0, 6, tzinfo=UTC)


def test_a_request_log_gives_each_message_once(space: Namespace) -> None:
    taken(space, "request_log.jsonl")
    assert [text for *_, text in told(space)] == [
        "Name a river in Chile.",
        "The Biobío.",
        "And how long is it?",
        "380 km.",
    ]
    assert [r.created_at.timestamp() for r in trace(space)] == [1772700000] * 3 + [1772700060]


@pytest.mark.req("op:idempotency")
def test_a_run_that_tells_its_times_late_stays_one_thread(space: Namespace, tmp_path: Path) -> None:
    first = {"role": "user", "content": "Is it open?"}
    answer = {"role": "assistant", "content": "Yes.", "timestamp": "2026-03-05T10:00:00Z"}
    path = tmp_path / "run.jsonl"
    path.write_text(json.dumps(first) + "\n")
    import_transcripts(space, [path])
    path.write_text(json.dumps(first) + "\n" + json.dumps(answer) + "\n")
    report = import_transcripts(space, [path])
    assert (report.imported, report.unchanged) == (1, 1)
    assert list(report.sessions) == ["run.jsonl#1"]


def test_what_has_no_text_is_still_there(space: Namespace, tmp_path: Path) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:,"}}
    messages = [
        {"role": "user", "content": [image]},
        {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f"}}]},
        {"role": "tool", "tool_call_id": "c", "content": ""},
        {"role": "assistant", "content": [{"type": "thinking"}]},
    ]
    path = tmp_path / "run.json"
    path.write_text(json.dumps(messages))
    import_transcripts(space, [path])
    assert [r.content for r in trace(space)] == ["(image_url)", "f()", Json("")]


def test_bodies_are_whole_and_equal_ones_stay_apart(space: Namespace, tmp_path: Path) -> None:
    big = "row\n" * 300_000
    said = [{"role": "user", "content": text} for text in ("ok", big, "ok")]
    path = tmp_path / "run.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(said).encode()))
    space.configure(kind="message", dedupe_key=None)
    import_transcripts(space, [path])
    assert [r.content for r in trace(space)] == ["ok", big, "ok"]


# Again, and grown


@pytest.mark.req("op:idempotency", "history:journal")
@pytest.mark.parametrize(
    "name", sorted(p.name for p in FIXTURES.iterdir() if "orders" not in p.name)
)
def test_the_same_file_again_changes_nothing(space: Namespace, name: str) -> None:
    first = taken(space, name)
    before = [(r.uid, r.version, r.updated_at) for r in trace(space)]
    again = taken(space, name)
    assert (again.imported, again.unchanged, again.completed) == (0, first.imported, 0)
    assert [(r.uid, r.version, r.updated_at) for r in trace(space)] == before


@pytest.mark.req("op:idempotency")
@pytest.mark.parametrize("name", ["claude_code.jsonl", "codex.jsonl", "openai_responses.jsonl"])
def test_a_file_that_grows_line_by_line_ends_as_if_it_was_imported_whole(
    space: Namespace, tmp_path: Path, name: str
) -> None:
    lines = (FIXTURES / name).read_bytes().splitlines(keepends=True)
    grown = tmp_path / name
    for count in range(4, len(lines) + 1):
        grown.write_bytes(b"".join(lines[:count]))
        import_transcripts(space, [grown])
    with Memory.open("memory://") as memory:
        whole = memory.namespace("whole")
        import_transcripts(whole, [FIXTURES / name])
        by_place = {(r.session, r.metadata["position"]): r for r in trace(whole)}
        found = {(r.session, r.metadata["position"]): r for r in trace(space)}
        assert found.keys() == by_place.keys()
        for place, record in found.items():
            assert record.content == by_place[place].content
            assert record.metadata == by_place[place].metadata


@pytest.mark.req("history:journal")
def test_a_message_cut_off_is_completed_and_its_beginning_stays_in_the_history(
    space: Namespace, tmp_path: Path
) -> None:
    lines = (FIXTURES / "claude_code.jsonl").read_bytes().splitlines(keepends=True)
    path = tmp_path / "claude_code.jsonl"
    path.write_bytes(b"".join(lines[:4]))
    import_transcripts(space, [path])
    path.write_bytes(b"".join(lines[:5]))
    assert import_transcripts(space, [path]).completed == 1
    message = trace(space)[1]
    assert message.metadata["tools"] == ["Grep"]
    assert message.version == 2
    assert [e.operation for e in space.history(message.memory_id)] == ["save", "update"]


@pytest.mark.req("op:idempotency", "prod:redact")
def test_a_secret_is_taken_out_and_its_message_is_known_again(
    space: Namespace, tmp_path: Path
) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9" * 2
    call = {"id": "c", "function": {"name": "login", "arguments": json.dumps({"token": secret})}}
    messages = [
        {"role": "user", "content": f"Use {secret} to log in."},
        {"role": "assistant", "content": "I log in.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": f"token {secret} is good"},
    ]
    path = tmp_path / "run.json"
    path.write_text(json.dumps(messages))
    assert import_transcripts(space, [path]).imported == 3
    assert secret not in repr(trace(space))
    again = import_transcripts(space, [path])
    assert (again.imported, again.unchanged) == (0, 3)
    space.configure(redact={"personal": "mask"})
    mail = {"role": "assistant", "content": "Done."}
    path.write_text(json.dumps([*messages, mail]))
    grown = import_transcripts(space, [path])
    assert (grown.imported, grown.unchanged, list(grown.sessions)) == (1, 3, ["run.json#1"])


@pytest.mark.req("history:journal")
def test_a_record_that_was_changed_or_purged_is_left_as_it_is(space: Namespace) -> None:
    taken(space, "openai_chat.jsonl")
    first, second, *_ = trace(space)
    space.update(first.memory_id, content="corrected")
    space.purge(second.memory_id)
    report = taken(space, "openai_chat.jsonl")
    assert (report.imported, report.defects) == (0, [])
    assert trace(space)[0].content == "corrected"


def test_another_run_of_the_same_name_is_another_session(space: Namespace, tmp_path: Path) -> None:
    for name, answer in (("a", "yes"), ("b", "no")):
        messages = [
            {"role": "user", "content": "Is it open?"},
            {"role": "assistant", "content": answer},
        ]
        line = json.dumps({"trajectory": "0", "messages": messages})
        (tmp_path / f"{name}.jsonl").write_text(line + "\n")
    files = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    report = import_transcripts(space, files)
    assert report.imported == 4
    first, second = report.sessions
    assert first == "0"
    assert second.startswith("0~")
    again = import_transcripts(space, files[::-1])
    assert (again.imported, again.unchanged) == (0, 4)


# What can't be read, and faults


@pytest.mark.req("pkg:errors")
def test_what_cannot_be_read_is_named_and_the_rest_is_imported(
    space: Namespace, tmp_path: Path
) -> None:
    good = (FIXTURES / "openai_chat.jsonl").read_text(encoding="utf-8").splitlines()
    path = tmp_path / "runs.jsonl"
    path.write_text("\n".join([good[0], '{"trajectory": "cut', good[1]]), encoding="utf-8")
    report = import_transcripts(space, [path, tmp_path / "missing.jsonl"])
    assert report.imported == 6
    assert [(d.file, d.line) for d in report.defects] == [("runs.jsonl", 2), ("missing.jsonl", 0)]
    assert report.unread == 1
    with pytest.raises(InvalidInput, match=r"missing\.jsonl"):
        import_transcripts(space, [tmp_path / "missing.jsonl"])


@pytest.mark.req("pkg:errors", "op:idempotency")
def test_a_fault_says_how_far_it_got_and_the_next_import_goes_on(
    space: Namespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = [{"role": "user", "content": f"message {n}"} for n in range(2 * BATCH + 7)]
    path = tmp_path / "long.json"
    path.write_text(json.dumps(messages))
    save_many, calls = space.save_many, iter([True, False])

    def failing(*arguments: Any, **options: Any) -> Any:
        if next(calls):
            return save_many(*arguments, **options)
        raise StoreUnavailable("the disk is full")

    monkeypatch.setattr(space, "save_many", failing)
    with pytest.raises(StoreUnavailable) as error:
        import_transcripts(space, [path])
    assert f"{BATCH:,} records had been written" in error.value.__notes__[0]
    assert len(trace(space)) == BATCH
    monkeypatch.undo()
    assert import_transcripts(space, [path]).imported == BATCH + 7
    assert [r.text for r in trace(space)] == [m["content"] for m in messages]


def test_a_dry_run_shows_the_first_records_and_writes_nothing(space: Namespace) -> None:
    report = import_transcripts(space, [FIXTURES / "codex.jsonl"], dry_run=True)
    assert (report.imported, len(report.sample)) == (11, 5)
    assert report.sample[0].fields["content"] == "Why does the build fail?"
    assert report.sample[0].line == 4
    assert trace(space) == []


# JSON lines


def test_a_mapping_says_which_field_is_which(space: Namespace) -> None:
    report = import_lines(space, [FIXTURES / "orders.jsonl"], MAPPING)
    assert report.imported == 4
    first, second, *rest = trace(space)
    assert (first.session, first.speaker, first.text) == ("c-1", "mia", "Where is it?")
    assert first.created_at == datetime(2026, 3, 5, 8, 40, 0, 123_000, tzinfo=UTC)
    assert (first.metadata, first.tags) == ({"order": 7}, ("shop",))
    assert (first.kind, first.form, first.source) == ("message", "episodic", "import")
    assert second.speaker == "agent"
    assert [(r.speaker, r.text) for r in rest] == [("nobody", "ok"), ("nobody", "ok")]


@pytest.mark.req("op:idempotency")
def test_lines_are_known_by_what_they_say_or_by_their_id(space: Namespace, tmp_path: Path) -> None:
    path = tmp_path / "grown.jsonl"
    lines = (FIXTURES / "orders.jsonl").read_text().splitlines()
    path.write_text("\n".join(lines))
    import_lines(space, [path], MAPPING)
    path.write_text("\n".join([*lines, lines[-1], '{"text": "bye", "conv": "c-1"}']))
    again = import_lines(space, [path], MAPPING)
    assert (again.imported, again.unchanged) == (2, 4)
    path.write_text('{"text": "one", "n": 1}\n{"text": "two", "n": 2}\n')
    assert import_lines(space, [path], "content=text,id=n").imported == 2
    path.write_text('{"text": "one", "n": 1}\n{"text": "changed", "n": 2}\n')
    changed = import_lines(space, [path], "content=text,id=n")
    assert changed.unchanged == 1
    assert [(d.line, "different" in d.problem) for d in changed.defects] == [(2, True)]
    other = tmp_path / "other.jsonl"
    other.write_text('{"text": "another one", "n": 1}\n')
    assert import_lines(space, [other], "content=text,id=n").imported == 1


def test_without_a_mapping_fields_have_their_own_names(space: Namespace, tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl"
    named = {"content": "a", "speaker": "Ann", "metadata": {"order": 7}}
    path.write_text(json.dumps([named, {"content": {"b": 1}}]))
    import_lines(space, [path])
    assert trace(space)[0].metadata == {"order": 7}
    assert [(r.content, r.speaker, r.session) for r in trace(space)] == [
        ("a", "Ann", "notes"),
        (Json({"b": 1}), None, "notes"),
    ]


def test_keyed_lines_update_their_record(space: Namespace, tmp_path: Path) -> None:
    path = tmp_path / "facts.jsonl"
    path.write_text('{"v": "tea", "k": "drink"}\n{"v": "coffee", "k": "drink"}\n')
    import_lines(space, [path], "content=v,key=k,kind='user_pref',session=conv")
    (record,) = trace(space)
    assert (record.text, record.version, record.form) == ("coffee", 2, "semantic")


@pytest.mark.req("pkg:errors")
def test_a_bad_line_is_named_and_the_rest_goes_on(space: Namespace, tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_text('{"t": "a", "ts": "2026-01-02"}\n{"t": "b", "ts": "soon"}\nno\n{"x": 1}\n7\n')
    report = import_lines(space, [path], "content=t,created_at=ts")
    assert report.imported == 1
    assert [d.line for d in report.defects] == [2, 3, 4, 5]
    assert "created_at" in report.defects[0].problem
    assert report.lost == 4


@pytest.mark.req("pkg:errors")
@pytest.mark.parametrize(
    ("mapping", "says"),
    [
        ("speaker=who", "content"),
        ("content", "TARGET=SOURCE"),
        ("content=text,colour=red", "no field 'colour'"),
        ("content=text,content=body", "twice"),
        ("content='open", "quote"),
        ("content=a..b", "a..b"),
        ("content=text,created_at=ts:weeks", "iso"),
        ("content=text,metadata.=x", "metadata"),
    ],
)
def test_a_wrong_mapping_is_refused_before_anything_is_read(
    space: Namespace, mapping: str, says: str
) -> None:
    with pytest.raises(InvalidInput, match=says):
        import_lines(space, [FIXTURES / "orders.jsonl"], mapping)


@pytest.mark.req("pkg:errors")
def test_a_mapping_that_fits_no_line_says_which_fields_there_are(space: Namespace) -> None:
    with pytest.raises(InvalidInput, match="text, who, conv, ts"):
        import_lines(space, [FIXTURES / "orders.jsonl"], "content=body")


@pytest.mark.parametrize(
    ("source", "value", "moment"),
    [
        ("t", "2026-03-05T08:00:00Z", datetime(2026, 3, 5, 8, tzinfo=UTC)),
        ("t", "2026-03-05 08:00", datetime(2026, 3, 5, 8, tzinfo=UTC)),
        ("t", "2026-03-05T08:00:00+08:00", datetime(2026, 3, 5, tzinfo=UTC)),
        ("t", 1772697600, datetime(2026, 3, 5, 8, tzinfo=UTC)),
        ("t", "1772697600.25", datetime(2026, 3, 5, 8, 0, 0, 250_000, tzinfo=UTC)),
        ("t", 1772697600000, datetime(2026, 3, 5, 8, tzinfo=UTC)),
        ("t:ms", 86_400_000, datetime(1970, 1, 2, tzinfo=UTC)),
        ("t:us", 1772697600000001, datetime(2026, 3, 5, 8, 0, 0, 1, tzinfo=UTC)),
        ("t:%d.%m.%Y %H:%M", "05.03.2026 08:00", datetime(2026, 3, 5, 8, tzinfo=UTC)),
        ("t:%Y-%m-%d %z", "2026-03-05 +0800", datetime(2026, 3, 4, 16, tzinfo=UTC)),
    ],
)
def test_times_are_read_as_they_are_written(source: str, value: Any, moment: datetime) -> None:
    mapping = parse_mapping(f"content=c,created_at={source}")
    assert mapping.fields({"c": "x", "t": value})["created_at"] == moment


@given(st.text(min_size=1).filter(lambda text: "\n" not in text), st.text(min_size=1))
def test_any_name_of_a_field_can_be_written(name: str, value: str) -> None:
    escaped = "".join(f"\\{char}" if char in "\\,.|:'\"= " else char for char in name)
    if escaped.strip() != escaped:
        return
    mapping = parse_mapping(f"content={escaped}")
    assert mapping.fields({name: value}) == {"content": value}


# Threads


def talk(folder: Path) -> Path:
    """Write a talk of three messages, each with three tool results after it."""
    messages: list[dict[str, Any]] = []
    said = [
        ("user", "Shall we repaint the boathouse this summer?"),
        ("assistant", "Which colour do you want?"),
        ("user", "Ochre, like the old one."),
    ]
    for n, (role, text) in enumerate(said):
        messages.append({"role": role, "content": text})
        for k in range(3):
            call = {"id": f"{n}-{k}", "function": {"name": "log", "arguments": "{}"}}
            messages.append({"role": "assistant", "tool_calls": [call]})
            messages.append(
                {"role": "tool", "tool_call_id": f"{n}-{k}", "content": f"entry {n} {k} written"}
            )
    path = folder / "talk.json"
    path.write_text(json.dumps(messages))
    return path


@pytest.mark.req("recall:dual-view")
def test_neighbours_are_of_one_thread_though_tool_results_stand_between(
    space: Namespace, tmp_path: Path
) -> None:
    import_transcripts(space, [talk(tmp_path)])
    records = trace(space)
    corpus = Corpus(unit_of(r, n, index_terms(r)) for n, r in enumerate(records))
    by_kind = {kind: [n for n, r in enumerate(records) if r.kind == kind] for kind in KINDS}
    assert corpus.neighbours[by_kind["message"][1]] == (
        by_kind["message"][0],
        by_kind["message"][2],
    )
    results = by_kind["tool_result"]
    assert set(corpus.neighbours[results[3]]) == {*results[1:3], *results[4:6]}


@pytest.mark.req("recall:dual-view")
@pytest.mark.parametrize("largest", [20_000, 0])
def test_an_answer_is_found_by_the_question_before_it_across_tool_results(
    space: Namespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, largest: int
) -> None:
    """The same holds of a namespace that is too large to be ranked as a whole."""
    monkeypatch.setattr(corpora, "LARGEST", largest)
    import_transcripts(space, [talk(tmp_path)])
    for n in range(40):
        space.save(f"unrelated remark number {n}", session=f"s{n}", kind="message")
    asked = "Which colour shall the boathouse have?"
    profile = replace(DEFAULT, gate=False)
    found = space.recall(asked, profile=profile, limit=60, budget=4000, explain=True)
    (answer,) = [item for item in found.items if item.record.text.startswith("Ochre")]
    assert answer.parts["window"] > 0


@pytest.mark.req("recall:dual-view")
def test_what_the_hooks_record_is_a_trace_with_threads(space: Namespace) -> None:
    runtime = ZeroMemRuntime(space, conversation="chat-1")
    runtime.on_message("user", "Shall we repaint the boathouse?")
    runtime.execute_tool("log", {}, lambda _: "entry written")
    runtime.on_tool_success("order-7", "open", tool="shop")
    runtime.on_message("assistant", "Which colour do you want?")
    records = trace(space)
    assert {r.session for r in records} == {"chat-1"}
    assert [r.speaker for r in records] == ["user", "log", "shop", "assistant"]
    corpus = Corpus(unit_of(r, n, index_terms(r)) for n, r in enumerate(records))
    assert corpus.neighbours == {0: (3,), 3: (0,), 1: (2,), 2: (1,)}


# Real files


def test_public_sessions_are_imported_whole(
    space: Namespace, shared_data: Callable[[str], Path]
) -> None:
    session = shared_data("raw/claude_code_session.jsonl.gz")
    runs = shared_data("raw/taubench_airline.openai_chat.jsonl.gz")
    report = import_transcripts(space, [session, runs])
    assert (report.defects, report.instructions) == ([], 100)
    assert len(report.sessions) == 101
    again = import_transcripts(space, [runs, session])
    assert (again.imported, again.unchanged) == (0, report.imported)
    first = trace(space)[0]
    assert first.created_at.year == 2026
    assert first.speaker == "user"
