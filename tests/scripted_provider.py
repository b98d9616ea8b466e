"""A provider on loopback that answers from a script and keeps what it was sent."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = dict[str, Any]


class ScriptedProvider:
    """Answers each request with the next of `script`: a body, or (status, body)."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.script: list[Answer | tuple[int, Answer] | Callable[[Answer], Answer]] = []
        self.requests: list[Answer] = []

    def answer(self, body: Answer) -> tuple[int, Answer]:
        self.requests.append(body)
        step = self.script.pop(0)
        if callable(step):
            step = step(body)
        return step if isinstance(step, tuple) else (200, step)


@contextmanager
def scripted_provider() -> Iterator[ScriptedProvider]:
    """Serve on a free port of loopback until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, answer = provider.answer(body)
            sent = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(sent)))
            self.send_header("x-request-id", f"req-{len(provider.requests)}")
            self.send_header("request-id", f"req-{len(provider.requests)}")
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider = ScriptedProvider(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
