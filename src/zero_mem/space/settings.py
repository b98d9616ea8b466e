"""A namespace's limits, and what its host keeps beside the records."""

from __future__ import annotations

from typing import Any

from zero_mem import redaction
from zero_mem.errors import InvalidInput, NotAllowed
from zero_mem.handles import check_memory_id
from zero_mem.operations.requests import check_name, check_text
from zero_mem.policy.limits import Limits, configured, limits_for
from zero_mem.queued import QueuedFailure
from zero_mem.space.view import View
from zero_mem.storage.base import Decision


class Settings(View):
    """Limits, decisions, holds, and the failures of queued writes."""

    def configure(
        self, *, form: str | None = None, kind: str | None = None, **settings: Any
    ) -> Limits:
        """Set limits for the namespace, or for one form or kind in it.

        Args:
            form: Only for this form.
            kind: Only for this kind.
            settings: max_memory_items, retention_days, compaction_threshold, dedupe_key,
                max_recall_items, overflow, visibility; see `Limits`. For the whole namespace
                also redact, such as {"personal": "mask"}; see `redaction.settings`.

        Returns:
            The limits that now hold there.
        """
        redact = settings.pop("redact", None)
        if redact is not None and (form, kind) != (None, None):
            raise InvalidInput("redact is set for a whole namespace, not for a form or kind")
        with self._write_after_queue() as plan:
            row = plan.row
            if redact is not None:
                row.settings = redaction.configured(row.settings, redact)
            if settings or redact is None:
                row.settings = configured(row.settings, settings, form=form, kind=kind)
            plan.transaction.store_namespace(row)
            return limits_for(row.settings, form or "semantic", kind or "")

    def settings(self) -> str:
        """Read the settings as `limits_for` takes them."""
        return self._row().settings

    def limits(self, form: str = "semantic", kind: str = "") -> Limits:
        """Read the limits that hold for a form and kind."""
        return limits_for(self.settings(), form, kind)

    def decide(
        self,
        scope: str,
        key: str,
        value: str,
        *,
        memory_id: str | int | None = None,
        only_new: bool = False,
    ) -> bool:
        """Keep an opaque value of the host's under (scope, key), durably.

        Args:
            scope: What the value is for.
            key: Names it in its scope.
            value: Any text.
            memory_id: A purge of that memory erases the value too.
            only_new: Leave a value that is there already as it is.

        Returns:
            Whether the value was written.
        """
        scope, key = check_name(scope, "scope"), check_text(key, "key")
        if scope.startswith("zero-mem:"):
            raise NotAllowed("scopes that begin with zero-mem: are the store's own")
        check_text(value, "value")
        identity = None if memory_id is None else check_memory_id(memory_id)
        with self._write_after_queue() as plan:
            if only_new and plan.transaction.decision(plan.row, scope, key) is not None:
                return False
            uid = None if identity is None else plan.live(identity).record.uid
            decision = Decision(scope=scope, key=key, value=value, uid=uid)
            plan.transaction.decide(plan.row, decision)
            return True

    def decision(self, scope: str, key: str) -> str | None:
        """Read the value under (scope, key), None where there is none or it was purged."""
        scope, key = check_name(scope, "scope"), check_text(key, "key")
        with self._reading() as (transaction, row, _):
            found = transaction.decision(row, scope, key) if row else None
        return None if found is None else found.value

    def decisions(self, scope: str) -> dict[str, str | None]:
        """Read a scope in the order its keys were first decided; None marks a purged value."""
        scope = check_name(scope, "scope")
        with self._reading() as (transaction, row, _):
            found = transaction.decisions(row, scope) if row else []
        return {decision.key: decision.value for decision in found}

    def scopes(self) -> list[str]:
        """List the scopes under which the host keeps decisions here."""
        with self._reading() as (transaction, row, _):
            found = transaction.scopes(row) if row else []
        return [scope for scope in found if not scope.startswith("zero-mem:")]

    def hold(self, owner: str, memory_id: str | int) -> None:
        """Keep a record from eviction until its owner releases it."""
        name, identity = check_name(owner, "owner"), check_memory_id(memory_id)
        with self._write_after_queue() as plan:
            plan.transaction.hold(plan.row, name, plan.live(identity).record.uid)

    def release(self, owner: str) -> None:
        """End every hold of an owner."""
        name = check_name(owner, "owner")
        with self._write_after_queue() as plan:
            plan.transaction.release(plan.row, name)

    def failures(self) -> list[QueuedFailure]:
        """List the queued writes of this namespace that could not be applied."""
        self._memory.flush()
        failed = self._memory.queued.failures
        return [failure for failure in failed if failure.namespace == self._path]
