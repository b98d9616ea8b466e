"""Dense recall: saves never wait, reads go on without it, and nothing outdated is searched."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from zero_mem import Memory
from zero_mem.cli.app import app
from zero_mem.dense import index
from zero_mem.dense.index import CATCH_UP, DenseIndex
from zero_mem.errors import EmbedderUnavailable, InvalidInput, StoreUnavailable
from zero_mem.index.vectors import encode
from zero_mem.models import Embedder, names
from zero_mem.models.embedder import Rows
from zero_mem.models.fake import FakeEmbedder
from zero_mem.recall import corpora

SYNONYMS = {"car": "vehicl"}
PATH = ("acme", "alice")


class Failing:
    """An embedder that raises, with what must stay private in its message."""

    name = "failing"
    dimension = 8

    def embed(self, texts: Sequence[str], *, query: bool) -> Rows:
        raise RuntimeError(f"sk-secret {texts}")


class Hanging(FakeEmbedder):
    """An embedder that gives no answer until it is released."""

    def __init__(self) -> None:
        super().__init__(name="hanging")
        self.released = threading.Event()

    def embed(self, texts: Sequence[str], *, query: bool) -> Rows:
        self.released.wait(60)
        return super().embed(texts, query=query)


class Crooked:
    """An embedder that gives something else than it promised."""

    name = "crooked"
    dimension = 2

    def __init__(self, rows: Any) -> None:
        self._rows = rows

    def embed(self, texts: Sequence[str], *, query: bool) -> Rows:
        rows: Rows = self._rows
        return rows


Opener = Callable[..., Memory]


@pytest.fixture(autouse=True)
def _no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bound what a read embeds by number alone: the machine may be slow."""
    monkeypatch.setattr(index, "CATCH_UP_SECONDS", 600.0)


@pytest.fixture(params=["memory", "sqlite"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opener]:
    """Open stores; in SQLite's case all on one file."""
    stores: list[Memory] = []
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path / 'agent.db'}"

    def open_with(embedder: Embedder | None = None, patience: float = 60.0) -> Memory:
        chosen = FakeEmbedder(synonyms=SYNONYMS) if embedder is None else embedder
        stores.append(
            Memory.open(url, durability="normal", embedder=chosen, patience=patience, actor="test")
        )
        return stores[-1]

    yield open_with
    for memory in stores:
        memory.close()


def dense(memory: Memory) -> DenseIndex:
    assert memory.dense is not None
    return memory.dense


def scores(memory: Memory, query: str, path: tuple[str, ...] = PATH) -> dict[str, float]:
    """Look up by meaning and give the cosines by text."""
    found = dense(memory).look_up(path, query)
    assert found.scores is not None, found.degraded
    with memory.transaction() as transaction:
        row = transaction.namespace(path)
        stored = transaction.by_positions(row, found.scores) if row else {}
    return {stored[place].record.text: score for place, score in found.scores.items()}


def best(memory: Memory, query: str) -> str:
    found = scores(memory, query)
    return max(found, key=found.__getitem__)


# Saving


@pytest.mark.req("index:offline", "index:hybrid")
@pytest.mark.parametrize("broken", [Failing, Hanging], ids=["raises", "hangs"])
def test_report_27_a_save_asks_no_embedder_and_a_read_goes_on_without(
    opened: Opener, broken: Callable[[], Embedder]
) -> None:
    embedder = broken()
    memory = opened(embedder, patience=0.01)
    space = memory.namespace(*PATH)
    space.save("the refund was approved", memory_id="1")
    space.save_many([{"content": f"text {number}"} for number in range(20)])
    space.update("1", content="the refund was denied")
    assert [hit.memory_id for hit in space.search("refund")][:1] == ["1"]
    recall = space.recall("refund")
    assert [item.text for item in recall.items][:1] == ["the refund was denied"]
    assert recall.behind == 21
    assert embedder.name in recall.degraded
    if isinstance(embedder, Hanging):
        embedder.released.set()


@pytest.mark.req("index:hybrid")
def test_what_an_embedder_raises_is_told_by_its_type_alone(opened: Opener) -> None:
    found = dense(opened(Failing())).look_up(PATH, "a private question")
    assert found.scores is None
    assert found.degraded == "the embedder failing failed: RuntimeError"


