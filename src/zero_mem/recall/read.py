"""Reading a part of one body under a budget (`recall:where`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from zero_mem.recall.select import select
from zero_mem.text.tokens import Tokenizer
from zero_mem.types import MemoryRecord, Read


def read(
    record: MemoryRecord,
    *,
    pointer: str | None,
    rows: Mapping[str, Any] | None,
    lines: tuple[int, int] | str | None,
    pattern: str | None,
    budget: int,
    tokenizer: Tokenizer,
) -> Read:
    """Give the chosen part of a body, whole pieces (rows, lines) up to the budget.

    Raises:
        InvalidInput: The choice does not fit the body; the message says what is there.
    """
    chosen = select(record.content, pointer=pointer, rows=rows, lines=lines, pattern=pattern)
    text, value, left_out = chosen.text, chosen.value, ""
    if tokenizer.count(text) > budget:
        pieces = _fitting(chosen.pieces, budget, tokenizer)
        text, value = "\n".join(pieces), None
        if not pieces:
            text = _beginning(chosen.pieces[0], budget, tokenizer)
        left_out = (
            f"{len(chosen.pieces) - len(pieces)} of {len(chosen.pieces)} pieces left out over "
            f"the budget of {budget} tokens; read on with lines, rows, a pattern or a pointer"
        )
    return Read(
        memory_id=record.memory_id,
        text=text,
        value=value,
        matched=chosen.matched,
        total=chosen.total,
        tokens=tokenizer.count(text),
        tokens_exact=tokenizer.exact,
        left_out=left_out,
    )


def _fitting(pieces: Sequence[str], budget: int, tokenizer: Tokenizer) -> list[str]:
    """Take pieces from the start as long as they fit."""
    fitting: list[str] = []
    spent = 0
    for piece in pieces:
        spent += tokenizer.count(piece + "\n")
        if spent > budget:
            break
        fitting.append(piece)
    while fitting and tokenizer.count("\n".join(fitting)) > budget:
        fitting.pop()  # a joint can cost more than its parts
    return fitting


def _beginning(piece: str, budget: int, tokenizer: Tokenizer) -> str:
    """Cut a piece that is over the budget by itself, so that a read always gives something."""
    fits, over = 0, len(piece)
    while over - fits > 1:
        middle = (fits + over) // 2
        if tokenizer.count(piece[:middle]) <= budget:
            fits = middle
        else:
            over = middle
    return piece[:fits]
