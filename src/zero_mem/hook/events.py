"""What a hook answers to each event, by the same decisions as the controller's."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path as FilePath
from typing import Any, Final

from zero_mem import handles
from zero_mem.controller.core import Offloader
from zero_mem.controller.messages import Message
from zero_mem.controller.references import ReferencePolicy
from zero_mem.controller.rounds import content_key
from zero_mem.controller.wire.sites import Path
from zero_mem.conversation.candidates import shown_filters
from zero_mem.conversation.controller import MemoryController
from zero_mem.conversation.persisted import Inserted, NewResult, Persisted
from zero_mem.errors import NotFound
from zero_mem.hook.history import spoken
from zero_mem.hook.payload import Payload
from zero_mem.hook.places import text_places, with_texts
from zero_mem.memory import Memory
from zero_mem.policy.visibility import visibility_of
from zero_mem.space import Namespace
from zero_mem.text.fence import fence, memory_line
from zero_mem.types import MemoryRecord

SHELLS: Final = frozenset({"Bash", "PowerShell", "BashOutput"})
KEPT: Final = frozenset({"Read", "Edit", "Write", "MultiEdit", "NotebookEdit", "NotebookRead"})
"""Tools whose results stay: a model needs a file whole to edit it."""

_AGAIN: Final = frozenset({"startup", "clear", "compact", ""})
_COMMAND: Final = "zero-mem"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """How the hook works.

    Attributes:
        memory: The store.
        namespace: Where results go; None is one namespace for each project folder.
        share: As for `MemoryController`.
        store: The store's URL where the command has to name it.
        command: The command line program, as the model calls it in its shell.
    """

    memory: Memory
    namespace: tuple[str, ...] | None = None
    share: float = 0.25
    command: str = "zero-mem"
    store: str = ""
    kept: frozenset[str] = field(default=KEPT)

    def reading(self, space: Namespace, memory_id: str, *, verb: str = "read") -> str:
        """Give the command by which a memory is read in the shell."""
        place = shlex.quote("/".join(space.path))
        store = f" --store {shlex.quote(self.store)}" if self.store else ""
        return f"{self.command} {verb} {memory_id} -n {place}{store}"

    def space(self, payload: Payload) -> Namespace:
        """Give the namespace of an event."""
        return self.memory.namespace(*(self.namespace or project_namespace(payload.folder)))


def project_namespace(folder: str) -> tuple[str, str]:
    """Name the namespace of a project: its folder's name, made unique by its path."""
    name = FilePath(folder).name or "root"
    digest = hashlib.blake2b(folder.encode(errors="surrogatepass"), digest_size=3).hexdigest()
    plain = "".join(c if c.isalnum() or c in "._-" else "-" for c in name)
    return ("claude-code", f"{plain[:60]}-{digest}")


def answer(hook: Hook, payload: Payload) -> dict[str, Any]:
    """Answer an event; {} leaves everything as it is.

    A child agent's events are left alone: it has not been told how to read a receipt.
    """
    respond = _ANSWERS.get(payload.event)
    if respond is None or (payload.agent and payload.event != "PreToolUse"):
        return {}
    return respond(hook, payload)


