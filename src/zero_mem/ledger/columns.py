"""Tokens of one call by column: what the model was sent, and why each token stood there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, TypeAlias, get_args

from zero_mem.errors import InvalidInput

Column: TypeAlias = Literal[
    "system",
    "tool_definitions",
    "our_definitions",
    "conversation",
    "tool_control",
    "tool_results",
    "memory_receipts",
    "memory_reads",
]

PROMPT_COLUMNS: Final[tuple[Column, ...]] = get_args(Column)


@dataclass(frozen=True, slots=True, kw_only=True)
class RollUp:
    """The design's three columns; their sum is the prompt's total."""

    system_prompt: int
    body: int
    tool_control: int

    @property
    def prompt(self) -> int:
        """All tokens of the prompt."""
        return self.system_prompt + self.body + self.tool_control


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTokens:
    """Tokens of one call, or of many added up. A memory operation adds to no column.

    `our_definitions` is the read tool and the preamble that Zero-Mem adds; `tool_control` is
    the calls that the model makes (name, arguments) and the names that pair results with
    them; `tool_results` is what stands verbatim of tool results; `memory_reads` is what an
    explicit read put in. `output` is not part of the prompt.
    """

    system: int = 0
    tool_definitions: int = 0
    our_definitions: int = 0
    conversation: int = 0
    tool_control: int = 0
    tool_results: int = 0
    memory_receipts: int = 0
    memory_reads: int = 0
    output: int = 0

    @property
    def prompt(self) -> int:
        """All tokens of the prompt: the sum of every column but the output."""
        return sum(getattr(self, name) for name in PROMPT_COLUMNS)

    @property
    def overhead(self) -> int:
        """Tokens that memory itself adds: definitions, receipts and reads."""
        return self.our_definitions + self.memory_receipts + self.memory_reads

    def __add__(self, other: CallTokens) -> CallTokens:
        return CallTokens(**{n: getattr(self, n) + getattr(other, n) for n in _NAMES})

    def __sub__(self, other: CallTokens) -> CallTokens:
        return CallTokens(**{n: getattr(self, n) - getattr(other, n) for n in _NAMES})

    def roll_up(self) -> RollUp:
        """Fold the columns into the design's three: system prompt, body, tool control.

        What Zero-Mem adds to steer itself (definitions, receipts) is control, never body.
        """
        return RollUp(
            system_prompt=self.system + self.tool_definitions,
            body=self.conversation + self.tool_results + self.memory_reads,
            tool_control=self.tool_control + self.our_definitions + self.memory_receipts,
        )

    def by_column(self) -> dict[str, int]:
        """Give the columns by name, the output among them."""
        return {name: getattr(self, name) for name in _NAMES}

    def as_dict(self) -> dict[str, int]:
        """Give the columns by name, with the prompt's total."""
        return self.by_column() | {"prompt": self.prompt}


_NAMES: Final = tuple(field.name for field in fields(CallTokens))


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheState:
    """How a provider bills a prompt: every token is read from cache, written to it, or fresh."""

    read: int = 0
    write: int = 0
    fresh: int = 0

    @property
    def prompt(self) -> int:
        """All tokens of the prompt."""
        return self.read + self.write + self.fresh

    def __add__(self, other: CacheState) -> CacheState:
        return CacheState(
            read=self.read + other.read,
            write=self.write + other.write,
            fresh=self.fresh + other.fresh,
        )


def cache_state(*, prompt: int, unchanged: int, caching: bool = True) -> CacheState:
    """Split a prompt by what the previous call left in the provider's cache.

    Args:
        prompt: Tokens of this call's prompt.
        unchanged: Tokens of its longest prefix that equals the previous call's prompt.
        caching: False for a provider, or a client, that caches nothing.

    Returns:
        The unchanged prefix as read and the rest as written, or all of it fresh.
    """
    if not 0 <= unchanged <= prompt:
        raise InvalidInput(f"the unchanged prefix must be within 0..{prompt}, not {unchanged}")
    if not caching:
        return CacheState(fresh=prompt)
    return CacheState(read=unchanged, write=prompt - unchanged)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a provider says after a call: `prompt` holds cache reads and writes too."""

    prompt: int
    read: int = 0
    write: int = 0
    output: int = 0

    @property
    def state(self) -> CacheState:
        """The prompt by cache state."""
        return CacheState(
            read=self.read, write=self.write, fresh=max(0, self.prompt - self.read - self.write)
        )


def usage(figures: Mapping[str, Any]) -> Usage | None:
    """Read a provider's usage figures; None when they name no prompt.

    Anthropic's `input_tokens` leaves cache reads and writes out, OpenAI's `prompt_tokens` and
    `input_tokens` hold them.
    """
    flat = _flat(figures)
    prompt = flat.get("prompt_tokens", flat.get("input_tokens"))
    if prompt is None:
        return None
    read, write = flat.get("cached_tokens", 0), flat.get("cache_write_tokens", 0)
    if "cache_read_input_tokens" in flat or "cache_creation_input_tokens" in flat:
        read = flat.get("cache_read_input_tokens", 0)
        write = flat.get("cache_creation_input_tokens", 0)
        prompt += read + write
    output = flat.get("completion_tokens", flat.get("output_tokens", 0))
    return Usage(prompt=prompt, read=read, write=write, output=output)


def corrected(tokens: CallTokens, by: Usage) -> CallTokens:
    """Bring counted columns to the total that the provider billed, in their proportions.

    Rounding goes to the largest remainders, so the columns' sum is the provider's total.
    """
    counted = tokens.prompt
    if counted == 0:
        return CallTokens(conversation=by.prompt, output=by.output)
    shares = {name: getattr(tokens, name) * by.prompt / counted for name in PROMPT_COLUMNS}
    whole = {name: int(share) for name, share in shares.items()}
    missing = by.prompt - sum(whole.values())
    by_remainder = sorted(PROMPT_COLUMNS, key=lambda name: whole[name] - shares[name])
    for name in by_remainder[:missing]:
        whole[name] += 1
    return CallTokens(**whole, output=by.output)


def _flat(figures: Mapping[str, Any]) -> dict[str, int]:
    """Lift nested detail figures to the top; the outer figure wins over a nested one."""
    found: dict[str, int] = {}
    for name, value in figures.items():
        if isinstance(value, Mapping):
            found = _flat(value) | found
        elif isinstance(value, int) and not isinstance(value, bool):
            found[name] = value
    return found
