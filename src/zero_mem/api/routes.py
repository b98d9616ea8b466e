"""The table of routes: what the server answers, the client asks and the document describes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, Final, Literal, TypeAlias, get_type_hints
from urllib.parse import quote, unquote

from zero_mem.access.keys import Keyring
from zero_mem.api import arguments
from zero_mem.api.forms import JsonForm, form_of
from zero_mem.api.problems import Refusal
from zero_mem.errors import InvalidInput
from zero_mem.ledger.entries import Account
from zero_mem.memory import Memory
from zero_mem.past import Past
from zero_mem.space import Namespace
from zero_mem.subtree import Subtree

Target: TypeAlias = Literal["space", "past", "subtree", "store", "keyring", "server"]
"""What an operation belongs to; `server` is what no operation of the library answers."""

_CLASSES: Final[Mapping[str, type[Any]]] = {
    "space": Namespace,
    "past": Past,
    "subtree": Subtree,
    "store": Memory,
    "keyring": Keyring,
}
PLACES: Final[Mapping[str, tuple[str, ...]]] = {
    "space": ("namespace", "actor"),
    "past": ("namespace", "moment"),
    "subtree": ("below",),
    "store": (),
    "keyring": (),
    "server": (),
}
"""The query parameters that say where an operation works."""

_TYPES: Final = {"Account": Account}
"""Results that the library loads with the first call that gives one."""

_SPREAD: Final[Mapping[Any, Any]] = {
    inspect.Parameter.VAR_KEYWORD: {},
    inspect.Parameter.VAR_POSITIONAL: (),
}
"""Arguments that stand for many, and what they are when none is given."""

NEEDED: Final = frozenset({"namespace", "moment"})
HEADERS: Final[Mapping[str, str]] = {
    "if_version": "If-Match",
    "idempotency_key": "Idempotency-Key",
}
"""Arguments that a header may give."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument of an operation: its name, and whether and with what it may be left out."""

    name: str
    needed: bool
    default: Any


@dataclass(frozen=True, kw_only=True)
class Route:
    """One method of one path, and the operation behind it."""

    method: str
    path: str
    target: Target
    call: str
    example: Mapping[str, Any] = field(default_factory=dict)
    """The body of a request, or the query of one that has no body."""
    summary: str = ""
    media_type: str = ""
    """Of an answer that is no JSON."""
    query: Mapping[str, bool] = field(default_factory=dict)
    """Query parameters of what no operation of the library answers, and whether each is needed."""

    @property
    def name(self) -> str:
        """The operation's id, unique in the table."""
        return self.call if self.target in ("space", "server") else f"{self.target}_{self.call}"

    @property
    def has_body(self) -> bool:
        """Whether arguments come in a body; else they come in the query."""
        return self.method in ("POST", "PATCH", "PUT")

    @cached_property
    def function(self) -> Any:
        """The method of the library that is called."""
        return getattr(_CLASSES[self.target], self.call)

    @cached_property
    def parameters(self) -> dict[str, Parameter]:
        """The operation's arguments by name, as the library's own signature has them."""
        if self.target == "server":
            return {}
        found = list(inspect.signature(self.function).parameters.values())[1:]
        return {
            each.name: Parameter(
                each.name,
                each.default is each.empty and each.kind not in _SPREAD,
                _SPREAD.get(each.kind, each.default),
            )
            for each in found
        }

    @cached_property
    def limit(self) -> int | None:
        """How many the answer has at most where the request does not say."""
        default = self.parameters["limit"].default if "limit" in self.parameters else None
        return default if isinstance(default, int) else None

    @cached_property
    def in_path(self) -> tuple[str, ...]:
        """The arguments that stand in the path."""
        return tuple(re.findall(r"{(\w+)}", self.path))

    def perform(self, target: Any, given: dict[str, Any]) -> Any:
        """Call the operation on what it belongs to."""
        found = inspect.signature(self.function).parameters.values() if self._spreads else ()
        listed: list[Any] = []
        for each in found:
            if each.kind is each.VAR_KEYWORD:
                more = given.pop(each.name, {})
                if more.keys() & self.parameters.keys():
                    raise InvalidInput(f"{each.name} names an argument of the operation itself")
                given |= more
            elif each.kind is each.VAR_POSITIONAL:
                listed = given.pop(each.name, [])
        return getattr(target, self.call)(*listed, **given)

    @cached_property
    def _spreads(self) -> bool:
        kinds = {each.kind for each in inspect.signature(self.function).parameters.values()}
        return not kinds.isdisjoint(_SPREAD)

    @cached_property
    def result(self) -> JsonForm | None:
        """The form of the answer, None where there is nothing to say."""
        hint = get_type_hints(self.function, localns=_TYPES)["return"]
        return None if hint is type(None) else form_of(hint)

    @cached_property
    def is_wrapped(self) -> bool:
        """Whether the answer stands as `result` in an object, being none itself."""
        return self.result is not None and "$ref" not in self.result.schema

    def url(self, given: Mapping[str, Any]) -> str:
        """Write the path with its arguments in it."""
        return re.sub(r"{(\w+)}", lambda found: quote(str(given[found[1]]), safe=""), self.path)

    @cached_property
    def item(self) -> Route | None:
        """The route whose arguments an item of this batch has."""
        single = {"save_many": "save", "update_many": "update", "decide_many": "decide"}
        return by_name(single[self.call]) if self.call in single else None


