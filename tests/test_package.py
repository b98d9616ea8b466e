"""What installing and importing costs, and what the wheel holds."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SAMPLES = ROOT / "src" / "zero_mem" / "replay" / "samples"

# Runs in a new interpreter: what the statements in {body} load, open and start.
PROBE = """
import sqlite3, sys, threading
events = []
def note(event, arguments):
    if event.startswith("socket.") or event == "_thread.start_new_thread":
        events.append(event)
sys.addaudithook(note)
before = set(sys.modules)
{body}
import json
print(json.dumps({{
    "modules": sorted(set(sys.modules) - before - {{"json"}}),
    "events": events,
    "threads": threading.active_count(),
}}))
"""


def probe(body: str, *, folder: Path | None = None) -> dict[str, Any]:
    """Run the statements in a clean interpreter and tell what they loaded and started."""
    source = PROBE.format(body=textwrap.dedent(body))
    done = subprocess.run(
        [sys.executable, "-I", "-c", source],
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


def foreign(modules: list[str]) -> set[str]:
    """Keep the top-level names that are neither ours nor the standard library's."""
    return {name.partition(".")[0] for name in modules} - sys.stdlib_module_names - {"zero_mem"}


@pytest.mark.req("pkg:import")
def test_import_loads_nothing_foreign_and_starts_nothing() -> None:
    seen = probe("import zero_mem")
    assert foreign(seen["modules"]) == set()
    assert (seen["events"], seen["threads"]) == ([], 1)


@pytest.mark.req("pkg:import")
def test_import_leaves_the_heavy_standard_modules_alone() -> None:
    modules = set(probe("import zero_mem")["modules"])
    heavy = {"asyncio", "socket", "ssl", "http", "urllib.request", "multiprocessing", "subprocess"}
    assert modules & heavy == set()
    assert len(modules) < 120


@pytest.mark.req("pkg:import", "index:offline")
@pytest.mark.parametrize("url", ["memory://", "sqlite:///agent.db"])
def test_open_save_and_search_open_no_socket_and_start_no_thread(url: str, tmp_path: Path) -> None:
    seen = probe(
        f"""
        from zero_mem import Memory
        with Memory.open({url!r}) as memory:
            space = memory.namespace("acme", "alice")
            space.save("用户正在申请退款，流程到第二步", kind="task_state")
            space.save("The refund of order 57 is under review.")
            assert space.search("退款") and space.search("refunds")
            assert space.recall("refund", limit=5, budget=200).items
        """,
        folder=tmp_path,
    )
    assert foreign(seen["modules"]) <= {"snowballstemmer", "toktok"}
    assert (seen["events"], seen["threads"]) == ([], 1)


@pytest.mark.req("pkg:import")
def test_the_public_names_are_few_and_all_there() -> None:
    import zero_mem

    wanted = {
        "AsyncMemory", "Json", "Memory", "MemoryReceipt", "MemoryRecord", "MemoryStore",
        "UNSET", "ZeroMemRuntime",
    }  # fmt: skip
    assert wanted <= set(zero_mem.__all__)
    assert len(zero_mem.__all__) <= 15
    assert [name for name in zero_mem.__all__ if not hasattr(zero_mem, name)] == []


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel of this checkout, without the network."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return next(folder.glob("*.whl"))


@pytest.mark.req("pkg:wheel")
def test_the_wheel_has_every_file_of_the_package_and_nothing_else(wheel: Path) -> None:
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    package = ROOT / "src" / "zero_mem"
    there = {
        str(path.relative_to(ROOT / "src"))
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert packed == there
    assert {"zero_mem/py.typed", "zero_mem/replay/samples/refund.json"} <= packed


@pytest.mark.req("pkg:wheel")
def test_the_wheel_works_alone(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path)
    seen = probe(
        f"""
        sys.path.insert(0, {str(tmp_path)!r})
        import zero_mem
        assert zero_mem.__file__.startswith({str(tmp_path)!r}), zero_mem.__file__
        with zero_mem.Memory.open("sqlite:///" + {str(tmp_path / "a.db")!r}) as memory:
            memory.namespace("acme").save("Asia/Shanghai", kind="user_pref", key="timezone")
        """,
        folder=tmp_path,
    )
    assert foreign(seen["modules"]) <= {"snowballstemmer"}


@pytest.mark.req("pkg:wheel")
def test_the_wheel_asks_for_the_stemmer_alone(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    metadata = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    lines = archive.read(metadata).decode().splitlines()
    needs = [
        Requirement(line.split(": ", 1)[1]) for line in lines if line.startswith("Requires-Dist:")
    ]
    assert [need.name for need in needs if need.marker is None] == ["snowballstemmer"]


@pytest.mark.req("pkg:wheel")
def test_the_lock_pins_every_range_of_the_project() -> None:
    lines = (ROOT / "requirements-dev.lock").read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if "==" in line)
    pinned = {canonicalize_name(name): version for name, version in pins.items()}
    extras = PROJECT["project"]["optional-dependencies"]
    # Embedders with their weights, and what only they need, are too large for every set-up.
    ranges = [Requirement(text) for name in ("cli", "vectors") for text in extras[name]]
    ranges += [Requirement(text) for text in PROJECT["dependency-groups"]["dev"]]
    ranges += [Requirement(text) for text in PROJECT["project"]["dependencies"]]
    unmet = [
        str(need)
        for need in ranges
        if need.name != "zero-mem"
        and not need.specifier.contains(pinned.get(canonicalize_name(need.name), "0.dev0"))
    ]
    assert unmet == []


@pytest.mark.req("pkg:replay")
def test_the_samples_are_what_their_generator_writes() -> None:
    command = [sys.executable, str(ROOT / "tools" / "make_samples.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.req("pkg:replay")
@pytest.mark.parametrize("name", ["refund.json", "short.json"])
def test_in_a_sample_every_call_has_its_result_and_its_definition(name: str) -> None:
    run = json.loads((SAMPLES / name).read_text(encoding="utf-8"))
    defined = {definition["function"]["name"] for definition in run["tools"]}
    calls = [call for message in run["messages"] for call in message.get("tool_calls", ())]
    results = [message["tool_call_id"] for message in run["messages"] if message["role"] == "tool"]
    assert [call["id"] for call in calls] == results
    assert {call["function"]["name"] for call in calls} == defined


@pytest.mark.req("pkg:replay")
def test_the_long_sample_is_long_and_uses_early_results_late() -> None:
    messages = json.loads((SAMPLES / "refund.json").read_text(encoding="utf-8"))["messages"]
    assert sum(message["role"] == "assistant" for message in messages) == 30
    assert (
        sum(len(message["content"]) for message in messages if message["role"] == "tool") > 50_000
    )
    first = next(message["content"] for message in messages if message["role"] == "tool")
    office = next(place for place in json.loads(first)["addresses"] if place["label"] == "公司")
    booked = next(
        call["function"]["arguments"]
        for message in messages
        for call in message.get("tool_calls", ())
        if call["function"]["name"] == "book_pickup"
    )
    assert office["address_id"] in booked
