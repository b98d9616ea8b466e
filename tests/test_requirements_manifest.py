"""The manifest and the tests agree, in both directions; read from source, nothing is imported."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SUITES = (ROOT / "tests", ROOT / "src" / "zero_mem" / "testing")
MANIFEST = tomllib.loads((ROOT / "tests" / "requirements.toml").read_text(encoding="utf-8"))
SHOWN_NOW = {**MANIFEST["built"], **MANIFEST["packaging"]}
PLANNED = {name: says for area in MANIFEST["planned"].values() for name, says in area.items()}

pytestmark = pytest.mark.req("pkg:manifest")


@dataclass(frozen=True, slots=True)
class CitingTest:
    """One test as the source has it, with every id on it, its class and its module."""

    where: str
    ids: frozenset[str]


def cited(*nodes: ast.AST) -> frozenset[str]:
    """Collect the ids of every `mark.req(...)` under the nodes; they must be literal strings."""
    marks = [
        node
        for root in nodes
        for node in ast.walk(root)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("mark.req")
    ]
    return frozenset(ast.literal_eval(argument) for mark in marks for argument in mark.args)


def read_tests(source: str, where: str) -> Iterator[CitingTest]:
    """Give the tests of one module: functions, methods, and `TestX = …` made by a library."""
    module = ast.parse(source)
    yield from _tests_in(module.body, where, frozenset())


def _tests_in(body: list[ast.stmt], where: str, outer: frozenset[str]) -> Iterator[CitingTest]:
    inherited = outer | cited(*(node for node in body if "pytestmark" in _names_set(node)))
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                if name.startswith("test"):
                    yield CitingTest(f"{where}::{name}", inherited | cited(*node.decorator_list))
            case ast.ClassDef(name=name):
                ids = inherited | cited(*node.decorator_list)
                yield from _tests_in(node.body, f"{where}::{name}", ids)
            case _:
                made = [name for name in _names_set(node) if name.startswith("Test")]
                yield from (CitingTest(f"{where}::{name}", inherited) for name in made)


def _names_set(node: ast.stmt) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else []
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        targets = [node.target]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def all_tests() -> list[CitingTest]:
    """Read every test module of the project and of the shipped conformance suite."""
    files = sorted(path for suite in SUITES for path in suite.rglob("*.py"))
    return [
        test
        for path in files
        for test in read_tests(path.read_text(encoding="utf-8"), str(path.relative_to(ROOT)))
    ]


def test_every_id_is_written_once_and_says_something() -> None:
    listed = [*MANIFEST["built"], *MANIFEST["packaging"], *PLANNED]
    assert len(listed) == len(set(listed))
    assert [name for name in listed if not re.fullmatch(r"[a-z]+:[a-z]+(-[a-z]+)*", name)] == []
    assert [name for name, says in {**SHOWN_NOW, **PLANNED}.items() if len(says) < 20] == []


def test_every_test_names_an_id() -> None:
    assert [test.where for test in all_tests() if not test.ids] == []


def test_every_id_that_a_test_names_is_listed() -> None:
    unlisted = {
        test.where: sorted(test.ids - SHOWN_NOW.keys() - PLANNED.keys()) for test in all_tests()
    }
    assert {where: ids for where, ids in unlisted.items() if ids} == {}


def test_every_built_id_is_named_by_a_test() -> None:
    named = frozenset[str]().union(*(test.ids for test in all_tests()))
    assert sorted(SHOWN_NOW.keys() - named) == []


def test_ids_are_read_from_module_class_and_function() -> None:
    source = """
pytestmark = [pytest.mark.req("a:module"), pytest.mark.fault]
@pytest.mark.req("a:class")
class TestThing:
    @pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.req("a:case"))])
    @pytest.mark.req("a:one", "a:two")
    async def test_it(self, x): ...
def test_plain(): ...
def not_a_test(): ...
TestMachine = Machine.TestCase
"""
    assert list(read_tests(source, "t.py")) == [
        CitingTest(
            "t.py::TestThing::test_it",
            frozenset({"a:module", "a:class", "a:case", "a:one", "a:two"}),
        ),
        CitingTest("t.py::test_plain", frozenset({"a:module"})),
        CitingTest("t.py::TestMachine", frozenset({"a:module"})),
    ]
