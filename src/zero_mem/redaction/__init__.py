"""What must not be stored: secrets by default, personal data on request."""

from __future__ import annotations

from zero_mem.redaction.engine import Engine, Found
from zero_mem.redaction.settings import NAMES, Redaction, Redactors, configured, of_namespace

__all__ = ["NAMES", "Engine", "Found", "Redaction", "Redactors", "configured", "of_namespace"]
