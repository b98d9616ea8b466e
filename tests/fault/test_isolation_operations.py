"""Isolation under many random operations; ZERO_MEM_ISOLATION=100000 runs the full number."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from isolation import Isolation

from zero_mem import Memory

pytestmark = [pytest.mark.fault, pytest.mark.req("prod:auth", "prod:namespaces")]

OPERATIONS = {"memory": 10_000, "sqlite": 10_000, "postgres": 3_000}


@pytest.mark.parametrize("store", OPERATIONS)
def test_no_operation_crosses_a_right(
    store: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    count = int(os.environ.get("ZERO_MEM_ISOLATION") or OPERATIONS[store])
    urls = {"memory": "memory://", "sqlite": f"sqlite:///{tmp_path}/m.db"}
    url = urls.get(store) or request.getfixturevalue("postgres_url")
    with Memory.open(url, durability="normal") as memory:
        done = Isolation(memory, seed=11).run(count)
    assert done.done == count
    assert done.denied > count // 10
