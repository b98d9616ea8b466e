"""The templates: everything that is not a template's own text is escaped."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from itertools import islice
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from zero_mem.api.arguments import namespace_text
from zero_mem.console.files import static_files
from zero_mem.console.filtering import FIELDS
from zero_mem.console.showing import finalized
from zero_mem.console.visit import Visit
from zero_mem.console.words import LANGUAGES, TAGS

_OFFERED: Final = 200
"""Namespaces that the chooser offers; any other can be typed."""


@cache
def environment() -> Environment:
    """Make the environment; templates are compiled once."""
    made = Environment(
        loader=PackageLoader("zero_mem.console"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=finalized,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters["pretty"] = pretty
    made.filters["place"] = namespace_text
    made.filters["excerpt"] = excerpt
    made.globals["filtered"] = filtered
    made.globals.update(languages=LANGUAGES, tags=TAGS)
    return made


def rendered(visit: Visit, template: str, values: Mapping[str, Any]) -> str:
    """Render a template for a visit.

    Beside the page's values it has `visit`, `t` (a word), `number`, `size`, `share`, `date`,
    `time` (a moment as an element), `link`, `here` and `static`, and the filters `place` (a
    namespace as it stands in an address), `excerpt` and `pretty` (JSON).
    """
    words = visit.words
    helps = {
        "visit": visit,
        "t": words.say,
        "number": words.number,
        "size": words.size,
        "share": words.share,
        "date": words.date,
        "time": lambda moment: _time(words.moment(moment), moment),
        "link": visit.link,
        "here": visit.here,
        "static": lambda name: f"{visit.root}/static/{name}?v={static_files()[name].version}",
        "offered": lambda: list(islice(visit.memory.subtree().namespaces(), _OFFERED)),
    }
    return environment().get_template(template).render(helps | dict(values))


def excerpt(text: str, most: int = 280) -> str:
    """Give the beginning of a text, cut where it is long."""
    return text if len(text) <= most else f"{text[:most].rstrip()} …"


def filtered(query: Mapping[str, str]) -> bool:
    """Tell whether a query has a filter, an order or an earlier moment."""
    return any(query.get(name) for name in (*FIELDS, "order", "as_of"))


def _time(text: str, moment: datetime) -> Markup:
    return Markup('<time datetime="{}">{}</time>').format(moment.isoformat(), text)


def pretty(value: Any) -> str:
    """Write a JSON value for people to read."""
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)
