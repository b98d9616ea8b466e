"""Any model of the `sentence-transformers` package, from a folder or its local cache."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from typing import Any

from zero_mem.errors import InvalidInput, MissingExtra
from zero_mem.models.embedder import Rows


class SentenceTransformersEmbedder:
    """Embeds with a model that is on this machine.

    Args:
        model: A folder, or the name of a model in the local cache.
        query_prefix: What the model wants before a question, such as "query: ".
        text_prefix: What it wants before what is searched, such as "passage: ".
        download: Let the package fetch a model that is not here.

    Raises:
        MissingExtra: `sentence-transformers` is not installed.
    """

    def __init__(
        self,
        model: str,
        *,
        query_prefix: str = "",
        text_prefix: str = "",
        download: bool = False,
    ) -> None:
        if find_spec("sentence_transformers") is None:
            raise MissingExtra("the sentence-transformers embedder", "sentence-transformers")
        self.name = f"sentence-transformers:{model}"
        if query_prefix or text_prefix:
            self.name += f" {query_prefix!r} {text_prefix!r}"
        self._path = model
        self._prefixes = {True: query_prefix, False: text_prefix}
        self._download = download

    @cached_property
    def _model(self) -> Any:
        from sentence_transformers import SentenceTransformer

        try:
            return SentenceTransformer(self._path, local_files_only=not self._download)
        except OSError as error:
            raise InvalidInput(
                f"the model {self._path!r} is not on this machine; give a folder, or "
                "download=True to fetch it"
            ) from error

    @property
    def dimension(self) -> int:
        """The length of a vector; asking for it loads the model."""
        return int(self._model.get_sentence_embedding_dimension())

    def embed(self, texts: Sequence[str], *, query: bool) -> Rows:
        """Embed texts; see `Embedder.embed`."""
        prefix = self._prefixes[query]
        rows: Rows = self._model.encode(
            [prefix + text for text in texts], show_progress_bar=False, normalize_embeddings=True
        )
        return rows
