"""Texts that nobody would write by hand, and what every store must make of them alike."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from zero_mem import Json, Memory, ZeroMemError
from zero_mem.space import Namespace

PIECES: Final = (
    "\x00", "\ud800", "\udfff\ud800", "\u202e", "\u2066", "\ufeff", "\u200d", "\ufffe",
    "\U0010ffff", "\r\n", "\u2028", "\x1b[31m", "'", '"', "\\", "%", "_", "*", "(", ")", "[memo:1]",
    "[\\memo:1]", "</memory>", "<script>", "AND OR NOT", "NEAR(", "退款", "e\u0301", "é", "ﬁ", "Ⅷ",
    "１２３", "👩\u200d👩\u200d👧", "{}", '{"a":1}', "null", "NaN", "1e999", "-0", "--",
    "[a--b&&c]", ";", "/", "..", "%2e", "\ue001", "\ue010",
)  # fmt: skip
PLANES: Final = ((0, 0xFF), (0x100, 0xFFFF), (0x10000, 0x1FFFF), (0x20000, 0x10FFFF))


@dataclass(frozen=True, slots=True)
class Attempt:
    """One call, by name and arguments, so that stores can be asked the same."""

    name: str
    arguments: tuple[Any, ...]


def text(chance: random.Random) -> str:
    """Make a text of up to some hundred characters of every kind."""
    parts = []
    for _ in range(chance.choice((0, 1, 1, 2, 3, 8, 40))):
        if chance.random() < 0.5:
            parts.append(chance.choice(PIECES))
        else:
            low, high = chance.choice(PLANES)
            parts.append(
                "".join(chr(chance.randint(low, high)) for _ in range(chance.randint(1, 9)))
            )
    return "".join(parts)


def attempts(seed: int, count: int) -> Iterator[Attempt]:
    """Make calls with hostile texts in every place that takes one."""
    chance = random.Random(seed)
    for _ in range(count):
        name = chance.choice(tuple(CALLS))
        yield Attempt(name, tuple(text(chance) for _ in range(4)))


@dataclass(frozen=True, slots=True)
class Rooted:
    """A store of which all namespaces begin alike."""

    memory: Memory
    root: str

    def namespace(self, *segments: str) -> Namespace:
        """Give a namespace under the root."""
        return self.memory.namespace(self.root, *segments)


def outcome(memory: Rooted, attempt: Attempt) -> Any:
    """Give what a call returns, or the type of its error and what it says."""
    try:
        return CALLS[attempt.name](memory, *attempt.arguments)
    except ZeroMemError as error:
        return type(error).__name__, str(error)


def _named(text: str) -> str | None:
    return text or None


def _save(m: Rooted, a: str, b: str, c: str, d: str) -> Any:
    receipt = m.namespace("h").save(a, kind=_named(b), key=_named(c), tags=[d] if d else ())
    record = m.namespace("h").get(receipt.memory_id)
    return receipt.to_context(), receipt.version, record.content, record.key, record.tags


def _save_json(m: Rooted, a: str, b: str, c: str, d: str) -> Any:
    value = {a: [b, {c: d}]}
    receipt = m.namespace("h").save(Json(value), metadata={d: c, "m": {a: b}})
    record = m.namespace("h").get(receipt.memory_id)
    return receipt.to_context(), record.content, dict(record.metadata)


def _named_save(m: Rooted, a: str, b: str, c: str, d: str) -> Any:
    space = m.namespace("h", "named")
    return space.save(a, memory_id=b, session=_named(c), speaker=_named(d)).to_context()


def _namespace(m: Rooted, a: str, b: str, c: str, d: str) -> Any:
    space = m.namespace("n", a, b)
    space.save(c)
    return space.path, [record.content for record in space.list(limit=3)]


def _search(m: Rooted, a: str, b: str, c: str, d: str) -> Any:
    return [(hit.memory_id, round(hit.score, 9)) for hit in m.namespace("h").search(a + b)]


def _recall(m: Rooted, a: str, b: str, c: str, d: str) -> Any:
    recall = m.namespace("h").recall(a, limit=5)
    return [item.memory_id for item in recall.items], recall.text


def _filter(m: Rooted, a: str, b: str, c: str, d: str) -> Any:
    where = {"key": _named(a), "metadata.m": b} if c else {"tag": b, "session": {"ne": a}}
    return m.namespace("h").count({k: v for k, v in where.items() if v is not None})


def _read(m: Rooted, a: str, b: str, c: str, d: str) -> Any:
    m.namespace("h").save(a or "x", memory_id="read")
    return m.namespace("h").read("read", pattern=b or "x").text


def _decide(m: Rooted, a: str, b: str, c: str, d: str) -> Any:
    space = m.namespace("h")
    space.decide("scope", a, b)
    return space.decision("scope", a), len(space.decisions("scope"))


def _handle(m: Rooted, a: str, b: str, c: str, d: str) -> Any:
    return m.namespace("h").get(a).memory_id


def _event(m: Rooted, a: str, b: str, c: str, d: str) -> Any:
    space = m.namespace("e")
    space.save("x", invalidated_by=[a], metadata={"k": b})
    return space.raise_event(a, match={"k": b}).count


CALLS: Final[dict[str, Callable[..., Any]]] = {
    "save": _save,
    "save json": _save_json,
    "save named": _named_save,
    "namespace": _namespace,
    "search": _search,
    "recall": _recall,
    "filter": _filter,
    "read": _read,
    "decide": _decide,
    "handle": _handle,
    "event": _event,
}