def _space(method: str, path: str, call: str, **example: Any) -> Route:
    return Route(method=method, path=path, target="space", call=call, example=example)


def _read(target: Target, call: str, **example: Any) -> Route:
    """Make the route of a read of a past or a subtree, whose arguments are too many for a query."""
    path = f"/v1/{target}/{call}"
    return Route(method="POST", path=path, target=target, call=call, example=example)


_ONE = "/v1/records/{memory_id}"

ROUTES: Final = (
    _space("POST", "/v1/records", "save", content="Asia/Shanghai", kind="user_pref", key="zone"),
    _space("GET", "/v1/records", "list", where='{"kind":"user_pref"}', limit=10),
    _space("GET", _ONE, "get"),
    _space("PATCH", _ONE, "update", content="Europe/Berlin", if_version=1),
    _space("DELETE", _ONE, "delete"),
    _space("POST", f"{_ONE}/touch", "touch", expires_in=3600),
    _space("POST", f"{_ONE}/archive", "archive"),
    _space("POST", f"{_ONE}/restore", "restore"),
    _space("POST", f"{_ONE}/purge", "purge"),
    _space("POST", f"{_ONE}/read", "read", pointer="/items/0", budget=200),
    _space("GET", f"{_ONE}/history", "history"),
    _space("POST", "/v1/batch/save", "save_many", items=[{"content": "tea"}], on_error="skip"),
    _space(
        "POST", "/v1/batch/update", "update_many", items=[{"memory_id": "1", "tags": ["drink"]}]
    ),
    _space("POST", "/v1/batch/touch", "touch_many", memory_ids=["1", "2"]),
    _space("POST", "/v1/batch/archive", "archive_many", memory_ids=["1", "2"]),
    _space("POST", "/v1/batch/restore", "restore_many", memory_ids=["1", "2"]),
    _space("POST", "/v1/batch/delete", "delete_many", where={"kind": "draft"}),
    _space("POST", "/v1/batch/purge", "purge_many", memory_ids=["1"], dry_run=True),
    _space("POST", "/v1/batch/get", "get_many", memory_ids=["1", "2"]),
    _space("POST", "/v1/count", "count", where={"kind": "user_pref"}),
    _space("POST", "/v1/search", "search", query="time zone", limit=5),
    _space("POST", "/v1/recall", "recall", query="Which time zone?", budget=500),
    _space("POST", "/v1/prompt", "recall_for_prompt", memory_ids=["1"], budget=200),
    _space("POST", "/v1/batch/used", "mark_used", identities=["1"]),
    _space("POST", "/v1/rollback", "rollback", memory_id="1", to_version=1),
    _space("GET", "/v1/changes", "changes", after=0, limit=100),
    _space("POST", "/v1/tasks/start", "start_task", task="order 57", lease=3600),
    _space("POST", "/v1/tasks/renew", "renew_task", task="order 57"),
    _space("POST", "/v1/tasks/end", "end_task", task="order 57", dry_run=True),
    _space("POST", "/v1/events", "raise_event", event="order.cancelled", match={"order": 57}),
    _space("POST", "/v1/expire", "expire", dry_run=True),
    _space("POST", "/v1/duplicates", "duplicates", kind="note"),
    _space("GET", "/v1/limits", "limits", form="semantic", kind="user_pref"),
    _space("GET", "/v1/settings", "settings"),
    _space("GET", "/v1/redaction", "redaction"),
    _space("POST", "/v1/limits", "configure", kind="draft", settings={"max_memory_items": 100}),
    _space("POST", "/v1/decisions", "decide", scope="host", key="call-1", value="shown"),
    _space(
        "POST",
        "/v1/decisions/batch",
        "decide_many",
        items=[{"scope": "host", "key": "call-1", "value": "shown"}],
    ),
    _space("POST", "/v1/decisions/get", "decision", scope="host", key="call-1"),
    _space("GET", "/v1/decisions", "decisions", scope="host"),
    _space("POST", "/v1/decisions/at", "decisions_at", scopes=["host"]),
    _space("GET", "/v1/scopes", "scopes"),
    _space("POST", "/v1/holds", "hold", owner="agent", memory_id="1"),
    _space("POST", "/v1/holds/release", "release", owner="agent"),
    _space("GET", "/v1/failures", "failures"),
    Route(method="GET", path="/v1/past/records/{memory_id}", target="past", call="get"),
    _read("past", "list", where={"kind": "note"}),
    _read("past", "search", query="time zone"),
    _read("past", "recall", query="Which time zone?"),
    Route(method="GET", path="/v1/subtree/namespaces", target="subtree", call="namespaces"),
    _read("subtree", "list", limit=10),
    _read("subtree", "count", where={"kind": "note"}),
    _read("subtree", "search", query="time zone"),
    _read("subtree", "recall", query="Which time zone?"),
    Route(method="GET", path="/v1/now", target="store", call="now"),
    Route(method="GET", path="/v1/stats", target="store", call="stats"),
    Route(method="GET", path="/v1/ledger", target="store", call="ledger"),
    Route(method="GET", path="/v1/metrics", target="store", call="snapshot"),
    Route(method="GET", path="/v1/health", target="store", call="health"),
    Route(method="POST", path="/v1/flush", target="store", call="flush"),
    Route(
        method="POST",
        path="/v1/sweep",
        target="store",
        call="expire",
        example={"dry_run": True},
    ),
    Route(
        method="POST",
        path="/v1/keys",
        target="keyring",
        call="create",
        example={"name": "alice's agent", "grants": ["write:acme/alice/**"], "expires_in": 86400},
    ),
    Route(method="GET", path="/v1/keys", target="keyring", call="every"),
    Route(method="DELETE", path="/v1/keys/{key_id}", target="keyring", call="revoke"),
    Route(
        method="GET",
        path="/v1/changes/stream",
        target="server",
        call="follow",
        media_type="text/event-stream",
        summary="Follow the changes of a namespace as server-sent events, from a position on.",
        query={"namespace": True, "after": False},
    ),
    Route(
        method="GET",
        path="/v1/export",
        target="server",
        call="export",
        media_type="application/x-ndjson",
        summary="Give the records of a namespace as JSON lines, in the order of first saving.",
        query={"namespace": True, "where": False},
    ),
    Route(
        method="POST",
        path="/v1/import",
        target="server",
        call="import",
        summary="Read JSON lines into namespaces; lines that were read before change nothing.",
        query={"namespace": False, "on_conflict": False},
    ),
    Route(
        method="GET",
        path="/metrics",
        target="server",
        call="metrics",
        media_type="text/plain",
        summary="Give this process's counters for Prometheus.",
    ),
    Route(
        method="GET",
        path="/health",
        target="server",
        call="alive",
        summary="Tell that the process answers.",
    ),
    Route(
        method="GET",
        path="/ready",
        target="server",
        call="ready",
        summary="Tell whether the store answers.",
    ),
    Route(
        method="GET",
        path="/openapi.json",
        target="server",
        call="document",
        summary="Give this document.",
    ),
)
_BY_NAME: Final = {route.name: route for route in ROUTES}


