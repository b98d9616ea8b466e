"""Encryption at rest: nothing that was said stands in any file of the store."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from zero_mem import Conflict, InvalidInput, Json, Memory, NotAllowed, NotFound
from zero_mem.backup import verify_file
from zero_mem.doctor import examine
from zero_mem.encryption import Encryption, KeyFile, KeyService, MasterKey, SealedStorage
from zero_mem.errors import StoreCorrupt
from zero_mem.restore import restore
from zero_mem.storage.seal import Seal
from zero_mem.sync import sync
from zero_mem.testing import FakeClock

pytestmark = pytest.mark.req("prod:encrypt")

CANARY = "zanzibar-kookaburra-4711"


@pytest.fixture
def encryption(tmp_path: Path) -> Encryption:
    return Encryption(master=MasterKey(b"m" * 32), keys=KeyFile(tmp_path / "keys.json"))


def opened(folder: Path, encryption: Encryption | None, **options: Any) -> Memory:
    return Memory.open(f"sqlite:///{folder}/m.db", encryption=encryption, **options)


@pytest.fixture
def memory(tmp_path: Path, encryption: Encryption) -> Iterator[Memory]:
    with opened(tmp_path, encryption) as memory:
        yield memory


def sealed(memory: Memory) -> SealedStorage:
    assert isinstance(memory.storage, SealedStorage)
    return memory.storage


def files_with(folder: Path, *canaries: str) -> list[str]:
    """Name the files in which one of the canaries stands, plain, in hex or in Base64."""
    forms = [
        form
        for canary in canaries
        for form in (canary.encode(), canary.encode().hex().encode(), canary.encode("utf-16-le"))
    ]
    forms += [base64.b64encode(canary.encode())[:-4] for canary in canaries]
    return [
        path.name
        for path in folder.rglob("*")
        if path.is_file() and any(form in path.read_bytes() for form in forms)
    ]


def fill(memory: Memory) -> None:
    """Put the canary wherever a caller can put a text."""
    space = memory.namespace("acme")
    space.save(f"we met at {CANARY}", memory_id="m1", kind="fact", key=f"{CANARY}-key")
    space.save(Json({CANARY: [CANARY]}), metadata={CANARY: CANARY}, tags=[f"{CANARY}-tag"])
    space.save("x", task=f"{CANARY}-task", session=f"{CANARY}-s", speaker=f"{CANARY}-p")
    space.save("y", invalidated_by=[f"{CANARY}-event"], idempotency_key=f"{CANARY}-once")
    space.update("m1", f"we met again at {CANARY}")
    space.decide("host", f"{CANARY}-decision", CANARY, memory_id="m1")
    space.hold(f"{CANARY}-owner", "m1")
    space.start_task(f"{CANARY}-task")
    space.archive("m1")
    space.restore("m1")


def test_a_canary_stands_in_no_file_and_everything_is_read_back(
    tmp_path: Path, encryption: Encryption
) -> None:
    with opened(tmp_path, encryption) as memory:
        fill(memory)
        assert files_with(tmp_path, CANARY, "kookaburra", "zanzibar") == []
    assert files_with(tmp_path, CANARY, "kookaburra", "zanzibar") == []
    with opened(tmp_path, encryption) as memory:
        space = memory.namespace("acme")
        assert space.get("m1").content == f"we met again at {CANARY}"
        assert "m1" in [hit.memory_id for hit in space.search("kookaburra")]
        assert space.recall("who met whom in zanzibar?").items[0].memory_id == "m1"
        assert space.list({"key": f"{CANARY}-key"}).items[0].memory_id == "m1"
        assert space.count({"tag": f"{CANARY}-tag"}) == 1
        assert space.count({"task": f"{CANARY}-task", "speaker": f"{CANARY}-p"}) == 1
        assert space.count({f"metadata.{CANARY}": CANARY}) == 1
        assert space.decision("host", f"{CANARY}-decision") == CANARY
        texts = [entry.record.text for entry in space.history("m1") if entry.record]
        assert texts[0] == f"we met at {CANARY}"
        event = [f"{CANARY}-event"]
        again = space.save("y", idempotency_key=f"{CANARY}-once", invalidated_by=event)
        assert again.replayed


def test_the_stored_past_is_the_same_as_of_a_plain_store(memory: Memory) -> None:
    space = memory.namespace("a")
    before = space.save("red bicycle", kind="fact", key="ride").created_at
    space.save("blue car", kind="fact", key="ride")
    assert space.search("bicycle") == []
    assert space.as_of(before).get("1").content == "red bicycle"
    space.rollback("1", to_version=1)
    assert space.get("1").content == "red bicycle"


def test_words_of_one_namespace_look_different_in_another(tmp_path: Path) -> None:
    key = {1: b"k" * 32}
    one, other = Seal(("a",), key), Seal(("b",), key)
    assert one.name("x", "key") == one.name("x", "key")
    assert one.name("x", "key") != one.name("x", "tag")
    assert one.name("x", "key") != other.name("x", "key")
    assert one.seal_text("x", "p") != one.seal_text("x", "p")
    with pytest.raises(StoreCorrupt):
        other.open_text(one.seal_text("x", "p"), "p")
    with pytest.raises(StoreCorrupt):
        one.open_text(one.seal_text("x", "p"), "q")


def test_without_its_key_an_encrypted_store_does_not_open(
    tmp_path: Path, encryption: Encryption
) -> None:
    with opened(tmp_path, encryption) as memory:
        memory.namespace("a").save("tea")
    with pytest.raises(NotAllowed, match="encrypted"):
        opened(tmp_path, None)
    wrong = Encryption(master=MasterKey(b"w" * 32), keys=encryption.keys)
    with opened(tmp_path, wrong) as memory, pytest.raises(NotAllowed, match="master key"):
        memory.namespace("a").get("1")
    with opened(tmp_path, encryption) as memory:
        assert memory.namespace("a").get("1").content == "tea"


def test_plain_memories_are_not_passed_off_as_encrypted(
    tmp_path: Path, encryption: Encryption
) -> None:
    with opened(tmp_path, None) as memory:
        memory.namespace("a").save("tea")
    with pytest.raises(NotAllowed, match="export"):
        opened(tmp_path, encryption)
    with opened(tmp_path, None) as memory:
        assert memory.namespace("a").get("1").content == "tea"


def test_a_new_data_key_seals_from_now_on_and_old_values_still_open(memory: Memory) -> None:
    space = memory.namespace("a")
    space.save("tea", kind="fact", key="drink")
    assert sealed(memory).renew_key(("a",)) == 2
    assert space.save("green tea", kind="fact", key="drink").memory_id == "1"
    assert [hit.memory_id for hit in space.search("tea")] == ["1"]
    texts = [entry.record.text for entry in space.history("1") if entry.record]
    assert texts == ["tea", "green tea"]


def test_another_master_key_takes_over_while_the_store_is_open(
    tmp_path: Path, encryption: Encryption
) -> None:
    new = MasterKey(b"n" * 32)
    with opened(tmp_path, encryption) as memory:
        memory.namespace("a").save("tea")
        assert sealed(memory).rewrap(new) == 1
        assert memory.namespace("a").save("milk").memory_id == "2"
    with opened(tmp_path, encryption) as memory, pytest.raises(NotAllowed):
        memory.namespace("a").get("1")
    with opened(tmp_path, Encryption(master=new, keys=encryption.keys)) as memory:
        assert [r.content for r in memory.namespace("a").list()] == ["tea", "milk"]


def test_an_erased_key_ends_its_namespace_alone_and_in_old_copies_too(
    tmp_path: Path, encryption: Encryption
) -> None:
    with opened(tmp_path, encryption) as memory:
        memory.namespace("a").save("tea")
        memory.namespace("b").save("milk")
    copy = tmp_path / "backup"
    copy.mkdir()
    (copy / "m.db").write_bytes((tmp_path / "m.db").read_bytes())
    with opened(tmp_path, encryption) as memory:
        assert sealed(memory).erase_keys(("a",))
        assert not sealed(memory).erase_keys(("a",))
        assert memory.namespace("b").get("1").content == "milk"
    for folder in (tmp_path, copy):
        with opened(folder, encryption) as memory:
            with pytest.raises(NotAllowed, match="erased"):
                memory.namespace("a").get("1")
            with pytest.raises(NotAllowed, match="erased"):
                memory.namespace("a").save("new")
            assert memory.namespace("b").get("1").content == "milk"


@pytest.mark.req("prod:backup", "prod:doctor")
@pytest.mark.parametrize("beside", [True, False])
def test_what_walks_over_a_store_passes_by_an_erased_namespace(
    tmp_path: Path, encryption: Encryption, beside: bool
) -> None:
    """A tenant that left stops neither the sweep nor the backups of those that stayed."""
    used = encryption if beside else replace(encryption, keys=None)
    clock = FakeClock()
    with opened(tmp_path, used, clock=clock) as memory, Memory.open() as other:
        for tenant, text in (("a", "tea"), ("b", "milk")):
            memory.namespace(tenant).save(text, expires_in=60)
        sealed(memory).erase_keys(("a",))
        clock.advance(61)
        assert memory.subtree().namespaces() == [("b",)]
        assert [receipt.memory_id for receipt in memory.expire().swept] == ["1"]
        assert memory.verify().sound
        assert [n for n in examine(memory).answers if n.verdict == "bad"] == []
        assert sync(memory, other).stopped == {}
        memory.backup(tmp_path / "after.backup")
    assert verify_file(tmp_path / "after.backup", used).sound
    restored = f"sqlite:///{tmp_path}/restored.db"
    assert restore(tmp_path / "after.backup", restored, encryption=used).verified


def test_a_namespace_whose_keys_were_erased_gets_no_new_one(memory: Memory) -> None:
    memory.namespace("a").save("tea")
    sealed(memory).erase_keys(("a",))
    with pytest.raises(NotAllowed, match="were erased"):
        sealed(memory).renew_key(("a",))


def test_keys_that_are_missing_are_not_taken_for_erased_ones(
    tmp_path: Path, encryption: Encryption
) -> None:
    with opened(tmp_path, encryption) as memory:
        memory.namespace("a").save("tea")
    elsewhere = replace(encryption, keys=KeyFile(tmp_path / "other.json"))
    with opened(tmp_path, elsewhere) as memory:
        assert memory.subtree().namespaces() == [("a",)]
        with pytest.raises(NotAllowed, match="are missing; open the store with the key file"):
            memory.expire()
        with pytest.raises(NotAllowed, match="are missing"):
            sealed(memory).renew_key(("a",))


def test_keys_can_stand_in_the_store_itself(tmp_path: Path) -> None:
    inside = Encryption(master=MasterKey(b"m" * 32))
    with opened(tmp_path, inside) as memory:
        fill(memory)
    assert files_with(tmp_path, CANARY) == []
    with opened(tmp_path, inside) as memory:
        assert memory.namespace("acme").get("m1").content == f"we met again at {CANARY}"


def test_a_first_write_that_fails_leaves_no_key_that_seals_for_nothing(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = memory.namespace("a")
    with pytest.raises(Conflict):
        space.save_many([{"content": "tea"}, {"content": "milk", "if_version": 3}])
    space.save("tea")
    with memory.transaction() as transaction:
        row = transaction.namespace(("a",))
        assert row is not None
    assert space.get("1").content == "tea"


def test_two_processes_share_the_keys_of_a_new_namespace(
    tmp_path: Path, encryption: Encryption
) -> None:
    code = (
        "import sys\nfrom zero_mem import Memory\nfrom zero_mem.encryption import *\n"
        f"keys = KeyFile({str(tmp_path / 'keys.json')!r})\n"
        "e = Encryption(master=MasterKey(b'm'*32), keys=keys)\n"
        f"m = Memory.open('sqlite:///{tmp_path}/m.db', encryption=e)\n"
        "for n in range(20): m.namespace('a', str(n % 4)).save(f'{sys.argv[1]} {n}')\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(i)]) for i in range(3)]
    assert [process.wait() for process in running] == [0, 0, 0]
    with opened(tmp_path, encryption) as memory:
        found = [r.text for n in range(4) for r in memory.namespace("a", str(n)).list()]
    assert sorted(found) == sorted(f"{i} {n}" for i in range(3) for n in range(20))


@pytest.mark.req("history:purge")
def test_a_purge_erases_and_its_idempotency_key_stays_refused(memory: Memory) -> None:
    space = memory.namespace("a")
    space.save("tea", idempotency_key="once")
    space.purge("1")
    with pytest.raises(NotFound, match="purged"):
        space.get("1")
    with pytest.raises(Conflict, match="purged"):
        space.save("tea", idempotency_key="once")


@pytest.mark.req("index:hybrid")
def test_vectors_are_sealed_or_refused(tmp_path: Path) -> None:
    pytest.importorskip("numpy")
    from zero_mem.models.fake import FakeEmbedder

    sealing = Encryption(master=MasterKey(b"m" * 32))
    with opened(tmp_path, sealing, embedder=FakeEmbedder()) as memory:
        space = memory.namespace("a")
        space.save("tea in the morning")
        recall = space.recall("tea")
        assert ([item.memory_id for item in recall.items], recall.behind) == (["1"], 0)
    refusing = Encryption(master=MasterKey(b"m" * 32), vectors="refuse")
    with pytest.raises(InvalidInput, match="vectors"):
        opened(tmp_path, refusing, embedder=FakeEmbedder())


# Master keys


def test_a_key_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "master.key"
    path.write_text(MasterKey.generate())
    path.chmod(0o644)
    with pytest.raises(InvalidInput, match="chmod 600"):
        MasterKey.from_file(path)
    path.chmod(0o600)
    assert len(MasterKey.from_file(path).key) == 32


@pytest.mark.parametrize("text", ["", "short", "ä" * 44, base64.b64encode(b"x" * 31).decode()])
def test_what_is_no_key_is_refused_without_saying_it(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZERO_MEM_MASTER_KEY", text)
    with pytest.raises(InvalidInput) as refused:
        MasterKey.from_environment()
    assert not text or text not in str(refused.value)
    assert "m" * 8 not in repr(MasterKey(b"m" * 32))


def test_a_key_service_wraps_and_unwraps(tmp_path: Path) -> None:
    asked: list[str] = []

    def turn(data: bytes, context: bytes) -> bytes:
        asked.append(json.loads(context)[0])
        return bytes(byte ^ 0x55 for byte in data)

    service = Encryption(master=KeyService(wrapping=turn, unwrapping=turn))
    for _ in range(2):
        with opened(tmp_path, service) as memory:
            memory.namespace("acme").save("tea")
    assert set(asked) == {"acme"}


# The command line


def cli(
    folder: Path, *arguments: str, code: int = 0, environment: dict[str, str] | None = None
) -> str:
    from typer.testing import CliRunner

    from zero_mem.cli.app import app

    names = {"ZERO_MEM_URL": f"sqlite:///{folder}/cli.db", **(environment or {})}
    done = CliRunner().invoke(app, list(arguments), env=names)
    assert done.exit_code == code, done.output
    return done.output


def test_the_command_line_works_with_keys_from_the_environment(tmp_path: Path) -> None:
    one, other = str(tmp_path / "one.key"), str(tmp_path / "other.key")
    for path in (one, other):
        said = cli(tmp_path, "encryption", "new-key", "--out", path)
        assert Path(path).read_text().strip() not in said
        assert Path(path).stat().st_mode & 0o777 == 0o600
    named = {
        "ZERO_MEM_MASTER_KEY_FILE": one,
        "ZERO_MEM_KEYS_FILE": str(tmp_path / "wrapped.json"),
    }
    cli(tmp_path, "save", CANARY, "-n", "a", environment=named)
    assert CANARY in cli(tmp_path, "get", "1", "-n", "a", environment=named)
    assert "encrypted" in cli(tmp_path, "get", "1", "-n", "a", code=4)
    cli(tmp_path, "encryption", "rewrap", "--new-key", other, environment=named)
    cli(tmp_path, "get", "1", "-n", "a", code=4, environment=named)
    named["ZERO_MEM_MASTER_KEY_FILE"] = other
    cli(tmp_path, "encryption", "renew", "-n", "a", environment=named)
    assert CANARY in cli(tmp_path, "get", "1", "-n", "a", environment=named)
    cli(tmp_path, "encryption", "erase", "-n", "a", code=2, environment=named)
    cli(tmp_path, "encryption", "erase", "-n", "a", "--yes", environment=named)
    assert "erased" in cli(tmp_path, "get", "1", "-n", "a", code=4, environment=named)
    assert files_with(tmp_path, CANARY) == []


def test_a_key_file_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "one.key"
    path.write_text("mine")
    assert "never overwritten" in cli(tmp_path, "encryption", "new-key", "-o", str(path), code=2)
    assert path.read_text() == "mine"
