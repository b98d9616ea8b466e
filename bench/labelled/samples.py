r"""Samples of what agents store, with the secrets and personal data in them marked.

A line of a file is a sample; `\n` in it is a line break, `## ` begins a group, `# ` a remark.
What must be found is written ⟦kind:part|part|…⟧, what must not be ⟦-:part|…⟧. The parts are
joined, so that no file has anything that looks like a live key, and a part `@alphabet:length`
stands for that many characters, the same at each reading. `@luhn:prefix:length[:group[:between]]`
is a number with a right check digit, `@cnid:region:date` a Chinese identity number, `@cnidx:` one
that ends in x, `@cnid15:` one of the old form, `@iban:country:account` an account number with right
check digits, `@jwt:subject` a signed token, `@pem:NAME` a private key in lines and `@pemline:` the
same with escaped line breaks.
"""

from __future__ import annotations

import json
import re
import string
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

PARTS: Final = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
NOT: Final = "-"

_FOLDER: Final = Path(__file__).parent
_MARK: Final = re.compile(r"⟦([a-z_]+|-):([^⟧]*)⟧")
_UPPER_HEX: Final = string.digits + "ABCDEF"
_ALPHABETS: Final = {
    "alpha": string.ascii_letters,
    "b62": string.ascii_letters + string.digits,
    "b64": string.ascii_letters + string.digits + "+/",
    "dec": string.digits,
    "hex": string.digits + "abcdef",
    "HEXU": _UPPER_HEX,
    "low": string.ascii_lowercase + string.digits,
    "up": string.ascii_uppercase + "234567",
    "url": string.ascii_letters + string.digits + "-_",
}
_WEIGHTS: Final = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """A stretch of a sample and what it is."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A text, and what in it must be found; nothing, in a hard negative."""

    text: str
    group: str
    marked: tuple[Marked, ...]


def samples(half: str) -> Iterator[Sample]:
    """Read a half of the samples."""
    group = ""
    for line in (_FOLDER / f"{half}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            group = line[3:]
        elif line.strip() and not line.startswith("# "):
            yield _sample(line.replace("\\n", "\n"), group)


def _sample(line: str, group: str) -> Sample:
    random = Random(line)
    text = ""
    marked: list[Marked] = []
    at = 0
    for match in _MARK.finditer(line):
        text += line[at : match.start()]
        value = "".join(_part(part, random) for part in match[2].split("|"))
        if match[1] != NOT:
            marked.append(Marked(start=len(text), end=len(text) + len(value), kind=match[1]))
        text += value
        at = match.end()
    return Sample(text=text + line[at:], group=group, marked=tuple(marked))


def _part(part: str, random: Random) -> str:
    if not part.startswith("@"):
        return part
    name, *given = part[1:].split(":")
    if name in _ALPHABETS:
        return "".join(random.choices(_ALPHABETS[name], k=int(given[0])))
    return _MADE[name](random, *given)


def _luhn(random: Random, prefix: str, length: str, group: str = "", between: str = " ") -> str:
    free = int(length) - len(prefix) - 1
    digits = prefix + "".join(random.choices(string.digits, k=free))
    doubled = [int(d) * (2 - place % 2) for place, d in enumerate(reversed(digits))]
    number = digits + str(-sum(d - 9 if d > 9 else d for d in doubled) % 10)
    size = int(group or length)
    return between.join(number[at : at + size] for at in range(0, len(number), size))


def _chinese_id(random: Random, region: str, date: str) -> str:
    digits = region + date + "".join(random.choices(string.digits, k=3))
    rest = sum(int(d) * w for d, w in zip(digits, _WEIGHTS, strict=True)) % 11
    return digits + "10X98765432"[rest]


def _chinese_id_in_x(random: Random, region: str, date: str) -> str:
    while not (number := _chinese_id(random, region, date)).endswith("X"):
        pass
    return number.lower()


def _old_chinese_id(random: Random, region: str, date: str) -> str:
    return region + date + "".join(random.choices(string.digits, k=3))


def _iban(random: Random, country: str, account: str) -> str:
    del random
    as_digits = "".join(str(int(each, 36)) for each in f"{account}{country}00")
    return f"{country}{98 - int(as_digits) % 97:02}{account}"


def _jwt(random: Random, subject: str) -> str:
    claims: tuple[dict[str, object], ...] = (
        {"alg": "HS256", "typ": "JWT"},
        {"sub": subject, "iat": random.randrange(10**9, 2 * 10**9)},
    )
    parts = [urlsafe_b64encode(json.dumps(each).encode()).decode().rstrip("=") for each in claims]
    return ".".join([*parts, "".join(random.choices(_ALPHABETS["url"], k=43))])


def _pem(random: Random, name: str, end: str = "\n") -> str:
    kind = f"{name} PRIVATE KEY".strip()
    lines = ["".join(random.choices(_ALPHABETS["b64"], k=64)) for _ in range(4)]
    return end.join([f"-----BEGIN {kind}-----", *lines, f"-----END {kind}-----"])


def _pem_in_a_line(random: Random, name: str) -> str:
    return _pem(random, name, end="\\n")


_MADE: Final[dict[str, Callable[..., str]]] = {
    "luhn": _luhn,
    "cnid": _chinese_id,
    "cnidx": _chinese_id_in_x,
    "cnid15": _old_chinese_id,
    "iban": _iban,
    "jwt": _jwt,
    "pem": _pem,
    "pemline": _pem_in_a_line,
}
