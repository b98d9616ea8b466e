"""Secrets: keys of well-known services, tokens, private keys, passwords, payment cards.

The shapes of the keys are those that the services document.
"""

from __future__ import annotations

import re
from typing import Final

from zero_mem.redaction.checks import is_card, is_mixed, is_secret_value
from zero_mem.redaction.rules import NUMBER, Rule

_RUN: Final = 15
_START: Final = r"(?<![A-Za-z0-9_-])"
_END: Final = r"(?![A-Za-z0-9])"


def _key(kind: str, pattern: str, *hints: str) -> Rule:
    return Rule(kind=kind, pattern=re.compile(_START + pattern + _END), hints=hints, run=_RUN)


_NAMED: Final = (
    r"(?:pass(?:word|wd|phrase|code)|pwd|secret|api[ _-]?key|access[ _-]?key|account[ _-]?key"
    r"|private[ _-]?key|auth[ _-]?key|signing[ _-]?key|token|credentials?)"
)

SECRETS: Final[tuple[Rule, ...]] = (
    Rule(
        kind="private_key",
        pattern=re.compile(
            r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
            r"(?:.*?-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|.*)",
            re.DOTALL,
        ),
        hints=("-----begin ",),
    ),
    _key("anthropic_key", r"sk-ant-[A-Za-z0-9_-]{16,}", "sk-ant-"),
    _key("openai_key", r"sk-(?!ant-)(?:[a-z]+-)?[A-Za-z0-9_-]{20,}", "sk-"),
    _key("aws_key", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}", "akia", "asia", "abia", "acca"),
    _key(
        "github_token",
        r"(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,})",
        *("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
    ),
    _key(
        "gitlab_token",
        r"gl(?:pat|dt|rt|cbt|ptt|ft)-[A-Za-z0-9_-]{20,}",
        "glpat-",
        "gldt-",
        "glrt-",
        "glcbt-",
        "glptt-",
        "glft-",
    ),
    _key("slack_token", r"xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,}", "xox", "xapp-"),
    Rule(
        kind="slack_webhook",
        pattern=re.compile(r"https://hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_-]{20,}"),
        hints=("hooks.slack.com",),
        run=_RUN,
    ),
    _key(
        "stripe_key",
        r"(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9]{24,}",
        "_live_",
        "_test_",
        "whsec_",
    ),
    _key(
        "google_key",
        r"AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,}",
        "aiza",
        "ya29.",
        "gocspx-",
    ),
    _key("huggingface_token", r"hf_[A-Za-z0-9]{30,}", "hf_"),
    _key(
        "package_token",
        r"npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{50,}|dckr_pat_[A-Za-z0-9_-]{20,}",
        "npm_",
        "pypi-",
        "dckr_pat_",
    ),
    _key("sendgrid_key", r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}", "sg."),
    _key("twilio_key", r"SK[0-9a-f]{32}", "sk"),
    _key("digitalocean_token", r"do[opr]_v1_[a-f0-9]{64}", "_v1_"),
    _key(
        "groq_key",
        r"(?:gsk|xai|pplx|r8|nvapi)[_-][A-Za-z0-9_-]{32,}",
        "gsk_",
        "xai-",
        "pplx-",
        "r8_",
        "nvapi-",
    ),
    _key("telegram_token", r"\d{8,10}:AA[A-Za-z0-9_-]{33}", ":aa"),
    _key("alibaba_key", r"LTAI[A-Za-z0-9]{12,26}", "ltai"),
    _key("tencent_key", r"AKID[A-Za-z0-9]{32}", "akid"),
    _key("jwt", r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}", "eyj"),
    Rule(
        kind="bearer_token",
        pattern=re.compile(
            r"(?i)\b(?:bearer|basic|token)[ \t]+(?P<value>[A-Za-z0-9._~+/-]{16,}=*)"
        ),
        hints=("bearer", "basic", "token"),
        run=_RUN,
        check=is_mixed,
    ),
    Rule(
        kind="url_password",
        pattern=re.compile(r"(?i)\b[a-z][a-z0-9+.-]*://[^\s:/@?#]*:(?P<value>[^\s/@]{3,})@"),
        hints=("://",),
        check=is_secret_value,
    ),
    Rule(
        kind="password",
        pattern=re.compile(
            rf"(?i)(?<![a-z]){_NAMED}[\"'`]?[ \t]*(?:=>|:=|==?|:)[ \t]*"
            r"(?P<quote>[\"'`]?)(?P<value>[^\s\"'`,;{}<>|&，。；]{4,})"
        ),
        hints=("pass", "pwd", "secret", "key", "token", "credential"),
        check=is_mixed,
    ),
    Rule(
        kind="password",
        pattern=re.compile(
            r"(?i)(?<![a-z])(?:pass(?:word|wd|phrase)|pwd|secret)"
            r"(?:[\"'`]?[ \t]*(?:=>|:=|==?)[ \t]*[\"'`]?|[\"'`]?[ \t]*:[ \t]*[\"'`])"
            r"(?P<value>[^\s\"'`,;{}<>|&()，。；]{6,})"
        ),
        hints=("pass", "pwd", "secret"),
        check=is_secret_value,
    ),
    Rule(
        kind="password",
        pattern=re.compile(
            rf"(?i)(?<![a-z]){_NAMED}[ \t]+(?:for [^\s]{{1,40}} )?(?:is|was|to|are)[ \t:]+"
            r"[\"'`]?(?P<value>[^\s\"'`,;{}<>|，。；]{6,}?)(?=[\"'`,;.!?]*(?:\s|$))"
        ),
        hints=("pass", "pwd", "secret", "key", "token", "credential"),
        check=is_mixed,
    ),
    Rule(
        kind="password",
        pattern=re.compile(
            r"(?:密码|口令|密钥|秘钥|令牌|通行码|密匙)[ \t]*"
            r"(?:是|为|改成|设为|设置为|[:：=])+[ \t]*"
            r"[\"'“‘「]?(?P<value>[!-~]{4,}?)(?=[\"'”’」，。；、,;.]|[^!-~]|$)"
        ),
        hints=("密码", "口令", "密钥", "秘钥", "令牌", "通行码", "密匙"),
        check=is_secret_value,
    ),
    Rule(
        kind="card",
        pattern=re.compile(r"(?<![\w.#/-])\d(?:[ -]?\d){12,18}(?![\w-]|\.\d)"),
        hints=(NUMBER,),
        check=is_card,
    ),
)

SECRET_NAME: Final = re.compile(
    r"(?i)(?:.*[_\-. ])?(?:pass(?:word|wd|phrase|code)|pwd|secret|(?:api|access|account|private"
    r"|auth|signing|encryption)[_-]?key|(?:secret|client)[_-]?(?:access[_-]?)?(?:key|secret)"
    r"|(?:auth|access|refresh|bearer|id|session|api|bot)?[_-]?token|authorization|credentials?)"
)
"""Names of JSON fields whose value is a secret, whatever it looks like."""
