"""The steps of a history that grows: what the last request held is not read again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from zero_mem.controller.messages import WireFormat
from zero_mem.controller.wire.sites import LIST_FIELD, Step, is_produced, steps

Known: TypeAlias = tuple[WireFormat, Any, list[Any], list[Step]]


class History:
    """Reads the requests of one conversation, and keeps the last one to compare with.

    A request that begins with the items of the last one gets the same step objects for them, so
    that whatever was worked out for a step can be kept under it.
    """

    def __init__(self) -> None:
        self._known: Known | None = None

    def steps(self, request: Mapping[str, Any], wire_format: WireFormat) -> Sequence[Step]:
        """List a request's messages, as `sites.steps` does."""
        items = request.get(LIST_FIELD[wire_format])
        if not isinstance(items, list):
            return steps(request, wire_format)
        told = request.get("instructions" if wire_format == "openai_responses" else "system")
        known = self._shared(wire_format, told, items)
        start = 0 if known is None else len(known[2])
        found = steps(request, wire_format, known=known[3] if known else (), start=start)
        self._known = (wire_format, told, items, found)
        return found

    def _shared(self, wire_format: WireFormat, told: Any, items: list[Any]) -> Known | None:
        """Give what is known, if the items begin with it and no turn goes on beyond."""
        known = self._known
        if known is None or known[:2] != (wire_format, told):
            return None
        before = known[2]
        if not before or items[: len(before)] != before:
            return None
        goes_on = isinstance(before[-1], Mapping) and is_produced(before[-1])
        return None if wire_format == "openai_responses" and goes_on else known
