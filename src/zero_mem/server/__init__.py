"""The store over HTTP: one ASGI process; it needs the extra `server`."""

from __future__ import annotations
