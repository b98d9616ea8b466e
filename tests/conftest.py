"""Shared fixtures: where the public data is, and the requirement ids a test cites."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("ZERO_MEM_DATA", ROOT.parent / "shared" / "data"))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "req(*ids): the requirement ids that the test shows")
    config.addinivalue_line("markers", "fault: long fault tests, run by `make test-all` only")


@pytest.fixture
def shared_data() -> Callable[[str], Path]:
    """Give the path of a file of the public data, or skip where there is none."""

    def path(name: str) -> Path:
        found = DATA / name
        if not found.exists():
            pytest.skip(f"public data not here: {name} (set ZERO_MEM_DATA to its folder)")
        return found

    return path


def json_lines(path: Path) -> Iterator[Any]:
    """Read a gzip file of JSON lines."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)
