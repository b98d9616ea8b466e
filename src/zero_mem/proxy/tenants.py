"""The namespace of each tenant, under a key that every process on the store shares."""

from __future__ import annotations

import secrets

from zero_mem.memory import Memory
from zero_mem.proxy.headers import Headers
from zero_mem.proxy.identity import tenant
from zero_mem.space import Namespace
from zero_mem.types import Path

_SCOPE = "proxy.key"
_KEY = "tenants"
_EVERYONE = "one-user"


class Tenants:
    """Walls off credentials from each other.

    Args:
        memory: The store.
        namespace: Below it each tenant has one of its own.
        one_user: True gives all credentials the same one.
    """

    def __init__(self, memory: Memory, namespace: Path, *, one_user: bool) -> None:
        self._memory = memory
        self._namespace = namespace
        self._one_user = one_user
        space = memory.namespace(*namespace)
        # Whoever is first decides; a second process reads what the first one wrote.
        space.decide(_SCOPE, _KEY, secrets.token_hex(32), only_new=True)
        self._secret = bytes.fromhex(space.decision(_SCOPE, _KEY) or "")

    def name(self, headers: Headers) -> str:
        """Name the tenant of a request."""
        return _EVERYONE if self._one_user else tenant(headers, self._secret)

    def space(self, name: str) -> Namespace:
        """Give a tenant's namespace, where it is noted which conversation a request continues."""
        return self._memory.namespace(*self._namespace, name)

    def memories(self, name: str, conversation: str) -> Namespace:
        """Give the namespace of a conversation's memories.

        A key may serve many people, so its conversations don't see each other's memories; one
        user's do.
        """
        if self._one_user:
            return self.space(name)
        return self._memory.namespace(*self._namespace, name, conversation)
