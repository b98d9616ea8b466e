"""An upstream on loopback that answers from a script, whole or in a stream, for all formats.

A step of the script is a complete body, (status, body), or `Sent`: bytes as they stand, after
which the connection may break. A body goes out as a stream where the request asks for one.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from zero_mem.controller.messages import WireFormat
from zero_mem.controller.wire.server_sent import Event, event_bytes

Body = dict[str, Any]
Cut = Callable[[str], Sequence[str]]


def by_three(text: str) -> Sequence[str]:
    """Cut a text into fragments of three characters."""
    return [text[at : at + 3] for at in range(0, len(text), 3)]


@dataclass(frozen=True, kw_only=True)
class Sent:
    """A stream as it stands; `breaks` ends the connection in the middle."""

    chunks: Sequence[bytes]
    breaks: bool = False
    hold: threading.Event | None = None


@dataclass
class Upstream:
    """What was asked, and what is answered next."""

    url: str
    script: list[Any] = field(default_factory=list)
    requests: list[Body] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    cut: Cut = by_three


# Streams


def stream(wire_format: WireFormat, body: Body, cut: Cut = by_three) -> list[Event]:
    """Give the events in which a provider streams a complete response."""
    if wire_format == "anthropic":
        return list(_anthropic(body, cut))
    return list(_chat(body, cut) if wire_format == "openai_chat" else _responses(body, cut))


def stream_bytes(wire_format: WireFormat, body: Body, cut: Cut = by_three) -> bytes:
    return b"".join(map(event_bytes, stream(wire_format, body, cut)))


def _anthropic(body: Body, cut: Cut) -> Iterator[Event]:
    def event(name: str, **fields: Any) -> Event:
        return Event(name=name, data={"type": name, **fields})

    usage = body.get("usage", {"input_tokens": 1, "output_tokens": 1})
    start = {"stop_reason": None, "stop_sequence": None, **body, "content": []}
    start.update(stop_reason=None, usage={**usage, "output_tokens": 1})
    yield event("message_start", message=start)
    yield event("ping")
    for index, block in enumerate(body["content"]):
        begun, deltas = _block(block, cut)
        yield event("content_block_start", index=index, content_block=begun)
        for delta in deltas:
            yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
    ended = {"stop_reason": body.get("stop_reason", "end_turn"), "stop_sequence": None}
    yield event("message_delta", delta=ended, usage={"output_tokens": usage["output_tokens"]})
    yield event("message_stop")


def _block(block: Body, cut: Cut) -> tuple[Body, list[Body]]:
    kind = block["type"]
    if kind == "text":
        return {**block, "text": ""}, [
            {"type": "text_delta", "text": t} for t in cut(block["text"])
        ]
    if kind == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": t} for t in cut(block["thinking"])]
        signed = {"type": "signature_delta", "signature": block["signature"]}
        return {**block, "thinking": "", "signature": ""}, [*deltas, signed]
    if kind in ("tool_use", "server_tool_use"):
        parts = ["", *cut(json.dumps(block["input"], ensure_ascii=False))]
        if not block["input"]:
            parts = []
        return {**block, "input": {}}, [
            {"type": "input_json_delta", "partial_json": part} for part in parts
        ]
    return block, []


def _chat(body: Body, cut: Cut) -> Iterator[Event]:
    head = {k: v for k, v in body.items() if k not in ("choices", "usage")}
    head["object"] = "chat.completion.chunk"

    def chunk(index: int, delta: Body, finish: Any = None, **fields: Any) -> Event:
        choice = {"index": index, "delta": delta, "finish_reason": finish, "logprobs": None}
        return Event(data={**head, "choices": [choice], **fields})

    for choice in body["choices"]:
        index, message = choice["index"], choice["message"]
        yield chunk(index, {"role": "assistant", "content": ""})
        for text in cut(message.get("reasoning_content") or ""):
            yield chunk(index, {"reasoning_content": text})
        for text in cut(message.get("content") or ""):
            yield chunk(index, {"content": text})
        yield from (chunk(index, delta) for delta in _chat_calls(message, cut))
        yield chunk(index, {}, choice.get("finish_reason", "stop"))
    if body.get("usage"):
        yield Event(data={**head, "choices": [], "usage": body["usage"]})
    yield Event(data="[DONE]")


def _chat_calls(message: Body, cut: Cut) -> Iterator[Body]:
    """The calls' arguments arrive in turns, as they may."""
    calls = message.get("tool_calls") or []
    fragments = []
    for index, call in enumerate(calls):
        form = "function" if "function" in call else "custom"
        name = "arguments" if form == "function" else "input"
        begun = {**call, "index": index, form: {**call[form], name: ""}}
        yield {"tool_calls": [begun]}
        fragments.append([(index, form, name, part) for part in cut(call[form][name])])
    for at in range(max(map(len, fragments), default=0)):
        now = [parts[at] for parts in fragments if at < len(parts)]
        yield {"tool_calls": [{"index": i, form: {name: part}} for i, form, name, part in now]}


