"""JSON as the API takes and gives it: strict on the way in, exact on the way out."""

from __future__ import annotations

import json
from typing import Any, Final

from zero_mem.errors import InvalidInput


def parse(text: bytes | str, what: str = "the body") -> Any:
    """Read JSON; refuse what two readers could understand differently.

    Raises:
        InvalidInput: It is not UTF-8, not JSON, names a key twice, or is nested too deep.
    """
    try:
        decoded = text if isinstance(text, str) else text.decode("utf-8")
        return _DECODER.decode(decoded)
    except InvalidInput as error:
        raise InvalidInput(f"{what} {error}") from None
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{what} is not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise InvalidInput(f"{what} is not JSON: {error.msg} at character {error.pos}") from None
    except (ValueError, RecursionError):
        raise InvalidInput(f"{what} has a number too long or is nested too deep") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise InvalidInput("names a key twice in one object")
    return found


def _no_constant(name: str) -> Any:
    raise InvalidInput(f"has {name}, which JSON does not have")


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)
_ENCODER: Final = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":")
)  # made once: making it costs more than a small answer


def dump(value: Any) -> bytes:
    """Write JSON in UTF-8; what UTF-8 can't carry (a lone surrogate) is escaped.

    Raises:
        InvalidInput: A value is none of JSON's.
    """
    try:
        text = _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"a value can't be sent as JSON: {error}") from None
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode("ascii")
