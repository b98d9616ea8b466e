"""Conversations, costs and expiries for the console's pages, hostile texts among them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from conversations import BODY, request, response, results, turn, user

from zero_mem import Memory, MemoryController, ZeroMemRuntime
from zero_mem.testing.fakes import FakeClock

SPACE: Final = ("acme", "desk")
_HERE: Final = "ns=acme%2Fdesk"
ADDRESSES: Final = {
    "conversations": f"/conversations?{_HERE}",
    "conversation-built": f"/conversation?{_HERE}&name=trip-to-bern",
    "conversation-prepared": f"/conversation?{_HERE}&name=order-57",
    "conversation-observed": "/conversation?ns=acme%2Falice&name=refund-57",
    "costs": f"/costs?{_HERE}",
    "expiry": f"/expiry?{_HERE}&days=90",
    "keys": "/keys",
    "backup": "/backup?examine=1",
}
"""Where these are looked at, below the console."""
RULE: Final = "Prefers quiet hotels near the station, with a desk. " * 6 + "Loyalty number: ZX-4417"


def talked(memory: Memory, clock: FakeClock, hostile: str = "") -> None:
    """Hold conversations of each sort in one namespace; the clock goes on by some minutes.

    Args:
        memory: The store.
        clock: The store's clock.
        hostile: A text that a tool gives, and that names a tool.
    """
    space = memory.namespace(*SPACE, actor="agent")
    for number in range(59, 62):
        space.save(f"order {number} is late, a parcel was lost", kind="order", key=str(number))
    space.save(RULE, form="procedural", kind="travel_rule", memory_id="rule")
    _recorded(memory, clock)
    _prepared(memory, clock, hostile)
    space.start_task("refund-57", lease=timedelta(days=2))
    space.save("waits for the parcel", kind="task_state", task="refund-57", memory_id="state")
    space.save("a voucher of 5 €", kind="voucher", expires_in=timedelta(days=6), memory_id="v5")
    space.save("an old draft", form="working", kind="draft", memory_id="draft")
    space.save("57 is on hold", kind="note", memory_id="hold", invalidated_by=["order.cancelled"])
    space.save("a code", kind="code", expires_in=timedelta(seconds=1), memory_id="code")
    clock.advance(2)
    memory.expire()
    space.save("another code", kind="code", expires_in=timedelta(seconds=1), memory_id="code-2")
    clock.advance(2)


def _recorded(memory: Memory, clock: FakeClock) -> None:
    """Build prompts whose replies are recorded; a memory changes in between."""
    space = memory.namespace(*SPACE, actor="agent")
    runtime = ZeroMemRuntime(space, conversation="trip-to-bern")
    space.save("Trains only.", form="procedural", kind="means", memory_id="means")
    messages: list[dict[str, Any]] = []
    for number, reply in enumerate(["Which day?", "Noted.", "Booked with ZX-4417."]):
        if number == 1:
            space.update("means", content="Trains, or a bus at night.")
        messages.append({"role": "user", "content": f"question {number}"})
        runtime.on_message("user", f"question {number}")
        clock.advance(20)
        runtime.build_prompt(messages)
        clock.advance(20)
        runtime.on_message("assistant", reply)
        messages.append({"role": "assistant", "content": reply})
        clock.advance(20)


def _prepared(memory: Memory, clock: FakeClock, hostile: str) -> None:
    """Prepare requests with long results, pass a value on, claim something unread, account."""
    subject = MemoryController(memory.namespace(*SPACE), conversation="order-57", share=0.2)
    items: list[Any] = [
        user("Which orders are late?"),
        turn("anthropic", c1=("orders", {"state": "late"})),
        results("anthropic", c1=BODY),
    ]
    sent = request("anthropic", *items, model="claude-sonnet-5-5")
    prepared = subject.prepare(sent, "anthropic")
    (memory_id,) = (r.memory_id for r in memory.namespace(*SPACE).list({"session": "order-57"}))
    handle = f"[memo:{memory_id}]"
    written = turn("anthropic", f"According to {handle} two are late.", c2=("mail", {"to": handle}))
    answer = response("anthropic", written) | {
        "usage": {"input_tokens": 1900, "output_tokens": 40, "cache_read_input_tokens": 700}
    }
    subject.absorb(answer, "anthropic")
    subject.account(prepared, "anthropic", response=answer, given=sent)
    clock.advance(60)
    if hostile:
        items += [turn("anthropic", c3=("notes", {})), results("anthropic", c3=hostile)]
        subject.prepare(request("anthropic", *items, model="claude-sonnet-5-5"), "anthropic")
