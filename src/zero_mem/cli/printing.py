"""Results as JSON values, and as text for people."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Final

from zero_mem.cli.text import clean, short
from zero_mem.exchange import body_json, record_json
from zero_mem.operations.batch import BatchResult
from zero_mem.operations.erasing import Erasure, PurgeReport
from zero_mem.operations.history import HistoryEntry
from zero_mem.operations.sweep import SweepReport
from zero_mem.text.nouns import counted
from zero_mem.types import (
    Hit,
    MemoryReceipt,
    MemoryRecord,
    Read,
    Recall,
    RecallItem,
    body_text,
)

_GAP: Final = "  "
_LEAST: Final = 4
"""Fewest columns of a table's last column, however narrow the terminal is."""

# JSON values


def receipt_json(receipt: MemoryReceipt) -> dict[str, Any]:
    """Give a receipt; `context` is what a prompt may carry."""
    return {
        "memory_id": receipt.memory_id,
        "operation": receipt.operation,
        "version": receipt.version,
        "created_at": receipt.created_at.isoformat(),
        "preview": receipt.preview,
        "flags": sorted(receipt.flags),
        "context": receipt.to_context(),
    }


def batch_json(batch: BatchResult) -> dict[str, Any]:
    """Give the receipts of a batch."""
    return {
        "count": batch.count,
        "receipts": [receipt_json(receipt) for receipt in batch.receipts],
    }


def purge_json(report: PurgeReport) -> dict[str, Any]:
    """Give what a purge erased, or would erase."""
    return {
        **batch_json(report),
        "dry_run": report.dry_run,
        "erased": [asdict(each) for each in report.erased],
    }


def hits_json(hits: Iterable[Hit]) -> dict[str, Any]:
    """Give search results, best first."""
    return {
        "hits": [
            {"memory_id": hit.memory_id, "score": hit.score, "record": record_json(hit.record)}
            for hit in hits
        ]
    }


def recall_json(recall: Recall) -> dict[str, Any]:
    """Give a recall; `text` is what a prompt would carry."""
    return {
        "items": [_item_json(item) for item in recall.items],
        "text": recall.text,
        "tokens": recall.tokens,
        "tokens_exact": recall.tokens_exact,
        "left_out": recall.left_out,
        "behind": recall.behind,
        "degraded": recall.degraded,
        "near_misses": [_item_json(item) for item in recall.near_misses],
    }


def _item_json(item: RecallItem) -> dict[str, Any]:
    return {
        "memory_id": item.memory_id,
        "text": item.text,
        "score": item.score,
        "superseded_by": item.superseded_by,
        "reason": item.reason,
        "parts": dict(item.parts),
        "record": record_json(item.record),
    }


def read_json(read: Read) -> dict[str, Any]:
    """Give a part of a body."""
    return asdict(read)


def history_json(entries: Iterable[HistoryEntry]) -> dict[str, Any]:
    """Give a record's changes, the oldest first."""
    return {"entries": [_entry_json(entry) for entry in entries]}


def _entry_json(entry: HistoryEntry) -> dict[str, Any]:
    return {
        "sequence": entry.sequence,
        "operation_id": entry.operation_id,
        "at": entry.at.isoformat(),
        "actor": entry.actor,
        "operation": entry.operation,
        "reason": entry.reason,
        "memory_id": entry.memory_id,
        "version": entry.version,
        "before_version": entry.before_version,
        "before": None if entry.before is None else body_json(entry.before),
        "record": None if entry.record is None else record_json(entry.record),
    }


def sweep_json(report: SweepReport) -> dict[str, Any]:
    """Give what a sweep ended, or would end."""
    swept = [asdict(each) | {"namespace": list(each.namespace)} for each in report.swept]
    return {
        "count": report.count,
        "dry_run": report.dry_run,
        "swept": swept,
        "tasks": list(report.tasks),
    }


# Text


def receipt_text(receipt: MemoryReceipt) -> str:
    """Write a receipt as a prompt has it, with its flags."""
    flags = f"  {', '.join(sorted(receipt.flags))}" if receipt.flags else ""
    return receipt.to_context() + flags


def batch_text(batch: BatchResult) -> str:
    """Write the receipts of a batch, one a line."""
    lines = [receipt_text(receipt) for receipt in batch.receipts]
    return "\n".join(lines) if lines else "nothing to do"


def purge_text(report: PurgeReport) -> str:
    """Write a purge's receipts, or in a dry run what would be erased, one memory a line."""
    if not report.dry_run:
        return batch_text(report)
    memories = counted(len(report.erased), "memory", "memories")
    lines = [_erasure_text(each) for each in report.erased]
    return "\n".join([*lines, f"would erase {memories}, {report.bytes:,} bytes"])


