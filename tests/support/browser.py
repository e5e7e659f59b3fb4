"""Debian's Chromium, driven by Playwright, and pages that are watched while a test uses them.

A watched page fails its test if anything went wrong that a person would not see: an error on the console or
in a script, a report of the Content-Security-Policy, a request to another host. `examine` runs axe.
"""

import contextlib
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, TimeoutError, expect, sync_playwright

from support.waiting import patience

CHROMIUM = Path("/usr/bin/chromium")
NOT_INSTALLED = "NOT tested: pages in a browser (no Chromium: run tools/install-test-servers as root)"

WIDTHS = {1440: 900, 1024: 768, 390: 844}
"""Widths of the windows in which pages are looked at, each with its height."""

FLAGS = ("--disable-gpu", "--hide-scrollbars", "--font-render-hinting=none", "--force-color-profile=srgb")
"""Flags under which the same page has the same picture on each machine that has the same fonts."""

VIOLATIONS = """
document.addEventListener("securitypolicyviolation", (event) => console.error(
  `Content-Security-Policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
"""

Theme = Literal["light", "dark"]


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run Chromium without a window. Skips the test if it is not installed."""
    if not CHROMIUM.exists():
        pytest.skip(NOT_INSTALLED)
    expect.set_options(timeout=patience(20) * 1000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=FLAGS, timeout=patience(60) * 1000
        )
        try:
            yield browser
        finally:
            browser.close()


class Watch:
    """Faults of the pages of one context. Those that match a pattern of `expected` are none."""

    def __init__(self, context: BrowserContext, *origins: str) -> None:
        self.expected: list[str] = []
        self._faults: list[str] = []
        self._hosts = {urlsplit(origin).netloc for origin in origins}
        context.add_init_script(VIOLATIONS)
        context.on("console", lambda message: self._note_message(message.type, message.text))
        context.on("weberror", lambda error: self._faults.append(f"script: {error.error}"))
        context.on("request", lambda request: self._note_request(request.url))

    @property
    def faults(self) -> list[str]:
        """Faults so far that were not expected."""
        return [each for each in self._faults if not any(re.search(known, each) for known in self.expected)]

    def take_faults(self) -> list[str]:
        """Return the faults so far and forget them."""
        found = self.faults
        self._faults.clear()
        return found

    def _note_message(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self._faults.append(f"console {kind}: {text}")

    def _note_request(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("data", "blob", "about") and parts.netloc not in self._hosts:
            self._faults.append(f"request to another host: {url}")


class Windows:
    """Opens windows of a browser on one or more origins, and watches them. A context manager.

    At its end a test fails that had a fault.
    """

    def __init__(self, browser: Browser, *origins: str) -> None:
        self._browser = browser
        self._origins = origins
        self._contexts = ExitStack()
        self.watches: list[Watch] = []

    def __enter__(self) -> "Windows":
        return self

    def __exit__(self, *failure: object) -> None:
        faults = [fault for watch in self.watches for fault in watch.faults]
        self._contexts.close()
        if failure == (None, None, None):
            assert not faults, "\n".join(faults)

    def open(
        self,
        address: str = "",
        *,
        width: int = 1440,
        theme: Theme = "light",
        expected: tuple[str, ...] = (),
        **settings: Any,
    ) -> Page:
        """Open an address, or the path of one on the first origin, in a window with storage of its own.

        ``expected`` are patterns of faults that the test makes on purpose. ``settings`` are Playwright's of a
        context: ``forced_colors="active"``, ``reduced_motion="reduce"``, ``has_touch=True``.
        """
        settings.setdefault("reduced_motion", "reduce")  # so that nothing is looked at halfway
        context = self._browser.new_context(
            viewport={"width": width, "height": WIDTHS.get(width, 900)},
            color_scheme=theme,
            locale="en-GB",
            timezone_id="UTC",
            base_url=self._origins[0],
            **settings,
        )
        self._contexts.callback(context.close)
        context.set_default_timeout(patience(20) * 1000)
        watch = Watch(context, *self._origins)
        watch.expected.extend(expected)
        self.watches.append(watch)
        page = context.new_page()
        if address:
            page.goto(address)
        return page


MANY_ROWS = ["tbody tr:nth-child(n + 6)", ".timeline > li:nth-child(n + 6)", "option:nth-child(n + 6)"]
"""Rows of long tables and lists, which are like those before them."""


def examine(
    page: Page, but: tuple[str, ...] = (), only: tuple[str, ...] = (), *, all_rows: bool = True
) -> list[str]:
    """Return axe's findings above "minor": rule, impact, and elements.

    ``but``, ``only``: rules. ``all_rows``: else the first rows of long tables, which takes less time.
    """
    options: dict[str, object] = {"resultTypes": ["violations"]}
    if but:
        options["rules"] = {each: {"enabled": False} for each in but}
    if only:
        options["runOnly"] = {"type": "rule", "values": list(only)}
    context = None if all_rows else {"include": [["html"]], "exclude": [[each] for each in MANY_ROWS]}
    response = Axe().run(page, context=context, options=options).response
    return [
        f"{found['id']} ({found['impact']}): {node['html'][:200]} {node.get('failureSummary', '')[:300]}"
        for found in response["violations"]
        if found["impact"] not in (None, "minor")
        for node in found["nodes"][:5]
    ]


def overflow(page: Page) -> int:
    """Return by how many pixels a page is wider than its window, once its charts have their new widths."""
    wider = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    with contextlib.suppress(TimeoutError):
        page.wait_for_function(f"{wider} <= 0", timeout=patience(3) * 1000)
    return int(page.evaluate(wider))


def small_targets(page: Page) -> list[str]:
    """Return links, buttons and fields that are seen and smaller than 24 px, but links within a sentence."""
    found: list[str] = page.evaluate(
        """() => [...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, summary")]
          .filter((each) => !each.closest("p, label, .visually-hidden") && each.checkVisibility())
          .map((each) => [each, each.getBoundingClientRect()])
          .filter(([each, box]) => box.width && box.height && box.height < 23.5 && each.tabIndex >= 0)
          .map(([each, box]) => `${each.outerHTML.slice(0, 120)} is ${Math.round(box.height)} px high`)"""
    )
    return found
