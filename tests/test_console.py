"""The console over a real server: who comes in, its walls, and its words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from typing import Any

import pytest
from console_visitor import Visitor
from serving import Loopback, loopback

from zero_mem import Memory
from zero_mem.access import Grant
from zero_mem.api.problems import PROBLEMS
from zero_mem.console.app import PREFIX, Console
from zero_mem.console.pages import PAGES, record
from zero_mem.console.sessions import ANYONE, IDLE, LONGEST, Attempts, Sessions
from zero_mem.console.showing import visible
from zero_mem.console.words import LANGUAGES, preferred, words_in
from zero_mem.errors import ZeroMemError
from zero_mem.server.parts import chosen
from zero_mem.server.settings import Settings
from zero_mem.testing import FakeClock

CONSOLE = Path(__file__).resolve().parent.parent / "src" / "zero_mem" / "console"
TEMPLATES = sorted((CONSOLE / "templates").glob("*.html"))
SOURCES = [*TEMPLATES, *sorted(CONSOLE.rglob("*.py"))]


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with loopback() as running:
        yield running


@pytest.fixture
def local(tmp_path: Path, clock: FakeClock) -> Memory:
    opened = Memory.open(f"sqlite:///{tmp_path}/store.db", clock=clock, durability="normal")
    opened.namespace("acme", "alice").save("green tea", kind="user_pref", key="drink")
    opened.namespace("other", "bob").save("of somebody else")
    return opened


@pytest.fixture
def url(server: Loopback, local: Memory) -> Iterator[str]:
    with server.serving(local, Settings(recheck=0.0, poll=0.05), parts=[Console]) as address:
        yield address


@pytest.fixture
def visitor(url: str) -> Iterator[Visitor]:
    with Visitor(url) as opened:
        yield opened


def credential(memory: Memory, *grants: str, name: str = "app") -> str:
    made = memory.keyring.create(name, [Grant.parse(grant) for grant in grants])
    return made.credential


# Who comes in


@pytest.mark.req("console:auth")
def test_with_keys_a_visitor_logs_in_and_out(visitor: Visitor, local: Memory) -> None:
    key = credential(local, "read:acme/**")
    asked = visitor.raw("GET", "/?ns=acme/alice")
    assert (asked.status_code, asked.headers["location"].partition("?")[0]) == (
        303,
        "/console/login",
    )
    page = visitor.get("/", ns="acme/alice")
    answer = visitor.answer(page, "/login", key=key)
    assert answer.url.path == "/console/"
    assert answer.url.query == b"ns=acme/alice" or answer.url.query == b"ns=acme%2Falice"
    (cookie,) = (c for c in visitor.http.cookies.jar if c.name == "zero-mem-console")
    assert key not in str(cookie.value)
    assert (cookie.path, cookie.has_nonstandard_attr("HttpOnly")) == ("/console", True)
    assert str(cookie.get_nonstandard_attr("SameSite")).lower() == "strict"
    inside = visitor.get("/")
    assert "Key app" in inside.text
    assert "logged out" in visitor.send(inside, "/logout").text
    assert visitor.raw("GET", "/").status_code == 303


@pytest.mark.req("console:auth")
def test_a_key_shows_what_it_opens_and_no_more(visitor: Visitor, local: Memory) -> None:
    visitor.log_in(credential(local, "read:acme/**"))
    page = visitor.get("/")
    offered = [given["value"] for tag, given in page.tags if tag == "option" and "value" in given]
    assert "acme/alice" in offered
    assert "other/bob" not in offered
    assert "somebody else" not in page.text


@pytest.mark.req("console:auth")
def test_a_revoked_key_ends_its_session(visitor: Visitor, local: Memory) -> None:
    made = local.keyring.create("app", [Grant.parse("read:acme/**")])
    visitor.log_in(made.credential)
    local.keyring.revoke(made.key.key_id)
    assert "session has ended" in visitor.get("/").text
    assert visitor.raw("GET", "/").status_code == 303


@pytest.mark.req("console:auth")
def test_a_wrong_key_is_refused_and_guessing_is_slowed(visitor: Visitor, local: Memory) -> None:
    key = credential(local, "read:acme/**")
    for _ in range(10):
        assert "not valid" in visitor.log_in("zm_nothing\x00", status=401).text
    answer = visitor.answer(visitor.get("/login"), "/login", key=key)
    assert answer.status_code == 429
    assert int(answer.headers["retry-after"]) >= 1


@pytest.mark.req("console:auth")
@pytest.mark.parametrize(
    "where", ["https://evil.example/", "//evil.example", "/v1/stats", "/console/..%2f"]
)
def test_a_login_leads_nowhere_else(visitor: Visitor, local: Memory, where: str) -> None:
    key = credential(local, "read:acme/**")
    answer = visitor.answer(visitor.get("/login"), "/login", key=key, next=where)
    assert str(answer.url) == f"{visitor.origin}/console/"


@pytest.mark.req("console:auth")
def test_without_keys_it_is_open_to_this_machine_by_its_own_names(visitor: Visitor) -> None:
    assert "records" in visitor.get("/").text
    asked = visitor.raw("GET", "/", headers={"Host": "evil.example"})
    assert asked.status_code == 421
    assert "tea" not in asked.text


@pytest.mark.req("console:auth")
@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_form_of_another_site_is_refused(visitor: Visitor, headers: dict[str, str]) -> None:
    token = visitor.get("/").forms[1].fields["token"]
    answer = visitor.raw(
        "POST", "/preferences", data={"token": token, "language": "zh"}, headers=headers
    )
    assert (answer.status_code, "set-cookie" in answer.headers) == (403, False)


@pytest.mark.req("console:auth")
def test_a_form_is_taken_behind_a_proxy_that_names_the_server_otherwise(visitor: Visitor) -> None:
    token = visitor.get("/").forms[1].fields["token"]
    headers = {"Origin": "https://memory.example", "Sec-Fetch-Site": "same-origin"}
    data = {"token": token, "language": "zh"}
    answer = visitor.raw("POST", "/preferences", data=data, headers=headers)
    assert (answer.status_code, answer.headers["location"]) == (303, "/console/")
    assert visitor.get("/").tags[0] == ("html", {"lang": "zh-Hans"})


@pytest.mark.req("console:auth")
@pytest.mark.parametrize("token", [None, "", "0" * 64, "é"])
def test_a_form_without_its_token_is_refused(visitor: Visitor, token: str | None) -> None:
    data = {"language": "zh"} | ({} if token is None else {"token": token})
    answer = visitor.raw("POST", "/preferences", data=data, headers={"Origin": visitor.origin})
    assert (answer.status_code, "set-cookie" in answer.headers) == (403, False)


@pytest.mark.req("console:auth")
def test_sessions_end_with_rest_and_in_any_case_and_are_bounded() -> None:
    now = [0.0]
    sessions = Sessions(clock=lambda: now[0])
    with Memory.open("memory://") as memory:
        key = memory.keyring.create("app", [Grant.parse("read:a")]).key
    resting = sessions.begin("zm_a", key)
    now[0] = IDLE + 1
    assert sessions.who(resting.session) == ANYONE
    busy = sessions.begin("zm_a", key)
    began = now[0]
    while now[0] < began + LONGEST:
        assert sessions.who(busy.session) == busy
        now[0] += IDLE / 2
    now[0] += 1
    assert sessions.who(busy.session) == ANYONE
    first, *_ = [sessions.begin("zm_a", key) for _ in range(1001)]
    assert sessions.who(first.session) == ANYONE
    assert not sessions.is_form_token(busy, sessions.form_token(first))


@pytest.mark.req("console:auth")
def test_attempts_are_counted_by_address_and_come_back() -> None:
    now = [0.0]
    attempts = Attempts(clock=lambda: now[0])
    for _ in range(10):
        attempts.admit("10.0.0.1")
    with pytest.raises(ZeroMemError, match="too many attempts"):
        attempts.admit("10.0.0.1")
    attempts.admit("10.0.0.2")
    now[0] += 6.0
    attempts.admit("10.0.0.1")


# The walls around it


@pytest.mark.req("console:safe")
def test_every_answer_carries_the_policy_and_is_kept_nowhere(visitor: Visitor) -> None:
    for path in ("/", "/login", "/no-such-page", "", "/static/none.css"):
        headers = visitor.raw("GET", path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"


@pytest.mark.req("console:safe")
def test_no_template_has_a_script_a_style_or_another_host() -> None:
    for file in TEMPLATES:
        text = file.read_text("utf-8")
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=|https?:|//", text), (
            file
        )
        assert not re.search(r"\|\s*safe\b|autoescape", text), file


@pytest.mark.req("console:safe")
@pytest.mark.parametrize("path", ["/static/../app.py", "/static/%2e%2e/app.py", "/static/", "/x/"])
def test_no_other_file_is_served(visitor: Visitor, path: str) -> None:
    assert visitor.raw("GET", path).status_code == 404


@pytest.mark.req("console:safe")
def test_a_file_is_cached_by_its_version(visitor: Visitor) -> None:
    page = visitor.get("/")
    (style,) = (given["href"] for tag, given in page.tags if given.get("rel") == "stylesheet")
    answer = visitor.http.get(style)
    assert "immutable" in answer.headers["cache-control"]
    tag = answer.headers["etag"]
    bare = style.partition("?")[0]
    assert visitor.http.get(bare).headers["cache-control"] == "no-cache"
    assert visitor.http.get(bare, headers={"If-None-Match": tag}).status_code == 304


@pytest.mark.req("console:safe", "server:bad-input")
@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("ns=[1]", 400),
        ("ns=%ff", 400),
        ("ns=" + "a/" * 40, 400),
        ("path=x&self=y&visit=z", 200),
        ("notice=%3Cscript%3E", 200),
        ("&".join(f"a{n}=1" for n in range(300)), 400),
    ],
)
def test_a_wrong_query_is_a_page_that_says_so(visitor: Visitor, query: str, status: int) -> None:
    assert visitor.raw("GET", f"/?{query}").status_code == status


@pytest.mark.req("console:safe", "server:bad-input")
def test_other_methods_types_and_sizes_are_refused(visitor: Visitor) -> None:
    own = {"Origin": visitor.origin}
    assert visitor.raw("PUT", "/").status_code == 405
    assert visitor.raw("POST", "/preferences", json={}, headers=own).status_code == 415
    large = {"token": "x" * 3_000_000}
    assert visitor.raw("POST", "/preferences", data=large, headers=own).status_code == 413
    assert visitor.raw("POST", "/no-such-page", data={"a": "b"}, headers=own).status_code == 403


@pytest.mark.req("console:pages", "console:auth")
def test_what_goes_wrong_is_told_in_the_frame_of_who_may_see_it(
    visitor: Visitor, local: Memory
) -> None:
    wrong = visitor.get("/record", 404, ns="acme/alice", id="nothing")
    assert "There is nothing here" in wrong.text
    assert any("/console/records" in link for link in wrong.links)
    assert "/console/" in visitor.get("/no-such-page", 404).links
    credential(local, "read:acme/**")
    foreign = visitor.raw("GET", "/record?id=nothing", headers={"Host": "evil.example"})
    assert foreign.status_code in (303, 421)
    assert "acme" not in foreign.text


@pytest.mark.req("console:safe")
def test_characters_that_hide_are_written_out() -> None:
    assert visible("a\x00b\u202ec\ud800\n\td") == "a⟨U+0000⟩b⟨U+202E⟩c⟨U+D800⟩\n\td"


@pytest.mark.req("server:serve", "console:pages")
def test_a_browser_that_names_no_page_is_led_to_the_console(
    visitor: Visitor, server: Loopback
) -> None:
    found = visitor.http.get("/", headers={"Accept": "text/html,*/*"})
    assert (found.status_code, found.headers["location"]) == (307, "/console/")
    assert visitor.http.get("/", headers={"Accept": "application/json"}).status_code == 404


@pytest.mark.req("server:settings", "console:pages")
def test_a_setting_turns_it_off() -> None:
    assert Console in chosen(Settings())
    assert Console not in chosen(Settings(console=False))


# Words


@pytest.mark.req("console:languages")
def test_the_languages_have_the_same_words_with_the_same_places() -> None:
    def places(word: Any) -> set[str | None]:
        forms = [word] if isinstance(word, str) else list(word.values())
        return {name for form in forms for _, name, _, _ in Formatter().parse(form) if name}

    first, *others = [words_in(language).catalogue for language in LANGUAGES]
    for other in others:
        assert first.keys() == other.keys()
        assert {n: places(first[n]) for n in first} == {n: places(other[n]) for n in other}


@pytest.mark.req("console:languages")
def test_every_word_that_is_asked_for_is_there_and_every_word_is_asked_for() -> None:
    text = "\n".join(file.read_text("utf-8") for file in SOURCES)
    catalogue = words_in("en").catalogue
    asked = set(re.findall(r"""(?:\bt|\bsay)\(\s*["']([a-z0-9_]+\.[A-Za-z0-9_-]+)["'][,)]""", text))
    assert asked - catalogue.keys() == set()
    made = set(re.findall(r"""["']([a-z0-9_]+\.[a-z0-9_-]*)["']\s*~""", text))
    made |= set(re.findall(r"""["']([a-z0-9_]+\.)["']""", text))
    notices = {f"notice.{name}" for name in re.findall(r'notice="([a-z-]+)"', text)}
    notices |= {f"notice.{name}" for name in record.DONE.values()}
    assert notices - catalogue.keys() == set()
    named = asked | notices | {f"{page.name}.title" for page in PAGES}
    unused = [n for n in catalogue if n not in named and not any(n.startswith(m) for m in made)]
    assert [name for name in unused if not name.startswith("notice.ended")] == []


@pytest.mark.req("console:languages")
def test_every_way_to_fail_has_words() -> None:
    for language in LANGUAGES:
        words = words_in(language)
        assert [row.name for row in PROBLEMS if f"problem.{row.name}" not in words] == []


@pytest.mark.req("console:languages")
def test_no_template_has_a_word_of_its_own() -> None:
    names = {"Zero-Mem", "acme/alice", "[memo:]"}
    for file in TEMPLATES:
        text = re.sub(r"{#.*?#}|{%.*?%}|{{.*?}}", "", file.read_text("utf-8"), flags=re.DOTALL)
        shown = re.findall(
            r"""(?:aria-label|title|placeholder|alt|data-label)=["']([^"']*)""", text
        )
        shown += re.sub(r"<[^>]*>", "\n", text).split("\n")
        words = [each.strip() for each in shown if re.search(r"[^\W\d_]", each)]
        assert [word for word in words if not any(name in word for name in names)] == [], file


@pytest.mark.req("console:languages")
@pytest.mark.parametrize(
    ("accepted", "language"),
    [
        ("", "en"),
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        ("en;q=0.5, zh-Hant", "zh"),
        ("fr, en;q=0.2, zh;q=0.1", "en"),
        ("de", "en"),
        ("zh;q=x, en;q=0.1", "en"),
        (";;,=,q", "en"),
    ],
)
def test_the_language_is_the_browsers(accepted: str, language: str) -> None:
    assert preferred(accepted) == language


@pytest.mark.req("console:languages")
def test_numbers_times_and_plurals_are_the_languages(clock: FakeClock) -> None:
    english, chinese = words_in("en"), words_in("zh")
    assert english.number(1234567) == "1,234,567"
    assert english.size(1_250_000) == "1.25 MB"
    assert re.fullmatch(r"\d+ [A-Z][a-z]{2} \d{4}, \d\d:\d\d:\d\d UTC", english.moment(clock()))
    assert re.fullmatch(r"\d{4}年\d+月\d+日 \d\d:\d\d:\d\d UTC", chinese.moment(clock()))


@pytest.mark.req("console:languages")
def test_the_language_and_the_colours_are_chosen_and_kept(visitor: Visitor) -> None:
    page = visitor.get("/")
    assert page.tags[0] == ("html", {"lang": "en"})
    page = visitor.send(page, "/preferences", language="zh")
    assert page.tags[0] == ("html", {"lang": "zh-Hans"})
    page = visitor.send(page, "/preferences", scheme="dark")
    assert page.tags[0] == ("html", {"lang": "zh-Hans", "data-scheme": "dark"})
    assert "总览" in page.text
    page = visitor.send(page, "/preferences", scheme="<b>", language="xx")
    assert page.tags[0] == ("html", {"lang": "zh-Hans", "data-scheme": "dark"})


@pytest.mark.req("console:pages")
def test_the_prefix_is_where_the_server_leads() -> None:
    from zero_mem.server.app import CONSOLE as HOME

    assert PREFIX == HOME
