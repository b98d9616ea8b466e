"""The names of the official SDK that are used here; the one module that loads it."""

from __future__ import annotations

from zero_mem.errors import MissingExtra

try:
    import mcp_types as types
    from mcp import MCPError
    from mcp.server import Server, ServerRequestContext
    from mcp.server.stdio import stdio_server
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from mcp.shared.message import SessionMessage
    from pydantic import ValidationError
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] not in ("mcp", "mcp_types", "pydantic"):
        raise
    raise MissingExtra("the Model Context Protocol", "mcp") from error

__all__ = [
    "MCPError",
    "Server",
    "ServerRequestContext",
    "SessionMessage",
    "StreamableHTTPSessionManager",
    "ValidationError",
    "stdio_server",
    "types",
]
