"""Checks of a page in a browser that hold for every page: keys, text of others, links."""

import re
from html import unescape
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

_SCRIPT = Path(__file__).with_suffix(".js").read_text()

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def _call(page: Page, function: str) -> Any:
    return page.evaluate(f"() => {{ {_SCRIPT}\nreturn {function}(); }}")


def keyboard_faults(page: Page, most: int = 12) -> list[str]:
    """Return what Tab does not reach in order in the content. ``most``: presses of Tab that are tried."""
    faults = []
    page.evaluate("document.querySelector('#main').focus()")
    page.keyboard.press("Tab")
    before, expected = 0, int(_call(page, "firstInContent"))
    for _ in range(most):
        count, place, focused = _call(page, "focusedStop")
        if place < 0 and expected == count:
            break
        # A field for a time has several stops; what is focused may make further stops.
        if place not in (expected, expected - 1) and count == before:
            faults.append(f"Tab has reached stop {place} and not {expected}: {focused}")
            break
        before, expected = count, place + 1
        page.keyboard.press("Tab")
    return faults


def focus_faults(page: Page) -> list[str]:
    """Return what cannot have the focus, or does not show that it has it."""
    found: list[str] = _call(page, "focusFaults")
    return found


def mouse_faults(page: Page) -> list[str]:
    """Return what a mouse can click and no key reaches."""
    found: list[str] = _call(page, "mouseFaults")
    return found


def navigation_faults(page: Page) -> list[str]:
    """Return what Tab does not reach in order before the content, or if nothing leads around it."""
    faults = []
    _leave(page)
    for expected in range(int(_call(page, "firstInContent"))):
        page.keyboard.press("Tab")
        _, place, focused = _call(page, "focusedStop")
        if expected == 0 and 'class="skip"' not in focused:
            faults.append("the first stop does not lead to the content")
        if place != expected:
            faults.append(f"Tab has reached stop {place} and not {expected}: {focused}")
    _leave(page)
    for key in ("Tab", "Enter", "Tab"):
        page.keyboard.press(key)
    if not page.evaluate("!!document.activeElement.closest('#main')"):
        faults.append("after the link to the content Tab is not in the content")
    return faults


def foreign_faults(page: Page) -> list[str]:
    """Return where text of others became more than text, or turns the text beside it around."""
    found: list[str] = _call(page, "foreignFaults")
    return found


def addresses_in(text: str) -> set[str]:
    """Return the addresses below /ui that a page leads to, without fragments."""
    found = re.findall(r'<(?:a|form)\b[^>]*?\b(?:href|action)="(/ui[^"#]*)', text)
    return {unescape(each) for each in found}


def shape(address: str) -> str:
    """Return the kind of an address: without ids and without the values of its query."""
    path, _, query = address.partition("?")
    keys = sorted({part.partition("=")[0] for part in query.split("&") if part})
    return f"{_UUID.sub('…', path)}?{'&'.join(keys)}"


def _leave(page: Page) -> None:
    """Take the focus away, so that Tab begins at the begin of the page."""
    page.evaluate(
        "document.activeElement?.blur(), getSelection()?.removeAllRanges(), scrollTo(0, 0),"
        "document.body.tabIndex = -1, document.body.focus(), document.body.removeAttribute('tabindex')"
    )
