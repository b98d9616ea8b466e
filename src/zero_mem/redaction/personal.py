"""Personal data: addresses, phones and identity numbers; off by default, tools may need them."""

from __future__ import annotations

import re
from typing import Final

from zero_mem.redaction.checks import is_chinese_id, is_iban, is_phone
from zero_mem.redaction.rules import NUMBER, Rule

_BEFORE: Final = r"(?<![0-9A-Za-z.+/-])"
_AFTER: Final = r"(?![0-9A-Za-z-])"

PERSONAL: Final[tuple[Rule, ...]] = (
    Rule(
        kind="email",
        pattern=re.compile(
            r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9][A-Za-z0-9._%+-]{0,63}@"
            r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z]{2,24}(?![A-Za-z0-9])"
        ),
        hints=("@",),
    ),
    Rule(
        kind="chinese_id",
        pattern=re.compile(r"(?<![0-9A-Za-z])[1-9]\d{5}(?:19|20)\d{9}[\dXx](?![0-9A-Za-z])"),
        hints=(NUMBER,),
        check=is_chinese_id,
    ),
    Rule(
        kind="phone",
        pattern=re.compile(
            r"(?<![0-9A-Za-z.+-])(?:\+?86[ -]?)?1[3-9]\d(?:[ -]?\d{4}){2}(?![0-9A-Za-z-]|\.\d)"
        ),
        hints=(NUMBER,),
        check=is_phone,
    ),
    Rule(
        kind="phone",
        pattern=re.compile(
            r"(?<![0-9A-Za-z+.])\+[1-9]\d{0,2}(?:[ .-]?\(?\d{1,4}\)?){2,6}(?![\dA-Za-z])"
        ),
        hints=("+",),
        check=is_phone,
    ),
    Rule(
        kind="phone",
        pattern=re.compile(
            _BEFORE + r"(?:1[ .-])?(?:\(\d{3}\) ?|\d{3}[ .-])\d{3}[ .-]\d{4}(?!\.\d)" + _AFTER
        ),
        hints=(NUMBER,),
        check=is_phone,
    ),
    Rule(
        kind="phone",
        pattern=re.compile(
            _BEFORE + r"(?:\(0\d{2,3}\) ?|0\d{2,3}[ -])\d{7,8}(?:-\d{1,5})?" + _AFTER
        ),
        hints=(NUMBER,),
        check=is_phone,
    ),
    Rule(
        kind="phone",
        pattern=re.compile(_BEFORE + r"[48]00[ -]\d{3}[ -]\d{4}" + _AFTER),
        hints=(NUMBER,),
        check=is_phone,
    ),
    Rule(
        kind="iban",
        pattern=re.compile(
            r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?" + _AFTER
        ),
        hints=(NUMBER,),
        check=is_iban,
    ),
)
