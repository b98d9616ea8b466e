"""What redaction finds, what it leaves, and what stands in its place."""

from __future__ import annotations

import re
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from secret_samples import CARD, EMAIL, GITHUB, ID, JWT, OPENAI, PASSWORD, PEM, PHONE, SECRETS

from zero_mem.errors import InvalidInput, MissingExtra
from zero_mem.redaction import Found, Redaction, Redactors
from zero_mem.redaction.personal import PERSONAL
from zero_mem.redaction.presidio import Presidio
from zero_mem.redaction.redactor import Redactor
from zero_mem.redaction.secrets import SECRETS as SECRETS_RULES
from zero_mem.types import Blob, Json

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "bench"))

bench = pytest.importorskip("redaction")
labelled = pytest.importorskip("labelled.samples")

pytestmark = pytest.mark.req("prod:redact")


def redactor(**options: Any) -> Redactor:
    return Redactors(Redaction(**options)).of("")


DEFAULT = redactor()
ALL = redactor(settings={"personal": "mask"})
HASHED = redactor(settings={"secrets": "hash", "personal": "hash"}, key=b"k")


# Samples


@pytest.mark.parametrize("part", labelled.PARTS)
def test_the_bounds_are_kept_on_labelled_samples(part: str) -> None:
    counted = bench.tally(labelled.samples(part), bench.finder())
    assert counted.recall() >= bench.RECALL, counted.missed
    assert counted.precision() >= bench.PRECISION, counted.alarmed


def test_there_are_samples_enough_of_every_kind() -> None:
    parts = [bench.tally(labelled.samples(part), bench.finder()) for part in labelled.PARTS]
    whole = bench.merged(parts)
    assert whole.marked.total() >= 250
    assert whole.negatives["samples"] >= 300
    kinds = {rule.kind for rule in (*SECRETS_RULES, *PERSONAL)}
    assert kinds <= whole.marked.keys()


def test_each_part_has_the_record_of_its_first_reading() -> None:
    assert tuple(bench.FIRST_READINGS) == labelled.PARTS
    for part, kinds in bench.BY_KIND.items():
        assert tuple(map(sum, zip(*kinds.values(), strict=True))) == bench.FIRST_READINGS[part]
    shown = bench.shown({part: bench.tally([], ALL) for part in ("sixth", "eighth")})
    assert "| sixth | 0 | 0 | 86.0%, 6 false |" in shown
    assert "| password | 147 of 188 | 144 of 146 |" in shown


def test_no_sample_in_the_repository_looks_like_a_live_key() -> None:
    folder = Path(bench.__file__).parent / "labelled"
    keys = {kind for kind in DEFAULT._actions if kind.endswith(("_key", "_token"))} - {"model_key"}
    for part in labelled.PARTS:
        text = (folder / f"{part}.txt").read_text(encoding="utf-8")
        assert [text[f.start : f.end] for f in DEFAULT.find(text) if f.kind in keys] == []


def test_the_bench_lists_what_is_missed_and_what_is_a_false_alarm() -> None:
    marked = labelled.Marked(start=0, end=4, kind="password")
    missed = labelled.Sample(text="plain words", group="", marked=(marked,))
    alarm = labelled.Sample(text=f"key {GITHUB}", group="", marked=())
    counted = bench.tally([missed, alarm], ALL)
    assert (counted.recall(), counted.precision(), counted.ok()) == (0.0, 0.0, False)
    assert "plai" in counted.missed[0]
    assert GITHUB not in counted.alarmed[0]


# Placeholders


@pytest.mark.parametrize(("kind", "secret"), SECRETS.items())
def test_a_placeholder_names_the_kind_and_the_text_around_stays(kind: str, secret: str) -> None:
    before, after = "Ключ, 键 — é\t\r\n <", "> und weiter…\n\n  Ende."
    assert DEFAULT.text(before + secret + after) == f"{before}[redacted:{kind}]{after}"


@pytest.mark.parametrize(
    "written",
    [
        " ".join(CARD[at : at + 4] for at in range(0, 16, 4)),
        "-".join(CARD[at : at + 4] for at in range(0, 16, 4)),
        "3782 " + "822463 " + "10005",
        "622202 " + "0200112233446",
    ],
)
def test_cards_are_found_however_they_are_grouped(written: str) -> None:
    assert DEFAULT.text(f"pay {written} 04/30") == "pay [redacted:card] 04/30"
    assert DEFAULT.text(f"order number {written}") == f"order number {written}"


