"""The stored form of an entry: figures by name.

What is zero or not known is left out, and a name that is not known is passed over, so a column
can be added without a new form. Two older forms are still read: a proxy's account, which
named the other way by its mode, and the list that a conversation's call was.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any, Final

from zero_mem.ledger.columns import PROMPT_COLUMNS, CacheState, CallTokens, Usage, corrected
from zero_mem.ledger.entries import COUNTS, Account, LedgerEntry, told
from zero_mem.ledger.prices import Cost
from zero_mem.ledger.sides import Side

_TOKENS: Final = (*PROMPT_COLUMNS, "output")
_NAMES: Final = {
    form: frozenset(field.name for field in fields(form)) for form in (CallTokens, CacheState, Cost)
}
_TOLD: Final = ("model", "mode", "began", "last", "origin", "wire_format")


def written(entry: LedgerEntry) -> str:
    """Write an entry, without the name of its conversation."""
    account = entry.account
    figures: dict[str, Any] = {name: getattr(account, name) for name in COUNTS}
    sides = {"without": account.without, "offloaded": account.offloaded}
    known = {name: _written(side) for name, side in sides.items() if side is not None}
    return json.dumps(
        _some(figures) | {"paid": _written(account.paid)} | known | _some(told(entry)),
        separators=(",", ":"),
    )


def _written(side: Side) -> dict[str, Any]:
    cost = {} if side.cost is None else {"cost": asdict(side.cost)}
    return _some({"tokens": _some(asdict(side.tokens)), "cache": _some(asdict(side.state))}) | cost


def _some(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value}


def read(conversation: str, value: str) -> LedgerEntry:
    """Read an entry of any form."""
    stored = json.loads(value)
    if isinstance(stored, list):
        return _read_call(conversation, stored)
    mode = stored.get("mode", "offload")
    other = {"without" if mode == "offload" else "offloaded": stored.get("other")}
    sides = {name: _side(stored.get(name, other.get(name))) for name in ("without", "offloaded")}
    account = Account(
        **{name: stored.get(name, 0) for name in COUNTS},
        paid=_side(stored["paid"]) or Side(),
        without=sides["without"],
        offloaded=sides["offloaded"],
    )
    known = {name: stored[name] for name in _TOLD if name in stored}
    receipts = tuple(stored.get("receipts", ()))
    return LedgerEntry(conversation=conversation, account=account, receipts=receipts, **known)


def _side(stored: Mapping[str, Any] | None) -> Side | None:
    if stored is None:
        return None
    return Side(
        tokens=CallTokens(**_known(CallTokens, stored.get("tokens", {}))),
        state=CacheState(**_known(CacheState, stored.get("cache", {}))),
        cost=Cost(**_known(Cost, stored["cost"])) if "cost" in stored else None,
    )


def _known(form: type[CallTokens | CacheState | Cost], figures: Mapping[str, Any]) -> Any:
    return {name: figure for name, figure in figures.items() if name in _NAMES[form]}


def _read_call(conversation: str, stored: Sequence[Any]) -> LedgerEntry:
    """Read a list: model, tokens by column, counted, cache state, billed, tokens without."""
    model, numbers, counted, (read, write, fresh), billed, without = stored
    paid = Side(
        tokens=CallTokens(**dict(zip(_TOKENS, numbers, strict=True))),
        state=CacheState(read=read, write=write, fresh=fresh),
    )
    account = Account(
        calls=1,
        requests=1,
        estimated=int(not billed),
        counted=counted,
        paid=paid,
        without=None if without is None else _scaled(paid, without),
    )
    return LedgerEntry(conversation=conversation, account=account, model=model)


def _scaled(paid: Side, prompt: int) -> Side:
    """Give a prompt of another length, billed in the same shares."""
    of = paid.tokens.prompt
    if not prompt or not of:
        return Side()
    read, write = (part * prompt // of for part in (paid.state.read, paid.state.write))
    return Side(
        tokens=corrected(CallTokens(), Usage(prompt=prompt, output=paid.tokens.output)),
        state=CacheState(read=read, write=write, fresh=prompt - read - write),
    )
