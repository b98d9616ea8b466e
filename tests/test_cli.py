"""The command line: every operation, stable JSON, errors that help, documented exit codes."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from zero_mem import Memory
from zero_mem.cli.app import app
from zero_mem.cli.failures import EXIT_CODES
from zero_mem.cli.progress import bar

pytestmark = pytest.mark.req("pkg:cli")

ROOT = Path(__file__).resolve().parent.parent
COMMANDS = {
    "save", "get", "list", "search", "recall", "read", "update", "touch", "archive", "restore",
    "delete", "purge", "expire", "scrub", "history", "as-of", "rollback", "stats", "why",
    "duplicates", "configure", "reindex", "export", "import", "replay", "proxy", "bench recall",
    "demo", "sync", "backup", "verify", "recover", "hook install", "hook uninstall", "hook run",
    "encryption new-key", "encryption rewrap", "encryption renew", "encryption erase",
    "key create", "key list", "key revoke", "doctor", "changes", "serve",
    "node list", "node move",
    "mcp serve", "mcp install", "mcp uninstall",
}  # fmt: skip
NAMES = {name.split()[0] for name in COMMANDS}
RECEIPT = {"memory_id", "operation", "version", "created_at", "preview", "flags", "context"}
RECORD = {
    "uid", "memory_id", "namespace", "form", "kind", "key", "content", "content_type",
    "metadata", "tags", "task", "session", "speaker", "source", "created_at", "recorded_at",
    "updated_at", "accessed_at", "access_count", "expires_at", "invalidated_by", "version",
    "state",
}  # fmt: skip


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Each test has a store and a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ZERO_MEM_URL", "sqlite:///agent.db")
    monkeypatch.delenv("ZERO_MEM_NAMESPACE", raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    return iter([tmp_path / "agent.db"])


def run(*arguments: str, code: int = 0, given: str | bytes | None = None) -> Result:
    """Run a command that must end with `code`."""
    done = CliRunner().invoke(app, list(arguments), input=given)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == code, done.output
    return done


def said(*arguments: str, code: int = 0, given: str | bytes | None = None) -> str:
    return run(*arguments, code=code, given=given).stdout.rstrip("\n")


def parsed(*arguments: str, code: int = 0) -> Any:
    """Run with --json; stdout is one line of JSON."""
    lines = run(*arguments, "--json", code=code).stdout.splitlines()
    assert len(lines) == 1
    return json.loads(lines[0])


def commands() -> dict[str, Any]:
    """Give every command by its name; one of a group has the group's name before its own."""
    return dict(_commands(typer.main.get_command(app), ""))


def _commands(group: Any, before: str) -> Iterator[tuple[str, Any]]:
    for name, each in group.commands.items():
        if hasattr(each, "commands"):
            yield from _commands(each, f"{before}{name} ")
        else:
            yield f"{before}{name}", each


# The commands


def test_every_command_is_there() -> None:
    assert commands().keys() == COMMANDS


def test_every_command_argument_and_option_is_documented() -> None:
    silent = []
    for name, each in commands().items():
        if not (each.help or "").strip():
            silent.append(name)
        silent += [f"{name} {p.name}" for p in each.params if not getattr(p, "help", "")]
    assert silent == []


def test_the_first_line_of_each_command_fits_in_the_overview() -> None:
    overview = run("--help").stdout
    listed = overview.partition("Commands:")[2]
    assert "..." not in listed


def test_help_lists_the_exit_codes() -> None:
    overview = run("--help").stdout
    assert all(f"{code}  {meaning}" in overview for code, meaning in EXIT_CODES.items())


def test_every_command_but_the_walk_through_for_people_takes_json() -> None:
    options = {
        name: {option for parameter in each.params for option in parameter.opts}
        for name, each in commands().items()
    }
    without = {name for name, known in options.items() if "--json" not in known}
    assert without == {"demo", "hook run", "mcp serve", "serve"}


def test_version() -> None:
    assert re.fullmatch(r"zero-mem \d+\.\d+\.\d+\S*", said("--version"))


# Writing


