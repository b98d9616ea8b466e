"""A call of the library as a request by the table of routes, and its answer as a result."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Final

from zero_mem.api.arguments import Items, argument, item_written, write_fields
from zero_mem.api.problems import error_from
from zero_mem.api.routes import Route, Target, by_name
from zero_mem.api.text import dump, parse
from zero_mem.client.connection import Connection
from zero_mem.errors import EndpointUnavailable, InvalidInput
from zero_mem.operations.batch import BatchResult
from zero_mem.types import Unset

_JSON: Final = {"Content-Type": "application/json"}


class Calls:
    """What every remote view shares: its place at the server.

    Args:
        connection: The server.
        place: The query parameters that say where the operations work.
    """

    target: ClassVar[Target] = "space"

    def __init__(self, connection: Connection, place: Mapping[str, str]) -> None:
        self._connection = connection
        self._place = dict(place)

    def _call(self, call: str, **given: Any) -> Any:
        """Send a call and give its result.

        Raises:
            ZeroMemError: What the server raised, or the server can't be reached.
        """
        route = by_name(call if self.target == "space" else f"{self.target}_{call}")
        given = _said(route, given)
        items = None
        if route.item is not None and "items" in given:
            on_error = given.get("on_error", "abort")
            items = Items(given.pop("items"), partial(_item, route.item), on_error)
        written = write_fields(given)
        url = route.url(written)
        for name in route.in_path:
            del written[name]
        if items is not None:
            written["items"] = items.good
        found = self._send(route, url, written)
        return items.woven(found) if items is not None and isinstance(found, BatchResult) else found

    def _send(self, route: Route, url: str, written: Mapping[str, Any]) -> Any:
        if route.has_body:
            content = dump(written) if written else None
            answer = self._connection.ask(
                route.method, url, self._place, content=content, headers=_JSON
            )
        else:
            query = self._place | {name: _as_text(value) for name, value in written.items()}
            answer = self._connection.ask(route.method, url, query)
        return _result(route, answer.status_code, answer.content)


def _said(route: Route, given: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what need not be sent."""
    return {name: value for name, value in given.items() if not _is_default(route, name, value)}


def _item(route: Route, item: Any) -> Any:
    if isinstance(item, Mapping) and all(name in route.parameters for name in item):
        return item_written(_said(route, item))
    return item_written(item)


def _is_default(route: Route, name: str, value: Any) -> bool:
    """Tell whether an argument need not be sent."""
    if isinstance(value, Unset):
        return True
    default = route.parameters[name].default
    if route.call == "save" and default is None and value == "":
        return True  # as an empty field of a form
    if name == "form" and route.call == "limits":
        return False
    return type(value) is type(default) and bool(value == default)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else dump(value).decode("utf-8")


def _result(route: Route, status: int, content: bytes) -> Any:
    if status == 204:
        return None
    try:
        found = parse(content, "the server's answer")
        if status != 200:
            raise error_from(found)
        assert route.result is not None
        return route.result.read(found["result"] if route.is_wrapped else found)
    except (InvalidInput, KeyError, TypeError, ValueError, AttributeError) as error:
        if status != 200 and isinstance(error, InvalidInput) and _is_problem(content):
            raise
        raise EndpointUnavailable(
            f"the answer with status {status} is not one of this version of the API", status=status
        ) from error


def _is_problem(content: bytes) -> bool:
    return b'"urn:zero-mem:' in content


def moment_text(moment: Any) -> str:
    """Write a moment for a query."""
    return str(argument("to_moment").write(moment))
