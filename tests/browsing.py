"""A real browser for tests, and what is asked of every page that it opens."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, expect, sync_playwright

R = TypeVar("R")

CHROMIUM: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# What is waited for comes at once, but not on a machine that has much else to do.
expect.set_options(timeout=60_000)

_STORE: Final = ThreadPoolExecutor(1, thread_name_prefix="test-store")


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run a headless Chromium; without one the tests are skipped, but never in CI."""
    found = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if found is None:
        reason = f"no browser here: none of {', '.join(CHROMIUM)} is on the PATH"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


def beside(work: Callable[[], R]) -> R:
    """Do work of the store in another thread: the browser's driver has a loop in this one."""
    return _STORE.submit(work).result()


@dataclass
class Watch:
    """What a page did that it must not do."""

    url: str
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def follow(self, page: Page) -> None:
        """Note what a page says on its console, throws, opens and loads."""
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("dialog", lambda dialog: self.said.append(f"dialog {dialog.message}"))
        page.on("request", self._request)

    def _console(self, message: ConsoleMessage) -> None:
        self.said.append(f"{message.type}: {message.text} {message.location}")

    def _request(self, request: Request) -> None:
        if not request.url.startswith(self.url):
            self.asked.append(request.url)

    def check(self) -> None:
        """Fail if a page said anything, or asked another host."""
        assert self.said == [], self.said
        assert self.asked == [], self.asked


def faults(page: Page) -> list[str]:
    """List what would keep somebody from using a page: width, contrast, names, structure."""
    found: Any = page.evaluate(_FAULTS)
    return list(found)


_FAULTS: Final = """() => {
  const faults = [];
  const say = (what, element) => faults.push(what + ': ' + element.outerHTML.slice(0, 160));
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) faults.push('too wide: ' + root.scrollWidth);
  for (const box of document.querySelectorAll('.scroll')) {
    if (box.scrollWidth > box.clientWidth) say('columns out of sight', box);
  }
  for (const number of document.querySelectorAll('td.number')) {
    const range = document.createRange();
    range.selectNodeContents(number);
    const lines = new Set([...range.getClientRects()].map((box) => Math.round(box.top)));
    const isNumber = /^[−\\d,.]+$/.test(number.textContent.trim());
    if (isNumber && lines.size > 1) say('broken number', number);
  }
  for (const [name, count] of [['h1', 1], ['main', 1], ['header', 1]]) {
    if (document.querySelectorAll(name).length !== count) faults.push('not one ' + name);
  }
  let level = 0;
  for (const heading of document.querySelectorAll('h1, h2, h3, h4')) {
    const own = Number(heading.tagName[1]);
    if (own > level + 1) say('heading skips a level', heading);
    level = own;
  }
  const ids = new Set();
  for (const element of document.querySelectorAll('[id]')) {
    if (ids.has(element.id)) say('id twice', element);
    ids.add(element.id);
  }
  const named = (e) => e.getAttribute('aria-label') || e.getAttribute('aria-labelledby')
    || (e.labels && e.labels.length && e.labels[0].textContent.trim()) || e.textContent.trim();
  const fields = 'input:not([type=hidden], [hidden]), select, textarea';
  for (const field of document.querySelectorAll(fields)) {
    const labels = field.labels ? field.labels.length : 0;
    if (!labels && !field.getAttribute('aria-label')) say('no label', field);
  }
  for (const control of document.querySelectorAll('a, button, summary')) {
    if (!named(control)) say('no name', control);
  }
  for (const table of document.querySelectorAll('table')) {
    if (!table.caption && !table.getAttribute('aria-labelledby')) say('no caption', table);
    for (const head of table.querySelectorAll('th')) if (!head.scope) say('no scope', head);
  }
  const colour = (text) => {
    const parts = text.match(/[\\d.]+/g).map(Number);
    return parts.length === 3 ? [...parts, 1] : parts;
  };
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const own = colour(getComputedStyle(e).backgroundColor);
      if (own[3] === 1) return own;
      if (own[3] > 0) return null;
    }
    return [255, 255, 255, 1];
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim()) continue;
    if (element.closest('svg, template, option')) continue;
    const style = getComputedStyle(element);
    if (!element.getClientRects().length || style.visibility === 'hidden') continue;
    const below = ground(element);
    if (!below) { say('no plain ground', element); continue; }
    const pair = [light(colour(style.color)), light(below)].sort((a, b) => b - a);
    const contrast = (pair[0] + 0.05) / (pair[1] + 0.05);
    if (contrast < 4.5) say('contrast ' + contrast.toFixed(2), element);
  }
  return faults;
}"""
