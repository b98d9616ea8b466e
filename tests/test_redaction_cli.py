"""The command line says what was masked, and shows and sets what is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from secret_samples import EMAIL, GITHUB, PHONE
from typer.testing import CliRunner

from zero_mem import Memory
from zero_mem.cli.app import app
from zero_mem.redaction import Redaction

pytestmark = pytest.mark.req("prod:redact")


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ZERO_MEM_URL", "sqlite:///agent.db")
    monkeypatch.delenv("ZERO_MEM_NAMESPACE", raising=False)
    monkeypatch.setenv("COLUMNS", "200")


def run(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == code, done.output
    return done.output


def test_a_receipt_says_that_something_was_masked() -> None:
    said = run("save", f"deploy with {GITHUB}", "--kind", "note")
    assert said == "[memo:1] save (note)  masked\n"
    assert json.loads(run("save", GITHUB, "--json"))["flags"] == ["masked"]
    assert run("read", "1") == "deploy with [redacted:github_token]\n"
    assert GITHUB not in run("history", "1", "--json") + run("search", "deploy", "--json")


def test_what_is_redacted_is_shown_and_set() -> None:
    run("save", "first")
    assert json.loads(run("configure", "--json"))["redact"] == {
        "secrets": "mask",
        "personal": "keep",
    }
    run("configure", 'redact={"phone": "mask", "order": {"pattern": "ORD-[0-9]+"}}')
    assert run("configure").splitlines()[-1].split(maxsplit=1)[0] == "redact"
    run("save", f"{PHONE} {EMAIL} ORD-1")
    assert run("read", "2") == f"[redacted:phone] {EMAIL} [redacted:order]\n"
    run("configure", "redact=null")
    run("save", f"{PHONE} ORD-1")
    assert run("read", "3") == f"{PHONE} ORD-1\n"


def test_digests_join_with_those_of_a_program_with_the_same_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ZERO_MEM_REDACTION_KEY", "from a key store")
    run("configure", 'redact={"phone": "hash"}')
    run("save", f"call {PHONE}")
    with Memory.open("sqlite:///agent.db", redaction=Redaction(key=b"from a key store")) as memory:
        assert [hit.memory_id for hit in memory.namespace("default").search(PHONE)] == ["1"]
    with Memory.open("sqlite:///agent.db", redaction=Redaction(key=b"another")) as memory:
        assert memory.namespace("default").search(PHONE) == []


@pytest.mark.parametrize("value", ['{"fone": "mask"}', '{"phone": "hide"}', "mask", "[]"])
def test_a_setting_that_makes_no_sense_ends_with_2(value: str) -> None:
    run("save", "first")
    assert "redact" in run("configure", f"redact={value}", code=2)


def test_redact_is_for_a_whole_namespace() -> None:
    run("save", "first")
    said = run("configure", 'redact={"phone": "mask"}', "--kind", "note", code=2)
    assert "whole namespace" in said
    assert "redact" not in json.loads(run("configure", "--kind", "note", "--json"))
