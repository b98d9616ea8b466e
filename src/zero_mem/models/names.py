"""The short names by which a store, the command line and the environment choose an embedder."""

from __future__ import annotations

from collections.abc import Callable

from zero_mem.errors import InvalidInput
from zero_mem.models.embedder import Embedder


def _e5() -> Embedder:
    from zero_mem.models.e5 import E5Embedder

    return E5Embedder()


def _use() -> Embedder:
    from zero_mem.models.use import USEEmbedder

    return USEEmbedder()


_NAMED: dict[str, Callable[[], Embedder]] = {"dense": _e5, "e5": _e5, "use": _use}


def embedder_named(name: str) -> Embedder:
    """Give the embedder that a name stands for.

    Args:
        name: "e5" (also "dense", the default of the extra), "use", the folder or name of a
            sentence-transformers model as "sentence-transformers:NAME", or an
            OpenAI-compatible endpoint as "https://HOST/v1?model=NAME&dimension=1536"
            (its key is read from the environment).

    Raises:
        InvalidInput: The name stands for none.
        MissingExtra: Its package is not installed.
    """
    if name in _NAMED:
        return _NAMED[name]()
    scheme, _, rest = name.partition(":")
    if scheme == "sentence-transformers" and rest:
        from zero_mem.models.sentence_transformers import SentenceTransformersEmbedder

        return SentenceTransformersEmbedder(rest)
    if scheme in ("http", "https"):
        from zero_mem.models.endpoint import EndpointEmbedder

        return EndpointEmbedder.from_url(name)
    raise InvalidInput(
        f"{name!r} names no embedder; use e5, use, sentence-transformers:NAME, "
        "or https://HOST/v1?model=NAME&dimension=N"
    )
