"""The pages, one module each.

To add a page `NAME`:

1. Write `pages/NAME.py` with functions from a `Visit` to a `Reply`, and a `PAGE`:

       def _show(visit: Visit) -> Reply:
           return visit.render("NAME.html", records=visit.space.list(limit=20))

       def _archive(visit: Visit) -> Reply:
           visit.space.archive(visit.field("id"))
           return visit.go("/NAME", notice="archived")

       PAGE = Page(name="NAME", path="/NAME", gets={"/NAME": _show}, posts={"/NAME": _archive})

   They run in a thread of the store's, so they call the library directly and may raise its
   errors: each becomes a page of its own with the right status. `visit.memory` and `visit.space`
   are the store as the visitor's key opens it, so rights hold without being asked; ask
   `visit.may("write")` only to leave out buttons that would be refused. A page for those who
   administer the whole store says `for_owner=True` and may use `visit.host.memory` then. A page
   that works without a namespace says `needs_namespace=False`; one that belongs to another and
   is not in the navigation itself says `within="OTHER"`.

2. Write `templates/NAME.html`; it extends `base.html` and fills the blocks `title` and `main`:

       {% extends "base.html" %}
       {% import "parts.html" as parts with context %}
       {% block title %}{{ t("NAME.title") }}{% endblock %}
       {% block main %}
       <h1>{{ t("NAME.title") }}</h1>
       <form method="post" action="{{ link('/NAME') }}">{{ parts.token() }} … </form>
       {% endblock %}

   Every value is escaped, and a name that is not there is an error. The helps are listed in
   `rendering.rendered`; `link` and `here` keep the namespace. A template has no word of its own,
   no script, no `style` and no `on…` attribute: the policy that is sent with it forbids them.
   Shapes are there as classes in `static/console.css`: card, tiles, facts, badge, form, empty, a
   table with `cards` (its rows become cards on a phone) or in `parts.scroll`. `charts` draws.

3. Write `words/NAME.toml` with the tables `[en]` and `[zh]`, the same names in both; `title` is
   the one in the navigation. `t("NAME.records", n=5)` chooses a plural form:

       records = { one = "{n} record", other = "{n} records" }

   A notice that `visit.go` names stands in `words/notice.toml`.

4. Add the module to `PAGES` below, where the navigation shall show it.

A script for what changes by itself is a file of `static/`, named by the block `scripts`; the page
has to say all that matters without it.
"""

from __future__ import annotations

from typing import Final

from zero_mem.console.pages import editing, live, overview, record, records
from zero_mem.console.visit import Page

PAGES: Final[tuple[Page, ...]] = (overview.PAGE, records.PAGE, record.PAGE, editing.PAGE, live.PAGE)
"""All pages, in the order of the navigation."""
