"""What the read tool answers: a part of one body, under its handle, page by page."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from zero_mem import handles
from zero_mem.controller.references import structure
from zero_mem.errors import InvalidInput
from zero_mem.recall.select import Selection, select
from zero_mem.text.segment import query_terms, terms
from zero_mem.text.tokens import Tokenizer
from zero_mem.types import Body, Json

READ_BUDGET: Final = 1000  # tokens of an answer where the model names no budget
MOST_BUDGET: Final = 8000
_LEAST_BUDGET: Final = 40


def named_id(value: Any) -> str:
    """Take a memory id as models write it: the id, or its handle."""
    whole = handles.parse_whole(value.strip()) if isinstance(value, str) else None
    if whole is not None:
        return whole.references[0].memory_id
    return handles.check_memory_id(value)


def answer_read(
    memory_id: str, body: Body, choice: Mapping[str, Any], *, tokenizer: Tokenizer
) -> str:
    """Give the chosen part of a body as a tool result, within its budget of tokens.

    Args:
        memory_id: The memory's id, for the head line.
        body: Its body.
        choice: The tool's arguments: pointer, rows, lines, pattern, query, budget, page.
        tokenizer: Counts the answer.

    Returns:
        A head line with the handle, how many pieces matched and the page, then the pieces;
        what looks like a handle in them is escaped.

    Raises:
        InvalidInput: The choice does not fit the body; the message says what is there.
    """
    budget = min(MOST_BUDGET, max(_LEAST_BUDGET, _number(choice, "budget", READ_BUDGET)))
    chosen = select(
        _parted(body, choice, budget, tokenizer),
        pointer=choice.get("pointer"),
        rows=_filter(choice.get("rows")),
        lines=choice.get("lines"),
        pattern=choice.get("pattern"),
    )
    wanted = choice.get("query")
    pieces = _matching(chosen.pieces, wanted) if wanted else chosen.pieces
    if not wanted and tokenizer.count(whole := _whole(memory_id, chosen)) <= budget:
        return whole
    head = f"{handles.render(memory_id)} {len(pieces)} of {chosen.total}"
    room = budget - tokenizer.count(f"{head}, page 999 of 999\n")
    pages = _pages([handles.escape(piece) for piece in pieces], room, tokenizer)
    page = _number(choice, "page", 1)
    if page > len(pages):
        raise InvalidInput(f"no page {page}: there are {len(pages)}")
    if len(pages) > 1:
        head += f", page {page} of {len(pages)}"
    return f"{head}\n{pages[page - 1]}".rstrip("\n")


def _parted(body: Body, choice: Mapping[str, Any], budget: int, tokenizer: Tokenizer) -> Body:
    """Take JSON on one line by its elements where a part is asked for: it has no other lines."""
    if not isinstance(body, str) or "\n" in body.strip() or choice.get("pointer"):
        return body
    in_part = any(choice.get(name) for name in ("lines", "pattern", "query"))
    if not in_part and tokenizer.count(body) <= budget:
        return body
    value = structure(body)
    return body if isinstance(value, str) else Json(value)


def _whole(memory_id: str, chosen: Selection) -> str:
    head = f"{handles.render(memory_id)} {chosen.matched} of {chosen.total}"
    return f"{head}\n{handles.escape(chosen.text)}" if chosen.text else head


def _filter(rows: Any) -> Any:
    """Take a filter as an object, or as the JSON text that some models write."""
    if not isinstance(rows, str):
        return rows
    try:
        return json.loads(rows)
    except ValueError:
        raise InvalidInput('rows is an object such as {"status": "late"}') from None


def _number(choice: Mapping[str, Any], name: str, default: int) -> int:
    value = choice.get(name)
    if value is None or value == "":
        return default
    try:
        number = int(value)
    except (TypeError, ValueError):
        raise InvalidInput(f"{name} is a whole number") from None
    if number < 1:
        raise InvalidInput(f"{name} is a whole number from 1")
    return number


def _matching(pieces: Sequence[str], query: str) -> list[str]:
    """Keep the pieces that hold a word of the query, those with most words first."""
    wanted = set(query_terms(query))
    scores = Counter({i: len(wanted & set(terms(piece))) for i, piece in enumerate(pieces)})
    return [pieces[i] for i, score in scores.most_common() if score]


def _pages(pieces: Sequence[str], room: int, tokenizer: Tokenizer) -> list[str]:
    """Fill pages with whole pieces; one that no page can hold is cut over several."""
    pages: list[list[str]] = [[]]
    spent = 0
    for part in (part for piece in pieces for part in _cut(piece, room, tokenizer)):
        cost = tokenizer.count(part + "\n")
        if pages[-1] and spent + cost > room:
            pages.append([])
            spent = 0
        pages[-1].append(part)
        spent += cost
    return ["\n".join(page) for page in pages]


def _cut(piece: str, room: int, tokenizer: Tokenizer) -> list[str]:
    if tokenizer.count(piece + "\n") <= room or len(piece) < 2:
        return [piece]
    middle = len(piece) // 2
    halves = (piece[:middle], piece[middle:])
    return [part for half in halves for part in _cut(half, room, tokenizer)]