def test_personal_data_is_kept_unless_asked_for() -> None:
    text = f"mail {EMAIL}, phone {PHONE}, id {ID}"
    assert DEFAULT.text(text) is text
    assert (
        ALL.text(text) == "mail [redacted:email], phone [redacted:phone], id [redacted:chinese_id]"
    )


def test_full_width_digits_are_read_as_digits_and_the_text_keeps_its_own() -> None:
    wide = PHONE.translate({ord(d): ord(d) + 0xFEE0 for d in "0123456789"})
    assert ALL.text(f"ＡＢＣ：{wide}，谢谢") == "ＡＢＣ：[redacted:phone]，谢谢"


def test_equal_values_have_equal_digests_under_one_key_only() -> None:
    spaced = f"{PHONE[:3]} {PHONE[3:7]} {PHONE[7:]}"
    first, second = HASHED.text(f"a {PHONE}"), HASHED.text(f"b {spaced}")
    assert first[2:] == second[2:]
    assert re.fullmatch(r"\[phone:[0-9a-f]{16}\]", first[2:])
    other = redactor(settings={"personal": "hash"}, key=b"other")
    assert other.text(f"a {PHONE}") != first
    assert HASHED.text(f"a {PHONE[:-1]}9") != first
    assert HASHED.text(EMAIL) == HASHED.text(EMAIL.upper()) != HASHED.text("k." + EMAIL)
    assert HASHED.text(GITHUB) != HASHED.text(GITHUB[:4] + GITHUB[4:].swapcase())


def test_drop_leaves_nothing_and_keep_everything() -> None:
    dropping = redactor(settings={"secrets": "drop"})
    assert dropping.text(f"use {GITHUB} now") == "use  now"
    assert dropping.value({"a": {"token": GITHUB, "n": 1}}) == {"a": {"n": 1}}
    assert dropping.value({"password": "swordfish", "n": 1}) == {"n": 1}
    assert dropping.body(GITHUB) == "[redacted:github_token]"  # a body is never empty
    keeping = redactor(settings={"secrets": "keep"})
    text = f"{GITHUB} {PEM}"
    assert keeping.text(text) is text


def test_a_kind_wins_over_its_group_whatever_their_order() -> None:
    for both in ({"personal": "mask", "email": "keep"}, {"email": "keep", "personal": "mask"}):
        assert redactor(settings=both).text(f"{EMAIL} {PHONE}") == f"{EMAIL} [redacted:phone]"


def test_rules_of_your_own_come_first() -> None:
    own = redactor(settings={"order_no": {"pattern": r"ORD-\d+", "action": "drop"}})
    assert own.text("order ORD-1207.") == "order ."
    named = redactor(settings={"staff": {"pattern": r"staff (?P<value>\d+)"}})
    assert named.text("staff 1207 left") == "staff [redacted:staff] left"
    over = redactor(settings={"ours": {"pattern": "gh" + r"p_\w+"}})
    assert over.text(GITHUB) == "[redacted:ours]"


# Bodies


def test_json_is_searched_in_values_names_lists_and_by_the_names_of_fields() -> None:
    value = {
        "user": "li",
        "password": "swordfish",
        "apiKey": "plainwords",
        "nested": [{"client_secret": "abcdefgh"}, f"use {GITHUB}", 7, None, True],
        "card": int(CARD),
        GITHUB: "as a name",
        "tokens": 512,
        "token": None,
        "secret": "********",
    }
    found = DEFAULT.body(Json(value))
    assert isinstance(found, Json)
    field = "[redacted:secret_field]"
    assert found.value["password"] == found.value["apiKey"] == field
    assert found.value["nested"] == [
        {"client_secret": field},
        "use [redacted:github_token]",
        7,
        None,
        True,
    ]
    assert found.value["card"] == "[redacted:card]"
    assert (found.value["tokens"], found.value["token"]) == (512, None)
    assert found.value["secret"] == "********"
    assert not any(GITHUB in name for name in found.value)
    assert "as a name" in found.value.values()


def test_a_blob_of_text_is_searched_and_another_is_left() -> None:
    data = f"key: {GITHUB}".encode()
    for media_type in ("text/plain", "application/json", "application/vnd.x+json"):
        clean = DEFAULT.body(Blob(data=data, media_type=media_type))
        assert clean == Blob(data=b"key: [redacted:github_token]", media_type=media_type)
    for blob in (
        Blob(data=data, media_type="image/png"),
        Blob(data=b"\xff\xfe", media_type="text/plain"),
    ):
        assert DEFAULT.body(blob) is blob


