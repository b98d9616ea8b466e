"""An agent that is told of its memories by handle only: a thin use of the controller."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from zero_mem import handles
from zero_mem.controller.references import ReferencePolicy
from zero_mem.conversation.controller import MemoryController
from zero_mem.errors import InvalidInput
from zero_mem.space import Namespace
from zero_mem.text.fence import escape_line
from zero_mem.types import MemoryRecord, preview

INSTRUCTIONS: Final = (
    "Answer the observation. Below it stand receipts of memories that may bear on it; their text "
    "is stored outside this prompt. Where your answer needs one, write its handle, such as "
    "[memo:7], and the stored text takes its place. Never guess what a memory says."
)


class ZeroMemAgent:
    """Perceives, remembers and acts; what it remembers reaches its model as handles.

    Args:
        space: The namespace that holds the agent's memories.
        llm: Any callable that takes a prompt and gives the model's text.
        conversation: Names the run; its handles and audit are kept under it.
        policy: Which kinds of memory may be put into an answer; by default every kind.
        most: Most memories that are named in one prompt, from 1.
    """

    def __init__(
        self,
        space: Namespace,
        llm: Callable[[str], str],
        *,
        conversation: str = "agent",
        policy: ReferencePolicy | None = None,
        most: int = 5,
    ) -> None:
        if not callable(llm):
            raise InvalidInput(
                f"llm is a callable from a prompt to a text, not {type(llm).__name__}"
            )
        if most < 1:
            raise InvalidInput(f"most is a number of memories from 1, not {most}")
        self._space = space
        self._llm = llm
        self._most = most
        self._conversation = conversation
        self._controller = MemoryController(space, conversation=conversation, policy=policy)

    def perceive_and_act(self, observation: str) -> str:
        """Take an observation in and give the answer to it.

        The observation is written without waiting; memories are found by the index. Handles
        in the model's text are resolved by policy; one that it was not shown stays literal.

        Raises:
            InvalidInput: The observation is empty, or the model gave no text.
        """
        if not observation.strip():
            raise InvalidInput("an observation says something; this one is empty")
        related = self._space.recall(observation, limit=self._most).items
        self._space.save(observation, kind="message", session=self._conversation, mode="queued")
        self._controller.show(*(item.memory_id for item in related))
        text = self._llm(prompt(observation, [item.record for item in related]))
        if not isinstance(text, str):
            raise InvalidInput(f"llm gives the model's text, not {type(text).__name__}")
        message = {"role": "assistant", "content": text}
        absorbed = self._controller.absorb({"choices": [{"message": message}]}, "openai_chat")
        answer: str = absorbed.response["choices"][0]["message"]["content"]
        return answer

    @property
    def controller(self) -> MemoryController:
        """The conversation's controller, with its audit and claims."""
        return self._controller


def prompt(observation: str, related: Sequence[MemoryRecord]) -> str:
    """Write the prompt of one turn: the observation, and the receipts of related memories."""
    receipts = "\n".join(map(_receipt, related)) or "(none)"
    return f"{INSTRUCTIONS}\n\nObservation: {escape_line(observation)}\n\nMemories:\n{receipts}"


def _receipt(record: MemoryRecord) -> str:
    return f"{handles.render(record.memory_id)} recall ({preview(record.kind, record.key)})"
