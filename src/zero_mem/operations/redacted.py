"""Requests without what must not be stored (`prod:redact`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from zero_mem.errors import InvalidInput
from zero_mem.operations.requests import SaveRequest, UpdateRequest
from zero_mem.redaction import NAMES
from zero_mem.types import MemoryReceipt, Unset

if TYPE_CHECKING:
    from zero_mem.redaction.redactor import Redactor


def redacted_save(request: SaveRequest, redactor: Redactor) -> SaveRequest:
    """Take secrets out of a save; the same request where there are none.

    Body, metadata and tags keep a placeholder. A name (key, task, session, speaker, event)
    keeps a digest, so that two of them stay two.

    Raises:
        InvalidInput: The memory id looks like a secret; it is part of every receipt.
    """
    changes: dict[str, Any] = {}
    body = redactor.body(request.content)
    if body is not request.content:
        changes["content"] = body
    if request[_KEY:_SPEAKER] != _NO_NAMES or request.invalidated_by:
        changes.update(_redacted_fields(request, redactor))
    return request._replace(**changes) if changes else request


# Of most saves only the body is looked at: from key to speaker nothing is given.
_KEY: Final = SaveRequest._fields.index("key")
_SPEAKER: Final = SaveRequest._fields.index("speaker") + 1
_NO_NAMES: Final = (None,) * (_SPEAKER - _KEY)


def _redacted_fields(request: SaveRequest, redactor: Redactor) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    if request.memory_id is not None and (kinds := redactor.kinds(request.memory_id)):
        raise InvalidInput(f"memory_id looks like a secret ({kinds[0]}); give another one")
    for name in NAMES:
        old = getattr(request, name)
        if old is not None and (new := redactor.name(old)) is not old:
            changes[name] = new
    events = request.invalidated_by
    if events and (new_events := tuple(map(redactor.name, events))) != events:
        changes["invalidated_by"] = new_events
    changes.update(_redacted_labels(request.metadata, request.tags, redactor))
    return changes


def _redacted_labels(
    metadata: Mapping[str, Any] | None, tags: tuple[str, ...] | None, redactor: Redactor
) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    if metadata and (new := redactor.value(metadata)) is not metadata:
        changes["metadata"] = new
    if tags and (clean := tuple(filter(None, map(redactor.text, tags)))) != tags:
        changes["tags"] = clean
    return changes


def redacted_update(request: UpdateRequest, redactor: Redactor) -> UpdateRequest:
    """Take secrets out of an update; the same request where there are none."""
    changes: dict[str, Any] = {}
    if not isinstance(request.content, Unset):
        body = redactor.body(request.content)
        if body is not request.content:
            changes["content"] = body
    metadata = None if isinstance(request.metadata, Unset) else request.metadata
    tags = None if isinstance(request.tags, Unset) else request.tags
    changes.update(_redacted_labels(metadata, tags, redactor))
    return replace(request, **changes) if changes else request


def masked(receipt: MemoryReceipt) -> MemoryReceipt:
    """Note on a receipt that something was taken out."""
    return replace(receipt, flags=receipt.flags | {"masked"})