def by_name(name: str) -> Route:
    """Give a route by its operation's id."""
    return _BY_NAME[name]


@cache
def _shapes() -> dict[tuple[str, ...], dict[str, Route]]:
    """Sort the table by the segments of its paths, "" standing for an argument."""
    found: dict[tuple[str, ...], dict[str, Route]] = {}
    for route in ROUTES:
        shape = tuple("" if part[:1] == "{" else part for part in route.path.split("/")[1:])
        found.setdefault(shape, {})[route.method] = route
    return found


def match(method: str, raw_path: bytes) -> tuple[Route, dict[str, str]]:
    """Find the route of a request, and the arguments in its path.

    The path is cut before it is decoded: a slash in an id does not make another path of it.

    Raises:
        Refusal: There is no such path, or it does not take the method.
        InvalidInput: The path is no UTF-8.
    """
    parts = raw_path.decode("latin-1").split("/")[1:]
    methods = _shapes().get(tuple(parts))
    if methods is None and len(parts) > 2:
        methods = _shapes().get((*parts[:2], "", *parts[3:]))
    if methods is None and len(parts) > 3:
        methods = _shapes().get((*parts[:3], "", *parts[4:]))
    if methods is None:
        raise Refusal("no-such-path", "there is no such path; GET /openapi.json has them all")
    route = methods.get(method)
    if route is None:
        allowed = ", ".join(sorted(methods))
        detail = f"the path takes {allowed}, not {method[:20]}"
        raise Refusal("wrong-method", detail, {"Allow": allowed})
    return route, _arguments(route, parts)


