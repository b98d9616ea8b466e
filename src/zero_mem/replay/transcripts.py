"""Transcript files: JSON or JSON lines, plain or gzip, read a line at a time.

The format is told by the content. A line that cannot be read becomes a defect that names
file and line, and the rest goes on; a file that holds no run is an error.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias, TypeVar, cast

from zero_mem.controller.messages import Defect, Transcript, WireFormat
from zero_mem.controller.wire.assembly import Assembly, Read
from zero_mem.controller.wire.detect import LOOKED_FOR
from zero_mem.errors import InvalidInput

Progress: TypeAlias = Callable[[int, int], None]
_Decoded: TypeAlias = tuple[Any, list[str]]
T_co = TypeVar("T_co", covariant=True)

_GZIP: Final = b"\x1f\x8b"
_BOM: Final = b"\xef\xbb\xbf"
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")
_TELL_EVERY: Final = 1 << 18  # bytes between two calls of progress
_GAP: Final = re.compile(r"\s*")
_COMMA: Final = re.compile(r"\s*,\s*")
_SURROGATE_ESCAPE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a file gave: its runs, what could not be read, and the format of its first run."""

    transcripts: tuple[Transcript, ...]
    defects: tuple[Defect, ...]
    wire_format: WireFormat


def read(
    path: str | Path, *, progress: Progress | None = None, names: set[str] | None = None
) -> Reading:
    """Read a transcript file whole.

    Args:
        path: A file of JSON or JSON lines, plain or gzip; its name does not matter.
        progress: Called with the bytes read so far and the size of the file.
        names: Names of runs that are taken already, as by other files; extended in place.

    Returns:
        The runs in the order of the file, with unique names, and the defects by line.

    Raises:
        InvalidInput: The file is missing, unreadable, empty, or holds no run.
    """
    transcripts: list[Transcript] = []
    defects: list[Defect] = []
    for found in iter_read(path, progress=progress, names=names):
        if isinstance(found, Transcript):
            transcripts.append(found)
        else:
            defects.append(found)
    return Reading(
        transcripts=tuple(transcripts),
        defects=tuple(sorted(defects, key=lambda defect: defect.line)),
        wire_format=transcripts[0].wire_format,
    )


def iter_read(
    path: str | Path, *, progress: Progress | None = None, names: set[str] | None = None
) -> Iterator[Read]:
    """Read a transcript file and give each run and each defect as soon as it is complete.

    Only the current line is held in memory, and what belongs to a run that is not complete.

    Args:
        path: As for `read`.
        progress: As for `read`.
        names: As for `read`.

    Yields:
        Runs and defects.

    Raises:
        InvalidInput: The file is missing, unreadable, empty, or holds no run.
    """
    source = _Source(Path(path), progress)
    assembly = Assembly(source.path.name, set() if names is None else names)
    found, first = False, ""
    for read_now in _reads(source, assembly):
        found = found or isinstance(read_now, Transcript)
        if isinstance(read_now, Defect):
            where = f"line {read_now.line}: " if read_now.line else ""
            first = first or f"; {where}{read_now.problem}"
        yield read_now
    if not found:
        raise InvalidInput(f"{source.path}: it holds no run. Looked for {LOOKED_FOR}{first}")


def iter_values(path: str | Path, *, progress: Progress | None = None) -> Iterator[tuple[int, Any]]:
    """Read the JSON values of a file, whatever they are.

    Args:
        path: As for `read`.
        progress: As for `read`.

    Yields:
        The 1-based line and its value; a `Defect` in the place of one that can't be read. JSON
        that is spread over lines is one value, at line 0.

    Raises:
        InvalidInput: The file is missing, unreadable or empty.
    """
    source = _Source(Path(path), progress)
    for found in _reads(source, _Values(source.path.name)):
        yield (found.line, found) if isinstance(found, Defect) else found


