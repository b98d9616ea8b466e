"""A measurement as a page of Markdown tables that explains itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from zero_mem.evaluation.figures import BUDGETS, Figures
from zero_mem.evaluation.reader import Reading
from zero_mem.evaluation.result import Result, SetFacts, versions
from zero_mem.evaluation.targets import Judged, said

HEADLINES: Final[Mapping[str, str]] = {
    "hotpotqa": "share@5",
    "musique": "share@5",
    "factcons": "first",
    "single_facts": "first",
    "single_facts_one_session": "first",
}
"""The figure by which a set compares rows; of any other set the share in the top 10."""

RANKS: Final = (
    ("share@5", "top 5"),
    ("share@10", "top 10"),
    ("share@20", "top 20"),
    ("any@10", "any in 10"),
    ("all@5", "all in 5"),
    ("all@10", "all in 10"),
    ("ndcg@10", "nDCG@10"),
    ("first", "rank 1"),
)
UNCHANGED: Final = "locomo_audited"
"""Where what puts newer facts first must cost nothing."""

_LEGEND: Final = """\
All figures are percentages, means over the questions. *Top k* is the share of a question's
evidence among the first k records; *any* and *all* say how often some or all of it is there.
*In N tokens* is the share that stands in a prompt of so many tokens, where a record counts by the
share of its tokens that its line keeps: *cut* with bodies as `compaction_threshold` cuts them by
default (200 characters), *whole* where the namespace sets no bound. *Halves* are the headline
figure over the spaces in alphabetical order, every other one (of a set with one space: over every
other question). *CPU ms* is the median processor time of one ranking, encoders apart, and *×* the
ratio to BM25 in the same run."""


def page(result: Result) -> str:
    """Write everything."""
    parts = [
        _heading(result),
        _LEGEND,
        *(part for facts in result.sets for part in _set(result, facts)),
        *_knowledge(result),
        *_ablations(result),
        *_readings(result.readings),
        *_bounds(result.judged),
    ]
    return "\n\n".join(parts) + "\n"


def headline(name: str) -> str:
    """Give the figure by which a set compares rows."""
    return HEADLINES.get(name, "share@10")


def table(head: Sequence[str], rows: Iterator[Sequence[str]] | Sequence[Sequence[str]]) -> str:
    """Write a table."""
    lines = [list(head), ["---"] * len(head), *map(list, rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _heading(result: Result) -> str:
    found = [f"{name} {number}" for name, number in versions().items()]
    said_too = [f"tokens by {result.tokenizer}", f"embedder {result.embedder or 'none'}"]
    reader = [f"reader {result.reader}"] if result.reader else []
    return f"`{result.command}`\n\n{', '.join([*found, *said_too, *reader])}"


def _set(result: Result, facts: SetFacts) -> Iterator[str]:
    found = [(row.title, one) for row, one in result.of(facts.name, base="")]
    if not found:
        return
    yield (
        f"## {facts.name}\n\n{_counted(facts.questions, 'question')} ({facts.selection}) over "
        f"{_counted(facts.records, 'record')} in {_counted(facts.spaces, 'space')}."
    )
    plain = next(
        (one.milliseconds() for row, one in result.of(facts.name) if row.name == "bm25"), 0
    )
    yield table(
        ["row", *(title for _, title in RANKS), "halves", "CPU ms", "×"],
        [_by_rank(title, one, plain) for title, one in found],
    )
    yield table(
        [
            "in N tokens",
            *(f"{budget:,}, {bodies}" for bodies in ("cut", "whole") for budget in BUDGETS),
        ],
        [_by_tokens(title, one) for title, one in found],
    )
    if len(found[0][1].categories) > 1:
        yield _categories(facts.name, found)


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _by_rank(title: str, one: Figures, plain: float) -> list[str]:
    means, taken = one.means(), one.milliseconds()
    halves = [one.means(half=half).get(headline(one.set)) for half in (0, 1)]
    return [
        title,
        *(f"{means[name]:.1f}" for name, _ in RANKS),
        " / ".join("–" if half is None else f"{half:.1f}" for half in halves),
        f"{taken:.2f}",
        f"{taken / plain:.1f}" if plain else "–",
    ]


def _by_tokens(title: str, one: Figures) -> list[str]:
    means = one.means()
    return [
        title,
        *(f"{means[f'share@{budget}{kind}']:.1f}" for kind in "tw" for budget in BUDGETS),
    ]


def _categories(name: str, found: Sequence[tuple[str, Figures]]) -> str:
    figure, names = headline(name), found[0][1].categories
    sizes = [sum(one.category == each for one in found[0][1].outcomes) for each in names]
    return table(
        [said(figure), *(f"{each} ({size})" for each, size in zip(names, sizes, strict=True))],
        [
            [title, *(f"{one.means(category=each)[figure]:.1f}" for each in names)]
            for title, one in found
        ],
    )


def _knowledge(result: Result) -> Iterator[str]:
    """Show, where facts were replaced, which fact is first, and that elsewhere nothing changed."""
    for facts in result.sets:
        found = [
            (row, means)
            for row, one in result.of(facts.name)
            if "newest" in (means := one.means())
            and (not row.base or row.name.endswith("less-newest"))
        ]
        if not found:
            continue
        elsewhere = {row.name: one.means()["share@10"] for row, one in result.of(UNCHANGED)}
        yield f"## Knowledge update ({facts.name})"
        yield table(
            ["row", said("first"), said("newest"), f"{UNCHANGED}, top 10"],
            [
                [
                    row.title if not row.base else f"{row.base}, {row.title}",
                    f"{means['first']:.1f}",
                    f"{means['newest']:.1f}",
                    f"{elsewhere[row.name]:.1f}" if row.name in elsewhere else "–",
                ]
                for row, means in found
            ],
        )


def _ablations(result: Result) -> Iterator[str]:
    for base in dict.fromkeys(row.base for row in result.rows if row.base):
        whole = {one.set: one for one in result.figures if one.row == base}
        rows = [row for row in result.rows if row.base == base]
        if not whole:
            continue
        title = next(row.title for row in result.rows if row.name == base)
        yield (
            f"## What each part earns: {title}\n\nThe headline figure of each set, and in points "
            "what is lost (−) or won (+) when one part is switched off (*less*) or on (*plus*)."
        )
        lines = [[title, *(f"{one.means()[headline(name)]:.1f}" for name, one in whole.items())]]
        for row in rows:
            by_set = {one.set: one for one in result.figures if one.row == row.name}
            lines.append([row.title, *(_change(whole[name], by_set[name]) for name in whole)])
        yield table(["", *(f"{name}, {_short(headline(name))}" for name in whole)], lines)


def _short(figure: str) -> str:
    return dict(RANKS)[figure]


def _change(whole: Figures, less: Figures) -> str:
    figure = headline(whole.set)
    change = less.means()[figure] - whole.means()[figure]
    return "0.0" if abs(change) < 0.05 else f"{change:+.1f}".replace("-", "−")


def _readings(found: Sequence[Reading]) -> Iterator[str]:
    if not found:
        return
    yield (
        "## What a reader answers\n\nF1 over words as in SQuAD and BLEU-1, in Chinese over "
        "characters; *calibrated* after `calibrate`. *Memory* is the mean of recalled tokens a "
        "question, *prompt* and *answer* what the server counted in all."
    )
    yield table(
        ["set", "row", "category", "answers", "F1", "BLEU-1", "calibrated F1", "calibrated BLEU-1"],
        [line for one in found for line in _scores(one)],
    )
    yield table(
        ["set", "row", "failed", "memory", "prompt", "answer", "calibration"],
        [_spending(one) for one in found],
    )


def _scores(one: Reading) -> Iterator[list[str]]:
    figures = one.figures
    for category in (None, *figures.categories):
        means = figures.means(category=category)
        count = sum(category in (None, outcome.category) for outcome in figures.outcomes)
        names = ("f1", "bleu1", "f1_calibrated", "bleu1_calibrated")
        cells = [f"{means[name]:.1f}" if name in means else "–" for name in names]
        yield [figures.set, figures.row, category or "**all**", str(count), *cells]


def _spending(one: Reading) -> list[str]:
    answered = len(one.figures.outcomes)
    memory = f"{one.memory_tokens / answered:,.0f}" if answered else "–"
    used = [f"{one.usage[name]:,}" for name in ("prompt_tokens", "completion_tokens")]
    failed = f"{one.failed} ({one.first_failure})" if one.failed else "0"
    actions = ", ".join(f"{name} {number}" for name, number in one.actions.most_common())
    return [one.figures.set, one.figures.row, failed, memory, *used, actions or "–"]


def _bounds(found: Sequence[Judged]) -> Iterator[str]:
    if not found:
        return
    yield "## What must be reached"
    yield table(
        ["figure", "row", "must", "reached", "met", "goal", "met"],
        [
            [
                one.target.title,
                one.target.row,
                f"{one.target.must:g}",
                f"{one.value:.1f}",
                "yes" if one.met else "**no**",
                f"{one.target.goal:g}",
                "yes" if one.goal_met else "no",
            ]
            for one in found
        ],
    )
