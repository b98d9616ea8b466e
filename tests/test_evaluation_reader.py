"""A reader answers from what was recalled: its scores, its endpoint's faults, and its key."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from evidence_set import QUERIES, write_set

from zero_mem.errors import EndpointUnavailable, InvalidInput
from zero_mem.evaluation import reader as reading
from zero_mem.evaluation import rows, sets
from zero_mem.evaluation.reader import GIVE_UP, Reader, Reading
from zero_mem.evaluation.scores import best, bleu1, f1, words
from zero_mem.models.endpoint import RETRIES, Endpoint
from zero_mem.text.tokens import tokenizer

pytestmark = pytest.mark.req("recall:dual-view")

Answer: TypeAlias = Callable[[dict[str, Any]], tuple[int, bytes]]
RIGHT = {
    "How much is the oven repair?": "The answer is 140 euros.",
    "For whom did Nora bake a rhubarb cake?": "<think>A cake.\nFor whom?</think>Her sister Inês",
    "打印机的维修师傅什么时候过来？": "周五上午十点",
    "Who is the captain of the rowing club?": "Ada Moss",
}


def completion(text: object, **fields: object) -> bytes:
    usage = {"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": {"cached": 1}}
    choice = {"message": {"role": "assistant", "content": text}}
    return json.dumps({"choices": [choice], "usage": usage, **fields}).encode()


def honest(request: dict[str, Any]) -> tuple[int, bytes]:
    """Answer by the question at the end of the request."""
    asked = request["messages"][-1]["content"].partition("Question: ")[2]
    return 200, completion(RIGHT[asked])


class Model(ThreadingHTTPServer):
    """A model's endpoint on this machine; it keeps what it was sent, and plays its answers."""

    daemon_threads = True

    def __init__(self, *answers: Answer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = list(answers)
        self.seen: list[tuple[str, str | None, dict[str, Any]]] = []
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def next(self, path: str, key: str | None, body: dict[str, Any]) -> tuple[int, bytes]:
        with self.lock:
            self.seen.append((path, key, body))
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return answer(body)


class _Handler(BaseHTTPRequestHandler):
    server: Model

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, answer = self.server.next(self.path, self.headers["Authorization"], body)
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def serve() -> Iterator[Callable[..., Model]]:
    servers: list[Model] = []

    def start(*answers: Answer) -> Model:
        servers.append(Model(*answers))
        threading.Thread(target=servers[-1].serve_forever, args=(0.01,), daemon=True).start()
        return servers[-1]

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@contextmanager
def quiet(what: str, total: int) -> Iterator[Callable[[int], None]]:
    yield lambda done: None


def read(model: Model, folder: Path, row: str = "zero-mem", **fields: Any) -> Reading:
    """Let a model read the small set, one question at a time."""
    endpoint = Endpoint(model.url, model="m", key="sk-secret", sleep=lambda seconds: None)
    given = {"concurrency": 1, **fields}
    return reading.read(
        sets.read("small", folder),
        rows.rows(None)[row],
        Reader(endpoint=endpoint, model="m", **given),
        tokenizer=tokenizer(),
        progress=quiet,
    )


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return write_set(tmp_path / "small")


# Scores


def test_words_are_compared_as_squad_does_and_characters_in_chinese() -> None:
    assert words("The answer: “Red-Hot” cars, an  apple!") == ["answer", "redhot", "cars", "apple"]
    assert words("2024年5月去了 Paris。") == ["2024", "年", "5", "月", "去", "了", "paris"]
    assert words("１２ ＡＢ") == ["12", "ab"]  # full-width signs are the same
    assert words("...") == []


def test_f1_and_bleu_are_the_published_formulas() -> None:
    assert f1("a red car", "the red car was here") == pytest.approx(2 * 2 / (2 + 4))
    assert bleu1("red red car", "red car was here") == pytest.approx(2 / 3 * math.exp(1 - 4 / 3))
    assert bleu1("red car was here now", "red car") == pytest.approx(2 / 5)  # no penalty
    assert f1("周五十点", "周五上午十点") == pytest.approx(2 * 4 / (4 + 6))
    assert (f1("", "x"), bleu1("x", ""), f1("the", "a")) == (0.0, 0.0, 1.0)
    assert best(f1, "Moss", ["Lena Moss", "Moss"]) == 1.0


# Reading


def test_answers_are_scored_by_category_with_and_without_calibration(
    serve: Callable[..., Model], small: Path
) -> None:
    model = serve(honest)
    found = read(model, small)
    assert found.figures.categories == ["multi-hop", "single-hop", "update"]
    single = found.figures.means(category="single-hop")
    assert single["f1_calibrated"] == 100  # "The answer is …" is taken off
    assert 75 < single["f1"] < 90
    assert found.figures.means(category="multi-hop")["f1"] == 100  # what it thought is no answer
    assert found.figures.means(category="update")["bleu1"] == 50
    assert found.actions["normalised"] == 1
    assert (found.failed, found.usage["prompt_tokens"], found.usage["completion_tokens"]) == (
        0,
        400,
        20,
    )


def test_a_reader_gets_who_and_when_in_a_fence_and_the_question(
    serve: Callable[..., Model], small: Path
) -> None:
    model = serve(honest)
    found = read(model, small, budget=60, extra={"max_tokens": 9, "temperature": None})
    path, _, request = model.seen[0]
    assert path == "/v1/chat/completions"
    assert (request["model"], request["max_tokens"]) == ("m", 9)
    assert "temperature" not in request
    system, user = request["messages"]
    assert (system["role"], user["role"]) == ("system", "user")
    assert "[memo:4] message: 2026-03-06 18:30 Emil: The oven repair costs 140" in user["content"]
    assert user["content"].endswith("Asked on 2026-03-06. Question: How much is the oven repair?")
    assert user["content"].startswith("<memory>")
    assert 0 < found.memory_tokens <= 4 * 60


def test_the_papers_row_reads_its_five_items(serve: Callable[..., Model], tmp_path: Path) -> None:
    corpus = [{"space": "s", "id": str(n), "text": f"Tea number {n}."} for n in range(9)]
    query = {"space": "s", "question": "Which tea?", "gold": ["1"], "answer": "number 1"}
    folder = write_set(tmp_path / "tea", corpus=corpus, queries=[query])
    model = serve(lambda _: (200, completion("number 1")))
    read(model, folder, "paper")
    read(model, folder, "zero-mem")
    paper, ours = (seen[2]["messages"][1]["content"].count("[memo:") for seen in model.seen)
    assert (paper, ours) == (5, 9)


def test_questions_without_a_right_answer_are_not_asked(
    serve: Callable[..., Model], tmp_path: Path
) -> None:
    unanswered = {name: value for name, value in QUERIES[0].items() if name != "answer"}
    folder = write_set(tmp_path / "small", queries=[unanswered, QUERIES[1]])
    model = serve(honest)
    assert len(read(model, folder).figures.outcomes) == 1
    assert len(model.seen) == 1


def test_several_questions_are_out_at_a_time_and_stay_in_order(
    serve: Callable[..., Model], small: Path
) -> None:
    together = threading.Barrier(4, timeout=30)

    def waiting(request: dict[str, Any]) -> tuple[int, bytes]:
        together.wait()  # each waits for the other three
        return honest(request)

    found = read(serve(waiting), small, concurrency=4)
    categories = [outcome.category for outcome in found.figures.outcomes]
    assert categories == ["single-hop", "multi-hop", "single-hop", "update"]


# Faults


@pytest.mark.req("pkg:errors")
def test_a_busy_endpoint_is_asked_again(serve: Callable[..., Model], small: Path) -> None:
    busy: Answer = lambda _: (429, b"slow down")  # noqa: E731
    broken: Answer = lambda _: (500, b"")  # noqa: E731
    model = serve(busy, broken, honest)
    assert read(model, small).failed == 0
    assert len(model.seen) == 4 + RETRIES


@pytest.mark.req("pkg:errors")
@pytest.mark.parametrize(
    "answer",
    [b"<html>", b"[]", b'{"choices": []}', completion(None), completion(["parts"])],
)
def test_a_broken_answer_counts_as_failed_and_in_no_mean(
    serve: Callable[..., Model], small: Path, answer: bytes
) -> None:
    found = read(serve(lambda _: (200, answer), honest), small)
    assert (found.failed, len(found.figures.outcomes)) == (1, 3)
    assert found.first_failure.startswith("127.0.0.1/m: the answer is no")
    assert found.figures.means(category="multi-hop")["f1"] == 100


@pytest.mark.req("pkg:errors")
@pytest.mark.parametrize("status", [401, 404, 400])
def test_what_every_request_would_get_ends_the_run(
    serve: Callable[..., Model], small: Path, status: int
) -> None:
    model = serve(lambda _: (status, b"sk-secret is no key; you asked about the oven"))
    with pytest.raises(EndpointUnavailable, match=f"HTTP status {status}") as failed:
        read(model, small)
    assert len(model.seen) == 1
    assert not {"sk-secret", "oven"} & set(str(failed.value).split())


@pytest.mark.req("pkg:errors")
def test_an_endpoint_that_has_gone_ends_the_run(
    serve: Callable[..., Model], tmp_path: Path
) -> None:
    queries = [QUERIES[0]] * (GIVE_UP + 3)
    folder = write_set(tmp_path / "small", queries=queries)
    model = serve(lambda _: (200, b"<html>"))
    with pytest.raises(EndpointUnavailable, match="no JSON"):
        read(model, folder)
    assert len(model.seen) == GIVE_UP


@pytest.mark.req("pkg:errors")
@pytest.mark.parametrize(
    "url",
    ["", "ftp://h/v1", "https://", "http://me:pw@h/v1", "https://h/v1?api-key=k", "http://h:x/v1"],
)
def test_an_address_that_can_not_be_used_is_refused_without_being_repeated(url: str) -> None:
    with pytest.raises(InvalidInput, match="its key is given apart") as refused:
        Endpoint(url, model="m")
    assert "pw" not in str(refused.value)
    assert "api-key" not in str(refused.value)


def test_a_key_of_the_environment_goes_over_https_or_to_this_machine(
    serve: Callable[..., Model], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-mine")
    model = serve(honest)
    endpoint = Endpoint(model.url, model="m", variables=("MY_KEY",))
    question = {"messages": [{"content": "Question: How much is the oven repair?"}]}
    endpoint.post("chat/completions", question)
    assert model.seen[0][1] == "Bearer sk-mine"
    assert "sk-mine" not in repr(endpoint)
    assert endpoint.private
    assert not Endpoint("http://models.example/v1", model="m", variables=("MY_KEY",)).private
