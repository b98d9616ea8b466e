"""Personal data: addresses, phones and identity numbers; off by default, tools may need them."""

from __future__ import annotations

import re
from typing import Final

from zero_mem.redaction.checks import is_chinese_id, is_iban, is_phone, is_ssn
from zero_mem.redaction.rules import Rule

_BEFORE: Final = r"(?<![0-9A-Za-z.+/-])"
_AFTER: Final = r"(?![0-9A-Za-z-]|\.\d)"


def _phone(pattern: str, *hints: str, needs: str = "000") -> Rule:
    compiled = re.compile(pattern, re.ASCII)
    return Rule(kind="phone", pattern=compiled, hints=hints, needs=needs, check=is_phone)


PERSONAL: Final[tuple[Rule, ...]] = (
    Rule(
        kind="email",
        pattern=re.compile(
            r"[A-Za-z0-9](?<![A-Za-z0-9._%+-].)(?<!//.)(?!it@|g@)[A-Za-z0-9._%+-]{0,63}@"
            r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z]{2,24}(?![A-Za-z0-9])"
        ),
        hints=("@",),
        needs="@",
        before=64,
    ),
    Rule(
        kind="chinese_id",
        pattern=re.compile(r"(?<![0-9A-Za-z])[1-9]\d{5}(?:19|20)\d{9}[\dXx](?![0-9A-Za-z])", re.A),
        hints=("0" * 17,),
        needs="0000",
        check=is_chinese_id,
    ),
    # Mobile numbers of mainland China
    _phone(
        r"(?<![0-9A-Za-z.+/-])(?<![)\d] [-+*/] )1[3-9]\d(?:[ -]?\d{4}){2}(?![0-9A-Za-z-]|\.\d)",
        *("0" * 11, "000 0000 0000", "000-0000-0000"),
    ),
    # Written with the code of the country
    _phone(
        r"(?<![0-9A-Za-z+.])\+[1-9]\d{0,2}(?:[ .-]?\(?\d{1,4}\)?){2,6}(?![\dA-Za-z])",
        "+0",
        needs="+0",
    ),
    _phone(
        r"(?<![0-9A-Za-z+.-])(?:00)?86[ -]?1[3-9]\d(?:[ -]?\d{4}){2}(?![0-9A-Za-z-])",
        *("00 000", "00-000", "0" * 13),
    ),
    # North America; numbers of companies in China have the same groups
    _phone(
        _BEFORE + r"(?:1[ .-])?\(?\d{3}(?:\) ?|[ .-])\d{3}[ .-]\d{4}" + _AFTER,
        *("000-000-0000", "000.000.0000", "000 000 0000", "(000) 000", "(000)000"),
        *("0-000-000-0000", "0 000 000 0000", "0 (000)"),
    ),
    # Landlines of China
    _phone(
        _BEFORE + r"(?:\(0\d{2,3}\) ?|0\d{2,3}[ -])\d{7,8}(?:-\d{1,5})?" + _AFTER,
        *("000-0000000", "0000-0000000", "000 0000000", "0000 0000000", "(000", "(0000"),
    ),
    Rule(
        kind="ssn",
        pattern=re.compile(r"(?<![\w.+/-])\d{3}-\d{2}-\d{4}(?![\w-])", re.ASCII),
        hints=("000-00-0000",),
        needs="0000",
        check=is_ssn,
    ),
    Rule(
        kind="iban",
        pattern=re.compile(
            r"[A-Z](?<![A-Za-z0-9].)[A-Z]\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?"
            r"(?![A-Za-z0-9-])",
            re.ASCII,
        ),
        hints=("00000000", "0000 0000", "000 0000"),
        needs="000",
        before=34,
        check=is_iban,
    ),
)
