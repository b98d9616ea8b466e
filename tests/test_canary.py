"""One text goes everywhere it can go in an encrypted store, and stands in no file of it.

Files: two stores with their write-ahead logs and vectors, keys, backups of both kinds, what a
sync left, what every logger said at its most talkative, and what metrics and health tell.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from conversations import request, results, turn, user
from serving import loopback
from test_encryption import files_with

from zero_mem import Memory, MemoryController
from zero_mem.access import Grant
from zero_mem.backup import Schedule
from zero_mem.client import connect
from zero_mem.controller.definitions import READ_TOOL
from zero_mem.encryption import Encryption, KeyFile, MasterKey
from zero_mem.errors import Conflict, InvalidInput, LimitReached, NotAllowed, NotFound
from zero_mem.metrics.prometheus import exposition
from zero_mem.models.fake import FakeEmbedder
from zero_mem.queued import QueuedFailure
from zero_mem.space import Namespace
from zero_mem.sync import sync

pytestmark = pytest.mark.req("prod:encrypt", "prod:metrics", "prod:backup", "op:sync")

CANARY = "zanzibar-kookaburra-4711"
PARTS = ("zanzibar", "kookaburra")


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Path]:
    """Write what every logger says into a file."""
    path = tmp_path / "everything.log"
    handler = logging.FileHandler(path, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(name)s %(levelname)s %(message)s %(exc_info)s"))
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield path
    root.setLevel(before)
    root.removeHandler(handler)
    handler.close()


def opened(folder: Path, name: str) -> Memory:
    sealing = Encryption(master=MasterKey(b"m" * 32), keys=KeyFile(folder / f"{name}.keys"))
    url = f"sqlite:///{folder}/{name}.db"
    return Memory.open(url, encryption=sealing, embedder=FakeEmbedder(), durability="normal")


def talk(space: Namespace) -> None:
    """Hold a conversation: results, extracts, prompts, reads and the ledger have the text."""
    rows = json.dumps([{"name": f"{CANARY} {n}", "price": n} for n in range(60)])
    subject = MemoryController(space, conversation="c-1", share=0.1)
    given = request(
        "openai_chat",
        user(f"What is {CANARY} 7?"),
        *[turn("openai_chat", "wait", c1=("orders", {"of": CANARY}))],
        results("openai_chat", c1=rows),
        model="gpt-6.2-sol",
    )
    sent = subject.prepare(given, "openai_chat")
    assert CANARY in json.dumps(sent)
    subject.run_memory_call(READ_TOOL, {"id": "1"})
    subject.account(sent, "openai_chat", usage={"prompt_tokens": 100, "completion_tokens": 5})


def use(space: Namespace) -> None:
    """Put the text wherever a caller can put one, and fail with it in every way."""
    space.save(f"we met at {CANARY}", memory_id="m", kind="fact", key=f"{CANARY}-key")
    space.save("x", tags=[CANARY], metadata={CANARY: CANARY}, task=CANARY, session=CANARY)
    space.save("y", idempotency_key=CANARY, hold=CANARY, invalidated_by=[CANARY])
    space.save(f"queued {CANARY}", mode="queued")
    space.update("m", f"we met again at {CANARY}")
    space.decide("host", f"{CANARY}-decision", CANARY)
    space.start_task(CANARY)
    assert space.search(PARTS[0], limit=3)
    assert space.recall(f"where did we meet, {CANARY}?").items
    assert space.list({"key": f"{CANARY}-key"}).items
    assert space.count({f"metadata.{CANARY}": CANARY}) == 1
    for refused, kind in (
        (lambda: space.save("z", idempotency_key=CANARY), Conflict),
        (lambda: space.save(f"{CANARY}", key=f"{CANARY}-key", kind="fact", if_version=9), Conflict),
        (lambda: space.save(CANARY, memory_id=f"{CANARY} no id"), InvalidInput),
        (lambda: space.read("m", pattern=f"({CANARY}"), InvalidInput),
        (lambda: space.get("absent"), NotFound),
    ):
        with pytest.raises(kind):
            refused()
    space.end_task(CANARY)
    space.raise_event(CANARY)
    space.expire()


def test_no_file_has_it(tmp_path: Path, log: Path) -> None:
    with opened(tmp_path, "laptop") as memory, opened(tmp_path, "team") as team:
        space = memory.namespace("acme")
        use(space)
        talk(space)
        memory.reindex()
        space.configure(max_bytes=1)
        with pytest.raises(LimitReached):
            space.save(f"no room for {CANARY}", mode="sync")
        space.save(f"no room for {CANARY}", mode="queued")
        memory.flush()
        (failure,) = memory.queued.failures
        assert isinstance(failure, QueuedFailure)
        space.configure(max_bytes=None)
        sync(memory, team)
        assert team.namespace("acme").search(PARTS[0])
        for name, portable in (("copies", False), ("archives", True)):
            schedule = Schedule(
                folder=tmp_path / name, interval=timedelta(days=1), portable=portable
            )
            assert schedule.run(memory.storage, memory.now())
        assert memory.verify().sound
        metrics = exposition(memory).decode() + repr(memory.snapshot()) + repr(memory.health())
        (tmp_path / "metrics.txt").write_text(metrics, encoding="utf-8")
        logging.getLogger("host").info("%s", failure.error)
        assert files_with(tmp_path, CANARY, *PARTS) == []
    assert files_with(tmp_path, CANARY, *PARTS) == []
    assert len(list(tmp_path.rglob("*.backup"))) == 2
    assert log.stat().st_size


def test_no_log_has_it_where_the_store_is_served(tmp_path: Path, log: Path) -> None:
    """Neither the server's nor the client's, whatever was asked, refused or swept."""
    local = opened(tmp_path, "served")
    local.namespace("acme").save("first")
    credential = local.keyring.create("app", [Grant.parse("write:acme/**")]).credential
    with loopback() as server, server.serving(local) as url:
        with connect(url, credential=credential) as remote:
            use(remote.namespace("acme"))  # type: ignore[arg-type]
            with pytest.raises(NotAllowed):
                remote.namespace("other").list({"key": CANARY})
        local.expire()
    logged = log.read_text("utf-8")
    assert "/v1/records" in logged
    assert not any(part in logged for part in PARTS), _lines_with(logged)
    assert credential not in logged
    assert files_with(tmp_path, CANARY, *PARTS) == []


def _lines_with(logged: str) -> list[Any]:
    return [line for line in logged.splitlines() if any(part in line for part in PARTS)][:5]
