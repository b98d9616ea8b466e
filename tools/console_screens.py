"""Make a picture of every page of the console: each language, both colours, desk and phone.

    python tools/console_screens.py FOLDER

It serves a store of made-up records on loopback and opens its pages in a headless Chromium, as
tests/test_console_browser.py does. Look at the pictures after a change of the console's look.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from console_store import HOSTILE, NAME, filled
from console_talks import ADDRESSES as MORE
from console_talks import talked
from playwright.sync_api import Browser, Page, sync_playwright
from serving import loopback

from zero_mem import Memory
from zero_mem.access import Grant
from zero_mem.console.app import Console
from zero_mem.server.settings import Settings
from zero_mem.testing.fakes import FakeClock

WIDTHS: Final = {"desk": (1280, 900), "phone": (360, 740)}
HERE: Final = "ns=acme%2Falice"
ADDRESSES: Final = {
    "overview": "/",
    "overview-namespace": f"/?{HERE}",
    "records": f"/records?{HERE}",
    "records-explained": f"/records?{HERE}&q=refund+policy&explain=1",
    "records-filtered": f"/records?{HERE}&kind=order&order=changed&meta_path=order.id",
    "records-none": f"/records?{HERE}&q=zebra",
    "record": f"/record?{HERE}&id=refund",
    "record-json": f"/record?{HERE}&id=order-57",
    "record-hostile": f"/record?{HERE}&id=hostile",
    "diff": f"/record/diff?{HERE}&id=refund&a=1&b=3",
    "edit": f"/record/edit?{HERE}&id=refund",
    "confirm-purge": f"/record/confirm?{HERE}&id=refund&do=purge",
    "live": f"/live?{HERE}",
    **MORE,
    "costs-confirm": MORE["costs"],
    "backup-made": "/backup",
    "login": "/login",
    "refused": f"/record?{HERE}&id=nothing",
}

WITH_KEY: Final = {"keys-listed": "/keys", "key-revoke": "/keys"}
"""Pages that are looked at with a key, since they list some."""
PRESSED: Final = {
    "backup-made": "main form[action*=make] button",
    "costs-confirm": "main form button.main",
    "key-revoke": "main a.danger",
}
"""What is pressed before the picture."""


@dataclass(frozen=True, slots=True)
class Look:
    """How a page is looked at."""

    language: str
    scheme: str
    width: str

    def __str__(self) -> str:
        return f"{self.language}-{self.scheme}-{self.width}"


def looks() -> Iterator[Look]:
    """Give every language at every width, each in light and dark."""
    for language in ("en", "zh"):
        for width in WIDTHS:
            for scheme in ("light", "dark"):
                yield Look(language, scheme, width)


def keyed(memory: Memory) -> str:
    """Make some keys and give one that administers the store."""
    ring = memory.keyring
    admin = ring.create("Ann at the desk", [Grant.parse("admin:**")])
    ring.create(
        "shop agent", [Grant.parse("write:shop/*"), Grant.parse("read:acme/**")], expires_in=90_000
    )
    ring.create(NAME, [Grant.parse("read:acme/alice")])
    ring.revoke(ring.create("an old laptop", [Grant.parse("write:acme/**")]).key.key_id)
    return admin.credential


def log_in(page: Page, url: str, credential: str) -> None:
    """Log in as a person does."""
    page.goto(f"{url}/console/login")
    page.fill("#key", credential)
    page.click("main button")


def shoot(
    browser: Browser,
    url: str,
    folder: Path,
    names: list[str],
    clock: FakeClock,
    credential: str = "",
) -> None:
    """Make the pictures."""
    for look in looks():
        width, height = WIDTHS[look.width]
        page = browser.new_page(
            viewport={"width": width, "height": height},
            color_scheme="dark" if look.scheme == "dark" else "light",
            locale={"en": "en-GB", "zh": "zh-CN"}[look.language],
        )
        if credential and names:
            log_in(page, url, credential)
        for name in names:
            clock.advance(1)
            page.goto(f"{url}/console{(ADDRESSES | WITH_KEY)[name]}", wait_until="load")
            if name in PRESSED:
                page.locator(PRESSED[name]).first.click()
            page.screenshot(path=folder / f"{name}-{look}.png", full_page=True)
        page.close()
        print(f"{look}: {len(names)} pages")


def main() -> None:
    """Make the pictures into the folder that is named."""
    if len(sys.argv) < 2:
        sys.exit("usage: python tools/console_screens.py FOLDER [PAGE ...]")
    folder, names = Path(sys.argv[1]), sys.argv[2:] or [*ADDRESSES, *WITH_KEY]
    folder.mkdir(parents=True, exist_ok=True)
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    clock = FakeClock()
    memory = filled(Memory.open("memory://", clock=clock))
    talked(memory, clock, HOSTILE)
    with (
        loopback() as server,
        sync_playwright() as playwright,
        tempfile.TemporaryDirectory() as backups,
    ):
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        settings = Settings(backup_folder=f"{backups}/store", backup_every=0.0)
        with server.serving(memory, settings, parts=[Console]) as url:
            shoot(browser, url, folder, [name for name in names if name in ADDRESSES], clock)
            credential = keyed(memory)
            shoot(browser, url, folder, [n for n in names if n in WITH_KEY], clock, credential)
        browser.close()


if __name__ == "__main__":
    main()
