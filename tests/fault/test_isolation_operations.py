"""Isolation under many random operations; ZERO_MEM_ISOLATION=100000 runs the full number."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from isolation import Isolation

from zero_mem import Memory

pytestmark = [pytest.mark.fault, pytest.mark.req("prod:auth", "prod:namespaces")]

OPERATIONS = int(os.environ.get("ZERO_MEM_ISOLATION", "10000"))


@pytest.mark.parametrize("url", ["memory://", "sqlite:///{}/m.db"], ids=["memory", "sqlite"])
def test_no_operation_crosses_a_right(url: str, tmp_path: Path) -> None:
    with Memory.open(url.format(tmp_path), durability="normal") as memory:
        done = Isolation(memory, seed=11).run(OPERATIONS)
    assert done.done == OPERATIONS
    assert done.denied > OPERATIONS // 10
