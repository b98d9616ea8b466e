"""What each visible kind cost and whether it was worth it, and settings that would be cheaper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from zero_mem.console.visit import Page, Reply, Visit
from zero_mem.conversation.reviewing import review
from zero_mem.errors import Conflict, InvalidInput, NotAllowed
from zero_mem.policy.limits import FORMS, limits_for
from zero_mem.space import Namespace

_CHANGE: Final = "change."
"""Begins the name of a field; the kind follows, and the value says from what to what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A setting that somebody chose to change."""

    kind: str
    before: str
    after: str

    @property
    def field(self) -> str:
        """The name of its form field."""
        return f"{_CHANGE}{self.kind}"

    @property
    def value(self) -> str:
        """The value of its form field."""
        return f"{self.before} {self.after}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a change; `problem` is "" where it holds now."""

    change: Change
    problem: str = ""


def changes_of(form: dict[str, str]) -> list[Change]:
    """Read the changes that a form names.

    Raises:
        InvalidInput: One is none.
    """
    found: list[Change] = []
    for name, value in form.items():
        if name.startswith(_CHANGE):
            before, blank, after = value.partition(" ")
            if not (before and blank and after):
                raise InvalidInput(f"{name[:80]!r} reads BEFORE AFTER")
            found.append(Change(kind=name.removeprefix(_CHANGE), before=before, after=after))
    return found


def apply(space: Namespace, changes: list[Change]) -> list[Outcome]:
    """Set what was proposed, each change by itself.

    One whose kind is not set as it was when it was proposed is refused, and the others go on.

    Raises:
        NotAllowed: The visitor may not configure the namespace; nothing was set.
    """
    return [_applied(space, change) for change in changes]


def _applied(space: Namespace, change: Change) -> Outcome:
    try:
        settings = space.settings()
        now = {limits_for(settings, form, change.kind).visibility for form in FORMS}
        if change.before not in now:
            raise Conflict(f"it is {' or '.join(sorted(now))} by now, not {change.before}")
        space.configure(kind=change.kind, visibility=change.after)
    except (Conflict, InvalidInput) as error:
        return Outcome(change=change, problem=str(error))
    return Outcome(change=change)


# The page


def _show(visit: Visit) -> Reply:
    return visit.render("costs.html", found=review(visit.space))


def _apply(visit: Visit) -> Reply:
    """Ask first, with each change by name; then set them and say of each what became of it."""
    changes = changes_of(dict(visit.form))
    if not changes:
        return visit.go("/costs", notice="nothing-chosen")
    if not visit.may("admin"):
        raise NotAllowed("settings are changed with the right admin over the namespace")
    if visit.form.get("confirmed") != "yes":
        return visit.render("costs_confirm.html", changes=changes)
    return visit.render("costs_applied.html", outcomes=apply(visit.space, changes))


PAGE = Page(name="costs", path="/costs", gets={"/costs": _show}, posts={"/costs/apply": _apply})
