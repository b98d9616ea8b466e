"""The primitives that keep vectors: current ones only, apart by model, erased with their text."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from zero_mem.space import Namespace
from zero_mem.storage.base import NamespaceRow, Storage, Transaction, Vector, VectorModel
from zero_mem.testing.fixtures import StoreFixtures
from zero_mem.testing.primitives import Undone, reading, writing

MODEL = VectorModel("model", 2)
OTHER = VectorModel("other", 2)
WIDER = VectorModel("model", 3)

_ENDINGS: dict[str, Callable[[Namespace], object]] = {
    "update": lambda space: space.update("b", content="changed"),
    "tags": lambda space: space.update("b", tags=["new"]),
    "archive": lambda space: space.archive("b"),
    "delete": lambda space: space.delete("b"),
    "purge": lambda space: space.purge("b"),
    "expire": lambda space: space.raise_event("over"),
}


def _kept(transaction: Transaction, row: NamespaceRow, model: VectorModel = MODEL) -> list[bytes]:
    return [vector.data for vector in transaction.vectors(row, model)]


def _change_all(transaction: Transaction, row: NamespaceRow, places: list[int]) -> None:
    new = [Vector(places[0], 0, b"new"), Vector(places[1], 0, b"1")]
    transaction.put_vectors(row, MODEL, new)
    transaction.drop_vectors(row, keep=MODEL)
    raise Undone


class VectorPrimitives(StoreFixtures):
    """Vectors beside the records."""

    @pytest.fixture
    def places(self, storage: Storage, space: Namespace) -> list[int]:
        """Save five records; give their positions."""
        space.save_many(
            [
                {
                    "content": f"text {name}",
                    "memory_id": name,
                    "invalidated_by": ["over"] * (name == "b"),
                }
                for name in "abcde"
            ]
        )
        with reading(storage) as (transaction, row):
            return [stored.position for stored in transaction.scan(row, {})]

    def _put(self, storage: Storage, model: VectorModel, *vectors: Vector) -> None:
        with writing(storage) as (transaction, row):
            transaction.put_vectors(row, model, vectors)

    @pytest.mark.req("index:hybrid")
    def test_vectors_are_read_in_order_of_position(
        self, storage: Storage, places: list[int]
    ) -> None:
        """A second one at a position takes the place of the first, under a new number."""
        self._put(storage, MODEL, Vector(places[1], 0, b"1"), Vector(places[0], 0, b"0"))
        with reading(storage) as (transaction, row):
            before = transaction.vectors(row, MODEL)
        self._put(storage, MODEL, Vector(places[1], places[0], b"new"))
        with reading(storage) as (transaction, row):
            found = transaction.vectors(row, MODEL)
            last = max(vector.number for vector in before)
            assert [vector.position for vector in found] == places[:2]
            assert [vector.data for vector in found] == [b"0", b"new"]
            assert [v.data for v in transaction.vectors(row, MODEL, after=last)] == [b"new"]
            at = transaction.vectors(row, MODEL, positions=[places[0], places[4]])
            assert [vector.data for vector in at] == [b"0"]
            assert transaction.vectors(row, MODEL, positions=[]) == []
            assert transaction.vectors(row, MODEL, after=found[1].number) == []

    @pytest.mark.req("index:hybrid")
    def test_what_lacks_a_vector_is_listed_newest_first(
        self, storage: Storage, space: Namespace, places: list[int]
    ) -> None:
        """Only active records count."""
        self._put(storage, MODEL, Vector(places[3], 0, b"3"))
        space.archive("a")
        with reading(storage) as (transaction, row):
            assert transaction.without_vector(row, MODEL, 9) == [places[4], places[2], places[1]]
            assert transaction.without_vector(row, MODEL, 1) == [places[4]]
            assert len(transaction.without_vector(row, OTHER, 9)) == 4

    @pytest.mark.req("index:embedder-change")
    def test_models_of_other_names_or_dimensions_are_apart(
        self, storage: Storage, places: list[int]
    ) -> None:
        """They are counted, and dropped, each by itself."""
        for model in (MODEL, OTHER, WIDER):
            self._put(storage, model, Vector(places[0], 0, model.name.encode()))
        self._put(storage, OTHER, Vector(places[1], 0, b"1"))
        with writing(storage) as (transaction, row):
            assert transaction.vector_counts(row) == {MODEL: 1, OTHER: 2, WIDER: 1}
            assert _kept(transaction, row, OTHER) == [b"other", b"1"]
            assert transaction.drop_vectors(row, keep=MODEL) == 3
            assert transaction.drop_vectors(row, keep=MODEL) == 0
        with reading(storage) as (transaction, row):
            assert transaction.vector_counts(row) == {MODEL: 1}

    @pytest.mark.req("handle:scope")
    def test_a_namespace_has_its_own_vectors(
        self, storage: Storage, other: Namespace, places: list[int]
    ) -> None:
        """Reading, counting and dropping stay inside."""
        other.save("elsewhere")
        self._put(storage, MODEL, Vector(places[0], 0, b"0"))
        with storage.transaction(write=True) as transaction:
            row = transaction.namespace(other.path)
            assert row is not None
            assert transaction.vectors(row, MODEL) == []
            assert transaction.vector_counts(row) == {}
            assert len(transaction.without_vector(row, MODEL, 9)) == 1
            assert transaction.drop_vectors(row, keep=OTHER) == 0

    @pytest.mark.req("index:embedder-change", "history:purge")
    @pytest.mark.parametrize("ending", sorted(_ENDINGS))
    def test_a_change_of_text_or_state_drops_what_was_made_of_it(
        self, storage: Storage, space: Namespace, places: list[int], ending: str
    ) -> None:
        """Of every model, and where it was the context of a later record too."""
        for model in (MODEL, OTHER):
            context = [0, 0, places[1], places[0], 0]
            pairs = zip(places, context, strict=True)
            vectors = [Vector(place, near, str(place).encode()) for place, near in pairs]
            self._put(storage, model, *vectors)
        _ENDINGS[ending](space)
        left = [str(places[index]).encode() for index in (0, 3, 4)]
        with reading(storage) as (transaction, row):
            for model in (MODEL, OTHER):
                assert _kept(transaction, row, model) == left

    @pytest.mark.req("index:hybrid")
    def test_what_changes_no_text_keeps_the_vector(
        self, storage: Storage, space: Namespace, places: list[int]
    ) -> None:
        """Touching, metadata and reading are no reason to embed again."""
        self._put(storage, MODEL, *(Vector(place, 0, b"v") for place in places))
        space.touch("a", expires_in=60)
        space.update("b", metadata={"new": 1})
        space.recall_for_prompt(["c"])
        with reading(storage) as (transaction, row):
            assert len(_kept(transaction, row)) == len(places) == row.documents

    @pytest.mark.req("op:save")
    def test_an_undone_transaction_leaves_the_vectors(
        self, storage: Storage, places: list[int]
    ) -> None:
        """New ones go, old ones stay."""
        self._put(storage, MODEL, Vector(places[0], 0, b"old"))
        self._put(storage, OTHER, Vector(places[0], 0, b"other"))
        with pytest.raises(Undone), writing(storage) as (transaction, row):
            _change_all(transaction, row, places)
        with reading(storage) as (transaction, row):
            assert transaction.vector_counts(row) == {MODEL: 1, OTHER: 1}
            assert _kept(transaction, row) == [b"old"]
