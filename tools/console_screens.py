"""Make a picture of every page of the console: each language, both colours, desk and phone.

    python tools/console_screens.py FOLDER

It serves a store of made-up records on loopback and opens its pages in a headless Chromium, as
tests/test_console_browser.py does. Look at the pictures after a change of the console's look.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from console_store import filled
from playwright.sync_api import Browser, sync_playwright
from serving import loopback

from zero_mem import Memory
from zero_mem.console.app import Console
from zero_mem.server.settings import Settings

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
    "login": "/login",
    "refused": f"/record?{HERE}&id=nothing",
}


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


def shoot(browser: Browser, url: str, folder: Path, names: list[str]) -> None:
    """Make the pictures."""
    for look in looks():
        width, height = WIDTHS[look.width]
        page = browser.new_page(
            viewport={"width": width, "height": height},
            color_scheme="dark" if look.scheme == "dark" else "light",
            locale={"en": "en-GB", "zh": "zh-CN"}[look.language],
        )
        for name in names:
            page.goto(f"{url}/console{ADDRESSES[name]}", wait_until="load")
            page.screenshot(path=folder / f"{name}-{look}.png", full_page=True)
        page.close()
        print(f"{look}: {len(names)} pages")


def main() -> None:
    """Make the pictures into the folder that is named."""
    if len(sys.argv) < 2:
        sys.exit("usage: python tools/console_screens.py FOLDER [PAGE ...]")
    folder, names = Path(sys.argv[1]), sys.argv[2:] or list(ADDRESSES)
    folder.mkdir(parents=True, exist_ok=True)
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    memory = filled(Memory.open("memory://"))
    with loopback() as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        with server.serving(memory, Settings(), parts=[Console]) as url:
            shoot(browser, url, folder, names)
        browser.close()


if __name__ == "__main__":
    main()
