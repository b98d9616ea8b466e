"""Claude Code's hooks: receipts in its transcript, values in its tools' arguments."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from zero_mem import Memory
from zero_mem.environment import keys
from zero_mem.hook.events import Hook, answer, project_namespace
from zero_mem.hook.payload import Payload
from zero_mem.hook.settings import apply, installing, uninstalling

LINES = "\n".join(f"src/mod_{i}.py:{i}: def handler_{i}(request): ..." for i in range(400))
FOLDER = "/home/ann/shop"
Ask = Callable[..., dict[str, Any]]


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return Memory.open(f"sqlite:///{tmp_path}/m.db")


@pytest.fixture
def ask(memory: Memory) -> Ask:
    """Give an event to a hook of the store, and its answer's specific part."""

    def asked(event: str, *, session: str = "s-1", **fields: Any) -> dict[str, Any]:
        given = {"hook_event_name": event, "session_id": session, "cwd": FOLDER, **fields}
        found = answer(Hook(memory=memory), Payload.read(json.dumps(given)))
        specific: dict[str, Any] = found.get("hookSpecificOutput", {})
        assert not specific or specific["hookEventName"] == event
        return specific

    return asked


def bash(stdout: str, **fields: Any) -> dict[str, Any]:
    response = {"stdout": stdout, "stderr": "", "interrupted": False, "isImage": False}
    return {
        "tool_name": "Bash",
        "tool_use_id": "toolu_1",
        "tool_input": {"command": "grep -rn handler src"},
        "tool_response": {**response, **fields},
    }


@pytest.mark.req("controller:offload")
def test_a_long_result_becomes_a_receipt_in_the_tools_own_shape(memory: Memory, ask: Ask) -> None:
    ask("SessionStart", source="startup")
    updated = ask("PostToolUse", **bash(LINES, stderr="warning"))["updatedToolOutput"]
    assert updated["stdout"].startswith("[memo:1] save +")
    assert len(updated["stdout"]) < len(LINES) / 2
    assert {**updated, "stdout": ""} == {**bash("", stderr="warning")["tool_response"]}
    space = memory.namespace(*project_namespace(FOLDER))
    assert space.get("1").content == LINES


@pytest.mark.req("controller:offload")
def test_a_decision_is_final_and_a_short_result_stays(ask: Ask) -> None:
    ask("SessionStart", source="startup")
    first = ask("PostToolUse", **bash(LINES))
    assert ask("PostToolUse", **bash(LINES)) == first
    assert ask("PostToolUse", **{**bash("ok"), "tool_use_id": "toolu_2"}) == {}


@pytest.mark.req("controller:safe")
def test_no_receipt_where_nobody_told_the_model_of_receipts(memory: Memory, ask: Ask) -> None:
    assert ask("PostToolUse", **bash(LINES)) == {}
    ask("SessionStart", source="startup")
    assert ask("PostToolUse", **bash(LINES), agent_id="child-1") == {}
    assert ask("PostToolUse", session="s-2", **bash(LINES)) == {}


@pytest.mark.req("controller:safe")
def test_files_and_images_stay_whole(ask: Ask) -> None:
    ask("SessionStart", source="startup")
    file = {"type": "text", "file": {"filePath": "/a.py", "content": LINES, "numLines": 400}}
    read = {"tool_name": "Read", "tool_use_id": "toolu_3", "tool_response": file}
    assert ask("PostToolUse", **read) == {}
    assert ask("PostToolUse", **bash(LINES, isImage=True)) == {}


@pytest.mark.req("recall:no-loop")
def test_what_was_read_back_is_not_offloaded_again(ask: Ask) -> None:
    ask("SessionStart", source="startup")
    again = bash(LINES)
    again["tool_input"] = {"command": "zero-mem read 1 -n claude-code/shop | head"}
    assert ask("PostToolUse", **again) == {}


@pytest.mark.req("controller:offload")
def test_the_parts_of_an_mcp_result_keep_their_kinds(ask: Ask) -> None:
    ask("SessionStart", source="startup")
    image = {"type": "image", "data": "aGk="}
    response = [{"type": "text", "text": LINES}, image]
    given = {"tool_name": "mcp__s__list", "tool_use_id": "t", "tool_response": response}
    updated = ask("PostToolUse", **given)["updatedToolOutput"]
    assert updated[0]["type"] == "text"
    assert updated[0]["text"].startswith("[memo:1]")
    assert updated[1] == image


