"""What the controller costs in tokens, and that it never changes a sent prefix.

    python bench/controller.py [--json out.json] [--markdown out.md]
        definitions and preamble; one question about rows of a 200-row result; a body of 24,000
        tokens from one tool to another; what `prepare` and `account` add to a request of about
        76,000 tokens whose 60 results are decided, and how often it waits for the disk
    python bench/controller.py DATA_FOLDER
        the same, and every tau-bench development run sent call by call with the default
        options, the store closed and opened and the model switched at a random turn of each
        (seed 7): the share of calls whose sent prefix is unchanged, and the results that stand
        as the offloader of `bench/coverage.py` writes them
    python bench/controller.py DATA_FOLDER --fold next --ephemeral-tail
        the runs with these options; what may change by them (a result on the very next call,
        the tail itself) is left out of the comparison

Tokens are exact o200k counts. Times are CPU time of this process, the median of 40.
"""

from __future__ import annotations

import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from _report import Figure, at_most, options, report_rows

from zero_mem import Memory, MemoryController, handles
from zero_mem.controller.core import Offloader
from zero_mem.controller.definitions import PREAMBLE, READ_TOOL, memory_definitions
from zero_mem.controller.messages import Message
from zero_mem.controller.wire.openai_chat import render_chat
from zero_mem.conversation.ephemeral import NOTE
from zero_mem.replay.transcripts import read
from zero_mem.text.tokens import tokenizer

RUNS = "raw/taubench_airline.openai_chat.jsonl.gz"
QUESTION = "Which orders are late?"
TOKENS = tokenizer("o200k")
SHARE = 0.25
OFF = ("never", False)


def orders(count: int = 200) -> list[dict[str, Any]]:
    """Rows of which two are late."""
    return [
        {
            "order_id": f"ORD-{i:05d}",
            "customer": f"cust_{i * 7 % 97}",
            "status": "late" if i in (17, 121) else "on time",
            "total": 17.5 + i,
        }
        for i in range(count)
    ]


def after_one_call(body: str) -> dict[str, Any]:
    """A chat request whose one tool result is `body`."""
    function = {"name": "list_orders", "arguments": "{}"}
    call = {"id": "c1", "type": "function", "function": function}
    return {
        "model": "m-1",
        "messages": [
            {"role": "user", "content": QUESTION},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": body},
        ],
    }


def inserted(controller: MemoryController, body: str) -> str:
    prepared = controller.prepare(after_one_call(body), "openai_chat")
    return str(prepared["messages"][-1]["content"])


def fixed_costs() -> Iterator[Figure]:
    """The definitions and the preamble, which stand in every request."""
    for wire_format in ("openai_chat", "openai_responses", "anthropic"):
        text = json.dumps(memory_definitions(wire_format))
        yield at_most(f"definitions, {wire_format}", TOKENS.count(text), 350)
    yield at_most("preamble", TOKENS.count(PREAMBLE), 120)


def question(memory: Memory, bound: int | None, **options: Any) -> Figure:
    """One question about rows of a 200-row result: all that it puts into the prompt."""
    rows = orders()
    name = ", ".join(f"{key} {value}" for key, value in options.items())
    controller = MemoryController(memory.namespace("rows"), conversation=name, **options)
    shown = inserted(controller, json.dumps(rows))
    memory_id = handles.find(shown)[0].references[0].memory_id
    arguments = {"id": memory_id, "rows": {"status": "late"}}
    answer = controller.run_memory_call(READ_TOOL, arguments)
    found = [json.loads(line.partition(": ")[2]) for line in answer.splitlines()[1:]]
    exact = found == [row for row in rows if row["status"] == "late"]
    spent = sum(map(TOKENS.count, (QUESTION, shown, READ_TOOL, json.dumps(arguments), answer)))
    title = f"200 rows, one question ({name}), rows {'exact' if exact else 'WRONG'}"
    if bound is None:
        return Figure(name=title, figure=spent, unit="tokens", met=exact)
    row = at_most(title, spent, bound)
    return Figure(**{**asdict(row), "met": row.met and exact})


def passing(memory: Memory) -> Figure:
    """A body of 24,000 tokens from one tool to another: in (receipt) and out (handle)."""
    body = "\n".join(f"line {number} of a long page, nothing else" for number in range(2500))
    controller = MemoryController(
        memory.namespace("pass"), conversation="pass", share=SHARE, max_extract=0
    )
    shown = inserted(controller, body)
    handle = handles.render(handles.find(shown)[0].references[0].memory_id)
    arguments = json.dumps({"body": handle})
    function = {"name": "store", "arguments": arguments}
    call = {"id": "c2", "type": "function", "function": function}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    turn = controller.absorb({"choices": [{"message": message}]}, "openai_chat")
    executed = turn.response["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"]
    intact = json.loads(executed) == {"body": body}
    row = at_most(
        f"passing {TOKENS.count(body):,} tokens on, body {'intact' if intact else 'WRONG'}",
        TOKENS.count(shown) + TOKENS.count(arguments),
        40,
    )
    return Figure(**{**asdict(row), "met": row.met and intact})


