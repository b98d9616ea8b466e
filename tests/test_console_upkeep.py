"""The console's pages of conversations, costs, expiry, keys and backups over a real server."""

from __future__ import annotations

import asyncio
import random
import re
import shlex
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hostile
import pytest
from console_store import HOSTILE, NAME, filled
from console_talks import ADDRESSES, SPACE, talked
from console_visitor import Parsed, Visitor
from conversations import request, response, results, turn, user
from serving import Loopback, loopback
from typer.testing import CliRunner

from zero_mem import Memory, MemoryController, ZeroMemRuntime
from zero_mem.access import Grant
from zero_mem.cli.app import app
from zero_mem.console.app import Console
from zero_mem.console.pages import backup, keys
from zero_mem.console.pages.conversations import PROMPTS
from zero_mem.console.pages.expiry import calendar, log
from zero_mem.console.words import LANGUAGES
from zero_mem.operations.requests import name_of
from zero_mem.server.settings import Settings
from zero_mem.space import Namespace
from zero_mem.testing import FakeClock

HERE = "acme/desk"
DAY = 86_400.0


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with loopback() as running:
        yield running


@pytest.fixture
def local(tmp_path: Path, clock: FakeClock) -> Memory:
    url = f"sqlite:///{tmp_path}/store.db"
    memory = filled(Memory.open(url, clock=clock, durability="normal"))
    talked(memory, clock, HOSTILE)
    return memory


@pytest.fixture
def desk(local: Memory) -> Namespace:
    return local.namespace(*SPACE)


@pytest.fixture
def url(server: Loopback, local: Memory, tmp_path: Path) -> Iterator[str]:
    settings = Settings(recheck=0.0, backup_folder=f"{tmp_path}/backups", backup_every=0.0)
    with server.serving(local, settings, parts=[Console]) as address:
        yield address


@pytest.fixture
def visitor(url: str) -> Iterator[Visitor]:
    with Visitor(url) as opened:
        yield opened


def log_in(visitor: Visitor, local: Memory, *grants: str) -> str:
    """Come with a key, and give its id."""
    made = local.keyring.create("visitor", [Grant.parse(grant) for grant in grants])
    visitor.log_in(made.credential)
    return made.key.key_id


# Conversations


@pytest.mark.req("console:pages", "inspect:prompt")
def test_the_list_tells_what_each_conversation_took(visitor: Visitor) -> None:
    page = visitor.get("/conversations", ns=HERE)
    assert "2 conversations" in page.text
    first, second = (link for link in page.links if "/conversation?" in link)
    assert ("order-57" in first, "trip-to-bern" in second) == (True, True)
    assert "1 phantom claim" in page.text
    assert "2,600" in page.text
    (bar,) = (given for tag, given in page.tags if given.get("class") == "chart columns")
    assert "memory reads" in bar["aria-label"]
    assert "$" in page.text
    whole = visitor.get("/conversations", ns="acme")
    assert "3 conversations" in whole.text
    assert "acme/desk" in whole.text


@pytest.mark.req("console:pages", "inspect:prompt")
def test_each_prompt_shows_the_reason_of_each_token_and_leads_to_its_record(
    visitor: Visitor,
) -> None:
    built = visitor.get("/conversation", ns=HERE, name="trip-to-bern")
    assert "superseded in prompt 2" in built.text
    assert "supersedes an earlier version" in built.text
    assert "Trains only." in built.text
    prepared = visitor.get("/conversation", ns=HERE, name="order-57")
    for said in ("receipt of the result", "likely to be needed:", "pinned", "phantom claim"):
        assert said in prepared.text
    assert "passed by reference" in prepared.text
    assert re.search(r"\d+ tokens instead of [\d,]+", prepared.text)
    record = next(link for link in prepared.links if "/record?" in link and "id=rule" in link)
    assert visitor.http.get(record).status_code == 200


@pytest.mark.req("console:safe")
def test_a_hostile_result_stays_text(visitor: Visitor) -> None:
    page = visitor.get("/conversation", ns=HERE, name="order-57")
    assert "<script>document.title" in page.text
    scripts = [given for tag, given in page.tags if tag == "script"]
    assert all(given["src"].startswith("/console/static/") for given in scripts)
    assert not any(tag == "img" for tag, _ in page.tags)