def first_line(path: str | Path) -> bytes:
    """Read the first line of a file that is not blank, unzipped; empty where there is none.

    Raises:
        InvalidInput: The file is missing or unreadable.
    """
    first = next(_Source(Path(path), None).lines(), None)
    return b"" if first is None else first.raw


class _Sink(Protocol[T_co]):
    """Takes the values of a file, one after another, and gives what is complete with each."""

    @property
    def file(self) -> str:
        """The file's name, for defects."""

    def feed(self, value: Any, line: int) -> Iterator[T_co]:
        """Take one value."""

    def finish(self) -> Iterator[T_co]:
        """Give what needed the whole file."""


@dataclass(frozen=True, slots=True)
class _Values:
    """Gives the values as they are."""

    file: str

    def feed(self, value: Any, line: int) -> Iterator[tuple[int, Any]]:
        yield line, value

    def finish(self) -> Iterator[tuple[int, Any]]:
        yield from ()


def _reads(source: _Source, sink: _Sink[T_co]) -> Iterator[T_co | Defect]:
    """Read line by line where the first line is a JSON value of its own, else whole."""
    lines = source.lines()
    first = next(lines, None)
    if first is None:
        problem = source.broken or "the file is empty"
        raise InvalidInput(f"{source.path}: {problem}. Looked for {LOOKED_FOR}")
    try:
        decoded = _decode(first.raw)
    except ValueError:
        yield from _read_whole([first, *lines], sink)
    else:
        yield from _feed(decoded, first.number, sink)
        yield from _read_lines(lines, sink)
    yield from sink.finish()
    if source.broken:
        yield _line_defect(sink, source.number, source.broken)


def _feed(decoded: _Decoded, line: int, sink: _Sink[T_co]) -> Iterator[T_co | Defect]:
    value, problems = decoded
    for problem in problems:
        yield _line_defect(sink, line, problem)
    yield from sink.feed(value, line)


def _read_lines(lines: Iterable[_Line], sink: _Sink[T_co]) -> Iterator[T_co | Defect]:
    """Feed each line as a value of its own; a line that is none becomes a defect."""
    for line in lines:
        try:
            decoded = _decode(line.raw)
        except ValueError as error:
            yield _line_defect(sink, line.number, f"{error}: line left out")
        else:
            yield from _feed(decoded, line.number, sink)


def _read_whole(lines: Sequence[_Line], sink: _Sink[T_co]) -> Iterator[T_co | Defect]:
    """Feed JSON that is spread over lines; where it breaks off, what stands before it."""
    try:
        decoded = _decode(b"".join(line.raw for line in lines))
    except ValueError as error:
        yield from _salvage(lines, str(error), sink)
    else:
        yield from _feed(decoded, 0, sink)


def _salvage(lines: Sequence[_Line], problem: str, sink: _Sink[T_co]) -> Iterator[T_co | Defect]:
    """Read a broken file by lines or as a list that breaks off, whichever gives more."""
    text = b"".join(line.raw for line in lines).decode("utf-8", "replace")
    elements = _elements(text)
    if len(elements) <= sum(_is_json(line.raw) for line in lines):
        yield from _read_lines(lines, sink)
        return
    yield _line_defect(sink, lines[-1].number, f"{problem}: the list is read up to there")
    yield from sink.feed(elements, 0)


def _elements(text: str) -> list[Any]:
    """Decode the elements of a JSON list up to where it breaks off."""
    decoder, elements = json.JSONDecoder(strict=False), list[Any]()
    start = _GAP.match(text, 0)
    if start is None or not text.startswith("[", start.end()):
        return elements
    at = _GAP.match(text, start.end() + 1)
    while at is not None:
        try:
            value, end = decoder.raw_decode(text, at.end())
        except (ValueError, RecursionError):
            break
        elements.append(_mend(value, []))
        at = _COMMA.match(text, end)
    return elements


def _line_defect(sink: _Sink[Any], line: int, problem: str) -> Defect:
    record = f"line {line}" if line else ""
    return Defect(file=sink.file, line=line, record=record, problem=problem)


