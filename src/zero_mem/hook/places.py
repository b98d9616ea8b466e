"""Where the text stands in a tool's result, which keeps its shape when the text is replaced.

Claude Code takes a replacement only in the tool's own shape: a shell's result is an object
with `stdout`, a file's has `file.content`, an MCP tool's a list of text parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from zero_mem.controller.wire.sites import Path, TextSite, splice

_TEXT_FIELDS: Final = ("stdout", "content", "result", "output", "text")
_COPIES: Final = ("persistedOutputPath", "persistedOutputSize")
"""A shell's own copy of a long output; the client would show it instead."""


def text_places(response: Any) -> list[TextSite]:
    """Find the texts of a result; nothing where its shape is not known."""
    if isinstance(response, str):
        return [TextSite(path=(), text=response)]
    if isinstance(response, list):
        return list(_parts(response, ()))
    if not isinstance(response, Mapping) or response.get("isImage"):
        return []
    file = response.get("file")
    if isinstance(file, Mapping):
        return list(_field(file, "content", ("file",)))
    for name in _TEXT_FIELDS:
        found = list(_field(response, name, ()))
        if found:
            return found
    return []


def with_texts(response: Any, edits: Mapping[Path, str]) -> Any:
    """Give a result with other texts at their places, in the same shape."""
    edited = splice(response, edits)
    if isinstance(edited, Mapping) and any(name in edited for name in _COPIES):
        return {name: value for name, value in edited.items() if name not in _COPIES}
    return edited


def _field(value: Mapping[str, Any], name: str, path: Path) -> Iterator[TextSite]:
    text = value.get(name)
    if isinstance(text, str):
        yield TextSite(path=(*path, name), text=text)
    elif isinstance(text, list):
        yield from _parts(text, (*path, name))


def _parts(parts: list[Any], path: Path) -> Iterator[TextSite]:
    for place, part in enumerate(parts):
        if isinstance(part, Mapping) and part.get("type") == "text":
            yield from _field(part, "text", (*path, place))