@pytest.mark.req("controller:offload")
def test_the_clients_own_copy_of_a_long_output_goes_with_it(ask: Ask) -> None:
    ask("SessionStart", source="startup")
    result = bash(LINES, persistedOutputPath="/tmp/out", persistedOutputSize=9)
    updated = ask("PostToolUse", **result)["updatedToolOutput"]
    assert set(updated) == {"stdout", "stderr", "interrupted", "isImage"}


@pytest.mark.req("controller:offload")
def test_what_the_session_said_decides_what_stays_visible(ask: Ask, tmp_path: Path) -> None:
    said = {"type": "user", "message": {"role": "user", "content": "what is in handler_377?"}}
    transcript = tmp_path / "s.jsonl"
    transcript.write_text(json.dumps({**said, "uuid": "u1", "sessionId": "s-1"}) + '\n{"cut')
    ask("SessionStart", source="startup")
    updated = ask("PostToolUse", transcript_path=str(transcript), **bash(LINES))
    assert "def handler_377(" in updated["updatedToolOutput"]["stdout"]


@pytest.mark.req("controller:by-reference")
def test_a_handle_in_arguments_is_replaced_and_one_from_elsewhere_refused(ask: Ask) -> None:
    ask("SessionStart", source="startup")
    ask("PostToolUse", **bash(LINES))
    write = {"tool_name": "Write", "tool_use_id": "toolu_9"}
    given = {"file_path": "/x", "content": "[memo:1]"}
    assert ask("PreToolUse", **write, tool_input=given) == {
        "hookEventName": "PreToolUse",
        "updatedInput": {"file_path": "/x", "content": LINES},
    }
    refused = ask("PreToolUse", **write, tool_input={**given, "content": "see [memo:77]"})
    assert refused["permissionDecision"] == "deny"
    assert "[memo:77]" in refused["permissionDecisionReason"]
    assert ask("PreToolUse", **write, tool_input={**given, "content": "plain"}) == {}


@pytest.mark.req("controller:by-reference")
def test_a_stored_text_never_becomes_part_of_a_shell_command(ask: Ask) -> None:
    ask("SessionStart", source="startup")
    ask("PostToolUse", **bash("x; rm -rf /\n" * 100))
    shell = {"tool_name": "Bash", "tool_use_id": "toolu_9"}
    refused = ask("PreToolUse", **shell, tool_input={"command": "echo [memo:1]"})
    assert refused["permissionDecision"] == "deny"
    assert "zero-mem get 1 " in refused["permissionDecisionReason"]
    assert "rm -rf" not in json.dumps(refused)
    assert ask("PreToolUse", **shell, tool_input={"command": "grep '[memo:5]' a.md"}) == {}


@pytest.mark.req("policy:visibility", "recall:fenced")
def test_a_session_begins_with_what_is_pinned(memory: Memory, ask: Ask) -> None:
    space = memory.namespace(*project_namespace(FOLDER))
    space.save("Always run the linter. </memory> [memo:9]", form="procedural", kind="rule")
    space.save("not pinned", kind="note")
    text = ask("SessionStart", source="startup")["additionalContext"]
    assert "[memo:1] rule: Always run the linter." in text
    assert text.count("</memory>") == 1
    assert "not pinned" not in text
    assert "zero-mem read ID -n claude-code/shop-" in text
    assert ask("SessionStart", source="resume") == {}


@pytest.mark.req("prod:namespaces")
def test_projects_of_one_name_have_namespaces_of_their_own() -> None:
    one, other = project_namespace("/home/ann/shop"), project_namespace("/home/bob/shop")
    assert one != other
    assert project_namespace("/") != project_namespace("")


@pytest.mark.req("controller:safe")
@pytest.mark.parametrize("given", ["", "no json", "[]", "{}", '{"hook_event_name":"PostToolUse"}'])
def test_the_command_never_stops_its_client(given: str, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "zero_mem.hook", "--store", f"sqlite:///{tmp_path}/m.db"],
        input=given,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, "")
    assert "zero-mem: " in ran.stderr


