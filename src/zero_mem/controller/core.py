"""The offload decision: what stands in a prompt in the place of a tool result.

Decided once, when the result comes in, from the messages up to it, and final: earlier
messages are never rewritten, so the prompt's prefix stays what it was. A short result
stays as it is, one that fits is written in the compact lossless form, of any other a
receipt stays with the part that is most likely to be needed.

    offloader = Offloader(share=0.25, tokenizer=tokenizer("o200k"))
    for message in history:
        if message.role == "tool":
            insertion = offloader.insert(message, memory_id)
        else:
            offloader.observe(message)

The state is a function of the messages and of the inserted texts. After a restart the
history is fed again, with `adopt` for each result whose text is on record; what follows is
decided as if nothing had happened.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

from zero_mem import handles
from zero_mem.controller import lines
from zero_mem.controller.compact import as_json, encode
from zero_mem.controller.definitions import READ_TOOL
from zero_mem.controller.extract import extract
from zero_mem.controller.interest import Interest
from zero_mem.controller.messages import Message
from zero_mem.errors import InvalidInput
from zero_mem.text.tokens import Tokenizer

Kind: TypeAlias = Literal["verbatim", "compact", "extract"]

MAX_VERBATIM: Final = 20  # tokens; below about twice a receipt an extract saves nothing
MAX_EXTRACT: Final = 4000  # tokens

_WORTH_PASSING: Final = 150  # tokens of a whole result; a handle of it costs 7

_THRESHOLD: Final = (0.138, 0.15, 8.8)  # of merit: at this share, and how it falls with it
_SMOOTHING: Final = 2000  # tokens; how long the accounts of a young run are not trusted
_HORIZON: Final = 1.5  # calls ahead that the accounts assume for what stands now
_WIDEST: Final = 5.0  # the threshold moves by at most this factor
_RESERVE: Final = 1500  # tokens that a column is expected to grow by, for the hard limit
_SLACK: Final = 1.3
_TEXT_RESERVE: Final = 1000
_TEXT_SMOOTHING: Final = 3000
_TEXT_RECEIPTS: Final = 0.04  # of the column; what receipts alone take in runs of text
_TEXT_GAIN: Final = 1.2  # the lines that are worth it rarely fill their part
_TEXT_POWER: Final = 0.6  # a text of n tokens gets a part that grows as n ** this
_TEXT_STEER: Final = 2.0  # how strongly what was saved or overspent moves the next part


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A stretch of an inserted text and the reason why it stands there."""

    start: int
    end: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Insertion:
    """What stands in the place of a tool result.

    `receipt` begins the first line of `text`, which is no part of the result; it is empty where
    there is none: results that are short stand alone. `left_out` is
    the number of values (of JSON) or lines (of text) that are not shown. `tokens` counts
    `text`, `original` the result.
    """

    text: str
    memory_id: str
    receipt: str
    kind: Kind
    left_out: int
    spans: tuple[Span, ...]
    tokens: int
    original: int


def receipt_line(memory_id: str) -> str:
    """Write the receipt of a saved tool result in its shortest form, without a preview."""
    return f"{handles.render(memory_id)} save"


