"""`zero-mem bench recall`: a folder of sets in, tables and JSON out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from evidence_set import CORPUS, QUERIES, write_set
from test_cli import run, said
from test_cli import store as store  # the fixture: a store and a folder of its own
from test_cli_usage import fields
from test_evaluation_reader import Model, honest
from test_evaluation_reader import serve as serve  # the fixture: models on this machine

from zero_mem.models.fake import FakeEmbedder

pytestmark = pytest.mark.req("pkg:cli", "recall:dual-view")

SMALL = ("bench", "recall", "data", "--sets", "small")


@pytest.fixture(autouse=True)
def data(store: Path, tmp_path: Path) -> Path:
    return write_set(tmp_path / "data" / "small").parent


def measured(*arguments: str) -> dict[str, Any]:
    """Run on the small set with its JSON on stdout."""
    found: dict[str, Any] = json.loads(said(*SMALL, *arguments, "--json", "-"))
    return found


def test_the_tables_go_to_stdout_and_each_option_to_its_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.argv", ["zero-mem", *SMALL])
    text = said(*SMALL, "--rows", "bm25,zero-mem", "--rows", "recency", "--json", "out.json")
    assert "| Zero-Mem (core) | 100.0 |" in text
    assert Path("out.json").stat().st_mode & 0o777 == 0o600
    found = json.loads(Path("out.json").read_text(encoding="utf-8"))
    assert [one["row"] for one in found["figures"]] == ["bm25", "zero-mem", "recency"]
    assert said(*SMALL, "--rows", "bm25", "--markdown", "out.md") == ""
    assert Path("out.md").read_text(encoding="utf-8").startswith("`zero-mem bench recall data ")


def test_the_page_has_the_fields_of_the_result() -> None:
    assert measured("--rows", "bm25").keys() == fields("bench recall")


def test_every_row_runs_on_a_set_of_ones_own() -> None:
    found = measured()
    names = [one["row"] for one in found["figures"]]
    assert {"zero-mem-less-graph", "zero-mem-plus-calibration", "paper"} <= set(names)
    assert all(one["questions"] == 4 for one in found["figures"])


def test_built_in_sets_are_measured_where_no_set_is_named(data: Path) -> None:
    found = json.loads(
        said("bench", "recall", "data", "--rows", "bm25", "--limit-questions", "2", "--json", "-")
    )
    names = [one["name"] for one in found["sets"]]
    assert names == ["small", "single_facts", "single_facts_one_session"]
    assert [one["questions"] for one in found["sets"]] == [4, 2, 2]
    assert found["targets"] == []


@pytest.mark.req("pkg:errors")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--rows", "bm52"), "no row 'bm52'; there are recency, bm25"),
        (("--sets", "large"), "no set 'large'; there are small"),
        (("--vectors", "v.db"), "name one with --embedder"),
        (("--embedder", "bge"), "'bge' names no embedder"),
        (("--json", "none/out.json"), "there is no folder none"),
        (("--json", "-", "--markdown", "-"), "can't both go to stdout"),
        (("--reader-model", "m"), "--reader names the address"),
        (("--reader", "https://models.example/v1"), "--reader-model names the model"),
        (("--reader", "models.example", "--reader-model", "m"), "http or https address"),
    ],
)
def test_what_can_not_be_measured_is_said_before_anything_is(
    arguments: tuple[str, ...], says: str
) -> None:
    done = run(*SMALL, *arguments, code=2)
    assert says in done.stderr
    assert done.stdout == ""


@pytest.mark.req("pkg:errors")
def test_a_bad_line_leaves_no_result(tmp_path: Path) -> None:
    write_set(tmp_path / "bad", corpus=[CORPUS[0], "{"])
    done = run("bench", "recall", "bad", "--sets", "bad", "--markdown", "out.md", code=2)
    assert "corpus.jsonl:2: this line is no JSON" in done.stderr
    assert not Path("out.md").exists()


@pytest.mark.req("index:hybrid")
def test_rows_with_vectors_and_a_file_that_keeps_them(monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = FakeEmbedder()
    monkeypatch.setattr("zero_mem.models.embedder_named", lambda name: embedder)
    options = ("--embedder", "fake", "--vectors", "v.db", "--rows", "zero-mem-dense,dense")
    found = measured(*options)
    assert found["embedder"] == embedder.name
    assert [one["row"] for one in found["figures"]] == ["zero-mem-dense", "dense"]
    texts = len(embedder.embedded)
    measured(*options)
    assert len(embedder.embedded) == texts  # all came from the file


# With a reader


def reader(model: Model, *more: str) -> tuple[str, ...]:
    return ("--reader", model.url, "--reader-model", "m", *more)


def test_a_reader_stands_beside_the_retrieval(
    serve: Callable[..., Model], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-secret-key")
    model = serve(honest)
    options = reader(model, "--reader-key-env", "MY_KEY", "--json", "out.json")
    done = run(*SMALL, "--rows", "bm25,zero-mem", *options)
    written = Path("out.json").read_text(encoding="utf-8")
    found = json.loads(written)
    assert found["reader"] == "127.0.0.1/m"
    assert [one["row"] for one in found["readings"]] == ["bm25", "zero-mem"]
    ours = found["readings"][1]
    assert ours["categories"]["single-hop"]["f1_calibrated"] == 100
    assert ours["usage"] == {"prompt_tokens": 400, "completion_tokens": 20}
    assert "| small | zero-mem | single-hop | 2 |" in done.stdout
    assert {key for _, key, _ in model.seen} == {"Bearer sk-secret-key"}
    assert "sk-secret" not in done.stdout + done.stderr + written


def test_without_rows_only_zero_mem_is_read(serve: Callable[..., Model]) -> None:
    model = serve(honest)
    found = measured(*reader(model, "--reader-concurrency", "1"))
    assert [one["row"] for one in found["readings"]] == ["zero-mem"]
    assert len(model.seen) == len([query for query in QUERIES if query["gold"]])


@pytest.mark.req("pkg:errors")
def test_a_reader_that_refuses_ends_the_command(serve: Callable[..., Model]) -> None:
    model = serve(lambda _: (401, b"no such key"))
    done = run(*SMALL, "--rows", "zero-mem", *reader(model, "--json", "out.json"), code=5)
    assert "HTTP status 401" in done.stderr
    assert not Path("out.json").exists()


@pytest.mark.req("pkg:errors")
@pytest.mark.parametrize(
    ("url", "more", "says"),
    [
        ("https://models.example/v1", ("--reader-key-env", "NO_KEY"), "the environment has no"),
        ("http://models.example/v1", ("--reader-key-env", "MY_KEY"), "over https only"),
        ("https://models.example/v1", ("--reader-extra", "[1]"), "is a JSON object"),
        ("https://models.example/v1", ("--reader-extra", "{"), "is a JSON object"),
    ],
)
def test_options_of_a_reader_that_do_not_fit_are_refused(
    url: str, more: tuple[str, ...], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-secret-key")
    done = run(*SMALL, "--reader", url, "--reader-model", "m", *more, code=2)
    assert says in done.stderr
    assert "sk-secret" not in done.stderr
