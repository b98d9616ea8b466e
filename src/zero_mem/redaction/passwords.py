"""Passwords and keys that nothing but their surroundings gives away.

A rule reads a name ("password", "api key", "密码"), what says that a value follows, and the value.
"""

from __future__ import annotations

import re
from typing import Final

from zero_mem.redaction.checks import is_mixed, is_secret_value, is_strong
from zero_mem.redaction.rules import Check, Rule

_QUOTE: Final = r"(?:\\*[\"'`])"
_ASSIGN: Final = r"(?:=>|:=|===?|!==?|=|[:：＝])"
_PLAIN: Final = r"[^\s\"'`,;{}<>|&\\，。；、）」】]"
_KEY_NAME: Final = (
    "(?:"
    + "|".join(
        rf"(?<={word})|(?<={word}[ _.-])"
        for word in (
            *("api", "access", "account", "private", "auth", "signing", "secret", "encryption"),
            *("master", "service", "client", "license", "app", "admin", "webhook", "session"),
        )
    )
    + ")key(?:[_-](?:base|value|data))?"
)
_PASSWORD_NAME: Final = r"(?:pass(?:word|wd|phrase|code)|passwort|(?<![a-z])pwd?(?![a-z])|secret)"
_NAME: Final = (
    rf"(?:{_PASSWORD_NAME}|(?:(?<=[_.-])|(?<![a-z])(?!(?-i:PASS)))pass(?![a-z])"
    rf"|(?<!page)(?<!page[_-])token(?!s)|credentials?|{_KEY_NAME})"
)
_NAME_HINTS: Final = ("pass", "pw", "secret", "token", "credential", "key")
_PASSWORD_HINTS: Final = ("pass", "pw", "secret")


def _named(pattern: str, check: Check, *hints: str, needs: str = "") -> Rule:
    compiled = re.compile("(?i)" + pattern)
    if check is not is_secret_value:
        needs = "0"
    hints = hints or _NAME_HINTS
    return Rule(kind="password", pattern=compiled, hints=hints, needs=needs, check=check)


_CHINESE_NAME: Final = ("密码", "口令", "密钥", "秘钥", "令牌", "通行码", "密匙", "暗号")
_CHINESE_IS: Final = (
    r"[ \t]*[\u4e00-\u9fff]{0,4}?(?:就?是|为|叫|(?:改|换|设|设置|重置)(?:成|为)了?)"
    r"[ \t]*[:：]?[ \t]*[\"'“‘「『]?"
)
_CHINESE: Final = rf"(?:{_CHINESE_IS}|[ \t]*[:：=＝][ \t]*[\"'“‘「『]?)"
_ASCII: Final = r"(?P<value>[!-~]{3,}?[!-~])(?=[\"'”’」』，。；、,;)）](?:[^!-~]|$)|[^!-~]|$)"

