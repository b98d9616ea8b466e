"""The requests of conversations as they grow: each is read and edited from where the last ended.

A host sends its whole history with every call, so a request mostly begins with the bytes of the
one before it. Items of the history whose bytes came before are not decoded again, and an item
that is edited as it was before is not written again. What is read and written is the same as by
`splices`; a body that these shortcuts don't fit takes that way.
"""

from __future__ import annotations

import codecs
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from zero_mem.controller.wire.snapshots import snapshot
from zero_mem.controller.wire.splices import (
    Edit,
    Slot,
    aligned,
    array_in,
    edited,
    laid_out,
    read_json,
    spliced,
    written,
)

_KEPT: Final = 256
_KEPT_BYTES: Final = 64 << 20
_OPENING: Final = 2
"""Items by whose bytes a conversation is found; a system message is often the same in many."""
_PROBE: Final = 32
_STAND_IN: Final = "null"

Span: TypeAlias = tuple[int, int]
"""Where something begins and ends, in bytes."""


class _Edited(NamedTuple):
    """An item, what it became as a snapshot, and the edits that make it so."""

    item: Any
    after: bytes
    edits: Sequence[Edit]


class _Layout(NamedTuple):
    """Where the history stands in a body: the bracket that opens it, and its items."""

    field: str
    opening: int
    spans: Sequence[Span]


class Document:
    """A request's body, decoded, that can be written with edits.

    Args:
        raw: The body.
        value: What `read_json` makes of it.
        layout: Where its history stands, None where that is not known.
        known: How items of the history were edited before, by their identity.
    """

    def __init__(
        self,
        raw: bytes,
        value: Any,
        layout: _Layout | None = None,
        known: Mapping[int, _Edited] | None = None,
    ) -> None:
        self.raw = raw
        self.value = value
        self.layout = layout
        self.known = dict(known or {})

    def written(self, after: Any) -> bytes:
        """Write an edited value; see `splices.spliced`."""
        layout = self.layout
        listed = after.get(layout.field) if layout and isinstance(after, Mapping) else None
        if after is self.value or layout is None or not isinstance(listed, list | tuple):
            return spliced(self.raw, self.value, after)
        around, inside = self._around(after, layout), self._inside(listed, layout)
        pieces: list[bytes] = []
        at = 0
        for start, end, new in sorted([*around, *inside], key=lambda edit: edit[:2]):
            pieces += self.raw[at:start], new.encode("utf-8")
            at = end
        if not pieces:
            return self.raw
        return b"".join([*pieces, self.raw[at:]])

    def _around(self, after: Mapping[str, Any], layout: _Layout) -> Iterator[Edit]:
        """Find the edits outside the history, with one word in the place of its items."""
        head = self.raw[: layout.opening].decode("utf-8")
        text = f"{head}{_STAND_IN}{self.raw[layout.spans[-1][1] :].decode('utf-8')}"
        same: list[Any] = [None]
        _, edits = edited(
            text,
            text.index("{"),
            {**self.value, layout.field: same},
            {**after, layout.field: same},
        )

        def place(at: int) -> int:
            if at <= len(head):
                return _size(head[:at])
            return len(self.raw) - _size(text[at:])

        for start, end, new in edits:
            yield place(start), place(end), new

    def _inside(self, after: Sequence[Any], layout: _Layout) -> Iterator[Edit]:
        """Find the edits of the history."""
        before, spans = self.value[layout.field], layout.spans
        if len(before) == len(after):
            for old, new, span in zip(before, after, spans, strict=True):
                if old is not new:
                    yield from self._item(old, new, span)
            return
        slots: list[Slot] = []
        for old_at, new_at in aligned(before, after):
            if old_at is None:
                slots.append(Slot(new=written(after[new_at or 0])))
                continue
            old = new = before[old_at]
            if new_at is not None:
                new = after[new_at]
            edits = self._item(old, new, spans[old_at]) if new is not old else ()
            slots.append(Slot(*spans[old_at], edits, new_at is None))
        closing = len(self.raw) - len(self.raw[spans[-1][1] :].lstrip())
        yield from laid_out(layout.opening - 1, closing, slots)

    def _item(self, old: Any, new: Any, span: Span) -> Sequence[Edit]:
        """Find the edits of one item, or know them."""
        after, known = snapshot(new), self.known.get(id(old))
        if known is not None and known.item is old and known.after == after:
            return known.edits
        text = self.raw[span[0] : span[1]].decode("utf-8")
        _, found = edited(text, 0, old, new)
        spans = _in_bytes(text, (edit[:2] for edit in found), 0, span[0])
        edits = [(*place, edit[2]) for place, edit in zip(spans, found, strict=True)]
        if after is not None:
            self.known[id(old)] = _Edited(old, after, edits)
        return edits


