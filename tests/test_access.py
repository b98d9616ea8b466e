"""API keys: what a credential does not give is not there, whichever way it is asked for."""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from clocks import Clock
from hypothesis import given
from hypothesis import strategies as st
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


def test_the_name_in_the_journal_is_the_keys_whatever_the_stores_own(tmp_path: Path) -> None:
    with Memory.open(f"sqlite:///{tmp_path}/m.db", actor="server") as memory:
        guarded(memory, "write:a").namespace("a").save("tea")
        assert [entry.actor for entry in memory.namespace("a").history("1")] == ["key:app"]


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


# Keys that administer keys


@pytest.mark.parametrize(
    ("wide", "narrow", "contained"),
    [
        ("acme/**", "acme", True),
        ("acme/**", "acme/alice/**", True),
        ("acme/**", "acme/*", True),
        ("acme/*", "acme/alice", True),
        ("**", "a/*/c/**", True),
        ("*/alice", "acme/alice", True),
        ("acme", "acme/**", False),
        ("acme/*", "acme/**", False),
        ("acme/*", "acme/alice/x", False),
        ("acme/*/**", "acme/**", False),
        ("acme/alice", "acme/*", False),
        ("acme/**", "*/**", False),
        ("acme/**", "acme-corp/**", False),
    ],
)
def test_a_pattern_contains_what_it_covers_whole(wide: str, narrow: str, contained: bool) -> None:
    pattern = Grant.parse(f"read:{narrow}").pattern
    assert Grant.parse(f"admin:{wide}").contains(pattern) is contained


SEGMENTS = st.sampled_from(["a", "b", "*"])
PATTERNS = st.builds(
    lambda segments, below: (*segments, *(["**"] if below or not segments else [])),
    st.lists(SEGMENTS, max_size=3),
    st.booleans(),
)


@given(wide=PATTERNS, narrow=PATTERNS)
def test_what_a_pattern_contains_it_covers(wide: tuple[str, ...], narrow: tuple[str, ...]) -> None:
    outer, inner = Grant.of("admin", wide), Grant.of("read", narrow)
    paths = [path for n in range(1, 5) for path in itertools.product("abc", repeat=n)]
    escapes = [path for path in paths if inner.covers(path) and not outer.covers(path)]
    assert outer.contains(inner.pattern) is (not escapes)


def test_an_admin_administers_keys_within_what_it_holds(memory: Memory) -> None:
    above = made(memory, "admin:**").key
    across = made(memory, "read:acme/**", "read:other").key
    admin = guarded(memory, "admin:acme/**", "admin:own")
    mine = admin.key
    assert mine is not None
    new = admin.keyring.create("bob", [Grant.parse("write:acme/bob"), Grant.parse("admin:acme/x")])
    assert new.key.made_by == mine.key_id
    memory.guarded(new.credential).namespace("acme", "bob").save("tea")
    assert {key.key_id for key in admin.keyring.every()} == {mine.key_id, new.key.key_id}
    for grants in (["read:other"], ["read:acme/**", "read:other"], ["read:**"], ["read:acme-x"]):
        with pytest.raises(NotAllowed, match="within"):
            admin.keyring.create("more", [Grant.parse(each) for each in grants])
    for beyond in (above, across):
        with pytest.raises(NotFound):
            admin.keyring.revoke(beyond.key_id)
    assert admin.keyring.revoke(new.key.key_id).revoked_at is not None
    with pytest.raises(NotAllowed):
        memory.guarded(new.credential)
    assert [key.revoked_at for key in memory.keyring.every() if key.key_id != new.key.key_id] == [
        None
    ] * 3


def test_below_the_keyring_no_note_of_another_key_can_be_had(memory: Memory) -> None:
    above = made(memory, "admin:**").key
    storage = guarded(memory, "admin:acme/**").storage
    name = f"key.{above.key_id}"
    assert storage.note(name) is None
    assert name not in storage.notes("key.")
    note = memory.storage.note(name)
    assert note is not None
    for value in (note, note.replace('["**"]', '["acme"]')):
        with pytest.raises(NotAllowed):
            storage.keep_note(name, value)
    for other in ("swept", "backed-up", "key", ""):
        with pytest.raises(NotAllowed):
            storage.notes(other)
        with pytest.raises(NotAllowed):
            storage.keep_note(other, "{}")
    assert memory.storage.note(name) == note


def test_a_key_without_admin_knows_of_no_key(memory: Memory) -> None:
    new = made(memory, "write:acme/**")
    mine = memory.guarded(new.credential)
    asks: list[Callable[[], object]] = [
        mine.keyring.every,
        lambda: mine.keyring.revoke(new.key.key_id),
        lambda: mine.keyring.create("more", [Grant.parse("read:acme")]),
    ]
    for ask in asks:
        with pytest.raises(NotAllowed, match="administer"):
            ask()


def test_no_key_outlives_the_one_that_made_it(memory: Memory, clock: Clock) -> None:
    mine = memory.guarded(made(memory, "admin:a/**", expires_in=3600).credential)
    grants = [Grant.parse("read:a")]
    assert mine.keyring.create("as long", grants).key.expires_at == NOW + timedelta(hours=1)
    clock.now += timedelta(minutes=30)
    assert mine.keyring.create("shorter", grants, expires_in=timedelta(minutes=30)).credential
    with pytest.raises(NotAllowed, match="no later"):
        mine.keyring.create("longer", grants, expires_in=1801)
    assert {key.name for key in memory.keyring.every()} == {"app", "as long", "shorter"}


def test_keys_are_administered_on_an_event_loop(tmp_path: Path) -> None:
    import asyncio

    from zero_mem import AsyncMemory

    async def program() -> list[str]:
        async with AsyncMemory.open(f"sqlite:///{tmp_path}/m.db") as memory:
            new = await memory.keyring.create("app", [Grant.parse("read:a")])
            await memory.keyring.revoke(new.key.key_id)
            return [key.name for key in await memory.keyring.every() if key.revoked_at]

    assert asyncio.run(program()) == ["app"]
