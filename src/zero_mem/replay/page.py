"""The sections of the report page: plain functions from figures to markup."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from zero_mem.ledger.example import example
from zero_mem.replay import output
from zero_mem.replay.book import PromptBook, strategy_key
from zero_mem.replay.charts import Point, Series, bars, line_chart, plain_text, scatter, thinned
from zero_mem.replay.evidence import EvidenceBook
from zero_mem.replay.figures import Outcome, Replay, Seen, mean_by_call, ratio
from zero_mem.replay.verdict import Verdict
from zero_mem.replay.wording import money, percent, short, signed

WIDE: Final = (1024, 380)
NARROW: Final = (360, 300)
BAR_RUNS: Final = 300
TABLE_CALLS: Final = 100

METRICS: Final = {
    "linked": "Visible with its key",
    "visible": "Visible",
    "in_line": "Visible in its full line",
    "reachable": "Within one read",
}


def headline(verdict: Verdict) -> str:
    """Say the verdict in a few words."""
    if not verdict.label:
        return (
            "Nothing to judge in this input"
            if "No verdict" in verdict.sentence
            else ("Nothing to keep out of the prompt")
        )
    if abs(verdict.saved) < 0.005:
        return "Costs as much as sending everything"
    change = "less" if verdict.saved > 0 else "more"
    start = f", from call {verdict.from_call} on" if verdict.from_call else ""
    limit = ", if everything could be sent" if verdict.unsendable else ""
    return f"Costs {percent(abs(verdict.saved))} {change} than sending everything{start}{limit}"


def tiles(replay: Replay, judged: Outcome | None) -> str:
    """Give the figures that matter most, each with what it is compared with."""
    full = replay.outcome("full")
    if full is None or judged is None:
        return ""
    cost = ratio(judged.cost.total, full.cost.total)
    change = _signed(None if cost is None else cost - 1)
    window = f"; the model takes {short(replay.price.window)}"
    longest = f"tokens in the longest prompt, instead of {short(full.peak)}"
    shown = [
        (change, f"cost: {money(judged.cost.total)} instead of {money(full.cost.total)}"),
        (percent(judged.share), "of the tool results' tokens are sent"),
        *_coverage_tiles(judged.seen),
        (short(judged.peak), longest + (window if full.peak > replay.price.window else "")),
        (percent(judged.prefix_unchanged), "of each prompt's bytes stay as sent before"),
    ]
    return "".join(f"<div><dt>{plain_text(dt)}</dt><dd>{dd}</dd></div>" for dd, dt in shown)


def _coverage_tiles(seen: Seen) -> list[tuple[str, str]]:
    if not seen.values:
        return [("None", "of the calls needed a value from an earlier result")]
    visible = f"of {seen.values:,} values that calls needed stand in the prompt"
    reachable = f"of them at most one read away; {seen.reads:,} reads charged"
    return [
        (percent(seen.visible / seen.values), visible),
        (percent(seen.reachable / seen.values), reachable),
    ]


def lines(replay: Replay, judged: Outcome | None) -> str:
    """Draw the tokens at each call, wide and narrow; of budgets the judged one alone."""
    series = [
        Series(
            key=outcome.strategy,
            label=outcome.title,
            values=mean_by_call(outcome),
            strong=outcome.strategy in ("full", "zero_mem"),
        )
        for outcome in charted(replay, judged)
    ]
    values = [
        {"key": s.key, "label": s.label, "values": [round(v) for v in s.values]} for s in series
    ]
    title = "Tokens of the prompt at each call, by strategy; the table below has the figures"
    drawn = _two_sizes(lambda size: line_chart(series, width=size[0], height=size[1], title=title))
    return f'<div data-series="{plain_text(json.dumps(values))}">{drawn}</div>'


def legend(replay: Replay, judged: Outcome | None) -> str:
    """Give a button per line of the chart."""
    return "".join(
        f'<button type="button" aria-pressed="true" data-key="{o.strategy}">'
        f'<i class="s-{o.strategy}"></i>{plain_text(o.label)}</button>'
        for o in charted(replay, judged)
    )


def lines_table(replay: Replay, judged: Outcome | None) -> str:
    """Give the chart's figures, calls across."""
    shown = [(outcome, mean_by_call(outcome)) for outcome in charted(replay, judged)]
    longest = max((len(values) for _, values in shown), default=0)
    columns = thinned(longest, TABLE_CALLS)
    head = "".join(f'<th scope="col">{at + 1}</th>' for at in columns)
    rows = "".join(
        _row(outcome, (f"{values[at]:,.0f}" for at in columns if at < len(values)))
        for outcome, values in shown
    )
    top = f'<tr><th scope="col">Call</th>{head}</tr>'
    return f"<table><thead>{top}</thead><tbody>{rows}</tbody></table>"