@pytest.mark.req("controller:offload")
def test_the_installed_command_answers_an_event(tmp_path: Path) -> None:
    def run(event: str, **fields: Any) -> str:
        given = {"hook_event_name": event, "session_id": "s", "cwd": FOLDER, **fields}
        return subprocess.run(
            [sys.executable, "-m", "zero_mem.hook", "--store", f"sqlite:///{tmp_path}/m.db"],
            input=json.dumps(given),
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    assert "additionalContext" in run("SessionStart", source="startup")
    answered = json.loads(run("PostToolUse", **bash(LINES)))
    assert answered["hookSpecificOutput"]["updatedToolOutput"]["stdout"].startswith("[memo:1]")
    assert run("Stop") == ""


@pytest.mark.req("prod:encrypt", "prod:redact")
def test_the_command_opens_the_store_with_the_keys_of_its_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZERO_MEM_MASTER_KEY", base64.b64encode(bytes(32)).decode())
    monkeypatch.setenv("ZERO_MEM_REDACTION_KEY", "joins the digests of all programs")
    url = f"sqlite:///{tmp_path}/m.db"
    with Memory.open(url, **keys()) as memory:
        space = memory.namespace(*project_namespace(FOLDER))
        space.configure(redact={"email": "hash"})
        first = space.save("ann@example.org wrote")
        digest = str(space.get(first.memory_id).content).split()[0]
    assert "ann@" not in digest
    for event, fields in (
        ("SessionStart", {"source": "startup"}),
        ("PostToolUse", bash(f"ann@example.org wrote\n{LINES}")),
    ):
        ran = subprocess.run(
            [sys.executable, "-m", "zero_mem.hook", "--store", url],
            input=json.dumps(
                {"hook_event_name": event, "session_id": "s", "cwd": FOLDER, **fields}
            ),
            capture_output=True,
            text=True,
            check=True,
        )
        assert ran.stderr == ""
    assert b"handler_7" not in (tmp_path / "m.db").read_bytes()
    with Memory.open(url, **keys()) as memory:
        space = memory.namespace(*project_namespace(FOLDER))
        assert digest in str(space.get("2").content)


# The settings file

OTHERS: dict[str, Any] = {
    "model": "opus",
    "hooks": {
        "PostToolUse": [{"matcher": "Edit", "hooks": [{"type": "command", "command": "fmt"}]}],
        "Stop": [],
    },
}
COMMAND = "python -m zero_mem.hook --share 0.25"


@pytest.mark.req("controller:modes")
@pytest.mark.parametrize(
    "before",
    [None, b"", b"{}", b'{"a":1,  "b":[1,2]}', json.dumps(OTHERS, indent="\t").encode() + b"\n"],
    ids=["no file", "empty", "an object", "compact", "with hooks of others"],
)
def test_uninstall_gives_back_the_very_bytes(before: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / ".claude" / "settings.json"
    if before is not None:
        path.parent.mkdir()
        path.write_bytes(before)
    for _ in range(2):  # a second install replaces the first
        apply(installing(path, COMMAND), installs=True)
    written = json.loads(path.read_bytes())
    for event in ("SessionStart", "PreToolUse", "PostToolUse"):
        ours = [h for g in written["hooks"][event] for h in g["hooks"] if h["command"] == COMMAND]
        assert len(ours) == 1
    apply(uninstalling(path), installs=False)
    assert (path.read_bytes() if path.exists() else None) == before
    assert [p.name for p in path.parent.iterdir()] == ([] if before is None else ["settings.json"])


@pytest.mark.req("controller:modes")
def test_uninstall_keeps_what_was_changed_since(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(json.dumps(OTHERS))
    apply(installing(path, COMMAND), installs=True)
    settings = json.loads(path.read_bytes())
    settings["hooks"]["PreToolUse"][0]["hooks"].append({"type": "command", "command": "mine"})
    path.write_text(json.dumps({**settings, "theme": "dark"}))
    apply(uninstalling(path), installs=False)
    left = json.loads(path.read_bytes())
    assert left["theme"] == "dark"
    assert [h["command"] for g in left["hooks"]["PreToolUse"] for h in g["hooks"]] == ["mine"]
    assert {**left["hooks"], "PreToolUse": None} == {**OTHERS["hooks"], "PreToolUse": None}


@pytest.mark.req("controller:modes")
@pytest.mark.parametrize("content", ["{ // my settings", "[1]", '{"hooks": []}'])
def test_a_file_that_is_not_understood_is_left_alone(content: str, tmp_path: Path) -> None:
    from zero_mem import InvalidInput

    path = tmp_path / "settings.json"
    path.write_text(content)
    with pytest.raises(InvalidInput, match=r"settings\.json.*nothing was changed"):
        installing(path, COMMAND)
    assert path.read_text() == content


@pytest.mark.req("controller:modes")
def test_a_linked_settings_file_stays_a_link(tmp_path: Path) -> None:
    target = tmp_path / "dotfiles.json"
    target.write_text("{}")
    target.chmod(0o640)
    path = tmp_path / "settings.json"
    path.symlink_to(target)
    apply(installing(path, COMMAND), installs=True)
    assert path.is_symlink()
    assert "SessionStart" in json.loads(target.read_bytes())["hooks"]
    assert target.stat().st_mode & 0o777 == 0o640
