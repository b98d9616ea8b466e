"""The console as a part of the server: who comes in, which page, and the walls around it."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import replace
from typing import Final
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from zero_mem.api.arguments import namespace_path
from zero_mem.api.problems import Refusal, problem_of
from zero_mem.console.files import static_files
from zero_mem.console.pages import PAGES
from zero_mem.console.rendering import rendered
from zero_mem.console.sessions import LONGEST, Attempts, Sessions
from zero_mem.console.visit import Feed, Page, Reply, Show, Task, Visit
from zero_mem.console.words import LANGUAGES, preferred, words_in
from zero_mem.errors import InvalidInput, NotAllowed, ZeroMemError
from zero_mem.operations.requests import check_path
from zero_mem.server import body
from zero_mem.server.host import Host

LOG: Final = logging.getLogger("zero_mem.console")

PREFIX: Final = "/console"
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
_LARGEST_FORM: Final = 2_097_152
_MOST_FIELDS: Final = 200
_FORM: Final = "application/x-www-form-urlencoded"
_LONGEST_POSITION: Final = 19
_OURS: Final = 500
"""From this status on it is the server that fails, so that nothing more is asked of the store."""


class Console:
    """The pages beneath `/console`.

    Args:
        host: The server.
    """

    prefix = PREFIX

    def __init__(self, host: Host) -> None:
        self._host = host
        self._sessions = Sessions()
        self._attempts = Attempts()
        self._gets = {path: (page, show) for page in PAGES for path, show in page.gets.items()}
        self._posts = {path: (page, show) for page in PAGES for path, show in page.posts.items()}
        self._tasks = {path: (page, task) for page in PAGES for path, task in page.tasks.items()}
        self._feeds = {path: (page, begin) for page in PAGES for path, begin in page.feeds.items()}

    def lifespan(self) -> AbstractAsyncContextManager[None]:
        """Live as long as the server does."""
        return nullcontext()

    def stop(self) -> None:
        """Let the server stop; the host ends the feeds."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request = Request(scope, receive)
        path = scope["path"].removeprefix(scope["root_path"])
        try:
            response = await self._answer(request, path)
        except ZeroMemError as error:
            response = await self._refused(request, path, error)
        except ClientDisconnect:
            return
        for name, value in (SECURITY | {"Cache-Control": "no-store"}).items():
            response.headers.setdefault(name, value)
        await response(scope, receive, send)

    async def _answer(self, request: Request, path: str) -> Response:
        if path == "":
            return RedirectResponse(f"{_root(request)}/", 308)
        if path.startswith("/static/"):
            return _static(request, path.removeprefix("/static/"))
        if request.method in ("GET", "HEAD"):
            return await self._get(request, path)
        if request.method == "POST":
            return await self._post(request, path)
        raise Refusal("wrong-method", f"{request.method} is not taken here", {"Allow": "GET, POST"})

    # Reading

    async def _get(self, request: Request, path: str) -> Response:
        visit = self._visit(request, path)
        if path == "/login":
            return _response(visit.render("login.html", refused=""))
        try:
            visit = await self._opened(request, visit)
        except Refusal as error:
            if error.name != "no-credential" or path in self._feeds:
                raise
            return self._to_login(visit, request)
        if path in self._feeds:
            return await self._follow(request, visit, *self._feeds[path])
        return await self._show(visit, *_found(self._gets, path))

    async def _show(self, visit: Visit, page: Page, show: Show) -> Response:
        if page.for_owner:
            visit.check_owner()
        visit = replace(visit, section=page.within or page.name)
        return _response(await self._host.run(lambda: _shown(visit, page, show)))

    async def _follow(
        self, request: Request, visit: Visit, page: Page, begin: Callable[[Visit], Feed]
    ) -> Response:
        if request.method == "HEAD":
            raise Refusal("wrong-method", "a feed has no end to tell", {"Allow": "GET"})
        if page.for_owner:
            visit.check_owner()
        feed = begin(visit)
        text = request.headers.get("last-event-id", str(feed.after))
        if not (text.isascii() and text.isdecimal() and len(text) < _LONGEST_POSITION):
            raise InvalidInput("a position in the journal is a whole number from 0")
        events = await self._host.follow(
            visit.memory, visit.who.credential, visit.space.path, int(text)
        )
        return StreamingResponse(_rewritten(events, feed), media_type="text/event-stream")

    # Forms

    async def _post(self, request: Request, path: str) -> Response:
        visit = self._visit(request, path)
        visit = replace(visit, form=await self._form(request))
        if not self._sessions.is_form_token(visit.who, visit.form.get("token", "")):
            raise NotAllowed("the form is of another session; open its page again")
        if path == "/login":
            return await self._log_in(request, visit)
        if path == "/preferences":
            return _preferences(request, visit)
        if path == "/logout":
            self._sessions.end(visit.who)
            response = _response(visit.at(None).go("/login", notice="logged-out"))
            response.delete_cookie(_SESSION, path=_root(request))
            return response
        visit = await self._opened(request, visit)
        if path in self._tasks:
            return await self._do(visit, *self._tasks[path])
        page, take = _found(self._posts, path)
        response = await self._show(replace(visit, path=page.path), page, take)
        self._host.bell.ring()
        return response

    async def _do(self, visit: Visit, page: Page, task: Task) -> Response:
        if page.for_owner:
            visit.check_owner()
        return _response(await task(replace(visit, path=page.path)))

    async def _form(self, request: Request) -> dict[str, str]:
        """Take in a form of this console's own pages.

        Raises:
            NotAllowed: Another site's page sent it.
        """
        if not _is_own(request):
            raise NotAllowed("a page of another site sent this form")
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
            raise Refusal("wrong-type", f"the body's Content-Type is {_FORM}")
        settings = self._host.settings
        content = await body.whole(
            request, most=min(settings.max_body, _LARGEST_FORM), seconds=settings.body_timeout
        )
        return _fields(content, "the form")

    async def _log_in(self, request: Request, visit: Visit) -> Response:
        self._attempts.admit(request.client.host if request.client else "")
        credential = visit.field("key").strip()
        try:
            key = await self._host.run(lambda: self._host.memory.keyring.verify(credential))
        except NotAllowed as error:
            LOG.info("a login was refused")
            return _response(visit.render("login.html", refused=str(error), status=401))
        self._sessions.end(visit.who)
        who = self._sessions.begin(credential, key)
        response = RedirectResponse(_own_place(visit, visit.form.get("next", "")), 303)
        response.set_cookie(
            _SESSION,
            who.session,
            path=_root(request),
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
            max_age=round(LONGEST),
        )
        return response

    # Who and where

    def _visit(self, request: Request, path: str, *, lenient: bool = False) -> Visit:
        """Make what is known of a request before its key was looked at."""
        who = self._sessions.who(request.cookies.get(_SESSION, ""))
        try:
            query = _fields(request.scope["query_string"], "the query")
            namespace = check_path(namespace_path(query["ns"], "ns")) if query.get("ns") else None
        except InvalidInput:
            if not lenient:
                raise
            query, namespace = {}, None
        language = request.cookies.get(_LANGUAGE, "")
        if language not in LANGUAGES:
            language = preferred(request.headers.get("accept-language", ""))
        scheme = request.cookies.get(_SCHEME, "")
        return Visit(
            host=self._host,
            memory=self._host.memory,
            who=who,
            words=words_in(language),
            scheme=scheme if scheme in _SCHEMES else "",
            root=_root(request),
            path=path,
            pages=(),
            section="",
            namespace=namespace,
            query=query,
            form={},
            token=self._sessions.form_token(who),
            template=rendered,
        )

    async def _opened(self, request: Request, visit: Visit) -> Visit:
        """Give the visit with the store as its key opens it.

        Raises:
            Refusal: There is no valid key, or it asks too often.
        """
        try:
            memory = await self._host.view(visit.who.credential, request.headers)
        except Refusal as error:
            if error.name == "no-credential":
                self._sessions.end(visit.who)
            raise
        visit = replace(visit, memory=memory)
        shown = (page for page in PAGES if not page.within)
        pages = tuple(page for page in shown if _is_offered(visit, page))
        visit = replace(visit, pages=pages)
        # What goes wrong from here on is told in the page's frame.
        request.state.visit = visit if visit.path in self._gets else replace(visit, path="/")
        return visit

    def _to_login(self, visit: Visit, request: Request) -> Response:
        following = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        where = f"{visit.root}/login?next={quote(following, safe='')}"
        if _SESSION not in request.cookies:
            return RedirectResponse(where, 303)
        response = RedirectResponse(f"{where}&notice=ended", 303)
        response.delete_cookie(_SESSION, path=visit.root)
        return response

    async def _refused(self, request: Request, path: str, error: ZeroMemError) -> Response:
        """Say what was wrong, within the page's frame where the visitor may see that."""
        row = problem_of(error)
        LOG.info("refused: %s", row.name)
        values = {"problem": row.name, "detail": str(error)}
        headers = getattr(error, "headers", {})

        def reply(visit: Visit) -> Reply:
            made = visit.render("refused.html", status=row.status, **values)
            return replace(made, headers={**made.headers, **headers})

        opened: Visit | None = getattr(request.state, "visit", None)
        if opened is not None and row.status < _OURS:
            with suppress(ZeroMemError):
                return _response(await self._host.run(lambda: reply(opened)))
        bare = self._visit(request, path if path in self._gets else "/", lenient=True)
        return _response(reply(bare))


