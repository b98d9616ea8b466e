"""Which conversations there are, and what each took."""

from __future__ import annotations

from zero_mem.conversation import persisted, turns
from zero_mem.space import Namespace

_SCOPES = (persisted.SCOPE, turns.SCOPE)


def conversation_names(space: Namespace) -> list[str]:
    """Name the conversations that prompts were prepared or built for, as they began."""
    found = (
        scope.removeprefix(prefix)
        for scope in space.scopes()
        for prefix in _SCOPES
        if scope.startswith(prefix)
    )
    return list(dict.fromkeys(found))
