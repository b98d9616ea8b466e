"""Checks that tell a number or a word from what merely looks like it."""

from __future__ import annotations

import re
from base64 import b64decode
from itertools import pairwise
from typing import Final

_PLACEHOLDER: Final = re.compile(
    r"""(?xi)
    [*x.•_-]+ | <.* | \[.* | \$[\w{(].* | %.*% | \{.* | .*\(.* | your[_-].* | (my|the|an?)[_-].*
    | .*[\[(] | .*(\.\.\.|…).*
    | (os|process|env|config|settings)\..*
    | (required|nullable|optional)\|.* | \w+\[[^\]]*\]          # rules of a form, an item
    | ENC\[.*                                                  # encrypted by SOPS
    | (get|read|new|convertto)-[a-z]+                          # a command of PowerShell
    """
)
_REPEATED: Final = re.compile(r"([*x.•_0-])\1{5}|XXXX")
_SAID: Final = re.compile(r"(?i)your[_-]|placeholder|changeme|redacted|example_?(?:key)?$")
_NAME_OF_ONE: Final = re.compile(
    r"(?i)[!$%]?[a-z_.:-]*(?:pass(?:word|wd|phrase)?|pwd|secret|token|credential|api_?key)[a-z_.:-]*"
)
_VARIABLE: Final = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_LONGEST_NAME: Final = 100
_DOTTED: Final = re.compile(r"[A-Za-z_]+(?:\.[A-Za-z_]+)+")
_PATH: Final = re.compile(r"/?[a-z0-9_.-]{1,24}(?:/[a-z0-9_.-]{1,24}){2,}")
_DATED: Final = re.compile(r"\d{4}-\d\d-\d\d")
_HEX: Final = re.compile(r"[0-9a-f]{24,}")
_CALL: Final = re.compile(r"[A-Za-z_][\w.]*\(")
_BRACKETS: Final = re.compile(r"(?<!^)[(\[]")
_HEX_ONLY: Final = re.compile(r"(?i)[0-9a-f-]{32,}")
_SEPARATED: Final = re.compile(r"[^A-Za-z0-9_-]+")
_SYMBOL: Final = re.compile(r"(?=.*[A-Za-z]).*[!@#$%^&*+=~].*")
_DIGITS_ONLY: Final = re.compile(r"\d{4,12}(?:-\d{2,6})*")
_PROSE: Final = re.compile(
    r"(?i)\b(?:your|please|must|should|enter|the|characters?|letters|digits|is|are|for|to)\b"
)
_ENCODED: Final = re.compile(r"[A-Za-z0-9+/=]{20,}")
_ABOUT: Final = """
    able about and are await been bool boolean bytes cannot change changed char correct default
    empty enabled disabled error expired false field file forgotten format from generated
    given hash hashed have hidden incorrect input integer invalid like missing must needed
    never none null number object optional over private protected provided public readonly
    really request required reset sent should str string stored strong text that this too
    true type undefined unknown unset used user valid value varchar very weak when where
    with without wrong
"""
_PLAIN_WORDS: Final = frozenset(_ABOUT.split())
_CARD_BRANDS: Final = re.compile(
    r"""(?x)
    (?: 4 \d{12} (?:\d{3}){0,2}                             # Visa
      | 5[1-5] \d{14} | 2[2-7] \d{14}                       # Mastercard
      | 3[47] \d{13}                                        # American Express
      | 6 (?:011|5\d\d|4[4-9]\d) \d{12,15}                  # Discover
      | 62 \d{14,17}                                        # UnionPay
      | 35 \d{14}                                           # JCB
      | 3 (?:0[0-5]|[68]\d) \d{11}                          # Diners Club
    )$"""
)
_ID_WEIGHTS: Final = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
_ID_DIGITS: Final = "10X98765432"
_IBAN_LONGEST: Final = 34


def is_card(text: str) -> bool:
    """Tell a payment card's number: a known brand's prefix and length, and Luhn's check digit."""
    digits = _digits(text)
    return bool(_CARD_BRANDS.match(digits)) and len(set(digits)) > 1 and luhn(digits)


