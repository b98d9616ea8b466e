"""Where requests go: which path speaks which format, and which upstream serves it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from zero_mem.controller.messages import WireFormat
from zero_mem.errors import InvalidInput
from zero_mem.proxy.headers import Headers, first

FORMATS: Final[tuple[WireFormat, ...]] = ("openai_chat", "openai_responses", "anthropic")

_PATHS: Final[Mapping[str, WireFormat]] = {
    "/chat/completions": "openai_chat",
    "/responses": "openai_responses",
    "/messages": "anthropic",
    "/messages/count_tokens": "anthropic",
}
_ANTHROPIC_FIELDS: Final = (b"anthropic-version", b"anthropic-beta", b"x-api-key")


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A path that takes requests to a model; `counts` where it only counts their tokens."""

    wire_format: WireFormat
    counts: bool = False


def endpoint(method: str, path: str) -> Endpoint | None:
    """Tell what a request asks for, None where it is none of ours to understand."""
    bare = path.removeprefix("/v1")
    if method != "POST" or bare not in _PATHS:
        return None
    return Endpoint(wire_format=_PATHS[bare], counts=bare.endswith("/count_tokens"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstreams:
    """The upstream of each format, as URLs without a slash at the end."""

    urls: Mapping[WireFormat, str]

    def url(self, wire_format: WireFormat, path: str, query: str) -> str:
        """Give the URL that a request goes on to.

        Args:
            wire_format: Its format.
            path: The path as the client sent it, still encoded.
            query: The query as the client sent it, without "?".
        """
        base = self.urls[wire_format]
        if base.endswith("/v1") and (path == "/v1" or path.startswith("/v1/")):
            path = path[len("/v1") :]
        return f"{base}{path}?{query}" if query else base + path

    def vendor_of(self, path: str, headers: Headers) -> WireFormat:
        """Choose the format whose upstream serves a path that is none of a model's."""
        bare = path.removeprefix("/v1")
        if bare.startswith("/messages") or any(first(headers, f) for f in _ANTHROPIC_FIELDS):
            return "anthropic"
        return "openai_responses" if bare.startswith("/responses") else "openai_chat"


def upstreams(given: Iterable[str]) -> Upstreams:
    """Read `URL`, or `anthropic=URL` and `openai=URL`, several in one with commas between.

    A format that nothing names goes to the URL without a name, or else to the first one.

    Raises:
        InvalidInput: There is none, or one is no HTTP URL, or is named for nothing we know.
    """
    named: dict[str, str] = {}
    for each in (part.strip() for one in given for part in one.split(",")):
        name, equals, url = each.partition("=")
        known = ("openai", *FORMATS)
        if not equals or "://" in name:
            name, url = "", each
        elif name not in known:
            raise InvalidInput(f"an upstream is named for one of {', '.join(known)}, not {name!r}")
        named[name] = _checked(url)
    if not named:
        raise InvalidInput("name the upstream, such as https://api.anthropic.com")
    rest = named.get("", next(iter(named.values())))
    openai = named.get("openai", rest)
    fallback = {"openai_chat": openai, "openai_responses": openai, "anthropic": rest}
    return Upstreams(urls={form: named.get(form, fallback[form]) for form in FORMATS})


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise InvalidInput(f"an upstream is an http or https URL, not {url!r}")
    if parts.query or parts.fragment or parts.username or parts.password:
        raise InvalidInput("an upstream is a URL without query, fragment or password")
    return url.rstrip("/")
