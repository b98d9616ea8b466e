"""What a file to import is, told by its first line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal, TypeAlias

from zero_mem.controller.wire.detect import shape
from zero_mem.replay.transcripts import first_line

Origin: TypeAlias = Literal["export", "transcript"]


def origin_of(path: Path) -> Origin:
    """Tell whether a file holds transcripts or what `export` wrote.

    An export has one object with a content on each line, and none of the marks of a message.

    Raises:
        InvalidInput: The file is missing or unreadable.
    """
    line = first_line(path).strip()
    try:
        first = json.loads(line)
    except ValueError:
        return "transcript" if line.startswith(b"[") or line == b"{" else "export"
    is_record = isinstance(first, dict) and "content" in first and shape(first) is None
    return "export" if is_record else "transcript"
