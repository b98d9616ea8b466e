"""How a store is encrypted, and the data keys of its namespaces."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from zero_mem.errors import NotAllowed
from zero_mem.storage.base import Decision, NamespaceRow, Transaction
from zero_mem.storage.keys import KEY_BYTES, KeyFile, Master
from zero_mem.storage.seal import Seal
from zero_mem.types import Path

Vectors: TypeAlias = Literal["seal", "refuse"]

KEYS: Final = "zero-mem:keys"
"""The scope of the decisions that hold wrapped keys, where no file does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Encryption:
    """How a store is encrypted.

    Attributes:
        master: Wraps the data keys.
        keys: A file for the wrapped keys; None keeps them in the store, where backups have
            them too.
        vectors: "seal" encrypts embeddings at rest, "refuse" stores none.
    """

    master: Master
    keys: KeyFile | None = None
    vectors: Vectors = "seal"


class Keys:
    """The data keys of namespaces, read through one transaction of the store beneath."""

    def __init__(
        self, transaction: Transaction, encryption: Encryption, seals: dict[Path, Seal]
    ) -> None:
        self._transaction = transaction
        self._encryption = encryption
        self._seals = seals
        self._fresh: dict[Path, Seal] = {}

    def seal(self, row: NamespaceRow) -> Seal:
        """Give the seal of a namespace, making its first key where it has none."""
        found = self.known(row)
        if found is None:
            self.renew(row)
            # Not among the store's own: its transaction may yet roll back.
            found = self._fresh[row.path] = Seal(row.path, self.unwrapped(row))
        return found

    def known(self, row: NamespaceRow) -> Seal | None:
        """Give the seal of a namespace, None where nothing was written to it yet.

        Raises:
            NotAllowed: Its keys were erased, or are missing.
        """
        found = self._fresh.get(row.path) or self._seals.get(row.path)
        if found is None:
            keys = self.unwrapped(row)
            if not keys:
                self._check_unwritten(row)
                return None
            found = self._seals[row.path] = Seal(row.path, keys)
        return found

    def _check_unwritten(self, row: NamespaceRow) -> None:
        """Refuse a namespace that has values and no key to them."""
        # The row at hand may count changes that are still to be written.
        there = self._transaction.namespace(row.path)
        if self._wrapped(row) or (there is not None and there.sequence):
            name = "/".join(row.path)
            if _all_erased(self._wrapped(row)):
                raise NotAllowed(
                    f"the keys of namespace {name} were erased; what it held can't be read again"
                )
            raise NotAllowed(
                f"the keys of namespace {name} are missing; open the store with the key file that "
                "it was written with (ZERO_MEM_KEYS_FILE on the command line)"
            )

    def living(self, rows: Sequence[NamespaceRow]) -> list[NamespaceRow]:
        """Leave out the namespaces whose keys were erased."""
        # One reading of the key file serves all of them.
        every = None if self._encryption.keys is None else self._encryption.keys.every()
        return [
            row
            for row in rows
            if row.path in self._fresh
            or row.path in self._seals
            or not _all_erased(self._wrapped(row) if every is None else every.get(row.path, {}))
        ]

    def unwrapped(self, row: NamespaceRow) -> dict[int, bytes]:
        """Read and unwrap the data keys of a namespace."""
        unwrap, context = self._encryption.master.unwrap, _context(row)
        return {
            int(number): unwrap(base64.b64decode(wrapped), context)
            for number, wrapped in self._wrapped(row).items()
            if wrapped
        }

    def keep(self, row: NamespaceRow, keys: Mapping[int, bytes]) -> None:
        """Wrap and keep data keys, over those of the same number."""
        wrap, context = self._encryption.master.wrap, _context(row)
        written = {
            str(number): base64.b64encode(wrap(key, context)).decode("ascii")
            for number, key in keys.items()
        }
        if self._encryption.keys is not None:
            self._encryption.keys.write(row.path, {**self._wrapped(row), **written})
            return
        for number, text in written.items():
            self._transaction.decide(row, Decision(scope=KEYS, key=number, value=text))

    def renew(self, row: NamespaceRow) -> int:
        """Make a new data key."""
        number = max(map(int, self._wrapped(row)), default=0) + 1
        self.keep(row, {number: os.urandom(KEY_BYTES)})
        return number

    def erase(self, row: NamespaceRow) -> bool:
        """Erase every data key of a namespace, but for its number; tell whether there were any."""
        erased = dict.fromkeys(number for number, key in self._wrapped(row).items() if key)
        if self._encryption.keys is not None:
            self._encryption.keys.write(row.path, dict.fromkeys(self._wrapped(row), ""))
        for number in erased if self._encryption.keys is None else ():
            self._transaction.decide(row, Decision(scope=KEYS, key=number, value=None))
        return bool(erased)

    def _wrapped(self, row: NamespaceRow) -> dict[str, str]:
        if self._encryption.keys is not None:
            return self._encryption.keys.read(row.path)
        found = self._transaction.decisions(row, KEYS)
        return {decision.key: decision.value or "" for decision in found}


def _all_erased(wrapped: Mapping[str, str]) -> bool:
    """Tell whether there were keys, and none is left."""
    return bool(wrapped) and not any(wrapped.values())


def _context(row: NamespaceRow) -> bytes:
    return json.dumps(row.path).encode()
