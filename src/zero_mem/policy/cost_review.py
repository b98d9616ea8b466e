"""What each visible kind of memory cost in real runs, and whether it was worth it.

The question of every visible text is: would the model surely answer wrong without it? A run
answers it afterwards: a value of the memory stands in a later tool call or reply, and the
host's own messages did not hold it before. Uses by paraphrase are not seen.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, get_args

from zero_mem.policy.limits import Visibility
from zero_mem.text.compress import compress
from zero_mem.text.fence import memory_line
from zero_mem.text.tokens import Tokenizer
from zero_mem.types import Blob, Body, Json, body_text, preview

READ_TOKENS: Final = 60
"""What a read costs beside the body: the call that the model writes and what pairs with it."""

_POLICIES: Final[tuple[Visibility, ...]] = get_args(Visibility)
_SHORT: Final = 40
_TELLING = re.compile(r"[\w@][\w.:@/+-]*[\w]")
_NAMED = re.compile(r"[:=：]\s*([^\s:=：,;，；。][^:=：,;，；。\n]{0,39})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposure:
    """One memory that a run's prompts held, from the call `first_call` (from 0) to the last."""

    memory_id: str
    kind: str
    key: str | None = None
    visibility: Visibility
    body: Body
    first_call: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One LLM call: the host's text that was new in it, and what the model wrote.

    `output` is the reply and the arguments of its tool calls.
    """

    given: str = ""
    output: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run, call by call, with the memories that its prompts showed."""

    calls: tuple[Call, ...]
    exposures: tuple[Exposure, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KindReview:
    """What the memories of one kind cost under one policy, over all runs.

    `tokens` is what they cost as they were shown, summed over the calls that carried them;
    `used` of the `shown` memories had a value that a later output needed. `by_policy` is the
    cost under each policy that would have served those uses; `cheapest` is the least of them.
    """

    kind: str
    visibility: Visibility
    shown: int
    used: int
    uses: int
    tokens: int
    by_policy: Mapping[Visibility, int]

    @property
    def cheapest(self) -> Visibility:
        """The cheapest policy; the present one where none is cheaper."""
        order = [self.visibility, *(policy for policy in _POLICIES if policy in self.by_policy)]
        return min(order, key=lambda policy: self.by_policy.get(policy, self.tokens))

    @property
    def saving(self) -> int:
        """The tokens that the cheapest policy would have saved."""
        return self.tokens - self.by_policy.get(self.cheapest, self.tokens)


@dataclass(slots=True)
class _Sum:
    shown: int = 0
    used: int = 0
    uses: int = 0
    costs: dict[Visibility, int] = field(default_factory=lambda: dict.fromkeys(_POLICIES, 0))


def review_cost(
    runs: Iterable[Run], *, tokenizer: Tokenizer, summary_limit: int = 200
) -> list[KindReview]:
    """Review what was shown, the kind that would have saved most first.

    Args:
        runs: Real runs.
        tokenizer: Counts tokens.
        summary_limit: Characters of a summary (`compaction_threshold`).
    """
    sums: dict[tuple[str, Visibility], _Sum] = defaultdict(_Sum)
    for run in runs:
        for exposure in run.exposures:
            total = sums[exposure.kind, exposure.visibility]
            _add(total, exposure, run.calls, tokenizer, summary_limit)
    reviews = (_review(kind, policy, total) for (kind, policy), total in sums.items())
    return sorted(reviews, key=lambda review: (-review.saving, review.kind))


def _review(kind: str, visibility: Visibility, total: _Sum) -> KindReview:
    # What was needed can't be hidden: a model does not ask for what it was never told of.
    allowed = [policy for policy in _POLICIES if policy != "hidden" or not total.used]
    return KindReview(
        kind=kind,
        visibility=visibility,
        shown=total.shown,
        used=total.used,
        uses=total.uses,
        tokens=total.costs[visibility],
        by_policy={policy: total.costs[policy] for policy in allowed},
    )


def _add(
    total: _Sum, exposure: Exposure, calls: Sequence[Call], tokenizer: Tokenizer, limit: int
) -> None:
    values = values_of(exposure.body)
    uses = [
        (place, needed) for place, needed in _uses(values, calls) if place >= exposure.first_call
    ]
    extract = compress(exposure.body, limit=limit).text
    beyond = [place for place, needed in uses if any(value not in extract for value in needed)]
    carried = len(calls) - exposure.first_call
    body = tokenizer.count(_line(exposure, body_text(exposure.body)))
    receipt = f"[memo:{exposure.memory_id}] save ({preview(exposure.kind, exposure.key)})"
    read = READ_TOKENS + body
    total.shown += 1
    total.used += bool(uses)
    total.uses += len(uses)
    total.costs["pinned"] += body * carried
    total.costs["summary"] += tokenizer.count(_line(exposure, extract)) * carried + (
        _carried_from(beyond, read, len(calls))
    )
    total.costs["handle"] += tokenizer.count(receipt) * carried + _carried_from(
        [place for place, _ in uses], read, len(calls)
    )


def _carried_from(uses: Sequence[int], read: int, calls: int) -> int:
    """Price one read before the first use; its answer stays in every prompt from there on."""
    return read * (calls - uses[0]) if uses else 0


def _line(exposure: Exposure, text: str) -> str:
    return memory_line(exposure.memory_id, exposure.kind, exposure.key, text) + "\n"


def _uses(values: frozenset[str], calls: Sequence[Call]) -> Iterator[tuple[int, list[str]]]:
    """Find the calls whose output holds values that only the memory can have given."""
    unknown = set(values)
    for place, call in enumerate(calls):
        unknown -= {value for value in unknown if value in call.given}
        needed = [value for value in sorted(unknown) if value in call.output]
        if needed:
            yield place, needed


def values_of(body: Body) -> frozenset[str]:
    """Give what of a body can be recognised when it is quoted.

    Returns:
        Of JSON its texts and numbers; of text the words with a digit or a mark inside (ids,
        dates, paths), what stands after a colon, and a short body as a whole. Values of fewer
        than three characters (two of Chinese) tell nothing.
    """
    if isinstance(body, Blob):
        return frozenset()
    found = map(str, _scalars(body.value)) if isinstance(body, Json) else _written(body)
    return frozenset(value for value in map(str.strip, found) if _tells(value))


def _scalars(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        for each in value.values():
            yield from _scalars(each)
    elif isinstance(value, list):
        for each in value:
            yield from _scalars(each)
    elif value is not None and not isinstance(value, bool):
        yield value


def _written(text: str) -> Iterator[str]:
    if len(text) <= _SHORT:
        yield text
    for match in _TELLING.finditer(text):
        if re.search(r"[\d@/]|\w[.:_+-]\w", match[0]):
            yield match[0]
    yield from (match[1] for match in _NAMED.finditer(text))


def _tells(value: str) -> bool:
    return len(value) >= (3 if value.isascii() else 2)