@pytest.mark.req("index:hybrid")
@pytest.mark.parametrize(
    "rows", [[], [[1.0, 2.0, 3.0]], [[float("nan"), 1.0]], None, "ab", [["a", "b"]]]
)
def test_what_is_no_vector_is_not_used(opened: Opener, rows: object) -> None:
    memory = opened(Crooked(rows))
    memory.namespace(*PATH).save("a fact")
    found = dense(memory).look_up(PATH, "fact")
    assert (found.scores, found.behind) == (None, 1)
    assert "the embedder crooked" in found.degraded


@pytest.mark.req("index:hybrid")
def test_an_answer_that_came_too_late_is_there_the_next_time(opened: Opener) -> None:
    embedder = Hanging()
    memory = opened(embedder, patience=0.01)
    memory.namespace(*PATH).save("a fact")
    assert "within 0.01 s" in dense(memory).look_up(PATH, "fact").degraded
    assert "within 0.01 s" in dense(memory).look_up(PATH, "fact").degraded
    embedder.released.set()
    for thread in threading.enumerate():
        if thread.name == "zero-mem-embedder":
            thread.join()
    assert embedder.embedded == ["fact"]
    dense(memory).guard.patience = 60.0
    assert scores(memory, "fact").keys() == {"a fact"}
    assert embedder.embedded == ["fact", "a fact"]


# Recalling


@pytest.mark.req("index:hybrid")
@pytest.mark.parametrize("largest", [20_000, 10], ids=["whole", "candidates"])
def test_a_recall_finds_what_shares_no_word_with_the_query(
    opened: Opener, largest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpora, "LARGEST", largest)
    memory = opened()
    space = memory.namespace(*PATH)
    space.save_many([{"content": f"note {number}"} for number in range(30)])
    space.save("Ann sold her old vehicle.", memory_id="sale")
    memory.reindex()
    recall = space.recall("car", limit=3)
    assert (recall.items[0].memory_id, recall.behind, recall.degraded) == ("sale", 0, "")
    space.delete("sale")
    assert "sale" not in [item.memory_id for item in space.recall("car", limit=10).items]


@pytest.mark.req("index:hybrid")
def test_a_profile_without_dense_asks_no_embedder(opened: Opener) -> None:
    embedder = FakeEmbedder()
    memory = opened(embedder)
    space = memory.namespace(*PATH)
    space.save("a fact")
    recall = space.recall("fact", profile="bm25")
    assert (len(recall.items), recall.behind, embedder.embedded) == (1, 0, [])


@pytest.mark.req("index:hybrid")
def test_filters_hold_for_what_is_found_by_meaning(opened: Opener) -> None:
    memory = opened()
    space = memory.namespace(*PATH)
    space.save("a vehicle", kind="sale", memory_id="x")
    space.save("a vehicle too", kind="note", memory_id="y")
    found = space.recall("car", where={"kind": "note"})
    assert [item.memory_id for item in found.items] == ["y"]


# Catching up


@pytest.mark.req("index:hybrid")
def test_a_read_embeds_the_newest_records_and_counts_the_rest(opened: Opener) -> None:
    memory = opened()
    space = memory.namespace(*PATH)
    space.save_many([{"content": f"note {n}"} for n in range(CATCH_UP + 5)])
    assert dense(memory).behind(PATH) == CATCH_UP + 5
    recall = space.recall("note")
    assert recall.behind == 5
    assert set(scores(memory, "note")) == {f"note {n}" for n in range(CATCH_UP + 5)}
    assert space.recall("note").behind == dense(memory).behind(PATH) == 0


@pytest.mark.req("index:hybrid")
def test_equal_texts_are_embedded_once_and_current_ones_never_again(opened: Opener) -> None:
    embedder = FakeEmbedder()
    memory = opened(embedder)
    space = memory.namespace(*PATH)
    space.save_many([{"content": "the same"}, {"content": "the same"}, {"content": "another"}])
    for _ in range(3):
        dense(memory).look_up(PATH, "question")
    space.update("3", metadata={"seen": True})
    space.touch("1", expires_in=600)
    dense(memory).look_up(PATH, "question")
    assert sorted(embedder.embedded) == ["another", "question", "the same"]


