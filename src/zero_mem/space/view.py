"""What every part of a namespace's view shares: its place, and its transactions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from time import perf_counter
from typing import TYPE_CHECKING, Any

from zero_mem import filters
from zero_mem.errors import ZeroMemError
from zero_mem.filters import Filter
from zero_mem.operations.plan import Plan
from zero_mem.redaction import of_namespace
from zero_mem.storage.base import NamespaceRow, Transaction
from zero_mem.types import Path

if TYPE_CHECKING:
    from zero_mem.memory import Memory
    from zero_mem.redaction.redactor import Redactor


class View:
    """One namespace of a store."""

    def __init__(self, memory: Memory, path: Path, *, actor: str = "") -> None:
        self._memory = memory
        self._path = path
        self._actor = actor

    def __repr__(self) -> str:
        return f"<Namespace {self._path}>"

    @property
    def path(self) -> Path:
        """The segments of the namespace."""
        return self._path

    @property
    def memory(self) -> Memory:
        """The store that this is a view of."""
        return self._memory

    # Transactions

    @contextmanager
    def _writing(self, *, durable: bool = True) -> Iterator[Plan]:
        """Open a plan on the namespace; at the end its changes are written, all or none."""
        begun = perf_counter()
        try:
            with self._memory.transaction(write=True, durable=durable) as transaction:
                row = transaction.create_namespace(self._path)
                plan = Plan(
                    transaction,
                    row,
                    now=self._memory.now(),
                    actor=self._actor,
                    redactors=self._memory.redactors,
                    sizes=self._memory.sizes,
                )
                yield plan
                plan.flush()
        except ZeroMemError as error:
            self._memory.metrics.failed(error)
            raise
        plan.keep_size()
        self._memory.metrics.wrote(plan.written, begun)

    @contextmanager
    def _reading(self) -> Iterator[tuple[Transaction, NamespaceRow | None, datetime]]:
        begun = perf_counter()
        try:
            with self._memory.transaction() as transaction:
                yield transaction, transaction.namespace(self._path), self._memory.now()
        except ZeroMemError as error:
            self._memory.metrics.failed(error)
            raise
        self._memory.metrics.read(begun)

    @contextmanager
    def _write_after_queue(self) -> Iterator[Plan]:
        self._memory.flush()
        with self._writing() as plan:
            yield plan

    def _redactor(self, row: NamespaceRow) -> Redactor:
        return self._memory.redactors.of(of_namespace(row.settings))

    def _asked(self, row: NamespaceRow, where: Mapping[str, Any] | None, parsed: Filter) -> Filter:
        """Give a parsed filter by which what is stored redacted is found."""
        asked = self._redactor(row).asked_where(where) if where else where
        return parsed if asked == where else filters.parse(asked)

    def _row(self) -> NamespaceRow:
        with self._reading() as (_, row, _):
            return row or NamespaceRow(number=0, path=self._path)
