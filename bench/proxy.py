"""What the proxy costs and keeps: latency, streams at once, fuzzed requests, the prefix.

    python bench/proxy.py [--calls 300] [--fuzz 10000] [--json out.json] [--markdown out.md]

Upstream, proxy and caller are processes of their own on loopback. Latency is that of one
request of 76,000 tokens, sent over a kept connection to the upstream and through the proxy in
turns; what is added at a quantile is the difference of the two quantiles. In the mode offload
the request belongs to a conversation whose results are already decided, as all but the newest
are in every call.
"""

from __future__ import annotations

import http.client
import http.server
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from _report import Figure, all_of, at_most, options, report_rows
from proxying import upstream as scripted
from proxying.fuzz import Fuzzed, fuzzed

from zero_mem.text.tokens import tokenizer

TOKENS = 76_000
UPSTREAM = str(Path(__file__).with_name("proxying") / "upstream.py")
STREAMS = 200
MODES = ("observe", "offload")


@contextmanager
def server(*command: str) -> Iterator[str]:
    """Run a server until the block ends; it prints its port, or a line of JSON with its URL."""
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        said = process.stdout.readline().strip()
        yield json.loads(said)["url"] if said.startswith("{") else f"http://127.0.0.1:{said}"
    finally:
        process.terminate()
        process.wait()


def run_proxy(upstream: str, mode: str, folder: Path, name: str = "") -> Any:
    main = "from zero_mem.cli import main; main()"
    store = f"sqlite:///{folder}/{mode}{name}.db"
    options = ["--mode", mode, "--port", "0", "--store", store, "--json"]
    return server("-c", main, "proxy", "--upstream", upstream, *options)


class Caller:
    """One kept connection."""

    def __init__(self, url: str) -> None:
        self._connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=120)

    def send(self, path: str, body: bytes, conversation: str = "") -> tuple[int, bytes]:
        """Send a request; give status and body."""
        headers = {"content-type": "application/json", "authorization": "Bearer k"}
        if conversation:
            headers["x-zero-mem-conversation"] = conversation
        self._connection.request("POST", path, body, headers)
        answer = self._connection.getresponse()
        return answer.status, answer.read()

    def timed(self, path: str, body: bytes, conversation: str) -> float:
        """Give the milliseconds from the first byte sent to the last one read."""
        start = time.perf_counter()
        self.send(path, body, conversation)
        return 1000 * (time.perf_counter() - start)


def conversation(tokens: int, *, results: int = 24) -> dict[str, Any]:
    """A request of an agent's run with so many tokens, most of them in tool results."""
    chosen = random.Random(7)
    words = [f"{chosen.choice('bcdfglmnprst')}{chosen.choice('aeiou')}{n}" for n in range(300)]
    count = tokenizer("o200k").count
    messages: list[Any] = [{"role": "user", "content": "Find the late orders."}]
    for number in range(results):
        lines: list[str] = []
        while count("\n".join(lines)) < tokens / results - 60:
            lines += [f"{len(lines)} {' '.join(chosen.choices(words, k=9))}" for _ in range(20)]
        call = {"type": "tool_use", "id": f"toolu_{number}", "name": "orders", "input": {}}
        result = {
            "type": "tool_result",
            "tool_use_id": f"toolu_{number}",
            "content": "\n".join(lines),
        }
        messages += [
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
        ]
    tool = {"name": "orders", "description": "List.", "input_schema": {"type": "object"}}
    return {"model": "m", "max_tokens": 100, "tools": [tool], "messages": messages}


def prefixes_of(request: dict[str, Any]) -> Iterator[bytes]:
    """Give the requests of a run, each with one more result."""
    for stop in range(1, len(request["messages"]) + 1, 2):
        yield json.dumps({**request, "messages": request["messages"][:stop]}).encode()