@pytest.mark.req("console:pages")
def test_long_conversations_come_in_pages(visitor: Visitor, desk: Namespace) -> None:
    runtime = ZeroMemRuntime(desk, conversation="long")
    messages = []
    for number in range(PROMPTS + 3):
        messages.append({"role": "user", "content": f"say {number}"})
        runtime.build_prompt(messages)
    page = visitor.get("/conversation", ns=HERE, name="long")
    assert f"1 to {PROMPTS} of {PROMPTS + 3}" in page.text
    (later,) = (given["href"] for tag, given in page.tags if given.get("rel") == "next")
    following = Parsed(visitor.http.get(later).text)
    assert f"{PROMPTS + 1} to {PROMPTS + 3} of {PROMPTS + 3}" in following.text
    assert not any(given.get("rel") == "next" for _, given in following.tags)


@pytest.mark.req("console:pages", "server:bad-input")
@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/conversation?ns=acme/desk&name=nobody", 404),
        ("/conversation?ns=acme/desk", 400),
        ("/conversation?ns=acme/desk&name=trip-to-bern&start=x", 400),
        ("/conversation?ns=acme/desk&name=trip-to-bern&start=99", 200),
        ("/conversations?ns=acme/desk&start=-1", 400),
        ("/expiry?ns=acme/desk&days=1e9", 200),
        ("/keys/revoke?id=x", 404),
    ],
)
def test_a_wrong_address_is_a_page_that_says_so(visitor: Visitor, path: str, status: int) -> None:
    assert visitor.raw("GET", path).status_code == status


# Costs


@pytest.mark.req("console:pages", "policy:cost-review")
def test_a_proposal_is_confirmed_and_each_change_is_said(visitor: Visitor, desk: Namespace) -> None:
    page = visitor.get("/costs", ns=HERE)
    assert re.search(r"travel_rule pinned 2 1 1 [\d,]+ handle would have saved", page.text)
    asked = visitor.send(page, "/costs/apply")
    assert "Change these settings?" in asked.text
    assert desk.limits("procedural", "travel_rule").visibility == "pinned"
    done = visitor.send(asked, "/costs/apply")
    assert "travel_rule visibility: pinned → handle changed" in done.text
    assert desk.limits("procedural", "travel_rule").visibility == "handle"
    again = visitor.send(asked, "/costs/apply")
    assert "not changed" in again.text
    assert "it is handle by now, not pinned" in again.text


@pytest.mark.req("console:pages", "console:auth", "policy:cost-review")
def test_settings_are_changed_with_the_right_for_it(visitor: Visitor, local: Memory) -> None:
    log_in(visitor, local, "write:acme/**")
    page = visitor.get("/costs", ns=HERE)
    assert "Settings are changed with the right admin" in page.text
    assert "/console/costs/apply" not in {form.action.partition("?")[0] for form in page.forms}
    form = {"change.travel_rule": "pinned handle", "confirmed": "yes"}
    answer = visitor.raw(
        "POST",
        f"/costs/apply?ns={HERE}",
        data=form | {"token": page.forms[1].fields["token"]},
        headers={"Origin": visitor.origin},
    )
    assert answer.status_code == 403
    limits = local.namespace(*SPACE).limits("procedural", "travel_rule")
    assert limits.visibility == "pinned"


@pytest.mark.req("console:pages", "server:bad-input")
def test_a_change_that_is_none_is_refused(visitor: Visitor, desk: Namespace) -> None:
    page = visitor.get("/costs", ns=HERE)
    nothing = visitor.http.post(
        f"/console/costs/apply?ns={HERE}",
        data={"token": page.forms[1].fields["token"]},
        headers={"Origin": visitor.origin},
        follow_redirects=True,
    )
    assert "Nothing was chosen" in Parsed(nothing.text).text
    wrong = visitor.send(page, "/costs/apply", 400, **{"change.x": "pinned"})
    assert "reads BEFORE AFTER" in wrong.text
    form = {"change.rule": "handle everything", "confirmed": "yes"}
    told = visitor.send(page, "/costs/apply", 200, **form).text
    assert "visibility can't be 'everything'" in told
    assert "everything" not in desk.settings()


# Expiry


