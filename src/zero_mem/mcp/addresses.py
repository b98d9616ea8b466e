"""Addresses of memories as resources: `memo://7`, and `memo://7#/rows/0` for a part.

An address is a handle in the form of a URI: the id stands where a host would (so `:` is
percent-encoded), the JSON Pointer is the fragment. It holds within the namespace of the
connection, as handles do.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final
from urllib.parse import quote, unquote

from zero_mem import handles
from zero_mem.errors import InvalidInput

SCHEME: Final = "memo://"
TEMPLATE: Final = SCHEME + "{id}{#pointer}"


def address(memory_id: str) -> str:
    """Write the address of a memory."""
    return SCHEME + quote(memory_id, safe="")


def reference(uri: str) -> handles.Reference:
    """Read an address.

    Raises:
        InvalidInput: It is none.
    """
    if not uri.startswith(SCHEME):
        raise InvalidInput(f"a memory's address is {SCHEME}ID, such as {SCHEME}7")
    named, mark, fragment = uri[len(SCHEME) :].partition("#")
    # Some clients write an empty path after what they take for a host.
    memory_id = handles.check_memory_id(unquote(named.removesuffix("/")))
    if not mark:
        return handles.Reference(memory_id=memory_id)
    found = handles.parse_whole(f"[memo:{memory_id}#{_closed(fragment)}]")
    if found is None:
        raise InvalidInput("what follows # is a JSON Pointer such as /rows/0")
    return found.references[0]


def names_one_of(uri: str, ids: Collection[str]) -> bool:
    """Tell whether an address is of one of some memories."""
    try:
        return reference(uri).memory_id in ids
    except InvalidInput:
        return False


def _closed(fragment: str) -> str:
    """Encode what a URI allows in a fragment and a handle does not."""
    return fragment.replace(",", "%2C").replace("]", "%5D").replace("[", "%5B")
