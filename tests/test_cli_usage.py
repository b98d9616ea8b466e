"""What is typed: handles and receipts as ids, errors as JSON, a store that is not there, help."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from test_cli import COMMANDS, NAMES, ROOT, commands, parsed, run, said
from test_cli import store as store  # the fixture: a store and a folder of its own
from test_cli_replay import SHORT

from zero_mem.cli.failures import EXIT_CODES
from zero_mem.cli.program import wants_json
from zero_mem.storage.opening import default_path

pytestmark = pytest.mark.req("pkg:cli")

NEEDS_A_STORE = [
    ["get", "1"],
    ["list"],
    ["search", "tea"],
    ["recall", "tea"],
    ["read", "1"],
    ["update", "1", "tea"],
    ["touch", "1"],
    ["archive", "1"],
    ["restore", "1"],
    ["delete", "1"],
    ["purge", "1"],
    ["expire"],
    ["doctor"],
    ["changes"],
    ["scrub"],
    ["history", "1"],
    ["as-of", "2026-01-01T00:00:00Z"],
    ["rollback", "1", "--to-version", "1"],
    ["stats"],
    ["why", "1"],
    ["duplicates", "note"],
    ["configure"],
    ["export"],
    ["backup", "b"],
    ["verify"],
]


# Ids


@pytest.mark.req("handle:grammar")
@pytest.mark.parametrize("name", ["1", "[memo:1]", "[memo:1] save (note)", " [memo:1]\n"])
def test_an_id_is_an_id_a_handle_or_a_receipt(name: str) -> None:
    run("save", "tea")
    assert parsed("get", name)["content"] == "tea"
    assert parsed("read", name)["value"] == "tea"
    run("update", name, "green tea")
    assert parsed("history", name)["entries"][1]["operation"] == "update"
    assert parsed("why", name)["memory_id"] == "1"
    moment = parsed("get", name)["recorded_at"]
    assert parsed("as-of", moment, name)["content"] == "green tea"
    run("rollback", name, "--to-version", "1")
    for command in ("touch", "archive", "restore", "delete", "purge"):
        assert parsed(command, name)["receipts"][0]["memory_id"] == "1"


@pytest.mark.req("handle:grammar")
def test_a_receipt_as_it_was_printed_is_an_id() -> None:
    run("save", "tea", "--kind", "drink", "--key", "usual")
    receipt = said("save", "tea", "--kind", "drink", "--key", "usual")
    assert receipt.endswith("  unchanged")
    assert parsed("get", receipt)["content"] == "tea"
    assert parsed("save", "tea", "--kind", "drink", "--id", receipt)["memory_id"] == "1"


@pytest.mark.req("handle:grammar", "recall:where")
def test_a_handle_to_a_part_is_read_and_never_written() -> None:
    run("save", '{"a": [1, 2]}', "--as-json")
    assert parsed("read", "[memo:1#/a/1]")["value"] == 2
    assert parsed("get", "[memo:1#/a/1]")["content"] == {"a": [1, 2]}
    run("read", "[memo:1#/a]", "--pointer", "/a", code=2)
    for command in ("touch", "archive", "restore", "delete", "purge"):
        assert "[memo:1]" in run(command, "[memo:1#/a/1]", code=2).stderr
    run("update", "[memo:1#/a/1]", "3", code=2)


@pytest.mark.req("handle:grammar")
def test_a_handle_may_name_several_where_several_are_taken() -> None:
    run("save", "tea")
    run("save", "coffee")
    assert parsed("touch", "[memo:1,2]")["count"] == 2
    assert "2 memories" in run("get", "[memo:1,2]", code=2).stderr
    assert "handle" in run("get", "[memo:1", code=2).stderr


@pytest.mark.parametrize("command", ["touch", "archive", "restore", "delete", "purge"])
def test_an_error_of_one_id_has_no_index_before_it(command: str) -> None:
    run("save", "tea")
    for ids in (["99"], ["1", "99"]):
        message = run(command, *ids, code=1).stderr.splitlines()[0]
        assert message == "zero-mem: no memory 99 in this namespace"


# Errors as JSON


@pytest.mark.req("pkg:errors")
@pytest.mark.parametrize(
    ("arguments", "code", "name"),
    [
        (["get"], 2, "UsageError"),
        (["list", "--nope"], 2, "UsageError"),
        (["list", "--limit", "x"], 2, "UsageError"),
        (["no-such-command"], 2, "UsageError"),
        (["demo"], 2, "UsageError"),
        ([], 2, "UsageError"),
        (["list", "--namespace", "a//b"], 2, "InvalidInput"),
        (["list", "--namespace", "[1]"], 2, "InvalidInput"),
        (["get", "a/b"], 2, "InvalidInput"),
        (["get", "99"], 1, "NotFound"),
        (["export", "-o", "no/such/file"], 2, "InvalidInput"),
        (["stats", "--store", "sqlite:///none.db"], 5, "StoreUnavailable"),
    ],
)
def test_with_json_every_error_is_one_line_of_json(
    arguments: list[str], code: int, name: str
) -> None:
    run("save", "tea")
    done = run(*arguments, "--json", code=code)
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    error = json.loads(done.stderr)
    assert error.keys() == {"error", "message"}
    assert error["error"] == name
    assert error["message"]


def test_json_is_asked_for_by_an_option_and_not_by_a_text() -> None:
    assert wants_json(["replay", "x", "--json=out.json"])
    assert not wants_json(["search", "--", "--json"])


# A store that is not there


@pytest.mark.req("pkg:errors")
@pytest.mark.parametrize("arguments", NEEDS_A_STORE, ids=lambda arguments: arguments[0])
def test_only_what_saves_makes_a_store(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "no store" in run(*arguments, code=5).stderr
    monkeypatch.delenv("ZERO_MEM_URL")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert "no store" in run(*arguments, code=5).stderr
    assert list(tmp_path.iterdir()) == []


def test_each_command_is_among_those_that_need_a_store_or_make_one() -> None:
    makes_one_or_has_none = {
        "save",
        "import",
        "sync",
        "recover",
        "replay",
        "proxy",
        "serve",
        "node",
        "demo",
        "reindex",
        "bench",
        "hook",
        "encryption",
        "key",
        "mcp",
    }
    assert {each[0] for each in NEEDS_A_STORE} | makes_one_or_has_none == NAMES


def test_a_setting_and_an_import_make_the_store() -> None:
    run("configure", "overflow=refuse")
    run("export", "-o", "none.jsonl")
    run("import", "none.jsonl", "--store", "sqlite:///other.db")
    run("configure", "overflow=refuse", "--store", "sqlite:///third.db")
    assert Path("third.db").exists()


# Help


def test_help_names_the_default_store_and_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    text = " ".join(run("--help").stdout.split())
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("HOME", "/home/ann")
    path = default_path()
    assert f"the file {path.name} in ~/{path.parent.relative_to('/home/ann')} " in text
    assert "--namespace, or ZERO_MEM_NAMESPACE, or else `default`" in text


def test_help_has_the_defaults_of_limits_and_the_values_of_settings() -> None:
    for command in ("list", "search", "recall", "as-of"):
        assert re.search(r"Most records; .* by\s+default\.", run(command, "--help").stdout)
    text = " ".join(run("configure", "--help").stdout.split())
    for values in ("archive or refuse", "pinned or summary or handle or hidden", "metadata.NAME"):
        assert values in text


# docs/cli.md


PAGE = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")


def table(heading: str) -> list[list[str]]:
    """Read the first table under a heading, without its head."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")][2:]
    cells = (re.split(r"(?<!\\)\|", row)[1:-1] for row in rows)
    return [[cell.strip().replace("\\|", "|") for cell in row] for row in cells]


