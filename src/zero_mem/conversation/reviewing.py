"""The cost of what is visible, reviewed from what the store itself knows (`policy:cost-review`).

`ZeroMemRuntime.review_cost` takes the texts of the calls from its host. Here they are put together
from what was recorded of a conversation: its messages (`on_message`), its tools' results, and
what was passed by reference. Other arguments of tool calls are not recorded, so a use may go
unseen; that is why no kind is ever proposed to be hidden on such evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from zero_mem.conversation.audit import passed_of
from zero_mem.conversation.injection import Injections
from zero_mem.conversation.listing import conversation_names
from zero_mem.conversation.persisted import Persisted
from zero_mem.conversation.sequence import Sending, prompts_of
from zero_mem.conversation.turns import Turn, runs
from zero_mem.policy.cost_review import Call, KindReview, Run, review_cost
from zero_mem.policy.proposals import Proposal, proposed
from zero_mem.prompts import Reason
from zero_mem.space import Namespace
from zero_mem.types import MemoryRecord

_SET: Final[tuple[Reason, ...]] = ("pinned", "summary")
"""The reasons that a setting decides about; what was required or found was wanted there."""

_RECORDED: Final = {"state": {"in": ["active", "archived"]}}
_BEGINNING: Final = datetime.min.replace(tzinfo=UTC)
_END: Final = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredReview:
    """What the visible kinds of a namespace cost, and what would have been cheaper.

    Attributes:
        kinds: The kinds, the one that would have saved most first.
        proposals: The settings that would save, of those reviewed.
        reviewed: Conversations of which the replies were recorded.
        unknown: Conversations of which they were not, so that nobody can tell what was used;
            they are in no figure.
        prompts: How many prompts the figures are of.
    """

    kinds: tuple[KindReview, ...]
    proposals: tuple[Proposal, ...]
    reviewed: tuple[str, ...]
    unknown: tuple[str, ...]
    prompts: int


def review(space: Namespace) -> StoredReview:
    """Review the conversations of a namespace; nothing is written.

    Args:
        space: The namespace. A message belongs to the conversation that its session names.
    """
    names = conversation_names(space)
    recorded = _recorded(space, names)
    found = {name: _runs(space, name, recorded.get(name, ())) for name in names}
    known = {name: several for name, several in found.items() if several}
    reviews = review_cost(
        (run for several in known.values() for run in several),
        tokenizer=space.memory.tokenizer,
        summary_limit=space.limits().compaction_threshold,
    )
    kinds = [_never_hidden(one) for one in reviews]
    kinds.sort(key=lambda one: (-one.saving, one.kind))
    return StoredReview(
        kinds=tuple(kinds),
        proposals=tuple(proposed(space.settings(), kinds)),
        reviewed=tuple(known),
        unknown=tuple(name for name in names if name not in known),
        prompts=sum(len(run.calls) for several in known.values() for run in several),
    )


def _never_hidden(one: KindReview) -> KindReview:
    return replace(one, by_policy={p: n for p, n in one.by_policy.items() if p != "hidden"})


def _recorded(space: Namespace, names: Iterable[str]) -> Mapping[str, Sequence[MemoryRecord]]:
    """Read what was recorded of conversations, in the order in which it came."""
    found: dict[str, list[MemoryRecord]] = {name: [] for name in names}
    if found:
        for record in space.each({**_RECORDED, "session": {"in": list(found)}}):
            found.setdefault(record.session or "", []).append(record)
    return {name: sorted(each, key=lambda r: r.recorded_at) for name, each in found.items()}


def _runs(space: Namespace, name: str, recorded: Sequence[MemoryRecord]) -> list[Run]:
    """Give the runs of a conversation; none where not every prompt's reply is known."""
    persisted = Persisted(space, name)
    _, sent = prompts_of(space, persisted)
    injections = Injections(space, persisted)
    passed = persisted.entries("audit")
    moments = [one.at for one in sent if one.at is not None]
    if len(moments) < len(sent):  # nobody noted when, in an older store
        return []
    calls = [
        replace(call, output="\n".join([call.output, *_executed(space, one, passed)]).strip())
        for call, one in zip(_calls(moments, recorded), sent, strict=True)
    ]
    if calls and not calls[-1].output:  # its reply has not come yet
        calls.pop()
    if not calls or not all(call.output for call in calls):
        return []
    return runs(
        [_carrying(one) for one in sent[: len(calls)]],
        calls,
        injections.wording,
        injections.blocks(),
        reasons=_SET,
    )


def _carrying(one: Sending) -> Turn:
    return Turn(messages=0, digest="", blocks=tuple((number, 0) for number in one.blocks))


def _executed(
    space: Namespace, one: Sending, passed: Mapping[str, Mapping[str, Any]]
) -> Iterator[str]:
    """Give what a reply passed by reference, with the values put in."""
    for what, key in one.history.replies:
        if what == "audit":
            yield passed_of(space, passed[key]).executed


def _calls(moments: Sequence[datetime], recorded: Sequence[MemoryRecord]) -> Iterator[Call]:
    """Give for each prompt what had come since the one before it, and what the model said to it."""
    said = [record for record in recorded if record.source == "model"]
    given = [record for record in recorded if record.source != "model"]
    edges = [_BEGINNING, *moments, _END]
    for before, at, end in zip(edges, edges[1:], edges[2:], strict=False):
        yield Call(
            given="\n".join(one.text for one in given if before < one.recorded_at <= at),
            output="\n".join(one.text for one in said if at < one.recorded_at <= end),
        )
