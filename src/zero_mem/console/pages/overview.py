"""The overview: what the store holds, what happens there, whether it is well."""

from __future__ import annotations

from zero_mem.console.visit import Page, Reply, Visit


def _show(visit: Visit) -> Reply:
    memory = visit.memory
    stats = memory.stats()
    return visit.render("overview.html", stats=stats, health=memory.health())


PAGE = Page(name="overview", path="/", gets={"/": _show}, needs_namespace=False)
