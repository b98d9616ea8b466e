"""`zero-mem serve` as a process, its settings, and what is written by its tables."""

from __future__ import annotations

import configparser
import dataclasses
import inspect
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from served import Served

from zero_mem import InvalidInput, Memory
from zero_mem.access import Grant, Keyring
from zero_mem.api.arguments import ARGUMENTS
from zero_mem.api.forms import COMPONENTS
from zero_mem.api.openapi import document
from zero_mem.api.routes import ROUTES, by_name
from zero_mem.client import RemoteMemory, RemoteNamespace, RemotePast, connect
from zero_mem.client.store import RemoteKeyring, RemoteSubtree
from zero_mem.past import Past
from zero_mem.server.serving import is_loopback
from zero_mem.server.settings import Settings, load, table
from zero_mem.space import Namespace
from zero_mem.subtree import Subtree

ROOT = Path(__file__).resolve().parent.parent


def store(folder: Path) -> str:
    return f"sqlite:///{folder}/store.db"


@pytest.mark.req("server:serve", "op:queued")
def test_a_stopped_server_has_written_what_it_accepted(tmp_path: Path) -> None:
    with Served(store(tmp_path)) as server, connect(server.url) as memory:
        space = memory.namespace("acme", "alice")
        feed = space.follow()
        space.save("the first")
        assert next(feed).sequence == 1
        accepted = [space.save(f"text {n}", mode="queued").memory_id for n in range(40)]
        server.process.send_signal(signal.SIGTERM)
        assert server.ended() == 0
        said = "".join(server.lines)
    with Memory.open(f"sqlite:///{tmp_path}/store.db") as local:
        stored = [record.memory_id for record in local.namespace("acme", "alice").each()]
    assert stored[1:] == accepted
    assert "OPEN ACCESS" in said
    for part in ("console", "MCP"):
        assert re.search(rf"^{part} {server.url}/{part.lower()}\b", said, re.MULTILINE)
    # A log has no body and no query.
    assert "text 7" not in said
    assert "acme" not in said
    assert re.search(r"zero_mem.server POST save 200 [0-9.]+ ms", said)


@pytest.mark.req("server:serve", "server:auth")
def test_without_a_key_it_serves_this_machine_only(tmp_path: Path) -> None:
    flags = ["--host", "0.0.0.0"]
    with Served(store(tmp_path), *flags) as server:
        assert "has no key" in server.url
        assert server.ended() == 4
    with Memory.open(f"sqlite:///{tmp_path}/store.db") as local:
        credential = local.keyring.create("app", [Grant.parse("write:acme/**")]).credential
    with Served(store(tmp_path), *flags) as server:
        here = server.url.replace("0.0.0.0", "127.0.0.1")
        assert httpx.get(f"{here}/v1/stats").status_code == 401
        with connect(here, credential=credential) as memory:
            assert memory.namespace("acme").save("tea").memory_id == "1"


@pytest.mark.req("server:serve")
def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    with Served(store(tmp_path)) as first:
        second = Served(store(tmp_path), "--port", first.url.rpartition(":")[2])
        assert "can't listen" in second.url
        assert second.ended() == 5


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.1.5", False),
        ("example.org", False),
    ],
)
@pytest.mark.req("server:auth")
def test_what_is_loopback(host: str, local: bool) -> None:
    assert is_loopback(host) is local


# Settings


@pytest.mark.req("server:settings")
def test_a_flag_goes_before_the_environment_and_that_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "server.toml"
    file.write_text('host = "::1"\nport = 1\nrate = 5\nmax_body = 100\n')
    environment = {"ZERO_MEM_SERVER_PORT": "2", "ZERO_MEM_SERVER_RATE": "7.5", "OTHER": "x"}
    settings = load(flags={"port": "3", "rate": None}, environment=environment, file=file)
    assert (settings.host, settings.port, settings.rate) == ("::1", 3, 7.5)
    assert (settings.max_body, settings.backlog) == (100, Settings().backlog)


