"""Requests of all kinds, valid and not, in bytes as odd as clients may send them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

PATHS = {
    "openai_chat": ("/v1/chat/completions", "/chat/completions"),
    "openai_responses": ("/v1/responses", "/responses"),
    "anthropic": ("/v1/messages", "/messages"),
}
FIELD = {"openai_chat": "messages", "openai_responses": "input", "anthropic": "messages"}
TEXTS = ["", "ok", "退款进度", "caf\u00e9 \U0001f642", "a\nb\t\"c\" \\ /", "[memo:1]", "[memo:1",
         "\u2028", "\x7f", "x" * 300]  # fmt: skip
ODD: list[Any] = [None, True, 0, -1, 1.5, 1e300, 10**30, "", "text", [], {}, [None],
                  {"type": "text"}, {"role": 1}, [[[]]]]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Fuzzed:
    """One request; `opening` begins its conversation, where there is one to begin."""

    wire_format: str
    path: str
    body: bytes
    opening: bytes | None


def fuzzed(seed: int) -> Fuzzed:
    """Make the request of a number."""
    chosen = random.Random(seed)
    wire_format = chosen.choice(list(PATHS))
    value = _valid(chosen, wire_format)
    opening = None
    if chosen.random() < 0.5:
        first = {**value, FIELD[wire_format]: value[FIELD[wire_format]][:1]}
        opening = json.dumps(first).encode()
    body = _written(chosen, _spoiled(chosen, value) if chosen.random() < 0.3 else value).encode(
        "utf-8", "surrogatepass" if chosen.random() < 0.02 else "replace"
    )
    if chosen.random() < 0.15:
        body = _broken(chosen, body)
    return Fuzzed(
        wire_format=wire_format,
        path=chosen.choice(PATHS[wire_format]),
        body=body,
        opening=opening,
    )


def _valid(chosen: random.Random, wire_format: str) -> dict[str, Any]:
    items: list[Any] = [{"role": "user", "content": f"Go {chosen.choice(TEXTS)}"}]
    for turn in range(chosen.randint(0, 3)):
        calls = {f"call_{turn}_{n}": _result(chosen) for n in range(chosen.randint(1, 3))}
        items += _TURNS[wire_format](chosen, calls)
        if chosen.random() < 0.3:
            items.append({"role": "user", "content": chosen.choice(TEXTS) or "go on"})
    value: dict[str, Any] = {"model": "m-1", FIELD[wire_format]: items}
    tool = {"name": "orders", "description": "List."}
    schema = {"type": "object", "properties": {"a": {}}}
    if wire_format == "anthropic":
        value |= {"max_tokens": 100, "tools": [{**tool, "input_schema": schema}]}
    elif wire_format == "openai_chat":
        value["tools"] = [{"type": "function", "function": {**tool, "parameters": schema}}]
    else:
        value["tools"] = [{"type": "function", **tool, "parameters": schema}]
    for name in ("temperature", "metadata", "x_unknown", "tool_choice", "system", "user"):
        if chosen.random() < 0.15:
            value[name] = chosen.choice(ODD) if name == "x_unknown" else _LEGAL[name]
    return value


_LEGAL: Mapping[str, Any] = {
    "temperature": 1.0,
    "metadata": {"user_id": "u"},
    "tool_choice": "none",
    "system": "Be brief.",
    "user": "u",
}


def _result(chosen: random.Random) -> str:
    if chosen.random() < 0.4:
        return chosen.choice(TEXTS) or "none"
    rows = [{"id": f"ORD-{n}", "x": chosen.random(), "s": chosen.choice(TEXTS)} for n in range(40)]
    return json.dumps(rows, ensure_ascii=chosen.random() < 0.5)


def _chat_turn(chosen: random.Random, calls: Mapping[str, str]) -> list[Any]:
    arguments = json.dumps({"a": chosen.choice(ODD)})
    made = [
        {"id": call, "type": "function", "function": {"name": "orders", "arguments": arguments}}
        for call in calls
    ]
    turn = {"role": "assistant", "content": chosen.choice([None, "Look."]), "tool_calls": made}
    results = [{"role": "tool", "tool_call_id": i, "content": t} for i, t in calls.items()]
    return [turn, *results]


def _responses_turn(chosen: random.Random, calls: Mapping[str, str]) -> list[Any]:
    arguments = json.dumps({"a": chosen.choice(ODD)})
    made = [
        {"type": "function_call", "call_id": call, "name": "orders", "arguments": arguments}
        for call in calls
    ]
    thought = [{"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "e"}]
    results = [
        {"type": "function_call_output", "call_id": i, "output": t} for i, t in calls.items()
    ]
    return [*(thought if chosen.random() < 0.3 else []), *made, *results]


def _anthropic_turn(chosen: random.Random, calls: Mapping[str, str]) -> list[Any]:
    made = [
        {"type": "tool_use", "id": call, "name": "orders", "input": {"a": chosen.choice(ODD)}}
        for call in calls
    ]
    thought = [{"type": "thinking", "thinking": "[memo:1]", "signature": "c2ln"}]
    image = {"type": "image", "source": {"type": "url", "url": "https://x.example/i.png"}}
    results = [
        {
            "type": "tool_result",
            "tool_use_id": call,
            "content": text if chosen.random() < 0.5 else [{"type": "text", "text": text}, image],
            **({"is_error": True} if chosen.random() < 0.2 else {}),
            **({"cache_control": {"type": "ephemeral"}} if chosen.random() < 0.2 else {}),
        }
        for call, text in calls.items()
    ]
    return [
        {"role": "assistant", "content": [*(thought if chosen.random() < 0.3 else []), *made]},
        {"role": "user", "content": results},
    ]


_TURNS: Mapping[str, Callable[[random.Random, Mapping[str, str]], list[Any]]] = {
    "openai_chat": _chat_turn,
    "openai_responses": _responses_turn,
    "anthropic": _anthropic_turn,
}


def _spoiled(chosen: random.Random, value: Any) -> Any:
    """Put something odd in the place of a part, or take one away."""
    if chosen.random() < 0.15 or not isinstance(value, dict | list) or not value:
        return chosen.choice(ODD)
    copy: Any = value.copy()
    place = chosen.choice(list(value)) if isinstance(value, dict) else chosen.randrange(len(value))
    if chosen.random() < 0.15:
        del copy[place]
    else:
        copy[place] = _spoiled(chosen, value[place])
    return copy


def _written(chosen: random.Random, value: Any) -> str:
    """Write JSON with blanks, escapes and repeated keys as they come."""
    blank = chosen.choice(["", "", " ", "\n  "])
    if isinstance(value, dict):
        members = [
            f"{json.dumps(key)}{blank}:{blank}{_written(chosen, v)}" for key, v in value.items()
        ]
        if members and chosen.random() < 0.03:
            members.insert(0, members[-1])
        return "{" + blank + f",{blank}".join(members) + blank + "}"
    if isinstance(value, list):
        return "[" + blank + f",{blank}".join(_written(chosen, v) for v in value) + "]"
    return json.dumps(value, ensure_ascii=chosen.random() < 0.5)


def _broken(chosen: random.Random, body: bytes) -> bytes:
    at = chosen.randrange(len(body) + 1)
    return chosen.choice(
        [
            body[:at],
            body[:at] + b"\xff" + body[at:],
            body + b"}",
            b"\xef\xbb\xbf" + body,
            b"",
            b"[" * 5000,
            body.replace(b":", b": NaN,", 1),
            body.decode("utf-8", "replace").encode("utf-16"),
        ]
    )
