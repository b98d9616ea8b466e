"""API keys: made once, kept as a hash, found by their public part.

Who came with a key administers the keys whose grants all lie within what it holds `admin` over;
`access.guard` sees to it, beneath this module.

A key reads `zm_ID_SECRET`. The secret has 160 random bits, so a plain hash keeps it safe: there
is no dictionary to try.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from zero_mem.access.grants import Grant
from zero_mem.errors import InvalidInput, NotAllowed, NotFound
from zero_mem.operations.requests import check_lifetime, check_name
from zero_mem.storage.base import Storage

NOTE: Final = "key."
"""Begins the name of the note that keeps a key."""

_FORM: Final = re.compile(r"zm_([a-z2-7]{8})_([a-z2-7]{32})")
_REFUSED: Final = "the credential is not valid: it is unknown, was revoked, or has expired"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """What is known of a key: not its secret.

    `made_by` is the id of the key that made it, None where the store as a whole did.
    """

    key_id: str
    name: str
    grants: tuple[Grant, ...]
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    made_by: str | None = None

    def is_valid(self, now: datetime) -> bool:
        """Tell whether the key may be used."""
        expired = self.expires_at is not None and self.expires_at <= now
        return self.revoked_at is None and not expired


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKey:
    """A key that was just made; `credential` is shown this once and kept nowhere."""

    key: ApiKey
    credential: str

    def __repr__(self) -> str:
        return f"NewKey({self.key.key_id})"


class Keyring:
    """The keys of one store; for who came with a key, those within what it gives `admin` over."""

    def __init__(
        self, storage: Storage, now: Callable[[], datetime], holder: ApiKey | None = None
    ) -> None:
        """Take a store, guarded where there is a holder.

        Args:
            storage: The store.
            now: Reads the clock, in UTC.
            holder: The key that the store was opened with, None for the store as a whole.
        """
        self._storage = storage
        self._now = now
        self._holder = holder

    def create(
        self,
        name: str,
        grants: Sequence[Grant],
        *,
        expires_in: timedelta | float | None = None,
    ) -> NewKey:
        """Make a key.

        Args:
            name: Who or what it is for; the journal names it.
            grants: What it gives, such as `Grant.parse("write:acme/**")`.
            expires_in: Seconds, or a duration, that it is valid; for ever by default, or as long
                as the key of who makes it.

        Raises:
            InvalidInput: It has no name or no grant, or would have expired already.
            NotAllowed: It would reach beyond what its maker administers, or outlive its maker's.
        """
        if not grants:
            raise InvalidInput("a key has at least one grant, such as read:acme/**")
        now, lifetime = self._now(), check_lifetime(expires_in)
        ends = self._holder.expires_at if self._holder and lifetime is None else None
        key = ApiKey(
            key_id=_random(5),
            name=check_name(name, "the name of a key"),
            grants=tuple(grants),
            created_at=now,
            expires_at=ends if lifetime is None else now + lifetime,
            made_by=None if self._holder is None else self._holder.key_id,
        )
        secret = _random(20)
        self._keep(key, _hash(secret))
        return NewKey(key=key, credential=f"zm_{key.key_id}_{secret}")

    def every(self) -> list[ApiKey]:
        """List the keys, the oldest first, revoked and expired ones too.

        Raises:
            NotAllowed: The credential gives `admin` over nothing.
        """
        read = [read_key(text) for text in self._storage.notes(NOTE).values()]
        return sorted(read, key=lambda key: (key.created_at, key.key_id))

    def revoke(self, key_id: str) -> ApiKey:
        """End a key at once; a key that was revoked before stays so.

        Args:
            key_id: The part of a key that is no secret, between its two underscores.

        Raises:
            NotFound: There is no such key, or none that its asker administers.
            NotAllowed: The credential gives `admin` over nothing.
        """
        text = self._storage.note(f"{NOTE}{check_name(key_id, 'key_id')}")
        if text is None:
            raise NotFound(f"no key {key_id!r}; `zero-mem key list` has them all")
        fields = json.loads(text)
        key = read_key(text)
        if key.revoked_at is None:
            key = replace(key, revoked_at=self._now())
            self._keep(key, fields["hash"])
        return key

    def verify(self, credential: str) -> ApiKey:
        """Give the key that a credential opens.

        Raises:
            NotAllowed: It opens none; the message is the same whatever the reason.
        """
        found = _FORM.fullmatch(credential)
        text = self._storage.note(f"{NOTE}{found[1]}") if found else None
        if found is None or text is None:
            raise NotAllowed(_REFUSED)
        key = read_key(text)
        same = hmac.compare_digest(_hash(found[2]), json.loads(text)["hash"])
        if not same or not key.is_valid(self._now()):
            raise NotAllowed(_REFUSED)
        return key

    def _keep(self, key: ApiKey, digest: str) -> None:
        fields = {
            "id": key.key_id,
            "name": key.name,
            "grants": [[grant.right, list(grant.pattern)] for grant in key.grants],
            "created": key.created_at.isoformat(),
            "expires": None if key.expires_at is None else key.expires_at.isoformat(),
            "revoked": None if key.revoked_at is None else key.revoked_at.isoformat(),
            "made_by": key.made_by,
            "hash": digest,
        }
        self._storage.keep_note(f"{NOTE}{key.key_id}", json.dumps(fields))


def read_key(text: str) -> ApiKey:
    """Read the note that keeps a key."""
    fields: dict[str, Any] = json.loads(text)

    def moment(name: str) -> datetime | None:
        return None if fields[name] is None else datetime.fromisoformat(fields[name])

    return ApiKey(
        key_id=fields["id"],
        name=fields["name"],
        grants=tuple(Grant.of(right, pattern) for right, pattern in fields["grants"]),
        created_at=datetime.fromisoformat(fields["created"]),
        expires_at=moment("expires"),
        revoked_at=moment("revoked"),
        made_by=fields.get("made_by"),
    )


def _random(size: int) -> str:
    return base64.b32encode(os.urandom(size)).decode("ascii").lower()


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
