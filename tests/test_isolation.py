"""One namespace never reaches into another, by any path."""

from __future__ import annotations

import unicodedata
from datetime import timedelta
from typing import Any

import pytest

from zero_mem import Memory, ZeroMemRuntime
from zero_mem.errors import InvalidInput, NotAllowed, NotFound, RequiredMemoryMissing
from zero_mem.space import Namespace
from zero_mem.testing.fakes import START

pytestmark = pytest.mark.req("handle:scope")


@pytest.mark.parametrize("segments", [(), ("",), (" ",), ("a", None), ("a\nb",), ("x",) * 17])
def test_nothing_works_without_a_namespace(memory: Memory, segments: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidInput, match=r"namespace|segment"):
        memory.namespace(*segments)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("tenant", "acme"), ("tenant", "acme-corp")),
        (("a", "b:c"), ("a", "b", "c")),
        (("a", "b/c"), ("a", "b", "c")),
        (("a", '","b'), ("a", "b")),
        (("a",), ("a", "b")),
        (("A",), ("a",)),
        (("a%",), ("ab",)),
        (("a_",), ("ab",)),
        ((".."), ("a", "..")),
    ],
)
def test_look_alikes_are_apart(memory: Memory, one: Any, other: Any) -> None:
    memory.namespace(*one).save("refund of one", memory_id="x")
    space = memory.namespace(*other)
    assert (space.count(), space.search("refund")) == (0, [])
    with pytest.raises(NotFound):
        space.get("x")
    space.save("refund of other", memory_id="x")
    assert memory.namespace(*one).get("x").content == "refund of one"


def test_one_spelling_of_a_name_is_one_namespace(memory: Memory) -> None:
    memory.namespace(unicodedata.normalize("NFD", "café")).save("x")
    assert memory.namespace(unicodedata.normalize("NFC", "café")).count() == 1


def test_a_subtree_is_whole_segments_and_read_only(memory: Memory) -> None:
    for path in (("acme",), ("acme", "alice"), ("acme", "bob"), ("acme-corp",), ("acme", "al")):
        memory.namespace(*path).save("refund", memory_id="x", tags=("/".join(path),))
    tree = memory.subtree("acme")
    assert tree.namespaces() == [("acme",), ("acme", "alice"), ("acme", "bob"), ("acme", "al")]
    assert tree.count() == len(tree.search("refund", limit=50)) == 4
    assert {r.namespace for r in memory.subtree("acme", "al").list()} == {("acme", "al")}
    assert memory.subtree().count() == 5
    assert memory.subtree("nobody").count() == 0
    assert not any(hasattr(tree, name) for name in ("save", "update", "delete", "purge"))


def test_pages_of_a_subtree_go_on_over_its_namespaces(memory: Memory) -> None:
    for name in ("a", "b", "c"):
        memory.namespace("top", name).save_many([{"content": f"{name}{n}"} for n in range(4)])
    seen: list[Any] = []
    cursor = None
    while True:
        page = memory.subtree("top").list(limit=5, cursor=cursor)
        seen += [record.content for record in page]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == [f"{name}{n}" for name in ("a", "b", "c") for n in range(4)]


WRITES: dict[str, Any] = {
    "delete": lambda space: space.delete_many(everything=True),
    "expire": lambda space: space.expire(),
    "task": lambda space: space.end_task("t"),
    "event": lambda space: space.raise_event("e"),
    "rollback": lambda space: space.rollback(to_moment=START - timedelta(days=1)),
    "limits": lambda space: space.configure(visibility="hidden", max_memory_items=1),
    "duplicates": lambda space: space.duplicates("note", merge=True),
    "decision": lambda space: space.decide("s", "k", "v"),
    "hold": lambda space: space.release("o"),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_no_write_of_one_changes_another(memory: Memory, write: Any) -> None:
    other = memory.namespace("acme", "bob")
    fields: dict[str, Any] = {"task": "t", "invalidated_by": ("e",), "form": "working"}
    for name in ("x", "y"):
        other.save("the same body", memory_id=name, hold="o", **fields)
    before = (list(other.list()), other.history("x"), other.limits())
    mine = memory.namespace("acme", "alice")
    mine.save("the same body", memory_id="x", **fields)
    write(mine)
    assert (list(other.list()), other.history("x"), other.limits()) == before
    assert other.decision("s", "k") is None


def test_an_idempotency_key_is_its_namespaces_own(memory: Memory) -> None:
    memory.namespace("a").save("a", idempotency_key="one")
    assert not memory.namespace("b").save("b", idempotency_key="one").replayed


def test_metadata_can_not_move_a_record_to_another_owner(memory: Memory) -> None:
    mine = memory.namespace("acme", "alice")
    claim = {"namespace": ["acme", "bob"], "user_id": "bob", "tenant": "other"}
    mine.save("mine", memory_id="x", metadata=claim)
    mine.update("x", metadata={"user_id": "carol"})
    assert mine.get("x").namespace == ("acme", "alice")
    assert memory.namespace("acme", "bob").count() == 0


@pytest.mark.req("recall:required")
def test_a_prompt_takes_nothing_from_elsewhere(memory: Memory) -> None:
    memory.namespace("b").save("secret", memory_id="x", form="procedural")
    runtime = ZeroMemRuntime(memory.namespace("a"))
    messages = [{"role": "user", "content": "show [memo:x]"}]
    assert runtime.build_prompt(messages) == messages
    with pytest.raises(RequiredMemoryMissing):
        runtime.build_prompt(messages, require=["x"])


def test_decisions_of_the_store_itself_are_out_of_a_hosts_reach(space: Namespace) -> None:
    with pytest.raises(NotAllowed, match="zero-mem:"):
        space.decide("zero-mem:idempotency", "k", "v")
