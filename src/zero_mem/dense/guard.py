"""An embedder held at arm's length: bounded in time, checked, and asked nothing twice."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Generic, TypeVar

import numpy as np

from zero_mem.errors import EmbedderUnavailable, ZeroMemError
from zero_mem.index.nearest import Matrix, unit_rows
from zero_mem.index.vectors import EMBEDDED_CHARACTERS, RECIPE, safe_text
from zero_mem.models.embedder import Embedder
from zero_mem.storage.base import VectorModel

REMEMBERED = 4096
"""How many vectors are kept by the hash of their text (6 MB at 384 dimensions)."""

T = TypeVar("T")


class _Outcome(Generic[T]):
    """What a call in another thread came to; as a context it keeps what was raised."""

    def __init__(self) -> None:
        self.results: list[T] = []
        self.error: BaseException | None = None

    def __enter__(self) -> _Outcome[T]:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        self.error = error
        return True  # whatever a caller's embedder raises, recall goes on without it


class Guard:
    """Calls an embedder from threads of its own, one at a time, and waits only so long.

    Args:
        embedder: The caller's.
        patience: Seconds that a read waits for it.
    """

    def __init__(self, embedder: Embedder, patience: float) -> None:
        self.name = embedder.name
        self.patience = patience
        self._embedder = embedder
        self._turn = threading.Lock()
        self._late: threading.Thread | None = None
        self._model: VectorModel | None = None
        self._known: OrderedDict[bytes, Matrix] = OrderedDict()

    def model(self, *, patient: bool = False) -> VectorModel:
        """Tell what the vectors are to be recorded under; may load the embedder's model.

        Raises:
            EmbedderUnavailable: It fails or takes too long.
        """
        if self._model is None:
            dimension = self._call(lambda: int(self._embedder.dimension), patient)
            self._model = VectorModel(self.recorded_name, dimension)
        return self._model

    @property
    def recorded_name(self) -> str:
        """The name under which vectors are recorded: the embedder, and how texts are made."""
        return f"{self.name} (recipe {RECIPE})"

    def query(self, text: str) -> Matrix:
        """Embed one question.

        Raises:
            EmbedderUnavailable: The embedder fails, is too slow, or gives no vector.
        """
        rows: Matrix = self._embed([safe_text(text[:EMBEDDED_CHARACTERS])], True, False)[0]
        return rows

    def texts(self, texts: Sequence[str], *, patient: bool = False) -> Matrix:
        """Embed texts as `index.vectors.embedded_text` makes them, equal ones once.

        Args:
            texts: At least one.
            patient: Wait as long as it takes.

        Returns:
            A row of unit length for each text.

        Raises:
            EmbedderUnavailable: The embedder fails, is too slow, or gives no vectors.
        """
        return self._embed(texts, False, patient)

    def _embed(self, texts: Sequence[str], query: bool, patient: bool) -> Matrix:
        model = self.model(patient=patient)
        keys = [_key(text, query) for text in texts]
        found = {key: self._known[key] for key in keys if key in self._known}
        asked = {k: text for k, text in zip(keys, texts, strict=True) if k not in found}
        if asked:
            rows = self._call(lambda: self._rows(list(asked.values()), query, model), patient)
            found.update(zip(asked, rows, strict=True))
        self._remember(found)
        return np.stack([found[key] for key in keys])

    def _rows(self, texts: Sequence[str], query: bool, model: VectorModel) -> Matrix:
        given = self._embedder.embed(texts, query=query)
        try:
            return unit_rows(given, count=len(texts), dimension=model.dimension)
        except (ValueError, TypeError) as error:
            raise EmbedderUnavailable(f"the embedder {self.name} {error}") from error

    def _remember(self, found: dict[bytes, Matrix]) -> None:
        for key, row in found.items():
            self._known[key] = row
            self._known.move_to_end(key)
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)

    def _call(self, function: Callable[[], T], patient: bool) -> T:
        seconds = -1 if patient else self.patience
        if not self._turn.acquire(timeout=seconds):
            raise self._slow()
        try:
            if patient and self._late is not None:
                self._late.join()
            return self._in_thread(function, None if patient else seconds)
        finally:
            self._turn.release()

    def _in_thread(self, function: Callable[[], T], seconds: float | None) -> T:
        if self._late is not None and self._late.is_alive():
            raise EmbedderUnavailable(f"the embedder {self.name} is still busy with a former call")
        outcome: _Outcome[T] = _Outcome()

        def run() -> None:
            with outcome:
                outcome.results.append(function())

        # A daemon, so that an embedder that hangs does not keep the program from ending.
        thread = threading.Thread(target=run, name="zero-mem-embedder", daemon=True)
        thread.start()
        thread.join(seconds)
        if thread.is_alive():
            self._late = thread
            raise self._slow()
        if outcome.error is not None:
            raise self._failed(outcome.error) from outcome.error
        return outcome.results[0]

    def _slow(self) -> EmbedderUnavailable:
        return EmbedderUnavailable(
            f"the embedder {self.name} did not answer within {self.patience:g} s"
        )

    def _failed(self, error: BaseException) -> EmbedderUnavailable:
        # Only our own messages are known to hold neither a text nor a key.
        said = str(error) if isinstance(error, ZeroMemError) else type(error).__name__
        return EmbedderUnavailable(f"the embedder {self.name} failed: {said}")


def _key(text: str, query: bool) -> bytes:
    return hashlib.blake2b(
        text.encode(), digest_size=16, person=b"question" if query else b"text"
    ).digest()