def test_the_page_has_every_command_and_no_other() -> None:
    named = [row[0].strip("`") for row in table("Commands")]
    assert sorted(named) == sorted(COMMANDS)
    with_fields = {
        name.split()[0] for row in table("JSON") for name in re.findall(r"`([^`]+)`", row[0])
    }
    assert with_fields == NAMES - {"demo", "serve"}


def test_the_page_has_the_exit_codes() -> None:
    assert {int(code): meaning for code, meaning in table("Exit codes")} == EXIT_CODES


def test_every_option_that_the_page_names_is_there() -> None:
    known = {option for each in commands().values() for p in each.params for option in p.opts} | {
        "--help"
    }
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", PAGE)) <= known


def test_every_variable_of_the_options_is_on_the_page() -> None:
    used = {p.envvar for each in commands().values() for p in each.params if p.envvar}
    assert used <= {row[0].strip("`") for row in table("Environment")}


def fields(command: str) -> set[str]:
    """Give the fields that the page promises for a command, in its own words."""
    (row,) = (row for row in table("JSON") if f"`{command}`" in row[0])
    return set(re.findall(r"`([a-z_]+)`", row[1].partition(",")[0].partition(";")[0]))


def test_the_page_has_the_fields_of_every_result() -> None:
    run("save", "tea", "--kind", "drink", "--key", "usual")
    moment = parsed("get", "1")["recorded_at"]
    assert parsed("save", "tea").keys() == fields("save")
    assert parsed("update", "1", "tea").keys() == fields("update")
    for command in ("touch", "archive", "restore"):
        assert parsed(command, "1").keys() == fields(command)
    assert parsed("rollback", "1", "--to-version", "1").keys() == fields("rollback")
    assert parsed("get", "1").keys() == fields("get")
    assert parsed("as-of", moment, "1").keys() == fields("as-of MOMENT ID")
    assert parsed("list").keys() == fields("list") - {"get"}
    assert parsed("as-of", moment).keys() == fields("as-of MOMENT") - {"get"}
    found = parsed("search", "tea")
    assert found.keys() | found["hits"][0].keys() == fields("search")
    past = parsed("as-of", moment, "--query", "tea")
    assert past.keys() | past["hits"][0].keys() == fields("as-of MOMENT --query")
    entries = parsed("history", "1")
    assert entries.keys() | entries["entries"][0].keys() == fields("history")
    for command in ("recall", "read", "duplicates", "why"):
        argument = {"recall": "tea", "duplicates": "note"}.get(command, "1")
        assert parsed(command, argument).keys() == fields(command)
    for command in ("stats", "expire", "configure", "scrub"):
        assert parsed(command).keys() == fields(command)
    assert parsed("export", "-o", "all.jsonl").keys() == fields("export")
    assert parsed("import", "all.jsonl").keys() == fields("import")
    made = parsed("key", "create", "app", "--grant", "read:acme/**")
    assert made.keys() == fields("key create")
    assert parsed("key", "list")["keys"][0].keys() == fields("key create") - {"credential"}
    assert parsed("key", "revoke", made["key_id"]).keys() == fields("key revoke")
    assert parsed("doctor").keys() == fields("doctor")
    feed = parsed("changes")
    assert feed.keys() | feed["changes"][0].keys() == fields("changes")
    assert parsed("encryption", "new-key").keys() == fields("encryption new-key")
    assert parsed("hook", "install", "--dry-run").keys() == fields("hook install")
    assert parsed("mcp", "install", "codex", "--dry-run").keys() == fields("mcp install")
    assert parsed("replay", SHORT).keys() == fields("replay")
    assert parsed("delete", "1").keys() == fields("delete")
    purged = parsed("purge", "2")
    assert purged.keys() | purged["erased"][0].keys() == fields("purge")


def test_the_readmes_list_every_command() -> None:
    for name in ("README.md", "README.zh.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        listed = re.findall(r"`(get list [^`]*)`", text)
        assert {*" ".join(listed).split(), "save", "recall", "update"} == NAMES