def _is_offered(visit: Visit, page: Page) -> bool:
    """Tell whether the navigation shows a page to a visitor."""
    if page.for_owner:
        return visit.owns_store
    return visit.administers or not page.for_admins


def _shown(visit: Visit, page: Page, show: Show) -> Reply:
    """Answer for a page; where it needs a namespace and none was named, for the first there is."""
    if visit.namespace is not None or not page.needs_namespace:
        return show(visit)
    there = visit.memory.subtree().namespaces()
    if not there:
        return visit.render("nothing.html")
    return Reply(status=303, headers={"Location": visit.here(ns=there[0])})


def _found(table: Mapping[str, tuple[Page, Show]], path: str) -> tuple[Page, Show]:
    if path not in table:
        raise Refusal("no-such-path", "the console has no such page")
    return table[path]


def _root(request: Request) -> str:
    return str(request.scope["root_path"])


def _response(reply: Reply) -> Response:
    return Response(reply.body, reply.status, dict(reply.headers), media_type=reply.media_type)


def _static(request: Request, name: str) -> Response:
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


def _fields(content: bytes, what: str) -> dict[str, str]:
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


def _is_own(request: Request) -> bool:
    """Tell whether a form comes from a page of this server, as far as the browser says."""
    origin = request.headers.get("origin")
    if origin is None:
        return request.headers.get("sec-fetch-site", "same-origin") == "same-origin"
    return urlsplit(origin).netloc == request.headers.get("host", "")


def _own_place(visit: Visit, wanted: str) -> str:
    """Give where to go on, if it is a page of the console."""
    is_own = wanted.startswith(f"{visit.root}/") and ".." not in unquote(wanted)
    return wanted if is_own and wanted.isascii() and wanted.isprintable() else f"{visit.root}/"


def _preferences(request: Request, visit: Visit) -> Response:
    """Keep the language and the colours that were chosen in a cookie."""
    response = RedirectResponse(_own_place(visit, visit.form.get("next", "")), 303)
    for name, field, known in ((_LANGUAGE, "language", LANGUAGES), (_SCHEME, "scheme", _SCHEMES)):
        chosen = visit.form.get(field)
        if chosen is not None and chosen in known:
            response.set_cookie(
                name, chosen, path=visit.root, max_age=_YEAR, httponly=True, samesite="strict"
            )
    return response


async def _rewritten(events: AsyncIterator[bytes], feed: Feed) -> AsyncIterator[bytes]:
    """Give a feed's events with the data that the page shows."""
    async for event in events:
        head, found, rest = event.partition(b"\ndata: ")
        if not found:
            yield event
            continue
        yield head + found + feed.write(rest.removesuffix(b"\n\n")) + b"\n\n"
