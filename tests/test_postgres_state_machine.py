"""The same random operations on PostgreSQL and SQLite: all that can be seen is equal."""

from __future__ import annotations

from typing import ClassVar

import pytest
from hypothesis import HealthCheck, settings
from postgres_server import Server, empty
from test_state_machine import Twins

from zero_mem.storage.base import Storage
from zero_mem.storage.postgres import PostgresStorage
from zero_mem.storage.sqlite import SQLiteStorage

pytestmark = [pytest.mark.req("prod:storage", "op:save", "history:journal", "history:as-of")]


class PostgresTwins(Twins):
    """One store on a server and one in a file, under one clock."""

    server: ClassVar[Server]

    def storages(self) -> tuple[Storage, Storage]:
        empty(self.server, "store")
        url = self.server.url("store", "app")
        return (
            PostgresStorage(url, durability="normal"),
            SQLiteStorage(str(self.path), durability="normal"),
        )


@pytest.fixture(autouse=True)
def _server(postgres: Server) -> None:
    PostgresTwins.server = postgres


TestPostgresTwins = PostgresTwins.TestCase
TestPostgresTwins.settings = settings(
    max_examples=12,
    stateful_step_count=30,
    suppress_health_check=[HealthCheck.too_slow],
)
