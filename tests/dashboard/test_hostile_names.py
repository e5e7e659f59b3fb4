"""Hostile names in every column: they are text, isolated in their direction, and break no layout."""

import htpy as h
import pytest

from roost.dashboard.html.shell import Viewing, shell
from support.browser import Windows, examine, overflow
from support.hostile import HOSTILE, check_shown_as_text
from support.hostile_views import pages_named
from support.page_server import PageServer, Reply

VIEWING = Viewing("olga", True, "guard", "/ui/events", nonce="nonce", acts=True)
STILL = VIEWING._replace(nonce=None)
"""The viewer of pages without scripts."""

PAGES = sorted(pages_named("a", VIEWING))
LAID_OUT = [
    each for each in PAGES if each in ("migrate asked", "finish-host asked") or not each.endswith(" asked")
]
"""Pages with a layout of their own: those that ask before an act differ in sentences."""


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("page", PAGES)
def test_names_are_text(page: str, kind: str) -> None:
    check_shown_as_text(f"{h.div[pages_named(HOSTILE[kind], VIEWING)[page]]}", HOSTILE[kind])


@pytest.mark.parametrize("width", [1440, 390])
def test_names_break_no_layout(windows: Windows, page_server: PageServer, width: int) -> None:
    """A page is as wide as its window, a name is as wide as its place, and axe finds nothing."""
    window = windows.open(width=width)
    for kind in ("long", "bidi"):
        pages = pages_named(HOSTILE[kind], STILL)
        for name in LAID_OUT:
            html = shell(STILL, name, pages[name])
            page_server.answers["/ui/page"] = lambda _, html=html: Reply(html)  # type: ignore[misc]
            window.goto("/ui/page")
            assert overflow(window) == 0, f"{name}: {kind}"
            wide = window.evaluate(
                """() => [...document.querySelectorAll("#main .name, #main bdi, #main h1, #main dd")]
                  .filter((each) => each.checkVisibility() && !each.closest("table"))
                  .filter((each) => each.getBoundingClientRect().right > innerWidth + 1)
                  .map((each) => each.outerHTML.slice(0, 200))"""
            )
            assert wide == [], f"{name}: {kind}"
            assert examine(window) == [], f"{name}: {kind}"
