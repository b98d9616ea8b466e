"""Write a store of the present schema to tests/fixtures/stores, for later versions to open.

Usage: python tools/make_store.py [POSTGRESQL_URL PG_DUMP]

With the URL of an empty database, and the path of the program pg_dump, it is a PostgreSQL store.

Run it once for each schema, before the script that changes it is added. It refuses to write over
a store that is there: those are what earlier versions wrote.
"""

from __future__ import annotations

import gzip
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

from zero_mem import Blob, Json, Memory
from zero_mem.access import Grant
from zero_mem.storage.postgres_schema import SCHEMA_VERSION
from zero_mem.storage.sqlite_schema import schema_version
from zero_mem.testing import FakeClock

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "stores"


def main(*arguments: str) -> int:
    """Write the store, unless it is there."""
    postgres = bool(arguments)
    name = f"postgres{SCHEMA_VERSION}.sql.gz" if postgres else f"schema{schema_version()}.db"
    target = FOLDER / name
    if target.exists():
        print(f"{target.name} is there, and is what an earlier version wrote")
        return 1
    FOLDER.mkdir(parents=True, exist_ok=True)
    if postgres:
        write_dump(target, *arguments)
    else:
        write_file(target)
    print(f"{target.name}: {target.stat().st_size} bytes")
    return 0


def write_file(target: Path) -> None:
    """Write an SQLite store."""
    work = target.with_suffix(".work")
    with Memory.open(f"sqlite:///{work}", clock=FakeClock(), actor="ann") as memory:
        fill(memory)
        memory.backup(target)
    work.unlink()


def write_dump(target: Path, url: str, program: str) -> None:
    """Write a PostgreSQL store, as statements that make it again."""
    with Memory.open(url, clock=FakeClock(), actor="ann") as memory:
        fill(memory)
    command = [program, "--inserts", "--schema=zero_mem", f"--dbname={url}"]
    # The owner of the tables stands behind their policies; a superuser does not.
    done = subprocess.run(command, capture_output=True, check=True)
    lines = [
        line
        for line in done.stdout.decode("utf-8").splitlines()
        # Neither comments nor what only some versions of the server know.
        if line and not line.startswith(("--", "\\", "SET transaction_timeout"))
    ]
    target.write_bytes(gzip.compress("\n".join(lines).encode("utf-8"), mtime=0))


def fill(memory: Memory) -> None:
    """Write something of every sort that a store can hold."""
    space = memory.namespace("acme", "alice")
    space.configure(kind="note", max_memory_items=100)
    space.save("Prefers window seats", kind="user_pref", key="seat", tags=["travel"])
    space.update("1", content="Prefers aisle seats")
    space.save("用户正在申请退款，流程到第二步", kind="case", task="refund", metadata={"order": 57})
    space.save(Json({"items": [{"id": "a1", "price": 9.5}]}), form="working", speaker="shop")
    space.save(Blob(data=b"\x89PNG\0", media_type="image/png"), expires_in=timedelta(days=9000))
    space.save("archived one", memory_id="old", session="s1")
    space.archive("old")
    space.save("deleted one")
    space.delete("5")
    space.save("a purged one")
    space.purge("6")
    space.save("once", idempotency_key="once", hold="conversation")
    space.decide("host", "prompt", "[1]", memory_id="1")
    memory.namespace("acme").save("another namespace")
    memory.keyring.create("app", [Grant.parse("read:acme/**")])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
