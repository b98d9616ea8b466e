"""The console as a part of the server: who comes in, which page, and the walls around it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import replace
from typing import Final
from urllib.parse import quote

from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from zero_mem.api.arguments import namespace_path
from zero_mem.api.problems import Refusal, problem_of
from zero_mem.console import protocol
from zero_mem.console.pages import PAGES
from zero_mem.console.rendering import rendered
from zero_mem.console.sessions import Attempts, Sessions
from zero_mem.console.visit import Feed, Page, Reply, Show, Visit
from zero_mem.console.words import words_in
from zero_mem.errors import InvalidInput, NotAllowed, ZeroMemError
from zero_mem.operations.requests import check_path
from zero_mem.server import body
from zero_mem.server.host import Host

LOG: Final = logging.getLogger("zero_mem.console")

PREFIX: Final = "/console"
_LARGEST_FORM: Final = 2_097_152
_FORM: Final = "application/x-www-form-urlencoded"
_UNBUFFERED: Final = {"X-Accel-Buffering": "no"}
"""Lets a proxy in between pass events on at once."""
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
        for name, value in (protocol.SECURITY | {"Cache-Control": "no-store"}).items():
            response.headers.setdefault(name, value)
        await response(scope, receive, send)

    async def _answer(self, request: Request, path: str) -> Response:
        if path == "":
            return RedirectResponse(f"{protocol.root(request)}/", 308)
        if path.startswith("/static/"):
            return protocol.static(request, path.removeprefix("/static/"))
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
        after = protocol.position_of(request, feed.after)
        events = await self._host.follow(
            visit.memory, visit.who.credential, visit.space.path, after
        )
        return StreamingResponse(
            protocol.rewritten(events, feed), media_type="text/event-stream", headers=_UNBUFFERED
        )

    # Forms

    async def _post(self, request: Request, path: str) -> Response:
        visit = self._visit(request, path)
        visit = replace(visit, form=await self._form(request))
        if not self._sessions.is_form_token(visit.who, visit.form.get("token", "")):
            raise NotAllowed("the form is of another session; open its page again")
        if path == "/login":
            return await self._log_in(request, visit)
        if path == "/preferences":
            return protocol.keep_preferences(visit)
        if path == "/logout":
            self._sessions.end(visit.who)
            response = _response(visit.at(None).go("/login", notice="logged-out"))
            protocol.forget_session(request, response)
            return response
        visit = await self._opened(request, visit)
        page, take = _found(self._posts, path)
        response = await self._show(replace(visit, path=page.path), page, take)
        self._host.bell.ring()
        return response

    async def _form(self, request: Request) -> dict[str, str]:
        """Take in a form of this console's own pages.

        Raises:
            NotAllowed: Another site's page sent it.
        """
        if not protocol.is_own(request):
            raise NotAllowed("a page of another site sent this form")
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
            raise Refusal("wrong-type", f"the body's Content-Type is {_FORM}")
        settings = self._host.settings
        content = await body.whole(
            request, most=min(settings.max_body, _LARGEST_FORM), seconds=settings.body_timeout
        )
        return protocol.fields_of(content, "the form")

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
        response = RedirectResponse(protocol.own_place(visit, visit.form.get("next", "")), 303)
        protocol.name_session(request, response, who.session)
        return response

    # Who and where

    def _visit(self, request: Request, path: str, *, lenient: bool = False) -> Visit:
        """Make what is known of a request before its key was looked at."""
        who = self._sessions.who(protocol.session_named(request))
        try:
            query = protocol.fields_of(request.scope["query_string"], "the query")
            namespace = check_path(namespace_path(query["ns"], "ns")) if query.get("ns") else None
        except InvalidInput:
            if not lenient:
                raise
            query, namespace = {}, None
        return Visit(
            host=self._host,
            memory=self._host.memory,
            who=who,
            words=words_in(protocol.language_of(request)),
            scheme=protocol.scheme_of(request),
            root=protocol.root(request),
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
        pages = tuple(page for page in shown if visit.owns_store or not page.for_owner)
        visit = replace(visit, pages=pages)
        # What goes wrong from here on is told in the page's frame.
        request.state.visit = visit if visit.path in self._gets else replace(visit, path="/")
        return visit

    def _to_login(self, visit: Visit, request: Request) -> Response:
        following = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        where = f"{visit.root}/login?next={quote(following, safe='')}"
        if not protocol.session_named(request):
            return RedirectResponse(where, 303)
        response = RedirectResponse(f"{where}&notice=ended", 303)
        protocol.forget_session(request, response)
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


def _response(reply: Reply) -> Response:
    return Response(reply.body, reply.status, dict(reply.headers), media_type=reply.media_type)
