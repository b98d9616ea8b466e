"""What was passed by reference: as the model wrote it, and as it was executed.

The store keeps references with versions; bodies are read from the journal when somebody
asks, so a purge reaches the audit too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from zero_mem.controller.fragments import expand_json
from zero_mem.controller.references import Expansion, text_schema
from zero_mem.controller.wire.draft import arguments
from zero_mem.errors import NotFound
from zero_mem.handles import Reference
from zero_mem.space import Namespace
from zero_mem.types import Body


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """One output with handles; `tool` is "" where it is text for the user.

    Arguments are JSON text, of an API that has them as an object too. `executed` has the
    values that were put in, but a handle where its memory was purged.
    """

    tool: str
    written: str
    executed: str
    memory_ids: tuple[str, ...]


def passed_of(space: Namespace, fields: Mapping[str, Any]) -> Passed:
    """Write an entry of the audit out."""

    def resolve(reference: Reference) -> Body:
        version = fields["versions"].get(reference.memory_id)
        if version is None:
            raise NotFound("it was not put in")
        return _body(space, reference.memory_id, version)

    expansion = Expansion(resolve=resolve, places=frozenset(fields["places"]))
    written = fields["written"]
    return Passed(
        tool=fields["tool"],
        written=arguments(written),
        executed=_executed(expansion, written, is_text=fields.get("is_text", not fields["tool"])),
        memory_ids=tuple(fields["versions"]),
    )


def _executed(expansion: Expansion, written: Any, *, is_text: bool) -> str:
    if is_text:
        return expansion.text(written)
    if isinstance(written, str):
        return expand_json(written, expansion, text_schema(expansion.places))
    return arguments(expansion.arguments(written))


def _body(space: Namespace, memory_id: str, version: int) -> Body:
    for entry in space.history(memory_id):
        if entry.record is not None and entry.record.version == version:
            return entry.record.content
    raise NotFound(f"version {version} of memory {memory_id} was purged")