@pytest.mark.req("console:pages", "expire:sweeper")
def test_the_calendar_says_what_ends_when_and_why(visitor: Visitor) -> None:
    page = visitor.get("/expiry", ns=HERE, days=90)
    assert "1 record waits for the sweep" in page.text
    for said in ("its time", "its task's lease: refund-57", "its retention", "order.cancelled 1"):
        assert said in page.text
    days = [
        given["datetime"] for tag, given in page.tags if tag == "time" and "T" not in str(given)
    ]
    assert days == sorted(days)
    assert len(days) == 3


@pytest.mark.req("console:pages", "expire:sweeper")
def test_a_sweep_ends_what_is_due_and_the_log_says_so(visitor: Visitor, desk: Namespace) -> None:
    page = visitor.get("/expiry", ns=HERE)
    swept = visitor.send(page, "/expiry/sweep")
    assert "Swept: the log below says" in swept.text
    assert "Nothing is due" in swept.text
    assert re.search(r"\[memo:code-2\] expire its time console", swept.text)
    assert desk.history("code-2")[-1].actor == "console"
    assert "nothing was due" in visitor.send(swept, "/expiry/sweep").text


@pytest.mark.req("console:auth", "expire:sweeper")
def test_who_may_only_read_sweeps_nothing(visitor: Visitor, local: Memory) -> None:
    log_in(visitor, local, "read:acme/**")
    page = visitor.get("/expiry", ns=HERE)
    assert "waits for the sweep" in page.text
    assert "/console/expiry/sweep" not in {form.action.partition("?")[0] for form in page.forms}
    token = page.forms[1].fields["token"]
    answer = visitor.raw(
        "POST",
        f"/expiry/sweep?ns={HERE}",
        data={"token": token},
        headers={"Origin": visitor.origin},
    )
    assert answer.status_code == 403
    assert len(log(local, SPACE)) == 1


@pytest.mark.req("console:pages", "expire:time")
def test_a_day_with_many_ends_is_counted_whole(space: Namespace, clock: FakeClock) -> None:
    items = [{"content": f"code {n}", "kind": "code", "expires_in": 3600.0} for n in range(120)]
    space.save_many(items)
    (day,) = calendar(space.memory, space.path).days
    assert (len(day.endings), day.more, day.count, day.causes) == (50, 70, 120, {"time": 120})
    assert calendar(space.memory, ("elsewhere",)).days == ()


# Keys


@pytest.mark.req("console:pages", "console:auth", "prod:auth")
def test_a_key_is_shown_once_and_opens_what_it_grants(
    visitor: Visitor, local: Memory, url: str
) -> None:
    page = visitor.get("/keys")
    assert "There is no key yet" in page.text
    assert "everybody needs a key" in page.text
    fields = {"name": "Ann", "right1": "admin", "pattern1": "acme/**", "days": "7"}
    made = visitor.send(page, "/keys/new", 200, **fields)
    (credential,) = (given["value"] for _, given in made.tags if given.get("id") == "credential")
    (key,) = local.keyring.every()
    assert (key.name, [str(grant) for grant in key.grants]) == ("Ann", ["admin:acme/**"])
    assert (key.expires_at - key.created_at).days == 7  # type: ignore[operator]
    with Visitor(url) as other:
        other.log_in(credential)
        listed = other.get("/keys")
        assert "Ann yours" in listed.text
        assert credential not in listed.text
        assert credential.rpartition("_")[2] not in listed.text


@pytest.mark.req("console:auth", "prod:auth")
def test_nobody_grants_beyond_what_they_administer(visitor: Visitor, local: Memory) -> None:
    log_in(visitor, local, "admin:acme/desk/**", "read:acme/**")
    local.keyring.create("of others", [Grant.parse("read:other")])
    page = visitor.get("/keys")
    assert "of others" not in page.text
    for right, pattern in (("read", "acme/alice"), ("admin", "**"), ("read", "acme/*")):
        fields = {"name": "more", "right1": right, "pattern1": pattern}
        assert "beyond that" in visitor.send(page, "/keys/new", 403, **fields).text
    assert {key.name for key in local.keyring.every()} == {"visitor", "of others"}
    fields = {"name": "less", "right1": "write", "pattern1": "acme/desk/x"}
    assert "The key is made" in visitor.send(page, "/keys/new", 200, **fields).text
    assert "by visitor" in visitor.get("/keys").text


