"""Passwords on command lines, in calls that log in, and in addresses without a scheme."""

from __future__ import annotations

import re
from typing import Final

from zero_mem.redaction.checks import is_chosen, is_mixed, is_odd, is_secret_value
from zero_mem.redaction.rules import Check, Rule

_WORD: Final = (
    r"(?P<quote>[\"'])?(?P<value>(?(quote)[^\"'\n]{4,}|[^\s\"'|]{4,}))(?(quote)[\"']|(?=\s|$))"
)
_STRING: Final = r"[\"'][^\"'\n]{1,80}[\"']"
_ON: Final = r"\b[^\n|]{0,300}?[ \t]"


def _rule(pattern: str, check: Check, *hints: str, needs: str = " -") -> Rule:
    compiled = re.compile("(?i)" + pattern)
    return Rule(kind="password", pattern=compiled, hints=hints, needs=needs, check=check)


COMMANDS: Final[tuple[Rule, ...]] = (
    # curl -u user:…
    _rule(
        r"curl\b[^\n]{0,400}?[ \t](?:-u|--user)[ =]?[\"']?[^\s:\"']+:(?P<value>[^\s\"'@]{3,})",
        is_secret_value,
        "curl",
    ),
    _rule(
        r"curl\b[^\n]{0,400}?[ \t](?:-b|--cookie)[ =]?[\"']?(?P<value>[\w.-]+=[^\s\"']{12,})",
        is_mixed,
        "curl",
    ),
    # mysql -p…
    _rule(
        r"(?:mysql|mariadb)\w*\b[^\n]{0,200}?[ \t]-p"
        r"(?!ort|assword)[\"']?(?P<value>[^\s\"'-][^\s\"']{2,})",
        is_secret_value,
        *("mysql", "mariadb"),
    ),
    _rule(
        r"(?:sshpass[ \t]+-p|redis-cli\b[^\n]{0,200}?[ \t]-a)[ \t]*[\"']?(?P<value>[^\s\"']{4,})",
        is_secret_value,
        *("sshpass", "redis-cli"),
    ),
    # --password …, -passin pass:…
    _rule(
        rf"(?<=[ -])-(?:storepass|keypass|pass(?:word|wd|phrase|in|out)?)[ \t=](?:pass:)?{_WORD}",
        is_odd,
        *("-pass", "-storepass", "-keypass"),
    ),
    _rule(rf"htpasswd[ \t]+-[a-z]*b[a-z]*[ \t]+\S+[ \t]+\S+[ \t]+{_WORD}", is_odd, "htpasswd"),
    _rule(rf"ssh-keygen{_ON}-[NP][ \t]*{_WORD}", is_odd, "ssh-keygen"),
    _rule(rf"openssl{_ON}-k[ \t]*{_WORD}", is_odd, "openssl"),
    # docker login -p …, mongosh -p …, unzip -P …; others are given a port or a path
    _rule(
        r"(?<!mkdir)(?<!cp)(?<!rsync)[ \t]-[pw][ \t=]{0,2}(?P<quote>[\"'])?"
        r"(?P<value>[^\s\"'/:,.$-][^\s\"'/:,$]{4,64})(?(quote)[\"']|(?=\s|$))",
        is_chosen,
        *(" -p", " -w"),
    ),
    # smbclient -U user%…
    _rule(
        rf"smbclient{_ON}-U[ \t]*[\"']?[\w\\/.-]+%(?P<value>[^\s\"']{{4,}})", is_odd, "smbclient"
    ),
    # echo … | sudo -S
    _rule(
        r"echo[ \t]+(?:-n[ \t]+)?[\"']?(?P<value>[^\s\"'|]{4,})[\"']?[ \t]*\|[ \t]*"
        r"(?:sudo\b|[^\n|]*(?:--password-stdin|passwd))",
        is_odd,
        "echo ",
        needs="|",
    ),
    _rule(
        rf"net[ \t]+user?\b(?:{_ON}/user:\S+|[ \t]+\S+)[ \t]+{_WORD}",
        is_odd,
        "net use",
        needs="0",
    ),
    _rule(
        r"securestring[ \t]+(?:-string[ \t]+)?[\"'](?P<value>[^\"'\n]{4,})[\"']",
        is_odd,
        "securestring",
    ),
    # hmac.new(b"…"), Fernet(b"…"), jwt.encode(payload, "…")
    _rule(
        r"(?:hmac(?:\.new)?|fernet|jwt\.(?:en|de)code|jwt\.(?:sign|verify))"
        r"\((?:[\"'][\w-]+[\"'],[ ]|[\w.]+,[ ])?b?[\"'](?P<value>[^\"'\n]{6,})[\"']",
        is_odd,
        *("hmac", "fernet(", "jwt."),
        needs="(",
    ),
    # auth=("user", "…"), login("user", "…"), connect("host", "user", "…")
    _rule(
        rf"(?:auth[ ]?=?|auth\w*|log[io]n|credentials?)[ ]?\([ ]?(?:{_STRING}|[\w.]+),[ ]?"
        r"[\"'](?P<value>[^\"'\n]{4,})[\"']",
        is_secret_value,
        *("auth", "login(", "logon(", "credential"),
        needs="(",
    ),
    _rule(
        rf"connect(?:ion)?[ ]?\([ ]?(?:{_STRING}|[\w.]+),[ ]?{_STRING},[ ]?"
        r"[\"'](?P<value>[^\"'\n]{4,})[\"']",
        is_odd,
        "connect",
        needs="(",
    ),
    # user:…@tcp(host), user:…@host:5432
    Rule(
        kind="url_password",
        pattern=re.compile(
            r"(?<![\w/.:@-])[\w.-]{1,64}:(?P<value>[^\s/@\"':]{4,64})@"
            r"(?:tcp|unix)?(?:\(|[\w.-]+(?::\d|/))"
        ),
        hints=("@",),
        needs="@",
        before=128,
        check=is_mixed,
    ),
)
