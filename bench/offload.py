"""Five long tool results in one conversation: what of them stands in the prompt, and how stably.

    python bench/offload.py [--headroom PYTHON] [--json out.json] [--markdown out.md]

Each result is followed by a question about one row or line of it. Rows: full text, Zero-Mem at
its defaults, and headroom-ai where `--headroom` names a Python that has it (an environment of
its own: it brings 90 packages). Tokens are exact o200k counts. The conversation is sent once
after three results and, by a new process with the same store, once after all five; the prefix
is kept when the first request's messages stand unchanged in the second.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _report import command, options, report, table, yes

from zero_mem import Memory, MemoryController
from zero_mem.text.tokens import tokenizer

TOKENS = tokenizer("o200k")
Messages = list[dict[str, Any]]
REPEATS = 5

WORKER = """
import json, sys, time
from headroom import compress
given = json.load(sys.stdin)
compress(given["messages"], model="gpt-4o")
taken = []
for _ in range(given["repeats"]):
    start = time.perf_counter()
    found = compress(given["messages"], model="gpt-4o")
    taken.append(time.perf_counter() - start)
from importlib.metadata import version
out = {"messages": found.messages, "seconds": taken, "version": version("headroom-ai")}
sys.stdout.write("\\x1e" + json.dumps(out))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A tool result, a question about one part of it, and the text that answers it."""

    question: str
    body: str
    needle: str


def cases() -> list[Case]:
    """Five results of the kinds that agents meet, each with one part that matters."""
    orders = [
        {
            "order_id": f"ORD-{i:05d}",
            "customer": f"cust_{i * 7 % 97}",
            "status": "late" if i == 121 else "on time",
            "total": 17.5 + i,
        }
        for i in range(600)
    ]
    hits = [
        {
            "title": f"Report {i} on the maintenance of pumps",
            "url": f"https://library.example/reports/{i}",
            "snippet": "The pump was inspected and nothing was found that calls for repair. " * 3,
            "ref": f"RPT-{i * 37 % 1009:04d}",
        }
        for i in range(120)
    ]
    log = [f"2026-05-{i % 28 + 1:02d} INFO worker {i % 7} took job {i}" for i in range(900)]
    log[611] = "2026-05-24 ERROR worker 2 lost job 611: checksum_mismatch in shard_0412"
    source = [f"def step_{i}(state):\n    return state.advance({i})\n" for i in range(400)]
    source[233] = "def settle_invoice(state, invoice_id):\n    return state.ledger[invoice_id]\n"
    page = [f"Section {i}. The parties agree on what the parties agree on." for i in range(500)]
    page[321] = "Section 321. Notice of termination_period is given 45 days ahead."
    return [
        Case(question="Which order is late?", body=json.dumps(orders), needle="ORD-00121"),
        Case(
            question="What is the ref of Report 71 on the maintenance of pumps?",
            body=json.dumps({"hits": hits}),
            needle=hits[71]["ref"],
        ),
        Case(question="Why was job 611 lost?", body="\n".join(log), needle=log[611]),
        Case(
            question="What does settle_invoice do?",
            body="\n".join(source),
            needle="def settle_invoice(state, invoice_id):",
        ),
        Case(
            question="How long is the notice of termination?",
            body="\n".join(page),
            needle=page[321],
        ),
    ]


def conversation(taken: Sequence[Case]) -> Messages:
    """A chat request in which each question led to one call and its result."""
    messages: Messages = []
    for number, case in enumerate(taken):
        function = {"name": "fetch", "arguments": json.dumps({"number": number})}
        call = {"id": f"c{number}", "type": "function", "function": function}
        messages += [
            {"role": "user", "content": case.question},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": case.body},
        ]
    return messages


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What one system sends for a request, and the seconds that each repetition took."""

    messages: Messages
    seconds: Sequence[float] = ()
    version: str = ""


def full_text(messages: Messages) -> Sent:
    return Sent(messages=messages)


def zero_mem(url: str) -> Callable[[Messages], Sent]:
    def send(messages: Messages) -> Sent:
        with Memory.open(url, durability="normal") as memory:
            controller = MemoryController(memory.namespace("five"), conversation="five")
            request = {"model": "m-1", "messages": messages}
            prepared = controller.prepare(request, "openai_chat")
            seconds = []
            for _ in range(REPEATS):
                start = time.perf_counter()
                prepared = controller.prepare(request, "openai_chat")
                seconds.append(time.perf_counter() - start)
        shown = [m for m in prepared["messages"] if m["role"] != "system"]
        return Sent(messages=shown, seconds=seconds)

    return send


def headroom(python: Path) -> Callable[[Messages], Sent]:
    def send(messages: Messages) -> Sent:
        given = json.dumps({"messages": messages, "repeats": REPEATS})
        run = subprocess.run(
            [python, "-c", WORKER], input=given, capture_output=True, text=True, check=True
        )
        return Sent(**json.loads(run.stdout.rpartition("\x1e")[2]))

    return send


def row(name: str, send: Callable[[Messages], Sent], given: Sequence[Case]) -> dict[str, Any]:
    """Measure one system."""
    first, last = send(conversation(given[:3])), send(conversation(given))
    results = [m["content"] for m in last.messages if m["role"] == "tool"]
    shown = [case.needle in text for case, text in zip(given, results, strict=True)]
    kept = sum(a == b for a, b in zip(first.messages, last.messages, strict=False))
    return {
        "system": f"{name} {last.version}".strip(),
        "tokens": sum(map(TOKENS.count, results)),
        "by_result": [TOKENS.count(text) for text in results],
        "needles_shown": sum(shown),
        "prefix_kept_over_a_restart": kept == len(first.messages),
        "milliseconds_warm": 1000 * statistics.median(last.seconds) if last.seconds else 0.0,
    }


def shown(rows: Sequence[dict[str, Any]]) -> str:
    """Write the rows as a table."""
    return table(
        [
            "system",
            "tokens of the five results",
            "each",
            "needles shown",
            "prefix kept",
            "warm, ms",
        ],
        (
            [
                one["system"],
                f"{one['tokens']:,}",
                ", ".join(map(str, one["by_result"])),
                f"{one['needles_shown']} of 5",
                yes(one["prefix_kept_over_a_restart"]),
                f"{one['milliseconds_warm']:.1f}",
            ]
            for one in rows
        ),
    )


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--headroom", type=Path, help="a Python that has headroom-ai")
    asked = parser.parse_args()
    given = cases()
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            row("full text", full_text, given),
            row("Zero-Mem", zero_mem(f"sqlite:///{folder}/five.db"), given),
        ]
        if asked.headroom:
            rows.append(row("headroom-ai", headroom(asked.headroom), given))
    report(asked, f"{command()}\n\n{shown(rows)}", rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
