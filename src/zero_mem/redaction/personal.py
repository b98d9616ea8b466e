"""Personal data: addresses, phones and identity numbers; off by default, tools may need them."""

from __future__ import annotations

import re
from typing import Final

from zero_mem.redaction.checks import is_birth_date, is_chinese_id, is_iban, is_phone, is_ssn
from zero_mem.redaction.rules import Rule

_BEFORE: Final = r"(?<![0-9A-Za-z.+/-])"
_AFTER: Final = r"(?![0-9A-Za-z-]|\.\d)"


_LETTER: Final = r"A-Za-z0-9\u00c0-\u024f"
_TOP: Final = r"[A-Za-z\u00c0-\u024f]{2,24}"
_TOP_SAID: Final = (
    "(?i:com|org|net|edu|gov|info|io|co|cn|de|fr|uk|eu|us|jp|ru|in|it|es|nl|ch|au|ca|ai|dev|app|me)"
)
_TOP_ELSEWHERE: Final = ("中国", "公司", "网络", "рф")
_MOBILE: Final = (
    r"(?<![0-9A-Za-z.+/-])(?<![)\d] [-+*/] )(?:(?:00)?86[ -]?)?1[3-9]\d(?:[ .-]?\d{4}){2}"
    r"(?![0-9A-Za-z-]|\.\d)"
)
_CALLED: Final = (
    r"(?i)(?:phone|tel(?:ephone)?|mobile|cell|call(?:ing|ed)?|fax|whats ?app|sms|text)\b"
    r"(?:[ \t]*(?:me|my|mum|mom|dad|him|her|us|them|back|is|on|at|to|no|nr|number|under|home|office"
    r"|work|direct|line|the|his|our|your|now|instead|via)\b){0,4}[ \t]*[.:#]{0,2}[ \t]*"
)
_CALLED_NUMBER: Final = (
    r"(?P<value>(?!\d{4}-\d\d-\d\d|20\d{6}(?!\d))"
    r"(?:\d{7,11}|\(?\d{2,5}\)?(?:[ ./-]{1,2}\d{2,7}){1,4}))(?![\w%]|[.:/-]\d)"
)


def _email(pattern: str, *hints: str, needs: str, before: int) -> Rule:
    compiled = re.compile(pattern)
    return Rule(kind="email", pattern=compiled, hints=hints, needs=needs, before=before)


_SPACED: Final = ("000 000", "000-000", "00) 0", "00)0")


def _phone(pattern: str, *hints: str, needs: str = "000", before: int = 16) -> Rule:
    return Rule(
        kind="phone",
        pattern=re.compile(pattern, re.ASCII),
        hints=hints,
        needs=needs,
        before=before,
        check=is_phone,
    )


_EMAILS: Final = (
    _email(
        rf"[{_LETTER}](?<![{_LETTER}._%+-].)(?<!//.)(?<!//user:.)(?<!//username:.)(?!it@|g@)"
        rf"(?:[{_LETTER}._%+-]|(?<=[ODLodl])'(?=[A-Za-z])){{0,63}}@(?!\d(?:\.\d)?x\.)"
        rf"(?:[{_LETTER}](?:[{_LETTER}-]{{0,61}}[{_LETTER}])?\.)+{_TOP}(?![A-Za-z0-9])",
        "@",
        needs="@",
        before=64,
    ),
    # In other scripts; 是, 为, 到, 给 and 在 come before an address.
    _email(
        rf"(?:[^\W是为到给在]|[.%+-]){{1,64}}@(?:[\w-]{{1,63}}\.)+(?:{'|'.join(_TOP_ELSEWHERE)})",
        *(f".{top}" for top in _TOP_ELSEWHERE),
        needs="@",
        before=192,
    ),
    # Written so that programs don't see them: kim [at] example [dot] com, kim at example dot com
    _email(
        rf"[{_LETTER}][\w.+-]{{0,63}}\s?[\[({{<]\s?(?:(?i:at)|@)\s?[\])}}>]\s?[{_LETTER}][\w-]{{0,62}}"
        r"(?:\s?(?:\.|[\[({<]\s?(?:(?i:dot)|\.)\s?[\])}>])\s?[\w-]{1,63}){1,4}",
        *("(at)", "[at]"),
        needs="",
        before=80,
    ),
    _email(
        rf"[{_LETTER}][\w.+-]{{0,63}}@[\w-]{{1,63}}(?:[\[({{](?:(?i:dot)|\.)[\])}}][\w-]{{1,63}}){{1,4}}",
        *("(.)", "(dot)", "[.]", "[dot]"),
        needs="@",
        before=128,
    ),
    _email(
        rf"[{_LETTER}][\w.+-]{{0,63}} (?i:at) (?:[\w-]{{1,63}}(?:\.| (?i:dot) )){{0,3}}"
        rf"[\w-]{{1,63}} (?i:dot) (?:{_TOP_SAID})(?![\w])",
        " dot ",
        needs="",
        before=160,
    ),
    # In the query of an address
    _email(
        r"[A-Za-z0-9](?<![A-Za-z0-9._%+-].)[A-Za-z0-9._+-]{0,63}%40(?:[A-Za-z0-9-]{1,63}\.)+[A-Za-z]{2,24}"
        r"(?![A-Za-z0-9])",
        "%00",
        needs="%00",
        before=64,
    ),
)