def _is_json(raw: bytes) -> bool:
    try:
        _decode(raw)
    except ValueError:
        return False
    return True


def _decode(raw: bytes) -> _Decoded:
    """Decode one JSON value, with what had to be mended in it.

    Raises:
        ValueError: It is no JSON value; the message quotes nothing of it.
    """
    problems: list[str] = []
    if b"\0" in raw:
        if not raw.strip(b"\0 \t\r\n"):
            raise ValueError("nothing but NUL bytes")
        problems.append("NUL bytes")
    text = _text(raw, problems)
    try:
        value = json.loads(text, strict=False, object_pairs_hook=_pairs(problems))
    except json.JSONDecodeError as error:
        cut = error.pos >= len(text.rstrip()) or "Unterminated" in error.msg
        raise ValueError(
            f"no JSON ({'it breaks off' if cut else error.msg}) at {_at(error)}"
        ) from None
    except RecursionError:
        raise ValueError("JSON nested too deeply") from None
    if _SURROGATE_ESCAPE.search(raw):
        value = _mend(value, problems)
    return value, list(dict.fromkeys(problems))


def _text(raw: bytes, problems: list[str]) -> str:
    if raw.startswith(_UTF16):
        raise ValueError("UTF-16, not UTF-8")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        problems.append(f"invalid UTF-8 at byte {error.start}: replaced by U+FFFD")
        return raw.decode("utf-8", "replace")


def _at(error: json.JSONDecodeError) -> str:
    column = f"column {error.colno}"
    return column if error.lineno == 1 else f"line {error.lineno} {column}"


def _pairs(problems: list[str]) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    """Build objects, noting keys that stand twice; the last value is read, as everywhere."""

    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        built = dict(pairs)
        if len(built) < len(pairs):
            problems.append("a key stands twice in an object: the last value is read")
        return built

    return build


def _mend(value: Any, problems: list[str]) -> Any:
    """Replace lone surrogates, which no encoding can write, by U+FFFD."""
    if isinstance(value, str):
        if not _SURROGATE.search(value):
            return value
        problems.append("lone surrogate: replaced by U+FFFD")
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_mend(item, problems) for item in value]
    if isinstance(value, dict):
        return {_mend(key, problems): _mend(item, problems) for key, item in value.items()}
    return value


@dataclass(frozen=True, slots=True)
class _Line:
    """A line that is not blank, and its 1-based number."""

    number: int
    raw: bytes


@dataclass(slots=True)
class _Source:
    """A file, plain or gzip, that is read a line at a time."""

    path: Path
    progress: Progress | None
    number: int = 0
    broken: str = ""

    def lines(self) -> Iterator[_Line]:
        """Give the lines that are not blank; what ends the file early is noted in `broken`."""
        try:
            with self.path.open("rb") as file:
                yield from self._read(file, self.path.stat().st_size)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            self.broken = f"the gzip file is damaged or cut ({error}): the rest is lost"
        except OSError as error:
            reason = error.strerror or "it cannot be read"
            raise InvalidInput(f"{self.path}: {reason}. Give a file that can be read") from error

    def _read(self, file: BufferedReader, size: int) -> Iterator[_Line]:
        told = 0
        for raw in _unzipped(file):
            self.number += 1
            done = file.tell()
            if self.progress is not None and done - told >= _TELL_EVERY:
                self.progress(done, size)
                told = done
            if raw.strip():
                yield _Line(self.number, raw)
        if self.progress is not None:
            self.progress(size, size)


def _unzipped(file: BufferedReader) -> Iterable[bytes]:
    """Give the lines of a file, without a byte order mark, unzipped where it is gzip."""
    zipped = file.peek(2)[:2] == _GZIP
    stream = cast(Iterable[bytes], gzip.GzipFile(fileobj=file)) if zipped else file
    for number, raw in enumerate(stream):
        yield raw.removeprefix(_BOM) if number == 0 else raw
