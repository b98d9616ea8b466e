"""What redaction finds of the secrets and personal data in labelled samples, and what else.

    python bench/redaction.py [--part first] [--json out.json] [--markdown out.md]

Each part was written after the rules had been tuned on those before it, so the fair figure of a
part is that of its first reading, which is recorded beside what is found now. A marked stretch is
found if all of it is taken out; what is taken out and touches nothing marked is a false alarm.
Personal data is masked too. Exits 1 if recall is below 98 % or precision below 95 %.
"""

from __future__ import annotations

import platform
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from _report import options, report, table
from labelled.readings import BY_KIND, FIRST_READINGS
from labelled.samples import PARTS, Marked, Sample, samples

from zero_mem.redaction import Redaction, Redactors
from zero_mem.redaction.engine import Found
from zero_mem.redaction.redactor import Redactor

RECALL: Final = 0.98
PRECISION: Final = 0.95
TURN: Final = (
    "I moved the dentist appointment to Thursday at half past three because the car is at the "
    "garage, could you remind me the evening before? Thanks!"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Counts, by kind: what was marked, how much of it was found, and the false alarms."""

    marked: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    alarms: Counter[str] = field(default_factory=Counter)
    negatives: Counter[str] = field(default_factory=Counter)
    missed: list[str] = field(default_factory=list)
    alarmed: list[str] = field(default_factory=list)

    def recall(self, kind: str = "") -> float:
        """Give the share of what was marked that was found."""
        found, marked = (c[kind] if kind else c.total() for c in (self.found, self.marked))
        return found / marked if marked else 1.0

    def precision(self, kind: str = "") -> float:
        """Give the share of what was taken out that was marked."""
        found, alarms = (c[kind] if kind else c.total() for c in (self.found, self.alarms))
        return found / (found + alarms) if found + alarms else 1.0

    def ok(self) -> bool:
        """Tell whether both bounds are kept."""
        return self.recall() >= RECALL and self.precision() >= PRECISION


def finder() -> Redactor:
    """Give the redactor that is measured: the defaults, and personal data masked."""
    return Redactors(Redaction(settings={"personal": "mask"})).of("")


def tally(read: Iterable[Sample], redactor: Redactor) -> Tally:
    """Count what is found in samples."""
    counted = Tally()
    for sample in read:
        found = list(redactor.find(sample.text))
        counted.negatives["samples"] += not sample.marked
        for each in sample.marked:
            counted.marked[each.kind] += 1
            if _is_covered(each, found):
                counted.found[each.kind] += 1
            else:
                counted.missed.append(_shown(sample.text, each))
        for alarm in found:
            if not any(alarm.start < each.end and each.start < alarm.end for each in sample.marked):
                counted.alarms[alarm.kind] += 1
                counted.alarmed.append(_shown(sample.text, alarm))
    return counted


def _is_covered(each: Marked, found: Sequence[Found]) -> bool:
    return any(one.start <= each.start and each.end <= one.end for one in found)


def _shown(text: str, each: Marked | Found) -> str:
    """Show a place: the first characters of a secret are enough to find the sample."""
    before = text[max(0, each.start - 40) : each.start]
    value = text[each.start : each.end]
    shown = value if len(value) <= 12 else f"{value[:8]}…"
    return f"{each.kind}: {before}⟦{shown}⟧{text[each.end : each.end + 20]}".replace("\n", "\\n")


def microseconds(redactor: Redactor, text: str, *, rounds: int = 2000) -> float:
    """Measure the processor time that a text without secrets costs, the best of ten."""
    best = float("inf")
    for _ in range(10):
        begun = time.process_time()
        for _ in range(rounds):
            redactor.text(text)
        best = min(best, time.process_time() - begun)
    return best / rounds * 1e6


def shown(parts: dict[str, Tally]) -> str:
    """Write the figures of each part, then by kind."""
    by_part = (
        [
            name,
            f"{counted.marked.total()}",
            f"{counted.negatives['samples']}",
            f"{FIRST_READINGS[name]}",
            f"{counted.recall():.1%}",
            f"{counted.precision():.1%}",
        ]
        for name, counted in parts.items()
    )
    whole = merged(parts.values())
    kinds = (
        [kind, f"{whole.marked[kind]}", f"{whole.recall(kind):.1%}", f"{whole.alarms[kind]}"]
        for kind in sorted({*whole.marked, *whole.alarms})
    )
    head = ["samples", "marked", "hard negatives", "when first read", "recall now", "precision now"]
    tables = [
        table(head, by_part),
        table(["kind", "marked", "recall now", "false alarms now"], kinds),
        *first_readings([name for name in parts if name in BY_KIND]),
    ]
    return "\n\n".join(tables)


def first_readings(parts: Sequence[str]) -> list[str]:
    """Write what was found by kind when parts were first read, where any kept it."""
    if not parts:
        return []
    rows = []
    for kind in sorted({kind for part in parts for kind in BY_KIND[part]}):
        readings = (BY_KIND[part].get(kind) for part in parts)
        rows.append([kind, *(f"{r.found} of {r.marked}" if r else "" for r in readings)])
    return [table(["found when first read", *parts], rows)]


def merged(tallies: Iterable[Tally]) -> Tally:
    """Add tallies up."""
    whole = Tally()
    for each in tallies:
        for name in ("marked", "found", "alarms", "negatives"):
            getattr(whole, name).update(getattr(each, name))
        whole.missed.extend(each.missed)
        whole.alarmed.extend(each.alarmed)
    return whole


def figures(parts: dict[str, Tally], cost: float) -> dict[str, Any]:
    """Give all figures as JSON."""
    return {
        "python": platform.python_version(),
        "microseconds": round(cost, 2),
        "parts": {
            name: {
                "recall": each.recall(),
                "precision": each.precision(),
                "first_reading": FIRST_READINGS[name]._asdict(),
                **asdict(each),
            }
            for name, each in parts.items()
        },
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = options(__doc__)
    parser.add_argument("--part", choices=PARTS, action="append", help="only this part")
    given = parser.parse_args(arguments)
    redactor = finder()
    parts = {name: tally(samples(name), redactor) for name in given.part or PARTS}
    cost = microseconds(Redactors(Redaction()).of(""), TURN)
    turn = f"A turn of {len(TURN)} characters costs {cost:.1f} µs."
    whole = merged(parts.values())
    lists = [*(f"missed {each}" for each in whole.missed)]
    lists += [f"false alarm {each}" for each in whole.alarmed]
    report(given, f"{shown(parts)}\n\n{turn}\n", figures(parts, cost))
    print(*lists, sep="\n")
    return 0 if whole.ok() else 1


if __name__ == "__main__":
    sys.exit(main())