def _arguments(route: Route, parts: list[str]) -> dict[str, str]:
    places = [part[1:-1] if part[:1] == "{" else "" for part in route.path.split("/")[1:]]
    found = {}
    for name, part in zip(places, parts, strict=True):
        if name:
            try:
                found[name] = unquote(part, errors="strict")
            except UnicodeDecodeError:
                raise InvalidInput(f"{name} in the path is not UTF-8") from None
    return found


def read_arguments(route: Route, given: Mapping[str, Any]) -> dict[str, Any]:
    """Read the fields of a body as the operation's arguments.

    Raises:
        InvalidInput: A field is unknown, missing or of another type.
    """
    items = given.get("items") if "items" in route.parameters else None
    rest = {name: value for name, value in given.items() if name != "items" or items is None}
    known = [name for name in route.parameters if name != "items" and name not in route.in_path]
    found = arguments.read_fields(rest, known, route.name)
    if "items" in given and "items" in route.parameters:
        if not isinstance(items, list):
            raise InvalidInput("items is of type array")
        found["items"] = items
    return found


def check_needed(route: Route, found: Mapping[str, Any]) -> None:
    """Refuse a call that lacks what the operation needs.

    Raises:
        InvalidInput: Naming it.
    """
    for parameter in route.parameters.values():
        if parameter.needed and parameter.name not in found:
            raise InvalidInput(f"{parameter.name} is missing")


def items_of(route: Route, found: Mapping[str, Any]) -> arguments.Items | None:
    """Read the items of a batch; None where the route has none."""
    if route.item is None:
        return None
    needed = next(name for name, each in route.item.parameters.items() if each.needed)
    names = [name for name in route.item.parameters if name not in ("mode", "only_new")]
    step = arguments.item_read(names, needed, route.item.name)
    return arguments.Items(found["items"], step, str(found.get("on_error", "abort")))
