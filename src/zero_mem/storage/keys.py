"""Keys: a data key for each namespace, wrapped by a master key that the store never holds.

Wrapped keys stand in the store, or in a file beside it. Whoever erases a namespace's key makes
all its bytes unreadable for good, those in old backups too if the wrapped key was in a file
that the backups do not hold.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Final, Protocol

from zero_mem.errors import InvalidInput, MissingExtra, NotAllowed, StoreUnavailable
from zero_mem.types import Path

try:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
except ModuleNotFoundError as error:
    if error.name is None or not error.name.startswith("cryptography"):
        raise
    raise MissingExtra("encryption", "encrypt") from error

KEY_BYTES: Final = 32
MASTER_VARIABLE: Final = "ZERO_MEM_MASTER_KEY"
"""The environment variable that holds a master key in Base64."""

_NONCE_BYTES: Final = 12


class Master(Protocol):
    """Wraps data keys: a key at hand, or a service that keeps its keys to itself."""

    def wrap(self, key: bytes, context: bytes) -> bytes:
        """Encrypt a data key so that only this master opens it, and only for the context."""
        ...

    def unwrap(self, wrapped: bytes, context: bytes) -> bytes:
        """Give a data key back.

        Raises:
            NotAllowed: It was wrapped by another master, or for another context.
        """
        ...


@dataclass(frozen=True, slots=True)
class MasterKey:
    """A master key of 32 bytes in this process, by AES-256-GCM."""

    key: bytes

    def __post_init__(self) -> None:
        if len(self.key) != KEY_BYTES:
            raise InvalidInput(f"a master key has {KEY_BYTES} bytes, not {len(self.key)}")

    def __repr__(self) -> str:
        return "MasterKey(…)"

    @classmethod
    def from_text(cls, text: str, *, where: str = "the master key") -> MasterKey:
        """Read a key written in Base64.

        Raises:
            InvalidInput: It is no Base64 of 32 bytes; the key itself is not said.
        """
        try:
            key = base64.b64decode(text.strip(), validate=True)
        except (binascii.Error, ValueError):
            raise InvalidInput(f"{where} should hold {KEY_BYTES} bytes in Base64") from None
        if len(key) != KEY_BYTES:
            raise InvalidInput(
                f"{where} should hold {KEY_BYTES} bytes in Base64; it holds {len(key)}"
            )
        return cls(key)

    @classmethod
    def from_file(cls, path: str | FilePath) -> MasterKey:
        """Read a key from a file that holds it in Base64.

        Raises:
            StoreUnavailable: The file can't be read.
            InvalidInput: Others may read it, or it holds no key.
        """
        try:
            text = FilePath(path).read_text(encoding="ascii")
            mode = FilePath(path).stat().st_mode
        except (OSError, UnicodeDecodeError) as error:
            raise StoreUnavailable(f"{path}: can't read the master key: {error}") from None
        if os.name == "posix" and mode & 0o077:
            raise InvalidInput(f"{path}: others may read the master key; chmod 600 it")
        return cls.from_text(text, where=str(path))

    @classmethod
    def from_environment(cls, variable: str = MASTER_VARIABLE) -> MasterKey:
        """Read a key from an environment variable.

        Raises:
            InvalidInput: The variable is not set, or holds no key.
        """
        text = os.environ.get(variable)
        if not text:
            raise InvalidInput(f"{variable} is not set; it holds the master key in Base64")
        return cls.from_text(text, where=variable)

    @staticmethod
    def generate() -> str:
        """Make a new key, in Base64."""
        return base64.b64encode(os.urandom(KEY_BYTES)).decode("ascii")

    def wrap(self, key: bytes, context: bytes) -> bytes:
        """See `Master`."""
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + AESGCM(self.key).encrypt(nonce, key, context)

    def unwrap(self, wrapped: bytes, context: bytes) -> bytes:
        """See `Master`."""
        nonce, sealed = wrapped[:_NONCE_BYTES], wrapped[_NONCE_BYTES:]
        try:
            return AESGCM(self.key).decrypt(nonce, sealed, context)
        except (InvalidTag, ValueError):
            raise NotAllowed("the master key does not open this namespace's data key") from None


@dataclass(frozen=True, slots=True)
class KeyService:
    """A master key in a service, reached by two callables of the caller's."""

    wrapping: Callable[[bytes, bytes], bytes]
    unwrapping: Callable[[bytes, bytes], bytes]

    def wrap(self, key: bytes, context: bytes) -> bytes:
        """See `Master`."""
        return self.wrapping(key, context)

    def unwrap(self, wrapped: bytes, context: bytes) -> bytes:
        """See `Master`."""
        return self.unwrapping(wrapped, context)


class KeyFile:
    """Wrapped keys in a JSON file of their owner's, by namespace.

    Args:
        path: The file; it is made with the first key.
    """

    def __init__(self, path: str | FilePath) -> None:
        self._path = FilePath(path)

    def read(self, namespace: Path) -> dict[str, str]:
        """Read the wrapped keys of a namespace by number."""
        return self._all().get(_name(namespace), {})

    def every(self) -> dict[Path, dict[str, str]]:
        """Read the wrapped keys of all namespaces, in one reading of the file."""
        return {tuple(json.loads(name)): keys for name, keys in self._all().items()}

    def write(self, namespace: Path, keys: dict[str, str]) -> None:
        """Keep the wrapped keys of a namespace, durably, in the place of those before."""
        with self._locked():
            every = self._all()
            every[_name(namespace)] = keys
            self._replace(json.dumps(every, ensure_ascii=False, indent=1))

    def _all(self) -> dict[str, dict[str, str]]:
        try:
            text = self._path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise StoreUnavailable(f"{self._path}: can't read keys: {error.strerror}") from error
        try:
            every = json.loads(text)
        except ValueError:
            raise InvalidInput(f"{self._path} holds no wrapped keys") from None
        if not isinstance(every, dict):
            raise InvalidInput(f"{self._path} holds no wrapped keys")
        return every

    def _replace(self, text: str) -> None:
        handle, name = tempfile.mkstemp(dir=self._path.parent, prefix=f".{self._path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(handle)
            os.replace(name, self._path)
        except BaseException:
            os.unlink(name)
            raise
        self._sync_folder()

    def _sync_folder(self) -> None:
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        import fcntl

        lock = self._path.with_name(f"{self._path.name}.lock")
        with open(lock, "a", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _name(namespace: Path) -> str:
    return json.dumps(namespace, ensure_ascii=False, separators=(",", ":"))
