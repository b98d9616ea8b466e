"""Sealing: how values of one namespace are encrypted, and what can still be compared.

Bodies, metadata and values are sealed by AES-256-GCM under a fresh nonce: two equal ones give
different bytes. Names that are looked up (keys, tags, tasks, sessions, speakers) are sealed by
AES-SIV, the same each time, so equal names show as equal; search terms become keyed hashes, so
their frequencies and order show.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from collections.abc import Sequence
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, AESSIV
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from zero_mem.errors import NotAllowed, StoreCorrupt
from zero_mem.types import Path

SIGN: Final = "\ue010"
"""Begins every sealed text; it is in a private area and no plain text has it there."""

_NONCE_BYTES: Final = 12
_TERM_CHARACTERS: Final = 13  # of 5 bits: two of a million terms meet once in 10^8 stores


class Seal:
    """Seals and opens the values of one namespace.

    Args:
        namespace: Its path; a value that is moved to another namespace does not open there.
        keys: The data keys by number; the highest seals, each opens what it sealed. The first
            makes names and terms, so that they can be looked up whatever the newest is.
    """

    def __init__(self, namespace: Path, keys: dict[int, bytes]) -> None:
        self._context = repr(namespace).encode("utf-8", "surrogatepass")
        self._ciphers = {number: AESGCM(_derived(key, b"body")) for number, key in keys.items()}
        self._newest = max(keys)
        first = keys[min(keys)]
        self._names = AESSIV(_derived(first, b"names", 64))
        self._terms = _derived(first, b"terms")

    def seal(self, data: bytes, purpose: str) -> bytes:
        """Encrypt bytes for a purpose, such as the record that they belong to."""
        nonce = os.urandom(_NONCE_BYTES)
        sealed = self._ciphers[self._newest].encrypt(nonce, data, self._bound(purpose))
        return self._newest.to_bytes(2, "big") + nonce + sealed

    def open(self, data: bytes, purpose: str) -> bytes:
        """Decrypt what `seal` gave for the same purpose.

        Raises:
            NotAllowed: Its key is not among these.
            StoreCorrupt: The bytes were changed, or belong elsewhere.
        """
        number = int.from_bytes(data[:2], "big")
        cipher = self._ciphers.get(number)
        if cipher is None:
            raise NotAllowed(f"data key {number} of this namespace is not there; it was erased")
        nonce, sealed = data[2 : 2 + _NONCE_BYTES], data[2 + _NONCE_BYTES :]
        try:
            return cipher.decrypt(nonce, sealed, self._bound(purpose))
        except (InvalidTag, ValueError):
            raise StoreCorrupt("a sealed value was changed, or belongs to another place") from None

    def seal_text(self, text: str, purpose: str) -> str:
        """Encrypt a text into a text."""
        sealed = self.seal(text.encode("utf-8", "surrogatepass"), purpose)
        return SIGN + base64.b64encode(sealed).decode("ascii")

    def open_text(self, text: str, purpose: str) -> str:
        """Decrypt what `seal_text` gave; text that was never sealed is given back."""
        if not text.startswith(SIGN):
            return text
        data = base64.b64decode(text[len(SIGN) :])
        return self.open(data, purpose).decode("utf-8", "surrogatepass")

    def name(self, name: str, field: str) -> str:
        """Encrypt a name of a field, the same each time."""
        data = name.encode("utf-8", "surrogatepass")
        sealed = self._names.encrypt(data or b"\x00", [self._bound(field)])
        return SIGN + base64.urlsafe_b64encode(sealed).decode("ascii").rstrip("=")

    def open_name(self, name: str, field: str) -> str:
        """Decrypt what `name` gave; a name that was never sealed is given back."""
        if not name.startswith(SIGN):
            return name
        text = name[len(SIGN) :]
        try:
            data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
            opened = self._names.decrypt(data, [self._bound(field)])
        except (InvalidTag, ValueError):
            raise StoreCorrupt("a sealed name was changed, or belongs to another place") from None
        return "" if opened == b"\x00" else opened.decode("utf-8", "surrogatepass")

    def term(self, term: str) -> str:
        """Hash a search term under the namespace's key."""
        digest = hmac.digest(self._terms, term.encode("utf-8", "surrogatepass"), hashlib.sha256)
        return base64.b32encode(digest).decode("ascii").lower()[:_TERM_CHARACTERS]

    def term_list(self, terms: Sequence[str]) -> list[str]:
        """Hash terms in order."""
        hashed = {term: self.term(term) for term in set(terms)}
        return [hashed[term] for term in terms]

    def _bound(self, purpose: str) -> bytes:
        return self._context + b"\x00" + purpose.encode("utf-8", "surrogatepass")


def _derived(key: bytes, use: bytes, length: int = 32) -> bytes:
    """Derive a key for one use (HKDF, RFC 5869)."""
    return HKDF(hashes.SHA256(), length=length, salt=None, info=b"zero-mem " + use).derive(key)
