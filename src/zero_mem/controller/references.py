"""Values by reference: what a handle in a model's output stands for.

A string that is one handle becomes the typed JSON value, unless the place wants text; a
handle inside a text becomes text. What cannot be resolved is an error in arguments, which a
model can act on, and stays literal text elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from zero_mem import handles
from zero_mem.controller.wire.draft import json_text
from zero_mem.errors import InvalidInput, NotAllowed, NotFound
from zero_mem.handles import Handle, Reference
from zero_mem.recall.select import resolve_pointer
from zero_mem.types import Blob, Body, Json

Resolve: TypeAlias = Callable[[Reference], Body]
"""Gives the body that a reference names, or raises one of UNRESOLVED that says why not."""

UNRESOLVED: Final = (InvalidInput, NotAllowed, NotFound)
"""What is wrong with a handle; any other error is one of the store, and decides nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferencePolicy:
    """Which kinds of memory a model may pass by handle, and where.

    Args:
        arguments: The kinds by tool; a tool that is not named takes those under "*", and
            None stands for every kind. By default every tool takes every kind.
        answers: The kinds that may be put into a text the user reads; None is every kind.
    """

    arguments: Mapping[str, Collection[str] | None] = field(default_factory=lambda: {"*": None})
    answers: Collection[str] | None = None

    def allows(self, kind: str, tool: str | None) -> bool:
        """Tell whether a kind may go into a tool's arguments (an answer, where tool is None)."""
        kinds = self.answers
        if tool is not None:
            kinds = self.arguments.get(tool, self.arguments.get("*", ()))
        return kinds is None or kind in kinds


@dataclass(slots=True)
class Expansion:
    """Expands the handles of one output and keeps account of it.

    `used` are the references that were put in, `refused` the reasons for those that were
    not, `places` the JSON Pointers of the arguments that took a value as text.
    """

    resolve: Resolve
    places: frozenset[str] = frozenset()
    used: list[Reference] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def arguments(self, value: Any, pointer: str = "") -> Any:
        """Expand every string of a call's arguments; object keys stay."""
        if isinstance(value, str):
            return self.string(value, as_text=pointer in self.places)
        if isinstance(value, Mapping):
            return {k: self.arguments(v, f"{pointer}/{_step(k)}") for k, v in value.items()}
        if isinstance(value, list):
            return [self.arguments(each, f"{pointer}/{i}") for i, each in enumerate(value)]
        return value

    def string(self, text: str, *, as_text: bool) -> Any:
        """Expand one string of arguments: a typed value where it is a handle and nothing else."""
        whole = handles.parse_whole(text.strip())
        if whole is None or as_text:
            return self.text(text)
        try:
            values = [self._value(reference) for reference in whole.references]
        except UNRESOLVED as error:
            self.refused.append(str(error))
            return text
        self.used += whole.references
        return values[0] if len(values) == 1 else values

    def _value(self, reference: Reference) -> Any:
        value = value_of(self.resolve(reference), reference.pointer)
        if not isinstance(value, str) or reference.pointer is not None:
            return value
        return structure(value)

    def text(self, text: str) -> str:
        """Expand the handles inside a text; what was escaped at insertion is put back."""
        out, at = [], 0
        for handle in handles.find(text):
            out += [handles.unescape(text[at : handle.start]), self.shown(text, handle)]
            at = handle.end
        return "".join([*out, handles.unescape(text[at:])])

    def shown(self, text: str, handle: Handle) -> str:
        """Give the text that a handle of a text stands for; itself where it is refused."""
        try:
            values = [value_of(self.resolve(r), r.pointer) for r in handle.references]
        except UNRESOLVED as error:
            self.refused.append(str(error))
            return text[handle.start : handle.end]
        self.used += handle.references
        return "\n".join(v if isinstance(v, str) else json_text(v) for v in values)


def value_of(body: Body, pointer: str | None) -> Any:
    """Give what a reference to a body stands for: text, or a JSON value by a pointer.

    Raises:
        InvalidInput: The body has no such part, or is binary.
    """
    if isinstance(body, Blob):
        raise InvalidInput(f"a binary memory ({body.media_type}) can't be passed as a value")
    if isinstance(body, Json):
        return resolve_pointer(body.value, pointer or "")
    if pointer is None:
        return body
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        raise InvalidInput("the memory is text, not JSON, so a pointer finds nothing") from None
    return resolve_pointer(value, pointer)


def structure(text: str) -> Any:
    """Give the object or array that a text is, else the text."""
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def text_places(value: Any, schema: Any, pointer: str = "") -> Iterator[str]:
    """Find the places of arguments that hold a handle where the tool's schema wants text.

    Yields:
        JSON Pointers into the arguments.
    """
    if isinstance(value, str):
        if wants_text(schema) and handles.parse_whole(value.strip()):
            yield pointer
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from text_places(each, member(schema, key), f"{pointer}/{_step(key)}")
    elif isinstance(value, list):
        for i, each in enumerate(value):
            yield from text_places(each, member(schema), f"{pointer}/{i}")


def wants_text(schema: Any) -> bool:
    """Tell whether a place of this schema takes text alone."""
    return isinstance(schema, Mapping) and schema.get("type") == "string"


def text_schema(places: Collection[str]) -> dict[str, Any]:
    """Give a schema that wants text at these places, as `text_places` named them."""
    inside: dict[str, list[str]] = {}
    for pointer in places:
        if pointer:
            step, slash, rest = pointer[1:].partition("/")
            key = step.replace("~1", "/").replace("~0", "~")
            inside.setdefault(key, []).append(slash + rest)
    # A number may be a place in an array as well; its items have one schema.
    return {
        **({"type": "string"} if "" in places else {}),
        "properties": {key: text_schema(rest) for key, rest in inside.items()},
        **({"items": text_schema([p for rest in inside.values() for p in rest])} if inside else {}),
    }


def member(schema: Any, key: str | None = None) -> Any:
    """Give the schema of a field of an object, or (without a key) of the items of an array."""
    if not isinstance(schema, Mapping):
        return None
    if key is None:
        return schema.get("items")
    fields = schema.get("properties")
    return fields.get(key) if isinstance(fields, Mapping) else None


def _step(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def claims(text: str) -> list[Reference]:
    """Find the memories that a text speaks of: handles with other words in their line."""
    found: list[Reference] = []
    for line in text.splitlines():
        named = handles.find(line)
        rest, at = "", 0
        for handle in named:
            rest, at = rest + line[at : handle.start], handle.end
        if any(c.isalnum() for c in rest + line[at:]):
            found += [reference for handle in named for reference in handle.references]
    return found
