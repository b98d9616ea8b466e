"""What the pages say and hear in HTTP: headers, cookies, forms, files and events."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from zero_mem.api.problems import Refusal
from zero_mem.console.files import static_files
from zero_mem.console.sessions import LONGEST
from zero_mem.console.visit import Feed, Visit
from zero_mem.console.words import LANGUAGES, preferred
from zero_mem.errors import InvalidInput
from zero_mem.server.feed import position

SECURITY: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "Cross-Origin-Resource-Policy": "same-origin",
    # A form's origin is only told where some referrer may be.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
_SESSION: Final = "zero-mem-console"
_LANGUAGE: Final = "zero-mem-language"
_SCHEME: Final = "zero-mem-scheme"
_SCHEMES: Final = ("", "light", "dark")
_YEAR: Final = 365 * 86_400
_MOST_FIELDS: Final = 200


def root(request: Request) -> str:
    """Give the path of the console."""
    return str(request.scope["root_path"])


# Cookies


def session_named(request: Request) -> str:
    """Give the session that a request names, "" where it names none."""
    return request.cookies.get(_SESSION, "")


def name_session(request: Request, response: Response, session: str) -> None:
    """Let the browser name a session from now on; no script and no other site can."""
    response.set_cookie(
        _SESSION,
        session,
        path=root(request),
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
        max_age=round(LONGEST),
    )


def forget_session(request: Request, response: Response) -> None:
    """Let the browser name no session any more."""
    response.delete_cookie(_SESSION, path=root(request))


def language_of(request: Request) -> str:
    """Give the language that was chosen, else the browser's."""
    chosen = request.cookies.get(_LANGUAGE, "")
    return chosen if chosen in LANGUAGES else preferred(request.headers.get("accept-language", ""))


def scheme_of(request: Request) -> str:
    """Give the colours that were chosen, "" for the system's."""
    chosen = request.cookies.get(_SCHEME, "")
    return chosen if chosen in _SCHEMES else ""


def keep_preferences(visit: Visit) -> Response:
    """Keep the language and the colours that were chosen in a cookie."""
    response = RedirectResponse(own_place(visit, visit.form.get("next", "")), 303)
    for name, field, known in ((_LANGUAGE, "language", LANGUAGES), (_SCHEME, "scheme", _SCHEMES)):
        chosen = visit.form.get(field)
        if chosen is not None and chosen in known:
            response.set_cookie(
                name, chosen, path=visit.root, max_age=_YEAR, httponly=True, samesite="strict"
            )
    return response


# Forms and addresses


def fields_of(content: bytes, what: str) -> dict[str, str]:
    """Read URL-encoded fields; a name that comes again goes before."""
    try:
        text = content.decode("ascii")
        pairs = parse_qsl(
            text,
            keep_blank_values=True,
            max_num_fields=_MOST_FIELDS,
            encoding="utf-8",
            errors="strict",
        )
    except ValueError:
        raise InvalidInput(f"{what} is not URL-encoded UTF-8 of some fields") from None
    return dict(pairs)


def is_own(request: Request) -> bool:
    """Tell whether a form comes from a page of this server, as far as the browser says.

    What no page can forge goes first: a proxy in between may have given the server another
    name than the browser knows.
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    origin = request.headers.get("origin")
    return origin is None or urlsplit(origin).netloc == request.headers.get("host", "")


def own_place(visit: Visit, wanted: str) -> str:
    """Give where to go on, if it is a page of the console."""
    is_own = wanted.startswith(f"{visit.root}/") and ".." not in unquote(wanted)
    return wanted if is_own and wanted.isascii() and wanted.isprintable() else f"{visit.root}/"


def position_of(request: Request, otherwise: int) -> int:
    """Give the position in the journal that a browser has seen, or another one.

    Raises:
        InvalidInput: It is none.
    """
    return position(request.headers.get("last-event-id", str(otherwise)))


# Answers


def static(request: Request, name: str) -> Response:
    """Give one of the console's own files, to be kept as long as its version is named.

    Raises:
        Refusal: There is none of that name.
    """
    file = static_files().get(name)
    if file is None:
        raise Refusal("no-such-path", "the console has no such file")
    tag = f'"{file.version}"'
    is_named = request.query_params.get("v") == file.version
    headers = {
        "ETag": tag,
        "Cache-Control": f"public, max-age={_YEAR}, immutable" if is_named else "no-cache",
    }
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(file.content, headers=headers, media_type=file.media_type)


async def rewritten(events: AsyncIterator[bytes], feed: Feed) -> AsyncIterator[bytes]:
    """Give a feed's events with the data that the page shows."""
    async for event in events:
        head, found, rest = event.partition(b"\ndata: ")
        if not found:
            yield event
            continue
        yield head + found + feed.write(rest.removesuffix(b"\n\n")) + b"\n\n"