@pytest.mark.req("receipt:format", "receipt:no-body")
def test_save_prints_the_receipt_and_no_body() -> None:
    text = said("save", "Asia/Shanghai", "--kind", "user_pref", "--key", "timezone")
    assert text == "[memo:1] save (user_pref:timezone)"
    again = said("save", "Asia/Shanghai", "--kind", "user_pref", "--key", "timezone")
    assert again == "[memo:1] update (user_pref:timezone)  unchanged"


def test_a_receipt_as_json_has_its_fixed_fields() -> None:
    receipt = parsed("save", "Asia/Shanghai", "--kind", "user_pref")
    assert receipt.keys() == RECEIPT
    assert receipt["context"] == "[memo:1] save (user_pref)"
    assert "Shanghai" not in json.dumps(receipt)


def test_save_takes_every_field() -> None:
    said(
        "save", "tea", "--kind", "drink", "--key", "usual", "--form", "episodic", "--id", "d-1",
        "--metadata", '{"order": 57}', "--tag", "one", "--tag", "two", "--task", "t", "--session",
        "s", "--speaker", "Ann", "--source", "tool", "--expires-in", "7d", "--invalidated-by",
        "order.cancelled", "--created-at", "2020-01-02T03:04:05Z", "--if-version", "0",
        "--idempotency-key", "once",
    )  # fmt: skip
    record = parsed("get", "d-1")
    assert record.keys() == RECORD
    wanted = {
        "memory_id": "d-1", "namespace": ["default"], "form": "episodic", "kind": "drink",
        "key": "usual", "content": "tea", "content_type": "text", "metadata": {"order": 57},
        "tags": ["one", "two"], "task": "t", "session": "s", "speaker": "Ann", "source": "tool",
        "created_at": "2020-01-02T03:04:05+00:00", "invalidated_by": ["order.cancelled"],
    }  # fmt: skip
    assert {name: record[name] for name in wanted} == wanted
    assert record["expires_at"] > record["recorded_at"]


@pytest.mark.req("record:body")
def test_a_body_comes_from_stdin_or_a_file_byte_for_byte(tmp_path: Path) -> None:
    text = "first line\r\n\n退款 \U0001f9fe\n".encode()
    (tmp_path / "body.txt").write_bytes(text)
    run("save", "-", given=text)
    run("save", "--file", "body.txt")
    for memory_id in ("1", "2"):
        assert run("get", memory_id, "--body").stdout_bytes == text


@pytest.mark.req("record:body")
def test_json_and_binary_bodies(tmp_path: Path) -> None:
    (tmp_path / "dot.png").write_bytes(bytes(range(256)))
    run("save", '{"a": [1, null]}', "--as-json")
    run("save", "--file", "dot.png", "--media-type", "image/png")
    run("save", '{"a": 1}')
    assert parsed("get", "1")["content"] == {"a": [1, None]}
    assert parsed("get", "2")["media_type"] == "image/png"
    assert run("get", "2", "--body").stdout_bytes == bytes(range(256))
    assert parsed("get", "3")["content"] == '{"a": 1}'


def test_update_touch_archive_and_restore() -> None:
    run("save", "tea", "--tag", "one", "--metadata", '{"a": 1, "b": 2}')
    said("update", "1", "green tea", "--metadata", '{"a": null}', "--clear-tags")
    record = parsed("get", "1")
    assert (record["content"], record["metadata"], record["tags"]) == ("green tea", {"b": 2}, [])
    run("touch", "1", "--expires-in", "2h")
    assert parsed("get", "1")["expires_at"]
    run("update", "1", "--expires-in", "never")
    assert parsed("get", "1")["expires_at"] is None
    assert parsed("archive", "1")["receipts"][0]["operation"] == "archive"
    assert run("search", "tea", code=1).stdout.strip() == "nothing found"
    assert said("restore", "1") == "[memo:1] restore (note)"


def test_a_scrub_says_what_is_gone() -> None:
    run("save", "tea")
    run("purge", "1")
    assert parsed("scrub") == {"scrubbed": True}
    assert "nothing" in said("scrub")
    assert "scrub" in run("purge", "--help").stdout


