"""Conversations, costs, expiry, keys and backups in a real browser: what a person does there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from browsing import Watch, beside, chromium, faults
from console_store import HOSTILE
from console_talks import ADDRESSES, SPACE, talked
from playwright.sync_api import Browser, Page, expect
from serving import Loopback, loopback

from zero_mem import Memory
from zero_mem.access import Grant
from zero_mem.console.app import Console
from zero_mem.server.settings import Settings
from zero_mem.testing.fakes import FakeClock

pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with loopback() as running:
        yield running


@pytest.fixture
def local(clock: FakeClock) -> Memory:
    def made() -> Memory:
        memory = Memory.open("memory://", clock=clock)
        talked(memory, clock, HOSTILE)
        return memory

    return beside(made)


@pytest.fixture
def url(server: Loopback, local: Memory, tmp_path: Path) -> Iterator[str]:
    settings = Settings(recheck=0.0, backup_folder=f"{tmp_path}/backups", backup_every=0.0)
    with server.serving(local, settings, parts=[Console]) as address:
        yield f"{address}/console"


@pytest.fixture(params=[True, False], ids=["scripts", "no scripts"])
def page(request: pytest.FixtureRequest, browser: Browser, url: str) -> Iterator[Page]:
    """Give a page in English, with and without scripts; what it must not do is a failure."""
    watch = Watch(url)
    context = browser.new_context(
        locale="en-GB",
        viewport={"width": 1280, "height": 900},
        java_script_enabled=request.param,
        permissions=["clipboard-read", "clipboard-write"],
    )
    opened = context.new_page()
    watch.follow(opened)
    yield opened
    context.close()
    watch.check()


@pytest.mark.req("console:pages", "inspect:prompt")
def test_from_a_conversation_to_the_record_behind_a_token(page: Page, url: str) -> None:
    page.goto(url + ADDRESSES["conversations"])
    page.get_by_role("link", name="trip-to-bern").click()
    second = page.get_by_role("article", name="Prompt 2")
    expect(second).to_contain_text("supersedes an earlier version")
    second.get_by_role("link", name="[memo:means]").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("[memo:means]")
    expect(page.get_by_role("main")).to_contain_text("Trains, or a bus at night.")


@pytest.mark.req("console:pages", "policy:cost-review")
def test_a_ticked_proposal_is_applied_after_a_question(page: Page, url: str, local: Memory) -> None:
    page.goto(url + ADDRESSES["costs"])
    page.get_by_role("checkbox", name="means").uncheck()
    page.get_by_role("button", name="Apply what is ticked").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Change these settings?")
    expect(page.get_by_role("main")).not_to_contain_text("means")
    page.get_by_role("button", name="Change them").click()
    expect(page.get_by_role("status")).to_contain_text("travel_rule")
    expect(page.get_by_role("status")).not_to_contain_text("not changed")
    space = local.namespace(*SPACE)
    kinds = ("travel_rule", "means")
    seen = beside(lambda: [space.limits("procedural", kind).visibility for kind in kinds])
    assert seen == ["handle", "pinned"]


@pytest.mark.req("console:pages", "expire:sweeper")
def test_what_is_due_is_swept_by_a_button(page: Page, url: str) -> None:
    page.goto(url + ADDRESSES["expiry"])
    due = page.locator("section", has=page.get_by_role("heading", name="Due now"))
    expect(due.get_by_role("link", name="[memo:code-2]")).to_be_visible()
    page.get_by_role("button", name="Sweep now").click()
    expect(page.get_by_role("status")).to_contain_text("Swept")
    ended = page.get_by_role("table", name="What has ended").get_by_role("row")
    expect(ended.nth(1)).to_contain_text("[memo:code-2]")
    expect(page.get_by_text("its task's lease:")).to_be_visible()
    voucher = page.get_by_role("link", name="[memo:v5]")
    expect(voucher).to_be_hidden()
    page.get_by_text("7 Mar 2026", exact=True).click()
    expect(voucher).to_be_visible()


@pytest.mark.req("console:pages", "console:auth", "prod:auth")
def test_a_key_is_made_copied_used_and_revoked(
    page: Page, url: str, request: pytest.FixtureRequest
) -> None:
    page.goto(url + ADDRESSES["keys"])
    page.get_by_label("Name", exact=True).fill("Ann")
    grant = page.get_by_role("group", name="Grant 1")
    grant.get_by_label("Right").select_option("admin")
    grant.get_by_label("Namespaces").fill("**")
    page.get_by_role("button", name="Make the key").click()
    field = page.get_by_label("The key", exact=True)
    credential = field.input_value()
    assert re.fullmatch(r"zm_[a-z2-7]{8}_[a-z2-7]{32}", credential)
    copy = page.get_by_role("button", name="Copy")
    if "no scripts" in request.node.name:
        expect(copy).to_be_hidden()
    else:
        copy.click()
        expect(page.get_by_role("status")).to_have_text("Copied.")
        assert page.evaluate("navigator.clipboard.readText()") == credential
    page.get_by_role("link", name="To the keys").click()
    page.get_by_label("API key").fill(credential)
    page.get_by_role("button", name="Log in").click()
    row = page.get_by_role("row", name="Ann")
    expect(row).to_contain_text("yours")
    row.get_by_role("link", name="Revoke Ann").click()
    expect(page.get_by_role("main")).to_contain_text("your session ends with it")
    page.get_by_role("link", name="Keep it").click()
    page.get_by_role("link", name="Revoke Ann").click()
    page.get_by_role("button", name="Revoke").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Log in")


@pytest.mark.req("console:pages", "prod:backup")
def test_a_backup_is_made_and_verified_by_buttons(page: Page, url: str, tmp_path: Path) -> None:
    page.goto(f"{url}/backup")
    page.get_by_role("button", name="Back up now").click()
    expect(page.get_by_role("status")).to_contain_text("made and verified")
    (file,) = (tmp_path / "backups").iterdir()
    page.get_by_role("button", name=f"Verify {file.name}").click()
    expect(page.get_by_role("status")).to_contain_text("sound")
    expect(page.get_by_text("zero-mem recover")).to_be_visible()
    page.get_by_role("link", name="Examine the store").click()
    expect(page.get_by_role("heading", name="10. Does cost tell")).to_be_visible()


@pytest.mark.req("console:access", "console:auth")
@pytest.mark.parametrize(("locale", "width"), [("en-GB", 360), ("zh-CN", 1280)])
def test_pages_that_follow_a_form_can_be_used_by_anyone(
    browser: Browser, url: str, local: Memory, locale: str, width: int
) -> None:
    """Look at what only a form or a key leads to, as every page is looked at elsewhere."""
    made = beside(lambda: local.keyring.create("desk", [Grant.parse("admin:**")]))
    watch = Watch(url)
    context = browser.new_context(locale=locale, viewport={"width": width, "height": 800})
    page = context.new_page()
    watch.follow(page)
    page.goto(f"{url}/login")
    page.locator("#key").fill(made.credential)
    page.locator("main button").click()
    page.goto(f"{url}/keys")
    assert faults(page) == []
    page.locator("#name").fill('"><b>')
    page.locator("[name=pattern1]").fill("a/**/b")
    page.locator("main form button").click()
    expect(page.get_by_role("alert")).to_be_visible()
    assert faults(page) == []
    page.locator("[name=pattern1]").fill("a/**")
    page.locator("main form button").click()
    assert faults(page) == []
    page.goto(f"{url}/keys/revoke?id={made.key.key_id}")
    assert faults(page) == []
    page.goto(url + ADDRESSES["costs"])
    page.locator("main form button").click()
    assert faults(page) == []
    page.locator("main form button").click()
    assert faults(page) == []
    page.goto(f"{url}/backup")
    page.locator("main form[action*=make] button").click()
    page.locator("main form[action*=verify] button").click()
    assert faults(page) == []
    context.close()
    # The browser notes the refused key on its console, whenever it likes.
    watch.said = [said for said in watch.said if "status of 400" not in said]
    watch.check()


@pytest.mark.req("console:auth", "console:pages")
def test_who_may_only_read_gets_no_button_that_changes_anything(
    page: Page, url: str, local: Memory
) -> None:
    made = beside(lambda: local.keyring.create("reader", [Grant.parse("read:acme/**")]))
    page.goto(f"{url}/login")
    page.get_by_label("API key").fill(made.credential)
    page.get_by_role("button", name="Log in").click()
    navigation = page.get_by_role("navigation", name="Pages")
    expect(navigation.get_by_role("link", name="Costs")).to_be_visible()
    for name in ("Keys", "Backup"):
        expect(navigation.get_by_role("link", name=name)).to_have_count(0)
    for name in ("conversations", "conversation-built", "costs", "expiry"):
        page.goto(url + ADDRESSES[name])
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.locator("main button, main input")).to_have_count(0)
