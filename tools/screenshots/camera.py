"""Pictures of pages in a browser that is the same each time: its clock, fonts, size and language."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final

import httpx
from playwright.sync_api import Browser, Page, sync_playwright

from screenshots.errors import NoScreenshots
from screenshots.fonts import check_fonts
from screenshots.subjects import Subject
from support.browser import CHROMIUM, FLAGS, Watch
from support.shown_cloud.storyteller import NOW
from support.waiting import patience

WIDTH: Final = 1440
"""Width of all pictures in pixels."""

MOST_BYTES: Final = 200_000
"""Bytes of a picture at most: they are in the repository, and readers load them."""

_LIVE: Final = """() => !document.querySelector("[data-live-topic], [data-live-want]")
  || document.querySelector("[data-live-state]")?.dataset.state === "live" """
"""Returns true once the page, if anything in it is live, gets the events of the cloud."""

_QUIET: Final = """(drawn) => document.fonts.status === "loaded" && !document.querySelector(".htmx-request")
  && (!drawn || [...document.querySelectorAll(".chart, [data-map]")].every((each) =>
    each.matches(drawn) || each.querySelector(drawn)))"""
"""Returns true once nothing is being loaded, and scripts have drawn all that they draw."""


@contextmanager
def opened_browser() -> Iterator[Browser]:
    """Run Chromium without a window. Raises `NoScreenshots` if it is not installed."""
    if not CHROMIUM.exists():
        raise NoScreenshots(f"There is no {CHROMIUM}: run tools/install-test-servers as root.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", *FLAGS], timeout=patience(60) * 1000
        )
        try:
            yield browser
        finally:
            browser.close()


def take_picture(browser: Browser, client: httpx.Client, origin: str, subject: Subject) -> bytes:
    """Return a picture of a page as PNG. ``client``: has a session at the ``origin`` of the cloud.

    Raises `NoScreenshots` if something goes wrong in the page, for want of a font, or if it is too large.
    """
    context = browser.new_context(
        viewport={"width": WIDTH, "height": subject.height},
        device_scale_factor=1,
        color_scheme="light",
        reduced_motion="reduce",
        locale="en-US",
        timezone_id="UTC",
        base_url=origin,
    )
    try:
        context.set_default_timeout(patience(20) * 1000)
        watch = Watch(context, origin)
        context.add_cookies(
            [{"name": each.name, "value": each.value or "", "url": origin} for each in client.cookies.jar]
        )
        page = context.new_page()
        page.clock.set_fixed_time(datetime.fromtimestamp(NOW, UTC))
        page.goto(subject.address(client))
        _await(page, subject)
        picture = page.screenshot(animations="disabled", caret="hide", scale="css")
        check_fonts(page)
        faults = watch.faults
    finally:
        context.close()
    if faults:
        raise NoScreenshots(f"Something went wrong in the page {subject.name}: {'; '.join(faults)}")
    if len(picture) > MOST_BYTES:
        size = f"{len(picture):,} bytes, and {MOST_BYTES:,} at most"
        raise NoScreenshots(f"The picture {subject.name} has {size}: show less of the page.")
    return picture


def _await(page: Page, subject: Subject) -> None:
    """Wait until a page has all that is in the picture."""
    page.wait_for_function(_LIVE)
    page.wait_for_function(_QUIET, arg=subject.drawn)
    # Two frames: what was drawn last is on the screen then.
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