def _output(payload: Payload, **fields: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": payload.event, **fields}}


# A session begins


def _on_session_start(hook: Hook, payload: Payload) -> dict[str, Any]:
    if payload.source not in _AGAIN:
        return {}  # a resumed session still has what it was told
    space = hook.space(payload)
    text = "\n\n".join(filter(None, [_preamble(hook, space), fence(_pinned(space))]))
    space.decide("hook.told", payload.session, "1")
    return _output(payload, additionalContext=text)


def _preamble(hook: Hook, space: Namespace) -> str:
    return (
        "Long tool results are stored intact outside this prompt; nothing is lost or broken. "
        "[memo:ID] is the receipt of one; +N means that N of its values or lines are not shown "
        "below it, @N precedes line N. Never guess what is not shown: read it in the shell with "
        f"`{hook.reading(space, 'ID')}`, and --lines 10-40, --pattern RE, --pointer /0/id or "
        """--rows '{"status":"late"}'. """
        "A handle such as [memo:ID] or [memo:ID#/0/id] in the arguments of another tool than the "
        "shell is replaced by the stored text when the tool runs."
    )


def _pinned(space: Namespace) -> list[str]:
    """Write the memories that the namespace's policy puts into every prompt."""
    return [
        memory_line(record.memory_id, record.kind, record.key, record.text)
        for where in shown_filters(space.settings())
        for record in space.each(where)
        if _is_pinned(space, record)
    ]


def _is_pinned(space: Namespace, record: MemoryRecord) -> bool:
    return visibility_of(record, space.limits(record.form, record.kind)) == "pinned"


# A tool has run


def _on_post_tool_use(hook: Hook, payload: Payload) -> dict[str, Any]:
    if payload.tool in hook.kept or _reads_memory(payload):
        return {}
    space = hook.space(payload)
    if space.decision("hook.told", payload.session) is None:
        return {}  # it began before the hook was installed: nobody told the model of receipts
    edits: dict[Path, str] = {}
    results = _Results(hook, space, payload)
    for site in text_places(payload.response):
        text = results.inserted(site.path, site.text)
        if text != site.text:
            edits[site.path] = text
    if not edits:
        return {}
    return _output(payload, updatedToolOutput=with_texts(payload.response, edits))


def _reads_memory(payload: Payload) -> bool:
    """Tell whether a result is one of our own answers, which is never offloaded again."""
    command = payload.arguments.get("command")
    return payload.tool in SHELLS and isinstance(command, str) and _COMMAND in command


class _Results:
    """Decides what stands in the place of one call's texts, once and for good."""

    def __init__(self, hook: Hook, space: Namespace, payload: Payload) -> None:
        self._hook = hook
        self._space = space
        self._payload = payload
        self._persisted = Persisted(space, payload.session)
        self._persisted.refresh()
        self._offloader: Offloader | None = None

    def inserted(self, path: Path, text: str) -> str:
        """Give what stands in the place of a text, as it was decided or is now."""
        key = content_key("hook", self._payload.call_id, path, text)
        known = self._persisted.insertions().get(key)
        if known is not None:
            return text if known.text is None else known.text
        message = Message(
            role="tool", text=text, call_id=self._payload.call_id, tool=self._payload.tool
        )
        (saved,) = self._persisted.save_results([NewResult(key, text, message.tool)])
        if saved is None or not saved.memory_id:
            return text
        stored = message if saved.masked is None else replace(message, text=saved.masked)
        decided = self._decide(key, stored, saved.memory_id)
        return text if decided == stored.text else decided

    def _decide(self, key: str, message: Message, memory_id: str) -> str:
        insertion = self._fed().insert(message, memory_id)
        changed = None if insertion.text == message.text else insertion.text
        receipt = bool(insertion.receipt)
        inserted = Inserted(memory_id=memory_id, text=changed, receipt=receipt)
        self._persisted.insert({(key, ""): inserted})
        return insertion.text

    def _fed(self) -> Offloader:
        """Give an offloader that has heard the session so far."""
        if self._offloader is None:
            offloader = Offloader(share=self._hook.share, tokenizer=self._hook.memory.tokenizer)
            for message in spoken(self._payload.transcript):
                if message.role == "tool":
                    offloader.adopt(self._original(message), message.text)
                else:
                    offloader.observe(message)
            self._offloader = offloader
        return self._offloader

    def _original(self, message: Message) -> Message:
        """Give an earlier result as the tool gave it, where a receipt stands for it now."""
        found = handles.find(message.text[:80])
        if not found or found[0].start != 0:
            return message
        try:
            record = self._space.get(found[0].references[0].memory_id)
        except NotFound:
            return message
        return Message(role="tool", text=record.text, call_id=message.call_id, tool=message.tool)


# A tool is to run


def _on_pre_tool_use(hook: Hook, payload: Payload) -> dict[str, Any]:
    if not _has_handle(payload.arguments):
        return {}
    space = hook.space(payload)
    if payload.tool in SHELLS:
        return _refused_in_shell(hook, space, payload)
    controller = MemoryController(space, conversation=payload.session, policy=ReferencePolicy())
    call = {
        "type": "tool_use",
        "id": payload.call_id,
        "name": payload.tool,
        "input": payload.arguments,
    }
    absorbed = controller.absorb({"role": "assistant", "content": [call]}, "anthropic")
    if payload.call_id in absorbed.refused:
        return _denied(payload, absorbed.answers[payload.call_id])
    arguments = absorbed.response["content"][0]["input"]
    return {} if arguments == payload.arguments else _output(payload, updatedInput=arguments)


def _refused_in_shell(hook: Hook, space: Namespace, payload: Payload) -> dict[str, Any]:
    """Refuse a handle of this session in a command: its text would run as part of it."""
    command = payload.arguments.get("command")
    shown = Persisted(space, payload.session).shown()
    named = handles.find(command) if isinstance(command, str) else []
    mine = [r.memory_id for handle in named for r in handle.references if r.memory_id in shown]
    if not mine or _reads_memory(payload):
        return {}
    part = hook.reading(space, mine[0])
    whole = hook.reading(space, mine[0], verb="get")
    return _denied(
        payload,
        f"Error: {handles.render(mine[0])} is not replaced inside a shell command, where its text "
        f"would be run. Read it there: `{whole} --body` in a pipe for all of it, or "
        f'"$({part} --pointer /0/id)" for a part.',
    )


def _denied(payload: Payload, reason: str) -> dict[str, Any]:
    return _output(payload, permissionDecision="deny", permissionDecisionReason=reason)


def _has_handle(arguments: Mapping[str, Any]) -> bool:
    return "[memo:" in repr(arguments)


_ANSWERS: Final = {
    "SessionStart": _on_session_start,
    "PostToolUse": _on_post_tool_use,
    "PreToolUse": _on_pre_tool_use,
}
