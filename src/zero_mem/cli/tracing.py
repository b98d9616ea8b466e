"""What became of imported traces, as JSON and as text for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from zero_mem.cli.printing import table
from zero_mem.cli.text import clean, short
from zero_mem.exchange import body_json
from zero_mem.text.nouns import counted
from zero_mem.types import body_text

if TYPE_CHECKING:
    from zero_mem.traces import TraceReport
    from zero_mem.traces.report import TraceItem


def traces_json(reports: Sequence[TraceReport]) -> dict[str, Any]:
    """Give what became of traces, beside how many records are new and unchanged."""
    sessions: dict[str, int] = {}
    for report in reports:
        for session, count in report.sessions.items():
            sessions[session] = sessions.get(session, 0) + count
    return {
        "completed": sum(report.completed for report in reports),
        "instructions": sum(report.instructions for report in reports),
        "sessions": sessions,
        "defects": [asdict(defect) for report in reports for defect in report.defects],
        "sample": [_sample_json(item) for report in reports for item in report.sample],
        "dry_run": any(report.dry_run for report in reports),
    }


def _sample_json(item: TraceItem) -> dict[str, Any]:
    times = {name: item.fields.get(name) for name in ("created_at", "expires_at")}
    written = {name: moment.isoformat() for name, moment in times.items() if moment is not None}
    place = {"file": item.file, "line": item.line}
    return place | dict(item.fields) | body_json(item.content) | written


def traces_text(report: TraceReport) -> str:
    """Write what became of the records, or what would, with the first of them."""
    sessions = counted(len(report.sessions), "session")
    would = "would import" if report.dry_run else "imported"
    parts = [f"{would} {report.imported:,}" + (f" of {sessions}" if report.sessions else "")]
    parts += [f"unchanged {report.unchanged:,}"]
    if report.completed:
        parts.append(f"completed {report.completed:,}")
    if report.instructions:
        prompts = counted(report.instructions, "system prompt", "system prompts")
        parts.append(f"{prompts} left out")
    sample = [_sample_table(report.sample)] if report.sample else []
    return "\n".join([", ".join(parts), *sample])


def _sample_table(items: Sequence[TraceItem]) -> str:
    rows = [
        (
            short(item.file, 16),
            str(item.line or ""),
            str(item.fields.get("kind", "")),
            short(str(item.fields.get("session") or ""), 12),
            short(str(item.fields.get("speaker") or ""), 16),
            f"{item.created_at:%Y-%m-%d %H:%M:%S}" if item.created_at else "",
            short(clean(body_text(item.content))),
        )
        for item in items
    ]
    return table(("file", "line", "kind", "session", "speaker", "at (UTC)", "text"), rows)
