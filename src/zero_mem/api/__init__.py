"""The HTTP API as values: its routes, the JSON forms of what goes in and out, its problems.

One table (`api.routes`) says what there is. The server answers by it, the client asks by it and
the OpenAPI document is written from it, so that the three can't differ. Nothing here does I/O.
"""

from __future__ import annotations
