"""Write without end, as many kinds of operations as there are: `mixed_writer.py URL NAME SEED`.

Before each operation it tells what it is about to do, after it what was acknowledged, each as
one line of JSON. It ends when it is killed, or with `LOST` when its server is.
"""

from __future__ import annotations

import json
import random
import sys
from typing import Any, NoReturn, TypeAlias

from zero_mem import Memory
from zero_mem.errors import StoreUnavailable
from zero_mem.space import Namespace
from zero_mem.types import MemoryReceipt

State: TypeAlias = dict[str, Any]
WORDS = ["refund", "order", "customer", "退款", "申请", "bicycle", "流程", "invoice", "第二步"]


LISTED = 40
"""A namespace of more records enters PostgreSQL's inverted list."""

LOST = 3
"""The exit status of a writer whose store can't be reached any more."""


def main(url: str, name: str, seed: int) -> int:
    if url.startswith("postgresql:"):
        from zero_mem.storage import postgres_lexicon

        # So that a namespace enters the inverted list while its writer can be killed.
        vars(postgres_lexicon)["LARGEST"] = LISTED
    try:
        with Memory.open(url, actor=name) as memory:
            Writer(memory.namespace("writers", name), seed).run()
    except StoreUnavailable as error:
        print(error, file=sys.stderr)  # seen where a test did not expect it
        return LOST


class Writer:
    """Knows the records that are there, and picks what to do by chance."""

    def __init__(self, space: Namespace, seed: int) -> None:
        self.space = space
        self.chance = random.Random(seed)
        self.seed = seed
        self.turn = 0
        everything = space.each({"state": {"in": ["active", "archived"]}})
        self.known: dict[str, State] = {
            record.memory_id: {"text": record.text, "state": record.state} for record in everything
        }

    def run(self) -> NoReturn:
        choices = [self.save, self.save_key, self.save_batch, self.update, self.end, self.purge]
        while True:
            self.turn += 1
            (step,) = self.chance.choices(choices, weights=[30, 15, 10, 25, 18, 2])
            step()

    def text(self) -> str:
        length = self.chance.choice([5, 5, 40, 400, 8000])
        words = " ".join(self.chance.choices(WORDS, k=length))
        return f"seed{self.seed} turn{self.turn} {words}"

    def pick(self, *states: str) -> str | None:
        fitting = [key for key, known in self.known.items() if known["state"] in states]
        return self.chance.choice(fitting) if fitting else None

    def tell(self, event: str, **what: Any) -> None:
        print(json.dumps({"event": event, "turn": self.turn, **what}), flush=True)

    def acknowledge(self, receipt: MemoryReceipt, text: str, state: str = "active") -> State:
        memory_id = receipt.memory_id
        self.known[memory_id] = {"text": text, "state": state}
        return {"id": memory_id, "version": receipt.version, "text": text, "state": state}

    # Operations

    def save(self) -> None:
        text = self.text()
        self.tell("begin", touches=[], makes=1)
        receipt = self.space.save(text, tags=[self.chance.choice(WORDS)], metadata={"n": self.turn})
        self.tell("done", records=[self.acknowledge(receipt, text)])

    def save_key(self) -> None:
        key, text = self.chance.choice("abcde"), self.text()
        held = [record.memory_id for record in self.space.each({"key": key})]
        self.tell("begin", touches=held, makes=1 - len(held))
        receipt = self.space.save(text, kind="user_pref", key=key, idempotency_key=text[:60])
        self.tell("done", records=[self.acknowledge(receipt, text)])

    def save_batch(self) -> None:
        texts = [self.text() for _ in range(5)]
        self.tell("begin", touches=[], makes=5)
        receipts = self.space.save_many([{"content": text} for text in texts]).receipts
        pairs = zip(receipts, texts, strict=True)
        self.tell("done", records=[self.acknowledge(receipt, text) for receipt, text in pairs])

    def update(self) -> None:
        memory_id = self.pick("active")
        if memory_id is None:
            return
        text = self.text()
        self.tell("begin", touches=[memory_id], makes=0)
        receipt = self.space.update(memory_id, content=text, expires_in=86_400)
        self.tell("done", records=[self.acknowledge(receipt, text)])

    def end(self) -> None:
        memory_id = self.pick("active", "archived")
        if memory_id is None:
            return
        known = self.known[memory_id]
        if known["state"] == "archived":
            step, state = self.space.delete, "deleted"
        else:
            step, state = self.space.archive, "archived"
        self.tell("begin", touches=[memory_id], makes=0)
        self.tell("done", records=[self.acknowledge(step(memory_id), known["text"], state)])

    def purge(self) -> None:
        memory_id = self.pick("active", "archived")
        if memory_id is None:
            return
        self.tell("begin", touches=[memory_id], makes=0)
        receipt = self.space.purge(memory_id)
        self.tell("done", records=[self.acknowledge(receipt, "", "purged")])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
