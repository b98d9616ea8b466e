"""The API keys: who may do what, making one and ending one.

What a visitor may see, make and end is decided beneath, by the guard of the store: nobody grants
beyond what their own key gives admin over.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal, TypeAlias, get_args

from zero_mem.access.grants import Grant, Right
from zero_mem.access.keys import ApiKey
from zero_mem.console.numbers import whole_number
from zero_mem.console.visit import Page, Reply, Visit
from zero_mem.errors import InvalidInput, NotAllowed, NotFound
from zero_mem.memory import Memory

Standing: TypeAlias = Literal["valid", "expired", "revoked"]

ROWS: Final = 3
"""Most grants of a key that is made here; the command line takes any number."""
LIFETIMES: Final = (1, 7, 30, 90, 365)
_MOST_DAYS: Final = 36_500


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRow:
    """A key of the list.

    Attributes:
        key: The key.
        standing: Whether it opens anything now.
        maker: The name of the key that made it, "" where the store as a whole did; its id where
            the visitor does not administer it.
        is_own: Whether the visitor came with it.
    """

    key: ApiKey
    standing: Standing
    maker: str
    is_own: bool


def listed(memory: Memory) -> list[KeyRow]:
    """List the keys that the visitor administers: valid ones first, and the newest of them.

    Raises:
        NotAllowed: The visitor's key gives admin over nothing.
    """
    now, keys = memory.now(), memory.keyring.every()
    came = [memory.key] if memory.key else []
    names = {key.key_id: key.name for key in (*came, *keys)}
    own = memory.key.key_id if memory.key else None
    rows = [
        KeyRow(
            key=key,
            standing=_standing(key, now),
            maker=names.get(key.made_by, key.made_by) if key.made_by else "",
            is_own=key.key_id == own,
        )
        for key in reversed(keys)
    ]
    return sorted(rows, key=lambda row: row.standing != "valid")


def _standing(key: ApiKey, now: datetime) -> Standing:
    if key.revoked_at is not None:
        return "revoked"
    return "valid" if key.is_valid(now) else "expired"


# The page


def _show(visit: Visit) -> Reply:
    return _page(visit)


def _page(visit: Visit, *, problem: str = "", status: int = 200) -> Reply:
    try:
        rows, administers = listed(visit.memory), True
    except NotAllowed:
        rows, administers = [], False
    return visit.render(
        "keys.html",
        status=status,
        rows=rows,
        administers=administers,
        problem=problem,
        rights=get_args(Right),
        places=range(1, ROWS + 1),
        lifetimes=LIFETIMES,
    )


def _create(visit: Visit) -> Reply:
    try:
        name, grants, lifetime = visit.field("name").strip(), _grants(visit), _lifetime(visit)
        made = visit.memory.keyring.create(name, grants, expires_in=lifetime)
    except InvalidInput as error:
        return _page(visit, problem=str(error), status=400)
    except NotAllowed as error:
        return _page(visit, problem=str(error), status=403)
    return visit.render("key_made.html", made=made)


def _grants(visit: Visit) -> list[Grant]:
    found: list[Grant] = []
    for place in range(1, ROWS + 1):
        pattern = visit.form.get(f"pattern{place}", "").strip()
        if pattern:
            found.append(Grant.parse(f"{visit.field(f'right{place}')}:{pattern}"))
    return found


def _lifetime(visit: Visit) -> timedelta | None:
    text = visit.form.get("days", "").strip()
    if not text:
        return None
    days = whole_number(text, "the number of days that a key is valid", most=_MOST_DAYS)
    return timedelta(days=days)


def _ask(visit: Visit) -> Reply:
    """Ask whether a key is really to be revoked."""
    key_id = visit.query.get("id", "")
    row = next((row for row in listed(visit.memory) if row.key.key_id == key_id), None)
    if row is None:
        raise NotFound(f"no key {key_id!r} that this key administers")
    return visit.render("key_revoke.html", row=row)


def _revoke(visit: Visit) -> Reply:
    visit.memory.keyring.revoke(visit.field("id"))
    return visit.go("/keys", notice="revoked")


PAGE = Page(
    name="keys",
    path="/keys",
    gets={"/keys": _show, "/keys/revoke": _ask},
    posts={"/keys/new": _create, "/keys/end": _revoke},
    needs_namespace=False,
    for_admins=True,
)
