"""Nothing of a secret reaches a store, whichever way it comes; what is around it works on."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from secret_samples import CARD, EMAIL, GITHUB, JWT, PEM, PHONE

from zero_mem import Blob, Json, Memory, ZeroMemRuntime
from zero_mem.errors import Conflict, InvalidInput
from zero_mem.exchange import import_records
from zero_mem.redaction import Redaction
from zero_mem.space import Namespace
from zero_mem.traces import import_transcripts

pytestmark = pytest.mark.req("prod:redact")

MASKED = "[redacted:github_token]"


@pytest.fixture(params=["memory", "sqlite"])
def space(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Namespace]:
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path / 'agent.db'}"
    with Memory.open(url, durability="normal", redaction=Redaction(key=b"k")) as memory:
        yield memory.namespace("acme", "alice")


def left(folder: Path, *secrets: str) -> list[tuple[str, str]]:
    """Find secrets in the files of a folder: plain, escaped, in UTF-16, or their first half."""
    found = []
    for path in folder.rglob("*"):
        content = path.read_bytes() if path.is_file() else b""
        for secret in secrets:
            part = secret[: max(12, len(secret) // 2)]
            forms = (part.encode(), json.dumps(part)[1:-1].encode(), part.encode("utf-16-le"))
            found += [(path.name, part)] * any(form in content for form in forms)
    return found


# Every way in


def test_text_and_its_receipt(space: Namespace) -> None:
    receipt = space.save(f"deploy with {GITHUB}, then restart")
    assert receipt.masked
    assert space.get(receipt.memory_id).text == f"deploy with {MASKED}, then restart"
    assert not space.save("nothing to see").masked


def test_json_and_blob(space: Namespace) -> None:
    first = space.save(Json({"env": [{"password": "swordfish"}], "at": f"x {GITHUB}"}))
    second = space.save(Blob(data=f"k={GITHUB}".encode(), media_type="text/plain"))
    assert first.masked
    assert second.masked
    value = {"env": [{"password": "[redacted:secret_field]"}], "at": f"x {MASKED}"}
    assert space.get(first.memory_id).content == Json(value)
    assert space.get(second.memory_id).content == Blob(
        data=f"k={MASKED}".encode(), media_type="text/plain"
    )


def test_tags_and_nested_metadata(space: Namespace) -> None:
    receipt = space.save(
        "body", tags=[GITHUB, "infra"], metadata={"a": {"b": [{"token": JWT, "n": 1}]}, GITHUB: 1}
    )
    record = space.get(receipt.memory_id)
    assert receipt.masked
    assert record.tags == (MASKED, "infra")
    assert record.metadata["a"] == {"b": [{"token": "[redacted:jwt]", "n": 1}]}
    assert GITHUB not in json.dumps(dict(record.metadata))
    assert [r.memory_id for r in space.list({"tags": {"contains": "infra"}})] == ["1"]


def test_names_are_hashed_so_that_two_stay_two_and_are_found(space: Namespace) -> None:
    other = GITHUB[:-1] + "z"
    for name in (GITHUB, other):
        space.save(
            "working", kind="step", form="working", key=name, task=name, session=name, speaker=name
        )
    again = space.save("again", kind="step", form="working", key=GITHUB)
    assert (space.count(), again.operation, again.memory_id) == (2, "update", "1")
    record = space.get("1")
    assert record.key
    assert record.key.startswith("[github_token:")
    assert record.key == record.task == record.session == record.speaker
    for name in ("key", "task", "session", "speaker"):
        assert [r.memory_id for r in space.list({name: GITHUB})] == ["1"]
        assert space.count({name: {"in": [GITHUB, other]}}) == 2
    assert GITHUB not in again.preview
    space.recall("working", session=GITHUB, speaker=GITHUB)


def test_tasks_are_found_under_their_names(space: Namespace) -> None:
    space.start_task(GITHUB)
    space.save_many([{"content": "a step", "form": "working", "task": GITHUB}])
    space.renew_task(GITHUB)
    assert space.end_task(GITHUB).count == 1


def test_events_are_found_under_their_names(space: Namespace) -> None:
    space.save("a price", invalidated_by=[GITHUB], metadata={"card": CARD})
    space.save("another", invalidated_by=[GITHUB], metadata={"card": "none"})
    assert space.raise_event(GITHUB, match={"card": "none"}, dry_run=True).count == 1
    # What was masked can't be told apart; it is left alone rather than taken for another.
    assert space.raise_event(GITHUB, match={"card": CARD}, dry_run=True).count == 0
    assert space.raise_event(GITHUB).count == 2


def test_a_memory_id_that_is_a_secret_is_refused(space: Namespace) -> None:
    for mode in ("sync", "queued"):
        with pytest.raises(InvalidInput, match="memory_id looks like a secret") as refused:
            space.save("x", memory_id=GITHUB, mode=mode)
        assert GITHUB not in str(refused.value)
    assert space.count() == 0


def test_updates(space: Namespace) -> None:
    space.save("body")
    receipt = space.update("1", f"now {GITHUB}", metadata={"pw": {"password": "swordfish"}})
    record = space.get("1")
    assert receipt.masked
    assert record.text == f"now {MASKED}"
    assert record.metadata == {"pw": {"password": "[redacted:secret_field]"}}
    assert space.update("1", tags=[JWT]).masked
    assert space.get("1").tags == ("[redacted:jwt]",)
    assert not space.update("1", "plain").masked


def test_batches(space: Namespace) -> None:
    done = space.save_many([{"content": "plain"}, {"content": GITHUB, "key": GITHUB}])
    assert [receipt.masked for receipt in done.receipts] == [False, True]
    assert space.get("2").text == MASKED


def test_queued_saves(space: Namespace) -> None:
    receipt = space.save(f"q {GITHUB}", key=GITHUB, mode="queued")
    assert GITHUB not in receipt.preview
    assert space.save(f"r {GITHUB}", key=GITHUB, mode="queued").memory_id == receipt.memory_id
    assert space.get(receipt.memory_id).text == f"r {MASKED}"
    assert space.count() == 1


def test_reasons_in_the_journal_name_no_secret(space: Namespace) -> None:
    space.save("a price", invalidated_by=[GITHUB])
    space.save("a step", form="working", task=GITHUB)
    space.raise_event(GITHUB)
    space.end_task(GITHUB)
    reasons = [space.history(identity)[-1].reason for identity in ("1", "2")]
    assert all("[github_token:" in reason for reason in reasons)
    assert GITHUB not in repr(space.changes())


def test_imports_of_records_and_of_transcripts(space: Namespace, tmp_path: Path) -> None:
    line = json.dumps({"content": f"old {GITHUB}", "metadata": {"k": JWT}}).encode()
    for _ in range(2):
        import_records(lambda _: space, [line])
    assert [r.text for r in space.each()] == [f"old {MASKED}"]
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "push", "arguments": json.dumps({"token": GITHUB})},
    }
    messages = [
        {"role": "user", "content": f"use {GITHUB}"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "name": "push", "content": f"pushed with {GITHUB}"},
    ]
    path = tmp_path / "run.jsonl"
    path.write_text(json.dumps({"trajectory": "r", "messages": messages}), encoding="utf-8")
    for _ in range(2):
        import_transcripts(space, [path])
    told = [(r.text, dict(r.metadata)) for r in space.each()]
    assert len(told) == 4
    assert GITHUB not in repr(told)
    assert f"pushed with {MASKED}" in repr(told)


def test_an_idempotency_key_replays_and_still_tells_requests_apart(space: Namespace) -> None:
    first = space.save(f"a {GITHUB}", idempotency_key="once")
    again = space.save(f"a {GITHUB}", idempotency_key="once")
    assert (again.replayed, again.memory_id) == (True, first.memory_id)
    with pytest.raises(Conflict):
        space.save(f"b {GITHUB}", idempotency_key="once")


# What works on


def test_equal_bodies_are_merged_and_the_words_around_are_found(space: Namespace) -> None:
    space.configure(dedupe_key="content")
    for _ in range(2):
        space.save(f"the staging server takes {GITHUB} for deploys")
    assert space.count() == 1
    assert [hit.memory_id for hit in space.search("staging deploys")] == ["1"]
    assert MASKED in space.recall("staging server").text
    assert [hit.memory_id for hit in space.search(f"staging {GITHUB}")] == ["1"]
    assert ZeroMemRuntime(space).build_prompt([{"role": "user", "content": "hi"}], require=["1"])


def test_what_is_hashed_is_found_by_its_value(space: Namespace) -> None:
    space.configure(redact={"phone": "hash", "email": "hash"})
    space.save(f"Wang Fang, {PHONE}", metadata={"phone": PHONE}, tags=[EMAIL])
    space.save("Li Na, no phone", metadata={"phone": "none"})
    assert [hit.memory_id for hit in space.search(PHONE)] == ["1"]
    assert [r.memory_id for r in space.list({"metadata.phone": PHONE})] == ["1"]
    assert [r.memory_id for r in space.list({"tags": {"contains": EMAIL}})] == ["1"]
    assert space.raise_event("x", match={"phone": PHONE}, dry_run=True).count == 0


def test_names_and_hashes_are_found_in_every_view(space: Namespace) -> None:
    space.configure(redact={"phone": "hash"})
    space.save(f"Wang Fang, {PHONE}", session=GITHUB)
    other = space.memory.namespace("acme", "bob")
    other.save(f"Li Na, {PHONE}", session=GITHUB)  # phones are kept there
    tree, past = space.memory.subtree("acme"), space.as_of(space.memory.now())
    for view in (space, past):
        assert [r.memory_id for r in view.list({"session": GITHUB})] == ["1"]
        assert [hit.memory_id for hit in view.search(PHONE)] == ["1"]
        assert "Wang Fang" in view.recall(PHONE).text
    assert tree.count({"session": GITHUB}) == 2
    assert {hit.record.namespace[-1] for hit in tree.search(PHONE)} == {"alice", "bob"}
    assert len(tree.recall(PHONE, where={"session": GITHUB}).items) == 2


def test_a_filter_for_what_was_masked_finds_nothing_rather_than_all(space: Namespace) -> None:
    space.save("one", metadata={"card": CARD})
    assert space.get("1").metadata == {"card": "[redacted:card]"}
    assert space.count({"metadata.card": CARD}) == 0
    assert space.delete_many(where={"metadata.card": CARD}).count == 0


# Settings


def test_a_namespace_sets_more_than_the_store_and_others_do_not(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'agent.db'}"
    default = Redaction(settings={"email": "mask"}, key=b"k")
    text = f"{EMAIL} {PHONE} ORD-77"
    with Memory.open(url, redaction=default) as memory:
        strict, usual = memory.namespace("strict"), memory.namespace("usual")
        own = {"pattern": r"ORD-\d+", "action": "drop"}
        strict.configure(redact={"personal": "mask", "email": "keep", "order_no": own})
        strict.configure(max_memory_items=50)
    with Memory.open(url, redaction=default) as memory:
        strict, usual = memory.namespace("strict"), memory.namespace("usual")
        assert strict.get(strict.save(text).memory_id).text == f"{EMAIL} [redacted:phone] "
        assert usual.get(usual.save(text).memory_id).text == f"[redacted:email] {PHONE} ORD-77"
        assert strict.limits().max_memory_items == 50
        strict.configure(redact={"order_no": None, "email": None})
        assert strict.get(strict.save(text).memory_id).text == (
            "[redacted:email] [redacted:phone] ORD-77"
        )
        assert strict.redaction() == {"secrets": "mask", "personal": "mask", "email": "mask"}
        strict.configure(redact=None)
        assert strict.redaction() == {"secrets": "mask", "personal": "keep", "email": "mask"}


@pytest.mark.parametrize(
    "given", [{"emial": "mask"}, {"email": "hide"}, "mask", {"x": {"pattern": "("}}]
)
def test_bad_settings_of_a_namespace_change_nothing(space: Namespace, given: Any) -> None:
    space.configure(redact={"email": "mask"})
    before = space.settings()
    with pytest.raises(InvalidInput):
        space.configure(redact=given)
    with pytest.raises(InvalidInput, match="whole namespace"):
        space.configure(kind="note", redact={"email": "mask"})
    assert space.settings() == before


def test_secrets_may_be_kept_where_the_user_says_so(space: Namespace) -> None:
    space.configure(redact={"secrets": "keep"})
    receipt = space.save(f"vault {GITHUB}")
    assert not receipt.masked
    assert GITHUB in space.get("1").text


# Report 33


def test_report_33_no_file_of_the_store_and_no_log_has_a_secret(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    bearer = "mF9B5f41JqM" * 3
    texts = [f"api key {GITHUB} end", f"file:\n{PEM}\nend", f"Authorization: Bearer {bearer}\nend"]
    folder = tmp_path / "store"
    folder.mkdir()
    with Memory.open(f"sqlite:///{folder / 'agent.db'}") as memory:
        space = memory.namespace("acme")
        for text in texts:
            space.save(text, tags=[text.replace("\n", " ")], metadata={"deep": [{"at": text}]})
            space.save(text, mode="queued")
            space.search(text)
            space.recall(text)
        space.update("1", texts[1], metadata={"more": texts[2]})
        space.delete("2")
        memory.flush()
        # The log of the database is there, and so is a copy of everything while it runs.
        assert list(folder.glob("*-wal"))
        shutil.copytree(folder, tmp_path / "backup")
        told = repr([space.history(str(n)) for n in range(1, 4)]) + repr(list(space.each()))
    for secret in (GITHUB, PEM.splitlines()[1], bearer):
        assert secret not in told
        assert secret not in caplog.text
    assert left(tmp_path, GITHUB, PEM.splitlines()[1], bearer) == []
    assert "[redacted:private_key]" in told
    assert "api key [redacted:github_token] end" in told
    assert "file:\\n[redacted:private_key]\\nend" in told
    assert "Authorization: Bearer [redacted:bearer_token]\\nend" in told