PASSWORDS: Final[tuple[Rule, ...]] = (
    # password=…, "apiKey": "…", X-Api-Key: …, environ["API_TOKEN"] = "…"
    _named(
        rf"{_NAME}{_QUOTE}?\]?[ \t]*{_ASSIGN}[ \t]*{_QUOTE}?(?P<value>{_PLAIN}{{4,}}+)(?!\()",
        is_mixed,
    ),
    # A word without digits is a password only where it is assigned or quoted.
    _named(
        rf"{_PASSWORD_NAME}(?:{_QUOTE}?\]?[ \t]*(?:=>|:=|==?=?)[ \t]*{_QUOTE}?"
        rf"|{_QUOTE}?\]?[ \t]*:[ \t]*{_QUOTE})"
        r"(?P<value>[^\s\"'`,;{}<>|&()\\，。；]{5,}+)(?!\()",
        is_secret_value,
        *_PASSWORD_HINTS,
    ),
    # <add key="ApiKey" value="…"/>
    _named(rf"{_NAME}{_QUOTE}[ \t]+value={_QUOTE}(?P<value>{_PLAIN}{{4,}}+)", is_mixed),
    # <password>…</password>, <property name="password">…
    _named(rf"{_NAME}{_QUOTE}?>(?P<value>{_PLAIN}{{4,}}+)</", is_mixed),
    _named(
        rf"{_PASSWORD_NAME}{_QUOTE}?>(?P<value>{_PLAIN}{{5,}}+)</",
        is_secret_value,
        *_PASSWORD_HINTS,
        needs="</",
    ),
    # "auth": "…" of a registry
    _named(
        rf"(?<![a-z])auth(?:{_QUOTE}[ ]?:[ ]?{_QUOTE}|[ ]?=[ ]?)(?P<value>[a-z0-9+/]{{16,}}=*)",
        is_strong,
        "auth",
    ),
    # passphrase: "several words"
    _named(
        rf"passphrase{_QUOTE}?[ \t]*(?:is|{_ASSIGN})[ \t]*"
        rf"(?P<quote>[\"'])(?P<value>[^\"'\n]{{8,}})(?P=quote)",
        is_secret_value,
        "pass",
    ),
    # The password for the cabin is …; I set the admin password to …
    _named(
        rf"(?!pass[ \t]){_NAME}[ \t]+(?:[^\s:=,;.!?\"']+[ \t]+){{0,6}}?"
        r"(?:is|was|are|to)[ \t]*:?[ \t]*"
        r"(?:(?:still|now|just|simply|currently|set to|changed to|always)[ \t]+)?"
        rf"[\"'`“‘]?(?P<value>{_PLAIN}{{4,}}(?<![.?:)])[^\s\"'`,;{{}}<>|\\，。；.?:)])(?![(\w])",
        is_mixed,
    ),
    # login deploy password …
    _named(
        rf"(?:password|passwd|passcode|pwd)[ \t]+[\"'`]?(?P<value>{_PLAIN}{{8,}}+)",
        is_strong,
        *_PASSWORD_HINTS,
    ),
    # ENV API_KEY …
    _named(
        rf"(?:{_KEY_NAME}|secret|token)[ \t]+[\"'`]?(?P<value>[a-z0-9+/_-]{{20,}}+)",
        is_strong,
        *("key", "secret", "token"),
    ),
    # 密码是…, 密码：…
    Rule(
        kind="password",
        pattern=re.compile(f"(?:{'|'.join(_CHINESE_NAME)}){_CHINESE}{_ASCII}"),
        hints=_CHINESE_NAME,
        check=is_secret_value,
    ),
    Rule(
        kind="password",
        pattern=re.compile(f"(?:{'|'.join(_CHINESE_NAME)})[ \\t]*[“‘「『\"']?{_ASCII}"),
        hints=_CHINESE_NAME,
        check=is_mixed,
    ),
    # 请用这个密码登录：…
    Rule(
        kind="password",
        pattern=re.compile(
            f"(?:{'|'.join(_CHINESE_NAME)})[\u4e00-\u9fff]{{1,4}}[ \\t]*[:：][ \\t]*{_ASCII}"
        ),
        hints=_CHINESE_NAME,
        check=is_mixed,
    ),
    # token是…, API key 为…
    _named(rf"{_NAME}{_CHINESE_IS}{_ASCII}", is_mixed),
    # curl -u user:…, mysql -p…, auth=("user", "…"), login("user", "…")
    _named(
        r"curl\b[^\n]{0,400}?[ \t](?:-u|--user)[ =]?[\"']?[^\s:\"']+:(?P<value>[^\s\"'@]{3,})",
        is_secret_value,
        "curl",
        needs=" -",
    ),
    _named(
        r"(?:mysql|mariadb)\w*\b[^\n]{0,200}?[ \t]-p"
        r"(?!ort|assword)[\"']?(?P<value>[^\s\"'-][^\s\"']{2,})",
        is_secret_value,
        *("mysql", "mariadb"),
        needs=" -",
    ),
    _named(
        r"(?:sshpass[ \t]+-p|redis-cli\b[^\n]{0,200}?[ \t]-a)[ \t]*[\"']?(?P<value>[^\s\"']{4,})",
        is_secret_value,
        *("sshpass", "redis-cli"),
        needs=" -",
    ),
    _named(
        r"(?:auth[ ]?=?|login)[ ]?\([ ]?[\"'][^\"'\n]{1,80}[\"'],[ ]?"
        r"[\"'](?P<value>[^\"'\n]{4,})[\"']",
        is_secret_value,
        *("auth", "login("),
        needs="(",
    ),
)

SECRET_NAME: Final = re.compile(
    r"(?i)(?:.*[_\-. ])?(?:pass(?:word|wd|phrase|code)?|pwd|secret"
    r"|(?:api|access|account|private|auth|signing|encryption|master)[_-]?key"
    r"|(?:secret|client)[_-]?(?:access[_-]?)?(?:key|secret)"
    r"|(?:(?:auth|access|refresh|bearer|id|session|api|bot|csrf)[_-]?)?token"
    r"|authorization|credentials?)"
    r"|密码|口令|密钥|秘钥|令牌"
)
"""Names of JSON fields whose value is a secret, whatever it looks like."""
