"""Every fenced block of the documents does what it shows.

In one document the blocks run in order, share one namespace and one new folder:

- `python` is executed; a `text` block right after it is what it prints.
- `console` has commands after `$ ` and under each what it prints; `bash` has commands alone.
  `make` is only asked whether it knows the target, and what installs from the network is not run.
- `json` and `toml` must parse.

The folder has a file `run.jsonl`, the transcript that a reader has: one of the packaged samples.
The page on PostgreSQL has a server: ZERO_MEM_URL names its database.

In expected output `...` stands for any text.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest
from sybil import Document, Example, Sybil
from sybil.parsers.markdown import CodeBlockParser

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [
    path
    for path in (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")))
    if path.name != "CHANGELOG.md"
]
SAMPLE = ROOT / "src" / "zero_mem" / "replay" / "samples" / "refund.json"
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
FENCE = re.compile(r"^ {0,3}```([^\s`]*)[^\n]*\n(.*?)^ {0,3}```\s*$", re.MULTILINE | re.DOTALL)
LANGUAGES = {"python", "text", "console", "bash", "json", "toml", "mermaid"}
FROM_THE_NETWORK = ("pip install", "git clone", "apt-get ", "sudo apt-get ", "uv ", "cd ")

pytestmark = pytest.mark.req("pkg:docs")


class Reader:
    """Does what a document says, block by block, as a reader in a new folder would."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._printed: str | None = None

    def parsers(self) -> list[CodeBlockParser]:
        """Give one parser for each language that is run or checked."""
        blocks = {
            "python": self.python,
            "text": self.text,
            "console": self.console,
            "bash": self.bash,
            "json": self.parse_json,
            "toml": self.parse_toml,
        }
        return [CodeBlockParser(language, evaluator) for language, evaluator in blocks.items()]

    def python(self, example: Example) -> None:
        """Execute the block and keep what it prints."""
        code = compile("\n" * example.line + example.parsed, str(example.path), "exec")
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(code, example.namespace)
        self._printed = out.getvalue()

    def text(self, example: Example) -> str | None:
        """Compare with what the block before printed; a text block elsewhere is only text."""
        printed, self._printed = self._printed, None
        return None if printed is None else difference(str(example.parsed), printed)

    def console(self, example: Example) -> str | None:
        """Run each command and compare what it prints with the lines below it."""
        self._printed = None
        for command, wanted in sessions(str(example.parsed)):
            problem = difference(wanted, self._run(command))
            if problem:
                return f"$ {command}\n{problem}"
        return None

    def bash(self, example: Example) -> None:
        """Run each line."""
        self._printed = None
        for line in str(example.parsed).replace("\\\n", " ").splitlines():
            if line.strip() and not line.lstrip().startswith("#"):
                self._run(line)

    def parse_json(self, example: Example) -> None:
        """Parse the block as JSON."""
        json.loads(example.parsed)

    def parse_toml(self, example: Example) -> None:
        """Parse the block as TOML."""
        tomllib.loads(str(example.parsed))

    def _run(self, command: str) -> str:
        if command.startswith(FROM_THE_NETWORK):
            return ""
        if command.startswith("make "):
            targets = [word for word in shlex.split(command, comments=True)[1:] if "=" not in word]
            run(["make", "--dry-run", "--silent", "-C", str(ROOT), *targets], ROOT)
            return ""
        return run(["bash", "-euo", "pipefail", "-c", command], self._folder)


def run(command: list[str], folder: Path) -> str:
    """Run a command that must succeed and give what it prints."""
    environment = os.environ | {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
        "COLUMNS": "100",
        "NO_COLOR": "1",
        "PYTHONUTF8": "1",
    }
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def sessions(block: str) -> list[tuple[str, str]]:
    """Cut a console block into commands and what each prints."""
    parts = re.split(r"^\$ ", block.replace("\\\n", " "), flags=re.MULTILINE)
    assert not parts[0].strip(), f"a console block begins with `$ `: {parts[0]!r}"
    return [
        (command, printed) for command, _, printed in (part.partition("\n") for part in parts[1:])
    ]


def difference(wanted: str, printed: str) -> str | None:
    """Tell how the printed text differs from the wanted one, None where it does not."""
    checker = doctest.OutputChecker()
    wanted, printed = (clean(text) for text in (wanted, printed))
    if not wanted or checker.check_output(wanted, printed, doctest.ELLIPSIS):
        return None
    return checker.output_difference(
        doctest.Example("", wanted), printed, doctest.ELLIPSIS | doctest.REPORT_NDIFF
    )


def clean(text: str) -> str:
    """Drop blanks at line ends and empty lines at both ends."""
    lines = [line.rstrip() for line in text.strip("\n").splitlines()]
    return "\n".join(lines) + "\n" if lines else ""


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language and what a reader would type."""

    language: str
    source: str


def blocks(path: Path) -> list[Block]:
    """Read the fenced blocks of a document; none where there is no document."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [Block(language, source) for language, source in FENCE.findall(text)]


def in_new_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `folder` the working folder and the home of whatever runs next."""
    monkeypatch.chdir(folder)
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(folder))
    # A program that a block starts finds the command as a reader's shell would.
    own = str(Path(sys.executable).parent)
    monkeypatch.setenv("PATH", os.pathsep.join([own, os.environ.get("PATH", "")]))
    run = json.loads(SAMPLE.read_text("utf-8"))
    (folder / "run.jsonl").write_text(json.dumps(run) + "\n", "utf-8")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_block_does_what_it_shows(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    unknown = {block.language for block in blocks(path)} - LANGUAGES
    assert unknown == set(), f"blocks in a language that no test runs: {unknown}"
    in_new_folder(tmp_path, monkeypatch)
    if path.name == "postgres.md":
        monkeypatch.setenv("ZERO_MEM_URL", request.getfixturevalue("postgres_url"))
    document: Document = Sybil(Reader(tmp_path).parsers()).parse(path)
    for example in document.examples():
        example.evaluate()


def test_the_two_readmes_show_the_same() -> None:
    english, chinese = blocks(ROOT / "README.md"), blocks(ROOT / "README.zh.md")
    assert [block.language for block in english] == [block.language for block in chinese]


@pytest.mark.req("receipt:demo")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_example_prints_what_its_docstring_says(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_new_folder(tmp_path, monkeypatch)
    wanted = re.search(r"^Prints:\n\n((?: {4}.*\n|\n)+)", path.read_text("utf-8"), re.MULTILINE)
    assert wanted, f"{path.name}: the module docstring ends with `Prints:` and the output"
    output = "\n".join(line.removeprefix("    ") for line in wanted[1].splitlines())
    assert difference(output, run([sys.executable, str(path)], tmp_path)) is None


def test_a_block_that_shows_something_else_is_found(tmp_path: Path) -> None:
    document = tmp_path / "page.md"
    document.write_text("```python\nprint(6 * 7)\n```\n\n```text\n41\n```\n", encoding="utf-8")
    first, second = Sybil(Reader(tmp_path).parsers()).parse(document).examples()
    first.evaluate()
    with pytest.raises(AssertionError, match="42"):
        second.evaluate()


def test_a_console_block_compares_what_each_command_prints(tmp_path: Path) -> None:
    page = "```console\n$ echo one; echo two\none\n...\n$ echo three\nfour\n```\n"
    (tmp_path / "page.md").write_text(page, encoding="utf-8")
    (example,) = Sybil(Reader(tmp_path).parsers()).parse(tmp_path / "page.md").examples()
    with pytest.raises(AssertionError, match="three"):
        example.evaluate()
