"""API keys: what a credential does not give is not there, whichever way it is asked for."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from clocks import Clock
from isolation import Isolation

from zero_mem import Conflict, InvalidInput, Memory, NotAllowed, NotFound
from zero_mem.access import Grant, NewKey
from zero_mem.exchange import export_records
from zero_mem.why import why

pytestmark = pytest.mark.req("prod:auth", "prod:namespaces")

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def clock() -> Clock:
    return Clock(NOW)


@pytest.fixture(params=["memory", "sqlite"])
def memory(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[Memory]:
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/m.db"
    with Memory.open(url, clock=clock) as memory:
        yield memory


def made(memory: Memory, *grants: str, **options: Any) -> NewKey:
    return memory.keyring.create("app", [Grant.parse(each) for each in grants], **options)


def guarded(memory: Memory, *grants: str) -> Memory:
    return memory.guarded(made(memory, *grants).credential)


# Grants


@pytest.mark.parametrize(
    ("pattern", "path", "covered"),
    [
        ("acme", ("acme",), True),
        ("acme", ("acme", "x"), False),
        ("acme/*", ("acme", "x"), True),
        ("acme/*", ("acme",), False),
        ("acme/*", ("acme", "x", "y"), False),
        ("acme/**", ("acme",), True),
        ("acme/**", ("acme", "x", "y"), True),
        ("acme/**", ("acme-corp",), False),
        ("*/alice", ("acme", "alice"), True),
        ("**", ("anything", "at", "all"), True),
        ('["a","b:c"]', ("a", "b:c"), True),
        ('["a","b:c"]', ("a", "b", "c"), False),
    ],
)
def test_a_pattern_covers_whole_segments(
    pattern: str, path: tuple[str, ...], covered: bool
) -> None:
    grant = Grant.parse(f"read:{pattern}")
    assert grant.covers(path) == covered
    assert Grant.parse(str(grant)) == grant


@pytest.mark.parametrize(
    "text",
    ["acme", "own:acme", "read:", "read:a/**/b", "read:a\n", "read:[1]", "read:[", "read:a//b"],
)
def test_what_is_no_grant_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        Grant.parse(text)


# Keys


def test_a_key_opens_what_it_grants_and_nothing_else(memory: Memory) -> None:
    memory.namespace("acme", "bob").save("the code is 4711", memory_id="code")
    mine = guarded(memory, "write:acme/alice", "read:shared/**")
    space = mine.namespace("acme", "alice")
    assert space.save("tea").memory_id == "1"
    assert space.get("1").content == "tea"
    with pytest.raises(NotFound):
        space.get("code")
    with pytest.raises(NotAllowed, match="write namespace shared"):
        mine.namespace("shared").save("mine now")
    assert mine.namespace("shared").list().items == ()


REACHES: dict[str, Callable[[Memory], object]] = {
    "get": lambda m: m.namespace("b").get("x"),
    "list": lambda m: m.namespace("b").list(),
    "search": lambda m: m.namespace("b").search("secret"),
    "recall": lambda m: m.namespace("b").recall("secret"),
    "prompt": lambda m: m.namespace("b").recall_for_prompt(["x"]),
    "read": lambda m: m.namespace("b").read("x"),
    "history": lambda m: m.namespace("b").history("x"),
    "as of": lambda m: m.namespace("b").as_of(NOW).list(),
    "count": lambda m: m.namespace("b").count(),
    "save": lambda m: m.namespace("b").save("x"),
    "update": lambda m: m.namespace("b").update("x", "y"),
    "delete all": lambda m: m.namespace("b").delete_many(everything=True),
    "purge": lambda m: m.namespace("b").purge("x"),
    "expire": lambda m: m.namespace("b").expire(),
    "decisions": lambda m: m.namespace("b").decisions("host"),
    "decide": lambda m: m.namespace("b").decide("host", "k", "v"),
    "settings": lambda m: m.namespace("b").settings(),
    "export": lambda m: export_records(m.namespace("b"), io.StringIO()),
    "why": lambda m: why(m.namespace("b"), "x"),
    "an unknown namespace": lambda m: m.namespace("never made").get("x"),
}


@pytest.mark.req("handle:scope")
@pytest.mark.parametrize("reach", REACHES, ids=str)
def test_every_way_into_another_namespace_is_denied_alike(memory: Memory, reach: str) -> None:
    memory.namespace("b").save("secret", memory_id="x")
    theirs = guarded(memory, "admin:a/**")
    with pytest.raises(NotAllowed) as denied:
        REACHES[reach](theirs)
    assert "secret" not in str(denied.value)
    assert memory.namespace("b").get("x").content == "secret"


def test_a_subtree_shows_only_what_may_be_read(memory: Memory) -> None:
    for name in ("alice", "bob"):
        memory.namespace("acme", name).save(f"tea of {name}")
    theirs = guarded(memory, "read:acme/alice")
    assert theirs.subtree("acme").namespaces() == [("acme", "alice")]
    assert [hit.record.text for hit in theirs.subtree().search("tea")] == ["tea of alice"]
    assert theirs.stats().records == 1


def test_a_reader_reads_and_its_reads_count_as_use(memory: Memory) -> None:
    memory.namespace("a").save("tea", memory_id="x")
    reader = guarded(memory, "read:a")
    assert "tea" in reader.namespace("a").recall_for_prompt(["x"])
    assert memory.namespace("a").get("x").access_count == 1
    space = reader.namespace("a")
    writes: list[Callable[[], object]] = [
        lambda: space.save("milk"),
        lambda: space.update("x", "milk"),
        lambda: space.archive("x"),
        lambda: space.end_task("t"),
        lambda: space.hold("me", "x"),
    ]
    for write in writes:
        with pytest.raises(NotAllowed, match="write"):
            write()
    assert memory.namespace("a").get("x").content == "tea"


def test_only_an_admin_purges_and_configures(memory: Memory) -> None:
    memory.namespace("a").save("tea", memory_id="x")
    writer, admin = guarded(memory, "write:a"), guarded(memory, "admin:a")
    with pytest.raises(NotAllowed, match="admin"):
        writer.namespace("a").purge("x")
    with pytest.raises(NotAllowed, match="admin"):
        writer.namespace("a").configure(max_memory_items=1)
    assert writer.namespace("a").get("x").content == "tea"
    admin.namespace("a").configure(max_memory_items=5)
    admin.namespace("a").purge("x")


@pytest.mark.req("history:journal")
def test_the_journal_names_the_key_that_wrote(memory: Memory) -> None:
    guarded(memory, "write:a").namespace("a").save("tea")
    assert [entry.actor for entry in memory.namespace("a").history("1")] == ["key:app"]


def test_a_credential_can_not_make_itself_another(memory: Memory) -> None:
    mine = guarded(memory, "admin:**")
    with pytest.raises(NotAllowed):
        mine.keyring.create("more", [Grant.parse("admin:**")])
    with pytest.raises(NotAllowed):
        mine.keyring.every()


def test_a_bad_credential_is_refused_alike(memory: Memory, clock: Clock) -> None:
    revoked = made(memory, "read:a")
    memory.keyring.revoke(revoked.key.key_id)
    expiring = made(memory, "read:a", expires_in=timedelta(days=1))
    memory.guarded(expiring.credential)
    clock.now += timedelta(days=1)
    wrong = expiring.credential[:-1] + ("a" if expiring.credential[-1] != "a" else "b")
    said = set()
    for credential in ("", "zm_x", wrong, revoked.credential, expiring.credential, "密" * 40):
        with pytest.raises(NotAllowed) as refused:
            memory.guarded(credential)
        said.add(str(refused.value))
    assert len(said) == 1


def test_the_store_keeps_no_secret(tmp_path: Path) -> None:
    with Memory.open(f"sqlite:///{tmp_path}/m.db") as memory:
        new = made(memory, "read:a")
        secret = new.credential.rpartition("_")[2]
        assert secret not in repr(new)
        assert secret not in json.dumps([repr(key) for key in memory.keyring.every()])
    assert all(secret.encode() not in path.read_bytes() for path in tmp_path.iterdir())


def test_a_store_opens_with_a_credential_of_its_own(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/m.db"
    with Memory.open(url) as memory:
        credential = made(memory, "write:a").credential
    with Memory.open(url, credential=credential) as memory:
        memory.namespace("a").save("tea")
        with pytest.raises(NotAllowed):
            memory.namespace("b").save("tea")
    with pytest.raises(NotAllowed):
        Memory.open(url, credential="zm_nothing")


@pytest.mark.parametrize("grants", [[], ["own:a"]])
def test_a_key_without_a_right_is_not_made(memory: Memory, grants: list[str]) -> None:
    with pytest.raises(InvalidInput):
        made(memory, *grants)
    assert memory.keyring.every() == []


def test_an_unknown_key_can_not_be_revoked(memory: Memory) -> None:
    with pytest.raises(NotFound):
        memory.keyring.revoke("nobody")


def test_conflicts_are_still_conflicts(memory: Memory) -> None:
    space = guarded(memory, "write:a").namespace("a")
    space.save("tea", memory_id="x")
    with pytest.raises(Conflict):
        space.save("milk", memory_id="x", if_version=7)


async def _async_read(url: str, credential: str) -> str:
    from zero_mem import AsyncMemory

    async with AsyncMemory.open(url) as memory:
        theirs = await memory.guarded(credential)
        with pytest.raises(NotAllowed):
            await theirs.namespace("b").list()
        record = await theirs.namespace("a").get("x")
        await theirs.close()
        return record.text


def test_the_same_holds_on_an_event_loop(tmp_path: Path) -> None:
    import asyncio

    url = f"sqlite:///{tmp_path}/m.db"
    with Memory.open(url) as memory:
        memory.namespace("a").save("tea", memory_id="x")
        credential = made(memory, "read:a").credential
    assert asyncio.run(_async_read(url, credential)) == "tea"


def test_random_operations_never_cross_a_right(memory: Memory) -> None:
    assert Isolation(memory, seed=7).run(1500).denied > 100
