"""The connection to a server; the one place that sends anything."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from zero_mem.errors import InvalidInput, MissingExtra, StoreUnavailable

try:
    import httpx2 as httpx
except ModuleNotFoundError as error:
    if error.name != "httpx2":
        raise
    raise MissingExtra("a store behind a server", "client") from error

_IDLE: Final = 30.0
"""Seconds that an unused connection is kept: fewer than the server keeps it."""
_MOST: Final = 100


class _QueriesKept(logging.Filter):
    """Keeps the queries of requests to our servers out of the HTTP library's own log.

    Filters stand in them, and so what memories say; that library logs whole URLs.
    """

    def __init__(self) -> None:
        super().__init__()
        self.servers: set[bytes] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        """Cut the query off; everything else is logged as ever."""
        if isinstance(record.args, tuple):
            record.args = tuple(map(self._logged, record.args))
        return True

    def _logged(self, value: object) -> object:
        if isinstance(value, httpx.URL) and value.netloc in self.servers:
            return value.copy_with(query=None)
        return value


_QUERIES: Final = _QueriesKept()
logging.getLogger(httpx.__name__).addFilter(_QUERIES)


class Connection:
    """A pool of connections to one server; safe to share between threads.

    Args:
        url: Where the server is, such as http://127.0.0.1:8765.
        credential: A key of the store.
        timeout: Seconds without a sign of life after which a request is given up.

    Raises:
        InvalidInput: The URL names no server.
    """

    def __init__(self, url: str, *, credential: str | None, timeout: float) -> None:
        if not url.startswith(("http://", "https://")):
            raise InvalidInput(
                f"a server is named by a URL such as http://127.0.0.1:8765, not {url!r}"
            )
        headers = {} if credential is None else {"Authorization": f"Bearer {credential}"}
        self.url = url
        try:
            _QUERIES.servers.add(httpx.URL(url).netloc)
            self._client = httpx.Client(
                base_url=url,
                headers=headers,
                timeout=timeout,
                limits=httpx.Limits(
                    max_connections=_MOST,
                    max_keepalive_connections=_MOST,
                    keepalive_expiry=_IDLE,
                ),
            )
        except (httpx.InvalidURL, UnicodeEncodeError, ValueError):
            raise InvalidInput("the URL or the credential is not one") from None

    def ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        *,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Send a request and give the answer.

        Raises:
            StoreUnavailable: There is no answer.
        """
        with _reaching(self.url):
            return self._client.request(
                method, path, params=query, content=content, headers=headers
            )

    @contextmanager
    def stream(
        self, path: str, query: Mapping[str, str], headers: Mapping[str, str]
    ) -> Iterator[httpx.Response]:
        """Send a request and give the answer while it arrives.

        Raises:
            StoreUnavailable: There is no answer, or it breaks off.
        """
        with (
            _reaching(self.url),
            self._client.stream("GET", path, params=query, headers=headers) as answer,
        ):
            yield answer

    def close(self) -> None:
        """Close every connection."""
        self._client.close()


@contextmanager
def _reaching(url: str) -> Iterator[None]:
    try:
        yield
    except httpx.ConnectError as error:
        raise StoreUnavailable(f"{url}: no server answers there; nothing was done") from error
    except httpx.TransportError as error:
        raise StoreUnavailable(
            f"{url}: the answer did not come ({type(error).__name__}); a write may be done or not: "
            "an idempotency_key or if_version makes it safe to try again"
        ) from error
    except httpx.InvalidURL:
        raise InvalidInput(f"{url!r} is no URL of a server") from None
    except RuntimeError as error:
        # What the client says when it was closed.
        raise StoreUnavailable(f"{url}: the store is closed; connect again") from error
