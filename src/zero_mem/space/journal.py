"""The past of a namespace, and the way back to it."""

from __future__ import annotations

from datetime import datetime
from itertools import islice

from zero_mem.errors import InvalidInput, NotFound
from zero_mem.handles import check_memory_id
from zero_mem.operations import history
from zero_mem.operations.batch import BatchResult
from zero_mem.operations.history import HistoryEntry, RollbackRequest
from zero_mem.operations.requests import check_moment, check_name
from zero_mem.operations.rules import missing
from zero_mem.past import Past
from zero_mem.recall.render import check_count
from zero_mem.space.view import View


class Journal(View):
    """History, as-of and rollback."""

    def history(self, memory_id: str | int) -> list[HistoryEntry]:
        """List every change of a record, the oldest first, with the body before each.

        Raises:
            NotFound: The journal has no such record in this namespace.
        """
        identity = check_memory_id(memory_id)
        self._memory.flush()
        with self._reading() as (transaction, row, _):
            entries = list(transaction.journal(row, memory_id=identity)) if row else []
        if not entries:
            raise NotFound(missing(identity, None))
        return [history.history_entry(entry) for entry in entries]

    def changes(self, *, after: int = 0, limit: int = 100) -> list[HistoryEntry]:
        """List the changes of the namespace beyond a journal position, in order.

        Ask again with the `sequence` of the last entry to follow the journal; nothing is left
        out and nothing comes twice.

        Args:
            after: A `sequence`; 0 is the beginning.
            limit: Most entries.
        """
        if after < 0:
            raise InvalidInput(f"after is a position in the journal from 0, not {after}")
        most = check_count(limit, "limit")
        self._memory.flush()
        with self._reading() as (transaction, row, _):
            entries = transaction.journal(row, after=after) if row else iter(())
            return [history.history_entry(entry) for entry in islice(entries, most)]

    def as_of(self, moment: datetime) -> Past:
        """Give the namespace as it was recorded at a moment: get, list, search, recall."""
        at = check_moment(moment, "moment")
        self._memory.flush()
        with self._reading() as (transaction, row, _):
            records = history.records_at(transaction, row, at) if row else {}
            settings = row.settings if row else ""
        return Past(
            records,
            at,
            settings=settings,
            tokenizer=self._memory.tokenizer,
            redactors=self._memory.redactors,
        )

    def rollback(
        self,
        memory_id: str | int | None = None,
        *,
        task: str | None = None,
        operation: int | None = None,
        to_version: int | None = None,
        to_moment: datetime | None = None,
    ) -> BatchResult:
        """Bring a memory, a task's memories, an operation or the namespace back.

        Args:
            memory_id: One memory, with `to_version` or `to_moment`.
            task: A task's memories, with `to_moment`.
            operation: The `operation_id` of a history entry: to before it.
            to_version: A version of `memory_id`.
            to_moment: An aware datetime; without a memory or task, the whole namespace.

        Returns:
            A receipt for each record; going back is a new change, so it can be undone too.

        Raises:
            Conflict: A key is taken, or a record was changed since the operation.
            NotAllowed: What to go back to was purged.
        """
        request = RollbackRequest(
            memory_id=None if memory_id is None else check_memory_id(memory_id),
            task=None if task is None else check_name(task, "task"),
            operation=operation,
            to_version=to_version,
            to_moment=None if to_moment is None else check_moment(to_moment, "to_moment"),
        )
        history.check_rollback(request)
        with self._write_after_queue() as plan:
            receipts = history.roll_back(plan, request)
        return BatchResult(results=tuple(receipts))
