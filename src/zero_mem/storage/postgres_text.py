"""Text that PostgreSQL can hold: any string, written so that it comes back exactly.

PostgreSQL's text has no NUL and no lone surrogates, and its B-trees no entry of more than 2,700
bytes. Strings are escaped, and what is unique is found by a digest.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from typing import NamedTuple

_UNKEPT = re.compile("[\\\\\0\ud800-\udfff]")
_ESCAPED = re.compile(r"\\(\\|u[0-9a-f]{4})")

LONGEST_TERM = 500
"""A longer term is indexed by its digest: a GIN entry has at most some 2,700 bytes."""

_DIGEST_MARK = "\ue002"


def escape(text: str) -> str:
    r"""Write a string without NUL and surrogates: `\` is `\\`, those are `\u` and four digits."""
    if text.isascii() and "\\" not in text and "\0" not in text:
        return text
    return _UNKEPT.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return "\\\\" if found[0] == "\\" else f"\\u{ord(found[0]):04x}"


def unescape(text: str) -> str:
    """Give back what `escape` was given."""
    return _ESCAPED.sub(_plain, text) if "\\" in text else text


def _plain(found: re.Match[str]) -> str:
    return "\\" if found[1] == "\\" else chr(int(found[1][1:], 16))


def escape_optional(text: str | None) -> str | None:
    """Escape a string, or leave None."""
    return None if text is None else escape(text)


def digest(*names: str) -> str:
    """Give 128 bits that stand for some names, as hexadecimal digits (a `uuid`)."""
    hashed = hashlib.blake2b(digest_size=16)
    for name in names:
        data = name.encode("utf-8", "surrogatepass")
        hashed.update(len(data).to_bytes(8, "big") + data)
    return hashed.hexdigest()


class Terms(NamedTuple):
    """The terms of a record as they are stored."""

    length: int
    written: str
    long: str | None


def write_terms(prefix: str, terms: Sequence[str]) -> Terms:
    """Write terms for the index: each after the prefix, apart by spaces."""
    if not terms:
        return Terms(0, "", None)
    written = prefix + f" {prefix}".join(terms)
    all_short = len(written) <= LONGEST_TERM or len(max(terms, key=len)) <= LONGEST_TERM
    if all_short and _DIGEST_MARK not in written:
        return Terms(len(terms), escape(written), None)
    long = [term for term in terms if _is_long(term)]
    written = prefix + f" {prefix}".join([write_term(term) for term in terms])
    return Terms(len(terms), written, json.dumps(long) if long else None)


def write_term(term: str) -> str:
    """Write one term as the index has it: a long one by its digest."""
    return _DIGEST_MARK + digest(term) if _is_long(term) else escape(term)


def _is_long(term: str) -> bool:
    return len(term) > LONGEST_TERM or term.startswith(_DIGEST_MARK)


def read_terms(prefix: str, written: str, long: str | None) -> list[str]:
    """Give back what `write_terms` was given."""
    skip = len(prefix)
    if long is None and "\\" not in written:
        return [word[skip:] for word in written.split(" ")] if written else []
    rest = iter(json.loads(long or "[]"))
    words = (word[skip:] for word in written.split(" "))
    return [next(rest) if word.startswith(_DIGEST_MARK) else unescape(word) for word in words]