_PHONES: Final = (
    # Mobile numbers of mainland China
    _phone(_MOBILE, *_SPACED[:2], "000.000"),
    _phone(_MOBILE, "0" * 11, before=0),
    # Written with the code of the country
    _phone(
        r"(?<![0-9A-Za-z+.])\+[1-9]\d{0,2}(?:[ ./-]{0,2}\(?\d{1,5}\)?){2,6}(?![\dA-Za-z])",
        "+0",
        needs="+0",
        before=0,
    ),
    _phone(
        r"(?<![0-9A-Za-z+.-])00[1-9]\d{0,2}(?:[ ./-]\(?\d{1,5}\)?){2,5}(?![\dA-Za-z])", *_SPACED[:2]
    ),
    # North America; numbers of companies in China have the same groups
    _phone(
        _BEFORE + r"(?:1[ .-])?(?:\([2-9]\d\d\) ?|[2-9]\d\d[ .-])\d{3}[ .-]\d{4}" + _AFTER,
        "000.000",
        *_SPACED,
    ),
    # Landlines of China
    _phone(
        _BEFORE
        + r"(?:\(0\d{2,3}\) ?|0\d{2,3}[ -])(?:\d{7,8}|\d{3,4}[ -]\d{4})(?:-\d{1,5})?"
        + _AFTER,
        *_SPACED,
    ),
    # Britain, France and Japan, as they are written at home
    _phone(
        _BEFORE
        + r"(?:07\d{3} \d{3} ?\d{3}|0\d{2,3} \d{3,4} \d{4}|0[1-9](?:[ .]\d\d){4}"
        + r"|0\d{1,3}-\d{2,4}-\d{4})(?![0-9A-Za-z-]|[ .]\d)",
        *("00 00 00 00", "00.00.00.00", "00-0000-0"),
        *_SPACED[:2],
        needs="00",
    ),
    # Any, after a word that says so
    _phone(_CALLED + _CALLED_NUMBER, *_SPACED[:2], before=32),
    _phone(_CALLED + _CALLED_NUMBER, *("phone", "mobile", "fax"), before=0),
    _phone(
        r"(?:电话|手机|座机|联系方式|传真)[^\d\n(+]{0,8}"
        r"(?P<value>\(?\d{2,4}\)?(?:[ -]?\d{2,8}){1,3})(?![\w-])",
        *("电话", "手机", "座机", "联系方式", "传真"),
        before=0,
    ),
)

PERSONAL: Final[tuple[Rule, ...]] = (
    *_EMAILS,
    Rule(
        kind="chinese_id",
        pattern=re.compile(r"(?<![0-9A-Za-z])[1-9]\d{5}(?:19|20)\d{9}[\dXx](?![0-9A-Za-z])", re.A),
        hints=("0" * 17,),
        needs="0000",
        check=is_chinese_id,
    ),
    Rule(
        kind="chinese_id",
        pattern=re.compile(
            r"(?<![0-9A-Za-z])[1-9]\d{5}[ -](?:19|20)\d{6}[ -]\d{3}[\dXx](?![0-9A-Za-z])", re.A
        ),
        hints=("000000 00000000 000", "000000-00000000-000"),
        needs="0000",
        check=is_chinese_id,
    ),
    # Of the form before 1999, only where it is called so
    Rule(
        kind="chinese_id",
        pattern=re.compile(r"(?:身份证|证件)[^\d\n]{0,8}(?P<value>[1-9]\d{14})(?![0-9A-Za-z])"),
        hints=("身份证", "证件"),
        check=is_birth_date,
    ),
    *_PHONES,
    Rule(
        kind="ssn",
        pattern=re.compile(r"(?<![\w.+/-])\d{3}-\d{2}-\d{4}(?![\w-])", re.ASCII),
        hints=("000-00-0000",),
        needs="0000",
        check=is_ssn,
    ),
    Rule(
        kind="ssn",
        pattern=re.compile(
            r"(?i)(?<![a-z])(?:ssn|social security(?: number| no\.?)?)[^\d\n]{0,8}"
            r"(?P<value>\d{3}[ -]?\d{2}[ -]?\d{4})(?![\w-])"
        ),
        hints=("ssn", "social sec"),
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
