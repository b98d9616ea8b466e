"""The session so far, as far as its own file tells."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from zero_mem.controller.messages import Message
from zero_mem.controller.wire.claude_code import parse

MOST_BYTES: Final = 8_000_000
"""So much of the end of a session's file is read: a hook must not hold its client up."""


def spoken(transcript: str) -> tuple[Message, ...]:
    """Read the messages of the main conversation since its last compaction.

    Args:
        transcript: The path of the session's file.

    Returns:
        Nothing where the file can't be read: a decision is then made without it.
    """
    runs = parse(_entries(Path(transcript))).transcripts if transcript else ()
    main = [run for run in runs if "/" not in run.name]
    return main[-1].messages if main else ()


def _entries(path: Path) -> Iterator[Any]:
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - MOST_BYTES))
            lines = file.read().split(b"\n")
    except OSError:
        return
    # What a cut, or a line that is still being written, leaves is not an entry.
    for line in lines:
        try:
            yield json.loads(line)
        except ValueError:
            continue
