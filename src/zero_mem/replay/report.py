"""One self-contained page of a replay: no external resource, readable offline for good."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

from zero_mem.replay import page
from zero_mem.replay.book import PromptBook, strategy_key
from zero_mem.replay.charts import plain_text
from zero_mem.replay.evidence import EvidenceBook
from zero_mem.replay.figures import Outcome, Replay
from zero_mem.replay.output import package_version
from zero_mem.replay.verdict import Verdict

_SLOT: Final = re.compile(r"\{\{(\w+)\}\}")
_UNSAFE: Final = re.compile("[<>&\u2028\u2029\ud800-\udfff]")


def report(
    replay: Replay,
    verdict: Verdict,
    *,
    book: PromptBook | None = None,
    evidence: EvidenceBook | None = None,
    source: str = "",
    title: str = "Zero-Mem replay",
) -> str:
    """Render the page.

    All text of the input is escaped or handed to the script as data that it shows as text
    only; the page's policy allows its own script and style by hash, and nothing else.

    Args:
        replay: The figures.
        verdict: Their verdict.
        book: The prompts collected while replaying; without it the inspector stays empty.
        evidence: What recall would have chosen; without it its section stays away.
        source: What was replayed, as the reader should see it named.
        title: The page's title.

    Returns:
        A whole HTML document; write it as UTF-8.
    """
    book, evidence = book or PromptBook(), evidence or EvidenceBook()
    judged = _judged(replay, verdict)
    style, script = _asset("report.css"), _asset("report.js")
    parts = {
        "policy": _policy(style, script),
        "title": plain_text(title),
        "source": plain_text(source),
        "style": style,
        "script": script,
        "book": _embedded(_book(replay, book, judged) | {"evidence": evidence.runs}),
        "evidence_section": page.evidence_section(evidence),
        "footer": f"Made by zero-mem {plain_text(package_version())}. "
        "This page loads nothing and sends nothing.",
    }
    return _filled(_asset("report.html"), parts | _sections(replay, verdict, book, judged))


def _sections(
    replay: Replay, verdict: Verdict, book: PromptBook, judged: Outcome | None
) -> dict[str, str]:
    return {
        "verdict_class": "worth" if verdict.worth_it else "not-worth",
        "badge": _badge(verdict),
        "headline": plain_text(page.headline(verdict)),
        "sentence": plain_text(verdict.sentence),
        "tiles": page.tiles(replay, judged),
        "turns_note": plain_text(page.turns_note(replay)),
        "lines": page.lines(replay, judged),
        "legend": page.legend(replay, judged),
        "lines_table": page.lines_table(replay, judged),
        "coverage_note": "Each strategy by how many of the needed values its prompts gave, and "
        "what its memory took. Up and to the left is better.",
        "metrics": page.metrics(replay),
        "scatters": page.scatters(replay),
        "table_note": "Pooled over all calls, each strategy at its own cache states.",
        "table": page.figures_table(replay, judged),
        "table_legend": plain_text(page.figures_legend(replay)),
        "columns": page.columns_table(replay, judged),
        "notes": page.notes(replay),
        "runs_section": page.runs_section(replay, judged, verdict),
        "prompts_note": page.prompts_note(book, replay),
        "method": page.method(replay, verdict),
    }


def _badge(verdict: Verdict) -> str:
    if verdict.worth_it:
        return "Worth it"
    return "No verdict" if verdict.sentence.startswith("No verdict") else "Not worth it"


def _judged(replay: Replay, verdict: Verdict) -> Outcome | None:
    return next((o for o in replay.outcomes if o.label == verdict.label), None)


def _book(replay: Replay, book: PromptBook, judged: Outcome | None) -> dict[str, Any]:
    return {
        "runs": book.runs,
        "strategies": page.strategies_of(replay),
        "judged": strategy_key(judged.strategy, judged.budget) if judged else "full",
    }


def _embedded(value: Any) -> str:
    """Write JSON that can end no script element and holds no code unit UTF-8 can't."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _policy(style: str, script: str) -> str:
    return (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _filled(template: str, parts: Mapping[str, str]) -> str:
    """Fill the slots in one pass, so that text put in is never taken for a slot."""
    return _SLOT.sub(lambda match: parts[match[1]], template)


def _asset(name: str) -> str:
    return files("zero_mem.replay").joinpath("templates", name).read_text(encoding="utf-8")
