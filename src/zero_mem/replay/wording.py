"""How figures are written for a reader: short, and never flattering."""

from __future__ import annotations


def short(count: int) -> str:
    """Write a count in at most five characters: 950, 84.2k, 1.24M."""
    for limit, unit in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if count >= limit * 0.9995:
            return f"{count / limit:.3g}{unit}"
    return str(count)


def percent(share: float | None) -> str:
    """Write a share as a whole per cent, never rounding up to 100 %; a dash for none."""
    if share is None:
        return "–"
    return f"{min(share, 0.99):.0%}" if 0.99 < share < 1 else f"{share:.0%}"


def signed(change: float | None) -> str:
    """Write a change as a whole per cent with its sign; -100 % only where nothing is left."""
    if change is None:
        return "–"
    if abs(change) < 0.005:
        return "0%"
    return f"{'-' if change < 0 else '+'}{percent(abs(change))}"


def of(part: int, whole: int) -> str:
    """Write a share with what it is of, since a share of few says little; a dash for none."""
    return f"{percent(part / whole)} of {short(whole)}" if whole else "–"


def money(amount: float) -> str:
    """Write dollars with as many digits as a small amount needs."""
    if amount >= 100:
        return f"${amount:,.0f}"
    return f"${amount:.2f}" if amount >= 1 else f"${amount:.4f}"
