"""The steps of a history that grows: what the last request held is not read again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from zero_mem.controller.messages import WireFormat
from zero_mem.controller.wire.sites import LIST_FIELD, Step, is_produced, steps
from zero_mem.prompts import snapshot

_TOLD: Final = {"openai_responses": "instructions"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    wire_format: WireFormat
    told: bytes | None
    items: list[bytes | None]
    goes_on: bool
    steps: list[Step]


class History:
    """Reads the requests of one conversation, and keeps a copy of the last to compare with.

    A request that begins with the items of the last one gets the same step objects for them, so
    that whatever was worked out for a step can be kept under it.
    """

    def __init__(self) -> None:
        self._known: _Known | None = None

    def steps(self, request: Mapping[str, Any], wire_format: WireFormat) -> Sequence[Step]:
        """List a request's messages, as `sites.steps` does."""
        items = request.get(LIST_FIELD[wire_format])
        if not isinstance(items, list):
            return steps(request, wire_format)
        told = snapshot(request.get(_TOLD.get(wire_format, "system")))
        written = [snapshot(item) for item in items]
        known = self._shared(wire_format, told, written)
        start = 0 if known is None else len(known.items)
        found = steps(request, wire_format, known=known.steps if known else (), start=start)
        last = items[-1] if items else None
        goes_on = isinstance(last, Mapping) and is_produced(last)
        self._known = _Known(
            wire_format=wire_format,
            told=told,
            items=written,
            goes_on=goes_on and wire_format == "openai_responses",
            steps=found,
        )
        return found

    def _shared(
        self, wire_format: WireFormat, told: bytes | None, written: list[bytes | None]
    ) -> _Known | None:
        """Give what is known, if the items begin with it and no turn goes on beyond."""
        known = self._known
        if known is None or known.goes_on or (known.wire_format, known.told) != (wire_format, told):
            return None
        before = known.items
        whole = told is not None and None not in before
        return known if whole and before and written[: len(before)] == before else None
