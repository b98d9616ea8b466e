"""Any OpenAI-compatible embedding endpoint, by the standard library alone.

This is the one module of Zero-Mem that reaches the network, and only to the address that its
caller names. Neither the key nor a text is ever in a message, a repr or a log.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from urllib.parse import SplitResult, parse_qs, urlsplit

from zero_mem.errors import EmbedderUnavailable, InvalidInput
from zero_mem.models.embedder import Rows

KEY_VARIABLES = ("ZERO_MEM_EMBEDDER_KEY", "OPENAI_API_KEY")
"""The environment variables that may hold the key, the first one set counts."""

BATCH = 64
"""Texts of one request."""

RETRIES = 2
"""How often a request is repeated that the server was too busy for."""

_BUSY = frozenset({408, 409, 425, 429, 500, 502, 503, 504})


class EndpointEmbedder:
    """Embeds by `POST {url}/embeddings`.

    Args:
        url: The API's root, such as "https://api.openai.com/v1".
        model: The model's name as the server knows it.
        dimension: The length of its vectors.
        key: Sent as a bearer token; by default the environment's ZERO_MEM_EMBEDDER_KEY or
            OPENAI_API_KEY, and none where neither is set. One from the environment goes
            only over https, or to this machine.
        timeout: Seconds that connecting and each read may take.
        sleep: Waits between repetitions.

    Raises:
        InvalidInput: The address or the dimension can't be used.
    """

    def __init__(
        self,
        url: str,
        *,
        model: str,
        dimension: int,
        key: str | None = None,
        timeout: float = 30.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._address = _checked(url)
        if dimension < 1:
            raise InvalidInput(f"dimension is the length of the model's vectors, not {dimension}")
        self.name = f"{self._address.hostname}/{model}"
        self.dimension = dimension
        self._model = model
        self._key = _key(self._address) if key is None else key
        self._timeout = timeout
        self._sleep = sleep

    @classmethod
    def from_url(cls, url: str) -> EndpointEmbedder:
        """Read `https://HOST/v1?model=NAME&dimension=N`.

        Raises:
            InvalidInput: The model or the dimension is missing.
        """
        root, _, query = url.partition("?")
        given = {name: values[-1] for name, values in parse_qs(query).items()}
        model, dimension = given.get("model", ""), given.get("dimension", "")
        if not model or not dimension.isdecimal():
            raise InvalidInput(
                "an embedding endpoint is named as https://HOST/v1?model=NAME&dimension=N, "
                "with N the length of the model's vectors"
            )
        return cls(root, model=model, dimension=int(dimension))

    def __repr__(self) -> str:
        return f"EndpointEmbedder({self.name!r}, dimension={self.dimension})"

    def embed(self, texts: Sequence[str], *, query: bool) -> Rows:
        """Embed texts, `BATCH` a request; see `Embedder.embed`.

        Raises:
            EmbedderUnavailable: The server did not answer, or not with vectors.
        """
        rows: list[Sequence[float]] = []
        for start in range(0, len(texts), BATCH):
            rows += self._batch(texts[start : start + BATCH])
        return rows

    def _batch(self, texts: Sequence[str]) -> Rows:
        body = json.dumps({"model": self._model, "input": list(texts)}).encode()
        for waits in self._repetitions():
            status, wanted, answer = self._post(body)
            if status == 200:
                return self._rows(answer, len(texts))
            if status not in _BUSY or waits is None:
                break
            self._sleep(min(wanted or waits, 10.0))
        raise EmbedderUnavailable(f"{self.name}: the server answered with HTTP status {status}")

    @staticmethod
    def _repetitions() -> Iterator[float | None]:
        """Give what to wait after each attempt; None after the last."""
        yield from (0.5 * 2**attempt for attempt in range(RETRIES))
        yield None

    def _post(self, body: bytes) -> tuple[int, float, bytes]:
        """Send one request; give the status, the wait the server asks for, and the answer."""
        import http.client  # the only use of the network, and only here

        secure = self._address.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        assert self._address.hostname is not None
        connection = kind(self._address.hostname, self._address.port, timeout=self._timeout)
        try:
            path = f"{self._address.path.rstrip('/')}/embeddings"
            connection.request("POST", path, body, self._headers())
            response = connection.getresponse()
            return response.status, _seconds(response.headers.get("Retry-After")), response.read()
        except (OSError, http.client.HTTPException) as error:
            raise EmbedderUnavailable(
                f"{self.name}: the server can't be reached ({type(error).__name__})"
            ) from error
        finally:
            connection.close()

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        return headers

    def _rows(self, answer: bytes, count: int) -> Rows:
        try:
            found = sorted(json.loads(answer)["data"], key=lambda item: int(item["index"]))
            rows = [[float(number) for number in item["embedding"]] for item in found]
        except (ValueError, KeyError, TypeError) as error:
            raise EmbedderUnavailable(
                f"{self.name}: the answer is not a list of embeddings as OpenAI's API gives it"
            ) from error
        if len(rows) != count:
            raise EmbedderUnavailable(f"{self.name}: {len(rows)} vectors for {count} texts")
        return rows


def _checked(url: str) -> SplitResult:
    address = urlsplit(url)
    if address.scheme not in ("http", "https") or not address.hostname or address.username:
        raise InvalidInput(
            "an embedding endpoint is an http or https address such as https://HOST/v1; "
            "its key is given apart"
        )
    return address


def _key(address: SplitResult) -> str:
    """Read the key from the environment, unless it would cross a network in the clear."""
    if address.scheme != "https" and address.hostname not in ("localhost", "127.0.0.1", "::1"):
        return ""
    return next((os.environ[name] for name in KEY_VARIABLES if os.environ.get(name)), "")


def _seconds(asked: str | None) -> float:
    """Read `Retry-After` where it is a number of seconds."""
    return float(asked) if asked is not None and asked.isdecimal() else 0.0
