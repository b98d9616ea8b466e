"""An embedder held at arm's length: bounded in time, checked, and asked nothing twice."""

from __future__ import annotations

import hashlib
import queue
import threading
import time
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

LINGER = 1.0
"""Seconds that the embedder's thread waits for the next call: to start one takes longer than to
look a vector up."""

T = TypeVar("T")


class _Outcome(Generic[T]):
    """What a call in another thread came to; as a context it keeps what was raised."""

    def __init__(self) -> None:
        self.results: list[T] = []
        self.error: BaseException | None = None
        self.ended = threading.Event()

    def __enter__(self) -> _Outcome[T]:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        self.error = error
        self.ended.set()
        return True  # whatever a caller's embedder raises, recall goes on without it


class _Thread:
    """Runs calls one after the other in a thread that is there while it is needed."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._handing_over = threading.Lock()

    def call(self, function: Callable[[], None]) -> None:
        """Hand a call over; it must not raise."""
        with self._handing_over:
            self._calls.put(function)
            # In a forked process the thread of its parent is dead.
            if self._thread is None or not self._thread.is_alive():
                # A daemon, so that an embedder that hangs does not keep the program from ending.
                self._thread = threading.Thread(
                    target=self._run, name="zero-mem-embedder", daemon=True
                )
                self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                function = self._calls.get(timeout=LINGER)
            except queue.Empty:
                with self._handing_over:
                    if self._calls.empty():
                        self._thread = None
                        return
            else:
                function()
                del function  # a thread that waits keeps no text


class Guard:
    """Calls an embedder in a thread of its own, one call at a time, and waits only so long.

    Args:
        embedder: The caller's.
        patience: Seconds that a read waits for it.
    """

    def __init__(self, embedder: Embedder, patience: float) -> None:
        self.name = embedder.name
        self.patience = patience
        self._embedder = embedder
        self._turn = threading.Lock()
        self._thread = _Thread()
        self._late: threading.Event | None = None
        self._model: VectorModel | None = None
        self._known: OrderedDict[bytes, Matrix] = OrderedDict()
        self._remembering = threading.Lock()

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

    def forget(self) -> None:
        """Forget the vectors of texts that were embedded before."""
        with self._remembering:
            self._known.clear()

    def _embed(self, texts: Sequence[str], query: bool, patient: bool) -> Matrix:
        model = self.model(patient=patient)
        asked = dict(zip((_key(text, query) for text in texts), texts, strict=True))
        found = {key: self._known[key] for key in asked if key in self._known}
        new = {key: text for key, text in asked.items() if key not in found}
        if new:
            found |= self._call(lambda: self._made(new, query, model), patient)
        return np.stack([found[_key(text, query)] for text in texts])

    def _made(
        self, asked: dict[bytes, str], query: bool, model: VectorModel
    ) -> dict[bytes, Matrix]:
        """Embed texts, and remember them: an answer that comes too late is there the next time."""
        given = self._embedder.embed(list(asked.values()), query=query)
        try:
            rows = unit_rows(given, count=len(asked), dimension=model.dimension)
        except (ValueError, TypeError) as error:
            raise EmbedderUnavailable(f"the embedder {self.name} {error}") from error
        made = dict(zip(asked, rows, strict=True))
        with self._remembering:
            self._known.update(made)
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return made

    def _call(self, function: Callable[[], T], patient: bool) -> T:
        """Call the embedder, once the calls before have ended, all within the patience."""
        until = None if patient else time.monotonic() + self.patience
        if not self._turn.acquire(timeout=-1 if patient else self.patience):
            raise self._slow()
        try:
            if self._late is not None:
                if not self._late.wait(_left(until)):
                    raise self._slow()
                self._late = None
            return self._in_thread(function, until)
        finally:
            self._turn.release()

    def _in_thread(self, function: Callable[[], T], until: float | None) -> T:
        outcome: _Outcome[T] = _Outcome()

        def run() -> None:
            with outcome:
                outcome.results.append(function())

        self._thread.call(run)
        if not outcome.ended.wait(_left(until)):
            self._late = outcome.ended
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


def _left(until: float | None) -> float | None:
    """Give the seconds until a moment of the monotonic clock; None means for ever."""
    return None if until is None else max(0.0, until - time.monotonic())


def _key(text: str, query: bool) -> bytes:
    return hashlib.blake2b(
        text.encode(), digest_size=16, person=b"question" if query else b"text"
    ).digest()
