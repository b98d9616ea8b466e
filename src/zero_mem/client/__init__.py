"""A store behind `zero-mem serve`, with the names of a local one; it needs the extra `client`."""

from __future__ import annotations

from zero_mem.client.store import (
    RemoteMemory,
    RemoteNamespace,
    RemotePast,
    connect,
    connect_async,
)

__all__ = ["RemoteMemory", "RemoteNamespace", "RemotePast", "connect", "connect_async"]
