"""`zero-mem mcp serve` as a process: the official client, and raw messages of older versions."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp_sessions import called
from serving import loopback

from zero_mem import Memory
from zero_mem.access import Grant

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ["-c", "from zero_mem.cli import main; main()", "mcp", "serve"]
VERSIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT / "src"), **more}


def store(folder: Path) -> list[str]:
    return ["--store", f"sqlite:///{folder}/store.db", "--namespace", "acme/alice"]


def stored(folder: Path) -> list[str]:
    with Memory.open(f"sqlite:///{folder}/store.db") as memory:
        return [record.text for record in memory.namespace("acme", "alice").each()]


def talk(parameters: StdioServerParameters, say: Any) -> None:
    async def whole() -> None:
        async with Client(parameters) as client:
            talking: Coroutine[Any, Any, None] = say(client)
            task = asyncio.ensure_future(talking)
            await asyncio.wait([task])
        task.result()

    asyncio.run(whole())


class Raw:
    """The command as a process, spoken to line by line."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *PROGRAM, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
        )

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def send(self, *messages: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        lines = (json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)
        self.process.stdin.write("".join(lines).encode())
        self.process.stdin.flush()

    def line(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        message: dict[str, Any] = json.loads(self.process.stdout.readline())
        return message

    def ended(self) -> tuple[int, list[dict[str, Any]]]:
        """Close stdin and give the exit code and what was said last."""
        out, _ = self.process.communicate(timeout=60)
        return self.process.returncode, [json.loads(line) for line in out.splitlines()]


def hello(version: str) -> list[dict[str, Any]]:
    parameters = {
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    return [
        {"id": 0, "method": "initialize", "params": parameters},
        {"method": "notifications/initialized"},
    ]


def call(number: int, name: str, **arguments: Any) -> dict[str, Any]:
    return {"id": number, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


@pytest.mark.req("mcp:stdio")
def test_the_official_client_works_with_a_process(tmp_path: Path) -> None:
    parameters = StdioServerParameters(
        command=sys.executable, args=[*PROGRAM, *store(tmp_path)], env=environment()
    )

    async def say(client: Client) -> None:
        assert await called(client, "memory_save", text="x" * 1_000_000) == "[memo:1] save (note)"
        texts = [called(client, "memory_save", text=f"fact {n} \x00") for n in range(20)]
        assert len(set(await asyncio.gather(*texts))) == 20
        assert "fact 7" in await called(client, "memory_search", query="fact 7")
        (content,) = (await client.read_resource("memo://1")).contents
        assert len(content.model_dump()["text"]) == 1_000_000

    talk(parameters, say)
    assert len(stored(tmp_path)) == 21


@pytest.mark.req("mcp:stdio", "mcp:versions")
@pytest.mark.parametrize("version", [VERSIONS[0], VERSIONS[-1]])
def test_a_client_of_an_earlier_version_is_served(tmp_path: Path, version: str) -> None:
    with Raw(store(tmp_path)) as server:
        server.send(*hello(version))
        welcome = server.line()["result"]
        assert welcome["protocolVersion"] == version
        assert welcome["serverInfo"]["name"] == "zero-mem"
        server.send({"id": 1, "method": "tools/list"})
        assert len(server.line()["result"]["tools"]) == 5
        server.send(call(2, "memory_save", text="tea"))
        saved = server.line()["result"]
        assert saved["content"] == [{"type": "text", "text": "[memo:1] save (note)"}]
        server.send(call(3, "memory_read", id="9"))
        assert server.line()["result"]["isError"]
        server.send({"id": 4, "method": "resources/read", "params": {"uri": "memo://1"}})
        (content,) = server.line()["result"]["contents"]
        assert content == {"uri": "memo://1", "mimeType": "text/plain", "text": "tea"}
        server.send({"id": 5, "method": "prompts/get", "params": {"name": "pinned"}})
        assert server.line()["result"]["messages"][0]["role"] == "user"
        assert server.ended() == (0, [])


@pytest.mark.req("mcp:stdio", "op:order")
def test_what_was_asked_before_stdin_ended_is_done_and_answered(tmp_path: Path) -> None:
    with Raw(store(tmp_path)) as server:
        asked = [call(n, "memory_save", text=f"fact {n}") for n in range(1, 40)]
        server.send(*hello("2025-06-18"), *asked)
        code, said = server.ended()
    assert code == 0
    assert {message["id"] for message in said} == set(range(40))
    assert not any("error" in message for message in said)
    assert len(stored(tmp_path)) == 39


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGTERM there")
@pytest.mark.req("mcp:stdio", "op:order")
@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_though_the_client_says_nothing(tmp_path: Path, sent: int) -> None:
    with Raw(store(tmp_path)) as server:
        server.send(*hello("2025-06-18"), call(1, "memory_save", text="tea"))
        assert server.line()["id"] == 0
        assert server.line()["id"] == 1
        server.process.send_signal(sent)
        assert server.process.wait(60) == 0  # stdin is still open
    assert stored(tmp_path) == ["tea"]


@pytest.mark.req("mcp:stdio")
def test_a_cancelled_call_does_not_hold_the_end_up(tmp_path: Path) -> None:
    with Raw(store(tmp_path)) as server:
        server.send(
            *hello("2025-06-18"),
            call(1, "memory_save", text="given up"),
            {"method": "notifications/cancelled", "params": {"requestId": 1}},
            call(2, "memory_save", text="done"),
        )
        code, said = server.ended()
    assert code == 0
    assert 2 in [message["id"] for message in said]
    assert "done" in stored(tmp_path)


@pytest.mark.req("mcp:stdio", "pkg:errors")
def test_a_line_that_is_no_message_is_answered_where_it_has_an_id(tmp_path: Path) -> None:
    with Raw(store(tmp_path)) as server:
        server.send(*hello("2025-06-18"))
        assert server.line()["id"] == 0
        assert server.process.stdin is not None
        server.process.stdin.write(b'not json\n\n[1]\n"x"\n\xff\xfe\n{"jsonrpc":"2.0"}\n')
        server.send(call(1, "memory_save", text="half \ud800"))
        refusal = server.line()
        assert refusal["id"] == 1
        assert "half of a surrogate pair" in refusal["error"]["message"]
        server.send(call(2, "memory_save", text="tea"))
        assert server.line()["id"] == 2
        assert server.ended()[0] == 0
    assert stored(tmp_path) == ["tea"]


@pytest.mark.req("mcp:stdio", "op:order")
def test_a_client_that_is_gone_leaves_what_it_had_asked_for_written(tmp_path: Path) -> None:
    with Raw(store(tmp_path)) as server:
        server.send(*hello("2025-06-18"))
        assert server.line()["id"] == 0
        assert server.process.stdout is not None
        server.process.stdout.close()
        server.send(call(1, "memory_save", text="tea"))
        assert server.process.stdin is not None
        server.process.stdin.close()
        assert server.process.wait(60) == 0
        server.process.stdin = server.process.stdout = None
    assert stored(tmp_path) == ["tea"]


@pytest.mark.req("mcp:stdio", "mcp:resources")
def test_a_client_of_an_earlier_version_hears_of_what_it_subscribed_to(tmp_path: Path) -> None:
    with Raw(store(tmp_path)) as server:
        server.send(*hello("2025-06-18"))
        assert server.line()["result"]["capabilities"]["resources"]["subscribe"]
        for number, uri in ((1, "memo://1"), (2, "memo://2")):
            server.send({"id": number, "method": "resources/subscribe", "params": {"uri": uri}})
            assert server.line() == {"jsonrpc": "2.0", "id": number, "result": {}}
        server.send({"id": 3, "method": "resources/unsubscribe", "params": {"uri": "memo://1"}})
        assert server.line()["id"] == 3
        with Memory.open(f"sqlite:///{tmp_path}/store.db") as memory:  # another process's write
            for text in ("one", "two"):
                memory.namespace("acme", "alice").save(text)
        assert server.line() == {
            "jsonrpc": "2.0",
            "method": "notifications/resources/updated",
            "params": {"uri": "memo://2"},
        }
        assert server.ended() == (0, [])


@pytest.mark.req("mcp:stdio")
def test_a_store_that_cannot_be_opened_is_said_on_stderr(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, *PROGRAM, "--store", f"sqlite:///{tmp_path}"],
        input=b"",
        capture_output=True,
        env=environment(),
        check=False,
    )
    assert (done.returncode, done.stdout) == (5, b"")
    assert b"zero-mem: " in done.stderr


@pytest.mark.req("mcp:stdio", "server:client")
def test_a_store_behind_a_server_is_served_with_its_key(tmp_path: Path) -> None:
    memory = Memory.open(f"sqlite:///{tmp_path}/store.db")
    credential = memory.keyring.create("agent", [Grant.parse("write:acme/**")]).credential
    with loopback() as running, running.serving(memory, is_open=False) as url:
        parameters = StdioServerParameters(
            command=sys.executable,
            args=[*PROGRAM, "--store", url, "--namespace", "acme/alice"],
            env=environment(ZERO_MEM_CREDENTIAL=credential),
        )

        async def say(client: Client) -> None:
            space = memory.namespace("acme", "alice")
            rule = await asyncio.to_thread(
                space.save, "Never on Friday", kind="rule", key="f", form="procedural"
            )
            await called(client, "memory_save", text="Prefers tea")
            assert "tea" in await called(client, "memory_search", query="tea")
            assert "Friday" in await called(client, "memory_read", id=rule.memory_id)
            result = await client.call_tool("memory_delete", {"id": rule.memory_id})
            assert result.is_error
            uris = [one.uri for one in (await client.list_resources()).resources]
            assert uris == ["memo://1", "memo://2"]
            (message,) = (await client.get_prompt("pinned")).messages
            assert "Friday" in message.content.model_dump()["text"]

        talk(parameters, say)
