"""Passwords and keys that nothing but their surroundings gives away.

A rule reads a name ("password", "api key", "密码"), what says that a value follows, and the value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from zero_mem.redaction.checks import (
    is_chosen,
    is_code,
    is_mixed,
    is_odd,
    is_quoted_secret,
    is_secret_value,
    is_strong,
    is_varied,
)
from zero_mem.redaction.rules import Check, Rule

_QUOTE: Final = r"(?:\\*[\"'`])"
_ASSIGN: Final = r"(?:=>|:=|===?|!==?|=|[:：＝])"
_ARROW: Final = r"[ \t]*(?:[:：→]|->|=>)[ \t]*"
_NEXT_LINE: Final = r"(?:\r?\n[ \t]*(?:```\w*\r?\n)?)?"
_PLAIN: Final = r"[^\s\"'`,;{}<>|&\\，。；、）」】]"
# A literal may be wrapped: SecretStr("…"), Buffer.from("…"), b"…"; what looks one up is none.
# password: str = "…", password: process.env.PW || "…"
_TYPED: Final = (
    r"(?::[ \t]*&?[\w.\[\] |]{1,30}?[ \t]*=|[ ]string[ ]:?="
    r"|[:=][ \t]*[\w.()\[\]]{1,60}[ \t]*(?:\|\||\?\?))"
)
_WRAPPED: Final = (
    r"(?:(?:new[ ])?(?![\w.]*(?:get|env|load|read|fetch|find|header|query|param|hash|resolve|open))"
    r"[\w.]{1,40}\((?=[\"'])|[bru]{1,2}(?=[\"']))?"
)
_BETWEEN: Final = r"(?:[ \t]+[^\s:=,;.!?\"']+){1,4}?"

_KEY_NAME: Final = (
    "(?:"
    + "|".join(
        rf"(?<={word})|(?<={word}[ _.-])"
        for word in (
            *("api", "access", "account", "private", "auth", "signing", "secret", "encryption"),
            *("master", "service", "client", "license", "app", "admin", "webhook", "session"),
            *("subscription", "storage", "shared", "consumer", "deploy", "project", "ingest"),
        )
    )
    + ")key(?:[_-](?:base|value|data))?"
)
# Tokens that say where to go on reading
_PAGES: Final = "".join(
    rf"(?<!{word})(?<!{word}[ _-])" for word in ("page", "next", "continuation", "sync", "cursor")
)
_PASSWORD_NAME: Final = (
    r"(?:pass(?:word|wd|phrase|code)|passwort|(?<![a-z])pwd?(?![a-z])|secret"
    r"|(?<=[\"'])pass(?=[\"'])|(?<=[_-])pass(?![a-z_]))"
)
_ANY_NAME: Final = (
    rf"(?:{_PASSWORD_NAME}|(?:(?<=[_.-])|(?<![a-z])(?!(?-i:PASS))|(?<=[a-z])(?=(?-i:P)))pass(?![a-z])"
    rf"|{_PAGES}token(?!s)|cred(?:ential)?s?(?![a-z])|psk|{_KEY_NAME})"
)
_OTHER_KEYS: Final = "".join(
    rf"(?<!{word}[ _-])"
    for word in (
        *("cache", "cursor", "dedupe", "event", "foreign", "hash", "host", "idempotency", "index"),
        *("lookup", "map", "message", "object", "page", "partition", "primary", "public", "row"),
        *("routing", "s3", "publishable", "shard", "sort", "state", "storage", "the", "unique"),
    )
)
_CODES: Final = "|".join(
    rf"(?<={word}[ _-])"
    for word in (
        *("verification", "security", "login", "access", "otp", "one-time", "confirmation", "2fa"),
        *("alarm", "door", "entry", "garage", "gate", "lock", "safe", "sms", "unlock", "auth"),
    )
)
_CODE_NAME: Final = (
    r"(?:pass(?:word|wd|code)|(?<![a-z])pwd|(?<![a-z])(?:pin|otp)(?:[ _-]?code)?"
    rf"|(?:{_CODES})code)(?![a-z])"
)

# What a password is made with, not what it is
_NO_TERM: Final = (
    r"(?!(?:sha|md|base|argon|oauth|utf|pbkdf|iso|rfc|v)-?\d"
    r"|\d{1,3}[ -]?(?:char|digit|min|day|bit|fa))"
)
_COMMON_HINTS: Final = ("pass", "pw", "secret")
_OTHER_HINTS: Final = ("token", "cred", "key", "psk=")

_NAME: Final = re.compile(f"(?i){_ANY_NAME}")
_PASSWORD: Final = re.compile(f"(?i){_PASSWORD_NAME}")


def _rule(
    pattern: str,
    check: Check,
    *hints: str,
    after: re.Pattern[str] | None = None,
    needs: str = "",
    before: int = 0,
) -> Rule:
    if check in (is_mixed, is_strong, is_varied):
        needs = "0"
    compiled = re.compile("(?i)" + pattern)
    return Rule(
        kind="password",
        pattern=compiled,
        after=after,
        hints=hints,
        needs=needs,
        before=before,
        check=check,
    )


def _named(pattern: str, check: Check) -> Rule:
    """Give a rule for what follows the name of any secret."""
    return _rule(pattern, check, *_COMMON_HINTS, *_OTHER_HINTS, after=_NAME)


def _password(pattern: str, check: Check, *, needs: str = "") -> Rule:
    """Give a rule for what follows the name of a password."""
    return _rule(pattern, check, *_COMMON_HINTS, after=_PASSWORD, needs=needs)


def _odd(pattern: str, check: Check) -> Iterator[Rule]:
    """Give rules for what follows the name of any secret and has digits or symbols.

    The commonest names are looked for in each text, the others in those with digits.
    """
    yield _rule(pattern, check, *_COMMON_HINTS, after=_NAME)
    yield _rule(pattern, check, *_OTHER_HINTS, after=_NAME, needs="0")


_ASSIGNED: Final = (
    # password=…, "apiKey": "…", X-Api-Key: …, environ["API_TOKEN"] = "…"
    _named(
        rf"{_QUOTE}?\]?[*_]{{0,2}}[ \t]*{_ASSIGN}[*_]{{0,2}}[ \t]*{_WRAPPED}"
        rf"{_QUOTE}?(?P<value>{_PLAIN}{{4,}}+)(?!\()",
        is_mixed,
    ),
    # password = "two w0rds; or symbols", define('AUTH_KEY', '…')
    *_odd(
        rf"[\"'`]?\]?[ \t]*(?:{_TYPED}|{_ASSIGN}|(?<=[\"']),)[ \t]*{_WRAPPED}"
        r"(?P<quote>[\"'`])(?P<value>[^\"'`\n\\]{4,200})(?P=quote)",
        is_quoted_secret,
    ),
    # A word without digits is a password only where it is assigned, quoted or all of a line.
    _password(
        rf"(?:{_QUOTE}?\]?[ \t]*(?:=>|:=|==?=?)[ \t]*{_QUOTE}?|{_QUOTE}?\]?[ \t]*:[ \t]*{_QUOTE})"
        r"(?P<value>[^\s\"'`,;{}<>|&()\\，。；]{5,}+)(?!\()",
        is_secret_value,
    ),
    _rule(
        r"(?:pass(?:word|wd|phrase)|(?<![a-z])(?!(?-i:PASS:))p(?:wd|ass))[ \t]*:[ \t]+"
        r"(?P<value>[^\s\"'`,;{}<>|&()\\*$%\[\]]{5,64})[ \t]*(?:#[^\n]*)?(?=[\r\n]|$)",
        is_secret_value,
        *_COMMON_HINTS[:2],
    ),
    # <add key="ApiKey" value="…"/>, {"name": "api-key", "value": "…"}, the same in YAML
    _named(
        rf"{_QUOTE}?[ ]?[,{{]?\s{{0,40}}(?<=[\s,]){_QUOTE}?(?:value|val|v|default)"
        rf"{_QUOTE}?[ ]{{0,8}}[:=][ ]?"
        rf"{_QUOTE}?(?P<value>{_PLAIN}{{4,}}+)",
        is_mixed,
    ),
    # <password>…</password>, <property name="password">…
    _named(rf"{_QUOTE}?>(?P<value>{_PLAIN}{{4,}}+)</", is_mixed),
    _password(rf"{_QUOTE}?>(?P<value>{_PLAIN}{{5,}}+)</", is_secret_value, needs="</"),
    # "auth": "…" of a registry
    _rule(
        rf"(?<![a-z])auth(?:{_QUOTE}[ ]?:[ ]?{_QUOTE}|[ ]?=[ ]?)(?P<value>[a-z0-9+/]{{16,}}=*)",
        is_strong,
        "auth",
    ),
    # BASIC_AUTH=user:…
    _rule(
        rf"auth[ \t]*[:=][ \t]*{_QUOTE}?[\w.-]+[:/](?!//)(?P<value>{_PLAIN}{{4,}}+)",
        is_mixed,
        "auth",
    ),
    # passphrase: "several words"
    _rule(
        rf"passphrase{_QUOTE}?[ \t]*(?:is|{_ASSIGN})[ \t]*"
        rf"(?P<quote>[\"'])(?P<value>[^\"'\n]{{8,}})(?P=quote)",
        is_secret_value,
        "pass",
    ),
)

_SAID: Final = (
    # The password for the cabin is …; I set the admin password to …
    _named(
        r"(?:'s[ \t]+|(?<!pass),?[ \t]+(?:[^\s:=;.!?\"']+[ \t]+){0,6}?"
        r"(?:is|was|are|be|to|it's)[ \t]*:?)[ \t]*"
        r"(?:(?:still|now|just|simply|currently|set to|changed to|always)[ \t]+)?"
        rf"[\"'`“‘]?(?P<value>(?:{_PLAIN}|&){{4,}}(?<![.?:)])"
        r"[^\s\"'`,;{}<>|\\，。；.?:)])(?![(\w])",
        is_mixed,
    ),
    # my password, …
    _rule(
        r"(?:password|passwd|passcode),[ ]"
        r"(?P<value>[^\s\"'`,;{}<>|\\]{5,64}[^\s\"'`,;{}<>|\\.?:)])",
        is_chosen,
        "pass",
    ),
    # password for the archive → …; here is the token you asked for: …
    _rule(
        rf"(?:pass(?:word|wd|code|phrase)|(?<![a-z])pwd?(?![a-z])){_BETWEEN}{_ARROW}[\"'`]?(?!https?:)"
        rf"(?P<value>{_PLAIN}{{5,}}+)",
        is_odd,
        *_COMMON_HINTS[:2],
    ),
    _rule(
        rf"(?:{_PAGES}token|secret|password|(?<![_-]){_OTHER_KEYS}key)(?:{_BETWEEN})?{_ARROW}{_NEXT_LINE}[\"'`]?"
        r"(?P<value>[a-z0-9._~+/=-]{19,}[a-z0-9/+=_-])",
        is_strong,
        *("token", "secret", "key", "pass"),
    ),
    # … is my password, use … as the password
    _rule(
        r"(?<![^\s\"'`“‘「])(?P<value>[^\s\"'`“‘”’」]{5,64})[\"'`”’」]?"
        r"[ \t]+(?:is|was|as)[ \t]+(?:my|the|our|his|her|your|a|its)?[ \t]?"
        r"pass(?:word|code|phrase)(?![a-z])",
        is_odd,
        *(" my pass", " the pass", "as pass"),
        needs="0",
        before=68,
    ),
    # setPassword("…"), .token("…")
    _rule(
        r"(?:(?<=set)|(?<=set_)|(?<=\.)|(?<=with)|(?<=with_))(?:password|token|secret)"
        r"\([ ]?(?P<quote>[\"'])(?P<value>[^\"'\n]{4,200})(?P=quote)",
        is_quoted_secret,
        *("password(", "token(", "secret("),
        needs="(",
    ),
    # PASSWORD 'alter99', the password `x!yz`
    _password(r"[ \t]+(?P<quote>[\"'`])(?P<value>[^\"'`\n]{4,64})(?P=quote)", is_quoted_secret),
    _rule(
        r"identified(?:[ \t]with[ \t]\S+)?[ \t](?:by|as)[ \t]+[\"'](?P<value>[^\"'\n]{4,64})[\"']",
        is_secret_value,
        "identified",
        needs="0",
    ),
    # PIN: 4711, the door code is 4711
    _rule(
        rf"{_CODE_NAME}(?:(?:[ \t]+[a-z'-]+){{0,5}}?(?:[ \t]+(?:is|was|to)|{_QUOTE}?[ \t]*[:=])"
        rf"|(?<=p))[ \t:]*{_QUOTE}?(?P<value>\d{{4,12}}(?:[- ]\d{{2,6}})?[#*]?)(?!\w|[.-]\d)",
        is_code,
        *("pass", "pw", "pin", "otp", "code"),
        needs="0000",
    ),
    # 4711 is your login code
    _rule(
        r"(?<![\w.-])(?P<value>\d{4,8}) is your (?:[a-z0-9-]+ ){0,3}(?:code|pin|otp)(?![a-z])",
        is_code,
        " is your ",
        needs="0000",
        before=12,
    ),
    _rule(
        r"(?:backup|recovery)[ _-](?:codes?|keys?)(?:[ \t]+(?:is|are))?[ \t:]+"
        r"(?P<value>[a-z0-9]{4,6}(?:[ -]?[a-z0-9]{4,6})+)(?![\w-])",
        is_odd,
        *("backup c", "recovery "),
        needs="0",
    ),
    # admin / …, root:…
    _rule(
        r"admin(?:istrator)?(?:[ \t]+/[ \t]+|:(?!//))"
        r"(?P<value>[^\s\"'`,;:{}<>|\\]{6,64})",
        is_mixed,
        "admin",
    ),
    # gh secret set API_TOKEN --body "…"
    _rule(
        r"secret(?:[ \t]+[^\s\"']+){1,4}?[ \t]+"
        r"[\"'](?P<value>[a-z0-9._~+/=-]{24,})[\"']",
        is_strong,
        "secret",
    ),
    # login: dora / …
    _rule(
        r"(?:log[ -]?in|credentials?|creds)(?:[ \t]+(?:is|are|as|with))?[ \t:]+"
        rf"[\w.@+-]{{2,60}}[ \t]+/[ \t]+(?P<value>{_PLAIN}{{5,}}+)",
        is_odd,
        *("login", "cred"),
        needs="0",
    ),
    # login deploy password …
    _rule(
        r"(?:password|passwd|passcode|(?<![a-z])pwd?|(?<=_)pass|(?<=master)auth)[ \t]+[\"'`]?"
        rf"{_NO_TERM}(?P<value>{_PLAIN}{{6,}}+)",
        is_mixed,
        *_COMMON_HINTS[:2],
        "auth",
    ),
    _rule(rf"pass[ \t]+[\"'`]?(?P<value>{_PLAIN}{{6,}}+)", is_strong, *_COMMON_HINTS[:1]),
    # machine … login … password …
    _rule(
        r"machine\s+\S{1,200}\s+login\s+\S{1,200}\s+password\s+(?P<value>\S{4,})",
        is_secret_value,
        "machine ",
    ),
    # ENV API_KEY …
    _named(r"[ \t]+[\"'`]?(?P<value>[a-z0-9+/_-]{20,}+)", is_strong),
    # "key": "…"
    _rule(
        r"(?<=[\"'])key[\"'][ ]?:[ ]?[\"'](?P<value>[a-z0-9_+=-]{32,})[\"']",
        is_varied,
        "key",
    ),
    # MAPS_KEY=…, "stripe-key": "…"
    _rule(
        rf"(?<=[a-z0-9][_-]){_OTHER_KEYS}key[\"']?\]?[ \t]*[:=][ \t]*[\"'`]?"
        r"(?P<value>[a-z0-9_+=-]{20,})(?![\w./-])",
        is_strong,
        "key",
    ),
    # key …; keys of caches and tables are none
    _rule(
        r"(?<![a-z0-9_-])(?=key[ \t:=→is\"']{1,8}[\"'`]?[a-z0-9]{16})"
        rf"{_OTHER_KEYS}key(?:[ \t]*(?:is|[:=]|→)[ \t]*|[ \t]+)[\"'`]?"
        r"(?P<value>[0-9a-f]{32}\.[a-z0-9]{16}|[a-z0-9][a-z0-9_+=-]{23,})(?![\w./-])",
        is_varied,
        "key",
    ),
)

_CHINESE_NAME: Final = (
    "密码",
    "口令",
    "密钥",
    "秘钥",
    "令牌",
    "通行码",
    "密匙",
    "暗号",
    "私钥",
    "授权码",
)
_CHINESE_PASSWORD: Final = re.compile("|".join(_CHINESE_NAME))
_CHINESE_CODE: Final = ("验证码", "动态码", "校验码", "动态密码")
_IS: Final = (
    r"[ \t]*[\u4e00-\u9fff]{0,4}?(?:就?是|还是|为|叫|用的?是?|(?:改|换|设|设置|重置)(?:成|为)了?)"
    r"[ \t]*[:：]?[ \t]*[\"'“‘「『]?"
)
_ASCII: Final = r"(?P<value>[!-~]{3,}?[!-~])(?=[\"'”’」』，。；、,;)）](?:[^!-~]|$)|[^!-~]|$)"


def _chinese(pattern: str, check: Check) -> Rule:
    return _rule(pattern + _ASCII, check, *_CHINESE_NAME, after=_CHINESE_PASSWORD)


_CHINESE: Final = (
    # 密码是…, 密码：…
    _chinese(rf"(?:{_IS}|[ \t]*[:：=＝][ \t]*[\"'“‘「『]?)", is_secret_value),
    _chinese(r"[ \t]*[“‘「『\"']?", is_mixed),
    _chinese(r"[ \t]+[“‘「『\"']?", is_odd),
    # 请用这个密码登录：…
    _chinese(r"[\u4e00-\u9fff]{0,4}[ \t]*[:：]\s{0,3}", is_mixed),
    # …是我的密码, 用…作为密码
    _rule(
        r"(?<![!-~])(?P<value>[!-~]{5,64})[\"'”’」]?[ \t]?(?:就?是|作为?|当作?|做)"
        r"(?:我|你|他|她|新|的|这个|登录|数据库){0,4}"
        r"(?:密码|口令|密钥)",
        is_odd,
        *("密码", "口令", "密钥"),
        before=80,
    ),
    # token是…, API key 为…
    _named(_IS + _ASCII, is_mixed),
    # 验证码：4711
    Rule(
        kind="password",
        pattern=re.compile(
            rf"(?:{'|'.join(_CHINESE_CODE)})[^\d\n]{{0,6}}(?P<value>\d{{4,8}})(?!\d)"
        ),
        hints=_CHINESE_CODE,
    ),
)

PASSWORDS: Final[tuple[Rule, ...]] = (*_ASSIGNED, *_SAID, *_CHINESE)