def test_delete_names_ids_or_needs_yes() -> None:
    for n in range(4):
        run("save", f"note {n}")
    run("archive", "4")
    assert parsed("delete", "1", "4")["count"] == 2
    refused = run("delete", "--kind", "note", code=2)
    assert "2 memories match" in refused.stderr
    assert "--yes" in refused.stderr
    assert parsed("delete", "--kind", "note", "--yes")["count"] == 2
    run("save", "one", "--kind", "fact")
    assert "1 memory matches;" in run("purge", "--kind", "fact", code=2).stderr
    run("delete", code=2)
    run("delete", "--all", "--yes")


def test_an_unknown_id_among_several_deletes_none() -> None:
    run("save", "tea")
    run("delete", "1", "99", code=1)
    assert parsed("get", "1")["state"] == "active"


@pytest.mark.req("history:purge")
def test_purge_erases_from_the_file(tmp_path: Path) -> None:
    run("save", "quite-a-secret", "--tag", "old")
    run("purge", "--tag", "old", code=2)
    assert parsed("purge", "--tag", "old", "--yes")["receipts"][0]["operation"] == "purge"
    assert all(b"quite-a-secret" not in path.read_bytes() for path in tmp_path.iterdir())
    assert run("purge", "1", code=1).stderr


@pytest.mark.req("history:purge")
def test_a_dry_run_of_purge_counts_and_leaves_everything() -> None:
    run("save", "quite-a-secret", "--tag", "old")
    run("update", "1", "a longer secret")
    assert said("purge", "--tag", "old", "--dry-run").splitlines() == [
        "[memo:1] 2 versions, 2 bodies, 29 bytes",
        "would erase 1 memory, 29 bytes",
    ]
    foreseen = parsed("purge", "1", "--dry-run")
    assert (foreseen["dry_run"], foreseen["count"]) == (True, 0)
    assert parsed("get", "1")["version"] == 2
    assert parsed("purge", "1")["erased"] == foreseen["erased"]
    assert run("purge", "1", "--dry-run", code=1).stderr


# Reading


def test_list_pages_and_filters() -> None:
    for n in range(3):
        run("save", f"note {n}", "--tag", f"t{n % 2}", "--session", "s", "--task", "t")
    run("save", "other", "--kind", "fact")
    page = parsed("list", "--kind", "note", "--limit", "2")
    assert [item["memory_id"] for item in page["items"]] == ["1", "2"]
    more = parsed("list", "--kind", "note", "--limit", "2", "--cursor", page["next_cursor"])
    assert [item["memory_id"] for item in more["items"]] == ["3"]
    assert more["next_cursor"] is None
    where = '{"text": {"contains": "note"}}'
    both = parsed("list", "--where", where, "--tag", "t0", "--session", "s", "--task", "t")
    assert [item["memory_id"] for item in both["items"]] == ["1", "3"]
    assert "note 0" in said("list")
    assert said("list", "--state", "archived") == "no memories"


@pytest.mark.req("index:languages")
def test_search_and_recall() -> None:
    run("save", "用户正在申请退款，流程到第二步", "--kind", "task_state")
    run("save", "The refund of order 57 is under review.")
    hits = parsed("search", "退款")["hits"]
    assert [hit["memory_id"] for hit in hits] == ["1"]
    assert 0 < hits[0]["score"] <= 1
    assert hits[0]["record"].keys() == RECORD
    recall = parsed("recall", "refund order", "--budget", "200", "--explain")
    assert recall.keys() == {
        "items", "text", "tokens", "tokens_exact", "left_out", "behind", "degraded",
        "near_misses",
    }  # fmt: skip
    assert recall["text"] == "[memo:2] note: The refund of order 57 is under review."
    assert recall["tokens"] <= 200
    assert "tokens" in said("recall", "refund")
    assert parsed("recall", "nothing-like-this", code=1)["items"] == []
    assert "1 over the budget of 3 tokens: 2" in said("recall", "refund", "--budget", "3", code=1)


