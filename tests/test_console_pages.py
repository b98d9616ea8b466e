"""The console's pages of records over a real server: what they show and what they change."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from datetime import timedelta
from urllib.parse import urlencode

import hostile
import httpx2 as httpx
import pytest
from console_store import HOSTILE, NAME, filled
from console_visitor import Parsed, Visitor
from serving import Loopback, loopback

from zero_mem import Blob, InvalidInput, Json, Memory
from zero_mem.access import Grant
from zero_mem.console.app import Console
from zero_mem.console.differing import MOST_LINES, Line, lines_between
from zero_mem.console.filtering import FIELDS, where_of
from zero_mem.console.pages import PAGES
from zero_mem.console.pages.record import SHOWN
from zero_mem.console.rates import MINUTE, edges_until, per_minute
from zero_mem.console.showing import visible
from zero_mem.operations.requests import name_of
from zero_mem.server.settings import Settings
from zero_mem.space import Namespace
from zero_mem.testing import FakeClock

HERE = "acme/alice"


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with loopback() as running:
        yield running


@pytest.fixture
def local(clock: FakeClock) -> Memory:
    return filled(Memory.open("memory://", clock=clock))


@pytest.fixture
def here(local: Memory) -> Namespace:
    return local.namespace("acme", "alice")


@pytest.fixture
def visitor(server: Loopback, local: Memory) -> Iterator[Visitor]:
    settings = Settings(recheck=0.0, poll=0.05, heartbeat=0.05)
    with server.serving(local, settings, parts=[Console]) as url, Visitor(url) as opened:
        yield opened


def names(page: Parsed) -> list[str]:
    """Give the ids of the records that a page lists."""
    return [link.rpartition("id=")[2] for link in page.links if link.startswith("/console/record?")]


# The overview


@pytest.mark.req("console:pages")
def test_the_overview_counts_what_is_there_and_what_happens(
    visitor: Visitor, local: Memory, clock: FakeClock
) -> None:
    here = visitor.get("/", ns=HERE)
    assert "active records 12" in here.text
    assert "18 changes in the last hour, at most 18 in a minute" in here.text
    assert "tokens kept out of prompts 32,800" in here.text
    assert "tool results 6,100 39,500 33,400" in here.text
    assert "receipts 340 0 −340" in here.text
    whole = visitor.get("/")
    assert "active records 14 namespaces 3 changes in the journal 20" in whole.text
    clock.advance(timedelta(minutes=61))
    local.namespace("acme", "alice").save("later", kind="note")
    assert "1 change in the last hour, at most 1" in visitor.get("/", ns=HERE).text


@pytest.mark.req("console:pages", "console:auth")
def test_the_overview_of_a_key_leaves_out_what_is_not_its_own(
    visitor: Visitor, local: Memory
) -> None:
    key = local.keyring.create("app", [Grant.parse("read:acme/bob")]).credential
    visitor.log_in(key)
    page = visitor.get("/")
    assert "active record 1 namespace 1" in page.text
    assert "Since this process began" not in page.text
    assert "order" not in page.text


@pytest.mark.req("console:pages")
@pytest.mark.parametrize("times", [[], [5], [0, 0, 3, 59, 60, 61, 179, 180, 500], [1] * 40])
def test_changes_are_counted_by_halving(times: list[int]) -> None:
    asked = []

    def at(position: int) -> int:
        asked.append(position)
        return times[position - 1] * 1_000_000

    edges = [60 * 1_000_000 * minute for minute in range(4)]
    counts = per_minute(at, len(times), edges)
    seconds = [[t for t in times if 60 * n <= t < 60 * n + 60] for n in range(3)]
    assert counts == [len(each) for each in seconds]
    assert all(1 <= position <= len(times) for position in asked)


@pytest.mark.req("console:pages")
def test_a_million_changes_are_counted_from_few_entries() -> None:
    asked = []

    def at(position: int) -> int:
        asked.append(position)
        return position * 3600

    now = 1_000_000 * 3600
    counts = per_minute(at, 1_000_000, edges_until(now, 60))
    assert sum(counts) == 1_000_000 - (edges_until(now, 60)[0] // 3600) - 0
    assert all(abs(count - MINUTE / 3600) <= 1 for count in counts[:-1])
    assert len(asked) < 1500


# Records


@pytest.mark.req("console:pages", "index:filters")
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"kind": "policy"}, ["refund"]),
        ({"form": "working"}, ["3"]),
        ({"tag": "refund"}, ["refund"]),
        ({"task": "refund-57", "key": "58"}, ["order-58"]),
        ({"state": "archived"}, ["old"]),
        ({"state": "deleted"}, ["gone"]),
        ({"speaker": "王小明"}, ["1"]),
        ({"text": "blue BUTTON"}, ["2"]),
        ({"meta_path": "order.id", "meta_value": "57", "kind": "order"}, ["order-57"]),
        ({"meta_path": "checked"}, ["refund"]),
        ({"meta_path": "owner", "meta_value": "Ann"}, ["refund"]),
        ({"where": '{"access_count": {"gte": 1}}'}, []),
        ({"where": '{"version": {"gt": 2}}'}, ["refund"]),
        ({"since": "2099-01-01T00:00"}, []),
        ({"kind": NAME[:60]}, ["hostile"]),
        ({"q": "oolong 乌龙茶"}, ["1"]),
    ],
)
def test_records_are_found_by_each_filter(
    visitor: Visitor, query: dict[str, str], found: list[str]
) -> None:
    page = visitor.get("/records", ns=HERE, **query)
    assert names(page) == found
    assert ("No record matches." in page.text) is (not found)


@pytest.mark.req("console:pages", "server:bad-input")
@pytest.mark.parametrize(
    "query",
    [
        {"where": "{"},
        {"where": "[1]"},
        {"where": '{"colour": 1}'},
        {"since": "yesterday"},
        {"as_of": "yesterday"},
        {"form": "liquid"},
        {"cursor": "x"},
        {"order": "used", "start": "-1"},
        {"q": "tea", "explain": "1", "budget": "many"},
    ],
)
def test_a_wrong_filter_is_said_beside_the_form_that_keeps_it(
    visitor: Visitor, query: dict[str, str]
) -> None:
    page = visitor.get("/records", 400, ns=HERE, **query)
    assert any(given.get("role") == "alert" for _, given in page.tags)
    assert names(page) == []
    form = next(form for form in page.forms if form.action == "/console/records")
    for name, value in query.items():
        if name in form.fields and name not in ("form", "order"):
            assert form.fields[name] in (value, "1")


@pytest.mark.req("console:pages", "op:list")
@pytest.mark.parametrize("order", ["", "changed"])
def test_every_record_comes_once_page_by_page(
    visitor: Visitor, local: Memory, clock: FakeClock, order: str
) -> None:
    space = local.namespace("many")
    for number in range(120):
        clock.advance()
        space.save(f"text {number}", memory_id=f"m{number}")
    query: dict[str, str] = {"ns": "many", "order": order}
    seen: list[str] = []
    page = visitor.get("/records", **query)
    while True:
        seen += names(page)
        more = [link for link in page.links if "cursor=" in link or "start=" in link]
        if not more:
            break
        page = visitor.get(more[0].removeprefix("/console"))
    expected = [f"m{number}" for number in range(120)]
    assert seen == (expected[::-1] if order else expected)


@pytest.mark.req("console:pages", "history:as-of")
def test_records_can_be_seen_as_of_an_earlier_moment(
    visitor: Visitor, here: Namespace, clock: FakeClock
) -> None:
    before = clock().strftime("%Y-%m-%dT%H:%M:%S")
    clock.advance(3600)
    here.update("refund", content="No refunds at all.")
    past = visitor.get("/records", ns=HERE, kind="policy", as_of=before)
    assert "Ask support first" in past.text
    assert "Ask support first" not in visitor.get("/records", ns=HERE, kind="policy").text
    found = visitor.get("/records", ns=HERE, q="support", as_of=before)
    assert names(found) == ["refund"]


@pytest.mark.req("console:pages", "recall:explicit")
def test_a_recall_explains_itself_and_says_what_just_missed(visitor: Visitor) -> None:
    page = visitor.get("/records", ns=HERE, q="refund goods tea", explain="1", budget="40")
    assert "rank 1, BM25" in page.text
    assert "What a prompt would get" in page.text
    assert "What just missed" in page.text
    assert "over the budget of 40 tokens" in page.text


@pytest.mark.req("console:pages")
def test_a_page_without_a_namespace_leads_to_the_first_one(visitor: Visitor) -> None:
    asked = visitor.raw("GET", "/records?kind=note")
    assert (asked.status_code, asked.headers["location"]) == (
        303,
        "/console/records?ns=acme%2Falice&kind=note",
    )


@pytest.mark.req("console:pages")
def test_an_empty_store_says_how_it_begins(server: Loopback) -> None:
    with (
        server.serving(Memory.open("memory://"), parts=[Console]) as url,
        Visitor(url) as visitor,
    ):
        assert "No namespace yet" in visitor.get("/records").text
        assert "active records 0" in visitor.get("/").text
        assert "No record matches" in visitor.get("/records", ns="new/one").text


@pytest.mark.req("console:pages", "index:filters")
def test_of_the_filter_form_only_what_is_filled_in_asks() -> None:
    assert where_of({"kind": " ", "q": "x", "cursor": "p1"}) == {}
    assert where_of({"meta_path": "a", "meta_value": '"7"'}) == {"metadata": {"a": "7"}}
    assert where_of({"meta_path": "a", "meta_value": "[7]"}) == {"metadata": {"a": "[7]"}}
    both = where_of({"kind": "k", "state": "any"})
    assert both["and"][0] == {"kind": "k"}
    with pytest.raises(InvalidInput, match="outside the years"):
        where_of({"since": "0001-01-01T00:00+12:00"})


# One record


@pytest.mark.req("console:pages", "prod:why")
def test_a_record_shows_its_body_fields_versions_and_use(visitor: Visitor) -> None:
    page = visitor.get("/record", ns=HERE, id="refund")
    for text in (
        "Ann may return any goods",
        "policy",
        '"owner": "Ann"',
        "Version 1 save",
        "Version 3 update",
        "agent",
        "Can it be read now? yes",
    ):
        assert text in page.text
    old = visitor.get("/record", ns=HERE, id="refund", version="1")
    assert "within 14 days" in old.text
    assert "This is version 1; the record is at version 3." in old.text


@pytest.mark.req("console:pages")
@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("", 400),
        ("id=nothing", 404),
        ("id=a%2Fb", 400),
        ("id=refund&version=9", 404),
        ("id=refund&version=-1", 400),
        ("id=refund&start=x", 400),
    ],
)
def test_what_is_not_there_is_a_page_that_says_so(
    visitor: Visitor, query: str, status: int
) -> None:
    for path in ("/record", "/record/body"):
        if "start" not in query or path == "/record":
            assert visitor.raw("GET", f"{path}?ns={HERE}&{query}").status_code == status


@pytest.mark.req("console:pages", "history:rollback")
def test_two_versions_are_compared_line_by_line(visitor: Visitor) -> None:
    page = visitor.get("/record/diff", ns=HERE, id="refund", a="3", b="1")
    assert "Version 1 compared with version 3" in page.text
    gone = [tag for tag, _ in page.tags].count("del")
    new = [tag for tag, _ in page.tags].count("ins")
    assert gone >= 2
    assert new >= 3
    assert "checked" in page.text
    same = visitor.get("/record/diff", ns=HERE, id="refund", a="2", b="2")
    assert "The bodies are the same." in same.text
    assert visitor.raw("GET", f"/record/diff?ns={HERE}&id=refund&a=1").status_code == 400


@pytest.mark.req("console:pages")
def test_a_difference_gives_both_sides_back() -> None:
    left = "same\nold words here\ngone\n" + "x\n" * 20 + "end"
    right = "same\nnew words here\n" + "x\n" * 20 + "more\nend"
    lines = lines_between(left, right)
    assert lines is not None

    def side(lines: list[Line], name: str) -> list[tuple[int, str]]:
        numbered = ((getattr(each, f"{name}_number"), getattr(each, name)) for each in lines)
        return [(n, "".join(p.text for p in pieces)) for n, pieces in numbered if n is not None]

    for text, name in ((left, "left"), (right, "right")):
        rows = text.split("\n")
        assert all(rows[number - 1] == shown for number, shown in side(lines, name))
    changed = next(each for each in lines if each.kind == "changed")
    assert [piece.text for piece in changed.left if piece.is_changed] == ["old"]
    assert sum(each.kind == "skipped" for each in lines) == 1
    assert lines_between(left, left) == []
    assert lines_between("a\n" * (MOST_LINES + 1), "b") is None
    assert lines_between("a", Blob(data=b"a")) is None
    assert lines_between(Json({"a": 1}), Json({"a": 1.0})) is not None


@pytest.mark.req("console:pages", "console:safe")
def test_a_body_is_given_whole_and_never_as_a_page(visitor: Visitor, here: Namespace) -> None:
    long = "<b>line</b>\n" * 90_000
    here.save(long, memory_id="long", kind="note")
    page = visitor.get("/record", ns=HERE, id="long")
    assert "Only the beginning of 1,080,000 characters is shown" in page.text
    assert page.text.count("<b>") < SHOWN / 11
    whole = visitor.raw("GET", f"/record/body?ns={HERE}&id=long")
    assert whole.text == long
    scan = visitor.raw("GET", f"/record/body?ns={HERE}&id=scan")
    assert scan.content == bytes(range(256)) * 40
    order = visitor.raw("GET", f"/record/body?ns={HERE}&id=order-57")
    assert order.json()["order"] == 57
    for answer, kind in ((whole, "text/plain"), (scan, "octet-stream"), (order, "octet-stream")):
        assert kind in answer.headers["content-type"]
        assert "sandbox" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert scan.headers["content-disposition"].startswith("attachment")


# Changes


def confirm(visitor: Visitor, action: str, memory_id: str = "refund", **given: str) -> Parsed:
    """Open the page that asks before a change."""
    return visitor.get("/record/confirm", ns=HERE, id=memory_id, do=action, **given)


@pytest.mark.req("console:pages", "history:rollback", "op:archive", "op:restore", "op:delete")
def test_a_record_is_changed_after_a_page_that_asks(visitor: Visitor, here: Namespace) -> None:
    def state() -> tuple[int, str]:
        last = here.history("refund")[-1]
        assert last.record is not None
        return last.version, last.record.state

    asked = confirm(visitor, "archive")
    assert state() == (3, "active")
    assert "archived" in visitor.send(asked, "/record/change").text
    assert state() == (4, "archived")
    visitor.send(confirm(visitor, "restore"), "/record/change")
    assert state() == (5, "active")
    visitor.send(confirm(visitor, "delete"), "/record/change")
    assert state() == (6, "deleted")
    page = visitor.send(confirm(visitor, "rollback", version="1"), "/record/change")
    assert "within 14 days" in page.text
    assert state() == (7, "active")
    assert here.history("refund")[-1].actor == "console"


@pytest.mark.req("console:pages", "op:version")
def test_a_change_that_came_meanwhile_is_not_overwritten(visitor: Visitor, here: Namespace) -> None:
    asked = confirm(visitor, "archive")
    here.update("refund", content="newer")
    refused = visitor.send(asked, "/record/change", 409)
    assert "Another write came first" in refused.text
    assert here.get("refund").state == "active"


@pytest.mark.req("console:pages", "op:update", "op:merge")
def test_a_record_is_changed_by_hand(visitor: Visitor, here: Namespace) -> None:
    page = visitor.get("/record/edit", ns=HERE, id="refund")
    form = {"content": "Two\r\nlines.", "tags": "new\r\n\r\n shop ", "metadata": '{"owner": "Bob"}'}
    changed = visitor.send(page, "/record/edit", **form)
    assert "The change is saved as a new version." in changed.text
    record = here.get("refund")
    assert (record.version, record.content, record.tags) == (4, "Two\nlines.", ("new", "shop"))
    assert record.metadata == {"owner": "Bob"}
    page = visitor.get("/record/edit", ns=HERE, id="order-57")
    wrong = visitor.send(page, "/record/edit", 400, content="{'order': 1}", tags="", metadata="")
    assert "the body is not JSON" in wrong.text
    assert "{'order': 1}" in wrong.text
    visitor.send(wrong, "/record/edit", content='{"order": 1}', tags="", metadata="")
    assert here.get("order-57").content == Json({"order": 1})
    assert here.get("order-57").metadata == {}


@pytest.mark.req("console:pages", "op:version")
def test_what_was_written_is_kept_when_another_write_came_first(
    visitor: Visitor, here: Namespace
) -> None:
    page = visitor.get("/record/edit", ns=HERE, id="refund")
    here.update("refund", content="of somebody else")
    form = {"content": "of mine", "tags": "", "metadata": ""}
    refused = visitor.send(page, "/record/edit", 409, **form)
    assert "is at version 4, not 3" in refused.text
    assert "of mine" in refused.text
    assert here.get("refund").content == "of somebody else"


@pytest.mark.req("console:pages", "record:body")
@pytest.mark.parametrize("memory_id", ["scan", "hostile", "crlf"])
def test_a_body_that_a_form_can_not_keep_stays_byte_for_byte(
    visitor: Visitor, here: Namespace, memory_id: str
) -> None:
    here.save("a\r\nb\rc", memory_id="crlf", kind="note")
    before = here.get(memory_id).content
    page = visitor.get("/record/edit", ns=HERE, id=memory_id)
    assert "content" not in page.forms[-1].fields
    visitor.send(page, "/record/edit", content="lost", tags="t", metadata="")
    after = here.get(memory_id)
    assert (after.content, after.tags) == (before, ("t",))


@pytest.mark.req("console:pages", "op:merge", "console:safe")
def test_what_a_form_does_not_show_stays_when_the_rest_is_changed(
    visitor: Visitor, here: Namespace
) -> None:
    hidden = "a\u202eb\ud800\x00"
    here.save(
        Json({hidden: hidden}),
        memory_id="j",
        kind="note",
        tags=["t\u202eu"],
        metadata={hidden: {"n": None, "x": hidden}},
    )
    before = here.get("j")
    page = visitor.get("/record/edit", ns=HERE, id="j")
    same = visitor.send(page, "/record/edit")
    assert "no version was added" in same.text
    assert here.get("j") == before
    fields = page.forms[-1].fields
    visitor.send(page, "/record/edit", tags=fields["tags"] + "\nnew")
    after = here.get("j")
    assert (after.content, after.metadata) == (before.content, before.metadata)
    assert after.tags == ("t\u202eu", "new")


@pytest.mark.req("console:pages", "history:purge")
def test_a_purge_needs_the_id_typed(visitor: Visitor, here: Namespace) -> None:
    for typed in ("", "Refund", "refun"):
        refused = visitor.send(confirm(visitor, "purge"), "/record/change", 400, typed=typed)
        assert "type its id" in refused.text
    assert here.get("refund").version == 3
    page = visitor.send(confirm(visitor, "purge"), "/record/change", typed="refund")
    assert "its bodies are gone from every version" in page.text
    assert visitor.raw("GET", f"/record/body?ns={HERE}&id=refund").status_code == 404


@pytest.mark.req("console:auth", "console:pages")
@pytest.mark.parametrize(
    ("right", "buttons"),
    [
        ("read", []),
        ("write", ["Change", "Archive", "Delete"]),
        ("admin", ["Change", "Archive", "Delete", "Purge"]),
    ],
)
def test_buttons_are_those_that_the_key_may_use_and_a_post_is_refused_beyond(
    visitor: Visitor, local: Memory, here: Namespace, right: str, buttons: list[str]
) -> None:
    visitor.log_in(local.keyring.create("app", [Grant.parse(f"{right}:acme/**")]).credential)
    page = visitor.get("/record", ns=HERE, id="refund")
    shown = [word for word in ("Change", "Archive", "Delete", "Purge") if f" {word} " in page.text]
    assert shown == buttons
    assert ("Roll back" in page.text) is bool(buttons)
    answer = visitor.answer(confirm(visitor, "purge"), "/record/change", typed="refund")
    assert answer.status_code == (200 if right == "admin" else 403)
    edit = visitor.get("/record/edit", ns=HERE, id="order-58")
    answer = visitor.answer(edit, "/record/edit", content="{}", tags="", metadata="")
    assert answer.status_code == (403 if right == "read" else 200)
    answer = visitor.answer(confirm(visitor, "archive", "order-57"), "/record/change")
    assert answer.status_code == (403 if right == "read" else 200)
    if right == "write":
        assert here.history("order-57")[-1].actor == "key:app (console)"


@pytest.mark.req("console:auth")
def test_a_key_reads_no_page_of_another_namespace(visitor: Visitor, local: Memory) -> None:
    visitor.log_in(local.keyring.create("app", [Grant.parse("admin:acme/bob")]).credential)
    for path in ("/", "/records", "/record?id=refund", "/record/body?id=refund", "/live"):
        mark = "&" if "?" in path else "?"
        answer = visitor.raw("GET", f"{path}{mark}ns={HERE}", follow_redirects=True)
        assert answer.status_code == 403
        assert "Refund" not in answer.text
    events = visitor.raw("GET", f"/live/events?ns={HERE}")
    assert events.status_code == 403


# Live


def receipts(answer: httpx.Response, count: int) -> list[tuple[int, dict[str, str]]]:
    """Read events of an open feed, as many as are asked for."""
    found: list[tuple[int, dict[str, str]]] = []
    number = 0
    for line in answer.iter_lines():
        if line.startswith("id: "):
            number = int(line.removeprefix("id: "))
        elif line.startswith("data: "):
            found.append((number, json.loads(line.removeprefix("data: "))))
            if len(found) == count:
                break
    return found


@pytest.mark.req("console:pages", "server:feed")
def test_receipts_come_as_they_are_written_and_hold_no_body(
    visitor: Visitor, here: Namespace
) -> None:
    page = visitor.get("/live", ns=HERE)
    assert "[memo:hostile] save" in page.text
    (events,) = (given["data-events"] for _, given in page.tags if "data-events" in given)
    with visitor.http.stream("GET", events) as feed:
        assert feed.headers["content-type"].startswith("text/event-stream")
        here.save("a secret body", memory_id="new", kind="note", key="k")
        here.update("new", content="another body")
        (first, one), (second, two) = receipts(feed, 2)
    assert (one["id"], one["operation"], one["preview"]) == ("[memo:new]", "save", "note:k")
    assert (two["operation"], two["version"]) == ("update", "Version 2")
    assert "body" not in json.dumps([one, two])
    resumed = visitor.http.stream("GET", events, headers={"Last-Event-ID": str(first)})
    with resumed as feed:
        assert [number for number, _ in receipts(feed, 1)] == [second]


@pytest.mark.req("console:auth", "server:feed")
def test_a_feed_ends_with_its_session_key(visitor: Visitor, local: Memory) -> None:
    made = local.keyring.create("app", [Grant.parse("read:acme/**")])
    visitor.log_in(made.credential)
    with visitor.http.stream("GET", f"/console/live/events?ns={HERE}&after=18") as feed:
        local.keyring.revoke(made.key.key_id)
        assert [line for line in feed.iter_lines() if line.startswith("data")] == []
    assert visitor.raw("GET", f"/live/events?ns={HERE}").status_code == 401


@pytest.mark.req("server:bad-input", "server:feed")
def test_a_position_that_is_none_is_refused(visitor: Visitor) -> None:
    for after in ("-1", "x", "9" * 30):
        assert visitor.raw("GET", f"/live/events?ns={HERE}&after={after}").status_code == 400


# Hostile texts


@pytest.mark.req("console:safe")
def test_hostile_texts_stay_text_on_every_page(visitor: Visitor, here: Namespace) -> None:
    addresses = [
        f"/records?ns={HERE}",
        f"/records?ns={HERE}&q=unbroken&explain=1",
        f"/record?ns={HERE}&id=hostile",
        f"/record/diff?ns={HERE}&id=hostile&a=1&b=1",
        f"/record/confirm?ns={HERE}&id=hostile&do=purge",
        f"/record/edit?ns={HERE}&id=hostile",
        f"/record/edit?ns={HERE}&id=markup",
        f"/live?ns={HERE}",
        "/",
    ]
    here.save("</textarea><script>document.title='run'</script>", memory_id="markup", kind="note")
    for address in addresses:
        text = visitor.raw("GET", address).text
        page = Parsed(text)
        scripts = [given for tag, given in page.tags if tag == "script"]
        assert all(given["src"].startswith("/console/static/") for given in scripts), address
        assert not {"img", "style", "iframe"} & {tag for tag, _ in page.tags}, address
        assert not any(name.startswith("on") for _, given in page.tags for name in given), address
        assert "\u202e" not in text, address
        assert "\x00" not in text, address
    shown = " ".join(visible(HOSTILE).split())
    assert shown in visitor.get("/record", ns=HERE, id="hostile").text
    place = json.dumps(["acme", NAME])
    listed = visitor.get("/records", ns=place)
    assert "of a hostile namespace" in listed.text


@pytest.mark.req("console:safe")
@pytest.mark.parametrize("seed", range(12))
def test_no_text_of_others_changes_what_a_page_is_made_of(
    visitor: Visitor, local: Memory, seed: int
) -> None:
    chance = random.Random(seed)

    def write(place: str, say: Callable[[str], str]) -> None:
        """Save a record with texts in every place."""
        name = name_of(say("name")) or "name"
        space = local.namespace("made", place, actor=name)
        space.save(
            f"x{say('body')}",
            memory_id="m",
            kind=name[:60],
            key=name,
            tags=[name],
            task=name,
            session=name,
            speaker=name,
            metadata={say("field"): {"value": say("value")}},
        )
        space.update("m", content=f"y{say('other')}")
        space.archive("m")

    def shapes(place: str) -> list[list[tuple[str, tuple[str, ...]]]]:
        """Give what the pages that show it are made of."""
        pages = [
            visitor.get("/", ns=place),
            visitor.get("/records", ns=place, state="any"),
            visitor.get("/record", ns=place, id="m"),
            visitor.get("/record/confirm", ns=place, id="m", do="purge"),
            visitor.get("/live", ns=place),
        ]
        return [[(tag, tuple(sorted(given))) for tag, given in page.tags] for page in pages]

    write("plain", str)
    write("hostile", lambda _: hostile.text(chance))
    assert shapes("made/hostile") == shapes("made/plain")


@pytest.mark.req("console:safe", "server:bad-input")
@pytest.mark.parametrize("seed", range(8))
def test_no_query_breaks_a_page(visitor: Visitor, seed: int) -> None:
    chance = random.Random(seed)
    paths = [path for page in PAGES for path in page.gets]
    values = ["", "1", "0", "-1", "x", "refund", "hostile", "any", "p1", "99999999999", "[1]", "{}"]
    names = [*FIELDS, "q", "id", "version", "a", "b", "do", "cursor", "start", "order", "as_of"]
    names += ["explain", "budget", "conversation", "notice", "after", "next", "self", "path"]
    for path in paths:
        for _ in range(4):
            query = {
                name: chance.choice((chance.choice(values), hostile.text(chance)))
                for name in chance.sample(names, 5)
            }
            query |= {"ns": chance.choice((HERE, HERE, "acme/bob", hostile.text(chance)))}
            query |= {"id": chance.choice(("refund", "gone", "scan", "x"))}
            written = urlencode(query, errors="surrogatepass")
            answer = visitor.raw("GET", f"{path}?{written}")
            assert answer.status_code in (200, 303, 400, 404, 409), written
            assert "content-security-policy" in answer.headers


@pytest.mark.req("console:pages", "pkg:errors")
def test_a_store_that_fails_is_said_without_asking_it_again(
    visitor: Visitor, local: Memory
) -> None:
    local.storage.close()
    for path in ("/", f"/records?ns={HERE}", f"/record?ns={HERE}&id=refund"):
        answer = visitor.raw("GET", path)
        assert answer.status_code == 503
        assert "can't be used now" in Parsed(answer.text).text
        assert answer.headers["cache-control"] == "no-store"


@pytest.mark.req("console:safe")
def test_ten_megabytes_are_shown_in_part(visitor: Visitor, local: Memory) -> None:
    space = local.namespace("big")
    space.save("<&" * 5_000_000, memory_id="b", kind="note")
    page = visitor.raw("GET", "/record?ns=big&id=b")
    assert len(page.content) < 2_000_000
    assert len(visitor.raw("GET", "/records?ns=big").content) < 50_000
    assert len(visitor.raw("GET", "/record/body?ns=big&id=b").content) == 10_000_000
