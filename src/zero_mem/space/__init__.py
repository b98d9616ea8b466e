"""The view of one namespace: every operation and read on its memories.

A view can't leave its namespace: ids, keys, handles, history and search all resolve inside
it, and an id from elsewhere answers like one that does not exist.
"""

from __future__ import annotations

from zero_mem.space.forgetting import Forgetting
from zero_mem.space.journal import Journal
from zero_mem.space.reads import Reads
from zero_mem.space.settings import Settings
from zero_mem.space.writes import Writes


class Namespace(Writes, Reads, Journal, Forgetting, Settings):
    """The memories of one namespace; made by `Memory.namespace`."""


__all__ = ["Namespace"]
