"""Which observed calls belong together: an account only, on which no decision rests."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final

from zero_mem.controller.wire.sites import Step
from zero_mem.proxy import identity
from zero_mem.proxy.identity import Asked

_REMEMBERED: Final = 10_000


class Groups:
    """Names the conversation of each observed request.

    What names itself, or its session, is taken by that. Any other request continues the
    conversation whose turns and results it repeats; of two that are alike so far, either
    one. This lives as long as the process does.
    """

    def __init__(self) -> None:
        self._names: OrderedDict[str, str] = OrderedDict()
        self._begun: OrderedDict[str, None] = OrderedDict()

    def name(self, tenant: str, asked: Asked) -> tuple[str, str]:
        """Give the name and by what it was told, as `Thread` does."""
        named = identity.named_conversation(asked.headers)
        if named is not None:
            return identity.digest("named", named), "named"
        session = identity.session(asked.headers, asked.request, asked.wire_format)
        if session is not None:
            return identity.digest("session", session, asked.root), "session"
        return self._by_history(tenant, asked.history), "marks"

    def began_here(self, tenant: str, name: str, asked: Asked) -> bool:
        """Tell whether a conversation was met at its beginning, so that it could be offloaded."""
        key = f"{tenant}:{name}"
        if identity.begins(asked.history):
            self._begun[key] = None
            _bound(self._begun)
        return key in self._begun

    def _by_history(self, tenant: str, history: Sequence[Step]) -> str:
        links = [f"{tenant}:{link}" for link in identity.history_links(history)]
        known = (self._names.get(link) for link in reversed(links))
        name = next((each for each in known if each is not None), None)
        if name is None or identity.begins(history):
            name = secrets.token_hex(16)
        self._names[links[-1]] = name
        self._names.move_to_end(links[-1])
        _bound(self._names)
        return name


def _bound(remembered: OrderedDict[str, Any]) -> None:
    if len(remembered) > _REMEMBERED:
        remembered.popitem(last=False)
