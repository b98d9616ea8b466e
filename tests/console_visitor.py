"""A browser without scripts: follows the console's forms and links over real HTTP."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urljoin

import httpx2 as httpx


@dataclass
class Form:
    """A form of a page with the values that it would send."""

    action: str
    method: str
    fields: dict[str, str] = field(default_factory=dict)
    buttons: list[dict[str, str]] = field(default_factory=list)


class Parsed(HTMLParser):
    """What of a page the tests look at."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.forms: list[Form] = []
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self.links: list[str] = []
        self._area: str | None = None
        self.feed(text)

    @property
    def text(self) -> str:
        """The page's text, white space made single."""
        return " ".join(" ".join(self.texts).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.tags.append((tag, given))
        if tag == "form":
            self.forms.append(Form(given.get("action", ""), given.get("method", "get")))
        elif tag == "a":
            self.links.append(given.get("href", ""))
        elif self.forms and tag == "button":
            self.forms[-1].buttons.append(given)
        elif self.forms and tag in ("input", "select", "textarea") and "name" in given:
            self.forms[-1].fields[given["name"]] = given.get("value", "")
            self._area = given["name"] if tag == "textarea" else None

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            self._area = None

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if self._area is not None:
            fields = self.forms[-1].fields
            # A first line break belongs to the tag.
            fields[self._area] += data if fields[self._area] else data.removeprefix("\n")


class Visitor:
    """Keeps cookies, and follows redirects."""

    def __init__(self, url: str, **headers: str) -> None:
        self.http = httpx.Client(base_url=url, headers=headers, timeout=60)
        self.origin = url

    def __enter__(self) -> Visitor:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def get(self, path: str, status: int = 200, /, **query: Any) -> Parsed:
        """Open a page."""
        answer = self.http.get(f"/console{path}", params=query or None, follow_redirects=True)
        assert answer.status_code == status, answer.text
        return Parsed(answer.text)

    def raw(self, method: str, path: str, **given: Any) -> httpx.Response:
        """Send a request as it is."""
        return self.http.request(method, f"/console{path}", **given)

    def send(self, page: Parsed, action: str, status: int = 200, /, **fields: str) -> Parsed:
        """Fill in the form of a page that leads to a path, and send it as a browser would."""
        answer = self.answer(page, action, **fields)
        assert answer.status_code == status, answer.text
        return Parsed(answer.text)

    def answer(self, page: Parsed, action: str, /, **fields: str) -> httpx.Response:
        """Send a form and give the answer that it leads to."""
        posts = (form for form in page.forms if form.method == "post")
        form = next(f for f in posts if f.action.partition("?")[0] == f"/console{action}")
        return self.http.post(
            urljoin(self.origin, form.action),
            data=form.fields | fields,
            headers={"Origin": self.origin},
            follow_redirects=True,
        )

    def log_in(self, credential: str, status: int = 200) -> Parsed:
        """Log in with a key."""
        return self.send(self.get("/login"), "/login", status, key=credential)
