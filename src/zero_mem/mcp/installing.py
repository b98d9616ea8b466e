"""Putting the server into a client's settings, and taking exactly that out again.

A file is edited as text, so that what others wrote in it stays to the byte. What the edited text
means is compared with what it should mean before anything is written.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from zero_mem.errors import InvalidInput
from zero_mem.mcp.clients import Client
from zero_mem.mcp.jsonc import Document, placed, removed
from zero_mem.settings_file import Change, noted, read

NAME: Final = "zero-mem"
"""The server's name in a client's settings, unless another is chosen."""

_NAMES: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MARK: Final = "\ufeff"
_HEADER: Final = re.compile(r"^[ \t]*\[", re.MULTILINE)
_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")
_BLANK_OR_COMMENT: Final = re.compile(r"[ \t]*(?:#[^\n]*)?\r?\n")


def installing(client: Client, path: Path, command: Sequence[str], *, name: str = NAME) -> Change:
    """Say how a client's settings become ones that start the server.

    Args:
        client: The program.
        path: Its settings file; it may not be there yet.
        command: What starts the server.
        name: The server's name there.

    Raises:
        InvalidInput: The file is not what the program writes; nothing is changed.
    """
    _check_name(name)
    before = read(path)
    text = _decoded(path, before)
    entry = client.entry(command)
    with_entry = _edited(path, lambda: _put(client, text, name, entry))
    rest = _without(client, path, text, name)
    return Change(
        path=path,
        before=before,
        after=with_entry.encode(),
        without=None if before is None else rest.encode(),
    )


def uninstalling(client: Client, path: Path, note: Path, *, name: str = NAME) -> Change:
    """Say how a client's settings become what they were, with all that was changed in them since.

    Args:
        client: The program.
        path: Its settings file.
        note: Where `settings_file.apply` noted what stood there before.
        name: The server's name there.

    Raises:
        InvalidInput: The file is not what the program writes; nothing is changed.
    """
    _check_name(name)
    before, known = read(path), noted(note)
    if known is not None and known.is_untouched(before):
        return Change(path=path, before=before, after=known.original, without=known.original)
    if before is None:
        return Change(path=path, before=None, after=None, without=None)
    rest = _without(client, path, _decoded(path, before), name)
    if known is not None and rest != _decoded(path, before):
        rest = _edited(path, lambda: _without_empty(client, rest, known.before))
    return Change(path=path, before=before, after=rest.encode(), without=rest.encode())


def note_path(folder: Path, path: Path, name: str) -> Path:
    """Give where the note on a settings file is kept.

    Args:
        folder: Ours, in the user's data.
        path: The settings file.
        name: The server's name there.
    """
    place = hashlib.sha256(f"{path.absolute()}\0{name}".encode()).hexdigest()[:16]
    return folder / f"{path.name.lstrip('.')}-{place}.json"


def _check_name(name: str) -> None:
    if not _NAMES.fullmatch(name):
        raise InvalidInput("a server's name is 1 to 64 of A-Z a-z 0-9 _ -")


def _decoded(path: Path, data: bytes | None) -> str:
    try:
        return (data or b"").decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{path} is not UTF-8 at byte {error.start}; nothing was changed"
        ) from None


def _edited(path: Path, edit: Callable[[], str]) -> str:
    try:
        return edit()
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}; nothing was changed") from None


def _without(client: Client, path: Path, text: str, name: str) -> str:
    return _edited(path, lambda: _removed(client, text, name))


# Each format


def _put(client: Client, text: str, name: str, entry: Mapping[str, Any]) -> str:
    if client.format == "toml":
        return _put_toml(text, client.servers, name, entry)
    mark, document = _document(client, text)
    where = (client.servers, name)
    _check_object(document.value.get(client.servers, {}), client.servers)
    if document.has(where) and document.value[client.servers][name] == entry:
        return text
    new = document.put(where, entry)
    _check_meaning(_document(client, new)[1].value, placed(document.value, where, entry))
    return mark + new


def _removed(client: Client, text: str, name: str) -> str:
    if client.format == "toml":
        return _removed_toml(text, client.servers, name)
    mark, document = _document(client, text)
    where = (client.servers, name)
    if not document.has(where):
        return text
    new = document.without(where)
    _check_meaning(_document(client, new)[1].value, removed(document.value, where))
    return mark + new


def _without_empty(client: Client, text: str, original: str | None) -> str:
    """Take out what held servers where it is empty now and was not there at first."""
    if client.format == "toml":
        return text
    mark, document = _document(client, text)
    at_first = _document(client, original or "")[1].value
    if document.value.get(client.servers) == {} and client.servers not in at_first:
        return mark + document.without((client.servers,))
    return text


def _document(client: Client, text: str) -> tuple[str, Document]:
    mark = _MARK if text.startswith(_MARK) else ""
    return mark, Document(text.removeprefix(mark), lenient=client.format == "jsonc")


def _check_object(value: Any, name: str) -> None:
    if not isinstance(value, dict):
        raise InvalidInput(f"{name} is no object in it")


def _check_meaning(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    if found != wanted:
        raise InvalidInput("it is written in a way that can't be edited safely")


def _put_toml(text: str, servers: str, name: str, entry: Mapping[str, Any]) -> str:
    parsed = _toml(text)
    _check_object(parsed.get(servers, {}), servers)
    known = parsed.get(servers, {}).get(name)
    if known == entry:
        return text
    newline = "\r\n" if "\r\n" in text else "\n"
    fields = (f"{key} = {_toml_value(value)}" for key, value in entry.items())
    block = newline.join([f"[{servers}.{name}]", *fields]) + newline
    wanted = placed(parsed, (servers, name), dict(entry))
    if known is not None:
        news = (
            text[:start] + block + text[end:] for start, end in _toml_blocks(text, servers, name)
        )
        return _first_that_means(wanted, news)
    gap = newline if text and not text.endswith("\n") else ""
    return _first_that_means(wanted, [text + gap + (newline if text.strip() else "") + block])


def _removed_toml(text: str, servers: str, name: str) -> str:
    parsed = _toml(text)
    if name not in parsed.get(servers, {}):
        return text
    wanted = removed(parsed, (servers, name))
    news = (_cut(text, start, end) for start, end in _toml_blocks(text, servers, name))
    return _first_that_means(wanted, news, may_lack=None if wanted[servers] else servers)


def _cut(text: str, start: int, end: int) -> str:
    """Take a block out, and before one at the end the empty line that came with it."""
    head = text[:start]
    if end == len(text):
        for empty in ("\n\n", "\n\r\n"):
            head = head[: 1 - len(empty)] if head.endswith(empty) else head
    return head + text[end:]


def _first_that_means(
    wanted: Mapping[str, Any], texts: Iterable[str], *, may_lack: str | None = None
) -> str:
    """Give the first text with a meaning.

    Args:
        wanted: The meaning.
        texts: What to choose from; a header may stand in a string too.
        may_lack: A table that goes with the last table in it.
    """
    for text in texts:
        with suppress(InvalidInput):
            found = _toml(text)
            if found == wanted or (may_lack and found == removed(wanted, (may_lack,))):
                return text
    raise InvalidInput("it is written in a way that can't be edited safely")


def _toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text.replace("\r\n", "\n").removeprefix(_MARK))
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"it is no TOML: {error}") from None


def _toml_value(value: Any) -> str:
    # A JSON text or list of texts is one in TOML too.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml_blocks(text: str, servers: str, name: str) -> Iterator[tuple[int, int]]:
    """Find the tables that may be a server's, each with those in it."""
    ours = re.compile(
        rf"^[ \t]*\[[ \t]*[\"']?{re.escape(servers)}[\"']?[ \t]*\.[ \t]*[\"']?"
        rf"{re.escape(name)}[\"']?[ \t]*(?:\]|\.)",
        re.MULTILINE,
    )
    for first in ours.finditer(text):
        headers = (header.start() for header in _HEADER.finditer(text, first.end()))
        end = next((at for at in headers if ours.match(text, at) is None), len(text))
        if end < len(text):
            # What stands before the next table belongs to that one.
            lines = _LINE.findall(text, first.start(), end)
            while lines and _BLANK_OR_COMMENT.fullmatch(lines[-1]):
                end -= len(lines.pop())
        yield first.start(), end
