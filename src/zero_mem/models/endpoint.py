"""Any OpenAI-compatible endpoint, by the standard library alone: a client, and an embedder on it.

This is the one module of Zero-Mem that reaches the network, and only to the address that its
caller names. Neither the key nor a text is ever in a message, a repr or a log.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import SplitResult, parse_qs, urlsplit

from zero_mem.errors import EmbedderUnavailable, EndpointUnavailable, InvalidInput
from zero_mem.models.embedder import Rows

KEY_VARIABLES = ("ZERO_MEM_EMBEDDER_KEY", "OPENAI_API_KEY")
"""The environment variables that may hold an embedder's key, the first one set counts."""

BATCH = 64
"""Texts of one request."""

RETRIES = 2
"""How often a request is repeated that the server was too busy for."""

LONGEST_WAIT = 10.0
"""Seconds between two attempts at most, whatever the server asks for."""

_BUSY = frozenset({408, 409, 425, 429, 500, 502, 503, 504})


class Endpoint:
    """Sends JSON to an OpenAI-compatible API and gives the JSON of its answers.

    Busy servers are asked at most `RETRIES` times more, no redirect is followed. It may be used
    from several threads at once.

    Args:
        url: The API's root, such as "https://api.openai.com/v1".
        model: The model's name as the server knows it, for messages.
        key: Sent as a bearer token; None for what the environment has.
        variables: The environment variables that may hold the key, the first one set counts.
            One from the environment goes only over https, or to this machine.
        timeout: Seconds that connecting and each read may take.
        sleep: Waits between repetitions.

    Attributes:
        name: Host and model, for messages.
        private: Whether what is sent can't be read on the way.

    Raises:
        InvalidInput: The address can't be used.
    """

    def __init__(
        self,
        url: str,
        *,
        model: str,
        key: str | None = None,
        variables: Sequence[str] = (),
        timeout: float = 30.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._address = _checked(url)
        self._host = self._address.hostname or ""
        self.name = f"{self._host}/{model}"
        self.private = _is_private(self._address)
        self._key = _key(self._address, variables) if key is None else key
        self._timeout = timeout
        self._sleep = sleep

    def __repr__(self) -> str:
        return f"Endpoint({self.name!r})"

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """Send a body to a path below the root and give the answer.

        Raises:
            EndpointUnavailable: The server did not answer, or not with JSON; `status` has the
                HTTP status where there was one.
        """
        written = json.dumps(body).encode()
        for waits in _repetitions():
            status, wanted, answer = self._post(path, written)
            if status == 200:
                return self._parsed(answer)
            if status not in _BUSY or waits is None:
                break
            self._sleep(min(wanted or waits, LONGEST_WAIT))
        raise EndpointUnavailable(
            f"{self.name}: the server answered with HTTP status {status}", status=status
        )

    def _post(self, path: str, body: bytes) -> tuple[int, float, bytes]:
        """Send one request; give the status, the wait the server asks for, and the answer."""
        import http.client  # the only use of the network, and only here

        secure = self._address.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = kind(self._host, self._address.port, timeout=self._timeout)
        try:
            root = self._address.path.rstrip("/")
            connection.request("POST", f"{root}/{path}", body, self._headers())
            response = connection.getresponse()
            return response.status, _seconds(response.headers.get("Retry-After")), response.read()
        except (OSError, http.client.HTTPException) as error:
            raise EndpointUnavailable(
                f"{self.name}: the server can't be reached ({type(error).__name__})"
            ) from error
        finally:
            connection.close()

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        return headers

    def _parsed(self, answer: bytes) -> Any:
        try:
            return json.loads(answer)
        except (ValueError, RecursionError) as error:
            raise EndpointUnavailable(f"{self.name}: the answer is no JSON", status=200) from error


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
        self._endpoint = Endpoint(
            url, model=model, key=key, variables=KEY_VARIABLES, timeout=timeout, sleep=sleep
        )
        if dimension < 1:
            raise InvalidInput(f"dimension is the length of the model's vectors, not {dimension}")
        self.name = self._endpoint.name
        self.dimension = dimension
        self._model = model

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
        try:
            answer = self._endpoint.post("embeddings", {"model": self._model, "input": list(texts)})
        except EndpointUnavailable as error:
            raise EmbedderUnavailable(str(error)) from error
        return self._rows(answer, len(texts))

    def _rows(self, answer: Any, count: int) -> Rows:
        try:
            found = sorted(answer["data"], key=lambda item: int(item["index"]))
            rows = [[float(number) for number in item["embedding"]] for item in found]
        except (ValueError, KeyError, TypeError) as error:
            raise EmbedderUnavailable(
                f"{self.name}: the answer is not a list of embeddings as OpenAI's API gives it"
            ) from error
        if len(rows) != count:
            raise EmbedderUnavailable(f"{self.name}: {len(rows)} vectors for {count} texts")
        return rows


def _repetitions() -> Iterator[float | None]:
    """Give what to wait after each attempt; None after the last."""
    yield from (0.5 * 2**attempt for attempt in range(RETRIES))
    yield None


def _is_private(address: SplitResult) -> bool:
    """Tell whether what is sent there can't be read on the way."""
    return address.scheme == "https" or address.hostname in ("localhost", "127.0.0.1", "::1")


def _checked(url: str) -> SplitResult:
    try:
        address = urlsplit(url)
        usable = address.scheme in ("http", "https") and bool(address.hostname)
        usable = usable and not (address.username or address.query or address.fragment)
        _ = address.port
    except ValueError:
        usable = False
    if not usable:
        raise InvalidInput(
            "an endpoint is an http or https address such as https://HOST/v1; its key is given "
            "apart"
        )
    return address


def _key(address: SplitResult, variables: Sequence[str]) -> str:
    """Read the key from the environment, unless it would cross a network in the clear."""
    if not _is_private(address):
        return ""
    return next((os.environ[name] for name in variables if os.environ.get(name)), "")


def _seconds(asked: str | None) -> float:
    """Read `Retry-After` where it is a number of seconds."""
    return float(asked) if asked is not None and asked.isdecimal() else 0.0
