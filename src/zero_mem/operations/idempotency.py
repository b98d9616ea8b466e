"""Idempotency keys: a retried write is applied once and answered with its first receipt."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from zero_mem.errors import Conflict
from zero_mem.operations.requests import SaveRequest, canonical
from zero_mem.storage.base import Decision, NamespaceRow, Transaction
from zero_mem.storage.codec import encode_body, purged_key
from zero_mem.storage.times import from_micros, to_micros
from zero_mem.types import MemoryReceipt

IDEMPOTENCY = "zero-mem:idempotency"
"""The decision scope that maps an idempotency key to the first receipt."""


def first_receipt(
    transaction: Transaction, row: NamespaceRow, request: SaveRequest, key: str
) -> MemoryReceipt | None:
    """Give the receipt of the write that was applied under a key, None if there was none.

    Raises:
        Conflict: The key was used for another request, or its memory was purged.
    """
    if transaction.decision(row, IDEMPOTENCY, purged_key(key)) is not None:
        raise Conflict(f"the memory written under idempotency key {key!r} was purged")
    found = transaction.decision(row, IDEMPOTENCY, key)
    if found is None or found.value is None:
        return None
    first = json.loads(found.value)
    if first["request"] != fingerprint(request):
        raise Conflict(f"idempotency key {key!r} was used for a different request")
    return _receipt_from(first, {"replayed"})


def remember(
    transaction: Transaction,
    row: NamespaceRow,
    request: SaveRequest,
    receipt: MemoryReceipt,
    uid: str,
) -> None:
    """Keep the receipt of a write under its key, to be erased with its memory."""
    if request.idempotency_key is not None:
        value = json.dumps({"request": fingerprint(request), **_receipt_fields(receipt)})
        key = request.idempotency_key
        decision = Decision(scope=IDEMPOTENCY, key=key, value=value, uid=uid)
        transaction.decide(row, decision)


def expected_id(
    transaction: Transaction, row: NamespaceRow, request: SaveRequest, now: datetime
) -> str | None:
    """Name the record that a save would replay or change by its key, None for a new one."""
    if request.idempotency_key is not None:
        first = transaction.decision(row, IDEMPOTENCY, request.idempotency_key)
        if first is not None and first.value is not None:
            return str(json.loads(first.value)["memory_id"])
    if request.key is None:
        return None
    found = transaction.by_keys(row, [(request.kind, f"key:{request.key}")]).values()
    return next((s.record.memory_id for s in found if not s.record.expired(now)), None)


_IDENTIFYING = (
    "kind",
    "form",
    "key",
    "memory_id",
    "metadata",
    "tags",
    "task",
    "session",
    "speaker",
    "source",
    "invalidated_by",
)
"""The fields that make two requests the same, besides the body and its times."""


def fingerprint(request: SaveRequest) -> str:
    """Tell requests apart by all that they ask for, without keeping any of it."""
    kind, data = encode_body(request.content)
    fields = {name: getattr(request, name) for name in _IDENTIFYING}
    times = (request.expiry.at, request.expiry.lifetime, request.created_at)
    digest = hashlib.blake2b(
        canonical([fields, list(map(str, times)), kind]).encode(), digest_size=16
    )
    digest.update(data)
    return digest.hexdigest()


def _receipt_fields(receipt: MemoryReceipt) -> dict[str, Any]:
    return {
        "memory_id": receipt.memory_id,
        "operation": receipt.operation,
        "version": receipt.version,
        "created_at": to_micros(receipt.created_at),
        "preview": receipt.preview,
        "flags": sorted(receipt.flags),
    }


def _receipt_from(fields: Mapping[str, Any], flags: set[str]) -> MemoryReceipt:
    return MemoryReceipt(
        memory_id=fields["memory_id"],
        operation=fields["operation"],
        version=fields["version"],
        created_at=from_micros(fields["created_at"]),
        preview=fields["preview"],
        flags=frozenset(fields["flags"]) | flags,
    )