def test_a_name_and_a_value_side_by_side_are_a_field_and_its_value() -> None:
    pairs = [
        {"name": "DB_PASSWORD", "value": "swordfish"},
        {"key": "api-key", "val": "plainwords", "enabled": True},
        {"name": "colour", "value": "swordfish"},
        {"name": "DB_PASSWORD", "type": "string"},
    ]
    masked = DEFAULT.value(pairs)
    assert masked[0] == {"name": "DB_PASSWORD", "value": "[redacted:secret_field]"}
    assert masked[1] == {"key": "api-key", "val": "[redacted:secret_field]", "enabled": True}
    assert masked[2:] == pairs[2:]
    dropping = redactor(settings={"secrets": "drop"})
    assert dropping.value(pairs[0]) == {"name": "DB_PASSWORD"}


def test_a_number_is_a_secret_only_in_a_field_for_passwords() -> None:
    value = {"pin": 4711, "dbPassword": 123456, "token": 512, "is_secret": True, "secret": 7}
    masked = DEFAULT.value(value)
    assert masked == {
        **value,
        "pin": "[redacted:secret_field]",
        "dbPassword": "[redacted:secret_field]",
    }
    (hashed,) = HASHED.value({"pin": 4711}).values()
    assert hashed == HASHED.value({"pin": "4711"})["pin"]


@pytest.mark.parametrize("action", ["mask", "hash", "drop"])
@pytest.mark.parametrize(("kind", "secret"), [*SECRETS.items(), ("email", EMAIL), ("phone", PHONE)])
def test_each_kind_has_its_own_action(kind: str, secret: str, action: str) -> None:
    one = redactor(settings={"secrets": "keep", "personal": "keep", kind: action}, key=b"k")
    left = {"mask": rf"\[redacted:{kind}\]", "hash": rf"\[{kind}:[0-9a-f]{{16}}\]", "drop": ""}
    others = [value for name, value in SECRETS.items() if name != kind]
    text = one.text(f"a {secret} b\n{others[0]}")
    assert re.fullmatch(rf"a {left[action]} b\n{re.escape(others[0])}", text)
    value = one.value({"note": [f"a {secret}"], "whole": secret})
    assert re.fullmatch(f"a {left[action]}", value["note"][0])
    assert ("whole" in value) == (action != "drop")


# What stands around


@pytest.mark.parametrize(
    "text",
    [
        "| user | password |\n|---|---|\n| kim | {} |\n| jo | {} |\n\nSee b2b",
        "user,password,since\nkim,{},2024\njo,{},2025\n",
        "note\n\nuser\tsecret\nkim\t{}\njo\t{}",
        "INSERT INTO t (name, password, pin2) VALUES ('O''Neil, K', '{}', 'a1b2'); {}",
        'PASSWORDS = ["{}", "{}"]',
    ],
)
def test_a_column_or_list_of_passwords_is_read_by_its_name(text: str) -> None:
    masked = "[redacted:password]"
    with_secrets = text.format(PASSWORD, "Grey" + "Seal88")
    if text.startswith("INSERT"):
        with_secrets = text.format(PASSWORD, "")
        assert DEFAULT.text(with_secrets) == text.format(masked, "")
    else:
        assert DEFAULT.text(with_secrets) == text.format(masked, masked)


@pytest.mark.parametrize(
    "text",
    [
        "| password | string | b2b-2 |\n| token | number | c3c-3 |",
        "| name | password |\n|---|---|\n| kim | required |\n| jo | - |",
        "a row, of words, password\nthat, is, no9 table, at all\n",
        "passwords: [required, optional]",
    ],
)
def test_a_table_about_passwords_stays(text: str) -> None:
    assert DEFAULT.text(text) is text


@pytest.mark.parametrize(
    "text",
    [
        "cache key {}",
        "primary key: {}",
        "idempotency_key={}",
        "next_page_token: {}",
        '"nextToken": "{}"',
        "commit {}",
    ],
)
def test_random_names_of_other_things_stay(text: str) -> None:
    digest = "5d41402abc4b2a76b9719d911017c592" + "a0"
    assert DEFAULT.text(text.format(digest)) == text.format(digest)