@pytest.mark.req("recall:where")
def test_read_selects_a_part() -> None:
    run("save", '{"items": [{"sku": "a"}, {"sku": "b"}]}', "--as-json")
    assert parsed("read", "1", "--pointer", "/items/1/sku")["value"] == "b"
    assert parsed("read", "1", "--pointer", "/items", "--rows", '{"sku": "a"}')["matched"] == 1
    run("save", "one\ntwo\nthree")
    lines = said("read", "2", "--lines", "2-3")
    assert ("one" in lines, "two" in lines, "three" in lines) == (False, True, True)
    assert said("read", "2", "--pattern", "^thr").endswith("three")


@pytest.mark.req("recall:where")
def test_a_read_that_matches_nothing_says_so() -> None:
    run("save", '{"items": [{"sku": "a"}], "none": []}', "--as-json")
    assert said("read", "1", "--pattern", "xyz", code=1) == "no match among 2"
    rows = ("read", "1", "--pointer", "/items", "--rows", '{"sku": "b"}')
    assert said(*rows, code=1) == "no match among 1"
    assert parsed(*rows, code=1)["matched"] == 0
    assert said("read", "1", "--pointer", "/none") == "[]"


def test_a_body_cannot_steer_the_terminal() -> None:
    run("save", "red \x1b[31m alert \x07 and \u202e backwards")
    for command in (("get", "1"), ("list",), ("search", "alert"), ("recall", "alert")):
        assert not set("\x1b\x07\u202e") & set(said(*command))


def test_lone_surrogates_are_shown_and_kept() -> None:
    with Memory.open("sqlite:///agent.db") as memory:
        memory.namespace("default").save("lone \ud83d one")
    assert "lone" in said("get", "1")
    assert parsed("get", "1")["content"] == "lone \ud83d one"


def test_stats_count_what_list_shows_as_active_and_the_expired_apart() -> None:
    run("save", "tea")
    run("save", "cold tea", "--expires-at", "2020-01-01T00:00:00Z")
    stats = parsed("stats")
    assert (stats["records"], stats["by_state"]) == (2, {"active": 1, "expired": 1})
    assert len(parsed("list")["items"]) == 1
    assert "active 1, expired 1" in said("stats")


def test_why_says_what_to_do() -> None:
    run("save", "tea")
    assert "1 change," in said("why", "1")
    (Path.cwd() / "prompt.txt").write_text("no handle here")
    found = parsed("why", "1", "--prompt", "prompt.txt")
    assert [step.keys() for step in found["steps"]] == [
        {"question", "answer", "evidence", "advice"}
    ] * len(found["steps"])
    assert "What to do" in said("why", "1", "--prompt", "-", given="nothing")


# The past


@pytest.mark.req("history:journal", "history:as-of", "history:rollback")
def test_history_as_of_and_rollback() -> None:
    run("save", "tea")
    first = parsed("get", "1")["recorded_at"]
    run("update", "1", "coffee")
    entries = parsed("history", "1")["entries"]
    assert [entry["operation"] for entry in entries] == ["save", "update"]
    assert entries[1]["before"] == {"content": "tea", "content_type": "text"}
    assert "update" in said("history", "1")
    assert parsed("as-of", first, "1")["content"] == "tea"
    assert [item["content"] for item in parsed("as-of", first)["items"]] == ["tea"]
    assert parsed("as-of", first, "--query", "tea")["hits"][0]["memory_id"] == "1"
    run("rollback", "1", "--to-version", "1")
    assert parsed("get", "1")["content"] == "tea"
    refused = run("rollback", "--to", first, code=2)
    assert "--yes" in refused.stderr
    run("rollback", "--to", first, "--yes")


@pytest.mark.req("op:expire")
def test_expire_sweeps_one_namespace_or_all() -> None:
    past = ["--expires-at", "2020-01-01T00:00:00Z"]
    run("save", "tea", *past)
    run("save", "tea", *past, "--namespace", "acme/alice")
    assert parsed("expire", "--dry-run")["count"] == 2
    assert parsed("expire", "--namespace", "acme/alice")["count"] == 1
    assert said("expire") == "default 1: expire (expired)\nended 1"


