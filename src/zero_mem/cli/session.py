"""What the commands share: the store, the namespace, how to print, and how to fail."""

from __future__ import annotations

import inspect
import json
import os
import sys
from collections.abc import Callable
from functools import cached_property
from pathlib import Path as FilePath
from typing import Annotated, Any, Final, TypeAlias, get_type_hints

import typer

from zero_mem.cli.streams import plain_lines, say, whisper
from zero_mem.cli.text import clean
from zero_mem.environment import keys
from zero_mem.errors import InvalidInput, NotFound
from zero_mem.exchange import json_line
from zero_mem.memory import Memory
from zero_mem.space import Namespace
from zero_mem.storage.opening import URL_VARIABLE, default_path
from zero_mem.types import Path

NAMESPACE_VARIABLE = "ZERO_MEM_NAMESPACE"
CREDENTIAL_VARIABLE = "ZERO_MEM_CREDENTIAL"
EMBEDDER_VARIABLE = "ZERO_MEM_EMBEDDER"
DEFAULT_NAMESPACE = ("default",)

Store: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        envvar=URL_VARIABLE,
        help="The store, such as sqlite:///agent.db; by default memory.db in your data folder.",
    ),
]
Space: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--namespace",
        "-n",
        metavar="A/B",
        envvar=NAMESPACE_VARIABLE,
        help="The namespace, segments with / between, or a JSON list; `default` by default.",
    ),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON, on one line.")]

_SQLITE: Final = "sqlite:///"
_ELSEWHERE: Final = "no memory "
"""How an error begins that may be due to the wrong namespace."""

_SHARED: dict[str, Any] = {"store": Store, "namespace": Space, "as_json": AsJson}


class Session:
    """One run of a command; the store is opened when it is first asked for."""

    def __init__(
        self,
        *,
        store: str | None = None,
        namespace: str | None = None,
        as_json: bool = False,
        creates: bool = False,
    ) -> None:
        self.url = store
        self.named = None if namespace is None else parse_namespace(namespace)
        self.as_json = as_json
        self.creates = creates
        self.embedder = os.environ.get(EMBEDDER_VARIABLE) or None

    @cached_property
    def memory(self) -> Memory:
        """The store."""
        return self.opened(actor="cli")

    def opened(self, *, actor: str) -> Memory:
        """Open the store for someone; who asks closes it."""
        return Memory.open(
            self.url,
            create=self.creates,
            actor=actor,
            embedder=self.embedder,
            credential=os.environ.get(CREDENTIAL_VARIABLE) or None,
            **keys(),
        )

    @property
    def space(self) -> Namespace:
        """The namespace given, or the default one."""
        return self.memory.namespace(*self.path)

    @property
    def path(self) -> Path:
        """The segments of the namespace given, or of the default one."""
        return self.named or DEFAULT_NAMESPACE

    def rehearse(self) -> None:
        """Take an empty store in memory where there is none, since nothing will be written."""
        path = default_path()
        if self.url is not None:
            path = FilePath(self.url.removeprefix(_SQLITE))
        if (self.url is None or self.url.startswith(_SQLITE)) and not path.exists():
            self.url = "memory://"

    def close(self) -> None:
        """Close the store, if it was opened."""
        if "memory" in self.__dict__:
            self.memory.close()

    def show(self, value: Any, text: str) -> None:
        """Print the value as one line of JSON, or the text for people."""
        if self.as_json:
            with plain_lines() as lines:
                lines.write(json_line(value))
        else:
            say(f"{text}\n")

    def note(self, text: str) -> None:
        """Say something beside the result, to people."""
        if not self.as_json:
            whisper(clean(text))


def command(
    app: typer.Typer,
    name: str,
    *,
    shared: tuple[str, ...] = ("store", "namespace", "as_json"),
    creates: bool = False,
    **options: Any,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a function a command that gets a `Session`.

    Args:
        app: Where the command goes.
        name: Its name.
        shared: Which of the options `store`, `namespace` and `as_json` it takes; they go
            into the session.
        creates: Whether it makes a store where there is none.
        options: Passed on to typer.
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        def run(**values: Any) -> None:
            chosen = {name: values.pop(name) for name in shared}
            _run(function, Session(creates=creates, **chosen), values)

        _describe(run, function, shared)
        app.command(name, **options)(run)
        return function

    return register


def _run(function: Callable[..., None], session: Session, values: dict[str, Any]) -> None:
    try:
        function(session, **values)
    except NotFound as error:
        # Not after a version or an operation that is not there: the memory itself was found.
        if str(error).startswith(_ELSEWHERE):
            place = "/".join(session.path)
            error.add_note(f"(looked in namespace {place}; --namespace names another)")
        raise
    finally:
        session.close()


def _describe(
    run: Callable[..., None], function: Callable[..., None], shared: tuple[str, ...]
) -> None:
    """Give the command the parameters of the function, without its session, and the shared ones."""
    hints = get_type_hints(function, include_extras=True)
    own = list(inspect.signature(function).parameters.values())[1:]
    parameters = [
        each.replace(annotation=hints[each.name], kind=inspect.Parameter.KEYWORD_ONLY)
        for each in own
    ]
    for name in shared:
        default = False if name == "as_json" else None
        parameters.append(
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=_SHARED[name]
            )
        )
    run.__doc__, run.__name__ = function.__doc__, function.__name__
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]


def parse_namespace(text: str) -> Path:
    """Read `a/b`, or a JSON list where a segment holds a slash."""
    if not text.startswith("["):
        return tuple(text.split("/"))
    try:
        segments = json.loads(text)
    except ValueError:
        raise InvalidInput("--namespace begins with [ and is no JSON list of strings") from None
    if isinstance(segments, list) and all(isinstance(segment, str) for segment in segments):
        return tuple(segments)
    raise InvalidInput("--namespace begins with [ and is no JSON list of strings")


def on_terminal() -> bool:
    """Tell whether a person may be watching what goes to stderr."""
    return sys.stderr.isatty()
