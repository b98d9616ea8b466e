"""Secrets: keys of well-known services, tokens, private keys, passwords, payment cards.

The shapes of the keys are those that the services document.
"""

from __future__ import annotations

import re
from typing import Final

from zero_mem.redaction.checks import (
    is_basic,
    is_card,
    is_key,
    is_mixed,
    is_private_key,
    is_secret_path,
    is_secret_value,
    is_strong,
)
from zero_mem.redaction.columns import COLUMNS
from zero_mem.redaction.commands import COMMANDS
from zero_mem.redaction.passwords import PASSWORDS
from zero_mem.redaction.rules import Check, Rule

_START: Final = r"(?<![A-Za-z0-9_-])"
_END: Final = r"(?![A-Za-z0-9])"

# Keys that say whose they are

_HEX: Final = "0abcdef"
_GITLAB: Final = ("glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glsoat-", "glagent-")
# A bot's identity number in Base64.
_DISCORD: Final = tuple(
    two + third
    for two in ("mt", "mj", "mz", "nd", "nt", "nj", "nz", "od", "ot")
    for third in "aeimquycgk"
)


def _key(kind: str, pattern: str, *hints: str, check: Check = is_key) -> Rule:
    compiled = re.compile(_START + pattern + _END)
    return Rule(kind=kind, pattern=compiled, hints=hints, in_run=True, check=check)


