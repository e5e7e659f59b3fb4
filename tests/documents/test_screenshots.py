"""The screenshots of the documents are there, and are the same each time they are made."""

import re
from pathlib import Path

import pytest

from screenshots.__main__ import take_pictures
from screenshots.camera import MOST_BYTES, WIDTH, opened_browser
from screenshots.errors import NoScreenshots
from screenshots.fonts import FAMILIES, check_fonts
from screenshots.subjects import SUBJECTS
from support.browser import CHROMIUM, NOT_INSTALLED

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs/images"
NAMES = {f"dashboard-{subject.name}.png" for subject in SUBJECTS}

needs_chromium = pytest.mark.skipif(not CHROMIUM.exists(), reason=NOT_INSTALLED)


def test_each_screenshot_is_in_the_repository_and_shown_in_a_document() -> None:
    assert {path.name for path in IMAGES.glob("dashboard-*.png")} == NAMES
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    texts = "".join(page.read_text() for page in pages)
    shown = set(re.findall(r"images/(dashboard-\w+\.png)\)", texts))
    assert shown == NAMES


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_screenshot_is_small_and_as_wide_as_the_others(name: str) -> None:
    content = (IMAGES / name).read_bytes()
    # A PNG has its width in pixels at byte 16.
    assert content.startswith(b"\x89PNG") and int.from_bytes(content[16:20], "big") == WIDTH
    assert len(content) <= MOST_BYTES


@pytest.mark.nightly
@needs_chromium
def test_screenshots_are_the_same_each_time() -> None:
    first, second = take_pictures(), take_pictures()
    assert first.keys() == NAMES
    assert [name for name in sorted(NAMES) if first[name] != second[name]] == []


@pytest.mark.nightly
@needs_chromium
def test_a_page_in_another_font_is_refused() -> None:
    with opened_browser() as browser:
        page = browser.new_page()
        page.set_content("<p style=\"font-family: 'Not Installed', monospace\">text")
        with pytest.raises(NoScreenshots, match="install fonts-inter"):
            check_fonts(page)
        for family in FAMILIES:
            page.set_content(f'<p style="font-family: {family}">text')
            check_fonts(page)
