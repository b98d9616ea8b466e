"""What the command line writes: tables that fit, files there whole or not there, full disks."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from rich.cells import cell_len
from test_cli import RECORD, parsed, program, run, said
from test_cli import store as store  # the fixture: a store and a folder of its own
from test_cli_replay import SHORT

from zero_mem import Memory
from zero_mem.cli.files import written
from zero_mem.cli.streams import OutputLost

pytestmark = pytest.mark.req("pkg:cli")

MAIN = "from zero_mem.cli import main; main()"
FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full here")


# Tables


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_narrow_terminal_takes_from_the_text_alone(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "用户正在申请退款，流程到第二步，" * 8
    run("save", text, "--id", "order-2026-11-57", "--kind", "task_state", "--key", "状态")
    run("archive", "order-2026-11-57")
    run("save", text, "--kind", "user_pref")
    monkeypatch.setenv("COLUMNS", str(width))
    listed = said("list", "--where", '{"state": {"in": ["active", "archived"]}}').splitlines()
    assert listed[0].split() == ["id", "kind", "key", "state", "text"]
    assert listed[2].split()[:4] == ["order-2026-11-57", "task_state", "状态", "archived"]
    assert listed[3].split()[:3] == ["1", "user_pref", "active"]
    found = said("search", "退款").splitlines()
    assert (found[2].split()[0], found[2].split()[2]) == ("1", "user_pref")
    changes = said("history", "order-2026-11-57").splitlines()
    assert [line.split()[3:6] for line in changes[2:]] == [
        ["1", "save", "cli"],
        ["2", "archive", "cli"],
    ]
    for line in (*listed, *found, *changes):
        assert cell_len(line) <= width
    assert all(line.endswith("…") for line in (*listed[2:], found[2]))


def test_names_that_are_wider_than_the_terminal_stay_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    run("save", "a text of some length", "--id", "i" * 30, "--kind", "k" * 20, "--key", "y" * 20)
    assert f"{'i' * 30}  {'k' * 20}  {'y' * 20}  active  a t…" in said("list")


# Files


def export(path: str | Path, code: int = 0) -> str:
    return run("export", "-o", str(path), code=code).stderr


def test_an_export_is_for_its_owner_and_keeps_the_mode_of_a_file_that_is_there() -> None:
    run("save", "tea")
    previous = os.umask(0)
    try:
        export("new.jsonl")
        assert stat.S_IMODE(Path("new.jsonl").stat().st_mode) == 0o600
        Path("new.jsonl").chmod(0o644)
        export("new.jsonl")
        assert stat.S_IMODE(Path("new.jsonl").stat().st_mode) == 0o644
    finally:
        os.umask(previous)


def test_a_symbolic_link_stays_and_its_target_is_replaced() -> None:
    run("save", "tea")
    Path("folder").mkdir()
    for name in ("folder/there.jsonl", "folder/not-yet.jsonl"):
        link = Path(f"to-{Path(name).stem}")
        link.symlink_to(name)
        export(link)
        assert link.is_symlink()
        assert json.loads(Path(name).read_text())["content"] == "tea"
    assert len(list(Path("folder").iterdir())) == 2


def test_a_file_named_part_is_nobodys() -> None:
    run("save", "tea")
    Path("out.jsonl.part").write_text("mine")
    export("out.jsonl")
    assert Path("out.jsonl.part").read_text() == "mine"


def test_two_who_write_one_file_do_not_mix() -> None:
    with written(Path("one")) as first, written(Path("one")) as second:
        first.write("first" * 5000)
        second.write("second")
    assert Path("one").read_text() == "first" * 5000
    assert {path.name for path in Path.cwd().iterdir()} == {"one"}


def broken(fault: BaseException) -> None:
    with written(Path("out")) as file:
        file.write("half")
        raise fault


def test_a_fault_leaves_what_was_there_and_nothing_beside_it() -> None:
    Path("out").write_text("before")
    with pytest.raises(OutputLost, match=r"out: .*No space"):
        broken(OSError(errno.ENOSPC, "No space left on device"))
    with pytest.raises(KeyboardInterrupt):
        broken(KeyboardInterrupt())
    left = {path.name: path.read_text() for path in Path.cwd().iterdir()}
    assert left == {"out": "before"}


@needs_full
@pytest.mark.req("pkg:errors")
def test_a_full_device_is_an_error_and_stays_a_device() -> None:
    run("save", "tea")
    before = FULL.stat()
    assert export(FULL, code=6) == (
        "zero-mem: /dev/full: can't be written to its end: No space left on device\n"
    )
    for option in ("--html", "--json", "--prompts"):
        assert "/dev/full" in run("replay", SHORT, option, str(FULL), code=6).stderr
    after = FULL.stat()
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)
    assert {path.name for path in Path.cwd().iterdir()} == {"agent.db"}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_named_pipe_is_written_and_stays() -> None:
    run("save", "tea")
    os.mkfifo("pipe")
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.append(Path("pipe").read_text()))
    reader.start()
    export("pipe")
    reader.join()
    assert json.loads(got[0])["content"] == "tea"
    assert Path("pipe").is_fifo()


def test_the_name_of_stdout_is_stdout(tmp_path: Path) -> None:
    program("save", "tea")
    if not Path("/dev/stdout").exists():
        pytest.skip("stdout has no name here")
    assert json.loads(program("export", "-o", "/dev/stdout").stdout)["content"] == "tea"
    with (tmp_path / "log").open("w") as log:
        log.write("before\n")
        log.flush()
        command = [sys.executable, "-c", MAIN, "export", "-o", "/dev/stdout"]
        subprocess.run(command, stdout=log, stderr=subprocess.DEVNULL, check=True)
    assert (tmp_path / "log").read_text().startswith("before\n{")


@pytest.mark.req("pkg:errors")
def test_what_cannot_be_opened_is_said() -> None:
    run("save", "tea")
    Path("loop").symlink_to("loop")
    for name, says in (("no/such/file", "no folder"), (".", "directory"), ("loop", "symbolic")):
        assert says in export(name, code=2)


def test_an_export_as_json_tells_what_it_did_where_the_memories_are_not() -> None:
    run("save", "tea")
    done = {"exported": 1, "namespaces": 1}
    assert parsed("export", "-o", "out.jsonl") == done
    both = run("export", "--json")
    assert json.loads(both.stderr) == done
    assert json.loads(both.stdout).keys() == RECORD | {"format"}


# Standard streams


def shell(line: str) -> subprocess.CompletedProcess[str]:
    """Run a line of shell in which `zm` is the program."""
    define = f"zm() {{ {sys.executable} -c '{MAIN}' \"$@\"; }}; "
    command = ["bash", "-c", define + line]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@needs_full
@pytest.mark.req("pkg:errors")
@pytest.mark.parametrize(
    "command",
    ["list", "list --json", "get 1 --body", "export", "--help", "list --help", "--version", "demo"],
)
def test_a_full_stdout_is_an_error_with_a_code_and_one_line(command: str) -> None:
    run("save", "tea")
    done = shell(f"zm {command} > /dev/full")
    assert done.returncode == 6
    assert "No space left on device" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.req("pkg:errors")
def test_a_closed_stdout_or_stdin_is_said() -> None:
    run("save", "tea")
    done = shell("zm list >&-")
    assert (done.returncode, done.stderr) == (
        6,
        "zero-mem: stdout is closed: the result has nowhere to go\n",
    )
    for command in ("zm save - <&-", "zm import - <&-", "zm replay - <&-"):
        done = shell(command)
        assert (done.returncode, "stdin is closed" in done.stderr) == (2, True)
    assert shell("zm get 99 2>&-").returncode == 1


@pytest.mark.req("pkg:errors")
def test_a_pipe_whose_reader_has_gone_is_not_worth_a_word() -> None:
    with Memory.open("sqlite:///agent.db") as memory:
        memory.namespace("default").save("tea " * 100_000)
    for command in (["list"], ["list", "--json"], ["get", "1", "--body"], ["export"], ["--help"]):
        reader, writer = os.pipe()
        os.close(reader)
        try:
            done = subprocess.run(
                [sys.executable, "-c", MAIN, *command],
                stdout=writer,
                stderr=subprocess.PIPE,
                check=False,
            )
        finally:
            os.close(writer)
        assert (done.returncode, done.stderr) == (141, b""), command


@pytest.mark.req("pkg:errors")
def test_json_is_utf_8_whatever_the_terminal_is() -> None:
    program("save", "退款 é \U0001f9fe")
    command = [sys.executable, "-c", MAIN, "export"]
    narrow = os.environ | {"PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}
    done = subprocess.run(command, env=narrow, capture_output=True, check=True)
    assert json.loads(done.stdout.decode("utf-8"))["content"] == "退款 é \U0001f9fe"
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "get", "1", "--json"],
        env=narrow,
        capture_output=True,
        check=True,
    )
    assert json.loads(done.stdout.decode("utf-8"))["content"] == "退款 é \U0001f9fe"