@pytest.mark.req("server:settings", "pkg:errors")
@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("colour = 1", "colour"),
        ("port = '1'", "port"),
        ("port = true", "port"),
        ("port = -1", "port"),
        ("rate = nan", "rate"),
        ("port =", "TOML"),
        ("port = 99999", "port is at most 65535"),
        ("grace = -3", "grace is at least 0"),
        ("grace = inf", "grace is a finite number"),
        ("poll = 0", "poll is at least"),
    ],
)
def test_a_wrong_setting_is_named(tmp_path: Path, text: str, named: str) -> None:
    file = tmp_path / "server.toml"
    file.write_text(text)
    with pytest.raises(InvalidInput, match=named):
        load(flags={}, environment={}, file=file)
    with pytest.raises(InvalidInput, match="--max-body"):
        load(flags={"max_body": "much"}, environment={})
    with pytest.raises(InvalidInput, match="ZERO_MEM_SERVER_PORT"):
        load(flags={}, environment={"ZERO_MEM_SERVER_PORT": ""})
    with pytest.raises(InvalidInput, match=r"none\.toml"):
        load(flags={}, environment={}, file=tmp_path / "none.toml")


@pytest.mark.req("server:settings")
def test_the_page_has_every_setting() -> None:
    page = (ROOT / "docs" / "server.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*?) \|$", page, re.MULTILINE)
    wanted = [(name, f"`{default}`" if default else "", text) for name, default, text in table()]
    assert [row for row in rows if row[0] in {name for name, *_ in wanted}] == wanted


# One table of routes


@pytest.mark.req("server:openapi")
def test_every_operation_and_read_has_a_route() -> None:
    views = ((Namespace, "space"), (Past, "past"), (Subtree, "subtree"), (Keyring, "keyring"))
    for kind, target in views:
        there = {route.call for route in ROUTES if route.target == target}
        inside = {"apply_save", "reserve_ids", "expected_id", "is_taken", "each", "as_of"}
        inside |= {"verify"}  # of a credential: the header of every request asks for it
        names = {
            name
            for name, member in inspect.getmembers(kind, inspect.isfunction)
            if not name.startswith("_")
        }
        assert names - inside == there, kind
    assert len({route.name for route in ROUTES}) == len(ROUTES)
    for route in ROUTES:
        for name in route.parameters:
            assert name in ARGUMENTS or name in ("content", "items"), (route.name, name)


@pytest.mark.req("server:openapi", "server:client")
def test_the_client_has_the_signatures_of_a_local_store() -> None:
    twins: list[tuple[type[Any], type[Any]]] = [
        (Namespace, RemoteNamespace),
        (Past, RemotePast),
        (Subtree, RemoteSubtree),
        (Memory, RemoteMemory),
        (Keyring, RemoteKeyring),
    ]
    not_there = {"apply_save", "reserve_ids", "expected_id", "is_taken"}
    own = {"open", "guarded", "reindex", "transaction", "scrub", "backup", "verify"}
    for local, remote in twins:
        for name, member in inspect.getmembers(local, inspect.isfunction):
            if name.startswith("_") or name in not_there:
                continue
            if name in (own if local is Memory else {"verify"} if local is Keyring else ()):
                continue
            mine = inspect.signature(getattr(remote, name)).parameters
            assert mine == inspect.signature(member).parameters, f"{local.__name__}.{name}"


