"""How much of the evidence recall finds, by rank and by tokens of the prompt, part by part.

    python bench/recall.py DATA [--sets locomo_audited,…] [--rows "Zero-Mem,BM25"] [--all]
                           [--embedder e5] [--json out.json] [--markdown out.md]

DATA is a folder of sets, each with `corpus.jsonl.gz` (space, id, session, ts, speaker, text) and
`queries.jsonl.gz` (space, qid, question, category, gold). One space is one namespace, one line
one record. Single facts in both languages (`short_memories.jsonl`, beside this file) are always
measured too. Every row is ranked by the same code as `Namespace.recall`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from typing import Any

from evidence.figures import BUDGETS, Figures, Ranker, measure
from evidence.sets import Asked, Space, sets

from zero_mem import Memory
from zero_mem.recall.configuration import DEFAULT, PAPER, PLAIN, Configuration
from zero_mem.recall.pipeline import newest_first, rank

DATA = Path(os.environ.get("ZERO_MEM_DATA", Path(__file__).parents[2] / "shared" / "data"))
SETS = ("locomo_audited", "lifebench_zh", "realmem", "factcons", "hotpotqa", "musique")
READ = 120
"""So many of a ranking are looked at: more than fit into the largest budget."""


# The rows


def recency(question: Asked) -> list[int]:
    count = min(question.until, question.space.corpus.count)
    return list(islice((n for n in range(count - 1, -1, -1) if question.allowed(n)), READ))


def configured(config: Configuration, dense: Dense | None = None) -> Ranker:
    """Give the ranker of a configuration."""

    def ranked(question: Asked) -> list[int]:
        corpus = question.space.corpus
        ranking = rank(
            corpus,
            question.text,
            config=config,
            asked_at=question.moment,
            live=question.live,
            similarities=dense.scores(question) if dense else None,
            allowed=question.allowed,
        )
        return newest_first(corpus, list(islice(ranking.order(), READ)), config)[0]

    return ranked


LESS: Mapping[str, Mapping[str, Any]] = {
    "neighbours": {"neighbours": 0},
    "episode": {"episode": 0},
    "session score": {"session": 0},
    "neighbours, episode, session (hierarchy)": {"neighbours": 0, "episode": 0, "session": 0},
    "graph": {"graph": 0},
    "bridges": {"bridges": 0},
    "graph and bridges": {"graph": 0, "bridges": 0},
    "closure": {"closure": 0},
    "dates": {"dates": 0},
    "speaker": {"speaker": 1},
    "counterparty": {"counterparty": 1},
    "calibration": {"calibration": 0},
    "live turn's parts": {"recency": 0, "asker": 1, "opening": 1, "previous": 0},
    "newest first": {"supersede": False},
    "gate": {"gate": False},
}


def rows(dense: Dense | None) -> Mapping[str, Ranker]:
    """Give every row by its name."""
    found: dict[str, Ranker] = {
        "recency": recency,
        "BM25": configured(PLAIN),
        "Zero-Mem": configured(DEFAULT),
        "paper": configured(PAPER),
    }
    for part, change in LESS.items():
        found[f"less {part}"] = configured(replace(DEFAULT, **change))
    for part, change in (("graph", {"rho": 1.0}), ("closure", {"closure": 0})):
        found[f"paper less {part}"] = configured(replace(PAPER, **change))
    if dense:
        found["dense alone"] = dense.alone
        found["BM25 + dense (RRF)"] = reciprocal(configured(PLAIN), dense.alone)
        found["Zero-Mem, dense"] = configured(DEFAULT, dense)
        found["paper, dense"] = configured(PAPER, dense)
    return found


def reciprocal(one: Ranker, other: Ranker) -> Ranker:
    """Fuse two rankings by reciprocal ranks (Cormack et al. 2009, k = 60)."""

    def ranked(question: Asked) -> list[int]:
        scores: dict[int, float] = defaultdict(float)
        for ranking in (one(question), other(question)):
            for place, index in enumerate(ranking, start=1):
                scores[index] += 1 / (60 + place)
        return sorted(scores, key=lambda index: (-scores[index], index))

    return ranked


class Dense:
    """The vectors of all spaces, by an embedder, in stores in memory."""

    def __init__(self, embedder: str) -> None:
        self._embedder = embedder
        self._memories: dict[int, Memory] = {}
        self._scores: dict[tuple[int, str], Mapping[int, float]] = {}

    def scores(self, question: Asked) -> Mapping[int, float]:
        """Give the cosine of each unit with a question, by index."""
        key = (id(question.space), question.text)
        if key not in self._scores:
            memory = self._memories.get(key[0]) or self._fill(question.space)
            found = memory.dense.look_up(("bench",), question.text) if memory.dense else None
            scores = (found.scores if found else None) or {}
            with memory.transaction() as transaction:
                row = transaction.namespace(("bench",))
            first = row.position(1) if row else 0
            self._scores[key] = {position - first: value for position, value in scores.items()}
        return self._scores[key]

    def alone(self, question: Asked) -> list[int]:
        """Rank by the vectors and nothing else."""
        scores = self.scores(question)
        found = [index for index in scores if question.allowed(index)]
        return sorted(found, key=lambda index: (-scores[index], index))[:READ]

    def _fill(self, space: Space) -> Memory:
        memory = Memory.open("memory://", embedder=self._embedder)
        memory.namespace("bench").save_many(
            {
                "content": text,
                "kind": u.kind,
                "session": u.session or None,
                "speaker": u.speaker or None,
                **({"created_at": u.stamp} if u.stamp else {}),
            }
            for text, u in zip(space.texts, space.corpus.units, strict=True)
        )
        memory.reindex()
        self._memories[id(space)] = memory
        return memory


# The page

MUST: tuple[tuple[str, str, float], ...] = (
    ("locomo_audited", "share@10", 79),
    ("locomo_audited", "share@10 multi-hop", 46),
    ("lifebench_zh", "share@10", 53),
    ("lifebench_zh", "any@10", 90),
    ("realmem", "share@10", 37),
    ("factcons", "first", 97),
)
COLUMNS = (
    "share@5", "share@10", "share@20", "any@10", "all@5", "ndcg@10", "first",
    *(f"{kind}@{budget}" for kind in ("tokens", "whole") for budget in BUDGETS),
)  # fmt: skip


def page(found: Sequence[Figures], command: str) -> str:
    """Write all figures as Markdown, a table a set."""
    lines = [f"`{command}` (Python {platform.python_version()}, core install)", ""]
    for name in dict.fromkeys(figures.set for figures in found):
        of_set = [figures for figures in found if figures.set == name]
        lines += [f"### {name}, {len(of_set[0].seconds)} questions", ""]
        lines += [_cells(["row", *COLUMNS, "halves", "ms"]), _cells(["---"] * (len(COLUMNS) + 3))]
        lines += [_cells(_row(figures)) for figures in of_set]
        lines += ["", *_categories(of_set), ""]
    return "\n".join([*lines, *_bounds(found)]) + "\n"


def _row(figures: Figures) -> list[str]:
    means = figures.means
    cells = [f"{means[column]:.1f}" if column in means else "" for column in COLUMNS]
    first, second = figures.halves()
    median = 1e3 * statistics.median(figures.seconds)
    return [figures.row, *cells, f"{first:.1f} / {second:.1f}", f"{median:.2f}"]


def _categories(of_set: Sequence[Figures]) -> Iterator[str]:
    names = [n for n in of_set[0].means if n.startswith("share@10 ") and " space " not in n]
    yield _cells(["share@10", *(name.removeprefix("share@10 ") for name in names)])
    yield _cells(["---"] * (len(names) + 1))
    for figures in of_set:
        yield _cells([figures.row, *(f"{figures.means[name]:.1f}" for name in names)])


def _bounds(found: Sequence[Figures]) -> Iterator[str]:
    yield _cells(["must reach", "bound", "Zero-Mem", "met"])
    yield _cells(["---"] * 4)
    by_row = {(figures.set, figures.row): figures.means for figures in found}
    for name, figure, bound in MUST:
        if means := by_row.get((name, "Zero-Mem")):
            yield _bound(f"{name} {figure}", bound, means[figure])
    ours, plain = (by_row.get(("locomo_audited", row)) for row in ("Zero-Mem", "BM25"))
    if ours and plain:
        for kind in ("tokens", "whole"):
            name = f"locomo_audited {kind}@500 above BM25"
            yield _bound(name, 17, ours[f"{kind}@500"] - plain[f"{kind}@500"])
    for name in ("short, no session", "short, one session"):
        ours, plain = (by_row.get((name, row)) for row in ("Zero-Mem", "BM25"))
        if ours and plain:
            yield _bound(f"{name}: first, above BM25", 0, ours["first"] - plain["first"])


def _bound(name: str, bound: float, value: float) -> str:
    return _cells([name, f"{bound:g}", f"{value:.1f}", "yes" if value >= bound else "NO"])


def _cells(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("data", type=Path, nargs="?", default=DATA, help="the folder of the sets")
    parser.add_argument("--sets", default=",".join(SETS), help="which sets, comma-separated")
    parser.add_argument("--rows", default="", help="which rows, comma-separated; all by default")
    parser.add_argument("--all", action="store_true", help="every question with evidence")
    parser.add_argument("--embedder", help="measure dense rows too, by this embedder")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    return parser.parse_args()


def main() -> int:
    given = arguments()
    chosen = rows(Dense(given.embedder) if given.embedder else None)
    wanted = [name.strip() for name in given.rows.split(",") if name.strip()] or list(chosen)
    found = [
        measure(name, row, chosen[row], asked_of, tokens="less" not in row)
        for name, asked_of in sets(given.data, given.sets.split(","), every=given.all)
        for row in wanted
    ]
    written = page(found, " ".join(["python", *sys.argv]))
    print(written)
    if given.markdown:
        given.markdown.write_text(written, encoding="utf-8")
    if given.json:
        plain = [
            {"set": f.set, "row": f.row, **f.means, "ms": 1e3 * statistics.median(f.seconds)}
            for f in found
        ]
        configuration = asdict(DEFAULT)
        given.json.write_text(json.dumps({"default": configuration, "figures": plain}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