_SERVICES: Final = {
    "abskq": r"ABSKQ[A-Za-z0-9+/]{60,}=*",
    "age-secret-key-": r"AGE-SECRET-KEY-1[A-Z0-9]{50,}",
    "akcp": r"AKCp[A-Za-z0-9]{60,}",
    "amzn0.": r"amzn1\.(?:oa2-cs\.v1\.)?[a-z0-9.]{40,}",
    "apify_api_": r"apify_api_[A-Za-z0-9]{34,}",
    "ata atc": r"AT(?:AT|CT)T3[A-Za-z0-9_=-]{50,}",
    "atbb": r"ATBB[A-Za-z0-9]{24,}",
    "aqvn": r"AQVN[A-Za-z0-9_-]{35,}",
    "bkua_": r"bkua_[a-f0-9]{40}",
    "bsa": r"BSA[A-Za-z0-9_-]{27,}",
    "ccipat_": r"CCIPAT_[A-Za-z0-9_]{40,}",
    "cfpat-": r"CFPAT-[A-Za-z0-9_-]{40,}",
    "cio": r"cio[A-Za-z0-9]{32}",
    "csk-": r"csk-[a-z0-9]{40,}",
    "dt0c00.": r"dt0[a-z]01\.[A-Z0-9]{24}\.[A-Z0-9]{64}",
    "duffel_": r"duffel_(?:test|live)_[A-Za-z0-9_=-]{40,}",
    "e0b_": r"e2b_[a-f0-9]{40}",
    "eaa": r"EAA[A-Za-z0-9]{60,}",
    "fc-": r"fc-[a-f0-9]{32}",
    "fm0": r"fm[12][a-z]?_[A-Za-z0-9+/=_-]{40,}",
    "fo0_": r"fo1_[A-Za-z0-9_-]{40,}",
    "jina_": r"jina_[A-Za-z0-9_-]{40,}",
    "lin_oauth_": r"lin_oauth_[A-Za-z0-9]{32,}",
    "nfp_": r"nfp_[A-Za-z0-9]{36,}",
    "npg_": r"npg_[A-Za-z0-9]{10,}",
    "nri nrr nrj nrb": r"NR(?:II|RA|JS|BR|IQ)-[A-Za-z0-9_-]{19,}",
    "oy0": r"oy2[a-z0-9]{43}",
    "ops_eyj": r"ops_eyJ[A-Za-z0-9_-]{60,}",
    "pa-": r"pa-[A-Za-z0-9_-]{43}",
    "pat-": r"pat-(?:na|eu)\d-[a-f0-9-]{36}",
    "pul-": r"pul-[a-f0-9]{40}",
    "re_": r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{24}",
    "rnd_": r"rnd_[A-Za-z0-9]{28,}",
    "rpa_": r"rpa_[A-Za-z0-9]{40,}",
    "rubygems_": r"rubygems_[a-f0-9]{48}",
    "sb_secret_": r"sb_secret_[A-Za-z0-9_-]{20,}",
    "sec0 seca secb secc secd sece secf": r"SEC[a-f0-9]{64}",
    "sgp_": r"sgp_(?:[a-f0-9]{16}_|local_)?[a-f0-9]{40}",
    "shippo_": r"shippo_(?:live|test)_[a-f0-9]{40}",
    "sk.eyj": r"sk\.eyJ[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{16,}",
    "sl.": r"sl\.(?:u\.)?[A-Za-z0-9_-]{60,}",
    "sntryu_": r"sntryu_[a-f0-9]{64}",
    "sqa sqp squ": r"sq[apu]_[a-f0-9]{40}",
    "tfp_": r"tfp_[A-Za-z0-9_-]{40,}",
    "tskey-": r"tskey-[a-z]+-[A-Za-z0-9]+-[A-Za-z0-9]{20,}",
    "vca vcp vci vck vcr": r"vc[acpikr]_[A-Za-z0-9]{24,}",
    "wandb_v0_": r"wandb_v1_[A-Za-z0-9_]{40,}",
    "xkeysib-": r"xkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}",
    "xsmtpsib-": r"xsmtpsib-[a-f0-9]{64}-[A-Za-z0-9]{16}",
    "bce-v0/": r"bce-v3/ALTAK-[A-Za-z0-9]{16,}/[a-f0-9]{32,}",
    "aklt": r"AKLT[A-Za-z0-9_=-]{24,}",
    "dapi": r"dapi[a-f0-9]{32}(?:-\d)?",
    "dp.pt. dp.st. dp.ct. dp.sa.": r"dp\.[a-z]{2}\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,}",
    "eaaa": r"EAAA[A-Za-z0-9_-]{50,}",
    "figd_": r"figd_[A-Za-z0-9_-]{36,}",
    "fw_": r"fw_[A-Za-z0-9]{22,}",
    "glc_": r"glc_[A-Za-z0-9+/]{32,}=*",
    "glsa_": r"glsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}",
    "hrku-": r"HRKU-[A-Za-z0-9_-]{36,}",
    "hvb.": r"hvb\.[A-Za-z0-9_-]{60,}",
    "hvs.": r"hvs\.[A-Za-z0-9_-]{24,}",
    "key-": r"key-[a-f0-9]{32}",
    "lin_api_": r"lin_api_[A-Za-z0-9]{32,}",
    "lsv0_": r"lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}",
    "nrak-": r"NRAK-[A-Z0-9]{27}",
    "ntn_": r"ntn_[A-Za-z0-9]{40,}",
    "pcsk_": r"pcsk_[A-Za-z0-9_]{50,}",
    "phc_": r"phc_[A-Za-z0-9]{40,}",
    "pmak-": r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}",
    "pscale_": r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{32,}",
    "sbp_": r"sbp_[a-f0-9]{40}",
    "secret_": r"secret_[A-Za-z0-9]{43}",
    "shp": r"shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}",
    "sntrys_": r"sntrys_[A-Za-z0-9+/=_-]{40,}",
    "sq0": r"sq0(?:atp|csp)-[A-Za-z0-9_-]{22,}",
    "tvly-": r"tvly-(?:[a-z]+-)?[A-Za-z0-9_-]{20,}",
}
"""Keys of further services, by how they begin, in lower case and with 0 for any digit."""