@pytest.mark.req("server:openapi", "pkg:manifest")
@pytest.mark.parametrize(
    "tool", ["generate_client.py", "generate_openapi.py", "generate_options.py"]
)
def test_what_is_generated_is_up_to_date(tool: str) -> None:
    command = [sys.executable, str(ROOT / "tools" / tool), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.req("server:openapi")
def test_the_document_is_whole() -> None:
    text = json.dumps(document())
    assert document()["openapi"] == "3.1.0"
    for name in re.findall(r"#/components/schemas/(\w+)", text):
        assert name in COMPONENTS
    for path, methods in document()["paths"].items():
        for method, operation in methods.items():
            assert operation["summary"].endswith("."), (method, path)
            assert {"400", "401"} <= operation["responses"].keys()
            body = operation.get("requestBody", {}).get("content", {}).get("application/json")
            if body and body["schema"].get("required"):
                assert set(body["schema"]["required"]) <= body["example"].keys()
    assert by_name("save").url({}) == "/v1/records"
    assert by_name("get").url({"memory_id": "a/b"}) == "/v1/records/a%2Fb"


@pytest.mark.fault
@pytest.mark.req("server:openapi", "server:bad-input")
def test_schemathesis_finds_no_failure(tmp_path: Path) -> None:
    examiner = program("schemathesis")
    settings = ["--config-file", str(ROOT / "tests" / "schemathesis.toml")]
    examples = os.environ.get("ZERO_MEM_EXAMPLES")
    # In short always the same requests; the whole examination takes a quarter of an hour.
    options = (
        ["--max-examples", examples]
        if examples
        else ["--phases", "examples,fuzzing", "--max-examples", "5", "--generation-deterministic"]
    )
    # With a key, since what makes keys is examined too and would end an open access.
    with Memory.open(store(tmp_path)) as local:
        credential = local.keyring.create("examiner", [Grant.parse("admin:**")]).credential
    with Served(store(tmp_path), "--body-timeout", "5", "--rate", "0") as server:
        command = [examiner, *settings, "run", f"{server.url}/openapi.json", *options]
        command += ["--header", f"Authorization: Bearer {credential}", "--workers", "2"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def program(name: str) -> str:
    """Find a program of the packages for development; where they are not, skip."""
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    return found or pytest.skip(f"{name} is not installed here")


# Deployment


@pytest.mark.req("server:deploy")
def test_the_unit_starts_the_command_with_known_settings() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    text = (ROOT / "deploy" / "zero-mem.service").read_text("utf-8")
    unit.read_string(text)
    assert set(unit.sections()) == {"Unit", "Service", "Install"}
    assert shlex.split(unit["Service"]["ExecStart"])[1:] == ["serve"]
    assert float(unit["Service"]["TimeoutStopSec"]) > Settings().grace
    assert_known(text)


@pytest.mark.req("server:deploy")
def test_the_container_file_parses_and_runs_as_nobody() -> None:
    text = (ROOT / "deploy" / "Containerfile").read_text("utf-8")
    lines = re.sub(r"\\\n", " ", text).splitlines()
    steps = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    known = {"FROM", "COPY", "RUN", "USER", "VOLUME", "ENV", "EXPOSE", "STOPSIGNAL"}
    assert {step for step, _ in steps} <= known | {"HEALTHCHECK", "ENTRYPOINT", "CMD"}
    assert steps[0][0] == "FROM"
    assert [rest for step, rest in steps if step == "USER"] == ["10001"]
    for step, rest in steps:
        if step in ("ENTRYPOINT", "CMD"):
            assert all(isinstance(word, str) for word in json.loads(rest))
        elif step == "HEALTHCHECK":
            code = json.loads(rest[rest.index("[") :])
            compile(code[2], "healthcheck", "exec")
        elif step == "RUN":
            assert subprocess.run(["bash", "-n", "-c", rest], check=False).returncode == 0
    assert f"EXPOSE {Settings().port}" in text
    assert_known(text)


@pytest.mark.req("server:deploy")
def test_the_linter_has_nothing_to_say_of_the_container_file() -> None:
    command = [program("hadolint"), str(ROOT / "deploy" / "Containerfile")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.req("server:deploy")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    unit = (ROOT / "deploy" / "zero-mem.service").read_text("utf-8")
    # It looks whether the program is there.
    command = next(line for line in unit.splitlines() if line.startswith("ExecStart="))
    there = tmp_path / "zero-mem.service"
    there.write_text(unit.replace(command, "ExecStart=/bin/sh serve"))
    verify = [program("systemd-analyze"), "verify", "--man=no", str(there)]
    done = subprocess.run(verify, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.req("server:deploy")
def test_the_compose_file_publishes_on_this_machine_only() -> None:
    text = (ROOT / "deploy" / "compose.yaml").read_text("utf-8")
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed: the file is not parsed")
    service = yaml.safe_load(text)["services"]["zero-mem"]
    assert service["ports"] == [f"127.0.0.1:{Settings().port}:{Settings().port}"]
    assert (ROOT / "deploy" / service["build"]["context"] / service["build"]["dockerfile"]).exists()
    assert set(yaml.safe_load(text)["volumes"]) == {
        each.partition(":")[0] for each in service["volumes"]
    }
    assert_known(text)


def assert_known(text: str) -> None:
    """Check that every variable of the server in a file is one of its settings."""
    names = {field.name.upper() for field in dataclasses.fields(Settings)} | {"CONFIG"}
    assert set(re.findall(r"ZERO_MEM_SERVER_(\w+)", text)) <= names
