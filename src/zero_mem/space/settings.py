"""A namespace's limits, and what its host keeps beside the records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from zero_mem import redaction
from zero_mem.errors import InvalidInput, NotAllowed, NotFound
from zero_mem.handles import check_memory_id
from zero_mem.operations.plan import Plan
from zero_mem.operations.requests import check_name, check_text
from zero_mem.operations.rules import missing
from zero_mem.policy.limits import Limits, configured, limits_for
from zero_mem.queued import QueuedFailure
from zero_mem.space.view import View
from zero_mem.storage.base import Decision


class DecisionsAt(NamedTuple):
    """Scopes of decisions as of one moment.

    `position` is the sequence of the newest journal entry, 0 where there is none: as long as it
    stays the same, no record has changed. `settings` are as `limits_for` takes them.
    """

    position: int
    settings: str
    scopes: list[dict[str, str | None]]


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
                also max_bytes, and redact, such as {"personal": "mask"}; see docs/redaction.md.

        Returns:
            The limits that now hold there.
        """
        redacts = "redact" in settings
        redact = settings.pop("redact", None)
        if redacts and (form, kind) != (None, None):
            raise InvalidInput("redact is set for a whole namespace, not for a form or kind")
        with self._write_after_queue() as plan:
            row = plan.row
            if redacts:
                row.settings = self._redact(row.settings, redact)
            if settings or not redacts:
                row.settings = configured(row.settings, settings, form=form, kind=kind)
            plan.transaction.store_namespace(row)
            return limits_for(row.settings, form or "semantic", kind or "")

    def _redact(self, settings: str, changes: Mapping[str, Any] | None) -> str:
        known = self._memory.redactors.in_force("")
        return redaction.configured(settings, changes, known)

    def redaction(self) -> dict[str, Any]:
        """Read what is redacted here and how, as `redact` in `configure` takes it."""
        return self._memory.redactors.in_force(redaction.of_namespace(self.settings()))

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
        item = {"scope": scope, "key": key, "value": value, "memory_id": memory_id}
        (written,) = self.decide_many([item], only_new=only_new)
        return written

    def decide_many(
        self,
        items: Iterable[Mapping[str, Any]],
        *,
        only_new: bool = False,
        hold: str | None = None,
        durable: bool = True,
    ) -> list[bool]:
        """Keep many values in one transaction; each item has the arguments of `decide`.

        Args:
            items: Mappings with "scope", "key", "value" and, optionally, "memory_id".
            only_new: Leave the values that are there already as they are.
            hold: An owner for whom the active ones of the memories that are named are kept from
                eviction until `release`.
            durable: False where losing the values on power loss does no harm.

        Returns:
            Whether each value was written.

        Raises:
            InvalidInput, NotAllowed: An item is wrong; nothing was stored.
            NotFound: A memory is not there or was purged; nothing was stored.
        """
        checked = [_decision(item) for item in items]
        owner = None if hold is None else check_name(hold, "hold")
        if not checked:
            return []
        self._memory.flush()
        with self._writing(durable=durable) as plan:
            plan.prefetch(identity for _, identity in checked if identity is not None)
            return [_decide(plan, *each, only_new=only_new, hold=owner) for each in checked]

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

    def decisions_at(self, *scopes: str) -> DecisionsAt:
        """Read several scopes as of one moment.

        Returns:
            The position of the journal, the settings, and each scope as `decisions` gives it.
        """
        names = [check_name(scope, "scope") for scope in scopes]
        with self._reading() as (transaction, row, _):
            if row is None:
                return DecisionsAt(0, "", [{} for _ in names])
            found = [transaction.decisions(row, name) for name in names]
        scoped: list[dict[str, str | None]] = [{d.key: d.value for d in each} for each in found]
        return DecisionsAt(row.sequence, row.settings, scoped)

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
        self._row()  # who may not read the namespace is refused
        failed = self._memory.queued.failures
        return [failure for failure in failed if failure.namespace == self._path]


def _decision(item: Mapping[str, Any]) -> tuple[Decision, str | None]:
    """Check what a host wants to keep; the memory that it belongs to is looked up later."""
    unknown = item.keys() - {"scope", "key", "value", "memory_id"}
    lacking = {"scope", "key", "value"} - item.keys()
    if unknown or lacking:
        names = ", ".join(sorted(map(str, unknown or lacking)))
        raise InvalidInput(f"a decision {'has no field' if unknown else 'lacks'} {names}")
    scope, key = check_name(item["scope"], "scope"), check_text(item["key"], "key")
    if scope.startswith("zero-mem:"):
        raise NotAllowed("scopes that begin with zero-mem: are the store's own")
    memory_id = item.get("memory_id")
    identity = None if memory_id is None else check_memory_id(memory_id)
    return Decision(scope=scope, key=key, value=check_text(item["value"], "value")), identity


def _decide(
    plan: Plan, decision: Decision, identity: str | None, *, only_new: bool, hold: str | None
) -> bool:
    transaction, row = plan.transaction, plan.row
    if only_new and transaction.decision(row, decision.scope, decision.key) is not None:
        return False
    if identity is not None:
        stored = plan.stored(identity)
        # An archived or deleted one can still be purged, and its values with it.
        if stored is None or stored.ended_by == "purge":
            raise NotFound(missing(identity, stored))
        decision = replace(decision, uid=stored.record.uid)
        if hold is not None and stored.record.state == "active":
            transaction.hold(row, hold, stored.record.uid)
    transaction.decide(row, decision)
    return True