def test_configure_and_duplicates() -> None:
    run("configure", "max_recall_items=3", "overflow=refuse", "--kind", "note")
    limits = parsed("configure", "--kind", "note")
    assert (limits["max_recall_items"], limits["overflow"]) == (3, "refuse")
    assert re.search(r"^max_memory_items +null$", said("configure"), re.MULTILINE)
    assert parsed("configure", "--kind", "task_state")["retention_days"] == 30
    refused = run("configure", "max_memory_items=0", code=2)
    assert "null for no cap" in refused.stderr
    run("configure", "--form", "square", code=2)
    run("configure", "colour=red", code=2)
    run("save", "The refund of order 57 is under review.")
    run("save", "The refund of order 57 is under review!")
    assert parsed("duplicates", "note", "--merge")["groups"][0]["count"] == 2


# Places


def test_namespaces_are_apart_and_named_in_two_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    run("save", "tea", "--namespace", "acme/alice")
    assert parsed("get", "1", "-n", '["acme", "alice"]')["content"] == "tea"
    missing = run("get", "1", code=1)
    assert "looked in namespace default" in missing.stderr
    run("update", "1", "green tea", "--namespace", "acme/alice")
    versions = run("rollback", "1", "--to-version", "9", "-n", "acme/alice", code=1)
    assert versions.stderr == "zero-mem: there is no version 9; there are 1 to 2\n"
    monkeypatch.setenv("ZERO_MEM_NAMESPACE", "acme/alice")
    assert parsed("get", "1")["namespace"] == ["acme", "alice"]
    run("list", "--namespace", "a//b", code=2)
    run("list", "--namespace", "[1]", code=2)


def test_the_option_names_the_store() -> None:
    run("save", "tea", "--store", "sqlite:///other.db")
    run("stats", code=5)
    assert parsed("stats", "--store", "sqlite:///other.db")["records"] == 1


# Exchange


def test_export_and_import_round_trip() -> None:
    run("save", "tea", "--namespace", "a")
    run("save", "用户 \U0001f9fe", "--namespace", "b/c")
    done = run("export")
    assert done.stderr == "exported 2 memories of 2 namespaces\n"
    Path("all.jsonl").write_text(done.stdout, encoding="utf-8")
    other = ("--store", "sqlite:///other.db")
    assert parsed("import", "all.jsonl", *other)["imported"] == 2
    assert parsed("import", "all.jsonl", *other)["unchanged"] == 2
    assert run("export", *other).stdout.count("\n") == 2
    assert parsed("get", "1", *other, "-n", "b/c")["content"] == "用户 \U0001f9fe"
    text = said("import", "-", "-n", "d", "--on-conflict", "renumber", given=done.stdout)
    assert "d: 1 is now 2" in text