@pytest.mark.req("index:hybrid")
def test_a_turn_is_found_by_what_it_answers(opened: Opener) -> None:
    memory = opened()
    space = memory.namespace(*PATH)
    space.save("Which car did you buy?", session="s", speaker="Ann")
    space.save("A red one.", session="s", speaker="Bob")
    space.save("A blue one.", session="t", speaker="Bob")
    found = scores(memory, "vehicle")
    assert found["A red one."] > found["A blue one."] + 0.2


@pytest.mark.req("index:hybrid")
def test_an_empty_namespace_has_nothing_to_look_up(opened: Opener) -> None:
    memory = opened()
    found = dense(memory).look_up(PATH, "anything")
    assert (found.scores, found.behind, found.degraded) == ({}, 0, "")
    assert dense(memory).behind(PATH) == 0


@pytest.mark.req("index:hybrid", "index:any-text")
@pytest.mark.parametrize("text", ["\0", "\ud800", "🎉", "x" * 50_000, "的" * 50_000])
def test_any_text_can_be_embedded_and_asked(opened: Opener, text: str) -> None:
    memory = opened()
    memory.namespace(*PATH).save(text)
    assert len(scores(memory, text)) == 1


# Changing


@pytest.mark.req("index:hybrid", "recall:fresh")
def test_a_changed_record_is_searched_by_its_new_text_only(opened: Opener) -> None:
    memory = opened()
    space = memory.namespace(*PATH)
    space.save("a car", memory_id="x")
    space.save("a dog", memory_id="y")
    assert best(memory, "vehicle") == "a car"
    space.update("x", content="a tree")
    assert dense(memory).behind(PATH) == 1
    assert scores(memory, "vehicle").keys() == {"a tree", "a dog"}
    assert max(scores(memory, "vehicle").values()) < 0.9


@pytest.mark.req("index:hybrid", "recall:fresh")
@pytest.mark.parametrize("ending", ["archive", "delete", "purge"])
def test_what_ended_is_not_searched_and_comes_back_when_restored(
    opened: Opener, ending: str
) -> None:
    memory = opened()
    space = memory.namespace(*PATH)
    for name in ("one", "two", "three"):
        space.save(f"car {name}", memory_id=name)
    assert len(scores(memory, "vehicle")) == 3
    getattr(space, ending)("two")
    assert scores(memory, "vehicle").keys() == {"car one", "car three"}
    if ending != "purge":
        space.restore("two")
        assert len(scores(memory, "vehicle")) == 3


@pytest.mark.req("index:hybrid")
def test_a_record_that_changes_while_it_is_embedded_gets_no_outdated_vector(
    opened: Opener,
) -> None:
    class Meddling(FakeEmbedder):
        def embed(self, texts: Sequence[str], *, query: bool) -> Rows:
            if "a car" in texts:
                space.update("x", content="a tree")
                space.purge("y")
            return super().embed(texts, query=query)

    memory = opened(Meddling(synonyms=SYNONYMS))
    space = memory.namespace(*PATH)
    space.save("a car", memory_id="x")
    space.save("a dog", memory_id="y")
    found = dense(memory).look_up(PATH, "vehicle")
    assert (found.scores, found.behind) == ({}, 1)
    assert scores(memory, "vehicle").keys() == {"a tree"}


@pytest.mark.req("index:hybrid", "handle:scope")
def test_namespaces_are_apart(opened: Opener) -> None:
    memory = opened()
    memory.namespace(*PATH).save("a car")
    memory.namespace("acme", "bob").save("another car")
    assert scores(memory, "vehicle").keys() == {"a car"}
    assert scores(memory, "vehicle", ("acme", "bob")).keys() == {"another car"}


@pytest.mark.req("index:hybrid")
def test_namespaces_not_used_for_long_leave_memory_and_come_back(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "CACHED_ROWS", 5)
    memory = opened()
    for user in ("a", "b", "c"):
        memory.namespace(user).save_many([{"content": f"car {user} {n}"} for n in range(3)])
        assert len(scores(memory, "vehicle", (user,))) == 3
    assert all(len(scores(memory, "vehicle", (user,))) == 3 for user in ("a", "b", "c"))
    assert len(dense(memory)._loaded) < 3


@pytest.mark.req("index:hybrid")
def test_many_changes_at_once_are_followed_too(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "_FOLLOWED", 4)
    memory = opened()
    space = memory.namespace(*PATH)
    space.save_many([{"content": f"car {n}", "memory_id": f"m{n}"} for n in range(8)])
    assert len(scores(memory, "vehicle")) == 8
    space.delete_many({"memory_id": {"in": [f"m{n}" for n in range(6)]}})
    assert scores(memory, "vehicle").keys() == {"car 6", "car 7"}


