"""What a cost review proposes to set, beside what is set now (`policy:cost-review`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from zero_mem.policy.cost_review import KindReview
from zero_mem.policy.limits import FORMS, Visibility, limits_for


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """One setting to change: the visibility of a kind.

    Attributes:
        kind: The kind, in every form.
        before: What its records are shown as now.
        after: What would have been cheaper.
        tokens: What they cost as they were shown.
        saving: The tokens of them that would not have been sent.
    """

    kind: str
    before: Visibility
    after: Visibility
    tokens: int
    saving: int

    @property
    def settings(self) -> Mapping[str, Any]:
        """The arguments that `Namespace.configure` takes for it."""
        return {"kind": self.kind, "visibility": self.after}


def proposed(settings: str, reviews: Iterable[KindReview], *, least: float = 0.1) -> list[Proposal]:
    """Propose a cheaper visibility for each kind, the largest saving first.

    A kind that was shown under several policies, or is set otherwise by now, is left alone:
    what was measured is not what holds.

    Args:
        settings: The namespace's, as `limits_for` takes them.
        reviews: What was measured there.
        least: The share of a kind's tokens that a change must save.
    """
    found = (_proposal(settings, review) for review in _measured_once(reviews))
    worth = [one for one in found if one is not None and one.saving >= least * one.tokens]
    return sorted(worth, key=lambda one: (-one.saving, one.kind))


def _measured_once(reviews: Iterable[KindReview]) -> Iterator[KindReview]:
    by_kind: dict[str, list[KindReview]] = {}
    for review in reviews:
        by_kind.setdefault(review.kind, []).append(review)
    return (several[0] for several in by_kind.values() if len(several) == 1)


def _proposal(settings: str, review: KindReview) -> Proposal | None:
    now = {limits_for(settings, form, review.kind).visibility for form in FORMS}
    if review.saving <= 0 or review.visibility not in now:
        return None
    return Proposal(
        kind=review.kind,
        before=review.visibility,
        after=review.cheapest,
        tokens=review.tokens,
        saving=review.saving,
    )
