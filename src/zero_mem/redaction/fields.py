"""Names of fields whose value is a secret, whatever it looks like."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

_SECRET: Final = re.compile(
    r"(?i)(?:.*[_\-. ])?(?:pass|pwd|pin|otp"
    r"|(?:api|access|account|private|auth|signing|encryption|master|secret|client|service|session)"
    r"[_-]?key"
    r"|(?:secret|client)[_-]?(?:access[_-]?)?(?:key|secret)"
    r"|(?:(?:auth|access|refresh|bearer|id|session|api|bot|csrf)[_-]?)?token"
    r"|(?:proxy[_-])?authorization|(?:set[_-])?cookie|credentials?)"
    r"|.*pass(?:word|wd|phrase|code)s?|.*secrets?|密码|口令|密钥|秘钥|令牌"
)
_PASSWORD: Final = re.compile(r"(?i)(?:.*[_\-. ])?(?:pass(?:word|wd|code)|pwd|pin|otp)|密码|口令")
_NAMES: Final = ("name", "key", "k", "header", "field")
VALUES: Final = frozenset({"value", "val", "v"})
"""Fields that stand beside one with a name, as in `{"name": "api_key", "value": "…"}`."""

_WORDS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def names_secret(name: str) -> bool:
    """Tell whether a field's name says that its value is a secret."""
    return _SECRET.fullmatch(_snake(name)) is not None


def names_password(name: str) -> bool:
    """Tell whether a field's name says that a number in it is a secret too."""
    return _PASSWORD.fullmatch(_snake(name)) is not None


def names_secret_beside(fields: Mapping[str, Any]) -> bool:
    """Tell whether fields are a name and a value, of which the name says that it is a secret."""
    if VALUES.isdisjoint(fields):
        return False
    names = (fields.get(name) for name in _NAMES)
    return any(isinstance(name, str) and names_secret(name) for name in names)


def _snake(name: str) -> str:
    """Write a camelCase name with underscores, as the names of secrets are listed."""
    return _WORDS.sub("_", name)
