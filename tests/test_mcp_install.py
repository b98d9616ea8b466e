"""Settings of clients: edited in place, shown, and put back to the byte."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_cli import run

from zero_mem import InvalidInput
from zero_mem.hook.settings import apply as apply_hook
from zero_mem.hook.settings import installing as installing_hook
from zero_mem.hook.settings import uninstalling as uninstalling_hook
from zero_mem.mcp.clients import CLIENTS, Client, Surroundings, client_named, settings_path
from zero_mem.mcp.installing import installing, note_path, uninstalling
from zero_mem.mcp.jsonc import Document
from zero_mem.settings_file import apply

pytestmark = pytest.mark.req("mcp:install")

COMMAND = ["/opt/zero-mem", "mcp", "serve", "--store", "sqlite:////data/m.db"]
LIBRARY = "Library/Application Support"
each_client = pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)

JSON_FILES = [
    "{}",
    "{ }\n",
    "",
    "\n",
    '{"mcpServers": {}}',
    '{"servers": {}, "mcpServers": {}}\n',
    '{"a": 1}',
    '{\n  "theme": "dark",\n  "mcpServers": {\n    "other": {\n      "args": []\n    }\n  }\n}\n',
    '{\r\n\t"mcpServers": {\r\n\t\t"other": {"command": "ü"}\r\n\t},\r\n\t"z": [1, null]\r\n}',
    '\ufeff{\n    "servers": {"other": {"type": "http", "url": "http://x"}}\n}',
    '{"mcpServers":{"other":{"command":"x"}},"oauth":{"secret":"s3cr3t"}}',
]
JSONC_FILES = [
    '// my servers\n{\n  // one\n  "servers": {\n    /* keep */\n  },\n}\n',
    '{\n  "servers": {\n    "other": { "command": "x" }, // mine, }\n  },\n  "a": [ "a", ],\n}\n',
    '{\n  "servers": {\n    "other": { "command": "x" } // last one\n    /* } */\n  }\n}',
    '{ "mcpServers": { "other": {"command": "//not a comment"}, }, }',
]
TOML_FILES = [
    "",
    'model = "o3"\n',
    'model = "o3"',
    '# a\n[mcp_servers.other]\ncommand = "x" # b\n\n[t]\nu = """\n[mcp_servers.zero-mem]\n"""\n',
    '[mcp_servers]\n\n[mcp_servers.other.env]\nA = "1"\n',
    'a = 1\r\n\r\n[mcp_servers.other]\r\ncommand = "x"\r\n',
    "[profiles.a]\nb = 1\n\n\n",
]


def files() -> list[tuple[str, str]]:
    found = [(client.name, text) for client in CLIENTS[:4] for text in JSON_FILES]
    found += [(name, text) for name in ("cursor", "vscode") for text in JSONC_FILES]
    return found + [("codex", text) for text in TOML_FILES]


FILES = files()


def meaning(client: Client, text: str) -> Any:
    text = text.removeprefix("\ufeff")
    if client.format == "toml":
        return tomllib.loads(text.replace("\r\n", "\n"))
    return Document(text, lenient=client.format == "jsonc").value


@pytest.fixture
def place(tmp_path: Path) -> tuple[Path, Path]:
    """Give the places of a settings file and of its note."""
    return tmp_path / "settings", tmp_path / "data" / "note.json"


def install(client: Client, place: tuple[Path, Path], command: list[str] = COMMAND) -> None:
    apply(installing(client, place[0], command), note=place[1], installs=True)


def uninstall(client: Client, place: tuple[Path, Path]) -> None:
    apply(uninstalling(client, *place), note=place[1], installs=False)


# Every kind of file


@pytest.mark.parametrize(("name", "text"), FILES, ids=range(len(FILES)))
def test_a_file_gets_the_server_and_is_put_back_to_the_byte(
    place: tuple[Path, Path], name: str, text: str
) -> None:
    client, path = client_named(name), place[0]
    path.write_bytes(text.encode())
    install(client, place)
    after = path.read_bytes().decode()
    wanted = meaning(client, text or ("" if client.format == "toml" else "{}"))
    wanted.setdefault(client.servers, {})["zero-mem"] = client.entry(COMMAND)
    assert meaning(client, after) == wanted
    uninstall(client, place)
    assert path.read_bytes() == text.encode()
    assert not place[1].exists()


@pytest.mark.parametrize(("name", "text"), FILES, ids=range(len(FILES)))
def test_what_others_changed_since_stays(place: tuple[Path, Path], name: str, text: str) -> None:
    client, path = client_named(name), place[0]
    path.write_bytes(text.encode())
    install(client, place)
    install(client, place, [*COMMAND, "--namespace", "b"])
    after = path.read_bytes().decode()
    edited = after + "\n" if client.format != "toml" else after + "\n[later]\nx = 1\n"
    path.write_bytes(edited.encode())
    uninstall(client, place)
    left = path.read_bytes().decode()
    wanted = meaning(client, text or ("" if client.format == "toml" else "{}"))
    if client.format == "toml":
        wanted = {**wanted, "later": {"x": 1}}
    assert meaning(client, left) == wanted
    if client.format != "toml" and text.strip() not in ("", "{ }"):
        assert left == text + "\n"


@each_client
def test_a_file_that_was_not_there_goes_again(place: tuple[Path, Path], client: Client) -> None:
    install(client, place)
    assert meaning(client, place[0].read_text()) == {
        client.servers: {"zero-mem": client.entry(COMMAND)}
    }
    assert oct(place[0].stat().st_mode & 0o777) == "0o600"
    uninstall(client, place)
    assert not place[0].exists()
    uninstall(client, place)
    assert not place[0].exists()


@each_client
def test_installing_twice_changes_nothing_and_anew_replaces(
    place: tuple[Path, Path], client: Client
) -> None:
    install(client, place)
    before = place[0].read_bytes()
    assert not installing(client, place[0], COMMAND).is_change
    install(client, place)
    assert place[0].read_bytes() == before
    install(client, place, ["zero-mem", "mcp", "serve"])
    found = meaning(client, place[0].read_text())[client.servers]
    assert found == {"zero-mem": client.entry(["zero-mem", "mcp", "serve"])}
    uninstall(client, place)
    assert not place[0].exists()


MALFORMED = [
    ("claude-code", b"{"),
    ("claude-code", b"[]"),
    ("claude-code", b'{"a": 1,}'),
    ("claude-code", b'{"a": 1} // no comments here'),
    ("claude-desktop", b'{"mcpServers": []}'),
    ("claude-desktop", b'{"mcpServers": {}, "mcpServers": {}}'),
    ("claude-desktop", b'{"a": "\xff"}'),
    ("cursor", b'{"a" 1}'),
    ("cursor", b'{"a": "b\nc"}'),
    ("vscode", b"/* no end"),
    ("vscode", b"{,}"),
    ("vscode", b"[" * 5000),
    ("codex", b"[mcp_servers"),
    ("codex", b"mcp_servers = 1\n"),
    ("codex", b'mcp_servers = {other = {command = "x"}}\n'),
    ("codex", b'mcp_servers.zero-mem.command = "x"\n'),
]


@pytest.mark.req("pkg:errors")
@pytest.mark.parametrize(("name", "data"), MALFORMED, ids=range(len(MALFORMED)))
def test_a_file_that_is_not_understood_is_left_alone(
    place: tuple[Path, Path], name: str, data: bytes
) -> None:
    place[0].write_bytes(data)
    with pytest.raises(InvalidInput, match="nothing was changed"):
        install(client_named(name), place)
    assert place[0].read_bytes() == data
    assert not place[1].exists()


def test_a_link_stays_and_its_file_keeps_its_mode(place: tuple[Path, Path], tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text("{}")
    real.chmod(0o644)
    place[0].symlink_to(real)
    install(client_named("cursor"), place)
    assert place[0].is_symlink()
    assert "zero-mem" in real.read_text()
    assert real.stat().st_mode & 0o777 == 0o644


scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=6)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    st.dictionaries(st.text(max_size=4), values, max_size=4),
    st.sampled_from([None, 2, "\t"]),
    st.booleans(),
)
def test_any_object_takes_a_member_in_and_gives_it_back(
    value: dict[str, Any], indent: int | str | None, ascii_only: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    if any("\ud800" <= c <= "\udfff" for c in text):
        return
    new = Document(text, lenient=False).put(("new one",), {"a": [1]})
    assert json.loads(new) == {**value, "new one": {"a": [1]}}
    assert Document(new, lenient=False).without(("new one",)) == text


# Places


@pytest.mark.parametrize(
    ("name", "system", "wanted"),
    [
        ("claude-code", "linux", "/h/.claude.json"),
        (
            "claude-desktop",
            "darwin",
            "/h/Library/Application Support/Claude/claude_desktop_config.json",
        ),
        ("claude-desktop", "win32", "/h/AppData/Roaming/Claude/claude_desktop_config.json"),
        ("claude-desktop", "linux", "/h/.config/Claude/claude_desktop_config.json"),
        ("cursor", "darwin", "/h/.cursor/mcp.json"),
        ("vscode", "linux", "/h/.config/Code/User/mcp.json"),
        ("vscode", "darwin", f"/h/{LIBRARY}/Code/User/mcp.json"),
        ("vscode", "win32", "/h/AppData/Roaming/Code/User/mcp.json"),
        ("codex", "linux", "/h/.codex/config.toml"),
    ],
)
def test_where_a_users_settings_are(name: str, system: str, wanted: str) -> None:
    around = Surroundings(system=system, home=Path("/h"), folder=Path("/p"), environment={})
    assert settings_path(client_named(name), "user", around) == Path(wanted)


def test_where_a_projects_settings_are_and_what_moves_a_users() -> None:
    moved = {"CODEX_HOME": "/c", "CLAUDE_CONFIG_DIR": "/k", "XDG_CONFIG_HOME": "/x"}
    around = Surroundings(system="linux", home=Path("/h"), folder=Path("/p"), environment=moved)
    found = {
        (client.name, scope): str(settings_path(client, scope, around))
        for client in CLIENTS
        for scope in ("user", "project")
        if (client.name, scope) != ("claude-desktop", "project")
    }
    assert found == {
        ("claude-code", "user"): "/k/.claude.json",
        ("claude-code", "project"): "/p/.mcp.json",
        ("claude-desktop", "user"): "/x/Claude/claude_desktop_config.json",
        ("cursor", "user"): "/h/.cursor/mcp.json",
        ("cursor", "project"): "/p/.cursor/mcp.json",
        ("vscode", "user"): "/x/Code/User/mcp.json",
        ("vscode", "project"): "/p/.vscode/mcp.json",
        ("codex", "user"): "/c/config.toml",
        ("codex", "project"): "/p/.codex/config.toml",
    }
    with pytest.raises(InvalidInput, match="use --scope user"):
        settings_path(client_named("claude-desktop"), "project", around)


def test_two_files_and_two_names_have_notes_of_their_own() -> None:
    places = {note_path(Path("/d"), Path(path), name) for path in ("/a", "/b") for name in "xy"}
    assert len(places) == 4


# The commands


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("HOME", "USERPROFILE", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    for name in ("ZERO_MEM_URL", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME", "APPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_command_shows_what_it_changes_and_takes_it_back(home: Path) -> None:
    path = home / ".mcp.json"
    path.write_text('{\n  "other": "s3cr3t"\n}\n')
    given = ["--scope", "project", "--store", "sqlite:///m.db", "-n", "a/b"]
    shown = run("mcp", "install", "claude-code", *given, "--dry-run").stdout
    assert shown.startswith(f"would change: {path}\n@@ ")
    assert '+    "zero-mem": {' in shown
    assert path.read_text() == '{\n  "other": "s3cr3t"\n}\n'
    assert "changed: " in run("mcp", "install", "claude-code", *given).stdout
    entry = json.loads(path.read_text())["mcpServers"]["zero-mem"]
    assert entry["type"] == "stdio"
    assert os.path.isabs(entry["command"])
    assert entry["args"] == [
        "mcp", "serve", "--store", f"sqlite:///{home / 'm.db'}", "--namespace", "a/b",
    ]  # fmt: skip
    assert "nothing to change" in run("mcp", "install", "claude-code", *given).stdout
    run("mcp", "uninstall", "claude-code", "--scope", "project")
    assert path.read_text() == '{\n  "other": "s3cr3t"\n}\n'


def test_a_file_of_one_line_is_not_shown_whole(home: Path) -> None:
    path = home / ".claude.json"
    path.write_text(json.dumps({"token": "s3cr3t" * 100, "mcpServers": {}, "z": "s3cr3t"}))
    shown = run("mcp", "install", "claude-code").stdout
    assert "s3cr3t" not in shown
    assert "@@ character " in shown
    assert '"zero-mem"' in shown


def test_the_command_refuses_what_it_does_not_know(home: Path) -> None:
    assert "the client is one of claude-code, " in run("mcp", "install", "emacs", code=2).stderr
    assert (
        "--scope is one of user, project"
        in run("mcp", "install", "codex", "--scope", "local", code=2).stderr
    )
    assert "a server's name is" in run("mcp", "install", "codex", "--name", "a b", code=2).stderr
    for url in ("u:pw@h/db", "u@h/db?password=pw", "u@h/db?schema=s&sslpassword=pw"):
        done = run("mcp", "install", "codex", "--store", f"postgresql://{url}", code=2)
        assert "holds a password" in done.stderr
        assert "pw" not in done.stderr.replace("password", "")
    assert list(home.iterdir()) == []


def test_another_name_stands_beside(home: Path) -> None:
    run("mcp", "install", "codex")
    run("mcp", "install", "codex", "--name", "work", "-n", "work")
    path = home / ".codex" / "config.toml"
    assert set(tomllib.loads(path.read_text())["mcp_servers"]) == {"zero-mem", "work"}
    run("mcp", "uninstall", "codex", "--name", "work")
    assert set(tomllib.loads(path.read_text())["mcp_servers"]) == {"zero-mem"}


# The hook's settings are changed by the same code


def test_a_hook_installed_twice_with_an_edit_between_is_wholly_taken_back(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"theme": "dark"}')
    command = "python -m zero_mem.hook --share 0.25"
    apply_hook(installing_hook(path, command), installs=True)
    path.write_text(path.read_text() + "\n")
    apply_hook(installing_hook(path, command + " --command z"), installs=True)
    apply_hook(uninstalling_hook(path), installs=False)
    assert json.loads(path.read_text()) == {"theme": "dark"}