# Settings


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("mask", "mapping"),
        ({"personal": "hide"}, "mask, hash, drop, keep"),
        ({"personal": None}, "mask, hash, drop, keep"),
        ({"personal": ["mask"]}, "mask, hash, drop, keep"),
        ({"emial": "mask"}, "no kind 'emial'"),
        ({"Email": "mask"}, "lower case"),
        ({"email": {"pattern": "x"}}, "rule already"),
        ({"own": {"action": "mask"}}, "pattern"),
        ({"own": {"pattern": "("}}, "own"),
        ({"own": {"pattern": "a*"}}, "empty"),
        ({"own": {"pattern": "a", "action": "hide"}}, "action"),
        ({"own": {"pattern": "a" * 501}}, "at most 500"),
        ({"own": {"pattern": "a", "flags": "i"}}, "pattern"),
    ],
)
def test_bad_settings_are_refused_with_what_is_accepted(given: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(said)):
        Redaction(settings=given)


def test_a_key_that_is_too_long_is_refused() -> None:
    with pytest.raises(InvalidInput, match="64 bytes"):
        Redaction(key=b"k" * 65)


# Engines


class Names:
    """Finds one name."""

    kinds = frozenset({"person"})

    def find(self, text: str) -> list[Found]:
        return [Found(m.start(), m.end(), "person") for m in re.finditer("Ada Lovelace", text)]


def test_an_engine_finds_more_and_its_kinds_have_actions() -> None:
    text = "Ada Lovelace wrote it"
    assert redactor(engines=(Names(),)).text(text) == "[redacted:person] wrote it"
    kept = redactor(engines=(Names(),), settings={"person": "keep"})
    assert kept.text(text) is text
    hashed = redactor(engines=(Names(),), settings={"person": "hash"})
    assert re.fullmatch(r"\[person:[0-9a-f]{16}\] wrote it", hashed.text(text))
    with pytest.raises(InvalidInput, match="person"):
        redactor(settings={"person": "keep"})
    Names.kinds = frozenset({"A Person"})
    try:
        with pytest.raises(InvalidInput, match="lower case"):
            redactor(engines=(Names(),))
    finally:
        Names.kinds = frozenset({"person"})


def test_a_private_key_that_was_cut_goes_and_prose_about_one_stays() -> None:
    cut = PEM.rpartition("\n")[0]
    assert (
        DEFAULT.text(f"log: {cut}… (cut)\nnext line")
        == "log: [redacted:private_key]… (cut)\nnext line"
    )
    quoted = "key = " + " + \n ".join(f'"{line}"' for line in PEM.splitlines())
    assert "k3Jx" not in DEFAULT.text(quoted)
    begin, end = PEM.splitlines()[0], PEM.splitlines()[-1]
    for text in (
        f"if '{begin}' in text: fail()\nmore",
        f"{begin}\n...\n{end}",
        f"{begin} opens it",
    ):
        assert DEFAULT.text(text) is text


def test_secrets_that_touch_are_all_found() -> None:
    assert DEFAULT.text(PEM + GITHUB) == "[redacted:private_key][redacted:github_token]"


def test_what_a_rule_found_is_not_given_to_an_engine_twice() -> None:
    class Wide(Names):
        def find(self, text: str) -> list[Found]:
            return [Found(0, len(text), "person"), Found(3, 3, "person")]

    assert redactor(engines=(Wide(),)).text(GITHUB) == "[redacted:github_token]"


class Analyzer:
    """Has the shape of Presidio's analyzer."""

    def __init__(self, **given: Any) -> None:
        self.given = given
        self.asked: list[tuple[str, list[str]]] = []

    def analyze(
        self, *, text: str, language: str, entities: list[str], score_threshold: float
    ) -> list[Any]:
        self.asked.append((language, entities))
        result = ModuleType("result")
        name = "王小明" if language == "zh" else "Ada Lovelace"
        start = text.find(name)
        result.__dict__.update(start=start, end=start + len(name), entity_type="PERSON", score=0.9)
        return [result] if start >= 0 else []


def test_presidio_is_asked_in_the_languages_whose_letters_are_there() -> None:
    analyzer = Analyzer()
    engine = Presidio(models={"en": "m", "zh": "n"}, analyzer=analyzer)
    assert engine.kinds == {"person", "location"}
    with_presidio = redactor(engines=(engine,))
    assert with_presidio.text("Ada Lovelace") == "[redacted:person]"
    assert with_presidio.text("王小明来了") == "[redacted:person]来了"
    assert with_presidio.text("12:30") == "12:30"
    assert [language for language, _ in analyzer.asked] == ["en", "zh"]


