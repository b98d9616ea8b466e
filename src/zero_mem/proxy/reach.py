"""Whether a model could read its memory: there are no receipts where no recall is reachable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from zero_mem.controller.definitions import MEMORY_TOOLS
from zero_mem.controller.messages import WireFormat
from zero_mem.controller.wire.places import tool_name
from zero_mem.controller.wire.sites import LIST_FIELD

_FORCING: Final = frozenset({"tool", "function", "custom", "allowed_tools", "none"})


def is_complete(request: Mapping[str, Any], wire_format: WireFormat) -> bool:
    """Tell whether a request has what every one has; what is wrong the upstream will say."""
    listed = request.get(LIST_FIELD[wire_format])
    if not isinstance(request.get("tools", []), list):
        return False
    if wire_format == "openai_responses" and isinstance(listed, str):
        return bool(listed)
    return isinstance(listed, list) and bool(listed) and all(isinstance(i, dict) for i in listed)


def can_offload(request: Mapping[str, Any], wire_format: WireFormat) -> bool:
    """Tell whether a conversation that begins with this request can be offloaded.

    Without tools of its own there will be no results, and the memory tools would only cost.
    """
    tools = request.get("tools")
    return isinstance(tools, list) and bool(tools) and answers_pass_here(request, wire_format)


def answers_pass_here(request: Mapping[str, Any], wire_format: WireFormat) -> bool:
    """Tell whether each answer comes through here once, where a memory call can be answered.

    It does not where several choices are asked for, where the response is fetched later, or
    where the provider keeps the history under an id of its own and would keep our rounds too.
    Where the host has a tool with the name of one of ours, its calls are the host's.
    """
    tools = request.get("tools")
    if isinstance(tools, list) and any(tool_name(tool) in MEMORY_TOOLS for tool in tools):
        return False
    if wire_format == "openai_chat":
        return request.get("n") in (None, 1)
    if wire_format == "openai_responses":
        return not request.get("background") and not request.get("conversation")
    return True


def may_call(request: Mapping[str, Any]) -> bool:
    """Tell whether the model is free to call a memory tool in its answer to this request."""
    choice = request.get("tool_choice")
    if isinstance(choice, Mapping):
        return choice.get("type") not in _FORCING
    return choice != "none"
