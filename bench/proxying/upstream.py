"""An upstream that runs as a process of its own: judges requests, streams, or just answers.

    python bench/proxying/upstream.py

prints its port. What it answers depends on the path's first part:

- `/judge/…`: 200 with a digest of the request without what a memory may edit in it (its own
  tools and preamble, the texts of tool results), or 400 with a digest of the bytes where the
  request is not valid;
- `/stream/…`: a valid stream of the format, some hundred events long;
- anything else: a short answer at once.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import socket
from collections.abc import Iterator, Mapping
from typing import Any

from zero_mem.controller.definitions import MEMORY_TOOLS, PREAMBLE
from zero_mem.controller.wire.places import tool_name

EVENTS = 200
ANSWER = json.dumps(
    {
        "id": "msg",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "ok"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 76_000, "output_tokens": 1},
    }
).encode()


def judged(body: bytes) -> tuple[int, bytes]:
    """Answer a request with a digest of it, 400 where it is not valid."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        value = None
    seen = _digest(body)
    if isinstance(value, dict):
        seen = _digest(json.dumps(_unedited(value), sort_keys=True).encode())
    items = value.get("messages", value.get("input")) if isinstance(value, dict) else None
    if not isinstance(value, dict) or not _valid(value, items):
        found = {"error": {"type": "invalid_request_error", "message": seen}}
        return 400, json.dumps(found).encode()
    content = [{"type": "text", "text": seen}]
    return 200, json.dumps({**json.loads(ANSWER), "content": content}).encode()


def _valid(value: Mapping[str, Any], items: Any) -> bool:
    return (
        isinstance(value.get("model"), str)
        and isinstance(value.get("tools", []), list)
        and isinstance(items, list)
        and bool(items)
        and all(isinstance(item, dict) for item in items)
    )


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _unedited(value: Mapping[str, Any]) -> Any:
    """Take out what a memory adds, and blank what it may replace."""
    rest = dict(value)
    if isinstance(value.get("tools"), list):
        rest["tools"] = [t for t in value["tools"] if tool_name(t) not in MEMORY_TOOLS]
    for name in ("system", "instructions"):
        if isinstance(rest.get(name), str):
            rest[name] = rest[name].removesuffix(PREAMBLE).rstrip("\n")
        elif isinstance(rest.get(name), list):
            rest[name] = [b for b in rest[name] if b != {"type": "text", "text": PREAMBLE}]
    rest = {name: field for name, field in rest.items() if field not in ("", None, [])}
    for name in ("messages", "input"):
        if isinstance(rest.get(name), list):
            rest[name] = [_blanked(item) for item in rest[name] if not _is_preamble(item)]
    return rest


def _is_preamble(item: Any) -> bool:
    return isinstance(item, dict) and item.get("content") == PREAMBLE


def _blanked(item: Any) -> Any:
    if not isinstance(item, dict):
        return item
    if item.get("role") in ("tool", "function"):
        return {**item, "content": _texts(item.get("content"))}
    if str(item.get("type", "")).endswith("_output"):
        return {**item, "output": _texts(item.get("output"))}
    content = item.get("content")
    if isinstance(content, list):
        return {**item, "content": [_blanked_block(block) for block in content]}
    return item


def _blanked_block(block: Any) -> Any:
    if isinstance(block, dict) and block.get("type") == "tool_result":
        return {**block, "content": _texts(block.get("content"))}
    return block


def _texts(content: Any) -> Any:
    if isinstance(content, str):
        return "text"
    if isinstance(content, list):
        return [
            {**p, "text": "text"} if isinstance(p, dict) and isinstance(p.get("text"), str) else p
            for p in content
        ]
    return content


def events(body: bytes) -> Iterator[bytes]:
    """Give a stream that says which request it answers."""
    who = _digest(body[:200])

    def event(name: str, **fields: Any) -> bytes:
        return f"event: {name}\ndata: {json.dumps({'type': name, **fields})}\n\n".encode()

    start = {**json.loads(ANSWER), "content": [], "stop_reason": None}
    yield event("message_start", message=start)
    yield event("content_block_start", index=0, content_block={"type": "text", "text": ""})
    for number in range(EVENTS):
        delta = {"type": "text_delta", "text": f"{who} {number} "}
        yield event("content_block_delta", index=0, delta=delta)
    yield event("content_block_stop", index=0)
    ended = {"stop_reason": "end_turn", "stop_sequence": None}
    yield event("message_delta", delta=ended, usage={"output_tokens": 9})
    yield event("message_stop")


class Served(asyncio.Protocol):
    """One connection; as little work as there can be, since it is in every measurement."""

    # The methods are asyncio's.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._buffer = bytearray()
        self._length = -1
        self._head = b""
        self._tasks: set[asyncio.Task[None]] = set()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if self._length < 0:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            self._head = bytes(self._buffer[:end]).lower()
            del self._buffer[: end + 4]
            _, found, rest = self._head.partition(b"\r\ncontent-length:")
            self._length = int(rest.split(b"\r\n")[0]) if found else 0
        if len(self._buffer) >= self._length:
            body = bytes(self._buffer[: self._length])
            del self._buffer[: self._length]
            self._length = -1
            self._answer(self._head.split(b" ")[1], body)

    def _answer(self, path: bytes, body: bytes) -> None:
        if path.startswith(b"/stream"):
            task = asyncio.ensure_future(self._stream(body))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            return
        status, answer = judged(body) if path.startswith(b"/judge") else (200, ANSWER)
        head = f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n"
        length = f"content-length: {len(answer)}\r\n\r\n"
        self._transport.write((head + length).encode() + answer)

    async def _stream(self, body: bytes) -> None:
        head = b"HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\n"
        self._transport.write(head + b"transfer-encoding: chunked\r\n\r\n")
        for event in events(body):
            self._transport.write(b"%x\r\n%b\r\n" % (len(event), event))
            await asyncio.sleep(0)
        self._transport.write(b"0\r\n\r\n")


async def main() -> None:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    listening.listen(1024)
    server = await asyncio.get_running_loop().create_server(Served, sock=listening)
    print(listening.getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
