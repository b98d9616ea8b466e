"""What a page is told of a request, and what it answers: values, without the protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import urlencode

from zero_mem.access.grants import BELOW, Right, allows
from zero_mem.api.arguments import namespace_text
from zero_mem.console.words import Words
from zero_mem.errors import InvalidInput, NotAllowed
from zero_mem.memory import Memory
from zero_mem.space import Namespace
from zero_mem.types import Path

if TYPE_CHECKING:
    from zero_mem.console.sessions import Who
    from zero_mem.server.host import Host

HTML: Final = "text/html; charset=utf-8"
_ACTOR: Final = "console"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What goes back."""

    body: bytes = b""
    status: int = 200
    media_type: str = HTML
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One request, and the store as far as who asks may see it.

    Attributes:
        host: The server.
        memory: The store as the visitor's key opens it.
        who: The visitor.
        words: Of the visitor's language.
        scheme: The colours that were chosen: light, dark, or "" for the system's.
        root: The path of the console, such as `/console`.
        path: The page's own path below it.
        pages: What the navigation shows.
        section: The name of the one there that this page belongs to.
        namespace: The one that is looked at; None where none was chosen.
        query: The parameters of the URL.
        form: The fields of a form that was sent; empty for a GET.
        token: What every form has to carry as `token`.
        template: Renders a template by name; pages call `render`.
    """

    host: Host
    memory: Memory
    who: Who
    words: Words
    scheme: str
    root: str
    path: str
    pages: tuple[Page, ...]
    section: str
    namespace: Path | None
    query: Mapping[str, str]
    form: Mapping[str, str]
    token: str
    template: Callable[[Visit, str, Mapping[str, Any]], str]

    # Where

    @property
    def space(self) -> Namespace:
        """The namespace that is looked at; what is written there is the console's in the journal.

        Raises:
            InvalidInput: None was chosen.
        """
        if self.namespace is None:
            raise InvalidInput("no namespace was chosen; name one in the address as ?ns=acme/alice")
        actor = self.memory.actor
        writer = f"{actor} ({_ACTOR})" if actor.startswith("key:") else _ACTOR
        return self.memory.namespace(*self.namespace, actor=writer)

    def may(self, right: Right) -> bool:
        """Tell whether the visitor has a right over the namespace."""
        grants = self.who.grants
        if grants is None:
            return True
        return self.namespace is not None and allows(grants, right, self.namespace)

    @property
    def owns_store(self) -> bool:
        """Whether the visitor may administer the store as a whole, its keys among it."""
        grants = self.who.grants
        return grants is None or any(
            grant.right == "admin" and grant.pattern == (BELOW,) for grant in grants
        )

    def check_owner(self) -> None:
        """Refuse who may not administer the store.

        Raises:
            NotAllowed: The key has no admin right over everything.
        """
        if not self.owns_store:
            raise NotAllowed(f"this needs a key with the grant admin:{BELOW}")

    # Links and answers

    def link(self, path: str, /, **query: Any) -> str:
        """Give the URL of a page, in the namespace that is looked at unless `ns` names one.

        Args:
            path: Below the console, such as `/record`.
            query: Its parameters; None and "" are left out, and a path is written as one.
        """
        given = {"ns": self.namespace, **query}
        written = {name: _parameter(value) for name, value in given.items()}
        text = urlencode({name: value for name, value in written.items() if value})
        return f"{self.root}{path}" + (f"?{text}" if text else "")

    def here(self, /, **query: Any) -> str:
        """Give this page's URL with some parameters changed."""
        kept = {name: value for name, value in self.query.items() if name not in ("ns", "notice")}
        return self.link(self.path, **{**kept, **query})

    def render(self, template: str, *, status: int = 200, **values: Any) -> Reply:
        """Answer with a template of `templates/`."""
        text = self.template(self, template, values)
        return Reply(body=text.encode("utf-8", "replace"), status=status)

    def go(self, path: str, /, *, notice: str = "", **query: Any) -> Reply:
        """Answer a form: lead on to a page, where the word `notice.NOTICE` is said."""
        where = self.link(path, **query, notice=notice)
        return Reply(status=303, headers={"Location": where})

    def field(self, name: str) -> str:
        """Give a field of the form.

        Raises:
            InvalidInput: It is missing.
        """
        if name not in self.form:
            raise InvalidInput(f"the form has no field {name}")
        return self.form[name]

    def at(self, namespace: Path | None) -> Visit:
        """Give the same request for another namespace."""
        return replace(self, namespace=namespace)


def _parameter(value: Any) -> str:
    if value is None:
        return ""
    return namespace_text(value) if isinstance(value, tuple) else str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """What a live page follows.

    Attributes:
        after: The position in the namespace's journal to begin after.
        write: Makes of an event's data (JSON of a `HistoryEntry`) what the page is sent.
    """

    after: int
    write: Callable[[bytes], bytes]


Show: TypeAlias = Callable[[Visit], Reply]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page, or several that belong together.

    Attributes:
        name: Also the name of its words; `NAME.title` is its title in the navigation.
        path: Where it begins, below the console.
        gets: What answers a GET, by path.
        posts: What answers a form, by path.
        feeds: What a live page follows, by path.
        needs_namespace: Whether one has to be chosen; then `Visit.space` is there.
        for_owner: Whether only who may administer the whole store gets it.
        within: The page of the navigation that it belongs to, where it is none itself.
    """

    name: str
    path: str
    gets: Mapping[str, Show] = field(default_factory=dict)
    posts: Mapping[str, Show] = field(default_factory=dict)
    feeds: Mapping[str, Callable[[Visit], Feed]] = field(default_factory=dict)
    needs_namespace: bool = True
    for_owner: bool = False
    within: str = ""
