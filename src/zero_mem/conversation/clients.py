"""The official clients of OpenAI and Anthropic with memory, synchronous and asynchronous.

    client = with_memory(OpenAI(), MemoryController(space, conversation="order-57"))

The client is used as before: `create`, `stream`, `parse`, raw responses. Requests are prepared,
responses absorbed, and calls to the memory tools answered between the client and its HTTP
client, so the program around it sees only its own tools' calls.
"""

from __future__ import annotations

import sys
from typing import Any

from zero_mem.conversation.controller import MemoryController
from zero_mem.conversation.exchange import MOST_ROUNDS, exchange
from zero_mem.conversation.transports import memory_transport
from zero_mem.errors import InvalidInput

__all__ = ["exchange", "with_memory"]


def with_memory(client: Any, controller: MemoryController, *, rounds: int = MOST_ROUNDS) -> Any:
    """Give a client the memory of one conversation.

    Args:
        client: `OpenAI`, `AsyncOpenAI`, `Anthropic` or `AsyncAnthropic`, or a subclass of one.
        controller: The conversation's; every call of the client belongs to it.
        rounds: Most requests that one call makes, memory rounds included.

    Returns:
        A copy of the client, of the same class, that shares its connections.

    Raises:
        InvalidInput: The client sends its requests in a way that can't be edited.
    """
    if not isinstance(controller, MemoryController):
        raise InvalidInput(
            f"with_memory takes a MemoryController, not {type(controller).__name__}: make one with "
            'MemoryController(memory.namespace("acme"), conversation="order-57")'
        )
    inner: Any = getattr(client, "_client", None)
    library = _library(inner)
    if library is None or not hasattr(client, "with_options"):
        raise InvalidInput(
            f"{type(client).__name__} is no client of openai or anthropic over httpx; use "
            "prepare and absorb of the controller around it"
        )
    if "Bedrock" in type(client).__name__ or "AWS" in type(client).__name__:
        raise InvalidInput(
            f"{type(client).__name__} signs each request as it stands; use prepare and absorb of "
            "the controller around it"
        )
    is_async = isinstance(inner, library.AsyncClient)
    kind = library.AsyncClient if is_async else library.Client
    # What the inner client adds to a request as it builds it; the rest it does as it sends.
    http_client = kind(
        transport=memory_transport(library, inner, controller, rounds),
        headers=inner.headers,
        params=inner.params,
        cookies=inner.cookies,
        timeout=inner.timeout,
        base_url=inner.base_url,
        follow_redirects=inner.follow_redirects,
        trust_env=False,
    )
    return client.with_options(http_client=http_client)


def _library(http_client: Any) -> Any:
    """Find the HTTP library of a client: httpx, or the one that took its place."""
    for base in type(http_client).__mro__:
        module = sys.modules.get(base.__module__.partition(".")[0])
        if base.__name__ in ("Client", "AsyncClient") and hasattr(module, "AsyncBaseTransport"):
            return module
    return None
