"""The command that Claude Code runs at each event: reads it on stdin, answers on stdout.

It never stops its client: whatever goes wrong is said on stderr, and the client goes on as
if there were no hook.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from zero_mem.environment import keys
from zero_mem.errors import ZeroMemError
from zero_mem.hook.events import Hook, answer
from zero_mem.hook.payload import Payload
from zero_mem.memory import Memory


def main(given: Sequence[str] | None = None) -> int:
    """Answer one event.

    Returns:
        0 always: any other code would be shown to the user as a failed hook.
    """
    options = _parser().parse_args(given)
    namespace = tuple(options.namespace.split("/")) if options.namespace else None
    try:
        payload = Payload.read(sys.stdin.read())
        with Memory.open(options.store, actor="claude-code", tokens="o200k", **keys()) as memory:
            hook = Hook(
                memory=memory,
                namespace=namespace,
                share=options.share,
                command=options.command,
                store=options.store or "",
            )
            answered = answer(hook, payload)
    except ZeroMemError as error:
        sys.stderr.write(f"zero-mem: {error}\n")
        return 0
    if answered:
        json.dump(answered, sys.stdout)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m zero_mem.hook", description=__doc__)
    parser.add_argument("--store", help="The store's URL; by default the user's memory.db.")
    parser.add_argument("--namespace", help="A/B; by default one for each project folder.")
    parser.add_argument("--share", type=float, default=0.25, help="As for the controller.")
    parser.add_argument("--command", default="zero-mem", help="How the model calls zero-mem.")
    return parser


if __name__ == "__main__":
    sys.exit(main())