def _responses(body: Body, cut: Cut) -> Iterator[Event]:
    number = iter(range(1_000_000))

    def event(name: str, **fields: Any) -> Event:
        return Event(name=name, data={"type": name, **fields, "sequence_number": next(number)})

    started = {**body, "output": [], "status": "in_progress", "usage": None}
    yield event("response.created", response=started)
    yield event("response.in_progress", response=started)
    for index, item in enumerate(body["output"]):
        place = {"item_id": item.get("id", ""), "output_index": index}
        name = {"function_call": "arguments", "custom_tool_call": "input"}.get(item["type"])
        if name:
            kind = f"{item['type']}_{name}" if name == "arguments" else f"{item['type']}_input"
            yield event("response.output_item.added", output_index=index, item={**item, name: ""})
            for part in cut(item[name]):
                yield event(f"response.{kind}.delta", **place, delta=part)
            yield event(f"response.{kind}.done", **place, **{name: item[name]})
        elif item["type"] == "message":
            begun = {**item, "content": [], "status": "in_progress"}
            yield event("response.output_item.added", output_index=index, item=begun)
            for at, part in enumerate(item["content"]):
                inside = {**place, "content_index": at}
                yield event("response.content_part.added", **inside, part={**part, "text": ""})
                for text in cut(part["text"]):
                    yield event("response.output_text.delta", **inside, delta=text, logprobs=[])
                text = part["text"]
                yield event("response.output_text.done", **inside, text=text, logprobs=[])
                yield event("response.content_part.done", **inside, part=part)
        else:
            yield event("response.output_item.added", output_index=index, item=item)
        yield event("response.output_item.done", output_index=index, item=item)
    yield event("response.completed", response={"status": "completed", **body})


# The server


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    served: Upstream

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        body = json.loads(raw)
        self.served.raw.append(raw)
        self.served.requests.append(body)
        self.served.headers.append({k.lower(): v for k, v in self.headers.items()})
        self.served.paths.append(self.path)
        step = self.served.script.pop(0)
        if callable(step):
            step = step(body)
        if isinstance(step, Sent):
            self._stream(step)
        elif isinstance(step, dict) and body.get("stream"):
            sent = stream_bytes(_format(self.path), step, self.served.cut)
            self._stream(Sent(chunks=[sent[at : at + 700] for at in range(0, len(sent), 700)]))
        else:
            self._whole(*(step if isinstance(step, tuple) else (200, step)))

    def _whole(self, status: int, answer: Any) -> None:
        sent = json.dumps(answer).encode()
        self.send_response(status)
        self._common("application/json")
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def _common(self, media_type: str) -> None:
        self.send_header("Content-Type", media_type)
        self.send_header("x-request-id", f"req-{len(self.served.requests)}")
        self.send_header("request-id", f"req-{len(self.served.requests)}")

    def _stream(self, sent: Sent) -> None:
        self.send_response(200)
        self._common("text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for chunk in sent.chunks:
                self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
                self.wfile.flush()
            if sent.hold is not None:
                sent.hold.wait(30)
            if not sent.breaks:
                self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True  # the client has gone
        self.close_connection = self.close_connection or sent.breaks

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def upstream() -> Iterator[Upstream]:
    """Serve on a free port of loopback until the block ends."""
    handler = type("Handler", (_Handler,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    served = Upstream(url=f"http://127.0.0.1:{server.server_port}")
    handler.served = served  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _format(path: str) -> WireFormat:
    if path.endswith("/chat/completions"):
        return "openai_chat"
    return "openai_responses" if path.endswith("/responses") else "anthropic"
