"""The errors that Zero-Mem raises.

ZeroMemError
├── InvalidInput            the call itself is wrong: a value, a name, a filter
├── NotFound                no such record in this namespace (or expired, or purged)
├── Conflict                somebody else's write came first, or a key is taken
├── NotAllowed              the state or the rights forbid it
├── LimitReached            a cap or a budget is reached and the policy is to refuse
├── RequiredMemoryMissing   a prompt was to hold a memory that cannot be given
├── StoreUnavailable        the store cannot be opened, read or written now
│   └── StoreCorrupt        the file is not a store, or is damaged
├── MigrationNeeded         the store was written by a newer version
├── EmbedderUnavailable     an embedder fails, is too slow, or gives no vectors
├── EndpointUnavailable     a model's endpoint can't be reached, or gives no answer of use
└── MissingExtra            an optional package is not installed
"""

from __future__ import annotations


class ZeroMemError(Exception):
    """Root of every error that Zero-Mem raises on purpose."""


class InvalidInput(ZeroMemError, ValueError):
    """A value of the call is wrong; the message says which, why, and what is accepted."""


class NotFound(ZeroMemError, LookupError):
    """No readable record has this id in this namespace."""


class Conflict(ZeroMemError):
    """The write lost to another one, or a unique key is taken."""


class NotAllowed(ZeroMemError):
    """The record's state, a policy or the caller's rights forbid the operation."""


class LimitReached(ZeroMemError):
    """A cap is reached and the policy says to refuse."""


class RequiredMemoryMissing(ZeroMemError):
    """A memory that the prompt must hold is missing or does not fit its budget."""


class StoreUnavailable(ZeroMemError):
    """The store cannot be opened, read or written now; nothing was half-written."""


class StoreCorrupt(StoreUnavailable):
    """The file is not a Zero-Mem store, or is damaged."""


class MigrationNeeded(ZeroMemError):
    """The store was written by a newer version of Zero-Mem."""


class EmbedderUnavailable(ZeroMemError):
    """The embedder failed or did not answer in time; recall goes on without it."""


class EndpointUnavailable(ZeroMemError):
    """The endpoint of a model can't be reached or gave no answer of use; `status` is its HTTP's."""

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class MissingExtra(ZeroMemError, ImportError):
    """An optional package is missing; the message has the install line."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an extra: pip install 'zero-mem[{extra}]'")
        self.extra = extra


class BlockingCallWarning(UserWarning):
    """A synchronous call holds up a running event loop; shown once for a store."""
