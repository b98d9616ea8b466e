"""The console: the store in a browser, in English and Chinese; it needs the extra `server`."""

from __future__ import annotations
