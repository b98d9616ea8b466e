"""The console in a real browser: every page, both languages, both colours, desk and phone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import pytest
from browsing import Watch, beside, chromium, faults
from console_store import filled
from playwright.sync_api import Browser, BrowserContext, Page, expect
from serving import Loopback, loopback

from zero_mem import Memory
from zero_mem.access import Grant
from zero_mem.console.app import Console
from zero_mem.server.settings import Settings

pytestmark = pytest.mark.xdist_group("browser")

HERE: Final = "ns=acme%2Falice"
ADDRESSES: Final = (
    "/",
    f"/?{HERE}",
    f"/records?{HERE}",
    f"/records?{HERE}&q=refund+goods+tea&explain=1&budget=40&kind=",
    f"/records?{HERE}&order=changed&form=episodic",
    f"/records?{HERE}&where=x",
    f"/record?{HERE}&id=refund&version=2",
    f"/record?{HERE}&id=hostile",
    f"/record?{HERE}&id=scan",
    f"/record/diff?{HERE}&id=refund&a=1&b=3",
    f"/record/confirm?{HERE}&id=hostile&do=purge",
    f"/record/edit?{HERE}&id=refund",
    f"/live?{HERE}",
    "/records?ns=new",
    f"/record?{HERE}&id=nothing",
    "/login",
)
REFUSED: Final = (f"/records?{HERE}&where=x", f"/record?{HERE}&id=nothing")
"""Pages that say what is wrong; the browser notes their status on its console."""
# Each two of language, colours and width meet.
LOOKS: Final = (
    ("en-GB", "light", 1280),
    ("zh-CN", "dark", 1280),
    ("zh-CN", "light", 360),
    ("en-GB", "dark", 360),
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with loopback() as running:
        yield running


@pytest.fixture
def local() -> Memory:
    return beside(lambda: filled(Memory.open("memory://")))


@pytest.fixture
def url(server: Loopback, local: Memory) -> Iterator[str]:
    settings = Settings(recheck=0.0, poll=0.05, grace=1.0)
    with server.serving(local, settings, parts=[Console]) as address:
        yield f"{address}/console"


@pytest.fixture
def page(browser: Browser, url: str) -> Iterator[Page]:
    """Give a page in English; what it must not do is a failure."""
    watch = Watch(url)
    context = browser.new_context(locale="en-GB", viewport={"width": 1280, "height": 900})
    opened = context.new_page()
    watch.follow(opened)
    yield opened
    context.close()
    watch.check()


@pytest.mark.req("console:access", "console:safe", "console:languages", "console:pages")
@pytest.mark.parametrize(("locale", "scheme", "width"), LOOKS)
def test_every_page_can_be_used_by_anyone_and_runs_nothing_of_what_it_shows(
    browser: Browser, url: str, locale: str, scheme: str, width: int
) -> None:
    watch = Watch(url)
    context = browser.new_context(
        locale=locale,
        color_scheme="dark" if scheme == "dark" else "light",
        viewport={"width": width, "height": 800},
    )
    page = context.new_page()
    watch.follow(page)
    for address in ADDRESSES:
        page.goto(url + address)
        assert faults(page) == [], address
        assert page.title() != "run", address
        assert page.locator("html").get_attribute("lang") == {"en-GB": "en"}.get(locale, "zh-Hans")
        if address in REFUSED:
            watch.said = [each for each in watch.said if "Failed to load resource" not in each]
        watch.check()
    context.close()


@pytest.mark.req("console:access")
def test_the_checks_of_a_page_find_what_they_look_for(browser: Browser) -> None:
    page = browser.new_page(viewport={"width": 360, "height": 600})
    page.set_content(
        "<header></header><main><h1>a</h1><h3>b</h3><p style='color:#888'>pale</p>"
        "<div style='width:900px'>wide</div><input><button></button><i id=x></i><i id=x></i>"
        "<table><tr><th>c</th></tr></table></main>"
    )
    found = {fault.partition(":")[0] for fault in faults(page)}
    page.close()
    assert found == {
        "too wide",
        "heading skips a level",
        "contrast 3.54",
        "no label",
        "no name",
        "id twice",
        "no caption",
        "no scope",
    }


@pytest.mark.req("console:access")
def test_everything_is_reached_by_keyboard(page: Page, url: str, local: Memory) -> None:
    page.goto(f"{url}/?{HERE}")
    keys = page.keyboard
    keys.press("Tab")
    skip = page.get_by_role("link", name="Skip to the content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    keys.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.get_by_role("link", name="Overview", exact=True).focus()
    keys.press("Tab")
    records = page.get_by_role("link", name="Records", exact=True)
    expect(records).to_be_focused()
    assert records.evaluate("e => getComputedStyle(e).outlineStyle") == "solid"
    keys.press("Enter")
    page.wait_for_url("**/records?**")
    keys.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    keys.type("refund policy")
    keys.press("Enter")
    page.wait_for_url("**q=refund**")
    page.get_by_text("Clear the search").focus()
    keys.press("Tab")
    expect(page.get_by_role("link", name="[memo:refund]")).to_be_focused()
    keys.press("Enter")
    archive = page.get_by_role("link", name="Archive")
    archive.focus()
    keys.press("Enter")
    page.get_by_role("button", name="Archive").focus()
    keys.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("The record is archived")
    assert "notice" not in page.url
    assert beside(lambda: local.namespace("acme", "alice").get("refund").state) == "archived"


@pytest.mark.req("console:pages", "server:feed")
def test_receipts_appear_wait_and_come_after_a_lost_connection(
    page: Page, url: str, local: Memory, server: Loopback
) -> None:
    space = local.namespace("acme", "alice", actor="<b>agent</b>")
    page.goto(f"{url}/live?{HERE}")
    rows = page.locator("#receipts > li")
    state = page.locator("#state")
    expect(state).to_have_text("Live")
    beside(lambda: space.save("one", memory_id="one", kind="note"))
    expect(rows.first).to_contain_text("[memo:one]")
    expect(rows.first).to_contain_text("<b>agent</b>")
    page.get_by_role("button", name="Pause").click()
    beside(lambda: space.save("two", memory_id="two", kind="note"))
    expect(state).to_have_text("Paused, waiting: 1")
    expect(rows.first).to_contain_text("[memo:one]")
    page.get_by_role("button", name="Go on").click()
    expect(rows.first).to_contain_text("[memo:two]")
    assert server.switch.app is not None
    assert server.switch.loop is not None
    host, loop = server.switch.app.host, server.switch.loop
    loop.call_soon_threadsafe(host.stop)
    expect(state).to_have_text("Connecting again …")
    beside(lambda: space.save("three", memory_id="three", kind="note"))
    loop.call_soon_threadsafe(host.stopping.clear)
    expect(rows.first).to_contain_text("[memo:three]")
    assert page.get_by_text("[memo:two]").count() == 1
    rows.first.get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("[memo:three]")


@pytest.mark.req("console:pages")
def test_the_list_of_receipts_is_bounded(page: Page, url: str, local: Memory) -> None:
    space = local.namespace("acme", "alice")
    page.goto(f"{url}/live?{HERE}")
    expect(page.locator("#state")).to_have_text("Live")
    items = [{"content": f"text {n}", "memory_id": f"m{n}", "kind": "note"} for n in range(260)]
    beside(lambda: space.save_many(items))
    rows = page.locator("#receipts > li")
    expect(rows.first).to_contain_text("[memo:m259]")
    expect(rows).to_have_count(200)


@pytest.mark.req("console:auth")
def test_a_session_begins_with_a_key_and_ends_with_it(
    browser: Browser, url: str, local: Memory
) -> None:
    made = beside(lambda: local.keyring.create("app", [Grant.parse("read:acme/**")]))
    context = browser.new_context(locale="en-GB")
    page = context.new_page()
    page.goto(f"{url}/record?{HERE}&id=refund")
    page.get_by_label("API key").fill("zm_wrong")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("The key is not valid")
    page.get_by_label("API key").fill(made.credential)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("[memo:refund]")
    assert page.get_by_role("link", name="Archive").count() == 0
    assert page.evaluate("document.cookie") == ""
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("status")).to_contain_text("You are logged out")
    page.get_by_label("API key").fill(made.credential)
    page.get_by_role("button", name="Log in").click()
    page.goto(f"{url}/live?{HERE}")
    expect(page.locator("#state")).to_have_text("Live")
    beside(lambda: local.keyring.revoke(made.key.key_id))
    expect(page.locator("#state")).to_contain_text("Ended")
    page.get_by_role("link", name="Load again").click()
    expect(page.get_by_role("status")).to_contain_text("The session has ended")
    context.close()


@pytest.fixture
def scriptless(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context(java_script_enabled=False, locale="en-GB")
    yield context
    context.close()


@pytest.mark.req("console:access", "console:languages")
def test_without_scripts_all_but_the_live_list_works(scriptless: BrowserContext, url: str) -> None:
    page = scriptless.new_page()
    page.goto(f"{url}/records?{HERE}")
    page.get_by_role("searchbox").fill("refund policy")
    page.get_by_role("button", name="Find").click()
    page.get_by_role("link", name="[memo:refund]").click()
    page.get_by_label("from version 1").check()
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Version 1 compared with version 3")
    page.get_by_role("button", name="中文").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("版本 1 与版本 3 的比较")
    page.get_by_role("button", name="深色").click()
    expect(page.locator("html")).to_have_attribute("data-scheme", "dark")
    page.goto(f"{url}/live?{HERE}")
    expect(page.locator("#receipts > li").first).to_contain_text("[memo:hostile]")
    expect(page.locator("#pause")).to_be_hidden()


@pytest.mark.req("console:access")
def test_nothing_moves_where_less_motion_is_asked_for(browser: Browser, url: str) -> None:
    moving = "getComputedStyle(document.querySelector('main')).animationName"
    for motion, name in (("reduce", "none"), ("no-preference", "fresh")):
        context = browser.new_context(reduced_motion=motion)  # type: ignore[arg-type]
        page = context.new_page()
        page.goto(f"{url}/")
        page.evaluate("document.querySelector('main').classList.add('fresh')")
        assert re.fullmatch(name, str(page.evaluate(moving)))
        context.close()
