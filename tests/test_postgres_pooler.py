"""pgbouncer in transaction mode may stand between: nothing stays with a connection."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from postgres_server import NoServer, Server, free_port, identity, refuse_or_skip

from zero_mem import Memory
from zero_mem.storage.base import Storage
from zero_mem.storage.postgres import PostgresStorage
from zero_mem.testing.audit import faults
from zero_mem.testing.keys import KeyConformance
from zero_mem.testing.primitives import NamespacePrimitives
from zero_mem.testing.time_travel import PurgeConformance
from zero_mem.testing.writes import SaveConformance

pytestmark = pytest.mark.req("prod:storage")

SERVER_CONNECTIONS = 3
"""So few that every client gets the connection that another has just used."""

CONFIGURATION = """
[databases]
store = host=127.0.0.1 port={server} user=app dbname=store
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {connections}
max_client_conn = 200
ignore_startup_parameters = extra_float_digits
"""


@pytest.fixture(scope="module")
def pooler(postgres: Server) -> Iterator[int]:
    """Run pgbouncer before the server; give its port."""
    program = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        refuse_or_skip(NoServer("no pgbouncer: apt-get install pgbouncer"))
    folder = Path(tempfile.mkdtemp(prefix="zero-mem-pgbouncer-"))
    folder.chmod(0o755)
    port = free_port()
    (folder / "pgbouncer.ini").write_text(
        CONFIGURATION.format(server=postgres.port, port=port, connections=SERVER_CONNECTIONS)
    )
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(
            [program, str(folder / "pgbouncer.ini")], stdout=log, stderr=log, cwd="/", **identity()
        )
    try:
        _wait(port, process, folder / "log")
        yield port
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder)


def _wait(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(1000):
        assert process.poll() is None, log.read_text()
        with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.01)
    pytest.fail("pgbouncer does not answer")


@pytest.fixture
def url(postgres_url: str, pooler: int) -> str:
    """Give the URL of the empty store through the pooler."""
    return f"postgresql://app@127.0.0.1:{pooler}/store"


class TestThroughPgbouncer(NamespacePrimitives, SaveConformance, KeyConformance, PurgeConformance):
    @pytest.fixture
    def storage(self, url: str) -> Iterator[Storage]:
        storage = PostgresStorage(url, durability="normal")
        yield storage
        storage.close()


def test_clients_that_share_connections_see_their_own_namespaces(
    url: str, postgres: Server
) -> None:
    with Memory.open(f"{url}?connections=12", durability="normal") as memory:

        def work(number: int) -> list[str]:
            space = memory.namespace("tenant", str(number))
            for turn in range(10):
                space.save(f"{number}: {turn}")
                assert space.search(str(turn)) != []
            space.save_many([{"content": f"{number}: more {n % 5}"} for n in range(150)])
            return [record.text.partition(":")[0] for record in space.each()]

        with ThreadPoolExecutor(12) as pool:
            for number, owners in enumerate(pool.map(work, range(12))):
                assert owners == [str(number)] * 160
        assert faults(memory.storage) == []
    held = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'app'"
    assert postgres.run(held)[0][0] <= SERVER_CONNECTIONS


def test_a_connection_goes_back_without_a_trace(url: str) -> None:
    with Memory.open(url, durability="normal") as memory:
        memory.namespace("acme").save("text")
        memory.namespace("acme").list()
    with psycopg.connect(url, prepare_threshold=None, autocommit=True) as connection:
        for _ in range(2 * SERVER_CONNECTIONS):
            left = connection.execute(
                "SELECT current_setting('zero_mem.namespace', true),"
                " current_setting('zero_mem.path', true),"
                " (SELECT count(*) FROM pg_prepared_statements),"
                " (SELECT count(*) FROM zero_mem.record)"
            ).fetchone()
            assert left is not None
            assert left[0] in (None, "")
            assert left[1] in (None, "")
            assert left[2:] == (0, 0)
