"""Microsoft Presidio as an engine: names of people and places, found by a language model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Final

from zero_mem.errors import InvalidInput, MissingExtra
from zero_mem.redaction.engine import Found

MODELS: Final[Mapping[str, str]] = {"en": "en_core_web_sm"}
ENTITIES: Final = ("PERSON", "LOCATION")

_HAN: Final = re.compile("[\u3400-\u9fff]")
_LETTER: Final = re.compile("[A-Za-z\u00c0-\u024f]")


class Presidio:
    """Finds entities with `presidio-analyzer`; each is a kind by its name in lower case.

    A text is read in each language whose letters stand in it. Nothing is loaded before the
    first text, and nothing is ever downloaded: spaCy's models are installed by the user. A text
    takes milliseconds, which every save then takes too.

    Args:
        models: By language, the name or path of an installed spaCy model, such as
            {"en": "en_core_web_sm", "zh": "zh_core_web_sm"}.
        entities: What is looked for, by Presidio's names.
        score: The least confidence, 0 to 1.
        analyzer: An `AnalyzerEngine` of your own, with the languages of `models`.

    Raises:
        InvalidInput: No language or entity is given, or a score outside 0 to 1.
    """

    def __init__(
        self,
        *,
        models: Mapping[str, str] = MODELS,
        entities: Sequence[str] = ENTITIES,
        score: float = 0.5,
        analyzer: Any = None,
    ) -> None:
        if not models or not entities or isinstance(entities, str):
            raise InvalidInput("presidio needs a model for a language and a sequence of entities")
        if not 0 <= score <= 1:
            raise InvalidInput(f"score is between 0 and 1, not {score}")
        self._models = dict(models)
        self._entities = list(entities)
        self._score = score
        self._analyzer = analyzer
        self._loading = Lock()

    @property
    def kinds(self) -> frozenset[str]:
        """The entities, as kinds."""
        return frozenset(entity.lower() for entity in self._entities)

    def find(self, text: str) -> Iterator[Found]:
        """Find the entities of a text.

        Raises:
            MissingExtra: `presidio-analyzer` is not installed.
            InvalidInput: A model is not installed.
        """
        for language in self._models:
            if (_HAN if language == "zh" else _LETTER).search(text):
                yield from self._found(text, language)

    def _found(self, text: str, language: str) -> Iterator[Found]:
        results = self._loaded().analyze(
            text=text, language=language, entities=self._entities, score_threshold=self._score
        )
        for result in results:
            yield Found(result.start, result.end, result.entity_type.lower())

    def _loaded(self) -> Any:
        with self._loading:
            if self._analyzer is None:
                self._analyzer = _analyzer(self._models)
        return self._analyzer


def _analyzer(models: Mapping[str, str]) -> Any:
    try:
        from presidio_analyzer import AnalyzerEngine
        from presidio_analyzer.nlp_engine import NlpEngineProvider
        from spacy.util import is_package
    except ImportError as error:
        raise MissingExtra("the Presidio engine", "presidio") from error
    for model in models.values():
        # Presidio would download it, in the middle of a save.
        if not is_package(model) and not Path(model).exists():
            raise InvalidInput(f"no spaCy model {model!r} is installed: spacy download {model}")
    listed = [{"lang_code": code, "model_name": name} for code, name in models.items()]
    provider = NlpEngineProvider(nlp_configuration={"nlp_engine_name": "spacy", "models": listed})
    return AnalyzerEngine(nlp_engine=provider.create_engine(), supported_languages=list(models))