_KEYS: Final = (
    _key("anthropic_key", r"sk-ant-[A-Za-z0-9_-]{16,}", "sk-ant-"),
    _key("openai_key", r"sk-(?!ant-)(?:[a-z]+-)?[A-Za-z0-9_-]{20,}", "sk-"),
    # One in thirty has no digit.
    _key(
        "aws_key",
        r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}",
        *("akia", "asia", "abia", "acca"),
        check=is_secret_value,
    ),
    _key("github_token", r"gh[pousr]_[A-Za-z0-9]{36,}", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    _key("github_token", r"github_pat_[A-Za-z0-9_]{22,}", "github_pat_"),
    _key("gitlab_token", r"gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent)-[A-Za-z0-9_.-]{20,}", *_GITLAB),
    _key("slack_token", r"xoxe\.xox[bp]-[A-Za-z0-9.-]{12,}", "xoxe."),
    _key("slack_token", r"xox[abceoprs]-[A-Za-z0-9.-]{12,}", "xox"),
    _key("slack_token", r"xapp-[A-Za-z0-9-]{12,}", "xapp-"),
    _key("stripe_key", r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}", "sk_", "rk_"),
    _key("service_key", r"sk_[a-f0-9]{48}", "sk_"),
    _key(
        "discord_token",
        r"[MNO][A-Za-z0-9]{23,25}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38}",
        *_DISCORD,
    ),
    _key("stripe_key", r"whsec_[A-Za-z0-9+/]{24,}=*", "whsec_"),
    _key("google_key", r"AIza[A-Za-z0-9_-]{35}", "aiza"),
    _key("google_key", r"ya29\.[A-Za-z0-9_-]{20,}", "ya00."),
    _key("google_key", r"GOCSPX-[A-Za-z0-9_-]{20,}", "gocspx-"),
    _key("huggingface_token", r"hf_[A-Za-z0-9]{30,}", "hf_"),
    _key("package_token", r"npm_[A-Za-z0-9]{36}", "npm_"),
    _key("package_token", r"pypi-[A-Za-z0-9_-]{50,}", "pypi-"),
    _key("package_token", r"dckr_[op]at_[A-Za-z0-9_-]{20,}", "dckr_"),
    _key("sendgrid_key", r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}", "sg."),
    _key("twilio_key", r"SK[0-9a-f]{32}", *(f"sk{digit}" for digit in _HEX)),
    _key("digitalocean_token", r"do[opr]_v1_[a-f0-9]{64}", "doo_v", "dop_v", "dor_v"),
    _key("model_key", r"(?:gsk|r8)_[A-Za-z0-9]{32,}", "gsk_", "r0_"),
    _key("model_key", r"(?:xai|pplx|nvapi)-[A-Za-z0-9_-]{32,}", "xai-", "pplx-", "nvapi-"),
    _key("alibaba_key", r"LTAI[A-Za-z0-9]{12,26}", "ltai"),
    _key("tencent_key", r"AKID[A-Za-z0-9]{32}", "akid"),
    _key("jwt", r"eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){2,4}(?<![.])", "eyj"),
    *(_key("service_key", pattern, *hints.split()) for hints, pattern in _SERVICES.items()),
    # The secret that stands beside an AWS key.
    Rule(
        kind="aws_key",
        pattern=re.compile(
            r"(?:AKIA|ASIA)[A-Z2-7]{16}(?![A-Z0-9]).{1,60}?(?<![A-Za-z0-9+/])"
            r"(?P<value>[A-Za-z0-9+/]{40})(?![A-Za-z0-9+/=])",
            re.DOTALL,
        ),
        hints=("akia", "asia"),
        in_run=True,
        check=is_strong,
    ),
    # The secrets that stand beside the names of accounts of Alibaba, Tencent and Twilio.
    Rule(
        kind="service_key",
        pattern=re.compile(
            r"(?:LTAI[A-Za-z0-9]{12,26}|AKID[A-Za-z0-9]{32}|AC[0-9a-f]{32})(?![A-Za-z0-9])"
            r".{1,60}?(?<![A-Za-z0-9+/])"
            r"(?P<value>[A-Za-z0-9]{30}|[A-Za-z0-9]{32})(?![A-Za-z0-9+/=])",
            re.DOTALL,
        ),
        hints=("ltai", "akid", *(f"ac{digit}" for digit in _HEX)),
        in_run=True,
        check=is_strong,
    ),
    # What opens a disk encrypted with BitLocker
    Rule(
        kind="password",
        pattern=re.compile(r"(?<![\w-])\d{6}(?:-\d{6}){7}(?![\w-])"),
        hints=("000000-000000-000000",),
        needs="0000",
    ),
    # Keys that begin with a digit, or have their sign inside or at the end.
    Rule(
        kind="google_key",
        pattern=re.compile(_START + r"1//0[A-Za-z0-9_-]{40,}" + _END),
        hints=("0//0",),
        in_run=True,
        before=64,
    ),
    Rule(
        kind="service_key",
        pattern=re.compile(
            r"(?i)airtable[^\n]{0,40}?(?<![a-z0-9])(?P<value>pat[a-z0-9]{14}\.[a-f0-9]{64})"
        ),
        hints=("airtable",),
        needs="0",
    ),
    Rule(
        kind="service_key",
        pattern=re.compile(r"(?<![A-Za-z0-9])[0-9a-f]{32}-us\d{1,2}" + _END),
        hints=("-us0",),
        in_run=True,
        before=33,
    ),
    Rule(
        kind="azure_secret",
        pattern=re.compile(
            r"(?<![A-Za-z0-9_~.-])[A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.-]{31,34}(?![A-Za-z0-9_~-])"
        ),
        hints=("0q~",),
        in_run=True,
        before=16,
    ),
    Rule(
        kind="telegram_token",
        pattern=re.compile(r"(?:(?<![A-Za-z0-9])|(?<=bot))\d{8,10}:AA[A-Za-z0-9_-]{33}" + _END),
        hints=("0:aa",),
        needs="0000",
        before=12,
    ),
)