def added(folder: Path) -> Iterator[Figure]:
    """What a long request costs that was seen before, as a proxy sees them."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": QUESTION}]
    for number in range(60):
        body = json.dumps(orders(36)).replace("ORD-", f"ORD-{number:02d}")
        call, result = after_one_call(body)["messages"][1:]
        call["tool_calls"][0]["id"] = result["tool_call_id"] = f"c{number}"
        messages += [call, result]
    raw = json.dumps({"model": "m-1", "messages": messages})
    commits: list[bool] = []
    with Memory.open(f"sqlite:///{folder}/added.db") as memory:
        commits_of(memory, commits)
        controller = MemoryController(memory.namespace("run"), conversation="run", share=SHARE)
        controller.prepare(json.loads(raw), "openai_chat")
        first = sum(commits)
        prepared = [
            _timed(lambda: controller.prepare(json.loads(raw), "openai_chat")) for _ in range(40)
        ]
        sent = controller.prepare(json.loads(raw), "openai_chat")
        usage = {"prompt_tokens": 20_000, "completion_tokens": 5}
        counted = [
            _timed(lambda: controller.account(sent, "openai_chat", usage=usage)) for _ in range(40)
        ]
    parsing = statistics.median(_timed(lambda: json.loads(raw)) for _ in range(40))
    size = TOKENS.count(raw)
    yield at_most(f"durable commits for 60 new results of {size:,} tokens", first, 2, "commits")
    yield at_most("durable commits of the same request again", sum(commits) - first, 0, "commits")
    yield Figure(
        name=f"prepare of {size:,} tokens, all decided",
        figure=1000 * (statistics.median(prepared) - parsing),
        unit="ms CPU",
    )
    yield Figure(name="account of it", figure=1000 * statistics.median(counted), unit="ms CPU")


def _timed(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def commits_of(memory: Memory, commits: list[bool]) -> None:
    """Note each write transaction, and whether it waits for the disk."""
    opened = memory.transaction

    def counted(*, write: bool = False, durable: bool = True) -> Any:
        if write:
            commits.append(durable)
        return opened(write=write, durable=durable)

    memory.transaction = counted  # type: ignore[method-assign]


def prefixes(
    runs: Sequence[Sequence[Message]], folder: Path, options: Mapping[str, Any]
) -> Iterator[Figure]:
    """Send every run call by call, with a restart and a model switch at a random turn."""
    chosen = random.Random(7)
    kept = calls = same = results = 0
    folds = options.get("fold") == "next"
    seconds: list[float] = []
    for number, messages in enumerate(runs):
        url = f"sqlite:///{folder}/{number}.db"
        turns = [i for i, message in enumerate(messages) if message.role == "assistant"]
        restart = chosen.choice(turns)
        sent: list[str] = []
        memory = Memory.open(url, durability="normal")
        space = memory.namespace("run")
        controller = MemoryController(space, conversation="run", **options)
        settled = 0
        for stop in turns:
            if stop == restart:
                memory.close()
                memory = Memory.open(url, durability="normal")
                space = memory.namespace("run")
                controller = MemoryController(space, conversation="run", **options)
            model = "m-1" if stop < restart else "m-2"
            request = {"model": model, "messages": render_chat(messages[:stop])}
            start = time.perf_counter()
            prepared = controller.prepare(request, "openai_chat")
            seconds.append(time.perf_counter() - start)
            now = [json.dumps(m) for m in prepared["messages"] if not is_tail(m)]
            final = settled if folds else len(sent)
            kept += now[:final] == sent[:final]
            calls += 1
            settled, sent = len(sent), now
        shown = [m["content"] for m in map(json.loads, sent) if m["role"] == "tool"]
        expected = offloaded(messages[: turns[-1]])
        same += sum(one == other for one, other in zip(shown, expected, strict=True))
        results += len(expected)
        memory.close()
    yield Figure(
        name=f"prefix unchanged over {calls:,} calls of {len(runs)} runs{_named(options)}",
        figure=kept / calls,
        unit="share",
        bound="= 1",
        met=kept == calls,
    )
    if options:
        return
    yield Figure(
        name=f"inserted as the measured offloader does, {results:,} results",
        figure=same / results,
        unit="share",
        bound="= 1",
        met=same == results,
    )
    yield Figure(
        name="prepare, median and decisions included",
        figure=1000 * statistics.median(seconds),
        unit="ms",
    )


def _named(options: Mapping[str, Any]) -> str:
    return "".join(f", {name} {value}" for name, value in options.items())


def is_tail(message: Mapping[str, Any]) -> bool:
    return message["role"] == "user" and NOTE in str(message["content"])


def offloaded(messages: Sequence[Message]) -> list[str]:
    """What the bare core inserts for each result; an empty one is no memory."""
    core = Offloader(share=SHARE, tokenizer=TOKENS)
    texts: list[str] = []
    saved = 0
    for message in messages:
        if message.role != "tool":
            core.observe(message)
        elif message.text.strip():
            saved += 1
            texts.append(core.insert(message, str(saved)).text)
        else:
            core.adopt(message, message.text)
            texts.append(message.text)
    return texts


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--fold", choices=["never", "next"], default="never")
    parser.add_argument("--ephemeral-tail", action="store_true")
    given = parser.parse_args()
    with Memory.open("memory://") as memory, tempfile.TemporaryDirectory() as name:
        rows = [
            *fixed_costs(),
            question(memory, 250, share=0.1),
            question(memory, 250, share=0.25, max_extract=100),
            question(memory, None, share=0.25),
            passing(memory),
            *added(Path(name)),
        ]
        if given.data:
            runs = [transcript.messages for transcript in read(given.data / RUNS).transcripts]
            asked = {"fold": given.fold, "ephemeral_tail": given.ephemeral_tail}
            chosen = {option: value for option, value in asked.items() if value not in OFF}
            rows += prefixes(runs, Path(name), chosen)
    return report_rows(given, rows)


if __name__ == "__main__":
    sys.exit(main())