@pytest.mark.req("console:auth", "prod:auth")
def test_who_administers_nothing_sees_and_makes_no_key(visitor: Visitor, local: Memory) -> None:
    log_in(visitor, local, "write:acme/**")
    page = visitor.get("/keys")
    assert "administers no namespace" in page.text
    assert "/console/keys" not in {link.partition("?")[0] for link in page.links}
    answer = visitor.raw(
        "POST",
        "/keys/new",
        data={
            "token": page.forms[1].fields["token"],
            "name": "x",
            "right1": "read",
            "pattern1": "acme/desk",
        },
        headers={"Origin": visitor.origin},
    )
    assert answer.status_code == 403
    assert len(local.keyring.every()) == 1
    assert visitor.raw("GET", "/keys/revoke?id=x").status_code == 403


@pytest.mark.req("console:pages", "prod:auth")
def test_a_key_is_revoked_after_a_question(visitor: Visitor, local: Memory) -> None:
    log_in(visitor, local, "admin:**")
    made = local.keyring.create(NAME, [Grant.parse("read:acme/desk")])
    page = visitor.get("/keys/revoke", id=made.key.key_id)
    assert "Revoke this key?" in page.text
    assert local.keyring.verify(made.credential) == made.key
    done = visitor.send(page, "/keys/end")
    assert "The key is revoked" in done.text
    (row,) = (row for row in keys.listed(local) if row.key.key_id == made.key.key_id)
    assert row.standing == "revoked"


@pytest.mark.req("console:auth", "prod:auth")
def test_revoking_ones_own_key_ends_the_session(visitor: Visitor, local: Memory) -> None:
    own = log_in(visitor, local, "admin:**")
    page = visitor.get("/keys/revoke", id=own)
    assert "your session ends with it" in page.text
    assert "Log in" in visitor.send(page, "/keys/end").text


@pytest.mark.req("console:pages", "server:bad-input")
@pytest.mark.parametrize(
    "fields",
    [
        {"name": "", "right1": "read", "pattern1": "acme"},
        {"name": "x", "right1": "own", "pattern1": "acme"},
        {"name": "x", "right1": "read", "pattern1": "a/**/b"},
        {"name": "x", "right1": "read", "pattern1": ""},
        {"name": "x", "right1": "read", "pattern1": "acme", "days": "-1"},
        {"name": "x", "right1": "read", "pattern1": "acme", "days": "0"},
        {"name": "x", "right1": "read", "pattern1": "acme", "days": "99999"},
    ],
)
def test_a_wrong_key_is_not_made_and_the_form_keeps_what_was_typed(
    visitor: Visitor, local: Memory, fields: dict[str, str]
) -> None:
    page = visitor.send(visitor.get("/keys"), "/keys/new", 400, **fields)
    assert any(given.get("role") == "alert" for _, given in page.tags)
    (form,) = (f for f in page.forms if f.action.partition("?")[0] == "/console/keys/new")
    assert form.fields["pattern1"] == fields["pattern1"]
    assert local.keyring.every() == []


# Backup


@pytest.mark.req("console:pages", "prod:backup")
def test_a_backup_is_made_listed_verified_and_can_be_restored(
    visitor: Visitor, local: Memory, tmp_path: Path
) -> None:
    page = visitor.get("/backup")
    assert "There is no backup yet" in page.text
    made = visitor.send(page, "/backup/make")
    assert "The backup is made and verified" in made.text
    (file,) = (tmp_path / "backups").iterdir()
    assert file.name in made.text
    checked = visitor.send(made, "/backup/verify")
    assert "sound, checked now" in checked.text
    command = next(text for text in checked.texts if text.startswith("zero-mem recover"))
    words = shlex.split(command)[1:]
    words[-1] = f"sqlite:///{tmp_path}/restored.db"
    assert CliRunner().invoke(app, words).exit_code == 0
    with Memory.open(words[-1]) as restored:
        assert restored.stats().records == local.stats().records


