"""Importing JSON lines of any shape, by a mapping of their fields."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from zero_mem.controller.messages import Defect
from zero_mem.errors import InvalidInput
from zero_mem.exchange import body_json
from zero_mem.replay.transcripts import iter_values
from zero_mem.space import Namespace
from zero_mem.traces.mapping import SAME_NAMES, LineMapping, parse_mapping
from zero_mem.traces.report import TraceItem, TraceReport
from zero_mem.traces.writing import Progress, Writer, Written, read_files

_LISTED = 12


def import_lines(
    space: Namespace,
    paths: Iterable[str | Path],
    mapping: LineMapping | str | Iterable[str] = SAME_NAMES,
    *,
    dry_run: bool = False,
    on_progress: Progress | None = None,
    on_written: Written | None = None,
) -> TraceReport:
    """Import JSON lines, each as one record.

    A line is known by its session and `id`, where the mapping names one, else by all that is read
    of it and how often it came before; so a file that was imported, or has grown since, adds only
    what is new. Without a kind a record is a `message`, without a session it belongs to its
    file's. A line that can't be read is reported, and the rest goes on.

    Args:
        space: The namespace that the records go to.
        paths: Files of JSON lines, or of one JSON list; plain or gzip.
        mapping: Which field comes from where, see `parse_mapping`; by default each from the
            field of its own name.
        dry_run: Write nothing; the report says what would be written and shows the first.
        on_progress: Called with a file's name, the bytes read of it and its size.
        on_written: Called with the number of records written so far.

    Raises:
        InvalidInput: The mapping can't be read, or no line of any file has a content.
        ZeroMemError: The store failed; a note says how far it got.
    """
    chosen = mapping if isinstance(mapping, LineMapping) else parse_mapping(mapping)
    writer = Writer(space, dry_run=dry_run, on_written=on_written)
    return read_files(writer, paths, lambda path: _Lines(writer, path, chosen).read(on_progress))


class _Lines:
    """One file on its way into a namespace."""

    def __init__(self, writer: Writer, path: Path, mapping: LineMapping) -> None:
        self._writer = writer
        self._path = path
        self._mapping = mapping
        self._seen: Counter[str] = Counter()
        self._names: dict[str, None] = {}
        self._session = path.name.removesuffix(".gz").removesuffix(path.suffix) or path.name

    def read(self, on_progress: Progress | None) -> None:
        """Read all lines.

        Raises:
            InvalidInput: None of them has a content.
        """

        def tell(done: int, size: int) -> None:
            if on_progress is not None:
                on_progress(self._path.name, done, size)

        found, broken = False, set[int]()
        for line, value in iter_values(self._path, progress=tell):
            if isinstance(value, Defect):
                self._writer.report.defects.append(value)
                broken.add(line)
            else:
                found = self._take(line, value) or found
                broken.discard(line)  # its value could be mended
        self._writer.report.left_out += len(broken)
        if not found:
            raise InvalidInput(f"{self._path}: {self._nothing()}")

    def _take(self, line: int, value: Any) -> bool:
        """Take one line; tell whether it has a content."""
        if isinstance(value, list):
            found = [self._take(line, each) for each in value]
            return any(found)
        if isinstance(value, dict):
            self._names.update(dict.fromkeys(list(value)[:_LISTED]))
        try:
            fields = self._mapping.fields(value)
        except InvalidInput as error:
            self._writer.refuse(self._path.name, line, str(error))
            return True
        if "content" not in fields:
            self._writer.refuse(self._path.name, line, "no content in this line")
            return False
        self._add(line, fields)
        return True

    def _add(self, line: int, fields: dict[str, Any]) -> None:
        named = fields.pop("id", None)
        fields.setdefault("kind", "message")
        fields.setdefault("session", self._session)
        fields["source"] = fields.get("source", "import")
        once = self._by_content(fields) if named is None else _by_id(fields["session"], named)
        self._writer.add(TraceItem(file=self._path.name, line=line, once=once, fields=fields))

    def _by_content(self, fields: dict[str, Any]) -> str:
        """Name a line by all that is read of it, and how often the same came before."""
        told = {**fields, **body_json(fields["content"])}
        text = json.dumps(told, sort_keys=True, default=str)
        name = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest()
        self._seen[name] += 1
        return f"line:{name}:{self._seen[name]}"

    def _nothing(self) -> str:
        if not self._names:
            return "no JSON object to import"
        names = list(self._names)
        more = " …" if len(names) > _LISTED else ""
        return (
            f"no line has the content that the mapping names; fields there: "
            f"{', '.join(names[:_LISTED])}{more}"
        )


def _by_id(session: str, named: str) -> str:
    told = f"{session}\0{named}".encode("utf-8", "replace")
    return f"line:id:{hashlib.blake2b(told, digest_size=16).hexdigest()}"
