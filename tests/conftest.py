"""Shared fixtures: where the public data is, and the requirement ids a test cites."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from postgres_server import NoServer, Server, empty, new_database, refuse_or_skip

from zero_mem import Memory
from zero_mem.space import Namespace

# The shipped suite's own assertions explain themselves too; it must be said before any import.
pytest.register_assert_rewrite("zero_mem.testing")

from zero_mem.testing.fakes import FakeClock  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("ZERO_MEM_DATA", ROOT.parent / "shared" / "data"))
DATA_REQUIRED = os.environ.get("ZERO_MEM_REQUIRE_DATA", "") not in ("", "0")

# No test is decided by a clock; in CI the same examples run each time.
settings.register_profile("zero-mem", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("zero-mem")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "req(*ids): the requirement ids that the test shows")
    config.addinivalue_line("markers", "fault: long fault tests, run by `make test-all` only")
    config.addinivalue_line("markers", "kills(count): how often processes are killed by default")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kills", type=int, help="how often writers and servers are killed")


KILLS_OF_ONE = 20
"""More kills than these are several tests, each with a store of its own."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test that takes `kills` the numbers of its kills."""
    if "kills" in metafunc.fixturenames:
        marker = metafunc.definition.get_closest_marker("kills")
        assert marker is not None, "a test that takes `kills` is marked with how many"
        count = metafunc.config.getoption("--kills") or marker.args[0]
        parts = [
            range(first, min(first + KILLS_OF_ONE, count))
            for first in range(0, count, KILLS_OF_ONE)
        ]
        names = [f"{part.start + 1}-{part.stop}" for part in parts]
        metafunc.parametrize("kills", parts, ids=names)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["memory", "sqlite"])
def memory(request: pytest.FixtureRequest, clock: FakeClock, tmp_path: Path) -> Iterator[Memory]:
    """Open each kind of store, on a clock that the test moves."""
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path / 'agent.db'}"
    with Memory.open(url, clock=clock, durability="normal", actor="test") as opened:
        yield opened


@pytest.fixture
def space(memory: Memory) -> Namespace:
    return memory.namespace("acme", "alice")


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """Run a PostgreSQL for the tests of this process; it would not survive a crash."""
    try:
        server = Server.made()
    except NoServer as error:
        refuse_or_skip(error)
    new_database(server, "store")
    yield server
    server.remove()


@pytest.fixture
def postgres_url(postgres: Server) -> str:
    """Give the URL of a database whose store, if there is one, is empty."""
    empty(postgres, "store")
    return postgres.url("store", "app")


@pytest.fixture
def shared_data() -> Callable[[str], Path]:
    """Give the path of a file of the public data, or skip where there is none.

    With ZERO_MEM_REQUIRE_DATA=1 a missing file is a failure: CI must not skip what it can run.
    """

    def path(name: str) -> Path:
        found = DATA / name
        if found.exists():
            return found
        missing = f"public data not here: {name} (set ZERO_MEM_DATA to its folder)"
        return pytest.fail(missing) if DATA_REQUIRED else pytest.skip(missing)

    return path


def json_lines(path: Path) -> Iterator[Any]:
    """Read a gzip file of JSON lines."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)
