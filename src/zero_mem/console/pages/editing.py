"""Changing a record's body, tags and metadata by hand, against the version that was seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from zero_mem.api.problems import problem_of
from zero_mem.api.text import parse
from zero_mem.console.numbers import whole_number
from zero_mem.console.showing import exact_json, visible
from zero_mem.console.visit import Page, Reply, Visit
from zero_mem.errors import Conflict, InvalidInput, LimitReached
from zero_mem.types import UNSET, Blob, Body, Json, MemoryRecord, Unset, body_text

LONGEST: Final = 200_000
"""Characters of a body that can be changed here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """The fields of the form; `version` is the one that they were read from."""

    content: str
    tags: str
    metadata: str
    version: str


def _ask(visit: Visit) -> Reply:
    if not visit.query.get("id"):
        raise InvalidInput("no memory was named; the address needs ?id=")
    record = visit.space.get(visit.query["id"])
    return _form(visit, record, _fields_of(record))


def _form(visit: Visit, record: MemoryRecord, fields: Fields, problem: str = "") -> Reply:
    return visit.render(
        "edit.html",
        record=record,
        fields=fields,
        problem=problem,
        is_json=isinstance(record.content, Json),
        is_editable=_is_editable(record),
    )


def _fields_of(record: MemoryRecord) -> Fields:
    return Fields(
        content=_written(record.content) if _is_editable(record) else "",
        tags="\n".join(record.tags),
        metadata=exact_json(dict(record.metadata)) if record.metadata else "",
        version=str(record.version),
    )


def _is_editable(record: MemoryRecord) -> bool:
    """Tell whether a field of a form gives a body back as it is."""
    if isinstance(record.content, Blob):
        return False
    text = _written(record.content)
    return len(text) <= LONGEST and visible(text) == text


def _written(body: Body) -> str:
    return exact_json(body.value) if isinstance(body, Json) else body_text(body)


def _change(visit: Visit) -> Reply:
    record = visit.space.get(visit.field("id"))
    fields = Fields(
        content=_lines(visit.form.get("content", "")),
        tags=_lines(visit.field("tags")),
        metadata=_lines(visit.field("metadata")),
        version=visit.field("if_version"),
    )
    try:
        receipt = visit.space.update(
            record.memory_id,
            content=_content(record, fields),
            tags=_tags(record, fields.tags),
            metadata=_metadata(record, fields.metadata),
            if_version=whole_number(fields.version, "if_version"),
        )
    except (Conflict, InvalidInput, LimitReached) as error:
        # What was written stays in the form.
        reply = _form(visit, record, fields, str(error))
        return Reply(body=reply.body, status=problem_of(error).status)
    if receipt.unchanged:
        return visit.go("/record", notice="unchanged", id=record.memory_id)
    return visit.go("/record", notice="changed", id=record.memory_id)


def _lines(text: str) -> str:
    """Undo what a browser does to the ends of lines."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _content(record: MemoryRecord, fields: Fields) -> Body | Unset:
    if not _is_editable(record) or fields.content == _lines(_written(record.content)):
        return UNSET
    if isinstance(record.content, Json):
        return Json(parse(fields.content, "the body"))
    return fields.content


def _tags(record: MemoryRecord, text: str) -> list[str]:
    """Give the tags that were written; one that was there keeps what of it was not shown."""
    there = {visible(tag).strip(): tag for tag in record.tags}
    lines = (line.strip() for line in text.split("\n"))
    return [there.get(line, line) for line in lines if line]


def _metadata(record: MemoryRecord, text: str) -> Mapping[str, Any]:
    """Give the change that makes a record's metadata what was written."""
    wanted = parse(text, "the metadata") if text.strip() else {}
    if not isinstance(wanted, dict):
        raise InvalidInput("the metadata is a JSON object")
    return {**dict.fromkeys(record.metadata.keys() - wanted.keys()), **wanted}


PAGE = Page(
    name="edit",
    path="/record/edit",
    gets={"/record/edit": _ask},
    posts={"/record/edit": _change},
    within="records",
)
