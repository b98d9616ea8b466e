"""Claude Code's settings file with our hooks in it, and exactly as it was without them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from zero_mem import settings_file
from zero_mem.errors import InvalidInput
from zero_mem.settings_file import Change, read

Scope: TypeAlias = Literal["user", "project", "local"]

MARK: Final = "-m zero_mem.hook"
"""What a command of ours is known by."""

OFFLOADED: Final = "Bash|BashOutput|Grep|Glob|LS|WebFetch|WebSearch|mcp__.*"
"""Tools whose results are offloaded unless others are named."""

EXPANDED: Final = "Bash|PowerShell|Write|Edit|MultiEdit|NotebookEdit|WebFetch|Task|Agent|mcp__.*"
"""Tools to whose arguments a model may pass a handle."""

_TIMEOUT: Final = 30  # seconds
_NOTE: Final = ".zero-mem-hook.json"


def settings_path(scope: Scope, folder: Path, home: Path) -> Path:
    """Give the settings file of a scope: the user's, the project's, or the project's own here."""
    if scope == "user":
        return home / ".claude" / "settings.json"
    name = "settings.json" if scope == "project" else "settings.local.json"
    return folder / ".claude" / name


def installing(path: Path, command: str, *, tools: str = OFFLOADED) -> Change:
    """Say how a settings file becomes one that runs our hooks.

    Args:
        path: The settings file; it may not be there yet.
        command: The command that answers events; it holds `MARK`.
        tools: A pattern of the tools whose results are offloaded.

    Raises:
        InvalidInput: The file is not what Claude Code writes, or the pattern is none.
    """
    try:
        re.compile(tools)
    except re.error as error:
        raise InvalidInput(f"--tools is a pattern of tool names: {error}") from None
    before = read(path)
    parsed = _parsed(path, before)
    settings = _without(parsed)
    hooks = dict(settings.get("hooks", {}))
    for event, matcher in (
        ("SessionStart", None),
        ("PreToolUse", EXPANDED),
        ("PostToolUse", tools),
    ):
        ours = {"hooks": [{"type": "command", "command": command, "timeout": _TIMEOUT}]}
        group = ours if matcher is None else {"matcher": matcher, **ours}
        hooks[event] = [*hooks.get(event, []), group]
    return Change(
        path=path,
        before=before,
        after=_written({**settings, "hooks": hooks}, before),
        without=before if settings == parsed else _written(settings, before),
    )


def uninstalling(path: Path) -> Change:
    """Say how a settings file becomes what it was, with all that was changed in it since.

    Raises:
        InvalidInput: The file is not what Claude Code writes.
    """
    before = read(path)
    noted = settings_file.noted(path.with_name(_NOTE))
    if noted is not None and noted.is_untouched(before):
        return Change(path=path, before=before, after=noted.original, without=noted.original)
    settings = _parsed(path, before)
    rest = _without(settings)
    after = before if rest == settings else _written(rest, before)
    return Change(path=path, before=before, after=after, without=after)


def apply(change: Change, *, installs: bool) -> None:
    """Write a change, the whole file or nothing of it.

    Raises:
        StoreUnavailable: The file can't be written.
    """
    settings_file.apply(change, note=change.path.with_name(_NOTE), installs=installs)


def _parsed(path: Path, data: bytes | None) -> dict[str, Any]:
    if data is None or not data.strip():
        return {}
    try:
        settings = json.loads(data)
    except ValueError as error:
        raise InvalidInput(f"{path} is no JSON ({error}); nothing was changed") from None
    hooks = settings.get("hooks", {}) if isinstance(settings, dict) else None
    if not isinstance(hooks, dict) or not all(isinstance(g, list) for g in hooks.values()):
        raise InvalidInput(f"{path} holds no settings of Claude Code; nothing was changed")
    return dict(settings)


def _without(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Take our hooks out, and the groups and events that hold nothing else."""
    hooks: dict[str, Any] = {}
    for event, groups in settings.get("hooks", {}).items():
        kept = [rest for group in groups if (rest := _without_ours(group)) is not None]
        if kept or not groups:
            hooks[event] = kept
    rest = {name: value for name, value in settings.items() if name != "hooks"}
    had_hooks = "hooks" in settings and (hooks or not settings["hooks"])
    return {
        name: hooks if name == "hooks" else rest[name]
        for name in settings
        if name != "hooks" or had_hooks
    }


def _without_ours(group: Any) -> Any:
    if not isinstance(group, Mapping) or not isinstance(group.get("hooks"), list):
        return group
    kept = [hook for hook in group["hooks"] if not _is_ours(hook)]
    if len(kept) == len(group["hooks"]):
        return group
    return {**group, "hooks": kept} if kept else None


def _is_ours(hook: Any) -> bool:
    return isinstance(hook, Mapping) and MARK in str(hook.get("command", ""))


def _written(settings: Mapping[str, Any], before: bytes | None) -> bytes:
    """Write settings with the indentation that the file had."""
    found = re.search(rb"\n([ \t]+)", before or b"")
    indent = found[1].decode() if found else "  "
    ending = "\n" if before is None or before.endswith(b"\n") else ""
    return (json.dumps(settings, indent=indent, ensure_ascii=False) + ending).encode()