def charted(replay: Replay, judged: Outcome | None) -> list[Outcome]:
    """List the outcomes that are drawn as lines."""
    at = judged.budget if judged else None
    return [o for o in replay.outcomes if o.budget in (None, at)]


def metrics(replay: Replay) -> str:
    """Give the choice between the measures of coverage, each with what it is a share of."""
    seen = replay.outcomes[0].seen if replay.outcomes else Seen()
    return "".join(
        f'<label><input type="radio" name="metric" value="{key}"{" checked" * (key == "linked")}>'
        f"{name}, of {seen.lines if key == 'in_line' else seen.values:,}</label>"
        for key, name in METRICS.items()
    )


def scatters(replay: Replay) -> str:
    """Draw coverage against tokens, once per measure; the first is shown."""
    return "".join(_scatter(replay, key, name) for key, name in METRICS.items())


def _scatter(replay: Replay, key: str, name: str) -> str:
    points = [point for o in replay.outcomes if (point := _point(o, key)) is not None]
    hidden = "" if key == "linked" else " hidden"
    title = f"{name}, against memory's tokens; the table below has the figures"
    drawn = _two_sizes(lambda size: scatter(points, width=size[0], height=size[1], title=title))
    if not points:
        drawn = '<p class="empty">No call of this input took such a value from memory.</p>'
    return f'<div data-metric="{key}"{hidden}>{drawn}</div>'


def _point(outcome: Outcome, key: str) -> Point | None:
    seen = outcome.seen
    covered = ratio(getattr(seen, key), seen.lines if key == "in_line" else seen.values)
    if covered is None or outcome.share is None:
        return None
    return Point(
        key=outcome.strategy,
        label=outcome.label,
        x=outcome.share,
        y=covered,
        joined=outcome.budget is not None,
        brief="" if outcome.budget is None else f"{outcome.budget:g}",
    )


_GROUPS: Final = (
    ("Money", ("cost", "vs full", "dearer")),
    ("Prompts", ("longest", "prefix kept")),
    ("Needed values", ("visible", "with key", "in line", "one read")),
    ("Memory ÷ tool results", ("tokens", "with our tool", "price")),
)
_COLUMNS: Final = (
    *("system", "tool definitions", "our tool", "conversation", "tool control"),
    *("tool results", "receipts", "reads", "output"),
)


