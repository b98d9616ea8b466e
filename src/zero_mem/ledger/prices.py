"""Prices per million tokens, as of a date, by cache state; every row can be overridden."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from zero_mem.errors import InvalidInput
from zero_mem.ledger.columns import CacheState

DEFAULT_MODEL: Final = "Sonnet 5.5"
PER: Final = 1_000_000
WINDOW: Final = 200_000
"""Tokens of the longest prompt that a model takes, where its row names no other bound."""

_PART: Final = re.compile(r"[a-z]+|[0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """Factors on a row's prices once a prompt is longer than `over` tokens."""

    over: int
    input: float = 1.0
    output: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """One model's prices in US dollars per million tokens.

    `write` is None where the provider bills a cache write as plain input. Of the tiers whose
    bound the prompt passes, the highest holds for the whole call. `window` is the longest
    prompt in tokens; a longer one is priced all the same, though nobody could send it.
    """

    model: str
    input: float
    read: float
    write: float | None
    output: float
    tiers: tuple[Tier, ...] = ()
    window: int = WINDOW

    def tier(self, prompt: int) -> Tier:
        """Give the tier that a prompt of this many tokens falls in."""
        passed = [tier for tier in self.tiers if prompt > tier.over]
        return max(passed, key=lambda tier: tier.over, default=Tier(over=0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """US dollars of one or more calls by cache state; the total is their sum."""

    read: float = 0.0
    write: float = 0.0
    fresh: float = 0.0
    output: float = 0.0

    @property
    def total(self) -> float:
        """All of it."""
        return self.read + self.write + self.fresh + self.output

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            read=self.read + other.read,
            write=self.write + other.write,
            fresh=self.fresh + other.fresh,
            output=self.output + other.output,
        )


def cost(price: Price, state: CacheState, *, output: int = 0) -> Cost:
    """Price one call.

    Compare two strategies only at the same cache states: the discount that a provider gives
    on cached tokens is the provider's, and belongs to both sides.

    Args:
        price: The model's row.
        state: The prompt's tokens by cache state.
        output: Tokens that the model wrote.
    """
    tier = price.tier(state.prompt)
    write = price.input if price.write is None else price.write
    return Cost(
        read=state.read * price.read * tier.input / PER,
        write=state.write * write * tier.input / PER,
        fresh=state.fresh * price.input * tier.input / PER,
        output=output * price.output * tier.output / PER,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceTable:
    """Rows by model, with the date that they were read on."""

    date: str
    rows: Mapping[str, Price] = field(default_factory=dict)

    def price(self, model: str = DEFAULT_MODEL) -> Price:
        """Find a model's row; case, blanks and hyphens in the name don't matter.

        Raises:
            InvalidInput: No such row; the message names those there are.
        """
        row = self._named(model)
        if row is None:
            known = ", ".join(self.rows)
            said = f"no price for model {model!r}; the table of {self.date} has: {known}"
            raise InvalidInput(said)
        return row

    def find(self, model: str) -> Price | None:
        """Find a model's row by its name, or by the id that its API takes; None without one.

        In an id, such as claude-sonnet-5-5-20261001, the words and numbers of a row's name
        stand in order and together; of several rows the longest name wins.
        """
        row = self._named(model)
        if row is not None:
            return row
        parts = _PART.findall(model.casefold())
        wanted = {name: _PART.findall(name.casefold()) for name in self.rows}
        fitting = [name for name, words in wanted.items() if words and _contains(parts, words)]
        best = max(fitting, key=lambda name: len(wanted[name]), default=None)
        return None if best is None else self.rows[best]

    def _named(self, model: str) -> Price | None:
        wanted = _folded(model)
        named = (row for name, row in self.rows.items() if _folded(name) == wanted)
        return next(named, None)

    def with_rows(self, rows: Mapping[str, Price], *, date: str) -> PriceTable:
        """Give a table in which these rows replace or join the others."""
        names = {_folded(name) for name in rows}
        kept = {name: row for name, row in self.rows.items() if _folded(name) not in names}
        return PriceTable(date=date, rows=kept | dict(rows))


def load(path: Path, *, base: PriceTable | None = None) -> PriceTable:
    """Read rows from a JSON or TOML file and lay them over a table.

    The file has a `date` and `models`: per name `input`, `read`, `output`, and optionally
    `write`, `tiers` (a list of `over`, `input`, `output`) and `window` (tokens).

    Args:
        path: The file; its suffix tells the format.
        base: The table to override, by default `DEFAULT_TABLE`.

    Raises:
        InvalidInput: The file is not there, not readable as such, or a row is wrong.
    """
    content = _content(path)
    models, date = content.get("models"), content.get("date")
    if not isinstance(models, dict) or not models:
        raise InvalidInput(f"{path}: a price file needs a table 'models' with at least one row")
    if date is None:
        raise InvalidInput(f"{path}: a price file needs a 'date', so that a report can name it")
    rows = {str(name): _row(path, str(name), row) for name, row in models.items()}
    return (base or DEFAULT_TABLE).with_rows(rows, date=str(date))


def _content(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
        content = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except OSError as error:
        raise InvalidInput(f"{path}: the price file cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise InvalidInput(f"{path}: not a JSON or TOML price file: {error}") from error
    if not isinstance(content, dict):
        raise InvalidInput(f"{path}: a price file is a table, not a list or a bare value")
    return content


def _row(path: Path, name: str, row: Any) -> Price:
    where = f"{path}: model {name!r}"
    if not isinstance(row, dict):
        raise InvalidInput(f"{where}: a row is a table with input, read and output")
    unknown = set(row) - {"input", "read", "write", "output", "tiers", "window"}
    if unknown:
        raise InvalidInput(f"{where}: unknown field {', '.join(sorted(unknown))}")
    return Price(
        model=name,
        input=_amount(where, row, "input"),
        read=_amount(where, row, "read"),
        write=None if row.get("write") is None else _amount(where, row, "write"),
        output=_amount(where, row, "output"),
        tiers=_tiers(where, row.get("tiers", [])),
        window=_window(where, row.get("window", WINDOW)),
    )


def _window(where: str, tokens: Any) -> int:
    if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 1:
        raise InvalidInput(f"{where}: window must be a whole number of tokens, 1 or more")
    return tokens


def _tiers(where: str, tiers: Any) -> tuple[Tier, ...]:
    if not isinstance(tiers, list) or not all(isinstance(tier, dict) for tier in tiers):
        raise InvalidInput(f"{where}: tiers is a list of tables with over, input and output")
    return tuple(
        Tier(
            over=int(_amount(where, tier, "over")),
            input=_amount(where, {"input": 1.0} | tier, "input"),
            output=_amount(where, {"output": 1.0} | tier, "output"),
        )
        for tier in tiers
    )


def _amount(where: str, row: Mapping[str, Any], name: str) -> float:
    value = row.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput(f"{where}: {name} must be a number, dollars per million tokens")
    if not math.isfinite(value) or value < 0:
        raise InvalidInput(f"{where}: {name} must be zero or more")
    return float(value)


def _contains(parts: Sequence[str], wanted: Sequence[str]) -> bool:
    size = len(wanted)
    return any(parts[at : at + size] == wanted for at in range(len(parts) - size + 1))


def _folded(name: str) -> str:
    return "".join(c for c in name.casefold() if c not in " -_")


def _table(date: str, *rows: Price) -> PriceTable:
    return PriceTable(date=date, rows={row.model: row for row in rows})


# Published list prices, autumn 2026, and windows on the safe side. A reader with others
# overrides them by a file.
DEFAULT_TABLE: Final = _table(
    "2026-11",
    Price(model="Fable 5.1", input=10, read=0.25, write=12.5, output=50),
    Price(model="Opus 5.5", input=4, read=0.20, write=5, output=20),
    Price(model="Sonnet 5.5", input=2, read=0.10, write=2.5, output=10),
    Price(
        model="Haiku 4.5",
        input=0.10,
        read=0.01,
        write=0.125,
        output=0.50,
        tiers=(Tier(over=100_000, input=5, output=5),),
    ),
    Price(
        model="GPT-6.2 Sol",
        input=2,
        read=0.10,
        write=2.5,
        output=10,
        tiers=(Tier(over=272_000, input=2, output=1.5),),
        window=400_000,
    ),
    Price(model="DeepSeek Flash", input=0.15, read=0.003, write=None, output=0.60),
    Price(model="Gemini 4 Neon", input=3, read=0.15, write=None, output=15),
)
