"""The programs that can use the server, and where and how each keeps its settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from zero_mem.errors import InvalidInput

Scope: TypeAlias = Literal["user", "project"]
Format: TypeAlias = Literal["json", "jsonc", "toml"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Where a program looks: the system (as `sys.platform`), folders, the environment."""

    system: str
    home: Path
    folder: Path
    environment: Mapping[str, str]

    @property
    def applications(self) -> Path:
        """The folder in which programs with windows keep their settings."""
        if self.system == "darwin":
            return self.home / "Library" / "Application Support"
        if self.system == "win32":
            return self._named("APPDATA") or self.home / "AppData" / "Roaming"
        return self._named("XDG_CONFIG_HOME") or self.home / ".config"

    def own(self, variable: str, usual: Path) -> Path:
        """Give the folder that a variable names, else the usual one."""
        return self._named(variable) or usual

    def _named(self, variable: str) -> Path | None:
        value = self.environment.get(variable)
        return Path(value) if value else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A program: the format of its settings, where servers stand in them, whether a type is said.

    Where there is no file of a scope, the program has no such scope.
    """

    name: str
    title: str
    format: Format
    servers: str
    says_type: bool = False

    def entry(self, command: Sequence[str]) -> dict[str, Any]:
        """Give what stands for a server that is started by a command."""
        kind = {"type": "stdio"} if self.says_type else {}
        return {**kind, "command": command[0], "args": list(command[1:])}


CLIENTS: Final = (
    Client(
        name="claude-code",
        title="Claude Code",
        format="json",
        servers="mcpServers",
        says_type=True,
    ),
    Client(name="claude-desktop", title="Claude Desktop", format="json", servers="mcpServers"),
    Client(name="cursor", title="Cursor", format="jsonc", servers="mcpServers"),
    Client(name="vscode", title="VS Code", format="jsonc", servers="servers", says_type=True),
    Client(name="codex", title="Codex", format="toml", servers="mcp_servers"),
)


def client_named(name: str) -> Client:
    """Give a client by its name.

    Raises:
        InvalidInput: There is none of this name.
    """
    for client in CLIENTS:
        if client.name == name:
            return client
    known = ", ".join(client.name for client in CLIENTS)
    raise InvalidInput(f"the client is one of {known}, not {name!r}")


def settings_path(client: Client, scope: Scope, around: Surroundings) -> Path:
    """Give the file in which a client keeps its servers.

    Raises:
        InvalidInput: The client has no settings of that scope.
    """
    found = _USER[client.name](around) if scope == "user" else _project(client.name, around)
    if found is None:
        raise InvalidInput(f"{client.title} has no settings for a project; use --scope user")
    return found


def _project(name: str, around: Surroundings) -> Path | None:
    below = _PROJECT.get(name)
    return None if below is None else around.folder / below


_USER: Final = {
    "claude-code": lambda a: a.own("CLAUDE_CONFIG_DIR", a.home) / ".claude.json",
    "claude-desktop": lambda a: a.applications / "Claude" / "claude_desktop_config.json",
    "cursor": lambda a: a.home / ".cursor" / "mcp.json",
    "vscode": lambda a: a.applications / "Code" / "User" / "mcp.json",
    "codex": lambda a: a.own("CODEX_HOME", a.home / ".codex") / "config.toml",
}
_PROJECT: Final = {
    "claude-code": ".mcp.json",
    "cursor": ".cursor/mcp.json",
    "vscode": ".vscode/mcp.json",
    "codex": ".codex/config.toml",
}
