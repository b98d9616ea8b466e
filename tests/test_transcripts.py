"""Transcript files: told apart by content, read in part where they are bad, never silently."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zero_mem.controller.messages import Defect, Transcript
from zero_mem.errors import InvalidInput
from zero_mem.replay.transcripts import Reading, iter_read, read

pytestmark = pytest.mark.req("ledger:compare", "pkg:errors")

USER = {"role": "user", "content": "Where is parcel 881?"}
CALL = {
    "role": "assistant",
    "tool_calls": [{"id": "c", "function": {"name": "track", "arguments": "{}"}}],
}
RESULT = {"role": "tool", "tool_call_id": "c", "content": "in Leipzig"}
RUN = [USER, CALL, RESULT]
TOOL_USE = {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "track"}]}
ITEM = {"type": "function_call", "call_id": "c", "name": "track", "arguments": "{}"}
ENTRY = {"type": "user", "sessionId": "s", "message": USER}


def one_a_line(*values: Any) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def reading_of(tmp_path: Path, content: bytes) -> Reading:
    path = tmp_path / "runs.jsonl"
    path.write_bytes(content)
    return read(path)


def roles(reading: Reading) -> list[list[str]]:
    return [[message.role for message in run.messages] for run in reading.transcripts]


def problems(reading: Reading) -> list[tuple[int, str]]:
    return [(defect.line, defect.problem) for defect in reading.defects]


@pytest.mark.parametrize(
    ("content", "runs", "wire_format"),
    [
        (json.dumps(RUN).encode(), 1, "openai_chat"),
        (json.dumps(RUN, indent=2).encode(), 1, "openai_chat"),
        (json.dumps([RUN, RUN]).encode(), 2, "openai_chat"),
        (json.dumps({"messages": RUN}).encode(), 1, "openai_chat"),
        (json.dumps([{"messages": RUN}, {"messages": RUN}], indent=1).encode(), 2, "openai_chat"),
        (json.dumps({"model": "m", "messages": RUN}).encode(), 1, "openai_chat"),
        (one_a_line(*RUN), 1, "openai_chat"),
        (one_a_line(RUN, RUN, RUN), 3, "openai_chat"),
        (one_a_line({"trajectory": "a", "messages": RUN}), 1, "openai_chat"),
        (one_a_line(USER), 1, "openai_chat"),
        (json.dumps([USER, TOOL_USE]).encode(), 1, "anthropic"),
        (one_a_line(USER, TOOL_USE), 1, "anthropic"),
        (json.dumps({"system": "Brief.", "messages": [USER]}).encode(), 1, "anthropic"),
        (json.dumps([USER, ITEM]).encode(), 1, "openai_responses"),
        (one_a_line(USER, ITEM), 1, "openai_responses"),
        (json.dumps({"input": "Where?", "model": "m"}).encode(), 1, "openai_responses"),
        (json.dumps({"input": [USER, ITEM], "id": 7}).encode(), 1, "openai_responses"),
        (one_a_line({"type": "summary", "leafUuid": "u"}, ENTRY), 1, "claude_code"),
        (json.dumps([ENTRY], indent=1).encode(), 1, "claude_code"),
        (b"\xef\xbb\xbf" + one_a_line(RUN), 1, "openai_chat"),
        (b"\r\n\r\n" + one_a_line(RUN).replace(b"\n", b"\r\n"), 1, "openai_chat"),
        (gzip.compress(one_a_line(RUN)), 1, "openai_chat"),
    ],
)
def test_the_content_tells_the_format(
    tmp_path: Path, content: bytes, runs: int, wire_format: str
) -> None:
    reading = reading_of(tmp_path, content)
    assert (len(reading.transcripts), reading.wire_format) == (runs, wire_format)
    assert {run.wire_format for run in reading.transcripts} == {wire_format}
    assert reading.defects == ()


@pytest.mark.parametrize("name", ["raw/taubench_airline.openai_chat.jsonl.gz"])
def test_real_chat_runs_read_whole(shared_data: Callable[[str], Path], name: str) -> None:
    reading = read(shared_data(name))
    assert reading.defects == ()
    assert reading.wire_format == "openai_chat"
    assert len({run.name for run in reading.transcripts}) == len(reading.transcripts)
    messages = [message for run in reading.transcripts for message in run.messages]
    calls = sum(len(message.calls) for message in messages)
    assert calls == sum(message.role == "tool" for message in messages) > 0
    assert all(message.tool for message in messages if message.role == "tool")


def test_a_real_session_reads_whole(shared_data: Callable[[str], Path]) -> None:
    reading = read(shared_data("raw/claude_code_session.jsonl.gz"))
    [run] = reading.transcripts
    assert reading.defects == ()
    assert reading.wire_format == "claude_code"
    outputs = [i for i, message in enumerate(run.messages) if message.role == "assistant"]
    assert sorted(run.usage) == outputs


def test_names_are_unique_within_and_across_files(tmp_path: Path) -> None:
    taken: set[str] = set()
    named = one_a_line(*({"id": name, "messages": RUN} for name in ["a", "a", "b", 7]), RUN)
    for file in ("one", "two"):
        (tmp_path / file).write_bytes(named)
    first = [run.name for run in read(tmp_path / "one", names=taken).transcripts]
    second = [run.name for run in read(tmp_path / "two", names=taken).transcripts]
    assert first == ["a", "one:a", "b", "7", "one#5"]
    assert second == ["two:a", "two#2:a", "two:b", "two:7", "two#5"]


def test_a_truncated_line_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    whole = one_a_line(RUN)
    reading = reading_of(tmp_path, whole + whole[:60] + b"\n" + whole)
    assert len(reading.transcripts) == 2
    [(line, problem)] = problems(reading)
    assert line == 2
    assert "breaks off" in problem
    assert "Leipzig" not in problem


@pytest.mark.parametrize("cut", [20, 60])
def test_a_truncated_first_or_last_line_costs_only_itself(tmp_path: Path, cut: int) -> None:
    whole = one_a_line(RUN)
    assert len(reading_of(tmp_path, whole[:cut] + b"\n" + whole).transcripts) == 1
    last = reading_of(tmp_path, whole + whole[:cut])
    assert len(last.transcripts) == 1
    assert [defect.line for defect in last.defects] == [2]


def test_a_list_that_breaks_off_is_read_up_to_there(tmp_path: Path) -> None:
    for indent in (None, 1):
        content = json.dumps(RUN, indent=indent).encode()[:-30]
        reading = reading_of(tmp_path, content)
        assert roles(reading) == [["user", "assistant"]]
        assert "breaks off" in reading.defects[0].problem


def test_invalid_utf8_is_replaced_and_named(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, one_a_line(RUN, RUN).replace(b"Leipzig", b"L\xffpzig", 1))
    assert [run.messages[2].text for run in reading.transcripts] == ["in L\ufffdpzig", "in Leipzig"]
    [(line, problem)] = problems(reading)
    assert line == 1
    assert "invalid UTF-8 at byte" in problem


@pytest.mark.req("index:any-text")
def test_a_lone_surrogate_is_replaced_and_an_emoji_is_not(tmp_path: Path) -> None:
    content = one_a_line(RUN).replace(b"Leipzig", rb"\ud83d \ud83d\ude80")
    reading = reading_of(tmp_path, content)
    assert reading.transcripts[0].messages[2].text == "in \ufffd 🚀"
    assert problems(reading) == [(1, "lone surrogate: replaced by U+FFFD")]


def test_nul_bytes_are_named(tmp_path: Path) -> None:
    holes = b"\0" * 64 + b"\n"
    content = one_a_line(RUN) + holes + one_a_line(RUN).replace(b"Leipzig", b"Leip\0zig")
    reading = reading_of(tmp_path, content)
    assert len(reading.transcripts) == 2
    assert reading.transcripts[1].messages[2].text == "in Leip\0zig"
    assert problems(reading) == [(2, "nothing but NUL bytes: line left out"), (3, "NUL bytes")]


def test_an_escaped_nul_is_text_like_any_other(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, one_a_line([{"role": "user", "content": "a\0b"}]))
    assert reading.transcripts[0].messages[0].text == "a\0b"
    assert reading.defects == ()


def test_a_key_that_stands_twice_is_named(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, b'[{"role": "user", "content": "old", "content": "new"}]')
    assert reading.transcripts[0].messages[0].text == "new"
    assert problems(reading) == [(1, "a key stands twice in an object: the last value is read")]


def test_orphans_are_named_with_line_and_record(tmp_path: Path) -> None:
    orphan = {"role": "tool", "tool_call_id": "gone", "content": "lost"}
    again = {"role": "assistant", "content": "hm"}
    record = {"id": "r9", "messages": [USER, orphan, CALL, again]}
    reading = reading_of(tmp_path, one_a_line(RUN, record))
    assert roles(reading)[1] == ["user", "assistant", "assistant"]
    assert [(d.line, d.record, d.problem) for d in reading.defects] == [
        (2, "r9 message 2", "result without a call (gone): left out"),
        (2, "r9 message 3", "call without a result: track (c)"),
    ]


def test_strange_lines_are_defects_but_a_sessions_notes_are_not(tmp_path: Path) -> None:
    note = {"type": "custom-note", "text": "x"}
    reading = reading_of(tmp_path, one_a_line(RUN, note, 7, {"messages": []}))
    assert len(reading.transcripts) == 1
    assert [defect.line for defect in reading.defects] == [2, 3, 4]
    assert reading_of(tmp_path, one_a_line(note, ENTRY)).defects == ()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty"),
        (b" \n\n", "empty"),
        (b"not json at all\n", "no JSON"),
        (b'{"a": 1}\n{"a": 2}\n', "no message"),
        (b'{"messages": [{"role": "user", "con', "breaks off"),
        (b"[]", "no message"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[" * 400 + b"]" * 400, "no message"),
        (b"\xff\xfe[\0]\0", "UTF-16"),
        (b"\x1f\x8bgarbage", "gzip"),
        (gzip.compress(b"", mtime=0), "empty"),
        (b"1" * 5000, "digits"),
    ],
)
def test_nothing_to_replay_says_what_was_looked_for(
    tmp_path: Path, content: bytes, said: str
) -> None:
    with pytest.raises(InvalidInput) as error:
        reading_of(tmp_path, content)
    assert "runs.jsonl" in str(error.value)
    assert "Looked for OpenAI chat messages" in str(error.value)
    assert said in str(error.value)


def test_a_folder_or_a_missing_file_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="directory"):
        read(tmp_path)
    with pytest.raises(InvalidInput, match="No such file"):
        read(tmp_path / "gone.json")


def test_a_file_that_may_not_be_read_is_a_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, *_: Any) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(InvalidInput, match=r"x\.json: Permission denied"):
        read(tmp_path / "x.json")


def test_a_cut_gzip_file_gives_what_it_holds(tmp_path: Path) -> None:
    blocks = [gzip.compress(one_a_line({"id": i, "messages": RUN})) for i in range(3)]
    reading = reading_of(tmp_path, b"".join(blocks)[:-20])
    assert [run.name for run in reading.transcripts] == ["0", "1"]
    assert "damaged or cut" in reading.defects[-1].problem


def test_a_huge_result_is_read_whole(tmp_path: Path) -> None:
    big = {**RESULT, "content": "x" * 5_000_000}
    reading = reading_of(tmp_path, one_a_line([USER, CALL, big], RUN))
    assert [len(run.messages[2].text) for run in reading.transcripts] == [5_000_000, 10]


def test_progress_rises_to_the_size_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "many"
    path.write_bytes(one_a_line(RUN) * 5000)
    told: list[tuple[int, int]] = []
    read(path, progress=lambda done, total: told.append((done, total)))
    size = path.stat().st_size
    assert told[-1] == (size, size)
    assert len(told) > 2
    assert told == sorted(told)


def test_runs_are_given_before_the_file_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "many"
    path.write_bytes(one_a_line(RUN) * 5000)
    told: list[int] = []
    reads = iter_read(path, progress=lambda done, _: told.append(done))
    assert isinstance(next(reads), Transcript)
    assert told == []


FRAGMENTS = st.lists(
    st.sampled_from(
        [
            b'{"role": "user", "content": "x"}',
            b'{"messages": [{"role": "user", "content": 1}]}',
            b'{"request": {"messages": [7]}, "response": []}',
            b'{"type": "user", "message": {"content": [{}]}}',
            *(b"\n", b"[", b"]", b"{", b",", b"\xff", b"\0", b'"\\ud800"', b"\x1f\x8b", b" "),
        ]
    ),
    max_size=8,
).map(b"".join)


@given(content=FRAGMENTS | st.binary(max_size=40))
def test_any_bytes_give_runs_or_a_typed_error(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(content)
    try:
        found = list(iter_read(path))
    except InvalidInput:
        return
    assert any(isinstance(item, Transcript) for item in found)
    assert all(isinstance(item, Transcript | Defect) for item in found)