@pytest.mark.req("console:pages", "prod:backup")
def test_a_damaged_backup_says_what_is_wrong(visitor: Visitor, tmp_path: Path) -> None:
    made = visitor.send(visitor.get("/backup"), "/backup/make")
    (file,) = (tmp_path / "backups").iterdir()
    content = bytearray(file.read_bytes())
    content[len(content) // 2 : len(content) // 2 + 4000] = bytes(4000)
    file.write_bytes(content)
    checked = visitor.send(made, "/backup/verify")
    assert "damaged" in checked.text


@pytest.mark.req("console:pages", "prod:backup")
def test_a_backup_that_fails_says_why(visitor: Visitor, tmp_path: Path) -> None:
    (tmp_path / "backups").write_text("no folder")
    page = visitor.send(visitor.get("/backup"), "/backup/make")
    assert "The backup failed: StoreUnavailable" in page.text


@pytest.mark.req("console:safe", "prod:backup")
@pytest.mark.parametrize("name", ["../store.db", "store.db", "", "/etc/passwd"])
def test_no_other_file_is_verified(visitor: Visitor, name: str) -> None:
    made = visitor.send(visitor.get("/backup"), "/backup/make")
    assert "no backup" in visitor.send(made, "/backup/verify", 404, name=name).text


@pytest.mark.req("console:auth", "prod:backup")
def test_backups_are_for_who_administers_the_whole_store(
    visitor: Visitor, local: Memory, tmp_path: Path
) -> None:
    log_in(visitor, local, "admin:acme/**")
    page = visitor.get("/", ns=HERE)
    assert "/console/backup" not in {link.partition("?")[0] for link in page.links}
    token = page.forms[1].fields["token"]
    assert visitor.raw("GET", "/backup").status_code == 403
    for path in ("/backup/make", "/backup/verify"):
        answer = visitor.raw(
            "POST", path, data={"token": token, "name": "x"}, headers={"Origin": visitor.origin}
        )
        assert answer.status_code == 403
    assert not (tmp_path / "backups").exists()


@pytest.mark.req("console:pages", "prod:backup")
def test_a_backup_that_takes_long_goes_on_without_its_visitor(
    visitor: Visitor, server: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert server.switch.app is not None
    assert server.switch.loop is not None
    backups = server.switch.app.host.backups
    assert backups is not None
    go_on, make = threading.Event(), backups.schedule.make

    def slow(*given: object, **named: object) -> object:
        go_on.wait(30)
        return make(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(
        type(backups.schedule), "make", lambda _, *given, **named: slow(*given, **named)
    )
    monkeypatch.setattr(backup, "PATIENCE", 0.01)
    page = visitor.send(visitor.get("/backup"), "/backup/make")
    assert "A backup is being made" in page.text
    assert "being made now" in page.text
    answer = visitor.answer(page, "/backup/make")
    assert "A backup is being made" in Parsed(answer.text).text
    go_on.set()
    asyncio.run_coroutine_threadsafe(backups.once(), server.switch.loop).result()
    assert len(list((tmp_path / "backups").iterdir())) == 1


@pytest.mark.req("console:pages", "prod:doctor")
def test_the_ten_questions_are_answered_on_request(visitor: Visitor) -> None:
    asked = next(link for link in visitor.get("/backup").links if "examine=1" in link)
    page = Parsed(visitor.http.get(asked).text)
    assert [tag for tag, given in page.tags].count("h3") == 10
    assert "10. Does cost tell operations from decision reads?" in page.text


@pytest.mark.req("console:pages", "prod:backup")
def test_without_a_folder_the_page_says_how_to_get_one(server: Loopback, local: Memory) -> None:
    with server.serving(local, Settings(), parts=[Console]) as address, Visitor(address) as opened:
        page = opened.get("/backup")
        assert "--backup-folder" in page.text
        answer = opened.raw(
            "POST",
            "/backup/make",
            data={"token": page.forms[1].fields["token"]},
            headers={"Origin": opened.origin},
        )
        assert answer.status_code == 400


@pytest.mark.req("console:languages")
@pytest.mark.parametrize("language", LANGUAGES)
def test_every_page_is_whole_in_every_language(visitor: Visitor, language: str) -> None:
    visitor.send(visitor.get("/keys"), "/preferences", language=language)
    for address in ADDRESSES.values():
        answer = visitor.raw("GET", address)
        assert answer.status_code == 200, address
        page = Parsed(answer.text)
        shown = re.sub(r"[^\u4e00-\u9fff]", "", page.text)
        assert (len(shown) > 40) == (language == "zh"), address


# Hostile texts


def write(memory: Memory, clock: FakeClock, place: str, say: Callable[[str], str]) -> str:
    """Hold a conversation and let records end, with texts in every place; give its name."""
    name = name_of(say("name")) or "name"
    space = memory.namespace("made", place, actor=name)
    space.save(f"x{say('pinned')}", form="procedural", kind=name[:60], key=name, memory_id="p")
    subject = MemoryController(space, conversation=name, inject=0)
    tool = f"t{say('tool')}"
    result = f"A result of {say('result')[:300]}"
    items = [
        user(f"u{say('user')}"),
        turn("anthropic", c1=(tool, {})),
        results("anthropic", c1=result),
    ]
    asked = request("anthropic", *items, model=f"m{say('model')}")
    subject.prepare(asked, "anthropic")
    passed = turn("anthropic", "According to [memo:p] it is.", c2=(tool, {"to": "[memo:p]"}))
    answer = response("anthropic", passed) | {"usage": {"input_tokens": 900, "output_tokens": 9}}
    subject.absorb(answer, "anthropic")
    subject.account(asked, "anthropic", response=answer, given=asked)
    space.start_task(name, lease=DAY)
    ends: tuple[tuple[str, dict[str, Any]], ...] = (
        ("e", {"invalidated_by": [name]}),
        ("s", {"task": name, "form": "working"}),
        ("t", {"expires_in": DAY}),
    )
    for memory_id, fields in ends:
        space.save(f"x{say('body')}", kind=name[:60], memory_id=memory_id, **fields)
    space.save("over", kind=name[:60], memory_id="o", expires_in=1.0)
    clock.advance(2)
    space.expire()
    return name


@pytest.mark.req("console:safe")
@pytest.mark.parametrize("seed", range(12))
def test_no_text_of_others_changes_what_these_pages_are_made_of(
    visitor: Visitor, local: Memory, clock: FakeClock, seed: int
) -> None:
    chance = random.Random(seed)

    def shapes(place: str, name: str) -> list[list[tuple[str, tuple[str, ...]]]]:
        pages = [
            visitor.get("/conversations", ns=place),
            visitor.get("/conversation", ns=place, name=name),
            visitor.get("/costs", ns=place),
            visitor.get("/expiry", ns=place),
        ]
        return [[(tag, tuple(sorted(given))) for tag, given in page.tags] for page in pages]

    plain = shapes("made/plain", write(local, clock, "plain", str))
    name = write(local, clock, "hostile", lambda _: hostile.text(chance))
    shown = [
        [tag for tag, _ in page if _ACTIVE.fullmatch(tag)] for page in shapes("made/hostile", name)
    ]
    assert shown == [[tag for tag, _ in page if _ACTIVE.fullmatch(tag)] for page in plain]
    listed = visitor.get("/conversations", ns="made/hostile")
    (link,) = (link for link in listed.links if "/conversation?" in link)
    assert visitor.http.get(link).status_code == 200
    assert not any(
        attribute.startswith("on") or attribute == "style"
        for page in shapes("made/hostile", name)
        for _, given in page
        for attribute in given
    )


_ACTIVE = re.compile(
    "script|style|link|meta|base|form|input|button|select|textarea|img|iframe|object|embed|video|"
    "audio|h1|h2|main|header|title"
)
"""What runs, loads, sends, or gives a page its frame; a long text may fold into details."""


@pytest.mark.req("console:safe")
def test_names_of_keys_and_grants_stay_text(visitor: Visitor, local: Memory) -> None:
    log_in(visitor, local, "admin:**")
    made = local.keyring.create(NAME, [Grant.of("read", ["acme", NAME])])
    for page in (visitor.get("/keys"), visitor.get("/keys/revoke", id=made.key.key_id)):
        assert NAME in page.text
        assert not any(name.startswith("on") for _, given in page.tags for name in given)
        assert len([tag for tag, _ in page.tags if tag == "script"]) == 1


@pytest.mark.req("console:safe")
def test_a_long_text_in_a_prompt_is_shown_in_part(visitor: Visitor, desk: Namespace) -> None:
    desk.save("<&" * 400_000, form="procedural", kind="rule", memory_id="big")
    runtime = ZeroMemRuntime(desk, conversation="long")
    runtime.build_prompt([{"role": "user", "content": "hi"}], budget=2_000_000)
    answer = visitor.raw("GET", f"/conversation?ns={HERE}&name=long")
    assert "[memo:big]" in answer.text
    assert len(answer.content) < 300_000
