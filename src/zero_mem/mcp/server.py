"""The protocol server: the SDK's handlers over a namespace, whatever carries them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import partial
from importlib.metadata import version
from typing import Any, Final, Protocol, TypeVar, cast

from zero_mem.errors import InvalidInput, NotFound, ZeroMemError
from zero_mem.mcp import addresses, resources
from zero_mem.mcp.calls import Answer, call, refused
from zero_mem.mcp.definitions import (
    BY_NAME,
    INSTRUCTIONS,
    RECEIPT_SCHEMA,
    TOOLS,
    Definition,
)
from zero_mem.mcp.sdk import MCPError, Server, ServerRequestContext, types
from zero_mem.mcp.watching import News, Subscriptions, changed
from zero_mem.space import Namespace

R = TypeVar("R")
Context = ServerRequestContext[Any, Any]

_NAME: Final = "zero-mem"
_SUBSCRIPTION: Final = "io.modelcontextprotocol/subscriptionId"


class Session(Protocol):
    """One client's namespace, and how its calls reach the store."""

    space: Namespace

    async def run(self, work: Callable[[], R]) -> R:
        """Run blocking work in a thread."""

    def wrote(self) -> None:
        """Take note that something was written."""

    def listening(self) -> AbstractAsyncContextManager[News]:
        """Give the changes from now on; they end when the connection or its key does.

        Raises:
            ZeroMemError: The namespace can't be read, or too many listen already.
        """


def server(
    session_of: Callable[[Context], Session], *, subscriptions: Subscriptions | None = None
) -> Server[Any]:
    """Make the protocol server.

    Args:
        session_of: Gives the session of a request.
        subscriptions: Those of the one connection, where what carries it can send by itself.
    """
    handlers = _Handlers(session_of, subscriptions)
    made: Server[Any] = Server(
        _NAME,
        version=version("zero-mem"),
        instructions=INSTRUCTIONS,
        get_tool_input_schema=_input_schema,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
        on_subscriptions_listen=handlers.listen,
        on_subscribe_resource=handlers.subscribe if subscriptions else None,
        on_unsubscribe_resource=handlers.unsubscribe if subscriptions else None,
    )
    return made


def _input_schema(name: str) -> dict[str, Any] | None:
    return BY_NAME[name].input_schema if name in BY_NAME else None


