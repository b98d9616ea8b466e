"""`zero-mem replay` and `demo`: real files in, one table and a verdict out."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from zero_mem import Memory
from zero_mem.cli.app import app
from zero_mem.cli.replaying import STRATEGIES, with_json_target
from zero_mem.ledger.prices import DEFAULT_MODEL
from zero_mem.models import names
from zero_mem.models.fake import FakeEmbedder
from zero_mem.replay.strategies import BUDGETS, every_strategy

pytestmark = pytest.mark.req("pkg:cli", "ledger:compare")

SAMPLES = Path(str(files("zero_mem.replay"))) / "samples"
REFUND, SHORT = str(SAMPLES / "refund.json"), str(SAMPLES / "short.json")
FIGURES = {
    "tokens", "cost", "peak", "coverage_visible", "coverage_linked", "coverage_in_line",
    "coverage_reachable", "price_cached", "tool_column_share",
    "tool_column_share_with_definitions", "prefix_unchanged_share",
}  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ZERO_MEM_URL", "sqlite:///never-touched.db")
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


def run(*arguments: str, code: int = 0) -> Result:
    done = CliRunner().invoke(app, list(arguments))
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == code, done.output
    return done


def result(*arguments: str) -> dict[str, Any]:
    return dict(json.loads(run("replay", *arguments, "--json").stdout))


def test_a_replay_prints_a_table_and_a_verdict_in_a_sentence() -> None:
    text = run("replay", SHORT).stdout
    assert "Full concatenation" in text
    assert "Zero-Mem 0.25" in text
    assert "Sonnet 5.5" in text
    assert "Not worth it for runs like these" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 100


def test_the_json_has_the_figures_of_each_strategy_and_budget() -> None:
    found = result(SHORT, "--strategy", "full", "--strategy", "zero_mem", "--budget", "0.15")
    assert [(s["strategy"], s["budget"]) for s in found["strategies"]] == [
        ("full", None),
        ("zero_mem", 0.15),
    ]
    assert all(strategy.keys() >= FIGURES for strategy in found["strategies"])
    assert found["verdict"]["worth_it"] is False


def test_the_long_sample_is_worth_it_and_every_value_is_reachable() -> None:
    found = result(REFUND, "--budget", "0.25")
    assert found["verdict"]["worth_it"] is True
    (ours,) = (s for s in found["strategies"] if s["strategy"] == "zero_mem")
    assert (ours["coverage_reachable"], ours["prefix_unchanged_share"]) == (1.0, 1.0)


def test_nothing_is_kept_unless_a_store_is_named(folder: Path) -> None:
    run("replay", SHORT, "--json")
    assert list(folder.iterdir()) == []
    kept = ("--store", "sqlite:///kept.db")
    assert "kept.db, 1 namespace: replay/run-1\n" in run("replay", SHORT, *kept).stderr
    assert result(SHORT, *kept)["namespaces"] == ["replay/run-2"]
    with Memory.open("sqlite:///kept.db") as memory:
        assert memory.subtree("replay").namespaces() == [("replay", "run-1"), ("replay", "run-2")]
    assert not (folder / "never-touched.db").exists()


@pytest.mark.req("inspect:prompt")
def test_prompts_and_page_are_written(folder: Path) -> None:
    run("replay", SHORT, "--prompts", "prompts.jsonl", "--html", "page.html", "--json", "out.json")
    lines = (folder / "prompts.jsonl").read_text(encoding="utf-8").splitlines()
    first = json.loads(lines[0])
    assert first.keys() >= {"trajectory", "call", "strategy", "budget", "messages"}
    assert "<html" in (folder / "page.html").read_text(encoding="utf-8")
    strategies = json.loads((folder / "out.json").read_text())["strategies"]
    calls = sum(json.loads(line)["strategy"] == "full" for line in lines)
    assert len(lines) == calls * len(strategies)
    assert sorted(path.name for path in folder.iterdir()) == [
        "out.json",
        "page.html",
        "prompts.jsonl",
    ]


def test_json_stands_alone_or_before_its_file(folder: Path) -> None:
    assert with_json_target(["a", "--json"]) == ["a", "--json=-"]
    assert with_json_target(["--json", "--html", "p"]) == ["--json=-", "--html", "p"]
    assert with_json_target(["a", "--json", "-"]) == ["a", "--json", "-"]
    assert with_json_target(["a", "--json", "new.json"]) == ["a", "--json", "new.json"]
    run("replay", SHORT, "--json", "out.json")
    assert with_json_target(["a", "--json", "out.json"]) == ["a", "--json", "out.json"]


def test_a_transcript_is_never_overwritten(folder: Path) -> None:
    transcript = Path(SHORT).read_bytes()
    (folder / "run.json").write_bytes(transcript)
    assert json.loads(run("replay", "--json", "run.json").stdout)["strategies"]
    assert (folder / "run.json").read_bytes() == transcript


@pytest.mark.req("pkg:errors")
def test_what_cannot_be_read_is_said_with_its_place_and_the_rest_goes_on(folder: Path) -> None:
    messages = json.dumps(json.loads(Path(SHORT).read_text(encoding="utf-8"))["messages"])
    (folder / "runs.jsonl").write_text(f'{messages}\n{{"cut": \n{messages}\n')
    with gzip.open(folder / "more.jsonl.gz", "wt") as file:
        file.write(messages + "\n")
    run("replay", "runs.jsonl", "more.jsonl.gz")
    done = run("replay", "runs.jsonl", "more.jsonl.gz", "missing.json", code=7)
    assert "runs.jsonl:2: " in done.stderr
    assert "missing.json: " in done.stderr
    assert done.stderr.endswith("zero-mem: 1 file could not be read\n")
    as_json = run("replay", "runs.jsonl", "more.jsonl.gz", "missing.json", "--json", code=7)
    assert json.loads(as_json.stderr)["error"] == "PartlyDone"
    found = json.loads(as_json.stdout)
    assert found["runs"]["runs"] == 3
    assert [defect["file"] for defect in found["defects"]] == ["runs.jsonl", "missing.json"]


@pytest.mark.req("pkg:errors")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["missing.json"], "missing.json"),
        (["empty.json"], "empty"),
        (["missing.json", "empty.json"], "no run in any file"),
        ([SHORT, "--strategy", "magic"], "zero_mem"),
        ([SHORT, "--budget", "0"], "budget"),
        ([SHORT, "--budget", "0.2", "--budget", "0.2"], "twice"),
        ([SHORT, "--prices", "no-such-model"], "Sonnet 5.5"),
        ([SHORT, "--prices", "missing.toml"], "missing.toml"),
        ([SHORT, "--html", "no/such/folder/page.html"], "page.html"),
        ([], "FILE"),
    ],
)
def test_a_wrong_call_ends_with_2_and_says_why(
    arguments: list[str], says: str, folder: Path
) -> None:
    (folder / "empty.json").write_text("")
    done = run("replay", *arguments, code=2)
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert [path.name for path in folder.iterdir()] == ["empty.json"]


@pytest.mark.req("pkg:errors")
@pytest.mark.parametrize("target", [["--json"], ["--json", "out.json"]])
def test_with_json_an_error_is_one_line_of_json(target: list[str]) -> None:
    for arguments in (["bad"], [SHORT, "--strategy", "magic"], [SHORT, "--nope"]):
        done = run("replay", *arguments, *target, code=2)
        assert json.loads(done.stderr).keys() == {"error", "message"}
        assert done.stdout == ""


def test_the_help_has_the_names_and_the_defaults() -> None:
    text = " ".join(run("replay", "--help").stdout.split())
    assert tuple(dict.fromkeys(each.name for each in every_strategy())) == STRATEGIES
    assert ", ".join(STRATEGIES) in text
    assert " and ".join(", ".join(map(str, BUDGETS)).rsplit(", ", 1)) in text
    assert f"By default {DEFAULT_MODEL}." in text


def test_zero_mem_may_be_written_as_the_package_is() -> None:
    by_name, by_package = (result(SHORT, "--strategy", n) for n in ("zero_mem", "zero-mem"))
    assert by_name["strategies"] == by_package["strategies"] != []


def test_a_transcript_comes_from_stdin() -> None:
    given = Path(SHORT).read_bytes()
    done = CliRunner().invoke(app, ["replay", "-", "--json"], input=given)
    assert json.loads(done.stdout)["runs"] == result(SHORT)["runs"]
    broken = CliRunner().invoke(app, ["replay", "-"], input="no JSON")
    assert (broken.exit_code, broken.stderr[:17]) == (2, "zero-mem: stdin: ")
    assert CliRunner().invoke(app, ["replay", "-", "-"], input=given).exit_code == 2


def test_prices_come_by_name_or_from_a_file(folder: Path) -> None:
    rows = "[models.mine]\ninput = 1\nread = 0.5\noutput = 2\n"
    (folder / "one.toml").write_text(f'date = "2026-01"\n{rows}')
    (folder / "two.toml").write_text(f'date = "2026-02"\n{rows}{rows.replace("mine", "other")}')
    assert result(SHORT, "--prices", "haiku 4.5")["prices"]["model"] == "Haiku 4.5"
    assert result(SHORT, "--prices", "one.toml")["prices"]["model"] == "mine"
    assert result(SHORT, "--prices", "two.toml:other")["prices"]["model"] == "other"
    prices = result(SHORT, "--prices", "two.toml")["prices"]
    assert (prices["model"], prices["date"]) == ("Sonnet 5.5", "2026-02")


def test_an_unknown_vocabulary_is_marked_as_an_estimate() -> None:
    exact, estimate = result(SHORT), result(SHORT, "--model", "some-model")
    assert (exact["versions"]["tokens_exact"], estimate["versions"]["tokens_exact"]) == (
        True,
        False,
    )
    done = run("replay", SHORT, "--encoding", "some-model")
    assert "estimated, on the safe side" in done.stdout
    assert "tokens of 'some-model' can't be counted here" in done.stderr


@pytest.mark.parametrize(
    "name", ["taubench_airline.openai_chat.jsonl.gz", "claude_code_session.jsonl.gz"]
)
def test_public_runs_replay(name: str, shared_data: Callable[[str], Path]) -> None:
    path = str(shared_data(f"raw/{name}"))
    found = result(path, "--budget", "0.25", "--strategy", "full", "--strategy", "zero_mem")
    full, ours = found["strategies"]
    assert full["tokens"]["tool_results"] > ours["tokens"]["tool_results"] > 0
    assert ours["coverage_reachable"] in (1.0, None)  # None: no call took a value from a result
    assert ours["prefix_unchanged_share"] == 1.0


@pytest.mark.req("receipt:demo")
def test_the_demo_shows_the_walk_through_two_verdicts_and_the_report(folder: Path) -> None:
    done = run("demo")
    lines = done.stdout.splitlines()
    wanted = [
        "save receipt: [memo:task-001] save (task_state)",
        "update receipt: [memo:task-001] update (task_state)",
        "recall context: [memo:task-001] task_state: 退款状态: 审核通过",
    ]
    assert [line for line in lines if line in wanted] == wanted
    verdicts = re.findall(r"^(Not worth it|Worth it) for runs", done.stdout, re.MULTILINE)
    assert verdicts == ["Not worth it", "Worth it"]
    assert lines[-1].endswith(str(folder / "zero-mem-report.html"))
    assert [path.name for path in folder.iterdir()] == ["zero-mem-report.html"]


def test_the_demo_takes_the_readers_own_runs(folder: Path) -> None:
    done = run("demo", SHORT, "--html", "mine.html")
    assert "Your own runs" in done.stdout
    assert (folder / "mine.html").exists()


def test_vector_rag_runs_where_an_embedder_is_named_and_is_left_out_elsewhere(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = run("replay", SHORT).stdout
    assert "Vector RAG: not run; it needs an embedder; name one, such as --embedder e5" in said
    done = run("replay", SHORT, "--strategy", "vector-rag", code=2)
    assert "--embedder NAME" in done.stderr
    monkeypatch.setitem(names._NAMED, "fake", FakeEmbedder)
    found = json.loads(run("replay", SHORT, "--embedder", "fake", "--json").stdout)
    strategies = {each["strategy"]: each for each in found["strategies"]}
    assert "fake" in strategies["vector_rag"]["note"]
    assert found["left_out"] == []
    run("replay", SHORT, "--embedder", "no-such", code=2)