class Offloader:
    """Decides for each tool result of one conversation, in order, what is inserted.

    Args:
        share: the part of the tool results' tokens, summed over all calls, that may stand
            in the prompts; above 0 and at most 1.
        tokenizer: counts tokens; a replay with another one decides otherwise.
        max_verbatim: results up to so many tokens stay as they are.
        max_extract: no extract takes more tokens, however long the result.
        exempt: tools whose results are never offloaded: those that read memory.
    """

    def __init__(
        self,
        *,
        share: float,
        tokenizer: Tokenizer,
        max_verbatim: int = MAX_VERBATIM,
        max_extract: int = MAX_EXTRACT,
        exempt: Collection[str] = (READ_TOOL,),
    ) -> None:
        if not 0 < share <= 1:
            raise InvalidInput(f"share is {share}; it has to be above 0 and at most 1")
        if max_verbatim < 0 or max_extract < 0:
            raise InvalidInput("max_verbatim and max_extract are numbers of tokens, from 0")
        self._share = share
        self._count = tokenizer.count
        self._max_verbatim = max_verbatim
        self._max_extract = max_extract
        self._exempt = frozenset(exempt)
        self._accounts = _Accounts(share)
        self._interest = Interest()

    def observe(self, message: Message) -> None:
        """Take the next message, one that is not a tool result."""
        if message.role == "tool":
            raise InvalidInput("a tool result is given to insert or adopt, not to observe")
        if message.role == "assistant":
            self._accounts.call()
        self._interest.hear(message)

    def insert(self, message: Message, memory_id: str) -> Insertion:
        """Decide what stands in the place of a tool result, and count it in.

        Args:
            message: the result; parts that are not text are not looked at.
            memory_id: the memory that holds it whole.
        """
        value = as_json(message.text)
        insertion = self._decide(message, memory_id, value)
        self._account(message.text, value, insertion.text, insertion.original, insertion.tokens)
        return insertion

    def adopt(self, message: Message, text: str) -> None:
        """Count in a result whose insertion was decided before, by the text then inserted."""
        original = self._count(message.text)
        self._account(message.text, as_json(message.text), text, original, self._count(text))

    def _account(self, raw: str, value: Any, text: str, original: int, tokens: int) -> None:
        self._accounts.result(original, tokens)
        self._interest.show(value, text)

    def _decide(self, message: Message, memory_id: str, value: Any) -> Insertion:
        original = self._count(message.text)
        plain = self._verbatim(message, memory_id, original)
        if original <= self._max_verbatim or message.tool in self._exempt:
            return plain
        accounts = self._accounts
        limit = accounts.limit(original) if value is not None else accounts.text_limit(original)
        limit = min(limit, self._max_extract)
        whole = plain if value is None else self._compact(plain, value)
        part = self._part(message.text, value, memory_id, original, limit)
        if whole.tokens <= (part.tokens if value is not None else max(limit, part.tokens)):
            return self._passable(whole)
        return part

    def _passable(self, whole: Insertion) -> Insertion:
        """Give a whole result its receipt where passing it by handle is worth a line."""
        if whole.tokens < _WORTH_PASSING:
            return whole
        receipt = receipt_line(whole.memory_id)
        head = Span(start=0, end=len(receipt), reason="receipt")
        (body,) = whole.spans
        text = f"{receipt}\n{whole.text}"
        return replace(
            whole,
            text=text,
            receipt=receipt,
            spans=(head, replace(body, start=head.end, end=len(text))),
            tokens=self._count(text),
        )

    def _verbatim(self, message: Message, memory_id: str, original: int) -> Insertion:
        text = message.text if message.tool in self._exempt else handles.escape(message.text)
        return Insertion(
            text=text,
            memory_id=memory_id,
            receipt="",
            kind="verbatim",
            left_out=0,
            spans=(Span(start=0, end=len(text), reason="the whole result: it is short"),),
            tokens=original if text == message.text else self._count(text),
            original=original,
        )

    def _compact(self, plain: Insertion, value: Any) -> Insertion:
        try:
            text = handles.escape(encode(value))
        except InvalidInput:
            return plain
        tokens = self._count(text)
        if tokens >= plain.tokens:
            return plain
        return Insertion(
            text=text,
            memory_id=plain.memory_id,
            receipt="",
            kind="compact",
            left_out=0,
            spans=(Span(start=0, end=len(text), reason="the whole result in compact form"),),
            tokens=tokens,
            original=plain.original,
        )

    def _part(self, raw: str, value: Any, memory_id: str, original: int, limit: int) -> Insertion:
        receipt = receipt_line(memory_id)
        room = limit - self._count(receipt) - 4
        if value is None:
            pieces, left_out = self._text_part(raw, room)
        else:
            pieces, left_out = self._json_part(value, room)
        head = receipt if not left_out else f"{receipt} +{left_out}"
        spans = [Span(start=0, end=len(head), reason="receipt")]
        text = head
        for piece, reason in pieces:
            spans.append(Span(start=len(text), end=len(text) + 1 + len(piece), reason=reason))
            text += "\n" + piece
        return Insertion(
            text=text,
            memory_id=memory_id,
            receipt=receipt,
            kind="extract",
            left_out=left_out,
            spans=tuple(spans),
            tokens=self._count(text),
            original=original,
        )

    def _json_part(self, value: Any, room: int) -> tuple[list[tuple[str, str]], int]:
        found = extract(
            value,
            self._interest,
            count=self._count,
            threshold=self._accounts.threshold(),
            limit=room,
        )
        text = handles.escape(found.text)
        return ([(text, found.reason)] if text else []), found.left_out

    def _text_part(self, raw: str, room: int) -> tuple[list[tuple[str, str]], int]:
        found = lines.extract_lines(
            raw,
            speech=self._interest.speech,
            known=self._interest.names,
            count=self._count,
            limit=room,
        )
        return list(lines.numbered(found.lines)), found.left_out


@dataclass(slots=True)
class _Accounts:
    """Tokens of the tool column, in full and as inserted, now and summed over calls."""

    share: float
    full: int = 0
    sent: int = 0
    full_sum: int = 0
    sent_sum: int = 0
    sizes: float = 0.0  # of text: the sum of their powers

    def call(self) -> None:
        """Count the prompt of one LLM call."""
        self.full_sum += self.full
        self.sent_sum += self.sent

    def result(self, original: int, tokens: int) -> None:
        """Count a result in."""
        self.full += original
        self.sent += tokens
        self.sizes += _power(original)

    def threshold(self) -> float:
        """Give the merit that a part of a JSON result needs: more when the run is over budget."""
        least, at, fall = _THRESHOLD
        spent = self.sent_sum + _HORIZON * self.sent + self.share * _SMOOTHING
        full = self.full_sum + _HORIZON * self.full + _SMOOTHING
        pressure = spent / full / self.share
        bounded = min(_WIDEST, max(1 / _WIDEST, pressure))
        return least * math.exp(-fall * (self.share - at)) * bounded

    def limit(self, original: int) -> int:
        """Give the most tokens that a JSON result's insertion may take, as a safeguard."""
        column = self.full + original + _RESERVE
        return max(0, int(_SLACK * self.share * column) - self.sent)

    def text_limit(self, original: int) -> int:
        """Give the tokens for a text result: long ones get a smaller part than short ones."""
        sizes = self.sizes + _power(original)
        part = _TEXT_GAIN * max(0.0, self.share - _TEXT_RECEIPTS)
        scale = part * (self.full + original + _TEXT_RESERVE) / sizes
        smoothing = self.share * _TEXT_SMOOTHING
        room = (self.share * self.full + smoothing) / (self.sent + smoothing)
        return int(scale * _power(original) * min(_WIDEST, room) ** _TEXT_STEER)


def _power(tokens: int) -> float:
    return math.pow(tokens, _TEXT_POWER)
