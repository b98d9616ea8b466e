"""The rows of a measurement: simple alternatives, Zero-Mem, and Zero-Mem less each part."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final, TypeAlias

from zero_mem.errors import InvalidInput
from zero_mem.evaluation.prompt import Order
from zero_mem.evaluation.sets import Asked
from zero_mem.evaluation.vectors import Vectors
from zero_mem.recall.configuration import DEFAULT, PAPER, PLAIN, Configuration
from zero_mem.recall.pipeline import newest_first, rank

READ: Final = 150
"""So many of a ranking are looked at: more than fit into the largest budget."""

RRF: Final = 60
"""The constant of reciprocal rank fusion; Cormack, Clarke and Büttcher (2009)."""

Ranker: TypeAlias = Callable[[Asked], Order]
"""Gives the best units of a question's space."""

PARTS: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "graph": ("graph and bridges", {"graph": 0, "bridges": 0}),
    "pagerank": ("personalised PageRank", {"graph": 0}),
    "bridges": ("bridges", {"bridges": 0}),
    "hierarchy": (
        "hierarchy (neighbours, episode, session)",
        {"neighbours": 0, "episode": 0, "session": 0},
    ),
    "neighbours": ("neighbours", {"neighbours": 0}),
    "episode": ("episode", {"episode": 0}),
    "session": ("session score", {"session": 0}),
    "closure": ("closure", {"closure": 0}),
    "dates": ("dates", {"dates": 0}),
    "speaker": ("speaker", {"speaker": 1}),
    "counterparty": ("counterparty", {"counterparty": 1}),
    "live": ("live turn's parts", {"recency": 0, "asker": 1, "opening": 1, "previous": 0}),
    "newest": ("newest first", {"supersede": False}),
    "gate": ("gate", {"gate": False}),
}
"""What is switched off, one part at a time, by the short name of the row."""

OFF: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "calibration": ("calibration of the evidence", {"calibration": PAPER.calibration}),
    "activation": ("spreading activation", {"activation": PAPER.activation}),
}
"""What is off by default, and switched on as in the paper's profile."""

PAPER_PARTS: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "closure": ("closure", {"closure": 0}),
    "calibration": ("calibration", {"calibration": 0}),
    "activation": ("spreading activation", {"activation": 0}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row.

    Attributes:
        name: By which it is chosen; letters and hyphens.
        title: What a reader sees.
        ranker: How it ranks.
        base: The row that it is this one less (or with) a part; "" for a row of its own.
        items: Most items that it gives, None for no bound.
        dense: Whether it needs vectors.
    """

    name: str
    title: str
    ranker: Ranker
    base: str = ""
    items: int | None = None
    dense: bool = False


def rows(vectors: Vectors | None) -> dict[str, Row]:
    """Give every row by its name; those with vectors where there are vectors."""
    found = list(_lexical())
    if vectors is not None:
        found += (replace(row, dense=True) for row in _dense(vectors))
    return {row.name: row for row in found}


def chosen(every: Mapping[str, Row], names: Sequence[str]) -> list[Row]:
    """Give the rows that are wanted, all where none is named.

    Raises:
        InvalidInput: A name stands for no row.
    """
    for name in names:
        if name not in every:
            hint = "" if "zero-mem-dense" in every else " (and more with an embedder)"
            raise InvalidInput(f"no row {name!r}; there are {', '.join(every)}{hint}")
    return [every[name] for name in dict.fromkeys(names or every)]


def _lexical() -> Iterator[Row]:
    yield Row(name="recency", title="newest first", ranker=recency)
    yield Row(name="bm25", title="BM25", ranker=configured(PLAIN))
    yield Row(name="zero-mem", title="Zero-Mem (core)", ranker=configured(DEFAULT))
    yield Row(name="paper", title="profile `paper`", ranker=configured(PAPER), items=PAPER.items)
    yield from _changed("zero-mem", DEFAULT, None)
    yield from _paper_changed(None)


def _dense(vectors: Vectors) -> Iterator[Row]:
    alone, plain = nearest(vectors), configured(PLAIN)
    yield Row(name="dense", title="dense alone", ranker=alone)
    yield Row(name="bm25-dense", title="BM25 + dense (RRF)", ranker=fused(plain, alone))
    yield Row(name="zero-mem-dense", title="Zero-Mem, dense", ranker=configured(DEFAULT, vectors))
    yield Row(
        name="paper-dense",
        title="profile `paper`, dense",
        ranker=configured(PAPER, vectors),
        items=PAPER.items,
    )
    yield from _changed("zero-mem-dense", DEFAULT, vectors)
    yield Row(
        name="zero-mem-dense-less-dense",
        title="less dense",
        ranker=configured(DEFAULT),
        base="zero-mem-dense",
    )


def _changed(base: str, config: Configuration, vectors: Vectors | None) -> Iterator[Row]:
    for word, parts in (("less", PARTS), ("plus", OFF)):
        for part, (title, change) in parts.items():
            yield Row(
                name=f"{base}-{word}-{part}",
                title=f"{word} {title}",
                ranker=configured(replace(config, **change), vectors),
                base=base,
            )


def _paper_changed(vectors: Vectors | None) -> Iterator[Row]:
    for part, (title, change) in PAPER_PARTS.items():
        yield Row(
            name=f"paper-less-{part}",
            title=f"less {title}",
            ranker=configured(replace(PAPER, **change), vectors),
            base="paper",
            items=PAPER.items,
        )


def recency(question: Asked) -> Order:
    """Rank the newest first, whatever is asked."""
    count = min(question.until, question.space.corpus.count)
    newest = (place for place in range(count - 1, -1, -1) if question.allowed(place))
    return Order(list(islice(newest, READ)))


def configured(config: Configuration, vectors: Vectors | None = None) -> Ranker:
    """Give the ranker of a configuration: what `Namespace.recall` ranks by."""

    def ranked(question: Asked) -> Order:
        corpus = question.space.corpus
        ranking = rank(
            corpus,
            question.text,
            config=config,
            asked_at=question.moment,
            live=question.live,
            similarities=vectors.scores(question) if vectors else None,
            allowed=None if question.live is None else question.allowed,
        )
        order, newer = newest_first(corpus, list(islice(ranking.order(), READ)), config)
        return Order(order, newer)

    return ranked


def nearest(vectors: Vectors) -> Ranker:
    """Rank by the vectors and nothing else."""

    def ranked(question: Asked) -> Order:
        scores = vectors.scores(question)
        found = [place for place in scores if question.allowed(place)]
        return Order(sorted(found, key=lambda place: (-scores[place], place))[:READ])

    return ranked


def fused(one: Ranker, other: Ranker) -> Ranker:
    """Fuse two rankings by their reciprocal ranks."""

    def ranked(question: Asked) -> Order:
        scores: dict[int, float] = defaultdict(float)
        for order in (one(question), other(question)):
            for place, index in enumerate(order.indices, start=1):
                scores[index] += 1 / (RRF + place)
        return Order(sorted(scores, key=lambda index: (-scores[index], index))[:READ])

    return ranked