def figures_table(replay: Replay, judged: Outcome | None) -> str:
    """Give every strategy with its cost and coverage."""
    full = replay.outcome("full")
    base = full.cost.total if full else 0.0
    groups = "".join(
        f'<th scope="colgroup" colspan="{len(names)}">{group}</th>' for group, names in _GROUPS
    )
    heads = "".join(
        f'<th scope="col"{_first(at == 0)}>{name.replace(" ", "<br>", 1)}</th>'
        for _, names in _GROUPS
        for at, name in enumerate(names)
    )
    rows = "".join(
        _marked_row(o, _figures(replay, o, base), judged=o is judged) for o in replay.outcomes
    )
    return (
        f'<table><thead><tr class="group"><td></td>{groups}</tr><tr>{_CORNER}{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )


def figures_legend(replay: Replay) -> str:
    """Explain the names of the table's columns in a line."""
    covered = output.coverage_legend(replay, linked="with key", reach="one read")
    return (
        "dearer: runs that cost more than with everything sent. prefix kept: bytes that the "
        "next call re-sends unchanged. tokens: of memory in the prompts, over the tool results' "
        "in full; with our tool: and the read tool's definition and the preamble; price: as "
        f"tokens, with cache reads at 0.1. {covered}"
    )


def columns_table(replay: Replay, judged: Outcome | None) -> str:
    """Give every strategy with its tokens by ledger column."""
    heads = "".join(f'<th scope="col">{name}</th>' for name in _COLUMNS)
    rows = "".join(_marked_row(o, _tokens(o), judged=o is judged) for o in replay.outcomes)
    return f"<table><thead><tr>{_CORNER}{heads}</tr></thead><tbody>{rows}</tbody></table>"


_CORNER: Final = '<th scope="col"><span class="hidden">Strategy</span></th>'


def _tokens(outcome: Outcome) -> list[str]:
    counted = outcome.tokens.as_dict()
    return [f"<td>{short(count)}</td>" for name, count in counted.items() if name != "prompt"]


def _figures(replay: Replay, outcome: Outcome, base: float) -> list[str]:
    change, more = ratio(outcome.cost.total, base), output.dearer(replay, outcome)
    groups = (
        (
            money(outcome.cost.total),
            _signed(None if change is None else change - 1),
            "–" if more is None else f"{more}/{len(outcome.runs)}",
        ),
        (short(outcome.peak), percent(outcome.prefix_unchanged)),
        output.coverage(outcome),
        tuple(map(_share, (outcome.share, outcome.share_with_definitions, outcome.price))),
    )
    cells = [
        f"<td{_first(at == 0)}>{cell}</td>" for group in groups for at, cell in enumerate(group)
    ]
    if change is not None and abs(change - 1) >= 0.005:
        side = "less" if change < 1 else "more"
        cells[1] = f'<td class="{side}">{groups[0][1]}</td>'
    return cells


def _marked_row(outcome: Outcome, cells: Sequence[str], *, judged: bool) -> str:
    kind = ' class="judged"' if judged else ""
    return f"<tr{kind}>{_row_head(outcome)}{''.join(cells)}</tr>"


def _first(is_first: bool) -> str:
    return ' class="first"' if is_first else ""


def _row(outcome: Outcome, cells: Iterable[str]) -> str:
    return f"<tr>{_row_head(outcome)}{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _row_head(outcome: Outcome) -> str:
    name = plain_text(outcome.label)
    return f'<th scope="row" class="s-{outcome.strategy}"><span>{name}</span></th>'


def notes(replay: Replay) -> str:
    """List what a reader of the table should know."""
    told = [(o.label, o.note) for o in replay.outcomes if o.note]
    told += [(left.title, f"left out: {left.reason}") for left in replay.left_out]
    if not told:
        return ""
    items = "".join(f"<li>{plain_text(name)}: {plain_text(note)}</li>" for name, note in told)
    return f'<ul class="footnotes">{items}</ul>'


def runs_section(replay: Replay, judged: Outcome | None, verdict: Verdict) -> str:
    """Show run by run what was saved, the dearer ones included; nothing for a single run."""
    full = replay.outcome("full")
    if full is None or judged is None or len(judged.runs) < 2:
        return ""
    saved = [
        (there.name, there.cost - here.cost)
        for there, here in zip(full.runs, judged.runs, strict=True)
    ]
    saved.sort(key=lambda each: -each[1])
    drawn = [saved[at] for at in thinned(len(saved), BAR_RUNS)]
    title = f"Dollars saved per run, {len(drawn)} runs from most to least"
    chart = _two_sizes(lambda size: bars(drawn, width=size[0], height=240, title=title))
    return (
        '<section aria-labelledby="runs"><div class="head"><h2 id="runs">Run by run</h2>'
        f"<p>{plain_text(_runs_note(verdict, len(saved), len(drawn)))}</p></div>{chart}"
        f"{_dearer_table(verdict)}</section>"
    )


def _runs_note(verdict: Verdict, runs: int, drawn: int) -> str:
    dearer = len(verdict.dearer)
    told = "No run costs more than with everything sent"
    if dearer:
        told = f"{dearer} of {runs} runs cost more than with everything sent"
    thinned = "" if runs == drawn else f" {drawn} of {runs} runs are drawn, evenly picked."
    return f"What each run saves with {verdict.label}, sorted. {told}.{thinned}"


def _dearer_table(verdict: Verdict) -> str:
    if not verdict.dearer:
        return ""
    rows = "".join(
        f'<tr><th scope="row">{plain_text(run.name)}</th>'
        f'<td class="more">+{money(run.extra)}</td></tr>'
        for run in verdict.dearer[:BAR_RUNS]
    )
    return (
        f"<details><summary>The {len(verdict.dearer)} runs that cost more</summary>"
        '<div class="scroll" tabindex="0" role="region" aria-label="Runs that cost more">'
        f'<table class="bare"><thead><tr><th scope="col">Run</th><th scope="col">Extra</th></tr>'
        f"</thead><tbody>{rows}</tbody></table></div></details>"
    )


def turns_note(replay: Replay) -> str:
    """Say what the line chart shows."""
    runs = len(replay.outcomes[0].runs) if replay.outcomes else 0
    if runs < 2:
        return "The whole prompt of each call, definitions included."
    return (
        f"The whole prompt of each call, averaged over those of the {runs:,} runs that go so far."
    )


def prompts_note(book: PromptBook, replay: Replay) -> str:
    """Say how to read the inspector, and how much of the input the page holds."""
    held, runs = len(book.runs), len(replay.outcomes[0].runs) if replay.outcomes else 0
    key = (
        '<span class="key"><span><mark class="memory_receipts">receipt</mark>'
        "names the memory</span>"
        "<span><mark>quoted</mark>verbatim from a tool result</span>"
        '<span><mark class="conversation">added</mark>put in by the strategy</span></span>'
    )
    told = "Point at a marked stretch, or tab to it, for the reason that it is there."
    if book.closed:
        told += (
            f" To stay small, this page holds the prompts of the first {held:,} of {runs:,} runs;"
            " the figures above are of all."
        )
    return f"{told}{key}"


def strategies_of(replay: Replay) -> list[dict[str, str]]:
    """Name the strategies for the inspector's choice."""
    return [{"key": strategy_key(o.strategy, o.budget), "label": o.label} for o in replay.outcomes]


def evidence_section(evidence: EvidenceBook) -> str:
    """Give the place where the page's script shows what recall would have chosen."""
    if not evidence.runs:
        return ""
    turns = sum(len(run["turns"]) for run in evidence.runs)
    cut = " The page holds the first ones." if evidence.closed else ""
    note = (
        f"For each user turn, what zero-mem recall would have chosen from the messages before it, "
        f"with what the scores are made of, and what just missed. {turns:,} turns.{cut}"
    )
    return (
        '<section class="search" aria-labelledby="search" id="search-view">'
        f'<div class="head"><h2 id="search">What a search of the trace would find</h2>'
        f"<p>{plain_text(note)}</p></div>"
        '<noscript><p class="empty">This part needs JavaScript; it runs from this page alone.</p>'
        "</noscript>"
        '<form class="controls" id="search-controls" hidden>'
        '<label>Run<select id="search-run"></select></label>'
        '<label>User turn<select id="search-turn"></select></label></form>'
        '<div id="found" aria-live="polite"></div></section>'
    )


def method(replay: Replay, verdict: Verdict) -> str:
    """Explain the measures, the prices, the versions, and what could not be read."""
    terms = "".join(f"<dt>{name}</dt><dd>{plain_text(told)}</dd>" for name, told in _terms(replay))
    return f"<dl>{terms}</dl>{_defects(replay)}{_example(verdict)}"


def _terms(replay: Replay) -> Sequence[tuple[str, str]]:
    price = replay.price
    write = "as input" if price.write is None else f"${price.write:g}"
    exact = "exact" if replay.exact else "an estimate on the safe side"
    return (
        (
            "Needed value",
            "An argument of a call that stands in an earlier tool result and in nothing that "
            "was said before: it can only have come from memory.",
        ),
        ("Visible", "The value stands, whole, in the prompt that the strategy would have sent."),
        (
            "With its key",
            "Visible together with its key or row header, under the newest result that holds "
            "it. A heap of bare values is visible and useless; this is the figure that counts.",
        ),
        ("In line", "For text results: visible inside its full source line."),
        (
            "Within one read",
            "Visible, or one read away through a receipt in the prompt. Every such read is "
            "charged: its tokens, and the whole extra round trip in money.",
        ),
        (
            "Memory ÷ tool results",
            "Tokens of the prompts less all that is no tool result in the full transcript, over "
            "the tool results' tokens there, summed over all calls. Price: the same with cache "
            "reads at 0.1 of fresh input. Negative where a strategy drops conversation too.",
        ),
        (
            "Cost",
            f"{price.model}, prices of {replay.price_date} per million tokens: input "
            f"${price.input:g}, cache read ${price.read:g}, cache write {write}, output "
            f"${price.output:g}. Every strategy is priced at its own cache states by the same "
            "rule, so that the provider's cache discount is never counted as a saving.",
        ),
        (
            "Tokens",
            f"Counted with {replay.tokenizer}, {exact}; framing of messages is not counted."
            + _billed(replay),
        ),
    )


def _billed(replay: Replay) -> str:
    billed = replay.billed
    factor = ratio(billed.billed, billed.counted)
    if factor is None:
        return ""
    return (
        f" For the {billed.calls:,} calls whose usage the input names, the provider billed "
        f"{factor:.2f} times the prompt tokens counted here."
    )


def _defects(replay: Replay) -> str:
    if not replay.defects:
        return ""
    items = "".join(
        f"<li>{plain_text(f'{defect.file}, line {defect.line}: {defect.problem}')}</li>"
        for defect in replay.defects[:50]
    )
    more = len(replay.defects) - 50
    rest = f"<li>and {more:,} more</li>" if more > 0 else ""
    return f"<h3>Left out because it could not be read</h3><ul>{items}{rest}</ul>"


def _example(verdict: Verdict) -> str:
    worked = example()
    here = f" What this input saves is {percent_signed(verdict.saved)} of its cost."
    return (
        "<h3>The arithmetic behind receipts</h3>"
        "<p>80,000 tokens of memory in each of 100 prompts are "
        f"{worked.full:,} tokens; three receipts of 15 tokens instead are {worked.receipts:,}: "
        f"{worked.saved:.2%} less, if nothing ever needs to be read."
        f"{here if verdict.label else ''}</p>"
    )


def percent_signed(saved: float) -> str:
    """Write what is saved as a per cent, minus where it costs more; 100 % only if all is."""
    return f"{min(saved, 0.999) if saved < 1 else saved:.1%}".replace("-", "−")


def _signed(change: float | None) -> str:
    return signed(change).replace("-", "−")


def _share(share: float | None) -> str:
    return "–" if share is None else f"{share:.3f}".replace("-", "−")


def _two_sizes(draw: Callable[[tuple[int, int]], str]) -> str:
    return f'<div class="wide">{draw(WIDE)}</div><div class="narrow">{draw(NARROW)}</div>'