# What stands where secrets stand

_PLACES: Final = (
    Rule(
        kind="private_key",
        pattern=re.compile(
            r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
            # Whole, in lines or in one; or what is left of one that was cut or quoted in code.
            r"(?:[A-Za-z0-9+/=\s\\:;,._()@<>-]{0,20000}?"
            r"-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
            r"|(?:[\s\\nr\"'+|>]*[A-Za-z0-9+/=]{20,})+)"
        ),
        hints=("-----begin ",),
        check=is_private_key,
    ),
    Rule(
        kind="slack_webhook",
        pattern=re.compile(
            r"(?i)hooks\.slack\.com/(?:services|workflows|triggers)/(?P<value>[A-Za-z0-9/_-]{20,})"
        ),
        hints=("hooks.slack.com/",),
        in_run=True,
    ),
    Rule(
        kind="webhook",
        pattern=re.compile(r"(?i)hooks\.zapier\.com/hooks/catch/(?P<value>[a-z0-9/]{8,})"),
        hints=("hooks.zapier.com/",),
        in_run=True,
    ),
    Rule(
        kind="webhook",
        pattern=re.compile(r"(?i)hooks?[a-z0-9.-]*/(?P<value>[A-Za-z0-9@/_=-]{12,})"),
        hints=("hook",),
        needs="0",
        check=is_secret_path,
    ),
    Rule(
        kind="signed_url",
        pattern=re.compile(
            r"(?i)(?<=[?&;])(?:key|code|ticket|auth|sign|signature|hmac|sid|session(?:_?id)?|jwt)="
            r"(?P<value>[A-Za-z0-9%+/._~-]{20,}=*)"
        ),
        hints=("key=", "code=", "ticket=", "auth=", "sign", "hmac=", "sid=", "session", "jwt="),
        in_run=True,
        check=is_secret_path,
    ),
    Rule(
        kind="signed_url",
        pattern=re.compile(r"(?i)(?<=[?&;])sig=(?P<value>[A-Za-z0-9%+/_-]{20,}=*)"),
        hints=("sig=",),
        in_run=True,
        check=is_mixed,
    ),
    Rule(
        kind="signed_url",
        pattern=re.compile(r"(?i)(?:x-(?:amz|goog)-)?signature=(?P<value>[a-f0-9]{40,})"),
        hints=("x-amz-s", "x-goog-s", "signature="),
        in_run=True,
    ),
    Rule(
        kind="bearer_token",
        pattern=re.compile(r"(?i)(?<![a-z0-9])bearer[ \t]+(?P<value>[a-z0-9._~+/-]{16,}=*)"),
        hints=("bearer",),
        needs="0",
        check=is_mixed,
    ),
    Rule(
        kind="bearer_token",
        pattern=re.compile(r"(?i)(?<![a-z0-9])token[ \t]+(?P<value>[a-z0-9._~+/-]{16,}=*)"),
        hints=("token",),
        needs="0",
        check=is_strong,
    ),
    Rule(
        kind="bearer_token",
        pattern=re.compile(r"(?i)(?<![a-z0-9])basic[ \t]+(?P<value>[a-z0-9+/]{8,}=*)"),
        hints=("basic",),
        needs="0",
        check=is_basic,
    ),
    Rule(
        kind="bearer_token",
        pattern=re.compile(
            r"(?i)(?:authorization[\"']?[ ]?[:=][ ]?[\"']?(?!aws4-)(?:[a-z-]+[ ])?"
            r"|ssws[ ]|auth[ ](?:plain|login)[ ])"
            r"(?P<value>[a-z0-9._~+/-]{12,}=*)"
        ),
        hints=("auth", "ssws"),
        needs="0",
        check=is_mixed,
    ),
    Rule(
        kind="cookie",
        pattern=re.compile(
            r"(?i)cookie[\"']?: ?[\"']?(?P<value>[\w.-]+=[^\s;,\"']{12,}[^\r\n\"']*)"
        ),
        hints=("cookie",),
        needs="0",
        check=is_mixed,
    ),
    # Outside of a cookie's header: ;jsessionid=…, PHPSESSID=…
    Rule(
        kind="cookie",
        pattern=re.compile(
            r"(?i)(?:jsessionid|phpsessid|session_?id|connect\.sid|asp\.net_sessionid)="
            r"(?P<value>[a-z0-9._%~-]{16,})"
        ),
        hints=(
            "jsessionid=",
            "phpsessid=",
            "sessionid=",
            "session_id=",
            "connect.sid=",
            "asp.net_",
        ),
        in_run=True,
        check=is_mixed,
    ),
    Rule(
        kind="url_password",
        pattern=re.compile(r"://(?P<user>[^\s:/@?#\"']*):(?!(?P=user)@)(?P<value>[^\s/@\"']{3,})@"),
        hints=("://",),
        needs="@",
        check=is_secret_value,
    ),
    # https://…@host
    Rule(
        kind="url_password",
        pattern=re.compile(r"://(?P<value>[A-Za-z0-9_.-]{20,})@"),
        hints=("://",),
        needs="@",
        check=is_strong,
    ),
)

