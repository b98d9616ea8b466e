"""The commands for whole stores: sync, backup, verify, recover."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from test_cli import parsed, run, said

pytestmark = pytest.mark.req("pkg:cli")

OTHER = "sqlite:///other.db"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test has a folder of its own, with a store in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ZERO_MEM_URL", "sqlite:///agent.db")
    monkeypatch.delenv("ZERO_MEM_NAMESPACE", raising=False)


@pytest.mark.req("op:sync")
def test_two_stores_exchange_their_changes() -> None:
    run("save", "mine", "-n", "acme/alice", "--kind", "pref", "--key", "seat")
    run("save", "not to be sent", "-n", "b")
    run("save", "theirs", "-n", "acme/alice", "--store", OTHER)
    text = said("sync", OTHER, "-n", "acme/**", "--dry-run")
    assert text.splitlines() == [
        "received 1 change, 1 new, 1 under another id",
        "sent 1 change, 1 new, 1 under another id",
    ]
    assert said("sync", OTHER, "-n", "acme/**") == text
    assert parsed("stats", "--store", OTHER)["records"] == 2
    run("update", "1", "changed here", "-n", "acme/alice")
    run("update", "2", "changed there", "-n", "acme/alice", "--store", OTHER)
    report = parsed("sync", OTHER)
    assert report["namespaces"] == [["acme", "alice"], ["b"]]
    (conflict,) = report["received"]["conflicts"]
    assert (conflict["memory_id"], conflict["version"], conflict["lost_version"]) == ("1", 3, 2)
    assert parsed("get", "1", "-n", "acme/alice")["content"] == "changed there"
    run("rollback", "1", "--to-version", "2", "-n", "acme/alice")
    assert parsed("get", "1", "-n", "acme/alice")["content"] == "changed here"


@pytest.mark.req("op:sync")
def test_a_conflict_is_said_with_what_to_do() -> None:
    run("save", "v1")
    run("save", "v0", "--store", OTHER, "--id", "x")
    run("sync", OTHER)
    run("update", "1", "changed here")
    run("update", "1", "changed there", "--store", OTHER)
    text = said("sync", OTHER)
    assert "`rollback 1 --to-version 2` brings back what lost" in text


@pytest.mark.req("op:sync")
def test_the_other_store_has_to_be_there_and_to_be_another() -> None:
    run("save", "mine")
    assert "no store here" in run("sync", OTHER, code=5).stderr
    assert "same store" in run("sync", "sqlite:///agent.db", code=2).stderr
    run("save", "theirs", "--store", OTHER)
    assert "pattern" in run("sync", OTHER, "-n", "a/**/b", code=2).stderr


@pytest.mark.req("prod:backup")
def test_a_store_is_backed_up_verified_and_recovered() -> None:
    run("save", "tea", "-n", "a")
    run("save", "note", "-n", "b")
    whole = parsed("backup", "whole.backup", "--portable")
    assert (whole["form"], whole["records"], whole["entries"]) == ("archive", 2, 2)
    assert "copy of 2 memories" in said("backup", "checked.backup", "--verify")
    run("save", "later", "-n", "a")
    rest = parsed("backup", "rest.backup", "--since", "whole.backup")
    assert (rest["records"], rest["entries"]) == (1, 1)
    assert "there already" in run("backup", "rest.backup", code=2).stderr
    assert said("verify") == "sound: 3 memories in 2 namespaces, 3 journal entries"
    assert parsed("verify", "whole.backup")["sound"] is True
    done = parsed("recover", "whole.backup", "rest.backup", "--to", OTHER)
    assert (done["records"], done["verified"], done["cut"]) == (3, True, [])
    assert parsed("get", "2", "-n", "a", "--store", OTHER)["content"] == "later"
    then = whole["made_at"]
    both = ("whole.backup", "rest.backup")
    done = parsed("recover", *both, "--to", OTHER, "--until", then, "--overwrite")
    assert (done["records"], done["cut"], done["until"]) == (2, [["a"]], then)
    assert Path("other.db.before-restore").exists()
    assert "holds memories" in run("recover", "whole.backup", "--to", OTHER, code=4).stderr


@pytest.mark.req("prod:backup")
def test_what_is_not_sound_ends_with_5_and_an_index_is_rebuilt() -> None:
    run("save", "tea")
    run("backup", "b")
    content = bytearray(Path("b").read_bytes())
    Path("b").write_bytes(bytes(content[: len(content) // 2]))
    assert "1 fault found" in run("verify", "b", code=5).stderr
    assert "damaged" in run("recover", "b", "--to", OTHER, code=5).stderr
    with closing(sqlite3.connect("agent.db")) as connection:
        connection.execute("DELETE FROM lexicon_data WHERE id > 10")
        connection.commit()
    assert "verify --rebuild" in run("verify", code=5).stdout
    assert said("verify", "--rebuild").startswith("sound: 1 memory")
