"""Embedders: what dense recall may be given, each in a leaf that loads its package when used."""

from __future__ import annotations

from zero_mem.models.embedder import Embedder, Rows
from zero_mem.models.names import embedder_named

__all__ = ["Embedder", "Rows", "embedder_named"]
