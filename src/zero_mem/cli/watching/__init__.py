"""The command that shows a store or a server at work: top."""

from __future__ import annotations

from zero_mem.cli.watching.commands import app

__all__ = ["app"]
