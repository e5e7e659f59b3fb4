"""The pages in a browser on a fleet of 100,000 hosts."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from roost.bench.dashboard.benchmark import open_dashboard
from roost.bench.dashboard.page_views import OpenDashboard
from roost.bench.fleets import flat
from roost.bench.measurement import ComparedSetting
from support.browser import WIDTHS, Windows, examine, overflow

# To make the fleet takes a minute.
pytestmark = pytest.mark.nightly

HOSTS = 100_000

FILES = ("map, layout", "map, levels", "series")
"""Addresses that pages load and nobody opens."""


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenDashboard]:
    setting = ComparedSetting(folder=tmp_path_factory.mktemp("fleet"))
    with setting.store() as store, open_dashboard(setting, store, flat(HOSTS), decisions=20) as opened:
        yield opened


@pytest.fixture
def page(opened: OpenDashboard, browser: Browser) -> Iterator[Page]:
    """A window with a session. At the end it fails if anything went wrong in it."""
    origin = f"http://127.0.0.1:{opened.dashboard.port}"
    name, _, value = opened.headers["cookie"].partition("=")
    with Windows(browser, origin) as windows:
        page = windows.open()
        page.context.add_cookies([{"name": name, "value": value, "url": origin}])
        yield page


def test_pages_are_for_everybody(page: Page, opened: OpenDashboard) -> None:
    for title, address in opened.pages().items():
        if title in FILES:
            continue
        for width, height in WIDTHS.items():
            page.set_viewport_size({"width": width, "height": height})
            page.goto(address)
            expect(page.get_by_role("heading", level=1)).to_be_visible()
            assert overflow(page) == 0, f"{title} in a window of {width}"
        assert examine(page, all_rows=False) == [], title


def test_a_host_is_found_by_its_name(page: Page, opened: OpenDashboard) -> None:
    page.goto("/ui/map")
    wanted = opened.plan.host_name(54_321)
    page.get_by_role("searchbox").first.fill(wanted)
    page.get_by_role("searchbox").first.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text(wanted)
