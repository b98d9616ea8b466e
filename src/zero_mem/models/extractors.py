"""Names found by optional packages, beside those that the rules of the core find.

Each package is loaded when its extractor is made; see `text.entities.EntityExtractor`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from zero_mem.errors import InvalidInput, MissingExtra
from zero_mem.text.entities import Entity, EntityExtractor

_JIEBA_KINDS = {"nr": "person", "nrt": "person", "nrfg": "person", "ns": "place", "nt": "group",
                "nz": "name"}  # fmt: skip
_SPACY_KINDS = {
    "PERSON": "person", "PER": "person", "GPE": "place", "LOC": "place", "FAC": "place",
    "ORG": "group", "NORP": "group", "WORK_OF_ART": "title", "PRODUCT": "name", "EVENT": "name",
    "LAW": "name", "MISC": "name",
}  # fmt: skip
SPACY_MODEL = "en_core_web_sm"


class JiebaEntities:
    """Chinese people, places and groups, by the part of speech that jieba gives each word.

    Raises:
        MissingExtra: The extra `jieba` is not installed.
    """

    name = "jieba"

    def __init__(self) -> None:
        try:
            import rjieba
        except ModuleNotFoundError as error:
            raise MissingExtra("the jieba extractor", "jieba") from error
        self._tag: Callable[[str], list[tuple[str, str]]] = rjieba.tag

    def entities(self, text: str) -> Iterator[Entity]:
        """See `EntityExtractor`."""
        if text.isascii():
            return
        for word, tag in self._tag(text):
            kind = _JIEBA_KINDS.get(tag)
            if kind and len(word) > 1:
                yield Entity(word.lower(), kind=kind)


class SpacyEntities:
    """Named entities of a spaCy pipeline.

    Args:
        pipeline: The name of an installed model, or a loaded pipeline.

    Raises:
        MissingExtra: The extra `spacy` is not installed.
        InvalidInput: No such model is installed; nothing is downloaded.
    """

    def __init__(self, pipeline: str | Callable[[str], Any] = SPACY_MODEL) -> None:
        loaded = _spacy(pipeline) if isinstance(pipeline, str) else pipeline
        self._pipeline: Callable[[str], Any] = loaded
        meta: dict[str, str] = getattr(loaded, "meta", {})
        self.name = f"spacy:{meta.get('lang', '')}_{meta.get('name', 'own')}"

    def entities(self, text: str) -> Iterator[Entity]:
        """See `EntityExtractor`."""
        for found in self._pipeline(text).ents:
            kind = _SPACY_KINDS.get(found.label_)
            if kind:
                yield Entity(" ".join(found.text.split()).lower(), kind=kind)


def _spacy(model: str) -> Callable[[str], Any]:
    try:
        import spacy
    except ModuleNotFoundError as error:
        raise MissingExtra("the spaCy extractor", "spacy") from error
    try:
        pipeline: Callable[[str], Any] = spacy.load(model)
    except OSError as error:
        raise InvalidInput(
            f"no spaCy model {model!r} is installed; install it, or name another: spacy:MODEL"
        ) from error
    return pipeline


def extractor_named(name: str) -> EntityExtractor:
    """Make the extractor that a name stands for: `jieba`, `spacy`, or `spacy:MODEL`.

    Raises:
        InvalidInput: The name stands for none.
        MissingExtra: Its package is not installed.
    """
    kind, _, model = name.partition(":")
    if name == "jieba":
        return JiebaEntities()
    if kind == "spacy":
        return SpacyEntities(model or SPACY_MODEL)
    raise InvalidInput(f"an extractor is jieba, spacy, spacy:MODEL or your own, not {name!r}")