@pytest.mark.req("index:hybrid")
def test_a_store_that_takes_no_vector_is_still_searched(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = opened()
    space = memory.namespace(*PATH)
    space.save("a car")
    assert len(scores(memory, "vehicle")) == 1
    space.save("a dog")
    real = memory.storage.transaction

    def read_only(*, write: bool = False, durable: bool = True) -> AbstractContextManager[Any]:
        if write:
            raise StoreUnavailable("read-only")
        return real(write=write, durable=durable)

    monkeypatch.setattr(memory.storage, "transaction", read_only)
    found = dense(memory).look_up(PATH, "vehicle")
    assert found.scores is not None
    assert (len(found.scores), found.behind) == (1, 1)


# Several openers of one file


@pytest.fixture
def file(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'agent.db'}"


@pytest.mark.req("index:hybrid", "recall:fresh")
def test_what_one_process_embeds_and_changes_another_sees(file: str) -> None:
    embedders = [FakeEmbedder(synonyms=SYNONYMS) for _ in range(2)]
    with (
        Memory.open(file, embedder=embedders[0]) as one,
        Memory.open(file, embedder=embedders[1]) as two,
    ):
        space = one.namespace(*PATH)
        space.save_many([{"content": "car one"}, {"content": "car two"}])
        assert len(scores(one, "vehicle")) == len(scores(two, "vehicle")) == 2
        assert embedders[1].embedded == ["vehicle"]
        space.save("car three")
        assert len(scores(one, "vehicle")) == len(scores(two, "vehicle")) == 3
        two.namespace(*PATH).update("1", content="a tree")
        assert scores(two, "vehicle") == pytest.approx(scores(one, "vehicle"))
        two.namespace(*PATH).delete("2")
        assert scores(one, "vehicle").keys() == {"a tree", "car three"}
        assert embedders[1].embedded == ["vehicle", "a tree"]


@pytest.mark.req("index:embedder-change")
def test_another_model_loses_no_write_and_says_what_is_behind(file: str) -> None:
    old, new = FakeEmbedder(name="old"), FakeEmbedder(32, name="new", synonyms=SYNONYMS)
    with Memory.open(file, embedder=old) as memory:
        space = memory.namespace(*PATH)
        space.save_many([{"content": f"car {n}"} for n in range(3)])
        assert memory.reindex().embedded == 3
    with Memory.open(file) as lexical:
        lexical.namespace(*PATH).save("written without an embedder")
    with Memory.open(file, embedder=new) as memory:
        assert dense(memory).behind(PATH) == 4
        assert memory.namespace(*PATH).count() == 4
        done = memory.reindex()
        assert (done.model, done.dimension, done.embedded) == ("new", 32, 4)
        assert (done.dropped, done.behind) == (3, 0)
        assert "written without an embedder" in scores(memory, "vehicle")
        with memory.transaction() as transaction:
            row = transaction.namespace(PATH)
            assert row is not None
            assert list(transaction.vector_counts(row).values()) == [4]


@pytest.mark.req("index:embedder-change")
def test_the_same_name_with_another_dimension_is_another_model(file: str) -> None:
    for dimension in (16, 24):
        with Memory.open(file, embedder=FakeEmbedder(dimension)) as memory:
            memory.namespace(*PATH).save(f"car {dimension}")
            assert memory.reindex().dimension == dimension
            assert len(scores(memory, "car")) == (1 if dimension == 16 else 2)


@pytest.mark.req("history:purge", "index:hybrid")
def test_a_purge_erases_the_vectors_that_its_text_went_into(tmp_path: Path) -> None:
    embedder = FakeEmbedder()
    path = tmp_path / "agent.db"
    with Memory.open(f"sqlite:///{path}", embedder=embedder) as memory:
        space = memory.namespace(*PATH)
        turns = ["first turn", "a secret", "its answer", "last turn"]
        for n, text in enumerate(turns):
            space.save(text, session="s", speaker="Ann" if n % 2 else "Bob", memory_id=f"m{n}")
        memory.reindex()
        with memory.transaction() as transaction:
            row = transaction.namespace(PATH)
            assert row is not None
            (model,) = transaction.vector_counts(row)
            vectors = [vector.data for vector in transaction.vectors(row, model)]
        space.purge("m1")
        files = [each.read_bytes() for each in tmp_path.iterdir()]
        left = [any(vector in content for content in files) for vector in vectors]
        assert left == [True, False, False, True]
        scores(memory, "secret")
        assert embedder.embedded[-2:] == ["secret", "Bob: its answer"]


# Re-indexing


@pytest.mark.req("index:hybrid")
def test_reindex_tells_how_far_it_is_and_may_be_repeated(opened: Opener) -> None:
    memory = opened()
    for user in ("a", "b"):
        memory.namespace(user).save_many([{"content": f"text {n}"} for n in range(150)])
    told: list[tuple[int, int]] = []
    done = memory.reindex(progress=lambda count, total: told.append((count, total)))
    assert done.embedded == 300
    assert told == [(128, 300), (150, 300), (278, 300), (300, 300)]
    assert memory.reindex().embedded == 0
    memory.namespace("b").save("new")
    assert memory.reindex(["a"]).embedded == 0
    assert memory.reindex(["b"]).embedded == 1


@pytest.mark.req("index:hybrid")
def test_reindex_needs_an_embedder_that_works(opened: Opener) -> None:
    with Memory.open("memory://") as memory, pytest.raises(InvalidInput, match="embedder="):
        memory.reindex()
    memory = opened(Failing())
    memory.namespace(*PATH).save("text")
    with pytest.raises(EmbedderUnavailable, match="failing failed: RuntimeError"):
        memory.reindex()


@pytest.mark.req("index:hybrid", "pkg:cli")
def test_the_command_reindexes_a_store(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(names._NAMED, "e5", lambda: FakeEmbedder(name="e5"))
    monkeypatch.setitem(names._NAMED, "use", lambda: FakeEmbedder(name="use"))
    monkeypatch.setenv("ZERO_MEM_URL", file)
    with Memory.open(file) as memory:
        memory.namespace(*PATH).save_many([{"content": "one"}, {"content": "two"}])
    run = CliRunner().invoke
    done = run(app, ["reindex"])
    assert (done.exit_code, done.stdout) == (0, "embedded 2 memories with e5\n")
    done = run(app, ["reindex", "--embedder", "use", "-n", "acme/alice"])
    assert done.stdout == "embedded 2 memories with use, removed 2 vectors of other models\n"
    done = run(app, ["reindex", "--embedder", "use", "--json"])
    assert '"embedded": 0' in done.stdout.replace('":0', '": 0')
    assert run(app, ["reindex", "--embedder", "no"]).exit_code == 2


# What it needs


@pytest.mark.req("index:offline", "pkg:import")
def test_without_numpy_an_embedder_names_the_extra() -> None:
    code = """
        import sys
        sys.modules["numpy"] = None
        import zero_mem.aio, zero_mem.models.fake
        from zero_mem import Memory, errors
        Memory.open("memory://").namespace("a").save("text")
        try:
            Memory.open("memory://", embedder=zero_mem.models.fake.FakeEmbedder())
        except errors.MissingExtra as error:
            print(error)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "an embedder needs an extra: pip install 'zero-mem[vectors]'\n"


@pytest.mark.req("index:hybrid")
def test_the_bytes_of_a_vector_are_half_floats() -> None:
    assert encode([0.5, -1.0]) == b"\x00\x38\x00\xbc"


@pytest.mark.req("index:hybrid")
def test_a_search_finds_by_meaning_too_and_by_words_when_the_embedder_fails(
    opened: Opener,
) -> None:
    space = opened(FakeEmbedder(synonyms={"car": "vehicl"})).namespace(*PATH)
    space.save("Ann sold her old vehicle.", memory_id="sale")
    space.save("The car park is closed.", memory_id="park")
    space.save_many([{"content": f"Parcel {n} left the harbour."} for n in range(8)])
    hits = space.search("car")
    assert {hit.memory_id for hit in hits} == {"sale", "park"}
    assert all(0 < hit.score < 1 for hit in hits)
    assert [hit.score for hit in hits] == sorted((h.score for h in hits), reverse=True)
    failing = opened(Failing()).namespace(*PATH)
    failing.save("The car park is closed.", memory_id="park2")
    assert "park2" in {hit.memory_id for hit in failing.search("car")}