def luhn(digits: str) -> bool:
    """Check a number by ISO/IEC 7812-1: doubled from the right, the digits' sum ends in 0."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        doubled = int(digit) * (2 if place % 2 else 1)
        total += doubled - 9 if doubled > 9 else doubled
    return total % 10 == 0


def is_chinese_id(text: str) -> bool:
    """Check a resident identity number by GB 11643: a date of birth and the check digit."""
    text = text.replace(" ", "").replace("-", "")
    month, day = int(text[10:12]), int(text[12:14])
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return False
    weighted = sum(int(d) * w for d, w in zip(text[:17], _ID_WEIGHTS, strict=True))
    return text[17].upper() == _ID_DIGITS[weighted % 11]


def is_iban(text: str) -> bool:
    """Check a bank account by ISO 13616: moved and read as a number, it leaves 1 of 97."""
    plain = text.replace(" ", "").upper()
    if not 15 <= len(plain) <= _IBAN_LONGEST:
        return False
    moved = plain[4:] + plain[:4]
    return int("".join(str(int(character, 36)) for character in moved)) % 97 == 1


def is_ssn(text: str) -> bool:
    """Tell a number of the social security of the United States: no area, group or serial of 0."""
    digits = _digits(text)
    area, group, serial = digits[:3], digits[3:5], digits[5:]
    return area not in ("000", "666") and area[0] != "9" and group != "00" and serial != "0000"


def is_phone(text: str) -> bool:
    """Tell a phone number written with its separators from dates and other runs of digits."""
    digits = _digits(text)
    return 7 <= len(digits) <= 15 and len(set(digits)) > 2 and not digits.endswith("0000000")


def is_secret_value(text: str) -> bool:
    """Tell what was assigned to a password or key from words about it, and from placeholders."""
    return len(text) >= 4 and (len(text) > _LONGEST_NAME or not _stands_for_one(text))


def _stands_for_one(text: str) -> bool:
    if text.lower().strip(".!?") in _PLAIN_WORDS or _REPEATED.search(text) or _SAID.search(text):
        return True
    return any(
        form.fullmatch(text) for form in (_PLACEHOLDER, _DOTTED, _VARIABLE, _NAME_OF_ONE, _PATH)
    )


def is_mixed(text: str) -> bool:
    """Tell whether a word has letters and digits, as keys do and most words don't."""
    if not is_secret_value(text) or _DATED.match(text):
        return False
    return any(map(str.isalpha, text)) and (any(map(str.isdigit, text)) or _is_jumbled(text))


def _is_jumbled(text: str) -> bool:
    """Tell a long key that happens to have no digits: its case changes at every other letter."""
    changes = sum(a.isupper() != b.isupper() for a, b in pairwise(text))
    return len(text) >= 20 and text.isalnum() and text.isascii() and changes * 3 >= len(text)


def is_strong(text: str) -> bool:
    """Tell whether a word has capitals, small letters and digits, or is a long run of hex."""
    if not is_mixed(text):
        return False
    return _HEX.fullmatch(text) is not None or (text.upper() != text != text.lower())


def is_odd(text: str) -> bool:
    """Tell whether a word has digits or symbols inside, as passwords do and most words don't."""
    if not is_secret_value(text) or _DATED.match(text):
        return False
    return is_mixed(text) or bool(_DIGITS_ONLY.fullmatch(text) or _SYMBOL.fullmatch(text[:-1]))


def is_chosen(text: str) -> bool:
    """Tell whether a word has letters, and digits as well as capitals or symbols."""
    if not is_mixed(text):
        return False
    return is_strong(text) or bool(_SYMBOL.fullmatch(text))


def is_basic(text: str) -> bool:
    """Tell credentials of HTTP's basic scheme: in Base64 a name, a colon and a password."""
    if is_strong(text):
        return True
    try:
        decoded = b64decode(text + "=" * (-len(text) % 4), validate=True)
    except ValueError:
        return False
    return b":" in decoded and decoded.isascii()


def is_quoted_secret(text: str) -> bool:
    """Tell a secret in quotes, which may have spaces, from a sentence about it."""
    if not any(map(str.isspace, text)):
        # In quotes a bracket is no sign of a call.
        return is_odd(text if _CALL.match(text) else _BRACKETS.sub("", text))
    return is_mixed(text) and text == text.strip() and not _PROSE.search(text)


def is_code(text: str) -> bool:
    """Tell a code of digits from a year alone and from one digit again and again."""
    return len(set(text)) > 1 and not _DATED.match(text)


def is_varied(text: str) -> bool:
    """Tell whether a word has capitals, small letters and digits; a digest in hex has not."""
    return is_strong(text) and _HEX_ONLY.fullmatch(text) is None


def is_secret_path(text: str) -> bool:
    """Tell whether a part of a path is a key: long and mixed, or an identifier in hex."""
    parts = (part for part in _SEPARATED.split(text) if len(part) >= 20)
    return any(_HEX_ONLY.fullmatch(part) or is_strong(part) for part in parts)


def is_birth_date(text: str) -> bool:
    """Tell whether an identity number of the old form, of 15 digits, has a date of birth."""
    return 1 <= int(text[8:10]) <= 12 and 1 <= int(text[10:12]) <= 31


def is_private_key(text: str) -> bool:
    """Tell a private key from its first and last line without one between them."""
    return _ENCODED.search(text) is not None


def is_key(text: str) -> bool:
    """Tell a key of a service from the placeholders in its documentation."""
    if _REPEATED.search(text) or _SAID.search(text):
        return False
    return any(map(str.isdigit, text)) or (text.upper() != text != text.lower())


def _digits(text: str) -> str:
    return "".join(filter(str.isdigit, text))
