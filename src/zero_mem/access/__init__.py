"""Who may do what: keys with rights over namespaces, checked beneath every interface."""

from __future__ import annotations

from zero_mem.access.grants import Grant, Right
from zero_mem.access.guard import GuardedStorage
from zero_mem.access.keys import ApiKey, Keyring, NewKey

__all__ = ["ApiKey", "Grant", "GuardedStorage", "Keyring", "NewKey", "Right"]
