"""Random operations by many keys over many namespaces, each judged by its rights alone."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from zero_mem import Memory, NotAllowed, NotFound
from zero_mem.access import Grant
from zero_mem.access.grants import Right, allows
from zero_mem.exchange import export_records
from zero_mem.space import Namespace
from zero_mem.sync import sync
from zero_mem.types import Path

KEYS: Final = 20
PATHS: Final[tuple[Path, ...]] = tuple(
    (f"t{number // 5}", f"u{number % 5}") if number % 5 else (f"t{number // 5}",)
    for number in range(50)
)
RIGHTS: Final[tuple[Right, ...]] = ("read", "write", "admin")


@dataclass(slots=True)
class Isolation:
    """Runs operations on a store; each body names its namespace, so that a leak shows."""

    memory: Memory
    seed: int
    peer: Memory = field(default_factory=lambda: Memory.open("memory://"))
    done: int = 0
    denied: int = 0

    def run(self, count: int) -> Isolation:
        """Do so many operations.

        Raises:
            AssertionError: One read or changed what its key does not give.
        """
        chance = random.Random(self.seed)
        for path in PATHS:
            self.memory.namespace(*path).save(_body(path, 0), memory_id="first")
        keys = [self._key(chance) for _ in range(KEYS)]
        for number in range(count):
            grants, view = chance.choice(keys)
            self._one(chance, grants, view, number)
        for path in PATHS:
            _check(path, [r.text for r in self.memory.namespace(*path).each()])
        return self

    def _key(self, chance: random.Random) -> tuple[list[Grant], Memory]:
        grants = []
        for _ in range(chance.randint(1, 3)):
            path = list(chance.choice(PATHS))
            if chance.random() < 0.3:
                path[-1] = "*"
            if chance.random() < 0.2:
                path.append("**")
            grants.append(Grant.of(chance.choice(RIGHTS), path))
        credential = self.memory.keyring.create("k", grants).credential
        return grants, self.memory.guarded(credential)

    def _one(self, chance: random.Random, grants: list[Grant], view: Memory, number: int) -> None:
        path = chance.choice(PATHS)
        right, operation = chance.choice([*OPERATIONS, ("write", self._sync)])
        before = None if allows(grants, right, path) else self._state(path)
        try:
            seen = operation(view.namespace(*path), path, number)
        except NotAllowed:
            assert before is not None, f"{grants} gave no {right} over {path}"
        except NotFound:
            assert before is None, f"{path} told what is in it"
        else:
            assert before is None, f"{grants} gave {right} over {path}"
            _check(path, seen)
        self.done += 1
        if before is not None:
            self.denied += 1
            assert self._state(path) == before

    def _sync(self, space: Namespace, path: Path, number: int) -> list[str]:
        """Exchange changes with another store, which has something new."""
        there = self.peer.namespace(*path)
        there.save(_body(path, number), memory_id=f"peer{number % 5}")
        report = sync(space.memory, self.peer, namespaces=[path])
        if report.stopped:
            raise NotAllowed(report.stopped[path])
        return [record.text for record in there.each()]

    def _state(self, path: Path) -> list[tuple[str, int]]:
        space = self.memory.namespace(*path)
        every = space.list({"state": {"in": ["active", "archived", "deleted"]}})
        return [(record.memory_id, record.version) for record in every]


def _body(path: Path, number: int) -> str:
    return f"body of {'/'.join(path)}; number {number}"


def _check(path: Path, texts: list[str]) -> None:
    for text in texts:
        assert f"body of {'/'.join(path)};" in text, f"{path} showed a text of another"


def _export(space: Namespace) -> str:
    lines = io.StringIO()
    export_records(space, lines)
    return lines.getvalue()


def _wrote(_: object) -> list[str]:
    return []


Operation = Callable[[Namespace, Path, int], list[str]]
OPERATIONS: Final[list[tuple[Right, Operation]]] = [
    ("read", lambda s, p, n: [s.get("first").text]),
    ("read", lambda s, p, n: [r.text for r in s.list({"memory_id": {"ne": "x"}}, limit=5)]),
    ("read", lambda s, p, n: [hit.record.text for hit in s.search("body number")]),
    ("read", lambda s, p, n: [item.text for item in s.recall("body number").items]),
    ("read", lambda s, p, n: [s.recall_for_prompt(["first"])]),
    ("read", lambda s, p, n: [e.record.text for e in s.history("first") if e.record]),
    ("read", lambda s, p, n: [r.text for r in s.as_of(s.memory.now()).list()]),
    ("read", lambda s, p, n: [e.record.text for e in s.changes(after=n % 7) if e.record]),
    ("read", lambda s, p, n: [s.read("first", lines=(1, 1)).text]),
    ("read", lambda s, p, n: _export(s).splitlines()),
    ("read", lambda s, p, n: [v for v in s.decisions("host").values() if v]),
    ("write", lambda s, p, n: _wrote(s.save(_body(p, n)))),
    ("write", lambda s, p, n: _wrote(s.update("first", _body(p, n)))),
    ("write", lambda s, p, n: _wrote(s.save_many([{"content": _body(p, n)}]))),
    ("write", lambda s, p, n: _wrote(s.touch("first"))),
    ("write", lambda s, p, n: _wrote(s.rollback("first", to_version=1))),
    ("write", lambda s, p, n: _wrote(s.decide("host", str(n), _body(p, n)))),
    ("write", lambda s, p, n: _wrote(s.delete_many({"memory_id": str(n % 9)}))),
    ("write", lambda s, p, n: _wrote(s.expire())),
    ("admin", lambda s, p, n: _wrote(s.configure(max_recall_items=n + 1))),
]
