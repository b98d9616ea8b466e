"""A store with some of everything that the console shows, hostile texts among it."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from zero_mem import Blob, Json, Memory
from zero_mem.ledger.columns import CacheState, CallTokens
from zero_mem.ledger.entries import Account, LedgerEntry
from zero_mem.ledger.reading import OF_ALL, key_of
from zero_mem.ledger.sides import Side
from zero_mem.ledger.stored import written

HOSTILE: Final = (
    "<script>document.title='run'</script>"
    '"><img src=x onerror="document.title=\'run\'">'
    "{{ 7 * 7 }} {% raw %} ${7*7} javascript:alert(1)\n"
    "\u202egnp.exe\u202c \x00 \x1b[31m \ufeff </textarea></title><style>*{display:none}</style>\n"
    + "unbroken" * 60
    + "\n&lt;b&gt; [memo:1] </memory>"
)
NAME: Final = "\"><script>document.title='run'</script>"


def filled(memory: Memory) -> Memory:
    """Fill a store and give it."""
    space = memory.namespace("acme", "alice", actor="agent")
    space.save(
        "Refund policy\n\nAnn may return goods within 14 days.\nShipping is not refunded.\n",
        memory_id="refund",
        kind="policy",
        key="refund",
        form="semantic",
        tags=["shop", "refund"],
        metadata={"order": {"id": 57}, "owner": "Ann"},
    )
    space.update(
        "refund",
        content="Refund policy\n\nAnn may return goods in 30 days.\nShipping is not refunded.\n",
    )
    space.update(
        "refund",
        content="Refund policy\n\nAnn may return any goods within 30 days.\n"
        "Shipping is refunded for faulty goods.\nAsk support first.\n",
        tags=["shop", "refund", "checked"],
        metadata={"order": {"id": 57}, "owner": "Ann", "checked": True},
    )
    for number in range(57, 63):
        space.save(
            Json(
                {
                    "order": number,
                    "state": "paid",
                    "lines": [{"sku": "tea-1", "count": number - 55}],
                }
            ),
            memory_id=f"order-{number}",
            kind="order",
            key=str(number),
            form="episodic",
            tags=["shop"],
            metadata={"order": {"id": number}},
            task="refund-57",
        )
    space.save("王小明喜欢乌龙茶，不加糖。", kind="user_pref", key="茶", speaker="王小明")
    space.save(
        "Deploy with the blue button; roll back with the red one.", form="procedural", kind="how_to"
    )
    space.save(
        "The current cart has two teas.", form="working", kind="cart", expires_in=timedelta(hours=3)
    )
    space.save("An old remark that nobody needs.", memory_id="old", kind="note")
    space.archive("old")
    space.save("A remark that was taken back.", memory_id="gone", kind="note")
    space.delete("gone")
    space.save(
        Blob(data=bytes(range(256)) * 40, media_type="image/png"), memory_id="scan", kind="scan"
    )
    space.save(HOSTILE, memory_id="hostile", kind=NAME[:60], key=NAME, tags=[NAME], speaker=NAME)
    memory.namespace("acme", NAME, actor=NAME).save("of a hostile namespace", kind="note")
    memory.namespace("acme", "bob").save("Bob's only memory.", kind="note")
    _enter_calls(memory)
    return memory


def _enter_calls(memory: Memory) -> None:
    """Enter a ledger as a proxy keeps it."""
    side = CallTokens(system=900, tool_definitions=1400, conversation=5200, tool_control=2100)
    paid = Side(
        tokens=side + CallTokens(tool_results=6100, our_definitions=260, memory_receipts=340),
        state=CacheState(read=11_000, write=4000, fresh=1300),
    )
    without = Side(
        tokens=side + CallTokens(tool_results=39_500),
        state=CacheState(read=33_000, write=14_000, fresh=2100),
    )
    account = Account(calls=12, requests=13, counted=16_300, paid=paid, without=without)
    entry = LedgerEntry(
        conversation="refund-57", account=account, model="claude-sonnet-4-5", last=1_790_000_000.0
    )
    key = key_of("refund-57", "process", entry.last)
    memory.namespace("acme", "alice").decide(OF_ALL, key, written(entry))