class Documents:
    """Reads bodies, each from where one of those before it ended.

    It is for several threads at once, and holds the bodies that were read last.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: list[Document] = []  # the newest last
        self._size = 0

    def read(self, raw: bytes, field: str) -> Document:
        """Read a body; what it shares with earlier ones are the same objects.

        Args:
            raw: The body in UTF-8.
            field: The member that holds the history.

        Raises:
            ValueError: It is not JSON, as `read_json` tells.
        """
        before, shared = self._nearest(raw, field)
        found = _continued(raw, before, shared) if before is not None else None
        found = found or _fresh(raw, field)
        if found.layout is not None:
            goes_on = before is not None and 2 * shared > _items(before)
            self._keep(found, before if goes_on else None)
        return found

    def _nearest(self, raw: bytes, field: str) -> tuple[Document | None, int]:
        """Find the document with the most items at the beginning of a body, and how many."""
        with self._lock:
            kept = [one for one in self._kept if _opens(raw, one, field)]
        counted = ((one, _shared(raw, one)) for one in reversed(kept))
        return max(counted, key=lambda pair: pair[1], default=(None, 0))

    def _keep(self, document: Document, instead: Document | None) -> None:
        with self._lock:
            if instead is not None and instead in self._kept:
                self._drop(self._kept.index(instead))
            self._kept.append(document)
            self._size += len(document.raw)
            while self._kept and (len(self._kept) > _KEPT or self._size > _KEPT_BYTES):
                self._drop(0)

    def _drop(self, place: int) -> None:
        self._size -= len(self._kept.pop(place).raw)


def _items(document: Document) -> int:
    return len(document.layout.spans) if document.layout is not None else 0


def _opens(raw: bytes, document: Document, field: str) -> bool:
    """Tell whether a body begins like a document, as cheaply as that can be told."""
    layout = document.layout
    if layout is None or layout.field != field:
        return False
    _, end = layout.spans[min(_OPENING, len(layout.spans)) - 1]
    start = max(0, end - _PROBE)
    return raw.startswith(document.raw[start:end], start) and raw.startswith(document.raw[:end])


def _shared(raw: bytes, document: Document) -> int:
    """Count the items that a body has in common with a document, all bytes up to there alike."""
    assert document.layout is not None
    at = 0
    for count, (_, end) in enumerate(document.layout.spans):
        if not raw.startswith(document.raw[at:end], at):
            return count
        at = end
    return _items(document)


def _fresh(raw: bytes, field: str) -> Document:
    """Read a body from its beginning to its end."""
    value = read_json(raw)
    listed = value.get(field) if isinstance(value, dict) else None
    if not isinstance(listed, list) or not listed or not _are_objects(listed):
        return Document(raw, value)
    text = raw.decode("utf-8")
    found = None if raw.startswith(codecs.BOM_UTF8) else array_in(text, field)
    if found is None:
        return Document(raw, value)
    opening = _size(text[: found.opening])
    spans = list(_in_bytes(text, found.spans, found.opening, opening))
    return Document(raw, value, _Layout(field, opening, spans))


def _continued(raw: bytes, before: Document, shared: int) -> Document | None:
    """Read a body whose history begins with items of a document, with one word for all of them."""
    layout = before.layout
    if layout is None or not shared:
        return None
    head, end = raw[: layout.opening], layout.spans[shared - 1][1]
    short = b"".join((head, _STAND_IN.encode(), raw[end:]))
    value = read_json(short)
    text = short.decode("utf-8")
    found = array_in(text, layout.field)
    if found is None or not _are_objects(value[layout.field][1:]):
        return None
    (_, resumed), *spans = found.spans
    items, (_, *new) = before.value[layout.field][:shared], value[layout.field]
    known = {id(item): before.known[id(item)] for item in items if id(item) in before.known}
    value[layout.field] = [*items, *new]
    placed = [*layout.spans[:shared], *_in_bytes(text, spans, resumed, end)]
    return Document(raw, value, _Layout(layout.field, layout.opening, placed), known)


def _are_objects(items: Sequence[Any]) -> bool:
    # The end of a number or word could be the beginning of a longer one.
    return all(isinstance(item, dict) for item in items)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8"))


def _in_bytes(text: str, spans: Iterable[Span], at: int, place: int) -> Iterator[Span]:
    """Give the spans of a text in bytes; the character `at` stands at the byte `place`."""
    for start, end in spans:
        first = place + _size(text[at:start])
        at, place = end, first + _size(text[start:end])
        yield first, place