def _erasure_text(erasure: Erasure) -> str:
    parts = [
        counted(erasure.versions, "version", "versions"),
        counted(erasure.bodies, "body", "bodies"),
        counted(erasure.bytes, "byte", "bytes"),
    ]
    for scope, count in erasure.decisions.items():
        parts.append(f"{counted(count, 'value', 'values')} in {clean(scope)}")
    if erasure.holds:
        parts.append(counted(erasure.holds, "hold", "holds"))
    return f"[memo:{erasure.memory_id}] {', '.join(parts)}"


def record_text(record: MemoryRecord) -> str:
    """Write a record's fields, then its body."""
    fields = {
        "id": record.memory_id,
        "namespace": "/".join(record.namespace),
        "kind": f"{record.kind} ({record.form})",
        "key": record.key,
        "state": f"{record.state}, version {record.version}",
        "tags": ", ".join(record.tags),
        "metadata": body_text_of(record.metadata) if record.metadata else "",
        "task": record.task,
        "session": record.session,
        "speaker": record.speaker,
        "source": record.source,
        "created": _time(record.created_at),
        "updated": _time(record.updated_at),
        "expires": _time(record.expires_at),
        "ended by": ", ".join(record.invalidated_by),
    }
    lines = [f"{name:<10} {clean(str(value))}" for name, value in fields.items() if value]
    return "\n".join([*lines, "", clean(record.text)])


def body_text_of(value: Any) -> str:
    """Write a JSON value on one line."""
    from zero_mem.types import Json

    return body_text(Json(dict(value)))


def _time(moment: datetime | None) -> str:
    return "" if moment is None else moment.isoformat(sep=" ", timespec="seconds")


def records_text(records: Iterable[MemoryRecord]) -> str:
    """Write records as a table."""
    rows = [
        (record.memory_id, record.kind, record.key or "", record.state, short(record.text))
        for record in records
    ]
    return table(("id", "kind", "key", "state", "text"), rows)


def hits_text(hits: Iterable[Hit]) -> str:
    """Write search results as a table, best first."""
    rows = [
        (hit.memory_id, f"{hit.score:.3f}", hit.record.kind, short(hit.record.text)) for hit in hits
    ]
    return table(("id", "score", "kind", "text"), rows)


def recall_text(recall: Recall) -> str:
    """Write a recall as a prompt would carry it, and what it cost."""
    tokens = f"{recall.tokens} tokens" + ("" if recall.tokens_exact else " (estimated)")
    lag = counted(recall.behind, "memory has", "memories have")
    behind = f"{lag} no vector yet" if recall.behind else ""
    notes = "; ".join(filter(None, (tokens, recall.left_out, behind, recall.degraded)))
    shown = [clean(recall.text), ""] if recall.items else ["nothing recalled"]
    return "\n".join([*shown, f"({notes})"])


def read_text(read: Read) -> str:
    """Write a part of a body, and what was left out."""
    if not read.matched and not read.text:
        return f"no match among {read.total:,}"
    return "\n".join([clean(read.text), *([f"({read.left_out})"] if read.left_out else [])])


def history_text(entries: Iterable[HistoryEntry]) -> str:
    """Write a record's changes as a table, the oldest first."""
    rows = [
        (
            str(entry.operation_id),
            f"{entry.at.astimezone(UTC):%Y-%m-%d %H:%M:%S}",
            str(entry.version),
            entry.operation,
            entry.actor,
            _after(entry),
        )
        for entry in entries
    ]
    return table(("operation", "at (UTC)", "v", "what", "who", "text after it"), rows)


def _after(entry: HistoryEntry) -> str:
    reason = f"({entry.reason}) " if entry.reason else ""
    return reason + ("" if entry.record is None else short(entry.record.text))


def sweep_text(report: SweepReport) -> str:
    """Write what a sweep ended, one record a line."""
    would = "would end" if report.dry_run else "ended"
    lines = [
        f"{'/'.join(each.namespace)} {each.memory_id}: {each.operation} ({clean(each.reason)})"
        for each in report.swept
    ]
    lines += [f"task {clean(task)}: lease ran out" for task in report.tasks]
    return "\n".join([*lines, f"{would} {report.count}"])


def table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay rows out for this terminal; the last column gives way, all others stay whole."""
    from rich.cells import cell_len

    lines = [list(headers), *([_printable(cell) for cell in row] for row in rows)]
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    taken = sum(widths[:-1]) + len(_GAP) * len(widths[:-1])
    room = shutil.get_terminal_size().columns - taken
    widths[-1] = min(widths[-1], max(room, _LEAST))
    first, *others = (_GAP.join(map(_fitted, line, widths)).rstrip() for line in lines)
    return "\n".join([first, "─" * (taken + widths[-1]), *others])


def _fitted(cell: str, width: int) -> str:
    """Fill a cell up to a width on the screen, or cut it there."""
    from rich.cells import cell_len, set_cell_size

    if cell_len(cell) <= width:
        return set_cell_size(cell, width)
    return set_cell_size(cell, width - 1).rstrip() + "…"


def _printable(cell: str) -> str:
    return " ".join(clean(cell).split())