class _Handlers:
    def __init__(
        self, session_of: Callable[[Context], Session], subscriptions: Subscriptions | None
    ) -> None:
        self._session_of = session_of
        self._subscriptions = subscriptions

    async def list_tools(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_tool(tool) for tool in TOOLS])

    async def call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        if params.name not in BY_NAME:
            known = ", ".join(BY_NAME)
            raise MCPError(types.INVALID_PARAMS, f"there is no such tool; there are {known}")
        session = self._session_of(context)
        try:
            answer = await session.run(partial(call, session.space, params.name, params.arguments))
        except ZeroMemError as error:
            return _tool_result(refused(error))
        if answer.receipt is not None:
            session.wrote()
        return _tool_result(answer)

    async def list_resources(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        session = self._session_of(context)
        entries = await _asked(session.run(partial(resources.listed, session.space)))
        return types.ListResourcesResult(resources=[_resource(one) for one in entries])

    async def list_templates(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(
            name="memory",
            uri_template=addresses.TEMPLATE,
            description="A memory by its id; #/a/0 is a JSON Pointer to a part.",
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        session, uri = self._session_of(context), str(params.uri)
        content = await _asked(session.run(partial(resources.content, session.space, uri)))
        return types.ReadResourceResult(contents=[_contents(uri, content)])

    async def list_prompts(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        prompt = types.Prompt(name=resources.PINNED, description="What is pinned in memory.")
        return types.ListPromptsResult(prompts=[prompt])

    async def get_prompt(
        self, context: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        if params.name != resources.PINNED:
            raise MCPError(
                types.INVALID_PARAMS, f"there is no such prompt; there is {resources.PINNED}"
            )
        session = self._session_of(context)
        text = await _asked(session.run(partial(resources.pinned, session.space)))
        message = types.PromptMessage(role="user", content=types.TextContent(text=text))
        return types.GetPromptResult(messages=[message])

    async def subscribe(
        self, context: Context, params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        async def tell(uri: str) -> None:
            await context.session.send_resource_updated(uri)

        if self._subscriptions is not None:
            await _asked(self._subscriptions.add(str(params.uri), tell))
        return types.EmptyResult()

    async def unsubscribe(
        self, context: Context, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        if self._subscriptions is not None:
            self._subscriptions.drop(str(params.uri))
        return types.EmptyResult()

    async def listen(
        self, context: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Tell a client what changes, until the connection, its key or the server ends."""
        wanted = params.notifications
        meta: dict[str, Any] = {_SUBSCRIPTION: context.request_id}
        honoured = types.SubscriptionFilter(
            resources_list_changed=wanted.resources_list_changed or None,
            resource_subscriptions=wanted.resource_subscriptions or None,
        )
        acknowledged = types.SubscriptionsAcknowledgedNotification(
            params=types.SubscriptionsAcknowledgedNotificationParams(
                notifications=honoured, _meta=meta
            )
        )
        async with AsyncExitStack() as stack:
            listening = self._session_of(context).listening()
            news = await _asked(stack.enter_async_context(listening))
            await _notify(context, acknowledged)
            async for entries in news:
                for notification in _notifications(honoured, changed(entries), meta):
                    await _notify(context, notification)
        return types.SubscriptionsListenResult(_meta=meta)


async def _notify(context: Context, notification: Any) -> None:
    await context.session.send_notification(notification, related_request_id=context.request_id)


def _notifications(
    wanted: types.SubscriptionFilter, ids: list[str], meta: dict[str, Any]
) -> list[Any]:
    """Make the notifications that a subscription asked for."""
    found: list[Any] = []
    if ids and wanted.resources_list_changed:
        found.append(
            types.ResourceListChangedNotification(params=types.NotificationParams(_meta=meta))
        )
    for uri in wanted.resource_subscriptions or ():
        if addresses.names_one_of(uri, ids):
            params = types.ResourceUpdatedNotificationParams(uri=uri, _meta=meta)
            found.append(types.ResourceUpdatedNotification(params=params))
    return found


async def _asked(work: Awaitable[R]) -> R:
    """Wait for a read that has no tool result to say its error in: it becomes the protocol's."""
    try:
        return await work
    except ZeroMemError as error:
        wrong = isinstance(error, (InvalidInput, NotFound))
        code = types.INVALID_PARAMS if wrong else types.INTERNAL_ERROR
        raise MCPError(code, refused(error).text) from None


def _tool(tool: Definition) -> types.Tool:
    hints = (
        types.ToolAnnotations(read_only_hint=True)
        if tool.read_only
        else types.ToolAnnotations(
            destructive_hint=tool.destructive, idempotent_hint=tool.idempotent or None
        )
    )
    return types.Tool(
        name=tool.name,
        description=tool.purpose,
        input_schema=tool.input_schema,
        output_schema=RECEIPT_SCHEMA if tool.gives_receipt else None,
        annotations=hints,
    )


def _tool_result(answer: Answer) -> types.CallToolResult:
    values = None if answer.receipt is None else cast("dict[str, Any]", answer.receipt)
    return types.CallToolResult(
        content=[types.TextContent(text=answer.text)],
        structured_content=values,
        is_error=answer.is_error,
    )


def _resource(one: resources.Listed) -> types.Resource:
    return types.Resource(
        uri=one.uri,
        name=one.name,
        mime_type=one.media_type,
        annotations=types.Annotations(
            priority=1.0 if one.is_pinned else None, last_modified=one.updated
        ),
    )


def _contents(
    uri: str, content: resources.Content
) -> types.TextResourceContents | types.BlobResourceContents:
    if content.is_binary:
        return types.BlobResourceContents(uri=uri, mime_type=content.media_type, blob=content.data)
    return types.TextResourceContents(uri=uri, mime_type=content.media_type, text=content.data)