def latency(folder: Path, calls: int) -> Iterator[Figure]:
    request = conversation(TOKENS)
    body = json.dumps(request).encode()
    size = tokenizer("o200k").count(body.decode())
    with server(UPSTREAM) as upstream, ExitStack() as stack:
        direct = Caller(upstream)
        for mode in MODES:
            proxied = Caller(stack.enter_context(run_proxy(upstream, mode, folder)))
            for opening in prefixes_of(request):
                proxied.send("/v1/messages", opening, "one")
            pairs = [
                (direct.timed("/v1/messages", body, ""), proxied.timed("/v1/messages", body, "one"))
                for _ in range(calls + 20)
            ][20:]
            alone, through = (sorted(times) for times in zip(*pairs, strict=True))
            name = f"direct, {size:,} tokens"
            for quantile, bound in ((50, 3), (99, 10)):
                at = max(0, len(pairs) * quantile // 100 - 1)
                yield Figure(name=f"{name}, p{quantile}", figure=alone[at], unit="ms")
                added = through[at] - alone[at]
                yield at_most(f"added, {mode}, p{quantile}", added, bound, "ms")


def streams(folder: Path) -> Iterator[Figure]:
    """Two hundred streams at once, each of them whole and in order."""
    with server(UPSTREAM) as upstream, ExitStack() as stack:
        for mode in MODES:
            url = stack.enter_context(run_proxy(f"{upstream}/stream", mode, folder, "-streams"))
            right: list[bool] = []

            def ask(number: int, url: str = url, right: list[bool] = right) -> None:
                asked = {**conversation(600, results=1), "stream": True, "metadata": {"n": number}}
                asked = {"model": f"m-{number}", **asked, "messages": asked["messages"][:1]}
                caller = Caller(url)
                status, got = caller.send("/v1/messages", json.dumps(asked).encode(), f"c{number}")
                texts = [line for line in got.split(b"\n") if b"text_delta" in line]
                numbers = [int(json.loads(t[6:])["delta"]["text"].split()[1]) for t in texts]
                whole = got.rstrip().endswith(b'"message_stop"}')
                right.append(status == 200 and whole and numbers == list(range(scripted.EVENTS)))

            threads = [threading.Thread(target=ask, args=(number,)) for number in range(STREAMS)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            yield all_of(f"{STREAMS} streams at once, {mode}: whole and in order",
                         sum(right), STREAMS)  # fmt: skip


def fuzz(folder: Path, count: int) -> Iterator[Figure]:
    """Send each request directly and through both modes, and compare status and body."""
    same = dict.fromkeys(MODES, 0)
    valid = 0
    with server(UPSTREAM) as upstream, ExitStack() as stack:
        direct = Caller(upstream)
        proxied = {
            mode: Caller(stack.enter_context(run_proxy(f"{upstream}/judge", mode, folder, "-fuzz")))
            for mode in MODES
        }
        for number in range(count):
            request = fuzzed(number)
            wanted = direct.send(f"/judge{request.path}", request.body)
            valid += wanted[0] == 200
            for mode, caller in proxied.items():
                same[mode] += sent(caller, request, f"f{number}") == wanted
    for mode in MODES:
        name = f"{count:,} fuzzed requests ({valid:,} valid), {mode}: answered as directly"
        yield all_of(name, same[mode], count)


def sent(caller: Caller, request: Fuzzed, name: str) -> tuple[int, bytes]:
    """Send a request, after what begins its conversation."""
    if request.opening is None:
        return caller.send(request.path, request.body)
    caller.send(request.path, request.opening, name)
    return caller.send(request.path, request.body, name)


def prefix(folder: Path) -> Iterator[Figure]:
    """Send a run call by call through the proxy, which is started again in the middle."""
    kept: list[list[str]] = []
    bodies = list(prefixes_of(conversation(20_000)))

    class Recorder(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got = json.loads(self.rfile.read(int(self.headers["content-length"])))
            kept.append([json.dumps(message) for message in got["messages"]])
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(scripted.ANSWER)))
            self.end_headers()
            self.wfile.write(scripted.ANSWER)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    recording = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
    threading.Thread(target=recording.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{recording.server_port}"
    half = len(bodies) // 2
    for part in (bodies[:half], bodies[half:]):
        with run_proxy(url, "offload", folder, "-prefix") as proxy:
            for body in part:
                Caller(proxy).send("/v1/messages", body, "run")
    recording.shutdown()
    unchanged = sum(later[: len(earlier)] == earlier for earlier, later in pairwise(kept))
    size = sum(map(len, kept[-1])) / len(bodies[-1])
    yield all_of("prefix unchanged, call by call, over a restart", unchanged, len(kept) - 1)
    yield Figure(name="last request, bytes against the host's", figure=size, unit="share")


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--fuzz", type=int, default=10_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = [
            *latency(folder, given.calls),
            *streams(folder),
            *prefix(folder),
            *fuzz(folder, given.fuzz),
        ]
    return report_rows(given, rows)


if __name__ == "__main__":
    sys.exit(main())
