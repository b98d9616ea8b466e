"""Encryption at rest: what `Memory.open(encryption=…)` takes; it needs the extra `encrypt`.

encryption = Encryption(master=MasterKey.from_file("master.key"), keys=KeyFile("keys.json"))
memory = Memory.open("sqlite:///agent.db", encryption=encryption)
"""

from __future__ import annotations

import os
from typing import Final

from zero_mem.storage.data_keys import Encryption
from zero_mem.storage.keys import MASTER_VARIABLE, KeyFile, KeyService, Master, MasterKey
from zero_mem.storage.sealed import SealedStorage

__all__ = [
    "Encryption",
    "KeyFile",
    "KeyService",
    "Master",
    "MasterKey",
    "SealedStorage",
    "encryption_from_environment",
]

MASTER_FILE_VARIABLE: Final = "ZERO_MEM_MASTER_KEY_FILE"
KEYS_VARIABLE: Final = "ZERO_MEM_KEYS_FILE"


def encryption_from_environment() -> Encryption | None:
    """Give the encryption that the environment names, None where it names none.

    ZERO_MEM_MASTER_KEY_FILE names a file with the master key, or ZERO_MEM_MASTER_KEY is the
    key; ZERO_MEM_KEYS_FILE names the file of wrapped keys, which are in the store otherwise.

    Raises:
        InvalidInput, StoreUnavailable: The key can't be read.
    """
    file, keys = os.environ.get(MASTER_FILE_VARIABLE), os.environ.get(KEYS_VARIABLE)
    if file:
        master = MasterKey.from_file(file)
    elif os.environ.get(MASTER_VARIABLE):
        master = MasterKey.from_environment()
    else:
        return None
    return Encryption(master=master, keys=KeyFile(keys) if keys else None)
