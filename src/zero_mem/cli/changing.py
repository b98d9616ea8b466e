"""Showing what becomes of another program's settings file."""

from __future__ import annotations

import difflib
from typing import Any, Final

from zero_mem.cli.session import Session
from zero_mem.settings_file import Change

_WIDEST: Final = 400


def show_change(session: Session, change: Change, *, dry_run: bool, around: int = 1) -> None:
    """Print what is changed, or would be.

    Args:
        session: The command's.
        change: What becomes of the file.
        dry_run: Whether nothing was written.
        around: Lines of the file shown around each change.
    """
    done = "nothing to change" if not change.is_change else "would change" if dry_run else "changed"
    value: dict[str, Any] = {
        "settings": str(change.path),
        "changed": change.is_change,
        "dry_run": dry_run,
    }
    lines = _difference(change, around)
    session.show(value, "\n".join([f"{done}: {change.path}", *lines]))


def _difference(change: Change, around: int) -> list[str]:
    before, after = (
        (data or b"").decode(errors="replace").splitlines()
        for data in (change.before, change.after)
    )
    lines = list(difflib.unified_diff(before, after, lineterm="", n=around))[2:]
    if any(len(line) > _WIDEST for line in lines):
        return _spot("\n".join(before), "\n".join(after))
    return lines


def _spot(before: str, after: str) -> list[str]:
    """Show a change in a file of one long line, which may hold what is nobody's business."""
    same = next(
        (at for at, (one, two) in enumerate(zip(before, after, strict=False)) if one != two),
        min(len(before), len(after)),
    )
    most = min(len(before), len(after)) - same
    tail = next((n for n in range(most) if before[-1 - n] != after[-1 - n]), most)
    shown = [f"@@ character {same} @@"]
    for sign, text in (("-", before), ("+", after)):
        spot = text[same : len(text) - tail]
        shown += [sign + spot] if spot else []
    return shown