def stub_presidio(monkeypatch: pytest.MonkeyPatch, *, installed: bool) -> None:
    class Provider:
        def __init__(self, *, nlp_configuration: Any) -> None:
            self._models = nlp_configuration["models"]

        def create_engine(self) -> Any:
            return self._models

    presidio, nlp = ModuleType("presidio_analyzer"), ModuleType("presidio_analyzer.nlp_engine")
    presidio.__dict__.update(AnalyzerEngine=Analyzer, nlp_engine=nlp)
    nlp.__dict__["NlpEngineProvider"] = Provider
    spacy, util = ModuleType("spacy"), ModuleType("spacy.util")
    util.__dict__["is_package"] = lambda name: installed
    for module in (presidio, nlp, spacy, util):
        monkeypatch.setitem(sys.modules, module.__name__, module)


def test_presidio_is_loaded_once_with_the_first_text(monkeypatch: pytest.MonkeyPatch) -> None:
    stub_presidio(monkeypatch, installed=True)
    engine = Presidio(models={"en": "small"})
    threads = [threading.Thread(target=lambda: list(engine.find("Ada"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    analyzer = engine._loaded()
    assert analyzer.given["supported_languages"] == ["en"]
    assert analyzer.given["nlp_engine"] == [{"lang_code": "en", "model_name": "small"}]
    assert len(analyzer.asked) == 4


def test_presidio_never_downloads_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    stub_presidio(monkeypatch, installed=False)
    with pytest.raises(InvalidInput, match="spacy download small"):
        list(Presidio(models={"en": "small"}).find("Ada"))


def test_without_presidio_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "presidio_analyzer", None)
    with pytest.raises(MissingExtra, match="presidio"):
        list(Presidio().find("Ada"))


@pytest.mark.parametrize("given", [{"models": {}}, {"entities": "PERSON"}, {"score": 2}])
def test_presidio_refuses_what_makes_no_sense(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        Presidio(**given)


# Any text


PLACEHOLDER = re.compile(r"\[redacted:[a-z_]+\]")
ANY = st.text() | st.text(st.characters(codec=None, categories=None))
PIECES = st.sampled_from(
    [
        *(GITHUB, OPENAI, JWT, PEM, CARD, PHONE, EMAIL, ID),
        *(
            "password: ",
            PASSWORD,
            "密码是",
            "Bearer ",
            "https://u:",
            "@",
            "\\",
            '"',
            "[",
            "]",
            "=",
            " ",
        ),
        *("curl -u a:", "token is ", "[redacted:card]", "４", "\ud800", "İ", "\n", "<b>"),
    ]
)
MIXED = st.lists(PIECES | ANY, max_size=12).map("".join)


@given(MIXED)
@settings(max_examples=400)
def test_no_text_raises_and_what_was_redacted_is_not_redacted_again(text: str) -> None:
    for one in (ALL, HASHED):
        once = one.text(text)
        assert one.text(once) == once


@given(st.text(st.sampled_from("abcdefg hij ,.!?\n的一是不了人"), max_size=200))
def test_a_text_without_anything_to_find_is_the_same_object(text: str) -> None:
    assert ALL.text(text) is text


@given(MIXED)
def test_what_is_outside_of_what_was_found_stays_byte_for_byte(text: str) -> None:
    at = 0
    for piece in PLACEHOLDER.split(ALL.text(text)):
        at = text.index(piece, at) + len(piece)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        # A statement that was cut off, and each half of a pair of quotes could end a string.
        ("insert into t (a, password) values (" + "''" * 5000, None),
        ("insert into t (a, password) values ('it''s', 'Tr0ub''4dor&3x')", "[redacted:password]"),
        # A name of a secret at every other place, in what stands as its value.
        ("password=" * 30_000, "[redacted:password]"),
        ("0 " + "pw=" * 100_000, "[redacted:password]"),
        # Every row could be the first of a table.
        ("|password|pass|\n" + "|pass|pass|\n" * 30_000, None),
        ("|password|a|\n|Tr0ub4dor&3x|b|\n|c|\n|a|password|\n|b|Tr0ub4dor&3y|\n", "|b|[redacted"),
    ],
)
def test_a_table_a_statement_or_a_run_is_read_once_however_it_is_made(
    text: str, left: str | None
) -> None:
    """Each takes a moment; where it was read again and again, it took hours."""
    redacted = DEFAULT.text(text)
    if left is None:
        assert redacted == text
    else:
        assert left in redacted
        assert "dor&3" not in redacted