def test_export_to_a_file_with_a_filter() -> None:
    run("save", "tea", "--kind", "drink")
    run("save", "note")
    run("export", "--namespace", "default", "--kind", "drink", "--out", "drinks.jsonl")
    (line,) = Path("drinks.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["content"] == "tea"
    assert {path.name for path in Path.cwd().iterdir()} == {"agent.db", "drinks.jsonl"}


def test_a_bad_line_of_an_import_is_named() -> None:
    Path("bad.jsonl").write_text('{"content": "tea"}\n{"content": "cut')
    done = run("import", "bad.jsonl", code=2)
    assert "bad.jsonl:2: " in done.stderr
    assert not Path("agent.db").exists()
    run("import", "missing.jsonl", code=2)
    run("import", "bad.jsonl", "--on-conflict", "shrug", code=2)


# Errors


@pytest.mark.req("pkg:errors")
@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["get", "99"], 1, "99"),
        (["history", "99"], 1, "99"),
        (["get", "a/b"], 2, "memory_id"),
        (["save"], 2, "--file"),
        (["save", "x", "--file", "y"], 2, "once"),
        (["save", "--file", "missing.txt"], 2, "missing.txt"),
        (["save", "{", "--as-json"], 2, "line 1 column 2"),
        (["save", " "], 2, "empty"),
        (["save", "x", "--metadata", "[1]"], 2, "--metadata"),
        (["save", "x", "--expires-in", "soon"], 2, "--expires-in"),
        (["save", "x", "--expires-in", "99999999999w"], 2, "100 years"),
        (["save", "x", "--expires-at", "2030-01-01"], 2, "zone"),
        (["save", "x", "--source", "oracle"], 2, "source"),
        (["save", "x", "--form", "square"], 2, "form"),
        (["list", "--where", "kind=note"], 2, "--where"),
        (["list", "--where", '{"colour": "red"}'], 2, "colour"),
        (["list", "--limit", "0"], 2, "limit"),
        (["search", " "], 2, "query"),
        (["read", "1", "--pointer", "/a"], 2, "not JSON"),
        (["as-of", "yesterday"], 2, "MOMENT"),
        (["touch"], 2, "id"),
        (["no-such-command"], 2, "no-such-command"),
        (["update", "1", "new", "--if-version", "7"], 3, "7"),
        (["save", "x", "--id", "1", "--kind", "other"], 3, "kind"),
        (["update", "2", "new"], 4, "archived"),
        (["save", "x", "--store", "sqlite:///no/such/folder/a.db"], 5, "folder"),
        (["stats", "--store", "ftp://x"], 2, "sqlite:///"),
        (["stats", "--store", "sqlite:///notes.txt"], 5, "notes.txt"),
        (["stats", "--store", "sqlite:///other.sqlite"], 5, "another program"),
        (["stats", "--store", "sqlite:///newer.db"], 5, "upgrade"),
    ],
)
def test_each_kind_of_error_has_its_code_and_says_what_to_do(
    arguments: list[str], code: int, says: str
) -> None:
    run("save", "tea")
    run("save", "coffee")
    run("archive", "2")
    Path("notes.txt").write_text("not a store, but a text of some length\n" * 60)
    sqlite3.connect("other.sqlite").execute("CREATE TABLE t (x)").connection.close()
    newer()
    done = run(*arguments, code=code)
    assert done.stdout == ""
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def newer() -> None:
    run("save", "tea", "--store", "sqlite:///newer.db")
    connection = sqlite3.connect("newer.db")
    connection.execute("PRAGMA user_version = 99")
    connection.close()


@pytest.mark.req("pkg:errors")
def test_with_json_an_error_is_json_on_stderr() -> None:
    run("save", "tea")
    done = run("get", "99", "--json", code=1)
    error = json.loads(done.stderr)
    assert error["error"] == "NotFound"
    assert "99" in error["message"]


# The program


def program(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from zero_mem.cli import main; main()", *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_program_runs_and_its_exit_code_is_the_tables() -> None:
    assert program("save", "tea").stdout == "[memo:1] save (note)\n"
    missing = program("get", "99")
    assert (missing.returncode, missing.stdout) == (1, "")
    assert "Traceback" not in missing.stderr


def test_without_the_extra_it_names_the_install_line(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise ModuleNotFoundError('no typer', name='typer')")
    done = program("list", PYTHONPATH=str(tmp_path))
    assert done.returncode == 2
    assert done.stderr == "zero-mem: the command line needs an extra: pip install 'zero-mem[cli]'\n"


def test_a_narrow_encoding_breaks_nothing() -> None:
    program("save", "退款")
    done = program("get", "1", PYTHONIOENCODING="latin-1", PYTHONUTF8="0")
    assert (done.returncode, r"\u9000\u6b3e" in done.stdout) == (0, True)


def test_a_plain_command_does_not_load_the_replay_or_the_tables() -> None:
    code = (
        "import sys\nsys.argv = ['zero-mem', 'save', 'tea']\n"
        "from zero_mem.cli import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print([m for m in sys.modules if m.startswith(('rich.table', 'zero_mem.replay',"
        " 'zero_mem.controller', 'asyncio', 'toktok'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_bar_is_shown_to_people_and_only_for_long_work(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for on_terminal, total in ((False, 100), (True, 9), (True, 100)):
        monkeypatch.setattr("zero_mem.cli.progress.on_terminal", lambda shown=on_terminal: shown)
        with bar("reading", total, long=10) as step:
            step(total)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("reading") <= 1


def test_completion_is_offered() -> None:
    done = program("--show-completion", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert "completion" in (done.stdout + done.stderr).lower()
