"""`zero-mem import`: it tells what a file is, says what it did, and what it could not read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from test_cli import parsed, run, said

pytestmark = pytest.mark.req("pkg:cli", "runtime:hooks")

FIXTURES = Path(__file__).parent / "fixtures" / "traces"
CHAT = str(FIXTURES / "openai_chat.jsonl")
LINES = str(FIXTURES / "orders.jsonl")
MAP = ("--map", "content=text,speaker=who.nick|who.name,session=conv", "--map", "created_at=ts:ms")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ZERO_MEM_URL", "sqlite:///agent.db")
    monkeypatch.delenv("ZERO_MEM_NAMESPACE", raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


def test_a_transcript_goes_to_the_namespace_and_twice_changes_nothing() -> None:
    assert said("import", CHAT, "-n", "a/b") == (
        "imported 6 of 2 sessions, unchanged 0, 2 system prompts left out"
    )
    again = parsed("import", CHAT, "-n", "a/b")
    assert (again["imported"], again["unchanged"], again["defects"]) == (0, 6, [])
    (item,) = parsed("search", "Leipzig order", "-n", "a/b", "--limit", "1")["hits"]
    assert item["record"]["session"] == "order-881"


def test_exports_and_transcripts_are_told_apart_in_one_call(folder: Path) -> None:
    run("save", "tea", "--namespace", "a")
    run("export", "-o", "all.jsonl")
    (folder / "all.jsonl.gz").write_bytes(gzip.compress(Path("all.jsonl").read_bytes()))
    other = ("--store", "sqlite:///other.db")
    text = said("import", "all.jsonl", CHAT, *other)
    assert text.splitlines() == [
        "imported 1, unchanged 0",
        "imported 6 of 2 sessions, unchanged 0, 2 system prompts left out",
    ]
    found = parsed("import", "all.jsonl.gz", CHAT, *other)
    assert (found["imported"], found["unchanged"]) == (0, 7)


def test_stdin_is_told_apart_too() -> None:
    assert said("import", "-", given=Path(CHAT).read_bytes()).startswith("imported 6")
    run("export", "-o", "all.jsonl")
    other = ("--store", "sqlite:///other.db")
    exported = Path("all.jsonl").read_bytes()
    assert said("import", "-", *other, given=exported).startswith("imported 6")
    assert said("import", "-", "--from", "export", *other, given=exported) == (
        "imported 0, unchanged 6"
    )


def test_a_dry_run_shows_the_first_records_and_makes_no_store(folder: Path) -> None:
    text = said("import", CHAT, LINES, *MAP[:2], "--dry-run", code=7)
    assert "no line has the content" not in text
    text = said("import", LINES, *MAP, "--dry-run")
    assert text.splitlines()[0] == "would import 4 of 1 session, unchanged 0"
    assert "2026-03-05 08:40:00  Where is it?" in text
    found = parsed("import", LINES, *MAP, "--dry-run")
    assert found["dry_run"] is True
    assert found["sample"][0]["created_at"] == "2026-03-05T08:40:00.123000+00:00"
    assert list(folder.iterdir()) == []


@pytest.mark.req("pkg:errors")
def test_what_cannot_be_read_is_said_with_its_line_and_the_rest_is_there(folder: Path) -> None:
    (folder / "bad.jsonl").write_text('{"t": "a"}\n{"t": "b"\n{"u": 1}\n')
    done = run("import", "bad.jsonl", "--map", "content=t", code=7)
    assert done.stdout == "imported 1 of 1 session, unchanged 0\n"
    assert "bad.jsonl:2: no JSON" in done.stderr
    assert "bad.jsonl:3: no content" in done.stderr
    assert done.stderr.endswith("2 files or lines could not be read\n")
    assert json.loads(run("import", "bad.jsonl", "--map", "content=t", "--json", code=7).stdout)


@pytest.mark.req("pkg:errors")
def test_a_file_that_cannot_be_read_does_not_keep_the_others_out() -> None:
    done = run("import", CHAT, "missing.jsonl", code=7)
    assert done.stdout.startswith("imported 6 of 2 sessions")
    assert "missing.jsonl: No such file" in done.stderr
    assert parsed("stats")["records"] == 6


@pytest.mark.req("pkg:errors")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([LINES], "--map content=FIELD"),
        ([LINES, "--map", "content=body"], "fields there: text, who, conv, ts"),
        ([CHAT, "--from", "transcript", "--map", "content=text"], "--map is for JSON lines"),
        ([CHAT, "--from", "mail"], "auto, transcript, lines, export"),
        (["missing.json"], "missing.json"),
        ([CHAT, "--map", "content"], "TARGET=SOURCE"),
    ],
)
def test_a_wrong_call_ends_with_2_and_says_what_to_do(arguments: list[str], says: str) -> None:
    assert says in run("import", *arguments, code=2).stderr
    assert not Path("agent.db").exists() or parsed("stats")["records"] == 0


@pytest.mark.req("recall:dual-view")
def test_an_explained_recall_is_a_table_of_what_each_score_is_made_of() -> None:
    for n, text in enumerate(("安娜五月份交了房租。", "安娜六月份交了房租。", "鲍勃卖了船。")):
        run("save", text, "--speaker", "安娜" if n < 2 else "鲍勃")
    text = said("recall", "安娜什么时候交的房租？", "--limit", "1", "--explain")
    head, table = text.split("Why, best first:\n")
    assert head.startswith("[memo:")
    heads, _, first, second, *legend = table.splitlines()
    assert heads.split() == ["id", "score", "words", "x", "speaker", "outcome", "text"]
    assert " in " in first
    assert "out: over the limit" in second
    assert "  words: BM25 of its own text; the best match counts 1" in legend
    plain = said("recall", "安娜什么时候交的房租？", "--limit", "1")
    assert "Why" not in plain
    assert "nothing recalled" in said("recall", "zzz", "--explain", code=1)


@pytest.mark.req("recall:explicit")
def test_an_explained_recall_says_which_did_not_fit_the_budget() -> None:
    for n in range(4):
        run("save", f"the kettle number {n} boils " + "very loud " * 20)
    text = said("recall", "kettle", "--budget", "60", "--explain")
    assert "out: over the budget" in text
    found = parsed("recall", "kettle", "--limit", "1", "--explain")
    assert len(found["near_misses"]) == 3
    assert found["near_misses"][0]["reason"].endswith("over the limit of 1 items")
