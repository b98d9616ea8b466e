"""kill -9 of writers and of PostgreSQL at random points: nothing acknowledged is lost.

`make test-all ARGS="--kills 500 -k postgres_kill"` is the full form: each 500 times.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from contextlib import suppress

import pytest
from acknowledged import Told, begin_writing, compare, hear_out, kill_writer, take_in
from postgres_server import NoServer, Server, new_database, refuse_or_skip
from processes.mixed_writer import LOST

from zero_mem.storage.postgres import PostgresStorage
from zero_mem.testing.audit import faults

pytestmark = [
    pytest.mark.fault,
    pytest.mark.req("prod:storage", "op:order", "history:journal", "pkg:errors"),
]

# Processes are killed, not the machine: what they wrote is with the operating system.
SETTINGS = {"fsync": "off", "synchronous_commit": "on", "max_wal_size": "64MB"}
WRITERS = 2
GENERATION = 10
"""So many rounds work on the same records; then new writers begin with none."""


@pytest.fixture
def server() -> Iterator[Server]:
    try:
        server = Server.made(SETTINGS)
    except NoServer as error:
        refuse_or_skip(error)
    new_database(server, "store")
    yield server
    server.remove()


def start_again(server: Server) -> None:
    """Start a server that was killed, once the system has let go of what it held."""
    for _ in range(20):
        with suppress(NoServer):
            server.start()
            return
    pytest.fail("the server does not start again")


def assert_sound(url: str, names: Iterable[str]) -> None:
    """Journal, records and index of some writers agree with each other."""
    storage = PostgresStorage(url)
    assert [fault for name in names for fault in faults(storage, ("writers", name))] == []
    storage.close()


@pytest.mark.kills(8)
@pytest.mark.parametrize("killed", ["writers", "server"])
def test_what_was_acknowledged_survives_a_kill(server: Server, killed: str, kills: range) -> None:
    url = f"{server.url('store', 'app')}?connections=2&patience=1"
    everybody: dict[str, Told] = {}
    # A round kills the one server, or every writer.
    rounds = kills[:: WRITERS if killed == "writers" else 1]
    for turn, seed in enumerate(rounds, start=1):
        names = [f"writer-{turn // GENERATION}-{number}" for number in range(WRITERS)]
        told = {name: everybody.setdefault(name, Told()) for name in names}
        running = begin_writing(url, seed, told, random.Random(seed))
        if killed == "server":
            server.kill()
            assert {hear_out(running[name], told[name]) for name in told} == {LOST}
            start_again(server)
        else:
            for name, process in running.items():
                kill_writer(process, told[name])
        compare(url, told)
        take_in(url, told)
        if turn % GENERATION == GENERATION - 1 or turn == len(rounds):
            assert_sound(url, told)
    compare(url, everybody)
    assert sum(len(each.records) for each in everybody.values()) > len(rounds)
