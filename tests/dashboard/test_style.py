"""All components of the style on one page: contrast, sizes and widths, in both themes."""

from pathlib import Path

import pytest
from playwright.sync_api import Page

from support.browser import Windows, examine, overflow, small_targets
from support.page_server import PageServer, Reply

SAMPLE = Path(__file__).with_name("style_sample.html")


@pytest.fixture(autouse=True)
def sample(page_server: PageServer) -> None:
    page_server.answers["/ui"] = lambda _: Reply(SAMPLE.read_bytes())


def rules(page: Page) -> int:
    """The number of rules of the style that the page has loaded."""
    return int(
        page.evaluate("[...document.styleSheets].reduce((sum, each) => sum + each.cssRules.length, 0)")
    )


@pytest.mark.parametrize(("width", "theme"), [(1440, "light"), (1440, "dark"), (390, "light"), (390, "dark")])
def test_components_are_accessible_and_fit(windows: Windows, width: int, theme: str) -> None:
    page = windows.open("/ui", width=width, theme=theme)  # type: ignore[arg-type]
    assert rules(page) > 10
    assert examine(page) == []
    assert overflow(page) == 0
    assert small_targets(page) == []


def test_zoomed_to_twice_the_size_and_between_nothing_is_wider_than_the_window(windows: Windows) -> None:
    page = windows.open("/ui", width=1024)
    assert overflow(page) == 0
    for width in (720, 512, 320):  # 1440 and 1024 at 200 %, and the narrowest that WCAG 1.4.10 asks for
        page.set_viewport_size({"width": width, "height": 700})
        assert overflow(page) == 0, width


def test_with_forced_colours_marks_of_states_are_still_seen(windows: Windows) -> None:
    page = windows.open("/ui", forced_colors="active")
    marks = page.evaluate(
        """() => [...document.querySelectorAll(".attention li")].map((each) => {
          const mark = getComputedStyle(each, "::before");
          return [mark.backgroundColor, getComputedStyle(each).backgroundColor, mark.clipPath];
        })"""
    )
    assert all(mark != ground for mark, ground, _ in marks)
    assert len({shape for _, _, shape in marks}) == 3


def test_the_chosen_theme_holds_on_the_next_page(windows: Windows) -> None:
    page = windows.open("/ui", theme="light")
    ground = "getComputedStyle(document.body.parentElement).backgroundColor"
    light = page.evaluate(ground)
    page.get_by_role("button", name="Theme").click()
    assert page.evaluate(ground) == light  # light, chosen
    page.get_by_role("button", name="Theme").click()
    dark = page.evaluate(ground)
    assert dark != light
    page.reload()
    assert page.evaluate(ground) == dark