_NOT_A_CARD: Final = "".join(
    rf"(?<!{name}{end})"
    for name, ends in {
        "order": (" ", " #", ": ", " number ", " number: ", " no ", " no. ", " id ", " id: "),
        "tracking": (" ", ": ", " number ", " number: ", " no. ", " id ", " id: "),
        "invoice": (" ", " #", ": ", " number ", " number: ", " no. "),
        "单号": ("", " ", "：", ":", ": ", "是", "为"),
        "编号": ("", " ", "：", ":", ": ", "是", "为"),
    }.items()
    for end in ends
)


def _card(groups: str) -> Rule:
    pattern = rf"(?i)(?<![\w.#/+-])(?<!\d[ ]){_NOT_A_CARD}(?:{groups})(?![\w-]|\.\d|[ ]\d{{4}})"
    return Rule(
        kind="card",
        pattern=re.compile(pattern, re.ASCII),
        needs="0000",
        hints=("0000000000000", "0000 0000", "0000-0000", "000000 0000000"),
        check=is_card,
    )


# What follows a card's number may be its last group, its expiry or its security code.
_CARDS: Final = (
    _card(r"\d{13,19}|\d{4}(?:[ -]\d{4}){3}|\d{4}[ -]\d{6}[ -]\d{4,5}|\d{6}[ -]\d{13}"),
    _card(r"\d{4}(?:[ -]\d{4}){3}[ -]\d{1,3}"),
)

SECRETS: Final[tuple[Rule, ...]] = (
    *_PLACES[:1],
    *_KEYS,
    *_PLACES[1:],
    *PASSWORDS,
    *COMMANDS,
    *COLUMNS,
    *_CARDS,
)
