"""The keys that a user's environment names, for every program that opens a store for its user."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, TypedDict

from zero_mem.redaction import Redaction

if TYPE_CHECKING:
    from zero_mem.encryption import Encryption

MASTER_KEY_VARIABLES: Final = ("ZERO_MEM_MASTER_KEY", "ZERO_MEM_MASTER_KEY_FILE")
REDACTION_KEY_VARIABLE: Final = "ZERO_MEM_REDACTION_KEY"


class Keys(TypedDict):
    """What `Memory.open` takes by these names."""

    encryption: Encryption | None
    redaction: Redaction


def keys() -> Keys:
    """Give the keys of encryption and redaction: `Memory.open(url, **keys())`.

    Raises:
        InvalidInput: A variable names no usable key.
        MissingExtra: There is a master key, and the extra `encrypt` is not installed.
    """
    return Keys(encryption=encryption(), redaction=redaction())


def encryption() -> Encryption | None:
    """Give the encryption that the environment names; what reads keys is slow to load."""
    if not any(os.environ.get(name) for name in MASTER_KEY_VARIABLES):
        return None
    from zero_mem.encryption import encryption_from_environment

    return encryption_from_environment()


def redaction() -> Redaction:
    """Give the default redaction, its digests keyed where the environment has a key."""
    return Redaction(key=os.environ.get(REDACTION_KEY_VARIABLE, "").encode())
